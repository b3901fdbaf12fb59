"""Coming back: a run with a long history waits for a person; it is loaded, answered and finished.

The history was gathered 100 messages a wave, so the log has its length too.
"""

from __future__ import annotations

import itertools
import json
import operator
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bench.common import Case, How, Table, measure
from bench.kernel.workload import Message, thought

SIZES = (1000, 10_000)
PER_WAVE = 100
Finish = Callable[[Path], Awaitable[int]]


async def _floor(folder: Path, n: int) -> Finish:
    (folder / "run.json").write_text(json.dumps({"messages": [thought(i) for i in range(n)]}))

    async def finish(folder: Path) -> int:
        state = json.loads((folder / "run.json").read_text())
        state["messages"].append({"role": "user", "content": "yes"})
        with (folder / "run.jsonl").open("a") as file:
            file.write(
                json.dumps({"seq": 1, "kind": "state_delta", "data": {"messages": state["messages"][-1:]}})
            )
        return len(state["messages"])

    return finish


async def _replay_floor(folder: Path, n: int) -> Finish:
    with (folder / "run.jsonl").open("w") as file:
        for i in range(n):
            file.write(
                json.dumps({"seq": i, "kind": "state_delta", "data": {"messages": [thought(i)]}}) + "\n"
            )

    async def finish(folder: Path) -> int:
        messages: list[Message] = []
        with (folder / "run.jsonl").open() as file:
            for line in file:
                messages += json.loads(line)["data"]["messages"]
        return len(messages) + 1

    return finish


async def _ours(folder: Path, n: int, scheme: str) -> Finish:
    from bench.kernel.plans import OURS
    from playground.backends import open_store

    plan = OURS.parked_plan(n, PER_WAVE)
    async with open_store(f"{scheme}:{folder / 'runs'}") as store:
        run_id = (await OURS.scheduler(eventlog=store.log, store=store.checkpoints).run(plan)).run_id

    async def finish(folder: Path) -> int:
        async with open_store(f"{scheme}:{folder / 'runs'}") as store:
            scheduler = OURS.scheduler(eventlog=store.log, store=store.checkpoints)
            return (await scheduler.resume(plan, run_id, "yes")).final_output

    return finish


async def _prodagent(folder: Path, n: int) -> Finish:
    from src.backends.file_store import FileCheckpointStore, FileEventLog

    from bench.kernel.plans import PRODAGENT

    def scheduler(folder: Path) -> Any:
        return PRODAGENT.scheduler(eventlog=FileEventLog(str(folder)), store=FileCheckpointStore(str(folder)))

    plan = PRODAGENT.parked_plan(n, PER_WAVE)
    run_id = (await scheduler(folder).run(plan, task="t")).run_id

    async def finish(folder: Path) -> int:
        return (await scheduler(folder).resume(plan, run_id, "yes")).final_output

    return finish


class _State(TypedDict):
    messages: Annotated[list[Message], operator.add]
    answer: str


async def _langgraph(folder: Path, n: int) -> Finish:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Command, interrupt

    async def gather(state: Any) -> Any:
        have = len(state["messages"])
        return {"messages": [thought(i) for i in range(have, min(n, have + PER_WAVE))]}

    async def approve(state: Any) -> Any:
        return {"messages": [{"role": "user", "content": interrupt("ok?")}]}

    async def final(state: Any) -> Any:
        return {"answer": str(len(state["messages"]))}

    graph = StateGraph(_State)
    for name, body in (("gather", gather), ("approve", approve), ("final", final)):
        graph.add_node(name, body)
    graph.add_edge(START, "gather")
    graph.add_conditional_edges(
        "gather", lambda s: "approve" if len(s["messages"]) >= n else "gather", ["approve", "gather"]
    )
    graph.add_edge("approve", "final")
    graph.add_edge("final", END)
    config = {"recursion_limit": 10**8, "configurable": {"thread_id": "1"}}

    async def go(folder: Path, what: Any) -> Any:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "run.db")) as saver:
            return await graph.compile(checkpointer=saver).ainvoke(what, config)

    await go(folder, {"messages": []})

    async def finish(folder: Path) -> int:
        return int((await go(folder, Command(resume="yes")))["answer"])

    return finish


async def _burr(folder: Path, n: int) -> Finish:
    from burr.core import ApplicationBuilder, GraphBuilder, State, action, default, when
    from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

    @action(reads=["messages"], writes=["messages", "full"])
    async def gather(state: State) -> State:
        have = len(state["messages"])
        more = [thought(i) for i in range(have, min(n, have + PER_WAVE))]
        return state.extend(messages=more).update(full=have + len(more) >= n)

    @action(reads=["messages"], writes=["messages"])
    async def approve(state: State) -> State:
        return state.append(messages={"role": "user", "content": "yes"})

    @action(reads=["messages"], writes=["answer"])
    async def final(state: State) -> State:
        return state.update(answer=len(state["messages"]))

    graph = GraphBuilder().with_actions(gather=gather, approve=approve, final=final)
    graph = graph.with_transitions(
        ("gather", "approve", when(full=True)), ("gather", "gather", default), ("approve", "final")
    ).build()

    async def go(folder: Path, **how: Any) -> Any:
        persister = await AsyncSQLitePersister.from_values(db_path=str(folder / "run.db"), table_name="t")
        await persister.initialize()
        builder = ApplicationBuilder().with_graph(graph).with_identifiers(app_id="a")
        builder = builder.with_state_persister(persister).initialize_from(
            persister,
            resume_at_next_action=True,
            default_state={"messages": [], "full": False},
            default_entrypoint="gather",
        )
        _, _, state = await (await builder.abuild()).arun(**how)
        await persister.cleanup()
        return state

    await go(folder, halt_before=["approve"])

    async def finish(folder: Path) -> int:
        return (await go(folder, halt_after=["final"]))["answer"]

    return finish


PARKED: dict[str, Callable[[Path, int], Awaitable[Finish]]] = {
    "floor: one JSON file": _floor,
    "floor: JSON lines, a message each": _replay_floor,
    "ours, file": lambda folder, n: _ours(folder, n, "file"),
    "ours, sqlite": lambda folder, n: _ours(folder, n, "sqlite"),
    "prodagent, files": _prodagent,
    "langgraph, sqlite": _langgraph,
    "burr, sqlite": _burr,
}


async def resume(how: How) -> Table:
    """Time load, answer and end; each time on a fresh copy of what is on disk."""
    root = Path(tempfile.mkdtemp(prefix="bench-resume-"))
    numbers = itertools.count()

    def on_a_copy(parked: Path, finish: Finish, want: int) -> Case:
        copies: list[Path] = []

        async def prepare() -> None:
            copies.append(root / str(next(numbers)))
            shutil.copytree(parked, copies[-1])

        return Case(lambda: finish(copies[-1]), want, prepare, lambda: shutil.rmtree(copies.pop()))

    table = Table(
        "Resume of a run with a long history", "µs/message", floor="floor: one JSON file", ours="ours, sqlite"
    )
    try:
        for size in SIZES:
            cases: dict[str, Case] = {}
            for label, park in PARKED.items():
                if not how.wants(label):
                    continue
                folder = root / f"{next(numbers)}"
                folder.mkdir()
                try:
                    cases[label] = on_a_copy(folder, await park(folder, size), size + 1)
                except Exception as error:
                    table.fail(label, size, f"{type(error).__name__}: {error}")
            table.put(size, await measure(cases, how.repeats, time.perf_counter))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return table
