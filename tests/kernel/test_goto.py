"""Goto: loops, jumps and hand-overs, beside the edges and never instead of them."""

from __future__ import annotations

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
    RunState,
    Scheduler,
)
from tests.kernel.steps import does, echo, plan_of, ran, step, waves


async def test_now_releases_a_node_past_its_edges() -> None:
    plan = plan_of(does("a", lambda x: Goto("end")), step("b"), step("c"), echo("end"), b="c", c="end")
    _, events = await ran(plan)
    assert waves(events)[:2] == [["a", "b"], ["c", "end"]]


async def test_a_goto_adds_to_the_edges_of_its_node() -> None:
    plan = plan_of(does("a", lambda x: Goto("far")), step("near"), step("far"), a="near", near="far")
    _, events = await ran(plan)
    assert waves(events)[:2] == [["a"], ["near", "far"]]


async def test_rejoin_re_arms_and_waits_for_the_edges_and_the_join() -> None:
    def again(x: JsonValue, ctx: NodeContext) -> Outcome:
        if ctx.attempt > 1:
            return Outcome.ok("done")
        return Outcome("again", {}, [Goto("left"), Goto("right"), Goto.rejoin("join")])

    plan = plan_of(step("left"), step("right"), step("join"), does("again", again), left="join", right="join")
    plan.edge("join", "again")
    run, events = await ran(plan)
    assert waves(events) == [["left", "right"], ["join"], ["again"], ["left", "right"], ["join"]]
    assert run.state is RunState.COMPLETED


async def test_a_payload_is_the_next_input_once() -> None:
    seen = []

    def loop(x: JsonValue, ctx: NodeContext) -> Outcome:
        seen.append(x)
        commands = [Goto("loop", payload={"n": 1}), Goto("loop"), None]
        return Outcome("out", {}, commands[ctx.attempt - 1])

    await ran(plan_of(does("loop", loop)))
    assert seen == ["the task", {"n": 1}, "the task"]


async def test_a_payload_of_a_rejoin_is_kept_until_the_join_is_there() -> None:
    def first(x: JsonValue) -> Outcome:
        return Outcome("first", {}, Goto.rejoin("end", payload="kept"))

    plan = plan_of(
        does("first", first), step("slow"), step("slower"), echo("end"), first="end", slow="slower"
    )
    plan.edge("slower", "end")
    run, _ = await ran(plan)
    assert run.final_output == "kept"


async def test_of_two_payloads_in_one_wave_the_later_in_plan_order_counts() -> None:
    sends = [does(key, lambda x, key=key: Goto("end", payload=key)) for key in "ab"]
    run, events = await ran(plan_of(*sends, echo("end", terminal=True), entry="a b"))
    assert run.final_output == "b"
    assert waves(events) == [["a", "b"], ["end"]]


async def test_without_a_payload_the_input_comes_over_the_live_edges() -> None:
    jumps = does("a", lambda x: Outcome("from a", {}, Goto("end")))
    run, _ = await ran(plan_of(jumps, step("b"), echo("end"), a="end", b="end"))
    assert run.final_output == {"a": "from a", "b": "b"}


async def test_a_node_that_was_skipped_can_be_sent_for() -> None:
    def late(x: JsonValue) -> Outcome:
        return Outcome.goto("skipped", "hello")

    plan = plan_of(step("a"), echo("skipped"), does("late", late), step("behind"), skipped="behind")
    plan.edge("a", "skipped", when=lambda s: False).edge("behind", "late")
    run, _ = await ran(plan)
    assert run.status_of("skipped") is NodeStatus.SKIPPED
    plan = plan_of(step("a"), echo("skipped"), step("wait"), does("late", late), wait="late", a="wait")
    plan.edge("a", "skipped", when=lambda s: False)
    run, _ = await ran(plan)
    assert run.state_of("skipped").output == "hello"


async def test_a_loop_makes_its_successors_wait_for_its_new_end() -> None:
    def loop(x: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome(ctx.attempt, {"n": 1}, Goto("loop") if ctx.attempt < 3 else None)

    plan = plan_of(does("loop", loop), echo("end")).edge("loop", "end", when=lambda s: s["n"] >= 3)
    run, events = await ran(plan)
    assert waves(events) == [["loop"], ["loop"], ["loop"], ["end"]]
    assert run.final_output == 3


async def test_a_goto_to_a_parked_node_runs_it_again_and_its_question_stays_the_same() -> None:
    ran_times = []

    def ask(x: JsonValue, ctx: NodeContext) -> Outcome:
        ran_times.append(x)
        return Outcome.ok(ctx.resume_value) if ctx.resumed else Outcome.park("input")

    plan = Plan().add(
        Node("ask", FnBody(ask)),
        Node("poke", FnBody(lambda x: Goto("ask"))),
        Node("other", FnBody(lambda x, ctx: Outcome.ok(1) if ctx.resumed else Outcome.park("input"))),
    )
    plan.edge("other", "poke").entry = ("ask", "other")
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r")
    run = await scheduler.resume(plan, "r", {"other": 1})
    assert list(run.interrupts) == ["ask"]
    assert len(ran_times) == 2
    run = await scheduler.resume(plan, "r", "yes")
    assert run.state_of("ask").output == "yes"


async def test_a_goto_to_a_node_that_nothing_named_makes_it_run() -> None:
    plan = plan_of(does("a", lambda x: Goto("island", payload="boat")), echo("island"), entry="a")
    run, _ = await ran(plan)
    assert run.final_output == {"a": None, "island": "boat"}


async def test_end_skips_what_has_not_run_and_lets_the_wave_finish() -> None:
    """Case D52."""
    plan = plan_of(does("a", lambda x: Outcome("a", {}, Goto(END))), step("b"), step("c"), b="c")
    run, events = await ran(plan)
    assert run.state is RunState.COMPLETED
    assert run.shared["trace"] == ["b"]
    assert [event.data["node"] for event in events if event.kind == "node_skipped"] == ["c"]


async def test_a_bad_target_is_named_with_its_source_and_changes_nothing() -> None:
    """Case D52."""
    plan = plan_of(
        does("a", lambda x: Outcome("a", {"n": 1}, [Goto("b"), Goto("revew")])), step("b"), entry="a"
    )
    run, events = await ran(plan)
    assert run.final_output == (
        "node 'a' failed: ValueError: node 'a': Goto target 'revew' does not exist; known nodes: a, b"
    )
    assert run.shared["n"] == 0
    assert "control" not in [event.kind for event in events]


async def test_what_is_no_command_is_refused_by_name() -> None:
    run, _ = await ran(plan_of(does("a", lambda x: Outcome(None, {}, "b")), step("b")))
    assert "node 'a' returned the command 'b': use Goto or Send" in run.final_output
