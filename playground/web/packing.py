"""What is answered travels compressed; what is streamed is let through untouched.

A stream must leave message by message, and pays for everything between it and
its socket with each of them.  So whoever asks for one is not even looked at.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

LEAST = 600
"""Bytes below which an answer fits into one packet anyway."""

LEVEL = 6
"""How hard it is compressed: beyond this, pages take longer and get hardly smaller."""


class Packing:
    """Compresses answers for clients that can unpack them.

    Args:
        app: whose answers these are.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._packed = GZipMiddleware(app, minimum_size=LEAST, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wants = Headers(scope=scope).get("accept", "") if scope["type"] == "http" else ""
        through = self._app if "text/event-stream" in wants else self._packed
        await through(scope, receive, send)
