"""Agent: a model, its tools and its teammates, ready to run.

This is a facade: all it does is build a ReAct plan and hand it to a scheduler.
An agent is stateless; a conversation is what its caller holds.  The same object
can therefore be run by itself, be a node of a workflow, a teammate of another
agent or the spec of `ctx.spawn`: in those places it is a child run with its own
model and tools, linked to the run that called it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol, Self

from playground.kernel.body import NodeContext
from playground.kernel.bus import Bus
from playground.kernel.eventlog import CheckpointStore, EventLog, InMemoryEventLog, InMemoryStore
from playground.kernel.graph import Plan
from playground.kernel.ports import ChildSpec, LlmPort, Message
from playground.kernel.scheduler import Scheduler
from playground.kernel.types import RunState
from playground.kernel.values import JsonValue
from playground.runtime.context import ContextStrategy
from playground.runtime.multiagent import register_agent_tool
from playground.runtime.parts import Tool, add_tool, checked_model
from playground.runtime.react import (
    MAX_TURNS,
    Recall,
    build_react_plan,
    conversation,
    next_turn,
    start_react_run,
    waves_for,
)
from playground.runtime.result import AgentResult
from playground.runtime.tools import SideEffect, ToolRegistry


class Teammate(Protocol):
    """Who can be called by name: an agent, or a workflow."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    def child_spec(self) -> ChildSpec: ...


class Agent:
    """An agent that thinks with its model and acts through tools and teammates.

    Args:
        name: who it is: the name of its child runs, and of the tool that calls it as a teammate.
        model: what it thinks with; as a child run without one of its own, it uses its caller's.
        instruction: the system prompt; a function makes it anew for each thought.
        description: what it can do, for whoever delegates to it; the instruction by default.
        tools: functions or `ToolSpec`s that its model may call.
        teammates: agents (or workflows with a name) that its model may call and that return.
        context: chooses what of a long conversation the model is shown.
        memory: asked at the start of each run for what is known.
        registry: tools that are already together; `tools` and `teammates` are added to it.
        bus: where events are told; its own by default.
        store: where checkpoints are kept; in memory by default.
        eventlog: where the truth is kept; in memory by default.
        max_turns: model calls in one run, after which it fails with a sentence.
        write_needs_approval: whether a tool that changes things waits for consent.

    Raises:
        ValueError: two tools or teammates have one name, or `max_turns` is below 1.
        TypeError: a tool's parameters cannot be described, or `model` is no model.
    """

    def __init__(
        self,
        name: str,
        *,
        model: LlmPort | None = None,
        instruction: str | Callable[[], str] = "",
        description: str = "",
        tools: Iterable[Tool] = (),
        teammates: Iterable[Teammate] = (),
        context: ContextStrategy | None = None,
        memory: Recall | None = None,
        registry: ToolRegistry | None = None,
        bus: Bus | None = None,
        store: CheckpointStore | None = None,
        eventlog: EventLog | None = None,
        max_turns: int = MAX_TURNS,
        write_needs_approval: bool = True,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"agent {name!r} has max_turns={max_turns}: it needs at least one to answer")
        self.name = name
        self.model = checked_model(model, f"agent {name!r}")
        self.instruction = instruction
        self.description = description or (instruction if isinstance(instruction, str) else "")
        self.bus = bus if bus is not None else Bus()
        self.store: CheckpointStore = store if store is not None else InMemoryStore()
        self.eventlog: EventLog = eventlog if eventlog is not None else InMemoryEventLog()
        self.context = context
        self.memory = memory
        self.max_turns = max_turns
        self.registry = registry if registry is not None else ToolRegistry()
        if self.registry.bus is None:
            self.registry.bus = self.bus
        if not write_needs_approval:
            self.registry.write_needs_approval = False
        for tool in tools:
            self.add_tool(tool)
        for mate in teammates:
            register_agent_tool(self.registry, mate.name, mate, mate.description)
        self.plan = self.plan_with()

    def add_tool(self, tool: Tool, *, side_effect: SideEffect = "read") -> Self:
        """Give it one more tool.

        Args:
            side_effect: "write" for a function that changes things and needs consent; a spec brings its own.
        """
        add_tool(self.registry, tool, side_effect)
        return self

    def plan_with(self, handovers: Mapping[str, str] | None = None) -> Plan:
        """The plan of this agent, with ways to hand the conversation over; see `build_react_plan`."""
        return build_react_plan(
            self.registry,
            system=self.instruction,
            context=self.context,
            memory=self.memory,
            max_turns=self.max_turns,
            handovers=handovers,
        )

    def child_spec(self) -> ChildSpec:
        """What it takes to run this agent, by itself or inside another run."""
        return ChildSpec(
            self.plan,
            name=self.name,
            llm=self.model,
            tools=self.registry,
            max_waves=waves_for(self.max_turns),
            shared=conversation,
            next_turn=next_turn,
        )

    async def run(self, task: str, *, history: Sequence[Message] | None = None) -> AgentResult:
        """Work on a task until there is an answer, a question to a person, or a failure.

        Args:
            history: the messages of a conversation to go on with.
        """
        run = start_react_run(self.plan, task, history)
        await self._scheduler.drive(self.plan, run)
        return AgentResult.of(run)

    async def resume(self, run_id: str, value: object = None) -> AgentResult:
        """Answer what a run of this agent waits for, and go on.

        Args:
            value: the answer, or answers by interrupt id.

        Raises:
            KeyError, NotSuspended, AlreadyAnswered, Expired: see `Scheduler.resume`.
        """
        return AgentResult.of(await self._scheduler.resume(self.plan, run_id, value))

    async def delegate(self, task: str, ctx: NodeContext | None = None) -> JsonValue:
        """Call this agent and get its answer.

        Args:
            ctx: the context of the node that calls: the agent is then a child of that run.
                Without it, the agent runs by itself.

        Raises:
            RuntimeError: it failed, or, by itself, it waits for a person.
        """
        if ctx is not None:
            return (await ctx.spawn(self, task))["output"]
        result = await self.run(task)
        if result.status is not RunState.COMPLETED:
            raise RuntimeError(
                f"agent {self.name!r} is {result.status} in run {result.run_id}: "
                f"{result.output or 'pass ctx, so that its questions reach the run that calls it'}"
            )
        return result.output

    @cached_property
    def _scheduler(self) -> Scheduler:
        return Scheduler(
            llm=self.model,
            tools=self.registry,
            bus=self.bus,
            eventlog=self.eventlog,
            store=self.store,
            max_waves=waves_for(self.max_turns),
        )
