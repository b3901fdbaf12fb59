"""Live streams: what happens in a run, as it happens, to everyone who watches.

Four troubles shape this file.  A viewer must miss nothing and see nothing
twice: so every message carries its position, and whoever comes back says where
it was.  Many viewers must not cost many times as much: so those who are level
are served together (`fanout`), and whatever waits for them leaves as one piece.
A viewer who stops reading must not be waited for: it is let go after
`SEND_TIMEOUT`.  And a server must be able to stop: streams end first, when the
sessions end their feeds.

Server-sent events are plain text over a plain response, so this speaks ASGI
itself: a response class in between would add a task and a wrapper to every
message of every viewer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from playground.kernel import root_of
from playground.sessions import Follower, Sessions, Told, ends_run, event_json
from playground.web import bodies
from playground.web.fanout import Group, Teller, body

SEND_TIMEOUT = 10.0
"""Seconds that a message may take to leave; then its viewer is let go."""

HEARTBEAT = 15.0
"""Seconds between two signs of life on a stream where nothing happens."""

MOST_STREAMS = 2000
"""How many streams may be open at once."""

STRAIGHT = "playground.straight"
"""Where a request holds the way to its socket, without a layer in between."""

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
END = b"event: end\ndata: {}\n\n"
"""What a client waits for: nothing more will come, and to come back is no use."""

BEAT = b":\n\n"
"""A sign of life: a comment, without an id."""


class _Viewer:
    """One open stream: the task that feeds it, and since when that has been waiting for its client."""

    __slots__ = ("send", "task", "waiting_since")

    def __init__(self, send: Send) -> None:
        self.send = send
        self.task: asyncio.Task[None]
        self.waiting_since = 0.0

    async def take(self, chunk: bytes) -> None:
        """Send it some bytes, if there are any."""
        if chunk:
            await self.wait(self.send(body(chunk)))

    async def wait(self, sending: Awaitable[None]) -> None:
        """See a message leave."""
        self.waiting_since = asyncio.get_running_loop().time()
        await sending
        self.waiting_since = 0.0


class Streams:
    """All open streams of a server.

    Args:
        sessions: what is watched.
    """

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._viewers: set[_Viewer] = set()
        self._groups: dict[tuple[str, object], Group] = {}

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
        viewer = _Viewer(scope.get(STRAIGHT, send))
        viewer.task = asyncio.create_task(self._attend(viewer, run_id, place, teller))
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
            await send(body(b"", more=False))

    async def _attend(self, viewer: _Viewer, run_id: str, place: Place, teller: Teller) -> None:
        """Bring a viewer level with the others, and let it go on with them."""
        if place.lost:
            await viewer.take(message("resync", "{}"))
        async with self.sessions.following(run_id, place.after) as follower:
            while not follower.over:
                if not follower.cursor.level:
                    await self._tell(viewer, follower, teller)
                elif owed := teller.level():
                    await viewer.take(owed)
                else:
                    follower = await self._join(viewer, run_id, follower, teller)
        if follower.ended:
            await viewer.take(teller.farewell())

    async def _tell(self, viewer: _Viewer, follower: Follower, teller: Teller) -> None:
        """Tell one viewer alone what follows for it."""
        batch = await follower.read()
        if batch:
            await viewer.take(await (teller.stored if batch[0].stored else teller.live)(batch))

    async def _join(self, viewer: _Viewer, run_id: str, follower: Follower, teller: Teller) -> Follower:
        """Serve a viewer together with those who are as far; returns where it is when it leaves them."""
        key = root_of(run_id), teller.kind
        group = self._groups.get(key)
        if group is None or group.over:
            group = self._groups[key] = Group(follower.twin(), teller)
        if not group.takes(follower):
            await self._tell(viewer, follower, teller)
            return follower
        try:
            parting = await group.join(viewer.send)
        finally:
            if group.empty:
                group.close()
                if self._groups.get(key) is group:
                    del self._groups[key]
        if parting.sending is not None:
            await viewer.wait(parting.sending)
        return parting.follower


async def _until_left(receive: Receive) -> None:
    """Wait for the client to go."""
    while (await receive())["type"] != "http.disconnect":
        pass


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


class DataTeller:
    """Tells events as JSON, each under its kind."""

    kind = "data"

    async def live(self, batch: Sequence[Told]) -> bytes:
        return b"".join(map(_data_frame, batch))

    stored = live

    def level(self) -> bytes:
        return b""

    def farewell(self) -> bytes:
        return END


def _data_frame(told: Told) -> bytes:
    if told.event is None:
        return live_frame(told)
    data = json.dumps(event_json(told.event), ensure_ascii=False, separators=(",", ":"))
    return message(told.event.kind, data, told.event.pos)


def live_frame(told: Told) -> bytes:
    """What is told live to every kind of viewer: a sign of life, and that some were left behind."""
    name, about = told.live or ("", {})
    if name == "beat":
        return BEAT
    return message(name, json.dumps(dict(about))) if name == "lagging" else b""
