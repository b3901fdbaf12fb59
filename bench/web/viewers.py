"""The audience: sockets that read event streams and note when each event reached them."""

from __future__ import annotations

import asyncio
import re
import time

_ID = re.compile(rb"\nid: (\d+)\r?\n")


class Audience:
    """All viewers of one server."""

    def __init__(self) -> None:
        self.received = 0
        self.last_id = 0
        self.receipts: list[tuple[int, int]] = []
        """Of the viewers that are sampled: event id and the monotonic nanosecond of its arrival."""
        self._viewers: list[asyncio.BaseTransport] = []
        self._wanted = 0
        self._enough = asyncio.Event()

    async def join(self, port: int, path: str, sampled: bool) -> None:
        """Open one more stream."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: _Viewer(self, path, sampled), "127.0.0.1", port)
        self._viewers.append(transport)

    def expect(self, deliveries: int) -> None:
        """Count anew, up to `deliveries`."""
        self.received = 0
        self.receipts.clear()
        self._wanted = deliveries
        self._enough.clear()

    async def complete(self, patience: float) -> None:
        """Wait until all that is expected has come.

        Raises:
            TimeoutError: after `patience` seconds.
        """
        await asyncio.wait_for(self._enough.wait(), patience)

    def take(self, count: int) -> None:
        """Note `count` deliveries."""
        self.received += count
        if self.received >= self._wanted:
            self._enough.set()

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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        request = f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        transport.write(request.encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        text = self._rest + data
        end = 0
        count = 0
        for match in _ID.finditer(text):
            end = match.end()
            count += 1
            if self._sampled:
                self._audience.receipts.append((int(match[1]), now))
        if count:
            self._audience.last_id = max(self._audience.last_id, int(match[1]))
            self._audience.take(count)
        self._rest = text[max(end - 1, len(text) - 24) :]
