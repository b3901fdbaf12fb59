"""Sessions: suspend, snapshot, resume."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from layer_probes import (
    Boom,
    HonestLayer,
    LooseState,
    Probe,
    Stage,
    factory,
    notes,
    states,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field

from playground.agenton.compositor import (
    Compositor,
    CompositorSessionSnapshot,
    LayerNode,
    LayerSessionSnapshot,
)
from playground.agenton.layers import (
    EmptyLayerConfig,
    ExitIntent,
    LifecycleState,
    NoLayerDeps,
    PlainLayer,
)


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


def test_the_slots_of_a_run_cannot_be_replaced() -> None:
    run = Stage("ab").compositor.enter()
    with pytest.raises(TypeError):
        run.slots["a"] = run.slots["b"]  # type: ignore[index]


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


class NamedState(BaseModel):
    """Known to the world under another name, and with something to be computed."""

    model_config = ConfigDict(serialize_by_alias=True)

    count: int = Field(0, alias="Count")

    @computed_field
    def twice(self) -> int:
        return 2 * self.count


class NamedLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, NamedState]):
    """Remembers under an alias."""


async def test_aliases_and_computed_fields_do_not_keep_a_state_from_coming_back() -> None:
    compositor = Compositor([LayerNode("named", NamedLayer)])
    async with compositor.enter() as run:
        run.get_layer("named", NamedLayer).runtime_state.count = 3
        run.suspend_on_exit()
    resumed = compositor.enter(session_snapshot=run.session_snapshot)
    assert resumed.get_layer("named", NamedLayer).runtime_state.twice == 6


class NeedyState(BaseModel):
    owner: str


class NeedyLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, NeedyState]):
    """Cannot begin with an empty state."""


def test_a_runtime_state_without_defaults_is_refused_unless_the_factory_makes_one() -> None:
    with pytest.raises(
        ValidationError, match=r"runtime_state of NeedyLayer[\s\S]*owner[\s\S]*required"
    ) as error:
        Compositor([LayerNode("needy", NeedyLayer)]).enter()
    assert "layer 'needy'" in notes(error.value)

    def prepared(state: BaseModel) -> Compositor:
        layer = NeedyLayer()
        layer.runtime_state = state  # type: ignore[assignment]
        return Compositor([LayerNode("needy", factory(NeedyLayer, lambda: layer))])

    assert prepared(NeedyState(owner="me")).enter().runtime_states() == {"needy": {"owner": "me"}}
    with pytest.raises(TypeError, match="layer 'needy' has the expected type NeedyState, got LooseState"):
        prepared(LooseState()).enter()


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
