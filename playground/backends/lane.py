"""Blocking work without a blocked event loop.

A write to disk blocks.  A thread would free the loop meanwhile, but the way
there and back takes longer than the sync of a quick disk, and every wave waits
for it.  So a lane measures: a write runs right here while writes are so quick
that nobody notices.  After a slow one, and while another process holds the
store, they go to a thread of the lane's own; now and then one is tried here
again, for the time that a thread needs tells little about the disk.
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
"""Seconds that a piece of work may keep the event loop waiting."""

_FORGET = 0.95
"""How much of a slow piece of work is remembered by the next: one of 10 ms for some 40 pieces."""

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
        self._slowness = 0.0
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` and return what it returns.

        Raises:
            StoreError: the lane is closed, or another process does not let go.
        """
        self._slowness *= _FORGET
        if self._slowness < QUICK and self._turn.acquire(blocking=False):
            try:
                start = time.perf_counter()
                result = self._do(work)
                self._slowness = max(self._slowness, time.perf_counter() - start)
                return result
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
                    return self._do(work)
                except Busy:
                    if time.monotonic() > deadline:
                        raise StoreError(
                            f"{self._name}: another process has held it for {PATIENCE:.0f} s: "
                            "stop that process, or use another store"
                        ) from None
            time.sleep(_PAUSE)

    def _do(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreError(f"{self._name}: the store is closed: open it again")
        return work()
