"""A channel's list grows in place, and what was passed on of it does not grow with it."""

from __future__ import annotations

from playground.kernel import (
    FnBody,
    InMemoryEventLog,
    Node,
    NodeContext,
    Outcome,
    Plan,
    Scheduler,
    append,
    merge,
    replay,
)


def passes_on(channel: str) -> FnBody:
    def body(_: object, ctx: NodeContext) -> Outcome:
        return Outcome.ok(ctx.shared[channel], log="a", table={"a": 1})

    return FnBody(body)


def chain(first: FnBody) -> Plan:
    plan = Plan(channels={"log": append(), "table": merge()})
    plan.add(Node("a", first), Node("b", FnBody(lambda _: Outcome.ok(log="b", table={"b": 2}))))
    return plan.edge("a", "b")


async def test_a_list_that_a_node_returns_from_the_state_is_as_it_was_then() -> None:
    log = InMemoryEventLog()
    run = await Scheduler(eventlog=log).run(chain(passes_on("log")))
    assert run.shared["log"] == ["a", "b"]
    assert run.state_of("a").output == []
    returned = [
        event.data["value"] for event in await log.events(run.run_id) if event.kind == "node_completed"
    ]
    assert returned[0] == []


async def test_a_dict_that_a_node_returns_from_the_state_is_as_it_was_then() -> None:
    run = await Scheduler().run(chain(passes_on("table")))
    assert run.shared["table"] == {"a": 1, "b": 2}
    assert run.state_of("a").output == {}


async def test_what_a_child_run_was_given_from_the_state_is_as_it_was_then() -> None:
    child = Plan(channels={"log": append()}).add(Node("c", FnBody(lambda _, ctx: Outcome.ok(log="c"))))

    async def call(_: object, ctx: NodeContext) -> Outcome:
        ended = await ctx.spawn(child, "", {"log": ctx.shared["log"]})
        return Outcome.ok(ended["shared"], log=["a1", "a2"])

    log = InMemoryEventLog()
    run = await Scheduler(eventlog=log).run(chain(FnBody(call)))
    assert run.state_of("a").output == {"log": ["c"]}
    assert replay(child, await log.events(f"{run.run_id}~1")).shared == {"log": ["c"]}
