"""Channels: how several nodes may write one piece of state without a race.

Nodes of a wave run side by side, so `state[key] = value` would depend on who
finishes first.  Instead each key is declared as a channel with a reducer, a
pure function `(old, new) -> merged`, and the engine folds a wave's writes in
plan order when all of them are in.  The same four letters of the plan then
always give the same state, and folding the log again gives it once more.

The reducers come from the channels of Pregel-like systems (LangGraph names
them likewise); the *wave delta*, folded from the reducer's identity, is what
the log records, so a replay counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from playground.kernel.values import (
    NO_LIMIT,
    FrozenDict,
    FrozenList,
    GrowingDict,
    GrowingList,
    JsonObject,
    JsonValue,
    freeze,
)

Reducer: TypeAlias = Callable[[JsonValue, JsonValue], JsonValue]


_NUMBER = (int, float)


def _last(_old: JsonValue, new: JsonValue) -> JsonValue:
    return new


def _append(old: JsonValue, new: JsonValue) -> JsonValue:
    merged = list(old) if isinstance(old, list) else []
    if isinstance(new, list):
        merged.extend(new)
    else:
        merged.append(new)
    return merged


def _add(old: JsonValue, new: JsonValue) -> JsonValue:
    old, new = old or 0, new or 0
    if not isinstance(old, _NUMBER) or not isinstance(new, _NUMBER):
        raise TypeError(f"an add channel takes numbers, not {type(new).__name__}")
    return old + new


def _merge(old: JsonValue, new: JsonValue) -> JsonValue:
    if not isinstance(new, dict):
        raise TypeError(f"a merge channel takes a dict, not {type(new).__name__}")
    return {**old, **new} if isinstance(old, dict) else dict(new)


_PLAIN = frozenset((_append, _add, _merge))
"""Reducers whose identity leaves a value of their own type as it is."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One declared piece of state.

    Args:
        init: the value before anyone wrote; each run gets a copy of its own.
        reducer: pure function `(old, new) -> merged` over JSON values.
        allow_multi: whether several nodes may write it in one wave.
        empty: the reducer's identity, from which a wave's writes are folded first.
        dtype: if given, a write of another type fails the node that made it.
        name: the reducer's name, that of the function by default.
    """

    init: JsonValue
    reducer: Reducer
    allow_multi: bool = True
    empty: JsonValue = None
    dtype: type | None = None
    name: str = ""
    picky: bool = field(init=False, repr=False, compare=False)
    """Whether there are values that it does not take."""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", str(getattr(self.reducer, "__name__", "custom")).lstrip("_"))
        object.__setattr__(self, "picky", self.dtype is not None or self.reducer in (_add, _merge))

    def initial(self) -> JsonValue:
        """The value a new run starts with: checked, and shared with nobody."""
        return self.own(freeze(self.init, "initial value of a channel of kind ", self.name))

    def own(self, value: JsonValue) -> JsonValue:
        """`value` as a run may keep it: append and merge channels grow in place, so they need their own."""
        if self.reducer is _append and isinstance(value, list):
            return GrowingList(value)
        if self.reducer is _merge and isinstance(value, dict):
            return GrowingDict(value)
        return value

    def fold(self, old: JsonValue, new: JsonValue) -> JsonValue:
        """`old` with `new` merged in; neither is changed."""
        if self.reducer is _last:
            return new
        return freeze(self.reducer(old, new), "result of the reducer ", self.name, limit=NO_LIMIT)

    def lift(self, value: JsonValue) -> JsonValue:
        """One write as a wave delta, folded from the identity."""
        if self.reducer is _last or (type(value) is type(self.empty) and self.reducer in _PLAIN):
            return value
        return self.fold(self.empty, value)

    def fold_on(self, lifted: JsonValue, values: Iterable[JsonValue]) -> JsonValue:
        """A lifted write and the writes of further nodes as one wave delta; it grows in place if it can."""
        folded = self.own(lifted)
        for value in values:
            new = self.lift(value)
            folded = grow(folded, new) if grows(folded, new) else self.fold(folded, new)
        return folded


def grows(old: JsonValue, new: JsonValue) -> bool:
    """Whether `old` is a channel's own list or dict, and `new` what it can take in place."""
    return (type(old) is GrowingList and isinstance(new, FrozenList)) or (
        type(old) is GrowingDict and isinstance(new, FrozenDict)
    )


def grow(old: JsonValue, new: JsonValue) -> JsonValue:
    """`old`, with `new` taken in place."""
    if isinstance(old, list) and isinstance(new, list):
        list.extend(old, new)
    elif isinstance(old, dict) and isinstance(new, dict):
        dict.update(old, new)
    return old


def last(init: JsonValue = None, *, dtype: type | None = None) -> Channel:
    """A single value; two writers in one wave are an error."""
    return Channel(init, _last, allow_multi=False, dtype=dtype)


def append(init: JsonValue = None, *, dtype: type | None = None) -> Channel:
    """A list that grows: messages, findings.  A list extends it, anything else is one more item."""
    return Channel(init if init is not None else [], _append, empty=FrozenList(), dtype=dtype)


def add(init: JsonValue = 0, *, dtype: type | None = None) -> Channel:
    """A number that is added to: costs, counters."""
    return Channel(init, _add, empty=0, dtype=dtype)


def merge(init: JsonValue = None, *, dtype: type | None = None) -> Channel:
    """A dict that is updated, one level deep."""
    return Channel(init if init is not None else {}, _merge, empty=FrozenDict(), dtype=dtype)


@dataclass(frozen=True, slots=True)
class Reset:
    """In a state delta: replace the channel's value instead of folding into it."""

    value: object = None


class AmbiguousWrite(RuntimeError):
    """Several nodes of one wave wrote what only one may write."""


class FoldError(ValueError):
    """A reducer refused what was written, or the result is no value: it names the channel and who wrote."""


class Write(NamedTuple):
    """One node's write to one channel."""

    key: str
    value: JsonValue
    writer: str
    reset: bool = False


def check_write(
    channel: Channel | None, key: str, value: JsonValue, writer: str, known: Iterable[str] = ()
) -> None:
    """Refuse a write that its channel cannot take.

    Raises:
        KeyError: nobody declared the channel.
        TypeError: the value is not of the channel's `dtype`, or not of a type that its reducer folds.
    """
    if channel is None:
        names = ", ".join(known) or "none"
        raise KeyError(
            f"node {writer!r} wrote to the undeclared channel {key!r}: declare it (the plan has {names})"
        )
    if channel.dtype is not None and not isinstance(value, channel.dtype):
        raise TypeError(
            f"node {writer!r} wrote {type(value).__name__} to channel {key!r}, "
            f"which takes {channel.dtype.__name__}"
        )
    if channel.reducer is _add or channel.reducer is _merge:
        try:
            channel.reducer(channel.empty, value)
        except TypeError as error:
            raise TypeError(f"node {writer!r} wrote to channel {key!r}: {error}") from None


class WaveWrites:
    """The writes of one wave, in plan order, on their way into the state."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels
        self._by_channel: dict[str, list[tuple[JsonValue, str, bool]]] = {}

    def buffer(self, key: str, value: JsonValue, writer: str, *, reset: bool = False) -> None:
        """Take one write.

        Raises:
            KeyError, TypeError: see `check_write`.
        """
        check_write(self._channels.get(key), key, value, writer, self._channels)
        self.take({key: value}, writer, reset=reset)

    def take(self, writes: Mapping[str, JsonValue], writer: str, *, reset: bool = False) -> None:
        """Take what one node wrote, once it has been checked."""
        for key, value in writes.items():
            if key in self._by_channel:
                self._by_channel[key].append((value, writer, reset))
            else:
                self._by_channel[key] = [(value, writer, reset)]

    def check_ambiguous(self) -> None:
        """Refuse writes whose order would matter.

        Raises:
            AmbiguousWrite: naming the channel and its writers.
        """
        for key, writes in self._by_channel.items():
            if len(writes) > 1 and (
                not self._channels[key].allow_multi or any(reset for _, _, reset in writes)
            ):
                writers = " and ".join(repr(writer) for _, writer, _ in writes)
                raise AmbiguousWrite(
                    f"channel {key!r} was written by {writers} in one wave: let one of them write it, "
                    "or give it a reducer that takes several (append, add, merge)"
                )

    def drain(self) -> list[Write]:
        """The writes taken so far, channel by channel; the buffer is empty afterwards."""
        drained = [Write(key, *write) for key, writes in self._by_channel.items() for write in writes]
        self._by_channel.clear()
        return drained

    def folded(self) -> JsonObject:
        """The writes as one wave delta: `delta`, `writers` and `reducers` by channel, and `reset` if any.

        Raises:
            FoldError: a reducer cannot fold what it was given.
        """
        delta: JsonObject = {}
        resets: JsonObject = {}
        writers: JsonObject = {}
        reducers: JsonObject = {}
        for key, writes in self._by_channel.items():
            channel = self._channels[key]
            value, _, reset = writes[0]
            reducers[key] = channel.name
            writers[key] = FrozenList([writer for _, writer, _ in writes])
            if reset:
                resets[key] = value
                continue
            try:
                delta[key] = channel.lift(value)
                if len(writes) > 1:
                    delta[key] = channel.fold_on(delta[key], [new for new, _, _ in writes[1:]])
            except Exception as error:
                raise fold_error(key, writers[key], error) from error
        found: JsonObject = {
            "delta": FrozenDict(delta),
            "writers": FrozenDict(writers),
            "reducers": FrozenDict(reducers),
        }
        if resets:
            found["reset"] = FrozenDict(resets)
        return found


def fold_into_state(
    channels: Callable[[str], Channel],
    shared: dict[str, JsonValue],
    delta: Mapping[str, JsonValue],
    writers: Mapping[str, JsonValue],
) -> None:
    """Fold a wave delta into a run's state, all of it or nothing.

    Raises:
        FoldError: a reducer refused.
    """
    folded: dict[str, JsonValue] = {}
    growing: list[str] = []
    for key, new in delta.items():
        channel, old = channels(key), shared.get(key)
        if grows(old, new):
            growing.append(key)
            continue
        try:
            folded[key] = channel.fold(old, new)
        except Exception as error:
            raise fold_error(key, writers.get(key), error) from error
    for key in growing:
        grow(shared[key], delta[key])
    shared.update(folded)


def fold_error(key: str, writers: JsonValue, error: Exception) -> FoldError:
    """What to say when a reducer refuses."""
    names = " and ".join(repr(writer) for writer in writers) if isinstance(writers, list) else "a node"
    return FoldError(
        f"channel {key!r} cannot fold what {names} wrote ({type(error).__name__}: {error}): "
        "write what its reducer takes, or mend the reducer"
    )
