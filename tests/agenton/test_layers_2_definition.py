"""How a layer is defined, and how its schemas are found."""

from __future__ import annotations

from typing import Generic, Self

import pytest
from layer_probes import (
    GREETING,
    GREETING_GRAPH,
    AloneLayer,
    DependentProbe,
    GreetingConfig,
    GreetingLayer,
    GreetingState,
    LooseConfig,
    Probe,
    ProbeDeps,
    Stage,
)
from pydantic import ValidationError
from typing_extensions import TypeVar

from playground.agenton.compositor import (
    Compositor,
    LayerNode,
    LayerProvider,
)
from playground.agenton.layers import (
    EmptyLayerConfig,
    EmptyRuntimeState,
    LayerConfig,
    LayerDeps,
    NoLayerDeps,
    PlainLayer,
)


def test_schemas_are_inferred_from_the_generic_base() -> None:
    assert GreetingLayer.deps_type is NoLayerDeps
    assert GreetingLayer.config_type is GreetingConfig
    assert GreetingLayer.runtime_state_type is GreetingState
    assert DependentProbe.deps_type is ProbeDeps


def test_schemas_left_out_are_empty() -> None:
    assert AloneLayer.config_type is EmptyLayerConfig
    assert AloneLayer.runtime_state_type is EmptyRuntimeState


ConfigT = TypeVar("ConfigT", bound=LayerConfig)


class OpenLayer(PlainLayer[NoLayerDeps, ConfigT, GreetingState], Generic[ConfigT]):
    """Leaves its config to subclasses."""


class FilledLayer(OpenLayer[GreetingConfig]):
    """Fills it."""


def test_a_schema_that_a_generic_base_leaves_open_is_filled_by_its_subclass() -> None:
    assert OpenLayer.config_type is EmptyLayerConfig
    assert FilledLayer.config_type is GreetingConfig
    assert FilledLayer.runtime_state_type is GreetingState


DefaultT = TypeVar("DefaultT", bound=LayerConfig, default=GreetingConfig)
ItemT = TypeVar("ItemT")


class DefaultedLayer(PlainLayer[NoLayerDeps, DefaultT], Generic[ItemT, DefaultT]):
    """Its config is a GreetingConfig unless a subclass says otherwise."""


class DefaultedHeir(DefaultedLayer[int]):
    """Says nothing of its config."""


def test_a_type_parameter_left_out_by_a_subclass_has_its_default() -> None:
    assert DefaultedHeir.config_type is GreetingConfig


class ExplicitLayer(PlainLayer[NoLayerDeps, GreetingConfig]):
    config_type = LooseConfig


class ExplicitHeir(ExplicitLayer):
    """Says nothing."""


def test_a_declared_schema_wins_over_the_inferred_one_and_is_inherited() -> None:
    assert ExplicitLayer.config_type is LooseConfig
    assert ExplicitHeir.config_type is LooseConfig


@pytest.mark.parametrize(
    ("attribute", "wrong", "kind"),
    [
        ("config_type", dict, "LayerConfig"),
        ("runtime_state_type", dict, "BaseModel"),
        ("deps_type", Probe, "LayerDeps"),
    ],
)
def test_a_schema_of_the_wrong_kind_is_refused_where_the_class_is_defined(
    attribute: str, wrong: type, kind: str
) -> None:
    with pytest.raises(TypeError, match=f"WrongLayer.{attribute} must be a {kind} subclass"):
        type("WrongLayer", (AloneLayer,), {attribute: wrong})


def test_a_type_id_is_how_a_graph_config_refers_to_a_layer() -> None:
    compositor = Compositor.from_config(GREETING_GRAPH, providers=[GREETING])
    run = compositor.enter(configs={"greeting": {"prefix": "Hi"}})
    assert isinstance(run.get_layer("greeting"), GreetingLayer)


def test_a_provider_without_type_id_cannot_serve_a_graph_config() -> None:
    with pytest.raises(ValueError, match="AloneLayer has no type_id"):
        Compositor.from_config({"layers": []}, providers=[LayerProvider.from_layer_type(AloneLayer)])


def test_from_config_gets_the_validated_config() -> None:
    got: list[LayerConfig] = []

    class Curious(PlainLayer[NoLayerDeps, GreetingConfig]):
        @classmethod
        def from_config(cls, config: GreetingConfig) -> Self:
            got.append(config)
            return cls()

    Compositor([LayerNode("curious", Curious)]).enter(configs={"curious": {"prefix": "Hi"}})
    assert got == [GreetingConfig(prefix="Hi")]


def test_a_layer_without_config_is_made_without_arguments() -> None:
    assert isinstance(Compositor([LayerNode("alone", AloneLayer)]).enter().get_layer("alone"), AloneLayer)


def test_a_layer_with_a_config_must_say_how_it_is_consumed() -> None:
    class Forgetful(PlainLayer[NoLayerDeps, GreetingConfig]):
        pass

    with pytest.raises(
        TypeError, match="Forgetful does not consume its GreetingConfig: override from_config"
    ):
        Compositor([LayerNode("f", Forgetful)]).enter(configs={"f": {"prefix": "Hi"}})


def test_a_config_that_is_not_given_is_one_without_fields() -> None:
    with pytest.raises(ValidationError, match=r"config of layer 'greeting'[\s\S]*prefix[\s\S]*required"):
        Compositor([LayerNode("greeting", GreetingLayer)]).enter()


class CountedDeps(LayerDeps):
    probe: Probe


class CountingLayer(PlainLayer[CountedDeps, EmptyLayerConfig, GreetingState]):
    async def on_context_create(self) -> None:
        self.runtime_state.greeted = self.deps.probe.runtime_state.entries


async def test_hooks_read_their_dependencies_and_write_their_runtime_state() -> None:
    stage = Stage("a")
    compositor = Compositor([stage.node("a"), LayerNode("counting", CountingLayer, deps={"probe": "a"})])
    async with compositor.enter() as run:
        assert run.get_layer("counting", CountingLayer).runtime_state.greeted == 1
