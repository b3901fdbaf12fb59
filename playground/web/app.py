"""The app: every address in one table, and the one place that puts the parts together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypedDict

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from playground import assets
from playground.backends import Store, open_store
from playground.sessions import Catalog, SessionError, Sessions
from playground.web import api, pages, paths
from playground.web.desk import Desk
from playground.web.live import Watches
from playground.web.packing import Packing
from playground.web.problems import answer_error
from playground.web.samples import Samples
from playground.web.security import LOCAL, Guard
from playground.web.static import Static
from playground.web.stream import STRAIGHT, Streams

PACE = 0.03
"""Seconds between two pieces of a scripted text: slow enough to be watched."""

ROUTES: list[BaseRoute] = [
    Route("/", pages.picker),
    Route("/sample", pages.sample, methods=["POST"]),
    Route("/scenarios/{key}", pages.scenario),
    Route("/runs", pages.runs),
    Route("/runs", pages.start, methods=["POST"]),
    Route("/runs/{run_id}", pages.run),
    Route("/runs/{run_id}/live", pages.Live(), methods=["GET"]),
    Route("/runs/{run_id}/export", pages.export),
    Route("/runs/{run_id}/moment", pages.moment),
    Route("/runs/{run_id}/source", pages.source),
    Route("/runs/{run_id}/events", pages.more),
    Route("/runs/{run_id}/steps/{interrupt:path}", pages.step),
    Route("/runs/{run_id}/answers", pages.answers, methods=["POST"]),
    Route("/runs/{run_id}/commands", pages.commands, methods=["POST"]),
    Route("/runs/{run_id}/forks", pages.forks, methods=["POST"]),
    Route("/runs/{run_id}/breakpoints", pages.set_breakpoints, methods=["POST"]),
    Route("/runs/{run_id}/proof", pages.proof),
    Route("/runs/{run_id}/clock", pages.clock),
    Route("/runs/{run_id}/branches", pages.branches),
    Route("/runs/{run_id}/compare/{other}", pages.compare),
    Route("/runs/{run_id}/without/{at}", pages.without),
    Route("/waiting", pages.waiting),
    Route("/waiting", pages.decide_all, methods=["POST"]),
    Route("/model", pages.model),
    Route("/model", pages.set_model, methods=["POST"]),
    Route("/api/scenarios", api.scenarios),
    Route("/api/scenarios/{key}", api.scenario),
    Route("/api/runs", api.runs),
    Route("/api/runs", api.start, methods=["POST"]),
    Route(paths.IMPORT, api.take_in, methods=["POST"]),
    Route("/api/runs/{run_id}", api.run),
    Route("/api/runs/{run_id}", api.delete, methods=["DELETE"]),
    Route("/api/runs/{run_id}/events", api.Events(), methods=["GET"]),
    Route("/api/runs/{run_id}/state", api.state),
    Route("/api/runs/{run_id}/resume", api.resume, methods=["POST"]),
    Route("/api/runs/{run_id}/pause", api.pause, methods=["POST"]),
    Route("/api/runs/{run_id}/step", api.step, methods=["POST"]),
    Route("/api/runs/{run_id}/continue", api.go_on, methods=["POST"]),
    Route("/api/runs/{run_id}/cancel", api.cancel, methods=["POST"]),
    Route("/api/runs/{run_id}/crash", api.crash, methods=["POST"]),
    Route("/api/runs/{run_id}/breakpoints", api.set_breakpoints, methods=["PUT"]),
    Route("/api/runs/{run_id}/fork", api.fork, methods=["POST"]),
    Route("/api/runs/{run_id}/export", api.export),
    Route("/healthz", api.health),
]
"""Every address: pages first, then the API."""


class State(TypedDict):
    """What a request carries from the app."""

    desk: Desk


class Playground(Starlette):
    """The app; a stream that has begun writes past the layers that only look at how an answer begins."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[STRAIGHT] = send
        await super().__call__(scope, receive, send)


def create_app(
    *,
    store: Store | str = "memory:",
    scenarios: Iterable[Path | str] | None = None,
    recover: bool = True,
    pace: float = PACE,
    hosts: Iterable[str] = LOCAL,
    token: str = "",
    gallery: bool = False,
) -> Starlette:
    """The playground as an ASGI app.

    Args:
        store: where runs are kept, opened or as a URL; closed when the app shuts down.
        scenarios: folders of scenario files, or files; by default the bundled ones.
        recover: whether runs that a dead process left behind go on at start-up.
        pace: seconds between two pieces of a scripted text.
        hosts: names that it answers to.
        token: what every visitor must show; empty: nothing.
        gallery: whether `/gallery` shows every part of the pages, for whoever makes them.

    Raises:
        StoreError: the store cannot be opened.
    """
    places = [assets.path("scenarios")] if scenarios is None else [Path(place) for place in scenarios]
    opened = open_store(store) if isinstance(store, str) else store
    sessions = Sessions(opened, Catalog(places), pace=pace)
    streams = Streams(sessions)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[State]:
        await sessions.open(recover=recover)
        tending = asyncio.create_task(streams.tend())
        try:
            yield {"desk": Desk(sessions, streams, Watches(sessions), Samples(sessions))}
        finally:
            tending.cancel()
            with suppress(asyncio.CancelledError):
                await tending
            await sessions.close()

    app = Playground(
        routes=[
            *ROUTES,
            *([Route("/gallery", pages.gallery_page)] if gallery else []),
            Mount("/static", Static(assets.path("static"))),
        ],
        middleware=[Middleware(Guard, hosts=hosts, token=token), Middleware(Packing)],
        exception_handlers=dict.fromkeys((HTTPException, SessionError), answer_error),
        lifespan=lifespan,
    )
    app.state.sessions = sessions
    return app
