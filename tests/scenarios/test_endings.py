"""What single scenarios show, beyond the promises of all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from playground import Interrupt, NodeStatus
from tests.scenarios.stage import Stage, answer, play_in_sessions


async def test_graph_demo_runs_two_nodes_in_its_first_wave_and_skips_the_sugar() -> None:
    run = await Stage("graph_demo").play(answer(True))
    assert run.shared["log"][:2] == ["the water boils", "2 spoons of leaves"]  # type: ignore[index]
    assert run.status_of("sweeten") is NodeStatus.SKIPPED
    assert run.state_of("steep").attempts == 3


async def test_react_demo_takes_four_waves_two_thoughts_and_one_tool() -> None:
    run = await Stage("react_demo").play(answer(True))
    assert (run.metrics["waves"], run.metrics["llm_calls"], run.metrics["tool_calls"]) == (4, 2, 1)


async def test_compliance_audit_screens_once_whatever_the_answer() -> None:
    run = await Stage("compliance_audit").play(answer(False))
    assert run.state_of("screen_transfers").attempts == run.state_of("screen_devices").attempts == 1


async def test_aiops_has_two_calls_inside_the_agent_on_call_and_one_transfer_that_sticks() -> None:
    stage = Stage("aiops")
    run = await stage.play(answer(True))
    events = await stage.events()
    called = [
        event.data["name"] for event in events if event.kind == "delegated" and event.data["node"] == "tools"
    ]
    gone = [event.data["goto"] for event in events if event.kind == "control" and event.run_id == "run"]
    assert (called, gone) == (["cpu_analyst", "log_analyst"], ["repairer"])
    assert run.shared["active"] == "repairer"


async def test_aiops_stays_with_the_agent_that_took_over_in_the_next_turn_and_another_process(
    tmp_path: Path,
) -> None:
    """Case D44."""
    url = f"sqlite:{tmp_path / 'runs.db'}"
    first, _ = await play_in_sessions("aiops", url)
    second, events = await play_in_sessions("aiops", url, continues=str(first["run_id"]))
    assert second["output"] == "Repairer here, still with you: it is quiet."
    assert [event.data["name"] for event in events if event.kind == "delegated"] == ["repairer"]


async def test_greeter_goes_on_with_what_was_said_before(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'runs.db'}"
    first, _ = await play_in_sessions("greeter", url)
    second, _ = await play_in_sessions("greeter", url, continues=str(first["run_id"]))
    assert second["output"] == "One taro bubble tea is on its way."


async def test_aiops_makes_the_change_that_was_approved_as_it_was_edited() -> None:
    run = await Stage("aiops").play(lambda asked: {"approved": True, "connections": 120})
    told = [message["content"] for message in run.shared["messages"] if message["role"] == "tool"]  # type: ignore[index,union-attr,call-overload]
    assert told[-1] == "the pool has 120 connections now"


async def test_trip_planner_calls_three_agents_that_start_before_any_of_them_ends() -> None:
    stage = Stage("trip_planner", pace=0.001)
    await stage.play(answer(True))
    kinds = [event.kind for event in await stage.events() if event.kind in ("delegated", "run_completed")]
    assert kinds == ["delegated"] * 3 + ["run_completed"] * 4


async def test_review_team_publishes_the_second_draft() -> None:
    run = await Stage("review_team").play(answer(True))
    assert run.state_of("write").attempts == 2


async def test_deep_research_shortens_then_summarises_and_keeps_every_message() -> None:
    stage = Stage("deep_research")
    run = await stage.play(answer(True))
    levels = [event.data["data"]["level"] for event in await stage.events() if event.kind == "note"]  # type: ignore[index,call-overload]
    assert levels == sorted(levels)
    assert {1, 2} <= set(levels)
    assert len(run.shared["messages"]) == 14  # type: ignore[arg-type]


async def test_memory_regular_recalls_on_the_second_visit_what_the_first_one_told() -> None:
    stage = Stage("memory_regular")
    await stage.play(answer(True))
    recalled = [
        event.data["delta"]["recalled"]  # type: ignore[index,call-overload]
        for event in await stage.events()
        if event.kind == "state_delta" and "recalled" in event.data["delta"]  # type: ignore[operator]
    ]
    assert recalled == ["- milk tea without sugar, little ice"]


async def test_persistence_writes_each_line_once_although_the_index_was_interrupted() -> None:
    stage = Stage("persistence", stop_after=2)
    run = await stage.play(answer(True))
    assert run.final_output == "fetched 3 pages; indexed 3 pages; published"
    assert run.state_of("fetch").attempts == 1
    assert run.state_of("index").attempts == 2


async def test_backpressure_loses_nothing_by_blocking_and_counts_what_it_drops() -> None:
    run = await Stage("backpressure").play(answer(True))
    assert run.state_of("block").output == {"read": 24, "dropped": 0}
    dropping = run.state_of("drop").output
    assert dropping["read"] + dropping["dropped"] == 24  # type: ignore[index,call-overload,operator]
    assert dropping["dropped"] > 0  # type: ignore[index,call-overload,operator]


@pytest.mark.parametrize(("policy", "room", "faster"), [("drop", 1, 5), ("drop", 16, 2), ("block", 2, 9)])
async def test_backpressure_shown_and_dropped_are_all_that_was_poured_whatever_is_chosen(
    policy: str, room: int, faster: int
) -> None:
    given = {"policy": policy, "room": room, "drops": 30, "faster": faster}
    stage = Stage("backpressure")
    stage.scenario = replace(stage.scenario, default_input={"en": given, "zh": given})
    run = await stage.play(answer(True))
    shown = [event.data for event in await stage.events() if event.kind == "note"]
    fills = [str(note["topic"]).split()[0] for note in shown]

    assert {str(note["node"]) for note in shown} == {policy}
    assert {len(fill) for fill in fills} == {room}
    assert len(shown) + run.state_of(policy).output["dropped"] == 30  # type: ignore[index,call-overload,operator]


async def test_plan_first_asks_again_after_a_plan_that_is_none() -> None:
    run = await Stage("plan_first").play(answer(True))
    assert len(run.shared["problems"]) == 1  # type: ignore[arg-type]
    assert str(run.final_output).splitlines() == [
        "done: Choose three teas",
        "done: Invite eight guests",
        "done: Set a long table",
    ]


async def test_blackboard_needs_a_second_round() -> None:
    run = await Stage("blackboard").play(answer(True))
    assert (run.shared["round"], len(run.shared["board"])) == (1, 6)  # type: ignore[arg-type]


async def test_nested_approval_asks_under_the_path_of_the_child_and_pays_the_edited_amount() -> None:
    asked: list[str] = []

    def edit(question: Interrupt) -> object:
        asked.append(question.id)
        return {"approved": True, "amount": 25}

    run = await Stage("nested_approval").play(edit)
    assert asked == ["pay/confirm"]
    assert run.final_output == "Paid ¥25, on its way."
    assert run.state_of("pick").attempts == 1


@pytest.mark.parametrize("refused", ["budget", "venue"])
async def test_two_approvals_can_be_answered_differently(refused: str) -> None:
    run = await Stage("two_approvals").play(lambda asked: {"approved": asked.id != refused})
    assert run.final_output == f"Not booked: {refused} refused."


async def test_code_detective_reads_tries_fails_and_tries_again_in_another_process() -> None:
    stage = Stage("code_detective")
    await stage.play(answer(True))
    told = [event.data["output"] for event in await stage.events() if event.kind == "tool_returned"]
    assert "def average" in str(told[0])
    assert "2 of 3 tests pass. average(None) gave TypeError" in str(told[2])
    assert "3 of 3 tests pass" in str(told[3])
