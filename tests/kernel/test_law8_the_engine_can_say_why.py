"""Law 8: the rule that decides who runs also says why, and keeping it up to date equals asking anew."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import (
    END,
    FnBody,
    Goto,
    JsonValue,
    Node,
    NodeContext,
    NodeStatus,
    Outcome,
    Plan,
    Reason,
    RetryPolicy,
    Run,
    RunState,
    Scheduler,
    Send,
    SubPlanBody,
    add,
    driver,
)
from playground.kernel.readiness import READY, Frontier, verdict
from tests.kernel.plans import PlanSpec, World, law, logged, plan_specs

SKIPS = {"dead_edges", "skipped_predecessors", "not_commanded", "ended"}
WAITS = {"open_predecessors", "join_short", "parked", "dead_edges", "not_commanded"}


class CheckedFrontier(Frontier):
    """The engine's own bookkeeping, compared with the definition each time it is asked."""

    asked = 0

    def take(self) -> list[tuple[str, Reason]]:
        CheckedFrontier.asked += 1
        by_definition = self._plan.ready(self._run)
        found = super().take()
        assert [key for key, _ in found] == by_definition
        assert [reason for _, reason in found] == [verdict(self._plan, self._run, key) for key, _ in found]
        return found


@law(150)
@given(spec=plan_specs(), cut=st.integers(1, 200))
async def test_the_engine_starts_whom_the_definition_calls_ready_at_every_barrier(
    spec: PlanSpec, cut: int
) -> None:
    """From the start, after each answer, and from wherever a crash has left it."""
    with patch.object(driver, "Frontier", CheckedFrontier):
        before = CheckedFrontier.asked
        world = World(spec)
        await world.finish(await world.begin())
        assert CheckedFrontier.asked > before
        events = await world.log.stream("r")
        again = World(spec, log=await logged(events[: min(cut, len(events))]))
        await again.finish(await again.scheduler.recover(again.plan, "r"))


@law(60)
@given(spec=plan_specs())
async def test_every_start_and_every_skip_says_why_and_names_nodes_that_exist(spec: PlanSpec) -> None:
    world = World(spec)
    run = await world.finish(await world.begin())
    for event in await world.log.events("r"):
        if event.kind in ("node_started", "node_queued", "node_skipped"):
            reason = Reason.from_json(event.data["why"])
            assert reason.code in (SKIPS if event.kind == "node_skipped" else READY)
            if reason.code != "resumed":
                assert {name.partition("#")[0] for name in reason.nodes} <= world.plan.nodes.keys()
    for key, state in run.node_states.items():
        if state.status.ended:
            assert world.plan.explain(run, key) == Reason.from_json(state.why)


@law(60)
@given(spec=plan_specs())
async def test_a_run_at_rest_can_say_of_each_node_why_it_ran_waits_or_was_skipped(spec: PlanSpec) -> None:
    world = World(spec)
    run = await world.begin()
    while True:
        for key in (*world.plan.nodes, *(key for keys in run.instances.values() for key in keys)):
            reason = world.plan.explain(run, key)
            status = run.status_of(key)
            if status is NodeStatus.PENDING and run.state is RunState.SUSPENDED:
                assert reason.code in WAITS | READY
            assert str(reason)
            assert "{" not in str(reason)
        if run.state is not RunState.SUSPENDED:
            break
        run = await world.scheduler.resume(world.plan, "r", {min(run.interrupts): None})


def plan_of(*keys: str, **bodies: object) -> Plan:
    plan = Plan({"n": add()}).add(*[Node(key, FnBody(lambda x: "done")) for key in keys])
    return plan.add(*[Node(key, FnBody(body)) for key, body in bodies.items()])


async def why(plan: Plan, key: str, **options: object) -> Reason:
    """The reason in the start of a node, or in its skip."""
    scheduler = Scheduler(**options)
    run = await scheduler.run(plan, run_id="r")
    told = [
        Reason.from_json(event.data["why"])
        for event in await scheduler.eventlog.events("r")
        if event.kind in ("node_started", "node_skipped") and event.data["node"] == key
    ]
    assert plan.explain(run, key) == told[-1]
    return told[-1]


async def test_entry_it_is_an_entry_of_the_plan() -> None:
    reason = await why(plan_of("a"), "a")
    assert reason == Reason("entry")
    assert str(reason) == "it is an entry of the plan"


async def test_edges_names_the_live_ones_and_not_the_others() -> None:
    plan = (
        plan_of("a", "b", "c", "end").edge("a", "end").edge("b", "end", when=lambda s: False).edge("c", "end")
    )
    reason = await why(plan, "end")
    assert reason == Reason("edges", ("a", "c"))
    assert str(reason) == "the edge from a and c is live"


async def test_goto_names_all_who_said_it_in_that_wave() -> None:
    plan = plan_of("end", a=lambda x: Goto("end"), b=lambda x: Goto("end"))
    plan.entry = ("a", "b")
    reason = await why(plan, "end")
    assert reason == Reason("goto", ("a", "b"))
    assert str(reason) == "a and b sent it a Goto"


async def test_send_names_who_made_the_instance() -> None:
    plan = plan_of(fan=lambda x: Send("work", 1, "one"))
    plan.add(Node("work", FnBody(lambda x: x), template=True))
    reason = await why(plan, "work#one")
    assert reason == Reason("send", ("fan",))
    assert str(reason) == "fan sent an instance of it"


async def test_who_waits_for_a_slot_starts_for_the_reason_it_was_queued_for() -> None:
    plan = plan_of("first", "second", "third").edge("first", "second").edge("first", "third")
    assert await why(plan, "third", concurrency=1) == Reason("edges", ("first",))


def asks(x: JsonValue, ctx: NodeContext) -> Outcome:
    return Outcome.ok(ctx.resume_value) if ctx.resumed else Outcome.park("input")


async def started(scheduler: Scheduler, key: str) -> list[Reason]:
    events = await scheduler.eventlog.events("r")
    starts = [event for event in events if event.kind == "node_started" and event.data["node"] == key]
    return [Reason.from_json(event.data["why"]) for event in starts]


async def test_resumed_names_the_question_that_was_answered() -> None:
    plan = Plan().add(Node("outer", SubPlanBody(plan_of(inner=asks))))
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    await scheduler.resume(plan, "r", "yes")
    assert await started(scheduler, "outer") == [Reason("entry"), Reason("resumed", ("outer/inner",))]


async def test_retry_and_recovered_are_reasons_to_start_again() -> None:
    async def flaky(x: JsonValue, ctx: NodeContext) -> None:
        if ctx.attempt == 1:
            raise RuntimeError

    plan = Plan().add(Node("a", FnBody(flaky), retry=RetryPolicy(2, 0)))
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    assert [reason.code for reason in await started(scheduler, "a")] == ["entry", "retry"]
    events = await scheduler.eventlog.stream("r")
    again = Scheduler(eventlog=await logged([event for event in events if event.pos <= 2]))
    await again.recover(plan, "r")
    assert [reason.code for reason in await started(again, "a")] == ["entry", "recovered"]


async def test_dead_edges_names_the_conditions_that_do_not_hold() -> None:
    plan = plan_of("a", "b").edge("a", "b", when=lambda s: s["n"] > 0)
    assert await why(plan, "b") == Reason("dead_edges", ("a",))


async def test_skipped_predecessors_names_them() -> None:
    plan = plan_of("a", "b", "c").edge("a", "b", when=lambda s: False).edge("b", "c")
    reason = await why(plan, "c")
    assert reason == Reason("skipped_predecessors", ("b",))
    assert str(reason) == "b was skipped"


async def test_not_commanded_no_edge_leads_to_it_and_no_command_named_it() -> None:
    plan = plan_of("a", "b")
    plan.entry = ("a",)
    assert await why(plan, "b") == Reason("not_commanded")


async def test_ended_names_who_ended_the_run() -> None:
    plan = plan_of("b", a=lambda x: Outcome("out", {}, Goto(END))).edge("a", "b")
    assert await why(plan, "b") == Reason("ended", ("a",))


async def parked(plan: Plan) -> Run:
    run = await Scheduler().run(plan)
    assert run.state is RunState.SUSPENDED
    return run


async def test_open_predecessors_names_who_is_waited_for() -> None:
    plan = plan_of("quick", "end", ask=asks).edge("quick", "end").edge("ask", "end")
    reason = plan.explain(await parked(plan), "end")
    assert reason == Reason("open_predecessors", ("ask",))
    assert str(reason) == "it waits for ask"


async def test_parked_names_the_open_questions() -> None:
    async def both(x: JsonValue, ctx: NodeContext) -> object:
        return await ctx.together(ctx.interrupt("input", "one?"), ctx.interrupt("input", "two?"))

    plan = plan_of(both=both)
    assert plan.explain(await parked(plan), "both") == Reason("parked", ("both", "both@2"))


async def test_join_short_says_how_many_of_how_many_are_done() -> None:
    plan = plan_of("a", "b", ask=asks).edge("a", "end").edge("b", "end", when=lambda s: False)
    plan.add(Node("end", FnBody(lambda x: x), join=lambda done, live: done >= 2))
    reason = plan.explain(await parked(plan), "end")
    assert reason == Reason("join_short", ("a",), 1, 1)
    assert str(reason) == "its join is short: 1 of 1 live edges are done"


async def test_a_run_that_stalls_says_of_each_node_that_never_ran_what_it_waits_for() -> None:
    plan = plan_of("a").edge("a", "end")
    plan.add(Node("end", FnBody(lambda x: x), join=lambda done, live: done >= 2))
    run = await Scheduler().run(plan)
    assert run.state is RunState.FAILED
    assert "'end' never ran (its join is short: 1 of 1 live edges are done)" in run.final_output


async def test_a_running_node_explains_why_it_was_started() -> None:
    said = []
    plan = plan_of("first", second=lambda x, ctx: said.append(ctx.run.plan.explain(ctx.run, "second")))
    await Scheduler().run(plan.edge("first", "second"))
    assert said == [Reason("edges", ("first",))]


async def test_a_node_that_does_not_exist_has_no_reason() -> None:
    plan = plan_of("a")
    run = await Scheduler().run(plan)
    for key in ("nope", "a#1"):
        with pytest.raises(KeyError, match=f"node '{key}' does not exist; known nodes: a"):
            plan.explain(run, key)


async def test_asking_changes_nothing() -> None:
    plan = plan_of("quick", "end", ask=asks).edge("quick", "end").edge("ask", "end")
    run = await parked(plan)
    before = run.snapshot()
    for key in plan.nodes:
        plan.explain(run, key)
    assert plan.ready(run) == []
    assert run.snapshot() == before
