"""Several agents: plans inside plans, and no new engine."""

from __future__ import annotations

import pytest

from playground import (
    Agent,
    FnBody,
    JsonValue,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Run,
    Scheduler,
    ScriptedLlm,
    ToolCall,
    ToolRegistry,
    Workflow,
    wait_human,
)
from playground.runtime.multiagent import (
    build_blackboard,
    build_pipeline,
    build_supervisor,
    register_agent_tool,
)
from playground.runtime.react import start_react_run


def says(*script: object, name: str = "agent") -> Agent:
    return Agent(name, model=ScriptedLlm(script))  # type: ignore[arg-type]


# Pipeline


async def test_in_a_pipeline_each_stage_gets_what_the_one_before_made() -> None:
    plan = build_pipeline([("draft", lambda x: x + "!"), ("review", says("fine")), ("stamp", lambda x: [x])])
    run = await Scheduler().run(plan, task="text")
    assert run.state_of("draft").output == "text!"
    assert run.final_output == ["fine"]


def test_a_pipeline_without_stages_is_refused() -> None:
    with pytest.raises(ValueError, match="without stages"):
        build_pipeline([])


# Call


async def test_a_supervisor_calls_its_workers_as_tools_and_control_returns() -> None:
    registry = ToolRegistry()
    plan = build_supervisor(
        {"cook": (says("soup"), "cooks"), "waiter": (Workflow().add("w", lambda t: f"served {t}"), "serves")},
        registry=registry,
        system="You run a kitchen.",
    )
    calls = [ToolCall("cook", {"task": "soup"}), ToolCall("waiter", {"task": "soup"})]
    run = start_react_run(plan, "dinner")
    await Scheduler(llm=ScriptedLlm([calls, "enjoy"]), tools=registry).drive(plan, run)
    assert run.final_output == "enjoy"
    results = [m["content"] for m in run.shared["messages"] if m["role"] == "tool"]  # type: ignore[index,union-attr,call-overload]
    assert results == ["soup", "served soup"]
    assert len(run.children) == 2


async def test_an_agent_tool_takes_one_task_and_is_described_as_told() -> None:
    registry = ToolRegistry()
    register_agent_tool(registry, "cook", says("soup"), "cooks well")
    shown = registry.schemas()[0]["function"]
    assert shown["description"] == "cooks well"  # type: ignore[index,call-overload]
    assert list(shown["parameters"]["properties"]) == ["task"]  # type: ignore[index,call-overload,arg-type]


async def test_an_agent_tool_called_outside_of_a_run_is_a_failure_that_says_so() -> None:
    registry = ToolRegistry()
    register_agent_tool(registry, "cook", says("soup"), "cooks")
    result = await registry.dispatch(ToolCall("cook", {"task": "soup"}))
    assert "inside a run" in result.error


async def test_calls_that_never_end_are_stopped_by_their_depth_and_told_to_the_model() -> None:
    looped = says(*[ToolCall("looped", {"task": "again"}), "enough"], name="looped")
    register_agent_tool(looped.registry, "looped", looped, "calls itself")
    run = await Scheduler(max_depth=3).run(
        Plan().add(Node("n", FnBody(lambda t, ctx: looped.delegate(t, ctx))))
    )
    assert run.final_output == "enough"


# Blackboard


def vote(name: str, from_round: int = 0) -> FnBody:
    def write(_: JsonValue, ctx: NodeContext) -> Outcome:
        agrees = ctx.shared["round"] >= from_round  # type: ignore[operator]
        return Outcome.ok(name, board=[f"{name}:{'yes' if agrees else 'no'}"])

    return FnBody(write)


def judge(_: JsonValue, ctx: NodeContext) -> dict[str, JsonValue] | None:
    latest = ctx.shared["board"][-2:]  # type: ignore[index]
    return {"verdict": "agreed"} if all(str(line).endswith("yes") for line in latest) else None


async def blackboard(second: int, **options: object) -> Run:
    plan = build_blackboard([("a", vote("a")), ("b", vote("b", second))], FnBody(judge), **options)  # type: ignore[arg-type]
    return await Scheduler().run(plan, task="?")


async def test_experts_write_in_rounds_until_the_moderator_has_a_verdict() -> None:
    run = await blackboard(second=2)
    assert run.final_output == {
        "verdict": "agreed",
        "board": ["a:yes", "b:no", "a:yes", "b:no", "a:yes", "b:yes"],
    }
    assert run.shared["round"] == 2


async def test_a_blackboard_without_a_verdict_ends_after_its_last_round() -> None:
    run = await blackboard(second=99, max_rounds=2)
    assert run.final_output["verdict"] is None  # type: ignore[index,call-overload]
    assert len(run.shared["board"]) == 4  # type: ignore[arg-type]


async def test_the_moderator_waits_for_all_experts_of_each_round() -> None:
    seen = []

    def count(_: JsonValue, ctx: NodeContext) -> Outcome:
        seen.append(len(ctx.shared["board"]))  # type: ignore[arg-type]
        return Outcome.goto("final" if len(seen) == 2 else "fanout", round=len(seen))

    plan = build_blackboard([("a", vote("a")), ("b", vote("b")), ("c", vote("c"))], FnBody(count))
    await Scheduler().run(plan)
    assert seen == [3, 6]


async def test_agents_at_the_board_read_it_and_what_they_say_is_written_there() -> None:
    heard: list[str] = []

    def speak(messages: list[dict[str, str]]) -> str:
        heard.append(messages[-1]["content"])
        return f"word {len(heard)}"

    experts = [("poet", says(speak, name="poet"))]
    verdicts = iter([None, {"verdict": "good"}])
    plan = build_blackboard(experts, lambda _: next(verdicts), final=lambda _, ctx: ctx.shared["board"])
    run = await Scheduler().run(plan, task="a poem")
    assert run.final_output == ["poet: word 1", "poet: word 2"]
    assert heard == ["a poem", "a poem\n\nOn the board:\npoet: word 1"]


async def test_a_moderator_can_be_a_person() -> None:
    def ask(_: JsonValue, ctx: NodeContext) -> Outcome | dict[str, JsonValue]:
        return {"verdict": ctx.resume_value} if ctx.resumed else wait_human("Verdict?", kind="input")

    plan, scheduler = build_blackboard([("a", vote("a"))], ask), Scheduler()
    run = await scheduler.run(plan)
    run = await scheduler.resume(plan, run.run_id, "fine")
    assert run.shared["verdict"] == "fine"
    assert run.shared["round"] == 0
