"""Which language a reader gets: the one chosen here before, else the first of the browser's that there is."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from playground.web.i18n import LANGUAGES, Language, choose

COOKIE = "lang"
A_YEAR = 365 * 24 * 3600


def language_of(request: Request) -> Language:
    """The language to answer a request in."""
    return choose(request.cookies.get(COOKIE), request.headers.get("accept-language", ""))


def switch(request: Request) -> Response | None:
    """The answer to an address with `?lang=`: remember it, and lead to the same page without it."""
    wish = request.query_params.get("lang")
    if wish not in LANGUAGES or request.method not in ("GET", "HEAD"):
        return None
    address = request.url.remove_query_params("lang")
    there = RedirectResponse(f"{address.path}?{address.query}" if address.query else address.path, 303)
    there.set_cookie(COOKIE, wish, max_age=A_YEAR, path="/", httponly=True, samesite="lax")
    return there
