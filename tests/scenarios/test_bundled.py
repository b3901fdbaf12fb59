"""What every bundled scenario promises; each promise is one test, run for each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from playground import RunState
from playground.runtime.scenario import CONCEPTS, LANGUAGES, next_wave
from tests.scenarios.stage import ENGINE_KEYS, KEYS, Stage, answer, load, play_in_sessions

EACH = pytest.mark.parametrize("key", KEYS)
EACH_ON_AN_ENGINE = pytest.mark.parametrize("key", ENGINE_KEYS)
IN_EACH_LANGUAGE = pytest.mark.parametrize("lang", LANGUAGES)

# key: (how it ends when all is approved, how when all is rejected), in English
ENDINGS = {
    "trader": ("Ordered.", "Not ordered."),
    "compliance_audit": ("froze A1, A2", "not approved"),
    "aiops": ("requests flow again", "Nothing was changed"),
    "persistence": ("published", "kept as a draft"),
    "nested_approval": ("Paid ¥30", "Not paid"),
    "layers": ("Sent:", "Kept:"),
    "two_approvals": ("Booked", "budget, venue refused"),
}
# These start processes or wait: they are stopped at every n-th place only.
STRIDES = {"code_detective": 9, "retry_timeout": 3}
CHINESE = re.compile(r"[一-鿿]")


async def outcome(key: str, lang: str, *, approved: bool = True, stop_after: int | None = None) -> object:
    run = await Stage(key, lang, stop_after=stop_after).play(answer(approved))
    assert run.state is RunState.COMPLETED, run.final_output
    return run.final_output


@EACH
def test_a_file_is_named_as_its_scenario(key: str) -> None:
    assert load(key).key == key


@EACH
def test_every_text_is_there_in_both_languages_and_differs(key: str) -> None:
    scenario = load(key)
    told = [(text["en"], text["zh"]) for text in (scenario.title, scenario.summary, scenario.teaches)]
    for step in scenario.lesson:
        told.append((step.en, step.zh))
        if step.predict:
            told.append((step.predict.en, step.predict.zh))
    for en, zh in told:
        assert en
        assert not CHINESE.search(en)
        assert CHINESE.search(zh)


@EACH
def test_every_concept_has_a_name_in_both_languages(key: str) -> None:
    assert set(load(key).concepts) <= CONCEPTS.keys()


@EACH_ON_AN_ENGINE
@IN_EACH_LANGUAGE
async def test_it_completes_offline_and_a_second_time_with_the_same_output(key: str, lang: str) -> None:
    first = await outcome(key, lang)
    assert first
    assert await outcome(key, lang) == first


@EACH_ON_AN_ENGINE
async def test_its_chinese_run_speaks_chinese(key: str) -> None:
    assert CHINESE.search(str(await outcome(key, "zh")))


@pytest.mark.parametrize("key", ENDINGS)
async def test_approved_and_rejected_runs_have_the_endings_that_are_told(key: str, tmp_path: Path) -> None:
    for approved, ending in zip((True, False), ENDINGS[key], strict=True):
        told, _ = await play_in_sessions(key, f"sqlite:{tmp_path / 'runs.db'}", approved=approved)
        assert ending in str(told["output"])


@EACH_ON_AN_ENGINE
async def test_only_scenarios_with_two_endings_ask_for_approval(key: str) -> None:
    stage = Stage(key)
    await stage.play(answer(True))
    asks = any(event.kind == "interrupted" for event in await stage.events())
    assert asks == (key in ENDINGS)


@EACH_ON_AN_ENGINE
async def test_each_step_of_the_lesson_is_there_to_be_seen_in_this_order(key: str) -> None:
    stage = Stage(key)
    await stage.play(answer(True))
    events = await stage.events()
    assert stage.scenario.lesson
    anchors = [step.anchor(events) for step in stage.scenario.lesson]
    for step, anchor in zip(stage.scenario.lesson, anchors, strict=True):
        assert anchor is not None, step
    positions = [anchor.pos for anchor in anchors if anchor]
    assert positions == sorted(positions)


@EACH_ON_AN_ENGINE
async def test_what_the_lesson_predicts_is_what_the_log_says(key: str) -> None:
    stage = Stage(key)
    await stage.play(answer(True))
    events = await stage.events()
    for step in stage.scenario.lesson:
        anchor = step.anchor(events)
        if step.predict is not None and anchor is not None:
            assert next_wave(events, anchor) == step.predict.nodes, step


@EACH
@pytest.mark.parametrize("scheme", ["sqlite", "file"])
async def test_in_sessions_over_a_store_on_disk_that_start_anew_at_each_rest_it_ends_the_same(
    key: str, scheme: str, tmp_path: Path
) -> None:
    url = f"{scheme}:{tmp_path / 'store'}?sync=normal"
    told, _ = await play_in_sessions(key, url)
    again, events = await play_in_sessions(key, url)
    assert told["state"] == "completed"
    assert told["output"] == again["output"]
    if key in ENGINE_KEYS:
        assert told["output"] == await outcome(key, "en")
    for step in load(key).lesson:
        assert step.anchor(events) is not None, step


@EACH_ON_AN_ENGINE
@pytest.mark.parametrize("approved", [True, False])
async def test_stopped_after_any_batch_and_continued_by_another_engine_it_ends_the_same(
    key: str, approved: bool
) -> None:
    stage = Stage(key)
    undisturbed = (await stage.play(answer(approved))).final_output
    for stop_after in range(1, stage.log.batches, STRIDES.get(key, 1)):
        again = await outcome(key, "en", approved=approved, stop_after=stop_after)
        assert again == undisturbed, f"stopped after batch {stop_after}"
