"""The rows of the timeline: what one event needs to know of those before it.

A row is rendered once and sent to every viewer, so all that depends on earlier
events (whose run it is, which wave of the root it opens, how long after the
start it was) is found here, in one pass that can go on as events arrive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import overload

from playground.kernel.eventlog import Event
from playground.kernel.values import JsonObject
from playground.sessions import is_stage_note
from playground.web.graphmarks import Mark, Pulse, marks_of
from playground.web.layerviews import changed_layers, states_after
from playground.web.memory import REMEMBERS, Memory
from playground.web.viewmodels import EventRow, Ticks

MOST_TICKS = 300
"""The scrubber's track shows at most about this many events; beyond it, waves first."""

TONES: Mapping[str, tuple[str, ...]] = {
    "wave": (),
    "run": ("run_started", "node_started", "resumed", "run_continued", "delegated"),
    "done": ("run_completed", "node_completed", "tool_returned", "model_returned"),
    "wait": ("run_suspended", "interrupted", "node_parked", "node_retry"),
    "command": ("state_delta", "control", "forked"),
    "fail": ("run_failed", "node_failed"),
    "quiet": (),
}
"""What is drawn in which tone on the track; what no tone names is quiet."""

_TONE_OF = {kind: tone for tone, kinds in TONES.items() for kind in kinds}


_TOLD_ONE_BY_ONE = {*TONES["wait"], *TONES["fail"]}
"""What stops a run is never folded, however often it is repeated."""


_LIKE = ("node", "name", "topic")
"""What two events of a kind have in common, if one is a repeat of the other."""


class Timeline(Sequence[EventRow]):
    """The rows of one tree, in order, each made when somebody looks at it; it goes on as the log grows.

    What a row needs of the events before it is noted as they come: where waves begin, whose run
    an event belongs to, what repeats.  So a long run costs little more than the rows that are shown.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.owners: dict[str, str] = {}
        self._pulse = Pulse()
        self._beats: list[int] = []
        self._opens: dict[int, int] = {}
        self._repeats: dict[int, int] = {}
        self._layers: dict[int, tuple[str, ...]] = {}
        self._states: JsonObject = {}
        self._memory = Memory()
        self._again: dict[int, int] = {}
        self._given: dict[int, tuple[str, ...]] = {}
        for event in events:
            self.add(event)

    def add(self, event: Event) -> int:
        """Go on with the event that follows; the beat that it happens in, as a `Pulse` counts them."""
        index, kind = len(self.events), event.kind
        beat = self._pulse.feel(event)
        if beat > len(self._beats):
            self._beats.append(index)
            if "~" not in event.run_id:
                self._opens[index] = self._pulse.waves[event.run_id]
        elif index and self.events[-1].kind == kind and _are_alike(self.events[-1], event):
            self._repeats[index] = self._repeats.get(index - 1, 0) + 1
        if kind == "delegated":
            name, child = event.data.get("name"), event.data.get("child")
            outer = self.owners.get(event.run_id, "")
            self.owners[str(child)] = f"{outer}.{name or child}" if outer else str(name or child)
        elif kind == "node_started":
            if given := self._memory.given(event):
                self._given[index] = given
        elif kind in ("tool_called", "model_called"):
            if again := self._memory.again(event):
                self._again[index] = again
        elif kind in REMEMBERS:
            self._memory.note(event)
        elif is_stage_note(event):
            if layers := changed_layers(event, self._states):
                self._layers[index] = layers
            self._states = states_after(event, self._states)
        self.events.append(event)
        return beat

    @property
    def layered(self) -> bool:
        """Whether any event changes the state of a layer."""
        return bool(self._layers)

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, index: int) -> EventRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[EventRow]: ...
    def __getitem__(self, index: int | slice) -> EventRow | list[EventRow]:
        places = range(len(self.events))[index]
        return self._row(places) if isinstance(places, int) else [self._row(place) for place in places]

    def __iter__(self) -> Iterator[EventRow]:
        return map(self._row, range(len(self.events)))

    def marks(self, index: int) -> tuple[Mark, ...]:
        """What the event at an index changes in the graph."""
        event = self.events[index]
        return marks_of(event, bisect_right(self._beats, index), event.pos)

    def opens(self, index: int) -> int:
        """The wave of the root run that the event at an index is the first of, or 0."""
        return self._opens.get(index, 0)

    def _row(self, index: int) -> EventRow:
        event, opens = self.events[index], self.opens(index)
        return EventRow(
            id=event.pos,
            seq=event.seq,
            run_id=event.run_id,
            parent_id=event.parent_id,
            kind=event.kind,
            ts=event.ts,
            data=event.data,
            offset=max(0.0, event.ts - self.events[0].ts),
            owner=self.owners.get(event.run_id, ""),
            depth=event.run_id.count("~"),
            opens=opens,
            width=self._width(index) if opens else 0,
            repeats=self._repeats.get(index, 0),
            marks=self.marks(index),
            layers=self._layers.get(index, ()),
            again=self._again.get(index, 0),
            given=self._given.get(index, ()),
        )

    def _width(self, index: int) -> int:
        """How many nodes have started in the wave of the root whose first event is at an index."""
        in_wave = takewhile(lambda at: at == index or at not in self._opens, range(index, len(self.events)))
        started = (event for at in in_wave if (event := self.events[at]).kind == "node_started")
        return len({event.data.get("node") for event in started if "~" not in event.run_id})


def _are_alike(before: Event, event: Event) -> bool:
    """Whether an event is one more of the same kind that tells the same."""
    if event.kind in _TOLD_ONE_BY_ONE or before.run_id != event.run_id:
        return False
    return all(before.data.get(name) == event.data.get(name) for name in _LIKE)


def ticks(rows: Sequence[EventRow], most: int = MOST_TICKS) -> tuple[Ticks, ...]:
    """The scrubber's track: every event of a short run, an even choice of a long one."""
    strokes: dict[str, list[str]] = {tone: [] for tone in TONES}
    for row in rows[:: -(-len(rows) // most) or 1]:
        if row.opens:
            strokes["wave"].append(f"M{row.id} 0V1")
        else:
            strokes[_TONE_OF.get(row.kind, "quiet")].append(f"M{row.id} .28V.72")
    return tuple(Ticks(tone, kinds, "".join(strokes[tone])) for tone, kinds in TONES.items())
