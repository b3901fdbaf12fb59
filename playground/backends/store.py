"""What a store is: the log, its checkpoints, the list of runs, and small documents.

A run must outlive the process that drives it, and people choose how: in memory
for a lesson, in one SQLite file for daily use, in a folder of JSON that a text
editor can read.  This file has what the three share: the two ports that the
kernel does not know (it needs no list of runs), the bundle that everyone above
receives, and the errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from playground.kernel.eventlog import (
    CheckpointStore,
    Event,
    EventLog,
    LogError,
    VersionConflict,
    check_run_id,
    root_of,
)
from playground.kernel.types import RunState
from playground.kernel.values import FrozenDict, JsonObject, JsonValue, freeze, frozen_object

UNLIMITED = 1 << 40
"""No size limit: a value that has entered the engine was measured there."""


class StoreError(LogError):
    """A store that cannot be opened, read or written: one line with the place, the rule and the way out."""


class DamagedLog(StoreError):
    """A log that was changed by other hands.

    `before` holds the events asked for that come before the damage: what was
    committed stays readable.
    """

    def __init__(self, place: Path, where: str, trouble: str, before: Sequence[Event] = ()) -> None:
        super().__init__(f"{place}, {where}: {trouble}; what comes before is intact, and nothing was changed")
        self.place = place
        self.where = where
        self.trouble = trouble
        self.before = list(before)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One row in the list of runs: what a person needs to find a run again.

    Only root runs are listed.  `created` and `updated` are wall time in
    seconds, `waiting` counts open interrupts, `continues` and `forked_from`
    name the runs that this one follows or branches from.
    """

    run_id: str
    scenario: str
    state: RunState
    task: str
    created: float
    updated: float
    waiting: int = 0
    continues: str | None = None
    forked_from: str | None = None


class RunIndex(Protocol):
    """The list of root runs: a cache of their logs, so that listing reads no log."""

    async def put(self, record: RunRecord) -> None:
        """Keep `record` in place of the one before."""
        ...

    async def get(self, run_id: str) -> RunRecord | None:
        """The record of one run, or None."""
        ...

    async def find(
        self,
        *,
        state: RunState | None = None,
        scenario: str | None = None,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[list[RunRecord], str | None]:
        """One page of records, the last created first, and the cursor of the next page (None at the end).

        Args:
            text: must occur in the id, the scenario or the task, in any case.
            limit: at most so many records, 1 or more.
            cursor: where a page before ended.

        Raises:
            ValueError: a cursor or limit that cannot be.
        """
        ...

    async def delete(self, run_id: str) -> None:
        """Remove the run as if it had never been: record, events and snapshots, of its child runs too."""
        ...


class Documents(Protocol):
    """Small JSON values that outlive runs, such as long-term memory and settings, by space and key."""

    async def put(self, space: str, key: str, value: JsonValue) -> None:
        """Keep `value` in place of the one before.

        Raises:
            NotJson: the value is not JSON; nothing is written.
        """
        ...

    async def get(self, space: str, key: str) -> JsonValue:
        """The value as a copy of one's own, or None."""
        ...

    async def all(self, space: str) -> dict[str, JsonValue]:
        """Everything in `space`, in the order in which the keys came."""
        ...

    async def delete(self, space: str, key: str) -> None:
        """Remove the value, if there is one."""
        ...


class Store:
    """Everything that outlives a process, opened together and closed together.

    Use it as `async with open_store(url) as store`, or call `close` yourself.
    """

    def __init__(
        self,
        url: str,
        log: EventLog,
        checkpoints: CheckpointStore,
        runs: RunIndex,
        documents: Documents,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.url = url
        self.log = log
        self.checkpoints = checkpoints
        self.runs = runs
        self.documents = documents
        self._close = close

    async def close(self) -> None:
        """Let go of files and threads; the store cannot be used afterwards.  Closing twice is fine."""
        await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def check_root_id(run_id: str) -> str:
    """`run_id`, if it names a root run.

    Raises:
        ValueError: for anything else.
    """
    if root_of(check_run_id(run_id)) != run_id:
        raise ValueError(f"{run_id} is a child run: name its root run, {root_of(run_id)}")
    return run_id


def tree_of(events: Iterable[Event]) -> str:
    """The root run of a batch, whose events must all belong to its tree.

    Raises:
        ValueError: a run id that is none, or runs of different trees.
    """
    roots = {_checked_root(event.run_id) for event in events}
    if len(roots) != 1:
        raise ValueError(
            f"a batch belongs to one run and its child runs, not to {sorted(roots)}: append one by one"
        )
    return roots.pop()


@lru_cache
def _checked_root(run_id: str) -> str:
    return root_of(check_run_id(run_id))


def frozen_data(event: Event) -> FrozenDict:
    """The data of an event, read-only and known to be JSON; data that the engine made passes as it is.

    Raises:
        NotJson: naming event, run and the place in the data.
    """
    if type(event.data) is FrozenDict:
        return event.data
    return frozen_object(
        event.data, f"event {event.seq} ({event.kind}) of run {event.run_id}", limit=UNLIMITED
    )


def unusable(path: Path, error: OSError) -> StoreError:
    """The error of a file that the system does not let us use."""
    return StoreError(f"{path}: {error.strerror}: check who may read and write there")


def check_format(found: object, ours: int, place: str) -> None:
    """Refuse what another version wrote.

    Raises:
        StoreError: naming `place` and both formats.
    """
    if found != ours:
        raise StoreError(
            f"{place}: its format is {found}, this playground reads {ours}: "
            "use the version that wrote it, or another store"
        )


def check_version(run_id: str, stored: int, expected: int | None) -> int:
    """The version of the next checkpoint.

    Raises:
        VersionConflict: `stored` is not the one that was `expected`.
    """
    if expected is not None and expected != stored:
        raise VersionConflict(
            f"run {run_id}: checkpoint version is {stored}, expected {expected}: load it again"
        )
    return stored + 1


def check_key(space: str, key: str) -> None:
    """Refuse names of documents that are not text.

    Raises:
        ValueError: naming the one.
    """
    for name in (space, key):
        if not isinstance(name, str) or not name:
            raise ValueError(f"{name!r} cannot name a document: use text")
        freeze(name, "the name of a document")


def record_to_json(record: RunRecord) -> JsonObject:
    """A record as JSON, checked.

    Raises:
        ValueError: it does not name a root run, or holds what JSON cannot carry.
    """
    check_root_id(record.run_id)
    fields = {name: getattr(record, name) for name in RunRecord.__slots__}
    return frozen_object(fields | {"state": str(record.state)}, f"record of run {record.run_id}")


def record_from_json(fields: JsonObject) -> RunRecord:
    """The record that `record_to_json` wrote."""
    return RunRecord(**fields | {"state": RunState(str(fields["state"]))})  # type: ignore[arg-type]


def search_text(record: RunRecord) -> str:
    """What a search looks into."""
    return "\n".join((record.run_id, record.scenario, record.task)).casefold()


def cursor_after(record: RunRecord) -> str:
    """The cursor of the page that follows `record`."""
    return f"{record.created!r}:{record.run_id}"


def read_page_bounds(limit: int, cursor: str | None) -> tuple[float, str] | None:
    """Check a page's `limit`, and return the creation time and run id that its `cursor` says.

    Raises:
        ValueError: a limit below 1, or a cursor that `cursor_after` did not make.
    """
    if limit < 1:
        raise ValueError(f"a page of {limit} runs cannot be: use a limit of 1 or more")
    if cursor is None:
        return None
    created, _, run_id = cursor.partition(":")
    try:
        return float(created), check_root_id(run_id)
    except ValueError:
        raise ValueError(
            f"{cursor[:60]!r} is not a cursor: use the one that came with a page before"
        ) from None


class ScannedRunIndex:
    """A run index for stores whose documents are in memory anyway: it looks at every record.

    Args:
        documents: where the records are kept.
        forget: removes the events and snapshots of a tree.
    """

    _SPACE = "runs"

    def __init__(self, documents: Documents, forget: Callable[[str], Awaitable[None]]) -> None:
        self._documents = documents
        self._forget = forget

    async def put(self, record: RunRecord) -> None:
        await self._documents.put(self._SPACE, record.run_id, record_to_json(record))

    async def get(self, run_id: str) -> RunRecord | None:
        fields = await self._documents.get(self._SPACE, check_run_id(run_id))
        return record_from_json(fields) if isinstance(fields, dict) else None

    async def find(
        self,
        *,
        state: RunState | None = None,
        scenario: str | None = None,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[list[RunRecord], str | None]:
        bound = read_page_bounds(limit, cursor)
        needle = (text or "").casefold()
        found = [
            record
            for fields in (await self._documents.all(self._SPACE)).values()
            if isinstance(fields, dict)
            for record in (record_from_json(fields),)
            if (state is None or record.state == state)
            and (scenario is None or record.scenario == scenario)
            and (bound is None or (record.created, record.run_id) < bound)
            and needle in search_text(record)
        ]
        found.sort(key=lambda record: (record.created, record.run_id), reverse=True)
        page = found[:limit]
        return page, cursor_after(page[-1]) if len(found) > limit else None

    async def delete(self, run_id: str) -> None:
        # The record goes last: a crash in between leaves something that can be deleted again.
        await self._forget(check_root_id(run_id))
        await self._documents.delete(self._SPACE, run_id)
