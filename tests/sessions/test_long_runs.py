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


@pytest.mark.parametrize("operation", [answer, refused_pause, breakpoints])
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
