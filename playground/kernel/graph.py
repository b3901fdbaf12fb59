"""The plan: a static drawing of steps, the edges between them, and the state they share.

It holds nothing of any run, so many runs can follow one plan at once.  Whether
a node is ready is a question about a plan *and* a run; the answer is a pure
function in `readiness`, and `Plan.ready` and `Plan.explain` are its doors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from playground.kernel import readiness
from playground.kernel.channels import Channel, last
from playground.kernel.command import END
from playground.kernel.readiness import Reason
from playground.kernel.values import JsonObject, JsonValue, freeze

if TYPE_CHECKING:
    from playground.kernel.body import NodeBody
    from playground.kernel.run import Run

EdgePredicate: TypeAlias = Callable[[Mapping[str, JsonValue]], bool]
Join: TypeAlias = Literal["all", "any"] | Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class Edge:
    """From `source` to `target`; live always, or while `when(state)` is true."""

    source: str
    target: str
    when: EdgePredicate | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Whether and when a failed body is tried again.

    Args:
        max_attempts: how often it may start in all.
        base_delay: seconds to wait after the first failure.
        factor: each further wait is this much longer.
        retry_on: exception types, or a predicate over the exception.
    """

    max_attempts: int = 3
    base_delay: float = 0.05
    factor: float = 2.0
    retry_on: tuple[type[BaseException], ...] | Callable[[BaseException], bool] = (Exception,)

    def delay_for(self, failed_attempt: int) -> float:
        """Seconds to wait after failure number `failed_attempt`, counted from 0."""
        return self.base_delay * self.factor**failed_attempt

    def matches(self, error: BaseException) -> bool:
        """Whether `error` is one to try again after."""
        if isinstance(self.retry_on, tuple):
            return isinstance(error, self.retry_on)
        return bool(self.retry_on(error))


@dataclass(frozen=True, slots=True)
class Node:
    """One step of a plan.

    Args:
        id: its key: any text without `#`, which separates a template from its instances.
        body: what it does.
        join: with several predecessors, run when "all" live ones are done, when
            "any" is, or when a callable `(done, live) -> bool` says so.
        template: it runs only as instances made by `Send`.
        terminal: its output is the run's.
        timeout: seconds one attempt may take; a timeout is one failure.
        retry: what happens after a failure; without one the run fails.
    """

    id: str
    body: NodeBody
    join: Join = "all"
    template: bool = False
    terminal: bool = False
    timeout: float | None = None
    retry: RetryPolicy | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What can be read off a plan once.

    `inner` counts each node's edges that come from no template; `first` are those that may be ready at once.
    """

    order: dict[str, int]
    incoming: dict[str, tuple[Edge, ...]]
    outgoing: dict[str, tuple[Edge, ...]]
    entries: frozenset[str]
    terminals: tuple[str, ...]
    templates: frozenset[str]
    inner: dict[str, int]
    first: frozenset[str]


class Plan:
    """Nodes by id, edges, channels by name, and entries; built by chained calls, then validated.

    Without explicit `entry`, the nodes without incoming edges start.  With
    `open_channels`, a write to an undeclared key declares a `last` channel.
    """

    def __init__(
        self,
        channels: dict[str, Channel] | None = None,
        entry: Iterable[str] = (),
        *,
        open_channels: bool = False,
    ) -> None:
        self.channels: dict[str, Channel] = channels if channels is not None else {}
        self.open_channels = open_channels
        self._on_the_fly: set[str] = set()
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []
        self._entry = tuple(entry)

    @property
    def entry(self) -> tuple[str, ...]:
        """The nodes declared as entries; none: those without incoming edges."""
        return self._entry

    @entry.setter
    def entry(self, names: Iterable[str]) -> None:
        self._entry = tuple(names)
        self._changed()

    def add(self, *nodes: Node) -> Plan:
        """Add nodes; their order is the order in which a wave's results are folded.

        Raises:
            ValueError: an id is taken, or is no id.
        """
        for node in nodes:
            if not isinstance(node.id, str) or not node.id or "#" in node.id or node.id == END:
                raise ValueError(f"node id {node.id!r} will not do: use any other text, without '#'")
            freeze(node.id, "node id ", repr(node.id))
            if node.id in self.nodes:
                raise ValueError(f"duplicate node id {node.id!r}: give each node a name of its own")
            self.nodes[node.id] = node
        self._changed()
        return self

    def edge(self, source: str, target: str, when: EdgePredicate | None = None) -> Plan:
        """Draw an edge, live always or while `when(state)` is true."""
        self.edges.append(Edge(source, target, when))
        self._changed()
        return self

    def _changed(self) -> None:
        self.__dict__.pop("shape", None)

    def validate(self) -> Plan:
        """Check what can be checked before a run.

        Raises:
            ValueError: naming the node or edge and what is wrong with it.
        """
        known = f"known nodes: {', '.join(self.nodes) or 'none'}"
        for edge in self.edges:
            for end, name in (("source", edge.source), ("target", edge.target)):
                if name not in self.nodes:
                    raise ValueError(
                        f"edge {edge.source!r} -> {edge.target!r}: its {end} does not exist; {known}"
                    )
        for name in self._entry:
            if name not in self.nodes:
                raise ValueError(f"entry node {name!r} does not exist; {known}")
            if self.nodes[name].template:
                raise ValueError(f"entry node {name!r} is a template, which only Send can start")
        for node in self.nodes.values():
            if not callable(node.join) and node.join not in ("all", "any"):
                raise ValueError(
                    f"node {node.id!r} has an invalid join {node.join!r}: "
                    "use 'all', 'any' or a callable (done, live) -> bool"
                )
        return self

    def get(self, node_id: str) -> Node:
        """The node of that id, or the template of that instance.

        Raises:
            KeyError: there is none.
        """
        return self.nodes.get(node_id) or self.nodes[node_id.partition("#")[0]]

    def incoming(self, node_id: str) -> list[Edge]:
        """The edges that end at a node."""
        return list(self.shape.incoming.get(node_id, ()))

    @cached_property
    def shape(self) -> Shape:
        """The plan's structure, read once and again only after a change."""
        incoming = _by_end(self.nodes, self.edges, "target")
        outgoing = _by_end(self.nodes, self.edges, "source")
        templates = frozenset(key for key, node in self.nodes.items() if node.template)
        entries = self._entry or [key for key in self.nodes if not incoming[key] and key not in templates]
        marked = tuple(key for key, node in self.nodes.items() if node.terminal)
        inner = {key: sum(edge.source not in templates for edge in edges) for key, edges in incoming.items()}
        return Shape(
            order={key: index for index, key in enumerate(self.nodes)},
            incoming=incoming,
            outgoing=outgoing,
            entries=frozenset(entries),
            terminals=marked or tuple(key for key in self.nodes if not outgoing[key]),
            templates=templates,
            inner=inner,
            first=frozenset(
                key
                for key, node in self.nodes.items()
                if not node.template and (inner[key] == 0 or node.join != "all" or key in entries)
            ),
        )

    def channel(self, key: str) -> Channel | None:
        """The channel of that name; one is declared on the fly if the plan is open."""
        found = self.channels.get(key)
        if found is None and self.open_channels:
            if not isinstance(key, str):
                raise TypeError(f"a write to the channel {key!r}: channels are named by text")
            freeze(key, "name of a channel")
            found = self.channels[key] = last()
            self._on_the_fly.add(key)
        return found

    def initial_shared(self) -> dict[str, JsonValue]:
        """Each channel's initial value, shared with no other run; none where only a write declares it."""
        return {
            key: channel.initial() for key, channel in self.channels.items() if key not in self._on_the_fly
        }

    def terminal_ids(self) -> list[str]:
        """The nodes whose output is the run's: the marked ones, else those without outgoing edges."""
        return list(self.shape.terminals)

    def ready(self, run: Run, *, empty_fanout: bool = False) -> list[str]:
        """Which nodes and instances of `run` can run now, in plan order; reads only."""
        return [key for key, _ in readiness.ready(self, run, empty_fanout=empty_fanout)]

    def explain(self, run: Run, node: str) -> Reason:
        """Why `node` ran, waits or was skipped in `run`.

        Raises:
            KeyError: the plan has no such node.
        """
        return readiness.explain(self, run, node)

    def topology(self) -> JsonObject:
        """The drawing as JSON: nodes, edges, channels."""
        shape = self.shape
        return {
            "nodes": [
                {
                    "key": key,
                    "template": node.template,
                    "terminal": key in shape.terminals,
                    "entry": key in shape.entries,
                    "join": node.join if isinstance(node.join, str) else "custom",
                    "kind": getattr(node.body, "kind", "function"),
                }
                for key, node in self.nodes.items()
            ],
            "edges": [
                {
                    "source": edge.source,
                    "target": edge.target,
                    "conditional": edge.when is not None,
                    "label": getattr(edge.when, "label", None),
                }
                for edge in self.edges
            ],
            "channels": [
                {
                    "name": key,
                    "reducer": channel.name,
                    "type": channel.dtype.__name__ if channel.dtype else None,
                }
                for key, channel in self.channels.items()
            ],
        }


def _by_end(
    nodes: Iterable[str], edges: Iterable[Edge], end: Literal["source", "target"]
) -> dict[str, tuple[Edge, ...]]:
    found: dict[str, list[Edge]] = {key: [] for key in nodes}
    for edge in edges:
        found.setdefault(getattr(edge, end), []).append(edge)
    return {key: tuple(listed) for key, listed in found.items()}
