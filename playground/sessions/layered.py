"""Scenarios made of layers: what a compositor arranges, run and remembered like any other.

The two halves meet here.  A compositor turns layers into prompts and tools; the
kernel runs what is built from them.  What the layers must remember, their
runtime state, is told to the run's log whenever a wave has changed it.  So it
is a fold of the log like everything else, and a session that is resumed,
after a pause or a crash, hydrates its layers from there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from playground.agenton.compositor import (
    Compositor,
    CompositorRun,
    CompositorSessionSnapshot,
    LayerSessionSnapshot,
)
from playground.agenton.layers import LayerConfig, LifecycleState
from playground.kernel import JsonObject, JsonValue, Plan
from playground.kernel.scheduler import child_spec
from playground.kernel.values import dict_in
from playground.runtime.scenario import Runnable

AnyRun: TypeAlias = CompositorRun[Any, Any, Any]
"""A compositor's run, whatever its prompts and tools are turned into."""


@dataclass(frozen=True, slots=True)
class Layered:
    """A scenario's agent, assembled from layers each time a run is taken up.

    Args:
        compositor: arranges the layers.
        build: makes what is run from the layers of one entry: their prompts, tools and states.
        configs: how each layer is made, by node name.
    """

    compositor: Compositor[Any, Any, Any]
    build: Callable[[AnyRun], Runnable]
    configs: Mapping[str, LayerConfig | Mapping[str, JsonValue]] = field(default_factory=dict)

    def sketch(self) -> Plan:
        """The plan to draw; no hook runs and no resource is opened for it."""
        return child_spec(self.build(self.compositor.enter(configs=self.configs))).plan

    @asynccontextmanager
    async def stage(self, remembered: JsonObject) -> AsyncIterator[LayeredStage]:
        """Enter the layers: new ones, or where the log says they stood.

        Args:
            remembered: what `LayeredStage.remembers` told, folded; empty for a new run.
        """
        snapshot = _snapshot(dict_in(remembered, "states")) if remembered else None
        async with self.compositor.enter(configs=self.configs, session_snapshot=snapshot) as run:
            run.suspend_on_exit()
            yield LayeredStage(run, self.build(run), self._graph(run))

    def _graph(self, run: AnyRun) -> list[JsonValue]:
        """The layers in order, each with its class and the layers that it builds on, by field."""
        return [
            {
                "name": node.name,
                "type": type(run.slots[node.name].layer).__name__,
                "deps": dict(node.deps),
            }
            for node in self.compositor.nodes
        ]


@dataclass(frozen=True, slots=True)
class LayeredStage:
    """Layers at work on one run."""

    run: AnyRun
    runnable: Runnable
    graph: list[JsonValue]

    def remembers(self) -> JsonObject:
        """What the log must know of the layers: their states, their graph, and which of them gave what."""
        explained = self.run.explain()
        return {
            "states": dict(self.run.runtime_states()),
            "composition": {
                "layers": self.graph,
                "prompts": [asdict(part) for part in explained.prompts],
                "user_prompts": [asdict(part) for part in explained.user_prompts],
                "tools": [asdict(part) for part in explained.tools],
            },
        }

    def ends(self) -> None:
        """The run has ended: the layers are deleted instead of suspended when they are left."""
        self.run.delete_on_exit()


def _snapshot(states: JsonObject) -> CompositorSessionSnapshot:
    return CompositorSessionSnapshot(
        layers=[
            LayerSessionSnapshot(
                name=name, lifecycle_state=LifecycleState.SUSPENDED, runtime_state=dict_in(states, name)
            )
            for name in states
        ]
    )
