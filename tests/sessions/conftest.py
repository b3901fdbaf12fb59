"""A folder with one scenario that asks, and sessions over any store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from playground.backends import open_store
from playground.sessions import Catalog, Sessions

ASKS = """
from playground import Scenario, Workflow, wait_human

SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 100}}}


def build(env):
    def draft(topic):
        return {"amount": 40}

    def check(_, ctx):
        if not ctx.resumed:
            return wait_human("Pay?", {"amount": ctx.shared["amount"]}, schema=SCHEMA)
        answer = ctx.resume_value
        return f"{answer['approved']} {answer.get('amount')} {answer.get('comment')}"

    flow = Workflow().add("draft", draft).add("check", check, terminal=True)
    return flow.edge("draft", "check")


scenario = Scenario(
    key="asks",
    title={"en": "Asks", "zh": "提问"},
    summary={"en": "It asks.", "zh": "它会提问。"},
    teaches={"en": "To wait.", "zh": "等待。"},
    concepts=("approval",),
    default_input={"en": "lamp", "zh": "灯"},
    make=build,
)
"""

Opener = Callable[..., AbstractAsyncContextManager[Sessions]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of scenarios: `asks` is in it, and a test may add more."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "asks.py").write_text(ASKS, encoding="utf-8")
    return tmp_path / "scenarios"


@pytest.fixture(params=["memory:", "sqlite:{}/runs.db", "file:{}/runs"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind."""
    return str(request.param).format(tmp_path)


@pytest.fixture
def opened(folder: Path, tmp_path: Path) -> Opener:
    """Open sessions over a store; opening the same one again is what a restart does."""

    @asynccontextmanager
    async def opener(
        url: str = f"sqlite:{tmp_path}/runs.db", *, recover: bool = True, **options: object
    ) -> AsyncIterator[Sessions]:
        sessions = Sessions(open_store(url), Catalog([folder]), **options)
        await sessions.open(recover=recover)
        try:
            yield sessions
        finally:
            await sessions.close()

    return opener
