"""Real processes that are really killed, and disks that are full."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from playground.backends import FileEventLog, Store, StoreError, open_store
from tests.backends.samples import event, events, path_of, record, snapshot

ROOT = Path(__file__).parents[2]
Start: TypeAlias = Callable[[str, str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that do one of the tasks in `writer.py`; none outlives the test."""
    processes: list[subprocess.Popen[str]] = []

    def start_one(url: str, task: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.backends.writer", url, task]
        pipe = subprocess.PIPE
        processes.append(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))
        return processes[-1]

    yield start_one
    for process in processes:
        with process:
            process.kill()


def kill_after(process: subprocess.Popen[str], acknowledged: int) -> int:
    """SIGKILL after so many more acknowledgements; the last number that the process has acknowledged."""
    assert process.stdout is not None
    with process:
        told = [process.stdout.readline() for _ in range(acknowledged)]
        process.kill()
        told += process.stdout
    return int([line for line in told if line.endswith("\n")][-1])


@pytest.mark.parametrize("sync", ["full", "normal"])
async def test_after_a_kill_every_acknowledged_batch_is_there_and_no_half_case_D30(
    disk_url: str, sync: str, start: Start
) -> None:
    luck = random.Random(30)  # noqa: S311
    url = f"{disk_url}?sync={sync}"
    for _ in range(4):
        acknowledged = kill_after(start(url, "batches"), luck.randrange(2, 40))

        async with open_store(url) as store:
            there = await store.log.events("r")
        assert len(there) >= acknowledged
        assert [e.seq for e in there] == list(range(1, len(there) + 1))
        first = 1
        while first <= len(there):
            size = there[first - 1].data["size"]
            assert isinstance(size, int)
            assert [e.data["size"] for e in there[first - 1 : first - 1 + size]] == [size] * size
            first += size


async def test_after_a_kill_the_latest_snapshot_record_and_documents_are_whole(
    disk_url: str, start: Start
) -> None:
    luck = random.Random(16)  # noqa: S311
    for _ in range(3):
        acknowledged = kill_after(start(disk_url, "everything"), luck.randrange(2, 20))

        async with open_store(disk_url) as store:
            saved = await store.checkpoints.load("r")
            assert saved is not None
            assert saved["n"] in (acknowledged, acknowledged + 1)
            n = saved["n"]
            assert isinstance(n, int)
            assert saved == snapshot(n)
            kept = await store.runs.get("r")
            assert kept in (record("r", waiting=n), record("r", waiting=n + 1))
            documents = await store.documents.all("s")
            assert documents[f"k{n % 50}"] == n


async def test_a_kill_half_way_through_an_append_leaves_the_batches_before_it(
    tmp_path: Path, start: Start
) -> None:
    url = f"file:{tmp_path}"
    with start(url, "half_a_batch") as process:
        assert process.wait() == -signal.SIGKILL

    async with open_store(url) as store:
        assert (tmp_path / "r.jsonl").read_bytes().count(b'"text"') > 0
        assert await store.log.events("r") == events(1, 1)
        await store.log.append_many(events(2, 3))
        assert await store.log.events("r") == events(1, 3)


async def test_a_kill_half_way_through_a_save_leaves_the_snapshot_before_it_case_D16(
    tmp_path: Path, start: Start
) -> None:
    url = f"file:{tmp_path}"
    with start(url, "half_a_snapshot") as process:
        assert process.wait() == -signal.SIGKILL

    async with open_store(url) as store:
        assert (tmp_path / "r.json.tmp").stat().st_size > 0
        assert await store.checkpoints.load("r") == snapshot(1)
        assert await store.checkpoints.save("r", snapshot(3), expected_version=1) == 2
        await store.runs.delete("r")
    assert not [name for name in os.listdir(tmp_path) if name.startswith("r.")]


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file of this process may grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def size_of_files(url: str) -> int:
    """The largest file of a store, in bytes."""
    path = path_of(url)
    files = path.parent.glob(path.name + "*") if url.startswith("sqlite:") else path.iterdir()
    return max(file.stat().st_size for file in files)


async def test_a_full_disk_fails_the_write_and_spares_what_is_there(disk_url: str) -> None:
    async with open_store(disk_url) as store:
        await store.log.append_many(events(1, 3))
        await store.checkpoints.save("r", {"n": 1})
        await store.documents.put("s", "k", 1)
        with full_disk(size_of_files(disk_url) + 5000):
            with pytest.raises(StoreError, match=str(path_of(disk_url))):
                await store.log.append_many([event(4, n=4), event(5, x="x" * 100_000)])
            with pytest.raises(StoreError, match="make room"):
                await store.checkpoints.save("r", {"x": "x" * 100_000})
            with pytest.raises(StoreError, match="make room"):
                await store.documents.put("s", "k", "x" * 100_000)
            assert await store.log.events("r") == events(1, 3)

        await check_and_go_on(store)
    async with open_store(disk_url) as store:
        assert await store.log.events("r") == events(1, 5)


async def check_and_go_on(store: Store) -> None:
    """Nothing of the failed writes is there, and the store takes new ones."""
    assert await store.log.events("r") == events(1, 3)
    assert await store.checkpoints.load("r") == {"n": 1}
    assert await store.documents.all("s") == {"k": 1}
    await store.log.append_many(events(4, 5))
    assert await store.checkpoints.save("r", {"n": 2}, expected_version=1) == 2
    await store.documents.put("s", "k", 2)


@pytest.mark.parametrize("failing", ["write", "fdatasync"])
async def test_a_write_or_sync_that_fails_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    real = os.write

    def fail(fd: int, *data: memoryview) -> int:
        if data and len(data[0]) > 10:
            return real(fd, data[0][:10])
        raise OSError(28, "No space left on device")

    async with open_store(f"file:{tmp_path}") as store:
        await store.log.append_many(events(1, 3))
        before = (tmp_path / "r.jsonl").read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, fail)
            with pytest.raises(StoreError, match=r"r.jsonl: No space left on device: nothing of this write"):
                await store.log.append(event(4, n=4))
        assert (tmp_path / "r.jsonl").read_bytes() == before
        await store.log.append(event(4, n=4))
        assert await store.log.events("r") == events(1, 4)


async def test_a_log_that_nobody_closes_keeps_no_file_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for n in range(20):
        await FileEventLog(tmp_path).append(event(1, f"r{n}"))
    for _ in range(20):
        await FileEventLog(tmp_path).events("r1")

    assert len(os.listdir("/dev/fd")) <= before + 2


async def test_many_runs_keep_only_some_files_open(tmp_path: Path) -> None:
    log = FileEventLog(tmp_path, sync=False)
    before = len(os.listdir("/dev/fd"))
    for seq in (1, 2):
        for n in range(100):
            await log.append(event(seq, f"r{n}"))

    assert len(os.listdir("/dev/fd")) < before + 100
    assert await log.events("r0") == [event(1, "r0"), event(2, "r0")]
    await log.close()


async def test_of_two_processes_exactly_one_wins_each_seq(disk_url: str, start: Start) -> None:
    disk_url += "?sync=normal"
    await open_store(disk_url).close()
    processes = [start(disk_url, "contend") for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    wins: Counter[int] = Counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, _ = process.communicate()
        assert process.returncode == 0
        wins.update(int(line) for line in out.split())

    async with open_store(disk_url) as store:
        there = await store.log.events("r")
    assert wins == Counter(range(1, 400, 2))
    assert [e.seq for e in there] == list(range(1, 401))
    assert all(a.data == b.data for a, b in zip(there[::2], there[1::2], strict=True))


async def test_processes_that_make_a_store_at_the_same_time_make_one(disk_url: str, start: Start) -> None:
    disk_url += "?sync=normal"
    processes = [start(disk_url, "contend") for _ in range(3)]
    for process in processes:
        process.communicate("go\n")
        assert process.returncode == 0

    async with open_store(disk_url) as store:
        assert len(await store.log.events("r")) == 400
