"""The wave grid: rows are nodes, columns are waves, a cell is one execution.

A column commits as one, which is the thing to see.  A child run nests under
the node that called it, and its waves divide the column of that node's wave,
so a wave of the root is as wide as what happened inside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Protocol

from playground.web.graphview import Fact, state_after


class TimedFact(Fact, Protocol):
    """What the grid needs of an event: also where it lies and when it was."""

    @property
    def pos(self) -> int: ...
    @property
    def ts(self) -> float: ...


@dataclass(frozen=True, slots=True)
class GridCell:
    """One execution of a node in one wave.

    Args:
        at: position of the event that started it; `settled`: of the one that gave it its state.
        gap: how many empty columns come before it in its row.
        span: how many columns it is wide: more than one when runs inside it had several waves.
        attempt: how often it was tried in this wave.
        seconds: from its start to its end; None while it has none.
    """

    state: str
    wave: int
    at: int
    settled: int = 0
    gap: int = 0
    span: int = 1
    attempt: int = 1
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GridRow:
    """A node's executions.

    Args:
        depth: how many calls are around it.
        rest: the empty columns at its end.
        holds: whether the rows of runs that it called follow it.
    """

    label: str
    node: str
    run_id: str
    depth: int
    cells: tuple[GridCell, ...]
    rest: int = 0
    holds: bool = False


@dataclass(frozen=True, slots=True)
class WaveGrid:
    """The grid: waves of the root as (number, columns), then rows.

    There are `hidden` waves before them, and `later` ones after.
    """

    waves: tuple[tuple[int, int], ...] = ()
    rows: tuple[GridRow, ...] = ()
    hidden: int = 0
    later: int = 0


MOST_WAVES = 50
"""A grid shows this many waves of the root at once: more fit no screen, and each makes a painting longer."""


@dataclass(slots=True)
class _Cell:
    wave: int
    at: int
    started: float
    settled: int = 0
    state: str = "running"
    attempt: int = 0
    ended: float | None = None


@dataclass(slots=True)
class _Call:
    """A run inside a node's wave, and its own waves there: after a wait the rest come in a later one."""

    child: str
    name: str
    waves: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Sheet:
    """What is known of one run: its nodes' cells by wave, and by wave the runs inside of each node."""

    rows: dict[str, dict[int, _Cell]] = field(default_factory=dict)
    calls: dict[int, dict[str, list[_Call]]] = field(default_factory=dict)
    last: int = 0

    def call(self, wave: int, node: str, child: str, name: str) -> _Call:
        """The run that is inside a node in that wave."""
        calls = self.calls.setdefault(wave, {}).setdefault(node, [])
        found = next((call for call in calls if call.child == child), None)
        if found is None:
            found = _Call(child, name)
            calls.append(found)
        return found


_ENDED = {"completed", "failed", "cancelled"}


def wave_grid(facts: Iterable[TimedFact]) -> WaveGrid:
    """The grid of a run and all its child runs, from the tree's events in order."""
    book = WaveBook()
    for fact in facts:
        book.add(fact)
    return book.grid()


class WaveBook:
    """The executions of a tree of runs, noted as its events come; a grid costs what it shows."""

    def __init__(self) -> None:
        self._root = ""
        self._sheets: dict[str, _Sheet] = {}
        self._callers: dict[str, tuple[_Sheet, str, str]] = {}

    def add(self, fact: TimedFact) -> None:
        """Go on with an event of the tree."""
        self._root = self._root or fact.run_id
        sheet = self._sheets.get(fact.run_id)
        if sheet is None:
            sheet = self._sheets[fact.run_id] = _Sheet()
        node, wave = fact.data.get("node"), fact.data.get("wave")
        if not isinstance(wave, int):
            return
        if wave > sheet.last:
            sheet.last = wave
            self._inside(fact.run_id, wave)
        if isinstance(node, str):
            self._called(sheet, fact, node, wave)
            _note(sheet, fact, node, wave)

    def _called(self, sheet: _Sheet, fact: TimedFact, node: str, wave: int) -> None:
        child, name = fact.data.get("child"), fact.data.get("name")
        if fact.kind == "delegated" and isinstance(child, str):
            name = name if isinstance(name, str) else child
            sheet.call(wave, node, child, name)
            self._callers[child] = sheet, node, name

    def _inside(self, run_id: str, wave: int) -> None:
        """A wave of a called run begins in the wave that its caller is in."""
        if run_id in self._callers:
            sheet, node, name = self._callers[run_id]
            sheet.call(max(sheet.rows.get(node, {1: None})), node, run_id, name).waves.append(wave)

    def grid(self, around: int | None = None) -> WaveGrid:
        """The grid up to now: its newest waves, or those around one of them."""
        return _Layout(self._sheets).grid(self._root, around) if self._root else WaveGrid()

    def wave_at(self, pos: int) -> int:
        """The wave of the root that had begun last at a position."""
        rows = self._sheets[self._root].rows.values() if self._root else ()
        return max((cell.wave for cells in rows for cell in cells.values() if cell.at <= pos), default=1)


def _note(sheet: _Sheet, fact: TimedFact, node: str, wave: int) -> None:
    """Write one event about a node into its run's sheet."""
    state = state_after(fact)
    if not state or state in ("queued", "skipped"):
        return
    cells = sheet.rows.setdefault(node, {})
    cell = cells.get(wave)
    if cell is None:
        cell = cells[wave] = _Cell(wave, fact.pos, fact.ts)
    cell.state, cell.settled = state, fact.pos
    cell.attempt += fact.kind == "node_started"
    cell.ended = fact.ts if state in _ENDED else None


@dataclass(slots=True)
class _Layout:
    """Columns for every wave of every run."""

    sheets: dict[str, _Sheet]

    def grid(self, root: str, around: int | None) -> WaveGrid:
        last = self.sheets[root].last
        first = max(1, min(last if around is None else around - MOST_WAVES // 2, last - MOST_WAVES + 1))
        stop = min(last + 1, first + MOST_WAVES)
        widths = {wave: self._width(root, wave) for wave in range(first, stop)}
        columns = sum(widths.values())
        rows = [row for row in self._rows(root, "", 0, 0, widths) if row.cells]
        closed = tuple(_closed(row, columns) for row in _holding(rows))
        return WaveGrid(tuple(widths.items()), closed, hidden=first - 1, later=last + 1 - stop)

    def _width(self, run_id: str, wave: int) -> int:
        """How many columns a wave of a run needs: one, or as many as the longest run inside it."""
        sheet = self.sheets.get(run_id, _Sheet())
        widest = 1
        for calls in sheet.calls.get(wave, {}).values():
            for call in calls:
                widest = max(widest, sum(self._width(call.child, inner) for inner in call.waves))
        return widest

    def _rows(
        self, run_id: str, prefix: str, depth: int, start: int, widths: dict[int, int]
    ) -> list[GridRow]:
        """The rows of a run whose waves begin at column `start`; `gap` is a column until `_closed`."""
        sheet = self.sheets.get(run_id, _Sheet())
        columns, column = {}, start
        for wave, width in widths.items():
            columns[wave] = column
            column += width
        rows = []
        for node, cells in sheet.rows.items():
            shown = tuple(
                GridCell(
                    cell.state,
                    wave,
                    cell.at,
                    cell.settled,
                    columns[wave],
                    widths[wave] if node in sheet.calls.get(wave, ()) else 1,
                    cell.attempt,
                    None if cell.ended is None else round(cell.ended - cell.started, 3),
                )
                for wave in sorted(cells.keys() & columns.keys())
                for cell in (cells[wave],)
            )
            rows.append(GridRow(prefix + node, node, run_id, depth, shown))
            called: list[GridRow] = []
            for wave in columns:
                for call in sheet.calls.get(wave, {}).get(node, ()):
                    inner = {w: self._width(call.child, w) for w in call.waves}
                    called += self._rows(call.child, f"{call.name}.", depth + 1, columns[wave], inner)
            rows += _reused(called)
        return rows


def _reused(rows: list[GridRow]) -> list[GridRow]:
    """The rows of called runs, with those of a later call of the same agent on the same line."""
    kept: list[GridRow] = []
    for row in rows:
        for index, earlier in enumerate(kept):
            if (earlier.label, earlier.depth) == (row.label, row.depth) and _end(earlier) <= _begin(row):
                kept[index] = replace(earlier, cells=earlier.cells + row.cells)
                break
        else:
            kept.append(row)
    return kept


def _holding(rows: list[GridRow]) -> list[GridRow]:
    """The rows, where those that others nest under say so."""
    return [
        replace(row, holds=after is not None and after.depth > row.depth)
        for row, after in zip_longest(rows, rows[1:])
        if row is not None
    ]


def _begin(row: GridRow) -> int:
    return min((cell.gap for cell in row.cells), default=0)


def _end(row: GridRow) -> int:
    return max((cell.gap + cell.span for cell in row.cells), default=0)


def _closed(row: GridRow, columns: int) -> GridRow:
    """The row with gaps counted from cell to cell instead of from the left."""
    cells, column = [], 0
    for cell in sorted(row.cells, key=lambda cell: cell.gap):
        cells.append(replace(cell, gap=cell.gap - column))
        column = cell.gap + cell.span
    return replace(row, cells=tuple(cells), rest=columns - column)
