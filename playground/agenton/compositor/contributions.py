"""Who contributed what: the one order in which prompts and tools are gathered.

What an agent is given and what a page explains come from the same lists, so
the explanation cannot drift from the fact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from playground.agenton.layers import AnyLayer

Surface: TypeAlias = Literal["prefix_prompts", "suffix_prompts", "user_prompts", "tools"]


@dataclass(frozen=True, slots=True)
class Item:
    """A wrapped item with the node and the surface it came from."""

    layer: str
    surface: Surface
    wrapped: object


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one layer added to an agent, in words.

    Attributes:
        layer: the name of its node.
        surface: the property of the layer that gave it.
        kind: the family of the item, such as "plain".
        text: a prompt's text, or the name of a function or tool.
    """

    layer: str
    surface: Surface
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.layer}.{self.surface}: {self.text}"


@dataclass(frozen=True, slots=True)
class RunExplanation:
    """Which layer contributed which prompt, user prompt and tool, each in the order the agent gets them."""

    prompts: tuple[Contribution, ...]
    user_prompts: tuple[Contribution, ...]
    tools: tuple[Contribution, ...]


def prompts_of(layers: dict[str, AnyLayer]) -> list[Item]:
    """The system prompts: all prefixes in graph order, then all suffixes in reverse graph order."""
    prefixes = [
        Item(name, "prefix_prompts", layer.wrap_prompt(prompt))
        for name, layer in layers.items()
        for prompt in layer.prefix_prompts
    ]
    suffixes = [
        Item(name, "suffix_prompts", layer.wrap_prompt(prompt))
        for name, layer in reversed(layers.items())
        for prompt in layer.suffix_prompts
    ]
    return prefixes + suffixes


def user_prompts_of(layers: dict[str, AnyLayer]) -> list[Item]:
    """The pieces of the user's message, in graph order."""
    return [
        Item(name, "user_prompts", layer.wrap_user_prompt(prompt))
        for name, layer in layers.items()
        for prompt in layer.user_prompts
    ]


def tools_of(layers: dict[str, AnyLayer]) -> list[Item]:
    """The tools, in graph order."""
    return [
        Item(name, "tools", layer.wrap_tool(tool)) for name, layer in layers.items() for tool in layer.tools
    ]


def explanation(layers: dict[str, AnyLayer]) -> RunExplanation:
    """The same three lists, in words."""
    return RunExplanation(
        prompts=tuple(map(_in_words, prompts_of(layers))),
        user_prompts=tuple(map(_in_words, user_prompts_of(layers))),
        tools=tuple(map(_in_words, tools_of(layers))),
    )


def _in_words(item: Item) -> Contribution:
    kind = getattr(item.wrapped, "kind", type(item.wrapped).__name__)
    return Contribution(item.layer, item.surface, kind, _text(getattr(item.wrapped, "value", item.wrapped)))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)
