"""Rounds of two nodes, seven events each: `ROUNDS` of them, or `ROUNDS RATE` at that many events a second."""

import asyncio
import time

from playground import Scenario, ScenarioEnv, Workflow, go


def build(_: ScenarioEnv) -> Workflow:
    async def work(wish, ctx):
        rounds, _, rate = wish.partition(" ")
        done, began = ctx.shared.get("done") or 0, ctx.shared.get("began") or time.time()
        if rate:
            await asyncio.sleep(max(0.0, began + done * 7 / float(rate) - time.time()))
        return go("check", wish, done=done + 1, began=began, note=f"round {done + 1} of {rounds}")

    def check(wish, ctx):
        return go("work", wish) if ctx.shared["done"] < int(wish.partition(" ")[0]) else ctx.shared["note"]

    return Workflow(max_waves=1_000_000).entry("work").add("work", work).add("check", check)


BOTH = {"en": "Long", "zh": "漫长"}

scenario = Scenario(
    key="long",
    title=BOTH,
    summary=BOTH,
    teaches=BOTH,
    concepts=(),
    default_input={"en": "10", "zh": "10"},
    make=build,
)
