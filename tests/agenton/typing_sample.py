"""Not run: read by the type checker.  Every `assert_type` is a promise to whoever composes layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

from pydantic import BaseModel
from pydantic_ai import RunContext, Tool
from pydantic_ai.messages import UserContent
from pydantic_ai.tools import SystemPromptFunc

from playground.agenton.collections.layers.plain import (
    DynamicToolsLayer,
    ObjectLayer,
    PromptLayer,
    ToolsLayer,
    with_object,
)
from playground.agenton.collections.layers.pydantic_ai import PydanticAIBridgeLayer, PydanticAIHistoryLayer
from playground.agenton.collections.transformers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS
from playground.agenton.compositor import Compositor, CompositorConfig, LayerNode, LayerProvider
from playground.agenton.layers import (
    AnyLayer,
    LayerConfig,
    LayerDeps,
    NoLayerDeps,
    PlainLayer,
    PlainPromptType,
    PlainToolType,
    PlainUserPromptType,
)


class MyConfig(LayerConfig):
    step: int = 1


class MyState(BaseModel):
    count: int = 0


class Profile:
    name: str


class MyDeps(LayerDeps):
    profile: ObjectLayer[Profile]
    prompt: PromptLayer | None


@dataclass
class MyLayer(PlainLayer[MyDeps, MyConfig, MyState]):
    def uses_its_schemas(self) -> None:
        assert_type(self.deps.profile.value.name, str)
        assert_type(self.deps.prompt, PromptLayer | None)
        assert_type(self.config.step, int)
        assert_type(self.runtime_state, MyState)
        self.runtime_state = MyState(count=2)
        self.runtime_state.count += 1
        self.runtime_state.count = "two"  # type: ignore[assignment]


class Alone(PlainLayer[NoLayerDeps]): ...


@with_object(Profile)
def greet(profile: Profile, word: str) -> str:
    return f"{word}, {profile.name}"


def about(ctx: RunContext[Profile]) -> str:
    return ctx.deps.name


nodes = [
    LayerNode("prompt", PromptLayer),
    LayerNode(
        "profile",
        LayerProvider.from_factory(layer_type=ObjectLayer, create=lambda _config: ObjectLayer(Profile())),
    ),
    LayerNode("mine", MyLayer, deps={"profile": "profile"}),
]


async def a_plain_graph_needs_no_cast() -> None:
    async with Compositor(nodes).enter(configs={"mine": MyConfig(step=2)}) as run:
        assert_type(run.get_layer("mine", MyLayer), MyLayer)
        assert_type(run.get_layer("mine", MyLayer).runtime_state.count, int)
        assert_type(run.get_layer("mine"), AnyLayer)
        assert_type(run.get_layer("profile", ObjectLayer[Profile]).value, Profile)
        assert_type(run.prompts, list[PlainPromptType])
        assert_type(run.prompts[0].value, str)
        assert_type(run.user_prompts, list[PlainUserPromptType])
        assert_type(run.tools, list[PlainToolType])
        assert_type(run.tools[0].value, Callable[..., object])
        run.get_layer("mine", MyLayer).runtime_state.cuont = 1  # type: ignore[attr-defined]
        run.get_layer("mine", str)  # type: ignore[type-var]


async def so_does_a_graph_from_a_document() -> None:
    compositor = Compositor.from_config(
        CompositorConfig(layers=[]), providers=[LayerProvider.from_layer_type(PromptLayer)]
    )
    async with compositor.enter() as run:
        assert_type(run.prompts, list[PlainPromptType])


async def a_mixed_graph_is_what_its_transformers_make_of_it() -> None:
    compositor = Compositor(
        [
            *nodes,
            LayerNode(
                "tools",
                LayerProvider.from_factory(layer_type=ToolsLayer, create=lambda _config: ToolsLayer([])),
            ),
            LayerNode(
                "dynamic",
                LayerProvider.from_factory(
                    layer_type=DynamicToolsLayer, create=lambda _config: DynamicToolsLayer([greet])
                ),
            ),
            LayerNode(
                "bridge",
                LayerProvider.from_factory(
                    layer_type=PydanticAIBridgeLayer,
                    create=lambda _config: PydanticAIBridgeLayer[Profile](prefix=["Be kind.", about]),
                ),
                deps={"object_layer": "profile"},
            ),
            LayerNode("history", PydanticAIHistoryLayer),
        ],
        **PYDANTIC_AI_TRANSFORMERS,
    )
    async with compositor.enter() as run:
        assert_type(run.prompts, list[SystemPromptFunc[Any]])
        assert_type(run.user_prompts, list[UserContent])
        assert_type(run.tools, list[Tool[Any]])
        assert_type(run.get_layer("bridge", PydanticAIBridgeLayer[Profile]).run_deps, Profile)


def a_layer_of_no_family_is_refused() -> None:
    LayerNode("wrong", Profile)  # type: ignore[arg-type]
    greet(Profile(), 3)  # type: ignore[arg-type]
