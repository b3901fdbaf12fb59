"""Readiness: who can run now, and the reason.

Everything here is a pure function of a plan and a run: nothing is changed, so
the same question can be asked by the engine before a wave, by a test, and by a
page that explains the wave to a student.  One rule gives both the decision and
its reason, so the two cannot disagree.

The rule for a pending node that no command has released:

1. an entry is ready until it has run once; so is a node with no predecessors that was re-armed;
2. a predecessor is *open* until it has ended; a template has ended when it has instances and all have;
3. an edge is *live* if its predecessor completed and its predicate holds on the present state; an edge from a
   skipped node is dead;
4. join "all" waits until no predecessor is open and then needs one live edge; "any" needs one live edge; a
   callable is asked with the number of live edges so far and the number that may still be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from playground.kernel.types import NodeStatus
from playground.kernel.values import FrozenDict, FrozenList, JsonObject, JsonValue

if TYPE_CHECKING:
    from playground.kernel.graph import Edge, Node, Plan
    from playground.kernel.run import Run


class PredicateError(RuntimeError):
    """A condition or a join of the plan raised: it names the edge or node."""


READY = frozenset({"entry", "edges", "goto", "send", "resumed", "recovered", "retry"})

_SENTENCES = {
    "entry": "it is an entry of the plan",
    "edges": "the edge from {nodes} is live",
    "goto": "{nodes} sent it a Goto",
    "send": "{nodes} sent an instance of it",
    "resumed": "{nodes} was answered",
    "recovered": "it was running when the engine stopped",
    "retry": "its last attempt failed and its policy tries again",
    "open_predecessors": "it waits for {nodes}",
    "dead_edges": "no edge is live: the condition from {nodes} does not hold",
    "join_short": "its join is short: {done} of {live} live edges are done",
    "parked": "it waits for an answer to {nodes}",
    "not_commanded": "no edge leads to it and no command has named it",
    "skipped_predecessors": "{nodes} was skipped",
    "ended": "{nodes} ended the run",
    "running": "it is running",
    "ran": "it ran",
}


class Reason(NamedTuple):
    """Why a node runs, waits or was skipped: a code, and the names it speaks of.

    `str(reason)` is a sentence in English; a page in another language goes by `code`.
    """

    code: str
    nodes: tuple[str, ...] = ()
    done: int = 0
    live: int = 0

    @property
    def ready(self) -> bool:
        """Whether this is a reason to run."""
        return self.code in READY

    def to_json(self) -> JsonObject:
        """The reason as it stands in an event."""
        return _told(self)

    @classmethod
    def from_json(cls, data: JsonValue) -> Reason:
        """The reason that an event holds."""
        if not isinstance(data, dict):
            return cls("ran")
        nodes, done, live = data.get("nodes"), data.get("done"), data.get("live")
        return cls(
            str(data.get("code")),
            tuple(str(node) for node in nodes) if isinstance(nodes, list) else (),
            done if isinstance(done, int) else 0,
            live if isinstance(live, int) else 0,
        )

    def __str__(self) -> str:
        names = " and ".join(self.nodes) or "nobody"
        sentence = _SENTENCES.get(self.code, self.code)
        return sentence.format(nodes=names, done=self.done, live=self.live)


@lru_cache(maxsize=4096)
def _told(why: Reason) -> JsonObject:
    found: JsonObject = {"code": why.code}
    if why.nodes:
        found["nodes"] = FrozenList(why.nodes)
    if why.code == "join_short":
        found["done"], found["live"] = why.done, why.live
    return FrozenDict(found)


reason = lru_cache(maxsize=4096)(Reason)
"""A reason that is likely to be given again."""

_ENTRY, _RUNNING, _RAN = Reason("entry"), Reason("running"), Reason("ran")


def ready(plan: Plan, run: Run, *, empty_fanout: bool = False) -> list[tuple[str, Reason]]:
    """All nodes and instances that can run now, and why, in plan order, instances in theirs."""
    judged = [(key, verdict(plan, run, key, empty_fanout=empty_fanout)) for key in keys_in_order(plan, run)]
    return [(key, why) for key, why in judged if why.ready]


def keys_in_order(plan: Plan, run: Run) -> Iterator[str]:
    """Every node that can run, in plan order; a template stands for its instances."""
    for key, node in plan.nodes.items():
        if node.template:
            yield from run.instances.get(key, ())
        else:
            yield key


def verdict(plan: Plan, run: Run, key: str, *, empty_fanout: bool = False) -> Reason:
    """Whether `key` can run now, and why or why not."""
    state = run.node_states.get(key)
    if state is not None and state.status is not NodeStatus.PENDING:
        return _RUNNING if state.status is NodeStatus.RUNNING else _RAN
    released = run.activated.get(key)
    if released is not None:
        return released
    if run.interrupts:
        parked = run.parked_on(key)
        if parked:
            return Reason("parked", parked)
    if "#" in key:
        return reason("send", (run.senders[key],))
    shape = plan.shape
    edges = shape.incoming[key]
    has_run = state is not None and state.attempts > 0
    if key in shape.entries and (not edges or not has_run):
        return _ENTRY
    if not edges:
        return Reason("edges") if has_run else Reason("not_commanded")
    if len(edges) == 1 and edges[0].when is None and plan.nodes[key].join == "all":
        source = edges[0].source
        before = run.node_states.get(source)
        if before is not None and before.status is NodeStatus.COMPLETED:
            return reason("edges", (source,))
    return _by_edges(plan, run, key, edges, empty_fanout)


def _by_edges(plan: Plan, run: Run, key: str, edges: tuple[Edge, ...], empty_fanout: bool) -> Reason:
    live: list[str] = []
    waiting: list[str] = []
    dead: list[str] = []
    for edge in edges:
        status = source_status(plan, run, edge.source, empty_fanout=empty_fanout)
        if status is NodeStatus.PENDING or status is NodeStatus.RUNNING:
            waiting.append(edge.source)
        elif status is NodeStatus.COMPLETED and edge_live(edge, run):
            live.append(edge.source)
        else:
            dead.append(edge.source)
    if live and _joined(plan.nodes[key], len(live), len(live) + len(waiting)):
        return Reason("edges", tuple(live))
    if waiting:
        return Reason("open_predecessors", tuple(waiting))
    if live:
        return Reason("join_short", tuple(live), len(live), len(live))
    return Reason("dead_edges", tuple(dead))


def edge_live(edge: Edge, run: Run) -> bool:
    """Whether an edge's predicate holds on the run's present state.

    Raises:
        PredicateError: the predicate raised.
    """
    if edge.when is None:
        return True
    try:
        return bool(edge.when(run.view))
    except Exception as error:
        raise PredicateError(
            f"the condition of edge {edge.source!r} -> {edge.target!r} raised "
            f"{type(error).__name__}: {error}; let it return True or False for every state"
        ) from error


def _joined(node: Node, done: int, live: int) -> bool:
    if not callable(node.join):
        return node.join == "any" or done == live
    try:
        return bool(node.join(done, live))
    except Exception as error:
        raise PredicateError(
            f"the join of node {node.id!r} raised {type(error).__name__}: {error}; "
            "let it return True or False for every pair (done, live)"
        ) from error


def source_status(plan: Plan, run: Run, source: str, *, empty_fanout: bool = False) -> NodeStatus:
    """The status of a predecessor; a template's is that of its instances together."""
    if source not in plan.shape.templates:
        return run.status_of(source)
    instances = run.instances.get(source)
    if not instances:
        own = run.status_of(source)
        return NodeStatus.COMPLETED if empty_fanout and not own.ended else own
    if all(run.status_of(key).ended for key in instances):
        return NodeStatus.COMPLETED
    return NodeStatus.PENDING


def live_sources(plan: Plan, run: Run, key: str) -> tuple[str, ...]:
    """The completed predecessors that feed `key` over a live edge now; a template counts as one."""
    return tuple(
        edge.source
        for edge in plan.shape.incoming.get(key, ())
        if source_status(plan, run, edge.source) is NodeStatus.COMPLETED and edge_live(edge, run)
    )


def dead_branches(plan: Plan, run: Run) -> list[tuple[str, Reason]]:
    """The nodes that a stalled run can never reach, each with its reason.

    Asked only when nothing is ready, and again after the answer was applied,
    until it is empty: a skipped node may leave others without a live edge.
    """
    found = []
    for key, node in plan.nodes.items():
        why = verdict(plan, run, key)
        if why.code == "dead_edges" and not run.instances.get(key):
            closed = tuple(name for name in why.nodes if run.status_of(name) is not NodeStatus.SKIPPED)
            why = Reason("dead_edges", closed) if closed else Reason("skipped_predecessors", why.nodes)
            found.append((key, why))
        elif why.code == "not_commanded" and not node.template:
            found.append((key, why))
    return found


def dead_circles(plan: Plan, run: Run) -> list[tuple[str, Reason]]:
    """The nodes of a stalled run that wait for each other behind a closed edge: a loop in a branch not taken.

    Asked only when nothing is ready and no branch is dead.  A loop that no edge
    leads into is none of these: it can never run, which is a mistake in the plan.
    """
    incoming = plan.shape.incoming
    waiting = {
        key
        for key, node in plan.nodes.items()
        if not node.template and verdict(plan, run, key).code == "open_predecessors"
    }

    def may_come(edge: Edge) -> bool:
        status = source_status(plan, run, edge.source)
        return not status.ended or (status is NodeStatus.COMPLETED and edge_live(edge, run))

    def outside(key: str) -> list[Edge]:
        return [edge for edge in incoming[key] if edge.source not in waiting]

    while alive := {key for key in waiting if any(map(may_come, outside(key)))}:
        waiting -= alive
    found = {
        key: Reason("dead_edges", tuple(e.source for e in outside(key))) for key in waiting if outside(key)
    }
    while behind := {
        key: Reason("skipped_predecessors", tuple(edge.source for edge in incoming[key]))
        for key in waiting - found.keys()
        if any(edge.source in found for edge in incoming[key])
    }:
        found |= behind
    return [(key, found[key]) for key in plan.nodes if key in found]


def unfinished(plan: Plan, run: Run) -> list[str]:
    """The nodes and instances of a stalled run that have not ended; a template that never ran is no loss."""
    states = run.node_states
    return [key for key in keys_in_order(plan, run) if key not in states or not states[key].status.ended]


def explain(plan: Plan, run: Run, key: str) -> Reason:
    """Why `key` ran, waits or was skipped.

    Raises:
        KeyError: neither the plan nor the run knows it.
    """
    if key.partition("#")[0] not in plan.nodes or ("#" in key and key not in run.node_states):
        raise KeyError(f"node {key!r} does not exist; known nodes: {', '.join(plan.nodes)}")
    status = run.status_of(key)
    if status is NodeStatus.PENDING:
        return verdict(plan, run, key)
    return Reason.from_json(run.state_of(key).why)


_UNTIL_THE_STATE_CHANGES = frozenset({"dead_edges", "join_short"})
"""Reasons to wait that a write alone may end; so may "open_predecessors", where one is enough."""


class Frontier:
    """Who may be ready next: `Plan.ready`, kept up to date instead of asked anew.

    A wave costs its nodes' out-edges, not the plan.  What stays in `_candidates`
    are nodes whose answer can change with the state alone, such as a condition
    that does not hold yet.
    """

    def __init__(self, plan: Plan, run: Run) -> None:
        self._plan = plan
        self._run = run
        self._open = dict(plan.shape.inner)
        self._candidates = set(keys_in_order(plan, run) if run.node_states else plan.shape.first)
        self.ended(
            key
            for key, state in run.node_states.items()
            if state.status.ended and "#" not in key and key not in run.wave.returned
        )

    def take(self) -> list[tuple[str, Reason]]:
        """The ready nodes and why, in plan order."""
        found = []
        candidates, self._candidates = self._candidates, set()
        plan, run = self._plan, self._run
        for key in candidates:
            why = verdict(plan, run, key)
            code = why.code
            if code in READY:
                found.append((key, why))
            elif code in _UNTIL_THE_STATE_CHANGES or (
                code == "open_predecessors" and plan.nodes[key].join != "all"
            ):
                self._candidates.add(key)
        if len(found) > 1:
            order = self._run.order_of
            found.sort(key=lambda item: order(item[0]))
        return found

    def ended(self, keys: Iterable[str]) -> None:
        """Nodes or instances completed or were skipped."""
        outgoing, templates = self._plan.shape.outgoing, self._plan.shape.templates
        for source in {key if key in outgoing else key.partition("#")[0] for key in keys}:
            self._count(source, 0 if source in templates else -1)

    def released(self, key: str, *, was_ended: bool) -> None:
        """A command made a node or an instance pending."""
        self._candidates.add(key)
        if was_ended:
            self._count(key, 1)

    def _count(self, source: str, step: int) -> None:
        for edge in self._plan.shape.outgoing[source]:
            target = edge.target
            self._open[target] = left = self._open[target] + step
            node = self._plan.nodes[target]
            if not node.template and (left <= 0 or node.join != "all"):
                self._candidates.add(target)
