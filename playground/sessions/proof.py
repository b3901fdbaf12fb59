"""The proof that a checkpoint is right: fold the log up to its moment, and compare.

A checkpoint only saves time; what a run is, its log says.  So the two can be
held against each other at any time, and where they differ it is the checkpoint
that is wrong, and the key that tells where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from playground.kernel import JsonValue, Run
from playground.kernel.eventlog import CheckpointStore, LogError

UNREADABLE = "checkpoint"
"""The key that is named when there is a checkpoint and nobody can read it."""

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Proof:
    """A checkpoint held against the fold of the log.

    Args:
        at: position of the last event that the checkpoint knows, 0 where it cannot be read.
        differs: the keys in which the two differ, such as `shared.price`; none: it is proved.
    """

    at: int
    differs: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the checkpoint is what the log says."""
        return not self.differs


async def prove(checkpoints: CheckpointStore, run_id: str, fold: Callable[[int], Run]) -> Proof | None:
    """Hold a run's checkpoint against its log; None where it has no checkpoint.

    Args:
        fold: the run that the log tells of, up to a position.
    """
    try:
        snapshot = await checkpoints.load(run_id)
    except (LogError, OSError):
        return Proof(0, (UNREADABLE,))
    if snapshot is None:
        return None
    at = snapshot.get("last_pos")
    if not isinstance(at, int):
        return Proof(0, ("last_pos",))
    return Proof(at, tuple(_differences(snapshot, fold(at).snapshot())))


def _differences(kept: Mapping[str, JsonValue], folded: Mapping[str, JsonValue]) -> list[str]:
    """The keys in which two snapshots differ, those of an object by its own keys."""
    found: list[str] = []
    for key in dict.fromkeys([*kept, *folded]):
        ours, theirs = kept.get(key, _NOTHING), folded.get(key, _NOTHING)
        if ours == theirs:
            continue
        if isinstance(ours, dict) and isinstance(theirs, dict):
            found += [
                f"{key}.{inner}"
                for inner in dict.fromkeys([*ours, *theirs])
                if ours.get(inner, _NOTHING) != theirs.get(inner, _NOTHING)
            ]
        else:
            found.append(key)
    return found
