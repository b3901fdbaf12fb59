"""The JSON API: the same sessions as the pages, for programs.

Each endpoint reads what it was sent, asks the sessions, and says what came of
it.  Whatever is wrong is raised and becomes a problem document elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from playground.kernel import JsonObject, JsonValue
from playground.kernel.values import thaw
from playground.sessions import (
    Answer,
    Conflict,
    Entry,
    Invalid,
    Options,
    Sessions,
    event_json,
)
from playground.web import bodies, paths
from playground.web.desk import desk_of, sessions_of
from playground.web.downloads import download, test_file
from playground.web.i18n import LANGUAGES, Language, choose
from playground.web.stream import DataTeller, place_of

VIA = "api"
"""What the log names as the way by which a decision came in."""

MOST_RUNS = 200
"""The most runs that one page of the list has."""


def answer(value: JsonValue, status: int = 200, **headers: str) -> Response:
    """A JSON answer."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, headers or None, media_type="application/json")


# Scenarios


async def scenarios(request: Request) -> Response:
    """`GET /api/scenarios`"""
    lang = _language(request)
    return answer([_scenario(entry, lang) for entry in sessions_of(request).catalog.entries()])


async def scenario(request: Request) -> Response:
    """`GET /api/scenarios/{key}`"""
    sessions, lang = sessions_of(request), _language(request)
    entry = sessions.catalog.get(request.path_params["key"])
    about = {**_scenario(entry, lang), "topology": None, "source": entry.source}
    if entry.scenario is not None and not entry.missing:
        try:
            about["topology"] = sessions.blueprints.plan(entry.key, lang).topology()
        except Conflict as error:
            about["error"] = str(error)
    return answer(about)


def _scenario(entry: Entry, lang: Language) -> JsonObject:
    found = entry.scenario
    if found is None:
        return {"key": entry.key, "title": entry.path.name, "error": entry.error}
    return {
        "key": found.key,
        "title": found.title[lang],
        "summary": found.summary[lang],
        "teaches": found.teaches[lang],
        "concepts": list(found.concepts),
        "default_input": cast("JsonValue", found.default_input[lang]),
        "input_schema": found.input_schema,
        "missing": list(entry.missing),
        "error": None,
    }


def _language(request: Request) -> Language:
    return choose(request.query_params.get("lang"), request.headers.get("accept-language", ""))


# Runs


async def runs(request: Request) -> Response:
    """`GET /api/runs?state=&scenario=&q=&limit=&cursor=`"""
    sessions, asked = sessions_of(request), request.query_params
    limit = bodies.whole_number(asked.get("limit") or 50, "limit", least=1)
    records, cursor = await sessions.find(
        state=asked.get("state"),
        scenario=asked.get("scenario"),
        text=asked.get("q"),
        limit=min(limit, MOST_RUNS),
        cursor=asked.get("cursor"),
    )
    return answer({"runs": [sessions.row(record) for record in records], "next": cursor})


async def start(request: Request) -> Response:
    """`POST /api/runs`"""
    body = await bodies.json_object(request, "scenario", "input", "continues", "options", "lang")
    key = bodies.text(body, "scenario")
    if not key:
        raise Invalid("scenario is missing: name one of GET /api/scenarios", {"scenario": "missing"})
    lang = bodies.text(body, "lang") or "en"
    if lang not in LANGUAGES:
        raise Invalid(f"lang is {lang[:20]!r}: use {' or '.join(LANGUAGES)}", {"lang": "unknown"})
    sessions = sessions_of(request)
    run_id = await sessions.start(
        key,
        thaw(body.get("input")),
        lang=lang,
        continues=bodies.text(body, "continues") or None,
        options=_options(bodies.mapping(body, "options")),
    )
    return await _made(sessions, run_id)


def _options(given: JsonObject) -> Options:
    unknown = given.keys() - {"step", "breakpoints"}
    step, breakpoints = given.get("step", False), given.get("breakpoints", [])
    if unknown or not isinstance(step, bool) or not isinstance(breakpoints, list):
        raise Invalid(
            'options must be {"step": true or false, "breakpoints": [...]}', {"options": "not these"}
        )
    return Options(step, breakpoints)


async def _made(sessions: Sessions, run_id: str) -> Response:
    return answer(await sessions.describe(run_id), 201, location=paths.run(run_id))


async def run(request: Request) -> Response:
    """`GET /api/runs/{run_id}`"""
    return answer(await sessions_of(request).describe(request.path_params["run_id"]))


async def delete(request: Request) -> Response:
    """`DELETE /api/runs/{run_id}`"""
    await bodies.nothing(request)
    await sessions_of(request).delete(request.path_params["run_id"])
    return Response(status_code=204)


async def state(request: Request) -> Response:
    """`GET /api/runs/{run_id}/state?at=`"""
    sessions, run_id = sessions_of(request), request.path_params["run_id"]
    asked = request.query_params.get("at")
    at = None if not asked else bodies.whole_number(asked, "at", least=1)
    return answer((await sessions.portrait(run_id, at)).to_json())


class Events:
    """`GET /api/runs/{run_id}/events?after=`: as a list, or live for who accepts an event stream."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        run_id, desk = request.path_params["run_id"], desk_of(request)
        if "text/event-stream" not in request.headers.get("accept", ""):
            after = bodies.whole_number(request.query_params.get("after") or 0, "after")
            events = await desk.sessions.events(run_id, after)
            await answer([event_json(event) for event in events])(scope, receive, send)
            return
        place = await place_of(request, desk.sessions, run_id)
        if place.ended and place.back:
            # An EventSource that had seen the end comes back once more; this tells it to stay away.
            await Response(status_code=204)(scope, receive, send)
            return
        await desk.streams.serve(scope, receive, send, run_id, place, DataTeller())


# Deciding and steering


async def resume(request: Request) -> Response:
    """`POST /api/runs/{run_id}/resume`"""
    body = await bodies.json_object(request, "answers", "by")
    given = bodies.mapping(body, "answers")
    answers = {interrupt: _answer(interrupt, value) for interrupt, value in given.items()}
    by = bodies.text(body, "by", most=200)
    sessions, run_id = sessions_of(request), request.path_params["run_id"]
    await sessions.answer(run_id, answers, by=by, via=VIA)
    return await _accepted(sessions, run_id)


def _answer(interrupt: str, given: JsonValue) -> Answer:
    """One answer of a request; a missing `value` is told apart from one that is null."""
    if not isinstance(given, dict) or given.keys() - {"approved", "value", "comment"}:
        raise Invalid(
            f'the answer to {interrupt[:80]!r} must be {{"approved": ..., "value": ..., "comment": ...}}',
            {interrupt: "not such an object"},
        )
    approved = given.get("approved")
    if approved is not None and not isinstance(approved, bool):
        raise Invalid("approved must be true or false", {f"{interrupt}.approved": "not true or false"})
    comment = bodies.text(given, "comment")
    return Answer(approved, thaw(given.get("value")), "value" in given, comment)


Command = Callable[[Sessions, str], Awaitable[None]]


def _command(act: Command) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of `POST /api/runs/{run_id}/<command>`, which needs no body."""

    async def endpoint(request: Request) -> Response:
        await bodies.nothing(request)
        sessions, run_id = sessions_of(request), request.path_params["run_id"]
        await act(sessions, run_id)
        return await _accepted(sessions, run_id)

    return endpoint


pause = _command(lambda sessions, run_id: sessions.pause(run_id))
step = _command(lambda sessions, run_id: sessions.go_on(run_id, step=True, via=VIA))
go_on = _command(lambda sessions, run_id: sessions.go_on(run_id, via=VIA))
cancel = _command(lambda sessions, run_id: sessions.cancel(run_id))
crash = _command(lambda sessions, run_id: sessions.crash(run_id))


async def set_breakpoints(request: Request) -> Response:
    """`PUT /api/runs/{run_id}/breakpoints`"""
    body = await bodies.json_object(request, "breakpoints")
    given = body.get("breakpoints")
    if not isinstance(given, list):
        raise Invalid("breakpoints must be a list", {"breakpoints": "not a list"})
    sessions, run_id = sessions_of(request), request.path_params["run_id"]
    await sessions.set_breakpoints(run_id, given)
    return answer({"breakpoints": given})


async def _accepted(sessions: Sessions, run_id: str) -> Response:
    seen = await sessions.portrait(run_id)
    told: JsonObject = {
        "run_id": run_id,
        "state": str(seen.run.state),
        "driven": sessions.is_driven(run_id),
        "url": paths.run(run_id),
    }
    return answer(told, 202)


# Branches and bundles


async def fork(request: Request) -> Response:
    """`POST /api/runs/{run_id}/fork`"""
    body = await bodies.json_object(request, "at", "updates", "input")
    at = bodies.whole_number(body.get("at"), "at", least=1)
    sessions, run_id = sessions_of(request), request.path_params["run_id"]
    updates = bodies.mapping(body, "updates")
    forked = await sessions.fork(run_id, at, updates=updates, given=thaw(body.get("input")))
    return await _made(sessions, forked)


async def export(request: Request) -> Response:
    """`GET /api/runs/{run_id}/export`: as JSON Lines, or with `?as=test` as a test that plays it again."""
    run_id, sessions = request.path_params["run_id"], sessions_of(request)
    form = request.query_params.get("as", "lines")
    if form == "test":
        return await test_file(sessions, run_id)
    if form != "lines":
        raise Invalid(f"a run cannot be exported as {form!r}: use 'lines' or 'test'")
    lines = await sessions.export(run_id)
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return download(text, f"{lines[0]['run_id']}.jsonl", "application/x-ndjson")


async def take_in(request: Request) -> Response:
    """`POST /api/runs/import`"""
    lines = await bodies.bundle(request)
    sessions = sessions_of(request)
    return await _made(sessions, await sessions.take_in(lines))


async def health(_: Request) -> Response:
    """`GET /healthz`"""
    return answer({"status": "ok"})
