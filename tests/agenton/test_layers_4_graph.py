"""Building a compositor: from a document, by providers, and under the rules that every graph keeps."""

from __future__ import annotations

import gc
import json
import weakref

import pytest
from layer_probes import (
    GREETING,
    GREETING_GRAPH,
    AloneLayer,
    DependentProbe,
    GreetingConfig,
    GreetingLayer,
    Probe,
    Stage,
    factory,
    notes,
)
from pydantic import BaseModel, ValidationError

from playground.agenton.collections.layers.plain import ObjectLayer, PromptLayer, PromptLayerConfig
from playground.agenton.compositor import (
    Compositor,
    CompositorConfig,
    CompositorSessionSnapshot,
    LayerNode,
    LayerNodeConfig,
    LayerProvider,
)
from playground.agenton.layers import (
    PlainPromptType,
    PlainUserPromptType,
)


async def test_a_graph_config_with_providers_and_configs_makes_a_run() -> None:
    compositor = Compositor.from_config(
        CompositorConfig(
            layers=[
                LayerNodeConfig(name="prompt", type="plain.prompt"),
                LayerNodeConfig(name="greeting", type="example.greeting"),
            ]
        ),
        providers=(LayerProvider.from_layer_type(PromptLayer), GREETING),
    )
    configs = {
        "prompt": PromptLayerConfig(user="Answer with examples."),
        "greeting": GreetingConfig(prefix="Hi"),
    }
    async with compositor.enter(configs=configs) as run:
        assert run.prompts == [PlainPromptType("Hi")]
        assert run.user_prompts == [PlainUserPromptType("Answer with examples.")]


def test_a_graph_config_survives_json() -> None:
    conf = CompositorConfig(
        layers=[LayerNodeConfig(name="greeting", type="example.greeting", metadata={"label": "问候"})]
    )
    compositor = Compositor.from_config(json.loads(conf.model_dump_json()), providers=[GREETING])
    assert [(node.name, node.metadata) for node in compositor.nodes] == [("greeting", {"label": "问候"})]


async def test_a_prompt_layer_takes_one_text_or_several_for_each_of_three_surfaces() -> None:
    compositor = Compositor([LayerNode("prompt", PromptLayer)])
    config = PromptLayerConfig(prefix="first", user=["ask", "again"], suffix=["last"])
    async with compositor.enter(configs={"prompt": config}) as run:
        assert [prompt.value for prompt in run.prompts] == ["first", "last"]
        assert [prompt.value for prompt in run.user_prompts] == ["ask", "again"]


@pytest.mark.parametrize("document", [CompositorConfig, CompositorSessionSnapshot])
def test_only_schema_version_1_is_supported(document: type[BaseModel]) -> None:
    assert document.model_validate({"layers": []}).model_dump()["schema_version"] == 1
    with pytest.raises(ValidationError, match="schema_version 2 is not supported"):
        document.model_validate({"schema_version": 2, "layers": []})


def test_a_type_id_registered_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'example.greeting' of GreetingLayer is already registered"):
        Compositor.from_config({"layers": []}, providers=[GREETING, GREETING])


def test_a_type_without_provider_is_a_key_error_with_the_type_id() -> None:
    with pytest.raises(KeyError, match=r"type id 'example.greeting' of node 'greeting'.*'plain.prompt'"):
        Compositor.from_config(GREETING_GRAPH, providers=[LayerProvider.from_layer_type(PromptLayer)])


def test_a_factory_gets_the_validated_config_and_nothing_else() -> None:
    got: list[tuple[object, ...]] = []

    def create(*args: GreetingConfig) -> GreetingLayer:
        got.append(args)
        return GreetingLayer("made")

    provider = LayerProvider.from_factory(layer_type=GreetingLayer, create=create)
    Compositor([LayerNode("greeting", provider)]).enter(configs={"greeting": {"prefix": "Hi"}})
    assert got == [(GreetingConfig(prefix="Hi"),)]


def test_a_factory_must_return_its_layer_type() -> None:
    with pytest.raises(TypeError, match="'alone' has the expected type AloneLayer, got GreetingLayer"):
        Compositor([LayerNode("alone", factory(AloneLayer, lambda: GreetingLayer("Hi")))]).enter()


async def test_a_factory_must_return_a_fresh_instance_before_anything_is_bound_or_hooked() -> None:
    trace: list[str] = []
    only = Probe("p", trace)
    compositor = Compositor([LayerNode("p", factory(Probe, lambda: only))])
    async with compositor.enter():
        pass
    trace.clear()
    with pytest.raises(ValueError, match="'p' must return a fresh instance"):
        compositor.enter()
    assert trace == []


def test_two_nodes_of_one_entry_cannot_share_an_instance_either() -> None:
    only = AloneLayer()
    shared = factory(AloneLayer, lambda: only)
    with pytest.raises(ValueError, match="'two' must return a fresh instance"):
        Compositor([LayerNode("one", shared), LayerNode("two", shared)]).enter()


def test_having_been_used_does_not_keep_a_layer_alive() -> None:
    run = Compositor([LayerNode("alone", AloneLayer)]).enter()
    layer = weakref.ref(run.get_layer("alone"))
    del run
    gc.collect()
    assert layer() is None


def test_a_node_provider_replaces_the_one_that_the_type_id_chose() -> None:
    compositor = Compositor.from_config(
        GREETING_GRAPH,
        providers=[GREETING],
        node_providers={"greeting": factory(GreetingLayer, lambda: GreetingLayer("mine"))},
    )
    run = compositor.enter(configs={"greeting": {"prefix": "Hi"}})
    assert run.get_layer("greeting", GreetingLayer).prefix == "mine"


def test_a_node_provider_for_an_unknown_node_is_refused_when_the_graph_is_built() -> None:
    with pytest.raises(ValueError, match=r"node_providers names unknown nodes: 'greting'.*'greeting'"):
        Compositor.from_config(GREETING_GRAPH, providers=[GREETING], node_providers={"greting": GREETING})


def test_node_names_are_unique() -> None:
    with pytest.raises(ValueError, match="'alone' recurs"):
        Compositor([LayerNode("alone", AloneLayer), LayerNode("alone", AloneLayer)])


def test_dependency_keys_must_be_declared_by_the_layer() -> None:
    with pytest.raises(ValueError, match=r"Unknown layer dependencies of node 'd': 'upsteam'.*'upstream'"):
        Compositor([Stage().node("a"), LayerNode("d", DependentProbe, deps={"upsteam": "a"})])


def test_dependency_targets_must_exist() -> None:
    with pytest.raises(ValueError, match=r"'upstream' of node 'd' targets the undefined node 'z'"):
        Compositor([Stage().node("a"), LayerNode("d", DependentProbe, deps={"upstream": "z"})])


@pytest.mark.parametrize("target", ["a", "d"], ids=["later", "itself"])
def test_dependencies_must_target_preceding_nodes(target: str) -> None:
    with pytest.raises(
        ValueError, match="dependencies must target preceding layer nodes in compositor order, so move"
    ):
        Compositor([LayerNode("d", DependentProbe, deps={"upstream": target}), Stage().node("a")])


def test_a_node_of_something_else_than_a_layer_is_refused() -> None:
    with pytest.raises(TypeError, match="expected type of a Layer subclass, got <class 'str'>") as error:
        Compositor([LayerNode("n", str)])  # type: ignore[arg-type]
    assert "node 'n'" in notes(error.value)


def test_a_node_may_name_a_generic_layer_with_its_argument() -> None:
    made = LayerProvider.from_factory(layer_type=ObjectLayer[str], create=lambda _config: ObjectLayer("x"))
    run = Compositor([LayerNode("held", made)]).enter()
    assert run.get_layer("held", ObjectLayer[str]).value == "x"


def test_a_graph_cannot_be_changed_after_it_was_checked() -> None:
    deps = {"upstream": "a"}
    node = LayerNode("d", DependentProbe, deps=deps)
    deps["upstream"] = "z"
    assert node.deps == {"upstream": "a"}
    with pytest.raises(TypeError):
        node.deps["upstream"] = "z"  # type: ignore[index]
