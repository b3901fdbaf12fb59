"""Several agents: plans inside plans, and no new engine.

Whoever does a piece of work, a function, a plan, an agent or a workflow, is a
body of a node.  What differs is the drawing around it:

- **pipeline**: one after the other, each gets what the one before made.
- **call**: an agent is a tool of another one.  It runs as a child, hands back
  its output, and control returns.  A *supervisor* is an agent whose tools are agents.
- **transfer**: an agent hands the conversation over and control does not
  return; a `Goto` without a way back.  See `playground.runtime.team`.
- **blackboard**: experts write on one board side by side, a moderator waits
  for all of them and ends it or asks for another round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from playground.kernel.body import FnBody, NodeBody, NodeContext, Outcome, SubPlanBody, commands_of, task_text
from playground.kernel.channels import append, last
from playground.kernel.command import Goto
from playground.kernel.graph import Node, Plan
from playground.kernel.ports import ChildSpec, Spawnable
from playground.kernel.values import JsonValue
from playground.runtime.context import ContextStrategy
from playground.runtime.parts import Body, Child, State, body_of
from playground.runtime.react import MAX_TURNS, Recall, build_react_plan
from playground.runtime.tools import ToolRegistry


def build_pipeline(stages: Sequence[tuple[str, Body]]) -> Plan:
    """Stages one after the other; the output of the last is the run's.

    Raises:
        ValueError: there is no stage, or two have one name.
    """
    if not stages:
        raise ValueError("a pipeline without stages does nothing: give at least one (name, body)")
    plan = Plan(entry=(stages[0][0],))
    plan.add(*(Node(name, body_of(name, body)) for name, body in stages))
    for (before, _), (after, _) in pairwise(stages):
        plan.edge(before, after)
    return plan


def register_agent_tool(registry: ToolRegistry, name: str, child: Child, description: str) -> None:
    """Make an agent callable: a tool with one parameter, `task`, whose call is a child run.

    Raises:
        ValueError: there is a tool of that name.
    """

    async def delegate(task: str, ctx: NodeContext | None) -> JsonValue:
        """Hand over a piece of work and get the result back.

        Args:
            task: what to do, with all that is needed to do it.
        """
        if ctx is None:
            raise RuntimeError(f"{name!r} is an agent and runs as a child: call it from inside a run")
        return (await ctx.spawn(child, task))["output"]

    registry.function(delegate, name=name, description=description, timeout=None)


def build_supervisor(
    workers: Mapping[str, tuple[Child, str]],
    *,
    registry: ToolRegistry,
    system: str = "",
    context: ContextStrategy | None = None,
    memory: Recall | None = None,
    max_turns: int = MAX_TURNS,
) -> Plan:
    """An agent whose tools are agents: a ReAct plan over `workers`.

    Args:
        workers: by tool name, who works and what the supervisor is told of them.
        registry: gets the workers as tools; a run of the plan needs it in its scheduler.
        system, context, memory, max_turns: as for `build_react_plan`.

    Raises:
        ValueError: the registry has a tool of a worker's name already.
    """
    for name, (child, description) in workers.items():
        register_agent_tool(registry, name, child, description)
    return build_react_plan(registry, system=system, context=context, memory=memory, max_turns=max_turns)


def build_blackboard(
    experts: Sequence[tuple[str, Body]],
    moderator: Body,
    *,
    final: Body | None = None,
    board_key: str = "board",
    max_rounds: int = 8,
) -> Plan:
    """Experts around one board, in rounds, until a moderator has a verdict:

        fanout ──► expert … expert ──► moderator ──► final
           ▲                               │
           └────────── Goto ───────────────┘

    Its state: the board (a list that grows), `round` (from 0) and `verdict`.

    Args:
        experts: name and body of each.  A function writes to the board itself, by a state delta.
            An agent or plan is given the task and the board as text, and what it says is
            written there as "name: text".
        moderator: judges when all experts of a round are done.  It writes `verdict` to end, or
            leaves it for another round; it may also say so by `Goto`.
        final: makes the output; by default `{"verdict", "board"}`.
        board_key: name of the board's channel.
        max_rounds: after so many rounds without a verdict it ends with the verdict None.
    """
    names = [name for name, _ in experts]

    def fanout(_input: JsonValue, ctx: NodeContext) -> Outcome:
        if cast("int", ctx.shared["round"]) >= max_rounds:
            return Outcome.goto("final")
        return Outcome(control=[Goto.rejoin(name) for name in (*names, "moderator")])

    def told(_input: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome.ok({"verdict": ctx.shared["verdict"], board_key: ctx.shared[board_key]})

    plan = Plan(channels={board_key: append(), "round": last(0), "verdict": last()}, entry=("fanout",))
    plan.add(Node("fanout", FnBody(fanout)))
    for name, body in experts:
        plan.add(Node(name, _expert(name, body, board_key)))
        plan.edge("fanout", name).edge(name, "moderator")
    plan.add(Node("moderator", _Moderator(body_of("moderator", moderator))))
    plan.add(Node("final", body_of("final", final or told), terminal=True))
    plan.edge("moderator", "final", when=_has_verdict)
    return plan


def _has_verdict(state: State) -> bool:
    return state["verdict"] is not None


@dataclass(frozen=True, slots=True)
class _Moderator:
    """A moderator's judgement, and the next round where there is no verdict."""

    body: NodeBody

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        outcome = await self.body.run(input, ctx)
        if outcome.suspend is not None or commands_of(outcome.control):
            return outcome
        if outcome.state_delta.get("verdict") is not None:
            return replace(outcome, control=Goto("final"))
        following = {"round": cast("int", ctx.shared["round"]) + 1, **outcome.state_delta}
        return replace(outcome, state_delta=following, control=Goto("fanout"))


def _expert(name: str, body: Body, board_key: str) -> NodeBody:
    if isinstance(body, Plan | Spawnable | ChildSpec):
        return _Speaker(name, body, board_key)
    return body_of(name, body)


@dataclass(frozen=True, slots=True)
class _Speaker:
    """An agent at the board: it reads all of it and writes one line."""

    name: str
    child: Child
    board_key: str

    @property
    def kind(self) -> str:
        """What it is in a drawing."""
        return SubPlanBody(self.child).kind

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:  # noqa: ARG002 (it reads the board)
        board = "\n".join(map(task_text, cast("list[JsonValue]", ctx.shared[self.board_key])))
        task = f"{ctx.run.task}\n\nOn the board:\n{board}" if board else ctx.run.task
        said = (await ctx.spawn(self.child, task))["output"]
        return Outcome(said, {self.board_key: [f"{self.name}: {task_text(said)}"]})
