"""Logs that other hands have changed or cut, or a newer version wrote: refused by name, never believed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.backends import DamagedLog, open_store
from playground.kernel import (
    Event,
    InMemoryEventLog,
    JsonValue,
    LogError,
    Node,
    Plan,
    Run,
    RunState,
    Scheduler,
    SubPlanBody,
    check_run_id,
    freeze,
    replay,
    root_of,
)
from tests.kernel.plans import PlanSpec, World, law, plan_specs
from tests.kernel.steps import asks, does, plan_of, step


def errand() -> Plan:
    inner = plan_of(step("x"), asks("ask"), x="ask")
    return plan_of(step("a"), Node("sub", SubPlanBody(inner)), step("b"), a="sub", sub="b")


async def written() -> list[Event]:
    scheduler = Scheduler()
    await scheduler.run(errand(), run_id="r")
    await scheduler.resume(errand(), "r", "yes")
    return await scheduler.eventlog.stream("r")


async def root_events() -> list[Event]:
    return [event for event in await written() if event.run_id == "r"]


def altered(events: list[Event], kind: str, **data: JsonValue) -> list[Event]:
    """The same log with other data in the first event of a kind; a value of ... is taken out."""
    index = next(index for index, event in enumerate(events) if event.kind == kind)
    new = {key: value for key, value in {**events[index].data, **data}.items() if value is not ...}
    return [*events[:index], events[index]._replace(data=freeze(new)), *events[index + 1 :]]


Change = Callable[[list[Event]], list[Event]]

BAD: dict[str, tuple[Change, str]] = {
    "a gap": (
        lambda e: [*e[:4], *e[5:]],
        "event 6 follows event 4: events are missing; restore the log from a copy",
    ),
    "an event twice": (lambda e: [*e[:4], *e[3:]], "event 4 follows event 4"),
    "no beginning": (lambda e: e[1:], r"its log begins with event 2 \(node_started\): its start is missing"),
    "another run's event": (
        lambda e: [*e[:4], e[4]._replace(run_id="other"), *e[5:]],
        "event 5 belongs to run other: the log mixes runs; restore it from a copy",
    ),
    "an unknown kind": (
        lambda e: [*e[:4], e[4]._replace(kind="telepathy"), *e[5:]],
        "event 5 has the unknown kind 'telepathy': it was written by a newer version; use that one",
    ),
    "a newer format": (
        lambda e: altered(e, "run_started", format=99),
        "its log has format 99, this version reads 1: use a newer one",
    ),
    "two ends": (
        lambda e: [*e, e[-1]._replace(seq=len(e) + 1, pos=e[-1].pos + 1)],
        r"event \d+ \(run_completed\) does not fit this run .* is completed and cannot become completed",
    ),
    "a return without a start": (
        lambda e: altered(e, "delegated", node="nobody"),
        r"event \d+ \(delegated\) does not fit this run \(KeyError: 'nobody'\)",
    ),
    "data that is missing": (
        lambda e: altered(e, "node_completed", value=...),
        r"event 3 \(node_completed\) does not fit this run \(KeyError: 'value'\): restore the log",
    ),
    "data of another type": (
        lambda e: altered(e, "state_delta", delta=7),
        r"event 4 \(state_delta\) does not fit",
    ),
    "a channel that the plan lacks": (
        lambda e: altered(e, "state_delta", delta={"nope": 1}),
        r"event 4 \(state_delta\) does not fit this run \(LookupError: channel 'nope' is not in the plan",
    ),
    "a delta that cannot be folded": (
        lambda e: altered(e, "state_delta", delta={"n": "text"}),
        r"event 4 \(state_delta\) does not fit this run \(FoldError: channel 'n' cannot fold",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_log_is_refused_with_run_and_event_and_nothing_runs(name: str) -> None:
    change, message = BAD[name]
    events = change(await root_events())
    with pytest.raises(LogError, match=rf"^run r: {message}"):
        replay(errand(), events)
    log = Unchecked(events)
    with pytest.raises(LogError, match=r"^run r: "):
        await Scheduler(eventlog=log).recover(errand(), "r")
    assert log.written == []


class Unchecked(InMemoryEventLog):
    """A log that hands out what it was given, right or wrong, and notes what is appended."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self.given = events
        self.written: list[Event] = []

    async def append_many(self, events: Any) -> None:
        self.written.extend(events)

    async def events(self, run_id: str) -> list[Event]:
        return [event for event in self.given if event.run_id == run_id]

    async def after(self, run_id: str, since_seq: int) -> list[Event]:
        return [event for event in await self.events(run_id) if event.seq > since_seq]

    async def stream(self, root_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        return [event for event in self.given if event.pos > after][:limit]


async def test_what_was_committed_before_the_damage_stays_readable() -> None:
    events = await root_events()
    bad = [*events[:6], *events[7:]]
    for upto in (events[0].pos, events[5].pos):
        run = replay(errand(), bad, upto=upto)
        assert run.last_pos == upto
    with pytest.raises(LogError, match="event 8 follows event 6"):
        replay(errand(), bad)


async def test_a_tree_whose_events_are_of_two_roots_is_refused() -> None:
    events = await written()
    mixed = [*events[:5], events[5]._replace(run_id="other~1"), *events[6:]]
    with pytest.raises(LogError, match=r"run r: event .* belongs to run other~1: the log mixes runs"):
        replay(errand(), mixed)


async def test_one_run_of_a_tree_can_be_read_out_of_its_stream() -> None:
    events = await written()
    child = replay(Plan(open_channels=True), events, run_id="r~1")
    assert (child.run_id, child.parent_id, child.final_output) == ("r~1", "r", "yes")
    assert replay(errand(), events, run_id="r~9").event_seq == 0


def complaint(read: Callable[[], object]) -> str:
    """What the named error says; an error of another kind passes through."""
    try:
        read()
    except LogError as error:
        return str(error)
    return "run r: it can be read"


VALUES = st.none() | st.booleans() | st.integers(-2, 99) | st.text(max_size=3)
VALUES = VALUES | st.lists(VALUES, max_size=2) | st.dictionaries(st.text(max_size=3), VALUES, max_size=2)


@law(300)
@given(spec=plan_specs(size=4), data=st.data())
async def test_whatever_is_wrong_with_a_log_the_only_error_is_a_named_one(
    spec: PlanSpec, data: st.DataObject
) -> None:
    """Data of any shape in any event: it replays, or it is a LogError that names the run."""
    world = World(spec)
    await world.finish(await world.begin())
    events = await world.log.events("r")
    index = data.draw(st.integers(0, len(events) - 1), label="event")
    event = events[index]
    what = data.draw(st.sampled_from(["kind", "field", "missing", "order"]), label="what")
    if what == "kind":
        events[index] = event._replace(kind=data.draw(st.sampled_from([e.kind for e in events])))
    elif what == "order":
        events[index], events[index - 1] = events[index - 1], event
    elif event.data:
        key = data.draw(st.sampled_from(sorted(event.data)), label="key")
        changed = {**event.data, key: data.draw(VALUES, label="value")}
        if what == "missing":
            del changed[key]
        events[index] = event._replace(data=freeze(changed))
    assert complaint(lambda: replay(world.plan, events)).startswith("run r: ")


@law(200)
@given(spec=plan_specs(size=3), data=st.data())
async def test_whatever_is_wrong_with_a_snapshot_the_only_error_is_a_named_one(
    spec: PlanSpec, data: st.DataObject
) -> None:
    world = World(spec)
    snapshot = dict((await world.begin()).snapshot())
    key = data.draw(st.sampled_from(sorted(snapshot)), label="key")
    snapshot[key] = data.draw(VALUES, label="value")
    assert complaint(lambda: Run.restore(world.plan, snapshot).snapshot()).startswith("run ")


@pytest.mark.parametrize("kind", ["sqlite", "file"])
async def test_a_log_on_disk_that_lost_an_event_is_refused_and_stays_as_it_is(
    kind: str, tmp_path: Path
) -> None:

    url = f"{kind}:{tmp_path}/store" + ("/runs.db" if kind == "sqlite" else "")
    async with open_store(url) as store:
        await Scheduler(eventlog=store.log).run(errand(), run_id="r")
    if kind == "file":
        path = tmp_path / "store" / "r.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    else:
        with sqlite3.connect(tmp_path / "store" / "runs.db") as db:
            db.execute("delete from event where run = 'r' and seq = 4")
        db.close()
    async with open_store(url) as store:
        before = await read_what_is_there(store.log)
        with pytest.raises((LogError, DamagedLog), match=r"run r|r\.jsonl"):
            await Scheduler(eventlog=store.log).resume(errand(), "r", "yes")
        assert await read_what_is_there(store.log) == before
        assert replay(errand(), before).event_seq == before[-1].seq >= 1


async def read_what_is_there(log: Any) -> list[Event]:
    with pytest.raises(DamagedLog) as damaged:
        await log.events("r")
    return damaged.value.before


async def test_a_run_goes_on_behind_a_tear_wherever_it_is(tmp_path: Path) -> None:
    """Case D01: cut at any byte of its last batch, the log ends whole and the run ends the same."""
    folder = tmp_path / "store"
    async with open_store(f"file:{folder}?sync=normal") as store:
        await Scheduler(eventlog=store.log, store=store.checkpoints).run(errand(), run_id="r")
    whole = (folder / "r.jsonl").read_bytes()
    keep = whole.rstrip(b"\n").rfind(b"\n", 0, whole.rfind(b'"interrupted"')) + 1
    for cut in range(keep, len(whole), 23):
        (folder / "r.jsonl").write_bytes(whole[:cut])
        async with open_store(f"file:{folder}?sync=normal") as store:
            scheduler = Scheduler(eventlog=store.log)
            run = await scheduler.recover(errand(), "r")
            assert list(run.interrupts) == ["sub/ask"]
            run = await scheduler.resume(errand(), "r", "yes")
            assert run.final_output == "b"
            events = await store.log.stream("r")
            assert [event.pos for event in events] == list(range(1, len(events) + 1))
        assert (folder / "r.jsonl").read_bytes().endswith(b"\n")


async def test_a_plan_that_lost_a_node_that_was_about_to_run_is_refused_before_anything_runs() -> None:
    ran: list[str] = []

    def plan(*keys: str) -> Plan:
        return plan_of(asks("ask"), *[does(key, lambda x, key=key: ran.append(key)) for key in keys])

    scheduler = Scheduler()
    await scheduler.run(plan(), run_id="r")
    with pytest.raises(
        LogError, match="node 'ask' was parked or about to run and is gone from the plan: put"
    ):
        await scheduler.resume(plan_of(step("other")), "r", "yes")
    run = await scheduler.resume(plan("new"), "r", "yes")
    assert (run.state, ran) == (RunState.COMPLETED, ["new"])


BAD_IDS = ["../../x", "/etc/x", "..", ".", "a/b", "a\\b", "a\0b", "", "x" * 300, "a b", "é"]
BAD_IDS += ["a~", "~1", "a~x", "-a", "a\n", None, 7]


@pytest.mark.parametrize("run_id", BAD_IDS)
async def test_an_id_that_would_not_do_as_a_file_name_is_no_run_id(run_id: Any) -> None:
    """Case D42."""
    with pytest.raises(ValueError, match="is not a run id: use up to 100 letters, digits, '_' and '-'"):
        check_run_id(run_id)
    scheduler = Scheduler()
    for attempt in (scheduler.recover(Plan(), run_id), scheduler.load(Plan(), run_id)):
        with pytest.raises(ValueError, match="is not a run id"):
            await attempt
    if run_id is not None:
        with pytest.raises(ValueError, match="is not a run id"):
            await scheduler.run(Plan(), run_id=run_id)


def test_ids_of_child_runs_lead_to_their_root() -> None:
    for run_id in ("r", "r-1_x", "r~1", "r~1~22~3", "x" * 100):
        assert check_run_id(run_id) == run_id
    assert root_of("r~1~22") == root_of("r") == "r"


async def test_a_run_that_nobody_knows_is_named() -> None:
    scheduler = Scheduler()
    for attempt in (
        scheduler.recover(Plan(), "nobody"),
        scheduler.resume(Plan(), "nobody", 1),
        scheduler.expire(Plan(), "nobody"),
        scheduler.cancel("nobody"),
    ):
        with pytest.raises(KeyError, match="run nobody is neither in the log nor in the checkpoint store"):
            await attempt
    assert await scheduler.load(Plan(), "nobody") is None


async def test_a_child_run_is_gone_on_with_through_its_root() -> None:
    scheduler = Scheduler()
    await scheduler.run(errand(), run_id="r")
    with pytest.raises(ValueError, match="run r~1 is a child run: name its root run r"):
        await scheduler.resume(errand(), "r~1", "yes")
