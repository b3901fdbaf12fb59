"""What a run's log keeps of the stage around it, such as its layers, for when that is set up again."""

from __future__ import annotations

from collections.abc import Iterable

from playground.kernel import Event, JsonObject
from playground.kernel.values import dict_in

STAGE = "stage"
"""Topic of the notes in which a run's log keeps what its scenario's stage must remember."""


def is_stage_note(event: Event) -> bool:
    """Whether an event tells what a stage must remember."""
    return event.kind == "note" and event.data.get("topic") == STAGE


def remembered(events: Iterable[Event]) -> JsonObject:
    """What the stage of a run must remember, folded from the notes in its log."""
    known: JsonObject = {}
    for event in events:
        if is_stage_note(event):
            known.update(dict_in(event.data, "data"))
    return known


def news(known: JsonObject, now: JsonObject) -> JsonObject:
    """What a stage must remember now and what is not known yet."""
    return {key: value for key, value in now.items() if known.get(key, _NOTHING) != value}


_NOTHING = object()
