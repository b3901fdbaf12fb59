"""Waits three levels deep: answered some at a time, in any order, by another process, on every store."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.backends import Store, open_store
from playground.kernel import (
    Event,
    Interrupt,
    JsonValue,
    Node,
    NodeContext,
    Plan,
    Run,
    RunState,
    Scheduler,
    Send,
    SubPlanBody,
    ToolCall,
    ToolResult,
    driver,
    replay,
)
from tests.kernel.plans import Ledger, PlanSpec, World, law, waiting_specs
from tests.kernel.steps import asks, does, plan_of, step

STORES = ("memory", "sqlite", "file")


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two calls in one turn the first asks first, however busy the machine is."""
    monkeypatch.setattr(driver, "YIELD_AFTER", 3600)


class Place:
    """Where the stores of one test are, one after the other."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.numbers: Iterator[int] = count()

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Reopened]:
        """An empty store, gone in the end."""
        folder = self.folder / str(next(self.numbers))
        path = {"memory": "", "sqlite": f"{folder}/runs.db?sync=normal", "file": f"{folder}?sync=normal"}
        reopened = Reopened(f"{self.kind}:{path[self.kind]}")
        try:
            yield reopened
        finally:
            await reopened.store.close()
            shutil.rmtree(folder, ignore_errors=True)


class Reopened:
    """A store that can be closed and opened again, as by another process; one in memory just stays."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store: Store = open_store(url)

    async def restart(self) -> None:
        if not self.url.startswith("memory"):
            await self.store.close()
            self.store = open_store(self.url)

    def world(self, spec: PlanSpec, ledger: Ledger, **options: object) -> World:
        """The plan built anew, on what the store has."""
        return World(spec, log=self.store.log, store=self.store.checkpoints, ledger=ledger, **options)


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


def check_equal(run: Run, undisturbed: Run, at: object) -> None:
    assert (run.state, run.final_output) == (undisturbed.state, undisturbed.final_output), at
    if run.state is RunState.COMPLETED:
        assert run.shared == undisturbed.shared, at


async def undisturbed(spec: PlanSpec, luck: int) -> tuple[Run, World]:
    world = World(spec)
    return await world.finish(await world.begin(), luck), world


@law(25)
@given(
    spec=waiting_specs(),
    luck=st.integers(1, 1000),
    durability=st.sampled_from(["sync", "exit"]),
    concurrency=st.integers(1, 3),
)
async def test_answers_in_any_order_with_a_restart_before_each_end_like_the_undisturbed_run(
    place: Place, spec: PlanSpec, luck: int, durability: str, concurrency: int
) -> None:
    whole, _ = await undisturbed(spec, luck)
    ledger = Ledger()
    async with place.fresh() as opened:
        options = {"durability": durability, "concurrency": concurrency}
        run = await opened.world(spec, ledger, **options).begin()
        while run.state is RunState.SUSPENDED:
            await opened.restart()
            run = await opened.world(spec, ledger, **options).answer(run, luck)
        check_equal(run, whole, "the end")
        await check_once(opened, ledger)
        await check_replays(opened, opened.world(spec, ledger), run)


@law(8)
@given(spec=waiting_specs(), luck=st.integers(1, 1000), data=st.data())
async def test_after_a_crash_at_any_event_of_any_run_of_the_tree_it_ends_the_same(
    place: Place, spec: PlanSpec, luck: int, data: st.DataObject
) -> None:
    whole, world = await undisturbed(spec, luck)
    events = await world.log.stream("r")
    most = 12 if place.kind == "memory" else 4
    for cut in data.draw(st.sets(st.integers(1, len(events)), min_size=1, max_size=most), label="cuts"):
        ledger = Ledger.of(events[:cut])
        async with place.fresh() as opened:
            await opened.store.log.append_many(events[:cut])
            again = opened.world(spec, ledger)
            run = await again.scheduler.recover(again.plan, "r")
            while run.state is RunState.SUSPENDED:
                await opened.restart()
                run = await opened.world(spec, ledger).answer(run, luck)
            check_equal(run, whole, cut)
            await check_once(opened, ledger)


async def check_once(opened: Reopened, ledger: Ledger) -> None:
    """No returned node ran twice, no tool did its work twice, and no answer reached the log twice."""
    assert set(ledger.returned.values()) <= {1}
    assert set(ledger.tool_calls.values()) <= {1}
    answered = [e.data["id"] for e in await opened.store.log.stream("r") if e.kind == "resumed"]
    assert len(set(answered)) == len(answered)


async def check_replays(opened: Reopened, world: World, run: Run) -> None:
    """The log of each run of the tree tells what became of it."""
    events = await opened.store.log.stream("r")
    assert replay(world.plan, events).snapshot() == run.snapshot()
    for run_id in {event.run_id for event in events}:
        told = replay(Plan(open_channels=True), events, run_id=run_id)
        assert told.state.ended


# One such tree, told step by step.


class Team:
    """`ask_team` is a teammate behind a tool: each call is a child run."""

    def __init__(self, mate: Plan) -> None:
        self.mate = mate

    async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
        child = await ctx.spawn(self.mate, str(call.arguments["about"]))
        return ToolResult.success(child["output"])


def company(ran: list[str]) -> tuple[Plan, Team]:
    """root: `dept` → plan of `lead`, who asks two teammates at once, each of whom asks a person."""

    def noted(key: str) -> Node:
        return does(key, lambda x: ran.append(key) or x)

    mate = plan_of(noted("think"), asks("sign"), noted("file"), think="sign", sign="file")

    async def lead(x: JsonValue, ctx: NodeContext) -> list[JsonValue]:
        calls = [ctx.call_tool("ask_team", {"about": about}) for about in ("rent", "wages")]
        return [result.output for result in await ctx.together(*calls)]

    dept = plan_of(noted("open"), does("lead", lead), noted("close"), open="lead", lead="close")
    root = plan_of(Node("dept", SubPlanBody(dept)), asks("board"), step("end"), dept="end", board="end")
    return root, Team(mate)


async def test_an_id_leads_through_nodes_and_calls_to_the_one_who_asks() -> None:
    root, team = company([])
    run = await Scheduler(tools=team).run(root, run_id="r")
    assert list(run.interrupts) == ["board", "dept/lead/ask_team/sign", "dept/lead/ask_team/sign@2"]
    assert run.children == ["r~1"]


async def test_each_answer_goes_to_its_asker_and_what_is_not_answered_stays_asked(place: Place) -> None:
    ran: list[str] = []
    async with place.fresh() as opened:
        ids = ["dept/lead/ask_team/sign@2", "board", "dept/lead/ask_team/sign"]
        root, team = company(ran)
        run = await scheduler(opened, team).run(root, run_id="r")
        for number, interrupt_id in enumerate(ids):
            assert set(run.interrupts) == set(ids[number:])
            await opened.restart()
            root, team = company(ran)
            run = await scheduler(opened, team).resume(root, "r", {interrupt_id: f"answer {number}"})
        assert run.state is RunState.COMPLETED
        dept = replay(Plan(open_channels=True), await opened.store.log.stream("r"), run_id="r~1")
        assert dept.final_output == ["answer 2", "answer 0"]
        assert sorted(ran) == ["close", "file", "file", "open", "think", "think"]


def scheduler(opened: Reopened, team: Team) -> Scheduler:
    return Scheduler(eventlog=opened.store.log, store=opened.store.checkpoints, tools=team)


async def test_several_answers_at_once_reach_runs_of_different_depths() -> None:
    root, team = company([])
    engine = Scheduler(tools=team)
    await engine.run(root, run_id="r")
    sign = "dept/lead/ask_team/sign"
    run = await engine.resume(root, "r", {"board": "yes", sign: "r", f"{sign}@2": "w"})
    assert run.state is RunState.COMPLETED
    events = await engine.eventlog.stream("r")
    told: list[Event] = [event for event in events if event.kind in ("resumed", "run_continued")]
    assert [(e.run_id, e.kind) for e in told][:4] == [
        ("r", "resumed"),
        ("r", "resumed"),
        ("r", "resumed"),
        ("r~1", "run_continued"),
    ]
    answers = {e.run_id: e.data["answers"] for e in told if e.kind == "run_continued"}
    assert answers == {
        "r~1": {"dept/lead/ask_team/sign": "r", "dept/lead/ask_team/sign@2": "w"},
        "r~1~1": {"dept/lead/ask_team/sign": "r"},
        "r~1~2": {"dept/lead/ask_team/sign@2": "w"},
    }


async def test_a_deep_answer_that_is_late_is_refused_as_at_the_top() -> None:
    root, team = company([])
    engine = Scheduler(tools=team)
    await engine.run(root, run_id="r")
    await engine.resume(root, "r", {"dept/lead/ask_team/sign": "yes"})
    before = await engine.eventlog.stream("r")
    with pytest.raises(RuntimeError, match="dept/lead/ask_team/sign of run r was already answered"):
        await engine.resume(root, "r", {"dept/lead/ask_team/sign": "no"})
    assert await engine.eventlog.stream("r") == before


async def test_a_deep_question_expires_by_its_own_clock_and_its_default_reaches_it() -> None:
    now = [0.0]

    async def ask(x: JsonValue, ctx: NodeContext) -> JsonValue:
        return await ctx.interrupt("input", "in time?", expires_in=60, default="too late")

    plan = plan_of(Node("a", SubPlanBody(plan_of(Node("b", SubPlanBody(plan_of(does("ask", ask))))))))
    engine = Scheduler(clock=lambda: now[0])
    run = await engine.run(plan, run_id="r")
    asked: Interrupt = run.interrupts["a/b/ask"]
    assert (asked.expires_at, asked.default) == (60.0, "too late")
    now[0] = 61.0
    assert (await engine.expire(plan, "r")).final_output == "too late"


async def test_instances_of_a_plan_wait_each_for_their_own() -> None:
    mate = plan_of(asks("sign"))
    sends = [Send("team", "x", key) for key in ("a", "b/c")]
    plan = plan_of(
        does("fan", lambda x: sends), Node("team", SubPlanBody(mate), template=True, terminal=True)
    )
    plan.entry = ("fan",)
    engine = Scheduler()
    run = await engine.run(plan, run_id="r")
    assert list(run.interrupts) == ["team#a/sign", "team#b%2Fc/sign"]
    run = await engine.resume(plan, "r", {"team#b%2Fc/sign": 2})
    assert list(run.interrupts) == ["team#a/sign"]
    assert (await engine.resume(plan, "r", {"team#a/sign": 1})).final_output == [1, 2]


async def test_a_parked_child_beside_a_failing_node_is_withdrawn_with_the_run() -> None:
    plan = plan_of(
        Node("sub", SubPlanBody(plan_of(asks("ask")))),
        asks("later"),
        does("bad", lambda x: 1 / 0),
        later="bad",
    )
    engine = Scheduler()
    await engine.run(plan, run_id="r")
    run = await engine.resume(plan, "r", {"later": 1})
    assert run.state is RunState.FAILED
    withdrawn = [
        (e.run_id, e.data["id"]) for e in await engine.eventlog.stream("r") if e.kind == "interrupt_cancelled"
    ]
    assert withdrawn == [("r~1", "sub/ask"), ("r", "sub/ask")]
