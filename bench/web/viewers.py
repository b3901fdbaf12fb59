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
        last_id: the latest event that all of them have seen.
        receipts: of the viewers that are sampled, event id and monotonic nanosecond of its arrival.
        delays: how many nanoseconds after it was published each of these came.
    """

    def __init__(self) -> None:
        self.last_id = 0
        self.receipts: list[tuple[int, int]] = []
        self.delays: list[int] = []
        self._viewers: list[_Viewer] = []
        self._goal = 0
        self._missing = 0
        self._there = asyncio.Event()

    async def join(self, port: int, path: str, sampled: bool) -> None:
        """Open one more stream, from the latest event on; `{after}` in `path` stands for its id."""
        at = path.format(after=self.last_id)
        loop = asyncio.get_running_loop()
        _, viewer = await loop.create_connection(lambda: _Viewer(self, at, sampled), "127.0.0.1", port)
        self._viewers.append(viewer)

    async def complete(self, stamps: Sequence[int], last: int, patience: float) -> None:
        """Wait until everyone has seen event `last`, of which and of those before it `stamps` are the times.

        Raises:
            TimeoutError: after `patience` seconds.
        """
        self._goal, self.last_id = last, last
        self._there.clear()
        self._missing = sum(viewer.last < last for viewer in self._viewers)
        if self._missing:
            await asyncio.wait_for(self._there.wait(), patience)
        first = last - len(stamps) + 1
        self.delays = [at - stamps[number - first] for number, at in self.receipts if first <= number <= last]
        self.receipts.clear()

    def saw(self, before: int, now: int) -> None:
        """A viewer that had seen event `before` has seen event `now`."""
        if before < self._goal <= now:
            self._missing -= 1
            if not self._missing:
                self._there.set()

    def leave(self) -> None:
        """Close every stream."""
        for viewer in self._viewers:
            viewer.transport.close()
        self._viewers.clear()


class _Viewer(asyncio.Protocol):
    """One open stream, and the latest event that it has brought."""

    transport: asyncio.Transport

    def __init__(self, audience: Audience, path: str, sampled: bool) -> None:
        self._audience = audience
        self._path = path
        self._sampled = sampled
        self._rest = b""
        self.last = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        request = f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        transport.write(request.encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        text = self._rest + data
        seen = [(match.end(), int(match[1])) for match in _ID.finditer(text)]
        if seen:
            if self._sampled:
                self._audience.receipts += [(number, now) for _, number in seen]
            self._audience.saw(self.last, seen[-1][1])
            self.last = seen[-1][1]
            text = text[seen[-1][0] - 1 :]
        self._rest = text[-_LONGEST:]
