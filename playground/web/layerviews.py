"""The layers of a run at any moment of its past, read from the notes that its log keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from playground.kernel import Event, JsonObject, JsonValue, root_of
from playground.kernel.values import dict_in
from playground.sessions import remembered
from playground.web.viewmodels import LayerGift, LayersView, LayerView, Lifecycle

_LIFECYCLES: Mapping[str, Lifecycle] = {
    "run_suspended": "suspended",
    "resumed": "active",
    "run_completed": "closed",
    "run_failed": "closed",
}


def layers_view(events: Sequence[Event], at: int) -> LayersView:
    """The layers as of position `at` of their run's tree."""
    past = [event for event in events if event.pos <= at]
    now, before = remembered(past), remembered(event for event in past if event.pos < at)
    composition, earlier = _object(now.get("composition")), _object(before.get("composition"))
    states, known = _object(now.get("states")), _object(before.get("states"))
    graph = {str(node["name"]): node for node in _objects(composition.get("layers"))}
    return LayersView(
        lifecycle=_lifecycle(past),
        layers=tuple(
            LayerView(
                name,
                str(graph.get(name, {}).get("type", "")),
                {field: str(target) for field, target in _object(graph.get(name, {}).get("deps")).items()},
                _object(states[name]),
                _object(known.get(name)),
            )
            for name in states
        ),
        prompts=_gifts(composition, earlier, "prompts"),
        user_prompts=_gifts(composition, earlier, "user_prompts"),
        tools=_gifts(composition, earlier, "tools"),
    )


def changed_layers(event: Event, known: JsonObject) -> tuple[str, ...]:
    """The layers whose state a stage's note changes; all of them with the first one.

    Args:
        known: the states before.
    """
    states = states_after(event, known)
    return tuple(name for name, state in states.items() if name not in known or known[name] != state)


def states_after(event: Event, known: JsonObject) -> JsonObject:
    """What the layers remember after a stage's note.

    Args:
        known: the states before.
    """
    data = dict_in(event.data, "data")
    return dict_in(data, "states") if "states" in data else known


def _lifecycle(past: Iterable[Event]) -> Lifecycle:
    found: Lifecycle = "active"
    for event in past:
        if event.run_id == root_of(event.run_id):
            found = _LIFECYCLES.get(event.kind, found)
    return found


def _gifts(now: JsonObject, before: JsonObject, surface: str) -> tuple[LayerGift, ...]:
    known = _objects(before.get(surface))
    return tuple(
        LayerGift(
            str(part.get("layer", "")),
            str(part.get("surface", "")),
            str(part.get("text", "")),
            changed=bool(before) and part not in known,
        )
        for part in _objects(now.get(surface))
    )


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
