"""The leaves: enums and values that every other part speaks of.

They are immutable and know nothing else of the kernel, so anyone may import
them.  States are closed sets: a run has four, a node has five, and which state
may follow which is one table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from playground.kernel.values import JsonValue


class NodeStatus(StrEnum):
    """Where one node, or one instance of a template, stands in a run."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it unless a command re-arms it."""
        return self is not NodeStatus.PENDING and self is not NodeStatus.RUNNING


class RunState(StrEnum):
    """Where a run stands: it has exactly four states in its life."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether the run is over for good."""
        return self is RunState.COMPLETED or self is RunState.FAILED


ALLOWED_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.RUNNING: frozenset({RunState.SUSPENDED, RunState.COMPLETED, RunState.FAILED}),
    RunState.SUSPENDED: frozenset({RunState.RUNNING, RunState.FAILED}),
    RunState.COMPLETED: frozenset(),
    RunState.FAILED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One request to run a tool.

    `call_id` derives from the activation that asks, so a repetition of the
    same decision carries the same id and a tool can tell it has done it before.
    `problem` says what is wrong with arguments that the model wrote and nobody
    could read; such a call is answered with it and never run.
    """

    name: str
    arguments: dict[str, JsonValue] = field(default_factory=dict)
    call_id: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a tool call; `error` says why when `ok` is False."""

    ok: bool
    output: JsonValue = None
    error: str = ""
    call_id: str = ""

    @classmethod
    def success(cls, output: JsonValue = None, call_id: str = "") -> ToolResult:
        """The call worked and gave `output`."""
        return cls(True, output, "", call_id)

    @classmethod
    def failure(cls, error: str, call_id: str = "") -> ToolResult:
        """The call did not work; `error` is written for whoever decides what to do next."""
        return cls(False, None, error, call_id)
