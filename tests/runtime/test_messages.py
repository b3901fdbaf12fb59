"""A history can be cut anywhere between blocks, and loose ends are mended (cases D03, D11)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel.types import ToolCall
from playground.runtime.messages import (
    INTERRUPTED,
    MESSAGES,
    TOKENS,
    blocks,
    clipped,
    estimated_tokens,
    paired,
    shortened,
    text_of,
    tokens_by,
)


def asks(*ids):
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": i, "name": "t", "arguments": {}} for i in ids],
    }


def answers(call_id, content="done"):
    return {"role": "tool", "name": "t", "tool_call_id": call_id, "content": content}


USER = {"role": "user", "content": "hi"}


def test_a_call_whose_result_never_came_gets_one_that_says_so():
    stored = [USER, asks("c1"), {"role": "user", "content": "hi again"}]
    sent = paired(stored)
    assert sent[2] == {"role": "tool", "name": "t", "tool_call_id": "c1", "content": INTERRUPTED}
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert len(stored) == 3


def test_a_result_without_its_call_is_left_out():
    assert paired([answers("lost"), USER]) == [USER]


def test_results_move_up_to_their_call_in_the_order_of_the_calls():
    assert paired([asks("a", "b"), answers("b"), USER, answers("a")]) == [
        asks("a", "b"),
        answers("a"),
        answers("b"),
        USER,
    ]


def test_of_two_results_for_one_call_the_first_counts():
    assert paired([asks("a"), answers("a", "first"), answers("a", "second")]) == [
        asks("a"),
        answers("a", "first"),
    ]


def test_an_id_used_again_belongs_to_the_latest_call():
    history = [asks("a"), USER, asks("a"), USER, answers("a", "late")]
    assert [message.get("content") for message in paired(history)] == [
        "",
        INTERRUPTED,
        "hi",
        "",
        "late",
        "hi",
    ]


def test_calls_without_ids_are_answered_in_order():
    call = {"role": "assistant", "content": "", "tool_calls": [ToolCall("f", {"n": 1}), ToolCall("g", {})]}
    results = [
        {"role": "tool", "name": "f", "content": "1"},
        {"role": "tool", "name": "g", "content": "2"},
    ]
    assert paired([call, *results]) == [call, *results]
    assert blocks([USER, call, *results]) == [[USER], [call, *results]]


def test_a_result_without_an_id_gets_that_of_its_call():
    sent = paired([asks("a"), {"role": "tool", "name": "t", "content": "x"}])
    assert sent[1] == {"role": "tool", "name": "t", "tool_call_id": "a", "content": "x"}


def test_calls_in_the_shape_of_the_wire_are_paired_too():
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "w", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert paired([call]) == [
        call,
        {"role": "tool", "name": "f", "tool_call_id": "w", "content": INTERRUPTED},
    ]


ids = st.sampled_from(["a", "b", "c"])
pieces = st.one_of(
    st.just(USER),
    st.builds(answers, ids),
    st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda found: asks(*found)),
)


@given(st.lists(pieces, max_size=14))
def test_whatever_comes_in_each_call_has_one_result_right_behind_it(history):
    sent = paired(history)
    expected = Counter()
    for message in sent:
        if message["role"] == "tool":
            assert expected[message["tool_call_id"]] == 1
            expected[message["tool_call_id"]] -= 1
        else:
            assert not +expected
            expected = Counter(call["id"] for call in message.get("tool_calls", ()))
    assert not +expected
    assert [m for m in sent if m["role"] != "tool"] == [m for m in history if m["role"] != "tool"]


@given(st.lists(pieces, max_size=14))
def test_mending_what_is_mended_changes_nothing(history):
    assert paired(paired(history)) == paired(history)


@given(st.text(max_size=400), st.integers(1, 300))
def test_a_shortened_text_is_never_longer_than_asked_and_a_short_one_stays(text, limit):
    short = shortened(text, limit)
    assert len(short) <= limit
    assert short == text or len(text) > limit


def test_a_shortened_text_keeps_both_ends_and_says_what_is_missing():
    short = shortened("A" * 500 + "B" * 500, 200)
    assert short.startswith("AAAA")
    assert short.endswith("BBBB")
    assert "800 characters left out" in short


def test_shortening_twice_leaves_one_mark():
    assert shortened(shortened("x" * 5_000, 400), 200).count("left out") == 1


def test_clipping_reaches_content_parts_and_arguments_and_leaves_the_original_alone():
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "t" * 999}, {"type": "image_url", "image_url": "u" * 999}],
        "tool_calls": [
            {"id": "a", "name": "write", "arguments": {"text": "x" * 999, "lines": ["y" * 999, 3]}}
        ],
    }
    short = clipped(message, 100)
    assert len(short["content"][0]["text"]) == 100
    assert short["content"][1] == message["content"][1]
    shorter = short["tool_calls"][0]["arguments"]
    assert len(shorter["text"]) == len(shorter["lines"][0]) == 100
    assert shorter["lines"][1] == 3
    assert len(message["tool_calls"][0]["arguments"]["text"]) == 999


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("The quick brown fox jumps over the lazy dog while the engineers review the quarterly report.", 17),
        ("今天天气很好，我们去公园散步吧。订单已经退款，请在三个工作日内查收。", 30),
        ("用户对芒果过敏 (mango allergy), 订单 123 已发货。", 21),
        ("def ready(self, run):\n    return [node for node in self.nodes if node.incoming]\n", 20),
    ],
)
def test_the_estimate_is_near_what_tokenizers_say(text, tokens):
    assert estimated_tokens(text) == pytest.approx(tokens, rel=0.4)


def test_a_tokenizer_of_yours_counts_content_and_calls():
    words = tokens_by(lambda text: len(text.split()))
    assert words.unit == "tokens"
    assert (
        words.total([{"role": "user", "content": "one two three"}])
        - words.total([{"role": "user", "content": ""}])
        == 3
    )
    assert words.total([asks("a")]) > words.total([{"role": "assistant", "content": ""}])


def test_a_picture_counts_as_a_picture_not_as_its_data():
    picture = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:" + "A" * 400_000}}],
    }
    assert TOKENS.total([picture]) < 2_000
    assert MESSAGES.total([picture]) == 1


def test_the_text_of_a_message_tells_its_calls():
    assert text_of(asks("a")) == "t({})"
    assert text_of(
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}]}
    ) == ("look\n[attachment]")
