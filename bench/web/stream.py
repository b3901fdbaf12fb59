"""Watching: latency, CPU and memory of a run with 50 and with 500 viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bench.common import How, Sheet
from bench.web.child import Child, pin
from bench.web.viewers import Audience

RATE = 200.0
BURST = 16
SECONDS = 1.0
VIEWERS = (50, 500)
SERVERS: dict[str, tuple[str, ...]] = {
    "bare sockets": ("bench.web.bare", "uvloop"),
    "ours, data": ("bench.web.ours", "data", "uvloop"),
    "ours, page": ("bench.web.ours", "page", "uvloop"),
    "bare sockets, asyncio's loop": ("bench.web.bare", "asyncio"),
    "ours, data, asyncio's loop": ("bench.web.ours", "data", "asyncio"),
    "ours, page, asyncio's loop": ("bench.web.ours", "page", "asyncio"),
}
COLUMNS = {
    "p50": "append → receipt p50, µs",
    "p99": "p99, µs",
    "cpu": "CPU per delivery, µs",
    "cpu16": f"in bursts of {BURST}, µs",
    "rss": "KiB per viewer",
    "idle": "MiB without viewers",
}


class _Rival:
    """One server with its viewers, and the best figures of all rounds so far."""

    def __init__(self, child: Child, viewers: int) -> None:
        self.child = child
        self.audience = Audience()
        self.viewers = viewers
        self.figures: dict[str, float] = {}
        self._alone: dict[int, float] = {}

    async def gather(self) -> None:
        """Measure what an event costs when nobody watches, and what it costs in memory that they do."""
        address = self.child.address["port"], self.child.address["path"]
        await self.audience.join(*address, sampled=True)
        await self._publish(1)
        self.audience.leave()
        await asyncio.sleep(0.5)
        for burst in (1, BURST):
            self._alone[burst] = min([await self._publish(burst) for _ in range(3)])
        before = (await self.child.ask(do="stats"))["rss_kib"]
        for number in range(self.viewers):
            await self.audience.join(*address, sampled=number % max(1, self.viewers // 50) == 0)
        await asyncio.sleep(1)
        after = (await self.child.ask(do="stats"))["rss_kib"]
        self.figures |= {"rss": (after - before) / self.viewers, "idle": before / 1024}

    async def round(self) -> None:
        """Publish for a while, one by one and then in bursts."""
        cpu = await self._publish(1) - self._alone[1]
        late = sorted(self.audience.delays)
        self._best("cpu", cpu / self.viewers)
        self._best("p50", late[len(late) // 2] / 1e3)
        self._best("p99", late[int(len(late) * 0.99)] / 1e3)
        if self.viewers <= VIEWERS[0]:
            cpu = await self._publish(BURST) - self._alone[BURST]
            self._best("cpu16", cpu / self.viewers)

    def _best(self, key: str, value: float) -> None:
        self.figures[key] = min(value, self.figures.get(key, value))

    async def _publish(self, burst: int) -> float:
        """Publish for some seconds, `burst` events back to back; return the server's CPU µs per event."""
        count = int(RATE * SECONDS * min(burst, 4))
        before = (await self.child.ask(do="stats"))["cpu"]
        answer = await self.child.ask(do="publish", count=count, rate=count / SECONDS, burst=burst)
        await self.audience.complete(**answer, patience=30)
        return ((await self.child.ask(do="stats"))["cpu"] - before) / count * 1e6


async def stream(how: How) -> list[Sheet]:
    """Measure each server with 50 and with 500 viewers, in turn; the round disturbed least counts."""
    pin(1)
    sheets: list[Sheet] = []
    for viewers in VIEWERS:
        sheet = Sheet(f"{viewers} viewers of one run, {RATE:.0f} events/s", COLUMNS, "bare sockets")
        rivals: dict[str, _Rival] = {}
        try:
            for label, server in SERVERS.items():
                if how.wants(label):
                    rivals[label] = _Rival(await Child.start(*server), viewers)
            for step in (_Rival.gather, *[_Rival.round] * 3 * how.repeats):
                for label, rival in rivals.items():
                    if label in sheet.failed:
                        continue
                    try:
                        await step(rival)
                    except Exception as error:
                        sheet.failed[label] = f"{type(error).__name__}: {error}"
        finally:
            for rival in rivals.values():
                rival.audience.leave()
                await rival.child.stop()
        rows: Mapping[str, Mapping[str, float]] = {label: rival.figures for label, rival in rivals.items()}
        sheet.rows.update(rows)
        sheets.append(sheet)
    return sheets
