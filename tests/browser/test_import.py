"""A log that somebody saved: opened on the page of runs, read, and gone on with by a fork."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, mood, start


def test_a_saved_log_is_opened_read_and_forked(server: Server, page: Page, tmp_path: Path) -> None:
    first = start(page, server, "trader")
    mood(page, "waiting")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save the log").click()
    saved = tmp_path / "saved.jsonl"
    download.value.save_as(saved)

    page.goto(f"{server.url}/runs")
    page.get_by_label("Open a saved log").set_input_files(saved)
    page.wait_for_url(lambda url: "/runs/run-" in url and not url.startswith(first))
    expect(page.locator("#timeline [data-kind=interrupted]")).not_to_have_count(0)
    opened = page.url.partition("#")[0]

    page.get_by_role("button", name="Fork here").click()
    page.locator("#fork").get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/runs/run-" in url and not url.startswith(opened))
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")


def test_a_file_that_is_no_log_is_told_on_the_page(server: Server, page: Page, tmp_path: Path) -> None:
    no_log = tmp_path / "notes.jsonl"
    no_log.write_text("not a log\n", encoding="utf-8")
    page.goto(f"{server.url}/runs")
    page.get_by_label("Open a saved log").set_input_files(no_log)
    expect(page.locator("#import-problem")).to_be_visible()
    expect(page.locator("#import-problem")).to_contain_text("line 1 is not one of an exported run")
