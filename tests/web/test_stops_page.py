"""Breakpoints on the page of a run: set by a form, said in words, met in the right wave."""

from __future__ import annotations

import pytest

from tests.web.conftest import Client
from tests.web.html import Element, parse


def page(client: Client, run_id: str, lang: str = "en") -> Element:
    return parse(client.get(f"/runs/{run_id}", headers={"accept-language": lang}).text)


def post(client: Client, run_id: str, htmx: bool = False, **form: str):  # type: ignore[no-untyped-def]
    headers = {"hx-request": "true"} if htmx else {}
    return client.post(f"/runs/{run_id}/breakpoints", data=form, headers=headers)


@pytest.fixture
def paused(client: Client) -> str:
    """A run that counts to twenty and stands before its first wave."""
    return client.start("counts", "suspended", options={"step": True})


def given(client: Client, run_id: str) -> list[object]:
    return client.get(f"/api/runs/{run_id}").json()["breakpoints"]


@pytest.mark.parametrize(
    ("form", "kept"),
    [
        ({"add": "before", "node": "count"}, {"before": "count"}),
        ({"add": "after", "node": "agent/think"}, {"after": "agent/think"}),
        ({"add": "on", "kind": "state_delta"}, {"on": "state_delta"}),
        (
            {"add": "channel", "channel": "n", "op": ">", "value": "7"},
            {"channel": "n", "op": ">", "value": 7},
        ),
        (
            {"add": "channel", "channel": "n", "op": "==", "value": "seven"},
            {"channel": "n", "op": "==", "value": "seven"},
        ),
    ],
)
def test_a_form_adds_a_breakpoint_and_keeps_the_type_of_a_value(
    client: Client, paused: str, form: dict[str, str], kept: dict[str, object]
) -> None:
    assert post(client, paused, **form).status_code == 303

    assert given(client, paused) == [{"every": "wave"}, kept]


def test_the_same_breakpoint_is_there_once(client: Client, paused: str) -> None:
    for _ in range(2):
        post(client, paused, add="before", node="count")

    assert given(client, paused) == [{"every": "wave"}, {"before": "count"}]


def test_a_breakpoint_is_removed_by_its_place(client: Client, paused: str) -> None:
    post(client, paused, add="before", node="count")
    post(client, paused, remove="0")

    assert given(client, paused) == [{"before": "count"}]


@pytest.mark.parametrize(("lang", "said"), [("en", "While n > 7"), ("zh", "当 n > 7")])
def test_breakpoints_are_said_in_words(client: Client, paused: str, lang: str, said: str) -> None:
    post(client, paused, add="channel", channel="n", op=">", value="7")

    assert said in page(client, paused, lang).one("#stops").text


def test_a_breakpoint_on_a_value_stops_the_run_in_the_right_wave(client: Client, paused: str) -> None:
    post(client, paused, remove="0")
    post(client, paused, add="channel", channel="n", op=">", value="7")
    client.post(f"/runs/{paused}/commands", data={"command": "continue"})
    client.until(paused, "suspended")

    assert client.get(f"/api/runs/{paused}/state").json()["shared"]["n"] == 8
    card = page(client, paused).one(".step")
    assert "Stopped at a breakpoint: While n > 7" in card.text
    assert "Then comes count" in card.text


def test_a_breakpoint_can_be_set_while_the_run_goes_on(client: Client) -> None:
    run_id = client.start("sleeps")
    post(client, run_id, add="after", node="nap")

    assert given(client, run_id) == [{"after": "nap"}]
    client.post(f"/runs/{run_id}/commands", data={"command": "cancel"})


def test_htmx_gets_the_changed_parts_and_what_was_wrong(client: Client, paused: str) -> None:
    good = post(client, paused, htmx=True, add="on", kind="control").text
    bad = post(client, paused, htmx=True, add="before", node=" ").text

    assert 'hx-target="#stops"' in good
    assert 'hx-target="#controls"' in good
    assert "names nothing" in bad


@pytest.mark.parametrize(
    "form", [{"add": "before"}, {"add": "channel", "op": "<"}, {"add": "never"}, {"op": "<"}, {"remove": "x"}]
)
def test_what_is_no_breakpoint_is_refused(client: Client, paused: str, form: dict[str, str]) -> None:
    assert post(client, paused, **form).status_code == 422
    assert given(client, paused) == [{"every": "wave"}]


def test_an_ended_run_takes_no_breakpoint(client: Client) -> None:
    run_id = client.start("greets", "completed")

    assert post(client, run_id, add="before", node="greet").status_code == 409
    assert not [button for button in page(client, run_id).all("button") if "Breakpoints" in button.text]


def test_nodes_and_channels_are_offered(client: Client, paused: str) -> None:
    offered = [
        option["value"]
        for option in page(client, paused).one("#stops").all("option")
        if "value" in option.attributes
    ]

    assert "count" in offered
