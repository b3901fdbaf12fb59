"""What all tests share: one that uses the browser is marked `e2e`; property tests have no stopwatch."""

from __future__ import annotations

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
