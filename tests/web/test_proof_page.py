"""The fold proof on the page of a run: a badge, and what the state says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import Client, serving
from tests.web.html import Element, parse


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def on_files(folder: Path, scenario_folder: Path) -> Iterator[Client]:
    """A client of a server that keeps its runs in a folder of JSON files."""
    with serving(store=f"file:{folder}", scenarios=[scenario_folder]) as client:
        yield client


def page(client: Client, run_id: str, lang: str = "en") -> Element:
    return parse(client.get(f"/runs/{run_id}", headers={"accept-language": lang}).text)


def corrupt(folder: Path, run_id: str) -> None:
    file = folder / f"{run_id}.json"
    kept = json.loads(file.read_text(encoding="utf-8"))
    kept["snapshot"]["shared"]["amount"] = 4000
    file.write_text(json.dumps(kept), encoding="utf-8")


@pytest.mark.parametrize(("lang", "said"), [("en", "fold = checkpoint"), ("zh", "折叠 = 检查点")])
def test_a_parked_run_wears_the_badge_that_its_checkpoint_is_proved(
    on_files: Client, lang: str, said: str
) -> None:
    run_id = on_files.start("asks", "suspended")
    seen = page(on_files, run_id, lang)

    assert seen.one("#proof").text == said
    assert "chip--holds" in seen.one("#proof")["class"]


def test_a_corrupted_checkpoint_turns_the_badge_red_and_names_the_key(on_files: Client, folder: Path) -> None:
    run_id = on_files.start("asks", "suspended")
    page(on_files, run_id)
    corrupt(folder, run_id)

    seen = page(on_files, run_id)

    assert "chip--broken" in seen.one("#proof")["class"]
    assert "shared.amount" in seen.one("#inspect-proof").text


def test_a_checkpoint_that_nobody_can_read_is_told_like_a_wrong_one(on_files: Client, folder: Path) -> None:
    run_id = on_files.start("asks", "suspended")
    (folder / f"{run_id}.json").write_text("{", encoding="utf-8")

    assert "chip--broken" in page(on_files, run_id).one("#proof")["class"]


def test_a_run_without_a_checkpoint_has_no_badge_and_says_why(on_files: Client) -> None:
    run_id = on_files.start("greets", "completed")
    seen = page(on_files, run_id)

    assert "hidden" in seen.one("#proof").attributes
    assert "no checkpoint" in seen.one("#inspect-proof").text


def test_a_page_that_stays_open_asks_again_once_the_run_rests(on_files: Client) -> None:
    run_id = on_files.start("asks", "suspended")
    page(on_files, run_id)
    on_files.answer(run_id, "check", approved=True)
    on_files.until(run_id, "completed")

    parts = on_files.get(f"/runs/{run_id}/proof").text

    assert 'hx-target="#proof"' in parts
    assert 'hx-target="#inspect-proof"' in parts
    assert "chip--holds" in parts
