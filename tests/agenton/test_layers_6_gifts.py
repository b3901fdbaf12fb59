"""What layers give, in which order, wrapped and transformed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from layer_probes import (
    GREETING,
    GREETING_GRAPH,
    AloneLayer,
    Probe,
    factory,
)

from playground.agenton.compositor import (
    Compositor,
    LayerNode,
)
from playground.agenton.layers import (
    NoLayerDeps,
    PlainLayer,
    PlainPromptType,
    PlainToolType,
    PlainUserPromptType,
    PydanticAILayer,
    PydanticAIPromptType,
)


def shout(text: str) -> str:
    return text.upper()


def whisper(text: str) -> str:
    return text.lower()


@dataclass
class FullLayer(PlainLayer[NoLayerDeps]):
    name: str

    @property
    def prefix_prompts(self) -> list[str]:
        return [f"{self.name} prefix 1", f"{self.name} prefix 2"]

    @property
    def suffix_prompts(self) -> list[str]:
        return [f"{self.name} suffix 1", f"{self.name} suffix 2"]

    @property
    def user_prompts(self) -> list[str]:
        return [f"{self.name} user"]

    @property
    def tools(self) -> list[Any]:
        return [shout if self.name == "a" else whisper]


def full(name: str) -> LayerNode:
    return LayerNode(name, factory(FullLayer, lambda: FullLayer(name)))


async def test_a_layer_gives_nothing_unless_it_says_so() -> None:
    async with Compositor([LayerNode("alone", AloneLayer)]).enter() as run:
        assert (run.prompts, run.user_prompts, run.tools) == ([], [], [])


async def test_prefixes_come_in_graph_order_then_suffixes_in_reverse() -> None:
    async with Compositor([full("a"), full("b")]).enter() as run:
        assert [prompt.value for prompt in run.prompts] == [
            *["a prefix 1", "a prefix 2", "b prefix 1", "b prefix 2"],
            *["b suffix 1", "b suffix 2", "a suffix 1", "a suffix 2"],
        ]


async def test_user_prompts_and_tools_come_in_graph_order() -> None:
    async with Compositor([full("a"), full("b")]).enter() as run:
        assert [prompt.value for prompt in run.user_prompts] == ["a user", "b user"]
        assert [tool.value for tool in run.tools] == [shout, whisper]


async def test_every_item_is_wrapped_by_its_layer() -> None:
    async with Compositor([full("a")]).enter() as run:
        assert {type(item) for item in run.prompts} == {PlainPromptType}
        assert {type(item) for item in run.user_prompts} == {PlainUserPromptType}
        assert {type(item) for item in run.tools} == {PlainToolType}


async def test_transformers_get_the_wrapped_items_after_they_were_gathered() -> None:
    compositor = Compositor(
        [full("a"), full("b")],
        prompt_transformer=lambda prompts: [("prompt", prompt.value) for prompt in prompts[::4]],
        user_prompt_transformer=lambda prompts: [" + ".join(prompt.value for prompt in prompts)],
        tool_transformer=lambda tools: [tool.value.__name__ for tool in tools],
    )
    async with compositor.enter() as run:
        assert run.prompts == [("prompt", "a prefix 1"), ("prompt", "b suffix 1")]
        assert run.user_prompts == ["a user + b user"]
        assert run.tools == ["shout", "whisper"]


async def test_from_config_takes_the_same_transformers() -> None:
    compositor = Compositor.from_config(
        GREETING_GRAPH, providers=[GREETING], prompt_transformer=lambda prompts: [len(prompts)]
    )
    async with compositor.enter(configs={"greeting": {"prefix": "Hi"}}) as run:
        assert run.prompts == [1]


@dataclass
class ForeignLayer(PydanticAILayer[NoLayerDeps]):
    @property
    def prefix_prompts(self) -> list[Any]:
        return ["foreign"]


async def test_families_live_in_one_graph_and_are_told_apart_by_their_tags() -> None:
    async with Compositor([full("a"), LayerNode("foreign", ForeignLayer)]).enter() as run:
        assert run.prompts[2] == PydanticAIPromptType("foreign")
        assert [prompt.kind for prompt in run.prompts] == ["plain", "plain", "pydantic_ai", "plain", "plain"]
        assert run.prompts[2] != PlainPromptType("foreign")


def test_a_layer_is_found_by_name_and_checked_against_a_type() -> None:
    run = Compositor([full("a")]).enter()
    assert run.get_layer("a") is run.get_layer("a", FullLayer)
    with pytest.raises(KeyError, match="no layer 'z' in this run: it has 'a'"):
        run.get_layer("z")
    with pytest.raises(TypeError, match="'a' has the expected type Probe, got FullLayer"):
        run.get_layer("a", Probe)
