"""Telling: what one event costs on its way to everyone who subscribed; each gets every event."""

from __future__ import annotations

import asyncio
from types import ModuleType

import src.kernel as published

import playground.kernel as ours
from bench.common import Case, How, Table, measure

SUBSCRIBERS = (0, 1, 10, 100)
ROOM = 256
_EVENT = {"seq": 1, "run_id": "run-1", "node": "think"}


def _bus(kernel: ModuleType, subscribers: int, events: int) -> Case:
    async def run() -> int:
        bus = kernel.Bus()
        subscriptions = [bus.subscribe(maxsize=ROOM, on_full="block") for _ in range(subscribers)]
        got = 0

        async def read(subscription: object) -> None:
            nonlocal got
            for _ in range(events):
                await subscription.get()
                got += 1

        readers = [asyncio.ensure_future(read(subscription)) for subscription in subscriptions]
        for _ in range(events):
            await bus.fire("node_started", evt=_EVENT)
        await asyncio.gather(*readers)
        return got

    return Case(run, subscribers * events)


def _queues(subscribers: int, events: int) -> Case:
    async def run() -> int:
        queues: list[asyncio.Queue[object]] = [asyncio.Queue(ROOM) for _ in range(subscribers)]
        got = 0

        async def read(queue: asyncio.Queue[object]) -> None:
            nonlocal got
            for _ in range(events):
                await queue.get()
                got += 1

        readers = [asyncio.ensure_future(read(queue)) for queue in queues]
        for _ in range(events):
            item = {"event": "node_started", "evt": _EVENT}
            for queue in queues:
                if queue.full():
                    await queue.put(item)
                else:
                    queue.put_nowait(item)
        await asyncio.gather(*readers)
        return got

    return Case(run, subscribers * events)


async def bus(how: How) -> list[Table]:
    """Time the three, one table for each number of subscribers."""
    tables = []
    for subscribers in SUBSCRIBERS:
        events = 10_000 if subscribers <= 10 else 1000
        table = Table(f"One event to {subscribers} subscribers", "µs/event", floor="asyncio queues")
        cases = {
            "asyncio queues": _queues(subscribers, events),
            "ours": _bus(ours, subscribers, events),
            "prodagent": _bus(published, subscribers, events),
        }
        table.put(
            events,
            await measure({label: case for label, case in cases.items() if how.wants(label)}, how.repeats),
        )
        tables.append(table)
    return tables
