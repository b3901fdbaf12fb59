"""The plan whose run is killed: tools and bodies with effects, a child run that asks, a fan-out, a retry."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from playground.kernel import (
    FnBody,
    Goto,
    JsonValue,
    Node,
    NodeContext,
    Outcome,
    Plan,
    RetryPolicy,
    Send,
    SubPlanBody,
    ToolCall,
    ToolResult,
    add,
    append,
)


@dataclass(frozen=True)
class Effects:
    """Marks in the world outside: one line in a file for each thing that was done."""

    path: Path

    def leave(self, mark: str) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, f"{mark}\n".encode())
        finally:
            os.close(fd)

    def marks(self) -> list[str]:
        return self.path.read_text().split("\n")[:-1] if self.path.exists() else []


class Tools:
    """One tool, `pay`, which pays each time it is called."""

    def __init__(self, effects: Effects, pace: float) -> None:
        self.effects = effects
        self.pace = pace

    async def dispatch(self, call: ToolCall, ctx: NodeContext | None = None) -> ToolResult:
        await asyncio.sleep(self.pace)
        self.effects.leave(f"call {call.call_id}")
        await asyncio.sleep(self.pace)
        return ToolResult.success(f"paid {call.arguments['to']}", call.call_id)


def returned(ctx: NodeContext) -> str:
    """The mark that a body leaves when it is about to return."""
    return f"node {ctx.run_id} {ctx.node_id} {ctx.run.state_of(ctx.node_id).activation}"


def errand(effects: Effects, *, workers: int = 2, rounds: int = 2, one_by_one: bool = False) -> Plan:
    """start → (pay twice, a child that asks) → workers → gather → flaky → ask → loop.

    Args:
        one_by_one: never do two things at once.
    """

    def leaves(body: FnBody) -> FnBody:
        async def marked(x: JsonValue, ctx: NodeContext) -> Outcome:
            outcome = await body.run(x, ctx)
            if outcome.suspend is None:
                effects.leave(returned(ctx))
            return outcome

        return FnBody(marked)

    def node(key: str, body: object, **options: object) -> Node:
        return Node(key, leaves(FnBody(body)), **options)  # type: ignore[arg-type]

    async def pay(x: JsonValue, ctx: NodeContext) -> Outcome:
        paid = (await ctx.call_tool("pay", {"to": f"{ctx.node_id} {x}"})).output
        return Outcome.ok(paid, trace=[ctx.node_id], n=1)

    async def pay_twice(x: JsonValue, ctx: NodeContext) -> Outcome:
        calls = [ctx.call_tool("pay", {"to": "both"}) for _ in range(2)]
        results = [await call for call in calls] if one_by_one else await ctx.together(*calls)
        return Outcome.ok([result.output for result in results], trace=[ctx.node_id], n=1)

    def ask(x: JsonValue, ctx: NodeContext) -> Outcome:
        if not ctx.resumed:
            return Outcome.park("approval", x, f"{ctx.node_id}?")
        return Outcome.ok(ctx.resume_value, trace=[ctx.node_id])

    async def flaky(x: JsonValue, ctx: NodeContext) -> Outcome:
        before = await ctx.call_tool("pay", {"to": "before"})
        if ctx.attempt == 1:
            raise ConnectionError("try again")
        return Outcome.ok(before.output, trace=[ctx.node_id])

    def loop(x: JsonValue, ctx: NodeContext) -> Outcome:
        times = ctx.run.state_of(ctx.node_id).activation
        return Outcome(times, {"trace": [ctx.node_id], "n": 1}, Goto("loop") if times < rounds else None)

    child = Plan({"trace": append(), "n": add()}).add(node("pay", pay), node("ask", ask), node("file", pay))
    child.edge("pay", "ask").edge("ask", "file")
    plan = Plan({"trace": append(), "n": add()}, entry=("start",)).add(
        node("start", pay),
        node("both", pay_twice),
        Node("office", SubPlanBody(child)),
        node("fan", lambda x: [Send("work", number) for number in range(1 if one_by_one else workers)]),
        node("work", pay, template=True),
        node("gather", lambda x: Outcome.ok(x)),
        node("flaky", flaky, retry=RetryPolicy(3, 0)),
        node("ask", ask),
        node("loop", loop),
    )
    order = ("both", "office") if one_by_one else ("start", "office")
    for source, target in (
        *(("start", "both"), order, ("both", "fan"), ("office", "fan"), ("work", "gather")),
        *(("gather", "flaky"), ("flaky", "ask"), ("ask", "loop")),
    ):
        plan.edge(source, target)
    return plan
