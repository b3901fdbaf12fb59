"""A server in a process of its own, driven by lines of JSON on its standard input and output.

The two servers differ in how they serve; how they are started, asked to publish
and measured is the same and is here.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from bench.common import rss_kib

Publish = Callable[[int], Awaitable[int]]
"""Publishes so many events, back to back, and returns the id of the last."""


def pin(core: int) -> None:
    """Keep this process to one core where there are two, so that server and viewers do not compete."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {core})


def on_loop(name: str, main: Coroutine[Any, Any, None]) -> None:
    """Run a server on `uvloop` or on `asyncio`'s own loop."""
    if name == "uvloop":
        import uvloop

        uvloop.run(main)
    else:
        asyncio.run(main)


async def pace(publish: Publish, count: int, rate: float, burst: int) -> dict[str, Any]:
    """Publish `count` events, `burst` back to back, `rate` a second on average.

    Returns:
        The monotonic nanosecond at which each was handed over, and the id of the last.
    """
    stamps: list[int] = []
    last = 0
    start = time.monotonic()
    while len(stamps) < count:
        await asyncio.sleep(max(0.0, start + len(stamps) / rate - time.monotonic()))
        now = min(burst, count - len(stamps))
        stamps += [time.monotonic_ns()] * now
        last = await publish(now)
    return {"stamps": stamps, "last": last}


async def obey(address: dict[str, Any], publish: Publish) -> None:
    """Say where the server is, then carry out commands until the parent closes the pipe."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps(address), flush=True)
    while line := await reader.readline():
        command = json.loads(line)
        if command["do"] == "publish":
            answer = await pace(publish, command["count"], command["rate"], command["burst"])
        else:
            gc.collect()
            answer = {"rss_kib": rss_kib(), "cpu": time.process_time()}
        print(json.dumps(answer), flush=True)


class Child:
    """The parent's side: start the server, publish through it, read its meters, stop it."""

    def __init__(self, process: asyncio.subprocess.Process, address: dict[str, Any]) -> None:
        self._process = process
        self.address = address

    @classmethod
    async def start(cls, module: str, *arguments: str) -> Child:
        """Start `python -m module` and wait until it says where it listens."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        if not line:
            raise RuntimeError(f"{module} ended before it listened")
        return cls(process, json.loads(line))

    async def ask(self, **command: object) -> dict[str, Any]:
        """Send one command and return its answer."""
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        return json.loads(await asyncio.wait_for(self._process.stdout.readline(), 120))

    async def stop(self) -> None:
        """Close the pipe, and see the process go."""
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
