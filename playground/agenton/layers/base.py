"""The layer: a small piece of an agent that says what it needs, what it gives and what it remembers.

A layer class is written once and used in many graphs.  It declares three
schemas (dependencies, config, runtime state) as the arguments of its generic
base, so that the type checker and the compositor read the very same line:

    class GreetingLayer(PlainLayer[NoLayerDeps, GreetingConfig, GreetingState]): ...

An instance lives for one entry of a compositor and is never shared between two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, ClassVar, Generic, Self, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import TypeVar

from playground.agenton.layers.inference import infer_schemas
from playground.agenton.layers.schemas import EmptyLayerConfig, EmptyRuntimeState, LayerConfig, validated

AnyLayer: TypeAlias = "Layer[Any, Any, Any, Any, Any, Any]"
"""A layer of whatever family and schemas."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """What one field of a `LayerDeps` asks for: a class of layers, which may be absent if `optional`."""

    layer_type: type[AnyLayer]
    optional: bool

    def __str__(self) -> str:
        return self.layer_type.__name__ + (" | None" if self.optional else "")


class LayerDeps:
    """Base of dependency declarations.

    Every annotated member names a `Layer` subclass, or `SomeLayer | None` where
    the layer can do without.  In a run each member is the upstream layer itself;
    an absent optional one is `None`.
    """

    def __init__(self, **layers: AnyLayer | None) -> None:
        for field, layer in layers.items():
            setattr(self, field, layer)


class NoLayerDeps(LayerDeps):
    """The dependencies of a layer that stands alone."""


def declared_dependencies(deps_type: type[LayerDeps]) -> Mapping[str, Dependency]:
    """What `deps_type` asks for, field by field.

    Raises:
        TypeError: a member's annotation is neither a Layer subclass nor one `| None`.
        NameError: an annotation names something that its module does not define.
    """
    if deps_type not in _declared:
        _declared[deps_type] = _read_dependencies(deps_type)
    return _declared[deps_type]


_declared: dict[type[LayerDeps], Mapping[str, Dependency]] = {}


def _read_dependencies(deps_type: type[LayerDeps]) -> Mapping[str, Dependency]:
    return {
        field: _dependency(f"{deps_type.__name__}.{field}", annotation)
        for field, annotation in get_type_hints(deps_type).items()
    }


def _dependency(where: str, annotation: object) -> Dependency:
    union = get_origin(annotation) in (Union, UnionType)
    choices = get_args(annotation) if union else (annotation,)
    layers = [get_origin(choice) or choice for choice in choices if choice is not NoneType]
    match layers:
        case [type() as layer_type] if issubclass(layer_type, Layer):
            return Dependency(layer_type, optional=NoneType in choices)
    raise TypeError(
        f"{where} is annotated {annotation!r}: a dependency is one Layer subclass, or SomeLayer | None"
    )


DepsT = TypeVar("DepsT", bound=LayerDeps, default=NoLayerDeps)
PromptT = TypeVar("PromptT", default=object)
UserPromptT = TypeVar("UserPromptT", default=object)
ToolT = TypeVar("ToolT", default=object)
ConfigT = TypeVar("ConfigT", bound=LayerConfig, default=EmptyLayerConfig)
RuntimeStateT = TypeVar("RuntimeStateT", bound=BaseModel, default=EmptyRuntimeState)

_SCHEMAS = {"deps_type": LayerDeps, "config_type": LayerConfig, "runtime_state_type": BaseModel}


class Layer(ABC, Generic[DepsT, PromptT, UserPromptT, ToolT, ConfigT, RuntimeStateT]):
    """Base of all layers; most derive from a family such as `PlainLayer`.

    Attributes:
        type_id: the name by which a serialised graph refers to this class, if it may.
        deps_type, config_type, runtime_state_type: the three schemas, inferred from the generic base.
            Declare one in the class body to override it, or where it cannot be inferred.
        open_schemas: which schemas are still to be filled by a subclass, under which type parameter.
        config: what this entry was configured with, validated.
    """

    type_id: ClassVar[str | None] = None
    deps_type: ClassVar[type[LayerDeps]] = NoLayerDeps
    config_type: ClassVar[type[LayerConfig]] = EmptyLayerConfig
    runtime_state_type: ClassVar[type[BaseModel]] = EmptyRuntimeState
    open_schemas: ClassVar[Mapping[str, str]] = {
        "deps_type": "DepsT",
        "config_type": "ConfigT",
        "runtime_state_type": "RuntimeStateT",
    }

    config: ConfigT

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        infer_schemas(cls, _SCHEMAS)
        with suppress(NameError):  # a layer may depend on its own class, which has no name yet
            _read_dependencies(cls.deps_type)

    @classmethod
    def from_config(cls, config: ConfigT) -> Self:
        """A fresh layer made from its validated config; a layer with a config schema overrides this.

        Raises:
            TypeError: the class has a config schema and does not say how to use it.
        """
        if not isinstance(config, EmptyLayerConfig):
            raise TypeError(
                f"{cls.__name__} does not consume its {type(config).__name__}: override from_config, "
                "or make it with LayerProvider.from_factory"
            )
        return cls()

    # What it stands on.

    @classmethod
    def dependency_names(cls) -> frozenset[str]:
        """The fields of `deps_type`, required and optional."""
        return frozenset(declared_dependencies(cls.deps_type))

    def bind_deps(self, deps: Mapping[str, AnyLayer | None]) -> None:
        """Make `deps` (by field) the layers behind `self.deps`.

        Raises:
            ValueError: a required field is missing, or a field is not declared.
            TypeError: a layer is not of the declared class.
        """
        self.deps = self._bound(deps)

    @cached_property
    def deps(self) -> DepsT:
        """The layers that this one depends on, as bound for this entry."""
        return self._bound({})

    def _bound(self, deps: Mapping[str, AnyLayer | None]) -> DepsT:
        owner, declared = type(self).__name__, declared_dependencies(self.deps_type)
        if unknown := deps.keys() - declared.keys():
            raise ValueError(
                f"Unknown layer dependencies of {owner}: {_names(unknown)}; it declares {_names(declared)}"
            )
        layers = {field: deps.get(field) for field in declared}
        if missing := [field for field in declared if layers[field] is None and not declared[field].optional]:
            raise ValueError(
                f"Missing layer dependencies of {owner}: "
                + ", ".join(f"{field!r} ({declared[field]})" for field in missing)
                + "; map each to a node in the deps of its LayerNode"
            )
        for field, layer in layers.items():
            if layer is not None and not isinstance(layer, declared[field].layer_type):
                raise TypeError(
                    f"Dependency {field!r} of {owner} has the expected type {declared[field]}, "
                    f"got {type(layer).__name__}: map it to a node of that type"
                )
        return self.deps_type(**layers)  # type: ignore[return-value]  # DepsT is what deps_type was inferred from

    # What it remembers.

    @cached_property
    def runtime_state(self) -> RuntimeStateT:
        """What outlives a pause: serialisable, read and written freely while the layer is active."""
        return validated(self.runtime_state_type, {}, f"runtime_state of {type(self).__name__}")  # type: ignore[return-value]

    # What it gives.

    @property
    def prefix_prompts(self) -> Sequence[PromptT]:
        """System prompts that come first, in graph order."""
        return ()

    @property
    def suffix_prompts(self) -> Sequence[PromptT]:
        """System prompts that come last, in reverse graph order: the first layer has the last word."""
        return ()

    @property
    def user_prompts(self) -> Sequence[UserPromptT]:
        """Pieces of the user's message, in graph order."""
        return ()

    @property
    def tools(self) -> Sequence[ToolT]:
        """Tools, in graph order."""
        return ()

    @abstractmethod
    def wrap_prompt(self, prompt: PromptT) -> object:
        """A system prompt as its family tags it."""

    @abstractmethod
    def wrap_user_prompt(self, prompt: UserPromptT) -> object:
        """A user prompt as its family tags it."""

    @abstractmethod
    def wrap_tool(self, tool: ToolT) -> object:
        """A tool as its family tags it."""

    # How it lives.

    def resource_context(self) -> AbstractAsyncContextManager[None]:
        """Live things to hold while the layer is active.

        Entered before the enter hook, left after the exit hook, and left whatever
        fails in between.  It sees a failure pass but cannot swallow it.
        """
        return nullcontext()

    async def on_context_create(self) -> None:
        """Enter hook of a NEW layer.  If it raises, no exit hook follows: it undoes its own half."""

    async def on_context_resume(self) -> None:
        """Enter hook of a SUSPENDED layer, whose `runtime_state` is there again."""

    async def on_context_suspend(self) -> None:
        """Exit hook that keeps the session: afterwards `runtime_state` goes into the snapshot."""

    async def on_context_delete(self) -> None:
        """Exit hook that ends the session."""


def _names(names: Mapping[str, object] | set[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names)) or "none"
