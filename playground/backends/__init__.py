"""Where facts are kept: in memory, in one SQLite file, or in a folder of JSON.

async with open_store("sqlite:.playground/runs.db") as store:
    await store.log.append_many(events)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playground.backends.file_store import FileCheckpointStore, FileEventLog, open_file
from playground.backends.memory_store import open_memory
from playground.backends.sqlite_store import open_sqlite
from playground.backends.store import DamagedLog, Documents, RunIndex, RunRecord, Store, StoreError

__all__ = [
    "DamagedLog",
    "Documents",
    "FileCheckpointStore",
    "FileEventLog",
    "RunIndex",
    "RunRecord",
    "Store",
    "StoreError",
    "open_store",
]

_ON_DISK: dict[str, Callable[..., Store]] = {"sqlite": open_sqlite, "file": open_file}


def open_store(url: str) -> Store:
    """The store that `url` names.

    Args:
        url: `memory:`, `sqlite:PATH` or `file:DIR`; what is missing is made.
            With `?sync=normal` behind it a write does not wait for the disk:
            a killed process still loses nothing, but a power cut may take the last writes.

    Raises:
        StoreError: it cannot be opened, or was written by another version; it stays as it is.
    """
    scheme, _, rest = url.partition(":")
    path, _, option = rest.partition("?")
    if scheme == "memory" and not rest:
        return open_memory()
    if scheme not in _ON_DISK or not path or option not in ("", "sync=full", "sync=normal"):
        raise StoreError(
            f"{url!r} names no store: use memory:, sqlite:PATH or file:DIR, "
            "the last two with ?sync=normal if they need not outlive a power cut"
        )
    return _ON_DISK[scheme](Path(path), url, sync=option != "sync=normal")
