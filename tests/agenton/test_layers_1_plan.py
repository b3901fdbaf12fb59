"""A compositor is a plan that holds nothing that lives; four kinds of data, and the borders between them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from layer_probes import (
    GREETING,
    GREETING_GRAPH,
    LOOSE,
    AloneLayer,
    GreetingConfig,
    GreetingLayer,
    HonestLayer,
    LooseConfig,
    LooseLayer,
    Probe,
    Stage,
    factory,
    states,
)
from pydantic import BaseModel, ValidationError

from playground.agenton.collections.layers.plain import PromptLayerConfig
from playground.agenton.compositor import (
    Compositor,
    CompositorConfig,
    CompositorSessionSnapshot,
    LayerNode,
    LayerNodeConfig,
    LayerSessionSnapshot,
)
from playground.agenton.layers import (
    LifecycleState,
)

DTOS = [LayerNodeConfig, CompositorConfig, LayerSessionSnapshot, CompositorSessionSnapshot]


async def test_every_entry_is_a_new_run_with_new_layers() -> None:
    stage = Stage("a")
    compositor = stage.compositor
    async with compositor.enter() as first:
        pass
    async with compositor.enter() as second:
        pass
    assert first is not second
    assert first.get_layer("a") is not second.get_layer("a")
    assert first.slots["a"] is not second.slots["a"]


async def test_concurrent_entries_share_nothing() -> None:
    compositor = Stage("ab").compositor
    together = asyncio.Barrier(5)

    async def enter(entries: int) -> int:
        async with compositor.enter() as run:
            run.get_layer("a", Probe).runtime_state.entries = entries
            await together.wait()
            return run.get_layer("a", Probe).runtime_state.entries

    assert await asyncio.gather(*map(enter, range(5))) == list(range(5))


@pytest.mark.parametrize("as_config", [LooseConfig, dict], ids=["model", "mapping"])
@pytest.mark.parametrize(
    "as_snapshot", [CompositorSessionSnapshot.model_validate, dict], ids=["model", "mapping"]
)
def test_entries_share_not_even_untyped_values_inside_configs_and_snapshots(
    as_config: Any, as_snapshot: Any
) -> None:
    compositor = Compositor([LayerNode("loose", LOOSE)])
    config = as_config(anything={"list": [1]})
    stored = {"name": "loose", "lifecycle_state": "suspended", "runtime_state": {"anything": [1]}}
    snapshot = as_snapshot({"layers": [stored]})
    one, two = (compositor.enter(configs={"loose": config}, session_snapshot=snapshot) for _ in range(2))
    one.get_layer("loose", LooseLayer).config.anything["list"].append(2)
    one.get_layer("loose", LooseLayer).runtime_state.anything.append(2)
    other = two.get_layer("loose", LooseLayer)
    assert (other.config.anything, other.runtime_state.anything) == ({"list": [1]}, [1])
    assert stored["runtime_state"] == {"anything": [1]}


def test_a_graph_config_has_no_place_for_the_config_of_a_run() -> None:
    assert set(LayerNodeConfig.model_fields) == {"name", "type", "deps", "metadata"}
    with pytest.raises(ValidationError, match="config"):
        LayerNodeConfig.model_validate({"name": "a", "type": "t", "config": {}})


def test_configs_of_a_run_come_by_node_name() -> None:
    run = Compositor([LayerNode("greeting", GreetingLayer)]).enter(configs={"greeting": {"prefix": "Hi"}})
    assert run.get_layer("greeting", GreetingLayer).prefix == "Hi"
    assert run.get_layer("greeting", GreetingLayer).config == GreetingConfig(prefix="Hi")


def test_a_config_for_an_unknown_layer_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"unknown layers: 'greting'; the graph has 'greeting'"):
        Compositor([LayerNode("greeting", GreetingLayer)]).enter(configs={"greting": {"prefix": "Hi"}})


def test_all_configs_are_validated_before_any_factory_runs() -> None:
    made: list[str] = []
    compositor = Compositor(
        [
            LayerNode("first", factory(AloneLayer, lambda: made.append("first") or AloneLayer())),
            LayerNode("greeting", GreetingLayer),
        ]
    )
    with pytest.raises(ValidationError) as error:
        compositor.enter(configs={"greeting": {"prefix": 3}})
    assert made == []
    assert "config of layer 'greeting' (expected type GreetingConfig)\nprefix" in str(error.value)


def test_a_config_of_another_type_is_refused_with_the_expected_type() -> None:
    compositor = Compositor([LayerNode("greeting", GreetingLayer)])
    with pytest.raises(TypeError, match=r"'greeting' \(expected type GreetingConfig\) got PromptLayerConfig"):
        compositor.enter(configs={"greeting": PromptLayerConfig()})


async def test_a_snapshot_keeps_lifecycle_and_runtime_state_and_nothing_else() -> None:
    compositor = Compositor([LayerNode("greeting", GreetingLayer)])
    async with compositor.enter(configs={"greeting": {"prefix": "Hi"}}) as run:
        run.get_layer("greeting", GreetingLayer).runtime_state.greeted += 1
        run.suspend_on_exit()
    assert run.session_snapshot is not None
    assert run.session_snapshot.model_dump(mode="json") == {
        "schema_version": 1,
        "layers": [{"name": "greeting", "lifecycle_state": "suspended", "runtime_state": {"greeted": 1}}],
    }


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("number", float("nan")), ("number", "many"), ("anything", object()), ("anything", {"deep": "\ud800"})],
)
async def test_a_runtime_state_that_json_cannot_carry_is_an_error_that_names_the_layer(
    attribute: str, value: object
) -> None:
    run = Compositor([LayerNode("honest", HonestLayer)]).enter()
    with pytest.raises(ValueError, match="runtime_state of layer 'honest'"):
        async with run:
            setattr(run.get_layer("honest", HonestLayer).runtime_state, attribute, value)
    assert states(run) == {"honest": LifecycleState.CLOSED}


@pytest.mark.parametrize("dto", DTOS, ids=lambda dto: dto.__name__)
def test_documents_refuse_fields_they_do_not_know(dto: type[BaseModel]) -> None:
    assert dto.model_config["extra"] == "forbid"
    with pytest.raises(ValidationError, match="surprise"):
        dto.model_validate({"surprise": 1})


def test_graph_and_snapshot_are_separate_documents() -> None:
    assert set(CompositorConfig.model_fields) == {"schema_version", "layers"}
    assert set(LayerSessionSnapshot.model_fields) == {"name", "lifecycle_state", "runtime_state"}


def test_a_graph_config_is_validated_again_even_when_it_comes_as_a_model() -> None:
    conf = CompositorConfig.model_validate(GREETING_GRAPH)
    conf.layers[0].deps = 3  # type: ignore[assignment]
    with pytest.raises(ValidationError, match=r"compositor config[\s\S]*layers.0.deps"):
        Compositor.from_config(conf, providers=[GREETING])


def test_a_model_inside_a_mapping_is_validated_again_too() -> None:
    node = LayerNodeConfig(name="greeting", type="example.greeting")
    node.deps = 3  # type: ignore[assignment]
    with pytest.raises(ValidationError, match="deps"):
        Compositor.from_config({"layers": [node]}, providers=[GREETING])


def test_a_config_is_validated_again_even_when_it_comes_as_a_model() -> None:
    config = GreetingConfig(prefix="Hi")
    config.prefix = 3  # type: ignore[assignment]
    with pytest.raises(ValidationError, match="config of layer 'greeting'"):
        Compositor([LayerNode("greeting", GreetingLayer)]).enter(configs={"greeting": config})


def test_a_snapshot_is_validated_again_even_when_it_comes_as_a_model() -> None:
    snapshot = CompositorSessionSnapshot(
        layers=[LayerSessionSnapshot(name="a", lifecycle_state=LifecycleState.SUSPENDED)]
    )
    snapshot.layers[0].lifecycle_state = LifecycleState.ACTIVE
    with pytest.raises(ValidationError, match="internal-only"):
        Stage("a").compositor.enter(session_snapshot=snapshot)
