"""A run as one file: it opens from the disk without any server, and can be stepped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

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


def kept(page: Page, server: Server, folder: Path, key: str = "trader", verdict: str = "Approve") -> Path:
    """Run a scenario to its end, save its page as a user does, and stop the server."""
    start(page, server, key)
    mood(page, "waiting")
    page.get_by_role("button", name=verdict, exact=True).click()
    mood(page, "completed")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as one page").click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    server.stop()
    return file


def test_a_kept_run_shows_its_log_its_graph_and_its_state_without_a_server(
    server: Server, page: Page, alone: Page, tmp_path: Path
) -> None:
    alone.goto(kept(page, server, tmp_path).as_uri())
    last = int(alone.locator("#at").get_attribute("max") or 0)
    expect(alone.locator("#timeline > li")).to_have_count(last)
    expect(alone.locator("#output")).to_contain_text("Ordered.")
    expect(alone.locator('#graph [data-name="place_order"]')).to_have_attribute("data-state", "completed")
    expect(alone.locator("#inspect-state .channel").first).to_be_visible()
    expect(alone.locator("#graph .node__icon").first).to_have_attribute("href", "#state-completed")


def test_a_kept_run_is_stepped_both_ways_by_keys_rows_and_the_address(
    server: Server, page: Page, alone: Page, tmp_path: Path
) -> None:
    file = kept(page, server, tmp_path).as_uri()
    alone.goto(file)
    node = alone.locator('#graph [data-name="place_order"]')
    alone.keyboard.press("Home")
    expect(node).to_have_attribute("data-state", "pending")
    expect(alone.locator("#inspect-state .channel")).to_have_count(0)
    alone.get_by_role("tab", name="Event").click()
    expect(alone.locator("#inspect-event")).to_contain_text("run_started")
    alone.locator("#timeline > li[data-kind=state_delta] a").first.click()
    expect(alone.locator("#inspect-event")).to_contain_text('"writers"')
    assert alone.locator("#inspect-state .channel--changed").count() > 0
    alone.keyboard.press("End")
    expect(node).to_have_attribute("data-state", "completed")
    alone.goto(f"{file}#step=2")
    alone.reload()
    expect(alone.locator("#ev-2")).to_have_attribute("aria-current", "step")


def test_what_a_kept_run_says_stays_text(server: Server, page: Page, alone: Page, tmp_path: Path) -> None:
    """Case D40, in a file that allows inline scripts by their hash alone."""
    alone.goto(kept(page, server, tmp_path, "hostile").as_uri())
    expect(alone.locator("body")).to_contain_text("<script>window.hurt=1</script>")
    alone.keyboard.press("ArrowLeft")
    alone.get_by_role("tab", name="Event").click()
    assert alone.evaluate("window.hurt") is None
    assert alone.locator("img[src=x]").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_a_kept_run(
    server: Server, page: Page, browser: Browser, tmp_path: Path, theme: str
) -> None:
    file = kept(page, server, tmp_path)
    context = browser.new_context(color_scheme=theme, bypass_csp=True)
    shown = context.new_page()
    shown.goto(file.as_uri())
    assert [found["id"] for found in Axe().run(shown).response["violations"]] == []
    context.close()
