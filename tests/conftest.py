"""What all tests share: one that uses the browser is marked `e2e`; property tests have no stopwatch."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")

_BROWSER = frozenset({"playwright", "browser", "context", "page"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not _BROWSER.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object]) -> dict[str, object]:
    """Chromium of the system, where there is one."""
    found = (
        os.environ.get("PLAYGROUND_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    args = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", *sandbox]
    return {**browser_type_launch_args, "args": args, **({"executable_path": found} if found else {})}


@pytest.fixture(scope="session")
def base_url() -> None:
    """Each server has an address of its own."""
