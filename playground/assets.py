"""Where the files that are not code live: templates, static files and the bundled scenarios.

In a checkout they lie at its top, where they are pleasant to edit; a wheel
carries them inside the package, under `_assets`.  Everyone else asks here and
need not know which of the two it runs from.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """The directory that holds `templates/`, `static/` and `scenarios/`."""
    packed = _PACKAGE / "_assets"
    return packed if packed.is_dir() else _PACKAGE.parent


def path(*parts: str) -> Path:
    """The file or directory named by `parts`, such as `path("static", "app.css")`.

    Raises:
        FileNotFoundError: nothing is there, so the installation is incomplete.
    """
    found = root().joinpath(*parts)
    if not found.exists():
        raise FileNotFoundError(
            f"{'/'.join(parts)} is missing under {root()}: install Agent Playground again"
        )
    return found
