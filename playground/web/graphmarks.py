"""What events mean for the picture of a run: the marks that they make, and the shape that they add up to.

A *mark* says that an element of the picture is in a state from now on: a node
runs, an edge was taken, a called run has returned.  A page applies marks as
they come, and folds them anew to show another moment.  The *story* of a run is
all that its events add to the plan: instances made by Send, edges drawn by
Goto, runs that a node has called.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple, NotRequired, Protocol, TypedDict
from urllib.parse import quote

from playground.kernel.command import END
from playground.kernel.eventlog import root_of
from playground.kernel.values import JsonValue

EdgeKind = Literal["edge", "goto", "rejoin", "send", "transfer"]
"""A rejoin is a Goto that only re-arms its target, which then waits for its edges like any other."""


class NodeShape(TypedDict):
    """A node of a topology, as the plan describes itself."""

    key: str
    template: NotRequired[bool]
    terminal: NotRequired[bool]
    entry: NotRequired[bool]
    join: NotRequired[str]
    label: NotRequired[str | None]
    kind: NotRequired[str]


class EdgeShape(TypedDict):
    """An edge of a topology; `conditional` when it has a predicate."""

    source: str
    target: str
    conditional: NotRequired[bool]
    label: NotRequired[str | None]


class ChannelShape(TypedDict):
    """A channel of a topology."""

    name: str
    reducer: str
    type: NotRequired[str | None]


class Topology(TypedDict):
    """A plan as JSON."""

    nodes: Sequence[NodeShape]
    edges: Sequence[EdgeShape]
    channels: NotRequired[Sequence[ChannelShape]]


class Fact(Protocol):
    """What the picture needs of an event."""

    @property
    def run_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, JsonValue]: ...


class Mark(NamedTuple):
    """What an event changes in the picture: the element `id` is in `state` from now on, perhaps in `wave`.

    `beat` is when: how many waves had begun in the whole tree by then, as a `Pulse` counts them.
    `at` is the position of the event, where that is known.
    """

    id: str
    state: str
    wave: int = 0
    beat: int = 0
    at: int = 0

    def json(self) -> dict[str, JsonValue]:
        """As it is sent to the page."""
        mark: dict[str, JsonValue] = {"id": self.id, "state": self.state}
        if self.wave:
            mark["wave"] = self.wave
        if self.beat:
            mark["beat"] = self.beat
        if self.at and self.id.startswith("node-"):
            mark["at"] = self.at
        return mark


OLDEST = 3
"""The age, in waves, from which on the picture no longer shows that something was active."""


class Pulse:
    """Counts the waves that begin, in any run of a tree: the clock by which activity fades."""

    def __init__(self) -> None:
        self.beat = 0
        self.waves: dict[str, int] = {}
        """The newest wave of each run."""

    def feel(self, fact: Fact) -> int:
        """Go on with an event of the tree; the beat that it happens in."""
        wave = fact.data.get("wave")
        if isinstance(wave, int) and wave > self.waves.get(fact.run_id, 0):
            self.waves[fact.run_id] = wave
            self.beat += 1
        return self.beat


def marks_json(marks: Iterable[Mark]) -> str:
    """Marks as the page's script reads them."""
    return json.dumps([mark.json() for mark in marks], separators=(",", ":"), ensure_ascii=False)


LOUDEST = (
    "failed",
    "parked",
    "running",
    "retrying",
    "waiting",
    "queued",
    "completed",
    "cancelled",
    "skipped",
)
"""A template is in the first of these states that an instance of it is in."""


_STATES = {
    "node_queued": "queued",
    "node_started": "running",
    "node_completed": "completed",
    "node_retry": "retrying",
    "node_failed": "failed",
    "node_cancelled": "cancelled",
    "node_skipped": "skipped",
    "interrupted": "parked",
    "node_parked": "parked",
    "resumed": "queued",
}

_RESHAPING = {"control", "delegated"}

_LANE_ENDS = {"run_completed": "completed", "run_failed": "failed"}

_MARKING = {*_STATES, *_RESHAPING, *_LANE_ENDS}


@lru_cache(maxsize=4096)
def node_id(run_id: str, key: str) -> str:
    """The id of a node's element on the page."""
    return f"node-{_within(run_id)}/{quote(key, safe='')}"


@lru_cache(maxsize=4096)
def edge_id(run_id: str, source: str, target: str) -> str:
    """The id of an edge's element on the page."""
    return (
        f"edge-{_within(run_id)}/{quote(template_of(source), safe='')}/{quote(template_of(target), safe='')}"
    )


def lane_id(run_id: str) -> str:
    """The id of a child run's element on the page."""
    return f"lane-{_within(run_id)}"


def _within(run_id: str) -> str:
    return run_id[len(root_of(run_id)) :]


def reshapes(fact: Fact) -> bool:
    """Whether an event may add to the shape, so that the picture has to be laid out anew."""
    return fact.kind in _RESHAPING


def state_after(fact: Fact) -> str:
    """The state that an event leaves its node in; empty where it says nothing of that.

    A node that parks on what a run inside it asks is not asked itself: it waits.
    """
    state = _STATES.get(fact.kind, "")
    return "waiting" if state == "parked" and fact.data.get("nested") else state


def marks_of(fact: Fact, beat: int = 0, at: int = 0) -> tuple[Mark, ...]:
    """What one event changes in the picture; nothing for most kinds.

    Args:
        beat: when it happens, by the `Pulse` of its tree.
        at: its position.
    """
    kind, data, run_id = fact.kind, fact.data, fact.run_id
    if kind not in _MARKING:
        return ()
    if kind == "control":
        target = _text(data, "goto") or _text(data, "send")
        if not target or target == END:
            return ()
        state = "rearmed" if data.get("immediate") is False else "taken"
        return (Mark(edge_id(run_id, _text(data, "by"), target), state, _int(data, "wave"), beat),)
    wave = _int(data, "wave")
    if kind == "delegated":
        return (Mark(lane_id(_text(data, "child")), "running", wave, beat),)
    if kind in _LANE_ENDS:
        return (Mark(lane_id(run_id), _LANE_ENDS[kind], wave, beat),) if _within(run_id) else ()
    node = _text(data, "node")
    if not node:
        return ()
    mark = Mark(node_id(run_id, node), state_after(fact), wave, beat, at)
    if kind == "node_started" and _code(data) in ("edges", "goto"):
        edges = [Mark(edge_id(run_id, source, node), "taken", wave, beat) for source in _sources(data)]
        return (mark, *edges)
    if kind == "node_skipped" and _code(data) in ("dead_edges", "skipped_predecessors"):
        return (mark, *(Mark(edge_id(run_id, source, node), "dead") for source in _sources(data)))
    return (mark,)


@dataclass(slots=True)
class Chapter:
    """What the events of one run add to its plan."""

    seen: dict[str, None] = field(default_factory=dict)
    entries: set[str] = field(default_factory=set)
    moves: dict[tuple[str, str], EdgeKind] = field(default_factory=dict)
    flows: dict[tuple[str, str], None] = field(default_factory=dict)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    path: str = ""

    def move(self, data: Mapping[str, JsonValue]) -> bool:
        """Add the way that a command goes, if it is not there; whether it was new.

        That a node re-arms itself is no way.
        """
        by, goto, sent = template_of(_text(data, "by")), _text(data, "goto"), _text(data, "send")
        way = (by, sent or goto)
        known = self.moves.get(way)
        if sent:
            self.moves.setdefault(way, "send")
        elif goto and goto != END:
            if data.get("immediate") is not False:
                self.moves[way] = "goto"
            elif by != goto:
                self.moves.setdefault(way, "rejoin")
        return self.moves.get(way) != known

    def instances(self, template: str) -> list[str]:
        """The instances of a template, in the order in which they were first heard of."""
        return [key for key in self.seen if key.startswith(f"{template}#")]

    def after(self, earlier: Chapter) -> Chapter:
        """This chapter, with the nodes and ways that an earlier run of the same plan showed."""
        return Chapter(
            {**{key: None for key in earlier.seen if "#" not in key}, **self.seen},
            earlier.entries | self.entries,
            earlier.moves | self.moves,
            earlier.flows | self.flows,
            self.calls,
            self.path,
        )


@dataclass(slots=True)
class Story:
    """All chapters by run id, and the last mark of each element."""

    root: str = ""
    chapters: dict[str, Chapter] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    beat: int = 0

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Story:
        """What the events of a tree add up to, from its first one on."""
        story, pulse = cls(), Pulse()
        for at, fact in enumerate(facts, 1):
            story.add(fact, marks_of(fact, pulse.feel(fact), at))
        return story

    def add(self, fact: Fact, marks: Iterable[Mark]) -> bool:
        """Go on with an event, and the marks that it makes; whether the shape of the picture grew by it."""
        self.root = self.root or root_of(fact.run_id)
        chapter = self.chapters.get(fact.run_id)
        if chapter is None:
            chapter = self.chapters[fact.run_id] = Chapter()
        data, kind, node = fact.data, fact.kind, _text(fact.data, "node")
        grew = kind == "delegated"
        if node and node not in chapter.seen:
            chapter.seen[node] = None
            grew = grew or "#" in node
        if kind == "node_started":
            code = _code(data)
            if code == "edges":
                flows = ((template_of(source), template_of(node)) for source in _sources(data))
                chapter.flows.update(dict.fromkeys(flows))
            elif code == "entry":
                chapter.entries.add(node)
        elif kind == "control":
            grew = chapter.move(data) or grew
        elif kind == "run_started":
            chapter.path = _text(data, "path")
        elif kind == "delegated":
            child = _text(data, "child")
            chapter.calls.append((node, child, _text(data, "name") or child))
        for mark in marks:
            self.marks[mark.id] = mark
            if mark.beat > self.beat:
                self.beat = mark.beat
        return grew

    def chapter(self, runs: Sequence[str]) -> Chapter:
        """The chapter of the last of these runs, with what the others showed of their plan."""
        found = Chapter()
        for run_id in runs:
            found = (self.chapters.get(run_id) or Chapter()).after(found)
        return found

    @property
    def calls(self) -> Iterable[tuple[str, str, str]]:
        """All calls of the tree, as (node, child run, name)."""
        return chain.from_iterable(chapter.calls for chapter in self.chapters.values())

    def age(self, mark: Mark) -> int:
        """How many waves have begun since a mark was made, at most `OLDEST`."""
        return min(OLDEST, self.beat - mark.beat) if mark.beat else OLDEST

    def mark(self, id_: str, otherwise: str = "pending") -> Mark:
        """The mark of an element, or that it is in the state `otherwise`."""
        return self.marks.get(id_) or Mark(id_, otherwise)


def template_of(key: str) -> str:
    """The node that an instance belongs to; any other key as it is."""
    return key.partition("#")[0]


def _text(data: Mapping[str, JsonValue], key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""


def _int(data: Mapping[str, JsonValue], key: str) -> int:
    found = data.get(key)
    return found if isinstance(found, int) else 0


def _code(data: Mapping[str, JsonValue]) -> str:
    """Why a node has started or was skipped, in a word."""
    why = data.get("why")
    return _text(why, "code") if isinstance(why, dict) else ""


def _sources(data: Mapping[str, JsonValue]) -> list[str]:
    """The nodes that were the reason."""
    why = data.get("why")
    found = why.get("nodes") if isinstance(why, dict) else None
    if isinstance(found, str):
        return [found]
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []
