"""The life of one process: it opens the store, goes on with the run, and may die at one of its writes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playground.backends import open_store
from playground.kernel import (
    CheckpointStore,
    Event,
    EventLog,
    JsonObject,
    JsonValue,
    Run,
    RunState,
    Scheduler,
)
from tests.soak.errand import Effects, Tools, errand


@dataclass
class Fate:
    """When this process dies: right before or right after its n-th write; never if n is 0."""

    at: int
    before: bool
    writes: int = 0

    def comes_before(self) -> None:
        self.writes += 1
        if self.before:
            self._strike()

    def comes_after(self) -> None:
        if not self.before:
            self._strike()

    def _strike(self) -> None:
        if self.writes == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class FatefulLog:
    """A log at whose appends the process may die; it notes what the log below has acknowledged."""

    durable = True

    def __init__(self, log: EventLog, fate: Fate, acknowledged: Path) -> None:
        self._log = log
        self._fate = fate
        self._acknowledged = Effects(acknowledged)
        self.append = log.append
        self.events = log.events
        self.after = log.after
        self.stream = log.stream

    async def append_many(self, events: Sequence[Event]) -> None:
        self._fate.comes_before()
        await self._log.append_many(events)
        self._fate.comes_after()
        self._acknowledged.leave(str(events[-1].pos))


class FatefulStore:
    """A checkpoint store at whose saves the process may die."""

    def __init__(self, store: CheckpointStore, fate: Fate) -> None:
        self._store = store
        self._fate = fate
        self.load = store.load

    async def save(
        self, run_id: str, snapshot: Mapping[str, JsonValue], *, expected_version: int | None = None
    ) -> int:
        self._fate.comes_before()
        version = await self._store.save(run_id, snapshot, expected_version=expected_version)
        self._fate.comes_after()
        return version


class EagerScheduler(Scheduler):
    """One that saves a checkpoint before each wave, so that there are many to die at."""

    def checkpoint_due(self, run: Run) -> bool:
        return self.durability == "sync"


async def live(order: JsonObject) -> None:
    """Go on with run `r` until it has ended, answering whatever it asks; then leave word of its end.

    Args:
        order: `url` of the store, `folder` for the marks, `at` and `before` (see `Fate`), `pace` of
            the tools in seconds, `durability`, and `workers`, `rounds` and `one_by_one` of the errand.
    """
    folder = Path(str(order["folder"]))
    fate = Fate(int(str(order.get("at", 0))), bool(order.get("before")))
    effects = Effects(folder / "effects")
    shape = {name: value for name in ("workers", "rounds") if isinstance(value := order.get(name), int)}
    plan = errand(effects, one_by_one=order.get("one_by_one") is True, **shape)
    async with open_store(str(order["url"])) as store:
        scheduler = EagerScheduler(
            eventlog=FatefulLog(store.log, fate, folder / "acknowledged"),
            store=FatefulStore(store.checkpoints, fate),
            tools=Tools(effects, float(str(order.get("pace", 0)))),
            durability="exit" if order.get("durability") == "exit" else "sync",
        )
        run = await scheduler.load(plan, "r")
        if run is None:
            run = await scheduler.run(plan, task="go", run_id="r")
        elif run.state is RunState.RUNNING:
            run = await scheduler.recover(plan, "r")
        while run.state is RunState.SUSPENDED:
            first = min(run.interrupts)
            run = await scheduler.resume(plan, "r", {first: f"yes to {first}"})
    told = {"state": run.state, "output": run.final_output, "shared": run.shared, "writes": fate.writes}
    (folder / "end").write_text(json.dumps(told))


def main(order: JsonObject) -> None:
    asyncio.run(live(order))
