"""Summaries of long conversations are kept in the store: a process that goes on does not make them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from playground.sessions import Answer
from tests.sessions.conftest import Opener

LONG = """
from pathlib import Path

from playground import Agent, LlmReply, Scenario, SummarizingContext, ToolCall


class Summariser:
    async def chat(self, messages, **_):
        with Path({prompts!r}).open("a", encoding="utf-8") as file:
            file.write(("again" if "<earlier-summary>" in messages[0]["content"] else "first") + " ")
        return LlmReply("points")


def build(env):
    async def look(at: int) -> str:
        return "nothing"

    async def pay(amount: int) -> str:
        return "paid"

    looks = [ToolCall("look", {{"at": number}}) for number in range(4)]
    worker = Agent(
        "worker",
        model=env.model(*looks, ToolCall("pay", {{"amount": 3}}), "done"),
        tools=[look],
        context=SummarizingContext(Summariser(), max_messages=4, keep_last=2),
    ).add_tool(pay, side_effect="write")
    return {made}


scenario = Scenario(
    key="long",
    title={{"en": "Long", "zh": "长"}},
    summary={{"en": "Long.", "zh": "长。"}},
    teaches={{"en": "To sum up.", "zh": "总结。"}},
    concepts=("context",),
    default_input={{"en": "go", "zh": "开始"}},
    make=build,
)
"""


BOSS = "Agent('boss', model=env.model(ToolCall('worker', {'task': 'go'}), 'done'), teammates=[worker])"


@pytest.mark.parametrize("made", ["worker", BOSS], ids=["alone", "as a teammate"])
async def test_what_one_process_has_summarised_the_next_one_goes_on_from(
    made: str, opened: Opener, folder: Path, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts"
    (folder / "long.py").write_text(LONG.format(prompts=str(prompts), made=made), encoding="utf-8")
    async with opened() as first:
        run_id = await first.start("long")
        async for _ in first.until_rest(run_id):
            pass
        [asked] = (await first.portrait(run_id)).run.interrupts
        before = prompts.read_text().split()
    async with opened() as second:
        await second.answer(run_id, {asked: Answer(approved=True)})
        async for _ in second.until_rest(run_id):
            pass
        assert (await second.describe(run_id))["output"] == "done"
    assert before[0] == "first"
    assert len(prompts.read_text().split()) > len(before)
    assert prompts.read_text().split().count("first") == 1
