"""The guard in front of everything: who may ask, from where, and what a page may do.

The playground runs code on somebody's machine and listens on a local port, so
the danger is another web page in the same browser.  It is refused by name (a
foreign Host is DNS rebinding), by origin (a foreign page that posts), and, on
any address but this machine's own, by a token.  And as what runs prints text
from models and tools, the pages allow no script or style but their own files.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import URL, Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playground.web.problems import answer_error

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""The names of this machine, as a Host header says them."""

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
TOKEN_COOKIE = "playground"  # noqa: S105 - the name of the cookie, not what is in it

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing inline, nothing from elsewhere, and no frame around it."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses what must not come in, and marks what goes out.

    Args:
        app: what it stands before.
        hosts: names that a Host header may have, without port; "*" for any.
        token: what everyone must show, once as `?token=` and then by cookie, or as
            `Authorization: Bearer`; empty: nothing.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOCAL, token: str = "") -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        begun = False

        def marked(message: Message) -> Awaitable[None]:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            return send(message)

        request = Request(scope, receive)
        try:
            self.check(request)
            if self._token and "token" in request.query_params:
                await self._remember(request)(scope, receive, marked)
            else:
                await self._app(scope, receive, marked)
        except Exception as error:  # nothing may leave without an answer, nor with a traceback in it
            if begun:
                raise
            answer = await answer_error(request, error)
            await answer(scope, receive, marked)

    def check(self, request: Request) -> None:
        """Let a request pass or not.

        Raises:
            HTTPException: 400 for a foreign Host, 403 for a foreign page, 401 without the token.
        """
        headers = request.headers
        host = headers.get("host", "")
        name = _name_of(host)
        if "*" not in self._hosts and name not in self._hosts:
            raise HTTPException(400, f"this server does not go by the name {name[:80]!r}: use localhost")
        if request.method not in SAFE_METHODS and not _same_origin(headers, host):
            raise HTTPException(403, "the request comes from another page: open the playground itself")
        if self._token and not self._shown(request):
            raise HTTPException(401, "the token is missing: open the address that the server printed")

    def _shown(self, request: Request) -> bool:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        shown = (request.query_params.get("token"), request.cookies.get(TOKEN_COOKIE), bearer)
        return any(secrets.compare_digest(found.encode(), self._token.encode()) for found in shown if found)

    def _remember(self, request: Request) -> RedirectResponse:
        """Put the token into a cookie and out of the address bar."""
        address: URL = request.url.remove_query_params("token")
        there = RedirectResponse(f"{address.path}?{address.query}" if address.query else address.path, 303)
        there.set_cookie(TOKEN_COOKIE, self._token, path="/", httponly=True, samesite="strict")
        return there


def _name_of(host: str) -> str:
    """A Host header without its port, in lower case."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _same_origin(headers: Headers, host: str) -> bool:
    """Whether a request comes from our own page, or from no page at all."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return False
    return origin is None or (origin != "null" and urlsplit(origin).netloc.lower() == host.lower())
