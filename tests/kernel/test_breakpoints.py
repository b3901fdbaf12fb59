"""Pause, step and breakpoints: a run parks between two waves, for as long as it takes, over a restart too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from unittest.mock import patch

import pytest

from playground.kernel import (
    Breakpoint,
    FnBody,
    Goto,
    JsonValue,
    Node,
    NodeContext,
    NotSuspended,
    Outcome,
    Plan,
    Run,
    RunState,
    Scheduler,
    Send,
    SubPlanBody,
    driver,
    last,
    parse_breakpoints,
)
from tests.kernel.logs import CountingLog, turns
from tests.kernel.steps import asks, does, plan_of, step


def chain(*keys: str) -> Plan:
    plan = plan_of(*map(step, keys))
    for source, target in pairwise(keys):
        plan.edge(source, target)
    return plan


async def stops(plan: Plan, breakpoints: Sequence[object]) -> list[tuple[list[str], JsonValue]]:
    """At each pause of a run: the nodes that had run, and why it paused."""
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r", breakpoints=breakpoints)
    found = []
    while run.state is RunState.SUSPENDED:
        (asked,) = run.interrupts.values()
        assert (asked.kind, asked.question) == ("breakpoint", "Go on?")
        found.append(([str(key) for key in run.shared["trace"]], asked.payload["breakpoint"]))
        run = await scheduler.resume(plan, "r", {})
    assert run.state is RunState.COMPLETED
    return found


@pytest.mark.parametrize(
    ("point", "where"),
    [
        ({"before": "b"}, [["a"]]),
        ({"after": "b"}, [["a", "b"]]),
        ({"before": "a"}, [[]]),
        ({"before": "nobody"}, []),
        ({"on": "node_completed"}, [["a"], ["a", "b"]]),
        ({"on": "run_failed"}, []),
        ({"every": "wave"}, [[], ["a"], ["a", "b"]]),
        ({"channel": "trace", "op": "==", "value": ["a"]}, [["a"]]),
        ({"channel": "n", "op": ">=", "value": 0}, [[], ["a"], ["a", "b"]]),
        ({"channel": "missing", "op": "==", "value": None}, []),
        ({"channel": "trace", "op": "<", "value": 15}, []),
    ],
)
async def test_each_kind_of_breakpoint_stops_where_it_says(
    point: dict[str, JsonValue], where: list[list[str]]
) -> None:
    assert await stops(chain("a", "b", "c"), [point]) == [(trace, point) for trace in where]


async def test_a_value_stops_the_run_in_the_wave_that_brings_it() -> None:
    prices = [20, 17, 14, 11]

    def tick(x: JsonValue, ctx: NodeContext) -> Outcome:
        price = prices[ctx.attempt - 1]
        return Outcome(price, {"price": price}, Goto("tick") if ctx.attempt < 4 else None)

    plan = Plan({"price": last(99)}).add(Node("tick", FnBody(tick)))
    scheduler = Scheduler()
    run = await scheduler.run(plan, breakpoints=[{"channel": "price", "op": "<", "value": 15}])
    assert (run.wave.number, run.shared["price"]) == (3, 14)


async def test_going_on_from_a_breakpoint_does_not_stop_at_it_again_but_a_loop_comes_back() -> None:
    def loop(x: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome(None, {"trace": [str(ctx.attempt)]}, Goto("a") if ctx.attempt < 3 else None)

    found = await stops(plan_of(does("a", loop)), [{"before": "a"}])
    assert [trace for trace, _ in found] == [[], ["1"], ["1", "2"]]


async def test_a_step_goes_on_by_one_wave() -> None:
    scheduler = Scheduler()
    plan = chain("a", "b", "c", "d")
    run = await scheduler.run(plan, run_id="r", breakpoints=[{"before": "b"}])
    run = await scheduler.resume(plan, "r", {"step": True})
    assert run.shared["trace"] == ["a", "b"]
    assert run.interrupts["@breakpoint@2"].payload == {"reason": "step", "breakpoint": None, "next": ["c"]}
    run = await scheduler.resume(plan, "r", {})
    assert run.state is RunState.COMPLETED


async def test_a_breakpoint_on_an_instance_goes_by_its_own_key_or_its_templates() -> None:
    def plan() -> Plan:
        sends = [Send("work", n, str(n)) for n in (1, 2)]
        return plan_of(does("fan", lambda x: sends), step("work", template=True), entry="fan")

    for point in ({"before": "work"}, {"before": "work#2"}):
        assert await stops(plan(), [point]) == [([], point)]


async def test_a_breakpoint_inside_a_child_run_goes_by_its_path() -> None:
    inner = chain("x", "y")
    plan = plan_of(Node("sub", SubPlanBody(inner)), step("end"), sub="end")
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r", breakpoints=[{"before": "sub/y"}])
    assert list(run.interrupts) == ["sub/@breakpoint"]
    assert run.interrupts["sub/@breakpoint"].kind == "breakpoint"
    again = Scheduler(eventlog=scheduler.eventlog, store=scheduler.store)
    run = await again.resume(plan, "r", {})
    assert run.final_output == "end"


async def test_stepping_out_of_a_child_run_stops_behind_it() -> None:
    plan = plan_of(Node("sub", SubPlanBody(chain("x", "y", "z"))), step("end"), sub="end")
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r", breakpoints=[{"before": "sub/y"}])
    seen = []
    while run.state is RunState.SUSPENDED:
        (asked,) = run.interrupts.values()
        seen.append((asked.id, asked.payload["next"]))
        run = await scheduler.resume(plan, "r", {"step": True})
    assert seen == [("sub/@breakpoint", ["y"]), ("sub/@breakpoint@2", ["z"]), ("@breakpoint", ["end"])]


async def test_a_pause_parks_a_run_that_is_going_on_at_its_next_barrier() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def work(x: JsonValue) -> str:
        started.set()
        await go_on.wait()
        return "done"

    plan = plan_of(does("a", work), step("b"), a="b")
    scheduler = Scheduler()
    driving = asyncio.create_task(scheduler.run(plan, run_id="r"))
    await started.wait()
    scheduler.pause("r")
    go_on.set()
    run = await driving
    assert run.interrupts["@breakpoint"].payload == {"reason": "pause", "breakpoint": None, "next": ["b"]}
    assert run.state_of("a").output == "done"
    assert (await scheduler.resume(plan, "r", {})).final_output == "b"


async def test_a_pause_lasts_over_a_restart() -> None:
    plan = chain("a", "b")
    first = Scheduler()
    await first.run(plan, run_id="r", breakpoints=[{"every": "wave"}])
    second = Scheduler(eventlog=first.eventlog)
    assert (await second.recover(plan, "r")).state is RunState.SUSPENDED
    run = await second.resume(plan, "r", {})
    assert run.shared["trace"] == ["a"]
    assert list(run.interrupts) == ["@breakpoint@2"]


async def test_a_pause_beside_a_question_waits_for_the_question_first() -> None:
    """A wave that has parked suspends the run; there is nothing more to stop."""
    plan = plan_of(asks("ask"), step("a"), step("b"), a="b", ask="b")
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r", breakpoints=[{"before": "b"}])
    assert list(run.interrupts) == ["ask"]
    run = await scheduler.resume(plan, "r", "yes")
    assert list(run.interrupts) == ["@breakpoint"]
    assert (await scheduler.resume(plan, "r", {})).final_output == "b"


async def test_breakpoints_can_be_set_and_taken_away_while_parked_and_while_going_on() -> None:
    plan = chain("a", "b", "c", "d")
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r", breakpoints=[{"before": "b"}])
    await scheduler.set_breakpoints("r", [{"before": "c"}])
    run = await Scheduler(eventlog=scheduler.eventlog).resume(plan, "r", {})
    assert run.interrupts["@breakpoint@2"].payload["next"] == ["c"]
    await scheduler.set_breakpoints("r", [])
    assert (await scheduler.resume(plan, "r", {})).state is RunState.COMPLETED
    events = await scheduler.eventlog.events("r")
    told = [event.data["breakpoints"] for event in events if event.kind == "breakpoints_set"]
    assert told == [[{"before": "c"}], []]


async def test_a_breakpoint_set_from_outside_stops_a_run_that_is_going_on() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def work(x: JsonValue) -> None:
        started.set()
        await go_on.wait()

    plan = plan_of(does("a", work), step("b"), a="b")
    scheduler = Scheduler()
    driving = asyncio.create_task(scheduler.run(plan, run_id="r"))
    await started.wait()
    await scheduler.set_breakpoints("r", [{"before": "b"}])
    go_on.set()
    assert (await driving).interrupts["@breakpoint"].payload["next"] == ["b"]


async def test_what_has_ended_or_is_not_going_on_cannot_be_stopped() -> None:
    plan = chain("a")
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    with pytest.raises(NotSuspended, match="run r is completed: breakpoints would never be met"):
        await scheduler.set_breakpoints("r", [{"every": "wave"}])
    with pytest.raises(NotSuspended, match="run r is not being driven here: there is nothing to pause"):
        scheduler.pause("r")
    with pytest.raises(KeyError, match="run nobody is neither in the log"):
        await scheduler.set_breakpoints("nobody", [])
    assert (await scheduler.eventlog.events("r"))[-1].kind == "run_completed"


@pytest.mark.parametrize(
    "point",
    [
        {},
        {"before": 1},
        {"before": "a", "after": "b"},
        {"every": "second"},
        {"channel": "n", "op": "~", "value": 1},
        {"channel": "n", "op": [], "value": 1},
        {"channel": "n"},
        "before a",
        None,
    ],
)
async def test_what_is_no_breakpoint_is_refused_with_the_forms_that_are(point: object) -> None:
    with pytest.raises(ValueError, match=r'is not a breakpoint: use \{"before": node\}'):
        parse_breakpoints([point])
    scheduler = Scheduler()
    with pytest.raises(ValueError, match="is not a breakpoint"):
        await scheduler.run(chain("a"), run_id="r", breakpoints=[point])
    assert await scheduler.eventlog.events("r") == []


@pytest.mark.parametrize(
    "point",
    [
        {"before": "a"},
        {"after": "a"},
        {"on": "node_started"},
        {"every": "wave"},
        {"channel": "n", "op": ">=", "value": None},
    ],
)
def test_a_breakpoint_goes_through_json_unchanged(point: dict[str, JsonValue]) -> None:
    (found,) = parse_breakpoints([point])
    assert isinstance(found, Breakpoint)
    assert found.to_json() == point


async def test_without_breakpoints_nothing_is_looked_up_and_one_that_is_not_met_adds_nothing_to_the_log() -> (
    None
):
    logs: list[CountingLog] = []
    looked = []
    real = driver.hit
    with patch.object(driver, "hit", lambda *args, **options: looked.append(1) or real(*args, **options)):
        for points in ([], [{"before": "nobody"}]):
            logs.append(CountingLog())
            await Scheduler(eventlog=logs[-1], clock=lambda: 1.0).run(
                chain("a", "b", "c"), run_id="r", breakpoints=points
            )
            assert len(looked) == (0 if not points else 3)
    plain, watched = ([[(e.kind, e.pos) for e in batch] for batch in log.batches] for log in logs)
    assert plain == watched


async def test_many_pauses_of_one_run_have_ids_of_their_own() -> None:
    scheduler = Scheduler()
    plan = chain(*"abcde")
    run: Run = await scheduler.run(plan, run_id="r", breakpoints=[{"every": "wave"}])
    seen = []
    while run.state is RunState.SUSPENDED:
        seen += run.interrupts
        run = await scheduler.resume(plan, "r", {})
    assert seen == ["@breakpoint", *[f"@breakpoint@{n}" for n in range(2, 6)]]


async def test_a_pause_in_one_of_two_children_parks_the_whole_run_and_the_other_goes_on_to_its_end() -> None:
    async def slow(x: JsonValue) -> str:
        await turns(10)
        return "slow"

    left, right = chain("x", "y"), plan_of(does("z", slow))
    plan = plan_of(Node("left", SubPlanBody(left)), Node("right", SubPlanBody(right)))
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r", breakpoints=[{"before": "left/y"}])
    assert list(run.interrupts) == ["left/@breakpoint"]
    assert run.state_of("right").output == "slow"
    run = await scheduler.resume(plan, "r", {})
    assert run.final_output == {"left": "y", "right": "slow"}
