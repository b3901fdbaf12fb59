"""The scheduler: the one engine, wave by wave.

    while the run is running:
        ready   = who can run now, and why         (readiness, kept up to date as nodes end)
        start them, side by side; log what each returns when it returns
        barrier: fold the deltas in plan order, obey the commands, commit as one batch

Three things follow from the log being the run.  Every change is made by
`Tree.fact`: it makes the event, applies it, and queues it; `flush` appends what
is queued before anyone acts on it, so a barrier and the next wave's starts are
one batch.  A crash loses at most what was never acted on: `recover` folds the
log and goes on where it ends.  And suspending is letting go: nothing of a
parked run is held in memory.

The wave is the superstep of Valiant's BSP and of Pregel.  Child runs are driven
by the same engine, each in its own log, all in one tree.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, cast
from weakref import WeakValueDictionary

from playground.kernel import readiness
from playground.kernel.body import (
    NodeContext,
    Outcome,
    Parked,
    addressed,
    coerce_outcome,
    commands_of,
    split_delta,
)
from playground.kernel.breakpoints import Breakpoint, hit, parse_breakpoints
from playground.kernel.bus import Bus
from playground.kernel.channels import AmbiguousWrite, WaveWrites, check_write, wave_delta
from playground.kernel.command import END, Goto, Send
from playground.kernel.eventlog import (
    FORMAT,
    CheckpointStore,
    Event,
    EventLog,
    InMemoryEventLog,
    InMemoryStore,
    check_run_id,
    root_of,
)
from playground.kernel.graph import Node, Plan
from playground.kernel.ports import ChildSpec, LlmPort, Spawnable, SubagentPort, ToolPort
from playground.kernel.readiness import PredicateError, Reason
from playground.kernel.run import BREAKPOINT, Interrupt, Run, check_first, new_run_id, split_park
from playground.kernel.types import RunState
from playground.kernel.values import MAX_BYTES, FrozenDict, FrozenList, JsonObject, JsonValue, freeze, thaw

YIELD_AFTER = 0.002
"""Seconds a run may go on without letting other tasks run."""


class NotSuspended(RuntimeError):
    """The run has nothing to resume."""


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


class _Abort(Exception):
    """Ends a wave whose run has failed; the facts are written already."""


class Slots:
    """How many bodies may run at once, over all runs of a scheduler."""

    def __init__(self, free: int) -> None:
        self.free = free
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_take(self) -> bool:
        """Take a slot if one is free."""
        if self.free <= 0:
            return False
        self.free -= 1
        return True

    async def take(self) -> None:
        """Take a slot, waiting for one."""
        while not self.try_take():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._wake()
                raise

    def give(self) -> None:
        """Give a slot back."""
        self.free += 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return


class Tree:
    """A root run and its children while they are driven: one numbering, one writer, one voice.

    `pos` numbers the events of the whole tree in the order in which the log has them.
    """

    def __init__(self, log: EventLog, bus: Bus, clock: Callable[[], float]) -> None:
        self.log = log
        self.bus = bus
        self.clock = clock
        self.pos = 0
        self.parks: dict[str, int] = {}
        self.root: Run | None = None
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self.pausing = False
        self.cancelled = False
        self.flushing = False
        self.tasks: set[asyncio.Task[object]] = set()
        self._outbox: list[Event] = []
        self._writing = asyncio.Lock()
        self.broken: BaseException | None = None
        self._ts = 0.0

    def fact(self, run: Run, kind: str, data: Mapping[str, JsonValue]) -> None:
        """Make an event, apply it to its run, and queue it for the log."""
        self.pos = pos = self.pos + 1
        ts = self.clock()
        if ts < self._ts:
            ts = self._ts
        self._ts = ts
        frozen = data if type(data) is FrozenDict else FrozenDict(data)
        event = Event(run.event_seq + 1, run.run_id, kind, frozen, run.parent_id, pos, ts)
        run.apply(event)
        self._outbox.append(event)

    async def flush(self) -> None:
        """Append what is queued as one batch, then tell the bus; returns when all facts made so far are kept.

        Several runs of a tree that flush at once share a batch: the later ones find theirs written.
        """
        if not self._outbox and not self.flushing:
            return
        async with self._writing:
            if self.broken is not None:
                raise self.broken
            batch, self._outbox = self._outbox, []
            if not batch:
                return
            self.flushing = True
            try:
                await self.log.append_many(batch)
            except BaseException as error:
                self.broken = error
                raise
            finally:
                self.flushing = False
            if self.bus.heard:
                for event in batch:
                    await self.bus.fire(event.kind, evt=event)

    def park_id(self, path: str) -> str:
        """The id of the next interrupt with this path; ids never recur in a tree."""
        number = self.parks.get(path, 0) + 1
        self.parks[path] = number
        return path if number == 1 else f"{path}@{number}"

    def learn(self, events: Iterable[Event]) -> None:
        """Take up the numbering from stored events."""
        for event in events:
            self.pos = max(self.pos, event.pos)
            self._ts = max(self._ts, event.ts)
            if event.kind == "interrupted":
                self.learn_park(cast("str", event.data["id"]))

    def learn_park(self, interrupt_id: str) -> None:
        path, number = split_park(interrupt_id)
        self.parks[path] = max(self.parks.get(path, 0), number)


class Frontier:
    """Who may be ready next: `Plan.ready`, kept up to date instead of asked anew.

    A wave costs its nodes' out-edges, not the plan.  What stays in `_candidates`
    are nodes whose answer can change with the state alone, such as a condition
    that does not hold yet.
    """

    def __init__(self, plan: Plan, run: Run) -> None:
        self._plan = plan
        self._run = run
        templates = plan.shape.templates
        self._open = {
            key: sum(edge.source not in templates and not run.is_terminal(edge.source) for edge in edges)
            for key, edges in plan.shape.incoming.items()
        }
        self._candidates = set(readiness.keys_in_order(plan, run))

    def take(self) -> list[tuple[str, Reason]]:
        """The ready nodes and why, in plan order."""
        found = []
        for key in tuple(self._candidates):
            reason = readiness.verdict(self._plan, self._run, key)
            if reason.ready:
                found.append((key, reason))
                self._candidates.discard(key)
            elif reason.code not in ("dead_edges", "join_short"):
                self._candidates.discard(key)
        if len(found) > 1:
            order = self._run.order_of
            found.sort(key=lambda item: order(item[0]))
        return found

    def ended(self, keys: Iterable[str]) -> None:
        """Nodes or instances completed or were skipped."""
        for source in {key.partition("#")[0]: None for key in keys}:
            self._count(source, -1)

    def released(self, key: str, *, was_ended: bool) -> None:
        """A command made a node or an instance pending."""
        self._candidates.add(key)
        if was_ended:
            self._count(key, 1)

    def _count(self, source: str, step: int) -> None:
        shape = self._plan.shape
        if source in shape.templates:
            step = 0
        for edge in shape.outgoing[source]:
            if edge.target in shape.templates:
                continue
            left = self._open[edge.target] + step
            self._open[edge.target] = left
            if left <= 0 or self._plan.nodes[edge.target].join != "all":
                self._candidates.add(edge.target)


class Driver:
    """Drives one run of a tree to its next rest.  It is the host behind the run's node contexts."""

    def __init__(
        self,
        scheduler: Scheduler,
        tree: Tree,
        run: Run,
        *,
        llm: LlmPort | None,
        tools: ToolPort | None,
        max_waves: int,
    ) -> None:
        self.scheduler = scheduler
        self.tree = tree
        self.run = run
        self.plan = run.plan
        self.llm = llm
        self.tools = tools
        self.subagent: SubagentPort = scheduler.subagent
        self.bus = scheduler.bus
        self.now = scheduler.clock
        self.max_waves = max_waves
        self._frontier: Frontier | None = None
        self._held: set[str] = set()
        self._lent: dict[str, int] = {}
        self._failure: tuple[str, str] | None = None
        self._returned: tuple[str, ...] = ()
        self._kinds: set[str] = set()
        self._yielded = time.monotonic()

    # The loop.

    async def drive(self) -> None:
        """Go on until the run is suspended, completed or failed.

        Raises:
            LogError, and whatever a store raises: the engine stops as in a crash, and
                `recover` goes on from what is kept.
        """
        try:
            await self._go_on()
        except asyncio.CancelledError:
            if not self.tree.cancelled:
                raise
            self._fail("cancelled", "cancelled")
            await self.tree.flush()
            if self.run.parent_id is not None:
                raise
        finally:
            for _ in self._held:
                self.scheduler.slots.give()
            self._held.clear()
        await self.scheduler.checkpoint(self.run, at_rest=True)

    async def _go_on(self) -> None:
        run, tree = self.run, self.tree
        if run.event_seq == 0:
            self._begin()
        keys = self._reopen()
        while True:
            if keys:
                await tree.flush()
                await self.scheduler.checkpoint(run)
                await self._breathe()
                await self._run_wave(keys)
            if not run.running:
                break
            if run.wave.returned or run.wave.parked:
                await self._barrier()
            if not run.running:
                break
            keys = self._advance()
            if not keys:
                break
        await tree.flush()

    def _begin(self) -> None:
        run = self.run
        given = dict(run.shared)
        initial = run.plan.initial_shared()
        run.shared.clear()
        run.shared.update(initial)
        data: dict[str, object] = {
            "format": FORMAT,
            "task": run.task,
            "depth": run.depth,
            "path": run.path,
            "relation": "call" if run.parent_id else "root",
            "meta": run.meta,
            "shared": {
                key: value for key, value in given.items() if key not in initial or initial[key] != value
            },
        }
        if run.breakpoints:
            data["breakpoints"] = run.breakpoints
        frozen = freeze(data, f"start of run {run.run_id}", limit=self.scheduler.max_bytes)
        self._fact("run_started", cast("JsonObject", frozen))

    async def _breathe(self) -> None:
        """Let other tasks run even if no body ever waits, and heed a request to stop."""
        if self.tree.cancelled:
            raise asyncio.CancelledError
        if time.monotonic() - self._yielded > YIELD_AFTER:
            await asyncio.sleep(0)
            self._yielded = time.monotonic()

    def _fact(self, kind: str, data: Mapping[str, JsonValue]) -> None:
        self.tree.fact(self.run, kind, data)
        if self.tree.breakpoints:
            self._kinds.add(kind)

    # Between two waves: what comes next.

    def _reopen(self) -> list[str]:
        """Start again what an engine that is gone had started and not finished.

        Where none of the wave's nodes has returned, its batch of starts may have been
        cut short (by a fork in its middle): whoever is ready belongs to it too.
        """
        run = self.run
        open_nodes = [(key, Reason("recovered")) for key in run.open_nodes]
        if not open_nodes:
            return []
        if not run.wave.returned and not run.wave.parked:
            open_nodes = self._in_order([*open_nodes, *self._ready()])
        return self._start(open_nodes, run.wave.number)

    def _advance(self) -> list[str]:
        """The facts that follow a barrier: the next wave's starts, or the end of this drive."""
        run = self.run
        try:
            if run.ended_by is not None:
                return self._end_early(run.ended_by)
            if run.wave.parked or any(not asked.node_id for asked in run.interrupts.values()):
                return self._suspend()
            ready = self._ready()
            if not ready and run.interrupts:
                return self._suspend()
            if not ready:
                ready = self._unstall()
        except PredicateError as error:
            return self._fail(str(error), "predicate")
        if not ready:
            return self._settle()
        if self._pauses(ready):
            return []
        if run.wave.number >= self.max_waves:
            return self._fail(
                f"exceeded max waves {self.max_waves}: let a loop come to its end, or allow more with max_waves",
                "max_waves",
            )
        return self._start(ready, run.wave.number + 1)

    def _ready(self) -> list[tuple[str, Reason]]:
        if self._frontier is None:
            self._frontier = Frontier(self.plan, self.run)
        return self._frontier.take()

    def _in_order(self, found: list[tuple[str, Reason]]) -> list[tuple[str, Reason]]:
        return sorted(found, key=lambda item: self.run.order_of(item[0]))

    def _unstall(self) -> list[tuple[str, Reason]]:
        """Skip what can never run; if that frees nobody, let a fan-out that sent nothing count as done."""
        assert self._frontier is not None
        while dead := readiness.dead_branches(self.plan, self.run):
            for key, reason in dead:
                self._fact("node_skipped", {"node": key, "why": reason.to_json()})
            self._frontier.ended(key for key, _ in dead)
            ready = self._frontier.take()
            if ready:
                return ready
        keys = readiness.ready_keys(self.plan, self.run, empty_fanout=True)
        return [(key, readiness.verdict(self.plan, self.run, key, empty_fanout=True)) for key in keys]

    def _start(self, found: list[tuple[str, Reason]], wave: int) -> list[str]:
        run, slots = self.run, self.scheduler.slots
        self._kinds.clear()
        for key, reason in found:
            data: dict[str, JsonValue] = {
                "node": key,
                "wave": wave,
                **self._attempt_of(key),
                "why": reason.to_json(),
            }
            sources = self._sources(key, reason)
            if sources:
                data["inputs"] = FrozenList(sources)
            if slots.try_take():
                self._held.add(key)
                self._fact("node_started", data)
            else:
                self._fact("node_queued", data)
        return [key for key, _ in found]

    def _attempt_of(self, key: str) -> dict[str, JsonValue]:
        state = self.run.state_of(key)
        new = key not in self.run.activations
        return {"attempt": state.attempts + 1, "activation": state.activation + new}

    def _sources(self, key: str, reason: Reason) -> tuple[str, ...]:
        """Whose outputs become the node's input: those of the predecessors that feed it now."""
        if reason.code == "edges":
            return reason.nodes
        if reason.code == "goto" and key not in self.run.deliveries:
            return readiness.live_sources(self.plan, self.run, key)
        return ()

    def _pauses(self, ready: list[tuple[str, Reason]]) -> bool:
        """Park the run itself where a pause, a step or a breakpoint says so."""
        run, tree = self.run, self.tree
        if not (tree.pausing or run.stepping or tree.breakpoints) or run.passed == run.wave.number:
            return False
        path = run.path
        found = None
        if not (tree.pausing or run.stepping):
            found = hit(
                tree.breakpoints,
                next_nodes={path + key for key, _ in ready},
                last_nodes={path + key for key in self._returned},
                kinds=self._kinds,
                shared=run.shared if run.parent_id is None else {},
            )
            if found is None:
                return False
        payload: JsonObject = {
            "reason": "pause" if tree.pausing else "step" if run.stepping else "breakpoint",
            "breakpoint": found.to_json() if found else None,
            "next": [key for key, _ in ready],
        }
        asked = Interrupt("breakpoint", freeze(payload), "Go on?")
        data = addressed(asked, self, "", path + BREAKPOINT)
        self._fact("interrupted", {**data, "wave": run.wave.number})
        self._suspend()
        return True

    def _suspend(self) -> list[str]:
        run = self.run
        ids = FrozenList(list(run.interrupts))
        self._fact("run_suspended", {"wave": run.wave.number, "interrupts": ids})
        return []

    def _settle(self) -> list[str]:
        run = self.run
        left = readiness.unfinished(self.plan, run)
        if left:
            return self._fail(
                f"graph stalled: no node is ready and {', '.join(map(repr, left))} never ran: "
                "an edge or an entry is missing",
                "stalled",
            )
        self._fact("run_completed", {"output": self._output(), "wave": run.wave.number})
        return []

    def _output(self) -> JsonValue:
        run = self.run
        values: dict[str, JsonValue] = {}
        for key in self.plan.shape.terminals:
            instances = run.instances.get(key)
            if instances:
                values[key] = FrozenList([run.state_of(instance).output for instance in instances])
            elif run.is_completed(key):
                values[key] = run.state_of(key).output
        return next(iter(values.values())) if len(values) == 1 else FrozenDict(values)

    def _end_early(self, by: str) -> list[str]:
        """`Goto(END)`: what has not run is skipped, what was asked is withdrawn, and the run is complete."""
        run = self.run
        for interrupt_id in list(run.interrupts):
            self._fact("interrupt_cancelled", {"id": interrupt_id})
        for key in readiness.unfinished(self.plan, run):
            self._fact("node_skipped", {"node": key, "why": Reason("ended", (by,)).to_json()})
        output = self._output() or run.state_of(by).output
        self._fact("run_completed", {"output": output, "wave": run.wave.number})
        return []

    def _fail(self, reason: str, code: str, node: str | None = None) -> list[str]:
        """End the run in failure: nothing stays running, nothing stays asked."""
        run = self.run
        for key in run.open_nodes:
            self._fact("node_cancelled", {"node": key, "wave": run.wave.number, "by": node or code})
        for interrupt_id in list(run.interrupts):
            self._fact("interrupt_cancelled", {"id": interrupt_id})
        data: dict[str, JsonValue] = {"reason": reason, "code": code, "wave": run.wave.number}
        self._fact("run_failed", {**data, "node": node} if node else data)
        return []

    # A wave.

    async def _run_wave(self, keys: Sequence[str]) -> None:
        """Run the bodies, side by side if there are several; the first failure cancels the others."""
        try:
            if len(keys) == 1:
                await self._run_node(keys[0])
            else:
                async with asyncio.TaskGroup() as group:
                    for key in keys:
                        group.create_task(self._run_member(key))
        except _Abort:
            pass
        except BaseExceptionGroup as errors:
            for error in errors.exceptions:
                if not isinstance(error, _Abort):
                    raise error from None
        if self._failure is not None:
            key, text = self._failure
            self._fail(f"node {key!r} failed: {text}", "node_failed", key)

    async def _run_member(self, key: str) -> None:
        await self._run_node(key)
        await self.tree.flush()

    async def _run_node(self, key: str) -> None:
        """Attempt a node until it returns, parks, or fails for good; log which."""
        node = self.plan.get(key)
        try:
            if key in self.run.wave.queued:
                await self.scheduler.slots.take()
                self._held.add(key)
                await self._restart(key, self.run.state_of(key).why)
            while True:
                try:
                    self._accept(key, await self._attempt(node, key))
                    return
                except Parked as parked:
                    self._park(key, parked.interrupts)
                    return
                except BaseExceptionGroup as group:
                    parked_in, rest = group.split(Parked)
                    if rest is None and parked_in is not None:
                        self._park(key, [i for p in _leaves(parked_in) for i in p.interrupts])
                        return
                    error: BaseException = group
                    if not isinstance(group, Exception):
                        raise
                except asyncio.CancelledError as stop:
                    if self.tree.cancelled or _cancelling():
                        raise
                    error = stop
                except Exception as raised:
                    if self.tree.broken:
                        raise
                    error = raised
                if not await self._retries(node, key, error):
                    raise _Abort
        finally:
            if key in self._held:
                self._held.discard(key)
                if not self._lent.pop(key, 0):
                    self.scheduler.slots.give()

    async def _attempt(self, node: Node, key: str) -> Outcome:
        ctx = NodeContext(self, key)
        value = thaw(self.run.activations[key].input)
        if node.timeout is None:
            return coerce_outcome(await node.body.run(value, ctx))
        try:
            async with asyncio.timeout(node.timeout) as limit:
                return coerce_outcome(await node.body.run(value, ctx))
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"node {key!r} took longer than {node.timeout:g} s") from None
            raise

    async def _retries(self, node: Node, key: str, error: BaseException) -> bool:
        """After a failed attempt: wait and start again, or write down the failure of the node."""
        run, policy = self.run, node.retry
        failures = run.activations[key].failures
        text = _error_text(error)
        state = run.state_of(key)
        again = (
            policy is not None
            and failures + 1 < policy.max_attempts
            and not isinstance(error, asyncio.CancelledError)
            and policy.matches(error)
        )
        about: dict[str, JsonValue] = {
            "node": key,
            "wave": run.wave.number,
            "attempt": state.attempts,
            "error": text,
        }
        if not again or policy is None:
            self._fact("node_failed", {**about, "type": type(error).__name__})
            self._failure = self._failure or (key, text)
            return False
        backoff = policy.delay_for(failures)
        self._fact("node_retry", {**about, "backoff": backoff})
        await self.tree.flush()
        if backoff > 0:
            await asyncio.sleep(backoff)
        await self._restart(key, Reason("retry").to_json())
        return True

    async def _restart(self, key: str, why: JsonValue) -> None:
        data = {"node": key, "wave": self.run.wave.number, **self._attempt_of(key), "why": why}
        self._fact("node_started", data)
        await self.tree.flush()

    def _park(self, key: str, interrupts: Sequence[Interrupt]) -> None:
        run = self.run
        nested: list[JsonValue] = [asked.to_json() for asked in interrupts if asked.id not in run.interrupts]
        data: dict[str, JsonValue] = {
            "node": key,
            "wave": run.wave.number,
            "interrupts": FrozenList([asked.id for asked in interrupts]),
        }
        if nested:
            data["nested"] = FrozenList(nested)
        self._fact("node_parked", data)

    def _accept(self, key: str, outcome: Outcome) -> None:
        """Write down what a node returned, once all of it has been checked.

        Raises:
            NotJson, KeyError, TypeError, ValueError: a value, a write or a command will not do.
        """
        run = self.run
        if outcome.suspend is not None:
            asked = run.activations[key].asks.get("")
            if asked not in run.interrupts:
                data = addressed(outcome.suspend, self, key, NodeContext(self, key).path)
                self._fact("interrupted", {**data, "call": "", "wave": run.wave.number})
                asked = cast("str", data["id"])
            self._park(key, [run.interrupts[asked]])
            return
        limit = self.scheduler.max_bytes
        found: dict[str, JsonValue] = {
            "node": key,
            "wave": run.wave.number,
            "value": freeze(outcome.value, f"output of node {key!r}", limit=limit),
        }
        if outcome.state_delta:
            writes, resets = split_delta(outcome.state_delta)
            if writes:
                found["delta"] = self._checked(writes, key, limit)
            if resets:
                found["reset"] = self._checked(resets, key, limit, fold=False)
        commands = commands_of(outcome.control)
        if commands:
            found["control"] = FrozenList([self._command(key, command, limit) for command in commands])
        self._fact("node_completed", found)

    def _checked(
        self, writes: Mapping[str, object], key: str, limit: int, *, fold: bool = True
    ) -> FrozenDict:
        checked: dict[str, JsonValue] = {}
        for name, value in writes.items():
            frozen = freeze(value, f"what node {key!r} wrote to channel {name!r}", limit=limit)
            channel = self.plan.channel(name)
            if fold or channel is None:
                check_write(channel, name, frozen, key, self.plan.channels)
            checked[name] = frozen
        return FrozenDict(checked)

    def _command(self, key: str, command: object, limit: int) -> JsonValue:
        nodes = self.plan.nodes
        if isinstance(command, Goto):
            target = nodes.get(command.target)
            if target is None and command.target != END:
                raise ValueError(
                    f"node {key!r}: Goto target {command.target!r} does not exist; known nodes: {', '.join(nodes)}"
                )
            if target is not None and target.template:
                raise ValueError(f"node {key!r}: Goto target {command.target!r} is a template: use Send")
            payload = freeze(
                command.payload, f"payload of Goto {command.target!r} from node {key!r}", limit=limit
            )
            return FrozenDict({"goto": command.target, "immediate": command.immediate, "payload": payload})
        if isinstance(command, Send):
            target = nodes.get(command.template)
            if target is None or not target.template:
                templates = ", ".join(self.plan.shape.templates) or "none"
                raise ValueError(
                    f"node {key!r}: Send target {command.template!r} is not a template node; known templates: {templates}"
                )
            payload = freeze(
                command.payload, f"payload of Send {command.template!r} from node {key!r}", limit=limit
            )
            return FrozenDict({"send": command.template, "key": command.key, "payload": payload})
        raise TypeError(f"node {key!r} returned the command {command!r}: use Goto or Send")

    # The barrier.

    async def _barrier(self) -> None:
        """Fold what the wave's nodes returned, in plan order, and obey their commands.

        Facts that an earlier engine had written before it stopped are not made again.
        """
        run = self.run
        extras = await self.bus.collect("wave", run=run) if self.bus.has_provider("wave") else []
        returned = (
            sorted(run.wave.returned, key=run.order_of)
            if len(run.wave.returned) > 1
            else [*run.wave.returned]
        )
        self._returned = tuple(returned)
        for extra in extras:
            self._fact("note", cast("FrozenDict", freeze(extra, "what a provider of 'wave' contributed")))
        if self._frontier is not None:
            self._frontier.ended(returned)
        done = run.wave.committed
        try:
            delta = self._wave_delta(returned)
        except (AmbiguousWrite, TypeError, ValueError) as error:
            self._fail(str(error), "ambiguous_write" if isinstance(error, AmbiguousWrite) else "bad_write")
            return
        if delta is not None:
            if not done:
                self._fact("state_delta", delta)
            done -= 1
        for key in returned:
            for command in cast("Sequence[JsonObject]", run.wave.returned[key].get("control", ())):
                if done <= 0:
                    self._obey(key, command)
                done -= 1

    def _wave_delta(self, returned: Sequence[str]) -> FrozenDict | None:
        run = self.run
        writes = WaveWrites(self.plan.channels)
        for key in returned:
            data = run.wave.returned[key]
            for kind in ("delta", "reset"):
                for name, value in cast("JsonObject", data.get(kind, _EMPTY)).items():
                    self.plan.channel(name)
                    writes.buffer(name, value, key, reset=kind == "reset")
        writes.check_ambiguous()
        drained = writes.drain()
        if not drained:
            return None
        delta, resets, writers = wave_delta(drained, self.plan.channels)
        found: dict[str, JsonValue] = {
            "wave": run.wave.number,
            "delta": FrozenDict(delta),
            "writers": FrozenDict(writers),
            "reducers": FrozenDict({name: self.plan.channels[name].name for name in writers}),
        }
        if resets:
            found["reset"] = FrozenDict(resets)
        return FrozenDict(found)

    def _obey(self, by: str, command: JsonObject) -> None:
        run, frontier = self.run, self._frontier
        about: dict[str, JsonValue] = {"wave": run.wave.number, "by": by, "payload": command["payload"]}
        if "send" in command:
            template = cast("str", command["send"])
            key = run.instance_key(template, cast("str | None", command["key"]))
            new = key not in run.instance_inputs
            self._fact("control", {**about, "send": template, "key": key})
            if new and frontier is not None:
                frontier.released(key, was_ended=False)
            return
        target = cast("str", command["goto"])
        was_ended = run.is_terminal(target)
        self._fact("control", {**about, "goto": target, "immediate": command["immediate"]})
        if frontier is not None and target != END:
            frontier.released(target, was_ended=was_ended)

    # What node contexts ask of their host.

    async def record(self, kind: str, data: Mapping[str, JsonValue]) -> None:
        """Append one fact of a node to the log before it goes on."""
        self._fact(kind, data if "wave" in data else {**data, "wave": self.run.wave.number})
        await self.tree.flush()
        if self.tree.cancelled:
            raise asyncio.CancelledError

    def park_id(self, path: str) -> str:
        """The id of the next interrupt with this path."""
        return self.tree.park_id(path)

    async def without_slot(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        """Let a node wait for a child run without keeping others from running."""
        slots = self.scheduler.slots
        self._lent[key] = self._lent.get(key, 0) + 1
        if self._lent[key] == 1:
            slots.give()
        await work()
        if self._lent[key] == 1:
            await slots.take()
        self._lent[key] -= 1


_EMPTY: JsonObject = FrozenDict()


def _cancelling() -> bool:
    """Whether someone outside asks this task to stop, rather than its body having raised."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _leaves(group: BaseExceptionGroup[Parked]) -> list[Parked]:
    found: list[Parked] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found


def _error_text(error: BaseException) -> str:
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    text = f"{type(error).__name__}: {said}" if str(said) else type(error).__name__
    return text.encode("utf-8", "replace").decode()[:4000]


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
        if isinstance(had, dict):
            child_id = cast("str", had["child"])
            child = await self.scheduler.load(made.plan, child_id)
        else:
            child_id = f"{parent.run_id}~{len(parent.children) + 1}"
            about = {"node": ctx.node_id, "call": key, "child": child_id, "task": task, "name": made.name}
            about["relation"] = "call"
            await driver.record("delegated", cast("JsonObject", freeze(about, "task of a child run")))
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
            child.shared.update(cast("dict[str, JsonValue]", given))
        elif child.state is RunState.SUSPENDED:
            self._hand_down(driver.tree, ctx, child)
        if child.running:
            inner = Driver(
                self.scheduler,
                driver.tree,
                child,
                llm=made.llm or driver.llm,
                tools=made.tools or driver.tools,
                max_waves=made.max_waves or self.scheduler.max_waves,
            )
            await driver.without_slot(ctx.node_id, inner.drive)
        if child.state is RunState.SUSPENDED:
            raise Parked(tuple(child.interrupts.values()))
        if child.state is RunState.FAILED:
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
            tree.fact(child, "run_continued", {"answers": FrozenDict(answers)})


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
        self._trees: dict[str, tuple[Tree, asyncio.Task[object] | None]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._durable = bool(getattr(self.eventlog, "durable", False))

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
        run.breakpoints = [found.to_json() for found in parse_breakpoints(breakpoints)]
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
            tree.learn(await self.eventlog.stream(run.run_id, 0))
        await self._drive(tree, run)

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
            tree, run = await self._load_tree(plan, run_id)
            answers = self._answers(run, value)
            about: JsonObject = {"by": by, "via": via, "comment": comment, "at": self.clock()}
            kept = {key: found for key, found in about.items() if found != ""}
            for interrupt_id, answer in answers.items():
                self._answer(tree, run, interrupt_id, answer, kept)
            await tree.flush()
            self._enter(tree, run)
        await self._drive(tree, run, entered=True)
        return run

    async def expire(self, plan: Plan, run_id: str) -> Run:
        """Let the questions whose time is over take their default answer, and go on.

        Raises:
            KeyError: no such run.
        """
        async with self._lock(run_id):
            tree, run = await self._load_tree(plan, run_id)
            over = [asked for asked in run.interrupts.values() if self._is_over(asked)]
            if run.state is not RunState.SUSPENDED or not over:
                return run
            for asked in over:
                self._answer(tree, run, asked.id, asked.default, {"outcome": "expired", "at": self.clock()})
            await tree.flush()
            self._enter(tree, run)
        await self._drive(tree, run, entered=True)
        return run

    async def recover(self, plan: Plan, run_id: str) -> Run:
        """Go on with a run whose engine is gone; one that is suspended or ended is returned as it is.

        What had returned is not done again; what was in flight runs again, with the same call ids.

        Raises:
            KeyError: no such run.
            RuntimeError: it is being driven.
        """
        async with self._lock(run_id):
            tree, run = await self._load_tree(plan, run_id)
            if not run.running:
                return run
            self._enter(tree, run)
        await self._drive(tree, run, entered=True)
        return run

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
        """A new run that shares a past with another one, up to position `at` of its tree, and goes on from there.

        Args:
            updates: channel values that replace those of that moment.
            new_id: id of the new run.
            meta: put over the meta of the old run.
            drive: whether to drive it to its next rest, or leave that to `recover`.

        Raises:
            KeyError: no such run.
            ValueError: no such position, or the run had ended by then, or an update will not do.
        """
        events = await self.eventlog.stream(root_of(run_id), 0)
        if not events:
            raise KeyError(_unknown(run_id))
        if not 1 <= at <= events[-1].pos:
            raise ValueError(f"run {run_id} has no position {at}: choose one from 1 to {events[-1].pos}")
        root, fork_id = events[0].run_id, check_run_id(new_id or new_run_id())
        copied = [_copied(event, root, fork_id, meta) for event in events if event.pos <= at]
        tree = Tree(self.eventlog, self.bus, self.clock)
        run = Run(plan, fork_id)
        for event in copied:
            if event.run_id == fork_id:
                run.apply(event)
        run.check_fits()
        if run.state.ended:
            raise ValueError(f"run {run_id} had {run.state} by position {at}: fork it from before its end")
        changes = cast("JsonObject", freeze(dict(updates or {}), f"updates of a fork of {run_id}"))
        for name, new in changes.items():
            check_write(plan.channel(name), name, new, "fork", plan.channels)
        tree.learn(copied)
        await self.eventlog.append_many(copied)
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
        driven = self._trees.get(root_of(run_id))
        if driven is None:
            async with self._lock(run_id):
                tree, run = await self._load_tree(Plan(open_channels=True), run_id)
                if run.state.ended:
                    raise NotSuspended(f"run {run_id} is {run.state}: there is nothing to cancel")
                for key in run.open_nodes:
                    tree.fact(
                        run, "node_cancelled", {"node": key, "wave": run.wave.number, "by": "cancelled"}
                    )
                for interrupt_id in list(run.interrupts):
                    tree.fact(run, "interrupt_cancelled", {"id": interrupt_id})
                data: JsonObject = {"reason": "cancelled", "code": "cancelled", "wave": run.wave.number}
                tree.fact(run, "run_failed", data)
                await tree.flush()
            return
        tree, task = driven
        tree.cancelled = True
        if task is not None and not tree.flushing:
            task.cancel()

    def pause(self, run_id: str) -> None:
        """Ask a run that is being driven here to park at its next barrier.

        Raises:
            NotSuspended: it is not being driven here.
        """
        driven = self._trees.get(root_of(run_id))
        if driven is None:
            raise NotSuspended(f"run {run_id} is not being driven here: there is nothing to pause")
        driven[0].pausing = True

    async def set_breakpoints(self, run_id: str, breakpoints: Sequence[object]) -> None:
        """Set where a run stops; the log keeps it.  See `playground.kernel.breakpoints`.

        Raises:
            KeyError: no such run.
            ValueError: one of them is no breakpoint.
        """
        found = parse_breakpoints(breakpoints)
        data: JsonObject = {"breakpoints": FrozenList([point.to_json() for point in found])}
        driven = self._trees.get(root_of(run_id))
        if driven is not None and driven[0].root is not None:
            tree = driven[0]
            tree.fact(tree.root, "breakpoints_set", data)  # type: ignore[arg-type]
            tree.breakpoints = found
            await tree.flush()
            return
        async with self._lock(run_id):
            tree, run = await self._load_tree(Plan(open_channels=True), run_id)
            tree.fact(run, "breakpoints_set", data)
            await tree.flush()

    def is_driving(self, run_id: str) -> bool:
        """Whether this scheduler is at work on the tree of this run."""
        return root_of(run_id) in self._trees

    # Loading and keeping.

    async def load(self, plan: Plan, run_id: str) -> Run | None:
        """A run as its checkpoint and the events after it tell; None if there is neither.

        Raises:
            LogError: the log or the checkpoint cannot be read, or does not fit the plan.
        """
        snapshot = await self.store.load(check_run_id(run_id))
        run = Run.restore(plan, snapshot) if snapshot is not None else None
        tail = await self.eventlog.after(run_id, run.event_seq if run else 0)
        return _replayed(plan, run_id, run, tail)

    async def _load_tree(self, plan: Plan, run_id: str) -> tuple[Tree, Run]:
        check_run_id(run_id)
        if root_of(run_id) != run_id:
            raise ValueError(f"run {run_id} is a child run: name its root run {root_of(run_id)}")
        plan.validate()
        snapshot = await self.store.load(run_id)
        run = Run.restore(plan, snapshot) if snapshot is not None else None
        stream = await self.eventlog.stream(run_id, run.last_pos if run else 0)
        seq = run.event_seq if run else 0
        run = _replayed(plan, run_id, run, [e for e in stream if e.run_id == run_id and e.seq > seq])
        if run is None:
            raise KeyError(_unknown(run_id))
        tree = self._tree(run)
        tree.learn(stream)
        return tree, run

    def _tree(self, run: Run) -> Tree:
        tree = Tree(self.eventlog, self.bus, self.clock)
        tree.pos = run.last_pos
        tree.parks = dict(run.parks)
        tree.root = run
        tree.breakpoints = parse_breakpoints(run.breakpoints)
        return tree

    async def checkpoint(self, run: Run, *, at_rest: bool = False) -> None:
        """Save a snapshot where it pays.

        While a run goes on, one is due when the log has doubled since the last; so all
        of them together cost as much as the log.  At rest it is due after an eighth
        more, which keeps a resume short, and always where the log does not outlive the
        process.
        """
        saved, seq = run.saved_seq, run.event_seq
        if at_rest:
            due = not self._durable or (seq - saved) * 8 > seq
            if self._durable and run.state.ended:
                due = False
        else:
            due = self.durability == "sync" and seq >= 2 * max(saved, 256)
        if due:
            await self.store.save(run.run_id, run.snapshot())
            run.saved_seq = seq

    # Driving.

    def _lock(self, run_id: str) -> asyncio.Lock:
        lock = self._locks.get(run_id)
        if lock is None:
            lock = self._locks[run_id] = asyncio.Lock()
        return lock

    def _enter(self, tree: Tree, run: Run) -> None:
        if run.run_id in self._trees:
            raise RuntimeError(f"run {run.run_id} is being driven already: wait for it, or cancel it")
        self._trees[run.run_id] = tree, None

    async def _drive(self, tree: Tree, run: Run, *, entered: bool = False) -> None:
        if not entered:
            self._enter(tree, run)
        task = cast("asyncio.Task[object] | None", asyncio.current_task())
        self._trees[run.run_id] = tree, task
        try:
            driver = Driver(self, tree, run, llm=self.llm, tools=self.tools, max_waves=self.max_waves)
            await driver.drive()
        except asyncio.CancelledError:
            if tree.cancelled and task is not None and run.state.ended:
                task.uncancel()
            else:
                raise
        finally:
            self._trees.pop(run.run_id, None)

    # Answers.

    def _answers(self, run: Run, value: object) -> dict[str, object]:
        """What is answered with what, checked as a whole."""
        known = run.interrupts.keys() | run.decisions.keys()
        if isinstance(value, dict) and not known.isdisjoint(value):
            answers = cast("dict[str, object]", value)
        elif run.state is not RunState.SUSPENDED or not run.interrupts:
            raise NotSuspended(f"run {run.run_id} is {run.state}: nothing to resume")
        elif len(run.interrupts) > 1:
            raise NoSuchInterrupt(
                f"run {run.run_id} waits for {', '.join(run.interrupts)}: answer with a dict by interrupt id"
            )
        else:
            answers = {next(iter(run.interrupts)): value}
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
        return answers

    def _is_over(self, asked: Interrupt) -> bool:
        return asked.expires_at is not None and self.clock() >= asked.expires_at

    def _answer(self, tree: Tree, run: Run, interrupt_id: str, value: object, about: JsonObject) -> None:
        frozen = freeze(value, f"answer to {interrupt_id}", limit=self.max_bytes)
        outcome = "answered"
        if isinstance(frozen, dict) and isinstance(frozen.get("approved"), bool):
            outcome = "approved" if frozen["approved"] else "rejected"
        asked = run.interrupts[interrupt_id]
        data: JsonObject = {
            "id": interrupt_id,
            "node": asked.node_id,
            "value": frozen,
            "outcome": outcome,
            **about,
        }
        tree.fact(run, "resumed", data)


def _replayed(plan: Plan, run_id: str, run: Run | None, tail: Sequence[Event]) -> Run | None:
    if run is None:
        if not tail:
            return None
        run = Run(plan, run_id, parent_id=tail[0].parent_id)
        check_first(tail[0])
    else:
        run.saved_seq = run.event_seq
    for event in tail:
        run.apply(event)
    run.check_fits()
    return run


def _copied(event: Event, root: str, fork_id: str, meta: Mapping[str, object] | None) -> Event:
    """An event of one tree as the same event of another."""

    def moved(run_id: str) -> str:
        return fork_id + run_id[len(root) :]

    data = event.data
    if event.kind == "delegated":
        data = FrozenDict({**data, "child": moved(cast("str", data["child"]))})
    elif event.kind == "run_started" and event.run_id == root and meta:
        old = cast("JsonObject", data.get("meta", _EMPTY))
        data = FrozenDict({**data, "meta": freeze({**old, **meta}, "meta of a fork")})
    parent_id = moved(event.parent_id) if event.parent_id else None
    return event._replace(run_id=moved(event.run_id), parent_id=parent_id, data=data)


def _unknown(run_id: str) -> str:
    return f"run {run_id} is neither in the log nor in the checkpoint store: look at its id and at the store"
