"""The two kinds of data that belong to one layer in one session, and the door by which data enters.

*Config* says how to make the layer this time; *runtime state* is what the layer
must remember over a pause.  Both are plain data with a schema.  Live things
(clients, files, sockets) are neither: they belong to `Layer.resource_context`
or to the program around.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

ModelT = TypeVar("ModelT", bound=BaseModel)


class LayerConfig(BaseModel):
    """Base of every per-run layer config; fields that it does not know are refused."""

    model_config = ConfigDict(extra="forbid")


class EmptyLayerConfig(LayerConfig):
    """The config of a layer that needs none."""


class EmptyRuntimeState(BaseModel):
    """The runtime state of a layer that remembers nothing."""

    model_config = ConfigDict(extra="forbid")


def validated(schema: type[ModelT], value: object, what: str) -> ModelT:
    """`value` as a fresh instance of `schema` that shares nothing with what was given.

    A ready-made model is dumped and validated again: it may have been changed since it was made.

    Args:
        schema: the model that the value must fit.
        value: an instance of `schema`, or a mapping of its fields.
        what: what the value is, as the title of the error ("config of layer 'greeting'").

    Raises:
        TypeError: the value is a model of another kind.
        ValidationError: it does not fit; the title names `what`, each line names a field.
    """
    title = f"{what} (expected type {schema.__name__})"
    if isinstance(value, schema):
        data: object = value.model_dump(round_trip=True, by_alias=False, warnings=False)
    elif isinstance(value, BaseModel):
        raise TypeError(
            f"{title} got {type(value).__name__}: pass {schema.__name__}, or a dict of its fields"
        )
    else:
        data = deepcopy(value) if value else value
    try:
        return schema.model_validate(data, by_alias=True, by_name=True)
    except ValidationError as error:
        raise _titled(error, title) from None


def _titled(error: ValidationError, title: str) -> ValidationError:
    lines = [
        InitErrorDetails(
            type=PydanticCustomError(line["type"], "{text}", {"text": line["msg"]}),
            loc=line["loc"],
            input=line["input"],
        )
        for line in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(title, lines)
