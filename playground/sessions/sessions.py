"""Sessions: start, follow, answer, pause, fork, and go on after a restart.

A session owns no truth.  What it knows of a run is in the run's log, and the
scenario is built anew whenever a run is taken up, so a run that is resumed in
the process that started it takes the same path as one whose server was killed.
What is held in memory is only what is going on right now: the task that drives
a run, and the feed of who watches it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import cast

from playground.backends import RunRecord, Store
from playground.kernel import (
    AlreadyAnswered,
    Bus,
    ChildSpec,
    Event,
    Expired,
    JsonObject,
    JsonValue,
    LogConflict,
    LogError,
    NoSuchInterrupt,
    NotJson,
    NotSuspended,
    Plan,
    Run,
    RunState,
    Scheduler,
    check_run_id,
    root_of,
)
from playground.kernel.body import task_text
from playground.kernel.breakpoints import checked_breakpoints
from playground.kernel.run import BREAKPOINT, new_run_id
from playground.kernel.scheduler import copied_event
from playground.kernel.values import freeze, text_in, thaw
from playground.runtime.react import DOCUMENTS
from playground.runtime.scenario import Scenario
from playground.sessions.answers import Answer, answer_value, check_input, decided, follows
from playground.sessions.blueprints import Blueprints
from playground.sessions.breakpoints import check_places
from playground.sessions.bundle import bundle, read_bundle
from playground.sessions.catalog import Catalog
from playground.sessions.drives import Drives, Expiries, next_expiry
from playground.sessions.errors import Busy, Conflict, Invalid, NotFound, SessionError
from playground.sessions.feed import Feeds, Follower, Told, ends_run
from playground.sessions.portrait import Portrait, portrait

_log = logging.getLogger(__name__)

BACKWARDS = 50
"""How many events are read at a time where something is sought from the end of a log."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is started: step by step, and where it stops."""

    step: bool = False
    breakpoints: Sequence[object] = ()


class Sessions:
    """All runs of one store, and the scenarios they are made from.

    Args:
        store: where runs are kept; closed by `close`.
        catalog: the scenarios.
        pace: seconds between two pieces of a scripted text, so that a person can watch.
        max_running: how many runs may be driven at once.
        clock: wall time in seconds.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        *,
        pace: float = 0.0,
        max_running: int = 100,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.blueprints = Blueprints(catalog, store.documents, pace)
        self.bus = Bus()
        self.bus.provider(DOCUMENTS, lambda: store.documents)
        self._max_running = max_running
        self._clock = clock
        self._drives = Drives(
            store, self.bus, self.blueprints, clock, settle=self._settle, rested=self._tell_of_rest
        )
        self._expiries = Expiries(clock, self._expire)
        self._feeds = Feeds(store.log)
        self._told = self.bus.subscribe(maxsize=20_000, on_full="drop")
        self._telling: asyncio.Task[None] | None = None

    # Coming and going.

    async def open(self, *, recover: bool = True) -> None:
        """Begin to listen, and go on with the runs that a dead process left behind.

        Args:
            recover: False leaves those runs as they are, to be continued one by one.
        """
        self._telling = asyncio.create_task(self._tell())
        if not recover:
            return
        for state in (RunState.RUNNING, RunState.SUSPENDED):
            cursor: str | None = None
            while True:
                records, cursor = await self.store.runs.find(state=state, limit=200, cursor=cursor)
                for record in records:
                    await self._take_up(record)
                if cursor is None:
                    break

    async def _take_up(self, record: RunRecord) -> None:
        try:
            if record.state is RunState.RUNNING:
                await self._take_up_running(record)
            elif await self.store.documents.get("expiries", record.run_id) is not None:
                self._expiries.watch(await self._run(record.run_id))
        except Exception:  # noqa: BLE001 - one bad run must not keep the others from going on
            _log.exception("run %s could not be taken up; it stays as it is", record.run_id)

    async def _take_up_running(self, record: RunRecord) -> None:
        """Go on with a run that the list calls running; only its log knows whether it still is."""
        try:
            run = await self._run(record.run_id)
        except NotFound:
            await self.store.runs.delete(record.run_id)
            return
        if run.running:
            await self._take_on(record.run_id)
        else:
            await self._settle(record.run_id)

    async def close(self) -> None:
        """Stop driving, end the feeds, close the store; what was going on is taken up at the next start."""
        self._feeds.close()
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        await self._expiries.close()
        await self._drives.close()
        await self.store.close()

    def end_feeds(self) -> None:
        """End all live feeds, so that a server with open streams can shut down."""
        self._feeds.close()

    # Starting and taking up.

    async def start(
        self,
        key: str,
        given: JsonValue = None,
        *,
        lang: str = "en",
        continues: str | None = None,
        options: Options | None = None,
    ) -> str:
        """Start a run of a scenario and return its id; it goes on in the background.

        Args:
            given: the input; None for the scenario's default.
            continues: an ended run of the same scenario that this one is the next turn of.

        Raises:
            NotFound: no such scenario or run.
            Conflict: the scenario cannot run, or the run before cannot be continued.
            Invalid: the input does not fit.
            Busy: too many runs are going on.
        """
        about: JsonObject = {} if continues is None else {"continues": continues}
        return await self._start(key, given, lang, options or Options(), about)

    async def _start(self, key: str, given: JsonValue, lang: str, options: Options, about: JsonObject) -> str:
        """Start a run; `about` says which runs came before it: `continues`, `forked_from`."""
        scenario = self.catalog.scenario(key)
        if len(self._drives) >= self._max_running:
            raise Busy(f"{self._max_running} runs are going on: wait until one ends, or cancel one")
        value = _kept(scenario.default_input.get(lang, "") if given is None else given)
        check_input(scenario, value)
        meta: JsonObject = {"scenario": key, "lang": lang, "input": value, **about}
        continues = about.get("continues")
        run_id, task = new_run_id(), task_text(value)
        try:
            stepping: list[object] = [{"every": "wave"}] if options.step else []
            breakpoints = checked_breakpoints([*options.breakpoints, *stepping])
        except ValueError as error:
            raise Invalid(str(error)) from error
        if options.breakpoints:
            check_places(self.blueprints.sketch(scenario, lang).plan, breakpoints)

        async def begin(scheduler: Scheduler, spec: ChildSpec) -> Run:
            run = Run.start(spec.plan, run_id=run_id, task=task, meta=meta)
            run.breakpoints = breakpoints
            shared = dict(spec.shared(task)) if spec.shared else {}
            if isinstance(continues, str):
                shared = await self._next_turn(spec, key, continues, task)
            run.shared.update(cast("dict[str, JsonValue]", shared))
            await scheduler.drive(spec.plan, run)
            return run

        await self._list_as_running(run_id, key, task, about)
        begun = asyncio.Event()
        forget = self.bus.on("run_started", lambda evt: begun.set() if evt.run_id == run_id else None)
        drive = self._drives.begin(run_id, scenario, lang, begin)
        waiting = asyncio.ensure_future(begun.wait())
        await asyncio.wait({drive.task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        forget()
        if not begun.is_set():
            await self.store.runs.delete(run_id)
            failure = drive.error or Conflict(f"scenario {key!r} did not begin")
            raise failure if isinstance(failure, SessionError) else Invalid(str(failure)) from failure
        return run_id

    async def _list_as_running(self, run_id: str, key: str, task: str, about: JsonObject) -> None:
        """Put a run into the list before its log begins: one that dies at once is found and taken up."""
        now = self._clock()
        await self.store.runs.put(
            RunRecord(run_id, key, RunState.RUNNING, task, now, now, 0, *_came_from(about))
        )

    async def _next_turn(self, spec: ChildSpec, key: str, before: str, task: str) -> dict[str, object]:
        """The state in which a turn begins: what was said before, and who holds the conversation.

        Whoever heard the last word of the turn before may be here while that run comes to rest.
        """
        await self._drives.rest(before)
        run = await self._root_run(before)
        if run.meta.get("scenario") != key:
            raise Conflict(f"run {before} is of another scenario: continue it there")
        if not run.state.ended:
            raise Conflict(f"run {before} is {run.state}: it can be continued once it has ended")
        if spec.next_turn is None:
            raise Conflict(f"scenario {key!r} is no conversation: start it again")
        return dict(spec.next_turn(task, run.shared))

    async def _scenario_of(self, run_id: str) -> tuple[Scenario, str]:
        """The scenario of a stored run, and the language it runs in."""
        meta = (await self._run(run_id)).meta
        return self.catalog.scenario(str(meta.get("scenario"))), str(meta.get("lang", "en"))

    async def _take_on(self, run_id: str) -> None:
        """Go on with a stored run: its scenario is set up anew, and the log tells where it stands."""
        scenario, lang = await self._scenario_of(run_id)
        self._drives.begin(
            run_id, scenario, lang, lambda scheduler, spec: scheduler.recover(spec.plan, run_id)
        )

    async def _expire(self, run_id: str) -> None:
        """Go on with a run whose question has waited long enough."""
        scenario, lang = await self._scenario_of(run_id)
        self._drives.begin(
            run_id, scenario, lang, lambda scheduler, spec: scheduler.expire(spec.plan, run_id)
        )

    def _tell_of_rest(self, run_id: str) -> None:
        self._feeds.push(run_id, Told(live=("rest", {})))

    async def _settle(self, run_id: str) -> None:
        run = await self._run(run_id)
        await self._index(run)
        self._expiries.watch(run)
        expiry = next_expiry(run)
        if expiry is None:
            await self.store.documents.delete("expiries", run_id)
        else:
            await self.store.documents.put("expiries", run_id, expiry)

    async def _index(self, run: Run) -> None:
        forked = run.meta.get("forked_from")
        shared = forked.get("at") if isinstance(forked, dict) else None
        own = await self.store.log.stream(run.run_id, shared if isinstance(shared, int) else 0, 1)
        latest = await self.store.log.stream(run.run_id, run.last_pos - 1, 1)
        waiting = sum(asked.kind != "breakpoint" for asked in run.interrupts.values())
        continues, forked_from = _came_from(run.meta)
        await self.store.runs.put(
            RunRecord(
                run_id=run.run_id,
                scenario=str(run.meta.get("scenario", "")),
                state=run.state,
                task=run.task,
                created=own[0].ts if own else self._clock(),
                updated=latest[-1].ts if latest else self._clock(),
                waiting=waiting,
                continues=continues,
                forked_from=forked_from,
            )
        )

    # Looking.

    async def _events(self, run_id: str) -> list[Event]:
        try:
            check_run_id(run_id)
            events = await self.store.log.stream(root_of(run_id))
        except ValueError as error:
            raise NotFound(str(error)) from error
        if not any(event.run_id == run_id for event in events):
            raise NotFound(f"there is no run {run_id}: look at the list of runs, and at which store is open")
        return events

    async def _run(self, run_id: str) -> Run:
        """A run as it stands."""
        return (await self._standing(run_id) or await self._told_by_log(run_id)).run

    async def _root_run(self, run_id: str) -> Run:
        """A run that is decided and steered: always a whole tree, by its root.

        Raises:
            NotFound: no such run.
            Conflict: it is a child run.
        """
        return _as_root(await self._run(run_id))

    async def _standing(self, run_id: str) -> Portrait | None:
        """A run up to its own last event, by its checkpoint and what came after.

        None for a child run, and where the scenario's plan is gone or does not fit.
        """
        plan = self.blueprints.plan_of(await self.events(run_id, 0, 1), run_id)
        with suppress(RuntimeError):
            run = await self._drives.scheduler().load(plan, run_id) if plan is not None else None
            if plan is not None and run is not None:
                return Portrait(run, run.last_pos, plan)
        return None

    async def _told_by_log(self, run_id: str, at: int | None = None) -> Portrait:
        events = await self._events(run_id)
        if at is not None:
            _check_position(run_id, at, events[-1].pos)
        return portrait(self.blueprints.plan_of(events, run_id), events, run_id, at)

    async def _reached(self, run: Run) -> int:
        """The position that a root run's tree had reached before the next event of the run itself."""
        at = run.last_pos
        for event in await self._stream(run.run_id, at, None):
            if event.run_id == run.run_id:
                break
            at = event.pos
        return at

    async def _since(self, seen: Portrait) -> dict[str, float]:
        """When each open question was asked, sought from the end of the log, since it was of late."""
        found: dict[str, float] = {}
        stop = seen.at
        while stop and not found.keys() >= seen.run.interrupts.keys():
            first = max(0, stop - BACKWARDS)
            for event in reversed(await self._stream(seen.run.run_id, first, stop - first)):
                if event.kind == "interrupted":
                    found.setdefault(text_in(event.data, "id"), event.ts)
            stop = first
        return found

    async def portrait(self, run_id: str, at: int | None = None) -> Portrait:
        """Where a run stood at position `at` of its tree, or stands now.

        Raises:
            NotFound: no such run, or position.
        """
        seen = await self._standing(run_id) if at is None else None
        if seen is not None:
            return replace(seen, at=await self._reached(seen.run))
        return await self._told_by_log(run_id, at)

    async def describe(self, run_id: str) -> JsonObject:
        """The run as the API tells it.

        Raises:
            NotFound: no such run.
        """
        seen = await self.portrait(run_id)
        run, since = seen.run, await self._since(seen)
        forked = run.meta.get("forked_from")
        return {
            "run_id": run.run_id,
            "scenario": run.meta.get("scenario"),
            "state": str(run.state),
            "driven": self.is_driven(run_id),
            "task": run.task,
            "input": run.meta.get("input"),
            "lang": run.meta.get("lang"),
            "waves": run.metrics["waves"],
            "output": thaw(run.final_output) if run.state is RunState.COMPLETED else None,
            "error": run.final_output if run.state is RunState.FAILED else None,
            "interrupts": [
                {**asked.to_json(), "since": since.get(asked.id), "follows": follows(seen, asked)}
                for asked in run.interrupts.values()
            ],
            "parent_id": run.parent_id,
            "children": list(run.children),
            "continues": run.meta.get("continues"),
            "forked_from": forked,
            "breakpoints": list(run.breakpoints),
            "metrics": dict(run.metrics),
            "last_event_id": seen.at,
            "url": f"/runs/{run.run_id}",
            "foreign": seen.foreign,
        }

    def is_driven(self, run_id: str) -> bool:
        """Whether this process is at work on the run."""
        return self._drives.get(root_of(run_id)) is not None

    async def find(
        self,
        *,
        state: str | None = None,
        scenario: str | None = None,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[list[RunRecord], str | None]:
        """One page of the list of runs, newest first, and the cursor of the next page.

        Raises:
            Invalid: no such state, or a cursor or limit that cannot be.
        """
        if state and state not in list(RunState):
            raise Invalid(f"there is no state {state[:40]!r}: use {', '.join(RunState)}")
        wanted = RunState(state) if state else None
        try:
            return await self.store.runs.find(
                state=wanted, scenario=scenario or None, text=text or None, limit=limit, cursor=cursor or None
            )
        except ValueError as error:
            raise Invalid(str(error)) from error

    async def events(self, run_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        """The events of a run's whole tree after a position.

        Raises:
            NotFound: no such run.
        """
        found = await self._stream(run_id, after, limit)
        if root_of(run_id) != run_id:
            known = bool(await self.store.log.events(run_id))
        else:
            known = bool(found or await self._stream(run_id, 0, 1))
        if not known:
            raise NotFound(f"there is no run {run_id}: look at the list of runs, and at which store is open")
        return found

    async def _stream(self, run_id: str, after: int, limit: int | None) -> list[Event]:
        try:
            return await self.store.log.stream(root_of(check_run_id(run_id)), after, limit)
        except ValueError as error:
            raise NotFound(str(error)) from error

    @asynccontextmanager
    async def following(self, run_id: str, after: int = 0) -> AsyncGenerator[Follower]:
        """A way through what happens in a run's tree after a position.

        Raises:
            NotFound: no such run.
        """
        latest = await self.events(run_id, max(0, after - 1), 1)
        ended = bool(after and latest) and ends_run(latest[0])
        with self._feeds.following(root_of(run_id), after, ended=ended) as follower:
            yield follower

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[Sequence[Told]]:
        """What happens in a run's tree after a position: what `Follower.read` gives, as it comes.

        Ends when the run has ended or the sessions close.

        Raises:
            NotFound: no such run.
        """
        async with self.following(run_id, after) as follower:
            while not follower.over:
                if batch := await follower.read():
                    yield batch

    def tell(self, run_id: str, name: str, data: Mapping[str, object]) -> None:
        """Tell whoever follows a run something that is not in its log."""
        self._feeds.push(run_id, Told(live=(name, data)))

    def watched(self) -> list[str]:
        """The root runs that someone follows."""
        return self._feeds.watched()

    async def until_rest(self, run_id: str, after: int = 0) -> AsyncIterator[Event]:
        """The events of a run's tree after a position, until it waits for an answer or has ended.

        Raises:
            NotFound: no such run.
        """
        async with aclosing(self.follow(run_id, after)) as batches:
            async for batch in batches:
                for told in batch:
                    if told.event is not None:
                        after = told.event.pos
                        yield told.event
                if not self.is_driven(run_id):
                    break
        await self._drives.rest(run_id)
        for event in await self._stream(run_id, after, None):
            yield event

    def row(self, record: RunRecord) -> JsonObject:
        """A row of the list of runs, as the API tells it."""
        return {
            "run_id": record.run_id,
            "scenario": record.scenario,
            "state": str(record.state),
            "driven": self.is_driven(record.run_id),
            "task": record.task,
            "created": record.created,
            "updated": record.updated,
            "waiting": record.waiting,
            "continues": record.continues,
            "forked_from": record.forked_from,
            "url": f"/runs/{record.run_id}",
        }

    async def _tell(self) -> None:
        """Hand what the bus tells to the feeds of those who watch."""
        async for item in self._told:
            event = item.get("evt")
            if isinstance(event, Event):
                self._feeds.push(event.run_id, Told(event))
            elif isinstance(run_id := item.get("run_id"), str):
                data = {key: value for key, value in item.items() if key != "event"}
                self._feeds.push(run_id, Told(live=(str(item["event"]), data)))

    # Deciding.

    async def answer(
        self, run_id: str, answers: Mapping[str, Answer], *, by: str = "", via: str = ""
    ) -> None:
        """Decide parked steps; the run goes on in the background.

        Raises:
            NotFound: no such run or interrupt.
            Conflict: the run is not suspended, or a step is already decided or has expired.
            Invalid: an answer does not fit its schema.
        """
        await self._drives.rest(run_id)
        run = await self._root_run(run_id)
        values: dict[str, JsonValue] = {}
        comments = [answer.comment for answer in answers.values() if answer.comment]
        for interrupt_id, answer in answers.items():
            asked = run.interrupts.get(interrupt_id)
            if asked is not None:
                values[interrupt_id] = answer_value(asked, answer)
            elif interrupt_id in run.decisions:
                raise decided(interrupt_id, run.decisions[interrupt_id])
            else:
                asks = ", ".join(run.interrupts) or "nothing"
                raise NotFound(f"run {run_id} never asked {interrupt_id[:80]!r}; it waits for {asks}")
        if not values and run.state is not RunState.SUSPENDED:
            raise Conflict(f"run {run_id} is {run.state}: nothing to resume")
        if not values:
            raise Invalid("no answer was given: name at least one interrupt")
        await self._resume(run_id, values, by=by, via=via, comment="; ".join(comments))

    async def _resume(
        self, run_id: str, values: Mapping[str, JsonValue], *, by: str = "", via: str = "", comment: str = ""
    ) -> None:
        plan = self.blueprints.sketch(*await self._scenario_of(run_id)).plan
        record = await self.store.runs.get(run_id)
        if record is not None:  # before the log says so: a run that dies now is found and taken up
            await self.store.runs.put(replace(record, state=RunState.RUNNING, waiting=0))
        try:
            await self._answer(plan, run_id, values, by=by, via=via, comment=comment)
        except SessionError:
            if not self.is_driven(run_id):
                await self._settle(run_id)
            raise
        await self._take_on(run_id)

    async def _answer(
        self, plan: Plan, run_id: str, values: Mapping[str, JsonValue], *, by: str, via: str, comment: str
    ) -> None:
        try:
            await self._drives.scheduler().answer(plan, run_id, dict(values), by=by, via=via, comment=comment)
        except AlreadyAnswered as error:
            raise decided(next(iter(values)), error.decision) from error
        except NoSuchInterrupt as error:
            raise NotFound(str(error.args[0])) from error
        except (NotSuspended, Expired, LogConflict) as error:
            raise Conflict(str(error)) from error
        except LogError as error:
            raise Conflict(f"the run cannot go on: {error}") from error
        except NotJson as error:
            raise Invalid(str(error)) from error

    # Steering.

    async def pause(self, run_id: str) -> None:
        """Let a run stop before its next wave.

        Raises:
            NotFound: no such run.
            Conflict: it is not being driven.
        """
        await self._root_run(run_id)
        drive = self._drives.get(run_id)
        if drive is None or drive.scheduler is None:
            raise Conflict(f"run {run_id} is not going on: there is nothing to pause")
        try:
            drive.scheduler.pause(run_id)
        except NotSuspended as error:
            raise Conflict(str(error)) from error

    async def go_on(self, run_id: str, *, step: bool = False, by: str = "", via: str = "") -> None:
        """Go on from a pause, a breakpoint or a crash.

        Args:
            step: for one wave only.

        Raises:
            NotFound: no such run.
            Conflict: there is nothing to go on from.
        """
        run = await self._root_run(run_id)
        if run.state.ended:
            raise Conflict(f"run {run_id} is {run.state}: fork it to go on from an earlier moment")
        if self.is_driven(run_id):
            raise Conflict(f"run {run_id} is going on already")
        pauses = [id for id in run.interrupts if id.rpartition("/")[2].startswith(BREAKPOINT)]
        if pauses:
            await self._resume(run_id, {id: {"step": step} for id in pauses}, by=by, via=via)
        elif run.state is RunState.SUSPENDED:
            raise Conflict(f"run {run_id} waits for {', '.join(run.interrupts)}: decide that")
        else:
            await self._take_on(run_id)

    async def cancel(self, run_id: str) -> None:
        """End a run in failure, reason "cancelled".

        Raises:
            NotFound: no such run.
            Conflict: it has ended.
        """
        await self._root_run(run_id)
        drive = self._drives.get(run_id)
        try:
            await self._drives.scheduler_of(run_id).cancel(run_id)
        except NotSuspended as error:
            raise Conflict(str(error)) from error
        if drive is None:
            await self._index(await self._run(run_id))

    async def crash(self, run_id: str) -> None:
        """Drop what drives a run, as a kill of the process would; `go_on` takes it up again.

        Raises:
            NotFound: no such run.
            Conflict: it is not being driven.
        """
        drive = self._drives.get(run_id)
        if drive is None:
            await self._root_run(run_id)
            raise Conflict(f"run {run_id} is not going on: there is nothing to crash")
        drive.task.cancel()
        await asyncio.wait({drive.task})

    async def set_breakpoints(self, run_id: str, breakpoints: Sequence[object]) -> None:
        """Set where a run stops.

        Raises:
            NotFound: no such run.
            Invalid: one of them is no breakpoint, or names what the plan does not have.
            Conflict: the run has ended, or its scenario cannot run.
        """
        run = await self._root_run(run_id)
        if run.state.ended:
            raise Conflict(f"run {run_id} is {run.state}: breakpoints would never be met")
        try:
            checked = checked_breakpoints(breakpoints)
            plan = self.blueprints.sketch(*await self._scenario_of(run_id)).plan
            check_places(plan, [found for found in checked if found not in run.breakpoints])
            await self._drives.scheduler_of(run_id).set_breakpoints(run_id, breakpoints)
        except ValueError as error:
            raise Invalid(str(error)) from error

    async def fork(
        self,
        run_id: str,
        at: int,
        *,
        updates: Mapping[str, JsonValue] | None = None,
        given: JsonValue = None,
    ) -> str:
        """A new run that shares the past of another one up to a position, and goes on from there.

        Args:
            updates: channel values that replace those of that moment.
            given: another input for the run; only before its first wave, where nothing else is settled.

        Raises:
            NotFound: no such run or position.
            Conflict: the scenario cannot run, or the run had ended by then.
            Invalid: an update or the input does not fit.
        """
        seen = await self.portrait(run_id)
        _as_root(seen.run)
        _check_position(run_id, at, seen.at)
        forked_from: JsonObject = {"run_id": run_id, "at": at}
        if given is not None:
            return await self._with_input(seen.run, given, forked_from, updates)
        plan = self.blueprints.sketch(*await self._scenario_of(run_id)).plan
        fork_id = new_run_id()
        try:
            run = await self._drives.scheduler().fork(
                plan,
                run_id,
                at=at,
                updates=updates,
                new_id=fork_id,
                meta={"forked_from": forked_from},
                drive=False,
            )
        except (NotJson, KeyError, TypeError) as error:
            raise Invalid(str(error.args[0])) from error
        except (ValueError, LogError) as error:
            raise Conflict(str(error)) from error
        await self._index(run)
        self._expiries.watch(run)
        if run.running:
            await self._take_on(fork_id)
        return fork_id

    async def _with_input(
        self,
        run: Run,
        given: JsonValue,
        forked_from: JsonObject,
        updates: Mapping[str, JsonValue] | None,
    ) -> str:
        """A fork of a run's beginning, with another input: it shares nothing but where it comes from."""
        if forked_from["at"] != 1:
            raise Invalid("another input changes the run from its start: fork it at position 1")
        if updates:
            raise Invalid("a fork has another input or edited state, not both: leave one of them out")
        about = {"continues": run.meta["continues"]} if "continues" in run.meta else {}
        return await self._start(
            str(run.meta.get("scenario")),
            given,
            str(run.meta.get("lang", "en")),
            Options(breakpoints=run.breakpoints),
            {**about, "forked_from": forked_from},
        )

    async def export(self, run_id: str) -> list[JsonObject]:
        """A run's whole tree as JSON objects, one for a line: a head, then each event.

        Raises:
            NotFound: no such run.
        """
        return bundle(await self.events(run_id))

    async def take_in(self, lines: Iterable[str]) -> str:
        """Take up an exported run under a new id, to look at and to fork; return the id.

        Raises:
            Invalid: it is not what `export` writes; the line is named.
        """
        return await self.adopt(read_bundle(lines))

    async def adopt(self, events: Sequence[Event]) -> str:
        """Take up the log of a run that was made elsewhere, under a new id; return the id.

        Raises:
            Invalid: it is no log of a whole tree.
        """
        new_id, origin = new_run_id(), events[0].run_id
        moved = [copied_event(event, origin, new_id, {"imported_from": origin}) for event in events]
        try:
            seen = portrait(None, moved, new_id)
            for child, events in _by_run(moved).items():
                portrait(None, events, child)
            await self.store.log.append_many(moved)
        except (LogError, ValueError) as error:
            raise Invalid(f"the bundle is damaged: {error}") from error
        await self._index(seen.run)
        return new_id

    async def delete(self, run_id: str) -> None:
        """Remove a run and its child runs as if they had never been.

        Raises:
            NotFound: no such run.
            Conflict: it is being driven.
        """
        try:
            await self._root_run(run_id)
        except LogError:  # a log that cannot be read is one more reason to remove it
            if root_of(run_id) != run_id:
                raise
        if self.is_driven(run_id):
            raise Conflict(f"run {run_id} is going on: cancel it first")
        self._expiries.drop(run_id)
        self._feeds.drop(run_id)
        await self.store.runs.delete(run_id)


def _came_from(meta: JsonObject) -> tuple[str | None, str | None]:
    """The run that one is the next turn of, and the one that it was forked from."""
    continues, forked = meta.get("continues"), meta.get("forked_from")
    return (
        continues if isinstance(continues, str) else None,
        str(forked["run_id"]) if isinstance(forked, dict) else None,
    )


def _as_root(run: Run) -> Run:
    if run.parent_id is not None:
        raise Conflict(f"run {run.run_id} is a child run: name its root run, {root_of(run.run_id)}")
    return run


def _kept(given: object) -> JsonValue:
    """An input as the log keeps it."""
    try:
        return thaw(freeze(given, "the input"))
    except NotJson as error:
        raise Invalid(str(error)) from error


def _check_position(run_id: str, at: int, last: int) -> None:
    if not 1 <= at <= last:
        raise NotFound(f"run {run_id} has no position {at}: choose one from 1 to {last}")


def _by_run(events: Iterable[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.run_id, []).append(event)
    return found
