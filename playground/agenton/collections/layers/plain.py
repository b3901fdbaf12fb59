"""Plain layers: text prompts, a Python object, and callables as tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, get_type_hints

from pydantic import Field
from typing_extensions import override

from playground.agenton.layers import LayerConfig, LayerDeps, NoLayerDeps, PlainLayer
from playground.agenton.layers.types import PlainTool

ObjectT = TypeVar("ObjectT")
Params = ParamSpec("Params")
ResultT = TypeVar("ResultT", covariant=True)


class PromptLayerConfig(LayerConfig):
    """Prompts as data; each is one text or a list of them."""

    prefix: str | list[str] = Field(default_factory=list)
    user: str | list[str] = Field(default_factory=list)
    suffix: str | list[str] = Field(default_factory=list)


@dataclass(slots=True)
class PromptLayer(PlainLayer[NoLayerDeps, PromptLayerConfig]):
    """Contributes the prompts that its config holds."""

    type_id = "plain.prompt"

    prefix: str | Sequence[str] = ()
    user: str | Sequence[str] = ()
    suffix: str | Sequence[str] = ()

    @classmethod
    @override
    def from_config(cls, config: PromptLayerConfig) -> Self:
        return cls(prefix=config.prefix, user=config.user, suffix=config.suffix)

    @property
    @override
    def prefix_prompts(self) -> list[str]:
        return texts(self.prefix)

    @property
    @override
    def user_prompts(self) -> list[str]:
        return texts(self.user)

    @property
    @override
    def suffix_prompts(self) -> list[str]:
        return texts(self.suffix)


@dataclass(slots=True)
class ObjectLayer(PlainLayer[NoLayerDeps], Generic[ObjectT]):
    """Holds a Python object for the layers that depend on it; make it with `LayerProvider.from_factory`."""

    value: ObjectT


@dataclass(slots=True)
class ToolsLayer(PlainLayer[NoLayerDeps]):
    """Contributes callables as tools; make it with `LayerProvider.from_factory`."""

    tool_entries: Sequence[PlainTool] = ()

    @property
    @override
    def tools(self) -> list[PlainTool]:
        return list(self.tool_entries)


@dataclass(frozen=True, slots=True)
class ObjectTool(Generic[ObjectT, Params, ResultT]):
    """A function whose first parameter is an object that the agent must not choose.

    It can be called as the function itself can.
    """

    object_type: type[ObjectT]
    function: Callable[Concatenate[ObjectT, Params], ResultT]

    def __call__(self, target: ObjectT, /, *args: Params.args, **kwargs: Params.kwargs) -> ResultT:
        return self.function(target, *args, **kwargs)

    def bound_to(self, target: object) -> PlainTool:
        """The tool that the agent sees: a method of `target`, without the first parameter.

        Raises:
            TypeError: `target` is not an `object_type`.
        """
        if not isinstance(target, self.object_type):
            raise TypeError(
                f"Tool {self.function.__name__!r} expected object dependency of type "
                f"{self.object_type.__name__!r}, got {type(target).__name__!r}: "
                "map object_layer to the node that holds one"
            )
        return MethodType(self.function, target)


def with_object(
    object_type: type[ObjectT],
) -> Callable[[Callable[Concatenate[ObjectT, Params], ResultT]], ObjectTool[ObjectT, Params, ResultT]]:
    """Mark a function as a tool over an object that a `DynamicToolsLayer` will supply as its first argument.

    Raises:
        ValueError: the function has no positional parameter to take the object.
        TypeError: that parameter is annotated with a class that the object is not.
    """

    def mark(
        function: Callable[Concatenate[ObjectT, Params], ResultT],
    ) -> ObjectTool[ObjectT, Params, ResultT]:
        first = next(iter(inspect.signature(function).parameters.values()), None)
        if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
            raise ValueError(
                f"Tool {function.__name__!r} must accept the object dependency as its first positional "
                f"parameter: add one of type {object_type.__name__}"
            )
        declared = get_type_hints(function).get(first.name, Any)
        if declared is not Any and isinstance(declared, type) and not issubclass(object_type, declared):
            raise TypeError(
                f"Tool {function.__name__!r}: its first parameter should accept {object_type.__name__!r}, "
                f"but {first.name!r} is a {declared.__name__!r}"
            )
        return ObjectTool(object_type, function)

    return mark


class DynamicToolsLayerDeps(LayerDeps, Generic[ObjectT]):
    """The object that the tools work on."""

    object_layer: ObjectLayer[ObjectT]


@dataclass(slots=True)
class DynamicToolsLayer(PlainLayer[DynamicToolsLayerDeps[ObjectT]], Generic[ObjectT]):
    """Contributes functions marked by `with_object`, bound to the object of the layer it depends on."""

    tool_entries: Sequence[ObjectTool[ObjectT, ..., object]] = ()

    @property
    @override
    def tools(self) -> list[PlainTool]:
        return [tool.bound_to(self.deps.object_layer.value) for tool in self.tool_entries]


def texts(prompts: str | Sequence[str]) -> list[str]:
    """One prompt or several, as a list."""
    return [prompts] if isinstance(prompts, str) else list(prompts)
