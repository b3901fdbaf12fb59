"""Replay: a run as its events tell it, up to any of them.

There is nothing more to it than `Run.apply`, event by event; that is the point
of making the log the run.  Time travel, audit and the proof that a checkpoint
is right are this one function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping

from playground.kernel.channels import Channel
from playground.kernel.eventlog import Event, root_of
from playground.kernel.graph import Plan
from playground.kernel.run import Run, check_first
from playground.kernel.values import JsonValue


def replay(plan: Plan, events: Iterable[Event], *, upto: int | None = None, run_id: str | None = None) -> Run:
    """The run that these events tell of; calls no body, predicate, join or model.

    Args:
        events: of one run, or of a whole tree, in order.
        upto: leave out what comes after this position of the tree (this `seq`, where events have no `pos`).
        run_id: which run of the tree; by default that of the first event.

    Raises:
        LogError: the events are not one run's, some are missing, or they are of a newer version.
    """
    run: Run | None = None
    for event in events:
        if upto is not None and (event.pos or event.seq) > upto:
            break
        if run is None:
            if run_id is not None and event.run_id != run_id:
                continue
            check_first(event)
            run = Run(plan, event.run_id, parent_id=event.parent_id)
        if event.run_id == run.run_id or root_of(event.run_id) != root_of(run.run_id):
            run.apply(event)
    if run is None:
        return Run(plan, run_id)
    return run


def apply_event(
    shared: MutableMapping[str, JsonValue], event: Event, channels: Mapping[str, Channel]
) -> None:
    """Fold one event into a state, in place; events other than `state_delta` change nothing.

    Raises:
        KeyError: a channel is not declared.
    """
    if event.kind != "state_delta":
        return
    for kind in ("reset", "delta"):
        changes = event.data.get(kind, {})
        assert isinstance(changes, Mapping)
        for key, value in changes.items():
            shared[key] = value if kind == "reset" else channels[key].fold(shared.get(key), value)


def fold_events(
    events: Iterable[Event], channels: Mapping[str, Channel], initial: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """The state that a stream of events leaves behind, from `initial`."""
    shared = dict(initial)
    for event in events:
        apply_event(shared, event, channels)
    return shared
