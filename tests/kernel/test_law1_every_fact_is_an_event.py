"""Law 1: every fact is an event, kept before anyone acts on it; what is only noise is not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given

from playground.kernel import (
    Event,
    FnBody,
    InMemoryEventLog,
    JsonValue,
    LlmReply,
    Node,
    NodeContext,
    Outcome,
    Plan,
    RetryPolicy,
    Run,
    RunState,
    Scheduler,
    SubPlanBody,
    ToolCall,
    ToolResult,
    append,
)
from tests.kernel.logs import turns
from tests.kernel.plans import Ledger, PlanSpec, World, law, plan_specs


class Witness(InMemoryEventLog):
    """A log that knows what it has kept, as a disk would: only once an append has ended."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Event] = []

    async def append_many(self, events: Sequence[Event]) -> None:
        await super().append_many(events)
        await asyncio.sleep(0)
        self.kept.extend(events)

    def has(self, kind: str, **data: JsonValue) -> bool:
        return any(event.kind == kind and data.items() <= dict(event.data).items() for event in self.kept)


@law(40)
@given(spec=plan_specs(size=5))
async def test_no_body_and_no_tool_starts_before_the_log_has_kept_that_it_does(spec: PlanSpec) -> None:
    log = Witness()

    def started(ctx: NodeContext) -> None:
        starts = [event for event in log.kept if event.kind == "node_started" and event.run_id == ctx.run_id]
        assert any(e.data["node"] == ctx.node_id and e.data["attempt"] == ctx.attempt for e in starts)

    def called(call: ToolCall) -> None:
        assert log.has("tool_called", call_id=call.call_id)

    world = World(spec, log=log, ledger=Ledger(on_start=started, on_call=called))
    await world.finish(await world.begin())


async def test_no_model_is_asked_and_no_child_begins_before_the_log_has_kept_it() -> None:
    log = Witness()

    class Model:
        async def chat(self, messages: object, **_: object) -> LlmReply:
            assert log.has("model_called", node="n")
            return LlmReply("hi")

    def leaf(x: object) -> None:
        assert log.has("delegated", child="r~1", node="n")
        assert log.has("node_started", node="leaf")

    async def body(x: object, ctx: NodeContext) -> None:
        await ctx.llm_complete("?")
        assert log.has("model_returned", text="hi")
        await ctx.spawn(Plan().add(Node("leaf", FnBody(leaf))), "")

    scheduler = Scheduler(eventlog=log, llm=Model())
    run = await scheduler.run(Plan().add(Node("n", FnBody(body))), run_id="r")
    assert run.state is RunState.COMPLETED


async def test_observers_are_told_only_what_is_kept_and_in_the_order_of_the_tree() -> None:
    log = Witness()
    told: list[Event] = []

    def observe(evt: Event) -> None:
        assert evt in log.kept
        told.append(evt)

    scheduler = Scheduler(eventlog=log)
    for kind in KINDS:
        scheduler.bus.on(kind, observe)
    child = Plan().add(*[Node(key, FnBody(lambda x: turns(2))) for key in "ab"])
    await scheduler.run(Plan().add(*[Node(key, SubPlanBody(child)) for key in "pq"]), run_id="r")
    assert told == log.kept == await log.stream("r")


async def test_a_node_that_has_returned_is_in_the_log_while_its_sibling_still_runs() -> None:
    log = Witness()
    seen = []

    async def slow(x: object) -> None:
        await turns()
        seen.append(log.has("node_completed", node="quick", value="done"))

    await Scheduler(eventlog=log).run(
        Plan().add(Node("quick", FnBody(lambda x: Outcome.ok("done"))), Node("slow", FnBody(slow)))
    )
    assert seen == [True]


async def test_what_a_node_emits_and_what_a_model_streams_is_told_and_not_kept() -> None:
    class Model:
        async def chat(self, messages: object, *, on_delta: Any = None, **_: object) -> LlmReply:
            for piece in ("he", "llo"):
                await on_delta(piece, "content")
            return LlmReply("hello")

    async def body(x: object, ctx: NodeContext) -> str:
        async def token(text: str, kind: str) -> None:
            await ctx.emit("token", text=text, kind=kind)

        return (await ctx.llm_chat([{"role": "user", "content": "?"}], on_delta=token)).text

    scheduler = Scheduler(llm=Model())
    heard: list[Mapping[str, object]] = []
    scheduler.bus.on("token", lambda **data: heard.append(data))
    run = await scheduler.run(Plan().add(Node("n", FnBody(body))), run_id="r")
    assert [(token["run_id"], token["node_id"], token["text"]) for token in heard] == [
        ("r", "n", "he"),
        ("r", "n", "llo"),
    ]
    assert "token" not in [event.kind for event in await scheduler.eventlog.events("r")]
    assert run.final_output == "hello"


async def test_a_note_is_a_fact_of_ones_own() -> None:
    async def body(x: object, ctx: NodeContext) -> None:
        await ctx.note("context", level=2)

    scheduler = Scheduler()
    await scheduler.run(Plan().add(Node("n", FnBody(body))), run_id="r")
    note = next(event for event in await scheduler.eventlog.events("r") if event.kind == "note")
    assert note.data == {"node": "n", "wave": 1, "topic": "context", "data": {"level": 2}}


async def test_a_log_that_cannot_keep_a_start_keeps_the_body_from_running() -> None:
    class Full(InMemoryEventLog):
        durable = True

        async def append_many(self, events: Sequence[Event]) -> None:
            raise OSError("no space left")

    ran = []
    with pytest.raises(OSError, match="no space left"):
        await Scheduler(eventlog=Full()).run(Plan().add(Node("n", FnBody(ran.append))))
    assert ran == []


WAVE = frozenset({"wave", "node"})
KINDS: dict[str, frozenset[str]] = {
    "run_started": frozenset(
        {"task", "shared", "meta", "depth", "path", "relation", "breakpoints", "format"}
    ),
    "node_queued": WAVE | {"attempt", "activation", "why"},
    "node_started": WAVE | {"attempt", "activation", "why"},
    "node_completed": WAVE | {"value"},
    "node_parked": WAVE | {"interrupts", "nested"},
    "node_retry": WAVE | {"attempt", "error", "backoff", "anew"},
    "node_failed": WAVE | {"attempt", "error", "type"},
    "node_cancelled": WAVE | {"by"},
    "node_skipped": WAVE | {"why"},
    "state_delta": frozenset({"wave", "delta", "writers", "reducers"}),
    "control": frozenset({"wave", "by"}),
    "interrupted": WAVE | {"id", "kind", "question", "payload", "schema", "expires_at", "default", "call"},
    "interrupt_cancelled": frozenset({"wave", "id"}),
    "run_suspended": frozenset({"wave", "interrupts"}),
    "resumed": WAVE | {"id", "value", "outcome", "at", "difference"},
    "run_continued": frozenset({"wave", "answers"}),
    "delegated": WAVE | {"call", "child", "task", "name", "relation"},
    "model_called": WAVE | {"call_id", "messages", "tools"},
    "model_returned": WAVE | {"call_id", "call"},
    "tool_called": WAVE | {"call_id", "name", "arguments"},
    "tool_returned": WAVE | {"call_id", "call", "name", "ok", "output", "error"},
    "note": frozenset({"wave", "topic", "data"}),
    "breakpoints_set": frozenset({"breakpoints"}),
    "forked": frozenset({"run_id", "at", "updates"}),
    "run_completed": frozenset({"wave", "output"}),
    "run_failed": frozenset({"wave", "reason", "code"}),
}
"""What each kind of event carries, besides its place in the tree."""


def check_carries(events: Sequence[Event]) -> None:
    """Every event says where it belongs and all that its kind must; the tree is in one order."""
    last_seq: dict[str, int] = {}
    before = events[0]
    for number, event in enumerate(events, 1):
        assert event.pos == number
        assert event.seq == last_seq.get(event.run_id, 0) + 1
        last_seq[event.run_id] = event.seq
        assert event.ts >= before.ts
        before = event
        assert event.parent_id == (event.run_id.rpartition("~")[0] or None)
        assert KINDS[event.kind] <= event.data.keys(), event
        if "node" in KINDS[event.kind] and event.data["node"]:
            assert event.data["wave"] >= 1


@law(40)
@given(spec=plan_specs(size=5))
async def test_every_event_says_where_it_belongs_and_what_its_kind_must(spec: PlanSpec) -> None:
    world = World(spec, concurrency=2)
    await world.finish(await world.begin())
    check_carries(await world.log.stream("r"))


async def test_the_rarer_kinds_say_so_too() -> None:
    """Retries, failures, cancellations, pauses, forks, notes, models: all in one log."""

    class Model:
        async def chat(self, messages: object, **_: object) -> LlmReply:
            return LlmReply("hi", (ToolCall("t", {"a": 1}, "c1"),))

    class Tools:
        async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
            return ToolResult.success(1)

    async def flaky(x: object, ctx: NodeContext) -> None:
        await ctx.llm_complete("?")
        await ctx.call_tool("t", {})
        await ctx.note("topic")
        if ctx.attempt == 1:
            raise RuntimeError

    async def bad(x: object) -> None:
        await turns(3)
        raise RuntimeError

    plan = Plan({"xs": append()}).add(
        Node("flaky", FnBody(flaky), retry=RetryPolicy(2, 0)),
        Node("ask", FnBody(lambda x, ctx: None if ctx.resumed else Outcome.park("input"))),
        Node("bad", FnBody(bad)),
        Node("hang", FnBody(lambda x: asyncio.sleep(60))),
    )
    for key in ("bad", "hang"):
        plan.edge("flaky", key)
    plan.edge("ask", "bad").edge("ask", "hang")
    scheduler = Scheduler(llm=Model(), tools=Tools())
    run = await scheduler.run(plan, run_id="r", breakpoints=[{"every": "wave"}])
    await scheduler.set_breakpoints("r", [{"before": "bad"}])
    await scheduler.fork(plan, "r", at=run.last_pos, updates={"xs": [1]}, new_id="f")
    while run.state is RunState.SUSPENDED:
        run = await scheduler.resume(plan, "r", {})
    assert run.state is RunState.FAILED
    await scheduler.cancel("f")
    events = await scheduler.eventlog.stream("r")
    fork = await scheduler.eventlog.stream("f")
    for stream in (events, fork):
        check_carries(stream)
    rare = {"node_retry", "node_failed", "node_cancelled", "breakpoints_set", "model_returned", "note"}
    assert rare <= {event.kind for event in events}
    assert {"forked", "interrupt_cancelled"} <= {event.kind for event in fork}


async def test_each_write_can_be_followed_to_who_wrote_it() -> None:
    plan = Plan({"xs": append()}).add(*[Node(key, FnBody(lambda x, key=key: {"xs": [key]})) for key in "abc"])
    scheduler = Scheduler()
    await scheduler.run(plan, run_id="r")
    events = await scheduler.eventlog.events("r")
    fold = next(event.data for event in events if event.kind == "state_delta")
    assert fold["delta"] == {"xs": ["a", "b", "c"]}
    assert fold["writers"] == {"xs": ["a", "b", "c"]}
    assert fold["reducers"] == {"xs": "append"}
    writes = {
        event.data["node"]: event.data["delta"]["xs"] for event in events if event.kind == "node_completed"
    }
    assert [item for writer in fold["writers"]["xs"] for item in writes[writer]] == fold["delta"]["xs"]


async def test_a_child_run_says_who_called_it() -> None:
    scheduler = Scheduler()
    child = Plan().add(Node("leaf", FnBody(lambda x: 1)))
    await scheduler.run(Plan().add(Node("outer", SubPlanBody(child))), task="go", run_id="r")
    started = (await scheduler.eventlog.events("r~1"))[0]
    delegated = next(event for event in await scheduler.eventlog.events("r") if event.kind == "delegated")
    assert (started.parent_id, started.data["relation"], started.data["path"]) == ("r", "call", "outer/")
    assert (delegated.data["child"], delegated.data["node"], delegated.data["relation"]) == (
        "r~1",
        "outer",
        "call",
    )
    assert (await scheduler.eventlog.events("r"))[0].data["relation"] == "root"


async def test_a_run_that_ends_says_so_last_and_with_its_output() -> None:
    scheduler = Scheduler()
    run: Run = await scheduler.run(Plan().add(Node("a", FnBody(lambda x: "out"))), run_id="r")
    last = (await scheduler.eventlog.events("r"))[-1]
    assert (last.kind, last.data["output"]) == ("run_completed", "out")
    assert run.final_output == "out"
