"""A well-behaved server, written with the official SDK: over stdio, or over HTTP with a port as argument."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from typing import Literal

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("honest", log_level="ERROR")


class Sum(BaseModel):
    total: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int = 1) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


@server.tool()
def greet(name: str, tone: Literal["kind", "short"] = "kind") -> str:
    """Say hello."""
    return f"hello {name}" if tone == "kind" else name


@server.tool(structured_output=False)
def words() -> list[str]:
    """Text in two parts."""
    return ["one", "two"]


@server.tool()
def boom() -> str:
    """Fail."""
    raise ToolError("the shop is closed")


happened: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)


@server.tool()
async def wait() -> str:
    """Wait for ever."""
    happened["started"].set()
    try:
        await anyio.sleep_forever()
    finally:
        happened["cancelled"].set()


@server.tool()
async def until(word: str) -> str:
    """Wait until `wait` has started or was cancelled."""
    await happened[word].wait()
    return word


@server.tool()
def die() -> str:
    """End the server in the middle of the call."""
    os._exit(1)


@server.tool()
def big() -> str:
    """More text than a client takes."""
    return "x" * (10 << 20)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
