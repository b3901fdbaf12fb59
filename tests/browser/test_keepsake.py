"""A run as one file: it opens from the disk without any server, and can be stepped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import findings
from tests.browser.conftest import Server, mood, start


@pytest.fixture
def alone(browser: Browser) -> Iterator[Page]:
    """A page without a network, that has said nothing bad when the test is over."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert said == []
    assert {url for url in asked if not url.startswith("file:")} == set()
    context.close()


def kept(browser: Browser, server: Server, folder: Path, key: str) -> str:
    """Run a scenario to its end, and save its page as a user does; the file's address."""
    page = browser.new_page()
    start(page, server, key)
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as one page").click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    page.close()
    return file.as_uri()


@pytest.fixture(scope="module")
def trader(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the file that a run of the trader was kept in."""
    return kept(browser, server, tmp_path_factory.mktemp("kept"), "trader")


def test_a_kept_run_shows_its_log_its_graph_and_its_state_without_a_server(trader: str, alone: Page) -> None:
    alone.goto(trader)
    last = int(alone.locator("#at").get_attribute("max") or 0)
    expect(alone.locator("#timeline > li")).to_have_count(last)
    expect(alone.locator("#output")).to_contain_text("Ordered.")
    expect(alone.locator('#graph [data-name="place_order"]')).to_have_attribute("data-state", "completed")
    expect(alone.locator("#inspect-state .channel").first).to_be_visible()
    expect(alone.locator("#graph .node__icon").first).to_have_attribute("href", "#state-completed")


def test_a_kept_run_is_stepped_both_ways_by_keys_rows_and_the_address(trader: str, alone: Page) -> None:
    alone.goto(trader)
    node = alone.locator('#graph [data-name="place_order"]')
    alone.keyboard.press("Home")
    expect(node).to_have_attribute("data-state", "pending")
    expect(alone.locator("#inspect-state .channel")).to_have_count(0)
    alone.get_by_role("tab", name="Event").click()
    expect(alone.locator("#inspect-event")).to_contain_text("run_started")
    alone.locator("#timeline > li[data-kind=state_delta] a").first.click()
    expect(alone.locator("#inspect-event")).to_contain_text('"writers"')
    expect(alone.locator("#inspect-state .channel--changed")).not_to_have_count(0)
    alone.keyboard.press("End")
    expect(node).to_have_attribute("data-state", "completed")
    alone.goto(f"{trader}#step=2")
    alone.reload()
    expect(alone.locator("#ev-2")).to_have_attribute("aria-current", "step")


def test_what_a_kept_run_says_stays_text(
    server: Server, browser: Browser, alone: Page, tmp_path: Path
) -> None:
    """Case D40, in a file that allows inline scripts by their hash alone."""
    alone.goto(kept(browser, server, tmp_path, "hostile"))
    expect(alone.locator("body")).to_contain_text("<script>window.hurt=1</script>")
    alone.keyboard.press("ArrowLeft")
    alone.get_by_role("tab", name="Event").click()
    assert alone.evaluate("window.hurt") is None
    assert alone.locator("img[src=x]").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_a_kept_run(
    trader: str, browser: Browser, theme: Literal["light", "dark"]
) -> None:
    page = browser.new_page(color_scheme=theme)
    page.goto(trader)
    assert findings(page) == []
    page.close()
