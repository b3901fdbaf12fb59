"""A run kept as a test: it passes as long as the scenario goes the same way, and says what no longer does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from playground import assets
from playground.backends import open_store
from playground.sessions import Answer, Catalog, Conflict, Options, Sessions, saved_test
from playground.testing import retold
from tests.sessions.conftest import ASKS, Opener

YES = {"check": Answer(approved=True, value={"amount": 7}, has_value=True, comment="fair")}


async def rested(sessions: Sessions, run_id: str) -> None:
    async for _ in sessions.until_rest(run_id):
        pass


@pytest.fixture
async def saved(opened: Opener, tmp_path: Path) -> Path:
    """A decided run of the scenario `asks`, as a test file."""
    async with opened() as sessions:
        run_id = await sessions.start("asks", "a chair")
        await rested(sessions, run_id)
        await sessions.answer(run_id, YES)
        await rested(sessions, run_id)
        source = await saved_test(sessions, run_id)
    (tmp_path / "test_saved.py").write_text(source, encoding="utf-8")
    return tmp_path / "test_saved.py"


def played(test: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    alone = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(
        command, cwd=test.parent, env=alone, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_saved_test_passes_while_the_scenario_goes_the_same_way(saved: Path) -> None:
    outcome = played(saved)

    assert outcome.returncode == 0, outcome.stdout


def test_it_fails_when_an_edge_changes_and_names_the_node(saved: Path, folder: Path) -> None:
    changed = ASKS.replace('flow.edge("draft", "check")', 'flow.entry("check", "draft")')
    (folder / "asks.py").write_text(changed, encoding="utf-8")
    outcome = played(saved)

    assert outcome.returncode == 1
    assert "check: started (entry)" in outcome.stdout


def test_it_reads_as_what_happened(saved: Path) -> None:
    source = saved.read_text(encoding="utf-8")

    assert "DECISIONS = {'check': {'amount': 7, 'approved': True, 'comment': 'fair'}}" in source
    assert "    '2 check: started (edges draft), asked check, approved check'," in source
    assert "OUTPUT = 'True 7 fair'" in source


@pytest.mark.parametrize("key", ["blackboard", "nested_approval", "two_approvals", "plan_first"])
async def test_a_bundled_scenario_goes_the_same_way_again(key: str) -> None:
    decided = {"approved": True}
    sessions = Sessions(open_store("memory:"), Catalog([assets.path("scenarios")]))
    await sessions.open()
    run_id = await sessions.start(key)
    await rested(sessions, run_id)
    decisions: dict[str, object] = {}
    while asked := (await sessions.portrait(run_id)).run.interrupts:
        decisions |= dict.fromkeys(asked, decided)
        await sessions.answer(run_id, {id: Answer(approved=True) for id in asked})
        await rested(sessions, run_id)
    source = await saved_test(sessions, run_id)
    told = await retold(key, (await sessions.describe(run_id))["input"], decisions)
    await sessions.close()

    assert all(f"    {line!r}," in source for line in told.story)
    assert source.count("\n    '") + source.count('\n    "') == len(told.story)
    assert repr(told.output) in source


async def test_a_run_that_still_waits_ends_its_story_with_what_it_waits_for(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        source = await saved_test(sessions, run_id)

    assert "DECISIONS = {}" in source
    assert "OUTPUT = ['check']" in source


async def test_pauses_are_no_part_of_the_story(opened: Opener) -> None:
    async with opened() as sessions:
        plain = await sessions.start("asks")
        stepped = await sessions.start("asks", options=Options(step=True))
        await rested(sessions, plain)
        await rested(sessions, stepped)
        while not await _waits(sessions, stepped):
            await sessions.go_on(stepped, step=True)
            await rested(sessions, stepped)
        first, second = await saved_test(sessions, plain), await saved_test(sessions, stepped)

    assert first.partition("\n")[2] == second.partition("\n")[2]


async def _waits(sessions: Sessions, run_id: str) -> bool:
    return "check" in (await sessions.portrait(run_id)).run.interrupts


async def test_what_cannot_be_played_again_is_refused_with_the_reason(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        fork_id = await sessions.fork(run_id, 3, updates={"amount": 3})
        await rested(sessions, fork_id)
        with pytest.raises(Conflict, match="forked with edited state"):
            await saved_test(sessions, fork_id)
        await sessions.cancel(run_id)
        with pytest.raises(Conflict, match="was cancelled"):
            await saved_test(sessions, run_id)
