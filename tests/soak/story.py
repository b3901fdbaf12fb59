"""One run over many lives: what must hold after each death, and in the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playground.backends import open_store
from playground.kernel import Event, JsonObject, JsonValue
from tests.soak.errand import Effects
from tests.soak.nursery import Nursery

KILLED = -9


class Broken(AssertionError):
    """A promise that did not hold: which one, and where."""


@dataclass
class Story:
    """The lives of one run in one store.

    Attributes:
        kills: how many processes died on it.
        repeats: calls that were in flight when a process died and were made again, under the same id.
    """

    nursery: Nursery
    url: str
    folder: Path
    order: JsonObject = field(default_factory=dict)
    kills: int = 0
    repeats: int = 0
    _events: list[Event] = field(default_factory=list)
    _settled: Counter[str] = field(default_factory=Counter)

    async def live(self, **order: JsonValue) -> bool:
        """Let one more process live; whether the run has ended."""
        told: JsonObject = {"url": self.url, "folder": str(self.folder), **self.order, **order}
        code = self.nursery.live(told)
        if code not in (0, KILLED):
            raise Broken(f"a process that went on with {self.url} failed with exit code {code}")
        self.kills += code == KILLED
        await self.check()
        return code == 0

    async def check(self) -> None:
        """What must hold whenever a process has died."""
        async with open_store(self.url) as store:
            events = await store.log.stream("r")
        if events[: len(self._events)] != self._events:
            raise Broken(f"{self.url}: what the log had kept before has changed")
        acknowledged = max((int(mark) for mark in Effects(self.folder / "acknowledged").marks()), default=0)
        if acknowledged > len(events):
            raise Broken(f"{self.url}: event {acknowledged} was acknowledged and is lost")
        if [event.pos for event in events] != list(range(1, len(events) + 1)):
            raise Broken(f"{self.url}: positions are missing")
        self._events = events
        self._check_repeats(Counter(Effects(self.folder / "effects").marks()))

    def _check_repeats(self, marks: Counter[str]) -> None:
        for mark, times in self._settled.items():
            if marks[mark] != times:
                raise Broken(f"{self.url}: {mark!r} had returned and was done again")
        self._settled = Counter({mark: marks[mark] for mark in settled(self._events)})
        for mark, times in self._settled.items():
            if not times:
                raise Broken(f"{self.url}: {mark!r} has returned and was never done")
        self.repeats = sum(times - 1 for mark, times in marks.items() if mark.startswith("call"))

    def end(self) -> JsonObject:
        """How the run ended, by the word of the process that saw it."""
        told: JsonObject = json.loads((self.folder / "end").read_text())
        return {key: told[key] for key in ("state", "output", "shared")}

    def calls(self) -> set[str]:
        """The ids of all calls that were ever made."""
        return {mark for mark in Effects(self.folder / "effects").marks() if mark.startswith("call")}

    def writes(self) -> int:
        """How often the last process wrote."""
        return int(json.loads((self.folder / "end").read_text())["writes"])


def settled(events: Sequence[Event]) -> list[str]:
    """The marks of what has returned, as the log tells it."""
    activations: dict[tuple[str, JsonValue], JsonValue] = {}
    found = []
    for event in events:
        node = event.run_id, event.data.get("node")
        if event.kind == "node_started":
            activations[node] = event.data["activation"]
        elif event.kind == "tool_returned":
            found.append(f"call {event.data['call_id']}")
        elif event.kind == "node_completed" and event.data["node"] != "office":
            found.append(f"node {event.run_id} {event.data['node']} {activations[node]}")
    return found
