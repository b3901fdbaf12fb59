"""A server as a child process that speaks in lines, and everything that can go wrong with one.

Servers that people write print to the wrong place, never stop writing, die, or
refuse to.  None of it may hang the one who started them or fill the memory.
So here a child has a process group of its own, that ends as a whole; what it
writes to stderr is always read and the last of it is kept; a line on stdout has
a largest size; and each wait has an end.

Lines end with a line feed and nothing else does: JSON text may hold U+2028.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

STDERR_KEPT: Final = 4 << 10
"""Bytes of stderr that are kept, the last ones."""

_HEAD: Final = 1 << 10
_UNREAD: Final = 1 << 20
_TO_LEAVE: Final = 0.6
_TO_OBEY: Final = 0.5
_TO_DIE: Final = 0.5
_LAST_WORDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output, without its end; of one that was too long, the beginning."""

    text: bytes
    cut: bool = False


class ServerProcess:
    """A child process, spoken to in lines.

    Args:
        command: the program and its arguments.
        env: its whole environment.
        cwd: its working directory.
        max_line: largest line taken whole, in bytes.
    """

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: str | Path | None, max_line: int
    ) -> None:
        self._command = tuple(command)
        self._env = dict(env)
        self._cwd = cwd
        self._pipes = _Pipes(max_line)
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code once it has ended; the negative number of a signal that ended it."""
        return self._transport.get_returncode() if self._transport else None

    @property
    def stderr(self) -> str:
        """The last of what it wrote to stderr."""
        return self._pipes.stderr.decode("utf-8", "replace").strip()

    async def start(self) -> None:
        """Start it.

        Raises:
            OSError: when there is no such program or directory, or it may not be run.
            ValueError: when the command holds a null character.
        """
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.subprocess_exec(
            lambda: self._pipes, *self._command, env=self._env, cwd=self._cwd, start_new_session=True
        )

    async def read(self) -> Line | None:
        """The next line, or None when there will be no more."""
        return await self._pipes.next_line()

    def pretend(self, text: bytes) -> None:
        """Let `read` give this line too, as if the process had written it."""
        self._pipes.put(Line(text))

    async def write(self, line: bytes) -> None:
        """Send a line, waiting while the process does not read.

        Raises:
            ConnectionError: when it has closed its input or ended.
        """
        await self._pipes.write(line + b"\n")

    async def stop(self) -> None:
        """End it and all that it started: politely, then not.  Takes below two seconds."""
        transport, pipes = self._transport, self._pipes
        if transport is None:
            return
        pipes.close()
        try:
            if not await pipes.exits_within(_TO_LEAVE):
                self._signal(signal.SIGTERM)
                await pipes.exits_within(_TO_OBEY)
        finally:
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            try:
                await pipes.exits_within(_TO_DIE)
            finally:
                transport.close()

    def _signal(self, number: int) -> None:
        """Send a signal to the whole group, which may outlive the process that leads it."""
        if self._transport is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._transport.get_pid(), number)
            else:
                self._transport.send_signal(number)


class _Pipes(asyncio.SubprocessProtocol):
    """The three pipes of a process, as the event loop sees them."""

    def __init__(self, max_line: int) -> None:
        self.stderr = bytearray()
        self._max_line = max_line
        self._lines: deque[Line] = deque()
        self._unread = 0
        self._line = bytearray()
        self._cut = False
        self._closing = False
        self._something = asyncio.Event()  # a line, or the end of them
        self._ended = False
        self._room = asyncio.Event()
        self._room.set()
        self._exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        process = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", process.get_pipe_transport(0))
        self._stdout = cast("asyncio.ReadTransport", process.get_pipe_transport(1))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr += data
            del self.stderr[:-STDERR_KEPT]
        elif not self._closing:
            *ends, rest = data.split(b"\n")
            for piece in ends:
                self._extend(piece)
                self._finish_line()
            self._extend(rest)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if fd == 1:
            if self._line:
                self._finish_line()
            self._end()
        elif fd == 0:
            self._room.set()

    def process_exited(self) -> None:
        self._exited.set()
        self._room.set()
        self._end_soon()

    def _end_soon(self) -> None:
        """End even if something that the process started holds its output open for ever."""
        asyncio.get_running_loop().call_later(
            _LAST_WORDS, self._end_soon if self._unread > _UNREAD else self._end
        )

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def _extend(self, piece: bytes) -> None:
        if self._cut:
            return
        self._line += piece
        if len(self._line) > self._max_line:
            self._cut = True
            del self._line[_HEAD:]

    def _finish_line(self) -> None:
        self.put(Line(bytes(self._line.removesuffix(b"\r")), self._cut))
        self._line.clear()
        self._cut = False

    def put(self, line: Line) -> None:
        self._lines.append(line)
        self._unread += len(line.text)
        self._something.set()
        if self._unread > _UNREAD:
            self._stdout.pause_reading()

    def _end(self) -> None:
        self._ended = True
        self._something.set()

    async def next_line(self) -> Line | None:
        while not self._lines:
            if self._ended:
                return None
            self._something.clear()
            await self._something.wait()
        line = self._lines.popleft()
        self._unread -= len(line.text)
        if self._unread <= _UNREAD:
            self._stdout.resume_reading()
        return line

    async def write(self, data: bytes) -> None:
        await self._room.wait()
        if self._exited.is_set() or self._stdin.is_closing():
            raise ConnectionResetError("the process has closed its input")
        self._stdin.write(data)
        await self._room.wait()

    def close(self) -> None:
        """Say that nothing more will be said, and throw away what it still says."""
        self._closing = True
        self._lines.clear()
        self._stdin.close()
        self._stdout.resume_reading()
        self._end()

    async def exits_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        return self._exited.is_set()
