"""Whose failure is it?  An error that comes out of a layer's code is told by a note, and stays what it is."""

from __future__ import annotations

from types import TracebackType


class noting:
    """A context that adds "raised by `culprit`" to a failure of its block, as cheap as `contextlib.suppress`.

    Args:
        culprit: whose code runs in the block, such as "on_context_create of layer 'a'".
        passing: a failure that only passes through, and is somebody else's.
    """

    __slots__ = ("_culprit", "_passing")

    def __init__(self, culprit: str, *, passing: BaseException | None = None) -> None:
        self._culprit = culprit
        self._passing = passing

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if failure is not None and failure is not self._passing:
            failure.add_note(f"raised by {self._culprit}")
