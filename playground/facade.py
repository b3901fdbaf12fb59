"""The facade: every name that a program or a scenario needs, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    NodeStatus,
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
from playground.runtime.context import SummarizingContext, TieredCompactionContext, WindowContext
from playground.runtime.llm import ScriptedLlm
from playground.runtime.mcp import InProcessMCPServer, StdioMCPClient, load_mcp_tools
from playground.runtime.memory import InMemoryMemory, StoredMemory
from playground.runtime.multiagent import (
    build_blackboard,
    build_pipeline,
    build_supervisor,
    register_agent_tool,
)
from playground.runtime.plan_first import build_plan_execute
from playground.runtime.react import build_react_plan, conversation, start_react_run
from playground.runtime.result import AgentResult, RunResult
from playground.runtime.scenario import Predict, Runnable, Scenario, ScenarioEnv, Step, Text
from playground.runtime.skills import Skill, SkillRegistry
from playground.runtime.team import Team
from playground.runtime.tools import ToolRegistry, ToolSpec
from playground.runtime.workflow import Workflow, WorkflowResult, go, send, wait_human

if TYPE_CHECKING:
    from playground.sessions.layered import Layered
    from playground.sessions.layers import ModelLayer, agent_of


def __getattr__(name: str) -> object:
    """The names for scenarios made of layers: only who asks for them loads the compositor."""
    if name in ("ModelLayer", "agent_of"):
        from playground.sessions import layers

        return getattr(layers, name)
    if name == "Layered":
        from playground.sessions.layered import Layered

        return Layered
    raise AttributeError(f"module 'playground' has no attribute {name!r}")


__all__ = [
    "END",
    "Agent",
    "AgentResult",
    "Bus",
    "ChildSpec",
    "FnBody",
    "Goto",
    "InMemoryMemory",
    "InProcessMCPServer",
    "Interrupt",
    "JsonValue",
    "Layered",
    "LlmReply",
    "Message",
    "ModelLayer",
    "Node",
    "NodeContext",
    "NodeStatus",
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
    "Skill",
    "SkillRegistry",
    "StdioMCPClient",
    "Step",
    "StoredMemory",
    "SummarizingContext",
    "Team",
    "Text",
    "TieredCompactionContext",
    "ToolCall",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "WindowContext",
    "Workflow",
    "WorkflowResult",
    "add",
    "agent_of",
    "append",
    "build_blackboard",
    "build_pipeline",
    "build_plan_execute",
    "build_react_plan",
    "build_supervisor",
    "conversation",
    "go",
    "last",
    "load_mcp_tools",
    "merge",
    "register_agent_tool",
    "send",
    "start_react_run",
    "wait_human",
]
