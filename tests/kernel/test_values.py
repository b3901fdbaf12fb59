"""Values: JSON goes in unchanged and read-only; anything else is refused where it enters, by name."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections import Counter, OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import (
    FnBody,
    JsonValue,
    Node,
    NotJson,
    Outcome,
    Plan,
    RunState,
    Scheduler,
    append,
    freeze,
    thaw,
)
from playground.kernel.values import MAX_DEPTH, dicts_in, int_in, list_in, text_in

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(value=JSON)
def test_json_comes_out_equal_and_of_the_same_types(value: Any) -> None:
    frozen = freeze(value)
    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert thaw(frozen) == value
    assert json.dumps(thaw(frozen)) == json.dumps(value)


@given(value=JSON)
def test_what_is_frozen_is_returned_as_it_is(value: Any) -> None:
    frozen = freeze(value)
    assert freeze(frozen) is frozen
    if isinstance(frozen, list):
        assert all(freeze(item) is item for item in frozen)


def test_a_frozen_value_does_not_change_with_what_it_was_made_of() -> None:
    inner = [1]
    value = {"inner": inner}
    frozen = freeze(value)
    inner.append(2)
    value["more"] = inner
    assert frozen == {"inner": [1]}


def unpickled(value: JsonValue) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@pytest.mark.parametrize("way", [thaw, copy.deepcopy, unpickled])
def test_a_copy_of_a_frozen_value_is_plain_and_ones_own(way: Callable[[Any], Any]) -> None:
    frozen = freeze({"xs": [{"n": 1}]})
    mine = way(frozen)
    mine["xs"][0]["n"] = 2
    mine["new"] = 1
    assert type(mine) is dict
    assert frozen == {"xs": [{"n": 1}]}


def test_a_shallow_copy_is_plain_and_its_parts_stay_read_only() -> None:
    frozen = freeze({"xs": [1]})
    mine = copy.copy(frozen)
    mine["new"] = 1
    with pytest.raises(TypeError, match="state is read-only: return the change as a state delta"):
        mine["xs"].append(2)


def test_kinds_of_dict_are_dicts() -> None:
    pairs = [("b", 1), ("a", 2)]
    for kind in (OrderedDict(pairs), dict(pairs), defaultdict(int, pairs), Counter(dict(pairs))):
        assert list(freeze(kind).items()) == pairs


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


ODD: dict[str, tuple[Any, str]] = {
    "NaN": (math.nan, "holds nan, which is not JSON: use None, or text"),
    "infinity": (-math.inf, "holds -inf"),
    "a tuple": ((1,), "holds (1,) of type tuple, which is not JSON: return a list"),
    "a set": ({1}, "holds {1} of type set, which is not JSON: return a sorted list"),
    "a frozenset": (frozenset({1}), "return a sorted list"),
    "bytes": (b"x", "holds b'x' of type bytes, which is not JSON: decode it, or send base64 text"),
    "a number as key": ({1: "x"}, "holds the key 1 of type int, which is not JSON: JSON keys are text"),
    "None as key": ({None: "x"}, "holds the key None of type NoneType"),
    "a lone surrogate": ("a\ud800", r"holds text with the lone surrogate '\ud800'"),
    "a lone surrogate in a key": ({"\udfff": 1}, "lone surrogate"),
    "an object": (
        object(),
        "of type object, which is not JSON: convert it to dicts",
    ),
    "a date": (datetime(2020, 1, 1, tzinfo=UTC), "of type datetime"),
    "an enum of text": (Colour.RED, "of type Colour"),
    "an enum of numbers": (Number.ONE, "of type Number"),
    "a mapping that is no dict": (UserDict(a=1), "of type UserDict"),
    "a function": (len, "of type builtin_function_or_method"),
    "a huge integer": (
        10**5000,
        "holds an integer of more than 3,900 digits",
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("deep", [False, True])
def test_what_json_cannot_carry_is_refused_with_its_place_and_the_way_out(name: str, deep: bool) -> None:
    """Case D09."""
    value, message = ODD[name]
    with pytest.raises(NotJson) as refused:
        freeze({"a": [0, {"b": value}]} if deep else value, "output of node ", "n")
    assert message in str(refused.value)
    assert str(refused.value).startswith("output of node n at ['a'][1]['b']" if deep else "output of node n")


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotJson, match=f"nested deeper than {MAX_DEPTH} levels.*: flatten it"):
        freeze(loop)


def test_values_may_nest_as_deep_as_the_limit_says() -> None:
    value: JsonValue = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert freeze(value) == value
    with pytest.raises(NotJson, match="nested deeper"):
        freeze([value])


def test_a_value_that_is_too_large_is_refused_before_it_is_copied_whole() -> None:
    with pytest.raises(NotJson, match="is larger than 100 bytes: keep large things in a file or a store"):
        freeze({"xs": ["x" * 50] * 3}, "output of node ", "n", limit=100)
    assert freeze("x" * 90, limit=100)


async def test_the_largest_value_is_the_schedulers_to_set() -> None:
    plan = Plan().add(Node("a", FnBody(lambda x: "x" * 200)))
    assert (await Scheduler(max_bytes=300).run(plan)).state is RunState.COMPLETED
    run = await Scheduler(max_bytes=100).run(plan)
    assert "output of node a is larger than 100 bytes" in run.final_output


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Outcome({"x": {1}}), "output of node a at ['x'] holds {1}"),
        (Outcome(None, {"xs": [{1}]}), "what node a wrote to channel xs at [0] holds {1}"),
        (Outcome.goto("a", {"x": {1}}), "payload of a Goto from node a at ['x'] holds {1}"),
        (Outcome.send("t", {"x": {1}}), "payload of a Send from node a at ['x'] holds {1}"),
    ],
)
async def test_whatever_a_node_hands_over_is_named_with_the_node_and_the_channel(
    outcome: Outcome, message: str
) -> None:
    plan = Plan({"xs": append()}).add(
        Node("a", FnBody(lambda x: outcome)), Node("t", FnBody(lambda x: x), template=True)
    )
    run = await Scheduler().run(plan)
    assert message in run.final_output
    assert run.shared["xs"] == []


def test_what_events_hold_is_read_by_type_and_a_wrong_one_is_named() -> None:
    data = freeze({"text": "a", "n": 1, "xs": ["a"], "ds": [{}]})
    assert (text_in(data, "text"), int_in(data, "n"), list_in(data, "xs")) == ("a", 1, ["a"])
    assert (list_in(data, "missing"), dicts_in(data, "ds")) == ([], [{}])
    for read, key, found in ((text_in, "n", "int"), (int_in, "text", "str"), (list_in, "text", "str")):
        with pytest.raises(TypeError, match=f"{key} is {found}"):
            read(data, key)
