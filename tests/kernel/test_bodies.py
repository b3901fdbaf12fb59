"""Bodies: what a function may take and return, and what a body asks of the world through its context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from playground.kernel import (
    ChildFailed,
    ChildSpec,
    Command,
    FnBody,
    Goto,
    Interrupt,
    JsonValue,
    LLMBody,
    LlmReply,
    ModelError,
    Node,
    NodeBody,
    NodeContext,
    Outcome,
    Plan,
    RetryPolicy,
    RunState,
    Scheduler,
    Send,
    SubPlanBody,
    ToolBody,
    ToolCall,
    ToolResult,
    append,
    coerce_outcome,
    last,
)
from tests.kernel.steps import asks, does, plan_of, ran


@pytest.mark.parametrize(
    ("returned", "meant"),
    [
        (None, Outcome()),
        ("text", Outcome("text")),
        (0, Outcome(0)),
        ([], Outcome([])),
        ([1, 2], Outcome([1, 2])),
        ({}, Outcome(None, {})),
        ({"k": 1}, Outcome(None, {"k": 1})),
        (Goto("a"), Outcome(control=Goto("a"))),
        ([Goto("a"), Send("t")], Outcome(None, {}, [Goto("a"), Send("t")])),
        ([Outcome.ok("v", k=1), Send("t")], Outcome("v", {"k": 1}, [Send("t")])),
        ([Goto("a"), 1], Outcome([Goto("a"), 1])),
        (Outcome.ok({"k": 1}), Outcome({"k": 1})),
    ],
)
def test_what_a_body_returns_is_read_in_one_way(returned: object, meant: Outcome) -> None:
    assert coerce_outcome(returned) == meant


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([Outcome.park("input"), Goto("a")], "a list of outcomes cannot hold a question"),
        ([Outcome.ok(k=1), Outcome.ok(k=2)], "two outcomes of one list write channel 'k': write it once"),
        ([Outcome.ok(1), Outcome.ok(2)], "two outcomes of one list have a value: a node has one output"),
    ],
)
def test_a_list_that_says_two_things_of_the_same_is_refused(returned: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coerce_outcome(returned)


def test_the_short_forms_of_an_outcome() -> None:
    assert Outcome.ok("v", k=1) == Outcome("v", {"k": 1})
    assert Outcome.goto("a", "p", k=1) == Outcome(None, {"k": 1}, Goto("a", True, "p"))
    assert Outcome.send("t", 1, "k") == Outcome(control=Send("t", 1, "k"))
    assert Outcome.fan_out(Send("t", 1), Send("t", 2), k=1) == Outcome(
        None, {"k": 1}, [Send("t", 1), Send("t", 2)]
    )
    assert Outcome.park("input", {"a": 1}, "sure?").suspend == Interrupt("input", {"a": 1}, "sure?")
    assert isinstance(Goto("a"), Command)
    assert (Goto.now("a").immediate, Goto.rejoin("a").immediate) == (True, False)


class Callable_:
    def __call__(self, x: JsonValue, ctx: NodeContext) -> str:
        return f"{x} {ctx.node_id}"


def default_of_ones_own(x: JsonValue, times: int = 2) -> str:
    return str(x) * times


def context_that_may_be_missing(x: JsonValue, ctx: NodeContext | None = None) -> str:
    return f"{x} {ctx.node_id if ctx else None}"


async def both_async(x: JsonValue, anything: NodeContext) -> str:
    await asyncio.sleep(0)
    return f"{x} {anything.node_id}"


def any_number(*args: Any) -> str:
    return f"{args[0]} {args[1].node_id}"


def by_name(x: JsonValue, *, loud: bool = False) -> str:
    return f"{x}{'!' if loud else ''}"


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (lambda x: f"{x} alone", "go alone"),
        (lambda x, ctx: f"{x} {ctx.node_id}", "go n"),
        (Callable_(), "go n"),
        (partial(lambda prefix, x: f"{prefix}{x}", ">"), ">go"),
        (default_of_ones_own, "gogo"),
        (context_that_may_be_missing, "go n"),
        (both_async, "go n"),
        (any_number, "go n"),
        (by_name, "go"),
        (str.title, "Go"),
    ],
)
async def test_a_function_takes_the_input_and_the_context_if_it_has_room_for_it(
    function: Callable[..., object], output: str
) -> None:
    run = await Scheduler().run(Plan().add(Node("n", FnBody(function))), task="go")
    assert run.final_output == output


async def test_anything_with_a_run_method_is_a_body() -> None:
    class Twice:
        async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
            return Outcome.ok([input, input])

    assert isinstance(Twice(), NodeBody)
    run = await Scheduler().run(Plan().add(Node("n", Twice())), task="go")
    assert run.final_output == ["go", "go"]


class Tools:
    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    async def dispatch(self, call: ToolCall, ctx: NodeContext | None = None) -> ToolResult:
        self.calls.append(call)
        if call.name == "bad":
            return ToolResult.failure("it is down", call.call_id)
        return ToolResult.success({"echo": call.arguments}, call.call_id)


async def test_a_tool_body_calls_its_tool_with_the_input_and_a_failure_is_an_output() -> None:
    tools = Tools()
    plan = Plan().add(
        does("args", lambda x: Outcome({"a": 1})),
        Node("good", ToolBody("good")),
        Node("bad", ToolBody("bad")),
    )
    run = await Scheduler(tools=tools).run(plan.edge("args", "good").edge("args", "bad"))
    assert run.final_output == {
        "good": {"ok": True, "output": {"echo": {"a": 1}}, "error": ""},
        "bad": {"ok": False, "output": None, "error": "it is down"},
    }
    assert [(call.name, call.arguments) for call in tools.calls] == [("good", {"a": 1}), ("bad", {"a": 1})]


async def test_a_tool_whose_name_no_log_can_keep_is_not_called() -> None:
    tools = Tools()
    plan = plan_of(does("n", lambda x, ctx: ctx.call_tool("\ud800")))
    run = await Scheduler(tools=tools).run(plan)
    assert "name of a tool that node n calls holds text with the lone surrogate" in run.final_output
    assert tools.calls == []


async def test_a_tool_may_spoil_its_arguments_and_nobody_else_sees_it() -> None:
    class Spoils:
        async def dispatch(self, call: ToolCall, ctx: object) -> ToolResult:
            call.arguments["xs"].append("spoilt")
            return ToolResult.success(call.arguments["xs"])

    given = {"xs": ["mine"]}

    async def body(x: JsonValue, ctx: NodeContext) -> Outcome:
        result = await ctx.call_tool("t", given)
        result.output.append("spoilt again")
        return Outcome([given["xs"], (await ctx.call_tool("u", given)).output])

    scheduler = Scheduler(tools=Spoils())
    run = await scheduler.run(plan_of(does("n", body)), run_id="r")
    assert run.final_output == [["mine"], ["mine", "spoilt"]]
    called = [e.data for e in await scheduler.eventlog.events("r") if e.kind == "tool_called"]
    assert [data["arguments"] for data in called] == [{"xs": ["mine"]}, {"xs": ["mine"]}]


async def test_a_model_body_asks_with_its_prompt_and_returns_the_text() -> None:
    asked: list[tuple[object, object]] = []

    class Model:
        async def chat(self, messages: Any, *, system: str | None = None, **_: object) -> LlmReply:
            asked.append((messages, system))
            return LlmReply("said")

    plan = Plan().add(
        Node("a", LLMBody("fixed")), Node("b", LLMBody(lambda x: f"about {x}", system="be short"))
    )
    run = await Scheduler(llm=Model()).run(plan.edge("a", "b"))
    assert run.final_output == "said"
    assert asked == [
        ([{"role": "user", "content": "fixed"}], None),
        ([{"role": "user", "content": "about said"}], "be short"),
    ]


async def test_a_model_that_fails_fails_its_node_with_what_to_do() -> None:
    class Down:
        async def chat(self, *_: object, **__: object) -> LlmReply:
            raise ModelError("the model is down: try later", status=503)

    run, events = await ran(Plan().add(Node("a", LLMBody("?"))), llm=Down())
    assert run.final_output == "node 'a' failed: ModelError: the model is down: try later"
    told = next(event.data for event in events if event.kind == "model_returned")
    assert (told["error"], told["status"]) == ("ModelError: the model is down: try later", 503)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LLMBody("?"), "node 'n' calls a model and there is none: pass llm= to the Scheduler"),
        (ToolBody("t"), "node 'n' calls tool 't' and there are none: pass tools= to the Scheduler"),
        (SubPlanBody("nope"), "str cannot be run as a child: give a Plan, an Agent or a Workflow"),
    ],
)
async def test_a_port_that_is_missing_is_named(body: NodeBody, message: str) -> None:
    run, _ = await ran(Plan().add(Node("n", body)))
    assert message in run.final_output


async def test_a_plan_is_a_node_of_another_and_its_output_is_the_nodes() -> None:
    inner = Plan({"xs": append()}).add(does("a", lambda x: Outcome.ok(f"{x}!", xs=[1])))
    outer = plan_of(does("first", lambda x: Outcome("hi")), Node("sub", SubPlanBody(inner)), first="sub")
    run, _ = await ran(outer)
    assert run.final_output == "hi!"
    assert run.shared["trace"] == []


@pytest.mark.parametrize(
    ("value", "task"), [("text", "text"), (None, ""), ({"a": [1, "é"]}, '{"a": [1, "é"]}')]
)
async def test_the_input_of_a_plan_node_is_the_task_of_its_run(value: object, task: str) -> None:
    inner = Plan().add(does("a", lambda x: x))
    run, _ = await ran(
        plan_of(does("first", lambda x: Outcome(value)), Node("sub", SubPlanBody(inner)), first="sub")
    )
    assert run.final_output == task


async def test_a_spawn_gives_the_childs_id_state_output_and_channels_as_ones_own() -> None:
    child = Plan({"given": last(), "xs": append(["start"])}).add(
        does("a", lambda x, ctx: Outcome.ok(f"{x} {ctx.shared['given']}", xs=["end"]))
    )

    async def body(x: JsonValue, ctx: NodeContext) -> Outcome:
        ended = await ctx.spawn(child, "do it", {"given": {"k": 1}})
        ended["shared"]["xs"].append("mine")
        return Outcome.ok(ended)

    run, _ = await ran(plan_of(does("n", body)))
    assert run.final_output == {
        "run_id": "r~1",
        "state": "completed",
        "output": "do it {'k': 1}",
        "shared": {"given": {"k": 1}, "xs": ["start", "end", "mine"]},
    }


async def test_a_child_is_given_text_or_the_json_of_its_task() -> None:
    async def body(x: JsonValue, ctx: NodeContext) -> JsonValue:
        inner = Plan().add(does("in", lambda task: task))
        return [(await ctx.spawn(inner, task))["output"] for task in ("tea", {"a": [1, None]}, None)]

    run, _ = await ran(plan_of(does("n", body)))
    assert run.final_output == ["tea", '{"a": [1, null]}', ""]


async def test_a_child_that_fails_fails_the_call_and_a_body_may_go_on() -> None:
    child = Plan().add(does("bad", lambda x: 1 / 0))

    async def body(x: JsonValue, ctx: NodeContext) -> str:
        with pytest.raises(ChildFailed, match="child run r~1 failed: node 'bad' failed: ZeroDivisionError"):
            await ctx.spawn(child, "")
        return "went on"

    run, _ = await ran(plan_of(does("n", body)))
    assert run.final_output == "went on"


async def test_a_payload_for_a_channel_that_the_child_lacks_is_named() -> None:
    async def body(x: JsonValue, ctx: NodeContext) -> None:
        await ctx.spawn(Plan().add(does("a", lambda x: x)), "", {"nope": 1})

    run, _ = await ran(plan_of(does("n", body)))
    assert "channel 'nope' is not in the plan: declare it again" in run.final_output
    assert run.state is RunState.FAILED


async def test_whatever_makes_a_child_spec_can_be_spawned() -> None:
    class Agent:
        def child_spec(self) -> ChildSpec:
            def shared(task: str) -> Mapping[str, object]:
                return {"messages": [task]}

            plan = Plan({"messages": append()}).add(does("a", lambda x, ctx: ctx.shared["messages"]))
            return ChildSpec(plan, name="agent", shared=shared)

    body = SubPlanBody(Agent())
    assert body.kind == "agent"
    run, events = await ran(Plan().add(Node("n", body)))
    assert run.final_output == ["the task"]
    assert next(event.data["name"] for event in events if event.kind == "delegated") == "agent"


def chain_of_children(depth: int) -> Plan:
    plan = Plan().add(does("leaf", lambda x: "bottom"))
    for _ in range(depth):
        plan = Plan().add(Node("sub", SubPlanBody(plan)))
    return plan


async def test_children_may_nest_as_deep_as_the_limit_says_and_no_deeper() -> None:
    assert (await Scheduler(max_depth=3).run(chain_of_children(3))).final_output == "bottom"
    run = await Scheduler(max_depth=3).run(chain_of_children(4), run_id="r")
    assert run.state is RunState.FAILED
    assert "RecursionError: child runs nest deeper than max depth 3" in run.final_output
    assert "allow more with max_depth" in run.final_output


async def test_a_plan_that_calls_itself_ends_at_the_limit() -> None:
    plan = Plan()
    plan.add(Node("again", SubPlanBody(plan)))
    scheduler = Scheduler(max_depth=4)
    run = await scheduler.run(plan, run_id="r")
    assert run.state is RunState.FAILED
    ends = [event.run_id for event in await scheduler.eventlog.stream("r") if event.kind == "run_failed"]
    assert ends == ["r~1~1~1~1", "r~1~1~1", "r~1~1", "r~1", "r"]


async def test_together_gives_results_in_the_order_of_the_calls() -> None:
    async def late(n: int) -> int:
        for _ in range(5 - n):
            await asyncio.sleep(0)
        return n

    async def body(x: JsonValue, ctx: NodeContext) -> list[int]:
        return await ctx.together(*map(late, range(5)))

    run, _ = await ran(plan_of(does("n", body)))
    assert run.final_output == [0, 1, 2, 3, 4]


async def test_together_cancels_the_others_when_one_raises_and_leaves_none_behind() -> None:
    cleaned = []

    async def hang() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(1)

    async def bad() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("broken")

    async def body(x: JsonValue, ctx: NodeContext) -> None:
        await ctx.together(hang(), bad(), hang())

    before = asyncio.all_tasks()
    run, _ = await ran(plan_of(does("n", body)))
    assert run.final_output == "node 'n' failed: RuntimeError: broken"
    assert cleaned == [1, 1]
    assert asyncio.all_tasks() == before


async def test_a_task_group_of_pythons_own_may_hold_questions_too() -> None:
    async def body(x: JsonValue, ctx: NodeContext) -> list[JsonValue]:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ctx.interrupt("input", name)) for name in ("one?", "two?")]
        return [task.result() for task in asked]

    plan = plan_of(does("n", body))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    assert run.state is RunState.SUSPENDED
    while run.state is RunState.SUSPENDED:
        asked = next(iter(run.interrupts.values()))
        run = await scheduler.resume(plan, run.run_id, {asked.id: f"{asked.question} yes"})
    assert run.final_output == ["one? yes", "two? yes"]


async def test_a_body_that_catches_every_exception_still_parks() -> None:
    async def body(x: JsonValue, ctx: NodeContext) -> object:
        try:
            return await ctx.interrupt("input", "sure?")
        except Exception:  # noqa: BLE001 - the point
            return "swallowed"

    run, _ = await ran(plan_of(does("n", body)))
    assert run.state is RunState.SUSPENDED


async def test_the_context_says_who_one_is_and_which_attempt_this_is() -> None:
    seen = []

    def body(x: JsonValue, ctx: NodeContext) -> None:
        seen.append((ctx.run_id, ctx.node_id, ctx.attempt, ctx.resumed, ctx.resume_value))
        if ctx.attempt == 1:
            raise RuntimeError

    await ran(plan_of(does("n", body, retry=RetryPolicy(2, 0))))
    assert seen == [("r", "n", 1, False, None), ("r", "n", 2, False, None)]


async def test_an_answer_is_ones_own_to_change() -> None:
    def body(x: JsonValue, ctx: NodeContext) -> Outcome:
        if not ctx.resumed:
            return Outcome.park("input")
        ctx.resume_value["xs"].append(2)
        return Outcome.ok(ctx.resume_value)

    plan = plan_of(does("n", body), asks("other"))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    answer = {"xs": [1]}
    run = await scheduler.resume(plan, run.run_id, {"n": answer, "other": 1})
    assert run.final_output["n"] == {"xs": [1]}
    assert answer == {"xs": [1]}
