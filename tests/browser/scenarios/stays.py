"""A body that goes on for as long as anyone may look."""

import asyncio

from playground import Scenario, ScenarioEnv, Workflow


def make(_: ScenarioEnv) -> Workflow:
    async def stay(_):
        await asyncio.sleep(600)

    return Workflow().add("stay", stay)


scenario = Scenario(
    key="stays",
    title={"en": "It stays", "zh": "停留"},
    summary={"en": "It runs on.", "zh": "一直运行。"},
    teaches={"en": "How a run looks while it goes on.", "zh": "运行中是什么样子。"},
    concepts=(),
    default_input={"en": "", "zh": ""},
    make=make,
)
