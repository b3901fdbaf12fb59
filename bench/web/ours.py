"""Our server, whole: a run that ticks, watched as data or as parts of the run page."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from bench.web.child import obey, on_loop, pin
from bench.web.ticks import tick
from playground.web.app import create_app
from playground.web.server import Server, listen

PATHS = {"data": "/api/runs/{run_id}/events?after={{after}}", "page": "/runs/{run_id}/live?after={{after}}"}


async def start_run(port: int) -> str:
    """Start the clock through the API; return the run's id."""
    body = json.dumps({"scenario": "clock"}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    answer = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    return json.loads(answer)["run_id"]


async def main(kind: str, loop: str) -> None:
    pin(0)
    app = create_app(store="memory:", scenarios=[Path(__file__).parent / "scenarios"])
    server = Server(app, http="httptools" if loop == "uvloop" else "h11")
    listening = listen("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    port = listening.getsockname()[1]
    run_id = await start_run(port)
    last = 0

    async def publish(count: int) -> int:
        nonlocal last
        await tick(count)
        last = (await app.state.sessions.events(run_id, last))[-1].pos
        return last

    await obey({"port": port, "path": PATHS[kind].format(run_id=run_id)}, publish)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    on_loop(sys.argv[2], main(*sys.argv[1:]))
