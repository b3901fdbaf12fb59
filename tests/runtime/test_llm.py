"""The scripted model, and how arguments that a model wrote are read."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel.ports import LlmReply, Message, ModelError
from playground.kernel.types import ToolCall
from playground.kernel.values import JsonValue, freeze
from playground.runtime.llm import UNREADABLE, ScriptedLlm, read_arguments

USER: Message = {"role": "user", "content": "hi"}
ASSISTANT: Message = {"role": "assistant", "content": "hello"}


async def test_each_form_of_an_entry_becomes_a_whole_reply() -> None:
    search = ToolCall("search", {"query": "a"})
    model = ScriptedLlm(["text", search, [search, search], LlmReply("as it is", (), 7), lambda _: "made"])
    replies = [await model.chat([USER]) for _ in range(5)]
    assert [reply.text for reply in replies] == ["text", "", "", "as it is", "made"]
    assert [[call.name for call in reply.tool_calls] for reply in replies] == [
        [],
        ["search"],
        ["search", "search"],
        [],
        [],
    ]
    assert replies[3].tokens == 7


async def test_an_exception_in_the_script_is_raised() -> None:
    with pytest.raises(ValueError, match="boom"):
        await ScriptedLlm([ValueError("boom")]).chat([USER])


async def test_a_function_in_the_script_is_given_the_messages() -> None:
    def echo(messages: Sequence[Message]) -> str:
        return f"you said {messages[-1]['content']}"

    assert (await ScriptedLlm([echo]).chat([USER])).text == "you said hi"


async def test_calls_of_a_script_have_ids_that_are_the_same_each_time() -> None:
    calls = [ToolCall("a"), ToolCall("b"), ToolCall("c", call_id="mine"), ToolCall("d", call_id="mine")]
    first = await ScriptedLlm(["", calls]).chat_at(1, [USER])
    second = await ScriptedLlm(["", calls]).chat_at(1, [USER])
    ids = [call.call_id for call in first.tool_calls]
    assert ids == [call.call_id for call in second.tool_calls]
    assert len(set(ids)) == 4
    assert ids[2] == "mine"


async def test_in_a_run_the_place_is_the_runs_so_a_new_object_goes_on_where_the_old_one_was() -> None:
    script = ["first", "second", "third"]
    heard = [(await ScriptedLlm(script).chat_at(turn, [USER])).text for turn in range(3)]
    assert heard == script


async def test_replies_in_the_history_count_where_they_are_more_than_the_runs_own() -> None:
    model = ScriptedLlm(["first", "second", "third"])
    assert (await model.chat_at(0, [USER, ASSISTANT, USER])).text == "second"
    assert (await model.chat_at(2, [USER, ASSISTANT, USER])).text == "third"


async def test_one_object_serves_runs_side_by_side() -> None:
    model = ScriptedLlm(["first", "second"])
    assert (await model.chat_at(1, [USER])).text == "second"
    assert (await model.chat_at(0, [USER])).text == "first"


@given(st.lists(st.tuples(st.sampled_from(["grow", "cut", "new"]), st.integers(0, 5))))
async def test_replies_are_counted_right_however_the_history_changes(steps: list[tuple[str, int]]) -> None:
    model = ScriptedLlm([str(number) for number in range(100)])
    history: list[Message] = [USER]
    for step, number in steps:
        if step == "grow":
            history += [ASSISTANT, USER][: number % 3]
        elif step == "cut":
            history = history[number:] or [USER]
        else:
            history = [dict(ASSISTANT) for _ in range(number)] + [USER]
        expected = sum(message["role"] == "assistant" for message in history)
        assert (await model.chat_at(0, history)).text == str(expected)


class CountingList(list[Message]):
    reads = 0

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        self.reads += 1
        return super().__getitem__(index)


async def test_a_late_turn_reads_no_more_of_the_history_than_an_early_one() -> None:
    model = ScriptedLlm(["x"] * 2_002)
    history = CountingList([USER])
    reads = []
    for turn in range(2_000):
        history.extend([ASSISTANT, USER])
        history.reads = 0
        await model.chat_at(turn, history)
        reads.append(history.reads)
    assert max(reads[1:]) == reads[1]


async def test_outside_a_run_the_object_counts_its_calls() -> None:
    model = ScriptedLlm(["first", "second"])
    assert [(await model.chat([USER, ASSISTANT])).text for _ in range(2)] == ["first", "second"]


async def test_past_the_end_of_the_script_the_error_says_so_and_what_to_do() -> None:
    model = ScriptedLlm(["only"])
    await model.chat([USER])
    with pytest.raises(ModelError, match="has 1 entries and this is call 2: add an entry") as caught:
        await model.chat([USER])
    assert caught.value.asked == "entry 2 of a script"
    assert "add an entry" in caught.value.todo


@pytest.mark.parametrize("entry", [3, None, [], ["text"], {"text": "x"}, lambda _: 3])
async def test_an_entry_of_another_type_is_refused_by_its_number(entry: object) -> None:
    with pytest.raises(TypeError, match="entry 2 of the script is a"):
        await ScriptedLlm(["fine", entry]).chat_at(1, [USER])  # type: ignore[list-item]


@given(st.text(), st.text())
async def test_what_streams_adds_up_to_what_is_returned(text: str, reasoning: str) -> None:
    heard: list[tuple[str, str]] = []
    reply = await ScriptedLlm([LlmReply(text, reasoning=reasoning)]).chat(
        [USER], on_delta=lambda piece, kind: heard.append((kind, piece))
    )
    assert "".join(piece for kind, piece in heard if kind == "content") == reply.text == text
    assert "".join(piece for kind, piece in heard if kind == "reasoning") == reply.reasoning == reasoning
    assert all(0 < len(piece.strip()) <= 8 or not piece.strip() for _, piece in heard)


async def test_reasoning_streams_before_the_text_and_in_small_pieces() -> None:
    heard: list[tuple[str, str]] = []

    async def listen(piece: str, kind: str) -> None:
        heard.append((kind, piece))

    await ScriptedLlm([LlmReply("two words", reasoning="first")]).chat([USER], on_delta=listen)
    assert heard == [("reasoning", "first"), ("content", "two "), ("content", "words")]


async def test_a_delay_is_waited_before_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("asyncio.sleep", sleep)
    await ScriptedLlm(["two words"], delay=0.25).chat([USER], on_delta=lambda *_: None)
    assert waited == [0.25, 0.25]


@pytest.mark.parametrize("text", ["", "  \n", "{}", " {} "])
def test_no_text_and_an_empty_object_mean_no_arguments(text: str) -> None:
    assert read_arguments(text) == ({}, "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":', "not valid JSON"),
        ("null", "they are null"),
        ("[1]", "they are a list"),
        ('"x"', "they are a text"),
        ("true", "they are true or false"),
        ("1.5", "they are a number"),
        ('{"a":1}{"a":2}', "not valid JSON"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1e999}', "inf"),
        ('{"a": "\\ud83d"}', "lone surrogate"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested deeper than"),
    ],
)
def test_arguments_that_are_no_json_object_keep_their_text_and_are_never_empty(
    text: str, problem: str
) -> None:
    """Case D32, the parsing part."""
    arguments, found = read_arguments(text)
    assert problem in found
    assert text[:100] in found
    assert str(arguments[UNREADABLE]).startswith(text[:1_000])


def test_of_a_long_unreadable_text_only_the_start_is_kept() -> None:
    arguments, problem = read_arguments('{"a": "' + "x" * 5_000_000)
    assert len(str(arguments[UNREADABLE])) < 1_100
    assert len(problem) < 300
    assert "5,000,007 characters" in problem


@pytest.mark.parametrize("text", ["", '{"path":"/a","text":"hel'])
def test_in_a_reply_that_hit_its_limit_even_no_text_is_a_call_that_was_cut_off(text: str) -> None:
    """Case D19, the parsing part."""
    arguments, problem = read_arguments(text, cut=True)
    assert arguments == {UNREADABLE: text}
    assert "cut off" in problem
    assert read_arguments('{"a":1}', cut=True) == ({"a": 1}, "")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_every_json_object_is_read_as_itself(value: dict[str, JsonValue]) -> None:
    assert read_arguments(json.dumps(value)) == (value, "")


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_read_as_an_object_or_as_a_problem_and_both_fit_into_a_log(text: str) -> None:
    read = read_arguments(text)
    assert freeze(list(read)) == list(read)
