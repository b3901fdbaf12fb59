"""The guard: another page in the same browser gets nothing, and no page may do more than its files say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import Client, serving


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "localhost:8000"])
def test_the_names_of_this_machine_are_welcome(client: Client, host: str) -> None:
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "[::2]", "a:b:c"]
)
def test_a_foreign_name_is_refused(client: Client, host: str) -> None:
    """A page that rebinds its own name to this machine is known by that name."""
    assert client.get("/healthz", headers={"host": host}).status_code == 400
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://localhost"},
    ],
)
@pytest.mark.parametrize("path", ["/api/runs", "/runs", "/runs/x/answers", "/api/runs/x/cancel"])
def test_another_page_cannot_post(client: Client, headers: dict[str, str], path: str) -> None:
    assert client.post(path, json={"scenario": "greets"}, headers=headers).status_code == 403


def test_another_page_cannot_delete(client: Client) -> None:
    run_id = client.start("greets", "completed")

    assert client.delete(f"/api/runs/{run_id}", headers={"origin": "https://evil.example"}).status_code == 403
    assert client.get(f"/api/runs/{run_id}").status_code == 200


def test_our_own_page_can_post(client: Client) -> None:
    origin = str(client.base_url).rstrip("/")
    headers = {"origin": origin, "sec-fetch-site": "same-origin"}

    assert client.post("/api/runs", json={"scenario": "greets"}, headers=headers).status_code == 201


@pytest.mark.parametrize(
    "path", ["/", "/nope", "/api/scenarios", "/api/nope", "/static/css/base.css", "/healthz"]
)
def test_every_answer_carries_the_policy(client: Client, path: str) -> None:
    headers = client.get(path).headers

    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_a_refusal_carries_the_policy_too(client: Client) -> None:
    assert "content-security-policy" in client.get("/", headers={"host": "evil.example"}).headers


@pytest.mark.parametrize("path", ["/", "/runs", "/waiting", "/scenarios/asks", "/scenarios/broken", "/nope"])
def test_no_page_has_a_script_or_a_style_of_its_own(client: Client, path: str) -> None:
    html = client.get(path).text

    assert "<style" not in html
    assert " style=" not in html
    assert " onclick=" not in html
    assert html.count("<script") == html.count("<script ") == html.count("src=")


@pytest.mark.parametrize(
    "path", ["/static/../pyproject.toml", "/static/%2e%2e/pyproject.toml", "/static/..%2fLICENSE"]
)
def test_no_file_beside_the_static_ones_is_served(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_an_error_of_our_own_says_nothing_of_its_inside(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from playground.sessions import Sessions

    async def burst(*_: object) -> None:
        raise RuntimeError("secret path")

    monkeypatch.setattr(Sessions, "describe", burst)
    answer = client.get("/api/runs/run-000000000000")

    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    assert "content-security-policy" in answer.headers
    assert "secret path" in caplog.text


# With a token


@pytest.fixture(scope="module")
def guarded(scenario_folder: Path) -> Iterator[Client]:
    """A client of a server that listens beyond this machine."""
    with serving(store="memory:", scenarios=[scenario_folder], hosts=["*"], token="let-me-in") as found:
        yield found


@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/css/base.css", "/runs/x/live"])
@pytest.mark.parametrize("token", ["", "wrong", "let-me-i", "let-me-in2"])
def test_without_the_token_nothing_is_shown(guarded: Client, path: str, token: str) -> None:
    assert guarded.get(path, headers={"authorization": f"Bearer x{token}"}).status_code == 401
    assert guarded.get(path, params={"token": token}).status_code == 401


def test_a_program_shows_the_token_in_a_header(guarded: Client) -> None:
    headers = {"authorization": "Bearer let-me-in", "host": "lab.example"}

    assert guarded.get("/api/runs", headers=headers).status_code == 200


def test_a_browser_shows_the_token_once_and_then_has_a_cookie(guarded: Client) -> None:
    first = guarded.get("/?token=let-me-in&q=lamp")

    assert (first.status_code, first.headers["location"]) == (303, "/?q=lamp")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    assert guarded.get("/").status_code == 200
    guarded.cookies.clear()


def test_the_token_does_not_let_another_page_post(guarded: Client) -> None:
    headers = {"authorization": "Bearer let-me-in", "origin": "https://evil.example"}

    assert guarded.post("/api/runs", json={"scenario": "greets"}, headers=headers).status_code == 403
