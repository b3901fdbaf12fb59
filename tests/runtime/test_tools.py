"""Calling a tool: it exists, its arguments fit, whoever must agree has agreed, it runs, one result."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from contextvars import ContextVar
from functools import partial

import pytest
from pydantic import BaseModel

from playground.kernel import (
    BlockingResult,
    Bus,
    FnBody,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Run,
    Scheduler,
    ToolBody,
    ToolCall,
    ToolResult,
)
from playground.runtime.llm import read_arguments
from playground.runtime.tools import ToolRegistry, ToolSpec


async def call(function, /, arguments=None, *, ctx=None, **options) -> ToolResult:
    """Dispatch one call of `function`."""
    registry = ToolRegistry().function(function, name="tool", **options)
    return await registry.dispatch(ToolCall("tool", {} if arguments is None else arguments, "call-1"), ctx)


def never(*_, **__):
    pytest.fail("the function was called")


# It exists


async def test_an_unknown_tool_is_a_failure_that_names_the_known_ones() -> None:
    registry = ToolRegistry().function(len, name="length").function(google, name="search")
    result = await registry.dispatch(ToolCall("serach", {}, "call-1"))
    assert result == ToolResult.failure(
        "there is no tool 'serach'; the known tools are: length, search", "call-1"
    )


def google(query: str): ...


async def test_of_very_many_known_tools_only_some_are_named() -> None:
    registry = ToolRegistry()
    for n in range(30):
        registry.function(google, name=f"t{n}")
    assert (await registry.dispatch(ToolCall("x", {}))).error.endswith("t19 and 10 more")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="there is a tool 'google' already"):
        ToolRegistry().function(google).function(google)


def test_names_specs_and_schemas_come_in_the_order_of_registration() -> None:
    registry = ToolRegistry().function(google, name="b").function(google, name="a")
    assert registry.names() == ["b", "a"]
    assert [tool["function"]["name"] for tool in registry.schemas()] == ["b", "a"]
    assert registry.get("a").parameters["required"] == ["query"]
    assert registry.get("c") is None


def test_schemas_can_be_sent_as_json() -> None:
    shown = json.loads(json.dumps(ToolRegistry().function(google, description="Search").schemas()))
    assert shown == [
        {
            "type": "function",
            "function": {
                "name": "google",
                "description": "Search",
                "parameters": {
                    "type": "object",
                    "properties": {"query": {"type": "string"}},
                    "required": ["query"],
                    "additionalProperties": False,
                },
            },
        }
    ]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": " "}, "needs a name"),
        ({"side_effect": "wirte"}, "'read' or 'write'"),
        ({"timeout": 0}, "seconds above 0"),
    ],
)
def test_a_spec_with_an_impossible_field_is_refused(options, complaint) -> None:
    with pytest.raises(ValueError, match=complaint):
        ToolSpec(**({"name": "x", "description": "", "func": google} | options))


# Its arguments fit


async def test_a_missing_argument_is_feedback_and_no_call() -> None:
    def add(a: int, b: int):
        never()

    result = await call(add, {"a": 1})
    assert result == ToolResult.failure(
        "'tool' was not called, its arguments do not fit: b: Field required", "call-1"
    )


async def test_every_misfit_is_named_with_its_place_and_many_are_counted() -> None:
    def add(a: int, more: list[int]):
        never()

    result = await call(add, {"a": "x", "more": [1, *"abcdefg"], "c": 1})
    assert "a: Input should be a valid integer" in result.error
    assert "more.1: Input should be a valid integer" in result.error
    assert "and 4 more" in result.error


def written(text: str) -> ToolCall:
    """A call with the arguments that a model wrote."""
    arguments, problem = read_arguments(text)
    return ToolCall("tool", arguments, problem=problem)


@pytest.mark.parametrize("text", ['{"a":', "null", "[1]", '"x"', '{"a":1}{"a":2}'])
async def test_arguments_that_cannot_be_read_never_call_the_function(text: str) -> None:
    """Case D32."""
    registry = ToolRegistry().function(lambda a=0: never(), name="tool")
    result = await registry.dispatch(written(text + " " * 5_000))
    assert not result.ok
    assert "'tool' was not called, its arguments cannot be read" in result.error
    assert text in result.error
    assert len(result.error) < 500


async def test_no_arguments_are_a_normal_call_of_a_tool_without_parameters() -> None:
    """Case D32."""
    registry = ToolRegistry().function(lambda: "done", name="tool")
    assert (await registry.dispatch(written(""))).output == "done"


@pytest.mark.parametrize("arguments", [[1], "x", 7])
async def test_arguments_that_are_no_object_never_call_the_function(arguments) -> None:
    assert "send one JSON object" in (await call(never, arguments)).error


# It runs


async def test_sync_and_async_functions_give_their_output() -> None:
    async def later(x: int):
        await asyncio.sleep(0)
        return x + 1

    assert (await call(lambda: {"n": 1})).output == {"n": 1}
    assert await call(later, {"x": 1}) == ToolResult.success(2, "call-1")


async def test_the_context_is_handed_to_every_parameter_that_asks_for_it() -> None:
    marker = object()
    seen = []

    def tool(run: NodeContext, x, /, ctx=None):
        seen.append((run, x, ctx))

    await call(tool, {"x": 1}, ctx=marker)
    assert seen == [(marker, 1, marker)]


async def test_an_exception_is_a_failed_result_with_type_and_text() -> None:
    def boom():
        raise KeyError("no such order")

    assert await call(boom) == ToolResult.failure("KeyError: 'no such order'", "call-1")


async def test_a_tool_that_exits_does_not_end_the_program() -> None:
    def leave():
        raise SystemExit(2)

    assert (await call(leave)).error == "SystemExit: 2"


async def test_an_exception_that_cannot_be_printed_is_a_failed_result() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def boom():
        raise Odd

    assert (await call(boom)).error.startswith("Odd: ")


async def test_the_text_of_an_exception_is_kept_short_and_valid() -> None:
    def boom():
        raise ValueError("\ud800" + "x" * 50_000_000)

    error = (await call(boom)).error
    assert len(error) < 5_000
    assert error.encode()


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_call_that_takes_too_long_is_stopped_and_says_so(blocking: bool) -> None:
    release = threading.Event()

    async def hang():
        await asyncio.Event().wait()

    result = await call(release.wait if blocking else hang, blocking=blocking, timeout=0.05)
    release.set()
    assert result.error == "'tool' took longer than 0.05 s and was given up"


async def test_a_timeout_of_the_tools_own_is_told_apart_from_the_limit() -> None:
    async def tool():
        raise TimeoutError("the shop did not answer")

    assert (await call(tool)).error == "TimeoutError: the shop did not answer"


async def test_a_blocking_tool_leaves_the_loop_free_and_keeps_its_context() -> None:
    where = ContextVar("where", default="")
    where.set("here")
    loop_went_on = threading.Event()

    def tool():
        return [loop_went_on.wait(10), where.get()]

    running = asyncio.ensure_future(call(tool, blocking=True))
    asyncio.get_running_loop().call_soon(loop_went_on.set)
    assert (await running).output == [True, "here"]


@pytest.mark.parametrize("kind", [ValueError, StopIteration, BaseException])
async def test_whatever_is_raised_in_a_thread_comes_back(kind) -> None:
    def tool():
        raise kind("over")

    if issubclass(kind, Exception):
        assert kind.__name__ in (await call(tool, blocking=True)).error
    else:
        with pytest.raises(kind):
            await call(tool, blocking=True)


async def test_a_cancellation_passes_through() -> None:
    started = asyncio.Event()

    async def tool():
        started.set()
        await asyncio.Event().wait()

    running = asyncio.ensure_future(call(tool))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_tool_may_ask_a_person_in_the_middle_of_its_work() -> None:
    async def book(ctx):
        return f"booked for {await ctx.interrupt('input', 'Which day?')}"

    registry = ToolRegistry().function(book)
    assert (await answered(registry, ToolCall("book"), "Monday")).output == "booked for Monday"


# One result


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        ({"x": math.nan}, "the output of tool 'tool' at ['x'] holds nan, which is not JSON"),
        ({1, 2}, "of type set"),
        ({"a": {1: 2}}, "the key 1 of type int"),
        (["\ud800"], "lone surrogate"),
        (b"raw", "of type bytes"),
    ],
)
async def test_output_that_is_not_json_is_a_failure_that_says_so(output, complaint) -> None:
    result = await call(lambda: output)
    assert not result.ok
    assert complaint in result.error


@pytest.mark.parametrize("output", ["x" * 50_000_000, ["x" * 1000] * 5_000], ids=["one text", "many texts"])
async def test_output_above_the_limit_is_a_failure_and_is_not_kept(output) -> None:
    result = await call(lambda: output)
    assert not result.ok
    assert "is larger than 1,032,192 bytes" in result.error
    assert result.output is None


async def test_the_largest_output_can_be_set() -> None:
    registry = ToolRegistry(max_output=10).function(lambda: "x" * 11, name="tool")
    assert "larger than 10 bytes" in (await registry.dispatch(ToolCall("tool", {}))).error


async def test_a_model_as_output_is_its_json() -> None:
    class Sum(BaseModel):
        total: int

    assert (await call(lambda: Sum(total=3))).output == {"total": 3}


async def test_a_tool_may_say_itself_that_it_failed() -> None:
    assert await call(lambda: ToolResult.failure("sold out")) == ToolResult.failure("sold out", "call-1")


async def test_an_output_does_not_change_with_what_the_tool_keeps() -> None:
    kept = [1]
    result = await call(lambda: kept)
    kept.append(2)
    assert result.output == [1]


# Whoever must agree has agreed


PAYS_BACK = "tool:refund"


def refund_tool(**options) -> tuple[ToolRegistry, list]:
    """A registry with a write tool, and the calls that got through to it."""
    done: list = []

    def refund(order: str, amount: int = 10) -> str:
        """Pay back."""
        done.append((order, amount))
        return f"refunded {amount}"

    return ToolRegistry(**options).function(refund, side_effect="write"), done


def refund(**arguments) -> ToolCall:
    return ToolCall("refund", {"order": "o1"} | arguments)


def bus_with(verdict, *, gate: str = PAYS_BACK) -> Bus:
    bus = Bus()
    bus.checker(gate, verdict)
    return bus


async def run_of(registry: ToolRegistry, call: ToolCall) -> tuple[Scheduler, Plan, Run]:
    """A run of one node that makes one call, up to its end or its question."""
    plan = Plan()
    plan.add(Node("act", ToolBody(call.name)))
    plan.add(Node("start", FnBody(lambda _: Outcome.ok(dict(call.arguments)))))
    plan.edge("start", "act")
    scheduler = Scheduler(tools=registry)
    return scheduler, plan, await scheduler.run(plan)


async def answered(registry: ToolRegistry, call: ToolCall, answer: object) -> ToolResult:
    """What a call gives once a person has answered."""
    scheduler, plan, run = await run_of(registry, call)
    assert run.state == "suspended"
    run = await scheduler.resume(plan, run.run_id, {next(iter(run.interrupts)): answer})
    assert run.state == "completed"
    return ToolResult(**run.final_output)


async def test_a_checker_that_allows_lets_a_write_tool_run() -> None:
    facts = []
    registry, _ = refund_tool(bus=bus_with(lambda **about: facts.append(about)))
    assert (await registry.dispatch(refund())).output == "refunded 10"
    assert facts == [{"call": refund(), "ctx": None}]


async def test_a_checker_decides_without_a_person() -> None:
    registry, _ = refund_tool(bus=bus_with(lambda **_: True))
    _, _, run = await run_of(registry, refund())
    assert run.final_output["output"] == "refunded 10"


def refuses(**_):
    return BlockingResult(False, "above the limit")


def breaks(**_):
    raise RuntimeError("no connection to the ledger")


@pytest.mark.parametrize(
    ("checker", "reason"), [(refuses, "above the limit"), (breaks, "no connection to the ledger")]
)
async def test_a_veto_and_a_broken_checker_keep_the_tool_from_running(checker, reason) -> None:
    registry, done = refund_tool(bus=bus_with(checker))
    error = (await registry.dispatch(refund())).error
    assert error.startswith("operation not approved: ")
    assert reason in error
    assert done == []


async def test_without_a_checker_the_run_parks_with_the_proposed_call() -> None:
    registry, done = refund_tool()
    _, _, run = await run_of(registry, refund())
    [question] = run.interrupts.values()
    assert question.id == "act/refund"
    assert question.kind == "approval"
    assert question.payload == {"tool": "refund", "arguments": {"order": "o1", "amount": 10}}
    assert question.schema == {
        "type": "object",
        "properties": {"order": {"type": "string"}, "amount": {"type": "integer", "default": 10}},
        "additionalProperties": False,
    }
    assert done == []


async def test_a_checker_of_another_tool_is_no_consent() -> None:
    registry, _ = refund_tool(bus=bus_with(lambda **_: True, gate="tool:other"))
    _, _, run = await run_of(registry, refund())
    assert run.state == "suspended"


@pytest.mark.parametrize("answer", [True, {"approved": True}, {"approved": True, "comment": "fine"}])
async def test_an_approved_call_runs_once_as_proposed(answer) -> None:
    """Case D31."""
    registry, done = refund_tool()
    assert (await answered(registry, refund(amount=5), answer)).output == "refunded 5"
    assert done == [("o1", 5)]


@pytest.mark.parametrize(
    "answer", [False, None, "yes", 1, {}, {"approved": False}, {"approved": "true"}, {"approved": 1}, []]
)
async def test_anything_but_a_clear_yes_does_not_run_the_tool(answer) -> None:
    """Case D31."""
    registry, done = refund_tool()
    result = await answered(registry, refund(), answer)
    assert not result.ok
    assert result.error.startswith("operation not approved")
    assert done == []


async def test_the_reason_of_a_rejection_reaches_the_model() -> None:
    """Case D43."""
    registry, _ = refund_tool()
    result = await answered(registry, refund(), {"approved": False, "comment": "too costly"})
    assert result.error == "operation not approved: too costly"


async def test_edited_fields_go_over_the_arguments_with_their_types() -> None:
    registry, done = refund_tool()
    await answered(registry, refund(amount=5), {"approved": True, "amount": 3, "comment": "less"})
    assert done == [("o1", 3)]


@pytest.mark.parametrize("edit", [{"amount": "lots"}, {"amount": None}, {"unknown": 1}])
async def test_an_edit_that_does_not_fit_fails_and_does_not_run_the_tool(edit) -> None:
    registry, done = refund_tool()
    result = await answered(registry, refund(), {"approved": True, **edit})
    assert not result.ok
    assert "the edited arguments do not fit" in result.error
    assert done == []


async def test_a_parameter_called_comment_is_not_filled_from_the_approvers_comment() -> None:
    def post(comment: str):
        return comment

    registry = ToolRegistry().function(post, side_effect="write")
    call = ToolCall("post", {"comment": "hello"})
    _, _, run = await run_of(registry, call)
    [question] = run.interrupts.values()
    assert question.schema["properties"] == {}
    result = await answered(registry, call, {"approved": True, "comment": "go ahead"})
    assert result.output == "hello"


async def test_each_of_two_gated_calls_of_one_turn_gets_its_own_answer() -> None:
    """Case D31."""
    done = []
    registry = ToolRegistry()
    for name in ("pay", "ship"):
        registry.function(partial(done.append, name), name=name, side_effect="write")
    registry.function(lambda: done.append("look"), name="look")

    async def turn(_, ctx: NodeContext):
        calls = await ctx.together(*(ctx.call_tool(name) for name in ("pay", "look", "ship")))
        return Outcome.ok([result.error for result in calls])

    plan = Plan()
    plan.add(Node("turn", FnBody(turn)))
    scheduler = Scheduler(tools=registry)
    run = await scheduler.run(plan)
    assert set(run.interrupts) == {"turn/pay", "turn/ship"}
    answers = {"turn/pay": {"approved": False, "comment": "too costly"}, "turn/ship": {"approved": True}}
    run = await scheduler.resume(plan, run.run_id, answers)
    assert run.final_output == ["operation not approved: too costly", "", ""]
    assert done == ["look", "ship"]


async def test_arguments_that_do_not_fit_fail_before_anyone_is_asked() -> None:
    registry, _ = refund_tool(bus=bus_with(never))
    assert "do not fit" in (await registry.dispatch(refund(amount="lots"))).error


async def test_outside_of_a_run_and_without_a_checker_a_write_tool_fails_and_says_what_is_missing() -> None:
    registry, done = refund_tool(bus=Bus())
    result = await registry.dispatch(refund())
    assert "not approved" in result.error
    assert "register a checker for 'tool:refund'" in result.error
    assert done == []


async def test_a_read_tool_needs_no_consent() -> None:
    assert (await call(lambda: 1, side_effect="read")).ok


async def test_a_registry_can_be_told_that_write_tools_need_no_consent() -> None:
    registry, _ = refund_tool(bus=bus_with(never), write_needs_approval=False)
    assert (await registry.dispatch(refund())).ok


async def test_waiting_for_a_checker_does_not_count_as_time_of_the_call() -> None:
    async def slow(**_):
        await asyncio.sleep(0.1)

    registry = ToolRegistry(bus=bus_with(slow, gate="tool:act"))
    registry.function(lambda: 1, name="act", side_effect="write", timeout=0.02)
    assert (await registry.dispatch(ToolCall("act"))).ok
