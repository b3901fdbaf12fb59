"""Taking up a session again: does a snapshot fit, and what did each layer remember?

A snapshot may come from another process, an older program or a foreign hand.
Whatever does not fit is refused with the difference named, before any hook.
"""

from __future__ import annotations

from pydantic import BaseModel

from playground.agenton.compositor.graph import listed
from playground.agenton.compositor.schemas import CompositorSessionSnapshot, LayerSessionSnapshot
from playground.agenton.layers import AnyLayer, LifecycleState
from playground.agenton.layers.schemas import validated


def fitting_layers(given: object, expected: list[str]) -> dict[str, LayerSessionSnapshot]:
    """The layers of a snapshot by name, if they are the `expected` ones in order and all can be entered.

    Args:
        given: a snapshot as a model or a mapping, or None for a session that begins.
        expected: the names of the compositor's nodes.

    Raises:
        ValidationError: `given` is not a snapshot.
        ValueError: the names differ.
        RuntimeError: a layer is CLOSED.
    """
    if given is None:
        return {}
    snapshot = validated(CompositorSessionSnapshot, given, "session snapshot")
    names = [layer.name for layer in snapshot.layers]
    if names != expected:
        raise ValueError(
            "Session snapshot layers must match the compositor's names and order, "
            f"but {_difference(expected, names)}: expected [{', '.join(expected)}], "
            f"got [{', '.join(names)}]; resume with the graph that was suspended"
        )
    for layer in snapshot.layers:
        if layer.lifecycle_state is LifecycleState.CLOSED:
            raise RuntimeError(
                f"Layer {layer.name!r} is CLOSED, and a CLOSED layer cannot be entered: "
                "start a new session, or make it NEW in the snapshot"
            )
    return {layer.name: layer for layer in snapshot.layers}


def _difference(expected: list[str], names: list[str]) -> str:
    if lacking := set(expected) - set(names):
        return f"it lacks {listed(lacking)}"
    if unknown := set(names) - set(expected):
        return f"the compositor has no {listed(unknown)}"
    return "the order differs" if len(names) == len(expected) else "a name recurs"


def settle_state(layer: AnyLayer, name: str, stored: LayerSessionSnapshot | None) -> None:
    """Give the layer at node `name` the runtime state that was stored for it, or see that it has one.

    Raises:
        ValidationError: the state does not fit the layer's `runtime_state_type`, or that has no defaults.
        ValueError: the stored state has fields that the type does not know, and says nothing of.
        TypeError: the layer was made with a state of another type.
    """
    schema: type[BaseModel] = layer.runtime_state_type
    what = f"runtime_state of layer {name!r}"
    if stored is None:
        if not isinstance(layer.runtime_state, schema):
            got = type(layer.runtime_state).__name__
            raise TypeError(f"{what} has the expected type {schema.__name__}, got {got}: make it with that")
        return
    lost = stored.runtime_state.keys() - schema.model_fields.keys()
    if lost and "extra" not in schema.model_config:  # pydantic would drop them without a word
        raise ValueError(
            f"{what} holds {listed(lost)}, which its expected type {schema.__name__} does not declare: "
            "resume with the layer that was suspended, or set extra='ignore' in its model_config"
        )
    layer.runtime_state = validated(schema, stored.runtime_state, what)
