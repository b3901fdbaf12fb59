"""Law 5 among real processes: killed before and after each write, on each store on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from playground.backends import open_store
from playground.kernel import JsonValue, replay
from tests.soak.errand import Effects, errand
from tests.soak.nursery import Nursery
from tests.soak.story import Story

DISKS = pytest.mark.parametrize("kind", ["sqlite", "file"])


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """Folders that are empty and different from each other."""
    return (made for number in count() if not (made := tmp_path / str(number)).mkdir())


def store_in(folder: Path, kind: str) -> str:
    """A killed process loses nothing that the system has taken, so there is no need to wait for the disk."""
    return f"{kind}:{folder}/store" + ("/runs.db" if kind == "sqlite" else "") + "?sync=normal"


async def undisturbed(nursery: Nursery, folder: Path, **order: JsonValue) -> Story:
    """The run if nobody dies."""
    story = Story(nursery, store_in(folder, "file"), folder, order)
    assert await story.live()
    return story


async def die_at_each_write(
    nursery: Nursery, folders: Iterator[Path], kind: str, **order: JsonValue
) -> AsyncIterator[Story]:
    """For each write of the run, its story: one process dies at it, another goes on to the end."""
    whole = await undisturbed(nursery, next(folders), **order)
    for at in count(1):
        folder = next(folders)
        story = Story(nursery, store_in(folder, kind), folder, order)
        if await story.live(at=at):
            assert at > 40
            return
        assert await story.live()
        assert story.end() == whole.end(), at
        assert story.calls() == whole.calls(), at
        yield story


@DISKS
async def test_a_run_whose_process_dies_right_before_any_write_ends_as_if_nothing_had_happened(
    nursery: Nursery, folders: Iterator[Path], kind: str
) -> None:
    """A write is an append or a checkpoint.  What was in flight, two calls at most, is made again."""
    async for story in die_at_each_write(nursery, folders, kind, before=True):
        assert story.repeats <= 2


@DISKS
async def test_a_run_whose_process_dies_right_behind_any_write_does_nothing_twice(
    nursery: Nursery, folders: Iterator[Path], kind: str
) -> None:
    """Case D30: whatever the moment, each effect is there once, as long as one thing is done at a time."""
    async for story in die_at_each_write(nursery, folders, kind, before=False, one_by_one=True):
        assert story.repeats == 0


@DISKS
@pytest.mark.parametrize("at", [7, 9])
async def test_however_often_its_processes_die_a_run_gets_to_its_end(
    nursery: Nursery, folders: Iterator[Path], kind: str, at: int
) -> None:
    whole = await undisturbed(nursery, next(folders))
    folder = next(folders)
    story = Story(nursery, store_in(folder, kind), folder)
    while not await story.live(at=at, before=story.kills % 2 == 0):
        assert story.kills < 100
    assert story.kills >= 5
    assert story.end() == whole.end()
    assert story.calls() == whole.calls()
    await check_kept(story)


async def check_kept(story: Story) -> None:
    """The log that so many processes have written is one whole log, and tells the whole run."""
    async with open_store(story.url) as store:
        events = await store.log.stream("r")
        run = replay(errand(Effects(story.folder / "unused")), events)
        assert events[-1].kind == "run_completed"
        assert run.final_output == story.end()["output"]
        for run_id in ("r", "r~1"):
            own = await store.log.events(run_id)
            assert [event.seq for event in own] == list(range(1, len(own) + 1))
