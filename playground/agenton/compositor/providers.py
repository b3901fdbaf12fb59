"""Providers: how a node gets its layer, a fresh one for every entry.

A layer object carries dependencies, state and a place in the lifecycle of one
run.  Two runs that shared one would overwrite each other, so the compositor
takes an instance only once in its life, whichever factory it comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, get_origin
from weakref import ref

from typing_extensions import TypeVar

from playground.agenton.layers import AnyLayer, Layer, LayerConfig
from playground.agenton.layers.schemas import validated

LayerT = TypeVar("LayerT", bound=AnyLayer)
LayerT_co = TypeVar("LayerT_co", covariant=True, default=AnyLayer)
ConfigT = TypeVar("ConfigT", bound=LayerConfig)


@dataclass(frozen=True, slots=True)
class LayerProvider(Generic[LayerT_co]):
    """Makes layers of one class from validated configs.

    Attributes:
        layer_type: the class whose schemas count.
        create: given a config of its `config_type`, returns a layer that nobody has used.

    Raises:
        TypeError: `layer_type` is not a layer class.
    """

    layer_type: type[LayerT_co]
    create: Callable[[Any], LayerT_co]  # Any: only `layer_type` knows what config it is called with

    def __post_init__(self) -> None:
        layer_type = get_origin(self.layer_type) or self.layer_type  # ObjectLayer[str] → ObjectLayer
        if not (isinstance(layer_type, type) and issubclass(layer_type, Layer)):
            raise TypeError(
                f"A provider has the expected type of a Layer subclass, got {layer_type!r}: "
                "derive it from a family such as PlainLayer"
            )
        object.__setattr__(self, "layer_type", layer_type)

    @classmethod
    def from_layer_type(cls, layer_type: type[LayerT]) -> LayerProvider[LayerT]:
        """Layers made by the class itself, through `from_config`."""
        return LayerProvider(layer_type, lambda config: layer_type.from_config(config))

    @classmethod
    def from_factory(
        cls, *, layer_type: type[LayerT], create: Callable[[ConfigT], LayerT]
    ) -> LayerProvider[LayerT]:
        """Layers made by `create`, where construction needs Python objects.

        The factory sees the validated config and nothing of the graph.
        """
        return LayerProvider(layer_type, create)


def layer_config(layer_type: type[AnyLayer], value: object, node: str) -> LayerConfig:
    """`value` as the config of the layer at `node`; `None` stands for a config without fields.

    Raises:
        ValidationError: it does not fit the layer's `config_type`.
        TypeError: it is a model of another type.
    """
    return validated(layer_type.config_type, {} if value is None else value, f"config of layer {node!r}")


def fresh_layer(provider: LayerProvider[AnyLayer], config: LayerConfig, node: str) -> AnyLayer:
    """A layer for `node` that no run has had before.

    Raises:
        TypeError: the factory returned something else than its `layer_type`.
        ValueError: it returned a layer that it, or another, has returned before.
    """
    layer = provider.create(config)
    if not isinstance(layer, provider.layer_type):
        raise TypeError(
            f"The factory of layer {node!r} has the expected type {provider.layer_type.__name__}, "
            f"got {type(layer).__name__}: return what layer_type declares"
        )
    if not _claim(layer):
        raise ValueError(
            f"The factory of layer {node!r} must return a fresh instance for every entry, "
            f"got a {type(layer).__name__} that has been used: construct it inside the factory"
        )
    layer.config = config
    return layer


_claimed: dict[int, ref[AnyLayer]] = {}
"""Layers in use, by identity: they may be unhashable, and must not be kept alive by having been used."""


def _claim(layer: AnyLayer) -> bool:
    key = id(layer)
    if key in _claimed:
        return False
    _claimed[key] = ref(layer, lambda _: _claimed.pop(key, None))
    return True
