"""Turns of a conversation: each is a run of its own, and whole whoever listened."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import cast

import pytest

from playground.kernel import JsonObject
from playground.sessions import Sessions
from tests.sessions.conftest import Opener

TALKS = """
from playground import Agent, Scenario, ToolCall


def build(env):
    async def look(what: str) -> str:
        return "oolong"

    said = ["It is oolong, from the shelf on the left.", "You asked for the tea."]
    return Agent("clerk", model=env.model(ToolCall("look", {"what": "tea"}), *said), tools=[look])


scenario = Scenario(
    key="talks",
    title={"en": "Talks", "zh": "对话"},
    summary={"en": "It talks.", "zh": "它会对话。"},
    teaches={"en": "Turns.", "zh": "轮次。"},
    concepts=("agent",),
    default_input={"en": "which tea?", "zh": "什么茶？"},
    make=build,
)
"""


async def leave_at_the_first_word(sessions: Sessions, run_id: str) -> None:
    """Follow a run as a viewer does, and go away as soon as its answer begins."""
    async with aclosing(sessions.follow(run_id)) as batches:
        async for batch in batches:
            if any(told.live and told.live[0] == "llm_delta" for told in batch):
                return


async def leave_at_the_last_word(sessions: Sessions, run_id: str) -> None:
    """The same, at the event that has the whole answer."""
    async with aclosing(sessions.follow(run_id)) as batches:
        async for batch in batches:
            if any(t.event and t.event.kind == "model_returned" and t.event.data["text"] for t in batch):
                return


async def messages(sessions: Sessions, run_id: str) -> list[JsonObject]:
    async for _ in sessions.until_rest(run_id):
        pass
    return cast("list[JsonObject]", (await sessions.portrait(run_id)).run.shared["messages"])


@pytest.mark.parametrize("leave", [leave_at_the_first_word, leave_at_the_last_word])
async def test_a_turn_is_kept_whole_when_its_only_listener_leaves_and_goes_on_at_once(
    leave: object, opened: Opener, folder: Path
) -> None:
    """Case D17."""
    (folder / "talks.py").write_text(TALKS, encoding="utf-8")
    async with opened(pace=0.001) as sessions:
        first = await sessions.start("talks")
        await leave(sessions, first)  # type: ignore[operator]
        second = await sessions.start("talks", "what did I ask?", continues=first)
        said = await messages(sessions, second)
        assert await messages(sessions, first) == said[:4]
    assert [message["role"] for message in said] == [
        *["user", "assistant", "tool", "assistant"],
        *["user", "assistant"],
    ]
    assert (said[2]["content"], said[-1]["content"]) == ("oolong", "You asked for the tea.")
