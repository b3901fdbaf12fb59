"""A run that is longer than its page: it has a stretch of the log, and brings the rest where one looks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Server, at_hand, mood, positions, start

MOST = 250
"""The most rows that a page holds."""


def to_top(page: Page) -> None:
    """Scroll the timeline up to its beginning, as far as there are rows."""
    page.locator(".timeline__scroll").evaluate("pane => { pane.scrollTop = 1 }")


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended: its address, and its last position."""

    address: str
    last: int


@pytest.fixture(scope="module")
def long_run(server: Server, browser: Browser) -> Ended:
    """A run of ninety rounds, seven events each."""
    page = browser.new_page()
    address = start(page, server, "rounds")
    mood(page, "completed")
    page.reload()
    found = Ended(address, positions(page)[-1])
    page.close()
    return found


@pytest.fixture
def told(long_run: Ended, page: Page) -> int:
    """The last position of a long run that the page shows."""
    page.goto(long_run.address)
    at_hand(page)
    return long_run.last


def test_a_page_opens_with_the_newest_hundred_rows(told: int, page: Page) -> None:
    assert positions(page) == list(range(told - 99, told + 1))


def test_older_rows_come_as_one_scrolls_up_and_what_is_read_stays_where_it_is(told: int, page: Page) -> None:
    first = page.locator(f"#ev-{told - 99}")
    to_top(page)
    expect(page.locator(f"#ev-{told - 150}")).to_be_attached()
    assert positions(page)[0] <= told - 199
    expect(first).to_be_in_viewport()


def test_however_far_one_scrolls_the_page_holds_a_stretch_without_a_gap(told: int, page: Page) -> None:
    for _ in range(12):
        first = positions(page)[0]
        if first == 1:
            break
        to_top(page)
        expect(page.locator(f"#ev-{first - 1}")).to_be_attached()
    seen = positions(page)
    assert seen[0] == 1
    assert len(seen) <= MOST
    assert seen == list(range(1, len(seen) + 1))
    assert seen[-1] < told
    page.keyboard.press("End")
    expect(page.locator(f"#ev-{told}")).to_be_in_viewport()
    seen = positions(page)
    assert seen == list(range(seen[0], told + 1))


def test_a_moment_far_back_brings_its_rows_and_its_picture(long_run: Ended, page: Page) -> None:
    page.goto(f"{long_run.address}#step=8")
    expect(page.locator("#ev-8")).to_have_attribute("aria-current", "step")
    expect(page.locator('#graph [data-name="work"]')).to_have_attribute("data-state", "completed")
    expect(page.locator('#graph [data-name="check"]')).to_have_attribute("data-state", "pending")
    expect(page.locator("#inspect-event")).to_contain_text("#8")
    page.keyboard.press("End")
    expect(page.locator(f"#ev-{long_run.last}")).to_be_in_viewport()
    expect(page.locator('#graph [data-name="check"]')).to_have_attribute("data-state", "completed")


def test_a_moment_far_back_brings_the_waves_around_it(long_run: Ended, told: int, page: Page) -> None:
    early, late = page.locator("#w3"), page.locator("#w181")
    expect(late).to_be_attached()
    expect(early).not_to_be_attached()
    page.goto(f"{long_run.address}#step=12")
    expect(early).to_be_attached()
    expect(page.locator("#grid .cell:not(.is-later)")).not_to_have_count(0)
    expect(page.locator("#grid .cell.is-later")).not_to_have_count(0)
    expect(page.locator("#grid")).to_contain_text("131 later waves")
    page.keyboard.press("End")
    expect(late).to_be_attached()
    expect(early).not_to_be_attached()


def test_a_page_that_follows_a_busy_run_to_its_end_has_its_newest_rows_without_a_gap(
    server: Server, page: Page
) -> None:
    start(page, server, "rounds")
    mood(page, "completed")
    expect(page.locator("#timeline > li").last).to_have_attribute("data-kind", "run_completed")
    seen = positions(page)
    assert len(seen) <= MOST
    assert seen == list(range(seen[0], int(page.locator("#at").get_attribute("max") or 0) + 1))
    expect(page.locator("#timeline > li").last).to_be_in_viewport()
    assert page.locator(".ticks *").count() < 12


def test_a_filter_finds_what_the_page_has_no_row_of(told: int, page: Page) -> None:
    found = page.locator("#found li")
    page.get_by_role("combobox", name="Kind of event").select_option("run_started")
    expect(found).to_have_count(1)
    expect(found).to_have_attribute("data-at", "1")
    found.get_by_role("link").click()
    expect(page.locator("#inspect-event")).to_contain_text("#1")
    expect(found).to_have_attribute("aria-current", "step")

    page.get_by_role("combobox", name="Kind of event").select_option("node_started")
    expect(page.locator("#found")).to_contain_text(f"181 of {told} events match")
    expect(found).to_have_count(100)
    page.get_by_role("button", name="81 earlier matches").click()
    expect(found).to_have_count(181)
    assert found.evaluate_all("rows => rows.map(r => +r.dataset.at)") == sorted(
        found.evaluate_all("rows => rows.map(r => +r.dataset.at)")
    )


def test_a_filter_goes_on_finding_while_the_run_goes_on(server: Server, page: Page) -> None:
    start(page, server, "rounds")
    page.get_by_role("combobox", name="Kind of event").select_option("run_completed")
    mood(page, "completed")
    expect(page.locator("#found li")).to_have_count(1)


def test_a_node_whose_rows_are_far_away_leads_to_the_event_it_has_its_state_from(
    told: int, page: Page
) -> None:
    first = page.locator("#graph [data-name='begin']")
    first.press("Enter")
    expect(page.locator("#timeline [aria-current]")).to_contain_text("begin")
