"""Stores touched by other hands, versions or crashes: named errors, and nothing committed is lost."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from playground.backends import (
    DamagedLog,
    FileCheckpointStore,
    FileEventLog,
    Store,
    StoreError,
    file_store,
    open_store,
)
from playground.backends.journal import read_file
from tests.backends.samples import event, events, family, log_file, path_of, record, snapshot

Lines = list[bytes]


async def written(directory: Path) -> Path:
    """A log of five events in three batches; its file."""
    log = FileEventLog(directory)
    await log.append(event(1, n=1))
    await log.append_many(events(2, 4))
    await log.append(event(5, n=5))
    await log.close()
    return directory / "r.jsonl"


@pytest.mark.parametrize(
    "tail", [b'{"run_id":"r","seq":6,"pos":6,"te', '{"run_id":"r","kind":"漢'.encode()[:-1], b"{"]
)
async def test_a_torn_last_line_is_ignored_and_nothing_is_glued_to_it_case_D01(
    tmp_path: Path, tail: bytes
) -> None:
    path = await written(tmp_path)
    path.write_bytes(path.read_bytes() + tail)
    log = FileEventLog(tmp_path)

    assert await log.events("r") == events(1, 5)
    await log.append(event(6, n=6))

    assert await FileEventLog(tmp_path).events("r") == events(1, 6)
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


async def test_a_log_cut_anywhere_reads_as_its_whole_batches_and_goes_on(tmp_path: Path) -> None:
    path = await written(tmp_path)
    whole = path.read_bytes()
    ends = {0: 0}
    for line_end in (i + 1 for i, byte in enumerate(whole) if byte == ord("\n")):
        line = whole[:line_end].splitlines()[-1]
        if b'"batch"' in line:
            ends[line_end] = json.loads(line)["seq"]

    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        last = max(seq for end, seq in ends.items() if end <= cut)
        log = FileEventLog(tmp_path, sync=False)
        assert await log.events("r") == await log.stream("r") == events(1, last)
        await log.append(event(last + 1, n=last + 1))
        assert await log.events("r") == events(1, last + 1)
        await log.close()


async def test_a_log_goes_on_after_a_tear_that_came_while_it_was_open(tmp_path: Path) -> None:
    path = await written(tmp_path)
    log = FileEventLog(tmp_path)
    await log.append(event(6, n=6))
    with path.open("ab") as other:
        other.write(b'{"run_id":"r","seq":7,"pos":7,"ts":1.0,"kind":"x","data":{}}\n{"run')

    await log.append(event(7, n=7))

    assert await log.events("r") == events(1, 7)


def spoil(path: Path, change: Callable[[Lines], Lines]) -> bytes:
    """Change the lines of a file, header first, as an editor would."""
    data = b"".join(change(path.read_bytes().splitlines(keepends=True)))
    path.write_bytes(data)
    return data


FOREIGN = b'{"run_id":"other","seq":1,"pos":9,"ts":1.0,"kind":"x","data":{}}\n'


@pytest.mark.parametrize(
    ("change", "line", "trouble", "readable"),
    [
        pytest.param(lambda x: [*x[:3], *x[4:]], 4, "event 4 after event 2", 1, id="a gap"),
        pytest.param(lambda x: [*x[:2], *x[3:]], 3, "event 3 after event 1", 1, id="a gap before a batch"),
        pytest.param(
            lambda x: [*x[:3], b"x" + x[3], *x[4:]], 4, "not JSON from character 1", 1, id="a broken line"
        ),
        pytest.param(
            lambda x: [*x[:3], x[3].replace(b'"n":3', b'"n":NaN'), *x[4:]], 4, "NaN", 1, id="not json"
        ),
        pytest.param(
            lambda x: [*x[:3], x[3][:-1] + x[3], *x[4:]], 4, "not JSON from", 1, id="two glued together"
        ),
        pytest.param(lambda x: [*x[:3], b"[]\n", *x[3:]], 4, "not an event", 1, id="not an event"),
        pytest.param(lambda x: [*x[:3], b"\xff\n", *x[3:]], 4, "utf-8", 1, id="not text"),
        pytest.param(lambda x: [*x[:3], b"\n", *x[3:]], 4, "not JSON", 1, id="an empty line"),
        pytest.param(
            lambda x: [*x, FOREIGN], 7, "'other' in the log of run r", 5, id="a foreign run at the end"
        ),
        pytest.param(lambda x: [*x[:3], FOREIGN, *x[3:]], 4, "'other' in the", 1, id="a foreign run"),
        pytest.param(lambda x: [*x, b"garbage\n"], 7, "not JSON", 5, id="garbage at the end"),
        pytest.param(
            lambda x: [*x[:5], x[5].replace(b'"pos":5', b'"pos":4')],
            6,
            "position 4 after position 4",
            4,
            id="a position",
        ),
        pytest.param(lambda x: [*x, *x[2:]], 7, "event 2 after event 5", 5, id="events again"),
    ],
)
async def test_a_damaged_log_is_reported_with_its_line_and_read_up_to_there(
    tmp_path: Path, change: Callable[[Lines], Lines], line: int, trouble: str, readable: int
) -> None:
    path = await written(tmp_path)
    data = spoil(path, change)
    log = FileEventLog(tmp_path)

    for read in (log.events("r"), log.stream("r")):
        with pytest.raises(DamagedLog) as caught:
            await read
        assert str(caught.value).startswith(f"{path}, line {line}: ")
        assert trouble in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.before == events(1, readable)

    assert await log.stream("r", limit=1) == events(1, 1)
    await log.append(event(1, "q"))
    assert await log.events("q") == [event(1, "q")]
    assert path.read_bytes() == data


async def test_lines_that_do_not_belong_are_never_cut_off_by_an_append(tmp_path: Path) -> None:
    path = await written(tmp_path)
    data = spoil(path, lambda lines: [*lines, FOREIGN, b'{"torn'])
    log = FileEventLog(tmp_path)

    for _ in range(2):
        with pytest.raises(DamagedLog, match="line 7"):
            await log.append(event(6))

    assert path.read_bytes() == data


async def test_a_log_whose_last_line_was_rewritten_can_be_read_but_not_gone_on_with(tmp_path: Path) -> None:
    path = await written(tmp_path)
    data = spoil(path, lambda lines: [*lines[:-1], json.dumps(json.loads(lines[-1])).encode() + b"\n"])
    path.write_bytes(data := data[:-2] + b',"batch":1}\n')
    log = FileEventLog(tmp_path)

    assert await log.events("r") == events(1, 5)
    with pytest.raises(DamagedLog, match="line 6: this is not an event as we write it"):
        await log.append(event(6))
    assert path.read_bytes() == data


async def test_a_line_of_another_run_of_the_tree_is_checked_when_that_run_is_read(tmp_path: Path) -> None:
    log = FileEventLog(tmp_path)
    await log.append_many(family())
    spoil(tmp_path / "r.jsonl", lambda lines: [*lines[:4], *lines[5:]])

    with pytest.raises(DamagedLog, match="line 7: run r~2 goes on with event 2 after event 0"):
        await log.events("r~2")


async def test_a_batch_with_a_line_taken_out_of_its_end_is_reported(tmp_path: Path) -> None:
    log = FileEventLog(tmp_path)
    await log.append_many([event(1), event(1, "r~1", pos=2)])
    await log.append(event(2, pos=3))
    spoil(tmp_path / "r.jsonl", lambda lines: [*lines[:2], *lines[3:]])

    with pytest.raises(DamagedLog, match="line 3: a batch of 1 events has 2"):
        await log.events("r")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (
            b'{"playground":"log","root":"r","format":2}\n{"future":1}\n',
            "its format is 2, this playground reads 1",
        ),
        (b'{"playground":"log","root":"q","format":1}\n', "line 1: the header"),
        (b'{"n":1}\n{"n":2}\n{"n":3,"te', "line 1: the header"),
        (b"not a log\n", "line 1: the header"),
        (b"not a log", "another kind of file"),
    ],
)
async def test_a_log_file_that_is_not_one_is_refused_and_stays_as_it_is(
    tmp_path: Path, contents: bytes, message: str
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(contents)
    log = FileEventLog(tmp_path)

    for _ in range(2):
        with pytest.raises(StoreError, match=message) as caught:
            await log.append(event(1))
        assert str(path) in str(caught.value)
    if contents.endswith(b"\n"):
        with pytest.raises(StoreError, match=message):
            await log.events("r")
    assert path.read_bytes() == contents


async def test_a_gap_or_a_value_that_is_not_json_in_sqlite_is_reported_and_read_up_to_there(
    tmp_path: Path,
) -> None:
    url = f"sqlite:{tmp_path}/runs.db"
    async with open_store(url) as store:
        await store.log.append_many(events(1, 5))
    with closing(sqlite3.connect(path_of(url), isolation_level=None)) as db:
        db.execute("delete from event where seq = 3")
    async with open_store(url) as store:
        with pytest.raises(DamagedLog, match=r"runs.db, run r: event 3 is missing") as gap:
            await store.log.events("r")
        assert gap.value.before == events(1, 2)
        assert await store.log.stream("r", after=3) == events(4, 5)
    with closing(sqlite3.connect(path_of(url), isolation_level=None)) as db:
        db.execute("update event set data = '{\"n\":NaN}' where seq = 2")
    async with open_store(url) as store:
        with pytest.raises(DamagedLog, match=r"runs.db, run r, event 2: its data is not") as bad:
            await store.log.stream("r")
        assert bad.value.before == events(1, 1)


def newer_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma user_version = 7")


def foreign_sqlite(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("create table event(x)")


@pytest.mark.parametrize(
    ("kind", "spoiler", "message"),
    [
        ("sqlite", newer_sqlite, "its format is 7, this playground reads 1"),
        ("sqlite", foreign_sqlite, "not a playground store"),
        ("sqlite", lambda path: path.write_bytes(b"no database" * 100), "not a database"),
        ("file", lambda path: path.write_text('{"playground":"store","format":7}\n'), "its format is 7"),
        ("file", lambda path: path.write_text("{}"), "header"),
    ],
)
async def test_a_store_of_another_version_or_kind_is_refused_in_one_line_and_stays_as_it_is(
    tmp_path: Path, kind: str, spoiler: Callable[[Path], object], message: str
) -> None:
    url = f"{kind}:{tmp_path}/store"
    await open_store(url).close()
    marker = tmp_path / "store" if kind == "sqlite" else tmp_path / "store" / "_store.json"
    spoiler(marker)
    before = marker.read_bytes()

    with pytest.raises(StoreError, match=message) as caught:
        open_store(url)

    assert str(marker) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert marker.read_bytes() == before


async def test_a_database_that_is_deleted_or_replaced_while_open_is_not_written_to_in_vain(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    async with open_store(f"sqlite:{path}") as store:
        await store.log.append(event(1, n=1))
        path.rename(tmp_path / "kept.db")
        with pytest.raises(StoreError, match="was moved or deleted while it was open"):
            await store.log.append(event(2, n=2))
        path.touch()
        with pytest.raises(StoreError, match="was moved or deleted while it was open"):
            await store.log.append(event(2, n=2))
        (tmp_path / "kept.db").rename(path)
        await store.log.append(event(2, n=2))
        assert await store.log.events("r") == [event(1, n=1), event(2, n=2)]


@pytest.mark.parametrize("url", ["", "memory:x", "sqlite:", "file:", "redis:x", "sqlite:x?sync=no", "x.db"])
def test_an_address_that_names_no_store_is_refused_with_those_that_would(url: str) -> None:
    with pytest.raises(StoreError, match="use memory:, sqlite:PATH or file:DIR"):
        open_store(url)


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_a_place_that_cannot_be_opened_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "folder").mkdir()
    place = tmp_path / ("folder" if kind == "sqlite" else "taken")

    for path in (place, tmp_path / "taken" / "below"):
        with pytest.raises(StoreError, match=str(tmp_path)):
            open_store(f"{kind}:{path}")


async def test_stale_and_empty_files_are_no_checkpoints_case_D16(tmp_path: Path) -> None:
    (tmp_path / "r.json.tmp").write_bytes(b'{"format":1,"run_id":"r","version":9,"snap')
    (tmp_path / "empty.json").write_bytes(b"")
    checkpoints = FileCheckpointStore(tmp_path)

    assert await checkpoints.load("r") is None
    assert await checkpoints.load("empty") is None
    assert await checkpoints.save("r", snapshot(1), expected_version=0) == 1
    assert await checkpoints.save("empty", snapshot(1), expected_version=0) == 1
    assert sorted(os.listdir(tmp_path)) == ["empty.json", "r.json"]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ('{"format":2,"run_id":"r","version":1,"snapshot":{}}', "its format is 2"),
        ('{"format":1,"run_id":"q","version":1,"snapshot":{}}', "not a checkpoint of run r"),
        ('{"format":1,"run_id":"r","version":1,"snap', "not a checkpoint of run r"),
        ("[]", "not a checkpoint of run r"),
    ],
)
async def test_a_checkpoint_that_is_none_is_named_and_others_are_loaded(
    tmp_path: Path, contents: str, message: str
) -> None:
    checkpoints = FileCheckpointStore(tmp_path)
    await checkpoints.save("q", snapshot(1))
    (tmp_path / "r.json").write_text(contents)

    with pytest.raises(StoreError, match=message) as caught:
        await checkpoints.load("r")

    assert str(tmp_path / "r.json") in str(caught.value)
    assert await checkpoints.load("q") == snapshot(1)


async def test_torn_documents_are_ignored_and_damaged_ones_named(tmp_path: Path) -> None:
    url = f"file:{tmp_path}"
    path = tmp_path / "_documents.jsonl"
    async with open_store(url) as store:
        await store.documents.put("s", "a", 1)
    path.write_bytes(path.read_bytes() + b'{"space":"s","key":"b","va')
    async with open_store(url) as store:
        assert await store.documents.all("s") == {"a": 1}
        await store.documents.put("s", "c", 3)
        assert await store.documents.all("s") == {"a": 1, "c": 3}
    path.write_bytes(path.read_bytes() + b"garbage\n")
    async with open_store(url) as store:
        for _ in range(2):
            with pytest.raises(StoreError, match=r"_documents.jsonl, line 4: "):
                await store.documents.all("s")


async def test_a_file_of_documents_does_not_grow_with_every_change(
    tmp_path: Path, opened: Callable[[str], Store]
) -> None:
    here, there = opened(f"file:{tmp_path}?sync=normal"), opened(f"file:{tmp_path}?sync=normal")
    await there.documents.put("s", "other", "kept")
    for n in range(2500):
        await here.documents.put("s", "counter", n)

    assert await there.documents.all("s") == {"other": "kept", "counter": 2499}
    await there.documents.put("s", "last", True)
    assert await here.documents.get("s", "last") is True
    assert len((tmp_path / "_documents.jsonl").read_bytes().splitlines()) < 1100


async def test_names_in_the_folder_never_clash_with_run_ids(tmp_path: Path) -> None:
    async with open_store(f"file:{tmp_path}") as store:
        for run_id in ("runs", "documents", "store"):
            await store.log.append(event(1, run_id))
            await store.checkpoints.save(run_id, snapshot(1))
            await store.runs.put(record(run_id))

    async with open_store(f"file:{tmp_path}") as store:
        assert len((await store.runs.find())[0]) == 3


async def test_each_line_of_a_log_is_readable_json(tmp_path: Path) -> None:
    async with open_store(f"file:{tmp_path}") as store:
        await store.log.append_many(family())

    header, *lines = log_file(f"file:{tmp_path}").read_text(encoding="utf-8").split("\n")[:-1]
    assert json.loads(header) == {"playground": "log", "root": "r", "format": 1}
    assert [json.loads(line)["pos"] for line in lines] == list(range(1, 10))
    assert json.loads(lines[-1])["batch"] == 9


async def test_a_part_of_a_long_log_is_read_without_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileEventLog(tmp_path)
    for first in range(1, 2001, 50):
        await log.append_many([event(seq, text="x" * 1000) for seq in range(first, first + 50)])
    read: list[int] = []

    def counted(path: Path, start: int = 0, size: int = -1) -> bytes:
        read.append(len(data := read_file(path, start, size)))
        return data

    monkeypatch.setattr(file_store, "read_file", counted)
    after = 0
    while page := await log.stream("r", after, 100):
        after = page[-1].pos

    assert after == 2000
    assert sum(read) < 5 * (tmp_path / "r.jsonl").stat().st_size


async def test_damage_that_is_met_on_a_later_page_is_reported_with_its_line(tmp_path: Path) -> None:
    path = await written(tmp_path)
    spoil(path, lambda lines: [*lines[:5], b"garbage\n", *lines[5:]])
    log = FileEventLog(tmp_path)

    assert await log.stream("r", 0, 1) == events(1, 1)
    assert await log.stream("r", 1, 3) == events(2, 4)
    with pytest.raises(DamagedLog, match=r"r\.jsonl, line 6: "):
        await log.stream("r", 4, 1)


async def test_a_log_that_took_the_place_of_another_is_read_from_its_own_lines(tmp_path: Path) -> None:
    log = FileEventLog(tmp_path)
    await log.append_many(events(1, 6))
    assert await log.stream("r", 0, 3) == events(1, 3)
    await log.forget("r")
    longer = [event(seq, text="another") for seq in range(1, 7)]
    await log.append_many(longer)

    assert await log.stream("r", 3, 3) == longer[3:]
