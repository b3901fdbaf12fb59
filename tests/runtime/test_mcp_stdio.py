"""Servers in child processes: what they give, how they fail, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from playground.kernel import ToolCall, ToolResult
from playground.runtime.mcp import MCPServerError, MCPToolError, StdioMCPClient, load_mcp_tools
from playground.runtime.tools import ToolRegistry

SERVERS = Path(__file__).parent / "mcp_servers"


def honest(**options) -> StdioMCPClient:
    return StdioMCPClient([sys.executable, str(SERVERS / "honest.py")], start_timeout=60, **options)


def hostile(*habits: str, **options) -> StdioMCPClient:
    return StdioMCPClient(sys.executable, ["-S", str(SERVERS / "hostile.py"), *habits], **options)


async def echo(client: StdioMCPClient, word: str):
    return await client.call_tool("echo", {"word": word})


async def through_the_pipeline(client: StdioMCPClient, name: str, **arguments) -> ToolResult:
    registry = ToolRegistry()
    await load_mcp_tools(registry, client)
    return await registry.dispatch(ToolCall(name, arguments))


def running(pid: int) -> bool:
    """Whether there is such a process, and not only its remains."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what another process does: there is no event for it."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


# An honest server


async def test_tools_of_a_real_server_are_listed_graded_and_called() -> None:
    async with honest() as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["add"].description == "Add two numbers."
        assert tools["add"].parameters["required"] == ["a"]
        assert [tools[name].side_effect for name in ("add", "remove", "greet")] == ["read", "write", None]
        assert await client.call_tool("add", {"a": 2, "b": 3}) == {"total": 5}
        assert await client.call_tool("greet", {"name": "Ana"}) == "hello Ana"
        assert await client.call_tool("words", {}) == "one\ntwo"
        with pytest.raises(MCPToolError, match="nope"):
            await client.call_tool("nope", {})
        failed = await through_the_pipeline(client, "boom")
        assert not failed.ok
        assert "the shop is closed" in failed.error


async def test_calls_run_side_by_side_and_a_cancelled_one_is_cancelled_on_the_server() -> None:
    async with honest() as client:
        call = asyncio.ensure_future(client.call_tool("wait", {}))
        assert await client.call_tool("until", {"word": "started"}) == "started"
        call.cancel()
        assert await client.call_tool("until", {"word": "cancelled"}) == "cancelled"
    assert call.cancelled()


async def test_a_server_of_another_author_is_loaded_and_called() -> None:
    pytest.importorskip("mcp_server_time")
    async with StdioMCPClient(
        sys.executable, ["-m", "mcp_server_time", "--local-timezone", "UTC"], start_timeout=60
    ) as client:
        result = await through_the_pipeline(
            client,
            "convert_time",
            source_timezone="Asia/Shanghai",
            time="12:00",
            target_timezone="Europe/Amsterdam",
        )
    assert result.ok, result.error
    assert "Europe/Amsterdam" in json.dumps(result.output)


# A server that dies, hangs or is left


async def test_a_call_that_takes_too_long_fails_and_the_server_is_told() -> None:
    async with hostile("record", name="slow one", call_timeout=0.3) as client:
        with pytest.raises(MCPServerError, match=r"'slow one' did not answer for tool 'echo' within 0\.3 s"):
            await echo(client, "silence")
        assert await echo(client, "hi") == "hi"
        assert "notifications/cancelled" in client.stderr


async def test_a_server_that_dies_in_a_call_fails_it_and_is_opened_anew_by_the_next() -> None:
    async with hostile() as client:
        first = await echo(client, "pid")
        result = await through_the_pipeline(client, "echo", word="die")
        assert not result.ok
        assert "was lost while it was asked for tool 'echo': it ended with exit code 7" in result.error
        assert "no more strength" in result.error
        assert await echo(client, "pid") != first


async def test_many_calls_on_a_server_that_died_open_it_once() -> None:
    async with hostile() as client:
        with pytest.raises(MCPServerError):
            await echo(client, "die")
        assert len(set(await asyncio.gather(*(echo(client, "pid") for _ in range(5))))) == 1


async def test_clients_close_in_any_order_and_from_any_task() -> None:
    """Case D20."""
    async with hostile() as kept:
        other = await asyncio.create_task(hostile().__aenter__())
        pids = [int(await echo(client, "pid")) for client in (other, kept)]
        await asyncio.create_task(other.close())
        assert await echo(kept, "hi") == "hi"
        await eventually(lambda: not running(pids[0]))
    await eventually(lambda: not running(pids[1]))


async def test_a_program_that_ends_without_closing_leaves_no_process() -> None:
    async def forget() -> int:
        client = await hostile().__aenter__()
        return int(await echo(client, "pid"))

    pid = await asyncio.to_thread(asyncio.run, forget())
    await eventually(lambda: not running(pid))


# Starting


async def test_a_command_that_does_not_exist_is_an_error_at_once() -> None:
    """Case D35."""
    with pytest.raises(MCPServerError, match=r"could not be opened: .*no-such-command"):
        await StdioMCPClient("no-such-command").__aenter__()


async def test_a_directory_that_does_not_exist_is_an_error_that_names_it() -> None:
    with pytest.raises(MCPServerError, match=r"could not be opened: .*no-such-place"):
        await hostile(cwd="/no-such-place").__aenter__()


async def test_a_server_that_exits_is_an_error_with_its_code_and_last_words() -> None:
    """Case D35."""
    began = time.monotonic()
    with pytest.raises(MCPServerError, match=r"exit code 3; the last of its stderr: no licence found"):
        await hostile("exits").__aenter__()
    assert time.monotonic() - began < 10


async def test_a_server_that_does_not_answer_is_an_error_after_the_start_timeout() -> None:
    with pytest.raises(MCPServerError, match=r"within 0\.5 s of its start: the last of its stderr: thinking"):
        await hostile("mute", start_timeout=0.5).__aenter__()


async def test_an_opening_that_is_cancelled_leaves_no_process() -> None:
    client = hostile("mute")
    opening = asyncio.ensure_future(client.__aenter__())
    await eventually(lambda: client.stderr.endswith("."))
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    pid = int(client.stderr.strip(".").rpartition(" ")[2])
    await eventually(lambda: not running(pid))


async def test_a_server_that_ignores_questions_of_newer_protocols_is_understood() -> None:
    async with hostile("taciturn") as client:
        assert await echo(client, "hi") == "hi"


async def test_noise_on_stdout_is_skipped_with_a_warning(caplog) -> None:
    """Case D35."""
    with caplog.at_level(logging.WARNING):
        async with hostile("noise", name="noisy") as client:
            assert await echo(client, "hi") == "hi"
    skipped = [record.getMessage() for record in caplog.records if "no message" in record.getMessage()]
    assert len(skipped) == 3
    assert "'noisy'" in skipped[0]
    assert "hello" in skipped[0]


async def test_a_server_sees_only_harmless_variables_and_those_given(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with hostile("nosy", env={"WORD": "given"}, cwd=tmp_path) as client:
        seen = json.loads(client.stderr)
    assert "OPENAI_API_KEY" not in seen
    assert seen["WORD"] == "given"
    assert seen["PATH"]
    assert Path(seen["cwd"]) == tmp_path


async def test_calls_outside_of_the_open_client_say_what_to_do() -> None:
    client = hostile()
    with pytest.raises(MCPServerError, match="is not open: put `async with`"):
        await client.list_tools()
    async with client:
        await client.list_tools()
    with pytest.raises(MCPServerError, match="is not open"):
        await echo(client, "hi")
    async with client:
        assert await echo(client, "again") == "again"


# Lines


async def test_a_flood_on_stderr_stops_nothing_and_its_end_is_kept() -> None:
    """Case D04."""
    async with hostile("stderr") as client:
        began = time.monotonic()
        assert await echo(client, "hi") == "hi"
        assert client.stderr.endswith("the end of it")
        assert len(client.stderr) <= 4096
        await client.close()
        assert time.monotonic() - began < 2


@pytest.mark.parametrize("habit", ["", "crlf"])
async def test_only_a_line_feed_ends_a_line(habit: str) -> None:
    """Case D46."""
    word = "one\u2028two\u0085three\r\nfour\x0bfive"
    async with hostile(habit) as client:
        assert await echo(client, word) == word


async def test_every_message_of_ours_is_one_line() -> None:
    """Case D46."""
    async with hostile("record") as client:
        await echo(client, "a\nb\r\nc\u2028d")
        lines = client.stderr.splitlines()
    assert all(line.startswith("b'{") and line.endswith(r"}\n'") for line in lines)


# Answers


@pytest.mark.parametrize("word", ["huge", "huge, id last"])
async def test_a_huge_answer_fails_its_call_at_once_and_is_not_kept(word: str) -> None:
    async with hostile() as client:
        result = await through_the_pipeline(client, "echo", word=word)
        assert not result.ok
        assert "its answer is larger than 4,194,304 bytes" in result.error
        assert await echo(client, "hi") == "hi"


@pytest.mark.parametrize("word", ["bad byte", "surrogate"])
async def test_an_answer_that_is_no_unicode_fails_its_call_at_once(word: str) -> None:
    async with hostile() as client:
        result = await through_the_pipeline(client, "echo", word=word)
        assert "its answer is not valid JSON in UTF-8" in result.error
        assert await echo(client, "hi") == "hi"


async def test_an_answer_with_nan_is_a_failed_result() -> None:
    async with hostile() as client:
        assert "nan, which is not JSON" in (await through_the_pipeline(client, "echo", word="nan")).error


async def test_an_answer_that_is_not_mcp_is_a_failed_result() -> None:
    async with hostile() as client:
        result = await through_the_pipeline(client, "echo", word="not MCP")
    assert "gave an answer for tool 'echo' that is not MCP" in result.error


async def test_a_list_without_end_is_given_up() -> None:
    async with hostile("endless") as client:
        with pytest.raises(MCPServerError, match="lists tools without end"):
            await client.list_tools()


async def test_closing_fails_the_calls_that_wait() -> None:
    async with hostile() as client:
        call = asyncio.ensure_future(echo(client, "silence"))
        await echo(client, "hi")
        await client.close()
        with pytest.raises(MCPServerError, match="was lost"):
            await call


# The end


@pytest.mark.parametrize("habit", ["", "stubborn"])
async def test_closing_takes_less_than_two_seconds_even_if_the_server_refuses(habit: str) -> None:
    async with hostile(habit) as client:
        began = time.monotonic()
    assert time.monotonic() - began < 2
    with pytest.raises(MCPServerError):
        await client.list_tools()


async def test_what_a_server_has_started_ends_with_it() -> None:
    async with hostile("family") as client:
        child = int(client.stderr)
        assert running(child)
    await eventually(lambda: not running(child))


async def test_a_server_whose_child_holds_its_output_open_is_seen_to_die() -> None:
    async with hostile("family") as client:
        with pytest.raises(MCPServerError, match="exit code 7"):
            await echo(client, "die")


async def test_the_process_is_gone_when_the_block_is_left_by_an_error() -> None:
    pids: list[int] = []

    async def fail() -> None:
        async with hostile() as client:
            pids.append(int(await echo(client, "pid")))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    await eventually(lambda: not running(pids[0]))
