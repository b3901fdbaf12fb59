"""Tools of MCP servers become tools like any other: names, grading, arguments, results."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import Bus, ToolCall, ToolResult
from playground.runtime.mcp import InProcessMCPServer, MCPToolError, StdioMCPClient, load_mcp_tools
from playground.runtime.tools import ToolRegistry

X = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def echo_server(*names: str, **options) -> InProcessMCPServer:
    server = InProcessMCPServer("demo")
    for name in names or ("echo",):
        server.define(name, lambda arguments: arguments.get("x"), parameters=X, **options)
    return server


async def call(registry: ToolRegistry, name: str, **arguments) -> ToolResult:
    return await registry.dispatch(ToolCall(name, arguments))


async def test_a_loaded_tool_is_called_like_a_local_one() -> None:
    registry = ToolRegistry()
    assert await load_mcp_tools(registry, echo_server(description="Echo")) == ["echo"]
    assert (await call(registry, "echo", x=42)).output == 42
    spec = registry.get("echo")
    assert (spec.description, spec.parameters) == ("Echo", X)


async def test_arguments_that_do_not_fit_never_reach_the_server() -> None:
    server = InProcessMCPServer().define("act", lambda _: pytest.fail("called"), parameters=X)
    registry = ToolRegistry()
    await load_mcp_tools(registry, server)
    assert "'x' is a required property" in (await call(registry, "act")).error


async def test_a_handler_may_be_async_and_gets_its_arguments_as_one_dict() -> None:
    async def handler(arguments):
        return arguments

    registry = ToolRegistry()
    await load_mcp_tools(registry, InProcessMCPServer().define("act", handler))
    assert (await call(registry, "act", x=1, y=[2])).output == {"x": 1, "y": [2]}


async def test_a_handler_that_raises_is_a_failed_result() -> None:
    def handler(_):
        raise ValueError("closed")

    registry = ToolRegistry()
    await load_mcp_tools(registry, InProcessMCPServer().define("act", handler))
    assert (await call(registry, "act")).error == "ValueError: closed"


async def test_a_tool_that_an_in_process_server_lacks_is_an_error_that_names_both() -> None:
    with pytest.raises(MCPToolError, match="'demo' has no tool 'nope'"):
        await echo_server().call_tool("nope", {})


# Names


async def test_a_prefix_keeps_the_tools_of_two_servers_apart() -> None:
    registry = ToolRegistry()
    assert await load_mcp_tools(registry, echo_server(), prefix="a_") == ["a_echo"]
    assert await load_mcp_tools(registry, echo_server(), "b_") == ["b_echo"]


async def test_a_server_cannot_take_the_name_of_a_tool_that_is_there() -> None:
    def echo():
        return "mine"

    registry = ToolRegistry().function(echo)
    assert await load_mcp_tools(registry, echo_server("echo", "echo_2")) == ["echo_2", "echo_2_2"]
    assert (await call(registry, "echo")).output == "mine"


async def test_a_name_is_made_fit_for_models_and_the_server_still_gets_its_own() -> None:
    asked = []

    class Server(InProcessMCPServer):
        async def call_tool(self, name, _):
            asked.append(name)

    registry = ToolRegistry()
    assert await load_mcp_tools(registry, Server().define("files/read.txt", id)) == ["files_read_txt"]
    await call(registry, "files_read_txt")
    assert asked == ["files/read.txt"]


@given(st.lists(st.text(min_size=1, max_size=80)), st.text(max_size=70))
async def test_names_never_clash_and_always_fit_models(names, prefix) -> None:
    registry = ToolRegistry().function(len, name="taken")
    server = echo_server("taken", *names)
    loaded = await load_mcp_tools(registry, server, prefix)
    assert len(set(loaded)) == len(loaded) == len(await server.list_tools())
    assert all(re.fullmatch(r"[\w-]{1,64}", name) for name in loaded)


async def test_tools_are_loaded_all_or_not_at_all() -> None:
    class Server(InProcessMCPServer):
        async def list_tools(self):
            raise ConnectionError

    registry = ToolRegistry()
    with pytest.raises(ConnectionError):
        await load_mcp_tools(registry, Server())
    assert registry.names() == []


# Grading


@pytest.mark.parametrize(("said", "graded"), [("read", "read"), ("write", "write"), (None, "read")])
async def test_a_tool_is_graded_as_the_server_says(said, graded) -> None:
    registry = ToolRegistry()
    await load_mcp_tools(registry, echo_server(side_effect=said))
    assert registry.get("echo").side_effect == graded


async def test_what_an_untrusted_server_does_not_mark_can_count_as_writing() -> None:
    registry = ToolRegistry()
    await load_mcp_tools(registry, echo_server(), unmarked="write")
    assert registry.get("echo").side_effect == "write"


async def test_a_write_tool_of_a_server_passes_the_same_gate() -> None:
    bus = Bus()
    bus.checker("tool:echo", lambda **_: False)
    registry = ToolRegistry(bus=bus)
    await load_mcp_tools(registry, echo_server(side_effect="write"))
    assert "not approved" in (await call(registry, "echo", x=1)).error


# The extra


def test_importing_the_module_loads_neither_the_sdk_nor_http() -> None:
    code = (
        "import sys, playground.runtime.mcp;"
        "sys.exit(bool({'mcp', 'httpx2', 'jsonschema', 'anyio'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_opening_a_client_without_the_extra_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ImportError, match=r"install agent-playground\[mcp\]"):
        await StdioMCPClient("anything").__aenter__()
