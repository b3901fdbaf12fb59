"""The comparisons with peers: one can be asked for without what the others need."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.parts import PARTS

ROOT = Path(__file__).resolve().parents[1]

WITHOUT_PEERS = """
import runpy, sys
sys.modules.update(dict.fromkeys(["playwright", "langgraph", "burr", "pydantic_graph", "prodagent"]))
sys.argv = ["bench", "--help"]
runpy.run_module("bench", run_name="__main__")
"""


def test_the_help_names_every_part_and_needs_no_peer() -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_PEERS], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert all(name in said.stdout for name in PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_where_its_name_says(name: str) -> None:
    module, function = PARTS[name]
    found = find_spec(f"bench.{module}")

    assert found is not None
    assert f"def {function}(" in Path(found.origin or "").read_text(encoding="utf-8")
