"""What travels: compressed answers, streams that are not, and a first load of sixty kilobytes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import httpx2
import pytest

from tests.web.conftest import SCENARIOS, Client, serving, write_scenario

BUDGET = 60_000
"""Bytes of pages, style sheets and scripts that a first load may bring, as they travel."""


def raw(client: Client, path: str, **headers: str) -> tuple[httpx2.Headers, bytes]:
    """An answer's headers, and its body as it travels."""
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        return answer.headers, b"".join(answer.iter_raw())


@pytest.mark.parametrize("path", ["/", "/static/all.css", "/static/vendor/htmx.min.js", "/api/scenarios"])
def test_an_answer_travels_compressed_to_whoever_can_unpack_it(client: Client, path: str) -> None:
    headers, packed = raw(client, path, **{"accept-encoding": "gzip"})
    _, plain = raw(client, path, **{"accept-encoding": "identity"})

    assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(packed) == plain
    assert len(packed) < len(plain)


@pytest.mark.parametrize("path", ["/api/runs/{}/events", "/runs/{}/live"])
def test_a_stream_is_never_compressed_since_it_would_be_held_back(client: Client, path: str) -> None:
    run_id = client.start("counts", "completed")
    accepted = {"accept": "text/event-stream", "accept-encoding": "gzip"}
    headers, told = raw(client, path.format(run_id), **accepted)

    assert "content-encoding" not in headers
    assert told.endswith(b"event: end\ndata: {}\n\n")


def weights(client: Client, place: str) -> dict[str, int]:
    """The bytes of a page and of each style sheet and script that it names, as they travel."""
    headers, page = raw(client, place, **{"accept-encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    files = re.findall(r'(?:src|href)="(/static/[^"]+\.(?:js|css)\?[^"]+)"', gzip.decompress(page).decode())
    assert files
    return {place: len(page)} | {
        file: len(raw(client, file, **{"accept-encoding": "gzip"})[1]) for file in files
    }


@pytest.mark.parametrize("place", ["/", "/scenarios/counts", "/runs", "/waiting"])
def test_a_first_load_weighs_at_most_sixty_kilobytes(client: Client, place: str) -> None:
    found = weights(client, place)

    assert sum(found.values()) <= BUDGET, found


@pytest.mark.parametrize("rounds", [30, 400])
def test_the_page_of_a_run_weighs_no_more_however_long_it_is(tmp_path: Path, rounds: int) -> None:
    body = SCENARIOS["counts"].replace("20", str(rounds)).replace("Workflow()", "Workflow(max_waves=999)")
    write_scenario(tmp_path, "counts", body)
    with serving(store="memory:", scenarios=[tmp_path]) as client:
        found = weights(client, f"/runs/{client.start('counts', 'completed')}")

    assert sum(found.values()) <= BUDGET, found
