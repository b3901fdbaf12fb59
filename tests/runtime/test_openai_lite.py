"""The client against a real service on the loopback: what it asks, and which answers it takes for whole."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.kernel.ports import LlmReply, Message, ModelError
from playground.kernel.types import ToolCall
from playground.kernel.values import JsonValue, freeze
from playground.runtime.llm import UNREADABLE, ScriptedLlm
from playground.runtime.openai_lite import OpenAICompatibleLlm
from tests.runtime.protocol_server import (
    DONE,
    SILENCE,
    Answer,
    ProtocolServer,
    calling,
    chunk,
    event,
    respond,
    saying,
    served,
    speaking,
    stream,
    usage,
    whole,
)

USER: Message = {"role": "user", "content": "hi"}
KEY = "sk-secret-0123456789"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Waits:
    """Instead of sleeping: notes for how long, and returns at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Listener:
    """Hears a reply while it streams."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def __call__(self, text: str, kind: str) -> None:
        self.heard.append((text, kind))

    def all(self, kind: str) -> str:
        return "".join(text for text, heard in self.heard if heard == kind)


def client(server: ProtocolServer, **options: object) -> OpenAICompatibleLlm:
    """A client that never really waits."""
    given = {"api_key": KEY, "model": "m", "sleep": Waits(), **options}
    return OpenAICompatibleLlm(base_url=server.url, **given)  # type: ignore[arg-type]


async def ask(answer: Answer, messages: Sequence[Message] = (USER,), **options: object) -> LlmReply:
    """The reply to one answer, asked for once."""
    async with ProtocolServer(answer) as server:
        return await client(server, retries=0, **options).chat(messages)


async def failing(answer: Answer, messages: Sequence[Message] = (USER,), **options: object) -> ModelError:
    """The error that one answer causes."""
    with pytest.raises(ModelError) as caught:
        await ask(answer, messages, **options)
    return caught.value


# What comes back from an honest service.


async def test_text_streams_and_comes_back_whole_with_its_cost() -> None:
    listener = Listener()
    async with ProtocolServer(
        stream([event(chunk("Hel")), event(chunk("lo")), event(chunk(finish="stop")), event(usage(9)), DONE])
    ) as server:
        reply = await client(server).chat([USER], on_delta=listener)
    assert reply == LlmReply("Hello", (), 9)
    assert listener.heard == [("Hel", "content"), ("lo", "content")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_shown_and_kept_apart_from_the_text(field: str) -> None:
    listener = Listener()
    answer = stream(
        [
            event(chunk(**{field: "hm, "})),
            event(chunk(**{field: "yes"})),
            event(chunk("42")),
            event(chunk(finish="stop")),
            DONE,
        ]
    )
    async with ProtocolServer(answer) as server:
        reply = await client(server).chat([USER], on_delta=listener)
    assert (reply.text, reply.reasoning) == ("42", "hm, yes")
    assert (listener.all("content"), listener.all("reasoning")) == ("42", "hm, yes")


async def test_reasoning_that_a_service_sends_under_both_names_is_kept_once() -> None:
    answer = stream(
        [event(chunk(reasoning="hm", reasoning_content="hm")), event(chunk("42", finish="stop")), DONE]
    )
    assert (await ask(answer)).reasoning == "hm"


async def test_a_listener_may_be_a_coroutine_function() -> None:
    heard: list[str] = []

    async def listen(text: str, kind: str) -> None:
        heard.append(f"{kind}: {text}")

    async with ProtocolServer(saying("hello")) as server:
        await client(server).chat([USER], on_delta=listen)
    assert heard == ["content: hello"]


async def test_what_a_listener_raises_reaches_the_caller_and_nothing_is_asked_again() -> None:
    def listen(text: str, kind: str) -> None:
        raise TimeoutError("my own")

    async with ProtocolServer(saying("hello")) as server:
        with pytest.raises(TimeoutError, match="my own"):
            await client(server).chat([USER], on_delta=listen)
    assert len(server.requests) == 1


async def test_a_service_that_answers_in_one_piece_is_understood_as_well() -> None:
    listener = Listener()
    body = whole({"role": "assistant", "content": "hello", "reasoning_content": "hm"}) | {
        "usage": {"total_tokens": 5}
    }
    async with ProtocolServer(respond(200, body)) as server:
        reply = await client(server).chat([USER], on_delta=listener)
    assert reply == LlmReply("hello", (), 5, "hm")
    assert listener.heard == [("hm", "reasoning"), ("hello", "content")]


async def test_content_in_parts_is_the_text_of_its_text_parts() -> None:
    parts: JsonValue = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert (await ask(respond(200, whole({"content": parts})))).text == "ab"


async def test_of_several_choices_the_first_is_taken() -> None:
    both: JsonValue = {
        "choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]
    }
    assert (await ask(stream([event(both), event(chunk(finish="stop")), DONE]))).text == "yes"


async def test_a_compressed_stream_is_read() -> None:
    packed = gzip.compress(event(chunk("你好")) + event(chunk(finish="stop")) + DONE)
    answer = stream([packed[:20], packed[20:]], content_encoding="gzip")
    assert (await ask(answer)).text == "你好"


async def test_a_stream_is_utf8_whatever_its_header_says_and_may_begin_with_a_byte_order_mark() -> None:
    answer = stream(
        [b"\xef\xbb\xbf" + event(chunk("é")), event(chunk(finish="stop")), DONE],
        "text/event-stream; charset=latin-1",
    )
    assert (await ask(answer)).text == "é"


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
async def test_a_stream_may_be_cut_between_any_two_bytes(newline: bytes) -> None:
    wire = b"".join([event(chunk("我🙂")), b": ping\n\n", event(chunk(finish="stop")), event(usage(3)), DONE])
    wire = wire.replace(b"\n", newline)
    listener = Listener()
    async with ProtocolServer(stream(wire[i : i + 1] for i in range(len(wire)))) as server:
        reply = await client(server).chat([USER], on_delta=listener)
    assert reply == LlmReply("我🙂", (), 3)
    assert listener.all("content") == "我🙂"


async def test_a_sign_that_comes_as_two_halves_is_shown_as_one() -> None:
    halves = [
        rb'data: {"choices":[{"delta":{"content":"a\ud83d"}}]}',
        rb'data: {"choices":[{"delta":{"content":"\ude42b"}}]}',
    ]
    listener = Listener()
    async with ProtocolServer(
        stream([*(half + b"\n\n" for half in halves), event(chunk(finish="stop")), DONE])
    ) as server:
        reply = await client(server).chat([USER], on_delta=listener)
    assert reply.text == "a🙂b"
    assert [text for text, _ in listener.heard] == ["a", "🙂b"]


async def test_half_a_sign_becomes_a_replacement_sign_since_a_log_takes_no_halves() -> None:
    lonely = rb'data: {"choices":[{"delta":{"content":"a\ud83d"},"finish_reason":"stop"}]}' + b"\n\n"
    assert (await ask(stream([lonely, DONE]))).text == "a\ufffd"


async def test_keep_alive_comments_and_empty_events_are_passed_over() -> None:
    """Case D45."""
    noise = b': ping\n\n:\nevent: ping\ndata: \n\nevent: ping\ndata: {"type":"ping"}\n\n'
    answer = stream(
        [noise, event(chunk("a")), noise, event(chunk("b")), noise, event(chunk(finish="stop")), noise, DONE]
    )
    assert (await ask(answer)).text == "ab"


async def test_chunks_without_choices_do_no_harm_and_usage_counts_once() -> None:
    """Case D55."""
    odd: list[JsonValue] = [
        {"choices": []},
        {"choices": None},
        {"id": "x"},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
    ]
    costs = {"usage": {"total_tokens": 5}}
    ends = [event(chunk(finish="stop")), event({"choices": None, **costs}), event(chunk() | {"usage": None})]
    answer = stream([*map(event, odd), event(chunk("hi") | costs), *map(event, odd), *ends, DONE])
    assert await ask(answer) == LlmReply("hi", (), 5)


@pytest.mark.parametrize(
    "counted",
    [
        {"prompt_tokens": 3, "completion_tokens": 4},
        {"total_tokens": 7},
        {"total_tokens": 7, "prompt_tokens": None},
    ],
)
async def test_tokens_are_the_total_or_the_sum_of_both_sides(counted: JsonValue) -> None:
    assert (await ask(respond(200, whole({"content": "x"}) | {"usage": counted}))).tokens == 7


@pytest.mark.parametrize("counted", [None, "7", {"total_tokens": "7"}, {"total_tokens": -7}, []])
async def test_a_cost_that_is_no_number_is_no_cost(counted: JsonValue) -> None:
    assert (await ask(respond(200, whole({"content": "x"}) | {"usage": counted}))).tokens == 0


@pytest.mark.parametrize(
    "ending", [[event(chunk(finish="stop"))], [DONE], [event(chunk(finish="stop")), b"data: [DO"]]
)
async def test_a_reply_is_whole_once_the_service_has_said_so_in_either_way(ending: list[bytes]) -> None:
    assert (await ask(stream([event(chunk("hello")), *ending]))).text == "hello"


async def test_a_connection_that_breaks_behind_the_end_of_a_reply_does_no_harm() -> None:
    assert (
        await ask(stream([event(chunk("hello")), event(chunk(finish="stop"))], end=False))
    ).text == "hello"


# Tool calls.


def function(name: str | None = None, arguments: JsonValue = None, **more: JsonValue) -> dict[str, JsonValue]:
    """One tool-call delta with the fields that are given."""
    inner = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    return {"function": inner, **more}


AB = [("c1", "f", {"a": 1}), ("c2", "g", {})]


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        pytest.param(
            [
                function("f", '{"a"', index=0, id="c1"),
                function(None, ":1}", index=0),
                function("g", "{}", index=1, id="c2"),
            ],
            AB,
            id="as the protocol has it",
        ),
        pytest.param(
            [function("f", '{"a"', id="c1"), function(None, ":1}"), function("g", "{}", id="c2")],
            AB,
            id="no index (case D18)",
        ),
        pytest.param(
            [
                function("f", "", index=0, id="c1"),
                function("g", "", index=1, id="c2"),
                function(None, "{}", index=1),
                function(None, '{"a":1}', index=0),
            ],
            AB,
            id="interleaved by index",
        ),
        pytest.param(
            [
                function("f", '{"a"', id="c1"),
                function("g", "{", id="c2"),
                function(None, ":1}", id="c1"),
                function(None, "}", id="c2"),
            ],
            AB,
            id="interleaved by id",
        ),
        pytest.param(
            [function("f", '{"a":1}', index=0, id="c1"), function("g", "{}", index=0, id="c2")],
            AB,
            id="every index 0",
        ),
        pytest.param(
            [function("f", "{}", index=0), function("g", "{}", index=0), function("g", "{}", index=0)],
            [("call_0_0", "f", {}), ("call_0_1", "g", {}), ("call_0_2", "g", {})],
            id="every index 0 and no id",
        ),
        pytest.param(
            [
                function("f", "{}", index=0, id="c1"),
                function("f", "", index=0, id="c2"),
                function(None, '{"a":1}', index=0),
            ],
            [("c1", "f", {}), ("c2", "f", {"a": 1})],
            id="every index 0 and the same tool",
        ),
        pytest.param(
            [function("f", ""), function("g", "")],
            [("call_0_0", "f", {}), ("call_0_1", "g", {})],
            id="neither index nor id nor arguments",
        ),
        pytest.param(
            [function("f", '{"a"', id="c1"), function(None, ":1}", id="x"), function("g", "{}", id="c2")],
            AB,
            id="a new id in every piece",
        ),
        pytest.param(
            [
                function("f", '{"a":{"b":{}', index=0),
                function("f", "}", index=0),
                function("f", "}", index=0),
            ],
            [("call_0_0", "f", {"a": {"b": {}}})],
            id="the name in every piece and no id",
        ),
        pytest.param(
            [
                function("f", '{"a"', index=7, id="c1"),
                function("f", ":1}", index=7, id="c1"),
                function("g", "", index=9, id="c2"),
            ],
            AB,
            id="name and id in every piece",
        ),
        pytest.param(
            [
                function("f", "", index=0),
                function(None, '{"a":1}', index=0, id="c1"),
                function("g", "{}", index=1, id="c2"),
            ],
            AB,
            id="id later than the name",
        ),
        pytest.param(
            [function("f", {"a": 1}, index=0, id="c1"), function("g", {}, index=1, id="c2")],
            AB,
            id="arguments as objects (case D34)",
        ),
        pytest.param(
            [
                function("f", '{"a":1}', index=0, id="c1"),
                function("f", "", index=0),
                function("g", "", index=1, id="c2"),
            ],
            AB,
            id="an empty last piece",
        ),
        pytest.param(
            [{}, function(), function("f", '{"a":1}', index=0, id="c1"), function("g", index=1, id="c2")],
            AB,
            id="empty deltas",
        ),
        pytest.param(
            [function("get_", "", index=0, id="c"), function("time", "{}", index=0)],
            [("c", "get_time", {})],
            id="a name in pieces",
        ),
        pytest.param(
            [function("f", "{}"), function("f", "{}"), function("g", "")],
            [("call_0_0", "f", {}), ("call_0_1", "f", {}), ("call_0_2", "g", {})],
            id="neither index nor id",
        ),
        pytest.param(
            [function("f", "{}", index=0, id="c"), function("g", "{}", index=1, id="c")],
            [("c", "f", {}), ("call_0_1", "g", {})],
            id="the same id twice",
        ),
    ],
)
async def test_tool_calls_are_put_together_from_their_pieces(
    deltas: list[JsonValue], calls: list[tuple[str, str, dict[str, JsonValue]]]
) -> None:
    reply = await ask(calling(*deltas))
    assert [(call.call_id, call.name, call.arguments) for call in reply.tool_calls] == calls


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a":1}'])
async def test_arguments_as_an_object_or_as_text_are_the_same_in_an_answer_in_one_piece(
    arguments: JsonValue,
) -> None:
    """Case D34."""
    message: JsonValue = {"content": None, "tool_calls": [function("f", arguments, id="c1", type="function")]}
    reply = await ask(respond(200, whole(message, finish="tool_calls")))
    assert reply == LlmReply("", (ToolCall("f", {"a": 1}, "c1"),))


async def test_text_beside_tool_calls_is_kept() -> None:
    answer = stream(
        [
            event(chunk("I look it up")),
            event(chunk(tool_calls=[function("f", "{}", index=0, id="c")])),
            event(chunk(finish="tool_calls")),
            DONE,
        ]
    )
    assert await ask(answer) == LlmReply("I look it up", (ToolCall("f", {}, "c"),))


@pytest.mark.parametrize("text", ['{"a":', "null", "[1]", '"x"', '{"a":1}{"a":2}'])
async def test_arguments_that_are_no_object_reach_the_tool_layer_with_their_problem(text: str) -> None:
    """Case D32, the client's part."""
    [call] = (await ask(calling(function("f", text, index=0, id="c1")))).tool_calls
    assert call.arguments == {UNREADABLE: text}
    assert text in call.problem


async def test_a_call_that_was_cut_off_says_so_and_is_not_repaired() -> None:
    """Case D19."""
    answer = calling(function("write", '{"path":"/a","text":"hel', index=0, id="c1"), finish="length")
    [call] = (await ask(answer)).tool_calls
    assert call.arguments == {UNREADABLE: '{"path":"/a","text":"hel'}
    assert "cut off" in call.problem


async def test_the_third_reply_in_a_row_that_was_cut_off_is_the_last() -> None:
    """Case D19: the model is not told for ever, also when the calls come from the log."""
    answer = calling(function("write", '{"path":"/a', index=0, id="c1"), finish="length")
    messages: list[Message] = [USER]
    for _ in range(2):
        [call] = (await ask(answer, messages)).tool_calls
        arguments = json.loads(json.dumps(call.arguments))
        messages.append(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "name": "write", "arguments": arguments}],
            }
        )
        messages.append({"role": "tool", "name": "write", "tool_call_id": "c1", "content": "cut off"})
    assert "cut off by its length limit" in str(await failing(answer, messages))


async def test_a_call_before_the_one_that_was_cut_off_is_whole() -> None:
    answer = calling(
        function("f", '{"a":1}', index=0, id="c1"), function("g", "", index=1, id="c2"), finish="length"
    )
    whole_call, cut_call = (await ask(answer)).tool_calls
    assert whole_call == ToolCall("f", {"a": 1}, "c1")
    assert "cut off" in cut_call.problem


# What is no whole reply is an error.

LONG = "x" * 2_000_000
PAGE = b"<html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(saying("hel", finish="length"), "cut off by its length limit", id="cut by length"),
        pytest.param(saying("hel", finish="content_filter"), "refused to answer", id="filtered"),
        pytest.param(
            respond(200, whole({"content": None, "refusal": "I will not"})), "I will not", id="refused"
        ),
        pytest.param(saying("hel", finish="error"), "broke the reply off", id="broken off"),
        pytest.param(saying(""), "the reply is empty", id="empty"),
        pytest.param(saying(" \n"), "the reply is empty", id="blank"),
        pytest.param(
            stream([event(chunk(reasoning="hm", finish="stop")), DONE]),
            "holds only reasoning",
            id="only reasoning",
        ),
        pytest.param(stream([DONE]), "the reply is empty", id="no chunk"),
        pytest.param(stream([]), "ended before the reply did", id="empty stream"),
        pytest.param(respond(200, {"choices": []}), "the reply is empty", id="no choices"),
        pytest.param(respond(200, {}), "the reply is empty", id="empty object"),
        pytest.param(respond(200, [1]), "no JSON object: [1]", id="a list"),
        pytest.param(respond(200, b'{"choices": [{"mess'), "no JSON object", id="cut JSON"),
        pytest.param(respond(200, b""), "no JSON object: nothing", id="no body"),
        pytest.param(
            respond(200, PAGE, "text/html"), "but text/html: an HTML page (502 Bad Gateway)", id="a page"
        ),
        pytest.param(respond(200, b"hello", "text/plain"), "but text/plain: hello", id="plain text"),
        pytest.param(respond(204, b"", "text/plain"), "but text/plain: nothing", id="no content"),
        pytest.param(stream([b"data: {oops\n\n"]), "no JSON object: {oops", id="garbage in the stream"),
        pytest.param(
            stream([b"data: " + b"[" * 100_000 + b"\n\n"]), "no JSON object", id="nested without end"
        ),
        pytest.param(stream([b"data: 5\n\n"]), "no JSON object: 5", id="a number in the stream"),
        pytest.param(
            stream([event({"error": {"message": "no GPU", "code": 500}})]),
            "HTTP 500: no GPU",
            id="error in the stream",
        ),
        pytest.param(
            stream([event(chunk("hel", finish="stop")), event({"error": "no GPU"})]),
            "error: no GPU",
            id="error behind the end",
        ),
        pytest.param(stream([event({"error": "no GPU"})]), "error: no GPU", id="error as a text"),
        pytest.param(
            stream([b'event: error\ndata: {"message": "no GPU"}\n\n']), "error: no GPU", id="error event"
        ),
        pytest.param(
            stream([b"event: error\ndata: no GPU\n\n"]), "error: no GPU", id="error event without JSON"
        ),
        pytest.param(
            stream([event(chunk(LONG[:900_000]))] * 2),
            "longer than 1,048,576 characters",
            id="a text without end",
        ),
        pytest.param(
            calling(*[function("f", LONG[:900_000], index=0)] * 2), "longer than", id="arguments without end"
        ),
        pytest.param(
            stream([event(chunk(tool_calls=[function("f", index=i) for i in range(20_000)]))]),
            "longer than",
            id="calls without end",
        ),
        pytest.param(
            stream([b"data: " + LONG.encode() * 3 + b"\n\n"]), "event stream is broken", id="a huge line"
        ),
        pytest.param(
            calling(function(None, "{}", index=0, id="c")), "tool without a name", id="a call without a name"
        ),
        pytest.param(
            stream([b"\x00\xff"], content_encoding="gzip"), "connection failed (DecodingError", id="bad gzip"
        ),
        pytest.param([b"nonsense\r\n\r\n"], "connection failed (RemoteProtocolError", id="not HTTP"),
        pytest.param([], "connection failed", id="closed at once"),
        pytest.param([respond(200, {})[0]], "connection failed", id="closed behind the head"),
        pytest.param(
            respond(301, b"", location="https://user:pw@else.where/v2/chat?token=1"),
            "moved to https://else.where/v2/chat;",
            id="redirect",
        ),
        pytest.param(respond(307, b""), "the service has moved", id="redirect to nowhere"),
    ],
)
async def test_what_is_no_whole_reply_is_an_error_that_says_why(answer: Answer, says: str) -> None:
    error = await failing(answer)
    assert says in str(error)
    assert str(error).startswith("a chat of 1 messages with 'm' at http://127.0.0.1:")
    assert error.todo in str(error)


async def test_the_text_before_a_cut_is_kept_as_partial() -> None:
    error = await failing(stream([event(chunk("half an ans"))], end=False))
    assert error.partial == "half an ans"


@pytest.mark.parametrize(
    ("status", "todo"),
    [
        (400, "change the request"),
        (401, "OPENAI_API_KEY"),
        (402, "credit"),
        (403, "allowed"),
        (404, "OPENAI_MODEL"),
        (413, "shorten"),
        (418, "change the request"),
        (422, "change the request"),
        (429, "wait"),
        (500, "later"),
        (529, "later"),
    ],
)
async def test_each_status_says_what_to_do(status: int, todo: str) -> None:
    error = await failing(respond(status, {"error": {"message": "the reason"}}))
    assert error.status == status
    assert f"HTTP {status}: the reason; " in str(error)
    assert todo in error.todo


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "why"}}, "why"),
        ({"error": "why"}, "why"),
        ({"message": "why"}, "why"),
        ({"detail": "why"}, "why"),
        ({"detail": [{"loc": ["model"]}]}, '[{"loc": ["model"]}]'),
        ({"error": {"code": 7}}, '{"code": 7}'),
        ({}, "{}"),
        (b"why\n  not", "why not"),
        (b"", "nothing"),
        (PAGE, "an HTML page (502 Bad Gateway)"),
        (b"<html>", "an HTML page"),
    ],
)
async def test_the_services_own_words_are_found_in_any_form_of_error(
    body: JsonValue | bytes, words: str
) -> None:
    assert f"HTTP 400: {words}; " in str(await failing(respond(400, body)))


async def test_a_service_that_cannot_be_reached_is_named() -> None:
    async with ProtocolServer(SILENCE_ONLY) as server:
        address = server.url
    with pytest.raises(ModelError, match=f"at {address} failed: the connection failed"):
        await OpenAICompatibleLlm(base_url=address, retries=0).chat([USER])


SILENCE_ONLY: Answer = [SILENCE]


@pytest.mark.parametrize("answer", [SILENCE_ONLY, [*stream([event(chunk("a"))], end=False), SILENCE]])
async def test_a_service_that_falls_silent_is_given_up(answer: Answer) -> None:
    assert "silent for 0.05 seconds" in str(await failing(answer, timeout=0.05))


class Endless(Sequence[bytes]):
    """An answer that goes on for ever."""

    def __init__(self, head: bytes, rest: bytes) -> None:
        self._steps = (head, rest)

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._steps[min(index, 1)]


async def test_a_service_that_only_ever_pings_is_given_up_at_the_deadline() -> None:
    async with ProtocolServer(Endless(*stream([b": ping\n\n" * 8_192], end=False))) as server:
        with pytest.raises(ModelError, match="took longer than") as caught:
            await client(server, deadline=0.1).chat([USER])
    assert len(server.requests) == 1
    assert caught.value.partial == ""


@pytest.mark.parametrize(
    ("status", "kind"), [(200, "application/json"), (200, "text/html"), (400, "text/plain")]
)
async def test_of_a_body_without_end_only_the_start_is_read(status: int, kind: str) -> None:
    head = f"HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
    error = await failing(Endless(head.encode(), b"x" * 65_536))
    assert len(str(error)) < 700


async def test_cancelling_the_caller_closes_the_connection() -> None:
    async with ProtocolServer([*stream([event(chunk("a"))], end=False), SILENCE]) as server:
        shown = asyncio.Event()
        task = asyncio.create_task(client(server).chat([USER], on_delta=lambda *_: shown.set()))
        await shown.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# Asking again.


async def test_a_failure_that_may_pass_is_asked_again_with_growing_waits() -> None:
    waits = Waits()
    async with ProtocolServer(
        respond(503, {}), [], respond(500, PAGE, "text/html"), saying("hello")
    ) as server:
        reply = await client(server, sleep=waits).chat([USER])
    assert reply.text == "hello"
    assert waits.seconds == [0.5, 1.0, 2.0]
    assert [request.body for request in server.requests] == [server.requests[0].body] * 4


async def test_asking_again_ends_and_says_how_often_it_was_tried() -> None:
    async with ProtocolServer(respond(503, {"error": "busy"})) as server:
        with pytest.raises(ModelError, match="failed after 3 attempts: HTTP 503: busy; try again later"):
            await client(server, retries=2).chat([USER])
    assert len(server.requests) == 3


async def test_an_error_whose_body_is_lost_still_has_its_status() -> None:
    async with ProtocolServer(respond(401, b"x" * 100)[:1]) as server:
        with pytest.raises(ModelError, match="HTTP 401: nothing; set OPENAI_API_KEY"):
            await client(server).chat([USER])
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_failure_that_will_not_pass_is_asked_once(status: int) -> None:
    async with ProtocolServer(respond(status, {})) as server:
        with pytest.raises(ModelError):
            await client(server).chat([USER])
    assert len(server.requests) == 1


async def test_a_key_without_credit_is_not_asked_again_though_it_is_a_429() -> None:
    async with ProtocolServer(
        respond(429, {"error": {"code": "insufficient_quota", "message": "broke"}})
    ) as server:
        with pytest.raises(ModelError, match="HTTP 429: broke; add credit"):
            await client(server).chat([USER])
    assert len(server.requests) == 1


NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "waited"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (format_datetime(NOW + timedelta(seconds=9), usegmt=True), 9.0),
        (format_datetime(NOW - timedelta(hours=1), usegmt=True), 0.0),
        ("-3", 0.0),
        ("nan", 0.5),
        ("inf", 0.5),
        ("soon", 0.5),
        ("", 0.5),
    ],
)
async def test_a_wait_that_the_service_asks_for_is_kept(header: str, waited: float) -> None:
    waits = Waits()
    async with ProtocolServer(respond(429, {}, retry_after=header), saying("hello")) as server:
        await client(server, sleep=waits, clock=NOW.timestamp).chat([USER])
    assert waits.seconds == [waited]


async def test_a_wait_that_is_too_long_is_told_instead_of_kept() -> None:
    waits = Waits()
    async with ProtocolServer(respond(429, {"error": "slow down"}, retry_after="3600")) as server:
        with pytest.raises(ModelError, match=r"slow down \(it asks to wait 3,600 seconds\)"):
            await client(server, sleep=waits).chat([USER])
    assert (waits.seconds, len(server.requests)) == ([], 1)


@pytest.mark.parametrize("field", ["content", "reasoning"])
async def test_nothing_is_asked_again_once_a_word_has_been_shown(field: str) -> None:
    listener = Listener()
    async with ProtocolServer(stream([event(chunk(**{field: "he"}))], end=False), saying("hello")) as server:
        with pytest.raises(ModelError, match="connection failed"):
            await client(server).chat([USER], on_delta=listener)
    assert [text for text, _ in listener.heard] == ["he"]
    assert len(server.requests) == 1


async def test_a_stream_that_broke_before_anyone_saw_a_word_is_asked_again() -> None:
    async with ProtocolServer(stream([event(chunk("he"))], end=False), saying("hello")) as server:
        assert (await client(server).chat([USER])).text == "hello"


async def test_an_older_service_that_knows_no_stream_options_is_asked_without() -> None:
    refusal = respond(400, {"error": {"message": "Unrecognized request argument: stream_options"}})
    async with ProtocolServer(refusal, saying("hello")) as server:
        model = client(server, retries=0)
        await model.chat([USER])
        await model.chat([USER])
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]


# What goes out.


async def sent(messages: Sequence[Message], **options: object) -> dict[str, JsonValue]:
    """The request that the service gets for these messages."""
    chat = {name: options.pop(name) for name in ("tools", "system") if name in options}
    async with ProtocolServer(saying("ok")) as server:
        await client(server, **options).chat(messages, **chat)  # type: ignore[arg-type]
    [request] = server.requests
    return request.body


async def test_the_request_names_model_and_messages_and_asks_for_a_stream_with_its_cost() -> None:
    async with ProtocolServer(saying("ok")) as server:
        await client(server).chat([USER])
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m",
        "messages": [USER],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_options_are_sent_where_given_and_none_leaves_a_field_out() -> None:
    body = await sent([USER], temperature=0.0, max_tokens=5, options={"seed": 7, "stream_options": None})
    assert body == {
        "model": "m",
        "messages": [USER],
        "stream": True,
        "temperature": 0.0,
        "max_tokens": 5,
        "seed": 7,
    }


async def test_tools_go_out_in_the_services_form_and_bare_ones_are_wrapped() -> None:
    bare = {"name": "f", "description": "does", "parameters": {"type": "object"}}
    wrapped = {"type": "function", "function": bare}
    assert (await sent([USER], tools=[bare, wrapped]))["tools"] == [wrapped, wrapped]
    assert "tools" not in await sent([USER], tools=[])


async def test_the_system_message_goes_first_and_is_one() -> None:
    messages: list[Message] = [
        {"role": "system", "content": "summary"},
        USER,
        {"role": "system", "content": "late"},
    ]
    assert (await sent(messages, system="be kind"))["messages"] == [
        {"role": "system", "content": "be kind\n\nsummary"},
        USER,
        messages[2],
    ]
    assert (await sent(messages[:2]))["messages"] == messages[:2]


CALLS: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "name": "f", "arguments": {"a": "é"}}],
}
RESULT: Message = {"role": "tool", "name": "f", "tool_call_id": "c1", "content": {"b": [1, "é"]}}


async def test_calls_and_results_go_out_in_the_nested_form_with_text() -> None:
    """Case D34: when sent back, arguments are JSON text."""
    body = await sent([USER, freeze(CALLS), freeze(RESULT)])  # type: ignore[list-item]
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}}
    assert body["messages"] == [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"b": [1, "é"]}'},
    ]


async def test_history_that_is_already_in_the_services_form_stays_as_it_is() -> None:
    call: JsonValue = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[Message] = [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
    ]
    assert (await sent(messages))["messages"] == messages


async def test_reasoning_and_other_fields_of_ours_are_never_sent_back() -> None:
    message: Message = {"role": "assistant", "content": "42", "reasoning": "hm", "agent": "boss"}
    assert (await sent([USER, message]))["messages"] == [USER, {"role": "assistant", "content": "42"}]


async def test_a_message_with_text_instead_of_content_and_one_with_parts_are_understood() -> None:
    parts: Message = {"role": "user", "content": [{"type": "text", "text": "look"}]}
    messages: list[Message] = [{"role": "user", "text": "old"}, parts, {"role": "assistant", "content": None}]
    assert (await sent(messages))["messages"] == [
        {"role": "user", "content": "old"},
        parts,
        {"role": "assistant", "content": ""},
    ]


async def test_a_tools_result_is_sent_as_text_even_if_it_looks_like_content_parts() -> None:
    parts: JsonValue = [{"type": "text", "text": "look"}]
    body = await sent([CALLS, RESULT | {"content": parts}])
    assert body["messages"][1]["content"] == json.dumps(parts)  # type: ignore[index, call-overload]


async def test_unreadable_arguments_go_back_to_the_service_as_valid_json() -> None:
    call: JsonValue = {"id": "c", "name": "f", "arguments": {UNREADABLE: '{"a":'}, "problem": "not JSON"}
    message: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
    async with ProtocolServer(speaking(["unused", "ok"])) as server:
        assert (await client(server).chat([USER, message])).text == "ok"


async def test_a_call_whose_result_was_lost_is_sent_as_interrupted() -> None:
    """Case D03: the process was killed inside the tool."""
    history = [USER, CALLS, USER]
    before = json.dumps(history)
    async with ProtocolServer(speaking(["unused", "ok"])) as server:
        assert (await client(server).chat(history)).text == "ok"
    roles = [(message["role"], message.get("tool_call_id")) for message in server.requests[0].messages]
    assert roles == [("user", None), ("assistant", None), ("tool", "c1"), ("user", None)]
    assert "interrupted" in str(server.requests[0].messages[2]["content"])
    assert json.dumps(history) == before


async def test_a_result_whose_call_was_lost_is_left_out() -> None:
    """Case D03, the other way round."""
    async with ProtocolServer(speaking(["ok"])) as server:
        assert (await client(server).chat([RESULT, USER])).text == "ok"
    assert server.requests[0].messages == [USER]


async def test_a_result_that_comes_late_is_put_behind_its_call() -> None:
    body = await sent([CALLS, USER, RESULT])
    assert [message["role"] for message in body["messages"]] == ["assistant", "tool", "user"]  # type: ignore[index, union-attr, call-overload]
    assert "interrupted" not in json.dumps(body)


async def test_calls_of_the_same_id_in_two_turns_keep_their_own_results() -> None:
    body = await sent([CALLS, USER, CALLS, RESULT])
    contents = [message["content"] for message in body["messages"] if message["role"] == "tool"]  # type: ignore[index, union-attr, call-overload]
    assert ["interrupted" in str(content) for content in contents] == [True, False]


async def test_calls_and_results_without_ids_get_some_in_their_order() -> None:
    calls: JsonValue = [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]
    results: list[Message] = [{"role": "tool", "name": name, "content": f"of {name}"} for name in "fg"]
    async with ProtocolServer(speaking(["unused", "ok"])) as server:
        await client(server).chat([{"role": "assistant", "tool_calls": calls}, *results, USER])
    assert [message["content"] for message in server.requests[0].messages] == ["", "of f", "of g", "hi"]


MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(
            lambda ids: {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": i, "name": "f", "arguments": {}} for i in ids],
            },
            st.lists(st.sampled_from("abc"), unique=True),
        ),
        st.builds(
            lambda i: {"role": "tool", "name": "f", "tool_call_id": i, "content": "r"}, st.sampled_from("abc")
        ),
    ),
    max_size=8,
)


@settings(max_examples=40)
@given(MESSAGES)
async def test_a_strict_service_accepts_whatever_history_a_crash_has_left(history: list[Message]) -> None:
    async with ProtocolServer(speaking([lambda _: "ok"] * 10)) as server:
        assert (await client(server).chat([*history, USER])).text == "ok"


@pytest.mark.parametrize("value", [float("nan"), {1}, "\ud83d"])
async def test_a_message_that_is_not_json_is_an_error_and_is_not_sent(value: object) -> None:
    async with ProtocolServer(saying("ok")) as server:
        with pytest.raises(ModelError, match=r"the request is not JSON .*; use only JSON"):
            await client(server).chat([{"role": "user", "content": {"x": value}}])  # type: ignore[dict-item]
    assert server.requests == []


# Laws.

TEXT = st.text(max_size=20)
CALL = st.builds(
    ToolCall,
    st.sampled_from(["f", "get_time"]),
    st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=3),
)


@settings(max_examples=40)
@given(TEXT, TEXT, st.lists(CALL, max_size=3), st.integers(1, 60))
async def test_any_reply_survives_the_wire_however_it_is_cut(
    text: str, reasoning: str, calls: list[ToolCall], piece: int
) -> None:
    script = [LlmReply(text or ("" if calls else "x"), tuple(calls), 3, reasoning)]
    expected = await ScriptedLlm(script).chat_at(0, [USER])
    if not calls and not expected.text.strip():
        return
    listener = Listener()
    async with ProtocolServer(speaking(script, piece)) as server:
        assert await client(server).chat([USER], on_delta=listener) == expected
    assert (listener.all("content"), listener.all("reasoning")) == (expected.text, expected.reasoning)


def every_cut() -> Iterator[tuple[int, bytes]]:
    wire = event(chunk("one ")) + event(chunk("two")) + event(chunk(finish="stop")) + DONE
    yield from ((end, wire[:end]) for end in range(len(wire) + 1))


async def test_a_stream_cut_anywhere_is_never_taken_for_a_whole_reply() -> None:
    outcomes = []
    for _, wire in every_cut():
        try:
            outcomes.append((await ask(stream([wire]))).text)
        except ModelError as error:
            outcomes.append(f"error after {error.partial!r}")
    first_whole = outcomes.index("one two")
    assert set(outcomes[:first_whole]) == {"error after ''", "error after 'one '", "error after 'one two'"}
    assert set(outcomes[first_whole:]) == {"one two"}


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(0, 1)
    | st.sampled_from(["", "a", "stop", "length", "{}", "\ud83d", "\ude42"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "text",
                    "reasoning",
                    "tool_calls",
                    "index",
                    "id",
                    "function",
                    "name",
                    "arguments",
                    "finish_reason",
                    "usage",
                    "total_tokens",
                    "error",
                    "code",
                    "refusal",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def shaped(odd: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    """Chunks that look right from afar and hold anything inside."""
    call = st.fixed_dictionaries(
        {},
        optional={
            "index": odd,
            "id": odd,
            "function": st.fixed_dictionaries({}, optional={"name": odd, "arguments": odd}) | odd,
        },
    )
    delta = st.fixed_dictionaries(
        {},
        optional={
            "content": odd,
            "reasoning": odd,
            "refusal": odd,
            "tool_calls": st.lists(call, max_size=3) | odd,
        },
    )
    choice = st.fixed_dictionaries({"delta": delta | odd}, optional={"index": odd, "finish_reason": odd})
    return odd | st.fixed_dictionaries(
        {"choices": st.lists(choice, max_size=2) | odd}, optional={"usage": odd, "error": odd}
    )


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(shaped(ODD), max_size=4), st.booleans())
async def test_whatever_the_chunks_hold_the_outcome_is_a_reply_for_the_log_or_an_error(
    chunks: list[JsonValue], listens: bool
) -> None:
    wire = [b"data: " + json.dumps(odd).encode() + b"\n\n" for odd in chunks]
    async with ProtocolServer(stream([*wire, DONE])) as server:
        try:
            reply = await client(server, retries=0).chat([USER], on_delta=Listener() if listens else None)
        except ModelError as error:
            freeze([str(error), error.partial])
        else:
            assert reply.text.strip() or reply.tool_calls
            freeze(
                [
                    reply.text,
                    reply.reasoning,
                    *([call.name, call.call_id, call.arguments] for call in reply.tool_calls),
                ]
            )


ODD_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]) | ODD},
    optional={
        "content": ODD,
        "text": ODD,
        "name": ODD,
        "tool_call_id": ODD,
        "tool_calls": st.lists(ODD, max_size=3) | ODD,
    },
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ODD_MESSAGE, max_size=5))
async def test_whatever_the_messages_hold_they_are_sent_or_the_outcome_is_an_error(
    messages: list[Message],
) -> None:
    async with ProtocolServer(saying("ok")) as server:
        try:
            assert (await client(server).chat(messages)).text == "ok"
        except ModelError as error:
            assert "the request is not JSON" in str(error)  # noqa: PT017


async def test_calls_in_a_message_may_be_tool_calls_as_a_reply_has_them() -> None:
    reply = await ScriptedLlm([ToolCall("f", {"a": "é"}, "c1")]).chat([USER])
    message = {"role": "assistant", "content": "", "tool_calls": reply.tool_calls}
    assert await sent([USER, message, RESULT]) == await sent([USER, CALLS, RESULT])  # type: ignore[list-item]


# Where its settings come from, and what stays secret.


async def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ProtocolServer(saying("ok")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
        monkeypatch.setenv("OPENAI_MODEL", "from-env")
        await OpenAICompatibleLlm().chat([USER])
    [request] = server.requests
    assert (request.path, request.body["model"]) == ("/v1/chat/completions", "from-env")
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_arguments_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.setenv(name, "http://not.used")
    async with ProtocolServer(saying("ok")) as server:
        await OpenAICompatibleLlm(model="mine", base_url=server.url, api_key="").chat([USER])
    [request] = server.requests
    assert request.body["model"] == "mine"
    assert "authorization" not in request.headers


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/chat/completions/"])
async def test_the_address_may_be_given_with_or_without_the_last_part_of_its_path(ending: str) -> None:
    async with ProtocolServer(saying("ok")) as server:
        await OpenAICompatibleLlm(base_url=server.url + ending).chat([USER])
    assert server.requests[0].path == "/v1/chat/completions"


async def test_a_query_in_the_address_is_kept() -> None:
    async with ProtocolServer(saying("ok")) as server:
        await OpenAICompatibleLlm(base_url=server.url + "?api-version=7").chat([USER])
    assert server.requests[0].path == "/v1/chat/completions?api-version=7"


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000/v1",
        "ftp://host/v1",
        "https://",
        "host",
        "http://user:password1@/v1",
        "http://[::1/v1",
        "http://host:99999/v1",
        "http://host:x/v1",
    ],
)
def test_an_address_that_cannot_be_right_is_refused_at_once(address: str) -> None:
    with pytest.raises(ValueError, match="is no address of a model service: set OPENAI_BASE_URL") as caught:
        OpenAICompatibleLlm(base_url=address)
    assert "password1" not in str(caught.value)


async def test_without_a_key_the_default_service_is_not_even_asked() -> None:
    with pytest.raises(ModelError, match="there is no API key; set OPENAI_API_KEY"):
        await OpenAICompatibleLlm().chat([USER])


@pytest.mark.parametrize("key", ["sk-secret\r\nX-Evil: 1", "sk-sécret-12345", "sk-secret 12345"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ValueError, match="copy it once more") as caught:
        OpenAICompatibleLlm(api_key=key)
    assert "cret" not in str(caught.value)


ECHO = f"your key {KEY} and password hunter2hunter2 are wrong"


@pytest.mark.parametrize(
    "answer",
    [
        respond(401, {"error": {"message": ECHO}}),
        respond(401, ECHO.encode(), "text/plain"),
        respond(401, {"error": {"message": "x" * 385 + KEY}}),
        respond(200, f"<title>{ECHO}</title>".encode(), "text/html"),
        respond(200, {"error": ECHO}),
        respond(302, b"", location=f"https://{KEY}@x/"),
        stream([event(chunk(ECHO))], end=False),
        stream([f"data: {ECHO}\n\n".encode()]),
        [f"HTTP/1.1 {KEY}\r\n\r\n".encode()],
    ],
)
async def test_the_key_is_in_no_error_and_no_repr(answer: Answer) -> None:
    async with ProtocolServer(answer) as server:
        address = server.url.replace("://", "://me:hunter2hunter2@")
        model = OpenAICompatibleLlm(base_url=address, api_key=KEY, retries=0)
        with pytest.raises(ModelError) as caught:
            await model.chat([USER])
    error: BaseException | None = caught.value
    shown = [repr(model), caught.value.partial, caught.value.asked, caught.value.todo]
    while error is not None:
        shown += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert not [text for text in shown if KEY[:12] in text or "hunter2hunter2" in text]


async def test_a_placeholder_for_a_key_does_not_blank_out_plain_words() -> None:
    assert "HTTP 400: none of that" in str(
        await failing(respond(400, {"error": "none of that"}), api_key="none")
    )


def test_without_httpx2_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModuleNotFoundError, match=r"install agent-playground\[openai\]"):
        OpenAICompatibleLlm()


def test_importing_the_client_loads_no_http_library() -> None:
    code = "import sys, playground.runtime.openai_lite; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_one_object_serves_several_event_loops() -> None:
    with served(speaking(["hello"])) as address:
        model = OpenAICompatibleLlm(base_url=address)
        assert [asyncio.run(model.chat([USER])).text for _ in range(2)] == ["hello", "hello"]


async def test_calls_run_side_by_side() -> None:
    async with ProtocolServer(speaking([lambda messages: f"to {messages[-1]['content']}"])) as server:
        model = client(server)
        replies = await asyncio.gather(
            *(model.chat([{"role": "user", "content": str(n)}]) for n in range(10))
        )
    assert [reply.text for reply in replies] == [f"to {n}" for n in range(10)]
