"""The compositor: layers in a graph, entered as runs, suspended as snapshots."""

from playground.agenton.compositor.contributions import Contribution, RunExplanation
from playground.agenton.compositor.core import Compositor
from playground.agenton.compositor.graph import LayerNode
from playground.agenton.compositor.providers import LayerProvider
from playground.agenton.compositor.run import CompositorRun, LayerRunSlot
from playground.agenton.compositor.schemas import (
    CompositorConfig,
    CompositorSessionSnapshot,
    LayerNodeConfig,
    LayerSessionSnapshot,
)

__all__ = [
    "Compositor",
    "CompositorConfig",
    "CompositorRun",
    "CompositorSessionSnapshot",
    "Contribution",
    "LayerNode",
    "LayerNodeConfig",
    "LayerProvider",
    "LayerRunSlot",
    "LayerSessionSnapshot",
    "RunExplanation",
]
