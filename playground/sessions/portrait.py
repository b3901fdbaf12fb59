"""A portrait: where a run stood at one position of its log, with or without its scenario.

A run must stay readable when its scenario is gone or has changed.  The log
tells enough for that: which channels there were, how they were merged, who
started, and why.  `stored_plan` draws the plan that a log implies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from playground.kernel import (
    Channel,
    Event,
    FnBody,
    JsonObject,
    JsonValue,
    Node,
    Plan,
    Run,
    add,
    append,
    last,
    merge,
    replay,
)
from playground.kernel.values import dict_in

_CHANNELS: dict[str, Callable[[], Channel]] = {"append": append, "add": add, "merge": merge, "last": last}


def stored_plan(events: Iterable[Event], run_id: str) -> Plan:
    """The plan that a run's own events imply: channels with their reducers, and the nodes that are named."""
    plan = Plan(open_channels=True)
    nodes: dict[str, bool] = {}
    for event in events:
        if event.run_id != run_id:
            continue
        if event.kind == "state_delta":
            for name, reducer in dict_in(event.data, "reducers").items():
                plan.channels.setdefault(name, _CHANNELS.get(str(reducer), last)())
        key = event.data.get("node") or event.data.get("goto") or event.data.get("key")
        if isinstance(key, str) and key and key != "__end__":
            template, _, instance = key.partition("#")
            nodes[template] = nodes.get(template, False) or bool(instance)
    for node, is_template in nodes.items():
        plan.add(Node(node, FnBody(_no_body), template=is_template))
    return plan


def _no_body(_input: JsonValue) -> None:
    raise RuntimeError("this plan was drawn from a log: it can be looked at, not run")


@dataclass(frozen=True, slots=True)
class Portrait:
    """A run at one position, with what led there.

    Attributes:
        run: the run, folded up to `at`.
        at: the position.
        plan: the plan it was folded with; drawn from the log if the scenario's did not fit.
        foreign: whether that is so.
    """

    run: Run
    at: int
    plan: Plan
    foreign: bool = False

    def to_json(self) -> JsonObject:
        """The API's answer: state, shared values, nodes, interrupts, wave."""
        run = self.run
        keys = [key for key, node in self.plan.nodes.items() if not node.template or key in run.node_states]
        keys += [key for key in run.node_states if key not in keys]
        return {
            "at": self.at,
            "run_id": run.run_id,
            "state": str(run.state),
            "shared": dict(run.shared),
            "nodes": {key: self._node(key) for key in keys},
            "interrupts": [asked.to_json() for asked in run.interrupts.values()],
            "wave": run.wave.number,
        }

    def _node(self, key: str) -> JsonObject:
        state = self.run.state_of(key)
        try:
            why = self.plan.explain(self.run, key).to_json()
        except Exception as error:  # noqa: BLE001 - a changed plan's condition may raise anything
            why = {"code": "unknown", "error": str(error)}
        return {
            "status": str(state.status),
            "output": state.output,
            "attempts": state.attempts,
            "why": why,
        }


def portrait(plan: Plan | None, events: list[Event], run_id: str, at: int | None = None) -> Portrait:
    """The run `run_id` of a tree's events as of position `at`, or as of now.

    Args:
        plan: the scenario's plan, if there is one; where it does not fit the log, the log's own is used.
    """
    last_pos = events[-1].pos if events else 0
    upto = last_pos if at is None else min(at, last_pos)
    if plan is not None:
        try:
            return Portrait(replay(plan, events, upto=upto, run_id=run_id), upto, plan)
        except RuntimeError:
            pass
    drawn = stored_plan(events, run_id)
    return Portrait(replay(drawn, events, upto=upto, run_id=run_id), upto, drawn, foreign=plan is not None)
