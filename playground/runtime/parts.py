"""What agents and drawings are made of: tools, bodies of nodes, and conditions with a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from playground.kernel.body import FnBody, NodeBody, SubPlanBody
from playground.kernel.graph import EdgePredicate, Plan
from playground.kernel.ports import ChildSpec, LlmPort, Spawnable
from playground.kernel.values import JsonValue
from playground.runtime.tools import SideEffect, ToolRegistry, ToolSpec

Child: TypeAlias = Plan | Spawnable | ChildSpec
"""What runs as a child: a plan, an agent, a workflow."""

Body: TypeAlias = NodeBody | Child | Callable[..., object]
"""What a node can be made of."""

State: TypeAlias = Mapping[str, JsonValue]
"""The shared state of a run, as a condition sees it."""

Tool: TypeAlias = ToolSpec | Callable[..., object]
"""A tool as it is given: a spec, or a function that describes itself."""


def checked_model(model: LlmPort | None, whose: str) -> LlmPort | None:
    """`model`, if it is one; a name of a model is none, and would be found out in the middle of a run.

    Raises:
        TypeError: it has no method `chat`.
    """
    if model is not None and not isinstance(model, LlmPort):
        raise TypeError(
            f"the model of {whose} is {model!r}, which cannot chat: "
            "give ScriptedLlm(...), OpenAICompatibleLlm(...) or another LlmPort"
        )
    return model


def add_tool(registry: ToolRegistry, tool: Tool, side_effect: SideEffect = "read") -> None:
    """Register a tool.

    Args:
        side_effect: "write" for a function that changes things; a spec brings its own.

    Raises:
        ValueError: there is a tool of that name.
        TypeError: the function's parameters cannot be described.
    """
    if isinstance(tool, ToolSpec):
        registry.add(tool)
    else:
        registry.function(tool, side_effect=side_effect)


def body_of(name: str, body: Body) -> NodeBody:
    """What `body` is as the body of node `name`.

    Raises:
        TypeError: it is nothing that can run.
    """
    if isinstance(body, Plan | Spawnable | ChildSpec):
        return SubPlanBody(body)
    if isinstance(body, NodeBody):
        return body
    if callable(body):
        return FnBody(body)
    raise TypeError(
        f"node {name!r} is a {type(body).__name__}, which cannot run: "
        "give a function, an agent, a workflow, a plan or a body"
    )


@dataclass(frozen=True, slots=True)
class Labelled:
    """A condition with a name that a drawing can show."""

    label: str
    holds: EdgePredicate

    def __call__(self, state: State) -> bool:
        return self.holds(state)


@dataclass(frozen=True, slots=True)
class Route:
    """One way out of a branch: taken while the decision is its label."""

    label: str
    decide: Callable[[State], object]

    def __call__(self, state: State) -> bool:
        return self.decide(state) == self.label
