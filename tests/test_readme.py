"""The README: its code runs and prints what it says, and what it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def run(*args: str) -> str:
    """What Python prints with these arguments."""
    done = subprocess.run(
        [sys.executable, *args], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_the_code_prints_what_the_readme_says() -> None:
    found = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", README, re.DOTALL)
    assert found is not None
    assert run("-c", found.group(1)) == found.group(2)


def test_every_file_that_it_names_is_there() -> None:
    named = re.findall(r"`((?:docs|scenarios|playground|tests)/[\w/.]*)`", README)
    named += re.findall(r"\]\((docs/[\w/.]+)\)", README)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_command_that_it_names_is_one() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    helped = run("-m", "playground", "--help")
    for command in re.findall(r"`playground (\w+)", README):
        assert f" {command} " in helped
