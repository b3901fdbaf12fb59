"""Workflow: a flow that one can see, of functions and agents.

This is a facade over `Plan` and `Scheduler`.  A node is a function
`f(input, ctx)`, an agent, another workflow, a plan or a body.  What a function
returns is what it means: a value is its output, a dict is written to the state,
and three words steer:

    return go("review", draft)                          # go on there: a loop, a jump, a hand-over
    return [send("worker", item) for item in items]     # start so many of them, side by side
    return wait_human("Send it?", {"text": draft})      # wait for a person; then run again with the answer
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Self, cast

from playground.kernel.body import Outcome, task_text
from playground.kernel.bus import Bus
from playground.kernel.channels import Channel
from playground.kernel.eventlog import CheckpointStore, EventLog, InMemoryEventLog, InMemoryStore
from playground.kernel.graph import Edge, EdgePredicate, Join, Node, Plan, RetryPolicy
from playground.kernel.ports import ChildSpec, LlmPort, ToolPort
from playground.kernel.run import Run
from playground.kernel.scheduler import Scheduler
from playground.kernel.values import JsonObject, JsonValue
from playground.runtime.parts import Body, Labelled, Route, State, Tool, add_tool, body_of, checked_model
from playground.runtime.result import RunResult
from playground.runtime.tools import ToolRegistry

WorkflowResult = RunResult


def go(target: str, value: object = None, /, **delta: object) -> Outcome:
    """Go on at `target`, which gets `value` as its input this time; `delta` is written to the state."""
    return Outcome.goto(target, value, **delta)


def send(template: str, payload: object = None, key: str | None = None) -> Outcome:
    """Start one instance of a template; return a list of these to start several side by side.

    Args:
        key: name of the instance; the same key is the same instance.
    """
    return Outcome.send(template, payload, key)


def wait_human(
    question: str = "",
    payload: object = None,
    *,
    kind: str = "approval",
    schema: Mapping[str, object] | None = None,
    expires_in: float | None = None,
    default: object = None,
) -> Outcome:
    """Wait for a person.  The node then runs again from its top, with the answer in `ctx.resume_value`.

    Args:
        payload: what the question is about: what the person needs to see.
        kind: "approval" is answered by `{"approved": bool, …}`, "input" by any value.
        schema: JSON Schema that the answer, or the edited fields of an approval, must fit.
        expires_in: seconds after which `default` is the answer.
    """
    return Outcome.park(kind, payload, question, schema=schema, expires_in=expires_in, default=default)


class Workflow:
    """A flow of nodes, drawn by chained calls and then run.

    A key that a node writes and nobody declared becomes a channel that keeps the last value.

    Args:
        model: what `ctx.llm_chat` asks.
        tools: what `ctx.call_tool` calls: functions, or a registry.
        bus: where events are told; its own by default.
        store: where checkpoints are kept; in memory by default.
        eventlog: where the truth is kept; in memory by default.
        max_waves: how many waves a run may take, over all resumes.
        concurrency: how many bodies may run at once.
        name: who it is, as a child run or a teammate.
        description: what it can do, for whoever delegates to it.
    """

    def __init__(
        self,
        *,
        model: LlmPort | None = None,
        tools: ToolPort | Iterable[Tool] | None = None,
        bus: Bus | None = None,
        store: CheckpointStore | None = None,
        eventlog: EventLog | None = None,
        max_waves: int = 64,
        concurrency: int = 8,
        name: str = "",
        description: str = "",
    ) -> None:
        self.model = checked_model(model, "a workflow")
        self.bus = bus if bus is not None else Bus()
        self.tools = _port(tools, self.bus)
        self.store: CheckpointStore = store if store is not None else InMemoryStore()
        self.eventlog: EventLog = eventlog if eventlog is not None else InMemoryEventLog()
        self.max_waves = max_waves
        self.concurrency = concurrency
        self.name = name
        self.description = description
        self._channels: dict[str, Channel] = {}
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._entry: tuple[str, ...] = ()

    # Drawing.

    def channel(self, name: str, channel: Channel) -> Self:
        """Declare a piece of state and how writes to it are merged: `append()`, `add()`, `merge()`.

        Raises:
            TypeError: `channel` is none of these.
        """
        if not isinstance(channel, Channel):
            raise TypeError(f"channel {name!r} is {channel!r}: use append(), add(), merge() or last()")
        self._channels[name] = channel
        return self

    def add(
        self,
        name: str,
        body: Body,
        *,
        join: Join = "all",
        template: bool = False,
        terminal: bool = False,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
    ) -> Self:
        """Add a node.

        Args:
            body: what it does; an agent or a workflow runs as a child, with the node's input as its task.
            join, template, terminal, timeout, retry: see `Node`.

        Raises:
            TypeError: `body` is nothing that can run.
        """
        self._nodes.append(Node(name, body_of(name, body), join, template, terminal, timeout, retry))
        return self

    add_node = add

    def edge(
        self, source: str, target: str, *, when: EdgePredicate | None = None, label: str | None = None
    ) -> Self:
        """Draw an edge, live always or while `when(state)` is true.

        Args:
            label: what a drawing writes at it.
        """
        if when is not None and label is not None:
            when = Labelled(label, when)
        self._edges.append(Edge(source, target, when))
        return self

    def branch(self, source: str, routes: Mapping[str, str], *, decide: Callable[[State], object]) -> Self:
        """Draw one edge for each route; live is the one whose key `decide(state)` gives."""
        for key, target in routes.items():
            self.edge(source, target, when=Route(key, decide))
        return self

    def entry(self, *names: str) -> Self:
        """Say where a run starts; by default at every node without incoming edges."""
        self._entry = names
        return self

    # Running.

    @property
    def plan(self) -> Plan:
        """The plan, made anew each time: undeclared keys become channels of one run, not of the next."""
        plan = Plan(dict(self._channels), self._entry, open_channels=True).add(*self._nodes)
        for edge in self._edges:
            plan.edge(edge.source, edge.target, edge.when)
        return plan

    def child_spec(self) -> ChildSpec:
        """What it takes to run this workflow, by itself or inside another run."""
        return ChildSpec(
            self.plan,
            name=self.name,
            llm=self.model,
            tools=self.tools,
            max_waves=self.max_waves,
            shared=self._fields,
        )

    async def run(self, input: JsonValue = None) -> WorkflowResult:
        """Run to the end, or to a question.

        Args:
            input: what the entries get.  A dict also sets the channels of those names, and the
                entries get it as JSON text.
        """
        plan, task = self.plan, task_text(input)
        run = Run.start(plan, task=task)
        run.shared.update(input if isinstance(input, dict) else cast("JsonObject", self._fields(task)))
        await self._scheduler.drive(plan, run)
        return WorkflowResult.of(run)

    async def resume(self, run_id: str, value: object = None) -> WorkflowResult:
        """Answer what a run of this workflow waits for, and go on.

        Args:
            value: the answer, or answers by interrupt id.

        Raises:
            KeyError, NotSuspended, AlreadyAnswered, Expired: see `Scheduler.resume`.
        """
        return WorkflowResult.of(await self._scheduler.resume(self.plan, run_id, value))

    def _fields(self, task: str) -> dict[str, object]:
        """The channels that a text sets: of a JSON object, those that were declared.

        Not the others: a text may come from anyone, and must not reach state that the flow keeps for itself.
        """
        try:
            fields = json.loads(task) if task.startswith("{") else None
        except ValueError:
            return {}
        return {name: fields[name] for name in self._channels if name in fields} if fields else {}

    @cached_property
    def _scheduler(self) -> Scheduler:
        return Scheduler(
            llm=self.model,
            tools=self.tools,
            bus=self.bus,
            eventlog=self.eventlog,
            store=self.store,
            max_waves=self.max_waves,
            concurrency=self.concurrency,
        )


def _port(tools: ToolPort | Iterable[Tool] | None, bus: Bus) -> ToolPort | None:
    """The tools of a flow; a registry without a bus of its own asks the checkers on `bus`."""
    if tools is not None and not isinstance(tools, ToolPort):
        registry = ToolRegistry()
        for tool in tools:
            add_tool(registry, tool)
        tools = registry
    if isinstance(tools, ToolRegistry) and tools.bus is None:
        tools.bus = bus
    return tools
