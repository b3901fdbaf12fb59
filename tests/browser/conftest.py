"""A real server process on loopback, and a real Chromium in front of it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import Page, expect

expect.set_options(timeout=20_000)

ROOT = Path(__file__).resolve().parents[2]
OWN = Path(__file__).with_name("scenarios")


class Server:
    """`playground serve` as a user starts it; the port and the store stay the same over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[str] | None = None
        self.said = ""

    def start(self) -> None:
        command = [sys.executable, "-m", "playground", "serve", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*command, "--store", "sqlite:runs.db", "--scenarios", str(OWN)],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PLAYGROUND_PACE": "0.005"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert self.url in first, first
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()

    def _listen(self, out: IO[str]) -> None:
        with out:
            for line in out:
                self.said += line

    def kill(self) -> None:
        """SIGKILL: no goodbye."""
        assert self._process is not None
        self._process.kill()
        self._gone(10)

    def interrupt(self, timeout: float) -> int:
        """Ctrl-C; the exit code.

        Raises:
            subprocess.TimeoutExpired: it is still there after `timeout` seconds.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._gone(timeout)

    def _gone(self, timeout: float) -> int:
        assert self._process is not None
        code = self._process.wait(timeout)
        self._listener.join()
        return code

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server with its store in a folder, started, and gone after the block."""
    running = Server(folder)
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all whose runs may stand beside those of others."""
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server for one test alone, which may end it, or count on its having no runs yet."""
    with serving(tmp_path) as running:
        yield running


def start(page: Page, server: Server, key: str) -> str:
    """Pick a scenario and press Run; returns the address of the run."""
    page.goto(f"{server.url}/scenarios/{key}")
    page.get_by_role("button", name="Run", exact=True).first.click()
    page.wait_for_url(re.compile(r"/runs/run-"))
    at_hand(page)
    return page.url.partition("#")[0]


def at_hand(page: Page) -> None:
    """Wait until the scripts of a run page, which is shown before they begin, have made its badge speak."""
    expect(page.locator("#connection")).not_to_have_attribute("data-state", "connecting")


def positions(page: Page) -> list[int]:
    """The positions of the events on the page, in the order in which they are shown."""
    return [
        int(at) for at in page.locator("#timeline > li").evaluate_all("rows => rows.map(r => r.dataset.at)")
    ]


def mood(page: Page, name: str) -> None:
    """Wait until the run stands so: running, waiting, completed…"""
    expect(page.locator("#status")).to_have_attribute("data-mood", name)
