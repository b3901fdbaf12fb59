"""Layers: what a layer is, and the families it may belong to."""

from playground.agenton.layers.base import AnyLayer, Layer, LayerDeps, NoLayerDeps
from playground.agenton.layers.lifecycle import ExitIntent, LifecycleState
from playground.agenton.layers.schemas import EmptyLayerConfig, EmptyRuntimeState, LayerConfig
from playground.agenton.layers.types import (
    AllPromptTypes,
    AllToolTypes,
    AllUserPromptTypes,
    Family,
    PlainLayer,
    PlainPromptType,
    PlainToolType,
    PlainUserPromptType,
    PydanticAILayer,
    PydanticAIPromptType,
    PydanticAIToolType,
    PydanticAIUserPromptType,
    Tagged,
)

__all__ = [
    "AllPromptTypes",
    "AllToolTypes",
    "AllUserPromptTypes",
    "AnyLayer",
    "EmptyLayerConfig",
    "EmptyRuntimeState",
    "ExitIntent",
    "Family",
    "Layer",
    "LayerConfig",
    "LayerDeps",
    "LifecycleState",
    "NoLayerDeps",
    "PlainLayer",
    "PlainPromptType",
    "PlainToolType",
    "PlainUserPromptType",
    "PydanticAILayer",
    "PydanticAIPromptType",
    "PydanticAIToolType",
    "PydanticAIUserPromptType",
    "Tagged",
]
