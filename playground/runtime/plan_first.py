"""Plan first: make a list of steps, do them side by side, put the results together.

The plan that a model makes is data, a list in the state.  The drawing never
changes: `Send` starts as many instances of one template as there are steps.

                    ┌──► step#1 ──┐
    plan ── Send ───┼──► step#2 ──┼──► review ──► synth
      ▲             └──► step#3 ──┘      │
      └───────────────── Goto ───────────┘  not good enough: plan again

Planning can fail: a planner that raises, an empty list, a list that cannot be
read, a result that the review refuses.  Each of these uses up one of a fixed
number of plans, and then the run fails and says what was wrong with the last.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from playground.kernel.body import FnBody, NodeBody, NodeContext, Outcome, SubPlanBody
from playground.kernel.channels import Reset, append, last, merge
from playground.kernel.command import Goto, Send
from playground.kernel.graph import Node, Plan
from playground.kernel.values import JsonObject, JsonValue
from playground.runtime.parts import Body, State, body_of

MAX_STEPS = 50
"""Steps that one plan may have unless the caller says otherwise."""

MakeSteps: TypeAlias = Callable[[str, NodeContext], object]
"""Makes the steps for a task, sync or async: a list of texts, or of dicts with "id" and "instruction"."""

Review: TypeAlias = Callable[[list[JsonValue], NodeContext], "str | Awaitable[str | None] | None"]
"""Looks at the results of all steps: None if they will do, else what is wrong with them."""


class PlanFailed(RuntimeError):
    """All plans that were allowed have failed."""


def build_plan_execute(
    *,
    make_steps: MakeSteps | None = None,
    worker: Body,
    synth: Body | None = None,
    review: Review | None = None,
    max_replans: int = 2,
    max_steps: int = MAX_STEPS,
) -> Plan:
    """Plan, then do.

    Its state: `steps` (the present plan), `results` (by step id), `problems` (one line for each plan
    that failed) and `accepted`.

    Args:
        make_steps: `f(task, ctx)`; what was wrong before is in `ctx.shared["problems"]`.
            Without it the run's model is asked for a numbered list.
        worker: does one step, which is its input: `{"id", "instruction", …}`; an agent or a plan
            gets the instruction as its task.
        synth: makes the output of the list of results, in the order of the steps; by default that list.
        review: judges the results; what it says starts another plan.
        max_replans: how many further plans there may be.
        max_steps: how many steps one plan may have.
    """

    async def plan_steps(_input: JsonValue, ctx: NodeContext) -> Outcome:
        problems = cast("list[str]", ctx.shared["problems"])
        if len(problems) > max_replans:
            raise PlanFailed(
                f"plan failed: {len(problems)} plans came to nothing, the last because {problems[-1]}; "
                "give a clearer task, or allow more with max_replans"
            )
        try:
            made = (make_steps or ask_for_steps)(ctx.run.task, ctx)
            steps = checked_steps(await made if inspect.isawaitable(made) else made, max_steps)
        except Exception as error:  # noqa: BLE001 - whatever a planner raises is a plan that failed
            return Outcome.goto("plan", problems=[f"{type(error).__name__}: {error}"])
        sends = [Send("step", step, _instance(step, len(problems))) for step in steps]
        return Outcome(steps, {"steps": steps, "results": Reset({})}, [*sends, Goto.rejoin("review")])

    async def look(_input: JsonValue, ctx: NodeContext) -> Outcome:
        done = cast("JsonObject", ctx.shared["results"])
        results = [
            done.get(cast("str", step["id"])) for step in cast("list[JsonObject]", ctx.shared["steps"])
        ]
        verdict = review(results, ctx) if review else None
        problem = await verdict if inspect.isawaitable(verdict) else verdict
        if problem:
            return Outcome.goto("plan", problems=[problem])
        return Outcome.ok(results, accepted=True)

    plan = Plan(
        channels={"steps": last([]), "results": merge(), "problems": append(), "accepted": last(False)},
        entry=("plan",),
    )
    plan.add(
        Node("plan", FnBody(plan_steps)),
        Node("step", _Step(body_of("step", worker)), template=True),
        Node("review", FnBody(look)),
        Node("synth", body_of("synth", synth or (lambda results: Outcome.ok(results))), terminal=True),
    )
    return plan.edge("plan", "step").edge("step", "review").edge("review", "synth", when=_accepted)


def _accepted(state: State) -> bool:
    return state["accepted"] is True


@dataclass(frozen=True, slots=True)
class _Step:
    """A worker that also files its result under the step's id; an agent is told the instruction alone."""

    body: NodeBody

    @property
    def kind(self) -> str:
        """What it is in a drawing."""
        return str(getattr(self.body, "kind", "function"))

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        step = cast("JsonObject", input)
        given = step["instruction"] if isinstance(self.body, SubPlanBody) else step
        outcome = await self.body.run(given, ctx)
        if outcome.suspend is not None:
            return outcome
        filed = {cast("str", step["id"]): outcome.value}
        return replace(outcome, state_delta={**outcome.state_delta, "results": filed})


def _instance(step: JsonObject, plans_before: int) -> str:
    """The key of a step's instance: each plan has instances of its own."""
    return str(step["id"]) if not plans_before else f"{step['id']}@{plans_before + 1}"


async def ask_for_steps(task: str, ctx: NodeContext) -> list[JsonObject]:
    """Ask the run's model for a plan.

    Raises:
        ValueError: its reply has no numbered lines.
    """
    problems = cast("list[str]", ctx.shared["problems"])
    before = f"\n\nAn earlier plan did not work: {problems[-1]}" if problems else ""
    return parse_numbered_list(
        await ctx.llm_complete(
            f"{task}{before}",
            system="Split the task into a few independent steps: a numbered list, nothing else.",
        )
    )


def parse_numbered_list(text: str) -> list[JsonObject]:
    """The steps in a numbered or bulleted list; lines that are neither are passed over.

    Raises:
        ValueError: there is no such line.
    """
    found = re.findall(r"^\s*(?:\d+\s*[.)、．]|[-*•])\s*(\S.*?)\s*$", text, re.MULTILINE)
    if not found:
        raise ValueError(f"no numbered list in {text[:80]!r}: write one step on each line, as '1. …'")
    return [{"id": f"s{number}", "instruction": line} for number, line in enumerate(found, 1)]


def checked_steps(made: object, max_steps: int = MAX_STEPS) -> list[JsonObject]:
    """The steps of a plan, once it is sure that they are some.

    Raises:
        ValueError: what was made is no list of steps, or empty, or too long, or ids recur.
    """
    if not isinstance(made, Sequence) or isinstance(made, str):
        raise ValueError(f"the planner gave a {type(made).__name__}: give a list of steps")
    if not made:
        raise ValueError("the plan is empty: give at least one step")
    if len(made) > max_steps:
        raise ValueError(f"the plan has {len(made)} steps: make it at most {max_steps}")
    steps = [_step(item, number) for number, item in enumerate(made, 1)]
    ids = [step["id"] for step in steps]
    if len(set(map(str, ids))) < len(ids):
        raise ValueError(f"two steps share an id in {ids}: give each its own")
    return steps


def _step(item: object, number: int) -> JsonObject:
    if isinstance(item, str) and item.strip():
        return {"id": f"s{number}", "instruction": item}
    if isinstance(item, dict) and isinstance(item.get("instruction"), str):
        return {**item, "id": str(item.get("id") or f"s{number}")}
    raise ValueError(f'step {number} is {item!r}: make it a text, or a dict with "id" and "instruction"')
