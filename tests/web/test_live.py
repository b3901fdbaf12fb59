"""The page's stream: rows by position, regions painted when they are stale, the same for every viewer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import Client, Message, serving
from tests.web.html import Element, parse


def targets(told: list[Message]) -> list[str]:
    """The targets of all parts in these messages, in order."""
    return [
        part["hx-target"]
        for message in told
        if not message.event
        for part in parse(message.data).all("hx-partial")
    ]


def rows(told: list[Message]) -> list[int]:
    """The positions of all rows in these messages, in order."""
    found = []
    for message in told:
        for part in parse(message.data).all("hx-partial") if not message.event else []:
            found += [int(row["data-at"]) for row in part.all("li") if part["hx-target"] == "#timeline"]
    return found


def watched(client: Client, run_id: str, query: str = "", **headers: str) -> list[Message]:
    """All messages of a run's page, up to the end of the run."""
    with client.stream_of(f"/runs/{run_id}/live{query}", **headers) as found:
        return list(found)


def until(found: Iterator[Message], target: str) -> list[Message]:
    """The messages up to the one that has a part for a target."""
    told = []
    for message in found:
        told.append(message)
        if target in targets([message]):
            return told
    raise AssertionError(f"the stream ended before {target}")


def test_rows_come_once_and_in_order_whatever_the_pace(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    with client.stream_of(f"/runs/{run_id}/live?after=2") as found:
        told = until(found, "#parked")
        client.answer(run_id, "check", approved=True)
        told += list(found)

    last = len(client.kinds(run_id))
    assert rows(told) == list(range(3, last + 1))
    assert told[-1].event == "end"


def test_a_message_with_rows_carries_the_position_of_its_last_row_and_no_other_does(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    client.answer(run_id, "check", approved=True)
    for message in watched(client, run_id):
        assert message.id == (str(rows([message])[-1]) if rows([message]) else "")


def test_every_message_is_one_line(client: Client) -> None:
    """What is one message stays one, however the bytes are cut on their way."""
    run_id = client.start("greets", "completed", input="two\nlines\r\nand\u2028more")

    assert all("\n" not in message.data for message in watched(client, run_id))


def test_a_question_arrives_as_its_card_and_leaves_as_its_decision(client: Client) -> None:
    run_id = client.start("asks", "suspended", options={"step": True})
    with client.stream_of(f"/runs/{run_id}/live") as found:
        client.put(f"/api/runs/{run_id}/breakpoints", json={"breakpoints": []})
        until(found, "#parked")
        client.post(f"/api/runs/{run_id}/continue")
        gone = until(found, "#parked")
        client.answer(run_id, "check", approved=False, comment="too dear")
        decided = until(found, '[data-step="check"]')

    assert '[data-step="@breakpoint"]' in targets(gone)
    assert _part(gone, "#parked").one("[data-step=check]").one("h2").text == "Pay?"
    assert "too dear" in _part(decided, '[data-step="check"]').text


def test_status_graph_and_grid_follow_the_run(client: Client) -> None:
    run_id = client.start("counts", "suspended", options={"step": True})
    with client.stream_of(f"/runs/{run_id}/live") as found:
        until(found, "#status")
        client.put(f"/api/runs/{run_id}/breakpoints", json={"breakpoints": []})
        client.post(f"/api/runs/{run_id}/continue")
        told = list(found)

    assert _part(told, "#status").one("#status")["data-mood"] == "completed"
    assert _part(told, "#output").text.count("20") >= 1
    assert len(_part(told, "#grid").all(".cell")) == 20
    assert _part(told, "#graph").one("#graph").all(".edge--goto")


def test_marks_of_the_graph_travel_with_the_rows(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    with client.stream_of(f"/runs/{run_id}/live") as found:
        told = until(found, "#parked")
    marks = [mark for message in told if message.event == "graph" for mark in json.loads(message.data)]

    at = client.kinds(run_id).index("interrupted") + 1
    assert {"id": "node-/check", "state": "parked", "wave": 2, "beat": 2, "at": at} in marks


def test_what_a_model_says_arrives_piece_by_piece_and_then_whole(scenario_folder: Path) -> None:
    with serving(store="memory:", scenarios=[scenario_folder], pace=0.05) as client:
        run_id = client.start("talks", "running")
        told = watched(client, run_id)

    pieces = [message.json for message in told if message.event == "token"]
    call = pieces[0]["call_id"]
    whole = _part(told, f'[data-stream="{call}"]')
    assert len(pieces) > 1
    assert whole.one("[data-content]").text == "One two three four five six."
    assert "One two three four five six.".endswith("".join(piece["text"] for piece in pieces))


def test_what_a_node_spends_follows_its_calls(scenario_folder: Path) -> None:
    with serving(store="memory:", scenarios=[scenario_folder], pace=0.05) as client:
        told = watched(client, client.start("talks", "running"))
    row = _part(told, "#spent").one("tbody").one("tr")

    assert row.one("code").text == "think"
    assert [cell.text for cell in row.all("td")][:2] == ["1", "0"]


def test_two_viewers_get_the_same_bytes(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    with client.stream_of(f"/runs/{run_id}/live") as one, client.stream_of(f"/runs/{run_id}/live") as two:
        until(one, "#parked")
        until(two, "#parked")
        client.answer(run_id, "check", approved=True)
        first, second = list(one), list(two)

    assert rows(first) == rows(second)
    assert "".join(m.data for m in first if m.id) == "".join(m.data for m in second if m.id)


def test_who_comes_back_is_told_how_much_was_missed(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    last = len(client.kinds(run_id))
    with client.stream_of(f"/runs/{run_id}/live?after=1", **{"last-event-id": str(last - 3)}) as found:
        told = until(found, "#parked")

    assert rows(told) == [last - 2, last - 1, last]
    assert [message.data for message in told if message.event == "caught-up"] == ["3"]


def test_who_was_away_when_a_question_was_decided_sees_the_decision(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    seen = str(len(client.kinds(run_id)))
    client.answer(run_id, "check", approved=False, comment="too dear")
    client.until(run_id, "completed")
    told = watched(client, run_id, **{"last-event-id": seen})

    assert "too dear" in _part(told, '[data-step="check"]').text
    assert _part(told, "#output").text
    assert told[-1].event == "end"


def test_who_has_seen_the_end_is_told_so_again(client: Client) -> None:
    """Case D39: a page would come back after a plain end of the stream."""
    run_id = client.start("greets", "completed")
    last = len(client.kinds(run_id))

    assert watched(client, run_id, **{"last-event-id": str(last)})[-1].event == "end"


def test_a_position_that_cannot_be_makes_the_page_begin_anew(client: Client) -> None:
    run_id = client.start("greets", "completed")
    told = watched(client, run_id, **{"last-event-id": "999"})

    assert told[0].event == "resync"
    assert rows(told) == list(range(1, len(client.kinds(run_id)) + 1))


def test_each_viewer_gets_the_page_in_the_own_language(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    with (
        client.stream_of(f"/runs/{run_id}/live", cookie="lang=zh") as chinese,
        client.stream_of(f"/runs/{run_id}/live") as english,
    ):
        zh, en = until(chinese, "#parked"), until(english, "#parked")

    assert _part(zh, "#parked").one("[value=approve]").text == "批准"
    assert _part(en, "#parked").one("[value=approve]").text == "Approve"


def test_a_crash_of_the_engine_shows_in_the_status(client: Client) -> None:
    run_id = client.start("sleeps", "running")
    with client.stream_of(f"/runs/{run_id}/live") as found:
        until(found, "#status")
        client.post(f"/api/runs/{run_id}/crash")
        mood = _part(until(found, "#status"), "#status").one("#status")["data-mood"]
    client.post(f"/api/runs/{run_id}/cancel")

    assert mood == "stopped"


def test_no_text_of_a_run_is_markup_in_its_stream(client: Client) -> None:
    """Case D40, live."""
    run_id = client.start(
        "greets", "completed", input="<img src=x onerror=alert(1)><hx-partial hx-target=body>"
    )
    told = watched(client, run_id)

    assert "body" not in targets(told)
    assert all(not parse(message.data).all("img") for message in told if not message.event)


@pytest.mark.parametrize(("query", "status"), [("?after=x", 422), ("?after=-1", 422)])
def test_a_position_in_the_address_must_be_one(client: Client, query: str, status: int) -> None:
    run_id = client.start("greets", "completed")

    assert client.get(f"/runs/{run_id}/live{query}").status_code == status
    assert client.get("/runs/run-000000000000/live").status_code == 404


def _part(told: list[Message], target: str) -> Element:
    """The last part for a target in these messages."""
    found = None
    for message in told:
        if not message.event:
            for part in parse(message.data).all("hx-partial"):
                found = part if part["hx-target"] == target else found
    assert found is not None, f"nothing came for {target}"
    return found
