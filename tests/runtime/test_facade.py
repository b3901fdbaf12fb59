"""The facade: the public names, and what it costs to have them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import playground

HEAVY = {"mcp", "httpx2", "pydantic_ai", "starlette"}


def loaded_by(code: str) -> set[str]:
    """The top-level modules in a fresh interpreter after it ran `code`."""
    told = f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_public_name_can_be_imported_from_the_package() -> None:
    for name in playground.__all__:
        assert getattr(playground, name) is not None


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Agnet"):
        _ = playground.Agnet  # type: ignore[attr-defined]


def test_importing_the_package_or_its_kernel_loads_no_other_package() -> None:
    assert loaded_by("import playground.kernel").isdisjoint({*HEAVY, "pydantic"})


@pytest.mark.parametrize("code", ["from playground import kernel", "import playground.cli"])
def test_a_part_of_the_package_is_imported_without_the_facade(code: str) -> None:
    assert loaded_by(code).isdisjoint({*HEAVY, "pydantic"})


def test_using_the_facade_loads_neither_mcp_nor_http_nor_pydantic_ai() -> None:
    assert loaded_by("from playground import *").isdisjoint(HEAVY)
