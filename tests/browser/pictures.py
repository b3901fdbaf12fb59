"""`python -m tests.browser.pictures [FOLDER]`: a picture of every page in every state, to be looked at.

Light and dark, wide and phone, English and Chinese.  The pages are those of the
gallery, so the same source gives the same pictures.  Without a folder they go to
`docs/pictures/all`, which is not kept, and the few that the documents show go
beside it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Route, sync_playwright

from playground.web import gallery
from playground.web.i18n import LANGUAGES, Language
from playground.web.static import content

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
SIZES = {"wide": (1440, 900), "phone": (390, 844)}

KEPT = {
    "run.png": "en/wide-light/run-parked.png",
    "run-dark.png": "en/wide-dark/run-completed.png",
    "run-zh.png": "zh/wide-light/run-parked.png",
    "run-phone.png": "en/phone-light/run-parked.png",
}
"""The pictures that the documents show, each under its name there."""


@dataclass(frozen=True, slots=True)
class Look:
    """One way of looking at all pages."""

    lang: Language
    size: Literal["wide", "phone"]
    scheme: Literal["light", "dark"]

    @property
    def folder(self) -> str:
        """Where its pictures go."""
        return f"{self.lang}/{self.size}-{self.scheme}"


def looks() -> Iterator[Look]:
    """All ways of looking."""
    for lang, size, scheme in product(LANGUAGES, ("wide", "phone"), ("light", "dark")):
        yield Look(lang, size, scheme)  # type: ignore[arg-type]


def take(browser: Browser, look: Look, folder: Path) -> list[Path]:
    """Take a picture of every page; a phone's is as long as the page, a wide one is what a screen shows."""
    width, height = SIZES[look.size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=look.scheme, reduced_motion="reduce"
    )
    pages, page, taken = gallery.pages(look.lang), context.new_page(), []

    def serve(route: Route) -> None:
        name = urlsplit(route.request.url).path.removeprefix("/")
        if name.startswith("static/"):
            file = name.removeprefix("static/")
            route.fulfill(body=content(file), content_type=TYPES[file.rpartition(".")[2]])
        elif name in pages:
            route.fulfill(body=pages[name], content_type="text/html; charset=utf-8")
        elif not name.endswith("/live"):
            route.fulfill(status=204)

    page.route("**/*", serve)
    for name in pages:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"http://stage.test/{name}", wait_until="load")
        if page.locator("#stream").count():
            page.evaluate("document.dispatchEvent(new Event('htmx:sse:after:connection'))")
        if look.size == "phone" or name == "gallery":
            long = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": width, "height": long})
        page.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
        file = folder / look.folder / f"{name}.png"
        page.screenshot(path=file, animations="disabled")
        taken.append(file)
    context.close()
    return taken


def main() -> None:
    """Take all pictures, and say where they are."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES / "all"
    named = os.environ.get("PLAYGROUND_CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("chromium-browser")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--disable-gpu", *sandbox])
        taken = [file for look in looks() for file in take(browser, look, folder)]
        browser.close()
    if folder == PICTURES / "all":
        for name, source in KEPT.items():
            shutil.copyfile(folder / source, PICTURES / name)
    sys.stdout.write(f"{len(taken)} pictures are in {folder}\n")


if __name__ == "__main__":
    main()
