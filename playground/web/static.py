"""Static files: what has a mark of its content in its address may be kept for ever.

Style sheets and the scripts of the run page are files of their own to whoever
writes them, and one to a browser: together they are smaller, and asked for once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike, stat_result

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from playground import assets

FOR_EVER = "public, max-age=31536000, immutable"

SHEET = "all.css"
"""The name of all style sheets together."""

STYLES = (
    "tokens",
    "base",
    "layout",
    "controls",
    "cards",
    "forms",
    "values",
    "graph",
    "grid",
    "timeline",
    "history",
    "waterfall",
    "inspector",
    "scrubber",
    "stage",
    "pages",
)
"""The files of `static/css`; the first one fixes the order of their layers."""

SCRIPT = "run.js"
"""The name of all scripts of the run page together."""

SCRIPTS = (
    "js/end",
    "js/painted",
    "vendor/htmx.min",
    "vendor/hx-sse.min",
    "js/upsert",
    "js/connection",
    "js/frames",
    "js/graph",
    "js/fade",
    "js/fold",
    "js/focus",
    "js/select",
    "js/ticks",
    "js/rows",
    "js/tail",
    "js/tabs",
    "js/tokens",
    "js/found",
    "js/size",
    "js/remember",
    "js/stage",
    "js/scrubber",
)
"""The files of `static` that the run page needs; who listens comes before who tells.

What comes after `painted` waits until the page has been seen: a page is read
before it is used, and its first rows need no script.
"""


_REMARK = re.compile(rb"^ *//.*\n", re.MULTILINE)
"""A line of a script that is for whoever reads the file, and need not travel."""


def content(name: str) -> bytes:
    """What a static file holds, or all style sheets or scripts as one.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if name == SHEET:
        return b"".join(content(f"css/{style}.css") for style in STYLES)
    if name == SCRIPT:  # a block each, so that every file keeps its names to itself
        return b"".join(b"{\n%b}\n" % _REMARK.sub(b"", content(f"{script}.js")) for script in SCRIPTS)
    return assets.path("static", *name.split("/")).read_bytes()


_JOINED = {SHEET: "text/css", SCRIPT: "text/javascript"}


class Static(StaticFiles):
    """The files of a folder; at an address with a mark, as `templating.asset` makes it, they never change."""

    def __init__(self, directory: PathLike[str]) -> None:
        super().__init__(directory=directory)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file at a path, or several as one."""
        if path not in _JOINED:
            return await super().get_response(path, scope)
        return Response(content(path), headers=_kept(scope), media_type=_JOINED[path])

    def file_response(
        self, full_path: PathLike[str] | str, stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        found = super().file_response(full_path, stat_result, scope, status_code)
        found.headers.update(_kept(scope))
        return found


def _kept(scope: Scope) -> Mapping[str, str]:
    """How long the answer may be kept: for ever, where the address has a mark."""
    return {"cache-control": FOR_EVER if scope["query_string"] else "no-cache"}
