"""What if: a log folded without what one event wrote; nothing else may change by that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground import Outcome, Plan, Scheduler, add, append, last, merge
from playground.kernel import Event, FnBody, InMemoryEventLog, Node, replay
from playground.sessions import Conflict, NotFound, what_if, writes_of

CHANNELS = {"total": add, "notes": append, "facts": merge, "latest": last}
VALUES = {
    "total": st.integers(-9, 9),
    "notes": st.lists(st.integers(0, 9), max_size=3),
    "facts": st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=2),
    "latest": st.integers(0, 9),
}
WRITES = st.lists(
    st.fixed_dictionaries({}, optional=VALUES),
    min_size=1,
    max_size=5,
)


async def log_of(writes: list[dict[str, object]]) -> tuple[Plan, list[Event]]:
    """A chain whose nodes write so, and its log."""
    plan = Plan({name: make() for name, make in CHANNELS.items()})
    for number, written_there in enumerate(writes):
        plan.add(Node(f"n{number}", FnBody(lambda _, w=written_there: Outcome.ok(None, **w))))
        if number:
            plan.edge(f"n{number - 1}", f"n{number}", when=lambda s: s["total"] > -100)
    log = InMemoryEventLog()
    run = await Scheduler(eventlog=log).run(plan)
    return plan, await log.stream(run.run_id)


@given(WRITES)
async def test_only_channels_that_the_event_wrote_change(writes: list[dict[str, object]]) -> None:
    plan, events = await log_of(writes)
    for event in events:
        if writes_of(event.kind, event.data):
            found = what_if(plan, events, event.pos)
            assert {channel.name for channel in found.changed} <= set(writes_of(event.kind, event.data))


@given(WRITES)
async def test_a_chain_without_one_write_comes_to_what_it_comes_to_where_that_was_never_written(
    writes: list[dict[str, object]],
) -> None:
    plan, events = await log_of(writes)
    deltas = [event for event in events if event.kind == "state_delta"]
    wrote = [index for index, written_there in enumerate(writes) if written_there]
    for event, index in zip(deltas, wrote, strict=True):
        _, without = await log_of([*writes[:index], {}, *writes[index + 1 :]])
        unreal = {channel.name: channel.right for channel in what_if(plan, events, event.pos).channels}
        assert unreal == replay(plan, without).shared


async def test_a_condition_that_would_read_otherwise_is_named() -> None:
    plan = Plan({"total": add()})
    plan.add(Node("pay", FnBody(lambda _: Outcome.ok(None, total=5))), Node("ship", FnBody(lambda _: "sent")))
    plan.edge("pay", "ship", when=lambda state: state["total"] > 3)
    log = InMemoryEventLog()
    run = await Scheduler(eventlog=log).run(plan)
    events = await log.stream(run.run_id)
    delta = next(event for event in events if event.kind == "state_delta")
    edge = what_if(plan, events, delta.pos).edges[0]

    assert (edge.edge.source, edge.edge.target, edge.real, edge.unreal) == ("pay", "ship", True, False)


async def test_what_cannot_be_switched_off_is_refused() -> None:
    plan, events = await log_of([{"total": 1}])

    with pytest.raises(NotFound, match="no event 99"):
        what_if(plan, events, 99)
    with pytest.raises(Conflict, match=r"event 1 \(run_started\) writes nothing"):
        what_if(plan, events, 1)
