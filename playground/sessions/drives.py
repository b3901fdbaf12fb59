"""What is going on right now: the tasks that drive runs, and the clocks of those that wait.

Nothing of this outlives the process, and nothing of it is the truth about a run:
that is in the log, where the next process finds it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from playground.backends import Store
from playground.kernel import Bus, ChildSpec, JsonObject, LogConflict, Run, RunState, Scheduler, root_of
from playground.kernel.body import error_text
from playground.kernel.scheduler import child_spec
from playground.runtime.scenario import Scenario, Staged
from playground.sessions.blueprints import Blueprints
from playground.sessions.errors import SessionError
from playground.sessions.stages import STAGE, news, remembered

_log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[Scheduler, ChildSpec], Awaitable[Run]]
"""What is done with a run once its scenario is set up: drive it, recover it, let it expire."""

PATIENCE = 10.0
"""Seconds to wait for a run to come to rest."""


@dataclass(eq=False, slots=True)
class Drive:
    """A run that is being driven; `scheduler` is there once its scenario has been set up."""

    run_id: str
    task: asyncio.Task[None]
    scheduler: Scheduler | None = None
    error: Exception | None = None


class Drives:
    """The runs that this process is at work on.

    Args:
        store: where their logs are.
        bus: where their events are told.
        blueprints: what builds their scenarios.
        clock: wall time in seconds.
        settle: brings what is known of a run up to date, before anyone sees it at rest.
        rested: is told of each run that is let go.
    """

    def __init__(
        self,
        store: Store,
        bus: Bus,
        blueprints: Blueprints,
        clock: Callable[[], float],
        *,
        settle: Callable[[str], Awaitable[None]],
        rested: Callable[[str], None],
    ) -> None:
        self._store = store
        self._bus = bus
        self._blueprints = blueprints
        self._clock = clock
        self._settle = settle
        self._rested = rested
        self._drives: dict[str, Drive] = {}

    def __len__(self) -> int:
        return len(self._drives)

    def get(self, run_id: str) -> Drive | None:
        """What drives this root run; None: it is at rest."""
        return self._drives.get(run_id)

    def scheduler(self, spec: ChildSpec | None = None) -> Scheduler:
        """A scheduler over the store, with what one scenario needs, or to look at runs with."""
        return Scheduler(
            llm=spec.llm if spec else None,
            tools=spec.tools if spec else None,
            bus=self._bus,
            eventlog=self._store.log,
            store=self._store.checkpoints,
            max_waves=(spec.max_waves if spec else None) or 64,
            clock=self._clock,
        )

    def scheduler_of(self, run_id: str) -> Scheduler:
        """The scheduler that is at work on a run, or one to reach it with while it rests."""
        drive = self.get(run_id)
        return drive.scheduler if drive is not None and drive.scheduler is not None else self.scheduler()

    def begin(self, run_id: str, scenario: Scenario, lang: str, work: Work) -> Drive:
        """Set up a scenario and do something with a run of it, in a task of its own."""
        task = asyncio.create_task(self._drive(run_id, scenario, lang, work), name=f"drive {run_id}")
        drive = self._drives[run_id] = Drive(run_id, task)
        task.add_done_callback(lambda _: self._let_go(run_id))
        return drive

    async def rest(self, run_id: str) -> None:
        """Wait until a run that is being driven comes to rest: an answer finds it parked then."""
        drive = self.get(run_id)
        if drive is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({drive.task}, timeout=PATIENCE)

    async def close(self) -> None:
        """Stop all of them where they are."""
        tasks = [drive.task for drive in self._drives.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _let_go(self, run_id: str) -> None:
        self._drives.pop(run_id, None)
        self._rested(run_id)

    async def _drive(self, run_id: str, scenario: Scenario, lang: str, work: Work) -> None:
        drive = self._drives[run_id]
        try:
            made = self._blueprints.build(scenario, lang)
            if isinstance(made, Staged):
                await self._on_stage(drive, made, work)
            else:
                await self._work(drive, made, work)
            await self._settle(run_id)
        except LogConflict:
            _log.warning("run %s is being driven by another process; this one lets go", run_id)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a crash of this run alone
            drive.error = error if isinstance(error, Exception) else RuntimeError(error_text(error))
            if not isinstance(error, SessionError | ValueError):
                _log.exception("driving run %s stopped; it can be continued", run_id)

    async def _work(self, drive: Drive, spec: ChildSpec, work: Work) -> Run:
        drive.scheduler = self.scheduler(spec)
        return await work(drive.scheduler, spec)

    async def _on_stage(self, drive: Drive, made: Staged, work: Work) -> None:
        """Drive a run inside what its scenario sets up around it; its log is told what that must remember."""
        run_id = drive.run_id
        known = remembered(await self._store.log.stream(run_id))
        async with made.stage(known) as stage:

            def changes(run: Run) -> JsonObject | None:
                found = news(known, stage.remembers()) if root_of(run.run_id) == run_id else {}
                known.update(found)
                return {"topic": STAGE, "data": found} if found else None

            forget = self._bus.provider("wave", changes)
            try:
                run = await self._work(drive, child_spec(stage.runnable), work)
            finally:
                forget()
            if run.state.ended:
                stage.ends()
        left = news(known, stage.remembers())
        if left and not run.state.ended:
            await self.scheduler().note(run_id, STAGE, left)


class Expiries:
    """The clocks of runs whose questions are answered by themselves some day.

    Args:
        clock: wall time in seconds.
        over: goes on with a run whose time has come.
    """

    def __init__(self, clock: Callable[[], float], over: Callable[[str], Awaitable[None]]) -> None:
        self._clock = clock
        self._over = over
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._chores: set[asyncio.Future[None]] = set()

    def watch(self, run: Run) -> None:
        """Wind the clock of a run by what it waits for now."""
        self.drop(run.run_id)
        due = next_expiry(run)
        if due is not None and run.state is RunState.SUSPENDED:
            delay = max(0.0, due - self._clock())
            loop = asyncio.get_running_loop()
            self._timers[run.run_id] = loop.call_later(delay, self._ring, run.run_id)

    def drop(self, run_id: str) -> None:
        """Stop the clock of a run."""
        timer = self._timers.pop(run_id, None)
        if timer is not None:
            timer.cancel()

    async def close(self) -> None:
        """Stop all clocks."""
        for timer in self._timers.values():
            timer.cancel()
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)

    def _ring(self, run_id: str) -> None:
        self._timers.pop(run_id, None)
        chore = asyncio.ensure_future(self._over(run_id))
        self._chores.add(chore)
        chore.add_done_callback(self._chores.discard)


def next_expiry(run: Run) -> float | None:
    """When the first of a run's questions expires, as wall time in seconds; None: none does."""
    return min((a.expires_at for a in run.interrupts.values() if a.expires_at is not None), default=None)
