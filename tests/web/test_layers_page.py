"""The Layers tab of a run: who gave what, what each layer remembers, and what an event changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from playground import assets
from tests.web.conftest import Client, serving
from tests.web.html import Element, parse

LAYERS = assets.path("scenarios") / "layers.py"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:{tmp_path_factory.mktemp('layers') / 'runs.db'}"


@pytest.fixture(scope="module")
def run_id(store: str) -> str:
    """A run that waits, with its layers suspended; the server that drove it is gone."""
    with serving(store=store, scenarios=[LAYERS]) as client:
        return client.start("layers", until="suspended")


@pytest.fixture(scope="module")
def client(store: str, run_id: str) -> Iterator[Client]:
    """A client of a server that was started after the run had come to rest."""
    with serving(store=store, scenarios=[LAYERS]) as found:
        yield found


def tab(client: Client, run_id: str, at: int = 0, **headers: str) -> Element:
    page = client.get(f"/runs/{run_id}{f'?at={at}' if at else ''}", headers=headers)
    return parse(page.text).one("#inspect-layers")


def notes(client: Client, run_id: str) -> list[int]:
    """The positions of the events that tell of the layers."""
    events = client.get(f"/api/runs/{run_id}/events").json()
    return [event["id"] for event in events if event["kind"] == "note"]


def test_a_run_without_layers_has_no_such_tab(tmp_path: Path) -> None:
    with serving(store="memory:", scenarios=[LAYERS.with_name("greeter.py")]) as client:
        page = parse(client.get(f"/runs/{client.start('greeter', until='completed')}").text)
    assert page.all("#tab-layers") == []


def test_the_tab_names_its_panel_in_both_languages(client: Client, run_id: str) -> None:
    for lang, name in (("en", "Layers"), ("zh", "分层")):
        page = parse(client.get(f"/runs/{run_id}", headers={"accept-language": lang}).text)
        assert page.one("#tab-layers").text == name
        assert page.one("#tab-layers")["aria-controls"] == "inspect-layers"
        assert page.one("#inspect-layers")["role"] == "tabpanel"


def test_layers_are_told_in_order_with_what_they_build_on(client: Client, run_id: str) -> None:
    layers = tab(client, run_id).all("[data-layer]")
    assert [layer["data-layer"] for layer in layers] == ["house", "notebook", "scribe", "model"]
    assert "builds on notebook" in layers[2].text
    assert "remembers nothing" in layers[0].text


def test_prompts_and_tools_are_told_in_order_with_who_gave_them(client: Client, run_id: str) -> None:
    gifts = [item.text for item in tab(client, run_id).all("li")]
    assert gifts == [
        "house prefix_prompts Write down what people wish for.",
        "scribe suffix_prompts The notebook has 2 lines.",
        "notebook tools write_down",
    ]


def test_an_event_that_changed_a_layer_shows_its_state_before_and_after(client: Client, run_id: str) -> None:
    entered, _, second = notes(client, run_id)
    assert tab(client, run_id, second).all(".channel--changed")
    assert not tab(client, run_id, second + 1).all(".channel--changed")
    notebook = tab(client, run_id, second).one("[data-layer=notebook]")
    assert notebook.one(".channel__before").text == 'before {"lines": ["Lamp: desk, warm light"]}'
    assert "Budget" in notebook.one(".channel__after").text
    assert "Lamp" not in tab(client, run_id, entered).text


def test_before_the_first_result_the_tab_says_that_layers_are_being_entered(
    client: Client, run_id: str
) -> None:
    assert "The layers are being entered." in tab(client, run_id, 1).text


def test_a_row_of_the_timeline_names_the_layers_whose_state_changed(client: Client, run_id: str) -> None:
    entered, first, _ = notes(client, run_id)
    page = parse(client.get(f"/runs/{run_id}").text)
    assert "Layers house, notebook, scribe, model remember" in page.one(f"#ev-{entered}").text
    assert "Layer notebook remembers something new" in page.one(f"#ev-{first}").text


def test_layers_are_active_then_suspended_and_closed_at_the_end(client: Client, run_id: str) -> None:
    entered = notes(client, run_id)[0]
    assert tab(client, run_id, entered).one(".inspect__head").text.startswith("active")
    assert tab(client, run_id).one(".inspect__head").text.startswith("suspended")
    fork = client.post(f"/api/runs/{run_id}/fork", json={"at": 44}).json()["run_id"]
    assert client.answer(fork, "decide", approved=True).status_code == 202
    client.until(fork, "completed")
    ended = tab(client, fork)
    assert ended.one(".inspect__head").text.startswith("closed")
    assert "Budget" in ended.one("[data-layer=notebook]").text


def test_the_fragment_for_a_moment_paints_the_tab_anew(client: Client, run_id: str) -> None:
    answer = client.get(f"/runs/{run_id}/moment?at={notes(client, run_id)[2]}")
    parts = {part["hx-target"]: part for part in parse(answer.text).all("hx-partial")}
    assert "Budget" in parts["#inspect-layers"].text
