"""Scenarios: what a file says about itself, and lessons that are checked against the log."""

from __future__ import annotations

import pytest

from playground import Predict, Scenario, ScenarioEnv, ScriptedLlm, Step, Workflow, send
from playground.kernel import Event, InMemoryEventLog
from playground.runtime.scenario import next_wave

BOTH = {"en": "yes", "zh": "是"}


def scenario(**changes: object) -> Scenario:
    given: dict[str, object] = {
        "key": "k",
        "title": BOTH,
        "summary": BOTH,
        "teaches": BOTH,
        "concepts": ("wave",),
        "default_input": BOTH,
        "make": lambda env: Workflow(),
    }
    return Scenario(**{**given, **changes})  # type: ignore[arg-type]


async def events_of(wf: Workflow) -> list[Event]:
    result = await wf.run()
    return await wf.eventlog.stream(result.run_id, 0)


def fan_out() -> Workflow:
    wf = Workflow(eventlog=InMemoryEventLog())
    wf.add("deal", lambda _: [send("worker", n) for n in (1, 2)])
    wf.add("worker", lambda n: n, template=True).add("gather", lambda found: found)
    return wf.edge("deal", "worker").edge("worker", "gather")


def test_a_text_that_is_missing_in_a_language_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="scenario 'k' has no summary in zh"):
        scenario(summary={"en": "only"})


async def test_a_step_points_at_the_first_event_of_its_node_and_kind() -> None:
    events = await events_of(fan_out())
    at = Step("look", "看", node="deal").anchor(events)
    assert at is not None
    assert (at.kind, at.data["node"]) == ("node_started", "deal")
    done = Step("look", "看", node="worker", event="node_completed").anchor(events)
    assert done is not None
    assert done.data["node"] == "worker#1"
    assert Step("look", "看", event="interrupted").anchor(events) is None


async def test_the_answer_to_a_prediction_is_who_started_in_the_wave_after_the_anchor() -> None:
    events = await events_of(fan_out())
    step = Step("look", "看", node="deal", predict=Predict("who?", "谁？", ("worker#1", "worker#2")))
    at = step.anchor(events)
    assert at is not None
    assert step.predict is not None
    assert next_wave(events, at) == step.predict.nodes
    last = Step("look", "看", event="run_completed").anchor(events)
    assert last is not None
    assert next_wave(events, last) == ()


def test_a_step_is_json_for_a_page() -> None:
    assert Step("look", "看", node="n", predict=Predict("who?", "谁？", ("a",))).to_json() == {
        "text": {"en": "look", "zh": "看"},
        "node": "n",
        "event": None,
        "predict": {"ask": {"en": "who?", "zh": "谁？"}, "nodes": ["a"]},
    }


async def test_an_environment_plays_the_script_or_the_configured_model() -> None:
    scripted = ScenarioEnv().model("hello")
    assert (await scripted.chat([])).text == "hello"
    real = ScriptedLlm(["real"])
    assert ScenarioEnv(real=real).model("hello") is real


def test_the_environment_variable_configures_the_real_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert ScenarioEnv.from_environ("zh").real is None
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-secret")
    monkeypatch.setenv("OPENAI_MODEL", "some-model")
    assert "some-model" in repr(ScenarioEnv.from_environ("zh").real)
