"""Workflow: a flow that one can see, of functions and agents."""

from __future__ import annotations

import pytest

from playground import (
    Agent,
    JsonValue,
    NodeContext,
    RetryPolicy,
    RunState,
    ScriptedLlm,
    Workflow,
    add,
    append,
    go,
    last,
    send,
    wait_human,
)
from playground.kernel import ChildSpec, InMemoryEventLog, InMemoryStore, NotJson, Outcome


def approval(**stores: object) -> Workflow:
    def ask(amount: str, ctx: NodeContext) -> object:
        if not ctx.resumed:
            return wait_human("Pay?", {"amount": amount})
        return go("pay" if ctx.resume_value["approved"] else "drop", amount, asked=True)  # type: ignore[index,call-overload]

    wf = Workflow(**stores)  # type: ignore[arg-type]
    wf.add("ask", ask).add("pay", lambda amount: f"paid {amount}", terminal=True)
    return wf.add("drop", lambda amount: f"kept {amount}", terminal=True).entry("ask")


async def test_a_value_is_handed_on_along_the_edges() -> None:
    wf = Workflow().add("a", lambda x: x + "a").add("b", lambda x: x + "b").edge("a", "b")
    assert (await wf.run("-")).output == "-ab"


async def test_a_dict_is_written_to_the_state_and_needs_no_declaration() -> None:
    wf = Workflow().add("a", lambda _: {"v": 1}).add("b", lambda _, ctx: ctx.shared["v"] + 1).edge("a", "b")
    result = await wf.run()
    assert result.output == 2
    assert result.state == {"v": 1}


async def test_undeclared_state_of_one_run_is_not_there_in_the_next() -> None:
    wf = Workflow().add("a", lambda _, ctx: {"seen": sorted(ctx.shared)})
    await wf.run()
    assert (await wf.run()).state["seen"] == []


async def test_declared_channels_merge_what_several_nodes_write() -> None:
    wf = Workflow().channel("cost", add()).channel("log", append())
    wf.add("a", lambda _: {"cost": 2, "log": "a"}).add("b", lambda _: {"cost": 3, "log": "b"})
    assert (await wf.run()).state == {"cost": 5, "log": ["a", "b"]}


async def test_a_dict_as_input_sets_the_channels_of_those_names() -> None:
    wf = Workflow().add("total", lambda _, ctx: ctx.shared["price"] * ctx.shared["count"])
    assert (await wf.run({"price": 4, "count": 3})).output == 12


async def test_a_dict_handed_to_a_workflow_inside_another_sets_the_channels_that_it_declares() -> None:
    inner = Workflow().channel("n", last()).add("show", lambda _, ctx: [ctx.shared["n"], "m" in ctx.shared])
    outer = Workflow().add("make", lambda _: Outcome.ok({"n": 4, "m": 5})).add("inner", inner)
    assert (await outer.edge("make", "inner").run()).output == [4, False]


async def test_a_text_reaches_no_state_that_the_flow_keeps_for_itself() -> None:
    wf = Workflow().add("show", lambda _, ctx: "approved" in ctx.shared)
    assert (await wf.run('{"approved": true}')).output is False


@pytest.mark.parametrize("text", ["{not json", "[1]", "plain", "{"])
async def test_any_other_text_is_just_the_input(text: str) -> None:
    result = await Workflow().add("echo", lambda x: x).run(text)
    assert (result.output, result.state) == (text, {})


async def test_an_edge_with_a_condition_is_taken_while_the_state_says_so() -> None:
    wf = Workflow().add("a", lambda x: {"n": int(x)})
    wf.add("small", lambda _: "small", terminal=True).add("large", lambda _: "large", terminal=True)
    wf.edge("a", "small", when=lambda s: s["n"] < 10).edge(
        "a", "large", when=lambda s: s["n"] >= 10, label="≥ 10"
    )
    assert [(await wf.run(n)).output for n in ("5", "50")] == ["small", "large"]
    labels = [edge["label"] for edge in wf.plan.topology()["edges"]]  # type: ignore[union-attr,index,call-overload]
    assert labels == [None, "≥ 10"]


async def test_a_branch_takes_the_route_that_is_decided_and_its_edges_say_which() -> None:
    wf = Workflow().add("sort", lambda x: {"kind": x}).add("tea", lambda _: "🍵").add("ice", lambda _: "🍦")
    wf.branch("sort", {"hot": "tea", "cold": "ice"}, decide=lambda state: state["kind"])
    assert [(await wf.run(kind)).output for kind in ("hot", "cold")] == ["🍵", "🍦"]
    labels = [edge["label"] for edge in wf.plan.topology()["edges"]]  # type: ignore[union-attr,index,call-overload]
    assert labels == ["hot", "cold"]


async def test_go_hands_a_value_over_and_writes_to_the_state() -> None:
    wf = Workflow().add("a", lambda x: go("b", x + "!", by="a"))
    wf.add("b", lambda x, ctx: [x, ctx.shared["by"]], terminal=True)
    assert (await wf.entry("a").run("hi")).output == ["hi!", "a"]


async def test_send_starts_as_many_instances_as_there_are_items_also_where_an_edge_is_drawn() -> None:
    wf = Workflow().channel("got", append())
    wf.add("deal", lambda text: [send("worker", word) for word in text.split()])
    wf.add("worker", lambda word: Outcome.ok(word.upper(), got=word), template=True)
    wf.add("gather", lambda words: words)
    wf.edge("deal", "worker").edge("worker", "gather")
    result = await wf.run("a b c")
    assert result.output == ["A", "B", "C"]
    assert result.state["got"] == ["a", "b", "c"]


async def test_waiting_for_a_person_parks_the_run_and_the_answer_decides() -> None:
    for approved, output in ((True, "paid 5"), (False, "kept 5")):
        wf = approval()
        waiting = await wf.run("5")
        assert waiting.status is RunState.SUSPENDED
        assert waiting.output is None
        (asked,) = waiting.interrupts
        assert (asked.id, asked.kind, asked.question, asked.payload) == (
            "ask",
            "approval",
            "Pay?",
            {"amount": "5"},
        )
        assert (await wf.resume(waiting.run_id, {"approved": approved})).output == output


async def test_a_workflow_built_anew_over_the_same_stores_goes_on_after_a_pause() -> None:
    log, store = InMemoryEventLog(), InMemoryStore()
    waiting = await approval(eventlog=log, store=store).run("5")
    result = await approval(eventlog=log, store=store).resume(waiting.run_id, {"approved": True})
    assert result.output == "paid 5"


async def test_a_node_can_be_an_agent_a_workflow_a_plan_or_a_spec() -> None:
    inner = Workflow().add("w", lambda x: x + "w")
    wf = Workflow().add("agent", Agent("a", model=ScriptedLlm(["a"]))).add("workflow", inner)
    wf.add("plan", inner.plan).add("spec", ChildSpec(inner.plan, name="spec"))
    wf.edge("agent", "workflow").edge("workflow", "plan").edge("plan", "spec")
    assert (await wf.run("go")).output == "awww"


async def test_going_to_an_agent_without_a_way_back_is_a_transfer() -> None:
    wf = Workflow().add("triage", lambda x: go("repair", x))
    wf.add("repair", Agent("repair", model=ScriptedLlm(["fixed"])), terminal=True)
    result = await wf.entry("triage").run("broken")
    assert result.output == "fixed"
    assert result.run.state_of("triage").attempts == 1


def test_a_node_that_cannot_run_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="node 'n' is a int, which cannot run"):
        Workflow().add("n", 3)  # type: ignore[arg-type]


async def test_nodes_can_ask_the_workflows_model_and_call_its_tools() -> None:
    def double(n: int) -> int:
        return 2 * n

    async def work(x: str, ctx: NodeContext) -> list[JsonValue]:
        result = await ctx.call_tool("double", {"n": 4})
        return [await ctx.llm_complete(x), result.output]

    assert (await Workflow(model=ScriptedLlm(["hello"]), tools=[double]).add("n", work).run("hi")).output == [
        "hello",
        8,
    ]


async def test_a_failed_run_says_which_node_failed_and_why() -> None:
    def broken(_: str) -> None:
        raise OSError("disk full")

    result = await Workflow().add("save", broken).run()
    assert result.status == "failed"
    assert result.output == "node 'save' failed: OSError: disk full"


async def test_a_retry_policy_tries_again() -> None:
    def flaky(_: str, ctx: NodeContext) -> str:
        if ctx.attempt < 3:
            raise OSError("busy")
        return f"attempt {ctx.attempt}"

    wf = Workflow().add("n", flaky, retry=RetryPolicy(max_attempts=3, base_delay=0))
    assert (await wf.run()).output == "attempt 3"


async def test_a_loop_that_never_ends_fails_after_max_waves() -> None:
    result = await Workflow(max_waves=5).add("n", lambda _: go("n")).run()
    assert result.status == "failed"
    assert result.metrics["waves"] == 5


@pytest.mark.parametrize("key", [5, None, ("a", "b"), "\ud800"])
async def test_a_write_to_what_is_no_name_fails_the_run_and_declares_nothing(key: object) -> None:
    result = await Workflow().add("a", lambda x: {key: 1}).run("x")
    assert result.status is RunState.FAILED
    assert "node 'a'" in str(result.output)
    assert "channel" in str(result.output)
    assert result.state == {}


@pytest.mark.parametrize("input", [float("nan"), {"a": {1}}, b"x"])
async def test_an_input_that_is_not_json_is_refused_by_name(input: object) -> None:
    with pytest.raises(NotJson, match="which is not JSON"):
        await Workflow().add("a", lambda x: x).run(input)  # type: ignore[arg-type]


def test_a_model_or_channel_that_is_none_is_found_out_at_once() -> None:
    with pytest.raises(TypeError, match=r"the model of a workflow is 'gpt', which cannot chat: give"):
        Workflow(model="gpt")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"the model of agent 'a' is 'gpt', which cannot chat: give"):
        Agent("a", model="gpt")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"channel 'c' is 5: use append"):
        Workflow().channel("c", 5)  # type: ignore[arg-type]
