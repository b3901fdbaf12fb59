"""What went wrong, said in the form that was asked in: a problem document or a page.

Whatever is raised on the way to an answer ends here, so an endpoint only says
what it does when all is well.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from playground.kernel import JsonObject, JsonValue, LogError
from playground.sessions import Busy, Conflict, Invalid, NotFound
from playground.web import paths, templating
from playground.web.i18n import Language, Translator
from playground.web.language import language_of
from playground.web.viewmodels import Problem

_log = logging.getLogger(__name__)

_STATUS: Mapping[type[Exception], int] = {NotFound: 404, Conflict: 409, Invalid: 422, Busy: 429}


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error as an answer: `detail` is one sentence, `more` what a program can use beside it."""

    status: int
    detail: str
    more: JsonObject = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name of the status."""
        return HTTPStatus(self.status).phrase


def trouble_of(error: Exception) -> Trouble:
    """What an error is to a client; one that nobody expected is 500 and says nothing of its inside."""
    if isinstance(error, HTTPException):
        return Trouble(error.status_code, error.detail, headers=dict(error.headers or {}))
    if isinstance(error, Conflict) and error.decision:
        return Trouble(409, str(error), {"decision": error.decision})
    if isinstance(error, Invalid) and error.errors:
        return Trouble(422, str(error), {"errors": dict[str, JsonValue](error.errors)})
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            return Trouble(status, str(error))
    if isinstance(error, LogError):
        return Trouble(500, str(error))
    return Trouble(500, "the server met an error of its own; its log tells more")


def _off_the_map(request: Request, status: int) -> Trouble:
    """What to say of an address that no route has, or of a method that its routes do not take.

    A route knows its own methods alone; an address may have several routes.
    """
    path = request.url.path[:80]
    if status != HTTPStatus.METHOD_NOT_ALLOWED:
        return Trouble(status, f"there is nothing at {path}: start from /, or from /api/runs")
    routes = (route for route in request.app.routes if isinstance(route, Route))
    taken = {m for r in routes if r.matches(request.scope)[0] is not Match.NONE for m in r.methods or ()}
    allow = ", ".join(sorted(taken))
    return Trouble(status, f"{request.method} is not for {path}: use {allow}", headers={"Allow": allow})


def document(trouble: Trouble) -> Response:
    """The error as a problem document."""
    told: JsonObject = {
        "title": trouble.title,
        "status": trouble.status,
        "detail": trouble.detail,
        **trouble.more,
    }
    return Response(
        json.dumps(told, ensure_ascii=False),
        trouble.status,
        trouble.headers,
        media_type="application/problem+json",
    )


def error_page(request: Request, trouble: Trouble) -> Response:
    """The error as a page, or for htmx as a notice over the page that asked."""
    lang = language_of(request)
    if "hx-request" in request.headers:
        html = templating.region("notice", lang, notice=trouble.detail)
        return Response(templating.partial("#notice", html), media_type="text/html")
    html = templating.page("error", lang, problem=_problem(request, trouble, lang))
    return Response(html, trouble.status, trouble.headers, media_type="text/html")


def body_of_error(request: Request, error: Exception) -> str:
    """The error in place of the body of a page whose head was sent already."""
    lang = language_of(request)
    problem = _problem(request, _told(request, error), lang)
    return "".join(templating.page("error", lang, part=part, problem=problem) for part in templating.BODY)


def _problem(request: Request, trouble: Trouble, lang: Language) -> Problem:
    t, key = Translator(lang), f"problem.{trouble.status}"
    title = str(t(key)) if key in t else trouble.title
    back = paths.RUNS if request.url.path.startswith("/runs") else paths.HOME
    return Problem(trouble.status, title, trouble.detail, back)


def _told(request: Request, error: Exception) -> Trouble:
    """What an error is to a client; what is the server's own fault is told in its log too."""
    trouble = trouble_of(error)
    if isinstance(error, HTTPException) and trouble.detail == trouble.title:
        trouble = _off_the_map(request, trouble.status)
    if trouble.status >= 500:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return trouble


async def answer_error(request: Request, error: Exception) -> Response:
    """The handler of every error: by address, a document for programs and a page for people."""
    trouble = _told(request, error)
    if request.url.path.startswith("/api/") or request.url.path == "/healthz":
        return document(trouble)
    return error_page(request, trouble)
