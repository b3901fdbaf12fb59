"""What tools and models do wrong, each in a whole run on disk: it ends in time, says why; its log holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from playground import Agent, LlmReply, ScriptedLlm, ToolCall, ToolSpec
from playground.backends import open_store
from playground.kernel import replay
from playground.runtime.result import AgentResult

MEGABYTES = 50 << 20


async def played(folder: Path, agent: Callable[..., Agent]) -> AgentResult:
    """The result of a run whose log is on disk, once a replay of that log has told the same."""
    async with open_store(f"sqlite:{folder / 'runs.db'}") as store:
        made = agent(eventlog=store.log, store=store.checkpoints)
        async with asyncio.timeout(20):
            result = await made.run("go")
        again = replay(made.plan, await store.log.events(result.run_id))
    assert (again.state, again.final_output) == (result.status, result.output)
    assert again.shared == result.run.shared
    return result


def raises() -> str:
    raise ValueError("the shelf is empty")


async def hangs() -> None:
    await asyncio.sleep(60)


def blocks() -> None:
    time.sleep(5)


def exits() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (ToolSpec("t", "", raises), "ValueError: the shelf is empty"),
        (ToolSpec("t", "", hangs, timeout=0.05), "took longer than 0.05 s"),
        (ToolSpec("t", "", blocks, timeout=0.05, blocking=True), "took longer than 0.05 s"),
        (ToolSpec("t", "", exits), "SystemExit: 3"),
        (ToolSpec("t", "", lambda: "x" * MEGABYTES), "is larger than"),
        (ToolSpec("t", "", lambda: {"at": [float("nan")]}), "nan, which is not JSON"),
        (ToolSpec("t", "", lambda: {1, 2}), "not JSON"),
        (ToolSpec("t", "", lambda: b"bytes"), "not JSON"),
        (ToolSpec("t", "", lambda: "a\ud800"), "lone surrogate"),
    ],
    ids=["raises", "hangs", "blocks", "exits", "50 MB", "NaN", "a set", "bytes", "half a sign"],
)
async def test_a_tool_that_misbehaves_is_told_to_the_model_which_answers(
    tool: ToolSpec, said: str, tmp_path: Path
) -> None:
    script = [ToolCall("t", {}), "I could not."]
    result = await played(
        tmp_path, lambda **kept: Agent("a", model=ScriptedLlm(script), tools=[tool], **kept)
    )
    assert (result.status, result.output) == ("completed", "I could not.")
    told = str(result.messages[2]["content"])
    assert told.startswith("[tool error]")
    assert said in told
    assert len(told) < 5_000


def look(at: str) -> str:
    return "nothing"


AGAIN = ToolCall("look", {"at": "x"})


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ([LlmReply()], "failed", "answered nothing"),
        ([LlmReply("  \n")], "failed", "answered nothing"),
        ([LlmReply("two things at once", (AGAIN,)), "done"], "completed", "done"),
        ([[AGAIN, AGAIN], "done"], "completed", "done"),
        ([ToolCall("nope", {}), "sorry"], "completed", "sorry"),
        ([ToolCall("look", {"at": 3, "x": []}), "sorry"], "completed", "sorry"),
        ([AGAIN] * 9, "failed", "still asked for tools in turn 5"),
        ([LlmReply("a\ud800")], "failed", "lone surrogate"),
        ([RuntimeError("no more credit")], "failed", "no more credit"),
    ],
    ids=[
        "nothing",
        "blanks",
        "text and a call",
        "one call twice",
        "no such tool",
        "misfits",
        "for ever",
        "half",
        "fails",
    ],
)
async def test_a_model_that_misbehaves_comes_to_an_end_that_says_why(
    script: list[object], status: str, said: str, tmp_path: Path
) -> None:
    result = await played(
        tmp_path,
        lambda **kept: Agent("a", model=ScriptedLlm(script), tools=[look], max_turns=5, **kept),  # type: ignore[arg-type]
    )
    assert (result.status, said in str(result.output)) == (status, True), result.output
    calls = [call for message in result.messages for call in message.get("tool_calls", ())]  # type: ignore[union-attr]
    assert len(calls) == sum(message["role"] == "tool" for message in result.messages)
