"""Blocking work without a blocked event loop.

A write to disk blocks.  Handing it to a thread frees the loop meanwhile, but
the way there and back costs two to five times the sync of a quick disk, and
every wave waits for it.  So a lane measures: while writes take well under a
millisecond they run right here, where nobody notices; on a slow disk, or while
another process holds the store, they wait on a thread of the lane's own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from playground.backends.store import StoreError

T = TypeVar("T")

QUICK = 0.001
"""Seconds that a piece of work may take on the event loop, on average over the last few."""

PATIENCE = 10.0
"""Seconds to wait for another process that holds the store."""

_PAUSE = 0.002


class Busy(Exception):
    """Another process holds what the work needs; the work has done nothing yet."""


class Lane:
    """Runs the blocking work of one store, one piece at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._turn = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._pace = 0.0
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` and return what it returns.

        Raises:
            StoreError: the lane is closed, or another process does not let go.
        """
        if self._pace < QUICK and self._turn.acquire(blocking=False):
            try:
                return self._timed(work)
            except Busy:
                pass
            finally:
                self._turn.release()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="playground-store")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._patiently, work)

    async def close(self, release: Callable[[], None] = lambda: None) -> None:
        """Let the work in hand end, then `release` what it used; later work is refused."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.shutdown)
        with self._turn:
            if not self._closed:
                self._closed = True
                release()

    def _patiently(self, work: Callable[[], T]) -> T:
        deadline = time.monotonic() + PATIENCE
        while True:
            with self._turn:
                try:
                    return self._timed(work)
                except Busy:
                    if time.monotonic() > deadline:
                        raise StoreError(
                            f"{self._name}: another process has held it for {PATIENCE:.0f} s: "
                            "stop that process, or use another store"
                        ) from None
            time.sleep(_PAUSE)

    def _timed(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreError(f"{self._name}: the store is closed: open it again")
        start = time.perf_counter()
        result = work()
        self._pace += (time.perf_counter() - start - self._pace) / 8
        return result
