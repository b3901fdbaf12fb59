"""One entry of a compositor: fresh layers, entered in order and left in reverse.

    async with compositor.enter(configs=...) as run:
        ...                       # every layer is ACTIVE
        run.suspend_on_exit()
    run.session_snapshot          # what a later entry goes on from

Going in, each layer's resource context opens and its enter hook runs; on the
way back its exit hook runs and its resource context closes, whatever has
failed.  Where each layer stands after a failure is a table in docs/agenton.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from sys import maxsize
from types import MappingProxyType, TracebackType
from typing import Any, Generic, Self, TypeAlias, get_origin, overload

from typing_extensions import TypeVar

from playground.agenton.compositor.contributions import (
    RunExplanation,
    explanation,
    prompts_of,
    tools_of,
    user_prompts_of,
)
from playground.agenton.compositor.noting import noting
from playground.agenton.compositor.schemas import CompositorSessionSnapshot
from playground.agenton.layers import AnyLayer, ExitIntent, LifecycleState
from playground.kernel.values import JsonObject, frozen_object

LayerT = TypeVar("LayerT", bound=AnyLayer)
ItemT = TypeVar("ItemT")
PromptT = TypeVar("PromptT")
UserPromptT = TypeVar("UserPromptT")
ToolT = TypeVar("ToolT")

Transformer: TypeAlias = Callable[[Sequence[Any]], Sequence[ItemT]]


@dataclass(frozen=True, slots=True)
class Transformers(Generic[PromptT, UserPromptT, ToolT]):
    """What is done to the three gathered lists before an agent gets them."""

    prompts: Transformer[PromptT]
    user_prompts: Transformer[UserPromptT]
    tools: Transformer[ToolT]


@dataclass(slots=True)
class LayerRunSlot:
    """One layer's place in a run: the layer, where it stands, and how it means to leave."""

    name: str
    layer: AnyLayer
    lifecycle_state: LifecycleState = LifecycleState.NEW
    exit_intent: ExitIntent = ExitIntent.DELETE

    async def enter(self, way_back: AsyncExitStack) -> None:
        """Open the resource context and run the enter hook; put what undoes each onto `way_back`."""
        with noting(f"resource_context of layer {self.name!r}"):
            resources = self.layer.resource_context()
            await resources.__aenter__()
        way_back.push_async_exit(self._closing(resources))
        if self.lifecycle_state is LifecycleState.SUSPENDED:
            with noting(f"on_context_resume of layer {self.name!r}"):
                await self.layer.on_context_resume()
            self.exit_intent = ExitIntent.SUSPEND
        else:
            with noting(f"on_context_create of layer {self.name!r}"):
                await self.layer.on_context_create()
            self.exit_intent = ExitIntent.DELETE
        self.lifecycle_state = LifecycleState.ACTIVE
        way_back.push_async_callback(self._leave)

    async def _leave(self) -> None:
        after = LifecycleState.CLOSED  # also where it stands if the hook fails: it cannot be resumed
        try:
            if self.exit_intent is ExitIntent.SUSPEND:
                with noting(f"on_context_suspend of layer {self.name!r}"):
                    await self.layer.on_context_suspend()
                after = LifecycleState.SUSPENDED
            else:
                with noting(f"on_context_delete of layer {self.name!r}"):
                    await self.layer.on_context_delete()
        finally:
            self.lifecycle_state = after

    def _closing(self, resources: AbstractAsyncContextManager[None]) -> _Exit:
        async def close(kind: _Kind, failure: BaseException | None, trace: TracebackType | None) -> None:
            with noting(f"resource_context of layer {self.name!r}", passing=failure):
                await resources.__aexit__(kind, failure, trace)
            # Returns nothing, whatever it was told: a resource sees a failure pass, it cannot swallow it.

        return close


_Kind: TypeAlias = type[BaseException] | None
_Exit: TypeAlias = Callable[[_Kind, BaseException | None, TracebackType | None], Awaitable[None]]


class CompositorRun(Generic[PromptT, UserPromptT, ToolT]):
    """One session at work: the layers of one entry, and what they give together.

    A run is entered once, by `async with`.  It is made by `Compositor.enter`.

    Attributes:
        slots: node name → its `LayerRunSlot`, in graph order.
        session_snapshot: the session at rest, once the run has been left, also by a failure; else `None`.
    """

    def __init__(
        self, slots: Mapping[str, LayerRunSlot], transformers: Transformers[PromptT, UserPromptT, ToolT]
    ) -> None:
        self.slots: Mapping[str, LayerRunSlot] = MappingProxyType(dict(slots))
        self.session_snapshot: CompositorSessionSnapshot | None = None
        self._transformers = transformers
        self._way_back = AsyncExitStack()
        self._entered = False

    # In and out.

    async def __aenter__(self) -> Self:
        if self._entered:
            states = ", ".join(
                f"{name!r} is {slot.lifecycle_state.name}" for name, slot in self.slots.items()
            )
            raise RuntimeError(
                f"A run cannot be entered twice ({states}): "
                "call Compositor.enter again, with the session_snapshot if the session goes on"
            )
        self._entered = True
        try:
            for slot in self.slots.values():
                await slot.enter(self._way_back)
        except BaseException as failure:
            # Nothing has been done yet, so each layer goes back to where it came from.
            await self.__aexit__(type(failure), failure, failure.__traceback__)
            raise
        self.delete_on_exit()
        return self

    async def __aexit__(
        self, kind: _Kind, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._way_back.__aexit__(kind, failure, trace)
        finally:
            self.session_snapshot = self.snapshot_session()

    def suspend_on_exit(self) -> None:
        """Leave every layer through `on_context_suspend`, so that the session can be resumed."""
        self._intend(ExitIntent.SUSPEND, self.slots)

    def suspend_layer_on_exit(self, name: str) -> None:
        """Leave the layer at node `name` through `on_context_suspend`."""
        self._intend(ExitIntent.SUSPEND, [name])

    def delete_on_exit(self) -> None:
        """Leave every layer through `on_context_delete`; this is the default."""
        self._intend(ExitIntent.DELETE, self.slots)

    def delete_layer_on_exit(self, name: str) -> None:
        """Leave the layer at node `name` through `on_context_delete`."""
        self._intend(ExitIntent.DELETE, [name])

    def _intend(self, intent: ExitIntent, names: Iterable[str]) -> None:
        slots = [self._slot(name) for name in names]
        for slot in slots:
            if slot.lifecycle_state is not LifecycleState.ACTIVE:
                raise RuntimeError(
                    f"The exit intent of layer {slot.name!r} can change only while it is ACTIVE, "
                    f"it is {slot.lifecycle_state.name}: say so inside `async with`"
                )
        for slot in slots:
            slot.exit_intent = intent

    # What the layers are and give.

    @overload
    def get_layer(self, name: str) -> AnyLayer: ...
    @overload
    def get_layer(self, name: str, layer_type: type[LayerT]) -> LayerT: ...
    def get_layer(self, name: str, layer_type: type[AnyLayer] | None = None) -> AnyLayer:
        """The layer at node `name`; with `layer_type`, as that type.

        Raises:
            KeyError: there is no such node.
            TypeError: the layer is not a `layer_type`.
        """
        layer = self._slot(name).layer
        if layer_type and not isinstance(layer, get_origin(layer_type) or layer_type):
            raise TypeError(
                f"Layer {name!r} has the expected type {layer_type.__name__}, got {type(layer).__name__}: "
                "ask for the type that its node was given"
            )
        return layer

    @property
    def prompts(self) -> list[PromptT]:
        """The system prompts: prefixes in graph order, suffixes in reverse, then the transformer."""
        return list(self._transformers.prompts([item.wrapped for item in prompts_of(self._layers)]))

    @property
    def user_prompts(self) -> list[UserPromptT]:
        """The pieces of the user's message in graph order, then the transformer."""
        return list(self._transformers.user_prompts([item.wrapped for item in user_prompts_of(self._layers)]))

    @property
    def tools(self) -> list[ToolT]:
        """The tools in graph order, then the transformer."""
        return list(self._transformers.tools([item.wrapped for item in tools_of(self._layers)]))

    def explain(self) -> RunExplanation:
        """Which layer contributed what, in the order of `prompts`, `user_prompts` and `tools`."""
        return explanation(self._layers)

    # What outlives it.

    def runtime_states(self) -> dict[str, JsonObject]:
        """Each layer's runtime state as JSON, as it is now; the run may be active.

        Raises:
            ValueError: a state holds what JSON cannot carry; the message names the layer and the place.
        """
        return {name: _json(name, slot.layer) for name, slot in self.slots.items()}

    def snapshot_session(self) -> CompositorSessionSnapshot:
        """The session at rest.  It is only read: no hook runs and nothing changes.

        Raises:
            RuntimeError: a layer is ACTIVE.
            ValueError: as for `runtime_states`.
        """
        active = [name for name, slot in self.slots.items() if slot.lifecycle_state is LifecycleState.ACTIVE]
        if active:
            raise RuntimeError(
                f"Cannot take a snapshot while layers are ACTIVE ({', '.join(map(repr, active))}): "
                "leave the run first, then read session_snapshot"
            )
        states = self.runtime_states()
        return CompositorSessionSnapshot.model_validate(
            {
                "layers": [
                    {"name": name, "lifecycle_state": slot.lifecycle_state, "runtime_state": states[name]}
                    for name, slot in self.slots.items()
                ]
            }
        )

    @property
    def _layers(self) -> dict[str, AnyLayer]:
        return {name: slot.layer for name, slot in self.slots.items()}

    def _slot(self, name: str) -> LayerRunSlot:
        if name not in self.slots:
            raise KeyError(f"no layer {name!r} in this run: it has {', '.join(map(repr, self.slots))}")
        return self.slots[name]


def _json(name: str, layer: AnyLayer) -> JsonObject:
    what = f"runtime_state of layer {name!r}"
    try:
        state = layer.runtime_state.model_dump(mode="json", round_trip=True, by_alias=False, warnings="error")
    except ValueError as error:
        raise ValueError(f"{what} cannot be written as JSON, keep live things out of it: {error}") from error
    return frozen_object(state, what, limit=maxsize)
