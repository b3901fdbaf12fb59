"""The feed: one short ring for all viewers of a run."""

from __future__ import annotations

import asyncio

from playground.sessions import Feed, Told


async def test_the_ring_keeps_the_latest_items_only() -> None:
    feed = Feed(size=3)
    items = [Told() for _ in range(5)]
    for item in items:
        feed.push(item)
    assert (feed.first, feed.next) == (2, 5)
    assert list(feed.since(0)) == items[2:]
    assert list(feed.since(4)) == items[4:]
    assert list(feed.since(5)) == []


async def test_every_waiter_is_woken_and_one_that_leaves_does_not_wake_the_others() -> None:
    feed = Feed()
    waiters = [asyncio.create_task(feed.wait(0)) for _ in range(3)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    await asyncio.sleep(0)
    assert not waiters[1].done()
    feed.push(Told())
    await asyncio.gather(*waiters[1:])


async def test_closing_wakes_who_waits() -> None:
    feed = Feed()
    waiter = asyncio.create_task(feed.wait(0))
    await asyncio.sleep(0)
    feed.close()
    await waiter
