"""A stage for scenarios: loads them as a user's own files are loaded, and plays them to their end."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from playground import Interrupt, Run, RunState, Scenario, ScenarioEnv, Scheduler
from playground.kernel import Event, InMemoryEventLog
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
    """One scenario, one log, and as many engines as it takes.

    Args:
        stop_after: the first engine is gone after so many batches; the next goes on from the log.
    """

    def __init__(self, key: str, lang: str = "en", *, stop_after: int | None = None) -> None:
        self.scenario = load(key)
        self.lang = lang
        self.log = StoppingLog(stop_after)
        self.env = ScenarioEnv(lang, files=FOLDER / key)

    async def play(self, say: Answer) -> Run:
        """Play to the end, saying `say` to each question.

        Between two rests the scenario is built anew, and the engine is another one.
        """
        run: Run | None = None
        while run is None or not run.state.ended:
            spec = child_spec(self.scenario.build(self.lang, self.env))
            engine = Scheduler(
                llm=spec.llm, tools=spec.tools, eventlog=self.log, max_waves=spec.max_waves or 64
            )
            try:
                run = await engine.load(spec.plan, "run")
                if run is None:
                    given = self.scenario.default_input[self.lang]
                    run = start_run(spec, task_text(given), run_id="run")
                    await engine.drive(spec.plan, run)
                elif run.state is RunState.SUSPENDED:
                    answers = {asked.id: say(asked) for asked in run.interrupts.values()}
                    run = await engine.resume(spec.plan, "run", answers)
                else:
                    run = await engine.recover(spec.plan, "run")
            except Stopped:
                run = None
        return run

    async def events(self) -> list[Event]:
        """All that happened, children included."""
        return await self.log.stream("run")
