"""What the endpoints work with, handed to each by its request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from playground.sessions import Sessions
from playground.web.live import Watches
from playground.web.samples import Samples
from playground.web.stream import Streams


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts of a running server."""

    sessions: Sessions
    streams: Streams
    watches: Watches
    samples: Samples


def desk_of(request: Request) -> Desk:
    """The desk of the server that a request came to."""
    return cast("Desk", request.state["desk"])


def sessions_of(request: Request) -> Sessions:
    """The sessions of the server that a request came to."""
    return desk_of(request).sessions
