"""Axe finds nothing, and nothing is wider than the screen, on any page and in any state of a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import Server, mood

LOOKS = (("en", "light", 1440), ("zh", "dark", 390))
Scheme = Literal["light", "dark"]
WIDER = "document.scrollingElement.scrollWidth > document.documentElement.clientWidth"


@dataclass(frozen=True, slots=True)
class Place:
    """A page to be looked at: its address, how its run stands, and the tabs to be opened on it."""

    path: str
    mood: str = ""
    tabs: tuple[str, ...] = ()


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


def runs_in_each_state(runs: Runs) -> Iterator[Place]:
    """The page of a run, however it stands, each of its tabs, and what branches off it."""
    parked = runs.start("trader", "waiting")
    done = runs.do(
        runs.start("trader", "waiting"), "resume", "completed", answers={"approve": {"approved": True}}
    )
    fork = runs.post(f"/api{done}/fork", at=30)["url"]
    runs.wait(fork, "waiting")
    all_tabs = ("clock", "branches", "event", "why", "source", "tokens", "lesson")
    yield Place(parked, "waiting")
    yield Place(done, "completed", all_tabs)
    yield Place(runs.start("breaks", "failed"), "failed")
    yield Place(runs.do(runs.start("trader", "waiting"), "cancel", "cancelled"), "cancelled")
    yield Place(runs.start("graph_demo", "paused", step=True), "paused")
    slow = runs.start("stays", "running")
    yield Place(slow, "running")
    yield Place(runs.do(slow, "crash", "stopped"), "stopped")
    yield Place(runs.without_scenario(done), "completed")
    yield Place(f"{done}#step=9", "completed")
    yield from map(Place, (f"{done}/branches", f"{done}/compare/{fork.rpartition('/')[2]}"))


def other_pages(runs: Runs) -> Iterator[Place]:
    """All pages but those of runs, empty and full."""
    yield from map(Place, ("/waiting", "/runs"))
    parked = runs.start("trader", "waiting")
    yield from map(Place, ("/", "/?q=nothing-of-the-kind", "/scenarios/trader", "/scenarios/backpressure"))
    yield from map(Place, ("/runs", "/waiting", "/model", "/gallery", "/nowhere", "/runs/run-none"))
    yield Place(f"{parked}/steps/approve")


def findings(page: Page, place: str) -> list[tuple[str, str, str]]:
    """What axe finds on the page as it is, and whether it is too wide."""
    found = [(place, v["id"], v["nodes"][0]["html"][:200]) for v in Axe().run(page).response["violations"]]
    return found + ([(place, "too wide", "")] if page.evaluate(WIDER) else [])


Places = Callable[[Runs], Iterator[Place]]


@pytest.mark.parametrize("places", [runs_in_each_state, other_pages])
@pytest.mark.parametrize(("lang", "scheme", "width"), LOOKS)
def test_no_page_in_no_state_has_a_finding(
    server: Server, page: Page, browser: Browser, places: Places, lang: str, scheme: Scheme, width: int
) -> None:
    size: ViewportSize = {"width": width, "height": 900}
    tab = browser.new_page(viewport=size, color_scheme=scheme, locale=lang, reduced_motion="reduce")
    found = []
    for place in places(Runs(server, page)):
        tab.goto(server.url + place.path)
        if place.mood:
            mood(tab, place.mood)
        found += findings(tab, place.path)
        for name in place.tabs:
            tab.locator(f"#tab-{name}").press("Enter")
            found += findings(tab, f"{place.path}: {name}")
    tab.close()
    assert found == []


def test_a_form_that_was_not_filled_in_right_has_no_finding(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/scenarios/backpressure")
    page.locator("main form.stack").evaluate("form => { form.noValidate = true }")
    page.get_by_label("room").fill("-5")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)
    assert findings(page, page.url) == []
