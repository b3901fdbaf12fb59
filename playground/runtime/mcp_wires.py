"""Wires: the two ways to an MCP server, as transports that the official SDK can drive.

The SDK knows the protocol: sessions, versions, requests and their answers.  A
wire only carries its messages, and takes care that each request gets an answer
or an error.  An answer that is too large or cannot be read is replaced by an
error for the request that it belongs to, instead of leaving the caller to its
timeout, and what is no message at all is skipped with a warning.

The SDK is imported when a wire is opened, not before.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from playground.runtime.arguments import shorten
from playground.runtime.mcp_process import Line, ServerProcess

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp.types import RequestId

MAX_MESSAGE = 4 << 20
"""Largest message taken from a server, in bytes."""

_PROBE_PATIENCE = 1.0
_NOISE_SHOWN = 5
_ENDS = 200
_LAST_WORDS = 2_000
_PATIENCE = 30.0
_SILENCE = 300.0

_log = logging.getLogger(__name__)


class Wire(Protocol):
    """A way to a server: entered, it gives the SDK's pair of streams."""

    async def __aenter__(self) -> TransportStreams: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...

    @property
    def fate(self) -> str:
        """What is known of the server's end, for an error message; else ""."""
        ...


class StdioWire:
    """To a child process, over its stdin and stdout.

    Args:
        process: the process, not yet started.
        name: what the server is called in warnings.
        ended: called when the process says no more.
    """

    def __init__(self, process: ServerProcess, name: str, ended: Callable[[], None]) -> None:
        self._process = process
        self._messages = _Messages(process, name, ended)

    async def __aenter__(self) -> TransportStreams:
        await self._process.start()
        return self._messages, self._messages

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._process.stop()

    @property
    def fate(self) -> str:
        """The exit code and the last words."""
        code, words = self._process.exit_code, self._process.stderr[-_LAST_WORDS:]
        told = [f"it ended with exit code {code}"] if code is not None else []
        return "; ".join([*told, f"the last of its stderr: {words}"] if words else told)


class _Messages:
    """The lines of a process as the SDK's messages, in both directions."""

    def __init__(self, process: ServerProcess, name: str, ended: Callable[[], None]) -> None:
        self._process = process
        self._name = name
        self._ended = ended
        self._unanswered: set[RequestId] = set()
        self._replacements: deque[SessionMessage] = deque()
        self._noise = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Nothing to do: the process is ended by the wire."""

    # From the SDK to the process

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message.

        Raises:
            MCPError: a request to a process that has ended.
        """
        from mcp.shared.exceptions import MCPError
        from mcp.types import CONNECTION_CLOSED, JSONRPCNotification, JSONRPCRequest

        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._unanswered.add(message.id)
            if message.method == "server/discover":
                self._wait_for_probe(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._unanswered.discard((message.params or {}).get("requestId", ""))
        try:
            await self._process.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        except ConnectionError:
            self._ended()
            if isinstance(message, JSONRPCRequest):
                raise MCPError(CONNECTION_CLOSED, "Connection closed") from None

    def _wait_for_probe(self, request: RequestId) -> None:
        """Answer the SDK's first question, which servers of an older protocol may leave unanswered."""
        from mcp.types import METHOD_NOT_FOUND

        def give_up() -> None:
            if request in self._unanswered:
                answer = _error(request, METHOD_NOT_FOUND, "no answer")
                self._process.pretend(answer.message.model_dump_json(by_alias=True).encode())

        asyncio.get_running_loop().call_later(_PROBE_PATIENCE, give_up)

    # From the process to the SDK

    async def receive(self) -> SessionMessage | Exception:
        """The next message; the same as iterating."""
        return await anext(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._replacements:
            line = await self._process.read()
            if line is None:
                self._ended()
                raise StopAsyncIteration
            if message := self._read(line):
                return message
        return self._replacements.popleft()

    def _read(self, line: Line) -> SessionMessage | None:
        from mcp.shared.message import SessionMessage
        from mcp.types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

        if line.cut:
            self._replace(line, f"its answer is larger than {MAX_MESSAGE:,} bytes")
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line.text, by_name=False)
        except ValueError:
            self._replace(line, "its answer is not valid JSON in UTF-8")
            return None
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._unanswered.discard(message.id)
        return SessionMessage(message)

    def _replace(self, line: Line, complaint: str) -> None:
        """Fail the request that an unreadable line answers, if it looks like an answer to one."""
        from mcp.types import INTERNAL_ERROR

        ends = line.text[:_ENDS] + line.text[-_ENDS:]
        mentioned: set[RequestId] = {int(number) for number in _ID.findall(ends)}
        answered = mentioned & self._unanswered
        if line.cut and not answered:
            answered = set(self._unanswered)  # its id is in the part that was not kept
        self._unanswered -= answered
        self._replacements += [
            _error(request, INTERNAL_ERROR, complaint) for request in sorted(answered, key=str)
        ]
        if not answered and line.text.strip():
            self._warn(line)

    def _warn(self, line: Line) -> None:
        self._noise += 1
        if self._noise <= _NOISE_SHOWN:
            text = shorten(line.text.decode("utf-8", "replace"))
            _log.warning("MCP server %r wrote a line that is no message; it is skipped: %s", self._name, text)
        if self._noise == _NOISE_SHOWN:
            _log.warning("MCP server %r: further such lines are skipped in silence", self._name)


_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\b')


def _error(request: RequestId, code: int, text: str) -> SessionMessage:
    from mcp.shared.message import SessionMessage
    from mcp.types import ErrorData, JSONRPCError

    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=text)))


class HttpWire:
    """To a URL, over streamable HTTP.

    Args:
        url: the server's endpoint.
        headers: sent with each request, such as an authorization.
    """

    fate = ""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers
        self._held = AsyncExitStack()

    async def __aenter__(self) -> TransportStreams:
        from mcp.client.streamable_http import streamable_http_client

        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(_http_client(self._headers))
            streams = await stack.enter_async_context(
                streamable_http_client(self._url, http_client=http, max_sse_event_size=MAX_MESSAGE)
            )
            self._held = stack.pop_all()
            return streams

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._held.__aexit__(kind, error, trace)


def _http_client(headers: Mapping[str, str]) -> httpx2.AsyncClient:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """A body that fails once it is larger than a message may be."""

        def __init__(self, body: httpx2.AsyncByteStream) -> None:
            self._body = body

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in self._body:
                size += len(piece)
                if size > MAX_MESSAGE:
                    raise httpx2.StreamError(f"its answer is larger than {MAX_MESSAGE:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await self._body.aclose()

    async def bound(response: httpx2.Response) -> None:
        # Nothing compressed was asked for: unpacked, a small answer could be of any size.
        response.headers.pop("content-encoding", None)
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        if not streamed and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Bounded(response.stream)

    return httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(_PATIENCE, read=_SILENCE),
        event_hooks={"response": [bound]},
    )
