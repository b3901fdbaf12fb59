"""What if: the same log folded without what one event wrote.

The log stays as it is; nothing runs.  What comes of it is unreal on purpose: it
shows what hung on one write, and which conditions would read otherwise, not
what the run would have done then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from playground.kernel import Event, JsonObject, JsonValue, Plan
from playground.kernel.graph import Edge
from playground.kernel.readiness import PredicateError, edge_live
from playground.kernel.run import Run
from playground.kernel.values import FrozenDict, dict_in
from playground.sessions.branches import ChannelDifference
from playground.sessions.errors import Conflict, NotFound
from playground.sessions.portrait import portrait


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A conditional edge on the latest state, and without the write; None where the condition fails."""

    edge: Edge
    real: bool | None
    unreal: bool | None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A run without what one of its events wrote.

    Attributes:
        event: that event.
        channels: each before the event, as it has become (`left`), and as it would have (`right`).
        edges: the conditional edges that would read otherwise.
    """

    event: Event
    channels: tuple[ChannelDifference, ...]
    edges: tuple[Otherwise, ...]

    @property
    def changed(self) -> tuple[ChannelDifference, ...]:
        """The channels that would have come to another value; only some that the event wrote to."""
        return tuple(channel for channel in self.channels if channel.differs)


def what_if(plan: Plan | None, events: Sequence[Event], at: int) -> WhatIf:
    """Fold a tree's log again without what the event at position `at` wrote.

    Args:
        plan: of the root run, if there is one.
        events: the whole log.

    Raises:
        NotFound: there is no such event.
        Conflict: it wrote nothing into the state.
    """
    event = next((event for event in events if event.pos == at), None)
    if event is None:
        raise NotFound(f"there is no event {at}: choose one from 1 to {events[-1].pos}")
    if not writes_of(event.kind, event.data):
        raise Conflict(f"event {at} ({event.kind}) writes nothing into the state: choose a state_delta")
    own = plan if event.run_id == events[0].run_id else None
    unwritten = [found if found is not event else _unwritten(event) for found in events]
    before = portrait(own, list(events), event.run_id, at - 1).run
    real = portrait(own, list(events), event.run_id)
    unreal = portrait(own, unwritten, event.run_id)
    return WhatIf(
        event,
        tuple(
            ChannelDifference(name, before.shared.get(name), value, unreal.run.shared.get(name))
            for name, value in real.run.shared.items()
        ),
        tuple(_otherwise(real.plan, real.run, unreal.run)),
    )


def writes_of(kind: str, data: Mapping[str, JsonValue]) -> JsonObject:
    """What an event of this kind and data writes into the state, by channel."""
    if kind == "state_delta":
        return {**dict_in(data, "delta"), **dict_in(data, "reset")}
    return dict_in(data, "updates") if kind == "forked" else {}


def _unwritten(event: Event) -> Event:
    nothing = FrozenDict()
    emptied: dict[str, JsonValue] = {
        name: nothing if name in ("delta", "reset", "writers", "updates") else value
        for name, value in event.data.items()
    }
    return event._replace(data=FrozenDict(emptied))


def _otherwise(plan: Plan, real: Run, unreal: Run) -> list[Otherwise]:
    found = [Otherwise(edge, _holds(edge, real), _holds(edge, unreal)) for edge in plan.edges if edge.when]
    return [edge for edge in found if edge.real != edge.unreal]


def _holds(edge: Edge, run: Run) -> bool | None:
    try:
        return edge_live(edge, run)
    except PredicateError:
        return None
