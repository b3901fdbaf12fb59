"""The rows of the timeline: what one event needs to know of those before it.

A row is rendered once and sent to every viewer, so all that depends on earlier
events (whose run it is, which wave of the root it opens, how long after the
start it was) is found here, in one pass that can go on as events arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from playground.kernel.eventlog import Event
from playground.kernel.values import JsonObject, JsonValue
from playground.sessions import is_stage_note
from playground.web.graphmarks import Pulse, marks_of
from playground.web.layerviews import changed_layers, states_after
from playground.web.memory import Memory
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


class Timeline:
    """The rows of one tree, in order; `add` may be called again as the log grows."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._owners: dict[str, str] = {}
        self._wave = 0
        self._pulse = Pulse()
        self._layers: JsonObject = {}
        self._memory = Memory()
        self._before: tuple[JsonValue, ...] = ()
        self._repeats = 0

    def add(self, events: Sequence[Event]) -> list[EventRow]:
        """The rows of the events that follow those added so far."""
        started = {
            (event.data.get("wave"), event.data.get("node")): None
            for event in events
            if event.kind == "node_started" and "~" not in event.run_id
        }
        widths: Counter[object] = Counter(wave for wave, _ in started)
        return [self._row(event, widths) for event in events]

    def _row(self, event: Event, widths: Counter[object]) -> EventRow:
        if self._start is None:
            self._start = event.ts
        if event.kind == "delegated":
            name, child = event.data.get("name"), event.data.get("child")
            outer = self._owners.get(event.run_id, "")
            self._owners[str(child)] = f"{outer}.{name or child}" if outer else str(name or child)
        depth = event.run_id.count("~")
        wave = event.data.get("wave")
        opens = wave if not depth and isinstance(wave, int) and wave > self._wave else 0
        self._wave = opens or self._wave
        layers: tuple[str, ...] = ()
        if is_stage_note(event):
            layers = changed_layers(event, self._layers)
            self._layers = states_after(event, self._layers)
        self._memory.note(event)
        self._count(event, opens)
        return EventRow(
            id=event.pos,
            seq=event.seq,
            run_id=event.run_id,
            parent_id=event.parent_id,
            kind=event.kind,
            ts=event.ts,
            data=event.data,
            offset=max(0.0, event.ts - self._start),
            owner=self._owners.get(event.run_id, ""),
            depth=depth,
            opens=opens,
            width=widths[opens] if opens else 0,
            marks=marks_of(event, self._pulse.feel(event), event.pos),
            layers=layers,
            repeats=self._repeats,
            again=self._memory.again(event) if event.kind in ("tool_called", "model_called") else 0,
            given=self._memory.given(event) if event.kind == "node_started" else (),
        )

    def _count(self, event: Event, opens: int) -> None:
        """Whether an event is one more of the same."""
        data = event.data
        like = (event.run_id, event.kind, data.get("node"), data.get("name"), data.get("topic"))
        single = opens or event.kind in _TOLD_ONE_BY_ONE
        self._repeats = self._repeats + 1 if like == self._before and not single else 0
        self._before = like


def ticks(rows: Sequence[EventRow], most: int = MOST_TICKS) -> tuple[Ticks, ...]:
    """The scrubber's track: every event of a short run, an even choice of a long one."""
    strokes: dict[str, list[str]] = {tone: [] for tone in TONES}
    for row in rows[:: -(-len(rows) // most) or 1]:
        if row.opens:
            strokes["wave"].append(f"M{row.id} 0V1")
        else:
            strokes[_TONE_OF.get(row.kind, "quiet")].append(f"M{row.id} .28V.72")
    return tuple(Ticks(tone, kinds, "".join(strokes[tone])) for tone, kinds in TONES.items())
