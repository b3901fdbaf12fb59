"""Layers that speak pydantic-ai: its prompts, user content and tools, and the history of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import ModelMessage, Tool
from pydantic_ai.messages import UserContent
from pydantic_ai.tools import SystemPromptFunc, ToolFuncEither
from typing_extensions import override

from playground.agenton.collections.layers.plain import ObjectLayer
from playground.agenton.layers import EmptyLayerConfig, LayerDeps, NoLayerDeps, PydanticAILayer

ItemT = TypeVar("ItemT")
ObjectT = TypeVar("ObjectT")


class PydanticAIBridgeLayerDeps(LayerDeps, Generic[ObjectT]):
    """The object behind `RunContext.deps`."""

    object_layer: ObjectLayer[ObjectT]


@dataclass(slots=True)
class PydanticAIBridgeLayer(PydanticAILayer[PydanticAIBridgeLayerDeps[ObjectT], ObjectT], Generic[ObjectT]):
    """Brings prompts and tools written for pydantic-ai into a graph.

    Make it with `LayerProvider.from_factory`.  Each of `prefix`, `user` and `suffix` is one item or several.
    """

    prefix: str | SystemPromptFunc[ObjectT] | Sequence[str | SystemPromptFunc[ObjectT]] = ()
    user: UserContent | Sequence[UserContent] = ()
    suffix: str | SystemPromptFunc[ObjectT] | Sequence[str | SystemPromptFunc[ObjectT]] = ()
    tool_entries: Sequence[Tool[ObjectT] | ToolFuncEither[ObjectT, ...]] = ()

    @property
    def run_deps(self) -> ObjectT:
        """What to pass as `deps` when the agent runs."""
        return self.deps.object_layer.value

    @property
    @override
    def prefix_prompts(self) -> list[str | SystemPromptFunc[ObjectT]]:
        return _several(self.prefix)

    @property
    @override
    def suffix_prompts(self) -> list[str | SystemPromptFunc[ObjectT]]:
        return _several(self.suffix)

    @property
    @override
    def user_prompts(self) -> list[UserContent]:
        return _several(self.user)

    @property
    @override
    def tools(self) -> list[Tool[ObjectT] | ToolFuncEither[ObjectT, ...]]:
        return list(self.tool_entries)


class PydanticAIHistoryRuntimeState(BaseModel):
    """The messages of a conversation, oldest first."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    messages: list[ModelMessage] = Field(default_factory=list)


@dataclass(slots=True)
class PydanticAIHistoryLayer(
    PydanticAILayer[NoLayerDeps, None, EmptyLayerConfig, PydanticAIHistoryRuntimeState]
):
    """Remembers a conversation over a pause; it contributes no prompt and no tool.

    Pass `message_history` to the agent's run, and afterwards its `all_messages()` to `replace_messages`.
    """

    type_id = "pydantic_ai.history"

    @property
    def message_history(self) -> list[ModelMessage]:
        """The messages so far, in a list of the caller's own."""
        return list(self.runtime_state.messages)

    def replace_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Remember exactly these messages."""
        self.runtime_state.messages = list(messages)

    def append_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Remember these messages after those so far."""
        self.replace_messages([*self.runtime_state.messages, *messages])

    def clear(self) -> None:
        """Forget the conversation."""
        self.replace_messages([])


def _several(items: ItemT | Sequence[ItemT]) -> list[ItemT]:
    if isinstance(items, Sequence) and not isinstance(items, str):
        return list(items)
    return [items]
