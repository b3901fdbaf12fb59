"""Keeping: a loop whose every wave is on disk before the next begins, in time and in bytes.

The floors write what a log must hold, one batch a wave.  They differ in what a
crash can take: without a sync, the machine's power failing may cost the tail.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from bench.common import Case, How, Table, measure
from bench.kernel.workload import Message, result, thought

SIZES = (100, 1000)
Loop = Callable[[Path], Awaitable[int]]


def _waves(n: int) -> Iterator[tuple[str, list[Message]]]:
    for i in range(n):
        yield "think", [thought(i)]
        yield "tools", [result(i + 1)]


def _records(seq: int, node: str, messages: list[Message]) -> list[dict[str, Any]]:
    """What one wave adds to a log."""
    return [
        {"seq": seq, "kind": "node_started", "data": {"node": node}},
        {"seq": seq + 1, "kind": "node_completed", "data": {"node": node}},
        {"seq": seq + 2, "kind": "state_delta", "data": {"messages": messages}},
    ]


def _jsonl(n: int, sync: bool) -> Loop:
    async def loop(folder: Path) -> int:
        have = 0
        with (folder / "run.jsonl").open("ab", buffering=0) as file:
            for wave, (node, messages) in enumerate(_waves(n)):
                lines = [json.dumps(record) for record in _records(3 * wave, node, messages)]
                file.write(("\n".join(lines) + "\n").encode())
                if sync:
                    os.fdatasync(file.fileno())
                have += len(messages)
        return have

    return loop


def _sqlite(n: int, synchronous: str) -> Loop:
    async def loop(folder: Path) -> int:
        have = 0
        base = sqlite3.connect(folder / "run.db", isolation_level=None)
        base.execute("pragma journal_mode=wal")
        base.execute(f"pragma synchronous={synchronous}")
        base.execute("create table event(run text, seq int, body text, primary key(run, seq)) without rowid")
        for wave, (node, messages) in enumerate(_waves(n)):
            rows = [("r", record["seq"], json.dumps(record)) for record in _records(3 * wave, node, messages)]
            base.execute("begin")
            base.executemany("insert into event values(?, ?, ?)", rows)
            base.execute("commit")
            have += len(messages)
        base.close()
        return have

    return loop


def _ours(n: int, scheme: str) -> Loop:
    from bench.kernel.plans import OURS
    from playground.backends import open_store

    plan = OURS.loop_plan(n)

    async def loop(folder: Path) -> int:
        async with open_store(f"{scheme}:{folder / 'runs'}") as store:
            return await OURS.finish(plan, "messages", eventlog=store.log, store=store.checkpoints)

    return loop


def _prodagent(n: int) -> Loop:
    from src.backends.file_store import FileCheckpointStore, FileEventLog

    from bench.kernel.plans import PRODAGENT

    plan = PRODAGENT.loop_plan(n)

    async def loop(folder: Path) -> int:
        parts = {"eventlog": FileEventLog(str(folder)), "store": FileCheckpointStore(str(folder))}
        return await PRODAGENT.finish(plan, "messages", **parts)

    return loop


def _langgraph(n: int) -> Loop:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from bench.kernel.langgraph import LangGraph

    graph = LangGraph.loop_graph(n)

    async def loop(folder: Path) -> int:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "run.db")) as saver:
            config = {"recursion_limit": 10**8, "configurable": {"thread_id": "1"}}
            app = graph.compile(checkpointer=saver)
            return len((await app.ainvoke({"messages": [], "i": 0}, config, durability="sync"))["messages"])

    return loop


def _burr(n: int) -> Loop:
    from burr.core import ApplicationBuilder
    from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

    from bench.kernel.burr import Burr

    graph = Burr.loop_graph(n)

    async def loop(folder: Path) -> int:
        persister = await AsyncSQLitePersister.from_values(db_path=str(folder / "run.db"), table_name="t")
        await persister.initialize()
        builder = ApplicationBuilder().with_graph(graph).with_entrypoint("think").with_identifiers(app_id="a")
        builder = builder.with_state(messages=[], i=0, done=False).with_state_persister(persister)
        _, _, state = await (await builder.abuild()).arun(halt_after=["end"])
        await persister.cleanup()
        return len(state["messages"])

    return loop


LOOPS: dict[str, Callable[[int], Loop]] = {
    "floor: JSON lines, a write a wave": lambda n: _jsonl(n, sync=False),
    "floor: JSON lines, a sync a wave": lambda n: _jsonl(n, sync=True),
    "floor: SQLite WAL, NORMAL": lambda n: _sqlite(n, "normal"),
    "floor: SQLite WAL, FULL": lambda n: _sqlite(n, "full"),
    "ours, file": lambda n: _ours(n, "file"),
    "ours, sqlite": lambda n: _ours(n, "sqlite"),
    "prodagent, files (no sync)": _prodagent,
    "langgraph, sqlite": _langgraph,
    "burr, sqlite": _burr,
}


def _handed_to_write() -> int:
    """Bytes that this process has handed to write() so far (Linux)."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").partition("wchar:")[2].split()[0])


async def durable(how: How) -> list[Table]:
    """Time the loop on each store, and count the bytes that it writes for its result."""
    root = Path(tempfile.mkdtemp(prefix="bench-durable-"))
    numbers = itertools.count()
    written: dict[str, int] = {}

    def in_a_folder_of_its_own(label: str, loop: Loop, want: int) -> Case:
        folders: list[Path] = []

        async def prepare() -> None:
            folders.append(root / str(next(numbers)))
            folders[-1].mkdir()

        async def run() -> int:
            before = _handed_to_write()
            answer = await loop(folders[-1])
            written[label] = _handed_to_write() - before
            return answer

        return Case(run, want, prepare, lambda: shutil.rmtree(folders.pop()))

    floor = "floor: JSON lines, a write a wave"
    times = Table("Loop with every wave on disk", "µs/iteration", floor=floor, ours="ours, sqlite")
    volume = Table(
        "The same, written", "bytes/iteration handed to write()", 1, floor=floor, ours="ours, sqlite"
    )
    try:
        for size in SIZES:
            cases: dict[str, Case] = {}
            for label, make in LOOPS.items():
                if not how.wants(label):
                    continue
                try:
                    cases[label] = in_a_folder_of_its_own(label, make(size), 2 * size)
                except Exception as error:
                    times.fail(label, size, f"{type(error).__name__}: {error}")
            measured = await measure(cases, how.repeats, time.perf_counter)
            times.put(size, measured)
            for label in [label for label in LOOPS if label in written]:
                volume.cells.setdefault(label, {})[size] = written[label]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return [times, volume]
