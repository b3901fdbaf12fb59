"""Schemas read from generic bases, so that nobody writes them twice.

`class GreetingLayer(PlainLayer[NoLayerDeps, GreetingConfig])` tells a type
checker what `self.config` is.  The same line is there at run time, in
`__orig_bases__`; all that has to be followed is which type parameter of a base
stands for which schema.  A base that is generic itself leaves its schema *open*
under the name of its own type parameter, for its subclasses to fill.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, TypeVar, get_args, get_origin


def infer_schemas(cls: Any, kinds: Mapping[str, type]) -> None:
    """Set the schema attributes of the class `cls`.

    What its body declares wins, then what its generic bases say; else it inherits.

    Args:
        cls: a class just made, whose bases have `open_schemas`: attribute → type parameter.
        kinds: attribute → the class that the schema must derive from.

    Raises:
        TypeError: a schema is not of its kind.
    """
    cls.open_schemas = dict(cls.open_schemas)
    for attribute, kind in kinds.items():
        schema = vars(cls).get(attribute) or next(_said_by_bases(cls, attribute), None)
        if isinstance(schema, TypeVar):
            cls.open_schemas[attribute] = schema.__name__
        elif schema is not None:
            cls.open_schemas.pop(attribute, None)
            setattr(cls, attribute, _checked(f"{cls.__name__}.{attribute}", schema, kind))


def _said_by_bases(cls: Any, attribute: str) -> Iterator[object]:
    for base in vars(cls).get("__orig_bases__", ()):
        origin: Any = get_origin(base)
        parameter = getattr(origin, "open_schemas", {}).get(attribute)
        for declared, given in zip_longest(getattr(origin, "__parameters__", ()), get_args(base)):
            if declared.__name__ == parameter:
                yield declared.__default__ if given is None else given


def _checked(where: str, schema: object, kind: type) -> type:
    found = get_origin(schema) or schema
    if isinstance(found, type) and issubclass(found, kind):
        return found
    raise TypeError(
        f"{where} must be a {kind.__name__} subclass, got {schema!r}: "
        "give the class itself as the argument of the generic base, or declare it in the class body"
    )
