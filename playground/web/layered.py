"""A layered drawing of boxes and links: pure, deterministic, of any size.

The method is Sugiyama's in five small steps: turn back links around, give each
box a rank, thread long links through invisible beads, order the ranks so that
few links cross, and pull everything towards its neighbours.  Every link owns a
bead halfway, which is the room for its label and the reason why no label ever
lies on a box.

Nothing here knows of x and y: boxes flow *along* one axis and lie side by side
*across* the other, and the caller turns that into right or down.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

Point = tuple[float, float]
"""A place as (along, across)."""

RANK_GAP = 18.0
FAN_GAP = 26.0
"""Where many links fan out the ranks stand this much further apart."""
ROW_GAP = 20.0
BEAD = 12.0
MOST_BEADS = 3_000
"""Links that would need more beads than this in all run around the drawing instead."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box: `length` along; `before` and `after` its line across, where links dock within `dock`."""

    key: str
    length: float
    before: float
    after: float
    dock: float = 20.0


@dataclass(frozen=True, slots=True)
class Link:
    """A link, with the size of its label along and across."""

    source: str
    target: str
    label: Point = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a link runs: straight within each pair of points, bent from pair to pair."""

    spans: tuple[tuple[Point, Point], ...]
    label: Point
    back: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Start along and line across of each box, the routes in the order of the links, and the size."""

    places: Mapping[str, Point]
    routes: tuple[Route | None, ...]
    length: float
    breadth: float


@dataclass(slots=True)
class _Item:
    """A box or a bead in its rank; a bead of little `force` gives way to the main line of the drawing."""

    length: float
    before: float
    after: float
    rank: int
    bead: bool
    force: float = 1.0
    at: float = 0.0
    index: int = 0
    up: list[_Item] = field(default_factory=list)
    down: list[_Item] = field(default_factory=list)


def draw(boxes: Sequence[Box], links: Sequence[Link], hints: Sequence[tuple[str, str]] = ()) -> Drawing:
    """Place boxes and route links.

    Args:
        boxes: in reading order; the first ones without a way in come first.
        links: links between them; one from a box to itself gets no route.
        hints: pairs that should follow each other although no link says so.
    """
    return _drawn(tuple(boxes), tuple(links), tuple(hints))


@lru_cache(maxsize=256)
def _drawn(boxes: tuple[Box, ...], links: tuple[Link, ...], hints: tuple[tuple[str, str], ...]) -> Drawing:
    """The drawing, kept: the graph of a run is drawn for every visit and has seldom changed its shape."""
    if not boxes:
        return Drawing({}, (), 0.0, 0.0)
    keys = [box.key for box in boxes]
    linked = {(link.source, link.target) for link in links}
    lines = [*links, *(Link(*hint) for hint in hints if hint not in linked)]
    pairs = [(line.source, line.target) for line in lines if line.source != line.target]
    back = _back_links(keys, pairs)
    ranks = _ranks(keys, [(b, a) if (a, b) in back else (a, b) for a, b in pairs])
    items = {b.key: _Item(b.length, b.before, b.after, ranks[b.key], False) for b in boxes}
    rows: list[list[_Item]] = [[] for _ in range(max(ranks.values()) + 1)]
    for item in items.values():
        rows[item.rank].append(item)
    chains = _thread(lines, items, back, rows)
    rows = _ordered(rows)
    _pull(rows)
    shown = {number: chain for number, chain in chains.items() if number < len(links)}
    return _measure(boxes, links, items, shown, back, rows)


def _back_links(keys: Sequence[str], pairs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """The links that close a cycle, found depth first from the first boxes on."""
    after: dict[str, list[str]] = {key: [] for key in keys}
    entered = set()
    for source, target in pairs:
        after[source].append(target)
        entered.add(target)
    back: set[tuple[str, str]] = set()
    open_, done = set[str](), set[str]()
    for start in [k for k in keys if k not in entered] + list(keys):
        if start in done:
            continue
        open_.add(start)
        trail = [(start, iter(after[start]))]
        while trail:
            key, rest = trail[-1]
            following = next(rest, None)
            if following is None:
                trail.pop()
                open_.discard(key)
                done.add(key)
            elif following in open_:
                back.add((key, following))
            elif following not in done:
                open_.add(following)
                trail.append((following, iter(after[following])))
    return back


def _ranks(keys: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The longest way to each box, two ranks a link, so that each link has a rank for its bead."""
    open_ins = dict.fromkeys(keys, 0)
    after: dict[str, list[str]] = {key: [] for key in keys}
    for source, target in pairs:
        after[source].append(target)
        open_ins[target] += 1
    ranks = dict.fromkeys(keys, 0)
    ready = [key for key in keys if not open_ins[key]]
    for key in ready:
        for target in after[key]:
            ranks[target] = max(ranks[target], ranks[key] + 2)
            open_ins[target] -= 1
            if not open_ins[target]:
                ready.append(target)
    return ranks


def _thread(
    links: Sequence[Link], items: dict[str, _Item], back: set[tuple[str, str]], rows: list[list[_Item]]
) -> dict[int, list[_Item]]:
    """A chain of items for each link, with new beads between; the shortest links first, up to the limit."""
    chains: dict[int, list[_Item]] = {}
    room = MOST_BEADS

    def span(number: int) -> int:
        return abs(items[links[number].target].rank - items[links[number].source].rank)

    for number in sorted(range(len(links)), key=span):
        link = links[number]
        room -= span(number)
        if link.source == link.target or room < 0:
            continue
        ends = (link.source, link.target)
        first, last = (items[key] for key in (reversed(ends) if ends in back else ends))
        middle = (first.rank + last.rank) // 2
        force = 0.03 if ends in back else 1.0 if last.rank - first.rank == 2 else 0.12
        chain = [first]
        for rank in range(first.rank + 1, last.rank):
            length, breadth = link.label if rank == middle else (0.0, 0.0)
            bead = _Item(length, max(BEAD, breadth) / 2, max(BEAD, breadth) / 2, rank, True, force)
            rows[rank].append(bead)
            chain.append(bead)
        chain.append(last)
        for upper, lower in pairwise(chain):
            upper.down.append(lower)
            lower.up.append(upper)
        chains[number] = chain
    return chains


def _ordered(rows: list[list[_Item]]) -> list[list[_Item]]:
    """The rows, sorted by the middle of the neighbours, down and up, as long as it helps."""
    _number(rows)
    best, fewest = [list(row) for row in rows], _crossings(rows)
    sweeps = 12 if sum(map(len, rows)) < 800 else 4
    for sweep in range(sweeps):
        if not fewest:
            break
        down = sweep % 2 == 0
        for row in rows[1:] if down else rows[-2::-1]:
            row.sort(key=lambda item: (_middle(item.up if down else item.down, item.index), item.index))
            for index, item in enumerate(row):
                item.index = index
        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    _number(best)
    return best


def _number(rows: list[list[_Item]]) -> None:
    for row in rows:
        for index, item in enumerate(row):
            item.index = index


def _middle(neighbours: list[_Item], otherwise: float) -> float:
    return sum(n.index for n in neighbours) / len(neighbours) if neighbours else otherwise


def _crossings(rows: list[list[_Item]]) -> int:
    """How many pairs of links cross between neighbouring rows."""
    total = 0
    for row in rows[:-1]:
        seen: list[int] = []
        for item in row:
            ends = sorted(lower.index for lower in item.down)
            total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _pull(rows: list[list[_Item]]) -> None:
    """Give every item its line: near its neighbours, in order, with room between."""
    for row in rows:
        line = 0.0
        for left, item in zip([None, *row], row, strict=False):
            line = 0.0 if left is None else line + _room(left, item)
            item.at = line
        middle = (row[0].at + row[-1].at) / 2 if row else 0.0
        for item in row:
            item.at -= middle
    rounds = 40 if sum(map(len, rows)) < 800 else 10
    for turn in range(rounds):
        for row in rows if turn % 2 == 0 else reversed(rows):
            _settle(row)


def _settle(row: list[_Item]) -> None:
    """The nearest lines to what each item wants that keep the order: isotonic regression by pooling."""
    offsets, offset = [], 0.0
    for left, item in zip([None, *row], row, strict=False):
        offset += 0.0 if left is None else _room(left, item)
        offsets.append(offset)
    pools: list[tuple[float, int]] = []
    for item, offset in zip(row, offsets, strict=True):
        mean, count = _wish(item) - offset, 1
        while pools and pools[-1][0] > mean:
            before, members = pools.pop()
            mean = (before * members + mean * count) / (members + count)
            count += members
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    for item, mean, offset in zip(row, means, offsets, strict=True):
        item.at = mean + offset


def _wish(item: _Item) -> float:
    """The mean line of the neighbours; beads pull beads harder, so that long links run straight."""
    total = forces = 0.0
    for near in (item.up, item.down):
        for other in near:
            force = 8.0 if other.bead and item.bead else min(other.force, item.force)
            total += other.at * force
            forces += force
    return total / forces if forces else item.at


def _room(left: _Item, right: _Item) -> float:
    return left.after + right.before + (ROW_GAP * 0.4 if left.bead and right.bead else ROW_GAP)


def _measure(
    boxes: Sequence[Box],
    links: Sequence[Link],
    items: dict[str, _Item],
    chains: dict[int, list[_Item]],
    back: set[tuple[str, str]],
    rows: list[list[_Item]],
) -> Drawing:
    low = min(item.at - item.before for row in rows for item in row)
    high = max(item.at + item.after for row in rows for item in row)
    for row in rows:
        for item in row:
            item.at = round(item.at - low, 1)
    starts, ends, along = [], [], 0.0
    for row in rows:
        starts.append(along)
        along += max((item.length for item in row), default=0.0)
        ends.append(along)
        along += RANK_GAP + min(FAN_GAP, 3.0 * sum(len(item.down) - 1 for item in row if item.down))
    outer = high - low + ROW_GAP
    docks = _docks(boxes, items, chains)
    routes: list[Route | None] = []
    for number, link in enumerate(links):
        turned = (link.source, link.target) in back
        chain = chains.get(number)
        if link.source == link.target:
            routes.append(None)
            continue
        if chain is None:
            first, last = items[link.source], items[link.target]
            spans = [
                ((starts[first.rank] + first.length, first.at), (ends[first.rank], first.at)),
                ((ends[first.rank] + RANK_GAP, outer), (starts[last.rank] - RANK_GAP, outer)),
                ((starts[last.rank], last.at), (starts[last.rank], last.at)),
            ]
            routes.append(Route(tuple(spans), spans[1][0], turned))
            continue
        leave, arrive = docks[number]
        spans = [((starts[chain[0].rank] + chain[0].length, leave), (ends[chain[0].rank], leave))]
        spans += [
            ((starts[i.rank], i.at), (ends[i.rank], i.at)) for i in chain[1:-1] if i.rank % 2 == 0 or i.length
        ]
        spans += [((starts[chain[-1].rank], arrive), (starts[chain[-1].rank], arrive))]
        middle = chain[len(chain) // 2]
        label = ((starts[middle.rank] + ends[middle.rank]) / 2, middle.at)
        if turned:
            spans = [(b, a) for a, b in reversed(spans)]
        routes.append(Route(tuple(spans), label, turned))
    breadth = outer + ROW_GAP if len(chains) < sum(a.source != a.target for a in links) else high - low
    places = {key: (starts[item.rank], item.at) for key, item in items.items()}
    return Drawing(places, tuple(routes), ends[-1], breadth)


def _docks(
    boxes: Sequence[Box], items: dict[str, _Item], chains: dict[int, list[_Item]]
) -> dict[int, tuple[float, float]]:
    """The line on which each link leaves its first box and arrives at its last, spread over their sides."""
    docks = {number: [chain[0].at, chain[-1].at] for number, chain in chains.items()}
    sides: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for number, chain in chains.items():
        sides.setdefault((id(chain[0]), 0), []).append((chain[1].at, number))
        sides.setdefault((id(chain[-1]), 1), []).append((chain[-2].at, number))
    for box in boxes:
        item = items[box.key]
        for side in (0, 1):
            here = sorted(sides.get((id(item), side), ()))
            step = min(10.0, box.dock / (len(here) - 1)) if len(here) > 1 else 0.0
            for place, (_, number) in enumerate(here):
                docks[number][side] = round(item.at + (place - (len(here) - 1) / 2) * step, 1)
    return {number: (leave, arrive) for number, (leave, arrive) in docks.items()}
