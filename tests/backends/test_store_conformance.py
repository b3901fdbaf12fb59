"""What checkpoints, run lists and documents do, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import pytest

from playground.backends import RunRecord, Store, open_store
from playground.kernel.eventlog import LogConflict, VersionConflict
from playground.kernel.types import RunState
from playground.kernel.values import JsonValue, NotJson
from tests.backends.samples import ODD_VALUES, event, events, family, record, snapshot


async def test_the_latest_snapshot_is_loaded(store: Store) -> None:
    assert await store.checkpoints.load("r") is None

    assert await store.checkpoints.save("r", snapshot(1)) == 1
    assert await store.checkpoints.save("r", snapshot(2)) == 2

    assert await store.checkpoints.load("r") == snapshot(2)
    assert await store.checkpoints.load("r~1") is None


async def test_a_snapshot_is_saved_only_over_the_version_that_is_expected(store: Store) -> None:
    with pytest.raises(VersionConflict, match="version is 0, expected 1"):
        await store.checkpoints.save("r", snapshot(1), expected_version=1)
    await store.checkpoints.save("r", snapshot(1), expected_version=0)
    with pytest.raises(VersionConflict):
        await store.checkpoints.save("r", snapshot(2), expected_version=0)

    assert await store.checkpoints.load("r") == snapshot(1)
    assert await store.checkpoints.save("r", snapshot(2), expected_version=1) == 2


async def test_a_snapshot_shares_nothing_with_the_live_state_case_D14(store: Store) -> None:
    live: dict[str, Any] = {"xs": [1], "deep": {"ys": [1]}}
    await store.checkpoints.save("r", live)
    live["xs"].append(2)
    live["deep"]["ys"].append(2)

    loaded = await store.checkpoints.load("r")
    assert loaded == {"xs": [1], "deep": {"ys": [1]}}
    loaded["more"] = True
    assert await store.checkpoints.load("r") == {"xs": [1], "deep": {"ys": [1]}}


async def test_a_snapshot_that_is_not_json_is_refused_and_the_one_before_kept(store: Store) -> None:
    await store.checkpoints.save("r", snapshot(1))

    with pytest.raises(NotJson, match=r"snapshot of run r at \['x'\]"):
        await store.checkpoints.save("r", {"x": [nan]})

    assert await store.checkpoints.load("r") == snapshot(1)


@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: repr(value)[:20])
async def test_snapshots_and_documents_come_back_equal(store: Store, value: JsonValue) -> None:
    await store.checkpoints.save("r", {"value": value})
    await store.documents.put("space", "key", value)

    assert repr(await store.checkpoints.load("r")) == repr({"value": value})
    assert repr(await store.documents.get("space", "key")) == repr(value)


async def test_a_record_is_put_read_and_put_again(store: Store) -> None:
    first = record("r", waiting=2, continues="q", forked_from="p")
    await store.runs.put(first)
    assert await store.runs.get("r") == first

    second = record("r", state=RunState.COMPLETED, task="a\0b 漢")
    await store.runs.put(second)
    assert await store.runs.get("r") == second
    assert (await store.runs.get("r")).state is RunState.COMPLETED  # type: ignore[union-attr]
    assert await store.runs.find() == ([second], None)
    assert await store.runs.get("unknown") is None


async def test_only_root_runs_are_listed(store: Store) -> None:
    with pytest.raises(ValueError, match="r~1 is a child run"):
        await store.runs.put(record("r~1"))


async def test_runs_are_found_newest_first_page_by_page(store: Store) -> None:
    made = [record(f"r{n}", created=float(n // 2)) for n in range(11)]
    for each in made:
        await store.runs.put(each)

    pages: list[list[RunRecord]] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        page, cursor = await store.runs.find(limit=4, cursor=cursor)
        pages.append(page)

    assert [len(page) for page in pages] == [4, 4, 3]
    found = [each for page in pages for each in page]
    assert found == sorted(made, key=lambda each: (each.created, each.run_id), reverse=True)


async def test_a_page_stays_in_place_while_runs_are_added_and_updated(store: Store) -> None:
    for n in range(4):
        await store.runs.put(record(f"r{n}", created=float(n)))
    _, cursor = await store.runs.find(limit=2)

    await store.runs.put(record("r9", created=9.0))
    await store.runs.put(record("r0", created=0.0, updated=99.0))

    page, _ = await store.runs.find(limit=2, cursor=cursor)
    assert [each.run_id for each in page] == ["r1", "r0"]


async def test_runs_are_found_by_state_scenario_and_text(store: Store) -> None:
    await store.runs.put(record("one", created=1.0, state=RunState.SUSPENDED, task="Buy 100% of ÄPFEL"))
    await store.runs.put(record("two", created=2.0, scenario="trader", task="buy_pears"))
    await store.runs.put(record("three", created=3.0, scenario="trader", state=RunState.SUSPENDED))

    async def ids(**wanted: Any) -> list[str]:
        return [each.run_id for each in (await store.runs.find(**wanted))[0]]

    assert await ids() == ["three", "two", "one"]
    assert await ids(state=RunState.SUSPENDED) == ["three", "one"]
    assert await ids(state=RunState.SUSPENDED, scenario="trader") == ["three"]
    assert await ids(text="BUY") == ["two", "one"]
    assert await ids(text="äpfel") == ["one"]
    assert await ids(text="TRADER") == ["three", "two"]
    assert await ids(text="thr") == ["three"]
    assert await ids(text="0%") == ["one"]
    assert await ids(text="_") == ["two"]
    assert await ids(text="nothing") == []


@pytest.mark.parametrize("wrong", [{"cursor": "x"}, {"cursor": "1.0:../x"}, {"cursor": "nan"}, {"limit": 0}])
async def test_a_page_that_cannot_be_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not a cursor|limit of 1"):
        await store.runs.find(**wrong)


async def test_a_deleted_run_leaves_nothing_and_takes_nothing_else_along(store: Store) -> None:
    others = ["r1", "r-1", "q"]
    for run_id in others:
        await store.log.append(event(1, run_id))
        await store.checkpoints.save(run_id, snapshot(1))
        await store.runs.put(record(run_id))
    await store.log.append_many(family())
    for run_id in ("r", "r~1", "r~1~12"):
        await store.checkpoints.save(run_id, snapshot(1))
    await store.runs.put(record("r"))

    await store.runs.delete("r")

    assert await store.runs.get("r") is None
    assert await store.log.stream("r") == await store.log.events("r~1") == []
    for run_id in ("r", "r~1", "r~1~12"):
        assert await store.checkpoints.load(run_id) is None
    for run_id in others:
        assert len(await store.log.events(run_id)) == 1
        assert await store.checkpoints.load(run_id) == snapshot(1)
        assert await store.runs.get(run_id) == record(run_id)


async def test_a_deleted_run_can_be_written_anew(store: Store) -> None:
    await store.log.append_many(family())
    await store.runs.delete("r")

    await store.log.append_many(family())
    assert await store.log.stream("r") == family()


async def test_deleting_twice_is_deleting_once(store: Store) -> None:
    await store.runs.delete("r")
    await store.runs.delete("r")

    with pytest.raises(ValueError, match="child run"):
        await store.runs.delete("r~1")


async def test_a_run_deleted_elsewhere_cannot_be_gone_on_with(
    disk_url: str, opened: Callable[[str], Store]
) -> None:
    here, there = opened(disk_url), opened(disk_url)
    await here.log.append_many(events(1, 3))
    await there.runs.delete("r")

    with pytest.raises(LogConflict):
        await here.log.append(event(4))
    await here.log.append(event(1))
    assert await there.log.events("r") == [event(1)]


async def test_documents_are_kept_by_space_and_key(store: Store) -> None:
    await store.documents.put("a/b", "k", 1)
    await store.documents.put("a", "b/k", [2])
    await store.documents.put("漢", "..", 3)

    assert await store.documents.get("a/b", "k") == 1
    assert await store.documents.get("a", "b/k") == [2]
    assert await store.documents.all("漢") == {"..": 3}
    assert await store.documents.get("a", "k") is None
    assert await store.documents.all("b") == {}


async def test_documents_come_in_the_order_in_which_their_keys_came(store: Store) -> None:
    for key in "cab":
        await store.documents.put("s", key, key)
    await store.documents.put("s", "c", "again")
    await store.documents.delete("s", "a")
    await store.documents.delete("s", "unknown")
    await store.documents.put("s", "a", "back")

    assert list((await store.documents.all("s")).items()) == [("c", "again"), ("b", "b"), ("a", "back")]


async def test_a_document_is_a_copy_both_ways(store: Store) -> None:
    value: dict[str, Any] = {"xs": [1]}
    await store.documents.put("s", "k", value)
    value["xs"].append(2)
    read: Any = await store.documents.get("s", "k")
    read["xs"].append(3)
    everything: Any = await store.documents.all("s")
    everything["k"]["xs"].append(4)

    assert await store.documents.get("s", "k") == {"xs": [1]}


async def test_a_document_that_is_not_json_is_refused_and_the_one_before_kept(store: Store) -> None:
    await store.documents.put("s", "k", 1)

    with pytest.raises(NotJson, match="document s/k"):
        await store.documents.put("s", "k", nan)
    with pytest.raises(ValueError, match="cannot name a document"):
        await store.documents.put("s", "", 1)

    assert await store.documents.all("s") == {"k": 1}


async def test_everything_is_there_when_the_store_is_opened_again(disk_url: str) -> None:
    async with open_store(disk_url) as store:
        await store.checkpoints.save("r", snapshot(1))
        await store.runs.put(record("r"))
        await store.documents.put("s", "k", {"v": 1})
        await store.documents.put("s", "gone", 1)
        await store.documents.delete("s", "gone")

    async with open_store(disk_url) as store:
        assert await store.checkpoints.save("r", snapshot(2), expected_version=1) == 2
        assert await store.runs.find() == ([record("r")], None)
        assert await store.documents.all("s") == {"k": {"v": 1}}


async def test_two_stores_on_one_place_share_documents_and_records(
    disk_url: str, opened: Callable[[str], Store]
) -> None:
    here, there = opened(disk_url), opened(disk_url)
    for n in range(3):
        await here.documents.put("s", f"here{n}", n)
        await there.documents.put("s", f"there{n}", n)
        await here.runs.put(record(f"r{n}"))

    assert await here.documents.all("s") == await there.documents.all("s")
    assert len(await there.documents.all("s")) == 6
    assert len((await there.runs.find())[0]) == 3
