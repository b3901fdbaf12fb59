"""The feed: one short ring for all viewers of a run."""

from __future__ import annotations

import asyncio

import pytest

from playground.kernel import Event
from playground.sessions import Cursor, Feed, Told, feed


def told(pos: int) -> Told:
    return Told(Event(pos, "run-a", "note", {}, None, pos, 0.0))


async def test_the_ring_keeps_the_latest_items_only() -> None:
    ring = Feed(size=3)
    items = [Told() for _ in range(5)]
    for item in items:
        ring.push(item)
    assert (ring.first, ring.next) == (2, 5)
    assert list(ring.since(0)) == items[2:]
    assert list(ring.since(4)) == items[4:]
    assert list(ring.since(5)) == []


async def test_every_waiter_is_woken_and_one_that_leaves_does_not_wake_the_others() -> None:
    ring = Feed()
    waiters = [asyncio.create_task(ring.wait(0)) for _ in range(3)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    await asyncio.sleep(0)
    assert not waiters[1].done()
    ring.push(Told())
    await asyncio.gather(*waiters[1:])


async def test_closing_wakes_who_waits() -> None:
    ring = Feed()
    waiter = asyncio.create_task(ring.wait(0))
    await asyncio.sleep(0)
    ring.close()
    await waiter


async def test_what_comes_while_viewers_rest_reaches_them_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "REST", 0.5)
    ring, heard, served = Feed(), list[int](), asyncio.Event()

    async def view() -> None:
        while sum(heard) < 4 and await ring.wait(sum(heard)):
            heard.append(len(ring.since(sum(heard))))
            served.set()

    viewer = asyncio.create_task(view())
    await asyncio.sleep(0)
    ring.push(Told())
    await served.wait()
    for _ in range(3):
        ring.push(Told())
        await asyncio.sleep(0)
    await viewer
    assert heard == [1, 3]


async def test_a_closed_feed_says_that_no_more_will_come_after_what_it_holds() -> None:
    ring = Feed()
    ring.push(Told())
    ring.close()
    assert await ring.wait(0)
    assert not await ring.wait(1)


async def test_what_was_read_from_the_log_is_not_heard_again() -> None:
    ring = Feed()
    cursor = Cursor(ring, 0)
    items = [told(1), told(2), told(3)]
    for item in items:
        ring.push(item)
    cursor.read([item.event for item in items[:2] if item.event])
    cursor.read([])
    assert not cursor.behind
    assert list(cursor.hear()) == items[2:]


async def test_where_the_feed_misses_an_event_the_viewer_goes_back_to_the_log() -> None:
    ring = Feed()
    cursor = Cursor(ring, 0)
    cursor.read([])
    ring.push(told(1))
    ring.push(told(3))
    assert [item.event and item.event.pos for item in cursor.hear()] == [1]
    assert (cursor.behind, cursor.position) == (True, 1)


async def test_a_viewer_that_fell_off_the_ring_is_told_so_and_goes_back_to_the_log() -> None:
    ring = Feed(size=2)
    cursor = Cursor(ring, 0)
    cursor.read([])
    for pos in (1, 2, 3):
        ring.push(told(pos))
    assert [item.live for item in cursor.hear()] == [("lagging", {"after": 0})]
    assert cursor.behind
