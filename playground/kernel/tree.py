"""The tree of a root run while it is driven: one numbering, one writer, one voice.

A root run and its children share a log, and a reader of the page follows all of
them as one story.  So their facts get their positions in one place, are written
in that order, and are told in that order.  Every change to any of the runs
passes through `fact`, and nothing is acted on before `flush` has kept it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from playground.kernel.bus import Bus
from playground.kernel.eventlog import Event, EventLog, InMemoryEventLog
from playground.kernel.run import Run, split_park
from playground.kernel.values import FrozenDict, JsonValue, text_in

_event = tuple.__new__
"""Makes an `Event` as its own constructor does, at a third of the cost."""


class Tree:
    """What the runs of one tree share while they are driven.

    Attributes:
        pos: position of the latest fact.
        parks: how often each path has parked, so that interrupt ids never recur.
        root: the root run.
        kinds: the events since each run's latest starts, if the root run has breakpoints.
        task: the task that drives it, once there is one.
        pausing, cancelled: what someone outside has asked for.
        broken: the error that ended the writing; nothing more is kept after it.
    """

    def __init__(self, log: EventLog, bus: Bus, clock: Callable[[], float], root: Run) -> None:
        self.root = root
        self.pos = root.last_pos
        self.parks = dict(root.parks)
        self.kinds: defaultdict[str, set[str]] = defaultdict(set)
        self.task: asyncio.Task[object] | None = None
        self.pausing = False
        self.cancelled = False
        self.broken: BaseException | None = None
        self._log = log
        self._at_once = type(log) is InMemoryEventLog
        self._bus = bus
        self._clock = clock
        self._ts = 0.0
        self._outbox: list[Event] = []
        self._writing: asyncio.Task[None] | None = None
        self._telling = False

    def fact(self, run: Run, kind: str, data: Mapping[str, JsonValue]) -> None:
        """Make an event, apply it to its run, and queue it for the log.

        What its run refuses takes no number: the log has no gap where it would have been.
        """
        self._ts = ts = max(self._clock(), self._ts)
        pos = self.pos + 1
        frozen = data if type(data) is FrozenDict else FrozenDict(data)
        event = _event(Event, (run.event_seq + 1, run.run_id, kind, frozen, run.parent_id, pos, ts))
        run.take(event)
        self.pos = pos
        self._outbox.append(event)
        if self.root.breakpoints:
            self.kinds[run.run_id].add(kind)

    async def flush(self) -> None:
        """Append what is queued as one batch, then tell the bus; afterwards all facts made so far are kept.

        Runs that flush at once share batches: who comes during one finds its facts in the next.
        Cancelling who waits here does not stop the writing: a timeout, a failing sibling or a
        request to stop must not leave the log in doubt.

        Raises:
            LogError, or whatever the log raises; from then on the tree is broken.
        """
        if self._writing is None:
            if self.broken is not None:
                raise self.broken
            if not self._outbox:
                return
            if self.unheard:
                await self._append()
                return
            self._writing = asyncio.create_task(self._write())
        elif self._writing is asyncio.current_task():
            return  # an observer has made a fact: the next batch takes it along
        await asyncio.shield(self._writing)

    async def _write(self) -> None:
        try:
            while self._outbox:
                batch = await self._append()
                if self._bus.heard:
                    self._telling = True
                    for event in batch:
                        await self._bus.fire(event.kind, evt=event)
                    self._telling = False
        except BaseException as error:
            self.broken = error
            raise
        finally:
            self._writing = None

    @property
    def unheard(self) -> bool:
        """Whether nobody outside this process's memory can tell when a fact is kept."""
        return self._at_once and not self._bus.heard

    async def _append(self) -> Sequence[Event]:
        batch, self._outbox = self._outbox, []
        try:
            await self._log.append_many(batch)
        except BaseException as error:
            self.broken = error
            raise
        return batch

    async def leave(self) -> None:
        """Let an append in hand end; then write nothing more, and tell nobody any more."""
        self._outbox.clear()
        self.broken = self.broken or asyncio.CancelledError("the engine has left this run")
        writing = self._writing
        if writing is not None:
            if self._telling:
                writing.cancel()
            await asyncio.wait((writing,))

    def park_id(self, path: str) -> str:
        """The id of the next interrupt with this path; ids never recur in a tree."""
        number = self.parks.get(path, 0) + 1
        self.parks[path] = number
        return path if number == 1 else f"{path}@{number}"

    def begin_with(self, events: Sequence[Event]) -> None:
        """Queue the events of another tree, moved to this one, as what it begins with."""
        self.learn(events)
        self._outbox.extend(events)

    def learn(self, events: Iterable[Event]) -> None:
        """Take up the numbering where stored events leave it."""
        for event in events:
            self.pos = max(self.pos, event.pos)
            self._ts = max(self._ts, event.ts)
            if event.kind == "interrupted":
                path, number = split_park(text_in(event.data, "id"))
                self.parks[path] = max(self.parks.get(path, 0), number)
