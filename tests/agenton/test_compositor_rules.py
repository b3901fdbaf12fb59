"""The rules of layers and compositors, in the order in which a newcomer meets them."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Generic, Self, TypeVar

import pytest
from layer_probes import Boom, DependentProbe, Probe, ProbeDeps, Stage, factory, notes, states
from pydantic import BaseModel, ConfigDict, ValidationError

from playground.agenton.collections.layers.plain import ObjectLayer, PromptLayer, PromptLayerConfig
from playground.agenton.compositor import (
    Compositor,
    CompositorConfig,
    CompositorSessionSnapshot,
    LayerNode,
    LayerNodeConfig,
    LayerProvider,
    LayerSessionSnapshot,
)
from playground.agenton.layers import (
    EmptyLayerConfig,
    EmptyRuntimeState,
    ExitIntent,
    LayerConfig,
    LayerDeps,
    LifecycleState,
    NoLayerDeps,
    PlainLayer,
    PlainPromptType,
    PlainToolType,
    PlainUserPromptType,
    PydanticAILayer,
    PydanticAIPromptType,
)

DTOS = [LayerNodeConfig, CompositorConfig, LayerSessionSnapshot, CompositorSessionSnapshot]


class GreetingConfig(LayerConfig):
    prefix: str

    model_config = ConfigDict(extra="forbid")


class GreetingState(BaseModel):
    greeted: int = 0


@dataclass(slots=True)
class GreetingLayer(PlainLayer[NoLayerDeps, GreetingConfig, GreetingState]):
    type_id = "example.greeting"

    prefix: str

    @classmethod
    def from_config(cls, config: GreetingConfig) -> Self:
        return cls(prefix=config.prefix)

    @property
    def prefix_prompts(self) -> list[str]:
        return [self.prefix]


class AloneLayer(PlainLayer[NoLayerDeps]):
    """No config, no state, no type id."""


GREETING = LayerProvider.from_layer_type(GreetingLayer)
GREETING_GRAPH = {"layers": [{"name": "greeting", "type": "example.greeting"}]}


# A compositor is a plan: it holds nothing that lives.


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


class LooseConfig(LayerConfig):
    anything: Any = None


class LooseState(BaseModel):
    anything: Any = None


class LooseLayer(PlainLayer[NoLayerDeps, LooseConfig, LooseState]):
    """Takes anything, and remembers anything."""


LOOSE = factory(LooseLayer, LooseLayer)


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


# Four kinds of data, and the borders between them.


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


class HonestState(BaseModel):
    number: float = 0
    anything: Any = None


class HonestLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, HonestState]):
    """Keeps in its runtime state whatever a test puts there."""


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


# Defining a layer.


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


# Live resources.


class ReaderLayer(PlainLayer[NoLayerDeps]):
    def read(self, *, source: StringIO) -> str:
        return source.read()


async def test_a_live_resource_is_passed_to_a_capability_and_stays_outside() -> None:
    with StringIO("alive") as source:
        async with Compositor([LayerNode("reader", ReaderLayer)]).enter() as run:
            assert run.get_layer("reader", ReaderLayer).read(source=source) == "alive"
            run.suspend_on_exit()
        assert not source.closed
    assert run.session_snapshot is not None
    assert run.session_snapshot.layers[0].runtime_state == {}


async def test_the_resource_context_surrounds_enter_hook_body_and_exit_hook() -> None:
    stage = Stage("a")
    async with stage.compositor.enter() as run:
        stage.trace.append("body")
        run.suspend_on_exit()
    async with stage.compositor.enter(session_snapshot=run.session_snapshot):
        stage.trace.append("body")
    assert stage.trace == [
        *["a: open", "a: create", "body", "a: suspend", "a: close"],
        *["a: open", "a: resume", "body", "a: delete", "a: close"],
    ]


async def test_layers_are_entered_in_graph_order_and_left_in_reverse() -> None:
    stage = Stage("ab")
    async with stage.compositor.enter():
        pass
    assert stage.trace == [
        *["a: open", "a: create", "b: open", "b: create"],
        *["b: delete", "b: close", "a: delete", "a: close"],
    ]


async def test_resources_close_when_the_body_fails() -> None:
    stage = Stage("ab")
    with pytest.raises(Boom, match="body"):
        async with stage.compositor.enter():
            raise Boom("body")
    assert stage.trace[-4:] == ["b: delete", "b: close", "a: delete", "a: close"]


async def test_resources_close_when_a_later_hook_fails() -> None:
    stage = Stage("ab", failing={"b": frozenset({"create"})})
    with pytest.raises(Boom, match="b: create"):
        async with stage.compositor.enter():
            raise AssertionError("the body must not run")
    assert stage.trace[-4:] == ["b: create", "b: close", "a: delete", "a: close"]


class SwallowingLayer(PlainLayer[NoLayerDeps]):
    seen: BaseException | None = None

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        try:
            yield
        except BaseException as error:  # noqa: BLE001 (the misdeed under test)
            self.seen = error


async def test_a_resource_context_sees_a_failure_pass_but_cannot_swallow_it() -> None:
    run = Compositor([LayerNode("s", SwallowingLayer)]).enter()
    with pytest.raises(Boom) as raised:
        async with run:
            raise Boom("body")
    assert run.get_layer("s", SwallowingLayer).seen is raised.value


async def test_not_even_the_failure_of_its_own_layers_hook_can_be_swallowed() -> None:
    class Failing(SwallowingLayer):
        async def on_context_delete(self) -> None:
            raise Boom("delete")

    with pytest.raises(Boom, match="delete"):
        async with Compositor([LayerNode("s", Failing)]).enter():
            pass


# Building a compositor from a serialisable graph.


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
    with pytest.raises(TypeError, match="Node 'n' has the expected type Layer class or LayerProvider"):
        Compositor([LayerNode("n", str)])  # type: ignore[arg-type]


def test_a_graph_cannot_be_changed_after_it_was_checked() -> None:
    deps = {"upstream": "a"}
    node = LayerNode("d", DependentProbe, deps=deps)
    deps["upstream"] = "z"
    assert node.deps == {"upstream": "a"}
    with pytest.raises(TypeError):
        node.deps["upstream"] = "z"  # type: ignore[index]


# Dependencies.


def test_a_dependency_is_the_upstream_layer_itself() -> None:
    run = Compositor([Stage().node("a"), LayerNode("d", DependentProbe, deps={"upstream": "a"})]).enter()
    assert run.get_layer("d", DependentProbe).deps.upstream is run.get_layer("a")


def test_a_binding_holds_for_one_run() -> None:
    compositor = Compositor([Stage().node("a"), LayerNode("d", DependentProbe, deps={"upstream": "a"})])
    one, two = compositor.enter(), compositor.enter()
    assert one.get_layer("d", DependentProbe).deps.upstream is not two.get_layer("a")


@pytest.mark.parametrize("annotation", [int, "str | None", Probe | AloneLayer, Probe | AloneLayer | None])
def test_dependencies_are_declared_as_one_layer_class_or_none(annotation: object) -> None:
    bad = type("BadDeps", (LayerDeps,), {"__annotations__": {"thing": annotation}})
    with pytest.raises(TypeError, match=r"BadDeps.thing is annotated .* SomeLayer \| None"):
        type("BadLayer", (AloneLayer,), {"deps_type": bad})


class ChainDeps(LayerDeps):
    before: ChainLayer | None


class ChainLayer(PlainLayer[ChainDeps]):
    """Depends on a layer of its own class."""


def test_a_layer_may_depend_on_its_own_class() -> None:
    run = Compositor(
        [LayerNode("one", ChainLayer), LayerNode("two", ChainLayer, deps={"before": "one"})]
    ).enter()
    assert run.get_layer("two", ChainLayer).deps.before is run.get_layer("one")
    assert run.get_layer("one", ChainLayer).deps.before is None


class GenericDeps(LayerDeps):
    held: ObjectLayer[str] | None


class GenericDependent(PlainLayer[GenericDeps]):
    """Depends on a generic layer."""


def test_a_dependency_may_be_a_generic_layer() -> None:
    held = factory(ObjectLayer, lambda: ObjectLayer("value"))
    run = Compositor(
        [LayerNode("held", held), LayerNode("d", GenericDependent, deps={"held": "held"})]
    ).enter()
    found = run.get_layer("d", GenericDependent).deps.held
    assert found is run.get_layer("held", ObjectLayer[str])


def test_a_missing_required_dependency_is_named_before_any_hook() -> None:
    stage = Stage()
    compositor = Compositor([stage.node("a"), LayerNode("d", DependentProbe)])
    with pytest.raises(
        ValueError, match=r"Missing layer dependencies of DependentProbe: 'upstream' \(Probe\)"
    ) as e:
        compositor.enter()
    assert "layer 'd'" in notes(e.value)
    assert stage.trace == []


def test_an_unknown_dependency_key_is_named() -> None:
    with pytest.raises(ValueError, match=r"Unknown layer dependencies of DependentProbe: 'other'"):
        DependentProbe().bind_deps({"upstream": Probe("a", []), "other": AloneLayer()})


def test_a_dependency_of_the_wrong_type_is_named_before_any_hook() -> None:
    compositor = Compositor(
        [LayerNode("alone", AloneLayer), LayerNode("d", DependentProbe, deps={"upstream": "alone"})]
    )
    with pytest.raises(
        TypeError, match="'upstream' of DependentProbe has the expected type Probe, got AloneLayer"
    ) as e:
        compositor.enter()
    assert "layer 'd'" in notes(e.value)


def test_an_absent_optional_dependency_is_none() -> None:
    layer = DependentProbe()
    layer.bind_deps({"upstream": Probe("a", [])})
    assert layer.deps.spare is None


def test_a_layer_knows_the_names_of_its_dependencies() -> None:
    assert DependentProbe.dependency_names() == {"upstream", "spare"}
    assert AloneLayer.dependency_names() == set()


def test_a_layer_that_nobody_bound_says_what_it_misses() -> None:
    assert isinstance(AloneLayer().deps, NoLayerDeps)
    with pytest.raises(ValueError, match="Missing layer dependencies of DependentProbe: 'upstream'"):
        DependentProbe().deps  # noqa: B018 (reading is what fails)


# What layers give.


def shout(text: str) -> str:
    return text.upper()


def whisper(text: str) -> str:
    return text.lower()


@dataclass
class FullLayer(PlainLayer[NoLayerDeps]):
    name: str

    @property
    def prefix_prompts(self) -> list[str]:
        return [f"{self.name} prefix 1", f"{self.name} prefix 2"]

    @property
    def suffix_prompts(self) -> list[str]:
        return [f"{self.name} suffix 1", f"{self.name} suffix 2"]

    @property
    def user_prompts(self) -> list[str]:
        return [f"{self.name} user"]

    @property
    def tools(self) -> list[Any]:
        return [shout if self.name == "a" else whisper]


def full(name: str) -> LayerNode:
    return LayerNode(name, factory(FullLayer, lambda: FullLayer(name)))


async def test_a_layer_gives_nothing_unless_it_says_so() -> None:
    async with Compositor([LayerNode("alone", AloneLayer)]).enter() as run:
        assert (run.prompts, run.user_prompts, run.tools) == ([], [], [])


async def test_prefixes_come_in_graph_order_then_suffixes_in_reverse() -> None:
    async with Compositor([full("a"), full("b")]).enter() as run:
        assert [prompt.value for prompt in run.prompts] == [
            *["a prefix 1", "a prefix 2", "b prefix 1", "b prefix 2"],
            *["b suffix 1", "b suffix 2", "a suffix 1", "a suffix 2"],
        ]


async def test_user_prompts_and_tools_come_in_graph_order() -> None:
    async with Compositor([full("a"), full("b")]).enter() as run:
        assert [prompt.value for prompt in run.user_prompts] == ["a user", "b user"]
        assert [tool.value for tool in run.tools] == [shout, whisper]


async def test_every_item_is_wrapped_by_its_layer() -> None:
    async with Compositor([full("a")]).enter() as run:
        assert {type(item) for item in run.prompts} == {PlainPromptType}
        assert {type(item) for item in run.user_prompts} == {PlainUserPromptType}
        assert {type(item) for item in run.tools} == {PlainToolType}


async def test_transformers_get_the_wrapped_items_after_they_were_gathered() -> None:
    compositor = Compositor(
        [full("a"), full("b")],
        prompt_transformer=lambda prompts: [("prompt", prompt.value) for prompt in prompts[::4]],
        user_prompt_transformer=lambda prompts: [" + ".join(prompt.value for prompt in prompts)],
        tool_transformer=lambda tools: [tool.value.__name__ for tool in tools],
    )
    async with compositor.enter() as run:
        assert run.prompts == [("prompt", "a prefix 1"), ("prompt", "b suffix 1")]
        assert run.user_prompts == ["a user + b user"]
        assert run.tools == ["shout", "whisper"]


async def test_from_config_takes_the_same_transformers() -> None:
    compositor = Compositor.from_config(
        GREETING_GRAPH, providers=[GREETING], prompt_transformer=lambda prompts: [len(prompts)]
    )
    async with compositor.enter(configs={"greeting": {"prefix": "Hi"}}) as run:
        assert run.prompts == [1]


@dataclass
class ForeignLayer(PydanticAILayer[NoLayerDeps]):
    @property
    def prefix_prompts(self) -> list[Any]:
        return ["foreign"]


async def test_families_live_in_one_graph_and_are_told_apart_by_their_tags() -> None:
    async with Compositor([full("a"), LayerNode("foreign", ForeignLayer)]).enter() as run:
        assert run.prompts[2] == PydanticAIPromptType("foreign")
        assert [prompt.kind for prompt in run.prompts] == ["plain", "plain", "pydantic_ai", "plain", "plain"]
        assert run.prompts[2] != PlainPromptType("foreign")


def test_a_layer_is_found_by_name_and_checked_against_a_type() -> None:
    run = Compositor([full("a")]).enter()
    assert run.get_layer("a") is run.get_layer("a", FullLayer)
    with pytest.raises(KeyError, match="no layer 'z' in this run: it has 'a'"):
        run.get_layer("z")
    with pytest.raises(TypeError, match="'a' has the expected type Probe, got FullLayer"):
        run.get_layer("a", Probe)


# Sessions: suspend, snapshot, resume.


async def test_a_run_deletes_on_exit_by_default() -> None:
    stage = Stage("a")
    async with stage.compositor.enter() as run:
        assert run.slots["a"].exit_intent is ExitIntent.DELETE
    assert "a: delete" in stage.trace
    assert states(run) == {"a": LifecycleState.CLOSED}


async def test_a_resumed_run_deletes_on_exit_by_default_too() -> None:
    stage = Stage("a")
    async with stage.compositor.enter() as run:
        run.suspend_on_exit()
    async with stage.compositor.enter(session_snapshot=run.session_snapshot) as resumed:
        pass
    assert states(resumed) == {"a": LifecycleState.CLOSED}


async def test_a_suspended_session_goes_on_where_it_was() -> None:
    stage = Stage("ab")
    async with stage.compositor.enter() as run:
        run.suspend_on_exit()
    stored = run.session_snapshot
    assert stored is not None
    again = CompositorSessionSnapshot.model_validate_json(stored.model_dump_json())
    async with stage.compositor.enter(session_snapshot=again) as resumed:
        assert resumed.get_layer("a", Probe).runtime_state.entries == 2
    assert "a: resume" in stage.trace


async def test_one_layer_can_be_suspended_while_the_others_are_deleted() -> None:
    stage = Stage("ab")
    async with stage.compositor.enter() as run:
        run.suspend_layer_on_exit("b")
    assert states(run) == {"a": LifecycleState.CLOSED, "b": LifecycleState.SUSPENDED}


async def test_the_last_intent_counts() -> None:
    stage = Stage("ab")
    async with stage.compositor.enter() as run:
        run.suspend_on_exit()
        run.delete_layer_on_exit("a")
    assert states(run) == {"a": LifecycleState.CLOSED, "b": LifecycleState.SUSPENDED}
    async with stage.compositor.enter() as run:
        run.suspend_on_exit()
        run.delete_on_exit()
    assert set(states(run).values()) == {LifecycleState.CLOSED}


async def test_a_layer_is_new_then_active_then_suspended_or_closed() -> None:
    stage = Stage("a")
    run = stage.compositor.enter()
    assert states(run) == {"a": LifecycleState.NEW}
    async with run:
        assert states(run) == {"a": LifecycleState.ACTIVE}
        run.suspend_on_exit()
    assert states(run) == {"a": LifecycleState.SUSPENDED}


def test_active_is_internal_only_and_refused_in_snapshots() -> None:
    with pytest.raises(
        ValidationError, match=r"layer 'a' is active, but LifecycleState.ACTIVE is internal-only"
    ):
        LayerSessionSnapshot(name="a", lifecycle_state=LifecycleState.ACTIVE)


async def test_an_exit_intent_can_change_only_while_the_layer_is_active() -> None:
    run = Stage("a").compositor.enter()
    with pytest.raises(RuntimeError, match="layer 'a' can change only while it is ACTIVE, it is NEW"):
        run.suspend_on_exit()
    async with run:
        with pytest.raises(KeyError, match="no layer 'z'"):
            run.suspend_layer_on_exit("z")
    with pytest.raises(RuntimeError, match="it is CLOSED"):
        run.suspend_layer_on_exit("a")


async def test_the_session_snapshot_is_there_once_the_run_has_been_left() -> None:
    run = Stage("a").compositor.enter()
    assert run.session_snapshot is None
    async with run:
        assert run.session_snapshot is None
    assert run.session_snapshot is not None
    assert run.session_snapshot == run.snapshot_session()


async def test_a_snapshot_cannot_be_taken_while_layers_are_active() -> None:
    async with Stage("ab").compositor.enter() as run:
        with pytest.raises(RuntimeError, match=r"layers are ACTIVE \('a', 'b'\): leave the run first"):
            run.snapshot_session()


async def test_runtime_states_can_be_read_at_any_time() -> None:
    async with Stage("ab").compositor.enter() as run:
        assert run.runtime_states() == {"a": {"entries": 1}, "b": {"entries": 1}}


@pytest.mark.parametrize("names", ["ab", "acb", "abcd", "abx", "abb"])
async def test_a_session_resumes_only_with_the_same_names_in_the_same_order(names: str) -> None:
    stage = Stage("abc")
    async with stage.compositor.enter() as run:
        run.suspend_on_exit()
    assert run.session_snapshot is not None
    by_name = {layer.name: layer for layer in run.session_snapshot.layers}
    layers = [by_name.get(name, by_name["a"]).model_copy(update={"name": name}) for name in names]
    stage.trace.clear()
    with pytest.raises(ValueError, match=rf"expected \[a, b, c\], got \[{', '.join(names)}\]"):
        stage.compositor.enter(session_snapshot=CompositorSessionSnapshot(layers=layers))
    assert stage.trace == []


async def test_a_closed_layer_cannot_be_entered() -> None:
    stage = Stage("ab")
    async with stage.compositor.enter() as run:
        run.suspend_layer_on_exit("a")
    with pytest.raises(RuntimeError, match="Layer 'b' is CLOSED, and a CLOSED layer cannot be entered"):
        stage.compositor.enter(session_snapshot=run.session_snapshot)


async def test_an_active_run_cannot_be_entered() -> None:
    async with Stage("a").compositor.enter() as run:
        with pytest.raises(RuntimeError, match=r"cannot be entered twice \('a' is ACTIVE\)"):
            await run.__aenter__()


async def test_a_run_that_was_left_cannot_be_entered_again() -> None:
    async with Stage("a").compositor.enter() as run:
        run.suspend_on_exit()
    with pytest.raises(RuntimeError, match=r"cannot be entered twice \('a' is SUSPENDED\)"):
        await run.__aenter__()


def one_layer(**runtime_state: object) -> dict[str, object]:
    stored = {"name": "a", "lifecycle_state": "suspended", "runtime_state": runtime_state}
    return {"layers": [stored]}


def test_a_stored_runtime_state_is_validated_again() -> None:
    with pytest.raises(
        ValidationError, match=r"runtime_state of layer 'a' \(expected type Counter\)\nentries"
    ):
        Stage("a").compositor.enter(session_snapshot=one_layer(entries="many"))


def test_a_stored_field_that_the_layer_does_not_know_is_refused_rather_than_dropped() -> None:
    compositor = Compositor([LayerNode("a", HonestLayer)])
    with pytest.raises(ValueError, match="layer 'a' holds 'entries', which its expected type HonestState"):
        compositor.enter(session_snapshot=one_layer(entries=1))


class LenientState(BaseModel):
    model_config = ConfigDict(extra="ignore")


class LenientLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, LenientState]):
    """Has chosen to forget what it does not know."""


def test_a_layer_may_choose_to_ignore_stored_fields() -> None:
    compositor = Compositor([LayerNode("a", LenientLayer)])
    run = compositor.enter(session_snapshot=one_layer(entries=1))
    assert run.runtime_states() == {"a": {}}


def test_a_new_layer_in_a_snapshot_is_created_with_the_state_it_came_with() -> None:
    stored = {"name": "a", "lifecycle_state": "new", "runtime_state": {"entries": 5}}
    run = Stage("a").compositor.enter(session_snapshot={"layers": [stored]})
    assert states(run) == {"a": LifecycleState.NEW}
    assert run.get_layer("a", Probe).runtime_state.entries == 5


@pytest.mark.parametrize(("stored", "hook"), [(None, "create"), (one_layer(entries=1), "resume")])
async def test_a_layer_whose_enter_hook_fails_was_never_active_and_runs_no_exit_hook(
    stored: dict[str, object] | None, hook: str
) -> None:
    stage = Stage("a", failing={"a": frozenset({hook})})
    run = stage.compositor.enter(session_snapshot=stored)
    with pytest.raises(Boom) as error:
        async with run:
            raise AssertionError("the body must not run")
    assert stage.trace == ["a: open", f"a: {hook}", "a: close"]
    assert run.slots["a"].lifecycle_state is not LifecycleState.ACTIVE
    assert f"raised by on_context_{hook} of layer 'a'" in notes(error.value)


@dataclass
class CompensatingLayer(PlainLayer[NoLayerDeps]):
    booked: list[str] = field(default_factory=list)

    async def on_context_create(self) -> None:
        self.booked.append("booked")
        try:
            raise Boom("payment")
        except Boom:
            self.booked.append("cancelled")
            raise


async def test_undoing_its_own_half_is_the_business_of_an_enter_hook() -> None:
    run = Compositor([LayerNode("c", CompensatingLayer)]).enter()
    with pytest.raises(Boom):
        await run.__aenter__()
    assert run.get_layer("c", CompensatingLayer).booked == ["booked", "cancelled"]
