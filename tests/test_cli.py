"""The command line, as real processes: what it prints and how it exits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def playground(tmp_path: Path) -> Run:
    """Run the command in an empty folder."""

    def run(*args: str | bytes, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "playground", *args],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONIOENCODING": "utf-8"},
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return run


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def test_a_run_that_completes_prints_its_events_as_json_and_exits_with_0(playground: Run) -> None:
    done = playground("run", "greeter", "--json")
    events = lines(done)
    assert done.returncode == 0
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert set(events[0]) == {"id", "seq", "run_id", "parent_id", "kind", "ts", "data"}
    assert events[-1]["kind"] == "run_completed"


@pytest.mark.parametrize(("verdict", "node"), [("--approve", "place_order"), ("--reject", "walk_away")])
def test_a_verdict_on_the_command_line_decides_which_ending_comes(
    playground: Run, verdict: str, node: str
) -> None:
    done = playground("run", "trader", verdict, "--json")
    assert done.returncode == 0
    assert node in {event["data"].get("node") for event in lines(done) if event["kind"] == "node_completed"}


def test_a_run_that_waits_exits_with_3_and_is_resumed_by_another_process(playground: Run) -> None:
    done = playground("run", "trader", "--json")
    run_id = str(lines(done)[0]["run_id"])
    assert done.returncode == 3
    resumed = playground("resume", run_id, "--approve", "--json")
    assert resumed.returncode == 0
    assert lines(resumed)[0]["kind"] == "resumed"
    again = playground("resume", run_id, "--approve")
    assert (again.returncode, again.stderr) == (
        2,
        f"playground: run {run_id} is completed: nothing to resume\n",
    )


def test_a_failed_run_exits_with_1(playground: Run, tmp_path: Path) -> None:
    playground("new", "mine")
    path = tmp_path / "mine.py"
    path.write_text(path.read_text(encoding="utf-8").replace("return {", "raise OSError({"), encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace('topic}."}', 'topic}."})'), encoding="utf-8")
    done = playground("run", "mine", "--scenarios", "mine.py")
    assert done.returncode == 1
    assert "node 'draft' failed: OSError" in done.stderr


def test_a_new_scenario_file_runs_as_it_is(playground: Run) -> None:
    assert playground("new", "mine").returncode == 0
    done = playground("run", "mine", "--scenarios", "mine.py", "--input", "the moon", "--approve")
    assert done.returncode == 0
    assert done.stdout.endswith("published\n")


def test_the_list_of_runs_tells_the_state_of_each(playground: Run) -> None:
    playground("run", "greeter")
    playground("run", "trader")
    listed = lines(playground("runs", "--json"))
    assert [(row["scenario"], row["state"]) for row in listed] == [
        ("trader", "suspended"),
        ("greeter", "completed"),
    ]


def test_a_run_can_be_shown_as_it_was_and_exported_and_imported(playground: Run) -> None:
    run_id = str(lines(playground("run", "trader", "--json"))[0]["run_id"])
    shown = lines(playground("show", run_id, "--json", "--at", "2"))[0]
    assert (shown["at"], shown["state"], shown["wave"]) == (2, "running", 1)
    exported = playground("export", run_id).stdout
    taken = playground("import", "-", stdin=exported)
    assert taken.returncode == 0
    copy = taken.stdout.strip()
    assert lines(playground("show", copy, "--json"))[0]["state"] == "suspended"


def test_a_run_can_be_written_as_a_test(playground: Run) -> None:
    run_id = str(lines(playground("run", "trader", "--approve", "--json"))[0]["run_id"])
    written = playground("export", run_id, "--test")

    assert written.returncode == 0
    assert "'4 place_order: started (edges approve), returned'," in written.stdout
    compile(written.stdout, "test_trader.py", "exec")


def test_a_run_goes_on_to_its_end_when_nobody_reads_what_it_says(playground: Run, tmp_path: Path) -> None:
    listening, said = os.pipe()
    os.close(listening)
    with os.fdopen(said, "wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "playground", "run", "trader", "--approve"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert [row["state"] for row in lines(playground("runs", "--json"))] == ["completed"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no full disk to write to")
def test_an_output_that_is_full_is_one_clear_line(playground: Run, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "playground", "new", "mine"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == (
        b"playground: standard output cannot be used: No space left on device; choose another place\n"
    )


def test_a_person_who_leaves_leaves_the_run_waiting_and_the_output_clean(playground: Run) -> None:
    done = playground("run", "trader", "--ask", "--json", stdin="perhaps\n")
    assert done.returncode == 3
    assert lines(done)[-1]["kind"] == "run_suspended"
    assert "Traceback" not in done.stderr


def test_a_typed_answer_is_of_the_type_that_the_question_asks_for(playground: Run, tmp_path: Path) -> None:
    playground("new", "mine")
    path = tmp_path / "mine.py"
    asked = 'wait_human("How many?", kind="input", schema={"type": "integer"})'
    text = path.read_text(encoding="utf-8")
    text = text.replace('wait_human("Publish it?", {"text": ctx.shared["text"]})', asked)
    path.write_text(
        text.replace(
            '"published" if ctx.resume_value["approved"] else "thrown away"', "repr(ctx.resume_value)"
        ),
        encoding="utf-8",
    )
    done = playground("run", "mine", "--scenarios", "mine.py", "--ask", stdin="3\n")
    assert done.stdout.endswith("\n3\n")
    wrong = playground("run", "mine", "--scenarios", "mine.py", "--ask", stdin="three\n")
    assert wrong.returncode == 2
    assert "does not fit; as a whole: 'three' is not of type 'integer'" in wrong.stderr


@pytest.mark.parametrize("at", ["0", "-3", "999"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_position_that_a_run_has_not_reached_is_refused(playground: Run, at: str, form: list[str]) -> None:
    run_id = str(lines(playground("run", "greeter", "--json"))[0]["run_id"])
    done = playground("show", run_id, f"--at={at}", *form)
    assert done.returncode == 2
    assert f"has no position {at}: choose one from 1 to " in done.stderr


def test_odd_separators_in_a_text_survive_export_and_import(playground: Run) -> None:
    """Case D46: a line of a bundle ends at a line feed alone."""
    odd = "a\u2028b\x85c\x1c"
    run_id = str(lines(playground("run", "greeter", "--input", odd, "--json"))[0]["run_id"])
    taken = playground("import", "-", stdin=playground("export", run_id).stdout)
    assert (taken.returncode, taken.stderr) == (0, "")
    assert lines(playground("runs", "--json"))[0]["task"] == odd


def test_a_text_cannot_steer_the_terminal_or_break_a_line(playground: Run) -> None:
    done = playground("run", "greeter", "--input", "one\ntwo\x1b[2J")
    assert playground("runs").stdout.count("\n") == 1
    assert "\x1b" not in done.stdout + playground("runs").stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "nope"], "there is no scenario 'nope'"),
        (["resume", "run-0", "--approve"], "there is no run run-0"),
        (["resume", "../../x", "--approve"], "is not a run id"),
        (["runs", "--store", "foo:bar"], "names no store"),
        (["runs", "--store", "sqlite:."], "this is a folder: name a file in it"),
        (["run", "greeter", "--scenarios", "missing"], "there is no such folder or file"),
        (["run", "greeter", "--input", b"\xff"], "the input holds text with the lone surrogate"),
        (["import", "missing.jsonl"], "cannot be read: No such file or directory"),
        (["import", "."], "cannot be read: Is a directory"),
        (["new", "a-b"], "is not a name for a scenario"),
    ],
)
def test_wrong_use_is_one_clear_line_and_exit_code_2(
    playground: Run, args: list[str | bytes], said: str
) -> None:
    done = playground(*args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_store_is_one_clear_line_and_is_left_alone(playground: Run, tmp_path: Path) -> None:
    junk = tmp_path / "junk.db"
    junk.write_text("not a database" * 100)
    done = playground("runs", "--store", "sqlite:junk.db")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert junk.read_text() == "not a database" * 100
