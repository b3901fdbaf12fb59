"""The main job, end to end: pick a scenario, watch it live, decide, and go on after a restart."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Server, mood, positions, start

ENDINGS = [("Approve", "place_order", "Ordered."), ("Reject", "walk_away", "Not ordered.")]


@pytest.mark.parametrize(("verdict", "node", "output"), ENDINGS)
def test_a_run_is_watched_live_survives_a_kill_and_ends_as_decided(
    own_server: Server, page: Page, verdict: str, node: str, output: str
) -> None:
    page.goto(own_server.url)
    page.get_by_role("link", name="Trader").click()
    page.get_by_role("button", name="Run", exact=True).first.click()
    page.wait_for_url(re.compile(r"/runs/run-"))
    address = page.url
    mood(page, "waiting")
    seen = positions(page)
    assert seen == list(range(1, len(seen) + 1))
    own_server.kill()
    own_server.start()
    page.goto(address)
    mood(page, "waiting")
    assert positions(page) == seen
    page.get_by_role("button", name=verdict, exact=True).click()
    mood(page, "completed")
    expect(page.locator("#output")).to_contain_text(output)
    expect(page.locator("#timeline")).to_contain_text(node)
    after = positions(page)
    assert after == list(range(1, len(after) + 1))


def test_a_page_that_stays_open_finds_the_server_again_and_shows_each_event_once(
    own_server: Server, page: Page
) -> None:
    """Case D50."""
    start(page, own_server, "trader")
    mood(page, "waiting")
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    own_server.kill()
    expect(page.locator("#connection")).not_to_have_attribute("data-state", "live")
    own_server.start()
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=30_000)
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
    seen = positions(page)
    assert seen == list(range(1, len(seen) + 1))


def test_two_tabs_show_the_same_events_and_the_second_verdict_is_told_of_the_first(
    server: Server, page: Page, browser: Browser
) -> None:
    """Cases D05 and D56."""
    address = start(page, server, "trader")
    other = browser.new_page()
    other.goto(address)
    for tab in (page, other):
        mood(tab, "waiting")
    refused = other.request.post(
        f"{server.url}/api/runs/{address.rpartition('/')[2]}/resume",
        data={"answers": {"approve": {"approved": False}}, "by": "ana"},
    )
    assert refused.status == 202
    mood(page, "completed")
    late = page.request.post(
        f"{server.url}/api/runs/{address.rpartition('/')[2]}/resume",
        data={"answers": {"approve": {"approved": True}}},
    )
    assert late.status == 409
    assert "already rejected by ana" in late.json()["detail"]
    mood(other, "completed")
    assert positions(page) == positions(other)
    expect(page.locator("#output")).to_contain_text("Not ordered.")
    other.close()


def test_a_reload_in_the_middle_loses_and_repeats_nothing(server: Server, page: Page) -> None:
    """Case D23."""
    start(page, server, "trader")
    expect(page.locator("#timeline > li").nth(4)).to_be_visible()
    page.reload()
    mood(page, "waiting")
    seen = positions(page)
    assert seen == list(range(1, len(seen) + 1))


def test_ctrl_c_with_open_tabs_ends_the_server_within_five_seconds(
    own_server: Server, page: Page, browser: Browser
) -> None:
    """Case D24."""
    address = start(page, own_server, "trader")
    other = browser.new_page()
    other.goto(address)
    for tab in (page, other):
        expect(tab.locator("#connection")).to_have_attribute("data-state", "live")
    assert own_server.interrupt(5) == 0
    assert "Traceback" not in own_server.said
    other.close()


def test_a_step_is_decided_without_javascript(server: Server, page: Page, browser: Browser) -> None:
    address = start(page, server, "trader")
    mood(page, "waiting")
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{address}/steps/approve")
    plain.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
    plain.close()


def test_a_run_is_read_without_javascript_and_shows_no_control_that_needs_it(
    server: Server, page: Page, browser: Browser
) -> None:
    address = start(page, server, "trader")
    mood(page, "waiting")
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(address)
    for dead in ("#connection", "#scrubber", "[data-opens=fork]", "[data-stage-switch]"):
        expect(plain.locator(dead).first).to_be_hidden()
    expect(plain.locator("#timeline")).to_contain_text("waits for a person")
    expect(plain.get_by_role("tab")).to_have_count(2)
    plain.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
    plain.close()


def test_text_of_a_run_is_shown_and_never_done(server: Server, page: Page) -> None:
    """Case D40."""
    address = start(page, server, "hostile")
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
    for place in (address, f"{server.url}/", f"{server.url}/runs", f"{server.url}/scenarios/hostile"):
        page.goto(place)
        expect(page.locator("body")).to_contain_text("<script>window.hurt=1</script>")
        assert page.evaluate("window.hurt") is None
        assert page.locator("img[src=x]").count() == 0


def test_a_run_that_waits_says_so_and_not_that_it_is_done(server: Server, page: Page) -> None:
    """Case D51."""
    start(page, server, "two_approvals")
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).first.click()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(1)
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
