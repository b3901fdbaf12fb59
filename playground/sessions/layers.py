"""Layers that agents are made of: instruction, tools, memory, skills, context, model.

Each holds one thing and is typed by it.  `agent_of` puts the layers of one
entry together: prompts become the instruction, tools become tools, and the
layers that hold a model, a memory or a context strategy give it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from pydantic import Field
from typing_extensions import override

from playground.agenton.collections.layers.plain import ToolsLayer
from playground.agenton.layers import (
    AnyLayer,
    EmptyLayerConfig,
    EmptyRuntimeState,
    LayerConfig,
    NoLayerDeps,
    PlainLayer,
)
from playground.agenton.layers.types import PlainTool
from playground.kernel import LlmPort
from playground.runtime.agent import Agent
from playground.runtime.context import ContextStrategy
from playground.runtime.react import Recall
from playground.runtime.skills import SkillRegistry
from playground.sessions.layered import AnyRun

LayerT = TypeVar("LayerT", bound=AnyLayer)

__all__ = [
    "ContextLayer",
    "InstructionConfig",
    "InstructionLayer",
    "MemoryLayer",
    "ModelLayer",
    "SkillsLayer",
    "SkillsState",
    "ToolsLayer",
    "agent_of",
]


class InstructionConfig(LayerConfig):
    """What an agent is told to be."""

    text: str


@dataclass(slots=True)
class InstructionLayer(PlainLayer[NoLayerDeps, InstructionConfig]):
    """The instruction of an agent, first among its prompts."""

    type_id = "agent.instruction"

    text: str

    @classmethod
    @override
    def from_config(cls, config: InstructionConfig) -> Self:
        return cls(config.text)

    @property
    @override
    def prefix_prompts(self) -> list[str]:
        return [self.text]


@dataclass(slots=True)
class ModelLayer(PlainLayer[NoLayerDeps]):
    """The model that an agent thinks with: a script, or a service."""

    model: LlmPort


@dataclass(slots=True)
class MemoryLayer(PlainLayer[NoLayerDeps]):
    """What an agent knows from before, asked at the start of each run."""

    memory: Recall


@dataclass(slots=True)
class ContextLayer(PlainLayer[NoLayerDeps]):
    """What of a long conversation the model is shown."""

    context: ContextStrategy


class SkillsState(EmptyRuntimeState):
    """Which skills an agent has opened, in order: its prompts hold their bodies from then on."""

    opened: list[str] = Field(default_factory=list)


@dataclass(slots=True)
class SkillsLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, SkillsState]):
    """Skills by name and description; a body is shown once the agent opens it, also after a pause."""

    skills: SkillRegistry

    @property
    @override
    def prefix_prompts(self) -> list[str]:
        overview = self.skills.overview()
        opened = [
            self.skills.apply_to_system(self.skills.resolve(name)) for name in self.runtime_state.opened
        ]
        return [f"Skills you can open:\n{overview}", *filter(None, opened)] if overview else []

    @property
    @override
    def tools(self) -> Sequence[PlainTool]:
        return [self.open_skill]

    def open_skill(self, name: str) -> str:
        """Read the instructions of a skill."""
        text = self.skills.open_skill(name)
        if name not in self.runtime_state.opened:
            self.runtime_state.opened.append(name)
        return text


def agent_of(run: AnyRun, name: str) -> Agent:
    """The agent that the layers of one entry make together.

    Its prompts are gathered for each thought: what a layer has learnt meanwhile is in them, just as
    after a pause, when the layers are made anew from what they remember.

    Args:
        run: an entry of a compositor without transformers.
        name: the agent's name.
    """
    model, memory, context = (_first(run, kind) for kind in (ModelLayer, MemoryLayer, ContextLayer))
    return Agent(
        name,
        model=model.model if isinstance(model, ModelLayer) else None,
        instruction=lambda: "\n\n".join(str(prompt.value) for prompt in run.prompts),
        tools=[tool.value for tool in run.tools],
        memory=memory.memory if isinstance(memory, MemoryLayer) else None,
        context=context.context if isinstance(context, ContextLayer) else None,
    )


def _first(run: AnyRun, kind: type[LayerT]) -> LayerT | None:
    layers = (slot.layer for slot in run.slots.values())
    return next((layer for layer in layers if isinstance(layer, kind)), None)
