"""A stage for scenarios: loads them as a user's own files are loaded, and plays them to their end."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from playground import ChildSpec, Interrupt, Run, RunState, Scenario, ScenarioEnv, Scheduler
from playground.backends import open_store
from playground.kernel import Event, InMemoryEventLog, JsonObject
from playground.kernel.body import task_text
from playground.kernel.scheduler import child_spec
from playground.runtime.scenario import start_run
from playground.sessions import Answer, Catalog, Sessions

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
KEYS = sorted(path.stem for path in FOLDER.glob("*.py"))
ENGINE_KEYS = [key for key in KEYS if key != "layers"]
"""The scenarios that an engine alone can run; one made of layers needs a session around it."""

Say = Callable[[Interrupt], object]


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


def answer(approved: bool) -> Say:
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
        pace: seconds between two pieces of a scripted text.
        stop_after: the first engine is gone after so many batches; the next goes on from the log.
    """

    def __init__(
        self, key: str, lang: str = "en", *, pace: float = 0.0, stop_after: int | None = None
    ) -> None:
        self.scenario = load(key)
        self.lang = lang
        self.log = StoppingLog(stop_after)
        self.env = ScenarioEnv(pace=pace, documents=open_store("memory:").documents, files=FOLDER / key)

    async def play(self, say: Say) -> Run:
        """Play to the end, saying `say` to each question.

        Between two rests the scenario is built anew, and the engine is another one.
        """
        run: Run | None = None
        while run is None or not run.state.ended:
            spec = child_spec(self.scenario.build(self.lang, self.env))
            engine = Scheduler(
                llm=spec.llm, tools=spec.tools, eventlog=self.log, max_waves=spec.max_waves or 64
            )
            with suppress(Stopped):
                run = await self._stretch(engine, spec, say)
        return run

    async def _stretch(self, engine: Scheduler, spec: ChildSpec, say: Say) -> Run:
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

    async def events(self) -> list[Event]:
        """All that happened, children included."""
        return await self.log.stream("run")


async def play_in_sessions(
    key: str, url: str, *, approved: bool = True, lang: str = "en", continues: str | None = None
) -> tuple[JsonObject, list[Event]]:
    """Play a scenario as a user does, with the server started anew at each rest.

    Returns:
        What is told of the run at its end, and all that happened.
    """
    run_id, told = "", {}
    while True:
        sessions = Sessions(open_store(url), Catalog([FOLDER]))
        await sessions.open()
        try:
            if not run_id:
                run_id = await sessions.start(key, lang=lang, continues=continues)
            else:
                asked = [question["id"] for question in told["interrupts"]]
                await sessions.answer(run_id, dict.fromkeys(asked, Answer(approved=approved)))
            async for _ in sessions.until_rest(run_id):
                pass
            told = await sessions.describe(run_id)
            if told["state"] in ("completed", "failed"):
                return told, await sessions.events(run_id)
        finally:
            await sessions.close()
