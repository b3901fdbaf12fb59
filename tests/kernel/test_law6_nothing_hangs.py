"""Law 6: every failure ends the run in FAILED with an event that names the culprit; `drive` returns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from playground.kernel import (
    END,
    Bus,
    Channel,
    Event,
    FnBody,
    Goto,
    Interrupt,
    LLMBody,
    LlmReply,
    Node,
    NodeContext,
    NotSuspended,
    Outcome,
    Plan,
    RetryPolicy,
    Run,
    RunState,
    Scheduler,
    Send,
    SubPlanBody,
    add,
    append,
    last,
    merge,
    replay,
)
from tests.kernel.logs import GatedLog, turns


def plan_of(**bodies: object) -> Plan:
    return Plan(channels={"n": add(0), "xs": append(), "m": merge(), "k": last(dtype=str)}).add(
        *[Node(key, FnBody(body)) for key, body in bodies.items()]
    )


async def failed(plan: Plan, **options: object) -> tuple[Run, list[Event]]:
    scheduler = Scheduler(**options)
    run = await scheduler.run(plan)
    events = await scheduler.eventlog.events(run.run_id)
    assert run.state is RunState.FAILED
    assert events[-1].kind == "run_failed"
    return run, events


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


def raise_group(x: object) -> None:
    raise ExceptionGroup("both", [ValueError("one"), TypeError("two")])


BAD = {
    "raises": (lambda x: 1 / 0, "ZeroDivisionError"),
    "undeclared channel": (lambda x: {"nope": 1}, "undeclared channel 'nope'"),
    "wrong dtype": (lambda x: {"k": 1}, "channel 'k', which takes str"),
    "text into add": (lambda x: {"n": "one"}, "an add channel takes numbers"),
    "list into merge": (lambda x: {"m": [1]}, "a merge channel takes a dict"),
    "bad Goto": (lambda x: Goto("revew"), "Goto target 'revew' does not exist; known nodes: bad"),
    "bad Send": (lambda x: Send("nope", 1), "Send target 'nope' is not a template"),
    "NaN": (lambda x: float("nan"), "holds nan, which is not JSON"),
    "a set": (lambda x: {"xs": [{1}]}, "return a sorted list"),
    "a tuple": (lambda x: (1, 2), "return a list"),
    "a number as key": (lambda x: Outcome.ok({1: 2}), "JSON keys are text"),
    "a lone surrogate": (lambda x: "\ud800", "lone surrogate"),
    "deep": (lambda x: nested(500), "[0][0][0][0][0][0]…[0][0][0] holds nested deeper than 100 levels"),
    "several errors": (raise_group, "ExceptionGroup: ValueError: one; TypeError: two"),
    "too large": (lambda x: "x" * (1 << 21), "larger than 1,048,576 bytes"),
}


@pytest.mark.parametrize("name", BAD)
async def test_what_a_node_must_not_return_fails_the_run_by_name(name: str) -> None:
    body, message = BAD[name]
    run, events = await failed(plan_of(bad=body))
    assert message in run.final_output
    assert events[-1].data["node"] == "bad"
    assert [e.kind for e in events] == ["run_started", "node_started", "node_failed", "run_failed"]


async def test_two_writers_of_a_last_channel_in_one_wave_are_both_named() -> None:
    """Case D28."""
    plan = plan_of(a=lambda x: {"k": "x"}, b=lambda x: {"k": "y"})
    for _ in range(20):
        run, _events = await failed(plan)
        assert "'k' was written by 'a' and 'b'" in run.final_output
        assert run.shared["k"] is None


async def test_a_failure_cancels_the_running_siblings_and_lets_their_finally_run() -> None:
    """Case D26."""
    cleaned = []

    async def hang(x: object) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append("hang")

    async def bad(x: object) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("broken")

    before = asyncio.all_tasks()
    run, events = await failed(plan_of(hang=hang, bad=bad))
    assert run.final_output == "node 'bad' failed: RuntimeError: broken"
    assert cleaned == ["hang"]
    assert asyncio.all_tasks() == before
    assert [e.data["node"] for e in events if e.kind == "node_cancelled"] == ["hang"]


async def test_deltas_of_siblings_that_had_returned_are_logged_but_not_folded() -> None:
    async def bad(x: object) -> None:
        await asyncio.sleep(0.01)
        raise RuntimeError

    run, events = await failed(plan_of(good=lambda x: {"xs": [1]}, bad=bad))
    assert next(e for e in events if e.kind == "node_completed").data["delta"] == {"xs": [1]}
    assert run.shared["xs"] == []


async def test_exactly_as_many_waves_run_as_allowed() -> None:
    """Case D27."""

    def loop(x: object, ctx: object) -> Outcome:
        return Outcome.goto("loop", n=1) if ctx.shared["n"] < 4 else Outcome.ok("done")

    assert (await Scheduler(max_waves=5).run(plan_of(loop=loop))).final_output == "done"
    run, _events = await failed(plan_of(loop=loop), max_waves=4)
    assert "exceeded max waves 4" in run.final_output
    assert run.shared["n"] == 4
    scheduler = Scheduler(max_waves=4)
    short = await scheduler.run(plan_of(loop=loop))
    scheduler.max_waves = 5
    at = (await scheduler.eventlog.events(short.run_id))[-1].pos - 1
    assert (await scheduler.fork(plan_of(loop=loop), short.run_id, at=at)).final_output == "done"


async def test_goto_end_ends_the_run_cleanly() -> None:
    """Case D52."""
    plan = plan_of(a=lambda x: Outcome("out", {}, Goto(END)), b=lambda x: "never").edge("a", "b")
    run = await Scheduler().run(plan)
    assert (run.state, run.final_output) == (RunState.COMPLETED, "out")
    assert plan.explain(run, "b").code == "ended"


class Own(BaseException):
    """What only its maker knows."""


@pytest.mark.parametrize("error", [SystemExit(3), Own("x"), asyncio.CancelledError()])
@pytest.mark.parametrize("beside", [{}, {"b": lambda x: "b"}])
async def test_whatever_a_body_raises_fails_its_node_and_leaves_nothing_else(
    error: BaseException, beside: dict[str, Callable[[object], object]]
) -> None:
    async def body(x: object) -> None:
        raise error

    run, _ = await failed(plan_of(a=body, **beside))
    assert run.final_output.startswith(f"node 'a' failed: {type(error).__name__}")
    assert run.open_nodes == []


async def test_a_condition_that_raises_fails_the_run_and_names_its_edge() -> None:
    plan = plan_of(a=lambda x: 1, b=lambda x: 2).edge("a", "b", when=lambda s: s["missing"])
    run, _ = await failed(plan)
    assert "the condition of edge 'a' -> 'b' raised KeyError" in run.final_output


async def test_a_timeout_is_one_failure_and_names_the_node() -> None:
    plan = Plan().add(Node("slow", FnBody(lambda x: asyncio.sleep(9)), timeout=0.01))
    run, _ = await failed(plan)
    assert run.final_output == "node 'slow' failed: TimeoutError: node 'slow' took longer than 0.01 s"


async def test_retries_wait_longer_each_time_and_only_failures_count() -> None:
    async def flaky(x: object, ctx: object) -> str:
        if ctx.attempt < 3:
            raise ConnectionError("down")
        return "up"

    plan = Plan().add(Node("flaky", FnBody(flaky), retry=RetryPolicy(3, 0.001, 2.0)))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    events = await scheduler.eventlog.events(run.run_id)
    assert run.final_output == "up"
    assert [e.data["backoff"] for e in events if e.kind == "node_retry"] == [0.001, 0.002]
    assert run.state_of("flaky").attempts == 3


async def test_a_predicate_chooses_which_errors_to_try_again() -> None:
    calls = []

    def bad(x: object) -> None:
        calls.append(1)
        raise ValueError("400")

    policy = RetryPolicy(5, 0, retry_on=lambda error: "503" in str(error))
    await failed(Plan().add(Node("bad", FnBody(bad), retry=policy)))
    assert len(calls) == 1


async def test_a_retry_policy_that_raises_fails_the_node_and_is_named() -> None:
    policy = RetryPolicy(3, 0, retry_on=lambda error: error.nope)
    run, _ = await failed(Plan().add(Node("bad", FnBody(lambda x: 1 / 0), retry=policy)))
    assert "node 'bad' failed: ZeroDivisionError" in run.final_output
    assert "its retry policy raised AttributeError" in run.final_output


async def test_a_retry_policy_that_would_wait_for_ever_fails_its_node() -> None:
    forever = Node("bad", FnBody(lambda x: 1 / 0), retry=RetryPolicy(base_delay=float("inf")))
    run, _events = await failed(Plan().add(forever))
    assert "its retry policy raised NotJson: its delay holds inf" in run.final_output


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("width", [1, 8])
async def test_nested_runs_never_wait_for_their_parents_slot(depth: int, width: int) -> None:
    async def leaf(x: object) -> int:
        await asyncio.sleep(0)
        return 1

    plan = plan_of(leaf=leaf)
    for _ in range(depth):
        plan = Plan().add(*[Node(f"s{i}", SubPlanBody(plan)) for i in range(width if depth == 1 else 1)])
    run = await asyncio.wait_for(Scheduler(concurrency=1).run(plan), 5)
    assert run.state is RunState.COMPLETED


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_child_run_that_begins_while_its_parent_waits_for_its_slot_again_gets_one(
    concurrency: int,
) -> None:
    ended, began, bus = asyncio.Event(), asyncio.Event(), Bus()
    bus.on("run_completed", lambda evt: turns())  # so that others take the slot that the first child had

    async def parent(x: object, ctx: NodeContext) -> None:
        async def later() -> None:
            await ended.wait()
            await turns()
            began.set()
            await ctx.spawn(plan_of(leaf=lambda x: 2), "second")

        await ctx.together(ctx.spawn(plan_of(leaf=lambda x: ended.set()), "first"), later())

    async def other(x: object) -> None:
        await began.wait()
        await turns()

    scheduler = Scheduler(concurrency=concurrency, bus=bus)
    plan = plan_of(parent=parent, **{f"other{n}": other for n in range(3)})
    run = await asyncio.wait_for(scheduler.run(plan), 5)
    assert run.state is RunState.COMPLETED
    assert [scheduler.slots.try_take() for _ in range(concurrency + 1)] == [True] * concurrency + [False]


async def test_cancelling_a_run_ends_it_failed_with_an_event() -> None:
    started = asyncio.Event()

    async def hang(x: object) -> None:
        started.set()
        await asyncio.sleep(60)

    scheduler = Scheduler()
    plan = Plan().add(Node("child", SubPlanBody(plan_of(hang=hang, other=hang))))
    task = asyncio.create_task(scheduler.run(plan, run_id="r"))
    await started.wait()
    await scheduler.cancel("r")
    run = await asyncio.wait_for(task, 5)
    assert (run.state, run.final_output) == (RunState.FAILED, "cancelled")
    events = await scheduler.eventlog.stream("r")
    assert [e.run_id for e in events if e.kind == "run_failed"] == ["r~1", "r"]


async def test_cancelling_the_task_that_drives_is_a_crash_that_recovers() -> None:
    started = asyncio.Event()
    patience = [60.0, 0.0]

    async def work(x: object) -> str:
        started.set()
        await asyncio.sleep(patience.pop(0))
        return "done"

    scheduler = Scheduler()
    plan = plan_of(work=work)
    task = asyncio.create_task(scheduler.run(plan, run_id="r"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = await scheduler.recover(plan, "r")
    assert run.final_output == "done"
    assert run.state_of("work").attempts == 2


async def test_a_run_that_never_waits_still_lets_other_tasks_run() -> None:
    beats = []

    async def heart() -> None:
        while True:
            beats.append(1)
            await asyncio.sleep(0)

    def spin(x: object, ctx: object) -> Outcome:
        return Outcome.goto("spin", n=1) if ctx.shared["n"] < 3000 else Outcome.ok()

    task = asyncio.create_task(heart())
    await Scheduler(max_waves=10_000).run(plan_of(spin=spin))
    task.cancel()
    assert len(beats) > 3


async def test_a_failing_store_propagates_like_a_crash() -> None:
    class Full:
        durable = True

        def __init__(self, log: object, room: int) -> None:
            self.log, self.room = log, room

        def __getattr__(self, name: str) -> object:
            return getattr(self.log, name)

        async def append_many(self, events: list[Event]) -> None:
            self.room -= 1
            if self.room < 0:
                raise OSError("no space left")
            await self.log.append_many(events)

    whole = Scheduler()
    plan = plan_of(a=lambda x: {"n": 1}, b=lambda x: {"n": 1}).edge("a", "b")
    with pytest.raises(OSError, match="no space"):
        await Scheduler(eventlog=Full(whole.eventlog, 2)).run(plan, run_id="r")
    run = await whole.recover(plan, "r")
    assert (run.state, run.shared["n"]) == (RunState.COMPLETED, 2)


async def test_a_failure_while_a_sibling_is_being_written_down_still_ends_the_run() -> None:
    log = GatedLog()
    fail = asyncio.Event()

    async def bad(x: object) -> None:
        await fail.wait()
        raise RuntimeError("broken")

    async def busy(x: object, ctx: NodeContext) -> None:
        log.shut()
        await ctx.note("busy")

    scheduler = Scheduler(eventlog=log)
    task = asyncio.create_task(scheduler.run(plan_of(bad=bad, busy=busy), run_id="r"))
    await log.writing.wait()
    fail.set()
    await turns()
    log.open()
    run = await task
    assert run.final_output == "node 'bad' failed: RuntimeError: broken"
    assert [e.kind for e in await log.events("r")][-4:] == [
        "note",
        "node_failed",
        "node_cancelled",
        "run_failed",
    ]


async def test_a_timeout_while_a_fact_is_being_written_is_one_failure_and_the_fact_is_kept() -> None:
    log = GatedLog()

    async def busy(x: object, ctx: NodeContext) -> None:
        log.shut()
        asyncio.get_running_loop().call_later(0.02, log.open)
        await ctx.note("busy")

    plan = Plan().add(Node("busy", FnBody(busy), timeout=0.005))
    run = await Scheduler(eventlog=log).run(plan, run_id="r")
    assert run.final_output == "node 'busy' failed: TimeoutError: node 'busy' took longer than 0.005 s"
    assert "note" in [e.kind for e in await log.events("r")]


async def test_cancelling_while_a_fact_is_being_written_ends_the_run_and_its_siblings() -> None:
    log = GatedLog()

    async def busy(x: object, ctx: NodeContext) -> None:
        log.shut()
        await ctx.note("busy")

    async def hang(x: object) -> None:
        await asyncio.sleep(60)

    scheduler = Scheduler(eventlog=log)
    task = asyncio.create_task(scheduler.run(plan_of(busy=busy, hang=hang), run_id="r"))
    await log.writing.wait()
    await scheduler.cancel("r")
    await turns()
    log.open()
    run = await asyncio.wait_for(task, 5)
    assert (run.state, run.final_output) == (RunState.FAILED, "cancelled")
    assert [e.data["node"] for e in await log.events("r") if e.kind == "node_cancelled"] == ["busy", "hang"]


async def test_a_second_request_to_cancel_changes_nothing() -> None:
    started = asyncio.Event()

    async def hang(x: object) -> None:
        started.set()
        await asyncio.sleep(60)

    async def drive() -> tuple[Run, int]:
        run = await scheduler.run(plan_of(hang=hang), run_id="r")
        return run, asyncio.current_task().cancelling()

    scheduler = Scheduler()
    task = asyncio.create_task(drive())
    await started.wait()
    await scheduler.cancel("r")
    await scheduler.cancel("r")
    run, cancelling = await task
    assert (run.state, cancelling) == (RunState.FAILED, 0)
    with pytest.raises(NotSuspended, match="there is nothing to cancel"):
        await scheduler.cancel("r")


async def answers_its_cancellation(how: str) -> str:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        if how == "raises":
            raise RuntimeError("cleanup failed") from None
    return "went on"


@pytest.mark.parametrize("how", ["raises", "returns"])
async def test_a_body_cannot_refuse_a_request_to_cancel(how: str) -> None:
    scheduler = Scheduler()
    plan = plan_of(a=lambda x: answers_its_cancellation(how))
    task = asyncio.create_task(scheduler.run(plan, run_id="r"))
    await turns()
    await scheduler.cancel("r")
    run = await asyncio.wait_for(task, 5)
    assert (run.state, run.final_output) == (RunState.FAILED, "cancelled")


async def test_a_shutdown_is_a_crash_even_if_a_cleanup_fails_in_it() -> None:
    scheduler = Scheduler()
    task = asyncio.create_task(
        scheduler.run(plan_of(a=lambda x: answers_its_cancellation("raises")), run_id="r")
    )
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await scheduler.recover(plan_of(a=lambda x: "done"), "r")).final_output == "done"


async def test_a_shutdown_while_a_fact_is_being_written_leaves_a_log_to_go_on_from() -> None:
    log = GatedLog()

    async def busy(x: object, ctx: NodeContext) -> str:
        if ctx.attempt == 1:
            log.shut()
        await ctx.note("busy")
        return "done"

    scheduler = Scheduler(eventlog=log)
    plan = plan_of(busy=busy)
    task = asyncio.create_task(scheduler.run(plan, run_id="r"))
    await log.writing.wait()
    task.cancel()
    await turns()
    log.open()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await scheduler.recover(plan, "r")).final_output == "done"


async def test_a_cancelled_sibling_is_not_tried_again() -> None:
    """Case D26: its cleanup may fail, and its policy may say to try again."""
    started = []

    async def bad(x: object) -> None:
        await turns()
        raise RuntimeError("broken")

    async def sibling(x: object) -> str:
        started.append(1)
        return await answers_its_cancellation("raises")

    plan = Plan().add(
        Node("bad", FnBody(bad)),
        Node("sibling", FnBody(sibling), retry=RetryPolicy(3, 0)),
        Node("n", FnBody(len)),
    )
    run = await asyncio.wait_for(Scheduler().run(plan), 5)
    assert run.final_output == "node 'bad' failed: RuntimeError: broken"
    assert started == [1]


def parking() -> Plan:
    return Plan().add(Node("ask", FnBody(lambda x: Outcome.park("input"))))


async def ends_of(scheduler: Scheduler) -> list[tuple[str, str]]:
    ends = ("run_completed", "run_failed")
    return [(e.run_id, e.kind) for e in await scheduler.eventlog.stream("r") if e.kind in ends]


async def test_cancelling_a_parked_run_ends_its_child_runs_before_it() -> None:
    plan = Plan().add(Node("outer", SubPlanBody(Plan().add(Node("inner", SubPlanBody(parking()))))))
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    await scheduler.cancel("r")
    assert await ends_of(scheduler) == [(run_id, "run_failed") for run_id in ("r~1~1", "r~1", "r")]
    withdrawn = [e.run_id for e in await scheduler.eventlog.stream("r") if e.kind == "interrupt_cancelled"]
    assert withdrawn == ["r~1~1", "r~1", "r"]


@pytest.mark.parametrize("bad", ["raises", "times out"])
async def test_a_run_that_fails_leaves_no_child_run_behind(bad: str) -> None:
    async def fail(x: object) -> None:
        await asyncio.sleep(0 if bad == "raises" else 60)
        raise RuntimeError("broken")

    plan = Plan().add(
        Node("parked", SubPlanBody(parking())),
        Node("running", SubPlanBody(plan_of(hang=lambda x: asyncio.sleep(60)))),
        Node("failing", SubPlanBody(plan_of(fail=fail)), timeout=0.05),
    )
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r")
    assert run.state is RunState.FAILED
    assert sorted(await ends_of(scheduler)) == [(i, "run_failed") for i in ("r", "r~1", "r~2", "r~3")]
    assert (await ends_of(scheduler))[-1] == ("r", "run_failed")


async def test_an_early_end_leaves_no_child_run_behind() -> None:
    plan = Plan().add(
        Node("parked", SubPlanBody(parking())), Node("end", FnBody(lambda x: Outcome("out", {}, Goto(END))))
    )
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r")
    assert (run.state, run.final_output) == (RunState.COMPLETED, "out")
    assert await ends_of(scheduler) == [("r~1", "run_failed"), ("r", "run_completed")]


@pytest.mark.parametrize("value", [0, "", False, [], None])
async def test_an_early_end_keeps_what_a_terminal_node_returned(value: object) -> None:
    plan = Plan().add(
        Node("t", FnBody(lambda x: Outcome(value)), terminal=True),
        Node("end", FnBody(lambda x: Outcome("out", {}, Goto(END)))),
    )
    assert (await Scheduler().run(plan)).final_output == value


async def test_a_reducer_that_raises_fails_the_run_and_names_channel_and_writer() -> None:
    def picky(old: object, new: object) -> object:
        raise KeyError("no such thing")

    plan = Plan({"odd": Channel(0, picky), "n": add(0)}).add(Node("a", FnBody(lambda x: {"odd": 1, "n": 1})))
    run = await Scheduler().run(plan)
    assert "channel 'odd' cannot fold what 'a' wrote (KeyError: 'no such thing')" in run.final_output
    assert run.shared == {"odd": 0, "n": 0}


async def test_a_sum_that_is_no_number_any_more_fails_the_run_and_changes_nothing() -> None:
    plan = Plan({"xs": append(), "n": add(1e308), "m": merge()})
    plan.add(Node("a", FnBody(lambda x: {"xs": [1], "n": 1e308, "m": {"k": 1}})))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    assert (
        "channel 'n' cannot fold what 'a' wrote (NotJson: result of the reducer add holds inf"
        in run.final_output
    )
    assert run.shared == {"xs": [], "n": 1e308, "m": {}}
    assert replay(plan, await scheduler.eventlog.events(run.run_id)).shared == run.shared


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Interrupt(5), "asks with a kind of type int: use text"),
        (Interrupt("input", question=None), "asks with a question of type NoneType: use text"),
        (Interrupt("input", {1, 2}), "holds {1, 2} of type set"),
        (Interrupt("input", expires_in=float("nan")), "holds nan"),
        (Interrupt("input", expires_in=1e18), "asks with an expiry in 1e+18 s: use up to a hundred years"),
        (Interrupt("input", default=b"x"), "holds b'x' of type bytes"),
    ],
)
async def test_a_question_that_no_log_can_keep_fails_the_run_by_name(asked: Interrupt, message: str) -> None:
    run, events = await failed(plan_of(bad=lambda x: Outcome(suspend=asked)))
    assert message in run.final_output
    assert "node 'bad'" in run.final_output
    assert "interrupted" not in [e.kind for e in events]


async def test_a_model_without_a_count_of_tokens_is_one_that_used_none() -> None:
    class Model:
        async def chat(self, messages: object, **_: object) -> LlmReply:
            return LlmReply("hi", (), None)

    run = await Scheduler(llm=Model()).run(Plan().add(Node("a", LLMBody("?"))))
    assert (run.final_output, run.metrics["tokens"]) == ("hi", 0)


async def test_what_a_run_refuses_takes_no_number_in_the_log() -> None:
    """Case D41: a log never has a gap where a bad fact would have been."""
    _, events = await failed(plan_of(bad=lambda x: Outcome(suspend=Interrupt(5))))
    assert [e.seq for e in events] == [e.pos for e in events] == list(range(1, len(events) + 1))
