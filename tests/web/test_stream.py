"""Live streams: nothing missed, nothing twice, nobody held up, and an end."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from playground.web import stream
from tests.web.conftest import Client, Message, lines_of, messages, serving


def ids(told: list[Message]) -> list[int]:
    return [int(message.id) for message in told if message.id]


# What a viewer gets


def test_a_stream_tells_the_whole_run_in_order_and_ends(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    client.answer(run_id, "check", approved=True)
    told = client.told(run_id)

    listed = client.get(f"/api/runs/{run_id}/events").json()
    assert [message.json for message in told[:-1]] == listed
    assert [message.event for message in told[:-1]] == [event["kind"] for event in listed]
    assert ids(told) == list(range(1, len(listed) + 1))
    assert told[-1] == Message("end", "{}")


def test_events_arrive_while_the_run_goes_on(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    with client.stream_of(f"/api/runs/{run_id}/events") as found:
        before = [next(found) for _ in client.kinds(run_id)]
        client.answer(run_id, "check", approved=True)
        after = list(found)

    assert before[-1].event == "run_suspended"
    assert after[0].event == "resumed"
    assert [message.event for message in after][-2:] == ["run_completed", "end"]


def test_two_viewers_both_get_everything_in_order(client: Client) -> None:
    """Case D56: tabs do not split the events between them."""
    run_id = client.start("notes", "running", input="100")
    seen: dict[int, list[int]] = {}

    def watch(number: int) -> None:
        seen[number] = ids(client.told(run_id))

    viewers = [threading.Thread(target=watch, args=(number,)) for number in range(2)]
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()

    everything = list(range(1, len(client.kinds(run_id)) + 1))
    assert len(everything) > 100
    assert seen == {0: everything, 1: everything}


@pytest.mark.parametrize(
    "odd", ["\n\n\n", "a\n", "a\rb", "a\u2028b", "a\u0085b", "</script>", "data: x\n\nid: 9"]
)
def test_a_text_arrives_as_it_was_in_one_event(client: Client, odd: str) -> None:
    """Case D54: no separator in a text is taken for one of the stream."""
    run_id = client.start("greets", "completed", input=odd)
    told = client.told(run_id)

    assert ids(told) == list(range(1, len(client.kinds(run_id)) + 1))
    assert told[0].json["data"]["task"] == odd


def test_a_stream_of_no_run_is_a_problem(client: Client) -> None:
    answer = client.get("/api/runs/nope/events", headers={"accept": "text/event-stream"})

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_head_request_ends_at_once(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    answer = client.head(f"/api/runs/{run_id}/events", headers={"accept": "text/event-stream"})

    assert answer.headers["content-type"].startswith("text/event-stream")


# Coming back


def test_who_comes_back_gets_only_what_follows(client: Client) -> None:
    """Case D38."""
    run_id = client.start("asks", "suspended")
    client.answer(run_id, "check", approved=True)
    client.until(run_id, "completed")
    last = len(client.kinds(run_id))

    assert ids(client.told(run_id, **{"last-event-id": "7"})) == list(range(8, last + 1))
    assert ids(client.told(run_id, "?after=7")) == list(range(8, last + 1))
    assert ids(client.told(run_id, "?after=2", **{"last-event-id": "7"})) == list(range(8, last + 1))


def test_positions_keep_their_meaning_over_a_restart(scenario_folder: Path, tmp_path: Path) -> None:
    """Case D38, with another process in between."""
    store = f"sqlite:{tmp_path}/runs.db"
    with serving(store=store, scenarios=[scenario_folder]) as before:
        run_id = before.start("asks", "suspended")
        with before.stream_of(f"/api/runs/{run_id}/events") as found:
            seen = [next(found) for _ in before.kinds(run_id)]
    with serving(store=store, scenarios=[scenario_folder]) as after:
        after.answer(run_id, "check", approved=True)
        rest = after.told(run_id, **{"last-event-id": seen[-1].id})

    assert ids(seen + rest) == list(range(1, len(seen + rest)))
    assert rest[-1].event == "end"


@pytest.mark.parametrize("impossible", ["999", "-1", "x", "1.5", "9" * 40, "%D9%A1"])
def test_a_position_that_cannot_be_is_answered_by_the_whole_log(client: Client, impossible: str) -> None:
    run_id = client.start("greets", "completed")
    told = client.told(run_id, **{"last-event-id": impossible})

    assert told[0] == Message("resync", "{}")
    assert ids(told) == list(range(1, len(client.kinds(run_id)) + 1))


def test_who_has_seen_the_end_is_told_to_stay_away(client: Client) -> None:
    """Case D39: no client comes back to a finished run for ever, and looking never starts one."""
    run_id = client.start("greets", "completed")
    runs = client.get("/api/runs?limit=200").json()
    last = str(len(client.kinds(run_id)))
    headers = {"accept": "text/event-stream", "last-event-id": last}

    assert client.get(f"/api/runs/{run_id}/events", headers=headers).status_code == 204
    assert client.told(run_id, f"?after={last}") == [Message("end", "{}")]
    assert client.get("/api/runs?limit=200").json() == runs


def test_a_run_outlives_its_viewers(client: Client) -> None:
    """Case D23: only cancelling stops a run."""
    run_id = client.start("notes", "running", input="300")
    with client.stream_of(f"/api/runs/{run_id}/events") as found:
        next(found)

    assert client.until(run_id, "completed")["output"] == "300"
    assert len(ids(client.told(run_id))) == len(client.kinds(run_id))


def test_a_stream_that_waits_shows_signs_of_life_without_a_position(
    scenario_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case D38: a sign of life does not move where a client comes back to."""
    monkeypatch.setattr(stream, "HEARTBEAT", 0.1)
    with serving(store="memory:", scenarios=[scenario_folder]) as fresh:
        run_id = fresh.start("asks", "suspended")
        with fresh.stream_of(f"/api/runs/{run_id}/events") as found:
            told = [next(found) for _ in range(len(fresh.kinds(run_id)) + 2)]

    assert told[-1] == told[-2] == Message(":", "")


# Slow viewers


def test_a_viewer_that_reads_late_misses_nothing_and_is_told_that_it_lags(client: Client) -> None:
    run_id = client.start("notes", "suspended", input="3000", options={"step": True})
    with _open(client, f"/api/runs/{run_id}/events") as viewer:
        viewer.recv(1 << 16)
        client.put(f"/api/runs/{run_id}/breakpoints", json={"breakpoints": []})
        client.post(f"/api/runs/{run_id}/continue")
        client.until(run_id, "completed")
        told = list(messages(lines_of(_body(viewer, head=False))))

    kinds = [message.event for message in told]
    last = len(client.kinds(run_id))
    assert ids(told) == list(range(last - len(ids(told)) + 1, last + 1))
    assert len(ids(told)) > 3000
    assert "lagging" in kinds
    assert kinds[-1] == "end"


def test_a_viewer_that_does_not_read_is_let_go(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SEND_TIMEOUT", 0.2)
    run_id = client.start("notes", "completed", input="3000")
    with _open(client, f"/api/runs/{run_id}/events") as viewer:
        time.sleep(3)
        told = list(messages(lines_of(_body(viewer))))

    assert told[-1].event != "end"
    assert client.told(run_id)[-1].event == "end"


def test_one_who_does_not_read_holds_nobody_up(client: Client) -> None:
    run_id = client.start("notes", "suspended", input="3000", options={"step": True})
    with _open(client, f"/api/runs/{run_id}/events"), client.stream_of(f"/api/runs/{run_id}/events") as found:
        seen = [next(found) for _ in client.kinds(run_id)]
        client.put(f"/api/runs/{run_id}/breakpoints", json={"breakpoints": []})
        client.post(f"/api/runs/{run_id}/continue")
        seen += list(found)

    assert ids(seen) == list(range(1, len(client.kinds(run_id)) + 1))
    assert seen[-1].event == "end"


# Stopping the server


def test_a_server_with_open_streams_stops_within_seconds(scenario_folder: Path, tmp_path: Path) -> None:
    """Case D24: what was going on is kept, and can go on."""
    store, folder = f"sqlite:{tmp_path}/runs.db", scenario_folder
    with serving(store=store, scenarios=[folder]) as before:
        run_id = before.start("sleeps", "running")
        viewers = [_open(before, f"/api/runs/{run_id}/events") for _ in range(3)]
        begun = time.monotonic()
    took = time.monotonic() - begun
    for viewer in viewers:
        viewer.close()

    assert took < 5
    with serving(store=store, scenarios=[folder], recover=False) as after:
        run = after.get(f"/api/runs/{run_id}").json()
        assert (run["state"], run["driven"]) == ("running", False)


def _open(client: Client, path: str) -> socket.socket:
    """A connection that has asked for a stream, reads nothing of it yet, and has little room for it."""
    viewer = socket.socket()
    viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    viewer.connect((client.base_url.host, client.base_url.port))
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
    viewer.sendall(head.encode())
    return viewer


def _body(viewer: socket.socket, *, head: bool = True) -> list[bytes]:
    """What a connection holds up to its end, without head, where that was not read yet, and chunk marks."""
    raw = b""
    while piece := viewer.recv(1 << 16):
        raw += piece
    rest = raw.partition(b"\r\n\r\n")[2] if head else raw
    found = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16)
        if not length:
            break
        found.append(rest[:length])
        rest = rest[length + 2 :]
    return found
