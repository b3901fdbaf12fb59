"""A session: start, follow, decide, go on after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from playground.kernel import Event, JsonObject
from playground.sessions import Answer, Busy, Conflict, Invalid, NotFound, Options, Sessions
from tests.sessions.conftest import Opener

YES = {"check": Answer(approved=True)}


async def rested(sessions: Sessions, run_id: str, after: int = 0) -> list[Event]:
    return [event async for event in sessions.until_rest(run_id, after)]


async def test_a_run_goes_on_by_itself_until_it_asks(opened: Opener, store_url: str) -> None:
    async with opened(store_url) as sessions:
        run_id = await sessions.start("asks")
        events = await rested(sessions, run_id)
        assert [event.pos for event in events] == list(range(1, len(events) + 1))
        assert events[-1].kind == "run_suspended"
        described = await sessions.describe(run_id)
        assert described["state"] == "suspended"
        assert described["interrupts"][0]["question"] == "Pay?"


async def test_an_answer_lets_it_go_on_to_its_end(opened: Opener, store_url: str) -> None:
    async with opened(store_url) as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        await sessions.answer(run_id, {"check": Answer(approved=False, comment="too dear")}, by="ana")
        await rested(sessions, run_id)
        described = await sessions.describe(run_id)
        assert described["output"] == "False None too dear"


async def test_it_goes_on_in_another_process_from_the_store_alone(opened: Opener) -> None:
    async with opened() as first:
        run_id = await first.start("asks")
        await rested(first, run_id)
    async with opened() as second:
        await second.answer(run_id, YES)
        await rested(second, run_id)
        assert (await second.describe(run_id))["state"] == "completed"


async def test_a_run_that_a_dead_process_left_running_is_taken_up_at_the_start(opened: Opener) -> None:
    async with opened() as first:
        run_id = await first.start("asks", options=Options(step=True))
        await rested(first, run_id)
        await first.go_on(run_id)
        await first.crash(run_id)
        assert (await first.describe(run_id))["driven"] is False
    async with opened() as second:
        await rested(second, run_id)
        assert (await second.describe(run_id))["state"] == "suspended"


async def test_twenty_answers_at_once_are_one_decision(opened: Opener, store_url: str) -> None:
    async with opened(store_url) as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        tries = [
            sessions.answer(run_id, {"check": Answer(approved=n % 2 == 0)}, by=f"p{n}") for n in range(20)
        ]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(outcome is None for outcome in outcomes) == 1
        assert all(isinstance(outcome, Conflict) for outcome in outcomes if outcome is not None)
        await rested(sessions, run_id)
        assert [event.kind for event in await sessions.events(run_id)].count("resumed") == 1


async def test_a_late_answer_is_told_what_was_decided(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        await sessions.answer(run_id, YES, by="ana")
        await rested(sessions, run_id)
        with pytest.raises(Conflict, match="already approved by ana") as late:
            await sessions.answer(run_id, YES, by="bob")
        assert late.value.decision is not None
        assert late.value.decision["by"] == "ana"


async def test_edited_fields_keep_their_types_and_must_fit_the_schema(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        with pytest.raises(Invalid) as refused:
            await sessions.answer(
                run_id, {"check": Answer(approved=True, value={"amount": 500}, has_value=True)}
            )
        assert "amount" in refused.value.errors
        assert (await sessions.describe(run_id))["state"] == "suspended"
        await sessions.answer(run_id, {"check": Answer(approved=True, value={"amount": 7}, has_value=True)})
        await rested(sessions, run_id)
        assert (await sessions.describe(run_id))["output"] == "True 7 None"


async def test_an_answer_to_what_was_never_asked_changes_nothing(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        before = await rested(sessions, run_id)
        with pytest.raises(NotFound, match="never asked 'other'"):
            await sessions.answer(run_id, {"other": Answer(approved=True)})
        assert await sessions.events(run_id) == before


async def test_two_viewers_see_the_same_events_and_a_late_one_misses_none(
    opened: Opener, store_url: str
) -> None:
    async with opened(store_url) as sessions:
        run_id = await sessions.start("asks")

        async def watch() -> list[int]:
            return [t.event.pos async for batch in sessions.follow(run_id) for t in batch if t.event]

        early = [asyncio.create_task(watch()) for _ in range(2)]
        await rested(sessions, run_id)
        await sessions.answer(run_id, YES)
        await rested(sessions, run_id)
        seen = [await task for task in early]
        seen.append(await watch())
        total = len(await sessions.events(run_id))
        assert seen == [list(range(1, total + 1))] * 3


async def test_a_viewer_who_comes_back_with_a_position_sees_only_what_follows(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        await sessions.answer(run_id, YES)
        await rested(sessions, run_id)
        seen = [t.event.pos async for batch in sessions.follow(run_id, 7) for t in batch if t.event]
        assert seen == list(range(8, len(await sessions.events(run_id)) + 1))


async def test_whoever_has_seen_the_end_of_a_run_has_nothing_to_wait_for(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        await sessions.answer(run_id, YES)
        last = (await rested(sessions, run_id))[-1].pos
        async with asyncio.timeout(5):
            assert [batch async for batch in sessions.follow(run_id, last)] == []


async def test_a_run_that_nobody_watches_any_more_holds_no_feed(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        first, second = sessions.follow(run_id), sessions.follow(run_id)
        await anext(first)
        await anext(second)
        await first.aclose()
        assert sessions.watched() == [run_id]
        await second.aclose()
        assert sessions.watched() == []


async def test_viewers_hear_what_is_only_told(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        events = await rested(sessions, run_id)
        watching = sessions.follow(run_id, events[-2].pos)
        await anext(watching)
        sessions.tell(run_id, "beat", {})
        (told,) = await anext(watching)
        assert told.live == ("beat", {})
        await watching.aclose()


async def test_a_viewer_who_leaves_does_not_stop_the_run(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        watching = sessions.follow(run_id)
        await anext(watching)
        await watching.aclose()
        await rested(sessions, run_id)
        assert (await sessions.describe(run_id))["state"] == "suspended"


async def test_a_paused_run_stays_paused_over_a_restart_and_steps_wave_by_wave(opened: Opener) -> None:
    async with opened() as first:
        run_id = await first.start("asks", options=Options(step=True))
        await rested(first, run_id)
        assert (await first.describe(run_id))["waves"] == 0
    async with opened() as second:
        await second.go_on(run_id, step=True)
        await rested(second, run_id)
        described = await second.describe(run_id)
        assert described["waves"] == 1
        assert described["interrupts"][0]["kind"] == "breakpoint"


async def test_a_breakpoint_on_a_value_parks_the_run_in_the_wave_that_brings_it(opened: Opener) -> None:
    async with opened() as sessions:
        point = {"channel": "amount", "op": "<", "value": 50}
        run_id = await sessions.start("asks", options=Options(breakpoints=[point]))
        await rested(sessions, run_id)
        described = await sessions.describe(run_id)
        assert described["waves"] == 1
        assert described["interrupts"][0]["payload"]["breakpoint"] == point


async def test_cancelling_a_parked_run_fails_it_and_withdraws_its_question(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        await sessions.cancel(run_id)
        described = await sessions.describe(run_id)
        assert (described["state"], described["error"]) == ("failed", "cancelled")
        assert described["interrupts"] == []


async def test_a_fork_asks_again_and_leaves_the_original_as_it_is(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        parked = (await rested(sessions, run_id))[-1].pos
        await sessions.answer(run_id, YES)
        await rested(sessions, run_id)
        fork_id = await sessions.fork(run_id, parked, updates={"amount": 3})
        await rested(sessions, fork_id)
        forked = await sessions.describe(fork_id)
        assert forked["state"] == "suspended"
        assert forked["forked_from"] == {"run_id": run_id, "at": parked}
        assert (await sessions.portrait(fork_id)).run.shared["amount"] == 3
        assert (await sessions.describe(run_id))["state"] == "completed"


async def test_a_run_whose_scenario_is_gone_still_shows_its_log(opened: Opener, folder: Path) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        (folder / "asks.py").unlink()
        described = await sessions.describe(run_id)
        assert described["state"] == "suspended"
        with pytest.raises(NotFound, match="asks"):
            await sessions.answer(run_id, YES)


async def test_an_exported_run_can_be_taken_in_and_looked_at(opened: Opener, tmp_path: Path) -> None:
    import json

    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        lines = [json.dumps(line) for line in await sessions.export(run_id)]
    async with opened(f"file:{tmp_path}/other") as elsewhere:
        copy = await elsewhere.take_in(lines)
        assert (await elsewhere.describe(copy))["interrupts"][0]["question"] == "Pay?"
        with pytest.raises(Invalid, match="not whole"):
            await elsewhere.take_in(lines[:-1])


async def test_a_deleted_run_is_gone(opened: Opener, store_url: str) -> None:
    async with opened(store_url) as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        await sessions.delete(run_id)
        with pytest.raises(NotFound):
            await sessions.describe(run_id)


async def test_no_more_runs_go_on_at_once_than_allowed(opened: Opener) -> None:
    async with opened(max_running=0) as sessions:
        with pytest.raises(Busy, match="0 runs are going on"):
            await sessions.start("asks")


async def test_a_turn_that_continues_a_run_must_follow_one_that_has_ended(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        with pytest.raises(Conflict, match="once it has ended"):
            await sessions.start("asks", continues=run_id)


@pytest.mark.parametrize("point", [{"before": "nosuch"}, {"after": "nosuch#1"}])
async def test_a_breakpoint_at_a_node_that_is_not_there_is_refused_with_those_that_are(
    opened: Opener, point: JsonObject
) -> None:
    async with opened() as sessions:
        with pytest.raises(Invalid, match=r"there is no node 'nosuch.*' to stop at: use "):
            await sessions.start("asks", options=Options(breakpoints=[point]))
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        with pytest.raises(Invalid, match="there is no node"):
            await sessions.set_breakpoints(run_id, [point])
        await sessions.set_breakpoints(run_id, [{"before": "nosuch/inside"}])
        assert (await sessions.portrait(run_id)).run.breakpoints == [{"before": "nosuch/inside"}]
