"""Law 7: interrupts have paths, answers find them at any depth, and nothing is answered twice."""

from __future__ import annotations

import asyncio

import pytest

from playground.kernel import (
    AlreadyAnswered,
    ChildSpec,
    Expired,
    FnBody,
    Goto,
    InMemoryStore,
    Node,
    NodeContext,
    NoSuchInterrupt,
    NotJson,
    NotSuspended,
    Outcome,
    Plan,
    Run,
    RunState,
    Scheduler,
    SubPlanBody,
    ToolCall,
    ToolResult,
    append,
)
from tests.kernel.logs import turns


def ask(question: str = "?", **options: object) -> FnBody:
    def body(x: object, ctx: NodeContext) -> Outcome:
        if not ctx.resumed:
            return Outcome.park("input", None, question, **options)
        return Outcome.ok(ctx.resume_value)

    return FnBody(body)


def asking(*keys: str) -> Plan:
    return Plan().add(*[Node(key, ask(key)) for key in keys])


def nested(plan: Plan, *path: str) -> Plan:
    for key in reversed(path):
        plan = Plan().add(Node(key, SubPlanBody(plan)))
    return plan


@pytest.mark.parametrize("value", [False, 0, "", [], {}, None])
async def test_any_value_can_be_the_answer(value: object) -> None:
    """Case D07."""
    scheduler = Scheduler()
    run = await scheduler.run(asking("a"))
    run = await scheduler.resume(asking("a"), run.run_id, value)
    assert run.state is RunState.COMPLETED
    assert run.final_output == value
    assert type(run.final_output) is type(value) or isinstance(run.final_output, type(value))


async def test_an_id_is_the_path_of_node_keys_from_the_root() -> None:
    run = await Scheduler().run(nested(asking("approve"), "research", "draft"))
    assert list(run.interrupts) == ["research/draft/approve"]
    assert run.interrupts["research/draft/approve"].question == "approve"


async def test_separators_inside_keys_are_escaped() -> None:
    run = await Scheduler().run(nested(asking("a@b%c"), "x/y"))
    assert list(run.interrupts) == ["x%2Fy/a%40b%25c"]


async def test_the_second_park_of_a_path_has_a_number_and_ids_never_recur() -> None:
    def twice(x: object, ctx: NodeContext) -> Outcome:
        if not ctx.resumed:
            return Outcome.park("input")
        return Outcome("on", {"xs": [ctx.resume_value]}, Goto("a") if len(ctx.shared["xs"]) < 2 else None)

    plan = Plan({"xs": append()}).add(Node("a", FnBody(twice)))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    seen = []
    while run.state is RunState.SUSPENDED:
        seen += run.interrupts
        run = await scheduler.resume(plan, run.run_id, len(seen))
    assert seen == ["a", "a@2", "a@3"]
    assert run.shared["xs"] == [1, 2, 3]


async def test_a_child_that_parks_parks_its_parents_and_the_answer_reaches_it_in_a_new_process() -> None:
    """Case D12."""
    ran = []

    def inner() -> Plan:
        plan = Plan().add(
            Node("a", FnBody(lambda x: ran.append("a"))),
            Node("ask", ask()),
            Node("b", FnBody(lambda x: ran.append("b") or x)),
        )
        return plan.edge("a", "ask").edge("ask", "b")

    first = Scheduler()
    run = await first.run(nested(inner(), "outer", "mid"))
    assert run.state is RunState.SUSPENDED
    second = Scheduler(eventlog=first.eventlog, store=first.store)
    run = await second.resume(nested(inner(), "outer", "mid"), run.run_id, "yes")
    assert run.final_output == "yes"
    assert ran == ["a", "b"]


async def test_some_of_several_can_be_answered_now_and_the_others_later() -> None:
    ends = []
    for order in (("left/a", "right/b", "c"), ("c", "right/b", "left/a")):
        plan = Plan().add(
            Node("left", SubPlanBody(asking("a"))), Node("right", SubPlanBody(asking("b"))), Node("c", ask())
        )
        scheduler = Scheduler()
        run = await scheduler.run(plan)
        assert set(run.interrupts) == {"left/a", "right/b", "c"}
        for number, interrupt_id in enumerate(order, 1):
            assert run.state is RunState.SUSPENDED
            run = await scheduler.resume(plan, run.run_id, {interrupt_id: interrupt_id})
            assert len(run.interrupts) == 3 - number
        ends.append(run.final_output)
    assert ends[0] == ends[1] == {"left": "left/a", "right": "right/b", "c": "c"}


async def test_a_map_of_answers_is_taken_whole_or_not_at_all() -> None:
    scheduler = Scheduler()
    run = await scheduler.run(asking("a", "b"))
    before = await scheduler.eventlog.events(run.run_id)
    with pytest.raises(NoSuchInterrupt, match="never asked 'z'; it waits for a, b"):
        await scheduler.resume(asking("a", "b"), run.run_id, {"a": 1, "z": 2})
    assert await scheduler.eventlog.events(run.run_id) == before


async def test_a_bare_value_answers_only_a_single_question() -> None:
    scheduler = Scheduler()
    run = await scheduler.run(asking("a", "b"))
    with pytest.raises(KeyError, match="answer with a dict by interrupt id"):
        await scheduler.resume(asking("a", "b"), run.run_id, "yes")


async def test_a_second_answer_is_refused_and_told_what_was_decided() -> None:
    scheduler = Scheduler()
    run = await scheduler.run(asking("a", "b"))
    await scheduler.resume(asking("a", "b"), run.run_id, {"a": {"approved": True}}, by="ana")
    with pytest.raises(AlreadyAnswered, match=r"a of run .* was already approved") as refused:
        await scheduler.resume(asking("a", "b"), run.run_id, {"a": 1})
    assert refused.value.decision["by"] == "ana"


async def test_resuming_a_finished_run_says_so_and_runs_nothing() -> None:
    """Case D13."""
    scheduler = Scheduler()
    plan = Plan().add(Node("a", FnBody(lambda x: 1)), Node("b", FnBody(lambda x: 2)))
    plan.edge("a", "b", when=lambda s: False)
    run = await scheduler.run(plan)
    version = scheduler.store.version_of(run.run_id)
    with pytest.raises(NotSuspended, match="is completed: nothing to resume"):
        await scheduler.resume(plan, run.run_id, None)
    assert scheduler.store.version_of(run.run_id) == version
    assert (await scheduler.eventlog.events(run.run_id))[-1].kind == "run_completed"


async def test_concurrent_answers_in_one_process_make_one_decision() -> None:
    scheduler = Scheduler()
    run = await scheduler.run(asking("a"))
    tries = [scheduler.resume(asking("a"), run.run_id, {"a": n}) for n in range(20)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(outcome, Run) for outcome in outcomes) == 1
    events = await scheduler.eventlog.events(run.run_id)
    assert [event.kind for event in events].count("resumed") == 1
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_two_tools_that_ask_at_once_get_their_own_answers() -> None:
    """Case D08."""

    class Tools:
        def __init__(self, slow: str) -> None:
            self.slow = slow

        async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
            await asyncio.sleep(0.005 if call.name == self.slow else 0)
            return ToolResult.success(await ctx.interrupt("input", f"{call.name}?"))

    async def agent(x: object, ctx: NodeContext) -> list[object]:
        results = await ctx.together(*[ctx.call_tool(name, {}) for name in ("t_a", "t_b")])
        return [result.output for result in results]

    plan = Plan().add(Node("agent", FnBody(agent)))
    for slow in ("t_a", "t_b"):
        scheduler = Scheduler(tools=Tools(slow))
        run = await scheduler.run(plan)
        assert set(run.interrupts) == {"agent/t_a", "agent/t_b"}
        run = await scheduler.resume(plan, run.run_id, {"agent/t_b": "B"})
        run = await scheduler.resume(plan, run.run_id, {"agent/t_a": "A"})
        assert run.final_output == ["A", "B"]


async def test_results_beside_a_park_are_kept_and_not_made_again() -> None:
    calls = []

    class Tools:
        async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
            calls.append(call.call_id)
            if call.name == "asks":
                return ToolResult.success(await ctx.interrupt("input"))
            return ToolResult.success(call.name)

    async def agent(x: object, ctx: NodeContext) -> list[object]:
        results = await ctx.together(*[ctx.call_tool(name, {}) for name in ("asks", "plain", "plain")])
        return [result.output for result in results]

    plan = Plan().add(Node("agent", FnBody(agent)))
    scheduler = Scheduler(tools=Tools())
    run = await scheduler.run(plan)
    run = await scheduler.resume(plan, run.run_id, "said")
    assert run.final_output == ["said", "plain", "plain"]
    assert len(calls) == 4
    assert len(set(calls)) == 3


async def test_several_questions_of_one_body_are_asked_one_after_the_other() -> None:
    async def body(x: object, ctx: NodeContext) -> list[object]:
        return [await ctx.interrupt("input", "first?"), await ctx.interrupt("input", "second?")]

    plan = Plan().add(Node("n", FnBody(body)))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    assert [asked.question for asked in run.interrupts.values()] == ["first?"]
    run = await scheduler.resume(plan, run.run_id, 1)
    assert list(run.interrupts) == ["n@2"]
    run = await scheduler.resume(plan, run.run_id, 2)
    assert run.final_output == [1, 2]


async def test_a_pause_is_announced_as_neither_a_failure_nor_an_end() -> None:
    """Case D25."""
    scheduler = Scheduler()
    run = await scheduler.run(asking("a"))
    kinds = [event.kind for event in await scheduler.eventlog.events(run.run_id)]
    assert kinds == ["run_started", "node_started", "interrupted", "node_parked", "run_suspended"]
    await scheduler.resume(asking("a"), run.run_id, 1)
    kinds = [event.kind for event in await scheduler.eventlog.events(run.run_id)]
    assert kinds.count("node_completed") == 1
    assert "node_failed" not in kinds


async def test_an_expired_question_takes_its_default_and_refuses_late_answers() -> None:
    now = [100.0]
    plan = Plan().add(Node("a", ask(expires_in=10, default="too late")))
    scheduler = Scheduler(clock=lambda: now[0])
    run = await scheduler.run(plan)
    assert run.interrupts["a"].expires_at == 110.0
    assert (await scheduler.expire(plan, run.run_id)).state is RunState.SUSPENDED
    now[0] = 110.0
    with pytest.raises(Expired, match="its default answer stands"):
        await scheduler.resume(plan, run.run_id, "yes")
    run = await scheduler.expire(plan, run.run_id)
    assert run.final_output == "too late"
    events = await scheduler.eventlog.events(run.run_id)
    assert next(e for e in events if e.kind == "resumed").data["outcome"] == "expired"


async def test_the_decision_is_in_the_log_with_who_when_and_why() -> None:
    scheduler = Scheduler(clock=lambda: 7.0)
    run = await scheduler.run(asking("a"))
    await scheduler.resume(
        asking("a"), run.run_id, {"approved": False}, by="ana", via="browser", comment="too dear"
    )
    told = next(e for e in await scheduler.eventlog.events(run.run_id) if e.kind == "resumed").data
    assert {key: told[key] for key in ("outcome", "by", "via", "comment", "at")} == {
        "outcome": "rejected",
        "by": "ana",
        "via": "browser",
        "comment": "too dear",
        "at": 7.0,
    }


async def test_a_decision_that_no_log_can_keep_is_refused_and_the_question_stays_open() -> None:
    scheduler = Scheduler()
    run = await scheduler.run(asking("a"))
    with pytest.raises(NotJson, match=r"what came with an answer at \['by'\]"):
        await scheduler.resume(asking("a"), run.run_id, True, by="\udcff")
    assert (await scheduler.resume(asking("a"), run.run_id, True)).state is RunState.COMPLETED


@pytest.mark.parametrize(
    ("payload", "answer", "difference"),
    [
        ({"amount": 40}, {"approved": True, "amount": 40}, {}),
        ({"amount": 40}, {"approved": True, "amount": 7}, {"amount": {"proposed": 40, "decided": 7}}),
        ({}, {"approved": True, "note": "x"}, {"note": {"proposed": None, "decided": "x"}}),
        (
            {"tool": "pay", "arguments": {"amount": 40}},
            {"approved": True, "amount": 7},
            {"amount": {"proposed": 40, "decided": 7}},
        ),
        ({"amount": 40}, {"approved": False, "comment": "no"}, {}),
        ({"amount": 40}, {"amount": 7}, {}),
        ("rm -rf build", {"approved": True}, {}),
    ],
)
async def test_the_decision_says_what_it_changes_in_what_was_proposed(
    payload: object, answer: dict[str, object], difference: dict[str, object]
) -> None:
    plan = Plan().add(Node("a", FnBody(lambda _, ctx: ctx.resume_value or Outcome.park("approval", payload))))
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    await scheduler.resume(plan, run.run_id, {"a": answer})
    told = next(e for e in await scheduler.eventlog.events(run.run_id) if e.kind == "resumed").data
    assert told["difference"] == difference


async def test_each_fork_of_a_parked_run_asks_again_once() -> None:
    """Case D02."""
    plan = Plan({"said": append()}).add(
        Node("ask", ask()), Node("act", FnBody(lambda x: Outcome.ok(x, said=[x])))
    )
    plan.edge("ask", "act")
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    events = await scheduler.eventlog.stream(run.run_id)
    done = await scheduler.resume(plan, run.run_id, "yes")
    for at in range(1, events[-1].pos + 1):
        fork = await scheduler.fork(plan, run.run_id, at=at)
        assert fork.state is RunState.SUSPENDED
        assert list(fork.interrupts) == ["ask"]
        forked = await scheduler.resume(plan, fork.run_id, "no")
        assert forked.shared["said"] == ["no"]
    assert done.shared["said"] == ["yes"]
    assert (await scheduler.recover(plan, run.run_id)).shared["said"] == ["yes"]


async def test_a_fork_cuts_child_runs_at_the_same_moment_and_records_its_lineage() -> None:
    plan = nested(asking("a"), "outer")
    scheduler = Scheduler()
    run = await scheduler.run(plan)
    parked = run.last_pos
    await scheduler.resume(plan, run.run_id, "yes")
    fork = await scheduler.fork(plan, run.run_id, at=parked, new_id="f")
    fork = await scheduler.resume(plan, "f", "no")
    assert fork.final_output == "no"
    assert {event.run_id for event in await scheduler.eventlog.stream("f")} == {"f", "f~1"}
    lineage = next(e for e in await scheduler.eventlog.events("f") if e.kind == "forked")
    assert lineage.data == {"run_id": run.run_id, "at": parked, "updates": {}}


async def test_a_resume_into_a_plan_without_the_parked_node_names_it_before_anything_runs() -> None:
    scheduler = Scheduler()
    run = await scheduler.run(asking("gone"))
    with pytest.raises(RuntimeError, match="node 'gone' was parked or about to run and is gone"):
        await scheduler.resume(asking("other"), run.run_id, 1)


async def test_a_child_with_ports_of_its_own_uses_them() -> None:
    class Tools:
        def __init__(self, name: str) -> None:
            self.name = name

        async def dispatch(self, call: ToolCall, ctx: object) -> ToolResult:
            return ToolResult.success(self.name)

    async def body(x: object, ctx: NodeContext) -> object:
        return (await ctx.call_tool("t", {})).output

    inner = Plan().add(Node("n", FnBody(body)))
    outer = Plan().add(
        Node("own", SubPlanBody(ChildSpec(inner, tools=Tools("child's")))), Node("n", FnBody(body))
    )
    run = await Scheduler(tools=Tools("parent's")).run(outer)
    assert run.final_output == {"own": "child's", "n": "parent's"}


async def test_two_calls_of_one_tool_that_ask_the_same_get_their_own_answers() -> None:
    """Case D08, with one tool called twice."""

    class Tools:
        async def dispatch(self, call: ToolCall, ctx: NodeContext) -> ToolResult:
            return ToolResult.success([call.arguments["who"], await ctx.interrupt("input", "?")])

    async def agent(x: object, ctx: NodeContext) -> list[object]:
        calls = [ctx.call_tool("ask", {"who": who}) for who in ("ana", "bo", "bo")]
        return [result.output for result in await ctx.together(*calls)]

    plan = Plan().add(Node("agent", FnBody(agent)))
    scheduler = Scheduler(tools=Tools())
    run = await scheduler.run(plan)
    assert list(run.interrupts) == ["agent/ask", "agent/ask@2", "agent/ask@3"]
    for interrupt_id in ("agent/ask@2", "agent/ask@3", "agent/ask"):
        run = await scheduler.resume(plan, run.run_id, {interrupt_id: interrupt_id})
    assert run.final_output == [["ana", "agent/ask"], ["bo", "agent/ask@2"], ["bo", "agent/ask@3"]]


async def test_an_answer_that_comes_while_the_run_is_being_saved_waits_for_its_turn() -> None:
    class SlowStore(InMemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.saving, self.gate = asyncio.Event(), asyncio.Event()
            self.gate.set()

        async def save(self, *args: object, **options: object) -> int:
            self.saving.set()
            await self.gate.wait()
            return await super().save(*args, **options)

    store = SlowStore()
    scheduler = Scheduler(store=store)
    await scheduler.run(asking("a", "b"), run_id="r")
    store.saving.clear()
    store.gate.clear()
    first = asyncio.create_task(scheduler.resume(asking("a", "b"), "r", {"a": 1}))
    await store.saving.wait()
    second = asyncio.create_task(scheduler.resume(asking("a", "b"), "r", {"b": 2}))
    await turns()
    store.gate.set()
    await first
    assert (await second).final_output == {"a": 1, "b": 2}
    assert (await scheduler.load(asking("a", "b"), "r")).state is RunState.COMPLETED
