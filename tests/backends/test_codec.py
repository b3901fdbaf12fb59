"""JSON texts read in one go are read as each alone would be."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from playground.backends.codec import decode, decode_all
from playground.kernel.values import FrozenDict, FrozenList

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
PIECES = st.sampled_from(
    ["", " ", "{}", "[", "]", "[1", "2]", "{}, {", "}", '{"a":1', '"b":2}', "NaN", '"\\ud800"']
)


def one_by_one(texts: list[str]) -> object:
    try:
        return [decode(text) for text in texts]
    except ValueError as error:
        return str(error)


def in_one_go(texts: list[str]) -> object:
    try:
        return decode_all(texts)
    except ValueError as error:
        return str(error)


@given(
    st.lists(
        VALUES.map(json.dumps) | VALUES.map(lambda value: json.dumps(value, ensure_ascii=False)) | PIECES
    )
)
@example(['{},{"a":1', '"b":2}'])
@example(["[],[1", "2]"])
def test_texts_read_in_one_go_are_what_each_is_alone(texts: list[str]) -> None:
    assert in_one_go(texts) == one_by_one(texts)


def test_what_is_read_in_one_go_is_frozen_to_its_depth() -> None:
    first, second = decode_all(['{"a":[{"b":[]}]}', "[[1]]"])

    assert isinstance(first, FrozenDict)
    assert isinstance(first["a"], FrozenList)
    assert isinstance(second, FrozenList)
    assert isinstance(second[0], FrozenList)
