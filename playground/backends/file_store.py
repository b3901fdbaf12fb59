"""A store that a text editor can read: JSON checkpoints and JSON Lines logs in one folder.

For a run `r` with a child run there are `r.jsonl`, the log of both,
and the checkpoints `r.json` and `r~1.json`; `_runs.jsonl`, `_documents.jsonl`
and `_store.json` are the rest (a run id never begins with `_`).
The files are locked as POSIX systems do.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from playground.backends import eventfile
from playground.backends.codec import decode, encode
from playground.backends.eventfile import EventFile
from playground.backends.journal import (
    FORMAT,
    Journal,
    locked_folder,
    named,
    read_file,
    read_header,
    write_whole,
)
from playground.backends.lane import Lane
from playground.backends.store import (
    UNLIMITED,
    DamagedLog,
    ScannedRunIndex,
    Store,
    StoreError,
    check_format,
    check_key,
    check_version,
    tree_of,
)
from playground.kernel.eventlog import Event, check_batch, check_run_id, root_of
from playground.kernel.values import JsonObject, JsonValue, freeze, frozen_object, thaw

_OPEN_TREES = 64
"""So many logs stay open for the next append."""

_WINDOW = 1 << 18
"""So many bytes are read where a part of a log is asked for, then twice as many until they hold it."""

_PLACES = 256
"""So many readers of long logs find at once where they go on."""

_BATCHES_A_TURN = 64
"""A long log is read in steps of about a millisecond."""

_DEAD_LINES = 1000
"""So many outdated lines may stay in a file of documents, besides as many as are in use."""

T = TypeVar("T")


class FileEventLog:
    """The logs of all runs in a folder, one file for each tree of runs.

    Args:
        directory: made if it is missing.
        sync: whether an append has reached the disk when it returns; without,
            it outlives the process but maybe not a power cut.
    """

    durable = True

    def __init__(self, directory: str | Path, *, sync: bool = True) -> None:
        self._directory = make_directory(directory)
        self._sync = sync
        self._lane = Lane(str(self._directory))
        self._trees: OrderedDict[str, _Tree] = OrderedDict()
        self._places: OrderedDict[tuple[str, int], int] = OrderedDict()

    async def append(self, event: Event) -> int:
        await self.append_many((event,))
        return event.seq

    async def append_many(self, events: Sequence[Event]) -> None:
        if events:
            root_id = tree_of(events)
            lines = eventfile.to_lines(events)
            await self._lane.run(lambda: self._tree(root_id).append(events, lines))

    async def events(self, run_id: str) -> list[Event]:
        return await self.after(run_id, 0)

    async def after(self, run_id: str, since_seq: int) -> list[Event]:
        return await _gather(self._file(check_run_id(run_id)).of_run(run_id, since_seq))

    async def stream(self, root_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        if limit is None:
            return await _gather(self._file(check_run_id(root_id)).of_tree(after))
        path = self._path(check_run_id(root_id))
        place, size = self._places.get((root_id, after), 0), _WINDOW
        while True:
            data = read_file(path, place, size)
            file = EventFile(path, root_id, data, within=place > 0)
            if place and not file.begins_with(after):
                place = 0  # another log by that name
                continue
            try:
                events = await _gather(file.of_tree(after), limit)
            except DamagedLog:
                if not place:
                    raise
                place = 0  # whose lines are counted from its beginning
                continue
            if len(events) >= limit or len(data) < size:
                break
            size *= 2
        if events and events[-1].pos:
            self._remember(root_id, events[-1].pos, place + file.line_of(events[-1].pos))
        return events

    def _remember(self, root_id: str, pos: int, place: int) -> None:
        """Keep where the line of an event begins, for whoever goes on behind it."""
        self._places[root_id, pos] = place
        self._places.move_to_end((root_id, pos))
        if len(self._places) > _PLACES:
            self._places.popitem(last=False)

    async def forget(self, root_id: str) -> None:
        """Delete the log of a tree."""
        check_run_id(root_id)
        await self._lane.run(lambda: self._tree(root_id).remove())

    async def close(self) -> None:
        """Close the files."""
        await self._lane.close(self._close_trees)

    def _path(self, root_id: str) -> Path:
        return self._directory / f"{root_id}.jsonl"

    def _file(self, run_id: str) -> EventFile:
        root_id = root_of(run_id)
        path = self._path(root_id)
        return EventFile(path, root_id, read_file(path))

    def _tree(self, root_id: str) -> _Tree:
        tree = self._trees.get(root_id)
        if tree is None:
            tree = self._trees[root_id] = _Tree(self._path(root_id), root_id, sync=self._sync)
            if len(self._trees) > _OPEN_TREES:
                self._trees.popitem(last=False)[1].close()
        self._trees.move_to_end(root_id)
        return tree

    def _close_trees(self) -> None:
        for tree in self._trees.values():
            tree.close()


class _Tree:
    """The writing end of one tree's file, with what an append must know of the events before it."""

    def __init__(self, path: Path, root_id: str, *, sync: bool) -> None:
        self._path = path
        self._root_id = root_id
        whole = partial(_whole_batches, path, root_id)
        self._journal = Journal(path, eventfile.header_of(root_id), whole, sync=sync)
        self._last_seq: dict[str, int] = {}
        self._last_pos = 0
        self._knows_all_runs = True

    def append(self, events: Sequence[Event], lines: bytes) -> None:
        with self._journal.locked():
            self._catch_up()
            if not self._knows_all_runs and any(event.run_id not in self._last_seq for event in events):
                self._learn(eventfile.heads(read_file(self._path)))
                self._knows_all_runs = True
            last_seq = {event.run_id: self._last_seq.get(event.run_id, 0) for event in events}
            check_batch(events, last_seq, self._last_pos)
            self._journal.write(lines)
            self._learn((event.run_id, event.seq, event.pos) for event in events)

    def remove(self) -> None:
        with self._journal.locked():
            self._journal.remove()

    def close(self) -> None:
        self._journal.close()

    def _catch_up(self) -> None:
        data = self._journal.fresh()
        if len(data) < self._journal.end:
            if data:
                self._learn(eventfile.heads(data))
            return
        # The file is new to us.  Its last line is enough for a run without child runs,
        # so that going on with a long run does not begin with reading it.
        self._last_seq.clear()
        self._last_pos = 0
        self._knows_all_runs = not data
        if data:
            EventFile(self._path, self._root_id, data)
            last = eventfile.last_head(data)
            if last is None:
                raise DamagedLog(self._path, f"line {data.count(10)}", "this is not an event as we write it")
            self._knows_all_runs = not last[2]
            self._learn(eventfile.heads(data) if self._knows_all_runs else [last])

    def _learn(self, heads: Iterable[tuple[str, int, int]]) -> None:
        for run_id, seq, pos in heads:
            self._last_seq[run_id] = seq
            self._last_pos = pos or self._last_pos


def _whole_batches(path: Path, root_id: str, data: bytes) -> int:
    """How much of the file's last bytes is whole; only what a crash can leave may follow it."""
    keep = eventfile.committed(data)
    if data.find(b"\n", keep) >= 0:
        for _ in EventFile(path, root_id, read_file(path)).of_tree():
            pass
    return keep


class FileCheckpointStore:
    """The latest snapshot of each run in a folder, one JSON file for each.

    A file is replaced in one step: a crash leaves the old snapshot or the new
    one.  An empty file, which some file systems leave after a power cut,
    counts as none.

    Args:
        directory: made if it is missing.
        sync: as for `FileEventLog`.
    """

    def __init__(self, directory: str | Path, *, sync: bool = True) -> None:
        self._directory = make_directory(directory)
        self._sync = sync
        self._lane = Lane(str(self._directory))

    async def save(
        self, run_id: str, snapshot: Mapping[str, JsonValue], *, expected_version: int | None = None
    ) -> int:
        path = self._path(run_id)
        text = encode(frozen_object(snapshot, f"snapshot of run {run_id}", limit=UNLIMITED))

        def replace() -> int:
            with locked_folder(self._directory):
                version = check_version(run_id, self._version(path), expected_version)
                data = f'{{"format":{FORMAT},"run_id":"{run_id}","version":{version},"snapshot":{text}}}\n'
                write_whole(path, data.encode(), sync=self._sync)
                return version

        return await self._lane.run(replace)

    async def load(self, run_id: str) -> JsonObject | None:
        path = self._path(run_id)
        data = read_file(path)
        if not data:
            return None
        try:
            fields = decode(data.decode())
        except ValueError:
            fields = None
        if isinstance(fields, dict) and "format" in fields:
            check_format(fields["format"], FORMAT, str(path))
            snapshot = fields.get("snapshot")
            if isinstance(snapshot, dict) and fields.get("run_id") == run_id:
                return dict(snapshot)
        raise _bad_checkpoint(path, run_id)

    async def forget(self, root_id: str) -> None:
        """Delete the snapshots of a tree."""
        check_run_id(root_id)

        def unlink() -> None:
            with locked_folder(self._directory), named(self._directory):
                for entry in os.scandir(self._directory):
                    name, _, rest = entry.name.partition(".")
                    if root_of(name) == root_id and rest in ("json", "json.tmp"):
                        os.unlink(entry)

        await self._lane.run(unlink)

    async def close(self) -> None:
        """Let a save in hand end."""
        await self._lane.close()

    def _path(self, run_id: str) -> Path:
        return self._directory / f"{check_run_id(run_id)}.json"

    def _version(self, path: Path) -> int:
        """The stored version, read from the beginning of the file."""
        with named(path):
            try:
                with path.open("rb") as file:
                    head = file.read(1024)
            except FileNotFoundError:
                return 0
        if not head:
            return 0
        found = _VERSION.match(head)
        if found is None:
            raise _bad_checkpoint(path, path.stem)
        check_format(int(found[1]), FORMAT, str(path))
        return int(found[2])


_VERSION = re.compile(rb'\{"format":(\d+),"run_id":"[^"]+","version":(\d+),')


def _bad_checkpoint(path: Path, run_id: str) -> StoreError:
    return StoreError(
        f"{path}: this is not a checkpoint of run {run_id}: remove the file; the log has the run"
    )


class FileDocuments:
    """Documents in one file of JSON Lines, of which the last word on a key counts.

    Args:
        path: the file; it is made when it is first needed.
        sync: as for `FileEventLog`.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self._header: JsonObject = {"playground": "documents"}
        self._journal = Journal(path, self._header, lambda data: data.rfind(b"\n") + 1, sync=sync)
        self._lane = Lane(str(path))
        self._spaces: dict[str, dict[str, JsonValue]] = {}
        self._lines = 0

    async def put(self, space: str, key: str, value: JsonValue) -> None:
        check_key(space, key)
        frozen = freeze(value, f"document {space}/{key}", limit=UNLIMITED)
        await self._write({"space": space, "key": key, "value": frozen})

    async def get(self, space: str, key: str) -> JsonValue:
        return await self._read(lambda: thaw(self._spaces.get(space, {}).get(key)))

    async def all(self, space: str) -> dict[str, JsonValue]:
        return await self._read(lambda: {k: thaw(v) for k, v in self._spaces.get(space, {}).items()})

    async def delete(self, space: str, key: str) -> None:
        if await self._read(lambda: key in self._spaces.get(space, {})):
            await self._write({"space": space, "key": key})

    async def close(self) -> None:
        """Close the file."""
        await self._lane.close(self._journal.close)

    async def _read(self, look: Callable[[], T]) -> T:
        def work() -> T:
            with self._journal.locked():
                self._catch_up()
                return look()

        return await self._lane.run(work)

    async def _write(self, entry: JsonObject) -> None:
        line = encode(entry).encode() + b"\n"

        def work() -> None:
            with self._journal.locked():
                self._catch_up()
                self._journal.write(line)
                self._take(entry)
                live = sum(map(len, self._spaces.values()))
                if self._lines > 2 * live + _DEAD_LINES:
                    self._journal.replace(b"".join(self._live_lines()))

        await self._lane.run(work)

    def _catch_up(self) -> None:
        data = self._journal.fresh()
        lines = data.split(b"\n")[:-1]
        if len(data) == self._journal.end:
            self._spaces.clear()
            self._lines = 0
            if lines:
                read_header(self._journal.path, lines.pop(0), self._header)
        for line in lines:
            try:
                self._take(decode(line.decode()))
            except ValueError as error:
                place = f"{self._journal.path}, line {self._lines + 2}"
                raise StoreError(f"{place}: {error}: mend or remove that line") from None

    def _take(self, entry: JsonValue) -> None:
        match entry:
            case {"space": str(space), "key": str(key), "value": value}:
                self._spaces.setdefault(space, {})[key] = value
            case {"space": str(space), "key": str(key)}:
                self._spaces.get(space, {}).pop(key, None)
            case _:
                raise ValueError("this is not a document")
        self._lines += 1

    def _live_lines(self) -> Iterator[bytes]:
        for space, documents in self._spaces.items():
            for key, value in documents.items():
                yield encode({"space": space, "key": key, "value": value}).encode() + b"\n"


def open_file(directory: Path, url: str, *, sync: bool) -> Store:
    """The store in a folder, made if it is missing.

    Raises:
        StoreError: the folder cannot be used, or holds a store of another format.
    """
    make_directory(directory)
    marker = directory / "_store.json"
    header: JsonObject = {"playground": "store"}
    with locked_folder(directory, wait=True):
        if found := read_file(marker):
            read_header(marker, found, header)
        else:
            write_whole(marker, encode({**header, "format": FORMAT}).encode() + b"\n", sync=sync)
    log, checkpoints = FileEventLog(directory, sync=sync), FileCheckpointStore(directory, sync=sync)
    records = FileDocuments(directory / "_runs.jsonl", sync=sync)
    documents = FileDocuments(directory / "_documents.jsonl", sync=sync)

    async def forget(root_id: str) -> None:
        await checkpoints.forget(root_id)
        await log.forget(root_id)

    async def close() -> None:
        for part in (log, checkpoints, records, documents):
            await part.close()

    return Store(url, log, checkpoints, ScannedRunIndex(records, forget), documents, close)


def make_directory(directory: str | Path) -> Path:
    """The absolute path of a folder that exists.

    Raises:
        StoreError: there is a file of that name, say.
    """
    path = Path(directory).absolute()
    with named(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


async def _gather(batches: Iterator[list[Event]], limit: int | None = None) -> list[Event]:
    """Read batches until there are `limit` events, giving way to others now and then."""
    events: list[Event] = []
    try:
        for number, batch in enumerate(batches, 1):
            events += batch
            if limit is not None and len(events) >= limit:
                return events[: max(0, limit)]
            if number % _BATCHES_A_TURN == 0:
                await asyncio.sleep(0)
    except DamagedLog as error:
        error.before = events
        raise
    return events
