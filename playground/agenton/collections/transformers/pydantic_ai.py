"""Transformers that turn a graph of plain and pydantic-ai layers into what a pydantic-ai `Agent` takes.

compositor = Compositor(nodes, **PYDANTIC_AI_TRANSFORMERS)
async with compositor.enter() as run:
    agent = Agent(model, instructions=run.prompts, tools=run.tools)
    result = await agent.run(run.user_prompts)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from pydantic_ai import Tool
from pydantic_ai.messages import UserContent
from pydantic_ai.tools import SystemPromptFunc

from playground.agenton.layers import (
    PlainPromptType,
    PlainToolType,
    PlainUserPromptType,
    PydanticAIPromptType,
    PydanticAIToolType,
    PydanticAIUserPromptType,
)


def as_system_prompts(items: Sequence[object]) -> list[SystemPromptFunc[Any]]:
    """System prompt functions; text becomes a function that returns it."""
    return [_system_prompt(item) for item in items]


def _system_prompt(item: object) -> SystemPromptFunc[Any]:
    match item:
        case PlainPromptType() | PydanticAIPromptType():
            prompt = item.value
            return (lambda: prompt) if isinstance(prompt, str) else prompt
    raise _foreign("prompt", item)


def as_user_content(items: Sequence[object]) -> list[UserContent]:
    """Pieces of user content; text is one."""
    return [_user_content(item) for item in items]


def _user_content(item: object) -> UserContent:
    match item:
        case PlainUserPromptType() | PydanticAIUserPromptType():
            return item.value
    raise _foreign("user prompt", item)


def as_tools(items: Sequence[object]) -> list[Tool[Any]]:
    """Tools; a callable becomes one, described by its annotations and docstring."""
    return [_tool(item) for item in items]


def _tool(item: object) -> Tool[Any]:
    match item:
        case PlainToolType() | PydanticAIToolType():
            return item.value if isinstance(item.value, Tool) else Tool(item.value)
    raise _foreign("tool", item)


def _foreign(surface: str, item: object) -> TypeError:
    kind = getattr(item, "kind", type(item).__name__)
    return TypeError(
        f"a {surface} of kind {kind!r} means nothing to pydantic-ai: "
        "derive its layer from PlainLayer or PydanticAILayer, or write a transformer for it"
    )


class PydanticAITransformers(TypedDict):
    """The three transformer arguments of `Compositor`."""

    prompt_transformer: Callable[[Sequence[object]], list[SystemPromptFunc[Any]]]
    user_prompt_transformer: Callable[[Sequence[object]], list[UserContent]]
    tool_transformer: Callable[[Sequence[object]], list[Tool[Any]]]


PYDANTIC_AI_TRANSFORMERS: PydanticAITransformers = {
    "prompt_transformer": as_system_prompts,
    "user_prompt_transformer": as_user_content,
    "tool_transformer": as_tools,
}
"""Pass as `Compositor(nodes, **PYDANTIC_AI_TRANSFORMERS)`."""
