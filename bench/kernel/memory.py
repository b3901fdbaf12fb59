"""Waiting: what a parked run with a short history holds in memory.

Each engine has a process of its own that parks a thousand runs three times over
and reports the slope; run as a module with an engine's name, this file is that process.
"""

from __future__ import annotations

import asyncio
import gc
import json
import operator
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bench.common import How, Table, rss_kib
from bench.kernel.workload import Message, thought

RUNS = 1000
HISTORY = 20
Park = Callable[[], Awaitable[None]]


def _messages() -> list[Message]:
    return [thought(i) for i in range(HISTORY)]


async def _dict(kept: list[object]) -> Park:
    async def park() -> None:
        kept.append({"messages": _messages(), "state": "suspended"})

    return park


async def _text(kept: list[object]) -> Park:
    async def park() -> None:
        kept.append(json.dumps({"messages": _messages(), "state": "suspended"}))

    return park


async def _kernel(kept: list[object], name: str, **parts: object) -> Park:
    from bench.kernel import plans

    kernel = getattr(plans, name)
    plan = kernel.parked_plan(HISTORY, HISTORY)
    scheduler = kernel.scheduler(**parts)
    kept.append(scheduler)

    async def park() -> None:
        run = await scheduler.run(plan, task="t")
        assert str(run.state) == "suspended", run.state

    return park


async def _ours_on_disk(kept: list[object]) -> Park:
    from playground.backends import open_store

    store = await open_store(
        f"sqlite:{Path(tempfile.mkdtemp(prefix='bench-memory-')) / 'runs.db'}"
    ).__aenter__()
    kept.append(store)
    return await _kernel(kept, "OURS", eventlog=store.log, store=store.checkpoints)


class _State(TypedDict):
    messages: Annotated[list[Message], operator.add]
    answer: str


async def _langgraph(kept: list[object]) -> Park:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt

    async def gather(state: Any) -> Any:
        return {"messages": _messages()}

    async def approve(state: Any) -> Any:
        return {"answer": interrupt("ok?")}

    graph = StateGraph(_State)
    graph.add_node("gather", gather)
    graph.add_node("approve", approve)
    graph.add_edge(START, "gather")
    graph.add_edge("gather", "approve")
    app = graph.compile(checkpointer=InMemorySaver())
    kept.append(app)
    count = iter(range(10**9))

    async def park() -> None:
        config = {"configurable": {"thread_id": str(next(count))}}
        assert "__interrupt__" in await app.ainvoke({"messages": []}, config)

    return park


async def _burr(kept: list[object]) -> Park:
    from burr.core import ApplicationBuilder, GraphBuilder, State, action

    @action(reads=["messages"], writes=["messages"])
    async def gather(state: State) -> State:
        return state.extend(messages=_messages())

    @action(reads=["messages"], writes=["messages"])
    async def approve(state: State) -> State:
        return state

    graph = GraphBuilder().with_actions(gather=gather, approve=approve)
    graph = graph.with_transitions(("gather", "approve")).build()

    async def park() -> None:
        app = ApplicationBuilder().with_graph(graph).with_entrypoint("gather").with_state(messages=[]).build()
        await app.arun(halt_before=["approve"])
        kept.append(app)

    return park


ENGINES: dict[str, Callable[[list[object]], Awaitable[Park]]] = {
    "floor: one dict": _dict,
    "floor: one JSON text": _text,
    "ours": lambda kept: _kernel(kept, "OURS"),
    "ours, sqlite": _ours_on_disk,
    "prodagent": lambda kept: _kernel(kept, "PRODAGENT"),
    "langgraph": _langgraph,
    "burr": _burr,
}


async def _slope(engine: str) -> float:
    """KiB of resident memory per parked run, between the first and the third thousand."""
    kept: list[object] = []
    park = await ENGINES[engine](kept)
    points = []
    for _ in range(3):
        for _ in range(RUNS):
            await park()
        gc.collect()
        points.append(rss_kib())
    return (points[2] - points[0]) / (2 * RUNS)


async def memory(how: How) -> Table:
    """Measure each engine in processes of its own."""
    table = Table("A parked run with 20 messages", "KiB of memory", 1, floor="floor: one dict")
    for engine in filter(how.wants, ENGINES):
        figures = []
        for _ in range(how.repeats):
            command = [sys.executable, "-m", "bench.kernel.memory", engine]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                table.failed[engine] = done.stderr.strip().splitlines()[-1]
                break
            figures.append(float(done.stdout))
        else:
            table.cells[engine] = {1: statistics.median(figures)}
    return table


if __name__ == "__main__":
    print(asyncio.run(_slope(sys.argv[1])), flush=True)
    os._exit(0)
