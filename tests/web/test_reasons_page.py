"""What the inspector says of a moment: who wrote what, which function ran, and how often a body began."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import Client, serving, write_scenario
from tests.web.html import Element, parse

BOARD = """
from playground import append


def make(env):
    flow = Workflow().channel("board", append())
    flow.add("law", lambda _: {"board": ["lawful"]})
    flow.add("cost", lambda _: {"board": ["cheap"]})
    return flow
"""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server with a scenario whose two nodes write to one list in one wave."""
    folder = tmp_path_factory.mktemp("board")
    write_scenario(folder, "board", BOARD)
    with serving(store="memory:", scenarios=[folder]) as client:
        yield client


@pytest.fixture(scope="module")
def payment() -> Iterator[Client]:
    """A server with a scenario whose body calls two tools, of which the second asks a person."""
    with serving(store="memory:", scenarios=[Path(__file__).parents[1] / "browser" / "scenarios"]) as client:
        yield client


def moment(client: Client, run_id: str, at: int) -> Element:
    return parse(client.get(f"/runs/{run_id}/moment?at={at}").text)


def at(client: Client, run_id: str, kind: str, node: str = "") -> list[int]:
    """The positions of a run's events of a kind, about a node."""
    events = client.get(f"/api/runs/{run_id}/events").json()
    return [e["id"] for e in events if e["kind"] == kind and node in ("", e["data"].get("node"))]


def test_two_writers_of_one_wave_are_shown_with_what_each_wrote_and_the_fold(board: Client) -> None:
    run_id = board.start("board", "completed")
    (folded,) = at(board, run_id, "state_delta")

    channel = moment(board, run_id, folded).one(".channel--changed")

    writes = [write.text for write in channel.all(".channel__write")]
    assert writes == ['law ["lawful"]', 'cost ["cheap"]']
    assert "append" in channel.text
    assert channel.one(".channel__before").text == "before []"
    assert "lawful" in channel.one(".channel__after").text
    assert "cheap" in channel.one(".channel__after").text


def test_a_write_leads_to_the_event_that_wrote_it(board: Client) -> None:
    run_id = board.start("board", "completed")
    (folded,) = at(board, run_id, "state_delta")

    links = [link["href"] for link in moment(board, run_id, folded).one(".channel--changed").all("a")]

    assert links == [
        f"#step={pos}" for node in ("law", "cost") for pos in at(board, run_id, "node_completed", node)
    ]


def test_choosing_a_node_shows_its_function(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    (drafted,) = at(client, run_id, "node_completed", "draft")

    shown = parse(client.get(f"/runs/{run_id}/source?at={drafted}").text)
    active = [line.text for line in shown.all(".source__line--active")]

    assert active[0].strip().startswith("def draft(topic)")
    assert not any("def check" in line for line in active)


def test_a_parked_node_says_that_its_body_runs_again_and_then_how_often_it_has_started(
    client: Client,
) -> None:
    run_id = client.start("asks", "suspended")
    card = parse(client.get(f"/runs/{run_id}").text).one(".step")
    assert "The body of check runs again from its top: run 2." in card.text
    client.answer(run_id, "check", approved=True)
    client.until(run_id, "completed")

    *_, last = at(client, run_id, "node_completed", "check")

    assert "It has started 2 times." in moment(client, run_id, last).text


def test_a_call_that_runs_again_is_flagged_and_one_that_had_returned_is_given_back(payment: Client) -> None:
    run_id = payment.start("pays", "suspended")
    payment.answer(run_id, "buy/pay", approved=True)
    payment.until(run_id, "completed")

    rows = parse(payment.get(f"/runs/{run_id}").text).one("#timeline")

    called = [row.text for row in rows.all("li") if row["data-kind"] == "tool_called"]
    assert ["ran again: 2×" in text for text in called] == [False, False, True]
    assert "pay" in called[2]
    started = [row.text for row in rows.all("li") if row["data-kind"] == "node_started"]
    assert ["Given back from memory: price." in text for text in started] == [False, True]
