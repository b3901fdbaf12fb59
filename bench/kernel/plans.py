"""Our kernel and the published one, prodagent: they share their vocabulary, so one program runs on both.

Limits that would end a long run early (waves, concurrency) are lifted for both alike.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import src.kernel as published

import playground.kernel as ours
from bench.common import Case
from bench.kernel.workload import result, thought

FREE = {"max_waves": 10**9, "concurrency": 10**6}


class Kernel:
    """The workloads on a kernel that speaks this vocabulary."""

    def __init__(self, kernel: ModuleType, durability: str) -> None:
        self.kernel = kernel
        self.durability = durability

    def scheduler(self, **parts: Any) -> Any:
        """A scheduler without limits, with `parts` such as a store in place of the defaults."""
        return self.kernel.Scheduler(**FREE, **{"durability": self.durability, **parts})

    async def finish(self, plan: Any, channel: str, **parts: Any) -> int:
        """Run `plan` to its end; return what `channel` holds, or how much of it."""
        run = await self.scheduler(**parts).run(plan, task="t")
        if str(run.state) != "completed":
            raise RuntimeError(f"{run.state}: {str(run.final_output)[:200]}")
        value = run.shared[channel]
        return len(value) if isinstance(value, list) else value

    def _case(self, plan: Any, channel: str, want: int) -> Case:
        async def run() -> int:
            return await self.finish(plan, channel)

        return Case(run, want)

    def chain(self, n: int) -> Case:
        k = self.kernel

        async def one(x: object) -> Any:
            return k.Outcome.ok(None, n=1)

        plan = k.Plan(channels={"n": k.add()}, entry=("n0",))
        for i in range(n):
            plan.add(k.Node(f"n{i}", k.FnBody(one)))
            if i:
                plan.edge(f"n{i - 1}", f"n{i}")
        return self._case(plan.validate(), "n", n)

    def loop_plan(self, n: int) -> Any:
        """Think and tools in turn, forward by an edge and by Goto, as the ReAct recipe has them."""
        k = self.kernel

        async def think(x: object, ctx: Any) -> Any:
            i = ctx.shared["i"]
            if i >= n:
                return k.Outcome(state_delta={"pending": 0, "answer": "done"})
            return k.Outcome(
                state_delta={"messages": [thought(i)], "i": 1, "pending": 1}, control=k.Goto("tools")
            )

        async def tools(x: object, ctx: Any) -> Any:
            return k.Outcome.goto("think", messages=[result(ctx.shared["i"])], pending=0)

        async def final(x: object, ctx: Any) -> Any:
            return k.Outcome.ok(ctx.shared["answer"])

        channels = {"messages": k.append(), "i": k.add(), "pending": k.last(0), "answer": k.last()}
        plan = k.Plan(channels=channels, entry=("think",))
        plan.add(
            k.Node("think", k.FnBody(think)),
            k.Node("tools", k.FnBody(tools)),
            k.Node("final", k.FnBody(final), terminal=True),
        )
        plan.edge("think", "tools", when=lambda s: bool(s.get("pending")))
        plan.edge("tools", "think")
        plan.edge("think", "final", when=lambda s: bool(s.get("answer")))
        return plan

    def loop(self, n: int) -> Case:
        return self._case(self.loop_plan(n), "messages", 2 * n)

    def fanout(self, n: int) -> Case:
        k = self.kernel

        async def seed(x: object) -> Any:
            return k.Outcome.fan_out(*[k.Send("work", i) for i in range(n)])

        async def work(x: object) -> Any:
            return k.Outcome.ok(None, out=[x])

        async def join(x: object, ctx: Any) -> Any:
            return k.Outcome.ok(len(ctx.shared["out"]))

        plan = k.Plan(channels={"out": k.append()}, entry=("seed",))
        plan.add(
            k.Node("seed", k.FnBody(seed)),
            k.Node("work", k.FnBody(work), template=True),
            k.Node("join", k.FnBody(join), terminal=True),
        )
        plan.edge("seed", "work")
        plan.edge("work", "join")
        return self._case(plan, "out", n)

    def diamond(self, n: int) -> Case:
        k = self.kernel

        async def seed(x: object) -> Any:
            return k.Outcome.ok(1)

        async def join(x: object, ctx: Any) -> Any:
            return k.Outcome.ok(len(ctx.shared["out"]))

        def branch(i: int) -> Any:
            async def work(x: object) -> Any:
                return k.Outcome.ok(None, out=[i])

            return k.FnBody(work)

        plan = k.Plan(channels={"out": k.append()}, entry=("seed",))
        plan.add(k.Node("seed", k.FnBody(seed)), k.Node("join", k.FnBody(join), terminal=True))
        for i in range(n):
            plan.add(k.Node(f"w{i}", branch(i)))
            plan.edge("seed", f"w{i}")
            plan.edge(f"w{i}", "join")
        return self._case(plan, "out", n)

    def parked_plan(self, messages: int, per_wave: int) -> Any:
        """A history of `messages`, gathered `per_wave` at a time, then a step that waits for a person."""
        k = self.kernel

        async def gather(x: object, ctx: Any) -> Any:
            have = len(ctx.shared["messages"])
            batch = [thought(i) for i in range(have, min(messages, have + per_wave))]
            onward = "approve" if have + len(batch) >= messages else "gather"
            return k.Outcome(state_delta={"messages": batch}, control=k.Goto(onward))

        async def approve(x: object, ctx: Any) -> Any:
            if ctx.resume_value is None:
                return k.Outcome.park("approval", None, "ok?")
            return k.Outcome(
                state_delta={"messages": [{"role": "user", "content": str(ctx.resume_value)}]},
                control=k.Goto("final"),
            )

        async def final(x: object, ctx: Any) -> Any:
            return k.Outcome.ok(len(ctx.shared["messages"]))

        plan = k.Plan(channels={"messages": k.append()}, entry=("gather",))
        plan.add(
            k.Node("gather", k.FnBody(gather)),
            k.Node("approve", k.FnBody(approve)),
            k.Node("final", k.FnBody(final), terminal=True),
        )
        return plan


OURS = Kernel(ours, "sync")
PRODAGENT = Kernel(published, "sync")
ENGINES = {"ours": OURS, "prodagent": PRODAGENT, "prodagent, no checkpoint": Kernel(published, "exit")}
