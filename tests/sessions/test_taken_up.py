"""The list of runs is a cache of their logs: whatever moment a process dies at, the next one finds its runs.

A run is in the list as running before its log says so, and settled after; so
at the start only what is listed as running has to be compared with its log.
"""

from __future__ import annotations

from dataclasses import replace

from playground.kernel import RunState
from playground.sessions import Answer, Sessions
from tests.sessions.conftest import Opener


async def rested(sessions: Sessions, run_id: str) -> None:
    async for _ in sessions.until_rest(run_id):
        pass


async def listed(sessions: Sessions, run_id: str) -> tuple[RunState, int] | None:
    record = await sessions.store.runs.get(run_id)
    return record and (record.state, record.waiting)


async def mark_as_running(sessions: Sessions, run_id: str) -> None:
    """Put the list back to where it was when a process died just before it settled the run."""
    record = await sessions.store.runs.get(run_id)
    assert record is not None
    await sessions.store.runs.put(replace(record, state=RunState.RUNNING, waiting=0))


async def test_a_run_is_in_the_list_as_soon_as_it_has_begun(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        assert await listed(sessions, run_id) is not None


async def test_a_run_that_waits_but_is_listed_as_running_is_settled_at_the_start(opened: Opener) -> None:
    async with opened() as first:
        run_id = await first.start("asks")
        await rested(first, run_id)
        await mark_as_running(first, run_id)
    async with opened() as second:
        assert await listed(second, run_id) == (RunState.SUSPENDED, 1)
        assert not second.is_driven(run_id)


async def test_a_run_that_has_ended_but_is_listed_as_running_is_settled_at_the_start(opened: Opener) -> None:
    async with opened() as first:
        run_id = await first.start("asks")
        await rested(first, run_id)
        await first.answer(run_id, {"check": Answer(approved=True)})
        await rested(first, run_id)
        await mark_as_running(first, run_id)
    async with opened() as second:
        assert await listed(second, run_id) == (RunState.COMPLETED, 0)


async def test_a_listed_run_whose_log_never_began_leaves_the_list_at_the_start(opened: Opener) -> None:
    async with opened() as first:
        run_id = await first.start("asks")
        await rested(first, run_id)
        record = await first.store.runs.get(run_id)
        assert record is not None
        await first.store.runs.put(replace(record, run_id="r-unborn", state=RunState.RUNNING))
    async with opened() as second:
        assert await second.store.runs.get("r-unborn") is None


async def test_a_run_is_listed_as_running_before_its_log_says_that_it_was_answered(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        seen: list[object] = []
        append = sessions.store.log.append_many

        async def noting(events):  # type: ignore[no-untyped-def]
            if events[0].kind == "resumed":
                seen.append(await listed(sessions, run_id))
            await append(events)

        sessions.store.log.append_many = noting  # type: ignore[method-assign]
        await sessions.answer(run_id, {"check": Answer(approved=True)})
        assert seen == [(RunState.RUNNING, 0)]
