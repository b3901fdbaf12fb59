from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from playground.backends import Store, open_store


@pytest.fixture(params=["memory", "sqlite", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet, one of each kind."""
    paths = {"memory": "", "sqlite": f"{tmp_path}/store/runs.db", "file": f"{tmp_path}/store"}
    return f"{request.param}:{paths[request.param]}"


@pytest.fixture(params=["sqlite", "file"])
def disk_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store on disk that does not exist yet, one of each kind."""
    return f"{request.param}:{tmp_path}/store" + ("/runs.db" if request.param == "sqlite" else "")


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with open_store(url) as opened:
        yield opened


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[str], Store]]:
    """Opens stores, several on the same address if need be, and closes them in the end."""
    stores: list[Store] = []

    def open_one(url: str) -> Store:
        stores.append(open_store(url))
        return stores[-1]

    yield open_one
    for store in stores:
        await store.close()
