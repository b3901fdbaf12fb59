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
from typing import NoReturn, TypeAlias, TypeVar, Union

JsonValue: TypeAlias = Union[bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None]
JsonObject: TypeAlias = dict[str, JsonValue]
T = TypeVar("T")

MAX_DEPTH = 100
"""How deep lists and dicts may nest; deeper ones are refused, by name."""

MAX_BYTES = 1 << 20
"""About how large one entering value may be, in bytes; a `Scheduler` may set its own limit."""

NO_LIMIT = 1 << 40
"""The limit of what the engine itself has made of values that were let in one by one."""

_MAX_INT_BITS = 13_000
"""Python writes no decimal longer than 4,300 digits."""


_WAY_OUT = "convert it to dicts, lists, text and numbers"
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
    """A list that a body can read, slice and copy, but not change; its copies and pickles are plain lists."""

    __slots__ = ()

    append = extend = insert = remove = pop = clear = sort = reverse = _read_only
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _read_only

    def __reduce__(self) -> tuple[type[list[JsonValue]], tuple[list[JsonValue]]]:
        return list, (list(self),)


class FrozenDict(dict[str, JsonValue]):
    """A dict that a body can read and copy, but not change; its copies and pickles are plain dicts."""

    __slots__ = ()

    update = setdefault = pop = popitem = clear = _read_only
    __setitem__ = __delitem__ = __ior__ = _read_only

    def __reduce__(self) -> tuple[type[dict[str, JsonValue]], tuple[dict[str, JsonValue]]]:
        return dict, (dict(self),)


class GrowingList(FrozenList):
    """The list of a channel, which the engine alone adds to: whoever passes it on passes a copy."""

    __slots__ = ()


class GrowingDict(FrozenDict):
    """The dict of a channel, which the engine alone adds to: whoever passes it on passes a copy."""

    __slots__ = ()


_DONE = frozenset({FrozenDict, FrozenList, bool, type(None)})
"""Types whose values are frozen as they are."""


def freeze(value: object, *where: str, limit: int = MAX_BYTES) -> JsonValue:
    """A private read-only copy of `value`; what is frozen already is returned as it is.

    Args:
        value: anything; accepted are None, bool, int, finite float, str without
            lone surrogates, list, and dict with such str keys, nested.
        where: what the value is, in pieces that an error puts together ("output of node ", "a").
        limit: the largest size accepted, in bytes of JSON, estimated from below.

    Raises:
        NotJson: naming `where`, the path inside the value, and the way out.
    """
    kind = type(value)
    if kind in _DONE:
        return value  # type: ignore[return-value]
    if isinstance(value, str) and kind is str and value.isascii() and len(value) < limit:
        return value
    if isinstance(value, int) and kind is int and value.bit_length() <= 64:
        return value
    room = [limit]
    try:
        frozen = _freeze(value, 0, room)
    except _Refused as refused:
        at = _short_path([f"[{step!r}]" for step in reversed(refused.path)])
        what, way_out = refused.args
        raise NotJson(
            f"{_named(where)}{' at ' + at if at else ''} holds {what}, which is not JSON: {way_out}"
        ) from None
    if room[0] < 0:
        raise NotJson(
            f"{_named(where)} is larger than {limit:,} bytes: "
            "keep large things in a file or a store and pass their name"
        )
    return frozen


def _short_path(steps: list[str]) -> str:
    return "".join(steps if len(steps) <= 12 else [*steps[:6], "…", *steps[-3:]])


def _named(where: tuple[str, ...]) -> str:
    return "".join(where) or "value"


class _Refused(Exception):
    """What is not JSON, and the way out; `path` grows while it rises."""

    def __init__(self, what: str, way_out: str) -> None:
        super().__init__(what, way_out)
        self.path: list[object] = []


def _freeze(value: object, depth: int, room: list[int]) -> JsonValue:
    kind = type(value)
    if type(value) is str:
        room[0] -= len(value) + 2
        return value if value.isascii() else _text(value)
    if kind in _DONE:
        return value  # type: ignore[return-value]
    if type(value) is int:
        if value.bit_length() > _MAX_INT_BITS:
            raise _Refused("an integer of more than 3,900 digits", "send it as text")
        room[0] -= 1
        return value
    if type(value) is float:
        if not isfinite(value):
            raise _Refused(repr(value), "use None, or text")
        room[0] -= 3
        return value
    if not isinstance(value, dict | list):
        raise _Refused(f"{_short(value)} of type {kind.__name__}", _WAYS_OUT.get(kind, _WAY_OUT))
    if depth >= MAX_DEPTH:
        raise _Refused(f"nested deeper than {MAX_DEPTH} levels", "flatten it")
    if room[0] < 0:
        return None
    step: object = None
    try:
        if isinstance(value, list):
            items = []
            for step, item in enumerate(value):  # noqa: B007 - an error reads it
                items.append(item if type(item) in _DONE else _freeze(item, depth + 1, room))
            return FrozenList(items)
        fields: JsonObject = {}
        for step, item in value.items():
            key = step if type(step) is str and step.isascii() else _key(step)
            room[0] -= len(key) + 3
            if type(item) is str and item.isascii():  # most fields are such: no call for them
                room[0] -= len(item) + 2
                fields[key] = item
            else:
                fields[key] = item if type(item) in _DONE else _freeze(item, depth + 1, room)
        return FrozenDict(fields)
    except _Refused as refused:
        refused.path.append(step)
        raise


def _key(key: object) -> str:
    if type(key) is not str:
        raise _Refused(f"the key {key!r} of type {type(key).__name__}", "JSON keys are text")
    return _text(key)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        bad = value[error.start]
        raise _Refused(f"text with the lone surrogate {bad!a}", "decode it with errors='replace'") from None
    return value


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


def frozen_object(value: Mapping[str, object], *where: str, limit: int = MAX_BYTES) -> FrozenDict:
    """`freeze` for a mapping that becomes a JSON object."""
    frozen = freeze(value if isinstance(value, dict) else dict(value), *where, limit=limit)
    assert isinstance(frozen, FrozenDict)
    return frozen


def _checked(value: JsonValue, kind: type[T], key: str, called: str) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{key} is {type(value).__name__}, not {called}")
    return value


def text_in(data: Mapping[str, JsonValue], key: str) -> str:
    """The text under `key`.

    Raises:
        KeyError, TypeError: it is missing, or something else.
    """
    return _checked(data[key], str, key, "text")


def int_in(data: Mapping[str, JsonValue], key: str) -> int:
    """The integer under `key`; errors as in `text_in`."""
    return _checked(data[key], int, key, "a whole number")


def dict_in(data: Mapping[str, JsonValue], key: str) -> JsonObject:
    """The object under `key`, empty if it is missing; errors as in `text_in`."""
    return _checked(data.get(key, _NOTHING), dict, key, "an object")


def list_in(data: Mapping[str, JsonValue], key: str) -> list[JsonValue]:
    """The list under `key`, empty if it is missing; errors as in `text_in`."""
    return _checked(data.get(key, _NO_ITEMS), list, key, "a list")


def dicts_in(data: Mapping[str, JsonValue], key: str) -> list[JsonObject]:
    """The list of objects under `key`, empty if it is missing; errors as in `text_in`."""
    return [_checked(item, dict, key, "an object") for item in list_in(data, key)]


_NOTHING = FrozenDict()
_NO_ITEMS = FrozenList()
