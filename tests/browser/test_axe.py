"""Axe finds nothing, and nothing is wider than the screen, on any page and in any state of a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import findings
from tests.browser.conftest import Server, at_hand, mood

LOOKS = (("en", "light", 1440), ("zh", "dark", 390))

TABS = {
    "clock": "#waterfall [data-at]",
    "branches": "#branches .branch",
    "event": "#inspect-event",
    "why": "#inspect-why",
    "source": "#inspect-source .source",
    "tokens": "#inspect-tokens",
    "lesson": "#inspect-lesson",
}
"""The tabs of a run's page that are not open at first, and what is seen in each once it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """A page to be looked at: its address, how its run stands, and whether to open all its tabs."""

    path: str
    mood: str = ""
    tabs: bool = False


class Runs:
    """Runs of all states, made once over the API."""

    def __init__(self, server: Server, page: Page) -> None:
        self._server, self._page = server, page

    def post(self, path: str, **body: object) -> dict[str, str]:
        """The answer to a call of the API."""
        answer = self._page.request.post(
            self._server.url + path, data=json.dumps(body), headers={"content-type": "application/json"}
        )
        return answer.json() if answer.status == 201 else {}

    def start(self, key: str, until: str, **options: object) -> str:
        """Start a scenario, and wait until its page shows that it stands so; the run's path."""
        path = self.post("/api/runs", scenario=key, options=options)["url"]
        self.wait(path, until)
        return path

    def wait(self, path: str, until: str) -> None:
        """Wait until a run's page shows that it stands so."""
        self._page.goto(self._server.url + path)
        mood(self._page, until)

    def do(self, path: str, verb: str, until: str, **body: object) -> str:
        """Tell a run to do something, and wait until it stands so."""
        self.post(f"/api{path}/{verb}", **body)
        self.wait(path, until)
        return path

    def without_scenario(self, path: str) -> str:
        """A copy of a run whose scenario is not here, brought in from a file; its path."""
        run_id = path.rpartition("/")[2]
        text = self._page.request.get(f"{self._server.url}/api{path}/export").text()
        text = text.replace(run_id, "run-0123456789ab").replace('"trader"', '"elsewhere"')
        answer = self._page.request.post(
            f"{self._server.url}/api/runs/import",
            data=text,
            headers={"content-type": "application/x-ndjson"},
        )
        return str(answer.json()["url"])


@pytest.fixture(scope="module")
def places(server: Server, browser: Browser) -> list[Place]:
    """The page of a run, however it stands, with all its tabs, what branches off it, and all other pages."""
    page = browser.new_page()
    runs = Runs(server, page)
    parked = runs.start("trader", "waiting")
    answers = {"approve": {"approved": True}}
    done = runs.do(runs.start("trader", "waiting"), "resume", "completed", answers=answers)
    fork = runs.post(f"/api{done}/fork", at=30)["url"]
    runs.wait(fork, "waiting")
    made = [
        Place(parked, "waiting"),
        Place(done, "completed", tabs=True),
        Place(runs.start("breaks", "failed"), "failed"),
        Place(runs.do(runs.start("trader", "waiting"), "cancel", "cancelled"), "cancelled"),
        Place(runs.start("graph_demo", "paused", step=True), "paused"),
        Place(runs.start("stays", "running"), "running"),
        Place(runs.do(runs.start("stays", "running"), "crash", "stopped"), "stopped"),
        Place(runs.without_scenario(done), "completed"),
        Place(f"{done}#step=9", "completed"),
        Place(f"{done}/branches"),
        Place(f"{done}/compare/{fork.rpartition('/')[2]}"),
        Place(f"{parked}/steps/approve"),
    ]
    page.close()
    others = ("/", "/?q=nothing-of-the-kind", "/scenarios/trader", "/scenarios/backpressure")
    more = ("/runs", "/waiting", "/model", "/gallery", "/nowhere", "/runs/run-none")
    return [*made, *map(Place, others + more)]


@pytest.fixture(params=LOOKS, ids=lambda look: "-".join(map(str, look)))
def tab(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """An empty page in one of the looks."""
    lang, scheme, width = request.param
    found = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, locale=lang, reduced_motion="reduce"
    )
    yield found
    found.close()


def look(tab: Page, server: Server, place: Place) -> Iterator[tuple[str, str]]:
    """What is found at a place, and in each of its tabs."""
    tab.goto(server.url + place.path)
    if place.mood:
        mood(tab, place.mood)
        at_hand(tab)
    yield from ((place.path, found) for found in findings(tab))
    for name, content in TABS.items() if place.tabs else ():
        tab.locator(f"#tab-{name}").press("Enter")
        expect(tab.locator(content).first).to_be_visible()
        yield from ((f"{place.path}: {name}", found) for found in findings(tab))


def test_no_page_in_no_state_has_a_finding(server: Server, places: list[Place], tab: Page) -> None:
    assert [found for place in places for found in look(tab, server, place)] == []


def test_lists_without_a_run_have_no_finding(own_server: Server, tab: Page) -> None:
    assert [found for path in ("/waiting", "/runs") for found in look(tab, own_server, Place(path))] == []


def test_a_form_that_was_not_filled_in_right_has_no_finding(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/scenarios/backpressure")
    page.locator("main form.stack").evaluate("form => { form.noValidate = true }")
    page.get_by_label("room").fill("-5")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)
    assert findings(page) == []
