"""The audience: sockets that read event streams and note when each event reached them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence

_ID = re.compile(rb"\nid: (\d+)\r?\n")
_LONGEST = 32
"""Bytes that a broken-off id line may have; so many are kept until the rest comes."""


class Audience:
    """All viewers of one server.

    Attributes:
        last_id: the latest event that any of them has seen.
        receipts: of the viewers that are sampled, event id and monotonic nanosecond of its arrival.
        delays: how many nanoseconds after it was published each of these came.
    """

    def __init__(self) -> None:
        self.last_id = 0
        self.receipts: list[tuple[int, int]] = []
        self.delays: list[int] = []
        self._viewers: list[asyncio.BaseTransport] = []
        self._first = self._goal = 0
        self._missing = 0
        self._there = asyncio.Event()

    async def join(self, port: int, path: str, sampled: bool) -> None:
        """Open one more stream, from the latest event on; `{after}` in `path` stands for its id."""
        at = path.format(after=self.last_id)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: _Viewer(self, at, sampled), "127.0.0.1", port)
        self._viewers.append(transport)

    def expect(self, count: int) -> None:
        """From now on wait for so many more events, and sample anew."""
        self.receipts.clear()
        self._first = self.last_id + 1
        self._goal = self.last_id + count
        self._missing = len(self._viewers)
        self._there.clear()

    async def complete(self, stamps: Sequence[int], patience: float) -> None:
        """Wait until everyone has seen what was published, at these nanoseconds.

        Raises:
            TimeoutError: after `patience` seconds.
        """
        if self._viewers:
            await asyncio.wait_for(self._there.wait(), patience)
        self.last_id = self._goal
        self.delays = [at - stamps[number - self._first] for number, at in self.receipts]

    def saw(self, before: int, now: int) -> None:
        """A viewer that had seen event `before` has seen event `now`."""
        self.last_id = max(self.last_id, now)
        if before < self._goal <= now:
            self._missing -= 1
            if not self._missing:
                self._there.set()

    def leave(self) -> None:
        """Close every stream."""
        for viewer in self._viewers:
            viewer.close()
        self._viewers.clear()


class _Viewer(asyncio.Protocol):
    def __init__(self, audience: Audience, path: str, sampled: bool) -> None:
        self._audience = audience
        self._path = path
        self._sampled = sampled
        self._rest = b""
        self._last = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        request = f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        transport.write(request.encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        text = self._rest + data
        seen = [(match.end(), int(match[1])) for match in _ID.finditer(text)]
        if seen:
            if self._sampled:
                self._audience.receipts += [(number, now) for _, number in seen]
            self._audience.saw(self._last, seen[-1][1])
            self._last = seen[-1][1]
            text = text[seen[-1][0] - 1 :]
        self._rest = text[-_LONGEST:]
