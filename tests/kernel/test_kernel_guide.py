"""docs/kernel.md tells the truth: its programs print what they say, its tables name all there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from playground import kernel
from playground.kernel.readiness import READY
from playground.kernel.run import STEPS
from tests.kernel.test_law1_every_fact_is_an_event import KINDS
from tests.kernel.test_law8_the_engine_can_say_why import SKIPS, WAITS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
KERNEL = ROOT / "playground" / "kernel"
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", GUIDE, re.S | re.M)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its first two lines."""
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(text: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", text)


def test_every_program_of_the_guide_is_run() -> None:
    assert len(PROGRAMS) == GUIDE.count("```python\n") == 3


@pytest.mark.parametrize(("program", "printed"), PROGRAMS)
def test_a_program_of_the_guide_prints_what_it_says(program: str, printed: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=env, check=False)
    assert done.stdout == printed, done.stderr


def test_the_reading_order_has_every_file_in_the_order_that_the_package_tells() -> None:
    told = [names(row[0])[0] for row in rows("Reading order")]
    assert sorted(told) == sorted(path.stem for path in KERNEL.glob("*.py") if path.stem != "__init__")
    in_package = re.search(r"in this order: (.*?)\.\n", kernel.__doc__ or "", re.S)
    assert in_package
    assert told == re.findall(r"\w+", in_package[1])


def test_each_law_has_its_file_of_tests() -> None:
    told = rows("The eight laws")
    assert [row[0] for row in told] == [str(number) for number in range(1, 9)]
    for row in told:
        for name in re.findall(r"`(test_\w+\.py)`", row[2]):
            assert (ROOT / "tests" / "kernel" / name).exists(), name


def test_the_table_of_event_kinds_has_every_kind_and_all_that_it_must_carry() -> None:
    told = {names(row[0])[0]: set(names(row[1])) for row in rows("Event kinds")}
    assert told.keys() == STEPS.keys() == KINDS.keys()
    for kind, keys in KINDS.items():
        if kind != "node_queued":
            assert keys - {"node", "wave"} <= told[kind], kind


def test_every_code_of_a_failure_and_of_a_reason_is_told() -> None:
    source = (KERNEL / "driver.py").read_text() + (KERNEL / "scheduler.py").read_text()
    codes = set(re.findall(r'fail\((?:[^()]|\([^()]*\))*?,\s*"([a-z_]+)"', source))
    assert codes == {code for row in rows("How each failure ends") for code in names(row[2])}
    why = GUIDE.partition("\n## Why\n")[2].partition("\n## ")[0].partition("Codes to run:")[2]
    assert set(names(why)) == READY | WAITS | SKIPS
