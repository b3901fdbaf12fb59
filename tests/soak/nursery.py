"""Where processes come from: one that has everything imported and forks a child for each order.

An order is a line of JSON on the standard input; the answer is a line with the child's exit code,
-9 if it was killed.  With `kill_after` in the order, the child is killed after so many seconds.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from types import TracebackType

from playground.kernel import JsonObject
from tests.soak import child

ROOT = Path(__file__).parents[2]


class Nursery:
    """Runs one child after another, each in a process of its own."""

    def __enter__(self) -> Nursery:
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "tests.soak.nursery"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def live(self, order: JsonObject) -> int:
        """The exit code of a child that has lived by this order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def fork(order: JsonObject) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child.main(order)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    kill_after = order.get("kill_after")
    if isinstance(kill_after, int | float):
        _kill_later(pid, kill_after)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _kill_later(pid: int, seconds: float) -> None:
    """Kill a child after a while, or let it be if it has ended by then."""
    handle = os.pidfd_open(pid)
    try:
        ended, _, _ = select.select([handle], [], [], seconds)
        if not ended:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(handle)


def serve() -> None:
    for line in sys.stdin:
        sys.stdout.write(f"{fork(json.loads(line))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
