"""Who waits for whom, whom nothing can reach any more, and where a run stalls."""

from __future__ import annotations

import pytest

from playground.kernel import JsonValue, NodeStatus, Outcome, Reason, RunState
from tests.kernel.logs import turns
from tests.kernel.steps import does, plan_of, ran, step, waves

SKIPPED = NodeStatus.SKIPPED


def never(state: object) -> bool:
    return False


async def test_all_waits_for_every_live_edge() -> None:
    plan = plan_of(step("a"), step("long"), step("longer"), step("end"), a="end", long="longer", longer="end")
    _, events = await ran(plan)
    assert waves(events) == [["a", "long"], ["longer"], ["end"]]


async def test_all_does_not_wait_for_an_edge_that_is_dead() -> None:
    plan = plan_of(step("a"), step("b"), step("end"), a="end").edge("b", "end", when=never)
    run, events = await ran(plan)
    assert waves(events) == [["a", "b"], ["end"]]
    assert run.state_of("end").output == "end"


async def test_any_runs_with_the_first_live_edge_and_only_once() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), step("end", join="any"), a="end", b="c", c="end")
    run, events = await ran(plan)
    assert waves(events) == [["a", "b"], ["c", "end"]]
    assert run.shared["trace"].count("end") == 1


async def test_any_runs_when_a_condition_comes_true_while_another_predecessor_is_open() -> None:
    plan = plan_of(
        step("a"), does("b", lambda x: {"n": 1}), *map(step, "cde"), step("end", join="any"), a="b"
    )
    plan.edge("a", "end", when=lambda s: s["n"] > 0)
    plan.edge("c", "d").edge("d", "e").edge("e", "end")
    _, events = await ran(plan)
    assert waves(events) == [["a", "c"], ["b", "d"], ["e", "end"]]


async def test_a_callable_join_is_asked_with_the_live_edges_done_and_those_that_may_still_be() -> None:
    asked = []

    def two(done: int, live: int) -> bool:
        asked.append((done, live))
        return done >= 2

    plan = plan_of(
        step("a"), step("b"), step("c"), step("d"), step("end", join=two), a="end", b="c", c="d", d="end"
    )
    plan.edge("c", "end")
    plan.edge("b", "end", when=never)
    _, events = await ran(plan)
    assert waves(events) == [["a", "b"], ["c"], ["d", "end"]]
    assert asked[0] == (1, 3)
    assert asked[-1] == (2, 3)


async def test_a_callable_join_is_asked_even_of_a_single_predecessor() -> None:
    run, _ = await ran(plan_of(step("a"), step("end", join=lambda done, live: done > 1), a="end"))
    assert run.state is RunState.FAILED
    assert "'end' never ran (its join is short: 1 of 1 live edges are done)" in run.final_output


async def test_a_join_that_raises_fails_the_run_and_names_its_node() -> None:
    run, events = await ran(plan_of(step("a"), step("end", join=lambda done, live: 1 / 0), a="end"))
    assert "the join of node 'end' raised ZeroDivisionError" in run.final_output
    assert events[-1].data["code"] == "predicate"


async def test_a_branch_not_taken_is_skipped_whole_and_the_join_behind_it_still_runs() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), step("d"), step("end"), b="c", c="end", d="end")
    plan.edge("a", "b", when=never).edge("a", "d")
    run, events = await ran(plan)
    assert waves(events) == [["a"], ["d"], ["end"]]
    assert [run.status_of(key) for key in "bc"] == [SKIPPED, SKIPPED]
    skips = {
        event.data["node"]: Reason.from_json(event.data["why"])
        for event in events
        if event.kind == "node_skipped"
    }
    assert skips == {"b": Reason("dead_edges", ("a",)), "c": Reason("skipped_predecessors", ("b",))}


async def test_a_join_behind_nothing_but_closed_branches_is_skipped_too() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), step("end"), b="end", c="end")
    plan.edge("a", "b", when=never).edge("a", "c", when=never)
    run, _ = await ran(plan)
    assert run.state is RunState.COMPLETED
    assert [run.status_of(key) for key in ("b", "c", "end")] == [SKIPPED] * 3
    assert run.final_output == {}


async def test_a_condition_is_asked_on_the_state_behind_the_barrier() -> None:
    plan = plan_of(does("a", lambda x: {"n": 1}), does("b", lambda x: {"n": 1}), step("end"), b="end")
    plan.edge("a", "end", when=lambda s: s["n"] == 2)
    run, _ = await ran(plan)
    assert run.status_of("end") is NodeStatus.COMPLETED


async def test_a_condition_that_comes_true_later_opens_its_edge_then() -> None:
    plan = plan_of(step("a"), does("b", lambda x: {"n": 1}), step("end"), a="b")
    plan.edge("a", "end", when=lambda s: s["n"] > 0)
    _, events = await ran(plan)
    assert waves(events) == [["a"], ["b"], ["end"]]


async def test_branches_are_skipped_only_once_nothing_else_can_run() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), step("never"), a="b", b="c").edge(
        "a", "never", when=never
    )
    _, events = await ran(plan)
    kinds = [(event.kind, event.data.get("node")) for event in events]
    assert kinds.index(("node_skipped", "never")) > kinds.index(("node_completed", "c"))


async def test_a_condition_reads_the_state_and_cannot_change_it() -> None:
    def sly(state: dict[str, JsonValue]) -> bool:
        state["n"] = 7
        return True

    run, _ = await ran(plan_of(step("a"), step("b")).edge("a", "b", when=sly))
    assert "the condition of edge 'a' -> 'b' raised TypeError" in run.final_output
    assert run.shared["n"] == 0


async def test_waves_are_the_lock_step_of_those_that_are_ready_together() -> None:
    async def slow(x: JsonValue) -> Outcome:
        await turns()
        return Outcome.ok("slow")

    plan = plan_of(
        does("slow", slow), step("quick"), step("after_slow"), step("after_quick"), slow="after_slow"
    )
    _, events = await ran(plan.edge("quick", "after_quick"))
    assert waves(events) == [["slow", "quick"], ["after_slow", "after_quick"]]


@pytest.mark.parametrize("concurrency", [1, 2, 8])
async def test_nodes_beyond_the_cap_are_queued_and_run_in_the_same_wave(concurrency: int) -> None:
    running, most = [0], [0]

    async def work(x: JsonValue) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await turns(3)
        running[0] -= 1

    plan = plan_of(*[does(f"n{index}", work) for index in range(6)])
    run, events = await ran(plan, concurrency=concurrency)
    assert most[0] == min(concurrency, 6)
    assert run.wave.number == 1
    assert [event.kind for event in events].count("node_queued") == max(0, 6 - concurrency)
