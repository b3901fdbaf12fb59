"""A run for programs: its events as JSON, and its whole tree as a file: a head, then an event a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from playground.kernel import Event, JsonObject, JsonValue, check_run_id, root_of
from playground.kernel.breakpoints import checked_breakpoints
from playground.kernel.eventlog import FORMAT
from playground.kernel.values import dict_in, frozen_object, int_in, list_in, text_in
from playground.sessions.errors import Invalid


def event_json(event: Event) -> JsonObject:
    """An event as the API and the command line tell it."""
    return {
        "id": event.pos,
        "seq": event.seq,
        "run_id": event.run_id,
        "parent_id": event.parent_id,
        "kind": event.kind,
        "ts": event.ts,
        "data": dict(event.data),
    }


_END_OF_TIME = 253_402_300_800
"""The first second that is no date any more: that of the year 10000."""


_END_OF_LOG = 1 << 53
"""The first position that not every reader of JSON can tell from the next."""

_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("node", "id", "name", "path", "call", "call_id", "child", "topic", "relation"), str),
    **dict.fromkeys(("key", "goto", "send", "outcome", "via", "code", "text", "reasoning"), str),
    **dict.fromkeys(("wave", "attempt", "activation", "depth", "left", "format"), int),
    **dict.fromkeys(("meta", "shared", "why", "delta", "reset", "writers", "reducers", "difference"), dict),
    **dict.fromkeys(("arguments", "answers", "data"), dict),
    **dict.fromkeys(("nested", "interrupts", "inputs", "control", "tool_calls", "breakpoints"), list),
}
"""What a field of an event's data is wherever it occurs; the others are any JSON."""


def bundle(events: Sequence[Event]) -> list[JsonObject]:
    """The lines of a run's file, for the events of its whole tree."""
    head: JsonObject = {
        "playground": "run",
        "format": FORMAT,
        "run_id": events[0].run_id,
        "events": len(events),
    }
    return [head, *({**event._asdict(), "data": dict(event.data)} for event in events)]


def read_bundle(lines: Iterable[str]) -> list[Event]:
    """The events of an exported run.

    Raises:
        Invalid: a line is not one of a bundle, or lines are missing.
    """
    head: JsonObject | None = None
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                raise TypeError("it is no JSON object")
            if head is None:
                head = _head(found)
            else:
                events.append(_event(found, events))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Invalid(
                f"line {number} is not one of an exported run: {_wrong(error)}; export the run again"
            ) from error
    if head is None or not events or head.get("events") != len(events):
        raise Invalid("the bundle is not whole: export the run again")
    return events


def _wrong(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"it is not JSON ({error.msg} at column {error.colno})"
        case RecursionError():
            return "it nests too deep"
        case KeyError():
            return f"it has no {error.args[0]!r}"
    return str(error)


def _head(found: JsonObject) -> JsonObject:
    if found["playground"] != "run" or not 1 <= int_in(found, "format") <= FORMAT:
        raise ValueError("not a run of this version")
    return found


def _event(found: JsonObject, before: Sequence[Event]) -> Event:
    """The event of a line; whether it fits those before it shows when the log is folded."""
    run_id = check_run_id(text_in(found, "run_id"))
    data = frozen_object(dict_in(found, "data"), "data")
    for name, value in data.items():
        if not isinstance(value, _TYPES.get(name, object)):
            raise TypeError(f"{name} is {type(value).__name__}, not {_TYPES[name].__name__}")
    if text_in(found, "kind") == "delegated" and text_in(data, "child").rpartition("~")[0] != run_id:
        raise ValueError(f"{data['child']} is no child run of {run_id}")
    if not before:
        text_in(data, "task")
    if data.get("expires_at") is not None:
        _seconds(data["expires_at"])
    if "breakpoints" in data:
        checked_breakpoints(list_in(data, "breakpoints"))
    event = Event(
        int(int_in(found, "seq")),
        run_id,
        text_in(found, "kind"),
        data,
        run_id.rpartition("~")[0] or None,
        int(int_in(found, "pos")),
        _seconds(found["ts"]),
    )
    if found["parent_id"] != event.parent_id:
        raise ValueError(f"the parent of run {run_id} is {event.parent_id}")
    if root_of(run_id) != (before[0].run_id if before else run_id):
        raise ValueError(f"run {run_id} is not of the tree of the first line")
    if not (before[-1].pos if before else 0) < event.pos < _END_OF_LOG:
        raise ValueError(f"pos is {event.pos}, not one that follows the line before")
    return event


def _seconds(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _END_OF_TIME:
        raise ValueError(f"ts is {str(value)[:40]!r}, not a time in seconds")
    return float(value)
