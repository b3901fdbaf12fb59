"""Live resources: outside, or inside `resource_context`, and closed whatever fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import pytest
from layer_probes import (
    Boom,
    Stage,
)

from playground.agenton.compositor import (
    Compositor,
    LayerNode,
)
from playground.agenton.layers import (
    NoLayerDeps,
    PlainLayer,
)


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
