"""The scheduler: runs plans, and takes up runs again.

Forward is `run`.  The rest follows from the log being the run: `resume` folds
the log and adds an answer, `recover` folds it and goes on where it ends,
`fork` folds a part of it under another name.  Nothing of a parked run is held
in memory: letting go is all that suspending is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal
from weakref import WeakValueDictionary

from playground.kernel.body import NodeContext, Parked
from playground.kernel.breakpoints import checked_breakpoints
from playground.kernel.bus import Bus
from playground.kernel.channels import check_write
from playground.kernel.driver import Driver, Slots
from playground.kernel.eventlog import (
    CheckpointStore,
    Event,
    EventLog,
    InMemoryEventLog,
    InMemoryStore,
    LogError,
    check_run_id,
    root_of,
)
from playground.kernel.graph import Plan
from playground.kernel.ports import ChildSpec, LlmPort, Spawnable, SubagentPort, ToolPort
from playground.kernel.replay import replay
from playground.kernel.run import Interrupt, Run, new_run_id
from playground.kernel.tree import Tree
from playground.kernel.types import RunState
from playground.kernel.values import (
    MAX_BYTES,
    FrozenDict,
    JsonObject,
    dict_in,
    freeze,
    frozen_object,
    text_in,
    thaw,
)

_log = logging.getLogger(__name__)


class NotSuspended(RuntimeError):
    """The run is not in a state to be resumed, cancelled or stopped."""


class NoSuchInterrupt(KeyError):
    """The run never asked this."""


class AlreadyAnswered(RuntimeError):
    """The question was decided before; `decision` tells how."""

    def __init__(self, message: str, decision: JsonObject) -> None:
        super().__init__(message)
        self.decision = decision


class Expired(RuntimeError):
    """The answer came after the question had expired."""


class ChildFailed(RuntimeError):
    """A child run ended in failure, and so does the call that waited for it."""


class InProcessActivator:
    """Runs child runs in this process, with the same engine: the default `SubagentPort`.

    The call is remembered under the parent's activation: when the parent's body
    runs again, it finds the child it had, wherever that stands.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    async def activate(
        self,
        spec: Plan | Spawnable | ChildSpec,
        task: str,
        ctx: NodeContext,
        payload: Mapping[str, object] | None = None,
    ) -> JsonObject:
        """Start, continue or look up the child run of this call, and wait for its end.

        Raises:
            Parked: the child waits for an answer, and so does the parent.
            ChildFailed: the child failed.
            RecursionError: children nest too deep.
        """
        parent, driver = ctx.run, ctx.host
        assert isinstance(driver, Driver)
        made = child_spec(spec)
        if parent.depth + 1 > self.scheduler.max_depth:
            raise RecursionError(
                f"child runs nest deeper than max depth {self.scheduler.max_depth}: "
                "look for agents that delegate to each other, or allow more with max_depth"
            )
        given = {**(made.shared(task) if made.shared else {}), **(payload or {})}
        key = ctx.call_key("child", made.name, [task, given])
        had = ctx.activation.calls.get(key)
        child: Run | None = None
        if had is not None:
            child_id = text_in(had, "child")
            child = await self.scheduler.load(made.plan, child_id)
        else:
            child_id = f"{parent.run_id}~{len(parent.children) + 1}"
            about = {"node": ctx.node_id, "call": key, "child": child_id, "task": task, "name": made.name}
            await driver.record(
                "delegated", frozen_object({**about, "relation": "call"}, "task of a child run")
            )
        if child is None:
            child = Run.start(
                made.plan,
                run_id=child_id,
                parent_id=parent.run_id,
                depth=parent.depth + 1,
                task=task,
                path=f"{ctx.path}/",
                meta={"name": made.name, "node": ctx.node_id},
            )
            child.shared.update(frozen_object(given, "initial state of child run ", child_id))
        elif child.state is RunState.SUSPENDED:
            self._hand_down(driver.tree, ctx, child)
        if child.running:
            inner = Driver(
                self.scheduler,
                driver.tree,
                child,
                llm=made.llm or driver.llm,
                tools=made.tools or driver.tools,
                max_waves=made.max_waves,
            )
            await driver.without_slot(ctx.node_id, inner.drive)
            await self.scheduler.checkpoint(child, at_rest=True)
        if child.state is RunState.SUSPENDED:
            raise Parked(tuple(child.interrupts.values()))
        if child.state is RunState.FAILED:
            driver.child_failed(ctx.node_id, key)
            raise ChildFailed(f"child run {child.run_id} failed: {child.final_output}")
        return {
            "run_id": child.run_id,
            "state": str(child.state),
            "output": thaw(child.final_output),
            "shared": {key: thaw(value) for key, value in child.shared.items()},
        }

    def _hand_down(self, tree: Tree, ctx: NodeContext, child: Run) -> None:
        """Give a parked child the answers that its parent was resumed with."""
        answers = {id: value for id, value in ctx.activation.answers.items() if id in child.interrupts}
        if answers:
            data: JsonObject = {"wave": child.wave.number, "answers": FrozenDict(answers)}
            tree.fact(child, "run_continued", data)


def child_spec(spec: Plan | Spawnable | ChildSpec) -> ChildSpec:
    """What a child run needs, whatever it was given as.

    Raises:
        TypeError: it is nothing that can be run.
    """
    if isinstance(spec, ChildSpec):
        return spec
    if isinstance(spec, Plan):
        return ChildSpec(spec)
    if isinstance(spec, Spawnable):
        return spec.child_spec()
    raise TypeError(f"{type(spec).__name__} cannot be run as a child: give a Plan, an Agent or a Workflow")


class Scheduler:
    """Runs plans, and takes up runs again: after a pause, after a crash, from a point in the past.

    Args:
        llm: the model that bodies call.
        tools: the tools that bodies call.
        bus: where events are told; its own by default.
        eventlog: where the truth is kept; in memory by default.
        store: where checkpoints are kept; in memory by default.
        max_waves: how many waves a run may take, over all resumes.
        concurrency: how many bodies may run at once, over all runs of this scheduler.
        max_depth: how deep child runs may nest.
        durability: "sync" saves checkpoints while a run goes on, "exit" only when it comes
            to rest.  The log is always written first; a checkpoint only saves time.
        clock: wall time in seconds.
        max_bytes: the largest value that may enter the state, an output or an event.
    """

    def __init__(
        self,
        *,
        llm: LlmPort | None = None,
        tools: ToolPort | None = None,
        bus: Bus | None = None,
        eventlog: EventLog | None = None,
        store: CheckpointStore | None = None,
        max_waves: int = 64,
        concurrency: int = 8,
        max_depth: int = 8,
        durability: Literal["sync", "exit"] = "sync",
        clock: Callable[[], float] = time.time,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if durability not in ("sync", "exit"):
            raise ValueError(f"durability must be 'sync' or 'exit', not {durability!r}")
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        self.llm = llm
        self.tools = tools
        self.bus = bus if bus is not None else Bus()
        self.eventlog: EventLog = eventlog if eventlog is not None else InMemoryEventLog()
        self.store: CheckpointStore = store if store is not None else InMemoryStore()
        self.max_waves = max_waves
        self.max_depth = max_depth
        self.durability = durability
        self.clock = clock
        self.max_bytes = max_bytes
        self.slots = Slots(concurrency)
        self.subagent: SubagentPort = InProcessActivator(self)
        self._driven: dict[str, Tree] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # Going forward.

    async def run(
        self,
        plan: Plan,
        *,
        task: str = "",
        run_id: str | None = None,
        meta: Mapping[str, object] | None = None,
        breakpoints: Sequence[object] = (),
    ) -> Run:
        """Run a plan to its next rest.

        Args:
            task: the input of the entries.
            meta: JSON that the run's first event keeps, for whoever started it.
            breakpoints: see `playground.kernel.breakpoints`.

        Raises:
            ValueError: the plan is not sound.  What goes wrong later ends the run in FAILED.
        """
        run = Run.start(plan, task=task, run_id=run_id, meta=meta)
        run.breakpoints = checked_breakpoints(breakpoints)
        await self.drive(plan, run)
        return run

    async def drive(self, plan: Plan, run: Run) -> None:
        """Drive a run that was started by `Run.start`, or go on with one in hand, to its next rest.

        Raises:
            RuntimeError: it is being driven already.
        """
        run.plan = plan
        tree = self._tree(run)
        if run.event_seq:
            tree.learn(await self.eventlog.stream(run.run_id))
        self._enter(tree)
        await self._drive(tree)

    async def resume(
        self, plan: Plan, run_id: str, value: object = None, *, by: str = "", via: str = "", comment: str = ""
    ) -> Run:
        """Answer a parked run and go on.

        Args:
            value: a dict with a key that is or was an interrupt id of this run is a map of
                answers, taken whole or not at all; anything else answers the only open one.
            by: who answered; `via`: through what; `comment`: why.  The log keeps them.

        Raises:
            KeyError: no such run, or (NoSuchInterrupt) no such question.
            NotSuspended: the run has nothing to resume.
            AlreadyAnswered: a question was decided before.
            Expired: a question has expired; `expire` goes on from there.
        """
        async with self._lock(run_id):
            tree = await self._answered(plan, run_id, value, by=by, via=via, comment=comment)
            self._enter(tree)
        return await self._drive(tree)

    async def answer(
        self, plan: Plan, run_id: str, value: object = None, *, by: str = "", via: str = "", comment: str = ""
    ) -> Run:
        """The first half of `resume`: write the answer down; `recover` then goes on from it.

        Raises:
            As `resume` does.
        """
        async with self._lock(run_id):
            tree = await self._answered(plan, run_id, value, by=by, via=via, comment=comment)
        return tree.root

    async def _answered(self, plan: Plan, run_id: str, value: object, **told: str) -> Tree:
        tree = await self._load_tree(plan, run_id)
        said = frozen_object({key: text for key, text in told.items() if text}, "what came with an answer")
        about: JsonObject = {"at": self.clock(), **said}
        for interrupt_id, answer in self._answers(tree.root, value).items():
            self._answer(tree, interrupt_id, answer, about)
        await tree.flush()
        return tree

    async def expire(self, plan: Plan, run_id: str) -> Run:
        """Let the questions whose time is over take their default answer, and go on.

        Raises:
            KeyError: no such run.
        """
        async with self._lock(run_id):
            tree = await self._load_tree(plan, run_id)
            over = [asked for asked in tree.root.interrupts.values() if self._is_over(asked)]
            if tree.root.state is not RunState.SUSPENDED or not over:
                return tree.root
            for asked in over:
                self._answer(tree, asked.id, asked.default, {"outcome": "expired", "at": self.clock()})
            await tree.flush()
            self._enter(tree)
        return await self._drive(tree)

    async def recover(self, plan: Plan, run_id: str) -> Run:
        """Go on with a run whose engine is gone; one that is suspended or ended is returned as it is.

        What had returned is not done again; what was in flight runs again, with the same call ids.

        Raises:
            KeyError: no such run.
            RuntimeError: it is being driven.
        """
        async with self._lock(run_id):
            tree = await self._load_tree(plan, run_id)
            if not tree.root.running:
                return tree.root
            self._enter(tree)
        return await self._drive(tree)

    async def fork(
        self,
        plan: Plan,
        run_id: str,
        *,
        at: int,
        updates: Mapping[str, object] | None = None,
        new_id: str | None = None,
        meta: Mapping[str, object] | None = None,
        drive: bool = True,
    ) -> Run:
        """A new run that shares another one's past up to position `at` of its tree, and goes on from there.

        Args:
            updates: channel values that replace those of that moment.
            new_id: id of the new run.
            meta: put over the meta of the old run.
            drive: whether to drive it to its next rest, or leave that to `recover`.

        Raises:
            KeyError: no such run.
            ValueError: no such position, or the run had ended by then, or an update will not do.
        """
        events = await self.eventlog.stream(root_of(run_id))
        if not events:
            raise KeyError(_unknown(run_id))
        if not 1 <= at <= events[-1].pos:
            raise ValueError(f"run {run_id} has no position {at}: choose one from 1 to {events[-1].pos}")
        root, fork_id = events[0].run_id, check_run_id(new_id or new_run_id())
        copied = [copied_event(event, root, fork_id, meta) for event in events if event.pos <= at]
        run = replay(plan, copied)
        run.check_fits()
        if run.state.ended:
            raise ValueError(f"run {run_id} had {run.state} by position {at}: fork it from before its end")
        changes = frozen_object(updates or {}, "updates of a fork of ", run_id)
        for name, new in changes.items():
            try:
                check_write(plan.channel(name), name, new, "fork", plan.channels)
            except (KeyError, TypeError) as error:
                raise ValueError(f"run {run_id} cannot be forked so: {error.args[0]}") from error
        tree = self._tree(run)
        tree.begin_with(copied)
        tree.fact(run, "forked", {"run_id": root, "at": at, "updates": changes})
        await tree.flush()
        if run.running and drive:
            return await self.recover(plan, fork_id)
        await self.checkpoint(run, at_rest=True)
        return run

    # Asking it to stop.

    async def cancel(self, run_id: str) -> None:
        """End a run in FAILED, reason "cancelled", whether it is being driven here or parked.

        Raises:
            KeyError: no such run.
            NotSuspended: it has ended already.
        """
        async with self._lock(run_id):
            tree = self._driven.get(root_of(run_id))
            if tree is None:
                tree = await self._load_tree(Plan(open_channels=True), run_id)
                if tree.root.state.ended:
                    raise NotSuspended(f"run {run_id} is {tree.root.state}: there is nothing to cancel")
                driver = self._driver(tree)
                driver.fail("cancelled", "cancelled")
                await driver.end()
                return
        if tree.task is not None and not tree.cancelled:
            tree.task.cancel()
        tree.cancelled = True

    def pause(self, run_id: str) -> None:
        """Ask a run that is being driven here to park at its next barrier.

        Raises:
            NotSuspended: it is not being driven here.
        """
        driven = self._driven.get(root_of(run_id))
        if driven is None:
            raise NotSuspended(f"run {run_id} is not being driven here: there is nothing to pause")
        driven.pausing = True

    async def set_breakpoints(self, run_id: str, breakpoints: Sequence[object]) -> None:
        """Set where a run stops; the log keeps it.  See `playground.kernel.breakpoints`.

        Raises:
            KeyError: no such run.
            NotSuspended: it has ended.
            ValueError: one of them is no breakpoint.
        """
        data = frozen_object({"breakpoints": checked_breakpoints(breakpoints)}, "breakpoints of run ", run_id)
        async with self._lock(run_id):
            tree = self._driven.get(root_of(run_id))
            if tree is None:
                tree = await self._load_tree(Plan(open_channels=True), run_id)
            if tree.root.state.ended:
                raise NotSuspended(f"run {run_id} is {tree.root.state}: breakpoints would never be met")
            tree.fact(tree.root, "breakpoints_set", data)
            await tree.flush()

    async def note(self, run_id: str, topic: str, data: Mapping[str, object]) -> None:
        """Add a fact of the caller's own to the log of a run at rest.

        Raises:
            KeyError: no such run.
            RuntimeError: it is being driven.
        """
        async with self._lock(run_id):
            if self.is_driving(run_id):
                raise RuntimeError(
                    f"run {run_id} is being driven: let a provider of 'wave' contribute the note"
                )
            tree = await self._load_tree(Plan(open_channels=True), run_id)
            told = {"wave": tree.root.wave.number, "topic": topic, "data": data}
            tree.fact(tree.root, "note", frozen_object(told, "note ", topic))
            await tree.flush()

    def is_driving(self, run_id: str) -> bool:
        """Whether this scheduler is at work on the tree of this run."""
        return root_of(run_id) in self._driven

    # Loading and keeping.

    async def load(self, plan: Plan, run_id: str) -> Run | None:
        """A run as its checkpoint and the events after it tell; None if there is neither.

        Raises:
            LogError: the log or the checkpoint cannot be read, or does not fit the plan.
        """
        run, _ = await self._fold(plan, run_id, self._own_since)
        return run

    async def _load_tree(self, plan: Plan, run_id: str) -> Tree:
        if root_of(check_run_id(run_id)) != run_id:
            raise ValueError(f"run {run_id} is a child run: name its root run {root_of(run_id)}")
        plan.validate()
        run, stream = await self._fold(plan, run_id, self._all_since)
        if run is None:
            raise KeyError(_unknown(run_id))
        tree = self._tree(run)
        tree.learn(stream)
        return tree

    async def _own_since(self, run_id: str, cached: Run | None) -> list[Event]:
        """A run's own events from the last one that its checkpoint knows, or all."""
        return await self.eventlog.after(run_id, cached.event_seq - 1 if cached else 0)

    async def _all_since(self, run_id: str, cached: Run | None) -> list[Event]:
        """The same for the events of a whole tree."""
        return await self.eventlog.stream(run_id, cached.last_pos - 1 if cached else 0)

    async def _fold(
        self, plan: Plan, run_id: str, tail: Callable[[str, Run | None], Awaitable[list[Event]]]
    ) -> tuple[Run | None, list[Event]]:
        """A run as its checkpoint and the events from there on tell it, and those events.

        A checkpoint is a cache: where the log has the whole run, one that cannot be
        read, that does not fit, or that is ahead of the log is as good as none.
        """
        check_run_id(run_id)
        cached: Run | None = None
        problem: Exception | None = None
        try:
            snapshot = await self.store.load(run_id)
            if snapshot is not None:
                cached = Run.restore(plan, snapshot)
                if cached.run_id != run_id:
                    raise LogError(f"run {run_id}: its checkpoint is of run {cached.run_id}: delete it")
        except Exception as error:  # noqa: BLE001 - a store may raise anything
            problem = error
        events = await tail(run_id, cached)
        ahead = cached is not None and not any(event.run_id == run_id for event in events)
        if problem is not None or ahead:
            first = await self.eventlog.stream(root_of(run_id), 0, 1)
            if first and first[0].seq == 1:
                _log.warning(
                    "run %s is read from its log, not its checkpoint: %s", run_id, problem or "it is ahead"
                )
                cached, events = None, await tail(run_id, None)
            elif problem is not None:
                raise problem
        own = [event for event in events if event.run_id == run_id]
        if cached is not None:
            for event in own:
                if event.seq > cached.event_seq:
                    cached.apply(event)
        run = cached or (replay(plan, own) if own else None)
        if run is not None:
            run.check_fits()
        return run, events

    def _tree(self, run: Run) -> Tree:
        return Tree(self.eventlog, self.bus, self.clock, run)

    def checkpoint_due(self, run: Run) -> bool:
        """Whether a run that goes on should be saved: when its log has doubled since the last time.

        So all its checkpoints together cost as much as its log.
        """
        return run.event_seq >= 2 * max(run.saved_seq, 256) and self.durability == "sync"

    async def checkpoint(self, run: Run, *, at_rest: bool = False) -> None:
        """Save a snapshot.

        A run at rest is saved if its log has grown by an eighth, which keeps a resume
        short; where the log does not outlive the process, always.
        """
        grown = not run.state.ended and (run.event_seq - run.saved_seq) * 8 > run.event_seq
        if at_rest and not grown and getattr(self.eventlog, "durable", False):
            return
        await self.store.save(run.run_id, run.snapshot())
        run.saved_seq = run.event_seq

    # Driving.

    def _lock(self, run_id: str) -> asyncio.Lock:
        return self._locks.setdefault(run_id, asyncio.Lock())

    def _enter(self, tree: Tree) -> None:
        run_id = tree.root.run_id
        if run_id in self._driven:
            raise RuntimeError(f"run {run_id} is being driven already: wait for it, or cancel it")
        self._driven[run_id] = tree

    async def _drive(self, tree: Tree) -> Run:
        """Drive a run to its rest; then save it before anyone else takes it up."""
        run, task = tree.root, asyncio.current_task()
        assert task is not None
        cancels = task.cancelling()
        tree.task = task
        try:
            await self._driver(tree).drive()
        except asyncio.CancelledError:
            if not (tree.cancelled and run.state.ended):
                await tree.leave()
                raise
        finally:
            del self._driven[run.run_id]
        if tree.cancelled and task.cancelling() > cancels:
            task.uncancel()
        async with self._lock(run.run_id):
            await self.checkpoint(run, at_rest=True)
        return run

    def _driver(self, tree: Tree) -> Driver:
        return Driver(self, tree, tree.root, llm=self.llm, tools=self.tools)

    # Answers.

    def _answers(self, run: Run, value: object) -> dict[str, object]:
        """What is answered with what, checked as a whole."""
        known = run.interrupts.keys() | run.decisions.keys()
        if isinstance(value, dict) and not known.isdisjoint(value):
            answers: dict[str, object] = value
        elif len(run.interrupts) > 1 and run.state is RunState.SUSPENDED:
            raise NoSuchInterrupt(
                f"run {run.run_id} waits for {', '.join(run.interrupts)}: answer with a dict by interrupt id"
            )
        else:
            answers = {interrupt_id: value for interrupt_id in run.interrupts}
        for interrupt_id in answers:
            decision = run.decisions.get(interrupt_id)
            if decision is not None:
                raise AlreadyAnswered(
                    f"{interrupt_id} of run {run.run_id} was already {decision.get('outcome')}: "
                    "the first decision stands",
                    decision,
                )
            asked = run.interrupts.get(interrupt_id)
            if asked is None:
                raise NoSuchInterrupt(
                    f"run {run.run_id} never asked {interrupt_id!r}; it waits for {', '.join(run.interrupts)}"
                )
            if self._is_over(asked):
                raise Expired(f"{interrupt_id} of run {run.run_id} has expired: its default answer stands")
        if run.state is not RunState.SUSPENDED or not answers:
            raise NotSuspended(f"run {run.run_id} is {run.state}: nothing to resume")
        return answers

    def _is_over(self, asked: Interrupt) -> bool:
        return asked.expires_at is not None and self.clock() >= asked.expires_at

    def _answer(self, tree: Tree, interrupt_id: str, value: object, about: JsonObject) -> None:
        run = tree.root
        frozen = freeze(value, "answer to ", interrupt_id, limit=self.max_bytes)
        outcome = "answered"
        if isinstance(frozen, dict) and isinstance(frozen.get("approved"), bool):
            outcome = "approved" if frozen["approved"] else "rejected"
        asked = run.interrupts[interrupt_id]
        data: JsonObject = {
            "id": interrupt_id,
            "node": asked.node_id,
            "wave": run.wave.number,
            "value": frozen,
            "outcome": outcome,
            "difference": freeze(asked.difference(frozen)),
            **about,
        }
        tree.fact(run, "resumed", data)


def copied_event(event: Event, root: str, fork_id: str, meta: Mapping[str, object] | None) -> Event:
    """An event of one tree as the same event of another."""

    def moved(run_id: str) -> str:
        return fork_id + run_id[len(root) :]

    data = event.data
    if event.kind == "delegated":
        data = FrozenDict({**data, "child": moved(text_in(data, "child"))})
    elif event.kind == "run_started" and event.run_id == root and meta:
        data = FrozenDict(
            {**data, "meta": frozen_object({**dict_in(data, "meta"), **meta}, "meta of a fork")}
        )
    parent_id = moved(event.parent_id) if event.parent_id else None
    return event._replace(run_id=moved(event.run_id), parent_id=parent_id, data=data)


def _unknown(run_id: str) -> str:
    return f"run {run_id} is neither in the log nor in the checkpoint store: look at its id and at the store"
