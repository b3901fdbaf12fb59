"""A run as its page tells it: read from the log once, event by event, for all who watch.

A page, a stream and a second tab must show the same.  So what a row, a card or
a badge needs to know of the events before it is gathered here, in one pass
that goes forward only, and every viewer of the run shares the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, cast, get_args

from playground.kernel import Event, LogError, Plan, Run
from playground.kernel.run import escape_key, split_park
from playground.kernel.scheduler import child_spec
from playground.kernel.values import JsonObject, JsonValue, dict_in, dicts_in, text_in
from playground.runtime.react import build_react_plan
from playground.runtime.tools import ToolRegistry
from playground.sessions import Proof, Sessions, portrait, prove, stored_plan
from playground.web import graphmarks
from playground.web.graphmarks import marks_of
from playground.web.graphview import Topology, reshapes
from playground.web.timeline import Timeline
from playground.web.viewmodels import Decision, EventRow, Spent, TokenStream
from playground.web.waterfall import ClockBook
from playground.web.wavegrid import WaveBook

STRETCH = 500
"""How many events are read from the log at a time."""

LEAP = 1000
"""After each so many events it is kept how the run stood, so that no moment of its past is far."""

GLANCE = 200
"""After each so many events the marks of the picture are kept."""

MOST_STREAMS = 40
"""How many model calls the page shows, the latest ones."""

Region = Literal["status", "cards", "end", "graph", "grid", "stops", "spent"]
"""A part of the run page that an event can make stale."""

_CARDS = {"interrupted", "resumed", "interrupt_cancelled"}

_STATUS = {"run_started", "run_suspended", "resumed", "run_completed", "run_failed", "model_returned"}
_END = {"run_completed", "run_failed"}
_SPENT = {"model_called", "model_returned", "tool_called", "tool_returned"}
_GRID = {
    "node_started",
    "node_completed",
    "node_retry",
    "node_failed",
    "node_cancelled",
    "node_parked",
    "interrupted",
    "delegated",
}

_QUIET = {"node_completed", "state_delta", "control"}
"""Most events are such: they have nothing to gather for the run as a whole."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as the log tells it: which node of which run asks, since when, inside which tool."""

    id: str
    run_id: str
    node: str
    since: float
    tool: str
    starts: int


class Story:
    """One tree of runs, told up to `pos`.

    Attributes:
        root: id of the root run.
        rows, events: the timeline, whose rows are made when somebody looks, and its events.
        run: the root run, folded up to `pos`.
        plan: the plan it is folded with; `foreign` when that is drawn from the log.
        drawn: what the events add to the picture of the plan; `book`: who ran in which wave.
        children: topologies of plans inside the plan, by the name they are called with.
        asks, decisions: the questions of the whole tree, and how they were decided, by interrupt id.
        calls: what models said, by call id, in the order of the calls.
        spent: what each node has spent on models and tools, by owner and node.
        speaking: the call id of the model call that is open in a node of a run.
        watched: whether somebody paints it as it goes on, and so needs to know what of it is stale.
        stale: parts of a page painted before that show no longer what is; whoever paints them clears it.
        changed: the questions asked or decided since then.
        places: the paths of the nodes that have started, from the root run.
        proof: its checkpoint held against its log, as it was at position `proved`; None where there is none.
    """

    def __init__(self, root: str, plan: Plan | None, *, staged: bool = False) -> None:
        self.root = root
        self.pos = 0
        self.rows = Timeline()
        self.foreign = plan is None
        self.plan = plan or Plan(open_channels=True)
        self.run = Run(self.plan, root)
        self.drawn = graphmarks.Story()
        self.book = WaveBook()
        self._clock = ClockBook()
        self._clocked = 0
        self.children: Mapping[str, Topology] = child_topologies(plan) if plan is not None else {}
        self.asks: dict[str, Ask] = {}
        self.decisions: dict[str, Decision] = {}
        self.calls: dict[str, TokenStream] = {}
        self.spent: dict[tuple[str, str], Spent] = {}
        self.speaking: dict[tuple[str, str], str] = {}
        self.watched = False
        self.stale: set[Region] = set()
        self.changed: dict[str, None] = {}
        self._staged = staged
        self.proof: Proof | None = None
        self.proved = 0
        self.failed: Event | None = None
        self.nodes = self.tokens = self.model_calls = self.tool_calls = 0
        self.places: dict[str, None] = {}
        self._paths: dict[str, str] = {}
        self._called: dict[str, float] = {}
        self._starts: dict[tuple[str, str], tuple[JsonValue, int]] = {}
        self._marks: list[dict[str, graphmarks.Mark]] = []
        self._stood: list[tuple[int, JsonObject]] = []

    @property
    def events(self) -> list[Event]:
        """All events so far."""
        return self.rows.events

    @property
    def layered(self) -> bool:
        """Whether the run is made of layers."""
        return self._staged or self.rows.layered

    @property
    def meta(self) -> JsonObject:
        """What whoever started the run wrote into its first event."""
        return self.run.meta

    async def reach(self, sessions: Sessions, pos: int | None = None) -> None:
        """Read on from the log, up to `pos` or to its present end."""
        while pos is None or self.pos < pos:
            limit = STRETCH if pos is None else min(STRETCH, pos - self.pos)
            events = await sessions.store.log.stream(self.root, self.pos, limit)
            if not events:
                return
            self.take(events)

    def take(self, events: Iterable[Event]) -> None:
        """Go on with the events that follow; those told already are left out."""
        fresh = [event for event in events if event.pos > self.pos]
        if not fresh:
            return
        self.pos = fresh[-1].pos
        for event in fresh:
            if len(self.rows) % GLANCE == 0:
                self._marks.append(dict(self.drawn.marks))
            beat = self.rows.add(event)
            grew = self.drawn.add(event, marks_of(event, beat, event.pos))
            self.book.add(event)
            if event.kind not in _QUIET:
                self._note(event)
            if self.watched:
                asked = questions(event.kind, event.data)
                opens = bool(self.rows.opens(len(self.rows) - 1))
                self.stale |= _regions(event.kind, event.run_id == self.root, opens, bool(asked), grew)
                self.changed.update(dict.fromkeys(asked))
        self._fold(fresh)

    @property
    def clock(self) -> ClockBook:
        """Who ran when; written up when somebody looks at it."""
        for event in self.events[self._clocked :]:
            self._clock.add(event)
        self._clocked = len(self.events)
        return self._clock

    def row(self, pos: int) -> EventRow | None:
        """The row at a position, if there is one."""
        return self.rows[pos - 1] if 0 < pos <= len(self.rows) else None

    def marks_before(self, pos: int) -> Mapping[str, graphmarks.Mark]:
        """The last mark of each element of the picture before the event at `pos`."""
        kept = min((pos - 1) // GLANCE, len(self._marks) - 1)
        marks = dict(self._marks[kept])
        for index in range(kept * GLANCE, pos - 1):
            marks.update((mark.id, mark) for mark in self.rows.marks(index))
        return marks

    def drawn_at(self, pos: int) -> graphmarks.Story:
        """What the events up to `pos` add to the picture."""
        if pos >= self.pos:
            return self.drawn
        return graphmarks.Story.of(self.events[:pos])

    async def prove(self, sessions: Sessions) -> None:
        """Hold the root run's checkpoint against the log, folded with the plan it was made with."""
        proved = self.pos
        if not self.foreign:
            self.proof = await prove(sessions.store.checkpoints, self.root, self.stood)
        self.proved = proved

    def stood(self, pos: int) -> Run:
        """The root run as it stood after the event at `pos`, folded with the plan."""
        at, snapshot = next((kept for kept in reversed(self._stood) if kept[0] <= pos), (0, None))
        run = Run.restore(self.plan, snapshot) if snapshot else Run(self.plan, self.root)
        for event in self.events[at:pos]:
            if event.run_id == self.root:
                run.apply(event)
        return run

    def _fold(self, fresh: Sequence[Event]) -> None:
        """Apply the events of the root run; where the plan does not fit them, the log draws one that does."""
        try:
            for event in fresh:
                if event.run_id == self.root:
                    self.run.apply(event)
                    if event.seq % LEAP == 0:
                        self._stood.append((event.pos, dict(self.run.snapshot())))
        except LogError:
            self.foreign = True
            self._stood.clear()
            self.plan = stored_plan(self.events, self.root)
            self.run = portrait(None, self.events, self.root).run

    def _note(self, event: Event) -> None:
        """Count and gather what is told of the run as a whole."""
        kind, data, node = event.kind, event.data, _node_of(event)
        match kind:
            case "run_started":
                self._paths[event.run_id] = str(data.get("path", ""))
            case "node_started":
                self._started(event, node)
            case "interrupted":
                self._asked(event, node)
            case "resumed" | "interrupt_cancelled":
                self.decisions[text_in(data, "id")] = _decision(event)
            case "model_called":
                self.model_calls += 1
                self._spend(event, node, model_calls=1)
                call_id = text_in(data, "call_id")
                self.speaking[event.run_id, node] = call_id
                owner = self.rows.owners.get(event.run_id, "")
                self.calls[call_id] = TokenStream(call_id, node, owner, done=False)
                if len(self.calls) > MOST_STREAMS:
                    del self.calls[next(iter(self.calls))]
            case "model_returned":
                self._said(event, node)
            case "tool_called":
                self.tool_calls += 1
                self._spend(event, node, tool_calls=1)
            case "tool_returned":
                self._spend(event, node)
            case "run_failed" if event.run_id == self.root:
                self.failed = event

    def _started(self, event: Event, node: str) -> None:
        self.nodes += 1
        place, activation = (event.run_id, node), event.data.get("activation", 0)
        if place not in self._starts:
            self.places[self._paths.get(event.run_id, "") + node.partition("#")[0]] = None
        latest, starts = self._starts.get(place, (activation, 0))
        self._starts[place] = activation, starts + 1 if latest == activation else 1

    def _spend(
        self, event: Event, node: str, *, model_calls: int = 0, tool_calls: int = 0, tokens: int = 0
    ) -> None:
        """Add to what a node has spent: a call when it is made, its time and tokens when it returns."""
        call_id, place = text_in(event.data, "call_id"), (self.rows.owners.get(event.run_id, ""), node)
        seconds = max(0.0, event.ts - self._called.pop(call_id, event.ts))
        if model_calls or tool_calls:
            self._called[call_id] = event.ts
        before = self.spent.get(place, Spent(*place))
        self.spent[place] = replace(
            before,
            model_calls=before.model_calls + model_calls,
            tool_calls=before.tool_calls + tool_calls,
            tokens=before.tokens + tokens,
            seconds=before.seconds + seconds,
        )

    def _asked(self, event: Event, node: str) -> None:
        asked = text_in(event.data, "id")
        last = split_park(asked)[0].rpartition("/")[2]
        self.asks[asked] = Ask(
            id=asked,
            run_id=event.run_id,
            node=node,
            since=event.ts,
            tool=last if node and last != escape_key(node) else "",
            starts=self._starts.get((event.run_id, node), (0, 0))[1],
        )

    def _said(self, event: Event, node: str) -> None:
        data = event.data
        call_id = text_in(data, "call_id")
        tokens = data.get("tokens")
        tokens = tokens if isinstance(tokens, int) else 0
        self.tokens += tokens
        self._spend(event, node, tokens=tokens)
        self.speaking.pop((event.run_id, node), None)
        known = self.calls.get(call_id)
        if known is not None:
            self.calls[call_id] = replace(
                known,
                text=str(data.get("text") or data.get("error") or ""),
                reasoning=str(data.get("reasoning") or ""),
                tokens=tokens,
                done=True,
            )


def questions(kind: str, data: Mapping[str, JsonValue]) -> list[str]:
    """The ids of the questions that an event asks, hands up from a child run, answers or withdraws."""
    if kind in _CARDS:
        return [text_in(data, "id")]
    return [text_in(asked, "id") for asked in dicts_in(data, "nested")] if kind == "node_parked" else []


def regions(row: EventRow) -> frozenset[Region]:
    """The parts of the page that an event may make stale; the timeline itself is not among them."""
    asks = bool(questions(row.kind, row.data))
    grows = reshapes(row) or (row.kind == "node_started" and "#" in row.node)
    return _regions(row.kind, not row.depth, bool(row.opens), asks, grows)


@lru_cache(maxsize=1024)
def _regions(kind: str, root: bool, opens: bool, asks: bool, grows: bool) -> frozenset[Region]:
    stale: set[Region] = {"status"} if opens else set()
    if kind in _STATUS and (root or kind == "model_returned"):
        stale.add("status")
    if asks:
        stale |= {"cards", "status"}
    if kind in _END and root:
        stale |= {"end", "cards"}
    if kind in _SPENT:
        stale.add("spent")
    if kind == "breakpoints_set":
        stale |= {"status", "stops", "graph"}
    if kind in _GRID or kind in _END:
        stale.add("grid")
    if grows:
        stale.add("graph")
    return frozenset(stale)


def _node_of(event: Event) -> str:
    """The node that an event speaks of, or nothing."""
    node = event.data.get("node")
    return node if isinstance(node, str) else ""


@lru_cache(maxsize=64)
def child_topologies(plan: Plan) -> Mapping[str, Topology]:
    """The drawings of the plans inside a plan's nodes, by the name that a call gives them.

    Under no name there is an agent's plan: what a teammate runs that is called as a tool.
    """
    found: dict[str, Topology] = {"": cast("Topology", build_react_plan(ToolRegistry()).topology())}
    waiting = [plan]
    while waiting:
        for node in waiting.pop().nodes.values():
            spec = getattr(node.body, "spec", None)
            if spec is None:
                continue
            made = child_spec(spec)
            if made.name not in found:
                found[made.name] = cast("Topology", made.plan.topology())
                waiting.append(made.plan)
    return found


_Outcome = Literal["approved", "rejected", "answered", "expired", "cancelled"]


def _decision(event: Event) -> Decision:
    data = event.data
    outcome = "cancelled" if event.kind == "interrupt_cancelled" else str(data.get("outcome"))
    known = outcome if outcome in get_args(_Outcome) else "answered"
    at = data.get("at")
    return Decision(
        outcome=cast("_Outcome", known),
        by=str(data.get("by") or ""),
        at=at if isinstance(at, int | float) else event.ts,
        via=str(data.get("via") or ""),
        comment=str(data.get("comment") or ""),
        difference=dict_in(data, "difference"),
    )
