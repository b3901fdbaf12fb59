"""A body that runs again: what its activation gives back from memory, and which calls are made again.

The log shows a call each time that it is made.  What is given back from memory
leaves no event, so it is known only from what had returned before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from playground.kernel import Event, JsonValue

_FORGETS = ("node_completed", "node_failed", "node_cancelled")

REMEMBERS = frozenset({"tool_returned", "node_retry", *_FORGETS})
"""The kinds of events that make an activation remember or forget."""


@dataclass(slots=True)
class _Activation:
    """The calls made since a node began anew: how often each, and by key the tools that have returned."""

    number: JsonValue
    calls: dict[str, int] = field(default_factory=dict)
    returned: dict[str, Mapping[str, JsonValue]] = field(default_factory=dict)


class Memory:
    """The activations of a tree of runs, gone through event by event."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Activation] = {}

    def given(self, event: Event) -> tuple[str, ...]:
        """The tools whose results a body that starts gets back without running them again, in order."""
        place = (event.run_id, str(event.data.get("node")))
        number = event.data.get("activation")
        known = self._open.get(place)
        if known is None or known.number != number:
            known = self._open[place] = _Activation(number)
        return tuple(str(call.get("name")) for call in known.returned.values())

    def again(self, event: Event) -> int:
        """How often the same call was made before in its activation."""
        known = self._open.get((event.run_id, str(event.data.get("node"))))
        if known is None:
            return 0
        call_id = str(event.data.get("call_id"))
        before = known.calls.get(call_id, 0)
        known.calls[call_id] = before + 1
        return before

    def note(self, event: Event) -> None:
        """Go on with an event that makes an activation remember or forget."""
        place = (event.run_id, str(event.data.get("node")))
        known = self._open.get(place)
        if known is None:
            return
        if event.kind == "tool_returned":
            known.returned[str(event.data.get("call"))] = event.data
        elif event.kind == "node_retry":
            anew = event.data.get("anew")
            lost = anew if isinstance(anew, list) else []
            known.returned = {
                key: call for key, call in known.returned.items() if call.get("ok") and key not in lost
            }
        elif event.kind in _FORGETS:
            del self._open[place]
