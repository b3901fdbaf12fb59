"""A process that writes to a store until it is killed: `writer.py URL TASK`.

It prints a line for each thing that the store has acknowledged, and the test
kills it at a moment of its own choice.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import NoReturn

from playground.backends import Store, open_store
from playground.kernel.eventlog import LogConflict
from tests.backends.samples import event, record, snapshot


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def batches(store: Store) -> None:
    """Append batches of one to five events without end, going on where the log ends."""
    last = len(await store.log.events("r"))
    while True:
        size = 1 + last % 5
        await store.log.append_many([event(last + i, n=last + i, size=size) for i in range(1, size + 1)])
        last += size
        tell(last)


async def everything(store: Store) -> None:
    """Save a snapshot, a record and a document for each number, without end."""
    n = int((await store.checkpoints.load("r") or {"n": 0})["n"])  # type: ignore[call-overload]
    while True:
        n += 1
        await store.documents.put("s", f"k{n % 50}", n)
        await store.runs.put(record("r", waiting=n))
        await store.checkpoints.save("r", snapshot(n))
        tell(n)


async def contend(store: Store) -> None:
    """Try for each of 200 batches of two; a conflict means that the other one has it."""
    me = str(os.getpid())
    tell("ready")
    sys.stdin.readline()
    for seq in range(1, 400, 2):
        try:
            await store.log.append_many([event(seq, by=me), event(seq + 1, by=me)])
        except LogConflict:
            continue
        tell(seq)


def die_half_way(store: Store, name: str) -> None:
    """From now on, the second half of the first write to a file is never done."""
    real = os.write

    def half(fd: int, data: memoryview) -> NoReturn:
        real(fd, bytes(data)[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(name, store)

    os.write = half  # type: ignore[assignment]


async def half_a_batch(store: Store) -> None:
    await store.log.append(event(1, n=1))
    tell(1)
    die_half_way(store, "append")
    await store.log.append_many([event(n, n=n, text="x" * 100) for n in range(2, 6)])


async def half_a_snapshot(store: Store) -> None:
    await store.checkpoints.save("r", snapshot(1))
    tell(1)
    die_half_way(store, "save")
    await store.checkpoints.save("r", snapshot(2))


async def main(url: str, task: str) -> None:
    async with open_store(url) as store:
        await globals()[task](store)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
