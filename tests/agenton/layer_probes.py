"""Small layers for tests: some write down what happens to them, some only have a schema."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from playground.agenton.compositor import Compositor, CompositorRun, LayerNode, LayerProvider
from playground.agenton.layers import (
    EmptyLayerConfig,
    LayerConfig,
    LayerDeps,
    LifecycleState,
    NoLayerDeps,
    PlainLayer,
)


def factory(layer_type: type, create: Callable[[], object]) -> LayerProvider:
    """A provider whose factory ignores its config."""
    return LayerProvider.from_factory(layer_type=layer_type, create=lambda _config: create())


class Boom(Exception):
    """The failure that a test asked for."""


class Counter(BaseModel):
    """How often a layer has been entered."""

    model_config = ConfigDict(extra="forbid")

    entries: int = 0


@dataclass
class Probe(PlainLayer[NoLayerDeps, EmptyLayerConfig, Counter]):
    """Writes "name: step" into `trace`, and fails at the steps in `failing`."""

    name: str
    trace: list[str]
    failing: frozenset[str] = frozenset()

    def step(self, step: str) -> None:
        self.trace.append(f"{self.name}: {step}")
        if step in self.failing:
            raise Boom(f"{self.name}: {step}")

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        self.step("open")
        try:
            yield
        finally:
            self.step("close")

    async def on_context_create(self) -> None:
        self.step("create")
        self.runtime_state.entries += 1

    async def on_context_resume(self) -> None:
        self.step("resume")
        self.runtime_state.entries += 1

    async def on_context_suspend(self) -> None:
        self.step("suspend")

    async def on_context_delete(self) -> None:
        self.step("delete")


class ProbeDeps(LayerDeps):
    upstream: Probe
    spare: Probe | None


@dataclass
class DependentProbe(PlainLayer[ProbeDeps]):
    """Needs a `Probe`, and could use another."""


@dataclass
class Stage:
    """A graph of probes by name, and what has happened on it."""

    names: str = "abc"
    failing: Mapping[str, frozenset[str]] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)

    def node(self, name: str) -> LayerNode:
        return LayerNode(
            name, factory(Probe, lambda: Probe(name, self.trace, self.failing.get(name, frozenset())))
        )

    @property
    def compositor(self) -> Compositor:
        return Compositor([self.node(name) for name in self.names])


def states(run: CompositorRun) -> dict[str, LifecycleState]:
    """Where each layer of a run stands."""
    return {name: slot.lifecycle_state for name, slot in run.slots.items()}


def notes(error: BaseException) -> str:
    """Everything an error says: its text and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


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


class LooseConfig(LayerConfig):
    anything: Any = None


class LooseState(BaseModel):
    anything: Any = None


class LooseLayer(PlainLayer[NoLayerDeps, LooseConfig, LooseState]):
    """Takes anything, and remembers anything."""


LOOSE = factory(LooseLayer, LooseLayer)


class HonestState(BaseModel):
    number: float = 0
    anything: Any = None


class HonestLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, HonestState]):
    """Keeps in its runtime state whatever a test puts there."""
