"""The facade: every name that a program or a scenario needs, in one place."""

from __future__ import annotations

from playground.kernel import (
    END,
    Bus,
    ChildSpec,
    FnBody,
    Goto,
    Interrupt,
    JsonValue,
    LlmReply,
    Message,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Reset,
    RetryPolicy,
    Run,
    RunState,
    Scheduler,
    Send,
    ToolCall,
    ToolResult,
    add,
    append,
    last,
    merge,
)
from playground.runtime.agent import Agent
from playground.runtime.llm import ScriptedLlm
from playground.runtime.result import AgentResult, RunResult
from playground.runtime.scenario import Predict, Runnable, Scenario, ScenarioEnv, Step, Text
from playground.runtime.team import Team
from playground.runtime.tools import ToolRegistry, ToolSpec
from playground.runtime.workflow import Workflow, WorkflowResult, go, send, wait_human

__all__ = [
    "END",
    "Agent",
    "AgentResult",
    "Bus",
    "ChildSpec",
    "FnBody",
    "Goto",
    "Interrupt",
    "JsonValue",
    "LlmReply",
    "Message",
    "Node",
    "NodeContext",
    "Outcome",
    "Plan",
    "Predict",
    "Reset",
    "RetryPolicy",
    "Run",
    "RunResult",
    "RunState",
    "Runnable",
    "Scenario",
    "ScenarioEnv",
    "Scheduler",
    "ScriptedLlm",
    "Send",
    "Step",
    "Team",
    "Text",
    "ToolCall",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "Workflow",
    "WorkflowResult",
    "add",
    "append",
    "go",
    "last",
    "merge",
    "send",
    "wait_human",
]
