"""Servers behind a URL: reached, lost, reached again, and never waited for too long."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from playground.kernel import ToolCall
from playground.runtime.mcp import HttpMCPClient, MCPServerError, MCPToolError, load_mcp_tools
from playground.runtime.tools import ToolRegistry

HONEST = Path(__file__).parent / "mcp_servers" / "honest.py"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Honest:
    """The honest server as a process that serves HTTP."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.launch()

    def launch(self) -> None:
        self.process = subprocess.Popen([sys.executable, str(HONEST), str(self.port)])

    async def listening(self) -> None:
        async with asyncio.timeout(60):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    return

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@asynccontextmanager
async def honest() -> AsyncIterator[Honest]:
    server = Honest()
    try:
        await server.listening()
        yield server
    finally:
        server.stop()


@asynccontextmanager
async def raw(serve: Serve) -> AsyncIterator[str]:
    """A server that does with a connection whatever `serve` does."""
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_tools_behind_a_url_are_called_cancelled_and_bounded() -> None:
    async with honest() as server, HttpMCPClient(server.url) as client:
        registry = ToolRegistry()
        assert "net_add" in await load_mcp_tools(registry, client, "net_")
        assert registry.get("net_add").side_effect == "read"
        assert (await registry.dispatch(ToolCall("net_add", {"a": 1}))).output == {"total": 2}
        with pytest.raises(MCPToolError, match="the shop is closed"):
            await client.call_tool("boom", {})

        huge = await registry.dispatch(ToolCall("net_big"))
        assert "its answer is larger than 4,194,304 bytes" in huge.error

        call = asyncio.ensure_future(client.call_tool("wait", {}))
        assert await client.call_tool("until", {"word": "started"}) == "started"
        call.cancel()
        assert await client.call_tool("until", {"word": "cancelled"}) == "cancelled"


async def test_a_server_that_dies_in_a_call_fails_it_and_is_reached_again_once_it_is_back() -> None:
    async with honest() as server, HttpMCPClient(server.url, name="far away") as client:
        with pytest.raises(MCPServerError, match="'far away' was lost while it was asked for tool 'die'"):
            await client.call_tool("die", {})
        with pytest.raises(MCPServerError, match="'far away' could not be opened"):
            await client.call_tool("add", {"a": 1})
        server.process.wait()
        server.launch()
        await server.listening()
        assert await client.call_tool("add", {"a": 1}) == {"total": 2}


async def test_a_url_where_nobody_listens_is_an_error_at_once() -> None:
    with pytest.raises(MCPServerError, match="could not be opened"):
        await HttpMCPClient(f"http://127.0.0.1:{free_port()}/mcp").__aenter__()


async def test_a_page_that_is_no_mcp_server_is_an_error() -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi")
        await writer.drain()

    async with raw(page) as url:
        with pytest.raises(MCPServerError, match=r"could not be opened: .*text/html"):
            await HttpMCPClient(url).__aenter__()


async def test_a_server_that_never_answers_is_given_up_and_left_at_once() -> None:
    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw(silence) as url:
        began = time.monotonic()
        with pytest.raises(MCPServerError, match=r"within 0\.3 s of its start"):
            await HttpMCPClient(url, start_timeout=0.3).__aenter__()
        assert time.monotonic() - began < 2.3


async def test_headers_are_sent_and_nothing_compressed_is_asked_for() -> None:
    heads: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).lower())

    async with raw(listen) as url:
        with pytest.raises(MCPServerError):
            await HttpMCPClient(url, headers={"Authorization": "Bearer t"}).__aenter__()
    assert b"authorization: bearer t" in heads[0]
    assert b"accept-encoding: identity" in heads[0]
