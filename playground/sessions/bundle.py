"""A run for programs: its events as JSON, and its whole tree as a file: a head, then an event a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from playground.kernel import Event, JsonObject, check_run_id
from playground.kernel.eventlog import FORMAT
from playground.kernel.values import frozen_object
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
            if head is None:
                head = found
                if found["playground"] != "run" or found["format"] > FORMAT:
                    raise ValueError("not a run of this version")
                continue
            data = frozen_object(found["data"], "data")
            check_run_id(found["run_id"])
            event = Event(
                int(found["seq"]),
                found["run_id"],
                found["kind"],
                data,
                found["parent_id"],
                int(found["pos"]),
                float(found["ts"]),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Invalid(
                f"line {number} is not one of an exported run: {type(error).__name__}: {error}"
            ) from error
        events.append(event)
    if head is None or not events or head.get("events") != len(events):
        raise Invalid("the bundle is not whole: export the run again")
    return events
