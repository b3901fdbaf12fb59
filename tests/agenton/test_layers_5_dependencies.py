"""Dependencies: the upstream layer itself, bound for one run."""

from __future__ import annotations

import pytest
from layer_probes import (
    AloneLayer,
    DependentProbe,
    Probe,
    Stage,
    factory,
    notes,
)

from playground.agenton.collections.layers.plain import ObjectLayer
from playground.agenton.compositor import (
    Compositor,
    LayerNode,
)
from playground.agenton.layers import (
    LayerDeps,
    NoLayerDeps,
    PlainLayer,
)


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
