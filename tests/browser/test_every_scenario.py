"""Every bundled scenario, picked, started, decided and read in the browser, English and Chinese by turns."""

from __future__ import annotations

import json
import re
from importlib import resources
from itertools import cycle

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, Server, mood, positions

KEYS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.py"))
CHINESE = re.compile("[一-鿿]")


def words(lang: str) -> dict[str, str]:
    """What the page says in a language, by key."""
    found: dict[str, str] = json.loads(
        (resources.files("playground.web.i18n") / f"{lang}.json").read_text(encoding="utf-8")
    )
    return found


@pytest.mark.parametrize(("key", "lang"), list(zip(KEYS, cycle(["en", "zh"]), strict=False)))
def test_it_runs_to_its_end_and_shows_each_event_once(
    key: str, lang: str, server: Server, page: Page
) -> None:
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    said = words(lang)

    page.goto(f"{server.url}/scenarios/{key}?lang={lang}")
    title = page.locator("h1").inner_text()
    page.get_by_role("button", name=said["scenario.start"], exact=True).first.click()
    page.wait_for_url(re.compile(r"/runs/run-"))
    approve = page.get_by_role("button", name=said["parked.approve"], exact=True, disabled=False)
    rest = approve.or_(page.locator("#status[data-mood=completed]"))
    for decided in range(5):
        expect(page.locator("#timeline > li[data-kind=resumed]")).to_have_count(decided)
        expect(rest.first).to_be_visible()
        if not approve.count():
            break
        approve.first.click()
    mood(page, "completed")

    expect(page.locator("#output")).not_to_be_empty()
    seen = positions(page)
    assert seen == list(range(seen[0], seen[-1] + 1))
    assert bool(CHINESE.search(title)) == (lang == "zh")
    assert wrong == []
