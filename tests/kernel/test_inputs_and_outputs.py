"""What a node gets, what a run gives."""

from __future__ import annotations

import pytest

from playground.kernel import (
    Goto,
    JsonValue,
    LLMBody,
    LlmReply,
    Node,
    NodeContext,
    Outcome,
    Plan,
    RunState,
    ToolBody,
    ToolCall,
    ToolResult,
)
from tests.kernel.steps import does, echo, plan_of, ran, step


async def test_an_entry_gets_the_task() -> None:
    run, _ = await ran(plan_of(echo("a"), echo("b")))
    assert run.shared["trace"] == [["a", "the task"], ["b", "the task"]]


async def test_a_node_gets_the_output_of_its_one_predecessor() -> None:
    run, _ = await ran(plan_of(step("a"), echo("b"), a="b"))
    assert run.final_output == "a"


async def test_a_node_with_several_gets_them_by_name() -> None:
    run, _ = await ran(plan_of(step("a"), step("b"), echo("c"), a="c", b="c"))
    assert run.final_output == {"a": "a", "b": "b"}


async def test_only_completed_predecessors_over_live_edges_count() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), step("d"), echo("end"), a="end", d="end")
    plan.edge("b", "end", when=lambda s: False).edge("c", "d", when=lambda s: False)
    run, _ = await ran(plan)
    assert run.state_of("end").output == "a"


async def test_with_an_any_join_only_those_that_are_done_are_handed_over() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), echo("end", join="any"), a="end", b="c", c="end")
    run, _ = await ran(plan)
    assert run.state_of("end").output == "a"


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"a": None}])
async def test_an_output_is_handed_over_as_it_is_even_if_it_is_empty(value: JsonValue) -> None:
    seen = []
    plan = plan_of(does("a", lambda x: Outcome(value)), does("b", lambda x: seen.append([x, type(x)])), a="b")
    await ran(plan)
    assert seen == [[value, type(value)]]


async def test_what_a_node_gets_is_its_own_to_change() -> None:
    def spoil(xs: list[int]) -> int:
        xs.append(9)
        return len(xs)

    plan = plan_of(does("a", lambda x: Outcome([1])), does("b", spoil), does("c", spoil), a="b c")
    run, _ = await ran(plan)
    assert run.final_output == {"b": 2, "c": 2}
    assert run.state_of("a").output == [1]


async def test_the_output_is_that_of_the_one_terminal_node_that_completed() -> None:
    plan = plan_of(step("a"), step("b"), step("c")).edge("a", "b", when=lambda s: False).edge("a", "c")
    run, _ = await ran(plan)
    assert run.final_output == "c"


async def test_with_several_terminal_nodes_the_output_is_by_name() -> None:
    run, _ = await ran(plan_of(step("a"), step("b"), step("c"), a="b c"))
    assert run.final_output == {"b": "b", "c": "c"}


async def test_a_mark_makes_a_node_terminal_wherever_it_stands() -> None:
    run, _ = await ran(plan_of(step("a", terminal=True), step("b"), a="b"))
    assert run.final_output == "a"


async def test_with_no_terminal_node_completed_the_output_is_empty() -> None:
    run, _ = await ran(plan_of(step("a"), step("b")).edge("a", "b", when=lambda s: False))
    assert (run.state, run.final_output) == (RunState.COMPLETED, {})


async def test_the_latest_output_of_a_node_that_ran_often_counts() -> None:
    def loop(x: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome(ctx.attempt, {}, Goto("a") if ctx.attempt < 3 else None)

    run, _ = await ran(plan_of(does("a", loop)))
    assert run.final_output == 3


async def test_the_metrics_count_waves_calls_and_tokens() -> None:
    class Model:
        async def chat(self, messages: object, **_: object) -> LlmReply:
            return LlmReply("hi", (), 7)

    class Tools:
        async def dispatch(self, call: ToolCall, ctx: object) -> ToolResult:
            return ToolResult.success(1)

    plan = Plan().add(Node("m", LLMBody("?")), Node("n", LLMBody("?")), Node("t", ToolBody("t")))
    run, _ = await ran(plan.edge("m", "n").edge("m", "t"), llm=Model(), tools=Tools())
    assert run.metrics == {"waves": 2, "llm_calls": 2, "tool_calls": 1, "tokens": 14}
