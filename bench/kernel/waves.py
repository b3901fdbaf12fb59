"""Running: chains, loops, fan-outs, diamonds, and many runs at once."""

from __future__ import annotations

import asyncio
import gc
import importlib

from bench.common import PATIENCE, Case, How, Table, measure
from bench.kernel.workload import Engine

MODULES = ("limit", "plans", "langgraph", "burr", "pydantic_graph")

WORKLOADS = {
    "chain": (Table("Linear chain", "µs/node"), (10, 100, 1000)),
    "loop": (Table("Think/tools loop with a growing history", "µs/iteration"), (10, 100, 1000, 3000)),
    "fanout": (Table("Fan-out by Send", "µs/Send"), (10, 100, 1000, 5000)),
    "diamond": (Table("Fixed parallel branches", "µs/branch"), (10, 100, 1000)),
}


def engines() -> dict[str, Engine]:
    """All engines by label, the floor first."""
    found: dict[str, Engine] = {}
    for module in MODULES:
        found.update(importlib.import_module(f"bench.kernel.{module}").ENGINES)
    return found


async def workload(name: str, how: How) -> Table:
    """Time one workload over its sizes on all engines."""
    table, sizes = WORKLOADS[name]
    gc.collect()
    gc.freeze()
    for size in sizes:
        cases: dict[str, Case] = {}
        for label, engine in engines().items():
            if not how.wants(label) or label in table.failed or table.expected(label, size) > PATIENCE:
                continue
            try:
                case = getattr(engine, name)(size)
            except Exception as error:
                table.fail(label, size, f"{type(error).__name__}: {error}")
                continue
            if case is not None:
                cases[label] = case
        table.put(size, await measure(cases, how.repeats))
    return table


async def concurrent(how: How, runs: int = 200) -> Table:
    """Time `runs` chains of ten nodes at once."""

    def together(case: Case) -> Case:
        async def run() -> int:
            return sum(await asyncio.gather(*[case.run() for _ in range(runs)]))

        return Case(run, runs * case.want)

    table = Table("Many runs at once, ten nodes each", "µs/run")
    cases = {
        label: chain
        for label, engine in engines().items()
        if how.wants(label) and (chain := engine.chain(10))
    }
    table.put(runs, await measure({label: together(case) for label, case in cases.items()}, how.repeats))
    return table
