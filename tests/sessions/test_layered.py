"""Layers in a session: what they remember is a fold of the log, so they suspend and come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from playground.sessions import Answer, Sessions, remembered
from tests.sessions.conftest import Opener

SCENARIO = """
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from playground import Layered, Scenario, Workflow, wait_human
from playground.agenton.compositor import Compositor, LayerNode
from playground.agenton.layers import EmptyLayerConfig, NoLayerDeps, PlainLayer

HOOKS = Path(__file__).with_suffix(".hooks")


class Count(BaseModel):
    n: int = 0
    suspended: int = 0


def told(hook):
    with HOOKS.open("a") as file:
        file.write(hook + " ")


@dataclass(slots=True)
class Counter(PlainLayer[NoLayerDeps, EmptyLayerConfig, Count]):
    async def on_context_create(self):
        told("create")

    async def on_context_resume(self):
        told("resume")

    async def on_context_suspend(self):
        self.runtime_state.suspended += 1
        told("suspend")

    async def on_context_delete(self):
        told("delete")


def build(env):
    def flow(layers):
        state = layers.get_layer("counter", Counter).runtime_state

        def count(_):
            state.n += 1
            return state.n

        def ask(n, ctx):
            return f"{state.n} {state.suspended}" if ctx.resumed else wait_human("On?")

        return Workflow().add("count", count).add("ask", ask).edge("count", "ask")

    return Layered(Compositor([LayerNode("counter", Counter)]), flow)


scenario = Scenario(
    key="counts",
    title={"en": "Counts", "zh": "计数"},
    summary={"en": "It counts.", "zh": "计数。"},
    teaches={"en": "To remember.", "zh": "记住。"},
    concepts=("layers",),
    default_input={"en": "", "zh": ""},
    make=build,
)
"""


@pytest.fixture
def hooks(folder: Path) -> Path:
    """The scenario `counts`, and the file in which its layer notes its hooks."""
    (folder / "counts.py").write_text(SCENARIO, encoding="utf-8")
    return folder / "counts.hooks"


def noted(hooks: Path) -> str:
    """The hooks that have run, in order."""
    return hooks.read_text() if hooks.exists() else ""


async def rested(sessions: Sessions, run_id: str) -> None:
    async for _ in sessions.until_rest(run_id):
        pass


async def test_what_a_layer_remembers_joins_the_batch_of_the_wave_that_changed_it(
    opened: Opener, hooks: Path
) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("counts")
        await rested(sessions, run_id)
        events = await sessions.events(run_id)
        kinds = [event.kind for event in events]
        assert kinds.index("node_completed") < kinds.index("note") < kinds.index("interrupted")
        assert remembered(events)["states"] == {"counter": {"n": 1, "suspended": 1}}
        assert noted(hooks) == "create suspend "


async def test_layers_are_hydrated_from_the_log_in_another_process(opened: Opener, hooks: Path) -> None:
    async with opened() as first:
        run_id = await first.start("counts")
        await rested(first, run_id)
    async with opened() as second:
        await second.answer(run_id, {"ask": Answer(approved=True)})
        await rested(second, run_id)
        assert (await second.describe(run_id))["output"] == "1 1"
    assert noted(hooks) == "create suspend resume delete "


async def test_the_plan_of_layers_is_drawn_without_entering_them(opened: Opener, hooks: Path) -> None:
    async with opened() as sessions:
        assert list(sessions.blueprints.plan("counts").nodes) == ["count", "ask"]
    assert noted(hooks) == ""


async def test_a_fork_hydrates_layers_as_they_were_at_that_moment(opened: Opener, hooks: Path) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("counts")
        await rested(sessions, run_id)
        events = await sessions.events(run_id)
        before = next(event.pos for event in events if event.kind == "node_started")
        fork_id = await sessions.fork(run_id, before)
        await rested(sessions, fork_id)
        assert remembered(await sessions.events(fork_id))["states"]["counter"]["n"] == 1
