"""What a compositor reads and writes: two documents, kept apart on purpose.

`CompositorConfig` describes a graph that can be used again and again; it knows
nothing of one run.  `CompositorSessionSnapshot` describes one session at rest;
it knows nothing of the graph but its names, and holds no config, prompt, tool
or live resource.  Keep both and any process can go on.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator

from playground.agenton.layers import LifecycleState

SCHEMA_VERSION = 1


class _Document(BaseModel):
    """Unknown fields are refused, and a model is not trusted because it is one: it may have been changed."""

    model_config = ConfigDict(extra="forbid", revalidate_instances="always")


class _Versioned(_Document):
    schema_version: int = SCHEMA_VERSION

    @field_validator("schema_version")
    @classmethod
    def _only_this_version(cls, version: int) -> int:
        if version != SCHEMA_VERSION:
            raise ValueError(
                f"schema_version {version} is not supported: this program reads and writes {SCHEMA_VERSION}"
            )
        return version


class LayerNodeConfig(_Document):
    """One node of a graph: its name, the type id of its layer, and what it depends on.

    Attributes:
        deps: dependency field → name of an earlier node.
        metadata: JSON for the program's own use; the compositor does not look into it.
    """

    name: str
    type: str
    deps: dict[str, str] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class CompositorConfig(_Versioned):
    """A graph of layers as a document: nodes in order, each after those that it depends on."""

    layers: list[LayerNodeConfig]


class LayerSessionSnapshot(_Document):
    """Where one layer of a session stood, and what it remembered."""

    name: str
    lifecycle_state: LifecycleState
    runtime_state: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("lifecycle_state")
    @classmethod
    def _not_active(cls, state: LifecycleState, info: ValidationInfo) -> LifecycleState:
        if state is LifecycleState.ACTIVE:
            raise ValueError(
                f"layer {info.data.get('name')!r} is active, but LifecycleState.ACTIVE is internal-only: "
                "take the snapshot after the run has been left"
            )
        return state


class CompositorSessionSnapshot(_Versioned):
    """A session at rest: its layers in graph order."""

    layers: list[LayerSessionSnapshot]
