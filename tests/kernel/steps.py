"""Small plans and the shortest way to run them."""

from __future__ import annotations

from collections.abc import Callable

from playground.kernel import (
    Event,
    FnBody,
    JsonValue,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Run,
    Scheduler,
    add,
    append,
)


def step(key: str, **options: object) -> Node:
    """A node that returns its own key and writes it to `trace`."""
    return Node(key, FnBody(lambda x: Outcome.ok(key, trace=[key])), **options)


def does(key: str, body: Callable[..., object], **options: object) -> Node:
    """A node with this body."""
    return Node(key, FnBody(body), **options)


def echo(key: str, **options: object) -> Node:
    """A node that returns what it gets, and writes it down."""
    return Node(key, FnBody(lambda x: Outcome.ok(x, trace=[[key, x]])), **options)


def asks(key: str, **options: object) -> Node:
    """A node that waits for an answer and returns it."""

    def body(x: JsonValue, ctx: NodeContext) -> Outcome:
        return (
            Outcome.ok(ctx.resume_value, trace=[key])
            if ctx.resumed
            else Outcome.park("input", None, f"{key}?")
        )

    return Node(key, FnBody(body), **options)


def plan_of(*nodes: Node, entry: str = "", **edges: str) -> Plan:
    """A plan with the channels `trace` and `n`; an edge is given as `source="target target"`."""
    plan = Plan({"trace": append(), "n": add()}).add(*nodes)
    for source, targets in edges.items():
        for target in targets.split():
            plan.edge(source, target)
    if entry:
        plan.entry = entry.split()
    return plan


async def ran(plan: Plan, **options: object) -> tuple[Run, list[Event]]:
    """The run of a plan to its next rest, as run `r`, and its events."""
    scheduler = Scheduler(**options)
    run = await scheduler.run(plan, task="the task", run_id="r")
    return run, await scheduler.eventlog.events("r")


def waves(events: list[Event]) -> list[list[str]]:
    """Which nodes started in each wave."""
    found: dict[int, list[str]] = {}
    for event in events:
        if event.kind == "node_started":
            found.setdefault(event.data["wave"], []).append(event.data["node"])
    return list(found.values())
