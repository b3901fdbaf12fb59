"""Nothing that matters lives in a closure: a run that is cut anywhere ends as one that was left alone.

Each scenario plays in sessions over a store on disk, and is cut where a seeded
generator says: what drives it is dropped, or its process is killed, or the
store fails between two batches.  Sessions that know nothing of it go on.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from playground import Run, RunState
from playground.backends import Store, open_store
from playground.kernel import Event, EventLog, JsonValue
from playground.sessions import Answer, Catalog, Sessions
from tests.scenarios.stage import FOLDER, KEYS

CUTS = 3
"""How often one run is cut."""

EACH_VERDICT = pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])


@cache
def catalog(key: str) -> Catalog:
    """A catalog with the one scenario's file."""
    return Catalog([FOLDER / f"{key}.py"])


@asynccontextmanager
async def opened(store: Store, key: str) -> AsyncIterator[Sessions]:
    """What a new process has: the store, the scenario's file, and nothing else."""
    sessions = Sessions(store, catalog(key))
    await sessions.open()
    try:
        yield sessions
    finally:
        await sessions.close()


async def rested(sessions: Sessions, run_id: str) -> Run:
    """The run, once it waits or has ended."""
    async for _ in sessions.until_rest(run_id):
        pass
    return (await sessions.portrait(run_id)).run


async def answer_all(sessions: Sessions, run: Run, approved: bool) -> None:
    await sessions.answer(run.run_id, dict.fromkeys(run.interrupts, Answer(approved=approved)))


async def play_on(sessions: Sessions, run_id: str, approved: bool) -> Run:
    """Go on to the end, answering what is asked."""
    run = await rested(sessions, run_id)
    while run.state is RunState.SUSPENDED:
        await answer_all(sessions, run, approved)
        run = await rested(sessions, run_id)
    return run


_undisturbed: dict[tuple[str, bool], JsonValue] = {}


async def undisturbed(key: str, approved: bool) -> JsonValue:
    """The output of the same run when nothing disturbs it."""
    if (key, approved) not in _undisturbed:
        async with opened(open_store("memory:"), key) as sessions:
            run = await play_on(sessions, await sessions.start(key), approved)
        assert run.state is RunState.COMPLETED, run.final_output
        _undisturbed[key, approved] = run.final_output
    return _undisturbed[key, approved]


# What drives a run is dropped.


async def crash_after(sessions: Sessions, run_id: str, number: int) -> None:
    """Watch so many events, then drop what drives the run, if it is not at rest by then."""
    async with aclosing(sessions.until_rest(run_id)) as events:
        async for _ in events:
            number -= 1
            if number <= 0:
                break
    if sessions.is_driven(run_id):
        await sessions.crash(run_id)


async def crashed_and_continued(key: str, approved: bool, url: str, luck: random.Random) -> Run:
    """Play a scenario that is cut again and again; each time another process goes on."""
    async with opened(open_store(url), key) as sessions:
        run_id = await sessions.start(key)
        await crash_after(sessions, run_id, luck.randrange(1, 30))
    for _ in range(CUTS - 1):
        async with opened(open_store(url), key) as sessions:
            known = await sessions.portrait(run_id)
            if known.run.state is RunState.SUSPENDED:
                await answer_all(sessions, known.run, approved)
            await crash_after(sessions, run_id, known.at + luck.randrange(1, 30))
    async with opened(open_store(url), key) as sessions:
        return await play_on(sessions, run_id, approved)


@EACH_VERDICT
@pytest.mark.parametrize("key", KEYS)
async def test_a_run_that_is_dropped_anywhere_ends_as_one_that_was_left_alone(
    key: str, approved: bool, tmp_path: Path
) -> None:
    luck = random.Random(f"{key} {approved}")  # noqa: S311

    run = await crashed_and_continued(key, approved, f"sqlite:{tmp_path / 'runs.db'}?sync=normal", luck)

    assert run.state is RunState.COMPLETED, run.final_output
    assert run.final_output == await undisturbed(key, approved)


async def test_a_dropped_run_goes_on_in_the_process_that_dropped_it(tmp_path: Path) -> None:
    async with opened(open_store(f"sqlite:{tmp_path / 'runs.db'}"), "layers") as sessions:
        run_id = await sessions.start("layers")
        await crash_after(sessions, run_id, 8)
        await sessions.go_on(run_id)
        run = await play_on(sessions, run_id, True)

    assert run.final_output == await undisturbed("layers", True)


# The store fails between two batches.


class Stopped(BaseException):
    """The process is gone, as after a kill."""


class StoppingLog:
    """A log that takes the process down instead of writing one of its batches, and each one after it."""

    durable = True

    def __init__(self, log: EventLog, stop_after: int) -> None:
        self._log = log
        self._left = stop_after

    async def append_many(self, events: Sequence[Event]) -> None:
        if self._left <= 0:
            raise Stopped
        self._left -= 1
        await self._log.append_many(events)

    async def append(self, event: Event) -> int:
        await self.append_many([event])
        return event.seq

    async def events(self, run_id: str) -> list[Event]:
        return await self._log.events(run_id)

    async def after(self, run_id: str, since_seq: int) -> list[Event]:
        return await self._log.after(run_id, since_seq)

    async def stream(self, root_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        return await self._log.stream(root_id, after, limit)


def stopping(url: str, stop_after: int) -> Store:
    """A store on disk whose process is gone after so many batches."""
    store = open_store(url)
    log = StoppingLog(store.log, stop_after)
    return Store(store.url, log, store.checkpoints, store.runs, store.documents, store.close)


@EACH_VERDICT
async def test_layers_that_are_cut_between_two_batches_end_as_those_that_were_left_alone(
    approved: bool, tmp_path: Path
) -> None:
    expected = await undisturbed("layers", approved)
    for stop_after in range(1 + approved, 40, 2):
        url = f"sqlite:{tmp_path / f'{stop_after}.db'}?sync=normal"
        async with opened(stopping(url, stop_after), "layers") as sessions:
            with suppress(Stopped):
                await sessions.start("layers")
                run_id = (await sessions.find())[0][0].run_id
                run = await play_on(sessions, run_id, approved)
        async with opened(open_store(url), "layers") as sessions:
            run = await play_on(sessions, run_id, approved)
        assert run.final_output == expected, f"cut after batch {stop_after}"


# A process is killed.


def killed_after(lines: int, key: str, approved: bool, url: str) -> str:
    """Run a scenario in a process of its own and kill that after so many events; the id of the run."""
    verdict = "--approve" if approved else "--reject"
    command = [sys.executable, "-m", "playground", "run", key, verdict, "--json", "--store", url]
    with subprocess.Popen(command, cwd=FOLDER.parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
    return str(json.loads(told[0])["run_id"])


@pytest.mark.parametrize(("key", "approved"), [("trader", True), ("aiops", True), ("layers", False)])
async def test_a_run_whose_process_is_killed_ends_as_one_that_was_left_alone(
    key: str, approved: bool, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path / 'runs.db'}"
    lines = random.Random(key).randrange(1, 20)  # noqa: S311

    run_id = killed_after(lines, key, approved, url)
    async with opened(open_store(url), key) as sessions:
        run = await play_on(sessions, run_id, approved)

    assert run.final_output == await undisturbed(key, approved)
