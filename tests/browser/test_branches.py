"""Going back and deciding otherwise, as a person does it: fork, reject instead, both side by side."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, mood, start


def test_a_run_is_forked_decided_otherwise_and_both_are_laid_side_by_side(server: Server, page: Page) -> None:
    first = start(page, server, "trader")
    mood(page, "waiting")
    asked = int(page.locator("#at").get_attribute("max") or 0)
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")

    page.goto(f"{first}#step={asked}")
    page.get_by_role("button", name="Fork here").click()
    page.locator("#fork").get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/runs/run-" in url and not url.startswith(first))
    mood(page, "waiting")
    page.get_by_role("button", name="Reject", exact=True).click()
    mood(page, "completed")

    page.locator("#task").get_by_role("link", name="compare with the original").click()
    expect(page.locator(".comparison__shared")).to_contain_text(f"the same {asked} events")
    left, right = page.locator(".comparison__first .side").all()
    expect(left).to_contain_text("approved approve")
    expect(right).to_contain_text("rejected approve")
    expect(page.locator("[data-channel=approved]")).to_contain_text("false")
    expect(page.locator(".comparison")).to_contain_text("Not ordered.")


def test_the_branches_of_a_run_are_a_tab_of_its_page(server: Server, page: Page) -> None:
    first = start(page, server, "trader")
    mood(page, "waiting")
    page.get_by_role("tab", name="Branches").click()
    expect(page.locator("#branches")).to_contain_text("no branch yet")
    page.get_by_role("button", name="Fork here").click()
    page.locator("#fork").get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/runs/run-" in url and not url.startswith(first))

    page.get_by_role("tab", name="Branches").click()
    branches = page.locator("#branches .branch")
    expect(branches).to_have_count(2)
    expect(branches.nth(1)).to_have_attribute("aria-current", "true")
    branches.first.get_by_role("link", name=re.compile("Compare")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Two branches side by side")


def test_a_channel_is_edited_from_the_state_into_a_fork_and_a_slip_is_told_in_the_dialog(
    server: Server, page: Page
) -> None:
    first = start(page, server, "trader")
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")

    page.get_by_role("tab", name="State").click()
    page.get_by_role("button", name="Change it in a fork: approved").click()
    dialog, updates = page.locator("#fork"), page.locator("#fork-updates")
    expect(updates).to_be_focused()
    expect(page.locator("#fork-at")).to_have_value(page.locator("#at").input_value())
    assert json.loads(updates.input_value()) == {"approved": True}

    asked = page.locator("#timeline [data-kind=interrupted]").last.get_attribute("data-at") or ""
    page.locator("#fork-at").fill(asked)
    updates.fill('{"approved": false')
    dialog.get_by_role("button", name="Fork", exact=True).click()
    expect(page.locator("#fork-problem")).to_contain_text("updates is not JSON")
    expect(updates).to_have_value('{"approved": false')

    updates.fill('{"approved": false}')
    dialog.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/runs/run-" in url and not url.startswith(first))
    mood(page, "waiting")
    page.get_by_role("tab", name="State").click()
    expect(page.locator("#inspect-state")).to_contain_text("false")
