"""Commands: the only words with which a node steers the engine.

A node never touches another node.  It returns what it wants to happen, and the
engine does it at the wave's barrier.  There are two words, and both only change
who is ready next:

- `Goto` re-arms a node that exists: loops, jumps, and hand-overs.  A transfer
  to another agent is no third word: it is a Goto without a way back.
- `Send` makes one more instance of a template: fan-out of a width that is
  known only while running.

Data is no command: it travels in the outcome's value and state delta.
A Goto *adds* to the static edges of the node that said it and never replaces them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

END: Final = "__end__"
"""`Goto(END)` ends the run at this barrier; what has not run is skipped."""


@dataclass(frozen=True, slots=True)
class Command:
    """Base of the control commands."""


@dataclass(frozen=True, slots=True)
class Goto(Command):
    """Re-arm `target`, so that it runs again.

    Args:
        target: key of a node that is not a template, or `END`.
        immediate: release it at once, past its edges; otherwise it waits for
            its edges and its join like any other node.
        payload: JSON value that the target gets as its next input, once.
    """

    target: str
    immediate: bool = True
    payload: object = None

    @classmethod
    def now(cls, target: str, payload: object = None) -> Goto:
        """Re-arm and release at once: a back edge, a jump, a hand-over."""
        return cls(target, True, payload)

    @classmethod
    def rejoin(cls, target: str, payload: object = None) -> Goto:
        """Re-arm only: the target waits for its predecessors and its join again."""
        return cls(target, False, payload)


@dataclass(frozen=True, slots=True)
class Send(Command):
    """Make an instance of the node `template` and feed it `payload`.

    Args:
        template: key of a node declared with `template=True`.
        payload: JSON value, the input of the instance.
        key: name of the instance inside its template; the same key is the same
            instance.  Without one the engine numbers them.
    """

    template: str
    payload: object = None
    key: str | None = None
