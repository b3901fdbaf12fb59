"""Law 5: after a crash at any event the run ends as if undisturbed, and nothing that returned runs again."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from playground.kernel import Event, RunState
from tests.kernel.plans import Ledger, PlanSpec, World, logged, plan_specs

LAW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@LAW
@given(spec=plan_specs(size=5))
async def test_recovery_at_every_event_gives_the_undisturbed_run(spec: PlanSpec) -> None:
    world = World(spec)
    undisturbed = await world.finish(await world.begin())
    events = await world.log.stream("r")
    for cut in range(1, len(events) + 1):
        ledger = _ledger_of(events[:cut])
        again = World(spec, log=await logged(events[:cut]), ledger=ledger)
        run = await again.finish(await again.scheduler.recover(again.plan, "r"))
        assert run.state == undisturbed.state, cut
        assert run.final_output == undisturbed.final_output, cut
        if run.state is RunState.COMPLETED:
            assert run.shared == undisturbed.shared, cut
        assert all(times == 1 for times in ledger.returned.values()), (cut, ledger.returned)
        assert all(times == 1 for times in ledger.tool_calls.values()), (cut, ledger.tool_calls)


def _ledger_of(events: list[Event]) -> Ledger:
    """What had been done in the world when the log ended here: what had returned."""
    ledger = Ledger()
    activations: dict[tuple[str, object], int] = {}
    for event in events:
        node = event.run_id, event.data.get("node")
        if event.kind == "node_started":
            activations[node] = event.data["activation"]
        elif event.kind == "node_completed":
            ledger.returned[(*node, activations[node])] += 1
        elif event.kind == "tool_returned":
            ledger.tool_calls[event.data["call_id"]] += 1
    return ledger
