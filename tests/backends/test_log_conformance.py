"""What every event log does, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf, nan
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.backends import Store, open_store
from playground.kernel.eventlog import Event, LogConflict
from playground.kernel.values import NotJson
from tests.backends.samples import BAD_IDS, ODD_VALUES, event, events, family


async def test_an_appended_event_is_read_back_as_it_was(store: Store) -> None:
    written = Event(1, "r", "note", {"text": "hello"}, "parent", 1, 1234.5678901)

    assert await store.log.append(written) == 1
    assert await store.log.events("r") == [written]


async def test_an_unknown_run_has_no_events(store: Store) -> None:
    assert await store.log.events("nobody") == []
    assert await store.log.after("nobody", 3) == []
    assert await store.log.stream("nobody", 3, 3) == []


async def test_an_empty_batch_is_nothing(store: Store) -> None:
    await store.log.append_many([])

    assert await store.log.stream("r") == []


async def test_runs_are_kept_apart_and_their_tree_together(store: Store) -> None:
    await store.log.append_many(family())
    await store.log.append(event(1, "r-1"))

    assert await store.log.stream("r") == family()
    for run_id in ("r", "r~1", "r~2", "r~10"):
        assert await store.log.events(run_id) == [e for e in family() if e.run_id == run_id]


async def test_after_gives_the_events_behind_a_seq(store: Store) -> None:
    for each in family():
        await store.log.append(each)

    for run_id in ("r", "r~2"):
        own = [e for e in family() if e.run_id == run_id]
        for since in range(-1, 6):
            assert await store.log.after(run_id, since) == [e for e in own if e.seq > since]


async def test_stream_gives_the_events_behind_a_position_up_to_a_limit(store: Store) -> None:
    await store.log.append_many(family()[:2])
    for each in family()[2:]:
        await store.log.append(each)

    for after in range(-1, 11):
        rest = [e for e in family() if e.pos > after]
        assert await store.log.stream("r", after) == rest
        for limit in range(4):
            assert await store.log.stream("r", after, limit) == rest[:limit]


async def test_positions_may_have_gaps(store: Store) -> None:
    sparse = [event(seq, pos=seq * 10) for seq in range(1, 8)]
    await store.log.append_many(sparse)

    assert await store.log.stream("r", 35, 2) == sparse[3:5]


async def test_events_without_a_position_are_kept_in_order_of_their_run(store: Store) -> None:
    bare = [event(seq, pos=0) for seq in range(1, 5)]
    await store.log.append_many(bare[:3])
    await store.log.append(bare[3])

    assert await store.log.events("r") == bare
    assert await store.log.after("r", 2) == bare[2:]
    assert await store.log.stream("r") == []


async def test_a_position_stays_taken_when_an_event_without_one_follows(disk_url: str) -> None:
    async with open_store(disk_url) as store:
        await store.log.append_many([event(1, pos=5), event(2, pos=0)])

        with pytest.raises(LogConflict, match="position 5 is taken"):
            await store.log.append(event(3, pos=5))


async def test_a_long_log_is_read_whole(store: Store) -> None:
    for first in range(1, 1201, 100):
        await store.log.append_many(events(first, first + 99))

    assert await store.log.events("r") == events(1, 1200)
    assert await store.log.after("r", 700) == events(701, 1200)
    assert await store.log.stream("r", 300, 600) == events(301, 900)
    assert await in_pages(store, 70) == events(1, 1200)


async def test_a_log_of_large_events_is_read_page_by_page(store: Store) -> None:
    written = [event(seq, text="x" * 150_000) for seq in range(1, 12)]
    await store.log.append_many(written[:3])
    for each in written[3:]:
        await store.log.append(each)

    assert await in_pages(store, 2) == written
    assert await store.log.stream("r", 11, 2) == []


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([event(4), event(6)], id="a gap inside"),
        pytest.param([event(5)], id="a gap before"),
        pytest.param([event(3)], id="a seq again"),
        pytest.param([event(4), event(1, "r~1", pos=5), event(3, "r~1", pos=6)], id="a gap in a child run"),
        pytest.param([event(4, pos=3)], id="a position again"),
        pytest.param([event(4), event(5, pos=4)], id="a position twice"),
        pytest.param([event(2, "r~1", pos=4)], id="a child run from its second event on"),
    ],
)
async def test_a_batch_that_does_not_follow_is_refused_whole(store: Store, batch: list[Event]) -> None:
    await store.log.append_many(events(1, 3))

    with pytest.raises(LogConflict, match=r"^run r"):
        await store.log.append_many(batch)

    assert await store.log.stream("r") == events(1, 3)
    await store.log.append(event(4, n=4))
    assert await store.log.stream("r") == events(1, 4)


async def test_a_batch_belongs_to_one_tree(store: Store) -> None:
    with pytest.raises(ValueError, match="one run and its child runs"):
        await store.log.append_many([event(1, "a"), event(1, "b")])

    assert await store.log.events("a") == []


@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: repr(value)[:20])
async def test_whatever_is_json_comes_back_equal(store: Store, value: Any) -> None:
    await store.log.append_many([event(1, value=value, **{"": value}), event(2, value=[value, {"k": value}])])

    first, second = await store.log.events("r")
    assert repr(first.data["value"]) == repr(first.data[""]) == repr(value)
    assert second.data == {"value": [value, {"k": value}]}


async def test_what_was_written_does_not_change_with_what_it_was_made_of(store: Store) -> None:
    data: dict[str, Any] = {"list": [1], "dict": {"k": [2]}}
    await store.log.append(event(1, **data))

    data["list"].append("changed")
    data["dict"]["k"].append("changed")

    assert (await store.log.events("r"))[0].data == {"list": [1], "dict": {"k": [2]}}


async def test_what_is_read_can_change_nothing_that_is_stored(store: Store) -> None:
    await store.log.append(event(1, items=[1]))
    read = (await store.log.events("r"))[0]

    with suppress(TypeError):  # read-only is as good as a copy
        read.data["items"].append(2)  # type: ignore[union-attr]
    (await store.log.events("r")).clear()

    assert (await store.log.events("r"))[0].data == {"items": [1]}
    assert (await store.log.stream("r"))[0].data == {"items": [1]}


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (nan, "nan"),
        ([inf], "inf"),
        ({1: "x"}, "key 1"),
        ((1,), "tuple"),
        ({2}, "set"),
        ("\ud800", "surrogate"),
    ],
)
async def test_what_is_not_json_is_refused_by_name_case_D09(store: Store, value: Any, what: str) -> None:
    await store.log.append(event(1))

    with pytest.raises(NotJson, match=rf"event 3 \(note\) of run r at \['x'\].*{what}"):
        await store.log.append_many([event(2), event(3, x={"deep": value})])

    assert await store.log.events("r") == [event(1)]


@pytest.mark.parametrize("run_id", BAD_IDS)
async def test_an_id_that_is_no_run_id_is_refused_case_D42(store: Store, run_id: str) -> None:
    attempts: list[Callable[[], Any]] = [
        lambda: store.log.append(event(1, run_id)),
        lambda: store.log.append_many([event(1), event(1, run_id, pos=2)]),
        lambda: store.log.events(run_id),
        lambda: store.log.after(run_id, 0),
        lambda: store.log.stream(run_id),
        lambda: store.checkpoints.save(run_id, {}),
        lambda: store.checkpoints.load(run_id),
        lambda: store.runs.get(run_id),
        lambda: store.runs.delete(run_id),
    ]
    for attempt in attempts:
        with pytest.raises(ValueError, match="is not a run id"):
            await attempt()

    assert await store.log.events("r") == []


async def test_ids_that_look_alike_are_different_runs(store: Store) -> None:
    alike = ["r", "r_", "r-", "r_1", "r-1", "r1", "r1~1", "r~11", "r~1"]
    for run_id in alike:
        await store.log.append(event(1, run_id, pos=alike.index(run_id) + 1, who=run_id))
        await store.checkpoints.save(run_id, {"who": run_id})

    for run_id in alike:
        assert [e.data for e in await store.log.events(run_id)] == [{"who": run_id}]
        assert await store.checkpoints.load(run_id) == {"who": run_id}


async def test_what_was_appended_is_there_when_the_store_is_opened_again(disk_url: str) -> None:
    async with open_store(disk_url) as store:
        await store.log.append_many(family())

    async with open_store(disk_url) as store:
        assert await store.log.stream("r") == family()
        await store.log.append(event(2, "r~1", pos=10)._replace(seq=3))
        with pytest.raises(LogConflict):
            await store.log.append(event(1, "r~2", pos=11))


async def test_two_stores_on_one_place_see_each_other(disk_url: str, opened: Callable[[str], Store]) -> None:
    here, there = opened(disk_url), opened(disk_url)

    await here.log.append_many(events(1, 2))
    await there.log.append_many(events(3, 4))
    with pytest.raises(LogConflict):
        await here.log.append(event(3))
    await here.log.append(event(5, n=5))

    assert await here.log.events("r") == await there.log.events("r") == events(1, 5)


async def test_a_closed_store_refuses_to_write(disk_url: str) -> None:
    store = open_store(disk_url)
    await store.log.append(event(1))
    await store.close()
    await store.close()

    with pytest.raises(RuntimeError, match="the store is closed"):
        await store.log.append(event(2))


RUNS = st.sampled_from(["r", "r~1", "r~2", "r~1~1"])


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batches=st.lists(st.lists(RUNS, min_size=1, max_size=5), min_size=1, max_size=8), data=st.data())
async def test_every_store_gives_what_a_plain_list_would(
    url: str, batches: list[list[str]], data: st.DataObject
) -> None:
    written: list[Event] = []
    store = open_store(url)
    await store.runs.delete("r")
    for batch in batches:
        made = []
        for run_id in batch:
            seq = sum(e.run_id == run_id for e in [*written, *made]) + 1
            made.append(event(seq, run_id, pos=len(written) + len(made) + 1))
        await store.log.append_many(made)
        written += made
        if data.draw(st.booleans()) and not url.startswith("memory"):
            await store.close()
            store = open_store(url)

    after = data.draw(st.integers(0, len(written) + 1))
    limit = data.draw(st.none() | st.integers(0, 5))
    run_id = data.draw(RUNS)
    own = [e for e in written if e.run_id == run_id]
    assert await store.log.stream("r", after, limit) == [e for e in written if e.pos > after][:limit]
    assert await store.log.after(run_id, after) == own[after:]
    assert await store.log.events(run_id) == own
    assert await in_pages(store, data.draw(st.integers(1, 5))) == written
    await store.close()


async def in_pages(store: Store, size: int) -> list[Event]:
    """The events of run `r` and its children, read so many at a time, each page where the last one ended."""
    found: list[Event] = []
    while page := await store.log.stream("r", found[-1].pos if found else 0, size):
        found += page
    return found
