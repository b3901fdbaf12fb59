"""The feed of a run: what its viewers see, live, without holding it up.

Live is log + tail.  Every viewer has a cursor into one short ring of what was
just told, shared by all of them, so a viewer costs a number and not a queue.
One that is too slow falls off the ring; what it missed it reads from the log,
where nothing is ever missing.  What is not in the log, such as a token, is
simply gone for it.

`Told` carries the frames that were made of it, so that an event is rendered
once and sent to everyone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from playground.kernel import Event, root_of

RING = 1024
"""How many of the latest items a feed keeps for its viewers."""


@dataclass(slots=True, eq=False)
class Told:
    """One item of a feed: an event of the log, or something that is only told live.

    Attributes:
        event: the event; None for what is only live.
        live: name and data of what is only live.
        frames: what was made of it, by whoever renders it, under a key of theirs.
        stored: it was read from the log for one viewer, and not heard live by all.
    """

    event: Event | None = None
    live: tuple[str, Mapping[str, object]] | None = None
    frames: dict[str, bytes] = field(default_factory=dict)
    stored: bool = False


def ends_run(event: Event) -> bool:
    """Whether it is the last event of its tree: the end of the root run."""
    return event.kind in ("run_completed", "run_failed") and root_of(event.run_id) == event.run_id


def ends(batch: Sequence[Told]) -> bool:
    """Whether the last event among these items is the last of its tree."""
    for told in reversed(batch):
        if told.event is not None:
            return ends_run(told.event)
    return False


class Feed:
    """The latest items of one tree of runs.

    `first` and `next` are the numbers of the oldest item kept and of the one to come;
    `viewers` counts who follows it, so that it can be dropped after the last one.
    """

    def __init__(self, size: int = RING) -> None:
        self._items: deque[Told] = deque(maxlen=size)
        self._waiting: list[asyncio.Future[None]] = []
        self.next = 0
        self.viewers = 0
        self.closed = False

    @property
    def first(self) -> int:
        """Number of the oldest item that is kept."""
        return self.next - len(self._items)

    def push(self, told: Told) -> None:
        """Add an item and wake who waits for one."""
        self._items.append(told)
        self.next += 1
        self._wake()

    def close(self) -> None:
        """Nothing more will come; wakes everyone."""
        self.closed = True
        self._wake()

    def since(self, number: int) -> Sequence[Told]:
        """The items from `number` on; those that the ring has lost are left out."""
        skip = max(0, number - self.first)
        if skip >= len(self._items):
            return ()
        if skip == len(self._items) - 1:
            return (self._items[-1],)
        return list(islice(self._items, skip, None))

    async def wait(self, number: int) -> None:
        """Return when there is an item `number`, or when the feed is closed."""
        while self.next <= number and not self.closed:
            told = asyncio.get_running_loop().create_future()
            self._waiting.append(told)
            await told

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            if not told.done():
                told.set_result(None)
