"""Watching: latency, CPU and memory of a run with 50 and with 500 viewers."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping

from bench.common import How, Sheet
from bench.web.child import Child, pin
from bench.web.viewers import Audience

RATE = 200.0
SECONDS = 3
SERVERS: dict[str, tuple[str, ...]] = {
    "bare sockets": ("bench.web.bare",),
    "bare sockets, uvloop": ("bench.web.bare", "uvloop"),
    "ours, data": ("bench.web.ours", "data"),
    "ours, page": ("bench.web.ours", "page"),
}


async def _publish(
    child: Child, audience: Audience, viewers: int, rate: float, burst: int
) -> dict[str, float]:
    """Publish for some seconds; return p50 and p99 in µs and the server's CPU µs per event."""
    count = int(rate * SECONDS)
    first = audience.last_id + 1
    audience.expect(audience.last_id + count)
    before = (await child.ask(do="stats"))["cpu"]
    stamps = (await child.ask(do="publish", count=count, rate=rate, burst=burst))["stamps"]
    if viewers:
        await audience.complete(patience=30)
    cpu = ((await child.ask(do="stats"))["cpu"] - before) / count * 1e6
    audience.last_id = first + count - 1
    late = sorted((at - stamps[number - first]) / 1e3 for number, at in audience.receipts)
    if not late:
        return {"cpu": cpu}
    return {"cpu": cpu, "p50": late[len(late) // 2], "p99": late[int(len(late) * 0.99)]}


async def _watch(server: tuple[str, ...], viewers: int) -> dict[str, float]:
    """All figures of one server with that many viewers."""
    child = await Child.start(*server)
    audience = Audience()
    address = child.address["port"], child.address["path"]
    try:
        await audience.join(*address, sampled=True)
        await asyncio.sleep(1)  # what happened before has arrived, so the next event's number is known
        await _publish(child, audience, 1, RATE, 1)
        audience.leave()
        await asyncio.sleep(0.5)
        alone = await _publish(child, audience, 0, RATE, 1)
        alone16 = await _publish(child, audience, 0, 8 * RATE, 16)
        before = (await child.ask(do="stats"))["rss_kib"]
        for number in range(viewers):
            await audience.join(*address, sampled=number % max(1, viewers // 50) == 0)
        await asyncio.sleep(1)
        after = (await child.ask(do="stats"))["rss_kib"]
        single = await _publish(child, audience, viewers, RATE, 1)
        figures = {
            "p50": single["p50"],
            "p99": single["p99"],
            "cpu": (single["cpu"] - alone["cpu"]) / viewers,
            "rss": (after - before) / viewers,
            "idle": before / 1024,
        }
        if viewers <= 50:
            burst = await _publish(child, audience, viewers, 8 * RATE, 16)
            figures["cpu16"] = (burst["cpu"] - alone16["cpu"]) / viewers
        return figures
    finally:
        audience.leave()
        await child.stop()


COLUMNS = {
    "p50": "append → receipt p50, µs",
    "p99": "p99, µs",
    "cpu": "CPU per delivery, µs",
    "cpu16": "in bursts of 16, µs",
    "rss": "KiB per viewer",
    "idle": "MiB without viewers",
}


async def stream(how: How) -> list[Sheet]:
    """Measure each server with 50 and with 500 viewers, in turn."""
    pin(1)
    sheets: list[Sheet] = []
    for viewers in (50, 500):
        sheet = Sheet(f"{viewers} viewers of one run, {RATE:.0f} events/s", COLUMNS, "bare sockets")
        seen: dict[str, list[Mapping[str, float]]] = {}
        for _ in range(how.repeats):
            for label, server in SERVERS.items():
                if not how.wants(label):
                    continue
                try:
                    seen.setdefault(label, []).append(await _watch(server, viewers))
                except Exception as error:
                    sheet.failed[label] = f"{type(error).__name__}: {error}"
        for label, figures in seen.items():
            keys = set[str]().union(*figures)
            sheet.rows[label] = {
                key: statistics.median(row[key] for row in figures if key in row) for key in keys
            }
        sheets.append(sheet)
    return sheets
