"""docs/agenton.md tells the truth: each program prints what stands under it, each row of the table holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from layer_probes import Boom, Stage, states

from playground.agenton.layers import LifecycleState

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "agenton.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```\n\n```text\n(.*?)^```", GUIDE, re.S | re.M
)
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GUIDE.splitlines()
    if line.startswith(("| new |", "| stored |"))
]


def test_every_program_of_the_guide_is_run() -> None:
    assert len(PROGRAMS) == GUIDE.count("```python\n") == 7
    assert len(ROWS) == 10


@pytest.mark.parametrize(("program", "printed"), [p[1:] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS])
def test_a_program_of_the_guide_prints_what_it_says(program: str, printed: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.stdout == printed, done.stderr


@pytest.mark.parametrize(("entry", "intent", "fails", "then", "a", "b", "c"), ROWS, ids=lambda cell: cell)
async def test_a_failure_leaves_each_layer_where_the_table_says(
    entry: str, intent: str, fails: str, then: str, a: str, b: str, c: str
) -> None:
    stage = Stage("abc")
    stored = None
    if entry == "stored":
        async with stage.compositor.enter() as earlier:
            earlier.suspend_on_exit()
        stored = earlier.session_snapshot
    step = fails.strip("`")
    stage.failing = {"b": frozenset({step.removeprefix("b: ")})}
    run = stage.compositor.enter(session_snapshot=stored)

    async def work() -> None:
        async with run:
            if intent == "suspend":
                run.suspend_on_exit()
            stage.trace.append("body")
            if step == "body":
                raise Boom("body")

    with pytest.raises(Boom, match=step):
        await work()
    last = len(stage.trace) - 1 - stage.trace[::-1].index(step)
    assert stage.trace[last + 1 :] == re.findall(r"`(.*?)`", then)
    assert states(run) == {"a": LifecycleState[a], "b": LifecycleState[b], "c": LifecycleState[c]}
    assert run.session_snapshot == run.snapshot_session()
