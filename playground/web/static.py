"""Static files: what has a mark of its content in its address may be kept for ever."""

from __future__ import annotations

from os import PathLike, stat_result

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOR_EVER = "public, max-age=31536000, immutable"


class Static(StaticFiles):
    """The files of a folder; at an address with a mark, as `templating.asset` makes it, they never change."""

    def __init__(self, directory: PathLike[str]) -> None:
        super().__init__(directory=directory)

    def file_response(
        self, full_path: PathLike[str] | str, stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        found = super().file_response(full_path, stat_result, scope, status_code)
        found.headers["cache-control"] = FOR_EVER if scope["query_string"] else "no-cache"
        return found
