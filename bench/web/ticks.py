"""The wire between a server's commands and the run inside it that is to tick."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

_wanted: asyncio.Queue[tuple[int, asyncio.Future[None]]] = asyncio.Queue()


async def tick(count: int) -> None:
    """Ask for `count` ticks back to back; returns when they are in the log."""
    done = asyncio.get_running_loop().create_future()
    _wanted.put_nowait((count, done))
    await done


async def ticks() -> AsyncIterator[tuple[int, asyncio.Future[None]]]:
    """Each request, with a future that is to be answered once its ticks have been given."""
    while True:
        yield await _wanted.get()
