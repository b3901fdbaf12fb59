"""Law 6: every failure ends the run in FAILED with an event that names the culprit; `drive` returns."""

from __future__ import annotations

import asyncio

import pytest

from playground.kernel import (
    END,
    Event,
    FnBody,
    Goto,
    Node,
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
)


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
