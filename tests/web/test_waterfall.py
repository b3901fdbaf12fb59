"""The waterfall: bars by run, node and attempt on one axis, folded where nothing is at work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.web import gallery
from playground.web.gallery import NOON, Log
from playground.web.waterfall import MOST_BARS, Bar, ClockBook, ClockRow, Waterfall

HOUR = 3600.0


def chart(log: Log) -> Waterfall:
    book = ClockBook()
    for event in log.events:
        book.add(event)
    return book.chart()


def row(found: Waterfall, label: str) -> ClockRow:
    (only,) = [row for row in found.rows if row.label == label]
    return only


def bars(found: Waterfall, label: str) -> list[tuple[str, float]]:
    return [(bar.doing, round(bar.seconds, 2)) for bar in row(found, label).bars]


def started(log: Log, node: str, after: float = 0.0, /, run: str = "", attempt: int = 1) -> Log:
    return log.note("node_started", run, after, node=node, wave=1, attempt=attempt)


def waits(seconds: float) -> Log:
    """A node runs a second, waits for a person, and runs a second again."""
    log = started(Log("r"), "a")
    log.note("interrupted", "", 1.0, id="a", node="a").note("node_parked", "", 0.0, node="a")
    log.note("run_suspended", "", 0.0, interrupts=["a"]).note("resumed", "", seconds, id="a", node="a")
    return started(log, "a").note("node_completed", "", 1.0, node="a")


def test_a_node_that_waited_for_a_person_has_a_bar_for_each_time_it_ran_and_one_for_the_wait() -> None:
    assert bars(chart(waits(5)), "a") == [("completed", 1.0), ("parked", 5.0), ("completed", 1.0)]


@pytest.mark.parametrize("hours", [0.01, 2, 1000])
def test_a_long_wait_takes_at_most_a_twentieth_of_the_width(hours: float) -> None:
    """A two-hour wait takes at most 5 % of the width."""
    found = chart(waits(hours * HOUR))

    (fold,) = found.folds
    assert fold.seconds == pytest.approx(hours * HOUR)
    assert row(found, "a").bars[1].width <= 5


def test_a_short_wait_is_shown_as_long_as_it_was() -> None:
    found = chart(waits(0.05))

    assert found.folds == ()


def test_a_node_that_runs_again_in_a_later_wave_is_at_its_first_try() -> None:
    log = Log("r")
    for wave in (1, 2):
        log.note("node_started", node="a", wave=wave, attempt=wave).note(
            "node_completed", node="a", wave=wave
        )

    assert [bar.attempt for bar in row(chart(log), "a").bars] == [1, 1]


def test_a_wait_is_not_folded_while_another_node_is_at_work() -> None:
    log = started(started(Log("r"), "a"), "b")
    log.note("interrupted", "", 1.0, id="a", node="a")
    log.note("node_completed", "", 60.0, node="b")

    found = chart(log)

    assert found.folds == ()
    assert row(found, "a").bars[1].width > 90


def test_each_attempt_is_a_bar_with_the_pause_before_it() -> None:
    log = started(Log("r"), "a")
    log.note("node_retry", "", 1.0, node="a", attempt=1, error="no", backoff=0.5)
    started(log, "a", 0.5, attempt=2).note("node_completed", "", 2.0, node="a")

    found = chart(log)

    assert bars(found, "a") == [("failed", 1.0), ("retrying", 0.5), ("completed", 2.0)]
    assert [bar.attempt for bar in row(found, "a").bars if not bar.waits] == [1, 2]
    assert row(found, "a").seconds == pytest.approx(3.0)


def test_a_node_that_waits_for_a_free_place_is_queued() -> None:
    log = Log("r").note("node_queued", node="a", wave=1)
    started(log, "a", 3.0).note("node_completed", "", 1.0, node="a")

    assert bars(chart(log), "a") == [("queued", 3.0), ("completed", 1.0)]


def test_the_runs_that_a_node_called_are_below_it_with_their_names() -> None:
    found = chart(gallery.incident("en"))

    labels = [(row.label, row.depth) for row in found.rows]
    at = labels.index(("diagnose", 0))
    assert labels[at + 1 : at + 7] == [
        *((f"diag_cpu.{node}", 1) for node in ("think", "tools", "final")),
        *((f"diag_log.{node}", 1) for node in ("think", "tools", "final")),
    ]


def test_a_later_call_of_the_same_agent_is_on_the_line_of_the_earlier_one() -> None:
    log = started(Log("r"), "a")
    for number in (1, 2):
        log.note("delegated", node="a", child=f"r~{number}", name="scout", wave=1)
        started(log, "think", run=f"~{number}").note("node_completed", f"~{number}", 1.0, node="think")

    assert bars(chart(log), "scout.think") == [("completed", 1.0), ("completed", 1.0)]


def test_calls_at_the_same_time_have_lines_of_their_own() -> None:
    log = started(Log("r"), "a")
    for number in (1, 2):
        log.note("delegated", node="a", child=f"r~{number}", name="scout", wave=1)
        started(log, "think", run=f"~{number}")

    assert [row.label for row in chart(log).rows] == ["a", "scout.think", "scout.think"]


def test_while_the_engine_was_gone_nothing_ran() -> None:
    log = started(Log("r"), "a").note("model_called", "", 1.0, node="a", call_id="c")
    started(log, "a", HOUR).note("node_completed", "", 1.0, node="a")

    found = chart(log)

    assert bars(found, "a") == [("cancelled", 1.0), ("completed", 1.0)]
    assert found.folds[0].seconds == pytest.approx(HOUR)


def test_what_still_runs_is_shown_up_to_the_last_event() -> None:
    log = started(started(Log("r"), "a"), "b").note("node_completed", "", 4.0, node="b")

    assert bars(chart(log), "a") == [("running", 4.0)]


def test_a_thousand_waves_show_the_newest_bars_and_count_the_others() -> None:
    log = Log("r")
    for _ in range(1000):
        started(log, "a", 0.01).note("node_completed", "", 0.01, node="a")

    found = chart(log)

    assert len(row(found, "a").bars) == MOST_BARS
    assert found.hidden == 1000 - MOST_BARS


def test_a_run_in_which_nothing_started_has_no_chart() -> None:
    assert chart(Log("r").note("run_started", task="x")) == Waterfall()
    assert ClockBook().chart() == Waterfall()


pauses = st.floats(0, 1e6).map(lambda seconds: round(seconds, 3))


@given(st.lists(st.tuples(pauses, pauses), min_size=1, max_size=12))
def test_bars_lie_on_the_axis_in_the_order_of_time_whatever_they_took(
    spans: list[tuple[float, float]],
) -> None:
    log = Log("r")
    for pause, took in spans:
        started(log, "a", pause).note("node_completed", "", took, node="a")
    found: tuple[Bar, ...] = row(chart(log), "a").bars

    assert [bar.x for bar in found] == sorted(bar.x for bar in found)
    assert all(bar.x >= 0 and bar.x + bar.width <= 100.01 for bar in found)
    assert all(0 <= grade.x <= 100 for grade in chart(log).grades)


def test_the_first_grade_is_the_beginning_of_the_run() -> None:
    log = Log("r").note("run_started", "", 0.0, task="x")
    started(log, "a", 0.0)
    log.note("node_completed", "", 10.0, node="a")

    found = chart(log)

    assert log.events[0].ts == NOON
    assert [grade.seconds for grade in found.grades] == [0, 2, 4, 6, 8]
