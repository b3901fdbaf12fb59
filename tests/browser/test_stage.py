"""The stage: a run for a room, with the picture large, one line of words, and keys."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, mood, start

SIZES = """() => {
  const line = document.getElementById("narration");
  const picture = document.querySelector("#graph .graph__picture").getBoundingClientRect();
  const name = document.querySelector("#graph .node__name").getBoundingClientRect();
  return {
    line: parseFloat(getComputedStyle(line).fontSize),
    share: picture.width / innerWidth,
    name: name.height,
    wide: document.documentElement.scrollWidth > innerWidth,
  };
}"""


def test_an_embedded_run_is_readable_at_1280_by_720_and_says_one_line(server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    start(page, server, "trader")
    mood(page, "waiting")
    page.goto(f"{page.url.partition('#')[0]}?embed=1#step=38")

    expect(page.locator(".bar")).to_be_hidden()
    expect(page.locator("#timeline")).to_be_hidden()
    expect(page.locator("#narration")).to_have_text("approve started Its edge from buyer is live.")
    sizes = page.evaluate(SIZES)
    assert sizes["line"] >= 20
    assert sizes["share"] > 0.8
    assert sizes["name"] >= 12
    assert not sizes["wide"]
    page.keyboard.press("ArrowRight")
    expect(page.locator("#narration")).to_have_text("approve waits for a person Order at this price?")
    page.goto(f"{page.url.partition('#')[0]}#step=24")
    expect(page.locator("#narration")).to_have_text('buyer Tool offer {"price": 13}')


def test_a_run_is_shown_on_the_stage_and_decided_by_keys_alone(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    page.keyboard.press("s")
    expect(page.locator("#timeline")).to_be_hidden()
    expect(page).to_have_url(re.compile("stage=1"))
    expect(page.locator("#parked")).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    mood(page, "completed")
    expect(page.locator("#narration")).to_contain_text("completed")
    page.keyboard.press("s")
    expect(page.locator("#timeline")).to_be_visible()
    expect(page).not_to_have_url(re.compile("stage"))
