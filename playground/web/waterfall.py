"""The waterfall: what took how long, on one axis of time, by run, node and attempt.

A run that waits two hours for a person has two seconds worth looking at.  So
where nothing in the whole tree is at work the axis is folded: such a stretch
gets a narrow place with its length written on it, however long it was.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

from playground.web.wavegrid import TimedFact

Doing = Literal["queued", "running", "retrying", "completed", "failed", "cancelled", "parked", "waiting"]
"""What a node did for a while: it waited for a free place, it ran and how that ended, it waited to be
tried again (`retrying`), for a person (`parked`) or for a run inside it (`waiting`)."""

_WAITS: frozenset[Doing] = frozenset({"queued", "retrying", "parked", "waiting"})

FOLD = 4.0
"""How wide a folded stretch is at most, in percent of the axis."""

LONG = 30.0
"""From how many seconds on a wait is long to a person."""

FOLDS = 40.0
"""How much of the axis all folded stretches may take together, in percent."""

MOST_BARS = 120
"""How many bars are shown, the newest ones."""

MOST_ROWS = 80
"""How many rows are shown, the first ones."""

NARROWEST = 0.35
"""How wide a bar is at least, in percent of the axis."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that a node did, placed on the axis in percent.

    Args:
        at: position of the event that it begins with.
        attempt: which try of its wave it is, or comes after.
        seconds: how long it took so far.
    """

    doing: Doing
    at: int
    attempt: int
    x: float
    width: float
    seconds: float

    @property
    def waits(self) -> bool:
        """Whether nothing ran in it."""
        return self.doing in _WAITS


@dataclass(frozen=True, slots=True)
class ClockRow:
    """A node with its bars; `seconds` is how long its body ran in all of them."""

    label: str
    depth: int
    bars: tuple[Bar, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Fold:
    """A stretch of the axis, in percent, in which nothing was at work for `seconds`."""

    x: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Grade:
    """A mark on the axis, in percent, `seconds` after the beginning."""

    x: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The chart; `hidden` bars came before those that are shown, `more` rows after them."""

    rows: tuple[ClockRow, ...] = ()
    folds: tuple[Fold, ...] = ()
    grades: tuple[Grade, ...] = ()
    hidden: int = 0
    more: int = 0


@dataclass(slots=True)
class _Span:
    """A bar before there is an axis; `end` is None while it goes on."""

    doing: Doing
    at: int
    wave: object
    start: float
    attempt: int = 1
    end: float | None = None


@dataclass(slots=True)
class _Sheet:
    """One run: the spans of its nodes, and by node the runs that it called."""

    spans: dict[str, list[_Span]] = field(default_factory=dict)
    calls: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


_Row: TypeAlias = tuple[str, int, list[_Span]]
"""A label, how deep it lies, and its spans."""


class ClockBook:
    """What the nodes of a tree of runs did when, noted as its events come."""

    def __init__(self) -> None:
        self._root = ""
        self._began = 0.0
        self._now = 0.0
        self._sheets: dict[str, _Sheet] = {}

    def add(self, fact: TimedFact) -> None:
        """Note one more event."""
        if not self._root:
            self._root, self._began = fact.run_id, fact.ts
        sheet = self._sheets.setdefault(fact.run_id, _Sheet())
        node = fact.data.get("node")
        if isinstance(node, str) and node:
            self._note(sheet, fact, node)
        elif fact.kind in ("run_completed", "run_failed"):
            for spans in sheet.spans.values():
                self._close(spans, fact.ts)
        self._now = max(self._now, fact.ts)

    def _note(self, sheet: _Sheet, fact: TimedFact, node: str) -> None:
        spans = sheet.spans.setdefault(node, [])
        match fact.kind:
            case "node_queued":
                self._open(spans, "queued", fact)
            case "node_started":
                if spans and spans[-1].end is None and spans[-1].doing == "running":  # the engine was gone
                    self._close(spans, self._now, "cancelled")
                self._open(spans, "running", fact)
            case "node_retry":
                self._close(spans, fact.ts, "failed")
                self._open(spans, "retrying", fact)
            case "interrupted":
                self._wait(spans, "parked", fact)
            case "node_parked":
                self._wait(spans, "waiting", fact)
            case "node_completed":
                self._close(spans, fact.ts, "completed")
            case "node_failed" | "run_failed":
                self._close(spans, fact.ts, "failed")
            case "node_cancelled":
                self._close(spans, fact.ts, "cancelled")
            case "delegated":
                child, name = fact.data.get("child"), fact.data.get("name")
                if isinstance(child, str):
                    called = sheet.calls.setdefault(node, [])
                    called.append((child, name if isinstance(name, str) and name else child))

    def _open(self, spans: list[_Span], doing: Doing, fact: TimedFact) -> None:
        self._close(spans, fact.ts)
        span = _Span(doing, fact.pos, fact.data.get("wave"), fact.ts)
        ran = next((before for before in reversed(spans) if before.doing not in _WAITS), None)
        if ran is not None and ran.wave == span.wave:
            span.attempt = ran.attempt + (doing == "running")
        spans.append(span)

    def _wait(self, spans: list[_Span], doing: Doing, fact: TimedFact) -> None:
        """A node lets go: the first that says so also says for what it waits."""
        if spans and spans[-1].end is None and spans[-1].doing != "running":
            return
        self._close(spans, fact.ts, "completed")
        self._open(spans, doing, fact)

    @staticmethod
    def _close(spans: list[_Span], ts: float, doing: Doing | None = None) -> None:
        if spans and spans[-1].end is None:
            spans[-1].end = ts
            if doing is not None and spans[-1].doing == "running":
                spans[-1].doing = doing

    def chart(self) -> Waterfall:
        """The chart as of the last event."""
        rows = self._rows(self._root, "", 0)
        spans = sorted((span for _, _, listed in rows for span in listed), key=lambda span: span.start)
        hidden = max(0, len(spans) - MOST_BARS)
        spans = spans[hidden:]
        if not spans:
            return Waterfall()
        axis = _Axis(spans, self._now)
        oldest = spans[0].start
        drawn = [
            ClockRow(label, depth, tuple(axis.bar(span) for span in shown), _ran(shown, self._now))
            for label, depth, listed in rows
            if (shown := [span for span in listed if span.start >= oldest])
        ]
        return Waterfall(
            tuple(drawn[:MOST_ROWS]),
            axis.folds,
            axis.grades(self._began),
            hidden,
            max(0, len(drawn) - MOST_ROWS),
        )

    def _rows(self, run_id: str, prefix: str, depth: int) -> list[_Row]:
        """The rows of a run, each with those of the runs that its node called below it."""
        sheet = self._sheets.get(run_id, _Sheet())
        rows: list[_Row] = []
        for node, spans in sheet.spans.items():
            rows.append((prefix + node, depth, spans))
            called: list[_Row] = []
            for child, name in sheet.calls.get(node, ()):
                called += self._rows(child, f"{name}.", depth + 1)
            rows += _joined(called)
        return rows


def _joined(rows: list[_Row]) -> list[_Row]:
    """The rows of called runs, with a later call of the same agent on the line of the earlier one."""
    kept: dict[tuple[str, int, int], _Row] = {}
    for label, depth, spans in rows:
        line = 0
        while (earlier := kept.get((label, depth, line))) and not _follows(earlier[2], spans):
            line += 1
        before = earlier[2] if earlier else []
        kept[label, depth, line] = (label, depth, [*before, *spans])
    return list(kept.values())


def _follows(earlier: list[_Span], later: list[_Span]) -> bool:
    if not earlier or not later:
        return True
    ended = earlier[-1].end
    return ended is not None and ended <= later[0].start


def _ran(spans: Sequence[_Span], now: float) -> float:
    return sum(max(0.0, (span.end or now) - span.start) for span in spans if span.doing not in _WAITS)


class _Axis:
    """Time as percent of the width: even while something is at work, folded where nothing is for long."""

    def __init__(self, spans: Sequence[_Span], now: float) -> None:
        first = min(span.start for span in spans)
        self._now = max([now, *(span.end or now for span in spans)])
        busy = _united(
            (span.start, max(span.start, span.end or self._now)) for span in spans if span.doing not in _WAITS
        )
        edges = [(first, first), *busy, (self._now, self._now)]
        work = sum(end - start for start, end in busy)
        gaps = [(a, b) for (_, a), (b, _) in pairwise(edges) if _is_long(b - a, work)]
        wide = min(FOLD, FOLDS / len(gaps)) if gaps else 0.0
        even = self._now - first - sum(end - start for start, end in gaps)
        scale = (100.0 - wide * len(gaps)) / even if even else 0.0
        self._times, self._places = [first], [0.0]
        folds = []
        for start, end in gaps:
            x = self._places[-1] + (start - self._times[-1]) * scale
            self._times += [start, end]
            self._places += [x, x + wide]
            folds.append(Fold(round(x, 3), round(wide, 3), end - start))
        self._times.append(self._now)
        self._places.append(100.0)
        self.folds = tuple(folds)

    def place(self, ts: float) -> float:
        """Where a moment lies, in percent."""
        after = bisect_right(self._times, ts)
        if after in (0, len(self._times)):
            return self._places[0] if after == 0 else self._places[-1]
        (t0, t1), (x0, x1) = self._times[after - 1 : after + 1], self._places[after - 1 : after + 1]
        return x0 if t1 == t0 else x0 + (ts - t0) / (t1 - t0) * (x1 - x0)

    def bar(self, span: _Span) -> Bar:
        end = self._now if span.end is None else max(span.start, span.end)
        x = min(self.place(span.start), 100.0 - NARROWEST)
        width = max(NARROWEST, self.place(end) - x)
        return Bar(span.doing, span.at, span.attempt, round(x, 3), round(width, 3), end - span.start)

    def grades(self, began: float) -> tuple[Grade, ...]:
        """Some five marks at round times, none in a fold and none close to another."""
        even = [(t0, t1) for (t0, t1) in pairwise(self._times) if not self._folded(t0, t1)]
        step = _round_step(sum(t1 - t0 for t0, t1 in even) / 5)
        found = [Grade(0.0, self._times[0] - began)]
        for t0, t1 in even:
            count = int((t0 - began) / step) + 1
            while (moment := began + count * step) < t1:
                x = self.place(moment)
                if (
                    x - found[-1].x > 9
                    and x < 96
                    and not any(fold.x - 8 < x < fold.x + 9 for fold in self.folds)
                ):
                    found.append(Grade(round(x, 3), count * step))
                count += 1
        return tuple(found)

    def _folded(self, start: float, end: float) -> bool:
        x = round(self.place(start), 3)
        return any(fold.x == x and abs(fold.seconds - (end - start)) < 1e-9 for fold in self.folds)


def _is_long(wait: float, work: float) -> bool:
    """Whether a wait is folded: it is wider than a fold, and long to a person or beside the work."""
    return wait > work * FOLD / 100 and (wait >= LONG or wait > work * 0.3)


def _united(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The stretches that any of the spans covers."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _round_step(seconds: float) -> float:
    """The round span of time that is at least so long: 1, 2 or 5 times a power of ten."""
    step = 0.001
    for factor in (2, 2.5, 2) * 12:
        if step >= seconds:
            break
        step *= factor
    return step
