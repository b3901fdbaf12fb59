"""What the page of two branches receives: the tree they belong to, and what sets them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from playground.kernel import JsonObject, JsonValue
from playground.sessions import Branch, ChannelDifference, Difference, Sessions, difference
from playground.web import paths, runviews
from playground.web.i18n import Language
from playground.web.story import Story
from playground.web.viewmodels import EventRow, Mood, RunView
from playground.web.views import run_row


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A run in the tree of branches.

    Args:
        at: position of the last event that it shares with the run it was forked from; 0 for the first.
        last: position of its last event.
        updates: what the fork changed in the state.
        decided: what was decided since, as (node, outcome).
        output: what it came to.
        here: whether it is the run whose page this is.
        letter: its name in a comparison, A or B; empty where it is not compared.
    """

    run_id: str
    depth: int
    at: int
    last: int
    mood: Mood
    updates: JsonObject
    decided: tuple[tuple[str, str], ...] = ()
    output: JsonValue = None
    here: bool = False
    letter: str = ""

    @property
    def url(self) -> str:
        """Its page."""
        return paths.run(self.run_id)


@dataclass(frozen=True, slots=True)
class BranchTree:
    """The runs that share a past with `run_id`, each before its forks."""

    run_id: str
    rows: tuple[BranchRow, ...]

    @property
    def longest(self) -> int:
        """The number of events of the longest of them, at least 1."""
        return max((row.last for row in self.rows), default=1) or 1


@dataclass(frozen=True, slots=True)
class PairView:
    """Two events side by side, of which one may be missing."""

    left: EventRow | None
    right: EventRow | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pairs in a row that are the same in both branches, or that are not."""

    same: bool
    pairs: tuple[PairView, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two branches side by side.

    Args:
        shared: position of the last event that both begin with.
        first: the first event of each that the other has nowhere.
        stretches: the events from where they part; `more` counts those left out.
    """

    left: RunView
    right: RunView
    shared: int
    same: bool
    first: PairView
    stretches: tuple[Stretch, ...]
    channels: tuple[ChannelDifference, ...]
    more: int = 0

    @property
    def apart(self) -> tuple[ChannelDifference, ...]:
        """The channels in which they differ."""
        return tuple(channel for channel in self.channels if channel.differs)

    @property
    def alike(self) -> tuple[ChannelDifference, ...]:
        """The channels in which they do not."""
        return tuple(channel for channel in self.channels if not channel.differs)


def branch_tree(
    branches: Iterable[Branch], run_id: str, sessions: Sessions, lang: Language, other: str = ""
) -> BranchTree:
    """The tree of branches around a run; with `other`, the two are called A and B."""
    letters = {run_id: "A", other: "B"} if other else {}
    return BranchTree(
        run_id,
        tuple(
            BranchRow(
                run_id=found.record.run_id,
                depth=found.depth,
                at=found.at,
                last=found.last,
                mood=run_row(found.record, sessions, lang).mood,
                updates=found.updates,
                decided=found.decided,
                output=found.output,
                here=found.record.run_id == run_id,
                letter=letters.get(found.record.run_id, ""),
            )
            for found in branches
        ),
    )


def comparison(left: Story, right: Story, sessions: Sessions, lang: Language) -> Comparison:
    """Two runs side by side."""
    found = difference(left.events, right.events)
    return Comparison(
        left=runviews.glance(left, sessions, lang),
        right=runviews.glance(right, sessions, lang),
        shared=found.shared,
        same=found.same,
        first=PairView(
            left.row(found.left.pos) if found.left else None,
            right.row(found.right.pos) if found.right else None,
        ),
        stretches=_stretches(found, left, right),
        channels=found.channels,
        more=found.more,
    )


def _stretches(found: Difference, left: Story, right: Story) -> tuple[Stretch, ...]:
    pairs: Sequence[tuple[bool, PairView]] = [
        (
            pair.same,
            PairView(
                _beside(left.row(pair.left.pos)) if pair.left else None,
                _beside(right.row(pair.right.pos)) if pair.right else None,
            ),
        )
        for pair in found.pairs
    ]
    return tuple(
        Stretch(same, tuple(pair for _, pair in group))
        for same, group in groupby(pairs, lambda item: item[0])
    )


def _beside(row: EventRow | None) -> EventRow | None:
    """The row without the heading of a wave, which would tear two columns apart."""
    return row._replace(opens=0) if row is not None else None
