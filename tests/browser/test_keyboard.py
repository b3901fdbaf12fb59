"""The main job without a mouse: every step by keys, with the focus seen at each and never lost."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server, at_hand, mood, start

SEEN = """() => {
  const element = document.activeElement;
  if (element === document.body) return "the body";
  const ring = (one) => {
    const style = getComputedStyle(one);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  };
  const box = element.querySelector(":scope > .node__box");
  const stroke = box && parseFloat(getComputedStyle(box).strokeWidth) >= 3;
  const seen = ring(element) || stroke || [...document.querySelectorAll(":has(:focus-visible)")].some(ring);
  return element.matches(":focus-visible") && seen ? "" : `no ring around ${element.outerHTML.slice(0, 120)}`;
}"""


def press(page: Page, key: str, times: int = 1) -> None:
    """Press a key, and see that the focus is somewhere and shown."""
    for _ in range(times):
        page.keyboard.press(key)
        assert page.evaluate(SEEN) == ""


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(80):
        press(page, "Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_a_run_is_started_decided_looked_at_and_forked_by_keys_alone(server: Server, page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(server.url)
    tab_to(page, page.get_by_role("link", name="Trader", exact=True))
    page.keyboard.press("Enter")
    page.wait_for_url("**/scenarios/trader")
    tab_to(page, page.get_by_role("button", name="Run", exact=True).first)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/runs/run-"))
    mood(page, "waiting")
    expect(page.locator(".step")).to_be_focused()

    press(page, "a")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    mood(page, "completed")
    assert page.evaluate(SEEN) == ""

    tab_to(page, page.get_by_role("tab", name="State"))
    press(page, "ArrowRight")
    expect(page.get_by_role("tab", name="Why")).to_be_focused()
    expect(page.locator("#inspect-why")).to_be_visible()
    tab_to(page, page.get_by_role("slider"))
    press(page, "ArrowLeft", 3)
    expect(page.locator("#timeline [aria-current]")).to_be_in_viewport()

    press(page, "f")
    expect(page.get_by_label("After event")).to_be_focused()
    press(page, "Tab")
    page.keyboard.type('{"note": "by keys"}')
    tab_to(page, page.get_by_role("button", name="Fork", exact=True).last)
    first = page.url.partition("#")[0]
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: "/runs/run-" in address and not address.startswith(first))

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys and colours")).to_be_visible()
    assert page.evaluate(SEEN) == ""
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys and colours")).to_be_hidden()
    page.go_back()
    page.wait_for_url(lambda address: address.startswith(first))


def test_the_focus_stays_where_it_is_while_a_run_goes_on(server: Server, page: Page) -> None:
    start(page, server, "rounds")
    pause = page.get_by_role("button", name="Breakpoints")
    pause.focus()
    mood(page, "completed")
    expect(pause.or_(page.locator("#controls"))).not_to_have_count(0)
    assert page.evaluate("document.activeElement !== document.body")


def test_a_graph_and_its_grid_are_walked_by_keys(server: Server, page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    start(page, server, "trader")
    mood(page, "waiting")
    node = page.locator("#graph [role=button]").first
    tab_to(page, node)
    press(page, "Enter")
    expect(page.locator("#timeline [aria-current]")).to_have_count(1)
    expect(node).to_be_focused()
    tab_to(page, page.locator("#grid .cell").first)
    press(page, "Enter")
    expect(page.locator("#grid [aria-current]")).to_have_count(1)


def test_a_paused_run_goes_one_wave_on_and_space_plays_what_was(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/scenarios/trader")
    page.get_by_label("Pause before each wave").check()
    page.get_by_role("button", name="Run", exact=True).first.click()
    page.wait_for_url(re.compile(r"/runs/run-"))
    at_hand(page)
    mood(page, "paused")
    before = page.locator("#timeline > li").count()
    page.locator("#main").focus()
    page.keyboard.press("n")
    expect(page.locator("#timeline > li")).not_to_have_count(before)
    mood(page, "paused")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile("stage=1"))
    page.keyboard.press("s")

    page.keyboard.press("Home")
    page.keyboard.press("Space")
    expect(page.locator("[data-go=play]")).to_have_attribute("aria-pressed", "true")


def test_the_scrubber_says_whose_wave_it_is(server: Server, page: Page) -> None:
    first = start(page, server, "trader")
    mood(page, "waiting")
    page.goto(f"{first}#step=24")
    expect(page.locator(".scrubber__where")).to_have_text("event 24 of 41 · buyer wave 4")
    page.goto(f"{first}#step=38")
    expect(page.locator(".scrubber__where")).to_have_text("event 38 of 41 · wave 2")
