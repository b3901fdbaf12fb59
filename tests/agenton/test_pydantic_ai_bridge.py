"""A graph of layers behind a real pydantic-ai agent, in this process and over two."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from layer_probes import factory
from pydantic_ai import Agent, ModelMessage, RunContext, Tool
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.test import TestModel

from playground.agenton.collections.layers.plain import (
    DynamicToolsLayer,
    ObjectLayer,
    PromptLayer,
    PromptLayerConfig,
    ToolsLayer,
    with_object,
)
from playground.agenton.collections.layers.pydantic_ai import PydanticAIBridgeLayer, PydanticAIHistoryLayer
from playground.agenton.collections.transformers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS
from playground.agenton.compositor import Compositor, Contribution, LayerNode
from playground.agenton.layers import LifecycleState, NoLayerDeps, PlainLayer

TURN = Path(__file__).with_name("agent_turn.py")
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Profile:
    name: str


def about(ctx: RunContext[Profile]) -> str:
    return f"The user is {ctx.deps.name}."


def tagline(ctx: RunContext[Profile], topic: str) -> str:
    return f"{ctx.deps.name} on {topic}"


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


@with_object(Profile)
def sign(profile: Profile, text: str) -> str:
    return f"{text} ({profile.name})"


def bridge() -> PydanticAIBridgeLayer[Profile]:
    return PydanticAIBridgeLayer(
        prefix=["Be kind.", about],
        user="Use the tools.",
        suffix="Be brief.",
        tool_entries=[tagline, Tool(about, name="who")],
    )


compositor = Compositor(
    [
        LayerNode("base", PromptLayer),
        LayerNode("profile", factory(ObjectLayer, lambda: ObjectLayer(Profile("Ada")))),
        LayerNode("tools", factory(ToolsLayer, lambda: ToolsLayer([count_words]))),
        LayerNode("bridge", factory(PydanticAIBridgeLayer, bridge), deps={"object_layer": "profile"}),
        LayerNode(
            "dynamic",
            factory(DynamicToolsLayer, lambda: DynamicToolsLayer([sign])),
            deps={"object_layer": "profile"},
        ),
        LayerNode("history", PydanticAIHistoryLayer),
    ],
    **PYDANTIC_AI_TRANSFORMERS,
)
CONFIGS = {"base": PromptLayerConfig(prefix="Be correct.", user="Tell me.", suffix="Mind the rules.")}


async def test_a_composed_graph_is_what_a_pydantic_ai_agent_takes() -> None:
    async with compositor.enter(configs=CONFIGS) as run:
        agent = Agent(TestModel(), deps_type=Profile, instructions=run.prompts, tools=run.tools)
        result = await agent.run(
            run.user_prompts, deps=run.get_layer("bridge", PydanticAIBridgeLayer[Profile]).run_deps
        )
    request, *_ = result.all_messages()
    assert isinstance(request, ModelRequest)
    assert (request.instructions or "").split("\n\n") == [
        *["Be correct.", "Be kind.", "The user is Ada."],
        *["Be brief.", "Mind the rules."],
    ]
    assert request.parts[0].content == ["Tell me.", "Use the tools."]
    assert json.loads(result.output) == {
        "count_words": 1,
        "tagline": "Ada on a",
        "who": "The user is Ada.",
        "sign": "a (Ada)",
    }


async def test_prompts_also_serve_as_system_prompt_functions() -> None:
    async with compositor.enter(configs=CONFIGS) as run:
        agent: Agent[Profile, str] = Agent(TestModel(call_tools=[]), deps_type=Profile)
        for prompt in run.prompts:
            agent.system_prompt(prompt)
        result = await agent.run("hello", deps=Profile("Ada"))
    parts = [part.content for part in result.all_messages()[0].parts]
    assert parts == [
        *["Be correct.", "Be kind.", "The user is Ada."],
        *["Be brief.", "Mind the rules.", "hello"],
    ]


def test_a_tool_is_described_by_its_annotations_and_docstring() -> None:
    tool = compositor.enter().tools[0]
    assert (tool.name, tool.description) == ("count_words", "Count the words of a text.")
    assert tool.tool_def.parameters_json_schema["properties"] == {"text": {"type": "string"}}


def test_an_explanation_names_functions_and_tools_of_pydantic_ai() -> None:
    explained = compositor.enter(configs=CONFIGS).explain()
    assert Contribution("bridge", "prefix_prompts", "pydantic_ai", "about") in explained.prompts
    assert [part.text for part in explained.tools] == ["count_words", "tagline", "who", "sign"]


class StrangeLayer(PlainLayer[NoLayerDeps]):
    """A family that no transformer knows."""

    @property
    def prefix_prompts(self) -> list[str]:
        return ["hello"]

    @property
    def user_prompts(self) -> list[str]:
        return ["hello"]

    @property
    def tools(self) -> list[Any]:
        return [print]

    def wrap_prompt(self, prompt: str) -> Any:
        return prompt

    wrap_user_prompt = wrap_tool = wrap_prompt


@pytest.mark.parametrize(
    ("surface", "named"), [("prompts", "prompt"), ("user_prompts", "user prompt"), ("tools", "tool")]
)
def test_an_item_of_an_unknown_family_is_refused_by_kind(surface: str, named: str) -> None:
    run = Compositor([LayerNode("strange", StrangeLayer)], **PYDANTIC_AI_TRANSFORMERS).enter()
    with pytest.raises(TypeError, match=f"a {named} of kind '.*' means nothing to pydantic-ai"):
        getattr(run, surface)


# The history of a conversation.


def messages() -> list[ModelMessage]:
    return [
        ModelRequest(parts=[UserPromptPart(content="Hello")]),
        ModelResponse(parts=[TextPart(content="Hi there")]),
    ]


def test_a_history_starts_empty_and_gives_no_prompt_and_no_tool() -> None:
    run = Compositor([LayerNode("history", PydanticAIHistoryLayer)]).enter()
    assert run.get_layer("history", PydanticAIHistoryLayer).message_history == []
    assert (run.prompts, run.user_prompts, run.tools) == ([], [], [])


def test_a_history_replaces_appends_and_clears() -> None:
    layer = PydanticAIHistoryLayer()
    first, second = messages()
    layer.replace_messages([first])
    layer.append_messages([second])
    assert layer.message_history == [first, second]
    layer.clear()
    assert layer.message_history == []


def test_the_lists_that_go_in_and_come_out_are_the_callers_own() -> None:
    layer, given = PydanticAIHistoryLayer(), messages()
    layer.replace_messages(given)
    given.clear()
    layer.message_history.clear()
    assert len(layer.message_history) == 2


async def test_a_history_survives_the_snapshot_as_messages() -> None:
    plain = Compositor([LayerNode("history", PydanticAIHistoryLayer)])
    said = messages()
    async with plain.enter() as run:
        run.get_layer("history", PydanticAIHistoryLayer).replace_messages(said)
        run.suspend_on_exit()
    assert run.slots["history"].lifecycle_state is LifecycleState.SUSPENDED
    stored = json.loads(run.session_snapshot.model_dump_json()) if run.session_snapshot else None
    async with plain.enter(session_snapshot=stored) as resumed:
        assert resumed.get_layer("history", PydanticAIHistoryLayer).message_history == said


def turn(question: str, snapshot: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(TURN), question, str(snapshot)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_an_agent_suspends_and_goes_on_in_another_process_with_its_history(tmp_path: Path) -> None:
    snapshot = tmp_path / "session.json"
    first, second = turn("What is a layer?", snapshot), turn("And a graph?", snapshot)
    assert first["pid"] != second["pid"]
    assert (first["entered"], second["entered"]) == ("create", "resume")
    assert first["asked"] == ["What is a layer?"]
    assert second["asked"] == ["What is a layer?", "And a graph?"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["turns"] == 2
