"""Team: agents that hand a conversation to one another.

A call returns, a transfer does not.  In a team each agent is a node of one
drawing, and handing over is a `Goto` from node to node that nobody answers
with another one:

    turn ──► the agent that holds the conversation ── Goto ──► another one ──► final

Who holds it is state, the channel `active`.  So the user's next turn goes to
the agent that took over, in the next run, in another process, after a restart.
After a call it does not: the caller has never let go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from playground.kernel.body import FnBody, NodeContext, Outcome
from playground.kernel.bus import Bus
from playground.kernel.channels import append, last
from playground.kernel.eventlog import CheckpointStore, EventLog, InMemoryEventLog, InMemoryStore
from playground.kernel.graph import Node, Plan
from playground.kernel.ports import ChildSpec, Message
from playground.kernel.run import Run
from playground.kernel.scheduler import Scheduler
from playground.kernel.values import JsonValue
from playground.runtime.agent import Agent
from playground.runtime.parts import State
from playground.runtime.react import conversation, next_turn
from playground.runtime.result import AgentResult


class Team:
    """Agents of which one at a time holds the conversation.

    Args:
        agents: the members; the first one holds a new conversation.
        handovers: to whom each may hand over, by names; by default each to every other.
        bus: where events are told; its own by default.
        store: where checkpoints are kept; in memory by default.
        eventlog: where the truth is kept; in memory by default.
        max_waves: how many waves a run may take; one for each member that holds the conversation in it.
        name: who it is, as a child run or a teammate.
        description: what it can do, for whoever delegates to it.

    Raises:
        ValueError: there is no agent, two have one name, or a handover names nobody.
    """

    def __init__(
        self,
        *agents: Agent,
        handovers: Mapping[str, Collection[str]] | None = None,
        bus: Bus | None = None,
        store: CheckpointStore | None = None,
        eventlog: EventLog | None = None,
        max_waves: int = 64,
        name: str = "",
        description: str = "",
    ) -> None:
        self.bus = bus if bus is not None else Bus()
        self.store: CheckpointStore = store if store is not None else InMemoryStore()
        self.eventlog: EventLog = eventlog if eventlog is not None else InMemoryEventLog()
        self.max_waves = max_waves
        self.name = name
        self.description = description
        self.plan = build_team(*agents, handovers=handovers)

    def child_spec(self) -> ChildSpec:
        """What it takes to run this team, by itself or inside another run."""
        return ChildSpec(
            self.plan,
            name=self.name,
            max_waves=self.max_waves,
            shared=conversation,
            next_turn=_same_holder,
        )

    async def run(self, task: str, *, after: AgentResult | None = None) -> AgentResult:
        """Take one turn of a conversation.

        Args:
            task: what the user says.
            after: the turn before; the agent that held the conversation at its end gets this one.
        """
        run = Run.start(self.plan, task=task)
        given = conversation(task) if after is None else _same_holder(task, after.state)
        run.shared.update(cast("dict[str, JsonValue]", given))
        await self._scheduler.drive(self.plan, run)
        return AgentResult.of(run)

    async def resume(self, run_id: str, value: object = None) -> AgentResult:
        """Answer what a run of this team waits for, and go on; see `Agent.resume`."""
        return AgentResult.of(await self._scheduler.resume(self.plan, run_id, value))

    @cached_property
    def _scheduler(self) -> Scheduler:
        return Scheduler(bus=self.bus, eventlog=self.eventlog, store=self.store, max_waves=self.max_waves)


def build_team(*agents: Agent, handovers: Mapping[str, Collection[str]] | None = None) -> Plan:
    """The plan of a team; see `Team`."""
    names = [agent.name for agent in agents]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a team of {names} will not do: it needs agents, each with a name of its own")
    unknown = {name for takers in (handovers or {}).values() for name in takers}.union(handovers or {}) - {
        *names
    }
    if unknown:
        raise ValueError(f"handovers name {sorted(unknown)}, who are not in the team of {names}")

    def turn(task: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome.ok(task, active=ctx.shared["active"] or names[0])

    plan = Plan(channels={"messages": append(), "active": last()}, entry=("turn",))
    plan.add(Node("turn", FnBody(turn)))
    for agent in agents:
        takers = [name for name in names if name != agent.name]
        if handovers is not None:
            takers = [name for name in takers if name in handovers.get(agent.name, ())]
        abilities = {other.name: other.description for other in agents if other.name in takers}
        plan.add(Node(agent.name, _Member(replace(agent.child_spec(), plan=agent.plan_with(abilities)))))
    plan.add(Node("final", FnBody(lambda answer: Outcome.ok(answer)), join="any", terminal=True))
    for name in names:
        holds = _Holds(name)
        plan.edge("turn", name, when=holds).edge(name, "final", when=holds)
    return plan


def _same_holder(task: str, before: Mapping[str, JsonValue]) -> dict[str, object]:
    return {**next_turn(task, before), "active": before["active"]}


@dataclass(frozen=True, slots=True)
class _Holds:
    """Whether a member holds the conversation."""

    label: str

    def __call__(self, state: State) -> bool:
        return state["active"] == self.label


@dataclass(frozen=True, slots=True)
class _Member:
    """An agent's share of a turn: it answers, or it hands over to another."""

    spec: ChildSpec
    kind = "agent"

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:  # noqa: ARG002 (it reads the conversation)
        messages = cast("list[Message]", ctx.shared["messages"])
        child = await ctx.spawn(self.spec, ctx.run.task, {"messages": messages})
        ended = cast("dict[str, JsonValue]", child["shared"])
        said = cast("list[Message]", ended["messages"])[len(messages) :]
        taker = ended.get("handed_to")
        if isinstance(taker, str):
            return Outcome.goto(taker, child["output"], messages=said, active=taker)
        return Outcome.ok(child["output"], messages=said)
