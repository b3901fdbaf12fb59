"""Ports: what the engine needs of the world, as the smallest protocols that will do.

The kernel knows no vendor, no tool and no server.  Whoever composes a program
hands it objects of these shapes; a test hands it scripted ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from playground.kernel.types import ToolCall, ToolResult
from playground.kernel.values import JsonObject, JsonValue

if TYPE_CHECKING:
    from playground.kernel.body import NodeContext
    from playground.kernel.graph import Plan

Message: TypeAlias = JsonObject
"""A chat message: `role` and `content`; an assistant's may have `tool_calls`
(a list of `{"id", "name", "arguments"}`), a tool's has `name` and `tool_call_id`."""

OnDelta: TypeAlias = Callable[[str, str], Awaitable[None] | None]
"""Called with a piece of text and its kind, "content" or "reasoning", while a reply streams."""


@dataclass(frozen=True, slots=True)
class LlmReply:
    """A model's whole reply: text, tool calls, tokens used, and reasoning kept apart from the text."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = field(default_factory=tuple)
    tokens: int = 0
    reasoning: str = ""


class ModelError(RuntimeError):
    """A reply that was cut, lost or refused; it is never passed on as if it were whole.

    Attributes:
        asked: what was asked of which model, in a few words.
        status: the HTTP status where there was one.
        todo: what the user can do about it.
        partial: the text that had arrived.
    """

    def __init__(
        self, message: str, *, asked: str = "", status: int | None = None, todo: str = "", partial: str = ""
    ) -> None:
        super().__init__(message)
        self.asked = asked
        self.status = status
        self.todo = todo
        self.partial = partial


@runtime_checkable
class LlmPort(Protocol):
    """A chat model: messages in, one whole reply out."""

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, JsonValue]] | None = None,
        system: str | None = None,
        on_delta: OnDelta | None = None,
    ) -> LlmReply:
        """Ask once.

        Raises:
            ModelError: when no whole reply came.
        """
        ...


@runtime_checkable
class TurnAware(Protocol):
    """A model whose reply depends on which call of the run this is, as a scripted one's does.

    It must not count for itself: after a restart the count would begin again.
    """

    async def chat_at(
        self,
        turn: int,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, JsonValue]] | None = None,
        system: str | None = None,
        on_delta: OnDelta | None = None,
    ) -> LlmReply:
        """`LlmPort.chat`, told how many replies this run has had before."""
        ...


@runtime_checkable
class ToolPort(Protocol):
    """A set of tools that can be called by name."""

    async def dispatch(self, call: ToolCall, ctx: NodeContext | None = None) -> ToolResult:
        """Run one call; a tool's own failure is a failed result, not an exception."""
        ...


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What a child run is made of: its plan and, where it brings its own, its model and tools."""

    plan: Plan
    name: str = ""
    llm: LlmPort | None = None
    tools: ToolPort | None = None
    max_waves: int | None = None
    shared: Callable[[str], Mapping[str, object]] | None = None
    """Initial channel values made from the task, such as the first user message."""
    next_turn: Callable[[str, Mapping[str, JsonValue]], Mapping[str, object]] | None = None
    """The same for a task that goes on after a run which ended in the given state; None: none can."""


@runtime_checkable
class Spawnable(Protocol):
    """Anything that can be run as a child: an Agent, a Workflow."""

    def child_spec(self) -> ChildSpec:
        """The plan and the ports to run it with."""
        ...


class SubagentPort(Protocol):
    """Where child runs are run: in this process by default, elsewhere behind the same shape."""

    async def activate(
        self,
        spec: Plan | Spawnable | ChildSpec,
        task: str,
        ctx: NodeContext,
        payload: Mapping[str, object] | None = None,
    ) -> JsonObject:
        """Run `spec` on `task` to its end; see `NodeContext.spawn`.

        Returns:
            `{"run_id", "state", "output", "shared"}` of the child run.
        """
        ...
