"""Law 3: losing a checkpoint costs time, never truth; and a wave costs what it changes, not what there is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import (
    FnBody,
    Goto,
    InMemoryEventLog,
    InMemoryStore,
    JsonValue,
    LogError,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Run,
    RunState,
    Scheduler,
    SubPlanBody,
    append,
    merge,
)
from tests.kernel.logs import CountingLog
from tests.kernel.plans import PlanSpec, World, law, logged, plan_specs


class DurableLog(InMemoryEventLog):
    durable = True


class History(InMemoryStore):
    """A store that remembers every snapshot it was ever given, and how large it was."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[tuple[str, Mapping[str, JsonValue]]] = []

    async def save(self, run_id: str, snapshot: Mapping[str, JsonValue], **options: Any) -> int:
        self.saved.append((run_id, snapshot))
        return await super().save(run_id, snapshot, **options)

    @property
    def bytes(self) -> int:
        return sum(len(json.dumps(snapshot)) for _, snapshot in self.saved)


class Broken(InMemoryStore):
    """A store whose snapshots cannot be read."""

    async def load(self, run_id: str) -> None:
        raise OSError("input/output error")


@law(60)
@given(spec=plan_specs(), data=st.data())
async def test_whatever_becomes_of_the_checkpoints_the_run_ends_the_same(
    spec: PlanSpec, data: st.DataObject
) -> None:
    """Wherever the log ends: with no checkpoint, with outdated ones, and with some that are ahead of it."""
    store = History()
    world = World(spec, log=DurableLog(), store=store)
    undisturbed = await world.finish(await world.begin())
    events = await world.log.stream("r")
    cut = data.draw(st.integers(1, len(events)), label="cut")
    kept = InMemoryStore()
    for run_id, snapshot in data.draw(st.permutations(store.saved), label="kept")[:3]:
        await kept.save(run_id, snapshot)
    again = World(spec, log=await logged(events[:cut]), store=kept)
    run = await again.finish(await again.scheduler.recover(again.plan, "r"))
    assert (run.state, run.final_output) == (undisturbed.state, undisturbed.final_output)
    if run.state is RunState.COMPLETED:
        assert run.shared == undisturbed.shared


def looping(waves: int, **channels: object) -> Plan:
    """A plan that appends a message a wave."""

    def step(x: JsonValue, ctx: NodeContext) -> Outcome:
        n = len(ctx.shared["messages"])
        delta = {"messages": [{"role": "user", "content": f"message {n}"}]}
        return Outcome(n, delta, Goto("step") if n + 1 < waves else None)

    return Plan({"messages": append(), **channels}).add(Node("step", FnBody(step)))


async def test_a_wave_hands_the_log_as_many_bytes_late_in_a_run_as_at_its_start() -> None:
    log = CountingLog()
    await Scheduler(eventlog=log, max_waves=1000).run(looping(1000))
    early, late = log.sizes[100:200], log.sizes[850:950]
    assert sum(late) < 1.1 * sum(early)


async def test_all_checkpoints_together_are_linear_in_the_history() -> None:
    """Twice as many waves may cost some twice as many bytes of snapshots, not four times."""
    costs = []
    for waves in (500, 1000, 2000):
        store = History()
        await Scheduler(eventlog=CountingLog(), store=store, max_waves=waves).run(looping(waves))
        costs.append(store.bytes / waves)
    assert max(costs) < 2.5 * min(costs)


async def test_a_resume_of_a_long_run_saves_little() -> None:
    """A thousand waits behind a long history: the snapshots grow with the log, not with its square."""

    def ask(x: JsonValue, ctx: NodeContext) -> Outcome:
        if not ctx.resumed:
            return Outcome.park("input")
        return Outcome(None, {"messages": [ctx.resume_value]}, Goto("ask"))

    plan = Plan({"messages": append([f"message {n}" for n in range(1000)])}).add(Node("ask", FnBody(ask)))
    store, log = History(), CountingLog()
    scheduler = Scheduler(eventlog=log, store=store, max_waves=1000)
    run = await scheduler.run(plan)
    for n in range(100):
        run = await scheduler.resume(plan, run.run_id, n)
    assert store.bytes < 20 * sum(log.sizes)
    assert len(store.saved) < 25


async def test_with_durability_exit_the_log_is_complete_and_checkpoints_wait_for_the_rest() -> None:
    logs = {}
    for durability in ("sync", "exit"):
        log, store = CountingLog(), History()
        await Scheduler(eventlog=log, store=store, max_waves=500, durability=durability).run(
            looping(500), run_id="r"
        )
        logs[durability] = [event._replace(ts=0) for event in await log.events("r")]
        assert len(store.saved) == (2 if durability == "sync" else 0)
    assert logs["sync"] == logs["exit"]


async def test_a_log_that_does_not_outlive_the_process_leaves_the_run_to_its_checkpoint() -> None:
    store = InMemoryStore()
    plan = Plan({"xs": append()}).add(Node("ask", FnBody(parks)))
    run = await Scheduler(store=store).run(plan, run_id="r")
    run = await Scheduler(store=store).resume(plan, "r", "yes")
    assert (run.final_output, run.shared["xs"]) == ("yes", ["yes"])
    assert (await Scheduler(store=store).load(plan, "r")).state is RunState.COMPLETED


def parks(x: JsonValue, ctx: NodeContext) -> Outcome:
    return Outcome.ok(ctx.resume_value, xs=[ctx.resume_value]) if ctx.resumed else Outcome.park("input")


GARBAGE: dict[str, Mapping[str, Any]] = {
    "nothing of a snapshot": {},
    "numbers that are text": {"event_seq": "12"},
    "a state that is none": {"state": "asleep"},
    "a status that is none": {"node_states": {"ask": ["asleep", None, 1, 1, None]}},
    "a node state cut short": {"node_states": {"ask": []}},
    "interrupts that are none": {"interrupts": [{"id": 1}]},
    "a wave that is none": {"wave": None},
    "a channel that the plan lacks": {"shared": {"nope": 1}},
    "a node that the plan lacks": {"activated": {"nope": {"code": "goto"}}},
    "another run": {"run_id": "other"},
    "a newer version": {"format": 99},
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_a_checkpoint_that_cannot_be_used_is_passed_over_where_the_log_has_the_run(name: str) -> None:
    plan = Plan({"xs": append()}).add(Node("ask", FnBody(parks)))
    scheduler = Scheduler()
    run = await scheduler.run(plan, run_id="r")
    damage = GARBAGE[name]
    await scheduler.store.save("r", {**run.snapshot(), **damage} if damage else {})
    run = await scheduler.resume(plan, "r", "yes")
    assert (run.state, run.shared["xs"]) == (RunState.COMPLETED, ["yes"])


@pytest.mark.parametrize("name", GARBAGE)
async def test_without_the_log_it_is_an_error_that_names_the_run(name: str) -> None:
    plan = Plan({"xs": append()}).add(Node("ask", FnBody(parks)))
    first = Scheduler()
    run = await first.run(plan, run_id="r")
    await first.store.save("r", {**run.snapshot(), **GARBAGE[name]} if GARBAGE[name] else {})
    with pytest.raises(LogError, match=r"^run (r|other|None)\b"):
        await Scheduler(store=first.store).resume(plan, "r", "yes")


async def test_a_store_that_cannot_be_read_does_not_hold_up_a_run_that_the_log_has() -> None:
    plan = Plan({"xs": append()}).add(Node("ask", FnBody(parks)))
    scheduler = Scheduler(store=Broken())
    await scheduler.run(plan, run_id="r")
    assert (await scheduler.resume(plan, "r", "yes")).final_output == "yes"
    with pytest.raises(OSError, match="input/output error"):
        await Scheduler(store=Broken()).resume(plan, "r", "yes")


async def test_a_checkpoint_ahead_of_the_log_is_not_believed() -> None:
    """As after a power cut that took the end of the log and spared the checkpoint."""
    plan = (
        Plan({"xs": append()})
        .add(Node("ask", FnBody(parks)), Node("then", FnBody(parks)))
        .edge("ask", "then")
    )
    scheduler = Scheduler()
    parked = await scheduler.run(plan, run_id="r")
    await scheduler.resume(plan, "r", "first")
    events = await scheduler.eventlog.stream("r")
    again = Scheduler(store=scheduler.store, eventlog=await logged(events[: parked.last_pos]))
    run = await again.resume(plan, "r", "another")
    assert run.shared["xs"] == ["another"]
    assert list(run.interrupts) == ["then"]


async def test_checkpoints_of_child_runs_are_caches_too() -> None:
    child = Plan({"xs": append()}).add(Node("ask", FnBody(parks)))
    plan = Plan().add(Node("outer", SubPlanBody(child)))
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    await scheduler.store.save("r~1", {"hello": "world"})
    assert (await scheduler.resume(plan, "r", "yes")).final_output == "yes"


async def test_a_snapshot_shares_nothing_with_the_run_that_goes_on() -> None:
    """Case D14."""

    def step(x: JsonValue, ctx: NodeContext) -> Outcome:
        n = len(ctx.shared["xs"])
        return Outcome(n, {"xs": [n], "m": {str(n): n}}, Goto("step") if n < 2 else None)

    plan = Plan({"xs": append(), "m": merge()}).add(Node("step", FnBody(step)))
    snapshots = []
    scheduler = Scheduler()
    scheduler.bus.provider("wave", lambda run: snapshots.append((run.snapshot(), json.dumps(run.snapshot()))))
    run = await scheduler.run(plan, run_id="r")
    for number, (snapshot, text) in enumerate(snapshots):
        assert json.dumps(snapshot) == text
        assert len(snapshot["shared"]["xs"]) == len(snapshot["shared"]["m"]) == number
    restored = Run.restore(plan, snapshots[1][0])
    await Scheduler(store=scheduler.store).drive(plan, restored)
    assert restored.shared == run.shared
    assert [json.dumps(snapshot) for snapshot, _ in snapshots] == [text for _, text in snapshots]
