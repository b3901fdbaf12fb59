"""The driver: one run, wave by wave, to its next rest.

    while the run is running:
        start whoever is ready, and say why
        run their bodies side by side; write down what each returns when it returns
        barrier: fold the deltas in plan order, obey the commands

The barrier and the next wave's starts are one batch of the log.  So an engine
that dies leaves a log that ends between two batches, and another one goes on
from there: `drive` does not care whether the run it gets is new, was answered,
or was left behind in the middle of a wave.

The wave is the superstep of Valiant's bulk-synchronous parallel model, and of Pregel.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from playground.kernel import readiness
from playground.kernel.body import (
    NodeContext,
    Outcome,
    Parked,
    coerce_outcome,
    commands_of,
    error_text,
)
from playground.kernel.breakpoints import hit, parse_breakpoints
from playground.kernel.bus import wait_in, wake_first
from playground.kernel.channels import AmbiguousWrite, FoldError, Reset, WaveWrites, check_write
from playground.kernel.command import END, Goto, Send
from playground.kernel.eventlog import FORMAT
from playground.kernel.graph import Node, Plan
from playground.kernel.ports import LlmPort, SubagentPort, ToolPort
from playground.kernel.readiness import Frontier, PredicateError, Reason
from playground.kernel.run import BREAKPOINT, Interrupt, Run
from playground.kernel.tree import Tree
from playground.kernel.types import RunState
from playground.kernel.values import (
    FrozenDict,
    FrozenList,
    JsonObject,
    JsonValue,
    NotJson,
    freeze,
    frozen_object,
    text_in,
    thaw,
)

if TYPE_CHECKING:
    from playground.kernel.scheduler import Scheduler

YIELD_AFTER = 0.002
"""Seconds a run may go on without letting other tasks run."""

_A_CENTURY = 100 * 365.25 * 86_400
"""Seconds: what lies further ahead is no date that every reader can show."""


class Slots:
    """How many bodies may run at once, over all runs of a scheduler."""

    def __init__(self, free: int) -> None:
        self._free = free
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_take(self) -> bool:
        """Take a slot if one is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def take(self) -> None:
        """Take a slot, waiting for one."""
        while not self.try_take():
            await wait_in(self._waiting)

    def give(self) -> None:
        """Give a slot back."""
        self._free += 1
        wake_first(self._waiting)


class _Abort(Exception):
    """Leaves the loop of waves: a node has failed, or it is decided that the run does."""


class Driver:
    """Drives one run of a tree; it is the host behind the contexts of the run's nodes."""

    def __init__(
        self,
        scheduler: Scheduler,
        tree: Tree,
        run: Run,
        *,
        llm: LlmPort | None = None,
        tools: ToolPort | None = None,
        max_waves: int | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.tree = tree
        self.run = run
        self.plan = run.plan
        self.llm = llm
        self.tools = tools
        self.subagent: SubagentPort = scheduler.subagent
        self.bus = scheduler.bus
        self.max_waves = max_waves or scheduler.max_waves
        self.max_bytes = scheduler.max_bytes
        self._slots = scheduler.slots
        self._held: set[str] = set()
        self._waits: Counter[str] = Counter()
        self._lost: dict[str, list[JsonValue]] = {}
        self._task: asyncio.Task[object] | None = None
        self._cancels = 0
        self._failure: JsonObject | None = None
        self._wave: list[str] = []
        self._returned: Sequence[str] = ()
        self._fact = partial(tree.fact, run)
        self._breathed = time.monotonic()

    async def drive(self) -> None:
        """Go on until the run is suspended, completed or failed.

        Raises:
            Whatever the log or the store raises: the engine stops as in a crash.
        """
        self._task = asyncio.current_task()
        self._cancels = self._task.cancelling() if self._task else 0
        try:
            await self._go_on()
        except asyncio.CancelledError:
            if not self.tree.cancelled:
                raise
            if not self.run.state.ended:
                self.fail("cancelled", "cancelled")
                await self.end()
            raise
        finally:
            for _ in self._held:
                self._slots.give()

    async def _go_on(self) -> None:
        run, tree, scheduler = self.run, self.tree, self.scheduler
        if run.event_seq == 0:
            self._begin()
        self._frontier = Frontier(self.plan, run)
        try:
            keys = self._reopen()
            while run.state is RunState.RUNNING:
                if keys:
                    await tree.flush()
                    if scheduler.checkpoint_due(run):
                        await scheduler.checkpoint(run)
                    if tree.cancelled or time.monotonic() - self._breathed > YIELD_AFTER:
                        await self._breathe()
                    await self._run_wave(keys)
                if run.wave.returned or run.wave.parked:
                    await self._barrier()
                keys = self._advance()
                if not keys:
                    break
        except _Abort:
            if run.failed_node is not None:
                reason = f"node {run.failed_node!r} failed: {run.state_of(run.failed_node).output}"
                self.fail(reason, "node_failed", run.failed_node)
        except PredicateError as error:
            self.fail(str(error), "predicate")
        except AmbiguousWrite as error:
            self.fail(str(error), "ambiguous_write")
        except FoldError as error:
            self.fail(f"wave {run.wave.number}: {error}", "bad_write")
        await self.end()

    def _tell(self, kind: str, /, **data: JsonValue) -> None:
        """A fact of the present wave."""
        self._fact(kind, {"wave": self.run.wave.number, **data})

    async def _breathe(self) -> None:
        """Let other tasks run even if no body ever waits, and heed a request to stop."""
        if self.tree.cancelled:
            raise asyncio.CancelledError
        await asyncio.sleep(0)
        self._breathed = time.monotonic()

    # Between two waves: what comes next.

    def _begin(self) -> None:
        run = self.run
        shared = dict(run.shared)
        run.shared.clear()
        start = {
            "format": FORMAT,
            "task": run.task,
            "depth": run.depth,
            "path": run.path,
            "relation": "call" if run.parent_id else "root",
            "meta": run.meta,
            "shared": shared,
            "breakpoints": run.breakpoints,
        }
        self._fact("run_started", frozen_object(start, "start of run ", run.run_id, limit=self.max_bytes))

    def _reopen(self) -> list[str]:
        """Start again what an engine that is gone had started and not finished.

        Where none of the wave's nodes has returned, its batch of starts may have been
        cut short (by a fork in its middle): whoever is ready belongs to it too.
        """
        run = self.run
        if run.failed_node is not None:
            raise _Abort
        reopened = [(key, Reason("recovered")) for key in run.open_nodes]
        if reopened and not run.wave.returned and not run.wave.parked:
            reopened = sorted([*reopened, *self._frontier.take()], key=lambda found: run.order_of(found[0]))
        return self._start(reopened, run.wave.number) if reopened else []

    def _advance(self) -> list[str]:
        """The facts that follow a barrier: the next wave's starts, or the end of this drive."""
        run = self.run
        if self.tree.cancelled:
            raise self.fail("cancelled", "cancelled")
        if run.ended_by is not None:
            return []
        if run.wave.parked or (run.interrupts and not all(a.node_id for a in run.interrupts.values())):
            return self._suspend()
        if run.sweep:
            self._finish_sweep()
        ready = self._frontier.take()
        if not ready and run.interrupts:
            return self._suspend()
        ready = ready or self._unstall()
        if not ready:
            return self._settle()
        if (self.tree.pausing or run.stepping or self.tree.root.breakpoints) and self._pauses(ready):
            return []
        if run.wave.number >= self.max_waves:
            raise self.fail(
                f"exceeded max waves {self.max_waves}: let the loop end, or allow more with max_waves",
                "max_waves",
            )
        return self._start(ready, run.wave.number + 1)

    def _unstall(self) -> list[tuple[str, Reason]]:
        """Skip what can never run; if that frees nobody, let a fan-out that sent nothing count as done."""
        plan, run = self.plan, self.run
        while readiness.unfinished(plan, run):
            dead = readiness.dead_branches(plan, run)
            if not dead:
                freed = readiness.ready(plan, run, empty_fanout=True)
                if freed:
                    return freed
                dead = readiness.dead_circles(plan, run)
            if not dead:
                return []
            self._skip(dead)
            ready = self._frontier.take()
            if ready:
                return ready
        return []

    def _skip(self, dead: Sequence[tuple[str, Reason]]) -> None:
        """Skip nodes as one sweep; each fact tells how many are left, for an engine that finds it cut."""
        for left, (key, reason) in zip(range(len(dead) - 1, -1, -1), dead, strict=True):
            self._tell("node_skipped", node=key, why=reason.to_json(), left=left)
        self._frontier.ended([key for key, _ in dead])

    def _finish_sweep(self) -> None:
        """Skip the rest of a sweep that was cut, judged as it was when it began."""
        run, begun = self.run, copy(self.run)
        begun.node_states = {key: state for key, state in run.node_states.items() if key not in run.sweep}
        dead = readiness.dead_branches(self.plan, begun) or readiness.dead_circles(self.plan, begun)
        self._skip([(key, reason) for key, reason in dead if key not in run.sweep])

    def _start(self, found: list[tuple[str, Reason]], wave: int) -> list[str]:
        run = self.run
        self.tree.kinds.pop(run.run_id, None)
        for key, reason in found:
            why = reason.to_json()
            data = self._attempt_data(key, wave, why)
            if reason.code == "edges" and reason.nodes:
                data["inputs"] = why["nodes"]
            elif reason.code == "goto" and key not in run.deliveries:
                data["inputs"] = FrozenList(readiness.live_sources(self.plan, run, key))
            if self._slots.try_take():
                self._held.add(key)
                self._fact("node_started", data)
            else:
                self._fact("node_queued", data)
        self._wave = [key for key, _ in found]
        return self._wave

    def _attempt_data(self, key: str, wave: int, why: JsonValue) -> JsonObject:
        state = self.run.node_states.get(key)
        attempts, activation = (state.attempts, state.activation) if state else (0, 0)
        return {
            "node": key,
            "wave": wave,
            "attempt": attempts + 1,
            "activation": activation + (key not in self.run.activations),
            "why": why,
        }

    def _pauses(self, ready: list[tuple[str, Reason]]) -> bool:
        """Park the run itself where a pause, a step or a breakpoint says so."""
        run, tree, path = self.run, self.tree, self.run.path
        if run.passed == run.wave.number:
            return False
        found = None
        if not (tree.pausing or run.stepping):
            found = hit(
                parse_breakpoints(tree.root.breakpoints),
                next_nodes=_named(path, (key for key, _ in ready)),
                last_nodes=_named(path, self._returned),
                kinds=tree.kinds[run.run_id],
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
        self._fact("interrupted", self.addressed(asked, "", path + BREAKPOINT, ""))
        self._suspend()
        return True

    def _suspend(self) -> list[str]:
        self._tell("run_suspended", interrupts=FrozenList(self.run.interrupts))
        return []

    def _settle(self) -> list[str]:
        plan, run = self.plan, self.run
        left = [f"{key!r} never ran ({plan.explain(run, key)})" for key in readiness.unfinished(plan, run)]
        if left:
            names = ", ".join(left)
            raise self.fail(f"graph stalled: {names}; an edge, an entry or a command is missing", "stalled")
        self._tell("run_completed", output=self._output(otherwise=FrozenDict()))
        return []

    def _output(self, otherwise: JsonValue) -> JsonValue:
        run = self.run
        values: JsonObject = {}
        for key in self.plan.shape.terminals:
            if run.instances.get(key) or run.is_completed(key):
                values[key] = run.output_of(key)
        if not values:
            return otherwise
        return next(iter(values.values())) if len(values) == 1 else FrozenDict(values)

    def fail(self, reason: str, code: str, node: str | None = None) -> Exception:
        """Decide that the run ends in failure; `end` writes it down. Raising the result leaves the waves."""
        self._failure = {"reason": reason, "code": code, **({"node": node} if node else {})}
        return _Abort()

    async def end(self) -> None:
        """Keep what was decided: a failure, a `Goto(END)`, or nothing more than what is queued."""
        if self._failure is not None:
            await self._end_in_failure(self._failure)
        elif self.run.running and self.run.ended_by is not None:
            await self._end_early(self.run.ended_by)
        await self.tree.flush()

    async def _end_in_failure(self, failure: JsonObject) -> None:
        """Nothing stays running, nothing stays asked."""
        await self._end_children()
        for key in self.run.open_nodes:
            self._tell("node_cancelled", node=key, by=failure.get("node") or failure["code"])
        self._withdraw()
        self._tell("run_failed", **failure)

    async def _end_early(self, by: str) -> None:
        """`Goto(END)`: what has not run is skipped, what was asked is withdrawn, and the run is complete."""
        run = self.run
        await self._end_children()
        self._withdraw()
        why = Reason("ended", (by,)).to_json()
        for key in readiness.unfinished(self.plan, run):
            self._tell("node_skipped", node=key, why=why)
        self._tell("run_completed", output=self._output(otherwise=run.state_of(by).output))

    async def _end_children(self) -> None:
        """End the child runs that nobody waits for any more, as their log tells them, and theirs first."""
        run = self.run
        calls = [call for activation in run.activations.values() for call in activation.calls.values()]
        children = [text_in(call, "child") for call in calls if "child" in call]
        if children:
            await self.tree.flush()
        for child_id in children:
            child = await self.scheduler.load(Plan(open_channels=True), child_id)
            if child is not None and not child.state.ended:
                driver = Driver(self.scheduler, self.tree, child)
                driver.fail(f"cancelled: run {run.run_id}, which called it, has ended", "cancelled")
                await driver.end()

    def _withdraw(self) -> None:
        for interrupt_id in list(self.run.interrupts):
            self._tell("interrupt_cancelled", id=interrupt_id)

    # A wave.

    async def _run_wave(self, keys: Sequence[str]) -> None:
        """Run the bodies, side by side if there are several; the first failure cancels the others."""
        if len(keys) == 1:
            await self._run_node(keys[0])
            return
        try:
            async with asyncio.TaskGroup() as group:
                for key in keys:
                    group.create_task(self._run_member(key))
        except BaseExceptionGroup as errors:
            for error in errors.exceptions:
                if not isinstance(error, _Abort):
                    raise error from None
            raise _Abort from None

    async def _run_member(self, key: str) -> None:
        await self._run_node(key)
        if not self.tree.unheard:  # the barrier keeps it soon enough
            await self.tree.flush()

    async def _run_node(self, key: str) -> None:
        """Attempt a node until it returns, parks, or fails for good; write down which."""
        run, node = self.run, self.plan.get(key)
        try:
            if key in run.wave.queued:
                await self._slots.take()
                self._held.add(key)
                await self._restart(key, run.state_of(key).why)
            while True:
                try:
                    found = await self._attempt(node, key)
                    self._accept(key, found if type(found) is Outcome else coerce_outcome(found))
                    return
                except Parked as parked:
                    self._park(key, parked.interrupts)
                    return
                except (KeyboardInterrupt, GeneratorExit):
                    raise  # the program is to end, or this coroutine to be closed
                except BaseException as error:
                    if self.tree.broken is not None:
                        raise
                    if self._is_stopping(error):
                        raise asyncio.CancelledError from error
                    parked_in = _all_parked(error)
                    if parked_in:
                        self._park(key, parked_in)
                        return
                    await self._failed(node, key, error)
        finally:
            self._lend(key)

    def _is_stopping(self, error: BaseException) -> bool:
        """Whether this task is asked to stop: the error is that, or comes of cleaning up after it."""
        if self.tree.cancelled or self.run.failed_node is not None:
            return True
        task = asyncio.current_task()
        if task is None or task.cancelling() <= (self._cancels if task is self._task else 0):
            return False
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, asyncio.CancelledError):
            cause = cause.__context__
        return cause is not None

    def _attempt(self, node: Node, key: str) -> Awaitable[object]:
        if self._lost:
            self._lost.pop(key, None)
        work = node.body.run(thaw(self.run.activations[key].input), NodeContext(self, key))
        return work if node.timeout is None else _within(node.timeout, work, key)

    async def _failed(self, node: Node, key: str, error: BaseException) -> None:
        """After a failed attempt: wait and start again, or write down the failure of the node.

        Raises:
            _Abort: it failed for good.
        """
        run, policy = self.run, node.retry
        failures = run.activations[key].failures
        about: JsonObject = {"node": key, "attempt": run.state_of(key).attempts, "error": error_text(error)}
        backoff = None
        if policy is not None and failures + 1 < policy.max_attempts and isinstance(error, Exception):
            try:
                delay = policy.delay_for(failures) if policy.matches(error) else None
                freeze(delay, "its delay")
                backoff = delay
            except Exception as refused:  # noqa: BLE001 - a predicate may be anyone's
                about["error"] = f"{about['error']} (its retry policy raised {error_text(refused)})"
        if backoff is None:
            self._tell("node_failed", **about, type=type(error).__name__)
            raise _Abort
        self._tell("node_retry", **about, backoff=backoff, anew=FrozenList(self._lost.pop(key, ())))
        await self.tree.flush()
        await asyncio.sleep(backoff)
        await self._restart(key, Reason("retry").to_json())

    async def _restart(self, key: str, why: JsonValue) -> None:
        self._fact("node_started", self._attempt_data(key, self.run.wave.number, why))
        await self.tree.flush()

    def _park(self, key: str, interrupts: Sequence[Interrupt]) -> None:
        """Write down that a node waits; what its child runs ask becomes known in this run too."""
        known = self.run.interrupts
        nested = FrozenList([frozen_object(asked.to_json()) for asked in interrupts if asked.id not in known])
        ids = FrozenList([asked.id for asked in interrupts])
        self._tell("node_parked", node=key, interrupts=ids, nested=nested)

    def _accept(self, key: str, outcome: Outcome) -> None:
        """Write down what a node returned, once all of it has been checked.

        Raises:
            NotJson, KeyError, TypeError, ValueError: a value, a write or a command will not do.
        """
        run = self.run
        if outcome.suspend is not None:
            asked = run.activations[key].asks.get("")
            if asked not in run.interrupts:
                data = self.addressed(outcome.suspend, key, NodeContext(self, key).path, "")
                self._fact("interrupted", data)
                asked = text_in(data, "id")
            self._park(key, [run.interrupts[asked]])
            return
        value = outcome.value
        if value is not None:
            value = freeze(value, "output of node ", key, limit=self.max_bytes)
        found: JsonObject = {"node": key, "wave": run.wave.number, "value": value}
        if outcome.state_delta:
            channels = self.plan.channels
            delta: JsonObject = {}
            resets: JsonObject = {}
            for name, written in outcome.state_delta.items():
                new, into = (written.value, resets) if isinstance(written, Reset) else (written, delta)
                frozen = freeze(new, "what node ", key, " wrote to channel ", name, limit=self.max_bytes)
                channel = channels.get(name) or self.plan.channel(name)
                if channel is None or channel.picky:
                    check_write(channel, name, frozen, key, channels)
                into[name] = frozen
            if delta:
                found["delta"] = FrozenDict(delta)
            if resets:
                found["reset"] = FrozenDict(resets)
        if outcome.control is not None:
            commands = [self._command(key, command) for command in commands_of(outcome.control)]
            found["control"] = FrozenList(commands)
        self._fact("node_completed", found)

    def _command(self, key: str, command: object) -> JsonObject:
        nodes = self.plan.nodes
        if isinstance(command, Goto):
            target = nodes.get(command.target)
            if target is None and command.target != END:
                known = ", ".join(nodes)
                raise ValueError(
                    f"node {key!r}: Goto target {command.target!r} does not exist; known nodes: {known}"
                )
            if target is not None and target.template:
                raise ValueError(f"node {key!r}: Goto target {command.target!r} is a template: use Send")
            payload = freeze(command.payload, "payload of a Goto from node ", key, limit=self.max_bytes)
            at_once = bool(command.immediate)
            return FrozenDict({"goto": command.target, "immediate": at_once, "payload": payload})
        if isinstance(command, Send):
            if command.template not in self.plan.shape.templates:
                known = ", ".join(self.plan.shape.templates) or "none"
                raise ValueError(
                    f"node {key!r}: Send target {command.template!r} is not a template; templates: {known}"
                )
            if not isinstance(command.key, str | None):
                raise TypeError(
                    f"node {key!r}: Send key {command.key!r} is no text: use str({command.key!r})"
                )
            name = freeze(command.key, "key of a Send from node ", key)
            payload = freeze(command.payload, "payload of a Send from node ", key, limit=self.max_bytes)
            return FrozenDict({"send": command.template, "key": name, "payload": payload})
        raise TypeError(f"node {key!r} returned the command {command!r}: use Goto or Send")

    # The barrier.

    async def _barrier(self) -> None:
        """Fold what the wave's nodes returned, in plan order, and obey their commands.

        Facts that an earlier engine had written before it stopped are not made again.
        """
        run = self.run
        if self.bus.has_provider("wave"):
            try:
                await self._note_for_providers()
            except NotJson as error:
                raise self.fail(str(error), "bad_note") from error
        returned = [key for key in self._wave if key in run.wave.returned]
        if len(returned) < len(run.wave.returned):  # some had returned to an engine that is gone
            returned = sorted(run.wave.returned, key=run.order_of)
        self._returned = returned
        self._frontier.ended(returned)
        done = run.wave.committed
        delta = self._wave_delta(returned)
        if delta is not None:
            if not done:
                self._fact("state_delta", delta)
            done -= 1
        for key in returned:
            for command in run.wave.returned[key].get("control", ()):
                if done <= 0:
                    self._obey(key, command)
                done -= 1

    async def _note_for_providers(self) -> None:
        """Write down what a session wants kept with the next facts, such as what a tool changed in it."""
        about = {"wave": self.run.wave.number, "topic": "", "data": None}
        told = [
            {**about, **(found if isinstance(found, dict) else {"data": found})}
            for found in await self.bus.collect("wave", run=self.run)
        ]
        for note in [frozen_object(note, "what a provider of 'wave' contributed") for note in told]:
            self._fact("note", note)

    def _wave_delta(self, returned: Sequence[str]) -> JsonObject | None:
        plan, wave, writes = self.plan, self.run.wave, None
        for key in returned:
            data = wave.returned[key]
            for kind in ("delta", "reset"):
                if kind not in data:
                    continue
                writes = writes or WaveWrites(plan.channels)
                if plan.open_channels:  # made anew since the writes were checked
                    for name in data[kind]:
                        plan.channel(name)
                writes.take(data[kind], key, reset=kind == "reset")
        if writes is None:
            return None
        if len(returned) > 1:
            writes.check_ambiguous()
        return {"wave": wave.number, **writes.folded()}

    def _obey(self, by: str, command: JsonObject) -> None:
        run = self.run
        if "send" in command:
            key = self._instance_key(text_in(command, "send"), command["key"])
            known = key in run.instance_inputs
            self._tell("control", **command | {"by": by, "key": key})
            if not known:
                self._frontier.released(key, was_ended=False)
            return
        target = text_in(command, "goto")
        was_ended = run.status_of(target).ended
        self._tell("control", by=by, **command)
        if target != END:
            self._frontier.released(target, was_ended=was_ended)

    def _instance_key(self, template: str, name: JsonValue) -> str:
        """The key of the instance of that name; without one, the first number that is free."""
        if isinstance(name, str):
            return f"{template}#{name}"
        number = self.run.sends + 1
        while f"{template}#{number}" in self.run.instance_inputs:
            number += 1
        return f"{template}#{number}"

    # What the contexts of nodes ask of their host.

    async def record(self, kind: str, data: Mapping[str, JsonValue]) -> None:
        """Append one fact of a node to the log before it goes on."""
        if kind == "tool_returned" and self.bus.has_provider("wave"):
            await self._note_for_providers()
        self._tell(kind, **data)
        if not self.tree.unheard:
            await self.tree.flush()
        if self.tree.cancelled:
            raise asyncio.CancelledError

    def addressed(self, asked: Interrupt, key: str, path: str, call: str) -> JsonObject:
        """A question with its id and its moment of expiry, as it stands in the event."""
        for what, told in (("kind", asked.kind), ("question", asked.question)):
            if not isinstance(told, str):
                raise TypeError(f"node {key!r} asks with a {what} of type {type(told).__name__}: use text")
        data = asked.to_json()
        if asked.expires_in is not None:
            if asked.expires_in > _A_CENTURY:
                raise ValueError(
                    f"node {key!r} asks with an expiry in {asked.expires_in:g} s: use up to a hundred years"
                )
            data["expires_at"] = self.scheduler.clock() + asked.expires_in
        frozen, wave = frozen_object(data, f"question of node {key!r}"), self.run.wave.number
        return {**frozen, "id": self.tree.park_id(path), "node": key, "call": call, "wave": wave}

    def child_failed(self, key: str, call: str) -> None:
        """Take note that a retry of this node must not be given this failed child run again."""
        self._lost.setdefault(key, []).append(call)

    async def without_slot(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        """Let a node wait for a child run without keeping others from running.

        It takes a slot again once none of its child runs is at work any more.
        """
        self._lend(key)
        self._waits[key] += 1
        try:
            await work()
        finally:
            self._waits[key] -= 1
        if not self._waits[key]:
            await self._slots.take()
            if self._waits[key] or key in self._held:  # another call has begun meanwhile, or was first
                self._slots.give()
            else:
                self._held.add(key)

    def _lend(self, key: str) -> None:
        """Give back the slot that a node holds, if it does."""
        if key in self._held:
            self._held.discard(key)
            self._slots.give()


async def _within(seconds: float, work: Awaitable[object], key: str) -> object:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"node {key!r} took longer than {seconds:g} s") from None
        raise


def _named(path: str, keys: Iterable[str]) -> set[str]:
    """What a breakpoint may call these nodes: an instance goes by its own key and by its template's."""
    return {path + name for key in keys for name in (key, key.partition("#")[0])}


def _all_parked(error: BaseException) -> list[Interrupt]:
    """The interrupts in a group of errors that are nothing but parks, as a task group in a body makes it."""
    if isinstance(error, Parked):
        return list(error.interrupts)
    if not isinstance(error, BaseExceptionGroup):
        return []
    inner = [_all_parked(each) for each in error.exceptions]
    return [asked for each in inner for asked in each] if all(inner) else []
