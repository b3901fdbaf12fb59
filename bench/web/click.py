"""From a click on Run to the first event on the page, in a real browser on a real server."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from bench.common import How, Sheet

CLICKS = 10
"""Clicks on each server for each repeat, in turn; one before them is not counted."""

REST = 0.7
"""Seconds before a click in which a page comes to rest, and after it in which nobody disturbs it."""

WATCH = """
const clicked = (event) => sessionStorage.setItem("clicked", performance.timeOrigin + event.timeStamp)
addEventListener("click", clicked, true)
new MutationObserver((_, observer) => {
  const first = document.querySelector("#timeline .event")
  if (!first) return
  observer.disconnect()
  ;(first.querySelector(".event__text") ?? first).setAttribute("elementtiming", "first event")
}).observe(document, { childList: true, subtree: true })
new PerformanceObserver((list) => {
  const [shown] = list.getEntries()
  window.delay ??= performance.timeOrigin + shown.renderTime - sessionStorage.getItem("clicked")
}).observe({ type: "element", buffered: true })
"""
"""In the page: from the click until the first event's text is on the screen, as Chromium tells it."""

FORM = b"<!doctype html><form method=post action=/runs><button>Run</button></form>"
RUN = b"<!doctype html><ol id=timeline><li class=event>run_started</li></ol>"


async def _bare(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Two pages of one line, and the redirect between them."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        if head.startswith(b"POST"):
            writer.write(b"HTTP/1.1 303 See Other\r\nlocation: /runs/1\r\ncontent-length: 0\r\n\r\n")
        else:
            body = RUN if b" /runs/" in head else FORM
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n" % len(body)
            )
            writer.write(body)


@asynccontextmanager
async def bare() -> AsyncIterator[str]:
    """The least that shows an event after a click."""
    server = await asyncio.start_server(_bare, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    server.close()


@asynccontextmanager
async def ours(key: str) -> AsyncIterator[str]:
    """The page of a scenario on a server as `playground serve` starts it, with its store on disk."""
    with tempfile.TemporaryDirectory() as folder:
        command = ("-m", "playground", "serve", "--port", "0", "--store", f"sqlite:{folder}/runs.db")
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE
        )
        try:
            said = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
            yield re.search(r"http://\S+/", said)[0] + f"scenarios/{key}"
        finally:
            process.terminate()
            await process.wait()


async def click(how: How) -> list[Sheet]:
    """Click on Run in every server in turn, again and again."""
    from playwright.async_api import async_playwright

    found = (
        os.environ.get("PLAYGROUND_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    columns = {"best": "best, ms", "median": "median, ms"}
    sheet = Sheet("From the click on Run to the first event on the page", columns, "bare page")
    async with AsyncExitStack() as stack:
        addresses = {
            "bare page": await stack.enter_async_context(bare()),
            "ours, graph_demo": await stack.enter_async_context(ours("graph_demo")),
            "ours, trader": await stack.enter_async_context(ours("trader")),
        }
        driver = await stack.enter_async_context(async_playwright())
        browser = await driver.chromium.launch(executable_path=found, args=["--disable-gpu", *sandbox])
        page = await browser.new_page()
        await page.add_init_script(WATCH)
        delays: dict[str, list[float]] = {label: [] for label in addresses if how.wants(label)}
        for _ in range(1 + CLICKS * how.repeats):
            for label, seen in delays.items():
                await page.goto(addresses[label])
                run = await page.get_by_role("button", name="Run", exact=True).first.bounding_box()
                await asyncio.sleep(REST)
                await page.mouse.click(run["x"] + run["width"] / 2, run["y"] + run["height"] / 2)
                await asyncio.sleep(REST)
                await page.wait_for_function("window.delay")
                seen.append(await page.evaluate("window.delay"))
        await browser.close()
    for label, (_, *counted) in delays.items():
        sheet.rows[label] = {"best": min(counted), "median": statistics.median(counted)}
    return [sheet]
