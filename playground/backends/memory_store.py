"""The store of this process, gone with it: for lessons, tests and demos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from playground.backends.store import (
    UNLIMITED,
    ScannedRunIndex,
    Store,
    check_key,
    frozen_data,
    tree_of,
)
from playground.kernel.eventlog import (
    Event,
    InMemoryEventLog,
    InMemoryStore,
    check_batch,
    check_run_id,
    root_of,
)
from playground.kernel.values import JsonObject, JsonValue, freeze, thaw


class MemoryEventLog(InMemoryEventLog):
    """The kernel's log in memory, as strict about ids, values and beginnings as the logs on disk."""

    async def append_many(self, events: Sequence[Event]) -> None:
        if events:
            tree_of(events)
            check_batch(events, {event.run_id: 0 for event in events if event.run_id not in self._runs}, 0)
            await super().append_many([event._replace(data=frozen_data(event)) for event in events])

    async def events(self, run_id: str) -> list[Event]:
        return await super().events(check_run_id(run_id))

    async def after(self, run_id: str, since_seq: int) -> list[Event]:
        return await super().after(check_run_id(run_id), since_seq)

    async def stream(self, root_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        return await super().stream(check_run_id(root_id), after, limit)

    def forget(self, root_id: str) -> None:
        """Remove the events of a tree."""
        for run_id in {event.run_id for event in self._trees.pop(root_id, ())}:
            del self._runs[run_id], self._last[run_id]


class MemoryCheckpointStore(InMemoryStore):
    """The kernel's checkpoints in memory, as strict about ids as those on disk."""

    async def save(
        self, run_id: str, snapshot: Mapping[str, JsonValue], *, expected_version: int | None = None
    ) -> int:
        return await super().save(check_run_id(run_id), snapshot, expected_version=expected_version)

    async def load(self, run_id: str) -> JsonObject | None:
        return await super().load(check_run_id(run_id))

    def forget(self, root_id: str) -> None:
        """Remove the snapshots of a tree."""
        for run_id in [run_id for run_id in self._kept if root_of(run_id) == root_id]:
            del self._kept[run_id]


class MemoryDocuments:
    """Documents in a dict."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[str, JsonValue]] = {}

    async def put(self, space: str, key: str, value: JsonValue) -> None:
        check_key(space, key)
        frozen = freeze(value, f"document {space}/{key}", limit=UNLIMITED)
        self._spaces.setdefault(space, {})[key] = frozen

    async def get(self, space: str, key: str) -> JsonValue:
        return thaw(self._spaces.get(space, {}).get(key))

    async def all(self, space: str) -> dict[str, JsonValue]:
        return {key: thaw(value) for key, value in self._spaces.get(space, {}).items()}

    async def delete(self, space: str, key: str) -> None:
        self._spaces.get(space, {}).pop(key, None)


def open_memory() -> Store:
    """A new, empty store in memory."""
    log, checkpoints = MemoryEventLog(), MemoryCheckpointStore()

    async def forget(root_id: str) -> None:
        log.forget(root_id)
        checkpoints.forget(root_id)

    async def close() -> None:
        """Nothing to let go of."""

    return Store(
        "memory:", log, checkpoints, ScannedRunIndex(MemoryDocuments(), forget), MemoryDocuments(), close
    )
