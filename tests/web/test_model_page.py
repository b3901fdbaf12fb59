"""The model is chosen on a page: who plays the scripts, for how long, and what is never shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.protocol_server import served, speaking
from tests.web.conftest import Client, serving
from tests.web.html import parse

KEY = "sk-secret-of-mine"

TALKS = """
from playground import Agent, Scenario


scenario = Scenario(
    key="talks",
    title={"en": "Talks", "zh": "对话"},
    summary={"en": "It talks.", "zh": "它会对话。"},
    teaches={"en": "Words.", "zh": "话。"},
    concepts=("agent",),
    default_input={"en": "hi", "zh": "你好"},
    make=lambda env: Agent("clerk", model=env.model("by the script")),
)
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "talks.py").write_text(TALKS, encoding="utf-8")
    with serving(store="memory:", scenarios=[tmp_path]) as found:
        yield found


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """The address of a model service that always says the same."""
    with served(speaking([lambda _: "by the service"] * 9)) as address:
        yield address


def said(client: Client) -> object:
    """What a run of the scenario ends with."""
    run_id = client.post("/api/runs", json={"scenario": "talks"}).json()["run_id"]
    return client.until(run_id, "completed")["output"]


def choose(client: Client, **fields: str) -> int:
    return client.post("/model", data=fields).status_code


def told(client: Client) -> str:
    """What the page says about who plays."""
    return parse(client.get("/model").text).one("#model").text


def test_a_model_that_is_set_on_the_page_plays_every_scripted_part(client: Client, service: str) -> None:
    assert choose(client, name="house-model", address=service, key=KEY) == 303
    assert said(client) == "by the service"
    assert told(client) == f"Scenarios are played by house-model at {service}."
    assert "house-model" in client.get("/scenarios/talks").text


def test_a_model_that_is_forgotten_leaves_the_parts_to_the_scripts(client: Client, service: str) -> None:
    choose(client, name="house-model", address=service, key=KEY)
    choose(client, forget="1")
    assert said(client) == "by the script"
    assert told(client) == "Offline: every scenario plays its script."


def test_the_model_of_the_environment_is_shown_and_one_set_on_the_page_goes_before_it(
    client: Client, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "gpt-4o-mini at http://127.0.0.1:9/v1" in told(client)
    choose(client, address=service)
    assert said(client) == "by the service"


def test_the_key_is_on_no_page(client: Client, service: str) -> None:
    choose(client, name="house-model", address=service, key=KEY)
    run_id = client.post("/api/runs", json={"scenario": "talks"}).json()["run_id"]
    client.until(run_id, "completed")
    for path in ("/model", "/", "/scenarios/talks", f"/runs/{run_id}", f"/api/runs/{run_id}/events"):
        assert KEY not in client.get(path).text, path


@pytest.mark.parametrize("address", ["nowhere", "ftp://a/v1", "http://"])
def test_an_address_that_cannot_be_is_told_at_once_and_changes_nothing(client: Client, address: str) -> None:
    answer = client.post("/model", data={"name": "m", "address": address, "key": KEY})
    assert answer.status_code == 422
    found = parse(answer.text)
    assert found.one(".notice--fail").text
    assert KEY not in answer.text
    assert said(client) == "by the script"


def test_another_site_cannot_set_the_model(client: Client, service: str) -> None:
    answer = client.post("/model", data={"address": service}, headers={"origin": "https://elsewhere.example"})
    assert answer.status_code == 403
    assert said(client) == "by the script"


def test_a_form_without_a_key_and_an_address_chooses_nothing_and_says_what_it_needs(client: Client) -> None:
    answer = client.post("/model", data={"name": "house-model", "address": "", "key": ""})
    assert answer.status_code == 422
    shown = parse(answer.text)
    assert "Fill in a key" in shown.one(".notice").text
    assert shown.one("#name")["value"] == "house-model"
    assert told(client) == shown.one("#model").text == "Offline: every scenario plays its script."


def test_a_service_that_cannot_be_used_leaves_the_one_in_use(client: Client, service: str) -> None:
    choose(client, name="house-model", address=service)
    refused = parse(client.post("/model", data={"address": "ftp://nowhere"}).text)
    assert refused.one("#address")["value"] == "ftp://nowhere"
    assert refused.one("#model").text == told(client) == f"Scenarios are played by house-model at {service}."
