"""The stopwatch that all comparisons share.

Absolute times say more about the machine than about the code, so everything
here works towards ratios: the engines take turns within one process, repeat by
repeat, and what is reported is a median, a multiple of another engine's
median, and how the cost grows with the size.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SAMPLE = 0.03
"""Seconds that one sample should last at least; small cases run several times within it."""
PATIENCE = 12.0
"""Seconds that one run may be expected to take; beyond it a size is left out."""


async def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Case:
    """A piece of work that is ready to go: only `run` is timed, and it must return `want`."""

    run: Callable[[], Awaitable[int]]
    want: int
    prepare: Callable[[], Awaitable[None]] = _nothing
    cleanup: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class How:
    """How to measure: samples of each figure, and the beginnings of the labels wanted (none: all)."""

    repeats: int = 3
    only: tuple[str, ...] = ()

    def wants(self, label: str) -> bool:
        """Whether the rival called `label` takes part."""
        return not self.only or label.startswith(self.only)


@dataclass(frozen=True)
class Time:
    """Seconds per run: the median of the samples, and their range."""

    median: float
    low: float
    high: float


class WrongAnswer(AssertionError):
    """A case that is fast because it does something else."""


async def _once(case: Case, clock: Callable[[], float]) -> float:
    await case.prepare()
    start = clock()
    answer = await case.run()
    took = clock() - start
    case.cleanup()
    if answer != case.want:
        raise WrongAnswer(f"got {answer}, not {case.want}")
    return took


async def measure(
    cases: Mapping[str, Case], repeats: int, clock: Callable[[], float] = time.process_time
) -> dict[str, Time | str]:
    """Time all `cases` in turn, `repeats` times over.

    Args:
        clock: seconds of this process's own CPU by default, which other work on the
            machine disturbs least; where waiting for a disk counts, a wall clock.

    Returns:
        A time for each case, or, for one that failed, its error.
    """
    result: dict[str, Time | str] = {}
    rounds: dict[str, int] = {}
    for label, case in cases.items():
        try:
            await _once(case, clock)
            rounds[label] = max(1, math.ceil(SAMPLE / max(await _once(case, clock), 1e-7)))
        except Exception as error:
            result[label] = f"{type(error).__name__}: {error}"
    samples: dict[str, list[float]] = {label: [] for label in rounds}
    for _ in range(repeats):
        for label, count in rounds.items():
            gc.collect()
            samples[label].append(sum([await _once(cases[label], clock) for _ in range(count)]) / count)
    for label, times in samples.items():
        result[label] = Time(statistics.median(times), min(times), max(times))
    return result


def growth(points: Mapping[int, float]) -> float | None:
    """The exponent by which cost grows with size, over the two largest sizes: 1 is linear, 2 is quadratic."""
    (n, first), (m, last) = [(0, 0.0), (0, 0.0), *sorted(points.items())][-2:]
    return math.log(last / first) / math.log(m / n) if n else None


@dataclass
class Table:
    """One comparison: engines down, sizes across, then growth and ratios.

    Attributes:
        unit: what one cell counts, such as "µs/node".
        scale: what to multiply seconds per unit of size with to get there.
        floor: the engine that does no more than the work itself; ratios are to it and to ours.
    """

    title: str
    unit: str
    scale: float = 1e6
    floor: str = "limit-bsp"
    ours: str = "ours"
    cells: dict[str, dict[int, float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def put(self, size: int, measured: Mapping[str, Time | str]) -> None:
        """Take in what `measure` returned for `size`."""
        for label, time_ in measured.items():
            if isinstance(time_, str):
                self.fail(label, size, time_)
            else:
                self.cells.setdefault(label, {})[size] = time_.median

    def fail(self, label: str, size: int, why: str) -> None:
        """Note that `label` could not do `size`."""
        self.failed[label] = f"at {size:,}: {why}"[:300]

    def expected(self, label: str, size: int) -> float:
        """Seconds that `label` would take at `size` if its cost grew as it did so far, 0 if unknown."""
        seen = self.cells.get(label, {})
        if not seen:
            return 0.0
        largest = max(seen)
        return seen[largest] * (size / largest) ** max(1.0, growth(seen) or 1.0)

    def ratio(self, label: str, base: str, size: int) -> float | None:
        """How many times `base`'s cost `label` costs at `size`."""
        try:
            return self.cells[label][size] / self.cells[base][size]
        except KeyError:
            return None

    def __str__(self) -> str:
        sizes = sorted({size for row in self.cells.values() for size in row})
        several = len(sizes) > 1
        heads = [f"N={size:,}" for size in sizes] + ["growth"] if several else [self.unit]
        heads += [f"× {self.floor}", f"× {self.ours}"]
        title = f"{self.title}, {self.unit}" if several else self.title
        lines = [f"\n### {title}", f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
        for label, row in self.cells.items():
            figures = [_figure(row[size] * self.scale / size) if size in row else "–" for size in sizes]
            if several:
                exponent = growth(row)
                figures.append("–" if exponent is None else f"{exponent:.2f}")
            figures += [self._range(label, base, sizes) for base in (self.floor, self.ours)]
            lines.append(f"| {label} | {' | '.join(figures)} |")
        lines += [f"! {label} {why}" for label, why in self.failed.items()]
        return "\n".join(lines)

    def _range(self, label: str, base: str, sizes: list[int]) -> str:
        ratios = [ratio for size in sizes if (ratio := self.ratio(label, base, size)) is not None]
        ends = [_figure(ratio) for ratio in (ratios[:1] + ratios[-1:] if len(ratios) > 1 else ratios)]
        return " … ".join(dict.fromkeys(ends))


@dataclass
class Sheet:
    """Several figures of a few rivals: each cell with its multiple of the floor's.

    Attributes:
        columns: what each figure is, with its unit, by key.
        floor: the row that the multiples are of.
    """

    title: str
    columns: Mapping[str, str]
    floor: str
    rows: dict[str, Mapping[str, float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"\n### {self.title}", f"| | {' | '.join(self.columns.values())} |"]
        lines.append("|---" * (len(self.columns) + 1) + "|")
        for label, row in self.rows.items():
            cells = [self._cell(label, row[key], key) if key in row else "–" for key in self.columns]
            lines.append(f"| {label} | {' | '.join(cells)} |")
        lines += [f"! {label} {why}" for label, why in self.failed.items()]
        return "\n".join(lines)

    def _cell(self, label: str, value: float, key: str) -> str:
        least = self.rows.get(self.floor, {}).get(key)
        return _figure(value) + (f" (×{_figure(value / least)})" if least and label != self.floor else "")


def _figure(value: float) -> str:
    """Three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def keep(name: str, value: object) -> None:
    """Write a result to `bench/results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(value, indent=1, default=vars) + "\n", encoding="utf-8")


def rss_kib(pid: int | str = "self") -> int:
    """Resident memory of a process in KiB (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])
