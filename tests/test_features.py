"""The list of features names tests that exist, for every feature that the run page promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
ROWS = {
    int(number): re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", proof)
    for number, proof in re.findall(r"^\| (\d+) \|.*?\| (.*) \|$", LIST, re.MULTILINE)
}


def test_every_test_that_a_feature_names_exists() -> None:
    named = {proof for proofs in ROWS.values() for proof in proofs}
    missing = [
        f"{file}::{name}"
        for file, name in sorted(named)
        if not re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]

    assert missing == []


def test_every_row_names_a_test() -> None:
    assert [number for number, proofs in ROWS.items() if not proofs] == []
    assert len(ROWS) == len(re.findall(r"^\| \d+ ", LIST, re.MULTILINE))


def test_no_feature_of_the_run_page_is_left_out() -> None:
    promised = {*range(1, 5), *range(10, 16), *range(17, 21), 27, 31, 32}

    assert promised <= ROWS.keys()
