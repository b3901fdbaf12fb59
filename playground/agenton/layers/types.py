"""Families: whose prompts and tools a layer speaks.

Items of different families meet in one graph.  So that none is taken for
another, each is wrapped into a small tagged value when it is gathered: `value`
is the item as the layer gave it, `kind` the name of its family.  A transformer
may then turn the mixture into what one agent library expects.

The pydantic-ai family is typed by that library and runs without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Never, Protocol, TypeAlias

from typing_extensions import TypeVar, override

from playground.agenton.layers.base import ConfigT, DepsT, Layer, RuntimeStateT

if TYPE_CHECKING:
    from pydantic_ai import Tool
    from pydantic_ai.messages import UserContent
    from pydantic_ai.tools import SystemPromptFunc, ToolFuncEither

ValueT_co = TypeVar("ValueT_co", covariant=True)
AgentDepsT = TypeVar("AgentDepsT", default=None)
PromptT_co = TypeVar("PromptT_co", covariant=True, default=object)
UserPromptT_co = TypeVar("UserPromptT_co", covariant=True, default=object)
ToolT_co = TypeVar("ToolT_co", covariant=True, default=object)

PlainTool: TypeAlias = Callable[..., object]
"""Any callable with a name and annotated parameters."""


class Family(Protocol[PromptT_co, UserPromptT_co, ToolT_co]):
    """What type checkers need to know of a layer: the tagged types that its items are wrapped into."""

    def wrap_prompt(self, prompt: Never, /) -> PromptT_co: ...

    def wrap_user_prompt(self, prompt: Never, /) -> UserPromptT_co: ...

    def wrap_tool(self, tool: Never, /) -> ToolT_co: ...


@dataclass(frozen=True, slots=True)
class Tagged(Generic[ValueT_co]):
    """An item that a layer contributed, with the family it belongs to."""

    value: ValueT_co
    kind: ClassVar[str]


class PlainPromptType(Tagged[str]):
    """A system prompt that is plain text."""

    kind: ClassVar[Literal["plain"]] = "plain"


class PlainUserPromptType(Tagged[str]):
    """A user prompt that is plain text."""

    kind: ClassVar[Literal["plain"]] = "plain"


class PlainToolType(Tagged[PlainTool]):
    """A tool that is a plain callable."""

    kind: ClassVar[Literal["plain"]] = "plain"


class PlainLayer(
    Layer[DepsT, str, str, PlainTool, ConfigT, RuntimeStateT],
    Generic[DepsT, ConfigT, RuntimeStateT],
):
    """A layer of text prompts and callable tools: `PlainLayer[Deps, Config, RuntimeState]`."""

    @override
    def wrap_prompt(self, prompt: str) -> PlainPromptType:
        return PlainPromptType(prompt)

    @override
    def wrap_user_prompt(self, prompt: str) -> PlainUserPromptType:
        return PlainUserPromptType(prompt)

    @override
    def wrap_tool(self, tool: PlainTool) -> PlainToolType:
        return PlainToolType(tool)


class PydanticAIPromptType(Tagged["str | SystemPromptFunc[AgentDepsT]"], Generic[AgentDepsT]):
    """A system prompt of pydantic-ai: text, or a function that may take the run context."""

    kind: ClassVar[Literal["pydantic_ai"]] = "pydantic_ai"


class PydanticAIUserPromptType(Tagged["UserContent"]):
    """A piece of user content of pydantic-ai."""

    kind: ClassVar[Literal["pydantic_ai"]] = "pydantic_ai"


class PydanticAIToolType(Tagged["Tool[AgentDepsT] | ToolFuncEither[AgentDepsT, ...]"], Generic[AgentDepsT]):
    """A tool of pydantic-ai: a `Tool`, or a function to make one from."""

    kind: ClassVar[Literal["pydantic_ai"]] = "pydantic_ai"


class PydanticAILayer(
    Layer[
        DepsT,
        "str | SystemPromptFunc[AgentDepsT]",
        "UserContent",
        "Tool[AgentDepsT] | ToolFuncEither[AgentDepsT, ...]",
        ConfigT,
        RuntimeStateT,
    ],
    Generic[DepsT, AgentDepsT, ConfigT, RuntimeStateT],
):
    """A layer in the terms of pydantic-ai: `PydanticAILayer[Deps, AgentDeps, Config, RuntimeState]`.

    `AgentDeps` is the type behind `RunContext.deps`.
    """

    @override
    def wrap_prompt(self, prompt: str | SystemPromptFunc[AgentDepsT]) -> PydanticAIPromptType[AgentDepsT]:
        return PydanticAIPromptType(prompt)

    @override
    def wrap_user_prompt(self, prompt: UserContent) -> PydanticAIUserPromptType:
        return PydanticAIUserPromptType(prompt)

    @override
    def wrap_tool(
        self, tool: Tool[AgentDepsT] | ToolFuncEither[AgentDepsT, ...]
    ) -> PydanticAIToolType[AgentDepsT]:
        return PydanticAIToolType(tool)


AllPromptTypes: TypeAlias = PlainPromptType | PydanticAIPromptType[Any]
AllUserPromptTypes: TypeAlias = PlainUserPromptType | PydanticAIUserPromptType
AllToolTypes: TypeAlias = PlainToolType | PydanticAIToolType[Any]
