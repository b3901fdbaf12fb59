"""The floor: a protocol that writes each frame to each socket, and is not a web server at all."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from typing import ClassVar

from bench.web.child import obey, on_loop, pin

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class Viewer(asyncio.Protocol):
    """One open stream."""

    transport: asyncio.Transport
    all: ClassVar[set[Viewer]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(HEAD)
        self.all.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.all.discard(self)


async def main() -> None:
    pin(0)
    server = await asyncio.get_running_loop().create_server(Viewer, "127.0.0.1", 0, backlog=1024)
    numbers = itertools.count(1)

    async def publish(count: int) -> int:
        for number in itertools.islice(numbers, count):
            data = {"node": "clock", "topic": "tick", "data": {"text": "x" * 48}}
            event = {"id": number, "run_id": "run-1a2b3c4d5e6f", "kind": "note", "data": data}
            frame = f"id: {number}\nevent: note\ndata: {json.dumps(event)}\n\n".encode()
            for viewer in Viewer.all:
                viewer.transport.write(frame)
        return number

    await obey({"port": server.sockets[0].getsockname()[1], "path": "/"}, publish)


if __name__ == "__main__":
    on_loop(sys.argv[1], main())
