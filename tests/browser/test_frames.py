"""What comes within one frame is shown together."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, mood, start

TWICE = """moods => {
  const stream = document.getElementById("stream");
  for (const mood of moods) {
    const status = `<p id="status" data-mood="${mood}"></p>`;
    const data = `<hx-partial hx-target="#status" hx-swap="outerHTML">${status}</hx-partial>`;
    const detail = { message: { data }, waitUntil() {} };
    stream.dispatchEvent(new CustomEvent("htmx:sse:before:message", { bubbles: true, detail }));
  }
}"""


def test_a_part_that_is_replaced_twice_within_a_frame_ends_as_the_later_one(
    server: Server, page: Page
) -> None:
    start(page, server, "trader")
    mood(page, "waiting")
    expect(page.locator("#proof")).to_be_visible()
    page.evaluate(TWICE, ["running", "completed"])
    mood(page, "completed")


FRAMES = """
let frames = 0;
requestAnimationFrame(function frame() { frames += 1; requestAnimationFrame(frame); });
document.addEventListener("htmx:after:init", () => { window.framesBefore = frames; });
"""


def test_the_page_of_a_run_is_seen_before_its_scripts_begin(server: Server, page: Page) -> None:
    page.add_init_script(FRAMES)
    start(page, server, "trader")
    page.wait_for_function("window.framesBefore !== undefined")

    assert page.evaluate("window.framesBefore") > 0
