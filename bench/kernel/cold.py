"""Starting: what an import costs in time and memory, in a process that has nothing yet."""

from __future__ import annotations

import statistics
import subprocess
import sys

from bench.common import How, Table

MODULES = {
    "floor: asyncio": "asyncio",
    "ours, kernel": "playground.kernel",
    "ours, facade": "playground.facade",
    "ours, web": "playground.web.app",
    "prodagent, kernel": "src.kernel",
    "langgraph": "langgraph.graph",
    "burr": "burr.core",
    "pydantic-graph": "pydantic_graph",
}

_PROBE = """
import sys, time
start = time.process_time()
import {module}
took = time.process_time() - start
status = open("/proc/self/status").read()
print(took * 1000, int(status.partition("VmRSS:")[2].split()[0]) / 1024)
"""


def cold(how: How) -> list[Table]:
    """Import each module in fresh processes, of which the first only fills the caches."""
    times = Table("Import", "ms of CPU", 1, floor="floor: asyncio", ours="ours, kernel")
    sizes = Table("Import, resident", "MiB", 1, floor="floor: asyncio", ours="ours, kernel")
    for label, module in MODULES.items():
        if not how.wants(label):
            continue
        command = [sys.executable, "-c", _PROBE.format(module=module)]
        runs = [
            subprocess.run(command, capture_output=True, text=True, check=False)
            for _ in range(how.repeats + 1)
        ]
        if runs[-1].returncode:
            times.failed[label] = runs[-1].stderr.strip().splitlines()[-1]
            continue
        figures = [[float(figure) for figure in run.stdout.split()] for run in runs[1:]]
        times.cells[label] = {1: statistics.median(took for took, _ in figures)}
        sizes.cells[label] = {1: statistics.median(size for _, size in figures)}
    return [times, sizes]
