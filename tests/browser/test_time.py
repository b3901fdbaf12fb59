"""Time on the page of a run: bars lead to their events, and breakpoints are set while it goes on."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, mood, start


def test_a_bar_of_the_waterfall_is_part_of_the_one_selection(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    page.get_by_role("tab", name="Time").click()
    bar = page.locator("#waterfall [data-at]").nth(2)
    at = bar.get_attribute("data-at")
    bar.click()

    expect(page.locator("#at")).to_have_value(str(at))
    expect(bar).to_have_attribute("aria-current", "step")
    expect(page.locator(f"#timeline [data-at='{at}']")).to_have_attribute("aria-current", "step")
    expect(page).to_have_url(re.compile(f"#step={at}$"))


def test_a_cell_of_the_grid_shows_no_state_that_it_did_not_have_yet(server: Server, page: Page) -> None:
    first = start(page, server, "trader")
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
    cell = page.locator("#grid .cell[data-state=completed]").last
    began, settled = int(cell.get_attribute("data-at") or 0), int(cell.get_attribute("data-settled") or 0)
    for at, shown in ((began - 1, "is-later"), (began, "is-unsettled"), (settled, "")):
        page.goto(f"{first}#step={at}")
        expect(cell).to_have_class(f"cell {shown}".strip())


def test_a_breakpoint_is_set_from_the_page_and_met(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    page.get_by_role("button", name="Breakpoints").click()
    dialog = page.locator("#stops-dialog")
    dialog.get_by_role("combobox", name="node", exact=True).fill("place_order")
    dialog.locator(".stops__add").first.get_by_role("button", name="Add").click()
    expect(dialog.locator(".stops__list li")).to_contain_text("Before place_order starts")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Breakpoints")).to_contain_text("1")
    stopping = page.locator("#graph [data-mark='node-/place_order']")
    expect(stopping.locator(".node__stop")).to_be_visible()
    expect(stopping).to_have_attribute("aria-label", "place_order, Before place_order starts: not yet")

    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "paused")
    expect(page.locator("#parked")).to_contain_text("Stopped at a breakpoint: Before place_order starts")
    page.locator("#parked").get_by_role("button", name="Continue").click()
    mood(page, "completed")


def test_the_badge_of_a_run_that_comes_to_rest_is_there_without_a_reload(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")

    expect(page.locator("#proof")).to_have_text("fold = checkpoint")


def test_what_ran_twice_is_told_from_what_came_from_memory(server: Server, page: Page) -> None:
    start(page, server, "pays")
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")

    expect(page.locator("#timeline .event__given")).to_have_text("Given back from memory: price.")
    expect(page.locator("#timeline .event__again")).to_have_text("ran again: 2×")
    expect(page.locator("#timeline li", has=page.locator(".event__again"))).to_contain_text("pay")


def test_repeats_are_one_row_that_opens(server: Server, page: Page) -> None:
    start(page, server, "pays")
    mood(page, "waiting")
    notes = page.locator("#timeline [data-kind=note] .event__row")
    fold = page.get_by_role("button", name="3 more like it")
    expect(notes.filter(visible=True)).to_have_count(1)

    fold.press("Enter")
    expect(fold).to_have_attribute("aria-expanded", "true")
    expect(notes.filter(visible=True)).to_have_count(4)
    fold.press("Enter")
    expect(notes.filter(visible=True)).to_have_count(1)

    page.goto(f"{page.url}#step={notes.nth(2).locator('..').get_attribute('data-at')}")
    expect(notes.nth(2)).to_be_visible()


def test_the_timeline_is_filtered_by_kind_and_by_node(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    shown = page.locator("#found li")

    page.get_by_role("combobox", name="Kind of event").select_option("node_started")
    page.get_by_role("combobox", name="Node", exact=True).select_option("approve")

    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("approve started")
    expect(page.locator("#timeline")).to_be_hidden()
    page.get_by_role("searchbox", name="Filter").fill("nothing of the kind")
    expect(page.locator("#found")).to_contain_text("No event of this run matches.")
    expect(page.locator("#found-said")).to_have_text("No event of this run matches.")

    page.get_by_role("button", name="Show all").press("Enter")
    expect(page.locator("#timeline")).to_be_visible()
    expect(page.get_by_role("searchbox", name="Filter")).to_be_focused()


def test_the_rows_of_a_called_run_fold_and_stay_so_while_the_run_goes_on(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    inner = page.locator("#grid tbody tr[data-depth='1']")
    fold = page.locator("#grid").get_by_role("button", name="buyer", exact=True)
    expect(inner.first).to_be_visible()

    fold.press("Enter")
    expect(inner.filter(visible=True)).to_have_count(0)
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
    expect(page.locator("#grid tbody tr").filter(has_text="place_order")).to_be_visible()

    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(inner.filter(visible=True)).to_have_count(0)
    fold.press("Enter")
    expect(inner.first).to_be_visible()


def test_the_source_comes_when_its_tab_is_opened_and_follows_the_moment(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    expect(page.locator("#inspect-source .source")).to_have_count(0)
    page.get_by_role("tab", name="Source").click()
    expect(page.locator("#inspect-source .source")).to_be_visible()
    page.goto(f"{page.url.partition('#')[0]}#step=39")
    expect(page.locator("#inspect-source .source__line--active").first).to_contain_text("def approve(")
    page.goto(f"{page.url.partition('#')[0]}#step=2")
    expect(page.locator("#inspect-source .source__line--active")).to_have_count(0)
