"""How a reader wants pages to look: light or dark, and how large; `static/js/theme.js` writes the cookie."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

COOKIE = "looks"
THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class Looks:
    """What a page is marked with.

    Attributes:
        theme: one of `THEMES`.
        big: whether the type is large, for a room.
        known: False where only the browser knows, so that it must look before it paints.
    """

    theme: str = "auto"
    big: bool = False
    known: bool = False


def looks_of(request: Request) -> Looks:
    """The looks that the reader of a request has chosen."""
    theme, _, size = request.cookies.get(COOKIE, "").partition("-")
    return Looks(theme, size == "big", known=True) if theme in THEMES else Looks()
