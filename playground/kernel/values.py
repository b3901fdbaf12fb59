"""Values: what may live in state, outputs and events.

A log that is the run must be able to write down everything a node says, and
what it wrote down must never change afterwards.  Both troubles end at one
door.  `freeze` takes a value where it *enters* the engine, refuses whatever
JSON cannot carry, and returns a private copy whose lists and dicts refuse to
be changed.  From there on the engine shares that copy freely: events, state,
snapshots and several nodes may hold the very same object.

`thaw` is the way out: a plain, private copy that a body may change at will.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NoReturn, TypeAlias, Union

JsonValue: TypeAlias = Union[bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None]
JsonObject: TypeAlias = dict[str, JsonValue]

MAX_DEPTH = 100
"""How deep lists and dicts may nest; deeper ones are refused, by name."""

MAX_BYTES = 1 << 20
"""About how large one entering value may be, in bytes; a `Scheduler` may set its own limit."""

_MAX_INT_BITS = 13_000
"""Python writes no decimal longer than 4,300 digits."""


_WAYS_OUT: dict[type, str] = {
    tuple: "return a list",
    set: "return a sorted list",
    frozenset: "return a sorted list",
    bytes: "decode it, or send base64 text",
}


class NotJson(ValueError):
    """A value that JSON cannot carry unchanged: the message says where it is and what to do."""


def _read_only(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "state is read-only: return the change as a state delta, or work on a copy (list(x), dict(x))"
    )


class FrozenList(list[JsonValue]):
    """A list that a body can read, slice and copy, but not change."""

    __slots__ = ()

    append = extend = insert = remove = pop = clear = sort = reverse = _read_only
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _read_only

    def __reduce__(self) -> tuple[type[list[JsonValue]], tuple[list[JsonValue]]]:
        return list, (list(self),)

    def __copy__(self) -> list[JsonValue]:
        return list(self)

    def __deepcopy__(self, _memo: object) -> JsonValue:
        return thaw(self)


class FrozenDict(dict[str, JsonValue]):
    """A dict that a body can read and copy, but not change."""

    __slots__ = ()

    update = setdefault = pop = popitem = clear = _read_only
    __setitem__ = __delitem__ = __ior__ = _read_only

    def __reduce__(self) -> tuple[type[dict[str, JsonValue]], tuple[dict[str, JsonValue]]]:
        return dict, (dict(self),)

    def __copy__(self) -> dict[str, JsonValue]:
        return dict(self)

    def __deepcopy__(self, _memo: object) -> JsonValue:
        return thaw(self)


def freeze(value: object, where: str = "value", *, limit: int = MAX_BYTES) -> JsonValue:
    """A private read-only copy of `value`; what is frozen already is returned as it is.

    Args:
        value: anything; accepted are None, bool, int, finite float, str without
            lone surrogates, list, and dict with such str keys, nested.
        where: what the value is, for the error ("output of node 'a'").
        limit: the largest size accepted, in bytes of JSON, estimated from below.

    Raises:
        NotJson: naming `where`, the path inside the value, and the way out.
    """
    kind = type(value)
    if kind is str:
        if len(value) > limit:  # type: ignore[arg-type]
            _too_large(where, limit)
        return _text(value, where, "")  # type: ignore[arg-type]
    if value is None or kind is bool or kind is FrozenDict or kind is FrozenList:
        return value  # type: ignore[return-value]
    room = [limit]
    frozen = _freeze(value, where, (), room)
    if room[0] < 0:
        _too_large(where, limit)
    return frozen


def _freeze(value: object, where: str, path: tuple[object, ...], room: list[int]) -> JsonValue:
    kind = type(value)
    if kind is str:
        room[0] -= len(value) + 2  # type: ignore[arg-type]
        if value.isascii():  # type: ignore[attr-defined]
            return value  # type: ignore[return-value]
        return _text(value, where, path)  # type: ignore[arg-type]
    if value is None or kind is bool:
        return value  # type: ignore[return-value]
    if kind is int:
        if value.bit_length() > _MAX_INT_BITS:  # type: ignore[attr-defined]
            _refuse(where, path, "an integer of more than 3,900 digits", "send it as text")
        room[0] -= 1
        return value  # type: ignore[return-value]
    if kind is float:
        if not isfinite(value):  # type: ignore[arg-type]
            _refuse(where, path, repr(value), "use None, or text")
        room[0] -= 3
        return value  # type: ignore[return-value]
    if kind is FrozenDict or kind is FrozenList:
        return value  # type: ignore[return-value]
    if len(path) >= MAX_DEPTH:
        _refuse(where, path[:6], f"nested deeper than {MAX_DEPTH} levels", "flatten it")
    if room[0] < 0:
        return None
    if isinstance(value, dict):
        items = {}
        for key, item in value.items():
            if type(key) is not str:
                _refuse(where, path, f"the key {key!r} of type {type(key).__name__}", "JSON keys are text")
            if not key.isascii():
                _text(key, where, path)
            room[0] -= len(key) + 3
            items[key] = _freeze(item, where, (*path, key), room)
        return FrozenDict(items)
    if isinstance(value, list):
        return FrozenList([_freeze(item, where, (*path, i), room) for i, item in enumerate(value)])
    way_out = _WAYS_OUT.get(kind, "convert it to dicts, lists, text and numbers")
    _refuse(where, path, f"{_short(value)} of type {kind.__name__}", way_out)


def _text(value: str, where: str, path: tuple[object, ...] | str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        bad = value[error.start]
        _refuse(where, path, f"text with the lone surrogate {bad!a}", "decode it with errors='replace'")
    return value


def _refuse(where: str, path: tuple[object, ...] | str, what: str, way_out: str) -> NoReturn:
    at = "".join(f"[{step!r}]" for step in path)
    raise NotJson(f"{where}{' at ' + at if at else ''} holds {what}, which is not JSON: {way_out}")


def _too_large(where: str, limit: int) -> NoReturn:
    raise NotJson(
        f"{where} is larger than {limit:,} bytes: keep large things in a file or a store and pass their name"
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def thaw(value: JsonValue) -> JsonValue:
    """A plain, private copy of a frozen value, to be changed at will."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def frozen_object(value: Mapping[str, object], where: str, *, limit: int = MAX_BYTES) -> FrozenDict:
    """`freeze` for a mapping that must become a JSON object."""
    frozen = freeze(value if isinstance(value, dict) else dict(value), where, limit=limit)
    assert isinstance(frozen, FrozenDict)
    return frozen
