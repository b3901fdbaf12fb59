"""Team: agents that hand a conversation to one another; a transfer does not return, and it sticks.

One script plays all members: what is said next follows from how much was said before.
"""

from __future__ import annotations

import pytest

from playground import Agent, JsonValue, ScriptedLlm, Team, ToolCall
from playground.kernel import InMemoryEventLog, InMemoryStore
from tests.runtime.test_react import Recorder


def to(name: str, summary: str = "please") -> ToolCall:
    return ToolCall(f"transfer_to_{name}", {"summary": summary})


def pair(*script: object, **options: object) -> Team:
    llm = Recorder(*script)  # type: ignore[arg-type]
    return Team(Agent("desk", model=llm), Agent("expert", model=llm), **options)  # type: ignore[arg-type]


def results(messages: list[dict[str, JsonValue]]) -> list[JsonValue]:
    return [message["content"] for message in messages if message["role"] == "tool"]


async def test_the_first_agent_holds_a_new_conversation_and_may_just_answer() -> None:
    result = await pair("hello").run("hi")
    assert result.output == "hello"
    assert result.state["active"] == "desk"


async def test_a_transfer_goes_on_at_the_other_agent_with_the_whole_conversation() -> None:
    llm = Recorder(to("expert"), "when?")
    team = Team(Agent("desk", model=llm), Agent("expert", model=llm, instruction="You repair."))
    result = await team.run("repair my bike")
    assert result.output == "when?"
    assert llm.systems == [None, "You repair."]
    assert [message["role"] for message in llm.asked[1]] == ["user", "assistant", "tool"]
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "assistant"]


async def test_a_transfer_is_a_goto_with_the_summary_and_does_not_return() -> None:
    log = InMemoryEventLog()
    result = await pair(to("expert", "a bike"), "ok", eventlog=log).run("hi")
    gotos = [event.data for event in await log.events(result.run_id) if event.kind == "control"]
    assert [(goto["by"], goto["goto"], goto["payload"]) for goto in gotos] == [("desk", "expert", "a bike")]
    assert result.run.state_of("desk").attempts == 1


async def test_after_a_transfer_the_next_turn_goes_to_the_agent_that_took_over() -> None:
    """Case D44."""
    script = [to("expert"), "when?", "see you tomorrow"]
    first = await pair(*script).run("repair my bike")
    second = await pair(*script).run("tomorrow", after=first)
    assert (first.output, second.output) == ("when?", "see you tomorrow")
    assert second.run.status_of("desk") == "skipped"


async def test_after_a_call_the_next_turn_goes_back_to_the_caller() -> None:
    """Case D44."""

    def make() -> Team:
        helper = Agent("helper", model=ScriptedLlm(["it is a bike"]))
        llm = ScriptedLlm([ToolCall("helper", {"task": "?"}), "a bike", "yes?"])
        return Team(Agent("desk", model=llm, teammates=[helper]), Agent("expert", model=llm))

    first = await make().run("what is it?")
    second = await make().run("thanks", after=first)
    assert (first.state["active"], second.output) == ("desk", "yes?")


async def test_who_holds_the_conversation_is_told_by_the_spec_from_the_state_alone() -> None:
    team = pair(to("expert"), "when?")
    state = (await team.run("hi")).state
    goes_on = team.child_spec().next_turn
    assert goes_on is not None
    assert goes_on("tomorrow", state)["active"] == "expert"


async def test_each_call_of_a_turn_has_one_result_and_the_first_transfer_counts() -> None:
    """Case D10."""

    def add(a: int, b: int) -> int:
        return a + b

    llm = Recorder([ToolCall("add", {"a": 1, "b": 2}), to("two"), to("three")], "here")
    team = Team(Agent("one", model=llm, tools=[add]), Agent("two", model=llm), Agent("three", model=llm))
    result = await team.run("go")
    assert (result.output, result.state["active"]) == ("here", "two")
    assert results(result.messages) == ["3", "two takes over", "[tool error] ignored: two has taken over"]
    asked, *answered = llm.asked[1][1:]
    calls = [call["id"] for call in asked["tool_calls"]]  # type: ignore[index,union-attr,call-overload]
    assert [message["tool_call_id"] for message in answered] == calls


async def test_an_agent_is_offered_the_others_or_those_that_are_named() -> None:
    llm = Recorder("1")
    members = [Agent(name, model=llm) for name in ("one", "two", "three")]
    await Team(*members).run("go")
    await Team(*members, handovers={"one": ["two"]}).run("go")
    assert llm.tools == [["transfer_to_two", "transfer_to_three"], ["transfer_to_two"]]


async def test_agents_may_hand_back_and_forth_and_the_last_to_hold_it_answers() -> None:
    result = await pair(to("expert"), to("desk"), "done").run("go")
    assert (result.output, result.state["active"]) == ("done", "desk")
    assert result.run.state_of("desk").attempts == 2


async def test_agents_that_only_hand_over_are_stopped_by_the_waves_of_the_team() -> None:
    result = await pair(*[to("expert"), to("desk")] * 9, max_waves=9).run("go")
    assert result.status == "failed"
    assert "max waves 9" in str(result.output)


async def test_a_member_that_waits_parks_the_team_and_another_object_goes_on() -> None:
    log, store = InMemoryEventLog(), InMemoryStore()

    def scale(size: int) -> str:
        return f"size {size}"

    def make() -> Team:
        llm = ScriptedLlm([to("fixer"), ToolCall("scale", {"size": 9}), "fixed"])
        fixer = Agent("fixer", model=llm).add_tool(scale, side_effect="write")
        return Team(Agent("desk", model=llm), fixer, eventlog=log, store=store)

    waiting = await make().run("slow!")
    assert [question.id for question in waiting.interrupts] == ["fixer/tools/scale"]
    result = await make().resume(waiting.run_id, {"approved": True})
    assert result.output == "fixed"
    assert results(result.messages) == ["fixer takes over", "size 9"]


def test_a_team_of_nobody_namesakes_or_strangers_is_refused() -> None:
    with pytest.raises(ValueError, match="needs agents"):
        Team()
    with pytest.raises(ValueError, match="name of its own"):
        Team(Agent("a"), Agent("a"))
    with pytest.raises(ValueError, match="not in the team"):
        Team(Agent("a"), handovers={"a": ["b"]})


async def test_a_team_can_be_a_teammate() -> None:
    team = pair(to("expert"), "fixed", name="repairs")
    boss = Agent("boss", model=ScriptedLlm([ToolCall("repairs", {"task": "bike"}), "good"]), teammates=[team])
    assert results((await boss.run("go")).messages) == ["fixed"]


def test_the_drawing_of_a_team_has_no_transfer_until_one_happens() -> None:
    drawn = [(edge.source, edge.target) for edge in pair().plan.edges]
    assert drawn == [("turn", "desk"), ("desk", "final"), ("turn", "expert"), ("expert", "final")]
