"""ReAct: a drawing with a way back, walked by Goto."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from playground.kernel import (
    Bus,
    InMemoryEventLog,
    JsonValue,
    LlmReply,
    Message,
    NodeStatus,
    OnDelta,
    Run,
    RunState,
    Scheduler,
    ToolCall,
)
from playground.runtime.context import WindowContext
from playground.runtime.llm import ScriptedLlm, ScriptEntry
from playground.runtime.react import build_react_plan, start_react_run, waves_for
from playground.runtime.tools import ToolRegistry


class Recorder(ScriptedLlm):
    """A scripted model that keeps what it was asked."""

    def __init__(self, *script: ScriptEntry) -> None:
        super().__init__(script)
        self.asked: list[list[Message]] = []
        self.systems: list[str | None] = []
        self.tools: list[list[str]] = []

    async def chat_at(
        self,
        turn: int,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, JsonValue]] | None = None,
        system: str | None = None,
        on_delta: OnDelta | None = None,
    ) -> LlmReply:
        self.asked.append(list(messages))
        self.systems.append(system)
        self.tools.append([str(tool["function"]["name"]) for tool in tools or ()])  # type: ignore[index,call-overload]
        return await super().chat_at(turn, messages, tools=tools, system=system, on_delta=on_delta)


def search(query: str) -> str:
    return f"found {query}"


async def react(
    llm: ScriptedLlm,
    tools: ToolRegistry | None = None,
    task: str = "a task",
    history: list[Message] | None = None,
    **options: object,
) -> Run:
    registry = tools or ToolRegistry().function(search)
    plan = build_react_plan(registry, **options)  # type: ignore[arg-type]
    run = start_react_run(plan, task, history)
    await Scheduler(llm=llm, tools=registry, max_waves=10_000).drive(plan, run)
    return run


def ask(query: str, call_id: str = "") -> ToolCall:
    return ToolCall("search", {"query": query}, call_id)


async def test_an_answer_without_tools_takes_one_thought_and_skips_the_tools() -> None:
    run = await react(ScriptedLlm(["hello"]))
    assert run.final_output == "hello"
    assert run.metrics["waves"] == 2
    assert run.status_of("tools") is NodeStatus.SKIPPED


async def test_each_round_adds_the_request_and_its_result_to_the_conversation() -> None:
    run = await react(ScriptedLlm([ask("a", "c1"), ask("b", "c2"), "a and b"]))
    assert run.final_output == "a and b"
    assert run.metrics | {"tokens": 0} == {"waves": 6, "llm_calls": 3, "tool_calls": 2, "tokens": 0}
    asked = {"id": "c1", "name": "search", "arguments": {"query": "a"}, "problem": ""}
    assert run.shared["messages"][:3] == [  # type: ignore[index]
        {"role": "user", "content": "a task"},
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "name": "search", "tool_call_id": "c1", "content": "found a"},
    ]
    assert run.shared["messages"][-1] == {"role": "assistant", "content": "a and b"}  # type: ignore[index]


async def test_the_model_sees_the_history_the_instruction_and_the_tools() -> None:
    llm = Recorder("later")
    history: list[Message] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ]
    await react(llm, task="and now?", history=history, system="Be kind.")
    assert llm.asked == [[*history, {"role": "user", "content": "and now?"}]]
    assert llm.systems == ["Be kind."]
    assert llm.tools == [["search"]]


async def test_calls_of_one_turn_run_side_by_side_and_their_results_come_in_call_order() -> None:
    second_ran = asyncio.Event()

    async def first() -> str:
        await second_ran.wait()
        return "1"

    async def second() -> str:
        second_ran.set()
        return "2"

    tools = ToolRegistry().function(first).function(second)
    run = await react(ScriptedLlm([[ToolCall("first"), ToolCall("second")], "both"]), tools)
    assert [m["content"] for m in run.shared["messages"] if m["role"] == "tool"] == ["1", "2"]  # type: ignore[index,union-attr]


async def test_calls_without_an_id_get_one_that_tells_them_apart_in_the_whole_conversation() -> None:
    run = await react(ScriptedLlm([LlmReply(tool_calls=(ask("a"), ask("b"))), [ask("c"), ask("d")], "end"]))
    ids = [m["tool_call_id"] for m in run.shared["messages"] if m["role"] == "tool"]  # type: ignore[index,union-attr]
    assert len(set(ids)) == 4
    assert all(ids)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolCall("serach"), "there is no tool 'serach'"),
        (ToolCall("search", {"q": 1}), "arguments do not fit"),
        (ToolCall("search", {"query": "a"}, problem="they are not valid JSON"), "cannot be read"),
    ],
)
async def test_a_call_that_cannot_be_made_is_told_to_the_model_which_goes_on(
    call: ToolCall, told: str
) -> None:
    llm = Recorder(call, "I see")
    run = await react(llm)
    assert run.final_output == "I see"
    assert str(llm.asked[1][-1]["content"]).startswith("[tool error] ")
    assert told in str(llm.asked[1][-1]["content"])


async def test_a_tool_that_raises_is_told_to_the_model_which_goes_on() -> None:
    def broken() -> str:
        raise OSError("disk full")

    llm = Recorder(ToolCall("broken"), "sorry")
    run = await react(llm, ToolRegistry().function(broken))
    assert run.final_output == "sorry"
    assert "OSError: disk full" in str(llm.asked[1][-1]["content"])


async def test_a_result_that_is_not_text_is_told_as_json() -> None:
    def stock() -> dict[str, int]:
        return {"茶": 3}

    llm = Recorder(ToolCall("stock"), "three")
    await react(llm, ToolRegistry().function(stock))
    assert llm.asked[1][-1]["content"] == '{"茶": 3}'


async def test_a_model_that_asks_for_tools_for_ever_is_stopped_after_its_last_turn_and_told_how() -> None:
    calls = 0

    def again() -> None:
        nonlocal calls
        calls += 1

    run = await react(ScriptedLlm([ToolCall("again")] * 9), ToolRegistry().function(again), max_turns=3)
    assert run.state is RunState.FAILED
    assert "turn 3, the last it had" in str(run.final_output)
    assert "max_turns" in str(run.final_output)
    assert run.metrics["llm_calls"] == 3
    assert calls == 2


async def test_the_last_turn_may_answer() -> None:
    run = await react(ScriptedLlm([ask("a"), ask("b"), "there"]), max_turns=3)
    assert run.final_output == "there"


async def test_the_waves_of_a_run_suffice_for_all_its_turns() -> None:
    registry = ToolRegistry().function(search)
    plan = build_react_plan(registry, max_turns=100)
    run = start_react_run(plan, "go")
    llm = ScriptedLlm([*[ask(str(n)) for n in range(99)], "done"])
    await Scheduler(llm=llm, tools=registry, max_waves=waves_for(100)).drive(plan, run)
    assert run.final_output == "done"


async def functions_called_in(rounds: int) -> int:
    """How many functions, Python's own included, a run of so many rounds calls: steadier than a clock."""
    called = 0

    def count(_frame: object, event: str, _about: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    llm = ScriptedLlm([*[ask(str(n)) for n in range(rounds)], "done"])
    sys.setprofile(count)
    try:
        run = await react(llm, max_turns=rounds + 1)
    finally:
        sys.setprofile(None)
    assert run.metrics["tool_calls"] == rounds
    return called


async def test_a_late_round_costs_what_an_early_one_does() -> None:
    few, more, most = [await functions_called_in(rounds) for rounds in (200, 400, 800)]
    assert most - more == pytest.approx(2 * (more - few), rel=0.25)


async def test_a_model_that_fails_ends_the_run_and_says_why() -> None:
    run = await react(ScriptedLlm([RuntimeError("no such model")]))
    assert run.state is RunState.FAILED
    assert "no such model" in str(run.final_output)


async def test_what_the_model_says_is_told_piece_by_piece_while_it_says_it() -> None:
    bus, registry = Bus(), ToolRegistry().function(search)
    heard: list[tuple[object, object]] = []
    bus.on("llm_delta", lambda text, kind, **_: heard.append((kind, text)))
    plan = build_react_plan(registry)
    run = start_react_run(plan, "go")
    llm = ScriptedLlm([LlmReply("one two three", reasoning="hmm")])
    await Scheduler(llm=llm, tools=registry, bus=bus).drive(plan, run)
    assert "".join(str(text) for kind, text in heard if kind == "content") == "one two three"
    assert ("reasoning", "hmm") in heard
    assert len(heard) > 2


class KnowsTea:
    """A memory that counts how often it is asked."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    async def recall(self, query: str) -> str:
        self.queries.append(query)
        return "- no sugar"


async def test_memory_is_asked_once_in_a_node_of_its_own_and_what_it_knows_is_told_in_every_turn() -> None:
    llm, memory = Recorder(ask("a"), ask("b"), "served"), KnowsTea()
    run = await react(llm, task="tea, please", system="You serve.", memory=memory)
    assert memory.queries == ["tea, please"]
    assert llm.systems == ["You serve.\n\nRelevant memory:\n- no sugar"] * 3
    assert run.shared["recalled"] == "- no sugar"
    assert run.state_of("recall").attempts == 1


class LatestTwo:
    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages[-2:])


async def test_context_chooses_what_the_model_is_shown_and_the_state_keeps_everything() -> None:
    llm = Recorder(ask("a"), ask("b"), "end")
    run = await react(llm, context=LatestTwo())
    assert [len(shown) for shown in llm.asked] == [1, 2, 2]
    assert len(run.shared["messages"]) == 6  # type: ignore[arg-type]


async def test_what_a_context_strategy_did_is_a_fact_of_the_run() -> None:
    registry, log = ToolRegistry().function(search), InMemoryEventLog()
    plan = build_react_plan(registry, context=WindowContext(keep_last=2))
    run = start_react_run(plan, "go")
    llm = ScriptedLlm([ask("a"), ask("b"), ask("c"), "end"])
    await Scheduler(llm=llm, tools=registry, eventlog=log).drive(plan, run)
    notes = [event.data for event in await log.events(run.run_id) if event.kind == "note"]
    assert {note["topic"] for note in notes} == {"context"}
    last = notes[-1]["data"]
    assert (last["before"], last["after"], last["hidden"]) == (7, 3, 4)  # type: ignore[index,call-overload]


async def test_a_history_that_ends_in_a_call_without_result_is_mended_before_it_goes_on() -> None:
    """Case D03."""
    lost: list[Message] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "search", "arguments": {}}]},
    ]
    llm = Recorder("hello again")
    await react(llm, task="hi", history=lost)
    assert [message["role"] for message in llm.asked[0]] == ["user", "assistant", "tool", "user"]
    assert llm.asked[0][2]["tool_call_id"] == "c1"
    assert "interrupted" in str(llm.asked[0][2]["content"])
    assert len(lost) == 2


async def test_a_question_in_a_tool_parks_the_turn_and_the_other_results_are_kept(tmp_path: Path) -> None:
    def count() -> str:
        with (tmp_path / "counted").open("a") as file:
            file.write("x")
        return "counted"

    async def pay(amount: int) -> str:
        return f"paid {amount}"

    registry = ToolRegistry().function(count).function(pay, side_effect="write")
    plan = build_react_plan(registry)
    llm = Recorder([ToolCall("count"), ToolCall("pay", {"amount": 5})], "done")
    scheduler = Scheduler(llm=llm, tools=registry)
    run = start_react_run(plan, "pay")
    await scheduler.drive(plan, run)
    assert run.state is RunState.SUSPENDED
    assert list(run.interrupts) == ["tools/pay"]
    run = await scheduler.resume(plan, run.run_id, {"approved": True, "amount": 4})
    assert run.final_output == "done"
    assert [m["content"] for m in llm.asked[1][-2:]] == ["counted", "paid 4"]
    assert (tmp_path / "counted").read_text() == "x"
