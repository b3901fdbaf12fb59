"""The kernel: waves, channels, commands, interrupts, and a log that is the run.

Standard library only.  It knows no model, no tool, no web and no mode.  Read it
in this order: values, types, command, channels, readiness, graph, run, body,
eventlog, bus, ports, breakpoints, tree, driver, scheduler, replay.
"""

# fmt: off
from playground.kernel.body import (
    FnBody,
    Host,
    LLMBody,
    NodeBody,
    NodeContext,
    Outcome,
    Parked,
    SubPlanBody,
    ToolBody,
    coerce_outcome,
)
from playground.kernel.breakpoints import Breakpoint, parse_breakpoints
from playground.kernel.bus import BlockingResult, Bus, Subscription
from playground.kernel.channels import AmbiguousWrite, Channel, Reset, WaveWrites, add, append, last, merge
from playground.kernel.command import END, Command, Goto, Send
from playground.kernel.eventlog import (
    CheckpointStore,
    Event,
    EventLog,
    InMemoryEventLog,
    InMemoryStore,
    LogConflict,
    LogError,
    VersionConflict,
    check_run_id,
    root_of,
)
from playground.kernel.graph import Edge, Node, Plan, RetryPolicy
from playground.kernel.ports import (
    ChildSpec,
    LlmPort,
    LlmReply,
    Message,
    ModelError,
    OnDelta,
    Spawnable,
    SubagentPort,
    ToolPort,
    TurnAware,
)
from playground.kernel.readiness import PredicateError, Reason
from playground.kernel.replay import apply_event, fold_events, replay
from playground.kernel.run import Activation, Interrupt, NodeState, Run
from playground.kernel.scheduler import (
    AlreadyAnswered,
    ChildFailed,
    Expired,
    InProcessActivator,
    NoSuchInterrupt,
    NotSuspended,
    Scheduler,
)
from playground.kernel.types import NodeStatus, RunState, ToolCall, ToolResult
from playground.kernel.values import JsonObject, JsonValue, NotJson, freeze, thaw

__all__ = [
    "END", "Activation", "AlreadyAnswered", "AmbiguousWrite", "BlockingResult", "Breakpoint", "Bus",
    "Channel", "CheckpointStore", "ChildFailed", "ChildSpec", "Command", "Edge", "Event", "EventLog",
    "Expired", "FnBody", "Goto", "Host", "InMemoryEventLog", "InMemoryStore", "InProcessActivator",
    "Interrupt", "JsonObject", "JsonValue", "LLMBody", "LlmPort", "LlmReply", "LogConflict", "LogError",
    "Message", "ModelError", "NoSuchInterrupt", "Node", "NodeBody", "NodeContext", "NodeState",
    "NodeStatus", "NotJson", "NotSuspended", "OnDelta", "Outcome", "Parked", "Plan", "PredicateError",
    "Reason", "Reset", "RetryPolicy", "Run", "RunState", "Scheduler", "Send", "Spawnable", "SubPlanBody",
    "SubagentPort", "Subscription", "ToolBody", "ToolCall", "ToolPort", "ToolResult", "TurnAware",
    "VersionConflict", "WaveWrites", "add", "append", "apply_event", "check_run_id", "coerce_outcome",
    "fold_events", "freeze", "last", "merge", "parse_breakpoints", "replay", "root_of", "thaw",
]
# fmt: on
