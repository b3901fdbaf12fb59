"""Event logs with a window: some hold an append until the test lets go, some count what they are handed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from playground.kernel import Event, InMemoryEventLog


class GatedLog(InMemoryEventLog):
    """A log as slow as a disk: while it is shut, an append has begun and does not end."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.writing = asyncio.Event()
        self._gate = asyncio.Event()
        self._gate.set()

    def shut(self) -> None:
        self.writing.clear()
        self._gate.clear()

    def open(self) -> None:
        self._gate.set()

    async def append_many(self, events: Sequence[Event]) -> None:
        if not self._gate.is_set():
            self.writing.set()
        await self._gate.wait()
        await super().append_many(events)


class CountingLog(InMemoryEventLog):
    """A log that remembers its batches, and how many bytes of JSON each would be on a disk."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Event]] = []

    @property
    def sizes(self) -> list[int]:
        return [sum(len(json.dumps(event)) for event in batch) for batch in self.batches]

    async def append_many(self, events: Sequence[Event]) -> None:
        self.batches.append(list(events))
        await super().append_many(events)


async def turns(count: int = 20) -> None:
    """Let everything that can run now run."""
    for _ in range(count):
        await asyncio.sleep(0)
