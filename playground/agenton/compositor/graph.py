"""The graph: named nodes in order, and the rules that every graph keeps.

Order is the only thing that a compositor goes by: prompts are gathered in it,
resources nest in it.  So a dependency comes before whoever needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, cast

from pydantic import JsonValue

from playground.agenton.compositor.noting import noting
from playground.agenton.compositor.providers import LayerProvider
from playground.agenton.layers import AnyLayer, Family
from playground.agenton.layers.types import PromptT_co, ToolT_co, UserPromptT_co
from playground.kernel.values import frozen_object


@dataclass(frozen=True, slots=True)
class LayerNode(Generic[PromptT_co, UserPromptT_co, ToolT_co]):
    """One node of a graph.

    Attributes:
        name: how configs, dependencies and snapshots refer to it.
        implementation: a layer class, or a provider where making a layer takes more.
        deps: dependency field of the layer → name of an earlier node.
        metadata: JSON for the program's own use.
    """

    name: str
    implementation: (
        type[Family[PromptT_co, UserPromptT_co, ToolT_co]]
        | LayerProvider[Family[PromptT_co, UserPromptT_co, ToolT_co]]
    )
    deps: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "deps", MappingProxyType(dict(self.deps)))
        object.__setattr__(self, "metadata", frozen_object(self.metadata, f"metadata of node {self.name!r}"))

    @property
    def provider(self) -> LayerProvider[AnyLayer]:
        """What makes the layers of this node.

        Raises:
            TypeError: `implementation` is neither a layer class nor a provider.
        """
        given = cast("type[AnyLayer] | LayerProvider[AnyLayer]", self.implementation)
        if isinstance(given, LayerProvider):
            return given
        with noting(f"node {self.name!r}"):
            return LayerProvider.from_layer_type(given)


def checked_graph(nodes: Iterable[LayerNode[Any, Any, Any]]) -> dict[str, LayerProvider[AnyLayer]]:
    """The provider of each node, once the whole graph has been found in order.

    Raises:
        ValueError: a name recurs, or a dependency is not declared, not defined, or not earlier.
        TypeError: an implementation is neither a layer class nor a provider.
    """
    nodes = list(nodes)
    defined = {node.name for node in nodes}
    providers: dict[str, LayerProvider[AnyLayer]] = {}
    for node in nodes:
        if node.name in providers:
            raise ValueError(f"Layer node name {node.name!r} recurs: names are unique in a graph")
        provider = node.provider
        _check_dependencies(node, provider.layer_type, defined, earlier=providers.keys())
        providers[node.name] = provider
    return providers


def _check_dependencies(
    node: LayerNode[Any, Any, Any],
    layer_type: type[AnyLayer],
    defined: Collection[str],
    earlier: Collection[str],
) -> None:
    if unknown := node.deps.keys() - layer_type.dependency_names():
        raise ValueError(
            f"Unknown layer dependencies of node {node.name!r}: {listed(unknown)}; "
            f"{layer_type.__name__} declares {listed(layer_type.dependency_names())}"
        )
    for field_name, target in node.deps.items():
        where = f"Dependency {field_name!r} of node {node.name!r}"
        if target not in defined:
            raise ValueError(
                f"{where} targets the undefined node {target!r}; the graph has {listed(defined)}"
            )
        if target not in earlier:
            raise ValueError(
                f"{where} targets {target!r}: dependencies must target preceding layer nodes "
                f"in compositor order, so move {target!r} before {node.name!r}"
            )


def providers_by_type_id(providers: Iterable[LayerProvider[Any]]) -> dict[str, LayerProvider[Any]]:
    """The providers under the type ids that configs use.

    Raises:
        ValueError: a layer class has no type_id, or one that another has.
    """
    by_type_id: dict[str, LayerProvider[Any]] = {}
    for provider in providers:
        type_id, name = provider.layer_type.type_id, provider.layer_type.__name__
        if type_id is None:
            raise ValueError(f"{name} has no type_id, so no config can refer to it: declare one in the class")
        if type_id in by_type_id:
            taken = by_type_id[type_id].layer_type.__name__
            raise ValueError(f"type_id {type_id!r} of {name} is already registered by {taken}: use another")
        by_type_id[type_id] = provider
    return by_type_id


def listed(names: Iterable[str]) -> str:
    """Names for an error message."""
    return ", ".join(map(repr, sorted(names))) or "none"
