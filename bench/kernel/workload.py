"""The workloads that each engine runs, and what an adapter for an engine looks like.

Bodies do next to nothing, so what is measured is the engine.  Each case returns
a number that only the whole work gives.
"""

from __future__ import annotations

from typing import Protocol

from bench.common import Case

Message = dict[str, object]


def thought(i: int) -> Message:
    """What the model says in turn `i`."""
    return {"role": "assistant", "content": f"thought {i}", "id": i}


def result(i: int) -> Message:
    """What the tool answers in turn `i`."""
    return {"role": "tool", "content": f"result {i}", "id": i}


class Engine(Protocol):
    """An engine under test; a workload that it cannot express is None."""

    def chain(self, n: int) -> Case | None:
        """`n` nodes in a row, each adding 1; returns the sum."""

    def loop(self, n: int) -> Case | None:
        """Think and tools in turn, `n` times, each adding a message; returns how many there are."""

    def fanout(self, n: int) -> Case | None:
        """One node that sends `n` pieces of work, one that joins them; returns how many came back."""

    def diamond(self, n: int) -> Case | None:
        """One node, `n` fixed branches, one join; returns how many came back."""
