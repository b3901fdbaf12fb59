"""Events as the engine would make them, short."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from playground.backends import RunRecord
from playground.kernel.eventlog import Event
from playground.kernel.types import RunState
from playground.kernel.values import JsonValue

BAD_IDS = ["../../x", "/etc/x", "..", "a/b", "a\\b", "a\0b", "", "a" * 300, "a~", "~1", "a\n"]

ODD_VALUES: list[JsonValue] = [
    None,
    False,
    0,
    "",
    [],
    {},
    2**70,
    -(10**3000),
    1.5e-300,
    0.1,
    "line\nfeed\r\n\u2028\u2029\u0085\0 \x7f",
    "漢字 🦜 é é \U0010ffff",
    {"batch": 4, "run_id": "other", "seq": 1, '"},\n{"': [[{"": None}]]},
    '","batch":1}\n{"run_id":"r","seq":9',
]


def event(
    seq: int, run_id: str = "r", *, pos: int | None = None, kind: str = "note", **data: JsonValue
) -> Event:
    """Event `seq` of a run; in a run without children its position is the same."""
    return Event(seq, run_id, kind, data, None, seq if pos is None else pos, 1000.0 + seq)


def events(first: int, last: int, run_id: str = "r") -> list[Event]:
    """A run's events from `first` to `last`."""
    return [event(seq, run_id, n=seq) for seq in range(first, last + 1)]


def family() -> list[Event]:
    """A run with two child runs, their events mixed."""
    order = ["r", "r", "r~1", "r~2", "r~1", "r", "r~2", "r~2", "r~10"]
    seqs: dict[str, int] = {}
    made = []
    for pos, run_id in enumerate(order, 1):
        seqs[run_id] = seqs.get(run_id, 0) + 1
        made.append(event(seqs[run_id], run_id, pos=pos, pos_again=pos))
    return made


def record(run_id: str, **changes: object) -> RunRecord:
    """A row of the run list, with some fields of one's own."""
    fields: dict[str, object] = {
        "scenario": "greeter",
        "state": RunState.RUNNING,
        "task": "say hello",
        "created": 1.0,
        "updated": 2.0,
    }
    return RunRecord(run_id, **fields | changes)  # type: ignore[arg-type]


def snapshot(n: int) -> Mapping[str, JsonValue]:
    """A snapshot that says which it is, larger than one page of a disk."""
    return {"n": n, "shared": {"messages": ["x" * 100] * 100}}


def path_of(url: str) -> Path:
    """The file or folder of a store's address."""
    return Path(url.partition(":")[2].partition("?")[0])


def log_file(url: str, root_id: str = "r") -> Path:
    """The file that holds the events of a tree."""
    path = path_of(url)
    return path / f"{root_id}.jsonl" if url.startswith("file:") else path
