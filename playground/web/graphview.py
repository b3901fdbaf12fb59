"""The graph of a run as a picture: pure functions from topology and events to shapes.

Two things make the picture.  Its *shape* is where everything lies: the plan's
nodes and edges, and what only a run adds: instances made by Send, edges drawn
by Goto, and the child runs that a node has called, as lanes inside that node.
`reshapes` says whether an event adds to it, so a page lays out once and again
only then.  Its *marks* are what is true at a moment: which node runs, which
edge was taken.  `marks_of` tells what one event changes, and a page applies it
by setting attributes, forwards while the run is live and backwards in time.

A call and a transfer are two drawings.  A call is a lane inside the caller: a
line goes in, a line comes back.  A transfer is an arrow from node to node with
no way back: that is what a Goto is when nothing leads home, unless it only
goes to the step that closes the run.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NotRequired, Protocol, TypedDict
from urllib.parse import quote

from playground.kernel.command import END
from playground.kernel.eventlog import root_of
from playground.kernel.values import JsonValue
from playground.web import layered

Direction = Literal["right", "down"]
EdgeKind = Literal["edge", "goto", "send", "transfer"]


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


@dataclass(frozen=True, slots=True)
class Mark:
    """What an event changes in the picture: the element `id` is in `state` from now on, perhaps in `wave`."""

    id: str
    state: str
    wave: int = 0

    def json(self) -> dict[str, JsonValue]:
        """As it is sent to the page."""
        mark: dict[str, JsonValue] = {"id": self.id, "state": self.state}
        if self.wave:
            mark["wave"] = self.wave
        return mark


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node as drawn: a box with a head, and below it whatever it holds.

    Args:
        name: its label, cut to fit; `title` is the whole of it.
        kind: `function`, `agent`, `tool`, `model` or `plan`.
        within: the element of the template that it is an instance of.
        follows: the titles of the nodes that its edges lead to, for the list form.
    """

    id: str
    key: str
    run_id: str
    name: str
    title: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    state: str = "pending"
    wave: int = 0
    template: bool = False
    instance: bool = False
    within: str = ""
    entry: bool = False
    terminal: bool = False
    join: str = "all"
    depth: int = 0
    follows: tuple[str, ...] = ()
    more: int = 0

    def moved(self, dx: float, dy: float) -> GraphNode:
        """The same node elsewhere."""
        return replace(self, x=round(self.x + dx, 1), y=round(self.y + dy, 1))


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its arrowhead: SVG paths, shifted by `dx`, `dy`, like the label's place `x`, `y`."""

    path: str
    head: str
    x: float = 0.0
    y: float = 0.0
    back: bool = False
    dx: float = 0.0
    dy: float = 0.0

    def moved(self, dx: float, dy: float) -> Line:
        """The same line elsewhere."""
        return replace(self, dx=round(self.dx + dx, 1), dy=round(self.dy + dy, 1))


@dataclass(frozen=True, slots=True)
class GraphLane:
    """A child run as drawn, inside the node that called it; `call` and `back` are the two lines."""

    id: str
    run_id: str
    name: str
    title: str
    caller: str
    x: float
    y: float
    width: float
    height: float
    call: Line
    back: Line
    state: str = "running"
    depth: int = 1

    def moved(self, dx: float, dy: float) -> GraphLane:
        """The same lane elsewhere, with its two lines."""
        x, y = round(self.x + dx, 1), round(self.y + dy, 1)
        return replace(self, x=x, y=y, call=self.call.moved(dx, dy), back=self.back.moved(dx, dy))


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge as drawn, its label in the middle of its line."""

    id: str
    source: str
    target: str
    line: Line
    kind: EdgeKind
    conditional: bool
    label: str
    label_width: float
    state: str = "possible"


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole picture, in the order in which it is painted, and the marks of its last moment."""

    width: float
    height: float
    direction: Direction = "right"
    boxes: tuple[GraphNode | GraphLane, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    starts: tuple[Line, ...] = ()

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes alone."""
        return tuple(box for box in self.boxes if isinstance(box, GraphNode))

    @property
    def large(self) -> bool:
        """Whether it is better scrolled than shrunk."""
        return self.width > 1700 or self.height > 1100


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

FIT = (960.0, 460.0)
"""The room that the direction is chosen for."""

HEAD = 46.0
WIDEST = 208.0
NARROWEST = 148.0
SHOWN = 6
"""How many instances or lanes a node shows; the list form names all."""

_PAD = 14.0
_TRUNK = 26.0
_CAPTION = 22.0
_MARGIN = 26.0
_ICON = 38.0
_ROW = 34.0

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


def node_id(run_id: str, key: str) -> str:
    """The id of a node's element on the page."""
    return f"node-{_within(run_id)}/{quote(key, safe='')}"


def edge_id(run_id: str, source: str, target: str) -> str:
    """The id of an edge's element on the page."""
    return f"edge-{_within(run_id)}/{quote(_template(source), safe='')}/{quote(_template(target), safe='')}"


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
    nested = fact.kind == "node_parked" and fact.data.get("nested")
    return "waiting" if nested else _STATES.get(fact.kind, "")


def marks_of(fact: Fact) -> tuple[Mark, ...]:
    """What one event changes in the picture; nothing for most kinds."""
    data, run_id = fact.data, fact.run_id
    node, wave = _text(data, "node"), _int(data, "wave")
    marks: list[Mark] = []
    state = state_after(fact)
    if state and node:
        marks.append(Mark(node_id(run_id, node), state, wave))
    if fact.kind == "node_started":
        why = data.get("why")
        if _text(why, "code") in ("edges", "goto"):
            marks += [Mark(edge_id(run_id, source, node), "taken", wave) for source in _texts(why, "nodes")]
    elif fact.kind == "node_skipped":
        why = data.get("why")
        if _text(why, "code") in ("dead_edges", "skipped_predecessors"):
            marks += [Mark(edge_id(run_id, source, node), "dead") for source in _texts(why, "nodes")]
    elif fact.kind == "control":
        target = _text(data, "goto") or _text(data, "send")
        if target and target != END:
            marks.append(Mark(edge_id(run_id, _text(data, "by"), target), "taken", wave))
    elif fact.kind == "delegated":
        marks.append(Mark(lane_id(_text(data, "child")), "running", wave))
    elif fact.kind in ("run_completed", "run_failed") and _within(run_id):
        marks.append(Mark(lane_id(run_id), "completed" if fact.kind == "run_completed" else "failed", wave))
    return tuple(marks)


def graph(
    topology: Topology | None,
    facts: Iterable[Fact] = (),
    *,
    children: Mapping[str, Topology] | None = None,
    direction: Direction | None = None,
) -> Graph:
    """The picture of a plan, or of a run of it up to the last of `facts`.

    Args:
        topology: the root plan; None when its scenario is gone, then the events draw what they know.
        facts: the events of the whole tree, in order.
        children: topologies of child runs, by run id or by the name they were called with.
        direction: which way it flows; without one, the way that fits the page better.
    """
    story = _Story.of(facts)
    children = children or {}
    drawn = [
        _draw(topology, story, children, flow)
        for flow in (("right", "down") if direction is None else (direction,))
    ]
    return max(drawn, key=_fit)


def _fit(picture: Graph) -> float:
    """How large it can be shown; right is how waves are read, so down has to be worth it."""
    scale = min(1.0, FIT[0] / picture.width, FIT[1] / picture.height)
    return scale * 1.2 if picture.direction == "right" else scale


@dataclass(slots=True)
class _Chapter:
    """What the events of one run add to its plan."""

    seen: dict[str, None] = field(default_factory=dict)
    entries: set[str] = field(default_factory=set)
    moves: dict[tuple[str, str], EdgeKind] = field(default_factory=dict)
    flows: dict[tuple[str, str], None] = field(default_factory=dict)
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    def instances(self, template: str) -> list[str]:
        return [key for key in self.seen if key.startswith(f"{template}#")]


@dataclass(slots=True)
class _Story:
    """All chapters by run id, and the last mark of each element."""

    root: str = ""
    chapters: dict[str, _Chapter] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> _Story:
        story = cls()
        for fact in facts:
            story.root = story.root or root_of(fact.run_id)
            chapter = story.chapters.setdefault(fact.run_id, _Chapter())
            data, node = fact.data, _text(fact.data, "node")
            if node:
                chapter.seen.setdefault(node)
            if fact.kind == "node_started":
                why = data.get("why")
                code = _text(why, "code")
                if code == "edges":
                    sources = _texts(why, "nodes")
                    chapter.flows.update({(_template(source), _template(node)): None for source in sources})
                elif code == "entry":
                    chapter.entries.add(node)
            elif fact.kind == "control":
                goto, sent, by = _text(data, "goto"), _text(data, "send"), _template(_text(data, "by"))
                if goto and goto != END:
                    chapter.moves.setdefault((by, goto), "goto")
                elif sent:
                    chapter.moves.setdefault((by, sent), "send")
            elif fact.kind == "delegated":
                child = _text(data, "child")
                chapter.calls.append((node, child, _text(data, "name") or child))
            story.marks.update((mark.id, mark) for mark in marks_of(fact))
        return story

    def chapter(self, run_id: str) -> _Chapter:
        return self.chapters.get(run_id) or _Chapter()

    def mark(self, id_: str, otherwise: str = "pending") -> Mark:
        return self.marks.get(id_) or Mark(id_, otherwise)


@dataclass(slots=True)
class _Block:
    """A laid-out plan whose corner is at the origin."""

    width: float
    height: float
    boxes: list[GraphNode | GraphLane] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    starts: list[Line] = field(default_factory=list)
    enter: layered.Point | None = None


def _draw(
    topology: Topology | None, story: _Story, children: Mapping[str, Topology], direction: Direction
) -> Graph:
    block = _plan(topology, story.root, story, children, direction, 0)
    left, top = (_MARGIN + 18, _MARGIN) if direction == "right" else (_MARGIN, _MARGIN + 18)
    moved = _moved(block, left, top)
    return Graph(
        round(block.width + left + _MARGIN, 1),
        round(block.height + top + _MARGIN, 1),
        direction,
        tuple(moved.boxes),
        tuple(moved.edges),
        tuple(moved.starts),
    )


def _plan(
    topology: Topology | None,
    run_id: str,
    story: _Story,
    children: Mapping[str, Topology],
    direction: Direction,
    depth: int,
) -> _Block:
    """Lay out one plan with everything inside its nodes."""
    chapter = story.chapter(run_id)
    shapes = _node_shapes(topology, chapter)
    edges = _edge_shapes(topology, chapter, shapes)
    inner = {shape["key"]: _inside(shape["key"], run_id, story, children, depth) for shape in shapes}
    sizes = {shape["key"]: _size(shape, inner[shape["key"]]) for shape in shapes}
    boxes = []
    for shape in shapes:
        key = shape["key"]
        width, height = sizes[key]
        over = 34.0 if (key, key) in edges else 0.0
        if direction == "right":
            boxes.append(layered.Box(key, width, HEAD / 2 + over, height - HEAD / 2))
        else:
            boxes.append(layered.Box(key, height, width / 2, width / 2 + over, width / 2))
    links = []
    for (source, target), (_, _, label) in edges.items():
        size = (_width(label, 11) + 14, 18.0) if label else (0.0, 0.0)
        links.append(layered.Link(source, target, size if direction == "right" else size[::-1]))
    drawing = layered.draw(boxes, links, _hints(shapes, edges))
    return _compose(run_id, shapes, edges, inner, sizes, drawing, story, direction, depth)


def _node_shapes(topology: Topology | None, chapter: _Chapter) -> list[NodeShape]:
    """The plan's nodes; where the plan is gone, those that the events name."""
    if topology is not None:
        return list(topology["nodes"])
    return [
        {"key": key, "template": bool(chapter.instances(key)), "entry": key in chapter.entries}
        for key in dict.fromkeys(map(_template, chapter.seen))
    ]


_Edges = dict[tuple[str, str], tuple[EdgeKind, bool, str]]


def _edge_shapes(topology: Topology | None, chapter: _Chapter, shapes: Sequence[NodeShape]) -> _Edges:
    """Kind, condition and label of every edge: the plan's, then those that only commands have drawn."""
    keys = {shape["key"] for shape in shapes}
    closing = {s["key"] for s in shapes if s.get("terminal") and s.get("kind", "function") == "function"}
    edges: _Edges = {}
    for edge in topology["edges"] if topology else ():
        pair = (edge["source"], edge["target"])
        edges.setdefault(pair, ("edge", edge.get("conditional", False), edge.get("label") or ""))
    if topology is None:
        edges.update({pair: ("edge", False, "") for pair in chapter.flows})
    reach = _reach([*edges, *chapter.moves])
    for (source, target), kind in chapter.moves.items():
        if kind == "goto" and source not in reach[target] | {target} and target not in closing:
            kind = "transfer"
        edges.setdefault((source, target), (kind, False, "" if kind == "goto" else kind))
    return {pair: edge for pair, edge in edges.items() if pair[0] in keys and pair[1] in keys}


def _reach(pairs: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    """From each source of a move, every node that can be reached."""
    after: dict[str, list[str]] = {}
    for source, target in pairs:
        after.setdefault(source, []).append(target)
    reach: dict[str, set[str]] = {}
    for start in dict.fromkeys(target for _, target in pairs):
        seen: set[str] = set()
        open_ = [start]
        while open_:
            for target in after.get(open_.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    open_.append(target)
        reach[start] = seen
    return reach


def _hints(shapes: Sequence[NodeShape], edges: _Edges) -> list[tuple[str, str]]:
    """A node that only a command can start follows the node written before it."""
    entries = _entries(shapes, edges)
    entered = {
        target for (source, target), (kind, _, _) in edges.items() if source != target and kind == "edge"
    }
    return [
        (before["key"], shape["key"])
        for before, shape in pairwise(shapes)
        if shape["key"] not in entered | entries
    ]


@dataclass(slots=True)
class _Inside:
    """What a node holds: instances as rows, then lanes; `more` counts what is not shown."""

    instances: list[str]
    lanes: list[tuple[str, str, _Block]]
    more: int

    @property
    def rows(self) -> list[str]:
        return self.instances[:SHOWN]


def _inside(key: str, run_id: str, story: _Story, children: Mapping[str, Topology], depth: int) -> _Inside:
    chapter = story.chapter(run_id)
    instances = chapter.instances(key)
    calls = [call for call in chapter.calls if _template(call[0]) == key]
    lanes = []
    for node, child, name in calls[:SHOWN]:
        plan = children.get(child) or children.get(name)
        caption = f"{node.partition('#')[2]} · {name}" if "#" in node else name
        lanes.append((child, caption, _plan(plan, child, story, children, "right", depth + 1)))
    return _Inside(instances, lanes, max(0, len(instances) - SHOWN) + max(0, len(calls) - SHOWN))


def _size(shape: NodeShape, inside: _Inside) -> tuple[float, float]:
    """Width and height of a node with what it holds."""
    icon = 0 if shape.get("kind", "function") == "function" else 14
    width = min(WIDEST, max(NARROWEST, _width(_title(shape), 13) + _ICON + 2 * _PAD + icon))
    height = HEAD
    if inside.rows:
        width = max(width, WIDEST)
        height += len(inside.rows) * _ROW + _PAD / 2
    for _, caption, block in inside.lanes:
        width = max(width, max(block.width, _width(caption, 11) + 40) + 2 * _PAD + 2 * _TRUNK)
        height += _lane_height(block) + _PAD
    return width, height + (_ROW - 8 if inside.more else 0.0)


def _lane_height(block: _Block) -> float:
    return _CAPTION + block.height + _PAD * 1.5


def _compose(
    run_id: str,
    shapes: Sequence[NodeShape],
    edges: _Edges,
    inner: Mapping[str, _Inside],
    sizes: Mapping[str, tuple[float, float]],
    drawing: layered.Drawing,
    story: _Story,
    direction: Direction,
    depth: int,
) -> _Block:
    """Turn places along and across into x and y, and put everything into one block."""
    right = direction == "right"
    block = _Block(*((drawing.length, drawing.breadth) if right else (drawing.breadth, drawing.length)))
    entries = _entries(shapes, edges)
    titles = {shape["key"]: _title(shape) for shape in shapes}
    corners: dict[str, layered.Point] = {}
    for shape in shapes:
        key = shape["key"]
        along, across = drawing.places[key]
        corner = (along, across - HEAD / 2) if right else (across - sizes[key][0] / 2, along)
        corners[key] = corner
        follows = tuple(titles[target] for source, target in edges if source == key)
        node = _node(run_id, shape, corner, sizes[key], story, depth, key in entries, follows, inner[key])
        block.boxes.append(node)
        _fill(block, node, inner[key], story)
        if key in entries:
            block.enter = block.enter or (node.x, node.y + HEAD / 2)
            if not depth:
                block.starts.append(_start(node, direction))
    for (pair, shape_), route in zip(edges.items(), drawing.routes, strict=True):
        x, y = corners[pair[0]]
        line = _line(route, direction) if route else _loop(x + sizes[pair[0]][0] - 24, y)
        block.edges.append(_edge(run_id, pair, shape_, line, story))
    return block


def _entries(shapes: Sequence[NodeShape], edges: _Edges) -> set[str]:
    """The nodes that a run starts with: those marked, else those that nothing leads to."""
    marked = {shape["key"] for shape in shapes if shape.get("entry")}
    entered = {
        target for (source, target), (kind, _, _) in edges.items() if source != target and kind == "edge"
    }
    return marked or {s["key"] for s in shapes if s["key"] not in entered and not s.get("template")}


def _node(
    run_id: str,
    shape: NodeShape,
    corner: layered.Point,
    size: tuple[float, float],
    story: _Story,
    depth: int,
    entry: bool,
    follows: tuple[str, ...],
    inside: _Inside,
) -> GraphNode:
    title = _title(shape)
    kind = shape.get("kind", "function")
    mark = story.mark(node_id(run_id, shape["key"]))
    if inside.instances:
        states = {story.mark(node_id(run_id, key)).state for key in inside.instances}
        mark = replace(mark, state=next((s for s in LOUDEST if s in states), "pending"))
    room = size[0] - _ICON - 2 * _PAD - (0 if kind == "function" else 14)
    return GraphNode(
        id=mark.id,
        key=shape["key"],
        run_id=run_id,
        name=_cut(title, 13, room),
        title=title,
        kind=kind,
        x=round(corner[0], 1),
        y=round(corner[1], 1),
        width=round(size[0], 1),
        height=round(size[1], 1),
        state=mark.state,
        wave=mark.wave,
        template=shape.get("template", False),
        entry=entry,
        terminal=shape.get("terminal", False),
        join=shape.get("join", "all"),
        depth=depth,
        follows=follows,
        more=inside.more,
    )


def _fill(block: _Block, node: GraphNode, inside: _Inside, story: _Story) -> None:
    """Put a node's instances and lanes below its head."""
    y = node.y + HEAD
    for key in inside.rows:
        mark = story.mark(node_id(node.run_id, key))
        name = key.partition("#")[2]
        block.boxes.append(
            GraphNode(
                id=mark.id,
                key=key,
                run_id=node.run_id,
                name=_cut(name, 12, node.width - 2 * _PAD - _ICON),
                title=key,
                kind=node.kind,
                x=node.x + _PAD,
                y=y,
                width=node.width - 2 * _PAD,
                height=_ROW - 6,
                state=mark.state,
                wave=mark.wave,
                instance=True,
                within=node.id,
                depth=node.depth,
            )
        )
        y += _ROW
    for child, caption, inner in inside.lanes:
        lane = _lane(node, child, caption, inner, y, story)
        moved = _moved(inner, lane.x + _PAD, lane.y + _CAPTION + _PAD / 2)
        block.boxes += [lane, *moved.boxes]
        block.edges += moved.edges
        y += lane.height + _PAD


def _lane(node: GraphNode, child: str, caption: str, inner: _Block, y: float, story: _Story) -> GraphLane:
    x, width, height = node.x + _TRUNK, node.width - 2 * _TRUNK, _lane_height(inner)
    mark = story.mark(lane_id(child), "running")
    enter = inner.enter or (0.0, inner.height / 2)
    into = (x + _PAD + enter[0], y + _CAPTION + _PAD / 2 + enter[1])
    down, up, top = node.x + _TRUNK / 2, node.x + node.width - _TRUNK / 2, node.y + HEAD - 7
    out = y + height / 2
    return GraphLane(
        id=mark.id,
        run_id=child,
        name=_cut(caption, 11, width - 40),
        title=caption,
        caller=node.title,
        x=round(x, 1),
        y=round(y, 1),
        width=round(width, 1),
        height=round(height, 1),
        call=Line(f"M{down:.1f} {top:.1f}V{into[1] - 6:.1f}q0 6 6 6H{into[0] - 5:.1f}", _head(into, (1, 0))),
        back=Line(
            f"M{x + width:.1f} {out:.1f}H{up - 6:.1f}q6 0 6 -6V{top + 5:.1f}", _head((up, top), (0, -1))
        ),
        state=mark.state,
        depth=node.depth + 1,
    )


def _edge(
    run_id: str, pair: tuple[str, str], shape: tuple[EdgeKind, bool, str], line: Line, story: _Story
) -> GraphEdge:
    kind, conditional, label = shape
    mark = story.mark(edge_id(run_id, *pair), "possible")
    return GraphEdge(mark.id, *pair, line, kind, conditional, label, _width(label, 11), mark.state)


def _line(route: layered.Route, direction: Direction) -> Line:
    """The route as a smooth path that starts and ends along the flow."""
    right = direction == "right"

    def xy(along: float, across: float) -> str:
        return f"{along:.1f} {across:.1f}" if right else f"{across:.1f} {along:.1f}"

    spans = route.spans
    way = -1 if route.back else 1
    tip = spans[-1][1]
    last = (tip[0] - 5 * way, tip[1])
    parts = [f"M{xy(*spans[0][0])}L{xy(*spans[0][1])}"]
    for (_, (a0, c0)), (start, end) in pairwise([*spans[:-1], (last, last)]):
        half = (a0 + start[0]) / 2
        parts.append(f"C{xy(half, c0)} {xy(half, start[1])} {xy(*start)}")
        if start != end:
            parts.append(f"L{xy(*end)}")
    x, y = route.label if right else route.label[::-1]
    head = _head(tip, (way, 0)) if right else _head(tip[::-1], (0, way))
    return Line("".join(parts), head, round(x, 1), round(y, 1), route.back)


def _loop(x: float, y: float) -> Line:
    """A line from the top of a box back to it."""
    curve = f"M{x:.1f} {y:.1f}c12 -36 -38 -36 -26 -5"
    return Line(curve, _head((x - 26, y), (0, 1)), x - 13, y - 25, True)


def _start(node: GraphNode, direction: Direction) -> Line:
    """The dot before an entry and the line into it."""
    x, y = (node.x, node.y + HEAD / 2) if direction == "right" else (node.x + node.width / 2, node.y)
    if direction == "right":
        return Line(f"M{x - 22:.1f} {y:.1f}H{x - 5:.1f}", _head((x, y), (1, 0)), x - 26, y)
    return Line(f"M{x:.1f} {y - 22:.1f}V{y - 5:.1f}", _head((x, y), (0, 1)), x, y - 26)


def _head(tip: layered.Point, way: tuple[int, int]) -> str:
    """An arrowhead at `tip` that points `way`, one step along an axis."""
    (x, y), (dx, dy) = tip, way
    left = (x - 8 * dx - 4 * dy, y - 8 * dy - 4 * dx)
    right = (x - 8 * dx + 4 * dy, y - 8 * dy + 4 * dx)
    return f"M{x:.1f} {y:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}Z"


def _moved(block: _Block, dx: float, dy: float) -> _Block:
    """The block at another place."""
    boxes = [box.moved(dx, dy) for box in block.boxes]
    edges = [replace(edge, line=edge.line.moved(dx, dy)) for edge in block.edges]
    starts = [line.moved(dx, dy) for line in block.starts]
    return _Block(block.width, block.height, boxes, edges, starts, block.enter)


def _title(shape: NodeShape) -> str:
    return shape.get("label") or shape["key"]


def _template(key: str) -> str:
    return key.partition("#")[0]


def _width(text: str, size: float) -> float:
    """About how wide a text is drawn, in pixels; system fonts differ, so rather too wide."""
    return sum(_em(char) for char in text) * size


def _em(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.02
    if char in "il.,:;'|!()[] jtf":
        return 0.39
    return 0.75 if char.isupper() or char in "mwMW@%—" else 0.63


def _cut(text: str, size: float, room: float) -> str:
    """The text, cut with an ellipsis where it would not fit."""
    if _width(text, size) <= room:
        return text
    room -= size
    kept = ""
    for char in text:
        room -= _em(char) * size
        if room < 0:
            break
        kept += char
    return kept.rstrip() + "…"


def _text(data: object, key: str) -> str:
    found = data.get(key) if isinstance(data, Mapping) else None
    return found if isinstance(found, str) else ""


def _int(data: Mapping[str, JsonValue], key: str) -> int:
    found = data.get(key)
    return found if isinstance(found, int) else 0


def _texts(data: object, key: str) -> list[str]:
    found = data.get(key) if isinstance(data, Mapping) else None
    if isinstance(found, str):
        return [found]
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []
