"""Agent: a model, its tools and its teammates, ready to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from playground import (
    Agent,
    Bus,
    FnBody,
    Node,
    NodeContext,
    Plan,
    RunState,
    Scheduler,
    ScriptedLlm,
    ToolCall,
    ToolRegistry,
    ToolSpec,
    Workflow,
)
from playground.backends import open_store
from playground.kernel import AlreadyAnswered, InMemoryEventLog, InMemoryStore, SubPlanBody


def agent(*script: object, name: str = "agent", **options: object) -> Agent:
    return Agent(name, model=ScriptedLlm(script), **options)  # type: ignore[arg-type]


def refund(order: str) -> str:
    """Give the money back."""
    return f"refunded {order}"


REFUND = ToolSpec("refund", "Give the money back.", refund, side_effect="write")


def asks_refund(**options: object) -> Agent:
    return agent(ToolCall("refund", {"order": "o1"}), "done", tools=[REFUND], **options)


async def test_a_result_has_output_status_state_messages_and_metrics_as_plain_values() -> None:
    result = await agent("hello").run("hi")
    assert (result.output, result.status, str(result)) == ("hello", "completed", "hello")
    assert result.run_id == result.run.run_id
    assert result.metrics["llm_calls"] == 1
    assert result.messages == result.state["messages"]
    result.messages.append({"role": "user", "content": "mine to change"})
    assert len(result.run.shared["messages"]) == 2  # type: ignore[arg-type]


async def test_a_conversation_goes_on_with_the_messages_of_the_run_before() -> None:
    talker = agent("hello", "you said hi")
    first = await talker.run("hi")
    second = await talker.run("what did I say?", history=first.messages)
    assert second.output == "you said hi"
    assert [m["content"] for m in second.messages] == ["hi", "hello", "what did I say?", "you said hi"]


async def test_an_agent_is_stateless_so_two_runs_without_history_are_the_same() -> None:
    one = agent("hello")
    assert (await one.run("hi")).output == (await one.run("hi")).output == "hello"


async def test_tools_are_functions_or_specs_and_more_can_be_added() -> None:
    def look() -> str:
        return "seen"

    one = agent(ToolCall("look"), ToolCall("refund", {"order": "o1"}), "done", tools=[look])
    one.add_tool(refund)
    result = await one.run("go")
    assert [m["content"] for m in result.messages if m["role"] == "tool"] == ["seen", "refunded o1"]


async def test_max_turns_bounds_the_model_calls_and_nothing_smaller_does() -> None:
    def look() -> str:
        return "seen"

    script = [*[ToolCall("look")] * 120, "enough"]
    assert (await agent(*script, tools=[look], max_turns=121).run("go")).output == "enough"
    short = await agent(*script, tools=[look], max_turns=50).run("go")
    assert short.status == "failed"
    assert short.metrics["llm_calls"] == 50


def test_an_agent_without_a_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="max_turns=0"):
        Agent("idle", max_turns=0)


async def test_an_agent_without_a_model_says_so() -> None:
    result = await Agent("mute").run("hi")
    assert result.status == "failed"
    assert "calls a model and there is none" in str(result.output)


# Consent


async def test_a_write_tool_waits_for_consent_and_then_runs_once() -> None:
    one = asks_refund()
    waiting = await one.run("refund o1")
    assert waiting.status is RunState.SUSPENDED
    assert [asked.payload for asked in waiting.interrupts] == [
        {"tool": "refund", "arguments": {"order": "o1"}}
    ]
    result = await one.resume(waiting.run_id, {"approved": True})
    assert result.output == "done"
    assert result.messages[-2]["content"] == "refunded o1"
    with pytest.raises(AlreadyAnswered):
        await one.resume(waiting.run_id, {"tools/refund": {"approved": True}})


async def test_a_rejection_reaches_the_model_with_its_reason() -> None:
    one = asks_refund()
    waiting = await one.run("refund o1")
    result = await one.resume(waiting.run_id, {"approved": False, "comment": "too costly"})
    assert result.output == "done"
    assert "too costly" in str(result.messages[-2]["content"])


async def test_consent_can_be_given_by_a_checker_on_the_agents_bus() -> None:
    bus = Bus()
    bus.checker("tool:refund", lambda **_: True)
    assert (await asks_refund(bus=bus).run("refund o1")).output == "done"


async def test_consent_can_be_switched_off() -> None:
    assert (await asks_refund(write_needs_approval=False).run("refund o1")).output == "done"


async def test_another_agent_object_over_the_same_stores_goes_on_after_a_pause() -> None:
    log, store = InMemoryEventLog(), InMemoryStore()
    waiting = await asks_refund(eventlog=log, store=store).run("refund o1")
    result = await asks_refund(eventlog=log, store=store).resume(waiting.run_id, {"approved": True})
    assert result.output == "done"


async def test_of_two_gated_calls_in_one_turn_the_approved_runs_and_the_rejected_does_not() -> None:
    """Case D31."""
    ran: list[str] = []

    def pay(to: str) -> str:
        ran.append(to)
        return f"paid {to}"

    one = agent([ToolCall("pay", {"to": "Ana"}), ToolCall("pay", {"to": "Bo"})], "done")
    one.add_tool(pay, side_effect="write")
    waiting = await one.run("pay both")
    first, second = (asked.id for asked in waiting.interrupts)
    half = await one.resume(waiting.run_id, {second: {"approved": False, "comment": "not him"}})
    assert (half.status, ran) == ("suspended", [])
    result = await one.resume(waiting.run_id, {first: {"approved": True}})
    told = [str(m["content"]) for m in result.messages if m["role"] == "tool"]
    assert (ran, told[0]) == (["Ana"], "paid Ana")
    assert "not him" in told[1]


async def test_two_tools_that_ask_at_once_each_get_their_own_answer() -> None:
    """Case D08."""

    async def name_a(ctx: NodeContext) -> object:
        return await ctx.interrupt("input", "a?")

    async def name_b(ctx: NodeContext) -> object:
        return await ctx.interrupt("input", "b?")

    one = agent([ToolCall("name_a"), ToolCall("name_b")], "done", tools=[name_a, name_b])
    waiting = await one.run("ask")
    assert [asked.id for asked in waiting.interrupts] == ["tools/name_a", "tools/name_b"]
    result = await one.resume(waiting.run_id, {"tools/name_b": "B", "tools/name_a": "A"})
    assert [m["content"] for m in result.messages if m["role"] == "tool"] == ["A", "B"]


async def test_the_reason_of_a_rejection_survives_a_restart(tmp_path: Path) -> None:
    """Case D43."""
    url = f"sqlite:{tmp_path / 'runs.db'}"
    async with open_store(url) as store:
        waiting = await asks_refund(eventlog=store.log, store=store.checkpoints).run("refund o1")
    async with open_store(url) as store:
        again = asks_refund(eventlog=store.log, store=store.checkpoints)
        result = await again.resume(waiting.run_id, {"approved": False, "comment": "too costly"})
    assert "too costly" in str(result.messages[-2]["content"])


# Teammates


async def test_a_teammate_is_a_child_run_with_its_own_model_linked_to_its_caller() -> None:
    log = InMemoryEventLog()
    writer = agent("a poem", name="writer", description="writes")
    boss = agent(
        ToolCall("writer", {"task": "a poem about tea"}), "here it is", teammates=[writer], eventlog=log
    )
    result = await boss.run("poem")
    assert result.output == "here it is"
    delegated = [event for event in await log.events(result.run_id) if event.kind == "delegated"]
    assert [event.data["name"] for event in delegated] == ["writer"]
    child = await log.events(str(delegated[0].data["child"]))
    assert {event.parent_id for event in child} == {result.run_id}
    assert child[0].data["task"] == "a poem about tea"
    assert child[-1].data["output"] == "a poem"


async def test_a_teammate_is_shown_to_the_model_with_its_description_or_its_instruction() -> None:
    boss = Agent("boss", teammates=[Agent("a", description="can a"), Agent("b", instruction="do b")])
    shown = [schema["function"] for schema in boss.registry.schemas()]
    assert [(s["name"], s["description"]) for s in shown] == [("a", "can a"), ("b", "do b")]  # type: ignore[index,call-overload]
    assert shown[0]["parameters"]["required"] == ["task"]  # type: ignore[index,call-overload]


async def test_a_teammate_that_waits_parks_its_caller_and_the_answer_finds_its_way_down() -> None:
    boss = agent(
        ToolCall("clerk", {"task": "refund o1"}), "all settled", teammates=[asks_refund(name="clerk")]
    )
    waiting = await boss.run("settle")
    assert [asked.id for asked in waiting.interrupts] == ["tools/clerk/tools/refund"]
    result = await boss.resume(waiting.run_id, {"approved": True})
    assert result.output == "all settled"


async def test_a_teammate_that_fails_is_told_to_the_caller_which_goes_on() -> None:
    boss = agent(
        ToolCall("clerk", {"task": "x"}), "alone then", teammates=[agent(ValueError("ill"), name="clerk")]
    )
    result = await boss.run("go")
    assert result.output == "alone then"
    assert "ill" in str(result.messages[-2]["content"])


async def test_a_workflow_can_be_a_teammate() -> None:
    desk = Workflow(name="desk", description="stamps").add("stamp", lambda task: f"{task}, stamped")
    boss = agent(ToolCall("desk", {"task": "form"}), "thanks", teammates=[desk])
    result = await boss.run("go")
    assert result.messages[-2]["content"] == "form, stamped"


async def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="there is a tool 'refund' already"):
        Agent("boss", tools=[refund], teammates=[Agent("refund")])


# Calls from a node


async def test_an_agent_is_what_a_node_can_spawn_and_delegate_to() -> None:
    expert = agent("42", name="expert")

    async def ask(task: str, ctx: NodeContext) -> list[object]:
        spawned = await ctx.spawn(expert, task)
        return [spawned["output"], await expert.delegate("again", ctx)]

    log = InMemoryEventLog()
    plan = Plan().add(Node("ask", FnBody(ask)))
    run = await Scheduler(eventlog=log).run(plan, task="?")
    assert run.final_output == ["42", "42"]
    assert run.children == [f"{run.run_id}~1", f"{run.run_id}~2"]


async def test_delegating_outside_of_a_run_gives_the_output_of_a_run_of_its_own() -> None:
    assert await agent("42").delegate("?") == "42"


async def test_delegating_outside_of_a_run_to_an_agent_that_cannot_finish_is_an_error_that_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"failed.*ill"):
        await agent(ValueError("ill")).delegate("?")
    with pytest.raises(RuntimeError, match=r"suspended.*pass ctx"):
        await asks_refund().delegate("?")


async def test_an_agent_as_a_child_without_a_model_uses_its_callers() -> None:
    plan = Plan().add(Node("n", SubPlanBody(Agent("guest"))))
    run = await Scheduler(llm=ScriptedLlm(["borrowed"])).run(plan, task="?")
    assert run.final_output == "borrowed"


async def test_tools_that_are_already_together_can_be_given_as_a_registry() -> None:
    registry = ToolRegistry().function(refund)
    result = await agent(ToolCall("refund", {"order": "7"}), "ok", registry=registry).run("go")
    assert result.metrics["tool_calls"] == 1
