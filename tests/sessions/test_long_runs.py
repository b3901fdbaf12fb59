"""What is asked of a run costs what it is about, not how long the run has become."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from playground.kernel import Event
from playground.sessions import Answer, Conflict, Sessions
from tests.sessions.conftest import ASKS, Opener

LONG = ASKS.replace("def draft(topic):", "async def draft(topic, ctx):").replace(
    'return {"amount": 40}',
    'for n in range(400):\n            await ctx.note("n", n=n)\n        return {"amount": 40}',
)

Operation = Callable[[Sessions, str], Awaitable[object]]


def answer(sessions: Sessions, run_id: str) -> Awaitable[object]:
    return sessions.answer(run_id, {"check": Answer(approved=True)})


async def refused_pause(sessions: Sessions, run_id: str) -> None:
    with pytest.raises(Conflict):
        await sessions.pause(run_id)


def breakpoints(sessions: Sessions, run_id: str) -> Awaitable[object]:
    return sessions.set_breakpoints(run_id, [{"before": "check"}])


@pytest.mark.parametrize(
    "operation", [answer, refused_pause, breakpoints, Sessions.describe, Sessions.portrait]
)
async def test_an_operation_does_not_read_the_whole_log(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    (folder / "asks.py").write_text(LONG, encoding="utf-8")
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        async for _ in sessions.until_rest(run_id):
            pass
        read: list[Event] = []
        for name in ("stream", "after", "events"):
            monkeypatch.setattr(sessions.store.log, name, noting(read, getattr(sessions.store.log, name)))
        await operation(sessions, run_id)
        assert len(read) < 100


def noting(
    read: list[Event], method: Callable[..., Awaitable[list[Event]]]
) -> Callable[..., Awaitable[list[Event]]]:
    async def noted(*args: object, **options: object) -> list[Event]:
        found = await method(*args, **options)
        read.extend(found)
        return found

    return noted


async def test_a_question_asked_long_ago_still_says_since_when(opened: Opener, folder: Path) -> None:
    both = LONG.replace('flow.edge("draft", "check")', "flow")
    (folder / "asks.py").write_text(both.replace('ctx.shared["amount"]', "40"), encoding="utf-8")
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        events = [event async for event in sessions.until_rest(run_id)]
        (asked,) = [event for event in events if event.kind == "interrupted"]
        (shown,) = (await sessions.describe(run_id))["interrupts"]
        assert events[-1].pos - asked.pos > 100
        assert shown["since"] == asked.ts
