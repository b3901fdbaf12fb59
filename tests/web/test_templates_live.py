"""The run page in a real browser: live fragments, time travel, one selection, keys, and a lost connection.

The server here is a stage: it has the real templates and a log that is told step by step.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from playground.kernel.eventlog import Event
from playground.web import gallery
from playground.web.graphview import reshapes
from playground.web.i18n import Language
from playground.web.render import row as rendered_row
from playground.web.static import content
from playground.web.templating import page, partial, region
from playground.web.timeline import Timeline
from playground.web.viewmodels import EventRow, RunView
from tests.browser.axe import findings
from tests.browser.conftest import positions

POLICY = "default-src 'self'; script-src 'self'; style-src 'self'; base-uri 'none'"
UNTIL_PARKED = len(gallery.incident("en").events) - 1
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Stage:
    """A run whose events are told when a test says so, served as the product serves it."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.shown = 1
        self.down = False
        self.asked: list[str] = []
        self.posted: list[dict[str, list[str]]] = []
        self._changed = threading.Condition()
        stage = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

            def handle(self) -> None:
                with suppress(ConnectionError):
                    super().handle()

            def do_GET(self) -> None:
                stage.get(self)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                stage.posted.append(parse_qs(body))
                self.send_response(204)
                self.end_headers()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.tell(0)
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def tell(self, count: int) -> None:
        """Let the next `count` events happen."""
        with self._changed:
            self.shown = min(len(self.events), self.shown + count)
            self._changed.notify_all()

    def tell_all(self) -> None:
        self.tell(len(self.events))

    def cut(self) -> None:
        """Drop every connection and refuse new ones."""
        with self._changed:
            self.down = True
            self._changed.notify_all()

    def mend(self) -> None:
        self.down = False

    def view(self) -> RunView:
        log = gallery.Log("inc7")
        log.events = self.events[: self.shown]
        return gallery.run_sample("en", log)

    def get(self, to: BaseHTTPRequestHandler) -> None:
        address = urlsplit(to.path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        self.asked.append(to.path)
        if self.down:
            return self._send(to, 503, "text/html", "<h1>down</h1>")
        if address.path.startswith("/static/"):
            name = address.path.removeprefix("/static/")
            return self._send(to, 200, TYPES[name.rpartition(".")[2]], content(name).decode())
        if address.path.endswith("/live"):
            return self._live(to, int(to.headers.get("Last-Event-ID") or query["after"]))
        if address.path.endswith("/moment"):
            event = Timeline(self.events)[int(query["at"]) - 1]
            run = self.view()
            moment = replace(run.moment, at=event.id, event=event)
            inner = region("inspect_event", "en", run=replace(run, moment=moment))
            return self._send(to, 200, "text/html", partial("#inspect-event", inner, "innerHTML"))
        if address.path == "/favicon.ico":
            return self._send(to, 404, "text/plain", "")
        return self._send(to, 200, "text/html", page("run", "en", run=self.view()))

    def _live(self, to: BaseHTTPRequestHandler, after: int) -> None:
        to.send_response(200)
        to.send_header("Content-Type", "text/event-stream")
        to.send_header("Connection", "close")
        to.end_headers()
        rows = Timeline(self.events)
        resumed, first = after, True
        while not self.down:
            with self._changed:
                fresh = rows[after : self.shown]
                if not fresh and not first:
                    self._changed.wait(0.1)
                    continue
            if fresh:
                after = fresh[-1].id
                told = self.events[fresh[0].id - 1 : after]
                self._message(to, self._fragments(fresh, any(map(reshapes, told))), after)
                marks = [mark.json() for row in fresh for mark in row.marks]
                self._message(to, json.dumps(marks), after, "graph")
            if first and resumed > 1 and fresh:
                self._message(to, str(len(fresh)), None, "caught-up")
            first = False
            if fresh and fresh[-1].kind == "run_completed":
                return self._message(to, "", None, "end")
            if not fresh:
                to.wfile.write(b": ping\n\n")

    def _fragments(self, rows: list[EventRow], shape: bool) -> str:
        """One message for what has happened: the rows, and the regions that they change."""
        run = self.view()
        html = partial("#timeline", "".join(rendered_row(row, "en") for row in rows), "upsert")
        if shape:
            html += partial("#graph", region("graph", "en", graph=run.graph, live=True))
        html += partial("#status", region("status", "en", run=run))
        html += partial("#grid", region("grid", "en", grid=run.grid))
        html += partial("#parked", region("parked", "en", steps=run.interrupts))
        return html + partial("#output", region("output", "en", run=run))

    @staticmethod
    def _message(to: BaseHTTPRequestHandler, data: str, at: int | None = None, event: str = "") -> None:
        lines = [*([f"event: {event}"] if event else []), *([f"id: {at}"] if at else []), f"data: {data}"]
        to.wfile.write(("\n".join(lines) + "\n\n").encode())
        to.wfile.flush()

    @staticmethod
    def _send(to: BaseHTTPRequestHandler, status: int, kind: str, text: str) -> None:
        body = text.encode()
        to.send_response(status)
        to.send_header("Content-Type", f"{kind}; charset=utf-8")
        to.send_header("Content-Length", str(len(body)))
        to.send_header("Content-Security-Policy", POLICY)
        to.end_headers()
        to.wfile.write(body)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage(gallery.decided("en", True).events)
    yield stage
    stage.close()


@pytest.fixture
def run(stage: Stage, page: Page) -> Iterator[Page]:
    """The run page after the first event, connected; the page must stay without an error."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{stage.url}/runs/inc7")
    expect(badge(page)).to_have_text("live")
    yield page
    assert [error for error in errors if "503" not in error and "ERR_" not in error] == []


def badge(page: Page):  # type: ignore[no-untyped-def]
    return page.locator("#connection")


def at(page: Page, step: int) -> None:
    """Wait until the page shows this event's moment."""
    expect(page.locator("#at")).to_have_value(str(step))


def node(page: Page, key: str, run_id: str = ""):  # type: ignore[no-untyped-def]
    return page.locator(f'[data-mark="node-{run_id}/{key}"]')


def test_events_arrive_in_order_and_the_picture_follows(run: Page, stage: Stage) -> None:
    stage.tell(1)
    expect(node(run, "diagnose")).to_have_attribute("data-state", "running")

    stage.tell_all()

    expect(run.locator("#status")).to_contain_text("completed")
    expect(node(run, "repair")).to_have_attribute("data-state", "completed")
    expect(node(run, "repair")).to_have_attribute("aria-label", "repair, Before repair starts: done · wave 5")
    assert positions(run) == list(range(1, len(stage.events) + 1))


def test_the_live_picture_is_the_one_that_a_reload_shows(run: Page, stage: Stage) -> None:
    """Case D06: fragments for several regions change just those, and rows land in their list."""
    states = (
        "els => els.map(e => [e.dataset.mark, e.dataset.state, e.dataset.age, e.getAttribute('aria-label')])"
    )
    stage.tell_all()
    expect(badge(run)).to_have_text("complete")
    live = run.locator("#graph [data-mark]").evaluate_all(states)

    run.reload()

    assert run.locator("#graph [data-mark]").evaluate_all(states) == live


def test_what_was_active_glows_and_fades_with_each_wave_that_begins(run: Page, stage: Stage) -> None:
    """The glow is the same when one gets there live and when one travels back to it."""
    ages = "els => els.map(e => [e.dataset.mark, e.dataset.age ?? 'old'])"
    stage.tell(UNTIL_PARKED - 1)
    expect(run.locator(f"#ev-{UNTIL_PARKED}")).to_be_attached()
    live = run.locator("#graph :is(.node, .edge)").evaluate_all(ages)
    assert {age for _, age in live} == {"0", "1", "2", "old"}
    stage.tell_all()
    expect(badge(run)).to_have_text("complete")
    assert run.locator("#graph :is(.node, .edge)").evaluate_all(ages) != live

    run.goto(f"{run.url}#step={UNTIL_PARKED}")

    at(run, UNTIL_PARKED)
    known = dict(run.locator("#graph :is(.node, .edge)").evaluate_all(ages))
    assert {mark: known[mark] for mark, _ in live} == dict(live)


def test_an_answer_about_the_moment_before_does_not_take_the_picture_back(stage: Stage, page: Page) -> None:
    """Where frames are slow, it comes while the picture has marks already whose rows wait for a frame."""
    page.add_init_script(
        "const next = requestAnimationFrame;"
        "requestAnimationFrame = (then) => next(() => setTimeout(() => then(performance.now()), 200))"
    )
    page.goto(f"{stage.url}/runs/inc7")
    expect(badge(page)).to_have_text("live")
    stage.tell(UNTIL_PARKED - 1)
    expect(page.locator(f"#ev-{UNTIL_PARKED}")).to_be_attached()

    stage.tell_all()

    expect(badge(page)).to_have_text("complete")
    assert node(page, "repair").get_attribute("data-state") == "completed"


def test_what_is_changed_in_a_part_as_soon_as_it_is_there_stays_changed(run: Page, stage: Stage) -> None:
    """A moment may be chosen between any two steps of a painting."""
    run.evaluate(
        "document.addEventListener('htmx:before:settle', ({ target }) => { if (target.id === 'graph')"
        " target.querySelector('[data-mark=\"node-/diagnose\"]').dataset.changed = 'yes' })"
    )

    stage.tell(20)

    at(run, 21)
    expect(node(run, "diagnose")).to_have_attribute("data-changed", "yes")


def test_a_lost_connection_is_said_and_what_was_missed_comes_once(run: Page, stage: Stage) -> None:
    stage.tell(9)
    expect(run.locator("#ev-10")).to_be_visible()

    stage.cut()
    expect(badge(run)).to_have_text("reconnecting")
    stage.tell(5)
    stage.mend()

    expect(badge(run)).to_have_text("caught up 5 events", timeout=15_000)
    assert positions(run) == list(range(1, 16))


def test_a_server_that_is_not_there_at_first_is_tried_again(stage: Stage, page: Page) -> None:
    page.route("**/live*", lambda route: route.abort() if len(stage.asked) < 45 else route.continue_())
    page.goto(f"{stage.url}/runs/inc7")
    expect(badge(page)).to_have_text("reconnecting")

    page.unroute("**/live*")

    expect(badge(page)).to_have_text("live", timeout=15_000)


def test_an_ended_run_is_not_asked_for_again(run: Page, stage: Stage) -> None:
    stage.tell_all()

    expect(badge(run)).to_have_text("complete")
    run.wait_for_timeout(1_500)
    assert len([path for path in stage.asked if "/live" in path]) == 1


def test_going_back_in_time_shows_the_states_of_that_moment(run: Page, stage: Stage) -> None:
    stage.tell_all()
    at(run, len(stage.events))

    run.keyboard.press("Home")
    expect(node(run, "diagnose")).to_have_attribute("data-state", "pending")
    run.keyboard.press("ArrowRight")
    expect(node(run, "diagnose")).to_have_attribute("data-state", "running")
    run.keyboard.press("End")

    expect(node(run, "repair")).to_have_attribute("data-state", "completed")
    expect(run).not_to_have_url(re.compile("#"))


def test_the_address_holds_the_step(run: Page, stage: Stage) -> None:
    stage.tell_all()
    expect(badge(run)).to_have_text("complete")
    run.locator("#ev-38 a").click()
    expect(run).to_have_url(re.compile("#step=38$"))

    run.reload()

    at(run, 38)
    expect(run.locator("#ev-38")).to_have_attribute("aria-current", "step")
    expect(run.locator("#inspect-event")).to_contain_text("node_completed")


def test_a_step_that_does_not_exist_leads_to_the_nearest(run: Page, stage: Stage) -> None:
    run.goto(f"{stage.url}/runs/inc7#step=999")
    expect(run.locator(".scrubber__where")).to_contain_text("there is no event")
    at(run, stage.shown)


def test_row_cell_node_and_scrubber_are_one_selection(run: Page, stage: Stage) -> None:
    stage.tell_all()
    expect(badge(run)).to_have_text("complete")

    node(run, "decide").click()
    expect(node(run, "decide")).to_have_class("node node--function is-chosen")
    moved = int(run.locator("#at").input_value())
    expect(run.locator(f"#ev-{moved}")).to_have_attribute("aria-current", "step")

    cell = run.locator("#grid .cell").last
    cell.click()
    shown = int(cell.get_attribute("data-at") or 0)
    assert shown != moved
    at(run, shown)
    expect(run.locator(".scrubber__where")).to_contain_text(f"event {shown} of")


def test_a_reader_of_the_past_stays_there_while_events_arrive(run: Page, stage: Stage) -> None:
    stage.tell(20)
    expect(run.locator("#ev-21")).to_be_attached()
    run.locator("#ev-5 a").click()
    at(run, 5)

    stage.tell(5)

    expect(run.locator(".scrubber__where")).to_contain_text("event 5 of 26")
    expect(node(run, "final", "~1")).to_have_attribute("data-state", "pending")


def test_playing_reaches_the_end(run: Page, stage: Stage) -> None:
    stage.tell(11)
    expect(run.locator("#ev-12")).to_be_attached()
    run.select_option("#speed", "8")
    run.evaluate("document.addEventListener('moment', ({ detail }) => (window.seen ??= []).push(detail.at))")

    run.keyboard.press("p")

    at(run, 12)
    expect(run.locator("[data-go=play]")).to_have_attribute("aria-pressed", "false")
    assert sorted(set(run.evaluate("seen"))) == list(range(1, 13))


def test_a_key_moves_to_the_verdict_and_only_enter_decides(run: Page, stage: Stage) -> None:
    stage.tell(UNTIL_PARKED)
    expect(run.locator(".step")).to_be_visible()

    run.keyboard.press("x")
    expect(run.locator("button[value=reject]")).to_be_focused()
    assert stage.posted == []
    with run.expect_response("**/answers"):
        run.keyboard.press("Enter")

    assert [sent["verdict"] for sent in stage.posted] == [["reject"]]


def test_a_card_that_arrives_takes_the_focus(run: Page, stage: Stage) -> None:
    stage.tell(UNTIL_PARKED)

    expect(run.locator(".step")).to_be_focused()


def test_a_card_that_arrives_leaves_someone_who_types_alone(run: Page, stage: Stage) -> None:
    run.locator("#filter").fill("decide")

    stage.tell(UNTIL_PARKED)

    expect(run.locator(".step")).to_be_visible()
    expect(run.locator("#filter")).to_be_focused()


def test_the_theme_is_kept(run: Page) -> None:
    run.locator("[data-theme-switch]").click()
    run.locator("[data-theme-switch]").click()

    run.reload()

    expect(run.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_tabs_move_with_the_arrows(run: Page) -> None:
    run.locator("#tab-state").focus()

    run.keyboard.press("ArrowRight")

    expect(run.locator("#tab-why")).to_be_focused()
    expect(run.locator("#inspect-why")).to_be_visible()
    expect(run.locator("#inspect-state")).to_be_hidden()


def test_after_a_click_on_a_tab_the_arrows_stay_with_time(run: Page, stage: Stage) -> None:
    stage.tell(5)
    expect(run.locator("#ev-6")).to_be_attached()
    run.locator("#tab-why").click()

    run.keyboard.press("ArrowLeft")

    expect(run.locator("#inspect-why")).to_be_visible()
    at(run, 5)


def test_a_name_once_given_is_offered_again(run: Page, stage: Stage) -> None:
    stage.tell(UNTIL_PARKED)
    run.locator("[name=by]").fill("Ana")
    run.locator("[name=comment]").focus()

    run.reload()

    expect(run.locator("[name=by]")).to_have_value("Ana")


def test_the_help_lists_the_keys_and_gives_the_focus_back(run: Page) -> None:
    run.keyboard.press("?")
    expect(run.locator("#help")).to_be_visible()

    run.keyboard.press("Escape")

    expect(run.locator("#help")).to_be_hidden()


shown_in = cache(gallery.pages)

LOOKS: dict[Language, tuple[tuple[Literal["light", "dark"], int], ...]] = {
    "en": (("light", 1440), ("dark", 390)),
    "zh": (("dark", 1440), ("light", 390)),
}


@pytest.fixture(scope="module")
def sheet(browser: Browser) -> Iterator[Page]:
    """A page that shows those of the gallery, `/<language>/<name>`."""

    def serve(route: Route) -> None:
        folder, _, name = urlsplit(route.request.url).path.strip("/").partition("/")
        if folder == "static":
            route.fulfill(body=content(name), content_type=TYPES[name.rpartition(".")[2]])
        elif folder in LOOKS and name in shown_in(folder):
            route.fulfill(body=shown_in(folder)[name], content_type="text/html")
        else:
            route.fulfill(status=204)

    shown = browser.new_page(reduced_motion="reduce")
    shown.route("**/*", serve)
    yield shown
    shown.close()


@pytest.mark.parametrize("lang", LOOKS)
@pytest.mark.parametrize("name", shown_in("en"))
def test_axe_finds_nothing_and_nothing_is_too_wide(sheet: Page, lang: Language, name: str) -> None:
    sheet.goto(f"http://stage.test/{lang}/{name}")

    for scheme, width in LOOKS[lang]:
        sheet.emulate_media(color_scheme=scheme)
        sheet.set_viewport_size({"width": width, "height": 900})
        assert findings(sheet) == [], (scheme, width)
