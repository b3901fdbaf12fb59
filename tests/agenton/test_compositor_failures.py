"""Failures that the table of the guide has no row for: several at once, cancellation, and broken layers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from layer_probes import Boom, Stage, factory, notes, states

from playground.agenton.compositor import Compositor, LayerNode
from playground.agenton.layers import LifecycleState, NoLayerDeps, PlainLayer


async def test_every_layer_leaves_even_if_each_of_them_fails_to() -> None:
    stage = Stage("abc", failing=dict.fromkeys("abc", frozenset({"delete", "close"})))
    run = stage.compositor.enter()

    async def work() -> None:
        async with run:
            stage.trace.clear()
            raise Boom("body")

    with pytest.raises(Boom, match="a: close") as raised:
        await work()
    assert stage.trace == [f"{name}: {step}" for name in "cba" for step in ("delete", "close")]
    assert set(states(run).values()) == {LifecycleState.CLOSED}
    told, error = [], raised.value
    while error is not None:
        told.append(str(error))
        error = error.__context__  # type: ignore[assignment]
    assert told == [*reversed(stage.trace), "body"]


async def test_a_failure_on_the_way_back_from_a_failed_entry_hides_nothing() -> None:
    stage = Stage("ab", failing={"a": frozenset({"delete"}), "b": frozenset({"create"})})
    run = stage.compositor.enter()
    with pytest.raises(Boom, match="a: delete") as raised:
        async with run:
            raise AssertionError("the body must not run")
    assert str(raised.value.__context__) == "b: create"
    assert stage.trace[-2:] == ["a: delete", "a: close"]
    assert states(run) == {"a": LifecycleState.CLOSED, "b": LifecycleState.NEW}


async def test_a_failure_carries_a_note_on_the_layer_that_raised_it_and_on_no_other() -> None:
    stage = Stage("abc", failing={"b": frozenset({"delete"})})
    with pytest.raises(Boom) as raised:
        async with stage.compositor.enter():
            pass
    assert notes(raised.value).splitlines() == ["b: delete", "raised by on_context_delete of layer 'b'"]


class Strict(AbstractAsyncContextManager[None]):
    """Lets a failure pass by raising it again, as hand-written contexts do."""

    async def __aexit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if failure is not None:
            raise failure


class StrictLayer(PlainLayer[NoLayerDeps]):
    def resource_context(self) -> Strict:
        return Strict()


async def test_a_failure_of_the_body_carries_no_layers_note() -> None:
    with pytest.raises(Boom) as raised:
        async with Compositor([LayerNode("s", StrictLayer), Stage().node("a")]).enter():
            raise Boom("body")
    assert notes(raised.value) == "body"


async def test_cancelling_the_body_leaves_as_intended_and_passes_through() -> None:
    stage, inside = Stage("ab"), asyncio.Event()
    run = stage.compositor.enter()

    async def work() -> None:
        async with run:
            run.suspend_on_exit()
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(states(run).values()) == {LifecycleState.SUSPENDED}
    assert run.session_snapshot is not None


class SlowLayer(PlainLayer[NoLayerDeps]):
    """Its enter hook waits for something that never comes."""

    async def on_context_create(self) -> None:
        await asyncio.Event().wait()


async def test_cancelling_an_entry_takes_back_what_was_entered() -> None:
    stage = Stage("a")
    run = Compositor([stage.node("a"), LayerNode("slow", SlowLayer)]).enter()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await run.__aenter__()
    assert stage.trace[-2:] == ["a: delete", "a: close"]
    assert states(run) == {"a": LifecycleState.CLOSED, "slow": LifecycleState.NEW}


async def test_a_runtime_state_that_cannot_be_written_does_not_keep_layers_from_leaving() -> None:
    stage = Stage("ab")
    run = stage.compositor.enter()

    async def work() -> None:
        async with run:
            run.get_layer("a").runtime_state.entries = object()
            run.suspend_on_exit()

    with pytest.raises(ValueError, match="runtime_state of layer 'a'"):
        await work()
    assert stage.trace[-4:] == ["b: suspend", "b: close", "a: suspend", "a: close"]
    assert run.session_snapshot is None


class UndecoratedLayer(PlainLayer[NoLayerDeps]):
    """Forgot @asynccontextmanager."""

    async def resource_context(self) -> AsyncIterator[None]:  # type: ignore[override]
        yield


async def test_a_resource_context_that_is_none_names_its_layer() -> None:
    with pytest.raises(AttributeError) as raised:
        async with Compositor([LayerNode("u", UndecoratedLayer)]).enter():
            pass
    assert "raised by resource_context of layer 'u'" in notes(raised.value)


def test_a_factory_that_fails_lets_no_layer_be_entered() -> None:
    stage = Stage("a")

    def fail() -> UndecoratedLayer:
        raise Boom("factory")

    with pytest.raises(Boom) as raised:
        Compositor([stage.node("a"), LayerNode("f", factory(UndecoratedLayer, fail))]).enter()
    assert stage.trace == []
    assert "layer 'f'" in notes(raised.value)
