"""Plan first: the plan is a list in the state, and the drawing never changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from playground import Agent, JsonValue, NodeContext, Run, RunState, Scheduler, ScriptedLlm, wait_human
from playground.runtime.plan_first import build_plan_execute, checked_steps, parse_numbered_list


def shout(step: dict[str, str]) -> str:
    return step["instruction"].upper()


async def run_plan(make_steps: Callable[..., object] | None, **options: object) -> Run:
    plan = build_plan_execute(make_steps=make_steps, **{"worker": shout, **options})  # type: ignore[arg-type]
    return await Scheduler().run(plan, task="a task")


async def test_each_step_is_an_instance_and_the_output_has_the_results_in_the_order_of_the_steps() -> None:
    steps = [{"id": "one", "instruction": "a"}, {"id": "two", "instruction": "b"}]
    run = await run_plan(lambda task, ctx: steps)
    assert run.final_output == ["A", "B"]
    assert run.instances == {"step": ["step#one", "step#two"]}
    assert run.shared["steps"] == steps
    assert run.shared["results"] == {"one": "A", "two": "B"}
    assert run.metrics["waves"] == 4


async def test_steps_can_be_plain_texts_and_the_planner_async() -> None:
    async def make(task: str, ctx: NodeContext) -> list[str]:
        return [task, "b"]

    assert (await run_plan(make)).final_output == ["A TASK", "B"]


async def test_the_synthesis_is_given_the_results() -> None:
    run = await run_plan(lambda task, ctx: ["a", "b"], synth=lambda results: " & ".join(results))
    assert run.final_output == "A & B"


async def test_a_worker_can_be_an_agent_which_gets_the_instruction_as_its_task() -> None:
    worker = Agent("worker", model=ScriptedLlm([lambda messages: str(messages[-1]["content"])]))
    run = await run_plan(lambda task, ctx: ["a"], worker=worker)
    assert run.final_output == ["a"]


async def test_a_step_can_wait_for_a_person() -> None:
    def careful(step: dict[str, str], ctx: NodeContext) -> object:
        return f"{step['id']}: {ctx.resume_value}" if ctx.resumed else wait_human("Do it?")

    plan, scheduler = build_plan_execute(make_steps=lambda t, c: ["a"], worker=careful), Scheduler()
    run = await scheduler.run(plan)
    assert list(run.interrupts) == ["step#s1"]
    assert (await scheduler.resume(plan, run.run_id, "yes")).final_output == ["s1: yes"]


# Plans that fail


def broken(task: str, ctx: NodeContext) -> list[str]:
    raise OSError("no ideas")


@pytest.mark.parametrize(
    ("make_steps", "said"),
    [
        (broken, "OSError: no ideas"),
        (lambda task, ctx: [], "the plan is empty"),
        (lambda task, ctx: None, "the planner gave a NoneType"),
        (lambda task, ctx: "1. a text", "the planner gave a str"),
        (lambda task, ctx: [3], "step 1 is 3"),
        (lambda task, ctx: [{"id": "a"}], "step 1 is {'id': 'a'}"),
        (lambda task, ctx: [{"id": 1, "instruction": "a"}, {"id": "1", "instruction": "b"}], "share an id"),
        (lambda task, ctx: ["x"] * 51, "51 steps: make it at most 50"),
    ],
)
async def test_a_planner_without_a_usable_plan_is_asked_again_a_bounded_number_of_times(
    make_steps: Callable[..., object], said: str
) -> None:
    """Case D33."""
    asked = 0

    def counted(task: str, ctx: NodeContext) -> object:
        nonlocal asked
        asked += 1
        return make_steps(task, ctx)

    run = await run_plan(counted, max_replans=2)
    assert asked == 3
    assert run.state is RunState.FAILED
    assert "plan failed: 3 plans came to nothing" in str(run.final_output)
    assert said in str(run.final_output)


async def test_a_planner_sees_what_was_wrong_with_its_earlier_plans() -> None:
    def learn(task: str, ctx: NodeContext) -> list[str]:
        return [f"not {problem}" for problem in ctx.shared["problems"]]  # type: ignore[union-attr]

    run = await run_plan(learn)
    assert run.final_output == ["NOT VALUEERROR: THE PLAN IS EMPTY: GIVE AT LEAST ONE STEP"]


async def test_a_review_that_refuses_the_results_starts_another_plan_with_instances_of_its_own() -> None:
    def make(task: str, ctx: NodeContext) -> list[str]:
        return ["good"] if ctx.shared["problems"] else ["bad", "bad"]

    def review(results: list[JsonValue], ctx: NodeContext) -> str | None:
        return "too bad" if "BAD" in results else None

    run = await run_plan(make, review=review)
    assert run.final_output == ["GOOD"]
    assert run.instances == {"step": ["step#s1", "step#s2", "step#s1@2"]}
    assert run.shared["problems"] == ["too bad"]
    assert run.shared["results"] == {"s1": "GOOD"}


async def test_a_review_that_is_never_content_uses_up_the_plans() -> None:
    run = await run_plan(lambda task, ctx: ["a"], review=lambda results, ctx: "no", max_replans=1)
    assert run.state is RunState.FAILED
    assert "2 plans came to nothing, the last because no" in str(run.final_output)


# The model as planner


async def test_without_a_planner_the_model_is_asked_for_a_numbered_list() -> None:
    llm = ScriptedLlm(["Here is a plan:\n1. look\n2) buy\n"])
    plan = build_plan_execute(worker=shout)
    run = await Scheduler(llm=llm).run(plan, task="tea")
    assert run.final_output == ["LOOK", "BUY"]


async def test_a_model_that_gives_no_list_is_asked_again_and_told_why() -> None:
    llm = ScriptedLlm(["I would rather not.", lambda messages: f"1. {messages[0]['content'][-40:]}"])
    run = await Scheduler(llm=llm).run(build_plan_execute(worker=shout), task="tea")
    assert "WRITE ONE STEP ON EACH LINE" in str(run.final_output)


@pytest.mark.parametrize(
    "text", ["1. a\n2. b", "Plan:\n- a\n- b\nDone", "1、a\n2、b", "  1)  a  \n\n  2)  b"]
)
def test_numbered_and_bulleted_lists_are_understood(text: str) -> None:
    assert [step["instruction"] for step in parse_numbered_list(text)] == ["a", "b"]


def test_steps_get_ids_where_they_have_none_and_keep_what_else_they_have() -> None:
    assert checked_steps([{"instruction": "a", "cost": 2}]) == [{"id": "s1", "instruction": "a", "cost": 2}]
