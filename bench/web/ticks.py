"""The wire between a server's commands and the run inside it that is to tick."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

_wanted: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()


async def tick() -> None:
    """Ask for one tick; back when it is in the log."""
    done = asyncio.get_running_loop().create_future()
    _wanted.put_nowait(done)
    await done


async def ticks() -> AsyncIterator[asyncio.Future[None]]:
    """Each request for a tick, to be answered once it has been given."""
    while True:
        yield await _wanted.get()
