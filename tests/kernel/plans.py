"""Random plans whose runs are deterministic: the material of the law tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from playground.kernel import (
    CheckpointStore,
    Event,
    EventLog,
    FnBody,
    Goto,
    InMemoryEventLog,
    InMemoryStore,
    JsonValue,
    Node,
    NodeContext,
    Outcome,
    Plan,
    RetryPolicy,
    Run,
    RunState,
    Scheduler,
    Send,
    SubPlanBody,
    ToolCall,
    ToolResult,
    add,
    append,
    last,
    merge,
)

THOROUGH = 30 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1
"""How many times more examples than usual."""


def law(examples: int) -> settings:
    """The settings of a property test over whole runs."""
    return settings(max_examples=examples * THOROUGH, deadline=None, suppress_health_check=list(HealthCheck))


NESTING = ("child", "mates", "crew")
"""Kinds of nodes that run child runs: a plan as a node, teammates called as tools, instances of a plan."""

KINDS = (
    *("plain", "plain", "merge", "loop", "jump", "rejoin", "fan"),
    *("ask", "asks", "flaky", "fail", "tool"),
)


@dataclass
class Ledger:
    """What bodies did in the world: the effects that must not be repeated."""

    returned: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    tool_calls: Counter[str] = field(default_factory=Counter)
    on_start: Callable[[NodeContext], None] = lambda ctx: None
    on_call: Callable[[ToolCall], None] = lambda call: None

    @classmethod
    def of(cls, events: Sequence[Event]) -> Ledger:
        """What had been done in the world when the log ended here: what had returned."""
        ledger = cls()
        activations: dict[tuple[str, JsonValue], JsonValue] = {}
        for event in events:
            node = event.run_id, event.data.get("node")
            if event.kind == "node_started":
                activations[node] = event.data["activation"]
            elif event.kind == "node_completed":
                ledger.returned[(*node, activations[node])] += 1
            elif event.kind == "tool_returned":
                ledger.tool_calls[event.data["call_id"]] += 1
        return ledger


class Tools:
    """One tool that has an effect, and teammates: plans by the name of their tool."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.mates: dict[str, Plan] = {}

    async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
        self.ledger.on_call(call)
        if call.name in self.mates:
            child = await ctx.spawn(self.mates[call.name], str(call.arguments["x"]))
            return ToolResult.success(child["output"], call.call_id)
        self.ledger.tool_calls[call.call_id] += 1
        return ToolResult.success(f"{call.name} of {call.arguments['x']}", call.call_id)


@dataclass(frozen=True)
class NodeSpec:
    kind: str
    join: str
    terminal: bool


@dataclass(frozen=True)
class PlanSpec:
    nodes: tuple[NodeSpec, ...]
    edges: tuple[tuple[int, int, str], ...]
    child: PlanSpec | None = None


@st.composite
def plan_specs(draw: st.DrawFn, depth: int = 1, size: int = 6) -> PlanSpec:
    """Plans of any kind, with plans of any kind inside."""
    count = draw(st.integers(1, size))
    kinds = st.sampled_from((*KINDS, *NESTING) if depth else KINDS)
    joins = st.sampled_from(["all", "all", "any", "most"])
    nodes = tuple(NodeSpec(draw(kinds), draw(joins), draw(st.booleans())) for _ in range(count))
    edges = draw(_edges(count, least=0))
    nested = any(node.kind in NESTING for node in nodes)
    return PlanSpec(nodes, edges, draw(plan_specs(depth=depth - 1, size=3)) if nested else None)


@st.composite
def waiting_specs(draw: st.DrawFn, depth: int = 3) -> PlanSpec:
    """Plans that wait for answers, three levels of them inside each other."""
    kinds = draw(st.lists(st.sampled_from(["ask", "asks", "plain", "tool", "flaky"]), min_size=1, max_size=2))
    if depth > 1:
        kinds.insert(draw(st.integers(0, len(kinds))), draw(st.sampled_from(NESTING)))
    nodes = tuple(NodeSpec(kind, "all", False) for kind in kinds)
    edges = draw(_edges(len(kinds), least=1))
    return PlanSpec(nodes, edges, draw(waiting_specs(depth=depth - 1)) if depth > 1 else None)


@st.composite
def _edges(draw: st.DrawFn, count: int, least: int) -> tuple[tuple[int, int, str], ...]:
    conditions = ["always", "always", "even", "odd", "never"] if least == 0 else ["always"]
    return tuple(
        (source, target, draw(st.sampled_from(conditions)))
        for target in range(1, count)
        for source in sorted(draw(st.sets(st.integers(0, target - 1), min_size=least, max_size=3)))
    )


CONDITIONS = {
    "always": None,
    "even": lambda s: s["n"] % 2 == 0,
    "odd": lambda s: s["n"] % 2 == 1,
    "never": lambda s: False,
}


def build(spec: PlanSpec, tools: Tools, level: int = 0) -> Plan:
    """The plan of a spec, with bodies that keep the ledger."""
    ledger = tools.ledger
    plan = Plan(channels={"log": append(), "n": add(0), "m": merge(), "last": last()})
    child = build(spec.child, tools, level + 1) if spec.child else None
    for index, node in enumerate(spec.nodes):
        body = _body(index, node.kind, len(spec.nodes), ledger, f"mate{level}")
        plan.add(
            Node(
                f"n{index}",
                SubPlanBody(child) if node.kind == "child" and child else FnBody(body),
                join=(lambda done, live: 2 * done >= live) if node.join == "most" else node.join,
                terminal=node.terminal,
                retry=RetryPolicy(3, 0) if node.kind == "flaky" else None,
            )
        )

    def work(value: JsonValue, ctx: NodeContext) -> Outcome:
        ledger.on_start(ctx)
        return _returns(ledger, ctx, Outcome.ok(value, log=[["work", value]]))

    plan.add(Node("work", FnBody(work), template=True), Node("gather", FnBody(lambda value: value)))
    plan.edge("work", "gather")
    if child:
        tools.mates[f"mate{level}"] = child
        plan.add(Node("team", SubPlanBody(child), template=True), Node("joined", FnBody(lambda value: value)))
        plan.edge("team", "joined")
    for source, target, when in spec.edges:
        plan.edge(f"n{source}", f"n{target}", CONDITIONS[when])
    plan.entry = ("n0",)
    return plan


def _returns(ledger: Ledger, ctx: NodeContext, outcome: Outcome) -> Outcome:
    ledger.returned[(ctx.run_id, ctx.node_id, ctx.run.state_of(ctx.node_id).activation)] += 1
    return outcome


def _body(index: int, kind: str, count: int, ledger: Ledger, mate: str) -> Callable[..., Awaitable[Outcome]]:
    name = f"n{index}"

    async def run(value: JsonValue, ctx: NodeContext) -> Outcome:
        ledger.on_start(ctx)
        times = ctx.run.state_of(ctx.node_id).activation
        seen = [name, value if not isinstance(value, dict | list) else len(value)]
        outcome = Outcome.ok(f"{name}.{times}", log=[seen], n=1)
        if kind == "merge":
            outcome = Outcome.ok({"of": name}, m={name: times}, n=1)
        elif kind == "loop" and times < 3:
            outcome = Outcome(f"{name}.{times}", {"log": [seen], "n": 1}, Goto(name, payload=times))
        elif kind == "jump" and times < 2:
            outcome = Outcome(name, {"log": [seen]}, Goto(f"n{(index + 2) % count}", payload=[name]))
        elif kind == "rejoin" and times < 2:
            outcome = Outcome(name, {"log": [seen]}, Goto.rejoin(name))
        elif kind == "fan" and times < 2:
            outcome = Outcome(name, {}, [Send("work", i) for i in range(ctx.shared["n"] % 3)])
        elif kind == "ask":
            if not ctx.resumed:
                return Outcome.park("approval", {"of": name}, f"{ctx.run.task}: {name}?")
            outcome = Outcome.ok(ctx.resume_value, log=[seen], n=1)
        elif kind == "asks":
            first = await ctx.interrupt("input", f"{ctx.run.task}: {name} first?")
            second = await ctx.interrupt("input", f"{ctx.run.task}: {name} second?")
            outcome = Outcome.ok([first, second], n=2)
        elif kind == "flaky" and ctx.attempt % 2:
            raise RuntimeError("flaky")
        elif kind == "fail" and times == 1 and ctx.shared["n"] % 4 == 3:
            raise RuntimeError("broken")
        elif kind == "crew" and times < 2:
            outcome = Outcome(name, {"n": 1}, [Send("team", f"{name} {i}") for i in range(2)])
        elif kind == "mates":
            results = await ctx.together(*[ctx.call_tool(mate, {"x": x}) for x in (name, "other")])
            outcome = Outcome.ok([result.output for result in results], log=[seen])
        elif kind == "tool":
            results = await ctx.together(*[ctx.call_tool("t", {"x": x}) for x in (name, name, 3)])
            outcome = Outcome.ok([result.output for result in results], log=[seen])
        return _returns(ledger, ctx, outcome)

    return run


class World:
    """A plan with the log and the ledger of its runs; a new one is a new process."""

    def __init__(
        self,
        spec: PlanSpec,
        *,
        log: EventLog | None = None,
        store: CheckpointStore | None = None,
        ledger: Ledger | None = None,
        **options: object,
    ) -> None:
        self.ledger = ledger or Ledger()
        tools = Tools(self.ledger)
        self.plan = build(spec, tools)
        self.log = log if log is not None else InMemoryEventLog()
        self.scheduler = Scheduler(
            eventlog=self.log,
            store=store if store is not None else InMemoryStore(),
            tools=tools,
            clock=lambda: 1.0,
            max_waves=30,
            **options,
        )

    async def begin(self, run_id: str = "r") -> Run:
        return await self.scheduler.run(self.plan, task="go", run_id=run_id)

    async def answer(self, run: Run, luck: int = 0) -> Run:
        """Answer one of the open questions; which one is a matter of luck, and the same for the same luck."""
        asked = sorted(run.interrupts.values(), key=lambda asked: (asked.question, asked.id))
        chosen = asked[Random(f"{luck} {len(run.decisions)}").randrange(len(asked)) if luck else 0]  # noqa: S311
        return await self.scheduler.resume(self.plan, run.run_id, {chosen.id: f"answer to {chosen.question}"})

    async def finish(self, run: Run, luck: int = 0) -> Run:
        """Answer whatever is asked, one question at a time, until the run has ended."""
        while run.state is RunState.SUSPENDED:
            run = await self.answer(run, luck)
        return run


def essence(run: Run) -> dict[str, object]:
    """All of a run that its events determine."""
    return run.snapshot()


async def logged(events: list[Event]) -> InMemoryEventLog:
    """A log that holds just these events."""
    log = InMemoryEventLog()
    await log.append_many(events)
    return log
