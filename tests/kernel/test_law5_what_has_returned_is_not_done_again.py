"""Law 5: after a crash at any event the run ends as if undisturbed, and nothing that returned runs again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given

from playground.kernel import (
    ChildFailed,
    FnBody,
    InMemoryEventLog,
    JsonValue,
    LlmReply,
    ModelError,
    Node,
    NodeContext,
    Outcome,
    Plan,
    RetryPolicy,
    Run,
    RunState,
    Scheduler,
    SubPlanBody,
    ToolCall,
    ToolResult,
)
from tests.kernel.logs import turns
from tests.kernel.plans import Ledger, PlanSpec, World, law, logged, plan_specs


@law(80)
@given(spec=plan_specs(size=5))
async def test_recovery_at_every_event_gives_the_undisturbed_run(spec: PlanSpec) -> None:
    world = World(spec)
    undisturbed = await world.finish(await world.begin())
    events = await world.log.stream("r")
    for cut in range(1, len(events) + 1):
        ledger = Ledger.of(events[:cut])
        again = World(spec, log=await logged(events[:cut]), ledger=ledger)
        run = await again.finish(await again.scheduler.recover(again.plan, "r"))
        assert run.state == undisturbed.state, cut
        assert run.final_output == undisturbed.final_output, cut
        if run.state is RunState.COMPLETED:
            assert run.shared == undisturbed.shared, cut
        assert all(times == 1 for times in ledger.returned.values()), (cut, ledger.returned)
        assert all(times == 1 for times in ledger.tool_calls.values()), (cut, ledger.tool_calls)


class Tools:
    """Tools that remember their calls; `fails` says how many calls of a name fail first."""

    def __init__(self, **fails: int) -> None:
        self.calls: list[ToolCall] = []
        self.fails = fails

    async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
        self.calls.append(call)
        if self.fails.get(call.name, 0) > 0:
            self.fails[call.name] -= 1
            return ToolResult.failure("down", call.call_id)
        if call.name == "outer":
            inner = await ctx.call_tool("inner", {})
            return ToolResult.success([call.arguments, inner.output], call.call_id)
        return ToolResult.success(len(self.calls), call.call_id)

    def ids(self, name: str) -> list[str]:
        return [call.call_id for call in self.calls if call.name == name]


class Model:
    """A model that says how often it was asked; the first `down` answers are failures."""

    def __init__(self, down: int = 0) -> None:
        self.asked = 0
        self.down = down

    async def chat(self, messages: object, **_: object) -> LlmReply:
        self.asked += 1
        if self.asked <= self.down:
            raise ModelError("it is down: wait a while", status=503, todo="wait a while")
        return LlmReply(f"reply {self.asked}")


def one(body: Callable[[JsonValue, NodeContext], object], **options: object) -> Plan:
    return Plan().add(Node("n", FnBody(body), **options))


async def parks_once(ctx: NodeContext, work: Callable[[], Awaitable[object]]) -> Outcome:
    """Do the work, then wait for an answer: so the work is asked for twice."""
    done = await work()
    return Outcome.ok(done) if ctx.resumed else Outcome.park("input")


async def test_calls_that_are_equal_are_told_apart_by_their_order() -> None:
    tools, model = Tools(), Model()

    async def body(x: object, ctx: NodeContext) -> Outcome:
        async def work() -> list[object]:
            said = [await ctx.llm_complete("same") for _ in range(2)]
            return [*said, *[(await ctx.call_tool("t", {"a": 1})).output for _ in range(2)]]

        return await parks_once(ctx, work)

    scheduler = Scheduler(tools=tools, llm=model)
    run = await scheduler.run(one(body))
    run = await scheduler.resume(one(body), run.run_id, "go on")
    assert run.final_output == ["reply 1", "reply 2", 1, 2]
    assert (model.asked, len(tools.calls)) == (2, 2)
    assert len(set(tools.ids("t"))) == 2


async def test_calls_are_told_apart_by_what_was_asked_whatever_their_order() -> None:
    tools = Tools()

    async def body(x: object, ctx: NodeContext) -> Outcome:
        async def work() -> dict[str, object]:
            order = ("b", "a") if ctx.resumed else ("a", "b")
            return {key: (await ctx.call_tool("t", {"key": key})).output for key in order}

        return await parks_once(ctx, work)

    scheduler = Scheduler(tools=tools)
    run = await scheduler.run(one(body))
    run = await scheduler.resume(one(body), run.run_id, "go on")
    assert run.final_output == {"a": 1, "b": 2}


async def test_what_a_tool_calls_belongs_to_that_call_of_the_tool() -> None:
    tools = Tools()

    async def body(x: object, ctx: NodeContext) -> Outcome:
        async def work() -> list[object]:
            calls = [ctx.call_tool("outer", {"a": a}) for a in (1, 2, 2)]
            return [result.output for result in await ctx.together(*calls)]

        return await parks_once(ctx, work)

    scheduler = Scheduler(tools=tools)
    run = await scheduler.run(one(body))
    run = await scheduler.resume(one(body), run.run_id, "go on")
    assert [given for given, _ in run.final_output] == [{"a": 1}, {"a": 2}, {"a": 2}]
    assert len(set(tools.ids("inner"))) == len(tools.ids("inner")) == 3


async def test_equal_calls_of_one_teammate_are_child_runs_of_their_own() -> None:
    child = Plan().add(Node("c", FnBody(lambda x: turns(3))))

    class Teammates:
        async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
            return ToolResult.success((await ctx.spawn(child, "same"))["run_id"])

    async def body(x: object, ctx: NodeContext) -> list[object]:
        calls = [ctx.call_tool("mate", {"task": "same"}) for _ in range(2)]
        return [result.output for result in await ctx.together(*calls)]

    run = await Scheduler(tools=Teammates()).run(one(body), run_id="r")
    assert run.final_output == ["r~1", "r~2"]


async def test_a_retry_asks_failed_calls_anew_with_the_same_call_id_and_keeps_the_others() -> None:
    tools, model = Tools(bad=1), Model(down=1)

    async def body(x: object, ctx: NodeContext) -> list[object]:
        good = await ctx.call_tool("good", {})
        bad = await ctx.call_tool("bad", {})
        if not bad.ok:
            raise RuntimeError(bad.error)
        return [good.output, bad.output, await ctx.llm_complete("?")]

    run = await Scheduler(tools=tools, llm=model).run(one(body, retry=RetryPolicy(3, 0)))
    assert run.final_output == [1, 3, "reply 2"]
    assert (len(tools.ids("good")), len(tools.ids("bad"))) == (1, 2)
    assert len(set(tools.ids("bad"))) == 1


async def test_a_retry_runs_a_failed_child_anew_and_keeps_the_one_that_completed() -> None:
    ran: list[str] = []

    def leaf(name: str, fails: int) -> Plan:
        def body(x: object) -> str:
            ran.append(name)
            if ran.count(name) <= fails:
                raise RuntimeError("not yet")
            return name

        return Plan().add(Node(name, FnBody(body)))

    good, bad = leaf("good", 0), leaf("bad", 1)

    async def body(x: object, ctx: NodeContext) -> list[object]:
        return [(await ctx.spawn(plan, task))["output"] for plan, task in ((good, "g"), (bad, "b"))]

    scheduler = Scheduler()
    run = await scheduler.run(one(body, retry=RetryPolicy(3, 0)), run_id="r")
    assert run.final_output == ["good", "bad"]
    assert ran == ["good", "bad", "bad"]
    assert run.children == ["r~1", "r~2", "r~3"]


async def test_a_child_that_a_timeout_interrupted_goes_on_in_the_retry() -> None:
    ran: list[str] = []
    patience = [60.0, 0.0]

    async def slow(x: object) -> str:
        await asyncio.sleep(patience.pop(0))
        return "done"

    child = Plan().add(Node("first", FnBody(lambda x: ran.append("first"))), Node("slow", FnBody(slow)))
    plan = Plan().add(
        Node("n", SubPlanBody(child.edge("first", "slow")), timeout=0.05, retry=RetryPolicy(2, 0))
    )
    run = await Scheduler().run(plan)
    assert run.final_output == "done"
    assert ran == ["first"]
    assert len(run.children) == 1


@pytest.mark.parametrize("failing", ["model", "child"])
async def test_a_failure_that_a_body_has_met_is_met_again_when_it_runs_again(failing: str) -> None:
    """Else the answer to "it is down, what now?" would never be asked for."""
    model = Model(down=1)
    child = Plan().add(Node("c", FnBody(lambda x: 1 / 0)))

    async def body(x: object, ctx: NodeContext) -> object:
        try:
            await (ctx.llm_complete("?") if failing == "model" else ctx.spawn(child, ""))
        except (ModelError, ChildFailed) as error:
            return [str(error), await ctx.interrupt("input", f"{error}. What now?")]
        return "it went well"

    scheduler = Scheduler(llm=model)
    run = await scheduler.run(one(body), run_id="r")
    question = run.interrupts["n"].question
    run = await scheduler.resume(one(body), "r", "never mind")
    assert run.final_output == [question.removesuffix(". What now?"), "never mind"]
    assert (model.asked, run.children) == ((1, []) if failing == "model" else (0, ["r~1"]))


async def test_a_failed_model_call_comes_back_with_all_that_was_said_of_it() -> None:
    met: list[ModelError] = []

    async def body(x: object, ctx: NodeContext) -> Outcome:
        async def work() -> None:
            try:
                await ctx.llm_complete("?")
            except ModelError as error:
                met.append(error)

        return await parks_once(ctx, work)

    scheduler = Scheduler(llm=Model(down=1))
    run = await scheduler.run(one(body))
    await scheduler.resume(one(body), run.run_id, "go on")
    told = [(str(error), error.status, error.todo, error.partial) for error in met]
    assert told == [("it is down: wait a while", 503, "wait a while", "")] * 2


async def test_a_call_that_was_in_flight_runs_again_under_the_same_id() -> None:
    """After a crash, and after a crash in the retry too."""
    tools = Tools()

    async def body(x: object, ctx: NodeContext) -> object:
        return (await ctx.call_tool("t", {"a": 1})).output

    scheduler = Scheduler(tools=tools)
    await scheduler.run(one(body), run_id="r")
    events = await scheduler.eventlog.stream("r")
    asked = next(event for event in events if event.kind == "tool_called")
    for _ in range(2):
        again = Scheduler(tools=tools, eventlog=await logged(events[: asked.pos]))
        await again.recover(one(body), "r")
    assert len(tools.calls) == 3
    assert set(tools.ids("t")) == {asked.data["call_id"]}


async def test_a_new_activation_does_its_work_anew() -> None:
    tools = Tools()

    async def body(x: object, ctx: NodeContext) -> Outcome:
        result = await ctx.call_tool("t", {})
        return Outcome.goto("n") if len(tools.calls) < 3 else Outcome.ok(result.output)

    run = await Scheduler(tools=tools).run(one(body))
    assert run.final_output == 3
    assert len(set(tools.ids("t"))) == 3


async def test_attempts_count_starts_and_only_failures_use_up_a_policy() -> None:
    """A node that parks twice and fails once has started four times and is within a policy of two."""
    fails = [True, False]

    async def body(x: object, ctx: NodeContext) -> list[JsonValue]:
        said = [await ctx.interrupt("input", "first?"), await ctx.interrupt("input", "second?")]
        if fails.pop(0):
            raise RuntimeError("once")
        return said

    plan = one(body, retry=RetryPolicy(2, 0))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    for answer in ("one", "two"):
        run = await scheduler.resume(plan, run.run_id, answer)
    assert run.final_output == ["one", "two"]
    assert run.state_of("n").attempts == 4


async def test_a_body_gets_the_same_input_each_time_it_runs_and_may_spoil_it() -> None:
    def spoil(x: dict[str, list[int]], ctx: NodeContext) -> Outcome:
        x["xs"].append(1)
        return Outcome.ok(x) if ctx.resumed else Outcome.park("input")

    plan = (
        Plan()
        .add(Node("a", FnBody(lambda x: Outcome.ok({"xs": [0]}))), Node("b", FnBody(spoil)))
        .edge("a", "b")
    )
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    run = await scheduler.resume(plan, run.run_id, "go on")
    assert run.final_output == {"xs": [0, 1]}
    assert run.state_of("a").output == {"xs": [0]}


async def recovered(plan: Plan, log: InMemoryEventLog, **ports: object) -> Run:
    return await Scheduler(eventlog=log, **ports).recover(plan, "r")


async def test_a_recovery_of_what_is_parked_or_over_runs_nothing_and_writes_nothing() -> None:
    parking = one(lambda x: Outcome.park("input"))
    for plan, state in ((parking, RunState.SUSPENDED), (one(lambda x: 1), RunState.COMPLETED)):
        log = InMemoryEventLog()
        await Scheduler(eventlog=log).run(plan, run_id="r")
        before = await log.stream("r")
        assert (await recovered(plan, log)).state is state
        assert await log.stream("r") == before
