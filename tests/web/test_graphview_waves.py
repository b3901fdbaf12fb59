"""The wave grid: one cell an execution, in the column of its wave; calls nest and widen it."""

from __future__ import annotations

from playground.web import gallery, render
from playground.web.gallery import Log
from playground.web.timeline import Timeline, ticks
from playground.web.wavegrid import MOST_WAVES, GridRow, WaveBook, WaveGrid, wave_grid


def columns(row: GridRow) -> list[tuple[int, int, str]]:
    """Where each cell of a row begins, how wide it is, and its state."""
    found, column = [], 0
    for cell in row.cells:
        column += cell.gap
        found.append((column, cell.span, cell.state))
        column += cell.span
    return found


def row(grid: WaveGrid, label: str) -> GridRow:
    return next(found for found in grid.rows if found.label == label)


def test_no_event_no_grid() -> None:
    assert wave_grid([]) == WaveGrid()


def test_a_cell_stands_in_the_column_of_its_wave() -> None:
    grid = wave_grid(Log("r1").ran("a", 1).ran("b", 2).ran("a", 3).events)

    assert grid.waves == ((1, 1), (2, 1), (3, 1))
    assert columns(row(grid, "a")) == [(0, 1, "completed"), (2, 1, "completed")]
    assert columns(row(grid, "b")) == [(1, 1, "completed")]


def test_a_row_that_the_rows_of_called_runs_follow_says_so() -> None:
    grid = wave_grid(gallery.decided("en", True).events)

    assert [found.label for found in grid.rows if found.holds] == ["diagnose"]


def test_one_more_of_the_same_kind_node_and_name_is_a_repeat() -> None:
    log = Log("r1").note("node_started", node="a", wave=1)
    for topic in ("looked", "looked", "looked", "found"):
        log.note("note", node="a", topic=topic, data={})
    log.note("note", node="b", topic="found", data={}).note("node_retry", node="b").note(
        "node_retry", node="b"
    )

    assert [row.repeats for row in Timeline(log.events)] == [0, 0, 1, 2, 0, 0, 0, 0]


def test_every_row_is_as_wide_as_the_grid() -> None:
    grid = wave_grid(gallery.decided("en", True).events)
    width = sum(span for _, span in grid.waves)

    for found in grid.rows:
        assert sum(cell.gap + cell.span for cell in found.cells) + found.rest == width


def test_a_child_run_nests_under_its_caller_and_its_waves_widen_the_callers() -> None:
    grid = wave_grid(gallery.incident("en").events)

    assert grid.waves == ((1, 4), (2, 1), (3, 1))
    assert columns(row(grid, "diagnose")) == [(0, 4, "completed")]
    assert columns(row(grid, "diag_cpu.think")) == [(0, 1, "completed"), (2, 1, "completed")]
    assert [(found.label, found.depth) for found in grid.rows][:4] == [
        ("diagnose", 0),
        ("diag_cpu.think", 1),
        ("diag_cpu.tools", 1),
        ("diag_cpu.final", 1),
    ]


def test_a_retry_is_the_same_cell_with_another_attempt() -> None:
    log = Log("r1").note("node_started", node="a", wave=1, attempt=1)
    log.note("node_retry", node="a", wave=1, attempt=1).note("node_started", node="a", wave=1, attempt=2)

    (cell,) = row(wave_grid(log.events), "a").cells

    assert (cell.state, cell.attempt, cell.seconds) == ("running", 2, None)


def test_a_cell_knows_where_it_began_and_how_long_it_took() -> None:
    log = Log("r1").note("run_started").note("node_started", node="a", wave=1)
    log.note("node_completed", "", 0.25, node="a", wave=1)

    (cell,) = row(wave_grid(log.events), "a").cells

    assert (cell.at, cell.settled, cell.seconds) == (2, 3, 0.25)


def test_a_thousand_waves_show_the_newest_and_count_the_rest() -> None:
    log = Log("r1")
    for wave in range(1, 1001):
        log.ran("a", wave)

    grid = wave_grid(log.events)

    assert len(grid.waves) == MOST_WAVES
    assert grid.waves[-1] == (1000, 1)
    assert grid.hidden == 1000 - MOST_WAVES
    assert len(row(grid, "a").cells) == MOST_WAVES


def test_the_grid_of_a_moment_has_the_waves_around_it() -> None:
    log, book = Log("r1"), WaveBook()
    for wave in range(1, 1001):
        log.ran("a", wave)
    for event in log.events:
        book.add(event)

    wave = book.wave_at(log.events[998].pos)
    grid = book.grid(wave)

    assert wave == 500
    assert [number for number, _ in grid.waves] == list(range(475, 475 + MOST_WAVES))
    assert (grid.hidden, grid.later) == (474, 1000 - 474 - MOST_WAVES)
    assert [number for number, _ in book.grid(3).waves] == list(range(1, 1 + MOST_WAVES))
    assert book.grid(1000) == book.grid()


# The timeline


def test_a_row_knows_its_owner_down_the_calls() -> None:
    log = Log("r1").note("delegated", node="a", wave=1, child="r1~1", name="boss")
    log.note("delegated", "~1", node="b", wave=1, child="r1~1~1", name="clerk")
    log.note("node_started", "~1~1", node="c", wave=1)

    rows = Timeline(log.events)

    assert [(found.owner, found.depth) for found in rows] == [("", 0), ("boss", 1), ("boss.clerk", 2)]


def test_the_first_event_of_a_wave_of_the_root_opens_it() -> None:
    rows = Timeline(gallery.incident("en").events)

    assert [(found.id, found.opens) for found in rows if found.opens] == [(2, 1), (37, 2), (41, 3)]


def test_a_node_that_starts_twice_in_a_wave_is_one_node_of_it() -> None:
    log = Log("r1").note("run_started")
    for attempt in (1, 2):
        log.note("node_started", node="ask", wave=1, attempt=attempt)

    assert [row.width for row in Timeline(log.events) if row.opens] == [1]


def test_a_timeline_goes_on_where_it_was() -> None:
    events = gallery.decided("en", True).events
    timeline = Timeline(events[:9])

    for event in events[9:]:
        timeline.add(event)

    assert list(timeline) == list(Timeline(events))


def test_a_long_run_has_a_bounded_number_of_ticks() -> None:
    rows = Timeline(Log("r1").note("run_started").events * 10_000)

    assert 0 < sum(found.path.count("M") for found in ticks(rows)) <= 300


def test_an_event_has_the_tone_of_its_row_on_the_track() -> None:
    for row in gallery.every_kind():
        (found,) = [found for found in ticks([row._replace(opens=0)]) if found.path]
        assert f"tone-{found.tone}" in render.row(row, "en"), row.kind


def test_a_later_call_of_the_same_agent_stands_on_the_same_line() -> None:
    log = Log("r1")
    for wave in (1, 2):
        log.note("node_started", node="ask", wave=wave)
        log.note("delegated", node="ask", wave=wave, child=f"r1~{wave}", name="clerk")
        log.ran("think", 1, f"~{wave}")

    grid = wave_grid(log.events)

    assert [found.label for found in grid.rows] == ["ask", "clerk.think"]
    assert columns(row(grid, "clerk.think")) == [(0, 1, "completed"), (1, 1, "completed")]


def test_two_calls_at_once_stand_on_two_lines() -> None:
    log = Log("r1").note("node_started", node="ask", wave=1)
    for number in (1, 2):
        log.note("delegated", node="ask", wave=1, child=f"r1~{number}", name="clerk")
        log.ran("think", 1, f"~{number}")

    assert [found.label for found in wave_grid(log.events).rows] == ["ask", "clerk.think", "clerk.think"]


def test_a_called_run_that_waited_goes_on_in_the_wave_in_which_its_caller_does() -> None:
    log = Log("r1").note("node_started", node="pay", wave=1)
    log.note("delegated", node="pay", wave=1, child="r1~1", name="payment")
    log.note("node_started", "~1", node="confirm", wave=1).note("node_parked", "~1", node="confirm", wave=1)
    log.note("node_parked", node="pay", wave=1).note("node_started", node="pay", wave=2)
    log.note("node_started", "~1", node="confirm", wave=2).note(
        "node_completed", "~1", node="confirm", wave=2
    )
    log.ran("charge", 3, "~1").note("node_completed", node="pay", wave=2)

    grid = wave_grid(log.events)

    assert grid.waves == ((1, 1), (2, 2))
    assert [begin for begin, _, _ in columns(row(grid, "pay"))] == [0, 1]
    assert [begin for begin, _, _ in columns(row(grid, "payment.confirm"))] == [0, 1]
    assert columns(row(grid, "payment.charge")) == [(2, 1, "completed")]
