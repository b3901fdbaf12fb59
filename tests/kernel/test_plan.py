"""Plans: drawn by chained calls, checked before they run, and told as JSON."""

from __future__ import annotations

import asyncio
import json

import pytest

from playground.kernel import (
    Edge,
    FnBody,
    LLMBody,
    Node,
    NotJson,
    Plan,
    RetryPolicy,
    Run,
    RunState,
    Scheduler,
    SubPlanBody,
    ToolBody,
    add,
    append,
    last,
)
from tests.kernel.steps import plan_of, ran, step


def test_calls_can_be_chained_and_order_is_kept() -> None:
    plan = Plan().add(step("b"), step("a")).edge("b", "a").validate()
    assert list(plan.nodes) == ["b", "a"]
    assert plan.edges == [Edge("b", "a")]
    assert plan.incoming("a") == [Edge("b", "a")]
    assert plan.get("a").id == plan.get("a#7").id == "a"


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        (lambda p: p.edge("a", "typo"), "edge 'a' -> 'typo': its target does not exist; known nodes: a, t"),
        (lambda p: p.edge("typo", "a"), "edge 'typo' -> 'a': its source does not exist; known nodes: a, t"),
        (lambda p: setattr(p, "entry", ["typo"]), "entry node 'typo' does not exist; known nodes: a, t"),
        (lambda p: setattr(p, "entry", ["t"]), "entry node 't' is a template, which only Send can start"),
        (
            lambda p: p.add(step("j", join="some")),
            "node 'j' has an invalid join 'some': use 'all'",
        ),
    ],
)
async def test_a_mistake_in_the_drawing_is_named_before_anything_runs(drawn: object, message: str) -> None:
    plan = plan_of(step("a"), step("t", template=True))
    drawn(plan)
    for check in (plan.validate, lambda: Run.start(plan)):
        with pytest.raises(ValueError, match=message):
            check()
    scheduler = Scheduler()
    with pytest.raises(ValueError, match=message):
        await scheduler.run(plan, run_id="r")
    assert await scheduler.eventlog.events("r") == []


@pytest.mark.parametrize("key", ["", "a#b", 5, "__end__"])
def test_some_values_are_no_node_ids(key: object) -> None:
    with pytest.raises(ValueError, match="will not do: use any other text, without '#'"):
        Plan().add(step(key))


def test_an_id_that_no_log_can_keep_is_refused() -> None:
    with pytest.raises(NotJson, match=r"node id 'a.*' holds text with the lone surrogate"):
        Plan().add(step("a\ud800"))


def test_an_id_is_given_once() -> None:
    with pytest.raises(ValueError, match="duplicate node id 'a': give each node a name of its own"):
        Plan().add(step("a"), step("a"))


async def test_any_other_text_is_a_node_id() -> None:
    keys = ["a/b", "a@1", "%25", "节点", "a b", "ctx", "@breakpoint", "a~1"]
    run, _ = await ran(plan_of(*map(step, keys)))
    assert run.shared["trace"] == keys


async def test_a_plan_without_nodes_completes_with_nothing() -> None:
    run, events = await ran(Plan())
    assert (run.state, run.final_output) == (RunState.COMPLETED, {})
    assert [event.kind for event in events] == ["run_started", "run_completed"]


def test_without_entries_those_that_nothing_leads_to_start() -> None:
    plan = plan_of(step("a"), step("b"), step("t", template=True), a="b")
    assert plan.shape.entries == {"a"}
    plan.entry = ("b",)
    assert plan.shape.entries == {"b"}


def test_terminal_nodes_are_those_marked_else_those_that_lead_nowhere() -> None:
    assert plan_of(step("a"), step("b"), step("c"), a="b").terminal_ids() == ["b", "c"]
    assert plan_of(step("a", terminal=True), step("b"), a="b").terminal_ids() == ["a"]


def test_drawing_on_changes_what_was_read_off_the_plan() -> None:
    plan = plan_of(step("a"))
    assert plan.terminal_ids() == ["a"]
    plan.add(step("b"))
    assert plan.terminal_ids() == ["a", "b"]
    plan.edge("a", "b")
    assert plan.terminal_ids() == ["b"]


async def test_many_runs_follow_one_plan_at_once() -> None:
    plan = plan_of(step("a"), step("b"), a="b")
    before = json.dumps(plan.topology())
    runs = await asyncio.gather(*[Scheduler().run(plan) for _ in range(10)])
    assert all(run.shared["trace"] == ["a", "b"] for run in runs)
    assert json.dumps(plan.topology()) == before


def test_the_topology_is_json_with_all_that_a_picture_needs() -> None:
    def cheap(state: object) -> bool:
        return True

    cheap.label = "cheap"
    inner = Plan().add(step("x"))
    plan = Plan({"n": add(), "xs": append(dtype=list), "k": last()}).add(
        step("a"),
        Node("m", LLMBody("?"), join="any"),
        Node("t", ToolBody("t"), template=True),
        Node("p", SubPlanBody(inner), join=lambda done, live: True, terminal=True),
    )
    plan.edge("a", "m", when=cheap).edge("m", "p", when=lambda s: True)
    told = json.loads(json.dumps(plan.topology()))
    assert [(n["key"], n["kind"], n["join"]) for n in told["nodes"]] == [
        ("a", "function", "all"),
        ("m", "model", "any"),
        ("t", "tool", "all"),
        ("p", "plan", "custom"),
    ]
    marks = [[n["key"] for n in told["nodes"] if n[mark]] for mark in ("entry", "template", "terminal")]
    assert marks == [["a"], ["t"], ["p"]]
    assert told["edges"] == [
        {"source": "a", "target": "m", "conditional": True, "label": "cheap"},
        {"source": "m", "target": "p", "conditional": True, "label": None},
    ]
    assert told["channels"][1] == {"name": "xs", "reducer": "append", "type": "list"}


def test_a_retry_policy_waits_longer_each_time_and_chooses_by_type_or_by_predicate() -> None:
    policy = RetryPolicy(4, 0.5, 3.0, retry_on=(ConnectionError, TimeoutError))
    assert [policy.delay_for(failed) for failed in range(3)] == [0.5, 1.5, 4.5]
    assert policy.matches(ConnectionResetError())
    assert not policy.matches(ValueError())
    assert RetryPolicy(retry_on=lambda error: "503" in str(error)).matches(ValueError("503"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"durability": "never"}, "durability must be 'sync' or 'exit', not 'never'"),
        ({"concurrency": 0}, "concurrency must be at least 1, not 0"),
    ],
)
def test_a_scheduler_refuses_options_that_mean_nothing(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scheduler(**options)


async def test_a_body_without_a_signature_gets_its_input_alone() -> None:
    run, _ = await ran(Plan().add(Node("a", FnBody(str.upper))))
    assert run.final_output == "THE TASK"
