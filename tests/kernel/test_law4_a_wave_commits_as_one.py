"""Law 4: a wave's writes are folded in plan order, all at once, and kept as one batch."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import (
    FnBody,
    Goto,
    JsonValue,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Reset,
    RunState,
    Scheduler,
    Send,
    add,
    append,
    last,
    merge,
    replay,
)
from tests.kernel.logs import CountingLog, turns
from tests.kernel.plans import PlanSpec, World, law, logged, plan_specs


def writes(key: str, delay: int = 0) -> Node:
    """A node that writes its key to every channel after a while."""

    async def body(x: JsonValue) -> Outcome:
        await turns(delay)
        return Outcome.ok(key, xs=[key], n=1, m={"latest": key, key: delay})

    return Node(key, FnBody(body))


def channels() -> dict[str, Any]:
    return {"xs": append(), "n": add(), "m": merge()}


async def test_nodes_of_a_wave_see_the_state_as_it_was_when_the_wave_began() -> None:
    seen = []

    async def look(x: JsonValue, ctx: NodeContext) -> None:
        await turns()
        assert ctx.run.is_completed("a")
        seen.append(copy.deepcopy(dict(ctx.shared)))

    plan = Plan(channels()).add(writes("a"), Node("look", FnBody(look)))
    run = await Scheduler().run(plan)
    assert seen == [{"xs": [], "n": 0, "m": {}}]
    assert run.shared["xs"] == ["a"]


@law(60)
@given(delays=st.lists(st.integers(0, 5), min_size=2, max_size=5))
async def test_writes_are_folded_in_plan_order_whoever_finishes_first(delays: list[int]) -> None:
    keys = [f"n{index}" for index in range(len(delays))]
    plan = Plan(channels()).add(*[writes(key, delay) for key, delay in zip(keys, delays, strict=True)])
    run = await Scheduler().run(plan)
    assert run.shared["xs"] == keys
    assert list(run.shared["m"]) == ["latest", *keys]
    assert run.shared["m"]["latest"] == keys[-1]
    assert run.final_output == {key: key for key in keys}


@law(40)
@given(delays=st.lists(st.integers(0, 5), min_size=2, max_size=5), concurrency=st.integers(1, 3))
async def test_instances_of_a_template_are_folded_in_the_order_they_were_sent(
    delays: list[int], concurrency: int
) -> None:
    async def work(delay: int, ctx: NodeContext) -> Outcome:
        await turns(delay)
        return Outcome.ok(ctx.node_id, xs=[ctx.node_id])

    sends = [Send("work", delay, f"k{len(delays) - index}") for index, delay in enumerate(delays)]
    plan = Plan({"xs": append()}).add(
        Node("fan", FnBody(lambda x: sends)), Node("work", FnBody(work), template=True, terminal=True)
    )
    run = await Scheduler(concurrency=concurrency).run(plan)
    assert run.shared["xs"] == run.final_output == [f"work#{send.key}" for send in sends]


async def test_a_wave_and_the_starts_of_the_next_are_one_batch() -> None:
    log = CountingLog()
    plan = Plan(channels()).add(writes("a"), writes("b"), writes("c")).edge("a", "c").edge("b", "c")
    await Scheduler(eventlog=log).run(plan)
    batches = [[event.kind for event in batch] for batch in log.batches]
    assert batches[0] == ["run_started", "node_started", "node_started"]
    assert ["state_delta", "node_started"] in batches
    assert batches[-1] == ["node_completed", "state_delta", "run_completed"]


async def test_the_commands_of_a_wave_are_in_its_batch_in_plan_order() -> None:
    log = CountingLog()

    async def late(x: JsonValue) -> Outcome:
        await turns()
        return Outcome("late", {}, Send("work", 1, "one"))

    plan = Plan().add(
        Node("late", FnBody(late)),
        Node(
            "early", FnBody(lambda x: Outcome("early", {}, [Send("work", 2, "two"), Goto("end", payload=3)]))
        ),
        Node("work", FnBody(lambda x: x), template=True),
        Node("end", FnBody(lambda x: x)),
    )
    plan.entry = ("late", "early")
    await Scheduler(eventlog=log).run(plan)
    barrier = next(batch for batch in log.batches if any(event.kind == "control" for event in batch))
    told = [(e.kind, e.data.get("by"), e.data.get("send") or e.data.get("goto")) for e in barrier]
    commands = [(kind, by, target) for kind, by, target in told if kind == "control"]
    assert commands == [
        ("control", "late", "work"),
        ("control", "early", "work"),
        ("control", "early", "end"),
    ]
    assert [kind for kind, *_ in told][-3:] == ["node_started"] * 3


@law(40)
@given(spec=plan_specs(size=5))
async def test_a_log_that_ends_with_any_batch_replays_to_a_barrier_and_goes_on(spec: PlanSpec) -> None:
    """What a crash leaves: whole batches.  Between two of them no wave is half folded."""
    log = CountingLog()
    world = World(spec, log=log)
    undisturbed = await world.finish(await world.begin())
    kept = 0
    for batch in log.batches:
        kept += len(batch)
        events = (await log.stream("r"))[:kept]
        run = replay(world.plan, events)
        due = [control for data in run.wave.returned.values() for control in data.get("control", ())]
        written = any("delta" in data or "reset" in data for data in run.wave.returned.values())
        if run.running and run.wave.committed:
            assert run.wave.committed == len(due) + written
        again = World(spec, log=await logged(events))
        ended = await again.finish(await again.scheduler.recover(again.plan, "r"))
        assert (ended.state, ended.final_output) == (undisturbed.state, undisturbed.final_output)


async def test_facts_that_a_provider_contributes_join_the_batch_of_the_wave() -> None:
    log = CountingLog()
    scheduler = Scheduler(eventlog=log)
    scheduler.bus.provider("wave", lambda run: {"topic": "layers", "data": {"n": run.wave.number}})
    plan = Plan(channels()).add(writes("a"), writes("b")).edge("a", "b")
    await scheduler.run(plan)
    barriers = [batch for batch in log.batches if any(event.kind == "state_delta" for event in batch)]
    for number, batch in enumerate(barriers, 1):
        note = next(event for event in batch if event.kind == "note")
        assert note.data == {"wave": number, "topic": "layers", "data": {"n": number}}


async def test_a_provider_that_raises_contributes_nothing_and_disturbs_nothing() -> None:
    scheduler = Scheduler()
    scheduler.bus.provider("wave", lambda run: 1 / 0)
    scheduler.bus.provider("wave", lambda run: {"topic": "fine"})
    run = await scheduler.run(Plan(channels()).add(writes("a")))
    notes = [
        event.data["topic"] for event in await scheduler.eventlog.events(run.run_id) if event.kind == "note"
    ]
    assert (run.state, notes) == (RunState.COMPLETED, ["fine"])


async def test_what_a_provider_contributes_must_be_json_or_the_run_fails_by_name() -> None:
    scheduler = Scheduler()
    scheduler.bus.provider("wave", lambda run: {"topic": "bad", "data": {1, 2}})
    run = await scheduler.run(Plan(channels()).add(writes("a")))
    assert run.state is RunState.FAILED
    assert "what a provider of 'wave' contributed" in run.final_output
    assert "{1, 2} of type set" in run.final_output


MUTATIONS: dict[str, Callable[[Any], object]] = {
    "setting a channel": lambda s: s.__setitem__("xs", []),
    "deleting a channel": lambda s: s.__delitem__("xs"),
    "updating": lambda s: s.update({"xs": []}),
    "popping a channel": lambda s: s.pop("xs"),
    "clearing": lambda s: s.clear(),
    "appending": lambda s: s["xs"].append(1),
    "extending": lambda s: s["xs"].extend([1]),
    "inserting": lambda s: s["xs"].insert(0, 1),
    "setting an item": lambda s: s["xs"].__setitem__(0, 1),
    "setting a slice": lambda s: s["xs"].__setitem__(slice(0, 1), []),
    "deleting an item": lambda s: s["xs"].__delitem__(0),
    "removing": lambda s: s["xs"].remove({"deep": [1]}),
    "popping an item": lambda s: s["xs"].pop(),
    "sorting": lambda s: s["xs"].sort(key=str),
    "reversing": lambda s: s["xs"].reverse(),
    "clearing a list": lambda s: s["xs"].clear(),
    "adding in place": lambda s: s["xs"].__iadd__([1]),
    "multiplying in place": lambda s: s["xs"].__imul__(2),
    "setting a key": lambda s: s["m"].__setitem__("k", 1),
    "deleting a key": lambda s: s["m"].__delitem__("k"),
    "updating a dict": lambda s: s["m"].update(k=1),
    "merging in place": lambda s: s["m"].__ior__({"k": 1}),
    "setting a default": lambda s: s["m"].setdefault("new", 1),
    "popping a key": lambda s: s["m"].pop("k"),
    "popping any key": lambda s: s["m"].popitem(),
    "clearing a dict": lambda s: s["m"].clear(),
    "reaching deep": lambda s: s["xs"][0]["deep"].append(2),
    "reaching deep by key": lambda s: s["m"]["k"].__setitem__("x", 1),
}


@pytest.mark.parametrize("name", MUTATIONS)
async def test_a_node_cannot_change_the_state_it_reads(name: str) -> None:
    def body(x: JsonValue, ctx: NodeContext) -> str:
        before = copy.deepcopy(dict(ctx.shared))
        with pytest.raises((TypeError, AttributeError)):
            MUTATIONS[name](ctx.shared)
        assert dict(ctx.shared) == before
        return "unchanged"

    start = {"xs": append([{"deep": [1]}]), "m": merge({"k": {"x": 0}})}
    run = await Scheduler().run(Plan(start).add(Node("a", FnBody(body))))
    assert run.final_output == "unchanged"
    assert run.shared == {"xs": [{"deep": [1]}], "m": {"k": {"x": 0}}}


async def test_a_copy_of_the_state_is_the_nodes_own() -> None:
    def body(x: JsonValue, ctx: NodeContext) -> Outcome:
        deep = copy.deepcopy(ctx.shared["xs"])
        deep[0]["deep"].append(2)
        flat = sorted([*ctx.shared["xs"], {"deep": []}], key=str)
        return Outcome.ok([deep, len(flat), list(ctx.shared["m"]), ctx.shared["m"] | {"new": 1}])

    start = {"xs": append([{"deep": [1]}]), "m": merge({"k": 1})}
    run = await Scheduler().run(Plan(start).add(Node("a", FnBody(body))))
    assert run.final_output == [[{"deep": [1, 2]}], 2, ["k"], {"k": 1, "new": 1}]
    assert run.shared == {"xs": [{"deep": [1]}], "m": {"k": 1}}


async def test_what_a_node_returned_does_not_change_with_what_it_was_made_of() -> None:
    """Case D14."""
    mine = {"items": [1]}

    async def first(x: JsonValue) -> Outcome:
        return Outcome.ok(mine, xs=mine["items"])

    def second(x: JsonValue) -> None:
        mine["items"].append("changed")

    scheduler = Scheduler()
    plan = Plan({"xs": append()}).add(Node("a", FnBody(first)), Node("b", FnBody(second))).edge("a", "b")
    run = await scheduler.run(plan, run_id="r")
    assert run.state_of("a").output == {"items": [1]}
    assert run.shared["xs"] == [1]
    returned = next(event for event in await scheduler.eventlog.events("r") if event.kind == "node_completed")
    assert returned.data["value"] == {"items": [1]}


async def test_defaults_count_an_empty_append_is_nothing_and_a_reset_replaces() -> None:
    """Case D53."""

    def step(x: JsonValue, ctx: NodeContext) -> Outcome:
        deltas = [{"n": 5, "xs": []}, {"xs": Reset([])}, {"xs": ["y"], "n": Reset(1), "m": Reset({})}]
        return Outcome(None, deltas[ctx.attempt - 1], Goto("step") if ctx.attempt < 3 else None)

    plan = Plan({"n": add(10), "xs": append(["x"]), "m": merge({"k": 1})}).add(Node("step", FnBody(step)))
    scheduler = Scheduler()
    seen = []
    scheduler.bus.on("node_started", lambda evt: seen.append(dict(replays(evt.seq))))

    def replays(upto: int) -> dict[str, JsonValue]:
        events = scheduler.eventlog._runs["r"]
        return replay(plan, events, upto=upto).snapshot()["shared"]

    run = await scheduler.run(plan, run_id="r")
    assert seen == [
        {"n": 10, "xs": ["x"], "m": {"k": 1}},
        {"n": 15, "xs": ["x"], "m": {"k": 1}},
        {"n": 15, "xs": [], "m": {"k": 1}},
    ]
    assert run.shared == {"n": 1, "xs": ["y"], "m": {}}
    assert plan.initial_shared() == {"n": 10, "xs": ["x"], "m": {"k": 1}}


async def test_a_reset_beside_another_write_of_the_wave_is_ambiguous() -> None:
    plan = Plan({"xs": append()}).add(
        Node("a", FnBody(lambda x: {"xs": Reset([])})), Node("b", FnBody(lambda x: {"xs": [1]}))
    )
    run = await Scheduler().run(plan)
    assert "channel 'xs' was written by 'a' and 'b' in one wave" in run.final_output


async def test_waves_of_several_runs_keep_apart() -> None:
    plan = Plan(channels() | {"who": last()}).add(writes("a", 3), writes("b"))
    scheduler = Scheduler(concurrency=2)
    runs = await asyncio.gather(*[scheduler.run(plan) for _ in range(20)])
    assert all(run.shared["xs"] == ["a", "b"] for run in runs)
    assert plan.initial_shared()["xs"] == []
