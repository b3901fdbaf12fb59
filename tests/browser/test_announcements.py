"""What a screen reader is told of a run: what matters once, and not each event."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, at_hand, mood, start

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


def held(page: Page, server: Server, key: str) -> str:
    """A run whose page is shown before its first wave, and all said from then on; its address in the API."""
    page.add_init_script(LISTEN)
    begun = page.request.post(f"{server.url}/api/runs", data={"scenario": key, "options": {"step": True}})
    run_id = begun.json()["run_id"]
    page.goto(f"{server.url}/runs/{run_id}")
    mood(page, "paused")
    at_hand(page)
    expect(page.locator(".step")).to_be_visible()
    page.evaluate("told.length = 0")
    return f"{server.url}/api/runs/{run_id}"


def let_go(page: Page, run: str) -> None:
    """Have a run that was held go on without a stop."""
    assert page.request.put(f"{run}/breakpoints", data={"breakpoints": []}).ok
    assert page.request.post(f"{run}/continue").ok


def test_a_question_and_each_turn_of_the_run_are_announced_once(server: Server, page: Page) -> None:
    run = held(page, server, "trader")
    let_go(page, run)
    mood(page, "waiting")
    page.get_by_role("button", name="Approve", exact=True).click()
    mood(page, "completed")

    said = [text for _, text in told(page)]
    assert len([text for text in said if text == "waiting for you"]) == 1
    assert len([text for text in said if text == "completed"]) == 1


def test_a_question_that_does_not_take_the_focus_is_said(server: Server, page: Page) -> None:
    run = held(page, server, "trader")
    page.get_by_role("searchbox", name="Filter").focus()
    let_go(page, run)
    mood(page, "waiting")

    question = page.locator(".step").get_by_text("Order at this price?").inner_text()
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
