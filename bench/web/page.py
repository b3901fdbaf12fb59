"""The page in a real browser: what it weighs, how fast it opens, and whether it keeps up.

Everything here runs in Chromium before a server process of its own, as a user has them.
Opening and scrubbing compare a run of 10,000 events with one of 100.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from bench.common import How, Sheet

SHORT, LONG = 14, 1428
"""Rounds that make a run of 100 and of 10,000 events."""

RATE = 200
SECONDS = int(os.environ.get("BENCH_LIVE_SECONDS", "60"))

WATCH = """
(() => {
  const seen = window.seen = { late: [], tasks: [] };
  const after = new MessageChannel();
  let [frame, painting, arrived] = [0, false, 0];
  after.port1.onmessage = () => (painting = false);
  requestAnimationFrame(function tick() {
    [frame, painting] = [frame + 1, true];
    after.port2.postMessage(0);
    requestAnimationFrame(tick);
  });
  const read = ReadableStreamDefaultReader.prototype.read;
  ReadableStreamDefaultReader.prototype.read = async function (...given) {
    const found = await read.apply(this, given);
    arrived = frame;
    return found;
  };
  new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((e) => e.duration)))
    .observe({ type: "longtask", buffered: true });
  addEventListener("DOMContentLoaded", () => {
    const list = document.getElementById("timeline");
    if (!list) return;
    const count = () => seen.late.push(frame + (painting ? 0 : 1) - arrived);
    new MutationObserver(count).observe(list, { childList: true });
  });
})();
"""
"""In the page: how many frames it takes from the arrival of rows to their paint, and long tasks."""

PAINTED = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
)

SCRUB = """
async (places) => {
  const range = document.getElementById("at");
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (const place of places) {
    range.value = place;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return frames;
}
"""
"""In the page: one move of the handle for each frame, and how long each frame took."""


class Served:
    """A server process with the scenarios of the benchmarks, asked over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, body: object = None) -> Any:
        """An answer of the API."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.url + path, data, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return json.load(answer)

    async def start(self, wish: str, *, wait: bool) -> str:
        """Start rounds, and wait for their end if told to; returns the run's path."""
        run_id = self.ask("/api/runs", {"scenario": "long", "input": wish})["run_id"]
        while wait and self.ask("/api/runs?limit=1")["runs"][0]["state"] != "completed":
            await asyncio.sleep(0.2)
        return f"/runs/{run_id}"


@asynccontextmanager
async def serving(store: str, folder: str) -> AsyncIterator[Served]:
    """A server process over a store, for as long as the block runs."""
    scenarios = str(Path(__file__).with_name("scenarios"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "playground", "serve", "--port", "0"),
        *("--store", store, "--scenarios", scenarios),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        line = (await process.stdout.readline()).decode()
        yield Served(line.split(" at ")[1].split()[0].rstrip("/"))
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A Chromium: the one that is installed, or Playwright's own."""
    found = (
        os.environ.get("PLAYGROUND_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found,
            args=["--disable-gpu", "--enable-precise-memory-info", "--js-flags=--expose-gc", *sandbox],
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def tab(browser: Browser) -> AsyncIterator[Page]:
    """A page with an empty cache that watches itself."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    await context.add_init_script(WATCH)
    yield await context.new_page()
    await context.close()


async def weighed(browser: Browser, address: str) -> dict[str, float]:
    """Kilobytes of a first load as they travel, by kind."""
    weight = {"html": 0.0, "css": 0.0, "js": 0.0, "icons": 0.0, "requests": 0.0}
    kinds = {"Document": "html", "Stylesheet": "css", "Script": "js"}
    async with tab(browser) as page:
        network = await page.context.new_cdp_session(page)
        await network.send("Network.enable")
        kind: dict[str, str] = {}
        network.on(
            "Network.responseReceived", lambda e: kind.update({e["requestId"]: kinds.get(e["type"], "icons")})
        )

        def finished(event: dict[str, Any]) -> None:
            weight[kind.get(event["requestId"], "icons")] += event["encodedDataLength"] / 1000
            weight["requests"] += 1

        network.on("Network.loadingFinished", finished)
        await page.goto(address, wait_until="load")
        await page.evaluate(PAINTED)
    weight["page"] = weight["html"] + weight["css"] + weight["js"]
    return weight


async def opened(page: Page, address: str) -> float:
    """Milliseconds from the request to the painted page, with an empty cache, in a tab that is there."""
    network = await page.context.new_cdp_session(page)
    await network.send("Network.clearBrowserCache")
    await page.goto("about:blank")
    await page.goto(address, wait_until="load")
    return float(await page.evaluate(PAINTED))


async def weight(browser: Browser, server: Served, runs: dict[str, str]) -> Sheet:
    """What each page weighs."""
    columns = {
        "page": "HTML, CSS and JS, kB",
        "html": "HTML",
        "css": "CSS",
        "js": "JS",
        "icons": "icons",
        "requests": "requests",
    }
    sheet = Sheet("A first load, as it travels", columns, "the first page")
    places = {"the first page": "/", "a scenario": "/scenarios/long", "the list": "/runs", **runs}
    for label, place in places.items():
        sheet.rows[label] = await weighed(browser, server.url + place)
    return sheet


async def opening(browser: Browser, folder: str, runs: dict[str, str], repeats: int) -> Sheet:
    """How long a run's page takes to open: right after a server has started, and later; medians."""
    sheet = Sheet(
        "Opening a run, request to paint",
        {"first": "at first, ms", "again": "again, ms"},
        "a run of 100 events",
    )
    first: dict[str, list[float]] = {label: [] for label in runs}
    again: dict[str, list[float]] = {label: [] for label in runs}
    # A new window loads pages of the browser's own at first, which would be measured too: one does for all.
    async with tab(browser) as page:
        for _ in range(max(5, repeats)):
            async with serving("sqlite:runs.db", folder) as server:
                await opened(page, server.url)
                for seen in (first, again):
                    for label, place in runs.items():
                        seen[label].append(await opened(page, server.url + place))
    for label in runs:
        sheet.rows[label] = {
            "first": statistics.median(first[label]),
            "again": statistics.median(again[label]),
        }
    return sheet


async def scrubbing(browser: Browser, server: Served, runs: dict[str, str]) -> Sheet:
    """How many frames a second the handle is followed, from end to end and back."""
    columns = {"fps": "frames a second", "p99": "99th frame, ms", "worst": "longest, ms"}
    sheet = Sheet("Moving the scrubber, a step each frame", columns, "a run of 100 events")
    for label, place in runs.items():
        async with tab(browser) as page:
            await page.goto(server.url + place, wait_until="load")
            last = await _last(page)
            path = [max(1, round(last * (1 - n / 150))) for n in range(150)]
            frames = sorted(await page.evaluate(SCRUB, [*path, *path[::-1]]))
            sheet.rows[label] = {
                "fps": 1000 / statistics.mean(frames),
                "p99": frames[int(len(frames) * 0.99)],
                "worst": frames[-1],
            }
    return sheet


async def live(browser: Browser, folder: str) -> Sheet:
    """A busy run, watched: how late its rows are painted, the longest task, and the heap after a minute."""
    columns = {
        "rate": "events/s on the page",
        "p50": "arrival to paint p50, frames",
        "p99": "p99, frames",
        "two": "within two frames, %",
        "task": "longest task, ms",
        "long": "tasks over 100 ms",
        "early": "heap after a quarter, MB",
        "heap": "at the end, MB",
        "nodes": "DOM nodes",
    }
    label = f"{RATE} events/s for {SECONDS} s"
    sheet = Sheet("A run as it goes on", columns, label)
    async with serving("memory:", folder) as server, tab(browser) as page:
        run = await server.start(f"{RATE * SECONDS // 7} {RATE}", wait=False)
        await page.goto(server.url + run, wait_until="load")
        meter = await page.context.new_cdp_session(page)
        await asyncio.sleep(SECONDS / 4)
        early = await _heap(meter)
        await page.evaluate("() => { seen.tasks.length = 0; seen.late.length = 0 }")
        before, since = await _last(page), time.monotonic()
        await asyncio.sleep(SECONDS / 2)
        rate = (await _last(page) - before) / (time.monotonic() - since)
        seen = await page.evaluate("seen")
        late = sorted(seen["late"])
        sheet.rows[label] = {
            "rate": rate,
            "p50": statistics.median(late),
            "p99": late[int(len(late) * 0.99)],
            "two": 100 * sum(frames <= 2 for frames in late) / len(late),
            "task": max(seen["tasks"], default=0.0),
            "long": sum(ms > 100 for ms in seen["tasks"]),
            "early": early,
            "heap": await _heap(meter),
            "nodes": await page.evaluate("document.querySelectorAll('*').length"),
        }
    return sheet


async def _last(page: Page) -> int:
    """The position of the last event that a page knows of."""
    return int(await page.evaluate("document.getElementById('at').max"))


async def _heap(meter: Any) -> float:
    """Megabytes of live JavaScript objects."""
    await meter.send("HeapProfiler.collectGarbage")
    return (await meter.send("Runtime.getHeapUsage"))["usedSize"] / 1e6


async def page(how: How) -> list[Sheet]:
    """Measure the page: weight, opening, scrubbing, and a busy run."""
    with tempfile.TemporaryDirectory() as folder:
        async with browsing() as browser:
            async with serving("sqlite:runs.db", folder) as server:
                runs = {
                    "a run of 100 events": await server.start(str(SHORT), wait=True),
                    "a run of 10,000": await server.start(str(LONG), wait=True),
                }
            sheets = [await opening(browser, folder, runs, how.repeats)]
            async with serving("sqlite:runs.db", folder) as server:
                sheets.append(await weight(browser, server, runs))
                sheets.append(await scrubbing(browser, server, runs))
            sheets.append(await live(browser, folder))
    return sheets
