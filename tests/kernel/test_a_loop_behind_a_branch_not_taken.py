"""A loop whose way in is closed is skipped, as a branch is; it does not stall the run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest

from playground.kernel import FnBody, JsonValue, Node, NodeStatus, Outcome, Plan, Run, Scheduler


def step(name: str) -> Node:
    return Node(name, FnBody(lambda _: Outcome.ok(name)))


async def run_with_loop(*loop: str, taken: bool) -> Run:
    """decide → the first of a loop if `taken`, and decide → end in any case."""

    def way_in(_: Mapping[str, JsonValue]) -> bool:
        return taken

    plan = Plan(entry=("decide",)).add(step("decide"), *map(step, loop))
    plan.add(Node("end", FnBody(lambda _: Outcome.ok("end")), terminal=True))
    plan.edge("decide", loop[0], when=way_in).edge("decide", "end")
    for before, after in zip(loop, [*loop[1:], loop[0]], strict=True):
        plan.edge(before, after)
    return await Scheduler().run(plan)


@pytest.mark.parametrize("loop", [("a",), ("a", "b"), ("a", "b", "c")])
async def test_it_is_skipped_and_says_which_edge_is_closed(loop: tuple[str, ...]) -> None:
    run = await run_with_loop(*loop, taken=False)
    assert run.final_output == "end"
    assert [run.status_of(name) for name in loop] == [NodeStatus.SKIPPED] * len(loop)
    assert run.state_of("a").why == {"code": "dead_edges", "nodes": ["decide"]}
    for before, after in pairwise(loop):
        assert run.state_of(after).why == {"code": "skipped_predecessors", "nodes": [before]}


async def test_what_only_the_loop_leads_to_is_skipped_with_it() -> None:
    plan = Plan(entry=("decide",)).add(step("decide"), step("a"), step("b"), step("after"), step("end"))
    plan.edge("decide", "a", when=lambda _: False).edge("a", "b").edge("b", "a").edge("b", "after")
    run = await Scheduler().run(plan.edge("decide", "end"))
    assert run.state == "completed"
    assert run.status_of("after") is NodeStatus.SKIPPED


async def test_a_loop_that_nothing_leads_into_is_a_mistake_and_stalls() -> None:
    plan = Plan().add(step("start"), step("a"), step("b")).edge("a", "b").edge("b", "a")
    run = await Scheduler().run(plan)
    assert run.state == "failed"
    assert "stalled" in str(run.final_output)


async def test_a_loop_that_is_open_but_waits_for_itself_still_stalls_with_a_reason() -> None:
    run = await run_with_loop("a", "b", taken=True)
    assert run.state == "failed"
    assert "'a' never ran (it waits for b), 'b' never ran (it waits for a)" in str(run.final_output)
