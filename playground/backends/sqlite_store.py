"""A store in one SQLite file: the default, for one person's daily use.

Write-ahead logging, one transaction for each batch, and a sync to disk at each
commit unless asked otherwise.  There is one connection that writes, used in
the store's lane, and one that reads meanwhile.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from playground.backends.codec import decode, decode_all, encode
from playground.backends.lane import Busy, Lane
from playground.backends.store import (
    UNLIMITED,
    DamagedLog,
    RunRecord,
    Store,
    StoreError,
    check_format,
    check_key,
    check_root_id,
    check_version,
    cursor_after,
    frozen_data,
    read_page_bounds,
    record_from_json,
    record_to_json,
    search_text,
    tree_of,
    unusable,
)
from playground.kernel.eventlog import Event, check_batch, check_run_id
from playground.kernel.types import RunState
from playground.kernel.values import JsonObject, JsonValue, freeze, frozen_object, thaw

T = TypeVar("T")
Cell: TypeAlias = str | int | float | None
EventRow: TypeAlias = tuple[int, str, str, str, str | None, int, float]

APPLICATION = 0x41675067
"""Marks a file as ours, as `pragma application_id`."""

FORMAT = 1
"""Version of the tables, as `pragma user_version`."""

_TABLES = f"""
create table event(
    run text, seq integer, root text not null, pos integer not null, ts real not null, kind text not null,
    parent text, data text not null, primary key (run, seq)
) strict, without rowid;
create index event_in_tree on event(root, pos);
create table checkpoint(run text primary key, version integer not null, snapshot text not null) strict;
create table run(
    run_id text primary key, scenario text not null, state text not null, task text not null,
    created real not null, updated real not null, waiting integer not null,
    continues text, forked_from text, search text not null
) strict;
create index run_by_age on run(created, run_id);
create table document(
    id integer primary key, space text not null, key text not null, value text not null, unique (space, key)
) strict;
pragma application_id = {APPLICATION};
pragma user_version = {FORMAT};
"""

_EVENTS_OF_RUN = (
    "select seq, run, kind, data, parent, pos, ts from event where run = ? and seq > ? order by seq limit ?"
)
_EVENTS_OF_TREE = (
    "select seq, run, kind, data, parent, pos, ts from event where root = ? and pos > ? order by pos limit ?"
)
_LAST = """
select coalesce((select max(seq) from event where run = ?), 0),
       coalesce((select max(pos) from event where root = ?), 0)
"""
_FIND_RUNS = """
select run_id, scenario, state, task, created, updated, waiting, continues, forked_from from run
where (:state is null or state = :state)
  and (:scenario is null or scenario = :scenario)
  and instr(search, :text) > 0
  and (:created is null or (created, run_id) < (:created, :run_id))
order by created desc, run_id desc limit :limit
"""
_GET_RUN = """
select run_id, scenario, state, task, created, updated, waiting, continues, forked_from from run
where run_id = ?
"""
_PUT_DOCUMENT = """
insert into document(space, key, value) values(?, ?, ?)
on conflict(space, key) do update set value = excluded.value
"""

_PAGE = 256
"""Events that are read at once; a long log is read in steps of about a millisecond."""

_PATIENCE = 10.0
"""Seconds to wait for another process while opening and reading."""


class SqliteFile:
    """The file's two connections, and the lane of what is written.

    Args:
        path: made if it is missing, with its folder.
        sync: whether a commit has reached the disk when it returns; without,
            it outlives the process but maybe not a power cut.

    Raises:
        StoreError: the file cannot be used, or is something else; it stays as it is.
    """

    def __init__(self, path: Path, *, sync: bool) -> None:
        self.path = path
        self.lane = Lane(str(path))
        self._reading = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _refuse_foreign(path)
            self._writer = _connect(path)
            self._writer.execute("pragma journal_mode = wal")
            self._writer.execute(f"pragma synchronous = {'full' if sync else 'normal'}")
            with self._transaction() as db:
                _create_tables(db)
            self._writer.execute("pragma busy_timeout = 0")
            self._reader = _connect(path)
            self._reader.execute("pragma query_only = on")
            self._inode = path.stat().st_ino
        except OSError as error:
            raise unusable(path, error) from error
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}: name another file, or check who may write there") from error

    async def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Run `change` as one transaction, of which a crash leaves all or nothing."""

        def work() -> T:
            try:
                self._check_place()
                with self._transaction() as db:
                    return change(db)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                    raise Busy from None
                raise self._failed("nothing of this write was kept; make room and go on", error) from error
            except sqlite3.Error as error:
                raise self._failed("nothing of this write was kept", error) from error

        return await self.lane.run(work)

    def read(self, query: str, values: Sequence[Cell] | Mapping[str, Cell]) -> list[Any]:
        """All rows of a query, as of the last commit; the tables are strict, so columns have their types."""
        try:
            with self._reading:
                return self._reader.execute(query, values).fetchall()
        except sqlite3.ProgrammingError as error:
            raise self._failed("open the store again", error) from error
        except sqlite3.Error as error:
            raise self._failed("check the file and who may read it", error) from error

    async def close(self) -> None:
        """Close the file; what waits to be written is written first."""
        await self.lane.close(self._release)

    def _release(self) -> None:
        with self._reading:
            self._reader.close()
        self._writer.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        db = self._writer
        db.execute("begin immediate")
        try:
            yield db
            db.execute("commit")
        finally:
            if db.in_transaction:
                db.execute("rollback")

    def _check_place(self) -> None:
        """Refuse to write where nobody will find it: SQLite goes on in a file that has been deleted."""
        try:
            there = self.path.stat().st_ino == self._inode
        except OSError:
            there = False
        if not there:
            raise StoreError(
                f"{self.path}: the file was moved or deleted while it was open: "
                "nothing of this write was kept; put it back, or start again"
            )

    def _failed(self, way_out: str, error: sqlite3.Error) -> StoreError:
        return StoreError(f"{self.path}: {error}: {way_out}")


class SqliteEventLog:
    """The logs of all runs in the file."""

    durable = True

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def append(self, event: Event) -> int:
        await self.append_many((event,))
        return event.seq

    async def append_many(self, events: Sequence[Event]) -> None:
        if not events:
            return
        root_id = tree_of(events)
        rows = [
            (e.run_id, e.seq, root_id, e.pos, e.ts, e.kind, e.parent_id, encode(frozen_data(e)))
            for e in events
        ]

        def insert(db: sqlite3.Connection) -> None:
            last_seq, last_pos = {}, 0
            for run_id in {event.run_id for event in events}:
                last_seq[run_id], last_pos = db.execute(_LAST, (run_id, root_id)).fetchone()
            check_batch(events, last_seq, last_pos)
            db.executemany("insert into event values(?, ?, ?, ?, ?, ?, ?, ?)", rows)

        await self._file.write(insert)

    async def events(self, run_id: str) -> list[Event]:
        return await self.after(run_id, 0)

    async def after(self, run_id: str, since_seq: int) -> list[Event]:
        check_run_id(run_id)
        last_seq = max(0, since_seq)
        events: list[Event] = []
        async for page in self._pages(_EVENTS_OF_RUN, run_id, last_seq, place=itemgetter(0)):
            for event in self._to_events(page, events):
                if event.seq != last_seq + 1:
                    raise DamagedLog(
                        self._file.path, f"run {run_id}", f"event {last_seq + 1} is missing", events
                    )
                last_seq = event.seq
                events.append(event)
        return events

    async def stream(self, root_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        check_run_id(root_id)
        events: list[Event] = []
        pages = self._pages(_EVENTS_OF_TREE, root_id, max(0, after), place=itemgetter(5), limit=limit)
        async for page in pages:
            events += self._to_events(page, events)
        return events

    async def _pages(
        self,
        query: str,
        owner: str,
        after: int,
        *,
        place: Callable[[EventRow], int],
        limit: int | None = None,
    ) -> AsyncIterator[list[EventRow]]:
        """Rows page by page, others having their turn in between; the query is ordered by `place`."""
        left = limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            page: list[EventRow] = self._file.read(query, (owner, after, size))
            yield page
            if len(page) < size:
                return
            after = place(page[-1])
            left = None if left is None else left - size
            await asyncio.sleep(0)

    def _to_events(self, page: Sequence[EventRow], before: Sequence[Event]) -> list[Event]:
        """The events of a page; those before it are named where one of it cannot be read."""
        events: list[Event] = []
        for row, data in zip(page, _datas([row[3] for row in page]), strict=True):
            seq, run_id, kind, _, parent_id, pos, ts = row
            if not isinstance(data, dict):
                place = f"run {run_id}, event {seq}"
                raise DamagedLog(self._file.path, place, "its data is not JSON", [*before, *events])
            events.append(Event(seq, run_id, kind, data, parent_id, pos, ts))
        return events


def _datas(texts: Sequence[str]) -> list[JsonValue]:
    """The data of events; None for what is not JSON."""
    try:
        return decode_all(texts)
    except ValueError:
        return [_data(text) for text in texts]


def _data(text: str) -> JsonValue:
    try:
        return decode(text)
    except ValueError:
        return None


class SqliteCheckpointStore:
    """The latest snapshot of each run in the file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def save(
        self, run_id: str, snapshot: Mapping[str, JsonValue], *, expected_version: int | None = None
    ) -> int:
        check_run_id(run_id)
        text = encode(frozen_object(snapshot, f"snapshot of run {run_id}", limit=UNLIMITED))

        def replace(db: sqlite3.Connection) -> int:
            row = db.execute("select version from checkpoint where run = ?", (run_id,)).fetchone()
            version = check_version(run_id, row[0] if row else 0, expected_version)
            db.execute("insert or replace into checkpoint values(?, ?, ?)", (run_id, version, text))
            return version

        return await self._file.write(replace)

    async def load(self, run_id: str) -> JsonObject | None:
        rows = self._file.read("select snapshot from checkpoint where run = ?", (check_run_id(run_id),))
        if not rows:
            return None
        try:
            snapshot = decode(rows[0][0])
        except ValueError:
            snapshot = None
        if not isinstance(snapshot, dict):
            raise StoreError(
                f"{self._file.path}: the checkpoint of run {run_id} is not JSON: "
                "delete that row; the log has the run"
            )
        return dict(snapshot)


class SqliteRunIndex:
    """The list of runs in the file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def put(self, record: RunRecord) -> None:
        row = (*record_to_json(record).values(), search_text(record))
        put = "insert or replace into run values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        await self._file.write(lambda db: db.execute(put, row))

    async def get(self, run_id: str) -> RunRecord | None:
        rows = self._file.read(_GET_RUN, (check_run_id(run_id),))
        return _to_record(rows[0]) if rows else None

    async def find(
        self,
        *,
        state: RunState | None = None,
        scenario: str | None = None,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[list[RunRecord], str | None]:
        created, run_id = read_page_bounds(limit, cursor) or (None, None)
        values: dict[str, Cell] = {
            "state": None if state is None else str(state),
            "scenario": scenario,
            "text": (text or "").casefold(),
            "created": created,
            "run_id": run_id,
            "limit": limit + 1,
        }
        found = [_to_record(row) for row in self._file.read(_FIND_RUNS, values)]
        page = found[:limit]
        return page, cursor_after(page[-1]) if len(found) > limit else None

    async def delete(self, run_id: str) -> None:
        check_root_id(run_id)

        def remove(db: sqlite3.Connection) -> None:
            db.execute("delete from event where root = ?", (run_id,))
            # Ids of child runs go on with "~" and a digit, and ":" comes after the digits.
            tree = (run_id, f"{run_id}~", f"{run_id}~:")
            db.execute("delete from checkpoint where run = ? or run > ? and run < ?", tree)
            db.execute("delete from run where run_id = ?", (run_id,))

        await self._file.write(remove)


class SqliteDocuments:
    """Documents in the file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def put(self, space: str, key: str, value: JsonValue) -> None:
        check_key(space, key)
        text = encode(freeze(value, f"document {space}/{key}", limit=UNLIMITED))
        await self._file.write(lambda db: db.execute(_PUT_DOCUMENT, (space, key, text)))

    async def get(self, space: str, key: str) -> JsonValue:
        rows = self._file.read("select value from document where space = ? and key = ?", (space, key))
        return thaw(decode(rows[0][0])) if rows else None

    async def all(self, space: str) -> dict[str, JsonValue]:
        rows = self._file.read("select key, value from document where space = ? order by id", (space,))
        return {key: thaw(decode(value)) for key, value in rows}

    async def delete(self, space: str, key: str) -> None:
        await self._file.write(
            lambda db: db.execute("delete from document where space = ? and key = ?", (space, key))
        )


def open_sqlite(path: Path, url: str, *, sync: bool) -> Store:
    """The store in an SQLite file, made if it is missing.

    Raises:
        StoreError: the file cannot be used, or is something else; it stays as it is.
    """
    file = SqliteFile(path.absolute(), sync=sync)
    return Store(
        url,
        SqliteEventLog(file),
        SqliteCheckpointStore(file),
        SqliteRunIndex(file),
        SqliteDocuments(file),
        file.close,
    )


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)


def _refuse_foreign(path: Path) -> None:
    """Look at an existing file without changing it, and refuse what is not a store of this version."""
    if path.is_dir():
        raise StoreError(f"{path}: this is a folder: name a file in it, or file:{path} for a folder of JSON")
    if not path.exists() or not path.stat().st_size:
        return
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", timeout=_PATIENCE, uri=True)) as db:
        (application,) = db.execute("pragma application_id").fetchone()
        (tables,) = db.execute("select count(*) from sqlite_schema").fetchone()
        if tables:
            if application != APPLICATION:
                raise StoreError(f"{path}: this database is not a playground store: name another file")
            check_format(db.execute("pragma user_version").fetchone()[0], FORMAT, str(path))


def _create_tables(db: sqlite3.Connection) -> None:
    """Make the tables unless another process has just made them."""
    if not db.execute("select count(*) from sqlite_schema").fetchone()[0]:
        for statement in filter(str.strip, _TABLES.split(";")):
            db.execute(statement)


def _to_record(row: tuple[Cell, ...]) -> RunRecord:
    return record_from_json(dict(zip(RunRecord.__slots__, row, strict=True)))
