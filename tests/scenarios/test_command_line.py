"""Each scenario in a terminal: consent leads twice to one end, refusal to another; nothing is done twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from playground.cli import COMPLETED, main
from playground.kernel import JsonObject, JsonValue
from tests.scenarios.stage import KEYS
from tests.scenarios.test_bundled import ENDINGS

Capture = pytest.CaptureFixture[str]


def play(key: str, verdict: str, store: str, capsys: Capture) -> tuple[JsonValue, list[JsonObject]]:
    """The output of `playground run KEY VERDICT --json`, and all its lines."""
    assert main(["run", key, verdict, "--json", "--store", store]) == COMPLETED
    events: list[JsonObject] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [ended] = [event for event in events if event["kind"] == "run_completed" and not event["parent_id"]]
    return ended["data"]["output"], events  # type: ignore[index,call-overload,return-value]


def results(events: list[JsonObject]) -> list[JsonValue]:
    """What came back from models and tools, by the place in the run that asked."""
    kinds = ("model_returned", "tool_returned")
    return [event["data"]["call_id"] for event in events if event["kind"] in kinds]  # type: ignore[index,call-overload,misc]


@pytest.mark.parametrize("key", KEYS)
def test_with_consent_it_completes_and_a_second_time_with_the_same_output(
    key: str, tmp_path: Path, capsys: Capture
) -> None:
    store = f"sqlite:{tmp_path / 'runs.db'}?sync=normal"
    first, _ = play(key, "--approve", store, capsys)
    second, _ = play(key, "--approve", store, capsys)
    assert first
    assert first == second


@pytest.mark.parametrize("key", KEYS)
def test_without_consent_it_goes_on_to_its_other_ending_and_does_nothing_again(
    key: str, tmp_path: Path, capsys: Capture
) -> None:
    output, events = play(key, "--reject", f"sqlite:{tmp_path / 'runs.db'}?sync=normal", capsys)
    came = results(events)
    assert len(set(map(str, came))) == len(came)
    assert sum(event["kind"] == "run_started" and not event["parent_id"] for event in events) == 1
    assert any(event["kind"] == "interrupted" for event in events) == (key in ENDINGS)
    assert ENDINGS.get(key, ("", ""))[1] in str(output)
