"""How the events of a tree lie in a file: one a line, and batches that count only when whole.

    {"playground":"log","root":"r","format":1}
    {"run_id":"r","seq":1,"pos":1,"ts":1.5,"kind":"run_started","data":{…}}
    {"run_id":"r","seq":2,"pos":2,"ts":1.5,"kind":"node_started","data":{…},"batch":2}

The last line of a batch says how many lines it has.  Events after the last
such line were being written when the writer died: nobody has acted on them, so
they are not there.  A line that has ended but does not belong is another
matter: other hands were at work, and the reader names the line.

The fields come in this order always, so the place of an event is found without
reading what lies before it: by bisection for a position, and by the start of
the line for a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from playground.backends.codec import decode, encode
from playground.backends.journal import read_header
from playground.backends.store import DamagedLog, frozen_data
from playground.kernel.eventlog import Event, root_of
from playground.kernel.values import FrozenDict, JsonObject

_HEAD = re.compile(rb'^\{"run_id":"([^"]+)","seq":(\d+),"pos":(\d+),', re.MULTILINE)
_SHAPES = {(int, str, str, FrozenDict, parent, int, ts) for parent in (str, NoneType) for ts in (float, int)}
_BATCH_END = re.compile(rb',"batch":(\d+)\}$')


def header_of(root_id: str) -> JsonObject:
    """What the first line of a tree's file says, besides its format."""
    return {"playground": "log", "root": root_id}


def to_lines(events: Sequence[Event]) -> bytes:
    """A batch as it is appended.

    Raises:
        NotJson: data that JSON cannot carry.
    """
    lines = []
    for event in events:
        parent = "" if event.parent_id is None else f'"parent_id":{encode(event.parent_id)},'
        lines.append(
            f'{{"run_id":"{event.run_id}","seq":{event.seq},"pos":{event.pos},"ts":{event.ts!r},'
            f'"kind":{encode(event.kind)},{parent}"data":{encode(frozen_data(event))}'
        )
    return ("}\n".join(lines) + f',"batch":{len(events)}}}\n').encode()


def committed(data: bytes) -> int:
    """How many bytes of a file, or of its tail, are whole batches."""
    end = data.rfind(b"\n") + 1
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if _BATCH_END.search(data, start, end - 1):
            return end
        end = start
    return 0


def heads(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Run, `seq` and `pos` of each event, at a fraction of the cost of reading the events."""
    for run_id, seq, pos in _HEAD.findall(data):
        yield run_id.decode(), int(seq), int(pos)


def last_head(data: bytes) -> tuple[str, int, int] | None:
    """Run, `seq` and `pos` of the last event, or None if that line is not one of ours."""
    head = _HEAD.match(data, data.rfind(b"\n", 0, -1) + 1)
    return None if head is None else (head[1].decode(), int(head[2]), int(head[3]))


class EventFile:
    """The bytes of a tree's file as they were at one moment; `within`: from one of its events on.

    Each method yields batch by batch, so that a reader of a long log can let
    others have their turn, and raises `DamagedLog` where it meets damage.
    """

    def __init__(self, path: Path, root_id: str, data: bytes, *, within: bool = False) -> None:
        self._path = path
        self._root_id = root_id
        self._data = data
        self._start = 0 if within else data.find(b"\n") + 1
        if self._start:
            read_header(path, data[: self._start], header_of(root_id))

    def begins_with(self, pos: int) -> bool:
        """Whether the first line is the event at a position."""
        head = _HEAD.match(self._data)
        return head is not None and int(head[3]) == pos

    def line_of(self, pos: int) -> int:
        """Where the line of the event at a position begins."""
        return self._data.rfind(b"\n", 0, self._behind_pos(pos) - 1) + 1

    def of_run(self, run_id: str, since_seq: int = 0) -> Iterator[list[Event]]:
        """The events of one run with `seq > since_seq`; only the lines behind that one are read."""
        start, seq = self._behind(run_id, since_seq) if since_seq > 0 else (self._start, 0)
        return self._read(start, run_id, {run_id: seq})

    def of_tree(self, after: int = 0) -> Iterator[list[Event]]:
        """The events of all runs with `pos > after`; only the lines behind that one are read."""
        for batch in self._read(self._behind_pos(after) if after > 0 else self._start, None, {}):
            yield [event for event in batch if event.pos > after]

    def _behind(self, run_id: str, since_seq: int) -> tuple[int, int]:
        line_start = b'\n{"run_id":"%b","seq":' % run_id.encode()
        hit = len(self._data)
        while (hit := self._data.rfind(line_start, 0, hit)) >= 0:
            head = _HEAD.match(self._data, hit + 1)
            if head is not None and int(head[2]) <= since_seq:
                return self._data.index(b"\n", hit + 1) + 1, int(head[2])
        return self._start, 0

    def _behind_pos(self, after: int) -> int:
        low, high = self._start, committed(self._data)
        while low < high:
            middle = (low + high) // 2
            line = self._data.rfind(b"\n", low, middle) + 1 or low
            head = _HEAD.match(self._data, line)
            if head is None:
                return self._start
            if int(head[3]) <= after:
                low = self._data.index(b"\n", middle) + 1
            else:
                high = line
        return low

    def _read(self, start: int, run_id: str | None, last_seq: Mapping[str, int]) -> Iterator[list[Event]]:
        """Read on from the line at `start`; given a `run_id`, the other runs' events are not even decoded."""
        seqs, last_pos = dict(last_seq), 0
        partial = run_id is not None or start > self._start
        others, own = self._beginnings(run_id)
        batch: list[Event] = []
        size = 0
        for index, line in enumerate(self._lines(start)):
            size += 1
            if not line.startswith(others) or line.startswith(own):
                try:
                    event = _to_event(line)
                    self._check(event, seqs.get(event.run_id, event.seq - 1 if partial else 0), last_pos)
                except ValueError as error:
                    number = self._data.count(b"\n", 0, start) + index + 1
                    raise DamagedLog(self._path, f"line {number}", str(error)) from None
                seqs[event.run_id] = event.seq
                last_pos = event.pos or last_pos
                if run_id is None or event.run_id == run_id:
                    batch.append(event)
            if ends := _BATCH_END.search(line, len(line) - 20):
                if int(ends[1]) != size and start == self._start:
                    number = self._data.count(b"\n", 0, start) + index + 1
                    raise DamagedLog(
                        self._path, f"line {number}", f"a batch of {int(ends[1])} events has {size} of them"
                    )
                yield batch
                batch, size = [], 0

    def _lines(self, start: int) -> Iterator[bytes]:
        while (end := self._data.find(b"\n", start)) >= 0:
            yield self._data[start:end]
            start = end + 1

    def _beginnings(self, run_id: str | None) -> tuple[tuple[bytes, ...], bytes]:
        """How the lines begin that a reader of `run_id` passes over, and those of the run itself."""
        if run_id is None:
            return (), b""
        of_tree = b'{"run_id":"%b' % self._root_id.encode()
        return (of_tree + b'"', of_tree + b"~"), b'{"run_id":"%b"' % run_id.encode()

    def _check(self, event: Event, last_seq: int, last_pos: int) -> None:
        if root_of(event.run_id) != self._root_id:
            raise ValueError(f"an event of run {event.run_id[:40]!r} in the log of run {self._root_id}")
        if event.seq != last_seq + 1:
            raise ValueError(f"run {event.run_id} goes on with event {event.seq} after event {last_seq}")
        if 0 < event.pos <= last_pos:
            raise ValueError(
                f"run {event.run_id} goes on with position {event.pos} after position {last_pos}"
            )


def _to_event(line: bytes) -> Event:
    fields: Any = decode(line.decode())
    try:
        event = Event(
            fields["seq"],
            fields["run_id"],
            fields["kind"],
            fields["data"],
            fields.get("parent_id"),
            fields["pos"],
            fields["ts"],
        )
    except (TypeError, KeyError):
        event = None
    if event is None or tuple(map(type, event)) not in _SHAPES:
        raise ValueError("this is not an event")
    return event
