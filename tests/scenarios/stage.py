"""A stage for scenarios: loads them as a user's own files are loaded, and plays them to their end."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

from playground import ChildSpec, Interrupt, Run, RunState, Scenario, ScenarioEnv, Scheduler
from playground.backends import Documents, open_store
from playground.kernel import CheckpointStore, Event, EventLog, InMemoryEventLog, InMemoryStore
from playground.kernel.body import task_text
from playground.kernel.scheduler import child_spec
from playground.runtime.scenario import start_run

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
KEYS = sorted(path.stem for path in FOLDER.glob("*.py"))

Answer = Callable[[Interrupt], object]


@cache
def load(key: str) -> Scenario:
    """The scenario in a file of the folder."""
    path = FOLDER / f"{key}.py"
    spec = importlib.util.spec_from_file_location(f"scenario_{key}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.scenario
    assert isinstance(found, Scenario)
    return found


def answer(approved: bool) -> Answer:
    """Says the same to every approval, and "42" to every open question."""

    def decide(asked: Interrupt) -> object:
        return {"approved": approved} if asked.kind == "approval" else "42"

    return decide


class Stopped(BaseException):
    """The engine is gone, as after a kill."""


class StoppingLog(InMemoryEventLog):
    """A log that outlives its engines and takes the first of them down after so many batches."""

    durable = True

    def __init__(self, stop_after: int | None = None) -> None:
        super().__init__()
        self.batches = 0
        self._stop_after = stop_after

    async def append_many(self, events: Sequence[Event]) -> None:
        if self.batches == self._stop_after:
            self._stop_after = None
            raise Stopped
        self.batches += 1
        await super().append_many(events)


class Stage:
    """One scenario, one store, and as many engines as it takes.

    Args:
        url: a store on disk, opened anew for each engine; by default a log that outlives them.
        pace: seconds between two pieces of a scripted text.
        stop_after: the first engine is gone after so many batches; the next goes on from the log.
    """

    def __init__(
        self,
        key: str,
        lang: str = "en",
        *,
        url: str | None = None,
        pace: float = 0.0,
        stop_after: int | None = None,
    ) -> None:
        self.scenario = load(key)
        self.lang = lang
        self.log = StoppingLog(stop_after)
        self._url = url
        self._pace = pace
        self._kept = open_store("memory:")

    async def play(self, say: Answer) -> Run:
        """Play to the end, saying `say` to each question.

        Between two rests the scenario is built anew, and the engine is another one.
        """
        run: Run | None = None
        while run is None or not run.state.ended:
            async with self._parts() as (log, checkpoints, documents):
                env = ScenarioEnv(pace=self._pace, documents=documents, files=FOLDER / self.scenario.key)
                spec = child_spec(self.scenario.build(self.lang, env))
                engine = Scheduler(
                    llm=spec.llm,
                    tools=spec.tools,
                    eventlog=log,
                    store=checkpoints,
                    max_waves=spec.max_waves or 64,
                )
                with suppress(Stopped):
                    run = await self._stretch(engine, spec, say)
        return run

    async def _stretch(self, engine: Scheduler, spec: ChildSpec, say: Answer) -> Run:
        """Start, answer or recover: whatever gets the run to its next rest."""
        run = await engine.load(spec.plan, "run")
        if run is None:
            run = start_run(spec, task_text(self.scenario.default_input[self.lang]), run_id="run")
            await engine.drive(spec.plan, run)
            return run
        if run.state is RunState.SUSPENDED:
            answers = {asked.id: say(asked) for asked in run.interrupts.values()}
            return await engine.resume(spec.plan, "run", answers)
        return await engine.recover(spec.plan, "run")

    @asynccontextmanager
    async def _parts(self) -> AsyncIterator[tuple[EventLog, CheckpointStore, Documents]]:
        if self._url is None:
            yield self.log, InMemoryStore(), self._kept.documents
        else:
            async with open_store(self._url) as store:
                yield store.log, store.checkpoints, store.documents

    async def events(self) -> list[Event]:
        """All that happened, children included."""
        async with self._parts() as (log, _, _):
            return await log.stream("run")
