"""Where a layer stands in a session, and how it means to leave."""

from __future__ import annotations

from enum import StrEnum


class LifecycleState(StrEnum):
    """Where one layer stands: NEW → ACTIVE → SUSPENDED → ACTIVE → … → CLOSED."""

    NEW = "new"
    """Never entered, or its first entry failed."""
    ACTIVE = "active"
    """Its enter hook has returned and its exit hook has not.  Internal: no snapshot holds it."""
    SUSPENDED = "suspended"
    """Its suspend hook has returned: a later entry resumes it."""
    CLOSED = "closed"
    """Deleted, or it failed while leaving: it is never entered again."""


class ExitIntent(StrEnum):
    """Which hook an active layer leaves through."""

    DELETE = "delete"
    SUSPEND = "suspend"
