"""Time on the page of a run: bars lead to their events, and breakpoints are set while it goes on."""

from __future__ import annotations

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
    assert page.url.endswith(f"#step={at}")


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
