"""What a browser or a program keeps as a file."""

from __future__ import annotations

from starlette.responses import Response

from playground.sessions import Sessions, saved_test


def download(text: str, name: str, kind: str) -> Response:
    """`text` as a file of that name and media type."""
    disposition = f'attachment; filename="{name}"'
    return Response(text, headers={"content-disposition": disposition}, media_type=kind)


async def test_file(sessions: Sessions, run_id: str) -> Response:
    """A test that plays a run again, as a file.

    Raises:
        NotFound: no such run.
        Conflict: a test cannot play it: the message says why.
    """
    name = f"test_{run_id.replace('-', '_')}.py"
    return download(await saved_test(sessions, run_id), name, "text/x-python")
