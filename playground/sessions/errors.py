"""What can be wrong with a request, in the words of whoever made it.

A face turns these into its own form: a problem document and a status, or a line
on stderr and an exit code.
"""

from __future__ import annotations

from collections.abc import Mapping

from playground.kernel import JsonValue


class SessionError(Exception):
    """Base of the errors below; `str()` is one sentence that a user can act on."""


class NotFound(SessionError):
    """There is no such scenario, run, interrupt or position."""


class Conflict(SessionError):
    """It makes no sense as the run stands; `decision` tells what was decided before, if that is why."""

    def __init__(self, message: str, decision: Mapping[str, JsonValue] | None = None) -> None:
        super().__init__(message)
        self.decision = dict(decision) if decision else None


class Invalid(SessionError):
    """The input does not fit; `errors` says where: field path (empty for the whole) and sentence."""

    def __init__(self, message: str, errors: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.errors = dict(errors or {})


class Busy(SessionError):
    """As many runs as allowed are at work: wait for one, or stop one."""
