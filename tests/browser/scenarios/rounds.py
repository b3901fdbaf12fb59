"""A beginning, and rounds of two nodes, seven events each: as many as the input says."""

import asyncio

from playground import Scenario, ScenarioEnv, Workflow, go


def make(_: ScenarioEnv) -> Workflow:
    def begin(rounds):
        return go("work", rounds)

    async def work(rounds, ctx):
        await asyncio.sleep(0)
        return go("check", rounds, done=(ctx.shared.get("done") or 0) + 1)

    def check(rounds, ctx):
        return go("work", rounds) if ctx.shared["done"] < int(rounds) else ctx.shared["done"]

    return Workflow(max_waves=10_000).entry("begin").add("begin", begin).add("work", work).add("check", check)


scenario = Scenario(
    key="rounds",
    title={"en": "Rounds", "zh": "回合"},
    summary={"en": "It goes round and round.", "zh": "一圈又一圈。"},
    teaches={"en": "A long log.", "zh": "一份很长的日志。"},
    concepts=(),
    default_input={"en": "90", "zh": "90"},
    make=make,
)
