"""A model service on the loopback that speaks chat completions, honestly or as badly as a test asks.

An `Answer` is what goes onto the wire, byte for byte, so that a test can cut a
stream anywhere, stay silent, or lie.  `speaking` makes an honest service of a
script: it is as strict about requests as the real ones, and streams in pieces.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from playground.kernel.ports import LlmPort, LlmReply
from playground.kernel.types import ToolCall
from playground.kernel.values import JsonObject, JsonValue
from playground.runtime.llm import ScriptedLlm


class Silence:
    """A step of an answer: send nothing more until the client goes away."""


SILENCE: Final = Silence()
Answer: TypeAlias = Sequence[bytes | Silence]


@dataclass(frozen=True)
class Request:
    """One request as the service got it."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject

    @property
    def messages(self) -> list[JsonObject]:
        return objects(self.body.get("messages"))


Service: TypeAlias = Callable[[Request], Awaitable[Answer]]


def objects(value: JsonValue) -> list[JsonObject]:
    """The JSON objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def respond(
    status: int, body: JsonValue | bytes, kind: str = "application/json", **headers: str
) -> list[bytes]:
    """A whole response; a body that is not bytes goes out as JSON, and `retry_after=` becomes a header."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [_head(status, kind, {"content-length": str(len(content)), **headers}), content]


def stream(
    pieces: Iterable[bytes], kind: str = "text/event-stream", *, end: bool = True, **headers: str
) -> list[bytes]:
    """A streamed response: each piece is an HTTP chunk of its own; without `end` it just stops."""
    framed = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
    closing = [b"0\r\n\r\n"] if end else []
    return [_head(200, kind, {"transfer-encoding": "chunked", **headers}), *framed, *closing]


def _head(status: int, kind: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"content-type: {kind}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


DONE: Final = b"data: [DONE]\n\n"


def event(chunk: JsonValue) -> bytes:
    """One chunk as a server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def chunk(content: JsonValue = None, *, finish: JsonValue = None, **delta: JsonValue) -> JsonObject:
    """A chunk with one choice, as the real services send it."""
    given = delta if content is None else {"content": content, **delta}
    return {"choices": [{"index": 0, "delta": given, "finish_reason": finish}]}


def usage(total: int) -> JsonObject:
    """The last chunk of a stream: no choices, only what it has cost in tokens."""
    return {
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": total - 1, "total_tokens": total},
    }


def saying(text: str, *, finish: str = "stop") -> list[bytes]:
    """A whole streamed answer with a text, in one piece."""
    return stream([event(chunk(text)), event(chunk(finish=finish)), DONE])


def calling(*deltas: JsonValue, finish: str = "tool_calls") -> list[bytes]:
    """A whole streamed answer with these tool-call deltas, one a chunk."""
    return stream(
        [*(event(chunk(tool_calls=[delta])) for delta in deltas), event(chunk(finish=finish)), DONE]
    )


def whole(message: JsonValue, *, finish: JsonValue = "stop") -> JsonObject:
    """The body of an answer that is not streamed."""
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


class ProtocolServer:
    """The service: `async with ProtocolServer(answer, answer, …) as server`.

    Each request takes the next answer, and the last one stays for all that
    follow.  Leaving the block waits until the client has closed every
    connection, so a client that leaks one fails its test.
    """

    def __init__(self, *answers: Answer | Service) -> None:
        self._answers = list(answers)
        self._handlers: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []

    async def __aenter__(self) -> ProtocolServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        async with asyncio.timeout(5):
            await asyncio.gather(*self._handlers)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            await self._answer(await _request(reader), reader, writer)
        except ConnectionError:
            pass  # the client has heard enough
        finally:
            writer.close()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        for step in await answer(request) if callable(answer) else answer:
            if isinstance(step, Silence):
                await reader.read()
            else:
                writer.write(step)
                await writer.drain()


async def _request(reader: asyncio.StreamReader) -> Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    return Request(first.split()[1], headers, json.loads(body))


@contextmanager
def served(service: Service) -> Iterator[str]:
    """The address of a service in a thread of its own, for clients in other processes or loops."""
    started = threading.Event()
    where: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        async with ProtocolServer(service) as server:
            where.append((server.url, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    [(url, loop, stop)] = where
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def speaking(script: Iterable[object] | LlmPort, piece: int = 50) -> Service:
    """An honest service that says what a script, or any other model, says.

    Args:
        script: entries as for `ScriptedLlm`, whose place follows from the messages; or a model.
        piece: how many bytes of a stream go into one HTTP chunk.
    """
    model = script if isinstance(script, LlmPort) else ScriptedLlm(script)  # type: ignore[arg-type]

    async def answer(request: Request) -> Answer:
        complaint = what_is_wrong_with(request.body)
        if complaint:
            return respond(400, {"error": {"message": complaint, "type": "invalid_request_error"}})
        messages = request.messages
        if isinstance(model, ScriptedLlm):
            reply = await model.chat_at(0, messages)
        else:
            reply = await model.chat(messages)
        return answer_of(reply, bool(request.body.get("stream")), piece)

    return answer


def answer_of(reply: LlmReply, streamed: bool = True, piece: int = 50) -> Answer:
    """A reply as it goes onto the wire, streamed in pieces of so many bytes."""
    finish = "tool_calls" if reply.tool_calls else "stop"
    if not streamed:
        return respond(200, whole(_message(reply), finish=finish) | {"usage": usage(reply.tokens)["usage"]})
    parts = [*_parts(reply), chunk(finish=finish), usage(reply.tokens)]
    wire = b"".join(map(event, parts)) + DONE
    return stream(wire[start : start + piece] for start in range(0, len(wire), piece))


def _parts(reply: LlmReply) -> Iterator[JsonObject]:
    yield chunk("", role="assistant")
    for start in range(0, len(reply.reasoning), 3):
        yield chunk(reasoning_content=reply.reasoning[start : start + 3])
    for start in range(0, len(reply.text), 3):
        yield chunk(reply.text[start : start + 3])
    for index, call in enumerate(reply.tool_calls):
        text = json.dumps(call.arguments)
        opening: JsonObject = {"name": call.name, "arguments": ""}
        yield chunk(
            tool_calls=[{"index": index, "id": call.call_id, "type": "function", "function": opening}]
        )
        for start in range(0, len(text), 4):
            yield chunk(tool_calls=[{"index": index, "function": {"arguments": text[start : start + 4]}}])


def _message(reply: LlmReply) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [_call(call) for call in reply.tool_calls]
    return message


def _call(call: ToolCall) -> JsonObject:
    function: JsonObject = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def what_is_wrong_with(body: JsonObject) -> str:
    """What a strict service would refuse a request for, or nothing."""
    messages = objects(body.get("messages"))
    if not messages:
        return "messages must be a list with at least one message"
    unanswered: list[JsonValue] = []
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "user", "assistant", "tool") or not isinstance(content, str):
            return f"messages[{number}] needs a known role and a text as content"
        if role == "system" and number:
            return f"messages[{number}]: the system message must come first"
        if role == "tool" and message.get("tool_call_id") not in unanswered:
            return f"messages[{number}] answers no tool call right before it"
        if role == "tool":
            unanswered.remove(message["tool_call_id"])
        elif unanswered:
            return f"messages[{number}] comes before the results of {unanswered}"
        for call in objects(message.get("tool_calls")):
            function = call.get("function")
            if not isinstance(function, dict) or not _is_object_text(function.get("arguments")):
                return f"messages[{number}]: arguments must be the JSON text of an object"
            unanswered.append(call["id"])
    return f"there are no results of {unanswered}" if unanswered else ""


def _is_object_text(text: JsonValue) -> bool:
    return isinstance(text, str) and isinstance(json.loads(text), dict)
