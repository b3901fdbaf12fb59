"""Writing to disk does not hold up the event loop."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from playground.backends import StoreError, lane, open_store
from playground.backends.lane import Busy, Lane
from tests.backends.samples import event, events, log_file


async def test_quick_work_runs_where_it_was_asked_for() -> None:
    assert await Lane("x").run(threading.current_thread) is threading.main_thread()


async def test_the_loop_goes_on_while_slow_work_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "QUICK", 0.0)
    slow, released = Lane("x"), threading.Event()
    waiting = asyncio.create_task(slow.run(lambda: released.wait(10)))
    await asyncio.sleep(0)

    released.set()

    assert await waiting is True
    await slow.close()


async def test_one_slow_piece_of_work_sends_the_next_to_a_thread_and_not_for_ever() -> None:
    adaptive = Lane("x")
    pause = threading.Event()
    await adaptive.run(lambda: pause.wait(5 * lane.QUICK))

    places = [await adaptive.run(threading.current_thread) for _ in range(100)]

    assert places[0] is not threading.main_thread()
    assert places[-1] is threading.main_thread()
    await adaptive.close()


async def test_work_runs_one_piece_at_a_time_in_the_order_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "QUICK", 0.0)
    slow = Lane("x")
    done: list[int] = []

    await asyncio.gather(*(slow.run(lambda n=n: done.append(n)) for n in range(50)))

    assert done == list(range(50))
    await slow.close()


async def test_work_that_finds_the_store_busy_is_done_again_until_it_is_free() -> None:
    answers: Iterator[type[Exception] | None] = iter([Busy, Busy, Busy, None])
    patient = Lane("x")

    def work() -> str:
        if answer := next(answers):
            raise answer
        return "done"

    assert await patient.run(work) == "done"
    await patient.close()


async def test_a_store_that_stays_busy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "PATIENCE", 0.0)
    patient = Lane("runs.db")

    def work() -> None:
        raise Busy

    with pytest.raises(StoreError, match=r"^runs.db: another process has held it"):
        await patient.run(work)
    await patient.close()


async def test_an_error_of_the_work_reaches_who_asked_and_the_lane_goes_on() -> None:
    sound = Lane("x")

    with pytest.raises(ZeroDivisionError):
        await sound.run(lambda: 1 // 0)

    assert await sound.run(lambda: 1) == 1


@contextmanager
def held(url: str) -> Iterator[None]:
    """Hold a store as another process does while it writes."""
    with ExitStack() as stack:
        if url.startswith("sqlite:"):
            other = stack.enter_context(closing(sqlite3.connect(log_file(url), isolation_level=None)))
            other.execute("begin immediate")
        else:
            file = stack.enter_context(log_file(url).open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


async def test_an_append_waits_for_another_process_and_the_loop_goes_on(disk_url: str) -> None:
    async with open_store(disk_url) as store:
        await store.log.append(event(1, n=1))
        with held(disk_url):
            appending = asyncio.create_task(store.log.append(event(2, n=2)))
            done, _ = await asyncio.wait({appending}, timeout=0.3)
            assert not done
            assert await store.log.events("r") == events(1, 1)

        await appending
        assert await store.log.events("r") == events(1, 2)


async def test_an_append_whose_caller_is_cancelled_is_whole_or_absent(disk_url: str) -> None:
    async with open_store(disk_url) as store:
        await store.log.append(event(1, n=1))
        with held(disk_url):
            appending = asyncio.create_task(store.log.append_many(events(2, 4)))
            await asyncio.sleep(0)
            appending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await appending

    async with open_store(disk_url) as store:
        assert await store.log.events("r") in (events(1, 1), events(1, 4))


async def test_a_long_log_is_read_in_turns_with_others(disk_url: str) -> None:
    async with open_store(f"{disk_url}?sync=normal") as store:
        for n in range(1, 1001):
            await store.log.append(event(n))
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(count())
        await store.log.events("r")
        other.cancel()

        assert turns >= 3
