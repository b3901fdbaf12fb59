"""Live streams: what happens in a run, as it happens, to everyone who watches.

Four troubles shape this file.  A viewer must miss nothing and see nothing
twice: so every message carries its position, and whoever comes back says where
it was.  Many viewers must not cost many times as much: so an event is turned
into bytes once, kept beside the event, and sent to all; and whatever waits for
a viewer leaves as one piece.  A viewer who stops reading must not be waited
for: it is let go after `SEND_TIMEOUT`.  And a server must be able to stop:
streams end first, when the sessions end their feeds.

Server-sent events are plain text over a plain response, so this speaks ASGI
itself: a response class in between would add a task and a wrapper to every
message of every viewer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from playground.kernel import Event, JsonObject
from playground.sessions import Sessions, Told, ends, ends_run
from playground.web import bodies

SEND_TIMEOUT = 10.0
"""Seconds that a message may take to leave; then its viewer is let go."""

HEARTBEAT = 15.0
"""Seconds between two signs of life on a stream where nothing happens."""

MOST_STREAMS = 2000
"""How many streams may be open at once."""

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
END = b"event: end\ndata: {}\n\n"
"""What a client waits for: nothing more will come, and to come back is no use."""

BEAT = b":\n\n"
"""A sign of life: a comment, without an id."""


class Teller(Protocol):
    """Turns items of a feed into bytes for one kind of viewer."""

    async def chunk(self, batch: Sequence[Told]) -> bytes:
        """The messages for these items, in order; empty if they say nothing to this kind of viewer."""
        ...

    def farewell(self) -> bytes:
        """The last messages of a run that has ended."""
        ...


class _Viewer:
    """One open stream: the task that feeds it, and since when that has been waiting for its client."""

    __slots__ = ("task", "waiting_since")

    def __init__(self) -> None:
        self.task: asyncio.Task[None]
        self.waiting_since = 0.0


class Streams:
    """All open streams of a server.

    Args:
        sessions: what is watched.
    """

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._viewers: set[_Viewer] = set()

    async def tend(self) -> None:
        """Give signs of life, and let go of viewers who do not read; runs as long as the server does."""
        clock = asyncio.get_running_loop().time
        next_beat = clock() + HEARTBEAT
        while True:
            await asyncio.sleep(1)
            now = clock()
            for viewer in self._viewers:
                if viewer.waiting_since and now - viewer.waiting_since > SEND_TIMEOUT:
                    viewer.task.cancel()
            if now >= next_beat:
                next_beat = now + HEARTBEAT
                for run_id in self.sessions.watched():
                    self.sessions.tell(run_id, "beat", {})

    async def serve(
        self, scope: Scope, receive: Receive, send: Send, run_id: str, place: Place, teller: Teller
    ) -> None:
        """Send a run's messages from a place on, until it ends, the viewer leaves, or the server stops.

        Raises:
            HTTPException: 503, as many streams as allowed are open.
        """
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body"})
            return
        if len(self._viewers) >= MOST_STREAMS:
            raise HTTPException(503, f"{MOST_STREAMS} streams are open: close a page and try again")
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        # The pump has a task of its own: it is woken for every message, and must not wake the app around it.
        viewer = _Viewer()
        viewer.task = asyncio.create_task(self._pump(send, viewer, run_id, place, teller))
        leaving = asyncio.create_task(_until_left(receive))
        self._viewers.add(viewer)
        try:
            await asyncio.wait((viewer.task, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._viewers.discard(viewer)
            leaving.cancel()
            viewer.task.cancel()
            ended, _ = await asyncio.gather(viewer.task, leaving, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        if ended is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send, viewer: _Viewer, run_id: str, place: Place, teller: Teller) -> None:
        clock = asyncio.get_running_loop().time
        ended = place.ended
        if place.lost:
            await send(_body(message("resync", "{}")))
        async with aclosing(self.sessions.follow(run_id, place.after)) as batches:
            async for batch in batches:
                chunk = await teller.chunk(batch)
                if chunk:
                    viewer.waiting_since = clock()
                    await send(_body(chunk))
                    viewer.waiting_since = 0.0
                ended = ends(batch)
        if ended:
            await send(_body(teller.farewell()))


async def _until_left(receive: Receive) -> None:
    """Wait for the client to go."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(chunk: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": chunk, "more_body": True}


def message(event: str, data: str, id_: int | None = None) -> bytes:
    """One server-sent message: `data` is one line, `id` a position that a client may come back with."""
    name = f"event: {event}\n" if event else ""
    place = f"id: {id_}\n" if id_ is not None else ""
    return f"{place}{name}data: {data}\n\n".encode()


# Where a viewer begins.


@dataclass(frozen=True, slots=True)
class Place:
    """Where a viewer begins.

    Args:
        after: position of the last event that it has.
        ended: whether that was the last of all.
        lost: what it named cannot be in this log, so it gets the whole.
        back: whether it was here before.
    """

    after: int = 0
    ended: bool = False
    lost: bool = False
    back: bool = False


async def place_of(request: Request, sessions: Sessions, run_id: str) -> Place:
    """Where a request wants to begin: after its `Last-Event-ID`, else after `?after=`.

    Raises:
        NotFound: no such run.
        Invalid: `after` is no position.
    """
    named = request.headers.get("last-event-id", "")
    if named:
        after = int(named) if named.isascii() and named.isdecimal() and len(named) <= 15 else -1
    else:
        after = bodies.whole_number(request.query_params.get("after") or 0, "after")
    latest = await sessions.events(run_id, max(0, after - 1), 1)
    if after < 0 or (after and not latest):
        return Place(lost=True, back=True)
    return Place(after, ended=bool(after) and ends_run(latest[0]), back=bool(named))


# What a viewer gets: data.


def event_json(event: Event) -> JsonObject:
    """An event as the API tells it."""
    return {
        "id": event.pos,
        "seq": event.seq,
        "run_id": event.run_id,
        "parent_id": event.parent_id,
        "kind": event.kind,
        "ts": event.ts,
        "data": dict(event.data),
    }


class DataTeller:
    """Tells events as JSON, each under its kind."""

    async def chunk(self, batch: Sequence[Told]) -> bytes:
        return joined(batch, "data", _data_frames)

    def farewell(self) -> bytes:
        return END


def _data_frames(batch: Sequence[Told]) -> bytes:
    if len(batch) > 1:
        return b"".join(joined((told,), "data", _data_frames) for told in batch)
    told = batch[0]
    if told.event is not None:
        data = json.dumps(event_json(told.event), ensure_ascii=False, separators=(",", ":"))
        return message(told.event.kind, data, told.event.pos)
    return live_frame(told)


def live_frame(told: Told) -> bytes:
    """What is told live to every kind of viewer: a sign of life, and that some were left behind."""
    name, about = told.live or ("", {})
    if name == "beat":
        return BEAT
    return message(name, json.dumps(dict(about))) if name == "lagging" else b""


def joined(batch: Sequence[Told], key: str, make: Callable[[Sequence[Told]], bytes]) -> bytes:
    """A batch as one piece, made once for all viewers who are level with each other.

    A batch is a stretch of the feed, so its last item and its length say which.
    """
    frames = batch[-1].frames
    piece = key if len(batch) == 1 else f"{key}*{len(batch)}"
    made = frames.get(piece)
    if made is None:
        made = frames[piece] = make(batch)
    return made
