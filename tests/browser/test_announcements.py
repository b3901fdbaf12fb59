"""What a screen reader is told of a run: what matters once, and not each event."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, mood, start

LISTEN = """
addEventListener("DOMContentLoaded", () => {
  const told = (window.told = []);
  const live = "[role=status], [role=alert], [role=log], [aria-live=polite], output:not([aria-live=off])";
  const texts = new Map();
  const tell = () => {
    for (const region of document.querySelectorAll(live)) {
      const text = region.textContent.replace(/\\s+/g, " ").trim();
      const name = region.id || region.className;
      if (texts.has(name) && texts.get(name) !== text && text) told.push([name, text]);
      texts.set(name, text);
    }
  };
  tell();
  new MutationObserver(tell).observe(document.body, { subtree: true, childList: true, characterData: true });
});
"""
"""In the page: what the live regions come to say, each change of one as it is made."""


def told(page: Page) -> list[tuple[str, str]]:
    """What has been announced so far, by region."""
    return [(name, text) for name, text in page.evaluate("told")]


def test_a_question_and_each_turn_of_the_run_are_announced_once(server: Server, page: Page) -> None:
    page.add_init_script(LISTEN)
    start(page, server, "trader")
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")

    said = [text for _, text in told(page)]
    assert len([text for text in said if text == "waiting for you"]) == 1
    assert len([text for text in said if text == "completed"]) == 1


def test_a_question_that_does_not_take_the_focus_is_said(server: Server, page: Page) -> None:
    page.add_init_script(LISTEN)
    start(page, server, "trader")
    page.get_by_role("searchbox", name="Filter").focus()
    mood(page, "waiting")
    expect(page.locator(".step")).to_be_visible()

    question = page.locator(".step__title").inner_text()
    assert [text for name, text in told(page) if name == "asked"] == [question]


def test_a_busy_run_is_not_read_out_event_by_event(server: Server, page: Page) -> None:
    page.add_init_script(LISTEN)
    start(page, server, "rounds")
    mood(page, "completed")
    expect(page.locator("#timeline > li").last).to_have_attribute("data-kind", "run_completed")

    assert int(page.locator("#at").get_attribute("max") or 0) > 600
    assert len(told(page)) <= 6, told(page)


def test_the_graph_has_a_list_that_says_the_same(server: Server, page: Page) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    page.get_by_text("As a list").press("Enter")
    for node in page.locator("#graph .node").all():
        name, said = (node.get_attribute("aria-label") or "").split(": ")
        item = page.locator(".graph__list li", has=page.get_by_text(name, exact=True))
        expect(item.first).to_contain_text(said)
