"""Reported troubles with sessions of layers, and what is right."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from layer_probes import Probe, Stage, factory, states
from pydantic import BaseModel, ConfigDict

from playground.agenton.compositor import (
    Compositor,
    CompositorConfig,
    CompositorSessionSnapshot,
    LayerNode,
    LayerNodeConfig,
)
from playground.agenton.layers import EmptyLayerConfig, LifecycleState, NoLayerDeps, PlainLayer


async def suspended(stage: Stage) -> CompositorSessionSnapshot:
    async with stage.compositor.enter() as run:
        run.suspend_on_exit()
    stage.trace.clear()
    assert run.session_snapshot is not None
    return run.session_snapshot


@pytest.mark.parametrize(
    ("names", "difference"),
    [("ab", "the compositor has no 'c'"), ("acb", "the order differs"), ("abcd", "it lacks 'd'")],
)
async def test_a_snapshot_that_does_not_fit_is_refused_with_the_difference_named(
    names: str, difference: str
) -> None:
    """Case D22."""
    stage = Stage("abc")
    stored = await suspended(stage)
    with pytest.raises(ValueError, match=difference):
        Stage(names, trace=stage.trace).compositor.enter(session_snapshot=stored)
    assert stage.trace == []


class OtherState(BaseModel):
    visits: int = 0


class OtherLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, OtherState]):
    """Stands where a Probe stood."""


async def test_a_layer_of_another_type_is_refused_with_the_difference_named() -> None:
    """Case D22."""
    stage = Stage("abc")
    stored = await suspended(stage)
    changed = Compositor([stage.node("a"), LayerNode("b", OtherLayer), stage.node("c")])
    with pytest.raises(ValueError, match=r"layer 'b' holds 'entries', which its expected type OtherState"):
        changed.enter(session_snapshot=stored)
    assert stage.trace == []


class StoredProbe(Probe):
    type_id = "test.probe"


def from_store(record: Mapping[str, object], trace: list[str]) -> Compositor:
    """What another program does with a record, knowing only how each type of layer is made."""
    provider = factory(StoredProbe, lambda: StoredProbe("stored", trace))
    return Compositor.from_config(record["graph"], providers=[provider])  # type: ignore[arg-type]


async def test_a_session_is_deleted_from_what_is_stored_beside_its_snapshot() -> None:
    """Case D22."""
    trace: list[str] = []
    graph = CompositorConfig(layers=[LayerNodeConfig(name=name, type="test.probe") for name in "ab"])
    async with from_store({"graph": graph}, trace).enter() as run:
        run.suspend_on_exit()
    assert run.session_snapshot is not None
    text = json.dumps({"graph": graph.model_dump(), "snapshot": run.session_snapshot.model_dump(mode="json")})
    trace.clear()

    record = json.loads(text)  # by now the program's own graph may be another
    async with from_store(record, trace).enter(session_snapshot=record["snapshot"]) as deleting:
        pass
    assert trace.count("stored: delete") == 2
    assert set(states(deleting).values()) == {LifecycleState.CLOSED}


async def test_what_is_left_of_a_half_closed_session_can_still_be_deleted() -> None:
    """Case D22."""
    stage = Stage("ab", failing={"b": frozenset({"suspend"})})
    run = stage.compositor.enter()
    with pytest.raises(Exception, match="b: suspend"):
        async with run:
            run.suspend_on_exit()
    snapshot = run.session_snapshot
    assert snapshot is not None
    assert states(run) == {"a": LifecycleState.SUSPENDED, "b": LifecycleState.CLOSED}
    snapshot.layers[1].lifecycle_state = LifecycleState.NEW
    stage.trace.clear()
    async with stage.compositor.enter(session_snapshot=snapshot):
        pass
    assert [step for step in stage.trace if step.startswith("a")] == [
        "a: open",
        "a: resume",
        "a: delete",
        "a: close",
    ]


async def test_taking_a_snapshot_changes_nothing_and_runs_no_hook() -> None:
    """Case D49."""
    stage = Stage("ab")
    run = stage.compositor.enter()
    assert run.snapshot_session() == run.snapshot_session()
    assert stage.trace == []
    async with run:
        run.suspend_on_exit()
    stage.trace.clear()
    before = states(run)
    first, second = run.snapshot_session(), run.snapshot_session()
    assert first == second == run.session_snapshot
    assert (states(run), stage.trace) == (before, [])


class DeepState(BaseModel):
    model_config = ConfigDict(extra="forbid")

    notes: dict[str, list[int]] = {}


class DeepLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, DeepState]):
    """Remembers nested things."""


async def test_a_snapshot_is_not_changed_by_what_happens_later() -> None:
    """Case D49."""
    compositor = Compositor([LayerNode("deep", DeepLayer)])
    async with compositor.enter() as run:
        run.get_layer("deep", DeepLayer).runtime_state.notes["a"] = [1]
        run.suspend_on_exit()
    stored = run.session_snapshot
    assert stored is not None
    run.get_layer("deep", DeepLayer).runtime_state.notes["a"].append(2)
    async with compositor.enter(session_snapshot=stored) as resumed:
        resumed.get_layer("deep", DeepLayer).runtime_state.notes["a"].append(3)
    assert stored.layers[0].runtime_state == {"notes": {"a": [1]}}
