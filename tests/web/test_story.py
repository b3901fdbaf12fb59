"""A run's story: told in one pass, and from then on any moment of it without telling it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground import assets
from playground.backends import open_store
from playground.kernel import replay
from playground.sessions import Catalog, NotFound, Sessions
from playground.web import live, story
from playground.web.graphmarks import Story as Picture
from playground.web.live import Watches
from playground.web.wavegrid import wave_grid
from tests.web.conftest import SCENARIOS, write_scenario

BUNDLED = ("trader", "aiops", "deep_research", "graph_demo")


@pytest.fixture
def short_leaps() -> Iterator[None]:
    """Stories that keep how a run stood every few events, as those of long runs do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "LEAP", 7)
        yield


async def ran(sessions: Sessions, key: str, given: str | None = None) -> str:
    """Start a scenario and return its run's id once it has come to rest."""
    run_id = await sessions.start(key, given)
    async for _ in sessions.until_rest(run_id):
        pass
    return run_id


@pytest.mark.usefixtures("short_leaps")
@pytest.mark.parametrize("store", ["memory:", "sqlite:{}/runs.db", "file:{}/runs"])
@pytest.mark.parametrize("key", BUNDLED)
async def test_a_moment_of_a_story_is_what_the_log_folds_to(key: str, store: str, tmp_path: Path) -> None:
    sessions = Sessions(open_store(store.format(tmp_path)), Catalog([assets.path("scenarios")]))
    await sessions.open()
    told = await Watches(sessions).story(await ran(sessions, key))
    for pos in range(1, told.pos + 1):
        folded = replay(told.plan, told.events, upto=pos, run_id=told.root)
        assert told.stood(pos).snapshot() == folded.snapshot()
        assert told.drawn_at(pos) == Picture.of(told.events[:pos])
        assert told.marks_before(pos + 1) == told.drawn_at(pos).marks
    assert told.book.grid() == wave_grid(told.events)
    await sessions.close()


@pytest.mark.parametrize("key", ["aiops", "deep_research", "review_team"])
async def test_what_the_nodes_have_spent_adds_up_to_what_the_log_says(key: str) -> None:
    sessions = Sessions(open_store("memory:"), Catalog([assets.path("scenarios")]))
    await sessions.open()
    told = await Watches(sessions).story(await ran(sessions, key))
    await sessions.close()
    spent = told.spent.values()
    kinds = Counter(event.kind for event in told.events)
    tokens = sum(event.data["tokens"] for event in told.events if event.kind == "model_returned")

    assert sum(row.model_calls for row in spent) == kinds["model_called"] > 0
    assert sum(row.tool_calls for row in spent) == kinds["tool_called"]
    assert sum(row.tokens for row in spent) == tokens > 0
    assert all(row.seconds >= 0 for row in spent)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one scenario, `counts`."""
    write_scenario(tmp_path, "counts", SCENARIOS["counts"])
    return tmp_path


async def test_a_story_is_kept_for_whoever_asks_next(folder: Path) -> None:
    sessions = Sessions(open_store("memory:"), Catalog([folder]))
    await sessions.open()
    watches, run_id = Watches(sessions), await ran(sessions, "counts")

    assert await watches.story(run_id) is await watches.story(run_id)
    await sessions.close()


async def test_a_kept_story_is_let_go_with_its_run_and_when_its_scenarios_file_changes(folder: Path) -> None:
    sessions = Sessions(open_store("memory:"), Catalog([folder]))
    await sessions.open()
    watches, run_id = Watches(sessions), await ran(sessions, "counts")
    before = await watches.story(run_id)
    write_scenario(folder, "counts", SCENARIOS["counts"].replace("20", "21"))
    assert await watches.story(run_id) is not before
    await sessions.delete(run_id)
    with pytest.raises(NotFound):
        await watches.story(run_id)
    await sessions.close()


async def test_the_stories_that_nobody_asked_for_longest_are_let_go(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(open_store("memory:"), Catalog([folder]))
    await sessions.open()
    watches = Watches(sessions)
    first, second, third = [await ran(sessions, "counts") for _ in range(3)]
    told = await watches.story(first)
    monkeypatch.setattr(live, "KEPT", 2 * told.pos)
    await watches.story(second)
    assert await watches.story(first) is told
    await watches.story(third)
    assert await watches.story(first) is told
    await sessions.close()
