"""The catalog: files by path, read again when they change, broken ones with their reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from playground.sessions import Catalog, Conflict, NotFound
from tests.sessions.conftest import Opener


def test_a_file_that_does_not_parse_is_an_entry_with_its_line(folder: Path) -> None:
    (folder / "bad.py").write_text("x = 1\ndef broken(:\n", encoding="utf-8")
    entries = {entry.key: entry for entry in Catalog([folder]).entries()}
    assert entries["asks"].scenario is not None
    assert "bad.py, line 2: SyntaxError" in entries["bad"].error


def test_a_file_that_raises_shows_the_traceback_of_its_own_lines(folder: Path) -> None:
    (folder / "bad.py").write_text("def f():\n    return 1 / 0\nf()\n", encoding="utf-8")
    entry = Catalog([folder]).get("bad")
    assert "line 2: ZeroDivisionError" in entry.error
    assert 'File "bad.py", line 2' in entry.trace
    assert "importlib" not in entry.trace


def test_a_file_that_leaves_the_program_is_only_broken(folder: Path) -> None:
    (folder / "bad.py").write_text("import sys; sys.exit(3)", encoding="utf-8")
    assert "SystemExit" in Catalog([folder]).get("bad").error


@pytest.mark.parametrize(
    "text",
    [
        "class Own(BaseException): pass\nraise Own('x')",
        "import asyncio\nraise asyncio.CancelledError",
        "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute",
        "raise ValueError('\\ud800')",
        "def f(): f()\nf()",
    ],
)
def test_whatever_a_file_raises_it_is_only_broken(folder: Path, text: str) -> None:
    (folder / "bad.py").write_text(text, encoding="utf-8")
    entry = Catalog([folder]).get("bad")
    assert entry.scenario is None
    assert entry.error.startswith("bad.py, line ")
    (entry.error + entry.trace).encode("utf-8")


def test_a_folder_that_is_named_from_here_shows_lines_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bad.py").write_text("x = 1\nx / 0", encoding="utf-8")
    monkeypatch.chdir(folder)
    assert Catalog([Path()]).get("bad").error.startswith("bad.py, line 2: ZeroDivisionError")


def test_an_extra_in_a_package_that_is_not_there_is_missing(folder: Path) -> None:
    path = folder / "asks.py"
    text = path.read_text(encoding="utf-8").replace("make=", 'requires=("no_such.extra",), make=')
    path.write_text(text, encoding="utf-8")
    assert Catalog([folder]).get("asks").missing == ("no_such.extra",)


def test_a_file_without_a_scenario_says_how_to_end_it(folder: Path) -> None:
    (folder / "bad.py").write_text("x = 1", encoding="utf-8")
    with pytest.raises(Conflict, match="end it with scenario = Scenario"):
        Catalog([folder]).scenario("bad")


def test_a_saved_file_is_read_again(folder: Path) -> None:
    catalog = Catalog([folder])
    path = folder / "asks.py"
    assert catalog.scenario("asks").title["en"] == "Asks"
    path.write_text(path.read_text(encoding="utf-8").replace('"Asks"', '"Asks twice"'), encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert catalog.scenario("asks").title["en"] == "Asks twice"


def test_an_entry_is_the_same_until_its_file_changes(folder: Path) -> None:
    catalog = Catalog([folder])
    entry = catalog.get("asks")
    assert catalog.get("asks") is entry
    os.utime(folder / "asks.py", ns=(1, 1))
    assert catalog.get("asks") is not entry


def test_files_that_come_and_go_are_noticed(folder: Path) -> None:
    catalog = Catalog([folder])
    assert [entry.key for entry in catalog.entries()] == ["asks"]
    (folder / "bad.py").write_text("x = 1", encoding="utf-8")
    assert [entry.key for entry in catalog.entries()] == ["asks", "bad"]
    (folder / "asks.py").unlink()
    assert [entry.key for entry in catalog.entries()] == ["bad"]


def test_a_place_that_is_not_there_is_an_entry_with_the_reason(folder: Path) -> None:
    assert "cannot be read: No such file" in Catalog([folder / "gone.py"]).get("gone").error


def test_what_one_learns_first_stands_first_in_its_folder(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name, order in (("b_second", 2), ("a_third", 3), ("c_first", 1), ("d_silent", 0)):
        text = (
            (folder / "asks.py")
            .read_text(encoding="utf-8")
            .replace('key="asks"', f'key="{name}", order={order}')
        )
        (own / f"{name}.py").write_text(text, encoding="utf-8")
    keys = [entry.key for entry in Catalog([own, folder]).entries()]
    assert keys[:4] == ["d_silent", "c_first", "b_second", "a_third"]
    assert "asks" in keys[4:]


def test_an_order_that_is_no_number_breaks_its_file_alone(folder: Path) -> None:
    text = (folder / "asks.py").read_text(encoding="utf-8")
    (folder / "odd.py").write_text(text.replace('key="asks"', 'key="odd", order="first"'), encoding="utf-8")
    assert "use a whole number" in Catalog([folder]).get("odd").error


def test_two_files_of_one_key_are_told_apart(folder: Path) -> None:
    text = (folder / "asks.py").read_text(encoding="utf-8")
    (folder / "twin.py").write_text(text, encoding="utf-8")
    errors = [entry.error for entry in Catalog([folder]).entries() if entry.error]
    assert errors == ["twin.py and asks.py both define 'asks': rename one"]


def test_an_unknown_key_names_the_known_ones(folder: Path) -> None:
    with pytest.raises(NotFound, match="there is no scenario 'nope'; there are asks"):
        Catalog([folder]).get("nope")


async def test_a_plan_is_built_once_for_a_language_until_its_file_changes(
    opened: Opener, folder: Path
) -> None:
    async with opened() as sessions:
        plan = sessions.blueprints.plan("asks")
        assert sessions.blueprints.plan("asks") is plan
        assert sessions.blueprints.plan("asks", "zh") is not plan
        os.utime(folder / "asks.py", ns=(1, 1))
        assert sessions.blueprints.plan("asks") is not plan


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import sys\n    sys.exit(3)", "SystemExit: 3"),
        ("raise type('Own', (BaseException,), {})('x')", "Own: x"),
        ("return None", "TypeError: NoneType cannot be run"),
    ],
)
async def test_a_scenario_that_cannot_be_built_harms_only_itself(
    folder: Path, opened: Opener, body: str, why: str
) -> None:
    path = folder / "bad.py"
    text = (folder / "asks.py").read_text(encoding="utf-8").replace('key="asks"', 'key="bad"')
    path.write_text(text.replace("def build(env):", f"def build(env):\n    {body}\n", 1), encoding="utf-8")
    async with opened("memory:") as sessions:
        with pytest.raises(Conflict, match=f"scenario 'bad' cannot be built: {why}"):
            await sessions.start("bad")
        with pytest.raises(Conflict, match="scenario 'bad' cannot be built"):
            sessions.blueprints.plan("bad")
        await sessions.start("asks")
