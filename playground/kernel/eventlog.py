"""The event log: the only truth about a run.

State is what you get by folding the events, so replay, audit, time travel and
recovery after a crash are one thing: read the log again.  A checkpoint is a
cache of such a fold; losing it costs time, never truth.

This file has the event itself, the two storage ports, and the defaults that
live in memory.  The idea is event sourcing, as in Fowler's essay of 2005, with
the log as the only writer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from playground.kernel.values import NO_LIMIT, FrozenDict, JsonObject, JsonValue, frozen_object

FORMAT = 1
"""Version of the events' meaning, written into each `run_started`."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(~[0-9]{1,9}){0,20}")


class Event(NamedTuple):
    """One fact of a run: appended, never changed.

    `seq` counts 1, 2, 3… within the run; `pos` counts likewise over the whole
    tree of the root run, children included, and is what readers resume from.
    `ts` is wall time in seconds; within one process it never runs backwards.
    """

    seq: int
    run_id: str
    kind: str
    data: Mapping[str, JsonValue] = FrozenDict()
    parent_id: str | None = None
    pos: int = 0
    ts: float = 0.0


class LogError(RuntimeError):
    """A log that cannot be read or written as asked: it names the run, the place and the way out."""


class LogConflict(LogError):
    """Someone else has appended to this run meanwhile; nothing was written."""


class VersionConflict(LogError):
    """A checkpoint was saved over another version than expected; nothing was written."""


def check_run_id(run_id: str) -> str:
    """`run_id`, if it is one: letters, digits, `_` and `-`, then `~n` for each child level.

    Ids reach file names and URLs, so every store asks here before it builds a path.

    Raises:
        ValueError: for anything else.
    """
    if not isinstance(run_id, str) or _RUN_ID.fullmatch(run_id) is None:
        raise ValueError(
            f"{str(run_id)[:40]!r} is not a run id: use up to 100 letters, digits, '_' and '-', "
            "with '~1' and so on for child runs"
        )
    return run_id


def root_of(run_id: str) -> str:
    """The id of the root run of the tree that `run_id` belongs to."""
    return run_id.partition("~")[0]


class EventLog(Protocol):
    """Where events are kept.  Durable logs set `durable = True`."""

    async def append(self, event: Event) -> int:
        """Append one event and return its `seq`; see `append_many`."""
        ...

    async def append_many(self, events: Sequence[Event]) -> None:
        """Append a batch as one: after a crash either all of it is there, or none.

        The events belong to one tree, in order of `pos`; they may belong to several of its runs.

        Raises:
            LogConflict: an event's `seq` is not the run's next one, or its `pos` not
                after the tree's last; nothing is written.
        """
        ...

    async def events(self, run_id: str) -> list[Event]:
        """All events of one run, in order; empty for an unknown run."""
        ...

    async def after(self, run_id: str, since_seq: int) -> list[Event]:
        """The events of one run with `seq > since_seq`, in order."""
        ...

    async def stream(self, root_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        """The events of a whole tree with `pos > after`, in order, at most `limit`."""
        ...


class CheckpointStore(Protocol):
    """Where snapshots are kept, the latest one of each run."""

    async def save(
        self, run_id: str, snapshot: Mapping[str, JsonValue], *, expected_version: int | None = None
    ) -> int:
        """Keep `snapshot` in place of the one before, whole or not at all; return its version, 1 at first.

        Raises:
            VersionConflict: the stored version is not `expected_version` (0 for none).
        """
        ...

    async def load(self, run_id: str) -> JsonObject | None:
        """The latest snapshot as a dict of one's own, or None."""
        ...


def check_batch(events: Iterable[Event], last_seq: Mapping[str, int], last_pos: int) -> dict[str, int]:
    """What every log checks before it writes: `seq` and `pos` go on where the stored ones end.

    A run that the log does not know may begin at any `seq`: a checkpoint then holds what came before.

    Args:
        last_seq: the last stored `seq` of each run in the batch; absent: the run is new to the log.
        last_pos: the last stored `pos` of the tree.

    Returns:
        The last `seq` of each run in the batch.

    Raises:
        LogConflict: naming the run and the position.
    """
    seqs: dict[str, int] = {}
    for seq, run_id, kind, _, _, pos, _ in events:
        before = seqs[run_id] if run_id in seqs else last_seq.get(run_id, seq - 1)
        if seq != before + 1 or 0 < pos <= last_pos:
            wrong = (
                f"event {seq} ({kind}) does not follow event {before}"
                if seq != before + 1
                else f"position {pos} is taken"
            )
            raise LogConflict(
                f"run {run_id}: {wrong}: another process has gone on with this run; load it again"
            )
        seqs[run_id] = seq
        last_pos = pos or last_pos
    return seqs


class InMemoryEventLog:
    """The event log of this process, gone with it."""

    durable = False

    def __init__(self) -> None:
        self._runs: dict[str, list[Event]] = {}
        self._trees: dict[str, list[Event]] = {}
        self._last: dict[str, int] = {}

    async def append(self, event: Event) -> int:
        await self.append_many((event,))
        return event.seq

    async def append_many(self, events: Sequence[Event]) -> None:
        if not events:
            return
        tree = self._trees.setdefault(root_of(events[0].run_id), [])
        self._last |= check_batch(events, self._last, tree[-1].pos if tree else 0)
        for event in events:
            self._runs.setdefault(event.run_id, []).append(event)
        tree.extend(events)

    async def events(self, run_id: str) -> list[Event]:
        return list(self._runs.get(run_id, ()))

    async def after(self, run_id: str, since_seq: int) -> list[Event]:
        run = self._runs.get(run_id)
        return run[max(0, since_seq - run[0].seq + 1) :] if run else []

    async def stream(self, root_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        tree = self._trees.get(root_id, [])
        start = bisect_right(tree, after, key=lambda event: event.pos)
        return tree[start:] if limit is None else tree[start : start + limit]


class InMemoryStore:
    """The checkpoint store of this process, gone with it."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, JsonValue]] = {}

    async def save(
        self, run_id: str, snapshot: Mapping[str, JsonValue], *, expected_version: int | None = None
    ) -> int:
        version = self.version_of(run_id)
        if expected_version is not None and expected_version != version:
            raise VersionConflict(
                f"run {run_id}: checkpoint version is {version}, expected {expected_version}: load it again"
            )
        self._kept[run_id] = version + 1, frozen_object(snapshot, f"snapshot of run {run_id}", limit=NO_LIMIT)
        return version + 1

    async def load(self, run_id: str) -> JsonObject | None:
        kept = self._kept.get(run_id)
        return None if kept is None else dict(kept[1])  # type: ignore[arg-type]

    def version_of(self, run_id: str) -> int:
        """The version of the stored snapshot, 0 if there is none."""
        kept = self._kept.get(run_id)
        return 0 if kept is None else kept[0]
