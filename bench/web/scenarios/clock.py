"""A run that says `tick` whenever it is told to: what the stream's measurements look at."""

import asyncio

from bench.web.ticks import ticks
from playground import FnBody, Node, Outcome, Plan, Scenario, ScenarioEnv


def build(_: ScenarioEnv) -> Plan:
    async def clock(_, ctx):
        async for count, done in ticks():
            await asyncio.gather(*(ctx.note("tick", text="x" * 48) for _ in range(count)))
            done.set_result(None)
        return Outcome.ok()

    return Plan(entry=("clock",)).add(Node("clock", FnBody(clock)))


BOTH = {"en": "Clock", "zh": "时钟"}

scenario = Scenario(
    key="clock",
    title=BOTH,
    summary=BOTH,
    teaches=BOTH,
    concepts=(),
    default_input={"en": "", "zh": ""},
    make=build,
)
