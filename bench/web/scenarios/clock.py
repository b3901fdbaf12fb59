"""A run that says `tick` whenever it is told to: what the stream's measurements look at."""

from __future__ import annotations

from bench.web.ticks import ticks
from playground import Scenario, Workflow


async def clock(_: str, ctx: object) -> str:
    async for answer in ticks():
        await ctx.note("tick", text="x" * 48)
        answer.set_result(None)
    return "over"


def build() -> Workflow:
    workflow = Workflow()
    workflow.add("clock", clock, terminal=True)
    workflow.entry("clock")
    return workflow


scenario = Scenario(key="clock", title="Clock", summary="Ticks when told to.", build=build)
