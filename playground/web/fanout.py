"""One for all: viewers who are level with each other are served by one loop.

A viewer costs a server little as long as nothing is done for it alone.  So whoever
has read what the log had joins the group of those who see the same, and from then
on each batch is turned into bytes once and handed to every member in turn.  One
whose connection is full leaves the group with what is left of its sending, and
comes back when it has caught up; nobody waits for it.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Message, Send

from playground.sessions import Follower, Told

TURN = 64
"""How many members are served before everyone else has a turn."""


class Teller(Protocol):
    """Turns what happens in a run into bytes for one kind of viewer."""

    @property
    def kind(self) -> object:
        """Tellers of equal kinds say the same of what is heard live."""
        ...

    async def live(self, batch: Sequence[Told]) -> bytes:
        """The messages for what was heard; empty if it says nothing to this kind of viewer."""
        ...

    async def stored(self, batch: Sequence[Told]) -> bytes:
        """The messages for what one viewer read from the log, for this viewer alone."""
        ...

    def level(self) -> bytes:
        """What is still owed to this viewer, who has caught up."""
        ...

    def farewell(self) -> bytes:
        """The last messages of a run that has ended."""
        ...


def body(chunk: bytes, *, more: bool = True) -> Message:
    """A piece of an answer that goes on."""
    return {"type": "http.response.body", "body": chunk, "more_body": more}


@dataclass(frozen=True, slots=True)
class Parting:
    """How a member leaves its group.

    Attributes:
        follower: the place that it had reached, for it to go on from.
        sending: what is left of its last message, to be waited for.
    """

    follower: Follower
    sending: Awaitable[None] | None = None


class Group:
    """Viewers of one kind who are level with each other.

    Args:
        follower: where they are; the group goes on from there with it.
        teller: that of any of them.
    """

    def __init__(self, follower: Follower, teller: Teller) -> None:
        self._follower = follower
        self._teller = teller
        self._members: dict[asyncio.Future[Parting], Send] = {}
        self._between = True
        self._task = asyncio.create_task(self._run())

    @property
    def empty(self) -> bool:
        """Whether nobody is left."""
        return not self._members

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self._task.done() or self._follower.over

    def takes(self, follower: Follower) -> bool:
        """Whether whoever has come so far may join."""
        own, other = self._follower.cursor, follower.cursor
        return self._between and (own.number, own.position) == (other.number, other.position)

    async def join(self, send: Send) -> Parting:
        """Be served with the others, until the run has ended, or `send` would have to wait."""
        parting: asyncio.Future[Parting] = asyncio.get_running_loop().create_future()
        self._members[parting] = send
        try:
            return await parting
        finally:
            self._members.pop(parting, None)

    def close(self) -> None:
        """Serve no more."""
        self._task.cancel()

    async def _run(self) -> None:
        follower = self._follower
        try:
            while not follower.over:
                batch = await follower.read()
                if batch:
                    self._between = False
                    await self._tell(await self._teller.live(batch))
                    self._between = True
        except Exception as error:  # noqa: BLE001 - whatever it is, it is each member's
            for parting in self._members:
                if not parting.done():
                    parting.set_exception(error)
        for parting in list(self._members):
            self._part(parting)

    async def _tell(self, chunk: bytes) -> None:
        if not chunk:
            return
        message = body(chunk)
        for served, (parting, send) in enumerate(list(self._members.items()), 1):
            if not parting.done():
                try:
                    left = begin(send(message))
                except Exception as error:  # noqa: BLE001 - its connection is its own
                    parting.set_exception(error)
                else:
                    if left is not None:
                        self._part(parting, left)
            if served % TURN == 0:
                await asyncio.sleep(0)

    def _part(self, parting: asyncio.Future[Parting], sending: Awaitable[None] | None = None) -> None:
        self._members.pop(parting, None)
        if not parting.done():
            parting.set_result(Parting(self._follower.twin(), sending))


def begin(sending: Awaitable[None]) -> Awaitable[None] | None:
    """Do what can be done at once; None, or the rest, which is to be awaited."""
    steps = sending.__await__()
    try:
        waits_for = next(steps)
    except StopIteration:
        return None
    return _rest(waits_for, steps)


@types.coroutine
def _rest(waits_for: object, steps: Generator[object, None, None]) -> Generator[object, None, None]:
    yield waits_for
    yield from steps
