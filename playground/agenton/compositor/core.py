"""The compositor: a graph of layers as a plan that can be entered again and again.

It keeps the nodes, their providers and three transformers, nothing that lives.
So it may be shared, kept at module level, and entered by many tasks at once:
each `enter` validates, makes fresh layers, binds them, and hands over a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from playground.agenton.compositor.graph import LayerNode, checked_graph, listed, providers_by_type_id
from playground.agenton.compositor.noting import noting
from playground.agenton.compositor.providers import LayerProvider, fresh_layer, layer_config
from playground.agenton.compositor.restore import fitting_layers, settle_state
from playground.agenton.compositor.run import CompositorRun, LayerRunSlot, Transformers
from playground.agenton.compositor.schemas import CompositorConfig, CompositorSessionSnapshot
from playground.agenton.layers import Family, LayerConfig, LifecycleState
from playground.agenton.layers.schemas import validated

LayerPromptT = TypeVar("LayerPromptT")
LayerUserPromptT = TypeVar("LayerUserPromptT")
LayerToolT = TypeVar("LayerToolT")
PromptT = TypeVar("PromptT", default=LayerPromptT)
UserPromptT = TypeVar("UserPromptT", default=LayerUserPromptT)
ToolT = TypeVar("ToolT", default=LayerToolT)

ConfigInput: TypeAlias = LayerConfig | Mapping[str, object] | None
"""A layer's config as callers pass it: its model, a mapping of its fields, or nothing."""


class Compositor(Generic[LayerPromptT, LayerUserPromptT, LayerToolT, PromptT, UserPromptT, ToolT]):
    """An ordered graph of layers.

    The first three type parameters are what the layers' families wrap items into, the
    last three what the transformers make of those; without transformers, the same.
    All are inferred, unless some transformers are given and others not.

    Args:
        nodes: in order; a node's dependencies come before it.
        prompt_transformer, user_prompt_transformer, tool_transformer: each turns the list of gathered
            items into what `CompositorRun.prompts`, `user_prompts` and `tools` return.

    Raises:
        ValueError: a name recurs, or a dependency is not declared, not defined, or not earlier.
        TypeError: an implementation is neither a layer class nor a provider.
    """

    def __init__(
        self,
        nodes: Iterable[LayerNode[LayerPromptT, LayerUserPromptT, LayerToolT]],
        *,
        prompt_transformer: Callable[[Sequence[LayerPromptT]], Sequence[PromptT]] | None = None,
        user_prompt_transformer: Callable[[Sequence[LayerUserPromptT]], Sequence[UserPromptT]] | None = None,
        tool_transformer: Callable[[Sequence[LayerToolT]], Sequence[ToolT]] | None = None,
    ) -> None:
        self.nodes = tuple(nodes)
        self._providers = checked_graph(self.nodes)
        self._transformers: Transformers[PromptT, UserPromptT, ToolT] = Transformers(
            prompt_transformer or _as_they_are,
            user_prompt_transformer or _as_they_are,
            tool_transformer or _as_they_are,
        )

    @classmethod
    def from_config(
        cls,
        conf: CompositorConfig | Mapping[str, object],
        *,
        providers: Iterable[LayerProvider[Family[LayerPromptT, LayerUserPromptT, LayerToolT]]],
        node_providers: Mapping[str, LayerProvider[Family[LayerPromptT, LayerUserPromptT, LayerToolT]]]
        | None = None,
        prompt_transformer: Callable[[Sequence[LayerPromptT]], Sequence[PromptT]] | None = None,
        user_prompt_transformer: Callable[[Sequence[LayerUserPromptT]], Sequence[UserPromptT]] | None = None,
        tool_transformer: Callable[[Sequence[LayerToolT]], Sequence[ToolT]] | None = None,
    ) -> Compositor[LayerPromptT, LayerUserPromptT, LayerToolT, PromptT, UserPromptT, ToolT]:
        """A compositor from a document, with each node's provider found by its type id.

        Args:
            conf: the graph; a model is validated again.
            providers: one for each type id that the graph uses.
            node_providers: node name → the provider to use there instead.

        Raises:
            ValidationError: `conf` is not a config of this schema version.
            KeyError: a node's type id has no provider.
            ValueError: a provider's layer has no type_id or another's, or `node_providers` names no node;
                and whatever `Compositor(...)` refuses.
        """
        layers = validated(CompositorConfig, conf, "compositor config").layers
        by_type_id, by_name = providers_by_type_id(providers), dict(node_providers or {})
        if unknown := by_name.keys() - {layer.name for layer in layers}:
            raise ValueError(
                f"node_providers names unknown nodes: {listed(unknown)}; "
                f"the config has {listed(layer.name for layer in layers)}"
            )
        nodes: list[LayerNode[LayerPromptT, LayerUserPromptT, LayerToolT]] = []
        for layer in layers:
            provider = by_name.get(layer.name) or by_type_id.get(layer.type)
            if provider is None:
                raise KeyError(
                    f"no provider for type id {layer.type!r} of node {layer.name!r}: "
                    f"add one to providers, which has {listed(by_type_id)}"
                )
            nodes.append(LayerNode(layer.name, provider, layer.deps, layer.metadata))
        return Compositor(
            nodes,
            prompt_transformer=prompt_transformer,
            user_prompt_transformer=user_prompt_transformer,
            tool_transformer=tool_transformer,
        )

    def enter(
        self,
        *,
        configs: Mapping[str, ConfigInput] | None = None,
        session_snapshot: CompositorSessionSnapshot | Mapping[str, object] | None = None,
    ) -> CompositorRun[PromptT, UserPromptT, ToolT]:
        """A run with fresh layers, to be entered with `async with`.

        All that can be refused is refused here, before any resource or hook: configs and
        snapshot before any factory runs, then what factories return, states and dependencies.

        Args:
            configs: node name → config of its layer for this run.
            session_snapshot: the session to go on with, of the same layer names in the same order.

        Raises:
            ValidationError: a config, the snapshot or a stored state does not fit its schema.
            ValueError: an unknown layer; a snapshot of another graph; missing or unknown
                dependencies; a factory's layer that is not fresh.
            TypeError: a layer, a config or a dependency is not of the expected type.
            RuntimeError: the snapshot holds a CLOSED layer.
        """
        layer_configs = self._validated_configs(configs or {})
        stored = fitting_layers(session_snapshot, list(self._providers))
        slots: dict[str, LayerRunSlot] = {}
        for name, provider in self._providers.items():
            at_rest = stored.get(name)
            with noting(f"the provider of layer {name!r}"):
                layer = fresh_layer(provider, layer_configs[name], name)
                settle_state(layer, name, at_rest)
            slots[name] = LayerRunSlot(
                name, layer, at_rest.lifecycle_state if at_rest else LifecycleState.NEW
            )
        for node in self.nodes:
            with noting(f"bind_deps of layer {node.name!r}"):
                slots[node.name].layer.bind_deps(
                    {field: slots[target].layer for field, target in node.deps.items()}
                )
        return CompositorRun(slots, self._transformers)

    def _validated_configs(self, configs: Mapping[str, ConfigInput]) -> dict[str, LayerConfig]:
        if unknown := configs.keys() - self._providers.keys():
            raise ValueError(
                f"configs names unknown layers: {listed(unknown)}; the graph has {listed(self._providers)}"
            )
        return {
            name: layer_config(provider.layer_type, configs.get(name), name)
            for name, provider in self._providers.items()
        }


def _as_they_are(items: Sequence[Any]) -> Sequence[Any]:
    return items
