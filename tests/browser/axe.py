"""Axe, looking at a page as it is."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

LOOK = """() => axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`))"""
WIDER = "document.scrollingElement.scrollWidth > document.documentElement.clientWidth"


def findings(page: Page) -> list[str]:
    """What axe finds, each rule with the first element that breaks it, and whether the page is too wide."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    found: list[str] = page.evaluate(LOOK)
    return found + (["wider than the screen"] if page.evaluate(WIDER) else [])
