"""MCP: tools of other programs, flattened at the boundary into tools like any other.

Nobody inside should care where a tool comes from.  `load_mcp_tools` lists what
a server offers and registers each as a plain `ToolSpec`; from there on it is
checked, approved and called as a local function is.

Three servers are at hand: one in this process, for tests and demonstrations,
one in a child process, and one behind a URL.  The last two speak through the
official SDK (the extra `mcp`), which is loaded when the first of them is opened.

The SDK wants a connection closed by the task that opened it.  So each
connection belongs to one task of its own, and any task may open, call and close.
A connection that is lost fails the calls on it, with the exit code and the last
of stderr; the next call opens a new one.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from playground.kernel.types import ToolResult
from playground.kernel.values import JsonObject, JsonValue, NotJson, frozen_object
from playground.runtime.arguments import shorten
from playground.runtime.mcp_process import ServerProcess
from playground.runtime.mcp_wires import MAX_MESSAGE, HttpWire, StdioWire, Wire
from playground.runtime.tools import TIMEOUT, SideEffect, ToolRegistry, ToolSpec

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, ListToolsResult, Tool, ToolAnnotations

T = TypeVar("T")

START_TIMEOUT = 15.0
"""Seconds that a server may take from its start to its first answer."""

_NAME_LENGTH = 64
_PAGES = 100
_TO_CLOSE = 1.8


class MCPServerError(RuntimeError):
    """A server that could not be started, was lost, or does not speak MCP."""


class MCPToolError(RuntimeError):
    """A server's answer that the call failed."""


@dataclass(frozen=True, slots=True)
class MCPTool:
    """A tool as a server lists it; `side_effect` is None where the server does not say."""

    name: str
    description: str
    parameters: JsonObject
    side_effect: SideEffect | None = None


class MCPServer(Protocol):
    """What tools can be loaded from."""

    async def list_tools(self) -> list[MCPTool]:
        """All tools of the server."""
        ...

    async def call_tool(self, name: str, arguments: JsonObject) -> object:
        """Call one by the server's own name for it.

        Raises:
            MCPToolError: when the server says that the call failed.
        """
        ...


async def load_mcp_tools(
    registry: ToolRegistry, server: MCPServer, prefix: str = "", *, unmarked: SideEffect = "read"
) -> list[str]:
    """Register every tool of a server.

    A name is the prefix and the server's own name, in letters, digits, `_` and
    `-`, at most 64 of them as models demand; one that is taken gets `_2`, `_3`
    and so on, so that no server can pass its tool off as another.

    Args:
        server: where the tools are; a client must be open, and stay so.
        unmarked: what a tool counts as when the server does not say whether it
            only reads; choose "write" for a server that you do not trust.

    Returns:
        The names in the registry, in the order of the server's list.
    """
    timeout = None if isinstance(server, _Client) else TIMEOUT  # a client limits its calls itself
    taken = set(registry.names())
    specs: list[ToolSpec] = []
    for tool in await server.list_tools():
        name = _free_name(prefix + tool.name, taken)
        taken.add(name)
        call = _calls(server, tool.name)
        side_effect = tool.side_effect or unmarked
        specs.append(ToolSpec(name, tool.description, call, tool.parameters, side_effect, timeout=timeout))
    for spec in specs:
        registry.add(spec)
    return [spec.name for spec in specs]


def _free_name(wanted: str, taken: set[str]) -> str:
    base = re.sub(r"[^\w-]", "_", wanted)[:_NAME_LENGTH]
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base[: _NAME_LENGTH - 1 - len(str(number))]}_{number}"
    return name


def _calls(server: MCPServer, name: str) -> Callable[[JsonObject], Awaitable[object]]:
    async def call(arguments: JsonObject) -> object:
        try:
            return await server.call_tool(name, arguments)
        except (MCPServerError, MCPToolError) as error:
            return ToolResult.failure(str(error))

    return call


class InProcessMCPServer:
    """A server in this process: tools as plain functions from a dict of arguments to a JSON value."""

    def __init__(self, name: str = "in-process") -> None:
        self.name = name
        self._tools: dict[str, MCPTool] = {}
        self._handlers: dict[str, Callable[[JsonObject], object]] = {}

    def define(
        self,
        name: str,
        handler: Callable[[JsonObject], object],
        *,
        description: str = "",
        parameters: Mapping[str, object] | None = None,
        side_effect: SideEffect | None = None,
    ) -> Self:
        """Add a tool, or put it in the place of an older one of that name.

        Args:
            handler: gets the arguments as one dict; sync or async.
            parameters: JSON Schema of the arguments; by default any.
        """
        schema = frozen_object(
            parameters or {"type": "object", "properties": {}}, f"schema of MCP tool {name!r}"
        )
        self._tools[name] = MCPTool(name, description, schema, side_effect)
        self._handlers[name] = handler
        return self

    async def list_tools(self) -> list[MCPTool]:
        """All tools, in the order of their definition."""
        return list(self._tools.values())

    async def call_tool(self, name: str, arguments: JsonObject) -> object:
        """Call a handler.

        Raises:
            MCPToolError: when there is no such tool; whatever the handler raises goes on as it is.
        """
        handler = self._handlers.get(name)
        if handler is None:
            raise MCPToolError(f"MCP server {self.name!r} has no tool {name!r}")
        output = handler(arguments)
        return await output if inspect.isawaitable(output) else output


# Clients


class _Client:
    """What clients have in common: any task may open, call and close them."""

    def __init__(self, name: str, start_timeout: float, call_timeout: float) -> None:
        self.name = name
        self.start_timeout = start_timeout
        self.call_timeout = call_timeout
        self._open = False
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()

    def _wire(self, ended: Callable[[], None]) -> Wire:
        """A new way to the server, which calls `ended` when the server is lost."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(_load_sdk)  # the first time it takes a second, for which no one should wait
        self._open = True
        try:
            await self._connected()
        except BaseException:
            self._open = False
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection, within two seconds; calls that are on it fail."""
        self._open = False
        if self._connection is not None:
            await self._connection.close()

    async def list_tools(self) -> list[MCPTool]:
        """All tools of the server.

        Raises:
            MCPServerError: when the server is lost, or lists what cannot be used.
        """
        tools: list[MCPTool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._ask("its list of tools", partial(_page, cursor))
            tools += [self._tool(tool) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                return tools
        raise MCPServerError(
            f"MCP server {self.name!r} lists tools without end: gave up after {_PAGES} pages"
        )

    def _tool(self, tool: Tool) -> MCPTool:
        try:
            schema = frozen_object(tool.input_schema, f"the schema of its tool {tool.name!r}")
        except NotJson as error:
            raise MCPServerError(f"MCP server {self.name!r} lists what cannot be used: {error}") from error
        about = tool.description or tool.title or ""
        return MCPTool(tool.name, about, schema, _side_effect(tool.annotations))

    async def call_tool(self, name: str, arguments: JsonObject) -> JsonValue:
        """Call a tool of the server.

        Returns:
            Its structured content if it gave any, else its text, else all of its content.

        Raises:
            MCPToolError: when the server says that the call failed.
            MCPServerError: when the server was lost, took too long or does not speak MCP.
            NotJson: when `arguments` are not JSON.
        """
        given = frozen_object(arguments, f"the arguments of MCP tool {name!r}")
        result = await self._ask(f"tool {name!r}", lambda client: client.call_tool(name, given))
        output = _flat(result)
        if result.is_error:
            raise MCPToolError(output if isinstance(output, str) else f"the call failed: {output}")
        return output

    async def _ask(self, what: str, request: Callable[[Client], Awaitable[T]]) -> T:
        from mcp.shared.exceptions import MCPError
        from mcp.types import CONNECTION_CLOSED

        connection = await self._connected()
        try:
            async with asyncio.timeout(self.call_timeout):
                return await request(connection.client)
        except TimeoutError:
            raise MCPServerError(
                f"MCP server {self.name!r} did not answer for {what} within {self.call_timeout:g} s"
            ) from None
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise MCPToolError(
                    f"MCP server {self.name!r} gave no result for {what}: {shorten(error.message)}"
                ) from error
            await connection.close()
            raise MCPServerError(
                f"MCP server {self.name!r} was lost while it was asked for {what}{connection.fate}; "
                "the next call opens it anew"
            ) from error
        except (ValueError, RuntimeError) as error:
            raise MCPServerError(
                f"MCP server {self.name!r} gave an answer for {what} that is not MCP: {_reason(error)}"
            ) from error

    async def _connected(self) -> _Connection:
        """The connection; a new one if there is none or it is lost."""
        async with self._connecting:
            if not self._open:
                raise MCPServerError(
                    f"MCP server {self.name!r} is not open: put `async with` around its client"
                )
            if self._connection is None or self._connection.lost:
                if self._connection is not None:
                    await self._connection.close()
                self._connection = _Connection(self._wire)
                await self._start(self._connection)
            return self._connection

    async def _start(self, connection: _Connection) -> None:
        try:
            async with asyncio.timeout(self.start_timeout):
                await connection.started()
        except TimeoutError:
            fate = connection.fate
            await connection.close()
            raise MCPServerError(
                f"MCP server {self.name!r} did not answer within {self.start_timeout:g} s of its start"
                f"{fate}; check how it is started, or give it a larger start_timeout"
            ) from None
        except Exception as error:
            await connection.close()
            raise MCPServerError(
                f"MCP server {self.name!r} could not be opened: {_reason(error)}{connection.fate}"
            ) from error
        except asyncio.CancelledError:
            connection.abandon()
            raise


class _Connection:
    """An open SDK client in the hands of one task, which opens it and closes it."""

    def __init__(self, wire: Callable[[Callable[[], None]], Wire]) -> None:
        self._closing = asyncio.Event()
        self._wire = wire(self._closing.set)
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own())

    async def _own(self) -> None:
        from mcp import Client

        failure: Exception = ConnectionError("it was closed before it had started")
        try:
            async with Client(self._wire, cache=None) as client:
                self._ready.set_result(client)
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the start
            failure = error
        finally:
            self._closing.set()
            if not self._ready.done():
                self._ready.set_exception(failure)
                self._ready.exception()  # nobody needs to wait for it

    @property
    def client(self) -> Client:
        """The SDK's client, once started."""
        return self._ready.result()

    @property
    def lost(self) -> bool:
        """Whether nothing more can come of it."""
        return self._closing.is_set()

    @property
    def fate(self) -> str:
        """What is known of the server's end, to be appended to a sentence."""
        return f": {fate}" if (fate := self._wire.fate) else ""

    async def started(self) -> None:
        """Wait until it can be used; raises whatever prevents that."""
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        """End it, whether or not it has started."""
        self._closing.set()
        if not self._ready.done():
            self._owner.cancel()
        _, waiting = await asyncio.wait([self._owner], timeout=_TO_CLOSE)
        if waiting:
            self.abandon()

    def abandon(self) -> None:
        """Begin to end it by force, and do not wait."""
        self._owner.cancel()


def _load_sdk() -> None:
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "a client of MCP servers needs the extra `mcp`: install agent-playground[mcp]"
        ) from error


def _page(cursor: str | None, client: Client) -> Awaitable[ListToolsResult]:
    return client.list_tools(cursor=cursor)


def _side_effect(hints: ToolAnnotations | None) -> SideEffect | None:
    if hints is None:
        return None
    if hints.read_only_hint is not None:
        return "read" if hints.read_only_hint else "write"
    return "write" if hints.destructive_hint else None


def _flat(result: CallToolResult) -> JsonValue:
    """One JSON value of what a server answers with: parts of several kinds, and perhaps a structure."""
    structure: JsonValue = result.structured_content
    if isinstance(structure, dict) and structure.keys() == {"result"}:
        return structure["result"]  # how servers wrap a value that is no object
    if structure is not None:
        return structure
    texts = [part.text for part in result.content if part.type == "text"]
    if len(texts) == len(result.content):
        return "\n".join(texts)
    return [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in result.content]


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return shorten(" ".join(str(error).split()) or type(error).__name__)


class StdioMCPClient(_Client):
    """A server in a child process, spoken to over its stdin and stdout.

    Opened with `async with`, which starts the process; leaving it ends the
    process and all that it started, within two seconds.  A process that dies
    fails the calls on it and is started anew by the next call.

    Args:
        command: the program; or, as in a shell, a list of it and its arguments.
        args: its arguments.
        env: environment variables, on top of a few harmless ones (PATH, HOME, …):
            a server does not see the keys and tokens of this process.
        cwd: its working directory.
        name: what it is called in errors; by default the first words of its command.
        start_timeout: seconds that it may take from its start to its first answer.
        call_timeout: seconds that one call may take; it is then cancelled.

    Raises:
        ValueError: when there is no command.
        MCPServerError: on opening, when there is no such program, when it ends
            (with its exit code and the last of its stderr), or does not answer in time.
        ImportError: on opening, when the extra `mcp` is not installed.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        name: str = "",
        start_timeout: float = START_TIMEOUT,
        call_timeout: float = TIMEOUT,
    ) -> None:
        program = [command] if isinstance(command, str) else [*command]
        self._command = [*program, *args]
        if not self._command:
            raise ValueError("a server in a child process needs a command: give the program that starts it")
        called = name or " ".join(Path(part).name for part in self._command[:2])
        super().__init__(called, start_timeout, call_timeout)
        self._env = dict(env or {})
        self._cwd = cwd
        self._process: ServerProcess | None = None

    @property
    def stderr(self) -> str:
        """The last few kilobytes that the server wrote to stderr."""
        return self._process.stderr if self._process else ""

    def _wire(self, ended: Callable[[], None]) -> Wire:
        from mcp.client.stdio import get_default_environment

        env = get_default_environment() | self._env
        self._process = ServerProcess(self._command, env=env, cwd=self._cwd, max_line=MAX_MESSAGE)
        return StdioWire(self._process, self.name, ended)


class HttpMCPClient(_Client):
    """A server behind a URL, spoken to over streamable HTTP.

    Opened with `async with`.  A server that is lost fails the calls on it, and
    the next call connects anew.

    Args:
        url: the server's endpoint, such as "http://127.0.0.1:8000/mcp".
        headers: sent with each request, such as an authorization.
        name: what it is called in errors; by default the URL.
        start_timeout: seconds that it may take to the first answer.
        call_timeout: seconds that one call may take; it is then cancelled.

    Raises:
        MCPServerError: on opening, when the server cannot be reached or does not speak MCP.
        ImportError: on opening, when the extra `mcp` is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        name: str = "",
        start_timeout: float = START_TIMEOUT,
        call_timeout: float = TIMEOUT,
    ) -> None:
        super().__init__(name or url, start_timeout, call_timeout)
        self._url = url
        self._headers = dict(headers or {})

    def _wire(self, ended: Callable[[], None]) -> Wire:  # noqa: ARG002 - a URL does not end
        return HttpWire(self._url, self._headers)
