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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Literal

from playground.web import layered
from playground.web.graphmarks import (
    LOUDEST,
    OLDEST,
    Chapter,
    EdgeKind,
    EdgeShape,
    Fact,
    Mark,
    NodeShape,
    Story,
    Topology,
    edge_id,
    lane_id,
    marks_json,
    marks_of,
    node_id,
    reshapes,
    state_after,
    template_of,
)

__all__ = [
    "LOUDEST",
    "EdgeShape",
    "Fact",
    "Graph",
    "GraphEdge",
    "GraphLane",
    "GraphNode",
    "Line",
    "Mark",
    "NodeShape",
    "Stop",
    "Topology",
    "edge_id",
    "graph",
    "lane_id",
    "marks_json",
    "marks_of",
    "node_id",
    "reshapes",
    "state_after",
]

Direction = Literal["right", "down"]

Stop = Literal["before", "after"]
"""On which side of a node a run stops."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node as drawn: a box with a head, and below it whatever it holds.

    Args:
        name: its label, cut to fit; `title` is the whole of it.
        kind: `function`, `agent`, `tool`, `model` or `plan`.
        within: the element of the template that it is an instance of.
        small: whether it lies so deep that it shows its name alone.
        last: the position of the event that it has its state from, or 0.
        age: how many waves have begun since it was last active, at most `OLDEST`.
        stops: where it has breakpoints.
        also: the ids that it had in earlier runs of the same lane.
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
    last: int = 0
    age: int = OLDEST
    template: bool = False
    instance: bool = False
    within: str = ""
    entry: bool = False
    terminal: bool = False
    join: str = "all"
    depth: int = 0
    follows: tuple[str, ...] = ()
    more: int = 0
    small: bool = False
    stops: tuple[Stop, ...] = ()
    also: tuple[str, ...] = ()

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
    """A child run as drawn, inside the node that called it; `call` and `back` are the two lines.

    When a node calls the same agent again, the lane is reused: it shows the last of `runs`.
    """

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
    runs: int = 1
    also: tuple[str, ...] = ()

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
    age: int = OLDEST
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole picture, in the order in which it is painted, and the marks of its last moment, at `beat`."""

    width: float
    height: float
    direction: Direction = "right"
    boxes: tuple[GraphNode | GraphLane, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    starts: tuple[Line, ...] = ()
    beat: int = 0

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes alone."""
        return tuple(box for box in self.boxes if isinstance(box, GraphNode))

    @property
    def large(self) -> bool:
        """Whether it is better scrolled than shrunk."""
        return self.width > 2300 or self.height > 1200


FIT = (960.0, 460.0)
"""The room that the direction is chosen for."""

HEAD = 46.0
SMALL_HEAD = 32.0
READABLE = 0.83
"""A picture that would be shown smaller is tried downwards, and with small nodes inside of calls."""

WIDEST = 208.0
NARROWEST = 148.0
SMALL = 84.0
SHOWN = 6
"""How many instances or lanes a node shows; the list form names all."""

MOST_RUNS = 12
"""A lane that is used again and again answers for this many of its runs when one goes back in time."""

_PAD = 14.0
_TRUNK = 26.0
_CAPTION = 22.0
_MARGIN = 26.0
_ICON = 38.0
_ROW = 34.0


def graph(
    topology: Topology | None,
    facts: Iterable[Fact] | Story = (),
    *,
    children: Mapping[str, Topology] | None = None,
    stops: Collection[tuple[Stop, str]] = (),
    direction: Direction | None = None,
) -> Graph:
    """The picture of a plan, or of a run of it up to the last of `facts`.

    Args:
        topology: the root plan; None when its scenario is gone, then the events draw what they know.
        facts: the events of the whole tree, in order, or what they add up to.
        children: topologies of child runs, by run id or by the name they were called with.
        stops: breakpoints, each with the path of its node from the root run.
        direction: which way it flows; without one, the way that fits the page better.
    """
    story = facts if isinstance(facts, Story) else Story.of(facts)
    children = children or {}
    known = [*([topology] if topology else []), *children.values()]
    flows: tuple[Direction, ...] = ("right", "down") if direction is None else (direction,)
    drawn: list[Graph] = []
    for deep, flow in product((2, 1) if any(story.calls) else (2,), flows):
        plot = _Plot(story, children, known, deep, stops)
        drawn.append(_framed(plot.block(topology, (story.root,), flow, 0), flow))
        if _scale(drawn[-1]) > READABLE:
            break
    return replace(max(drawn, key=_fit), beat=story.beat)


def _scale(picture: Graph) -> float:
    return min(1.0, FIT[0] / picture.width, FIT[1] / picture.height)


def _fit(picture: Graph) -> float:
    """How large it can be shown; right is how waves are read, so down has to be worth it."""
    return _scale(picture) * (1.2 if picture.direction == "right" else 1.0)


@dataclass(slots=True)
class _Block:
    """A laid-out plan whose corner is at the origin; a call enters it at `enter`."""

    width: float
    height: float
    boxes: list[GraphNode | GraphLane] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    starts: list[Line] = field(default_factory=list)
    enter: layered.Point | None = None

    def moved(self, dx: float, dy: float) -> _Block:
        """The block at another place."""
        boxes = [box.moved(dx, dy) for box in self.boxes]
        edges = [replace(edge, line=edge.line.moved(dx, dy)) for edge in self.edges]
        starts = [line.moved(dx, dy) for line in self.starts]
        return _Block(self.width, self.height, boxes, edges, starts, self.enter)


def _framed(block: _Block, direction: Direction) -> Graph:
    left, top = (_MARGIN + 18, _MARGIN) if direction == "right" else (_MARGIN, _MARGIN + 18)
    moved = block.moved(left, top)
    return Graph(
        round(block.width + left + _MARGIN, 1),
        round(block.height + top + _MARGIN, 1),
        direction,
        tuple(moved.boxes),
        tuple(moved.edges),
        tuple(moved.starts),
    )


_Edges = dict[tuple[str, str], tuple[EdgeKind, bool, str]]
"""Kind, condition and label of each edge."""


@dataclass(slots=True)
class _Inside:
    """What a node holds: instances as rows, then lanes; `more` counts what is not shown."""

    instances: list[str]
    lanes: list[tuple[tuple[str, ...], str, _Block]]
    more: int

    @property
    def rows(self) -> list[str]:
        return self.instances[:SHOWN]


@dataclass(slots=True)
class _Plan:
    """One plan on its way to a block: what it consists of, and what is inside its nodes."""

    runs: tuple[str, ...]
    depth: int
    small: bool
    shapes: list[NodeShape]
    edges: _Edges
    inner: dict[str, _Inside]

    @property
    def head(self) -> float:
        return SMALL_HEAD if self.small else HEAD

    @property
    def entries(self) -> set[str]:
        """The nodes that a run starts with: those marked, else those that nothing leads to."""
        marked = {shape["key"] for shape in self.shapes if shape.get("entry")}
        entered = self.entered
        return marked or {s["key"] for s in self.shapes if s["key"] not in entered and not s.get("template")}

    @property
    def entered(self) -> set[str]:
        """The nodes that an edge of the plan leads to."""
        return {
            target
            for (source, target), (kind, _, _) in self.edges.items()
            if source != target and kind == "edge"
        }

    def follows(self) -> dict[str, list[str]]:
        """For each node the titles of those that its edges lead to."""
        titles = {shape["key"]: _title(shape) for shape in self.shapes}
        found: dict[str, list[str]] = {key: [] for key in titles}
        for source, target in self.edges:
            found[source].append(titles[target])
        return found

    def hints(self) -> list[tuple[str, str]]:
        """A node that only a command can start follows the node written before it."""
        placed = self.entered | self.entries
        pairs = pairwise(shape["key"] for shape in self.shapes)
        return [(before, key) for before, key in pairs if key not in placed]

    def size(self, shape: NodeShape) -> tuple[float, float]:
        """Width and height of a node with what it holds."""
        inside, small = self.inner[shape["key"]], self.small
        icon = 0 if small or shape.get("kind", "function") == "function" else 14
        text = (
            _width(_title(shape), 12 if small else 13)
            + (30 if small else _ICON)
            + (_PAD if small else 2 * _PAD)
        )
        width = min(WIDEST, max(SMALL if small else NARROWEST, text + icon))
        height = self.head
        if inside.rows:
            width = max(width, WIDEST)
            height += len(inside.rows) * _ROW + _PAD / 2
        for _, caption, block in inside.lanes:
            width = max(width, max(block.width, _width(caption, 11) + 60) + 2 * _PAD + 2 * _TRUNK)
            height += _lane_height(block) + _PAD
        return width, height + (_ROW - 8 if inside.more else 0.0)


@dataclass(slots=True)
class _Plot:
    """Draws plans inside plans: from the story, and the topologies that are known.

    From `deep` calls inside each other on, nodes are small.
    """

    story: Story
    children: Mapping[str, Topology]
    known: Sequence[Topology]
    deep: int
    stops: Collection[tuple[Stop, str]] = ()

    def block(
        self, topology: Topology | None, runs: tuple[str, ...], direction: Direction, depth: int
    ) -> _Block:
        """Lay out one plan with everything inside its nodes.

        Args:
            runs: its runs; what is marked is the last of them.
        """
        chapter = self.story.chapter(runs)
        topology = topology or _like(chapter, self.known)
        shapes = _node_shapes(topology, chapter)
        inner = {shape["key"]: self.inside(shape["key"], chapter, depth) for shape in shapes}
        plan = _Plan(runs, depth, depth >= self.deep, shapes, _edge_shapes(topology, chapter, shapes), inner)
        sizes = {shape["key"]: plan.size(shape) for shape in shapes}
        drawing = _drawing(plan, sizes, direction)
        right = direction == "right"
        size = (drawing.length, drawing.breadth) if right else (drawing.breadth, drawing.length)
        block = _Block(*size)
        entries, follows, corners = plan.entries, plan.follows(), dict[str, layered.Point]()
        for shape in shapes:
            key = shape["key"]
            along, across = drawing.places[key]
            corners[key] = (along, across - plan.head / 2) if right else (across - sizes[key][0] / 2, along)
            node = self.node(plan, shape, corners[key], sizes[key], key in entries, follows[key])
            block.boxes.append(node)
            self.fill(block, node, plan)
            if key in entries:
                block.enter = block.enter or (node.x, node.y + plan.head / 2)
                if not depth:
                    block.starts.append(_start(node, direction))
        for (pair, shape_), route in zip(plan.edges.items(), drawing.routes, strict=True):
            x, y = corners[pair[0]]
            line = _line(route, direction) if route else _loop(x + sizes[pair[0]][0] - 24, y)
            block.edges.append(self.edge(plan, pair, shape_, line))
        return block

    def inside(self, key: str, chapter: Chapter, depth: int) -> _Inside:
        """The instances and the called runs inside a node; runs of the same agent share a lane."""
        instances = chapter.instances(key)
        lanes: dict[str, list[str]] = {}
        plans: dict[str, Topology | None] = {}
        for node, child, name in chapter.calls:
            if template_of(node) == key:
                caption = f"{node.partition('#')[2]} · {name}" if "#" in node else name
                lanes.setdefault(caption, []).append(child)
                plans[caption] = self.children.get(child) or self.children.get(name)
        drawn = [
            (
                tuple(runs[-MOST_RUNS:]),
                caption,
                self.block(plans[caption], tuple(runs[-MOST_RUNS:]), "right", depth + 1),
            )
            for caption, runs in list(lanes.items())[:SHOWN]
        ]
        return _Inside(instances, drawn, max(0, len(instances) - SHOWN) + max(0, len(lanes) - SHOWN))

    def node(
        self,
        plan: _Plan,
        shape: NodeShape,
        corner: layered.Point,
        size: tuple[float, float],
        entry: bool,
        follows: Sequence[str],
    ) -> GraphNode:
        key, title, kind = shape["key"], _title(shape), shape.get("kind", "function")
        inside, small, run_id = plan.inner[key], plan.small, plan.runs[-1]
        mark = self.story.mark(node_id(run_id, key))
        if inside.instances:
            marks = [self.story.mark(node_id(run_id, instance)) for instance in inside.instances]
            states = {mark.state for mark in marks}
            loudest = next((s for s in LOUDEST if s in states), "pending")
            beat, last = max(mark.beat for mark in marks), max(mark.at for mark in marks)
            mark = mark._replace(state=loudest, beat=beat, at=last)
        room = size[0] - (30 + _PAD if small else _ICON + 2 * _PAD + (0 if kind == "function" else 14))
        return GraphNode(
            id=mark.id,
            key=key,
            run_id=run_id,
            name=_cut(title, 12 if small else 13, room + 1),
            title=title,
            kind=kind,
            x=round(corner[0], 1),
            y=round(corner[1], 1),
            width=round(size[0], 1),
            height=round(size[1], 1),
            state=mark.state,
            wave=mark.wave,
            last=mark.at,
            age=self.story.age(mark),
            template=shape.get("template", False),
            entry=entry,
            terminal=shape.get("terminal", False),
            join=shape.get("join", "all"),
            depth=plan.depth,
            follows=tuple(follows),
            more=inside.more,
            small=small,
            stops=self.stopping(run_id, key),
            also=tuple(node_id(earlier, key) for earlier in plan.runs[:-1]),
        )

    def fill(self, block: _Block, node: GraphNode, plan: _Plan) -> None:
        """Put a node's instances and lanes below its head."""
        y = node.y + plan.head
        inside = plan.inner[node.key]
        for key in inside.rows:
            block.boxes.append(self.instance(node, key, y, _TRUNK if inside.lanes else _PAD))
            y += _ROW
        for runs, caption, inner in inside.lanes:
            lane = self.lane(node, runs, caption, inner, y, plan.head)
            moved = inner.moved(lane.x + _PAD, lane.y + _CAPTION + _PAD / 2)
            block.boxes += [lane, *moved.boxes]
            block.edges += moved.edges
            y += lane.height + _PAD

    def instance(self, node: GraphNode, key: str, y: float, inset: float) -> GraphNode:
        mark = self.story.mark(node_id(node.run_id, key))
        return GraphNode(
            id=mark.id,
            key=key,
            run_id=node.run_id,
            name=_cut(key.partition("#")[2], 12, node.width - 2 * inset - _ICON),
            title=key,
            kind=node.kind,
            x=round(node.x + inset, 1),
            y=y,
            width=round(node.width - 2 * inset, 1),
            height=_ROW - 6,
            state=mark.state,
            wave=mark.wave,
            last=mark.at,
            age=self.story.age(mark),
            instance=True,
            within=node.id,
            stops=self.stopping(node.run_id, key),
            depth=node.depth,
        )

    def stopping(self, run_id: str, key: str) -> tuple[Stop, ...]:
        """On which sides of a node the run stops."""
        path = self.story.chapters.get(run_id, Chapter()).path + key
        return tuple(side for side, named in self.stops if named == path)

    def lane(
        self, node: GraphNode, runs: tuple[str, ...], caption: str, inner: _Block, y: float, head: float
    ) -> GraphLane:
        x, width, height = node.x + _TRUNK, node.width - 2 * _TRUNK, _lane_height(inner)
        mark = self.story.mark(lane_id(runs[-1]), "running")
        enter = inner.enter or (0.0, inner.height / 2)
        into = (x + _PAD + enter[0], y + _CAPTION + _PAD / 2 + enter[1])
        down, up, top = node.x + _TRUNK / 2, node.x + node.width - _TRUNK / 2, node.y + head - 7
        out = y + height / 2
        call = f"M{down:.1f} {top:.1f}V{into[1] - 6:.1f}q0 6 6 6H{into[0] - 5:.1f}"
        back = f"M{x + width:.1f} {out:.1f}H{up - 6:.1f}q6 0 6 -6V{top + 5:.1f}"
        return GraphLane(
            id=mark.id,
            run_id=runs[-1],
            name=_cut(caption, 11, width - 60),
            title=caption,
            caller=node.title,
            x=round(x, 1),
            y=round(y, 1),
            width=round(width, 1),
            height=round(height, 1),
            call=Line(call, _head(into, (1, 0))),
            back=Line(back, _head((up, top), (0, -1))),
            state=mark.state,
            depth=node.depth + 1,
            runs=len(runs),
            also=tuple(map(lane_id, runs[:-1])),
        )

    def edge(
        self, plan: _Plan, pair: tuple[str, str], shape: tuple[EdgeKind, bool, str], line: Line
    ) -> GraphEdge:
        kind, conditional, label = shape
        mark = self.story.mark(edge_id(plan.runs[-1], *pair), "possible")
        also = tuple(edge_id(earlier, *pair) for earlier in plan.runs[:-1])
        age, width = self.story.age(mark), _width(label, 11)
        return GraphEdge(mark.id, *pair, line, kind, conditional, label, width, mark.state, age, also)


def _drawing(plan: _Plan, sizes: Mapping[str, tuple[float, float]], direction: Direction) -> layered.Drawing:
    """Where the nodes of a plan lie, along and across."""
    boxes = []
    for shape in plan.shapes:
        key = shape["key"]
        width, height = sizes[key]
        over = 34.0 if (key, key) in plan.edges else 0.0
        if direction == "right":
            boxes.append(layered.Box(key, width, plan.head / 2 + over, height - plan.head / 2))
        else:
            boxes.append(layered.Box(key, height, width / 2, width / 2 + over, width / 2))
    links = []
    for (source, target), (_, _, label) in plan.edges.items():
        size = (_width(label, 11) + 14, 18.0) if label else (0.0, 0.0)
        links.append(layered.Link(source, target, size if direction == "right" else size[::-1]))
    return layered.draw(boxes, links, plan.hints())


def _like(chapter: Chapter, known: Sequence[Topology]) -> Topology | None:
    """The plan that a run without one seems to follow: with all nodes that it names, and its entries."""
    seen = set(map(template_of, chapter.seen))
    for topology in known:
        entries = {shape["key"] for shape in topology["nodes"] if shape.get("entry")}
        if seen and seen <= {shape["key"] for shape in topology["nodes"]} and entries == chapter.entries:
            return topology
    return None


def _node_shapes(topology: Topology | None, chapter: Chapter) -> list[NodeShape]:
    """The plan's nodes; where the plan is gone, those that the events name."""
    if topology is not None:
        return list(topology["nodes"])
    return [
        {"key": key, "template": bool(chapter.instances(key)), "entry": key in chapter.entries}
        for key in dict.fromkeys(map(template_of, chapter.seen))
    ]


def _edge_shapes(topology: Topology | None, chapter: Chapter, shapes: Sequence[NodeShape]) -> _Edges:
    """The edges of the plan, then those that only commands have drawn."""
    keys = {shape["key"] for shape in shapes}
    closing = {s["key"] for s in shapes if s.get("terminal") and s.get("kind", "function") == "function"}
    edges: _Edges = {}
    for edge in topology["edges"] if topology else ():
        pair = (edge["source"], edge["target"])
        edges.setdefault(pair, ("edge", edge.get("conditional", False), edge.get("label") or ""))
    if topology is None:
        edges.update({pair: ("edge", False, "") for pair in chapter.flows})
    reach = _reach([*edges, *chapter.moves]) if "goto" in chapter.moves.values() else {}
    for (source, target), kind in chapter.moves.items():
        if kind == "goto" and source not in reach[target] | {target} and target not in closing:
            kind = "transfer"
        edges.setdefault((source, target), (kind, False, kind if kind in ("send", "transfer") else ""))
    return {pair: edge for pair, edge in edges.items() if pair[0] in keys and pair[1] in keys}


def _reach(pairs: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    """From each target, every node that can be reached."""
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


def _lane_height(block: _Block) -> float:
    return _CAPTION + block.height + _PAD * 1.5


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


def _title(shape: NodeShape) -> str:
    return shape.get("label") or shape["key"]


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
