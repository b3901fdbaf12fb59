"""The server as a process: where it listens, what it says, how it stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from playground.backends import StoreError
from playground.web.server import ServeError, address_of, is_local, listen, serve

ROOT = Path(__file__).parents[2]


@contextmanager
def process(*arguments: str, **environ: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`playground serve` with these arguments in a process of its own, and its address."""
    command = [sys.executable, "-m", "playground", "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environ},
    ) as found:
        try:
            line = found.stdout.readline()
            assert line, found.stderr.read()
            yield found, re.search(r"http://\S+", line)[0]
        finally:
            found.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_server_within_seconds_while_streams_are_open(how: signal.Signals) -> None:
    """Case D24: without a traceback, though a client is still listening."""
    with process("--store", "memory:") as (server, address), httpx2.Client(base_url=address) as client:
        made = client.post("/api/runs", json={"scenario": "trader"}).json()
        stream = f"/api/runs/{made['run_id']}/events"
        with client.stream("GET", stream, headers={"accept": "text/event-stream"}) as answer:
            next(answer.iter_raw())
            server.send_signal(how)
            _, errors = server.communicate(timeout=5)

    assert errors == ""


def test_a_run_that_a_killed_server_left_running_goes_on_at_the_next_start(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/runs.db"
    with process("--store", store, PLAYGROUND_PACE="0.2") as (server, address):
        made = httpx2.post(f"{address}api/runs", json={"scenario": "trader"}).json()
        server.kill()
    with process("--store", store, PLAYGROUND_PACE="0") as (_, address):
        stream = f"{address}api/runs/{made['run_id']}/events"
        with httpx2.stream("GET", stream, headers={"accept": "text/event-stream"}) as answer:
            assert any("event: run_suspended" in line for line in answer.iter_lines())


def test_runs_stay_as_they_are_where_that_is_wished(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/runs.db"
    with process("--store", store, PLAYGROUND_PACE="5") as (server, address):
        made = httpx2.post(f"{address}api/runs", json={"scenario": "trader"}).json()
        server.kill()
    with process("--store", store, "--no-recover") as (_, address):
        run = httpx2.get(f"{address}api/runs/{made['run_id']}").json()

    assert (run["state"], run["driven"]) == ("running", False)


def test_a_store_of_another_version_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    with sqlite3.connect(database) as connection:
        connection.execute("create table other (thing)")
        connection.execute("pragma user_version = 99")
    command = [sys.executable, "-m", "playground", "serve", "--port", "0", "--store", f"sqlite:{database}"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30)

    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert str(database) in found.stderr


def test_a_store_that_cannot_be_opened_is_an_error_before_anything_is_served() -> None:
    with pytest.raises(StoreError, match="nothing:here"):
        serve(port=0, store_url="nothing:here")


def test_a_port_that_is_taken_is_named_with_the_way_out() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            ServeError, match=f"cannot listen on 127.0.0.1:{port}: .*; choose another --host or --port"
        ):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_a_port_that_is_none_is_named(port: int) -> None:
    with pytest.raises(ServeError, match="choose another --host or --port"):
        listen("127.0.0.1", port)


@pytest.mark.parametrize("pace", ["fast", "-1", "nan", "inf"])
def test_a_pace_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, pace: str) -> None:
    monkeypatch.setenv("PLAYGROUND_PACE", pace)
    with pytest.raises(ServeError, match=f"PLAYGROUND_PACE is '{pace}': give it seconds, such as 0.03"):
        serve(port=0)


def test_an_address_that_is_not_of_this_machine_is_named() -> None:
    with pytest.raises(ServeError, match="cannot listen on 203"):
        listen("203.0.113.7", 0)


def test_beyond_this_machine_a_token_is_part_of_the_printed_address() -> None:
    with process("--host", "0.0.0.0", "--store", "memory:") as (_, address):
        bare = address.partition("?")[0].replace("localhost", "127.0.0.1")
        assert httpx2.get(bare).status_code == 401
        token = address.partition("token=")[2]
        assert httpx2.get(f"{bare}api/runs", headers={"authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("127.1.2.3", True),
        ("0.0.0.0", False),
        ("::", False),
    ],
)
def test_only_loopback_is_local(host: str, local: bool) -> None:
    assert is_local(host) is local


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80/"),
        ("::1", "http://[::1]:80/"),
        ("0.0.0.0", "http://localhost:80/"),
        ("", "http://localhost:80/"),
    ],
)
def test_the_printed_address_can_be_opened(host: str, address: str) -> None:
    assert address_of(host, 80) == address


def test_importing_the_server_starts_nothing() -> None:
    code = "import playground.web.server, asyncio, threading; assert threading.active_count() == 1"

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=30).returncode == 0
