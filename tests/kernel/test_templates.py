"""Templates: a fan-out whose width is known only while running, and the fan-in behind it."""

from __future__ import annotations

import pytest

from playground.kernel import (
    FnBody,
    Goto,
    JsonValue,
    Node,
    NodeContext,
    NodeStatus,
    Outcome,
    Plan,
    RunState,
    Scheduler,
    Send,
    SubPlanBody,
)
from tests.kernel.logs import turns
from tests.kernel.steps import asks, does, echo, plan_of, ran, waves


def fan(*sends: Send, work: object = None, **options: object) -> Plan:
    """`fan` sends, `work` is the template, `gather` joins."""
    plan = plan_of(
        does("fan", lambda x: Outcome.fan_out(*sends)),
        does("work", work or (lambda x: x), template=True, **options),
        echo("gather", terminal=True),
        entry="fan",
        work="gather",
    )
    return plan


async def test_each_send_is_an_instance_with_its_payload_as_input() -> None:
    run, events = await ran(fan(*[Send("work", n) for n in (3, 1, 2)]))
    assert run.instances == {"work": ["work#1", "work#2", "work#3"]}
    assert waves(events) == [["fan"], ["work#1", "work#2", "work#3"], ["gather"]]
    assert run.final_output == [3, 1, 2]


async def test_a_key_names_the_instance_and_the_same_key_is_the_same_instance() -> None:
    run, _ = await ran(fan(Send("work", 1, "a"), Send("work", 2, "b"), Send("work", 3, "a")))
    assert run.instances == {"work": ["work#a", "work#b"]}
    assert run.final_output == [1, 2]


async def test_running_numbers_keep_clear_of_names() -> None:
    run, _ = await ran(fan(Send("work", "x", "1"), Send("work", "y"), Send("work", "z")))
    assert len(run.instances["work"]) == len(set(run.instances["work"])) == 3
    assert run.final_output == ["x", "y", "z"]


async def test_a_node_behind_a_template_waits_for_all_its_instances_and_gets_a_list() -> None:
    async def work(n: int) -> int:
        await turns(n)
        return n * 10

    run, _ = await ran(fan(*[Send("work", n) for n in (5, 0, 3)], work=work))
    assert run.shared["trace"] == [["gather", [50, 0, 30]]]


async def test_a_template_beside_other_predecessors_is_one_entry_of_the_input() -> None:
    plan = fan(Send("work", 1), Send("work", 2)).edge("fan", "gather")
    run, _ = await ran(plan)
    assert run.final_output == {"work": [1, 2], "fan": None}


async def test_a_fan_out_that_sends_nothing_lets_the_fan_in_run_on_an_empty_list() -> None:
    run, _ = await ran(fan())
    assert (run.state, run.final_output) == (RunState.COMPLETED, [])
    assert run.status_of("gather") is NodeStatus.COMPLETED


async def test_instances_may_be_sent_by_several_nodes_and_by_instances() -> None:
    def work(n: int) -> object:
        return [Outcome.ok(n), Send("work", n - 1)] if n else Outcome.ok(0)

    run, events = await ran(fan(Send("work", 2), work=work))
    assert waves(events)[1:-1] == [["work#1"], ["work#2"], ["work#3"]]
    assert run.final_output == [2, 1, 0]


async def test_a_second_fan_out_makes_new_instances_and_the_fan_in_runs_again() -> None:
    def rounds(x: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome(None, {"n": 1}, [Send("work", ctx.attempt), Goto.rejoin("gather")])

    def gather(x: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome.ok(x) if ctx.shared["n"] > 1 else Outcome(x, {}, Goto("rounds"))

    plan = plan_of(does("rounds", rounds), does("work", lambda x: x, template=True), does("gather", gather))
    plan.edge("work", "gather").entry = ("rounds",)
    run, _ = await ran(plan)
    assert run.state_of("gather").output == [1, 2]
    assert run.instances["work"] == ["work#1", "work#2"]


async def test_each_instance_waits_for_its_own_answer() -> None:
    plan = fan(Send("work", 1, "a"), Send("work", 2, "b"), work=asks("work").body.fn)
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    assert list(run.interrupts) == ["work#a", "work#b"]
    run = await scheduler.resume(plan, run.run_id, {"work#b": "B"})
    assert run.status_of("gather") is NodeStatus.PENDING
    run = await scheduler.resume(plan, run.run_id, {"work#a": "A"})
    assert run.final_output == ["A", "B"]


async def test_an_instance_can_be_a_whole_plan() -> None:
    inner = Plan().add(Node("double", FnBody(lambda x: 2 * int(x))))
    plan = fan(*[Send("work", n) for n in range(3)])
    plan.nodes["work"] = Node("work", SubPlanBody(inner), template=True)
    run, _ = await ran(plan)
    assert run.final_output == [0, 2, 4]
    assert run.children == ["r~1", "r~2", "r~3"]


async def test_a_failing_instance_is_named_by_its_key() -> None:
    run, events = await ran(fan(Send("work", 0, "zero"), work=lambda n: 1 / n))
    assert run.final_output.startswith("node 'work#zero' failed: ZeroDivisionError")
    assert events[-1].data["node"] == "work#zero"


async def test_a_template_that_is_terminal_gives_the_list_of_its_instances() -> None:
    sends = [Send("work", n) for n in (1, 2)]
    run, _ = await ran(plan_of(does("fan", lambda x: sends), echo("work", template=True, terminal=True)))
    assert run.final_output == [1, 2]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Send("fan", 1), "node 'fan': Send target 'fan' is not a template; templates: work"),
        (Send("nope", 1), "node 'fan': Send target 'nope' is not a template; templates: work"),
        (Goto("work"), "node 'fan': Goto target 'work' is a template: use Send"),
        (Send("work", 1, 5), "node 'fan': Send key 5 is no text: use str(5)"),
        (Send("work", 1, "\ud800"), "key of a Send from node fan holds text with the lone surrogate"),
    ],
)
async def test_only_templates_are_sent_to_by_names_that_are_text(command: object, message: str) -> None:
    """Case D52."""
    plan = plan_of(does("fan", lambda x: command), echo("work", template=True))
    run, _ = await ran(plan)
    assert message in run.final_output
    assert run.instances == {}
