"""Branches: the runs that share a past, and what sets two of them apart.

A fork has the log of another run as its beginning, so both what is common and
what differs can be read off the two logs; nothing else is kept about them.
Ids of runs and times are no difference: two runs that did the same are the
same, whenever they did it and in whatever order one wave's nodes took turns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher

from playground.backends import RunRecord
from playground.kernel import Event, JsonObject, JsonValue, root_of
from playground.kernel.values import dict_in
from playground.sessions.errors import NotFound
from playground.sessions.portrait import portrait
from playground.sessions.sessions import Sessions

MOST_BRANCHES = 40
"""How many runs a tree of branches has at most: the newest, beside those that lead to the one asked for."""

SEARCHED = 200
"""Among how many of a scenario's newest runs its branches are searched."""

ALIGNED = 400
"""How many events of each branch are laid side by side from where the two part."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A run in the tree of its branches.

    Args:
        at: position of the last event that it shares with the run it was forked from; 0 for the first run.
        depth: how many forks lead to it.
        last: position of its last event.
        updates: the channels that the fork replaced, with their new values.
        decided: what was decided in it since, as (node, outcome).
        output: what it came to, or the reason of its failure; None while it goes on.
    """

    record: RunRecord
    at: int
    depth: int
    last: int
    updates: JsonObject
    decided: tuple[tuple[str, str], ...] = ()
    output: JsonValue = None


async def family(sessions: Sessions, run_id: str) -> list[Branch]:
    """The tree of branches that a run belongs to: each run before its forks, those in the order of the split.

    Raises:
        NotFound: no such run.
    """
    record = await sessions.store.runs.get(root_of(run_id))
    if record is None:
        raise NotFound(f"there is no run {run_id}: look at the list of runs, and at which store is open")
    line = [record]
    while line[0].forked_from is not None:
        origin = await sessions.store.runs.get(root_of(line[0].forked_from))
        if origin is None or origin in line:
            break
        line.insert(0, origin)
    others, _ = await sessions.find(scenario=record.scenario, limit=SEARCHED)
    known = {found.run_id: found for found in [*line, *others]}
    forks: dict[str, list[RunRecord]] = {}
    for found in known.values():
        if found.forked_from is not None and found is not line[0]:
            forks.setdefault(root_of(found.forked_from), []).append(found)
    tree: list[Branch] = []
    await _grow(sessions, line[0], 0, forks, tree)
    return _pruned(tree, {found.run_id for found in line})


async def _grow(
    sessions: Sessions, record: RunRecord, depth: int, forks: dict[str, list[RunRecord]], tree: list[Branch]
) -> None:
    """Add a run and then all that branches off it."""
    tree.append(await _branch(sessions, record, depth))
    inner: list[list[Branch]] = []
    for fork in forks.pop(record.run_id, ()):
        grown: list[Branch] = []
        await _grow(sessions, fork, depth + 1, forks, grown)
        inner.append(grown)
    for grown in sorted(inner, key=lambda grown: (grown[0].at, grown[0].record.created)):
        tree += grown


def _pruned(tree: list[Branch], needed: set[str]) -> list[Branch]:
    """The tree without the oldest of its branches where it has too many, but never without those needed."""
    spare = len(tree) - MOST_BRANCHES
    if spare <= 0:
        return tree
    oldest = sorted(
        (found for found in tree if found.record.run_id not in needed), key=lambda b: b.record.created
    )
    gone = {found.record.run_id for found in oldest[:spare]}
    return [found for found in tree if found.record.run_id not in gone]


async def _branch(sessions: Sessions, record: RunRecord, depth: int) -> Branch:
    first = (await sessions.events(record.run_id, 0, 1))[0]
    forked = dict_in(first.data, "meta").get("forked_from")
    at = forked.get("at") if isinstance(forked, dict) else 0
    at = at if isinstance(at, int) and depth else 0
    own = await sessions.store.log.stream(record.run_id, at)
    updates = next((dict_in(event.data, "updates") for event in own if event.kind == "forked"), JsonObject())
    return Branch(
        record,
        at,
        depth,
        own[-1].pos if own else at,
        updates,
        tuple(
            (str(event.data.get("node", "")), str(event.data["outcome"]))
            for event in own
            if event.kind == "resumed" and event.data.get("node") and "outcome" in event.data
        ),
        _came_to(own),
    )


def _came_to(events: Sequence[Event]) -> JsonValue:
    last = events[-1] if events else None
    if last is None or last.run_id != root_of(last.run_id):
        return None
    if last.kind == "run_completed":
        return last.data.get("output")
    return last.data.get("reason") if last.kind == "run_failed" else None


# What sets two of them apart.


@dataclass(frozen=True, slots=True)
class ChannelDifference:
    """A channel of the root run: where the two part, and what it has come to in each of them."""

    name: str
    before: JsonValue
    left: JsonValue
    right: JsonValue

    @property
    def differs(self) -> bool:
        """Whether the two have come to different values."""
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class Pair:
    """Two events side by side: the same in both, or one that only one of the two has."""

    left: Event | None
    right: Event | None
    same: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """What sets two runs apart.

    Args:
        shared: position, in the left one, of the last event that both begin with; 0 if there is none.
        left, right: the first event of each that the other has nowhere.
        pairs: the events from there on, side by side; `more` counts those left out.
        channels: all channels of the two.
    """

    shared: int
    left: Event | None
    right: Event | None
    pairs: tuple[Pair, ...]
    channels: tuple[ChannelDifference, ...]
    more: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing sets them apart but their ids and times."""
        return self.left is None and self.right is None


def difference(left: list[Event], right: list[Event]) -> Difference:
    """What sets the runs of two whole logs apart."""
    names = _names(left) | _names(right)
    ours, theirs = _told(left, names), _told(right, names)
    shared = 0
    for (mine, _), (other, _) in zip(ours, theirs, strict=False):
        if mine != other:
            break
        shared += 1
    before = ours[shared - 1][1].pos if shared else 0
    ours, theirs = ours[shared:], theirs[shared:]
    return Difference(
        before,
        _first_own(ours, theirs),
        _first_own(theirs, ours),
        tuple(_aligned(ours[:ALIGNED], theirs[:ALIGNED])),
        tuple(_channels(left, right, before)),
        max(0, len(ours) - ALIGNED) + max(0, len(theirs) - ALIGNED),
    )


_Told = list[tuple[str, Event]]
"""Events, each with what it says apart from ids of runs and times."""

_TIMES = frozenset({"at", "expires_at"})
_DESCENT = frozenset({"forked_from", "imported_from"})


def _names(events: Sequence[Event]) -> set[str]:
    """The ids that a log may call its run by: its own, and those of the runs that it was forked from."""
    forked = {str(event.data.get("run_id")) for event in events if event.kind == "forked"}
    return {root_of(events[0].run_id), *forked} if events else forked


def _told(events: Sequence[Event], names: Set[str]) -> _Told:
    """What the events say; the mark of a fork that changed nothing says nothing."""
    own = re.compile("|".join(map(re.escape, names)))
    return [
        (_sense(event, own), event) for event in events if event.kind != "forked" or event.data.get("updates")
    ]


def _sense(event: Event, own: re.Pattern[str]) -> str:
    data = {name: value for name, value in event.data.items() if name not in _TIMES}
    if event.kind == "run_started":
        data["meta"] = {name: value for name, value in dict_in(data, "meta").items() if name not in _DESCENT}
    said = json.dumps([event.run_id, event.kind, data], ensure_ascii=False, sort_keys=True)
    return own.sub("", said)


def _first_own(ours: _Told, theirs: _Told) -> Event | None:
    left = Counter(sense for sense, _ in theirs)
    for sense, event in ours:
        left[sense] -= 1
        if left[sense] < 0:
            return event
    return None


def _aligned(ours: _Told, theirs: _Told) -> list[Pair]:
    left, right = [sense for sense, _ in ours], [sense for sense, _ in theirs]
    pairs: list[Pair] = []
    for name, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if name == "equal":
            pairs += [Pair(ours[i][1], theirs[c + i - a][1], same=True) for i in range(a, b)]
            continue
        for step in range(max(b - a, d - c)):
            mine = ours[a + step][1] if a + step < b else None
            other = theirs[c + step][1] if c + step < d else None
            pairs.append(Pair(mine, other))
    return pairs


def _channels(left: list[Event], right: list[Event], before: int) -> list[ChannelDifference]:
    root = left[0].run_id
    was = portrait(None, left, root, before).run.shared if before else {}
    ours = portrait(None, left, root).run.shared
    theirs = portrait(None, right, right[0].run_id).run.shared
    return [
        ChannelDifference(name, was.get(name), ours.get(name), theirs.get(name))
        for name in dict.fromkeys([*ours, *theirs])
    ]
