"""Law 2: replaying the events gives the run; so does a snapshot; and every prefix replays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import Run, replay
from tests.kernel.plans import PlanSpec, World, essence, law, plan_specs


@law(80)
@given(spec=plan_specs(), durability=st.sampled_from(["sync", "exit"]))
async def test_the_replay_of_the_whole_log_equals_the_live_run(spec: PlanSpec, durability: str) -> None:
    world = World(spec, durability=durability)
    run = await world.begin()
    while True:
        events = await world.log.stream("r")
        assert essence(replay(world.plan, events)) == essence(run)
        assert essence(Run.restore(world.plan, run.snapshot())) == essence(run)
        if run.state.ended:
            break
        run = await world.scheduler.resume(world.plan, "r", {min(run.interrupts): None})


@law(80)
@given(spec=plan_specs())
async def test_every_prefix_of_the_log_replays(spec: PlanSpec) -> None:
    world = World(spec)
    await world.finish(await world.begin())
    events = await world.log.stream("r")
    for event in events:
        prefix = replay(world.plan, events, upto=event.pos)
        assert prefix.last_pos <= event.pos


@law(80)
@given(spec=plan_specs())
async def test_positions_count_up_by_one_over_the_whole_tree(spec: PlanSpec) -> None:
    world = World(spec)
    await world.finish(await world.begin())
    events = await world.log.stream("r")
    assert [event.pos for event in events] == list(range(1, len(events) + 1))
    assert events[-1].kind in ("run_completed", "run_failed")
