"""Viewers who are level: what comes is made once, and nobody waits for anybody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from starlette.types import Message

from playground.kernel import Event, InMemoryEventLog
from playground.sessions import Cursor, Feed, Follower, Told
from playground.web.fanout import Group, body


class Counting:
    """A teller that says the positions of what it is given, and counts how often it was asked."""

    kind = "counting"

    def __init__(self) -> None:
        self.asked = 0

    async def live(self, batch: Sequence[Told]) -> bytes:
        self.asked += 1
        if any(told.event is None for told in batch):
            raise ValueError("only events can be told")
        return b",".join(str(told.event.pos).encode() for told in batch if told.event)

    stored = live

    def level(self) -> bytes:
        return b""

    def farewell(self) -> bytes:
        return b"end"


class Connection:
    """Where a member's messages go; while it is full, whoever sends waits."""

    def __init__(self, *, full: bool = False) -> None:
        self.got = asyncio.Queue[Message]()
        self.room = asyncio.Event()
        if not full:
            self.room.set()

    async def send(self, message: Message) -> None:
        await self.room.wait()
        self.got.put_nowait(message)


class Stage:
    """A feed, and the group of those who follow it."""

    def __init__(self) -> None:
        self.feed = Feed()
        self.teller = Counting()
        cursor = Cursor(self.feed, 0)
        cursor.read([])
        self.follower = Follower(self.feed, InMemoryEventLog(), "r", cursor)
        self.group = Group(self.follower.twin(), self.teller)

    def happens(self, pos: int, kind: str = "tick") -> None:
        self.feed.push(Told(Event(pos, "r", kind, pos=pos)))


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    yield made
    made.group.close()


async def test_what_comes_is_made_once_and_handed_to_every_member(stage: Stage) -> None:
    viewers = [Connection() for _ in range(200)]
    joined = [asyncio.create_task(stage.group.join(viewer.send)) for viewer in viewers]
    await asyncio.sleep(0)
    stage.happens(1)
    first = [await viewer.got.get() for viewer in viewers]
    stage.happens(2)
    stage.happens(3, "run_completed")
    partings = await asyncio.gather(*joined)

    assert first == [body(b"1")] * 200
    assert [viewer.got.get_nowait() for viewer in viewers] == [body(b"2,3")] * 200
    assert stage.teller.asked == 2
    assert all(parting.follower.ended and parting.sending is None for parting in partings)


async def test_a_member_whose_connection_is_full_leaves_with_the_rest_of_its_message(stage: Stage) -> None:
    slow, quick = Connection(full=True), Connection()
    leaving = asyncio.create_task(stage.group.join(slow.send))
    staying = asyncio.create_task(stage.group.join(quick.send))
    await asyncio.sleep(0)
    stage.happens(1)
    parting = await leaving
    stage.happens(2)

    assert [await quick.got.get(), await quick.got.get()] == [body(b"1"), body(b"2")]
    assert slow.got.empty()
    assert not staying.done()
    slow.room.set()
    assert parting.sending is not None
    await parting.sending
    assert slow.got.get_nowait() == body(b"1")
    assert [told.event.pos for told in await parting.follower.read() if told.event] == [2]
    staying.cancel()


async def test_only_who_is_as_far_may_join(stage: Stage) -> None:
    assert stage.group.takes(stage.follower)
    stage.happens(1)
    await stage.follower.read()

    assert not stage.group.takes(stage.follower)


async def test_a_connection_that_breaks_is_its_members_own_trouble(stage: Stage) -> None:
    async def broken(_: Message) -> None:
        raise OSError("gone")

    whole = Connection()
    breaking = asyncio.create_task(stage.group.join(broken))
    staying = asyncio.create_task(stage.group.join(whole.send))
    await asyncio.sleep(0)
    stage.happens(1)
    assert await whole.got.get() == body(b"1")

    with pytest.raises(OSError, match="gone"):
        await breaking
    assert not staying.done()
    staying.cancel()


async def test_what_cannot_be_told_is_every_members_trouble(stage: Stage) -> None:
    joined = [asyncio.create_task(stage.group.join(Connection().send)) for _ in range(2)]
    await asyncio.sleep(0)
    stage.feed.push(Told(live=("odd", {})))

    for member in joined:
        with pytest.raises(ValueError, match="only events"):
            await member
    assert stage.group.over


async def test_a_feed_that_closes_lets_everyone_go_without_an_end(stage: Stage) -> None:
    joined = asyncio.create_task(stage.group.join(Connection().send))
    await asyncio.sleep(0)
    stage.feed.close()
    parting = await joined

    assert (parting.follower.over, parting.follower.ended) == (True, False)
