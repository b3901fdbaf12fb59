"""Fork: another life for a run, from any moment of it; the original is untouched."""

from __future__ import annotations

import pytest
from hypothesis import given

from playground.kernel import (
    JsonValue,
    LogConflict,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Run,
    RunState,
    Scheduler,
    SubPlanBody,
    add,
    append,
    last,
    replay,
)
from tests.kernel.logs import CountingLog
from tests.kernel.plans import PlanSpec, World, law, plan_specs
from tests.kernel.steps import asks, does, plan_of, step


@law(40)
@given(spec=plan_specs(size=4))
async def test_a_fork_from_any_moment_ends_like_the_run_and_leaves_it_as_it_was(spec: PlanSpec) -> None:
    world = World(spec)
    run = await world.finish(await world.begin())
    before = await world.log.stream("r")
    end = next(
        event.pos for event in before if event.run_id == "r" and event.kind in ("run_completed", "run_failed")
    )
    for at in range(1, end):
        fork = await world.finish(await world.scheduler.fork(world.plan, "r", at=at, new_id=f"f{at}"))
        assert (fork.state, fork.final_output) == (run.state, run.final_output)
        if run.state is RunState.COMPLETED:
            assert fork.shared == run.shared
    assert await world.log.stream("r") == before


def counting() -> Plan:
    """Three steps that add one each; the second asks."""
    plan = Plan({"n": add(), "said": last(), "xs": append()})

    def ask(x: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome.ok(n=1, said=ctx.resume_value) if ctx.resumed else Outcome.park("input")

    plan.add(
        does("a", lambda x: {"n": 1}),
        does("b", ask),
        does("c", lambda x, ctx: Outcome.ok(ctx.shared["n"], n=1)),
    )
    return plan.edge("a", "b").edge("b", "c")


async def counted() -> tuple[Scheduler, Run]:
    scheduler = Scheduler()
    await scheduler.run(counting(), run_id="r")
    return scheduler, await scheduler.resume(counting(), "r", "first")


async def at(scheduler: Scheduler, kind: str, run_id: str = "r") -> int:
    return next(e.pos for e in await scheduler.eventlog.stream("r") if e.kind == kind and e.run_id == run_id)


async def test_updates_replace_channel_values_and_are_in_the_log() -> None:
    scheduler, _ = await counted()
    parked = await at(scheduler, "run_suspended")
    fork = await scheduler.fork(counting(), "r", at=parked, updates={"n": 10, "xs": ["new"]}, new_id="f")
    assert (fork.state, fork.shared["n"], fork.shared["xs"]) == (RunState.SUSPENDED, 10, ["new"])
    fork = await scheduler.resume(counting(), "f", "second")
    assert (fork.final_output, fork.shared["said"]) == (11, "second")
    events = await scheduler.eventlog.events("f")
    lineage = next(event for event in events if event.kind == "forked")
    assert lineage.data == {"run_id": "r", "at": parked, "updates": {"n": 10, "xs": ["new"]}}
    assert replay(counting(), events).snapshot() == fork.snapshot()


async def test_a_fork_in_the_middle_of_a_wave_keeps_what_had_returned() -> None:
    ran_: list[str] = []

    def body(key: str) -> object:
        return lambda x: ran_.append(key) or key

    plan = plan_of(*[does(key, body(key)) for key in "abc"])
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    events = await scheduler.eventlog.events("r")
    second = [event.pos for event in events if event.kind == "node_completed"][1]
    ran_.clear()
    fork = await scheduler.fork(plan, "r", at=second)
    assert fork.final_output == {"a": "a", "b": "b", "c": "c"}
    assert ran_ == ["c"]


async def test_a_fork_of_a_run_that_failed_may_go_on_with_a_mended_plan() -> None:
    """Case D41: the numbers go on, and the failed attempt stays to be seen in the old run."""

    def plan(mended: bool) -> Plan:
        return plan_of(step("a"), step("b"), does("c", lambda x: "mended" if mended else 1 / 0), a="b", b="c")

    scheduler = Scheduler()
    failed = await scheduler.run(plan(False), run_id="r")
    assert failed.state is RunState.FAILED
    fork = await scheduler.fork(plan(True), "r", at=await at(scheduler, "node_failed") - 1, new_id="f")
    assert fork.final_output == "mended"
    for run_id in ("r", "f"):
        events = await scheduler.eventlog.events(run_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        steps = [
            (e.data["wave"], e.data["node"], e.data["attempt"]) for e in events if e.kind == "node_started"
        ]
        assert len(set(steps)) == len(steps)
    assert (await scheduler.eventlog.events("r"))[-1].kind == "run_failed"


async def test_an_update_that_a_condition_cannot_stand_fails_the_fork_and_names_the_edge() -> None:
    plan = plan_of(does("a", lambda x: {"n": 1}), step("b"), step("c"), a="b")
    plan.edge("a", "c", when=lambda shared: 1 / shared["n"] > 5)
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r")
    events = await scheduler.eventlog.events("r")
    begun = next(e.pos for e in events if e.kind == "node_started" and e.data["node"] == "b")
    fork = await scheduler.fork(plan, "r", at=begun, updates={"n": 0}, new_id="f")
    assert (run.state, fork.state) == (RunState.COMPLETED, RunState.FAILED)
    assert "the condition of edge 'a' -> 'c' raised ZeroDivisionError" in fork.final_output


async def test_child_runs_are_cut_at_the_same_moment_and_are_the_forks_own() -> None:
    inner = plan_of(step("x"), asks("ask"), step("y"), x="ask", ask="y")
    plan = plan_of(Node("sub", SubPlanBody(inner)), step("end"), sub="end")
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    await scheduler.resume(plan, "r", "first")
    child_parked = await at(scheduler, "run_suspended", "r~1")
    fork = await scheduler.fork(plan, "r", at=child_parked, new_id="f")
    assert list(fork.interrupts) == ["sub/ask"]
    fork = await scheduler.resume(plan, "f", "second")
    assert fork.final_output == "end"
    child = replay(inner, await scheduler.eventlog.stream("f"), run_id="f~1")
    assert (child.state_of("ask").output, child.parent_id) == ("second", "f")
    old = replay(inner, await scheduler.eventlog.stream("r"), run_id="r~1")
    assert old.state_of("ask").output == "first"


async def test_a_child_is_forked_with_its_whole_tree() -> None:
    plan = plan_of(Node("sub", SubPlanBody(plan_of(asks("ask")))))
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r")
    fork = await scheduler.fork(plan, "r~1", at=run.last_pos)
    assert fork.parent_id is None
    assert list(fork.interrupts) == ["sub/ask"]


async def test_a_fork_of_a_fork_names_the_fork_it_is_of() -> None:
    scheduler, _ = await counted()
    first = await scheduler.fork(counting(), "r", at=await at(scheduler, "run_suspended"), new_id="f")
    second = await scheduler.fork(counting(), "f", at=first.last_pos, new_id="g")
    assert second.state is RunState.SUSPENDED
    told = [e.data["run_id"] for e in await scheduler.eventlog.events("g") if e.kind == "forked"]
    assert told == ["r", "f"]


async def test_meta_is_put_over_that_of_the_old_run() -> None:
    scheduler = Scheduler()
    run = await scheduler.run(plan_of(asks("ask")), run_id="r", meta={"scenario": "s", "lang": "en"})
    fork = await scheduler.fork(plan_of(asks("ask")), "r", at=run.last_pos, meta={"lang": "zh"})
    assert fork.meta == {"scenario": "s", "lang": "zh"}
    assert run.meta == {"scenario": "s", "lang": "en"}


async def test_a_fork_can_be_left_for_a_recovery_to_drive() -> None:
    scheduler, _ = await counted()
    fork = await scheduler.fork(counting(), "r", at=2, new_id="f", drive=False)
    assert fork.state is RunState.RUNNING
    assert (await Scheduler(eventlog=scheduler.eventlog).recover(counting(), "f")).state is RunState.SUSPENDED


@pytest.mark.parametrize("position", [0, -1, 99])
async def test_a_position_that_is_not_there_is_refused(position: int) -> None:
    scheduler, run = await counted()
    with pytest.raises(
        ValueError, match=f"run r has no position {position}: choose one from 1 to {run.last_pos}"
    ):
        await scheduler.fork(counting(), "r", at=position, new_id="f")
    assert await scheduler.eventlog.events("f") == []


async def test_an_ended_run_is_forked_from_before_its_end() -> None:
    scheduler, run = await counted()
    with pytest.raises(
        ValueError, match=f"run r had completed by position {run.last_pos}: fork it from before"
    ):
        await scheduler.fork(counting(), "r", at=run.last_pos, new_id="f")
    assert await scheduler.eventlog.events("f") == []


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ({"nope": 1}, "run r cannot be forked so: node 'fork' wrote to the undeclared channel 'nope'"),
        ({"n": "text"}, "run r cannot be forked so: .* an add channel takes numbers, not str"),
        ({"said": {1}}, r"updates of a fork of r at \['said'\] holds \{1\} of type set"),
    ],
)
async def test_an_update_that_will_not_do_is_refused_and_nothing_is_written(
    updates: dict[str, object], message: str
) -> None:
    scheduler, _ = await counted()
    with pytest.raises(ValueError, match=message):
        await scheduler.fork(counting(), "r", at=3, updates=updates, new_id="f")
    assert await scheduler.eventlog.events("f") == []


async def test_an_id_that_is_taken_or_none_is_refused() -> None:
    scheduler, _ = await counted()
    before = await scheduler.eventlog.stream("r")
    with pytest.raises(LogConflict):
        await scheduler.fork(counting(), "r", at=3, new_id="r")
    with pytest.raises(ValueError, match="is not a run id"):
        await scheduler.fork(counting(), "r", at=3, new_id="../f")
    with pytest.raises(KeyError, match="run nobody is neither in the log"):
        await scheduler.fork(counting(), "nobody", at=1)
    assert await scheduler.eventlog.stream("r") == before


async def test_a_plan_without_a_node_that_was_parked_is_refused() -> None:
    scheduler, _ = await counted()
    with pytest.raises(RuntimeError, match="node 'b' was parked or about to run and is gone from the plan"):
        await scheduler.fork(
            Plan(counting().channels).add(step("a")), "r", at=await at(scheduler, "run_suspended"), new_id="f"
        )
    assert await scheduler.eventlog.events("f") == []


async def test_the_copy_and_its_lineage_are_kept_as_one() -> None:
    """A crash leaves a whole fork or none: never a run that does not know where it came from."""
    log = CountingLog()
    scheduler = Scheduler(eventlog=log)
    run = await scheduler.run(plan_of(asks("ask")), run_id="r")
    await scheduler.fork(plan_of(asks("ask")), "r", at=run.last_pos, new_id="f")
    batch = next(batch for batch in log.batches if batch[0].run_id == "f")
    assert [event.kind for event in batch] == [*[e.kind for e in await log.events("r")], "forked"]
