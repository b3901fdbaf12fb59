"""What an agent costs beside its model and its tools: a ReAct loop of N tool rounds, per round.

The model has its replies ready and the tool returns at once, so all that is
measured is the loop.  A loop that looks at its whole history in every round shows as a
growth of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import playground.kernel as ours
from bench.common import PATIENCE, Case, How, Table, measure
from playground.kernel import LlmReply, Message, Scheduler
from playground.runtime.agent import Agent
from playground.runtime.react import build_react_plan, start_react_run, waves_for
from playground.runtime.tools import ToolRegistry

ROUNDS = (10, 100, 1000, 3000)


async def look(query: str) -> str:
    """Look something up."""
    return query


class Ready:
    """A model that asks for a tool so many times, and then answers; it speaks both vocabularies.

    Args:
        kernel: whose `LlmReply` and `ToolCall` it uses.
    """

    def __init__(self, rounds: int, kernel: ModuleType = ours) -> None:
        calls = [kernel.ToolCall("look", {"query": f"q{number}"}, f"c{number}") for number in range(rounds)]
        self._replies = [*(kernel.LlmReply("", (call,)) for call in calls), kernel.LlmReply("done")]

    async def chat(self, messages: Sequence[Message], **_: object) -> LlmReply:
        """The next reply: as many are over as the conversation has."""
        reply: LlmReply = self._replies[len(messages) // 2]
        return reply


def recipe(rounds: int) -> Case:
    """Our ReAct plan on our scheduler."""
    tools = ToolRegistry().function(look)
    plan = build_react_plan(tools, max_turns=rounds + 1)
    llm = Ready(rounds)

    async def run() -> int:
        started = start_react_run(plan, "go")
        await Scheduler(llm=llm, tools=tools, max_waves=waves_for(rounds + 1)).drive(plan, started)
        return started.metrics["tool_calls"]

    return Case(run, rounds)


def facade(rounds: int) -> Case:
    """Our `Agent`, its result with the whole conversation included."""
    agent = Agent("agent", model=Ready(rounds), tools=[look], max_turns=rounds + 1)

    async def run() -> int:
        return (await agent.run("go")).metrics["tool_calls"]

    return Case(run, rounds)


def published(rounds: int) -> Case:
    """The recipe of prodagent, with its limits lifted."""
    from src.kernel import Scheduler as PublishedScheduler
    from src.kernel import ToolCall as PublishedCall
    from src.runtime.llm import ScriptedLlm as PublishedLlm
    from src.runtime.react import build_react_plan as build
    from src.runtime.react import start_react_run as start
    from src.runtime.tools import ToolRegistry as PublishedRegistry

    tools = PublishedRegistry()
    tools.function(look)
    plan = build(tools)
    said = [PublishedCall("look", {"query": f"q{number}"}) for number in range(rounds)]

    async def run() -> int:
        llm = PublishedLlm([*said, "done"])
        started = start(plan, "go")
        await PublishedScheduler(llm=llm, tools=tools, max_waves=10**9, concurrency=10**6).drive(
            plan, started
        )
        return int(started.metrics["tool_calls"])

    return Case(run, rounds)


RIVALS: dict[str, Callable[[int], Case]] = {
    "ours": recipe,
    "ours, Agent": facade,
    "prodagent": published,
}


async def react(how: How) -> Table:
    """Time agents of more and more rounds."""
    table = Table("ReAct loop, one tool a round", "µs/round", floor="prodagent")
    for rounds in ROUNDS:
        cases: dict[str, Case] = {}
        for label, make in RIVALS.items():
            if not how.wants(label) or label in table.failed or table.expected(label, rounds) > PATIENCE:
                continue
            try:
                cases[label] = make(rounds)
            except ImportError as error:
                table.fail(label, rounds, f"{type(error).__name__}: {error}")
        table.put(rounds, await measure(cases, how.repeats))
    return table
