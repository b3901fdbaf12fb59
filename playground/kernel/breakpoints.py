"""Breakpoints: where a run should stop and wait, as data that the log can keep.

A pause is an interrupt like any other, asked by the run itself between two
waves: so it survives a restart, and going on is an answer.  A run without
breakpoints pays one look at an empty tuple per wave.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from playground.kernel.values import JsonObject, JsonValue

_OPERATORS: dict[str, Callable[..., object]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

_FORMS = (
    '{"before": node}, {"after": node}, {"on": event kind}, '
    '{"channel": name, "op": "<", "value": 15} or {"every": "wave"}'
)


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One place to stop: before or after a node (its path from the root run), on a kind of event,
    while a channel of the root run compares so with a value, or at every wave."""

    before: str | None = None
    after: str | None = None
    on: str | None = None
    channel: str | None = None
    op: str = "=="
    value: JsonValue = None
    every: str | None = None

    def to_json(self) -> JsonObject:
        """The breakpoint as a client sends it."""
        if self.channel is not None:
            return {"channel": self.channel, "op": self.op, "value": self.value}
        named = {"before": self.before, "after": self.after, "on": self.on, "every": self.every}
        return {key: value for key, value in named.items() if value is not None}


def parse_breakpoints(given: Sequence[object]) -> tuple[Breakpoint, ...]:
    """Breakpoints from their JSON.

    Raises:
        ValueError: one has none of the forms above.
    """
    return tuple(_parse(item) for item in given)


def checked_breakpoints(given: Sequence[object]) -> list[JsonValue]:
    """Breakpoints as the log keeps them; errors as in `parse_breakpoints`."""
    return [found.to_json() for found in parse_breakpoints(given)]


def _parse(item: object) -> Breakpoint:
    if isinstance(item, Mapping) and all(isinstance(item[key], str) for key in item if key != "value"):
        on_one = len(item) == 1 and item.keys() <= {"before", "after", "on"}
        on_channel = item.keys() == {"channel", "op", "value"} and item["op"] in _OPERATORS
        if on_one or on_channel or item == {"every": "wave"}:
            return Breakpoint(**item)
    raise ValueError(f"{item!r} is not a breakpoint: use {_FORMS}")


def hit(
    breakpoints: Sequence[Breakpoint],
    *,
    next_nodes: AbstractSet[str],
    last_nodes: AbstractSet[str],
    kinds: AbstractSet[str],
    shared: Mapping[str, JsonValue],
) -> Breakpoint | None:
    """The first breakpoint that a barrier meets, if any.

    Args:
        next_nodes: paths of the nodes about to start; `last_nodes`: of those that just returned.
        kinds: kinds of the events since the last barrier.
        shared: the state at the barrier.
    """
    for found in breakpoints:
        if (
            found.every is not None
            or found.before in next_nodes
            or found.after in last_nodes
            or found.on in kinds
            or _holds(found, shared)
        ):
            return found
    return None


def _holds(found: Breakpoint, shared: Mapping[str, JsonValue]) -> bool:
    if found.channel is None or found.channel not in shared:
        return False
    try:
        return bool(_OPERATORS[found.op](shared[found.channel], found.value))
    except TypeError:
        return False
