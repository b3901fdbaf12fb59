"""The server: from a command to an address that answers, and back to the shell within seconds.

An open stream would hold a shutdown for ever, so streams end first; only then
does the server wait for what is still being answered.
"""

from __future__ import annotations

import gc
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from math import inf
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from playground.sessions import SessionError
from playground.web.app import PACE, create_app
from playground.web.security import LOCAL
from playground.web.templating import warm

GRACE = 3
"""Seconds that a shutdown waits for answers that are under way."""

SEND_BUFFER = 64 * 1024
"""Bytes that the kernel keeps for a client which does not read: what a slow viewer may hold."""


COLLECT = (20_000, 20, 20)
"""How many objects are made between two looks for garbage, and between two at the older ones.

A long run is told in tens of thousands of small objects that stay; looking through them every 700, as an
interpreter does by default, takes as long as making them.
"""


class ServeError(SessionError):
    """The server cannot listen: one line with the address and the way out."""


class Server(uvicorn.Server):
    """A server of the playground's app that ends its streams before it waits for anything."""

    def __init__(self, app: Starlette, **options: object) -> None:
        settings: dict[str, object] = {
            "log_level": "warning",
            "access_log": False,
            "lifespan": "on",
            "server_header": False,
            "proxy_headers": False,
            "timeout_graceful_shutdown": GRACE,
            **options,
        }
        super().__init__(uvicorn.Config(app, **settings))  # type: ignore[arg-type]
        self._sessions = app.state.sessions

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then stop as any server does."""
        self._sessions.end_feeds()
        await super().shutdown(sockets)


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    store_url: str = "memory:",
    scenario_places: Sequence[Path] | None = None,
    open_browser: bool = False,
    recover: bool = True,
) -> None:
    """Serve the playground until it is told to stop.

    Args:
        host: address to listen on; beyond this machine a token is asked for, and printed with the address.
        port: 0 for any that is free.
        store_url: where runs are kept.
        scenario_places: folders or files; by default the bundled ones.
        open_browser: whether to show the page at once.
        recover: whether runs that a dead server left running go on.

    Raises:
        StoreError: the store cannot be opened, or another version wrote it.
        ServeError: the address cannot be listened on, or a setting of the environment is none.
    """
    listening = listen(host, port)
    local = is_local(host)
    token = "" if local else os.environ.get("PLAYGROUND_TOKEN") or secrets.token_urlsafe(24)
    try:
        app = create_app(
            store=store_url,
            scenarios=scenario_places,
            recover=recover,
            pace=_seconds("PLAYGROUND_PACE", PACE),
            hosts=LOCAL if local else ["*"],
            token=token,
            gallery=bool(os.environ.get("PLAYGROUND_GALLERY")),
        )
    except BaseException:
        listening.close()
        raise
    address = address_of(host, listening.getsockname()[1], token)
    sys.stdout.write(f"Agent Playground is at {address}  (Ctrl-C stops it)\n")
    sys.stdout.flush()
    threading.Thread(target=_settle, daemon=True).start()
    if open_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        Server(app).run(sockets=[listening])


def _settle() -> None:
    """Make what every page needs, and look for garbage no more in what has been made to stay."""
    warm()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def _seconds(name: str, otherwise: float) -> float:
    """A span of time from the environment."""
    given = os.environ.get(name) or str(otherwise)
    try:
        found = float(given)
    except ValueError:
        found = -1.0
    if not 0 <= found < inf:
        raise ServeError(f"{name} is {given!r}: give it seconds, such as {otherwise}")
    return found


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on an address.

    Raises:
        ServeError: it is taken, or no address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        found.bind((host, port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        reason = error.strerror if isinstance(error, OSError) else "ports go from 0 to 65535"
        raise ServeError(
            f"cannot listen on {host}:{port}: {reason}; choose another --host or --port"
        ) from error
    found.set_inheritable(True)
    return found


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(host: str, port: int, token: str = "") -> str:
    """The address to open in a browser."""
    everywhere = {"": "localhost", "0.0.0.0": "localhost", "::": "[::1]"}  # noqa: S104
    name = everywhere.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
