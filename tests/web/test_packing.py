"""What travels: compressed answers, streams that are not, and a first load of sixty kilobytes."""

from __future__ import annotations

import gzip
import re

import httpx2
import pytest

from tests.web.conftest import Client

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


@pytest.mark.parametrize("place", ["/", "/scenarios/counts", "/runs", "/waiting", "/runs/{}"])
def test_a_first_load_weighs_at_most_sixty_kilobytes(client: Client, place: str) -> None:
    run_id = client.start("notes", "completed", input="400")
    headers, page = raw(client, place.format(run_id), **{"accept-encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    files = re.findall(r'(?:src|href)="(/static/[^"]+\.(?:js|css)\?[^"]+)"', gzip.decompress(page).decode())
    assert files
    weights = {file: len(raw(client, file, **{"accept-encoding": "gzip"})[1]) for file in files}

    assert sum(weights.values()) + len(page) <= BUDGET, weights
