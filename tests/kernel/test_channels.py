"""Channels: reducers are pure, writes are checked where they are made, and a fold is the same every time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import (
    AmbiguousWrite,
    Channel,
    FnBody,
    Node,
    NodeContext,
    NotJson,
    Outcome,
    Plan,
    Reset,
    RunState,
    Scheduler,
    WaveWrites,
    add,
    append,
    apply_event,
    fold_events,
    freeze,
    last,
    merge,
)


def folded(channel: Channel, *writes: object) -> Any:
    """What a channel holds after one wave with these writes."""
    wave = WaveWrites({"c": channel})
    for index, value in enumerate(writes):
        wave.buffer("c", freeze(value), f"n{index}")
    wave.check_ambiguous()
    return channel.fold(channel.initial(), wave.folded()["delta"]["c"])


@pytest.mark.parametrize(
    ("channel", "writes", "expected"),
    [
        (last("start"), ["x"], "x"),
        (append(), [1, [2, 3], []], [1, 2, 3]),
        (append(["start"]), ["x"], ["start", "x"]),
        (append(), [[[1]]], [[1]]),
        (append(), [{"a": 1}, None], [{"a": 1}, None]),
        (add(), [1, 2.5], 3.5),
        (add(10), [5], 15),
        (add(), [None], 0),
        (merge(), [{"a": 1}, {"a": 2, "b": 3}], {"a": 2, "b": 3}),
        (merge({"a": {"x": 1}}), [{"a": {"y": 2}}], {"a": {"y": 2}}),
    ],
)
def test_each_kind_of_channel_folds_in_its_way(channel: Channel, writes: list[Any], expected: Any) -> None:
    assert folded(channel, *writes) == expected


@given(waves=st.lists(st.lists(st.lists(st.integers(), max_size=3), min_size=1, max_size=3), max_size=5))
def test_folding_wave_by_wave_is_folding_all_at_once(waves: list[list[list[int]]]) -> None:
    channel = append()
    state = channel.initial()
    for writes in waves:
        wave = WaveWrites({"c": channel})
        for index, value in enumerate(writes):
            wave.buffer("c", freeze(value), f"n{index}")
        state = channel.fold(state, wave.folded()["delta"]["c"])
    assert state == [item for writes in waves for value in writes for item in value]


def test_folding_changes_neither_the_old_value_nor_the_new() -> None:
    for channel, old, new in ((append(), [1], [2]), (merge(), {"a": 1}, {"b": 2})):
        before, delta = freeze(old), freeze(new)
        channel.fold(before, delta)
        assert (before, delta) == (old, new)


def test_initial_values_are_copied_for_each_run_and_checked() -> None:
    start = [1]
    channel = append(start)
    start.append(2)
    assert channel.initial() is not channel.initial()
    plan = Plan({"xs": append([1])})
    assert plan.initial_shared()["xs"] == [1]
    with pytest.raises(NotJson, match="initial value of a channel of kind last holds"):
        last({1}).initial()


def test_one_writer_of_last_is_enough_and_two_are_named() -> None:
    wave = WaveWrites({"c": last()})
    wave.buffer("c", 1, "a")
    wave.check_ambiguous()
    wave.buffer("c", 1, "b")
    with pytest.raises(AmbiguousWrite, match="'c' was written by 'a' and 'b' in one wave: let one of them"):
        wave.check_ambiguous()


@pytest.mark.parametrize(
    ("channel", "value", "message"),
    [
        (None, 1, "node 'a' wrote to the undeclared channel 'c': declare it"),
        (last(dtype=int), "x", "node 'a' wrote str to channel 'c', which takes int"),
        (append(dtype=list), "x", "node 'a' wrote str to channel 'c', which takes list"),
        (add(), "x", "node 'a' wrote to channel 'c': an add channel takes numbers, not str"),
        (add(), [1], "an add channel takes numbers, not list"),
        (merge(), [1], "node 'a' wrote to channel 'c': a merge channel takes a dict, not list"),
    ],
)
def test_a_write_that_a_channel_cannot_take_is_refused_by_name(
    channel: Channel | None, value: object, message: str
) -> None:
    wave = WaveWrites({} if channel is None else {"c": channel})
    with pytest.raises((KeyError, TypeError), match=message):
        wave.buffer("c", value, "a")
    assert wave.drain() == []


def test_an_undeclared_channel_is_told_with_those_that_are() -> None:
    with pytest.raises(KeyError, match="the plan has apples, pears"):
        WaveWrites({"apples": last(), "pears": last()}).buffer("appels", 1, "a")


def test_draining_gives_the_writes_once() -> None:
    wave = WaveWrites({"a": last(), "b": append()})
    wave.buffer("b", 1, "x")
    wave.buffer("a", 2, "y")
    wave.buffer("b", 3, "z", reset=True)
    assert [(w.key, w.value, w.writer, w.reset) for w in wave.drain()] == [
        ("b", 1, "x", False),
        ("b", 3, "z", True),
        ("a", 2, "y", False),
    ]
    assert wave.drain() == []


async def test_a_reducer_of_ones_own_folds_from_its_own_identity() -> None:
    highest = Channel(0, lambda old, new: max(old, new), empty=-1, name="highest")
    plan = Plan({"best": highest}).add(
        *[Node(f"n{n}", FnBody(lambda x, n=n: {"best": n})) for n in (3, 9, 4)]
    )
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r")
    assert run.shared["best"] == 9
    fold = next(event for event in await scheduler.eventlog.events("r") if event.kind == "state_delta")
    assert fold.data["reducers"] == {"best": "highest"}


async def test_a_reset_replaces_what_the_channel_holds_whatever_its_kind() -> None:
    delta = {"xs": Reset(["new"]), "n": Reset(1), "m": Reset({"new": 1}), "k": Reset("new")}
    plan = Plan({"xs": append(["old"]), "n": add(9), "m": merge({"old": 1}), "k": last("old")})
    run = await Scheduler().run(plan.add(Node("a", FnBody(lambda x: delta))))
    assert run.shared == {"xs": ["new"], "n": 1, "m": {"new": 1}, "k": "new"}


async def test_a_reset_is_checked_like_any_write() -> None:
    for key, value in (("n", "text"), ("m", [1]), ("typed", 1), ("nope", 1)):
        plan = Plan({"n": add(), "m": merge(), "typed": last(dtype=str)})
        outcome = Outcome(None, {key: Reset(value)})
        run = await Scheduler().run(plan.add(Node("a", FnBody(lambda x, outcome=outcome: outcome))))
        assert run.state is RunState.FAILED
        assert f"channel {key!r}" in run.final_output


async def test_a_channel_that_was_reset_grows_on_from_there() -> None:
    def step(x: object, ctx: NodeContext) -> Outcome:
        return Outcome.ok(xs=Reset(["a"])) if ctx.node_id == "a" else Outcome.ok(xs=["b"])

    plan = Plan({"xs": append(["old"])}).add(Node("a", FnBody(step)), Node("b", FnBody(step))).edge("a", "b")
    run = await Scheduler().run(plan)
    assert run.shared["xs"] == ["a", "b"]


async def test_an_open_plan_declares_what_is_written_as_last() -> None:
    plan = Plan(open_channels=True).add(
        Node("a", FnBody(lambda x: {"new": 1})), Node("b", FnBody(lambda x: {"new": 2}))
    )
    run = await Scheduler().run(plan.edge("a", "b"))
    assert run.shared == {"new": 2}
    twice = Plan(open_channels=True).add(*[Node(key, FnBody(lambda x: {"new": 1})) for key in "ab"])
    assert "written by 'a' and 'b'" in (await Scheduler().run(twice)).final_output


async def test_the_state_is_the_fold_of_the_deltas() -> None:
    plan = Plan({"xs": append(), "n": add(), "m": merge(), "k": last()})
    plan.add(
        Node("a", FnBody(lambda x: {"xs": [1], "n": 1, "m": {"a": 1}, "k": "a"})),
        Node("b", FnBody(lambda x: {"xs": Reset([2]), "n": 1, "m": {"b": 1}, "k": "b"})),
    )
    scheduler = Scheduler()
    run = await scheduler.run(plan.edge("a", "b"), run_id="r")
    events = await scheduler.eventlog.events("r")
    assert fold_events(events, plan.channels, plan.initial_shared()) == run.shared
    shared = dict(plan.initial_shared())
    for event in events:
        apply_event(shared, event, plan.channels)
    assert shared == run.shared == {"xs": [2], "n": 2, "m": {"a": 1, "b": 1}, "k": "b"}


def test_a_channel_that_a_write_declares_is_not_there_before_that_write() -> None:
    """Whatever else was run or folded with the same plan."""
    plan = Plan(open_channels=True).add(Node("a", FnBody(lambda _: {"new": 1})))
    plan.channel("new")

    assert plan.initial_shared() == {}
