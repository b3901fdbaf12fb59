"""The pages: what a browser asks for, with or without JavaScript.

URLs are nouns.  A POST answers htmx with the parts of the page that it changed,
and anyone else with a redirect to the page itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from playground.kernel import Interrupt, JsonValue, LogError, RunState, root_of
from playground.kernel.values import thaw
from playground.runtime.openai_lite import OpenAICompatibleLlm
from playground.sessions import (
    Answer,
    Conflict,
    Invalid,
    NotFound,
    Options,
    SessionError,
    Sessions,
    family,
    what_if,
)
from playground.web import bodies, forms, gallery, keepsake, paths, render, runviews, stops, templating, views
from playground.web.branchviews import BranchTree, Comparison, branch_tree, comparison
from playground.web.desk import desk_of, sessions_of
from playground.web.downloads import download, test_file
from playground.web.finding import Wish, find
from playground.web.i18n import Language, Translator
from playground.web.language import language_of, switch
from playground.web.live import PageTeller
from playground.web.looks import looks_of
from playground.web.problems import body_of_error, trouble_of
from playground.web.story import Story
from playground.web.stream import place_of
from playground.web.viewmodels import ModelChoice, RunView
from playground.web.wavegrid import MOST_WAVES

VIA = "web"
"""What the log names as the way by which a decision came in."""

MOST_WAITING = 50
"""The most runs whose open questions are shown together."""

RECENT = 200
"""How many of the newest runs are searched for what waits, for turns of a conversation and for branches."""

HEAD_START = 0.05
"""Seconds in which a browser can paint a run's first rows before it gets the rest of the page to lay out."""

FRESH = {"cache-control": "no-cache"}


def html(text: str, status: int = 200) -> Response:
    """A page, which a browser asks for again whenever it is shown again."""
    return Response(text, status, FRESH, media_type="text/html")


def _page(
    endpoint: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """A page that can be asked for in another language."""

    async def in_language(request: Request) -> Response:
        return switch(request) or await endpoint(request)

    return in_language


# Scenarios


@_page
async def picker(request: Request) -> Response:
    """`GET /?q=`"""
    sessions, lang = sessions_of(request), language_of(request)
    records, _ = await sessions.find(limit=RECENT)
    found = views.picker(sessions, request.query_params.get("q", "")[:200], lang, records)
    sample = await desk_of(request).samples.get(lang)
    return html(templating.page("picker", lang, picker=found, sample=sample))


@_page
async def sample(request: Request) -> Response:
    """`POST /sample`: a finished run to step through, at its most telling step."""
    found = await desk_of(request).samples.adopted(language_of(request))
    if found is None:
        raise NotFound("there is no sample: its scenario is gone; run any other one")
    run_id, at = found
    return _see(f"{paths.run(run_id)}#step={at}")


@_page
async def scenario(request: Request) -> Response:
    """`GET /scenarios/{key}`"""
    return await _scenario(request, request.path_params["key"])


async def _scenario(
    request: Request, key: str, form: forms.Form | None = None, status: int = 200
) -> Response:
    sessions, lang = sessions_of(request), language_of(request)
    entry = sessions.catalog.get(key)
    records, _ = await sessions.find(scenario=key, limit=10)
    rows = [views.run_row(record, sessions, lang) for record in records]
    found = views.scenario_view(sessions, entry, lang, rows, form)
    waiting = await views.waiting_count(sessions)
    return html(templating.page("scenario", lang, scenario=found, waiting=waiting), status)


# Runs


@_page
async def runs(request: Request) -> Response:
    """`GET /runs?state=&scenario=&q=&cursor=`"""
    sessions, lang = sessions_of(request), language_of(request)
    asked = {name: request.query_params.get(name, "")[:200] for name in ("state", "scenario", "q", "cursor")}
    found = await views.run_list(
        sessions, lang, state=asked["state"], scenario=asked["scenario"], q=asked["q"], cursor=asked["cursor"]
    )
    return html(templating.page("runs", lang, list=found))


async def start(request: Request) -> Response:
    """`POST /runs`: start a scenario, or with `again` what a run was started with."""
    posted = await bodies.form(request)
    sessions, lang = sessions_of(request), language_of(request)
    options = Options(step="step" in posted)
    if posted.get("again"):
        seen = await sessions.portrait(root_of(posted["again"]))
        key, given = str(seen.run.meta.get("scenario")), thaw(seen.run.meta.get("input"))
        run_id = await sessions.start(key, given, lang=str(seen.run.meta.get("lang", lang)), options=options)
        return _see(paths.run(run_id))
    key = posted.get("scenario", "")
    found = sessions.catalog.scenario(key)
    schema = found.input_schema or {}
    try:
        given = forms.read_form(schema, posted, prefix=views.INPUT)
        run_id = await sessions.start(key, given, lang=lang, options=options)
    except forms.FormError as error:
        form = views.input_form(found, lang, posted, error.problems)
        return await _scenario(request, key, form, 422)
    except Invalid as error:
        form = views.input_form(found, lang, posted, _at_fields(error, views.INPUT, found.input_schema))
        return await _scenario(request, key, form, 422)
    return _see(paths.run(run_id))


@_page
async def run(request: Request) -> Response:
    """`GET /runs/{run_id}?at=`: its head at once, for a browser to begin with while the log is read."""
    run_id = request.path_params["run_id"]
    root = root_of(run_id)
    if root != run_id:
        return RedirectResponse(paths.run(root), 303)
    sessions, lang = sessions_of(request), language_of(request)
    asked = bodies.whole_number(request.query_params.get("at") or 0, "at")
    first = await sessions.events(root, 0, 1)
    meta = first[0].data.get("meta")
    scenario = str(meta.get("scenario", "")) if isinstance(meta, dict) else ""

    async def seen() -> RunView:
        story = await desk_of(request).watches.story(root)
        await story.prove(sessions)
        found = runviews.run_view(story, sessions, lang, min(asked, story.pos) or None)
        return replace(await _with_kin(sessions, found, lang), asked=asked)

    async def parts() -> AsyncIterator[str]:
        title = views.title_of(sessions, scenario, lang)
        yield templating.page("run", lang, part="head", looks=looks_of(request), run={"title": title})
        try:
            found = await seen()
        except Exception as error:  # noqa: BLE001 - a page that has begun must not stop in its middle
            yield body_of_error(request, error)
            return
        yield templating.page("run", lang, part="first", run=found)
        await asyncio.sleep(HEAD_START)
        yield templating.page("run", lang, part="rest", run=found)

    return StreamingResponse(parts(), headers=FRESH, media_type="text/html")


async def _with_kin(sessions: Sessions, found: RunView, lang: Language) -> RunView:
    """The run with the conversation that it belongs to and the runs that branch off it."""
    records, _ = await sessions.find(scenario=found.scenario, limit=RECENT)
    known = {record.run_id: record for record in records}
    chain = [found.run_id]
    while (before := known.get(chain[0])) is not None and before.continues in known:
        chain.insert(0, before.continues)
    follower = {record.continues: record.run_id for record in records if record.continues}
    while chain[-1] in follower:
        chain.append(follower[chain[-1]])
    return replace(
        found,
        chain=tuple(views.run_row(known[run_id], sessions, lang) for run_id in chain if run_id in known),
        branches=tuple(
            views.run_row(record, sessions, lang) for record in records if record.forked_from == found.run_id
        ),
    )


def _position(request: Request, name: str, story: Story) -> int | None:
    """A position that a query names, if it names one.

    Raises:
        NotFound: the run has no such position.
    """
    asked = request.query_params.get(name)
    if not asked:
        return None
    at = bodies.whole_number(asked, name, least=1)
    if at > story.pos:
        raise NotFound(f"run {story.root} has no position {at}: choose one from 1 to {story.pos}")
    return at


async def export(request: Request) -> Response:
    """`GET /runs/{run_id}/export`: the run as one file that needs no server, or with `?as=test` as a test."""
    sessions, lang = sessions_of(request), language_of(request)
    form = request.query_params.get("as", "page")
    if form == "test":
        return await test_file(sessions, _root(request))
    if form != "page":
        raise Invalid(f"a run cannot be saved as {form!r}: use 'page' or 'test'")
    story = await desk_of(request).watches.story(root_of(request.path_params["run_id"]))
    run = keepsake.keepsake(story, sessions, lang)
    text = await asyncio.to_thread(keepsake.written, run, list(story.events), story.plan, lang)
    return download(text, f"{story.root}.html", "text/html")


async def moment(request: Request) -> Response:
    """`GET /runs/{run_id}/moment?at=&before=&after=&wave=`: the inspector, and what the page lacks.

    It has the rows from `before` to `after`, and the waves from `wave` on.
    """
    sessions, lang = sessions_of(request), language_of(request)
    story = await desk_of(request).watches.story(root_of(request.path_params["run_id"]))
    at = _position(request, "at", story) or story.pos
    first = bodies.whole_number(request.query_params.get("before") or 1, "before", least=0)
    last = bodies.whole_number(request.query_params.get("after") or story.pos, "after", least=0)
    found = runviews.at_moment(story, sessions, lang, at)
    parts = render.moment(found, lang)
    if not first <= at <= last:
        parts += render.stretch(runviews.around(found, story, at), lang)
    begun = bodies.whole_number(request.query_params.get("wave") or 1, "wave", least=1)
    wave = story.book.wave_at(at)
    if not begun <= wave < begun + MOST_WAVES:
        parts += render.grid(replace(found, grid=story.book.grid(wave)), lang)
    return html(parts)


async def source(request: Request) -> Response:
    """`GET /runs/{run_id}/source?at=`: the scenario's source, for whoever opens that tab."""
    sessions, lang = sessions_of(request), language_of(request)
    story = await desk_of(request).watches.story(_root(request))
    at = _position(request, "at", story) or story.pos
    return html(render.source(runviews.beside_source(story, sessions, lang, at), lang))


async def more(request: Request) -> Response:
    """`GET /runs/{run_id}/events?before=`, or `?after=`: older or newer rows of the timeline."""
    sessions, lang = sessions_of(request), language_of(request)
    story = await desk_of(request).watches.story(root_of(request.path_params["run_id"]))
    if request.query_params.keys() & {"kind", "node", "q"}:
        return await _found(request, story)
    glance = runviews.glance(story, sessions, lang)
    if request.query_params.get("after"):
        after = bodies.whole_number(request.query_params["after"], "after", least=0)
        newer = runviews.stretch(glance, story, after + 1, after + 1 + runviews.STRETCH)
        return html(render.later(newer, lang))
    before = bodies.whole_number(request.query_params.get("before") or 1, "before", least=1)
    older = runviews.stretch(glance, story, max(1, before - runviews.STRETCH), before)
    return html(render.earlier(older, lang))


async def _found(request: Request, story: Story) -> Response:
    """`GET /runs/{run_id}/events?kind=&node=&q=&before=`: the events that fit, wherever in the log they are.

    `quiet` stands for a page that asks again on its own account, of which a reader need not be told.
    """
    query, lang = request.query_params, language_of(request)
    wish, before = Wish.of(query), bodies.whole_number(query.get("before") or 0, "before", least=0)
    if not wish:
        return html(render.found(None, story.root, lang))
    seen = await asyncio.to_thread(find, story.rows, wish, lang, before)
    if before:
        return html(render.found_earlier(seen, story.root, lang))
    return html(render.found(seen, story.root, lang, quiet="quiet" in query))


class Live:
    """`GET /runs/{run_id}/live?after=`: the run as parts of its page, as it goes on."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        run_id, desk = root_of(request.path_params["run_id"]), desk_of(request)
        place = await place_of(request, desk.sessions, run_id)
        watch = await desk.watches.enter(run_id)
        try:
            teller = PageTeller(watch, language_of(request), place)
            await desk.streams.serve(scope, receive, send, run_id, place, teller)
        finally:
            desk.watches.leave(watch)


async def commands(request: Request) -> Response:
    """`POST /runs/{run_id}/commands`: pause, step, continue, cancel, crash or delete."""
    posted = await bodies.form(request)
    sessions, run_id = sessions_of(request), root_of(request.path_params["run_id"])
    name = posted.get("command", "")
    match name:
        case "pause":
            await sessions.pause(run_id)
        case "step":
            await sessions.go_on(run_id, step=True, via=VIA)
        case "continue":
            await sessions.go_on(run_id, via=VIA)
        case "cancel":
            await sessions.cancel(run_id)
        case "crash":
            await sessions.crash(run_id)
        case "delete":
            await sessions.delete(run_id)
            return html(render.without_run(run_id)) if _is_htmx(request) else _see(paths.RUNS)
        case _:
            raise Invalid(f"there is no command {name[:40]!r}", {"command": "unknown"})
    if not _is_htmx(request):
        return _see(paths.run(run_id))
    story = await desk_of(request).watches.story(run_id)
    lang = language_of(request)
    return html(render.regions(["status"], runviews.glance(story, sessions, lang), lang))


async def set_breakpoints(request: Request) -> Response:
    """`POST /runs/{run_id}/breakpoints`: add a breakpoint, or remove one."""
    posted = await bodies.form(request)
    sessions, lang, run_id = sessions_of(request), language_of(request), _root(request)
    story = await desk_of(request).watches.story(run_id)
    problem = ""
    try:
        await sessions.set_breakpoints(run_id, stops.changed(story.run.breakpoints, posted))
    except Invalid as error:
        if not _is_htmx(request):
            raise
        problem = str(error)
    if not _is_htmx(request):
        return _see(paths.run(run_id))
    story = await desk_of(request).watches.story(run_id)
    found = runviews.glance(story, sessions, lang)
    found = replace(found, stops=replace(found.stops, problem=problem))
    return html(render.regions(["status", "stops"], found, lang))


async def forks(request: Request) -> Response:
    """`POST /runs/{run_id}/forks`: a new run that shares this one's past."""
    posted = await bodies.form(request)
    if not _is_htmx(request):
        return _see(paths.run(await _forked(request, posted)))
    try:
        made = await _forked(request, posted)
    except (SessionError, HTTPException) as error:
        return html(render.fork_problem(trouble_of(error).detail, language_of(request)))
    return Response(headers={"hx-redirect": paths.run(made)})


async def _forked(request: Request, posted: Mapping[str, str]) -> str:
    at = bodies.whole_number(posted.get("at", ""), "at", least=1)
    raw = posted.get("updates", "").strip()
    updates = bodies.parse_json(raw.encode(), "updates") if raw else {}
    if not isinstance(updates, dict):
        raise Invalid("updates must be a JSON object of channels and values", {"updates": "not an object"})
    return await sessions_of(request).fork(root_of(request.path_params["run_id"]), at, updates=updates)


async def proof(request: Request) -> Response:
    """`GET /runs/{run_id}/proof`: the checkpoint of the run, held against its log once more."""
    sessions, lang = sessions_of(request), language_of(request)
    story = await desk_of(request).watches.story(_root(request))
    await story.prove(sessions)
    return html(render.proof(runviews.glance(story, sessions, lang), lang))


async def clock(request: Request) -> Response:
    """`GET /runs/{run_id}/clock`: who ran when, for whoever opens that tab."""
    sessions, lang = sessions_of(request), language_of(request)
    story = await desk_of(request).watches.story(_root(request))
    return html(
        render.clock(replace(runviews.glance(story, sessions, lang), waterfall=story.clock.chart()), lang)
    )


# Branches


async def branches(request: Request) -> Response:
    """`GET /runs/{run_id}/branches`: the runs that share a past with this one."""
    sessions, lang, run_id = sessions_of(request), language_of(request), _root(request)
    tree = branch_tree(await family(sessions, run_id), run_id, sessions, lang)
    if _is_htmx(request):
        return html(render.branches(tree, lang))
    return switch(request) or await _compare_page(request, tree)


@_page
async def compare(request: Request) -> Response:
    """`GET /runs/{run_id}/compare/{other}`: two runs side by side, from where they part."""
    sessions, lang, run_id = sessions_of(request), language_of(request), _root(request)
    other = root_of(request.path_params["other"])
    left, right = [await desk_of(request).watches.story(found) for found in (run_id, other)]
    tree = branch_tree(await family(sessions, run_id), run_id, sessions, lang, other)
    return await _compare_page(request, tree, comparison(left, right, sessions, lang))


@_page
async def without(request: Request) -> Response:
    """`GET /runs/{run_id}/without/{at}`: what the run would have come to without what that event wrote."""
    lang, run_id = language_of(request), _root(request)
    at = bodies.whole_number(request.path_params["at"], "at", least=1)
    story = await desk_of(request).watches.story(run_id)
    found = what_if(None if story.foreign else story.plan, story.events, at)
    run = runviews.glance(story, sessions_of(request), lang)
    return html(templating.page("without", lang, run=run, row=story.row(at), found=found))


async def _compare_page(request: Request, tree: BranchTree, found: Comparison | None = None) -> Response:
    sessions, lang = sessions_of(request), language_of(request)
    record = await sessions.store.runs.get(tree.run_id)
    title = views.title_of(sessions, record.scenario if record else "", lang)
    waiting = await views.waiting_count(sessions)
    return html(templating.page("compare", lang, tree=tree, comparison=found, title=title, waiting=waiting))


def _root(request: Request) -> str:
    """The root of the run that an address names."""
    return root_of(request.path_params["run_id"])


# Decisions


@_page
async def waiting(request: Request) -> Response:
    """`GET /waiting`: the open questions of all runs."""
    return await _waiting_page(request)


async def _waiting_page(
    request: Request, decided: int | None = None, refused: Sequence[str] = ()
) -> Response:
    sessions, lang = sessions_of(request), language_of(request)
    records, _ = await sessions.find(state=RunState.SUSPENDED, limit=MOST_WAITING)
    steps, unread = [], list(refused)
    for record in records:
        if record.waiting:
            try:
                story = await desk_of(request).watches.story(record.run_id)
            except (SessionError, LogError) as error:  # one bad run must not hide the questions of the others
                unread.append(str(error))
                continue
            title = views.title_of(sessions, record.scenario, lang)
            asked = [a for a in story.run.interrupts.values() if a.kind != "breakpoint"]
            steps += [replace(runviews.parked_step(story, a, lang), scenario=title) for a in asked]
    return html(templating.page("waiting", lang, steps=tuple(steps), decided=decided, refused=unread))


@_page
async def decide_all(request: Request) -> Response:
    """`POST /waiting`: approve or reject the steps that the page showed, and no other ones."""
    posted, sessions = await bodies.form(request), sessions_of(request)
    verdict, by = posted.get("verdict", ""), posted.get("by", "").strip()[:100]
    if verdict not in ("approve", "reject"):
        raise HTTPException(400, "the form names no verdict: use its buttons")
    answer = Answer(approved=verdict == "approve", comment=posted.get("comment", "").strip()[:2000])
    shown: dict[str, dict[str, Answer]] = {}
    for name, value in posted.items():
        if name.startswith("step:"):
            run_id, _, interrupt = value.partition(" ")
            shown.setdefault(run_id, {})[interrupt] = answer
    decided, refused = 0, list[str]()
    for run_id, answers_of_run in shown.items():
        try:
            await sessions.answer(run_id, answers_of_run, by=by, via=VIA)
            decided += len(answers_of_run)
        except SessionError as error:
            refused.append(str(error))
    return await _waiting_page(request, decided, refused)


@_page
async def step(request: Request) -> Response:
    """`GET /runs/{run_id}/steps/{interrupt}`: one parked step, which works without JavaScript."""
    story = await desk_of(request).watches.story(root_of(request.path_params["run_id"]))
    return await _decision_page(request, story, request.path_params["interrupt"])


async def _decision_page(
    request: Request,
    story: Story,
    interrupt: str,
    *,
    posted: Mapping[str, str] | None = None,
    problems: Mapping[str, forms.Problem] | None = None,
    error: str = "",
    status: int = 200,
) -> Response:
    lang = language_of(request)
    found = runviews.any_step(story, interrupt, lang, posted=posted, problems=problems, error=error)
    if found is None:
        raise NotFound(f"run {story.root} never asked {interrupt[:80]!r}")
    title = views.title_of(sessions_of(request), str(story.meta.get("scenario", "")), lang)
    if _is_htmx(request):
        return html(render.card(found, lang))
    waiting = await views.waiting_count(sessions_of(request))
    shown = replace(found, scenario=title)
    return html(templating.page("decision", lang, step=shown, waiting=waiting), status)


async def answers(request: Request) -> Response:
    """`POST /runs/{run_id}/answers`: decide a parked step."""
    posted = await bodies.form(request)
    desk, run_id = desk_of(request), root_of(request.path_params["run_id"])
    interrupt, by = posted.get("interrupt", ""), posted.get("by", "").strip()[:100]
    story = await desk.watches.story(run_id)
    asked = story.run.interrupts.get(interrupt)
    try:
        if asked is not None and asked.kind == "breakpoint":
            await desk.sessions.go_on(run_id, by=by, via=VIA)
        else:
            given = _answer(asked, posted) if asked is not None else Answer(approved=True)
            await desk.sessions.answer(run_id, {interrupt: given}, by=by, via=VIA)
    except forms.FormError as error:
        return await _decision_page(
            request, story, interrupt, posted=posted, problems=error.problems, status=422
        )
    except Invalid as error:
        schema = asked.schema if asked else None
        problems = _at_fields(error, "value", schema)
        said = "" if problems else str(error)
        return await _decision_page(
            request, story, interrupt, posted=posted, problems=problems, error=said, status=422
        )
    except Conflict:
        story = await desk.watches.story(run_id)
        if interrupt not in story.decisions:
            raise
        return await _decision_page(request, story, interrupt, status=409)
    if not _is_htmx(request):
        return _see(paths.run(run_id))
    story = await desk.watches.story(run_id)
    return await _decision_page(request, story, interrupt)


def _answer(asked: Interrupt, posted: Mapping[str, str]) -> Answer:
    """A person's answer, with the fields of the form in the types of the question's schema.

    Raises:
        FormError: a field cannot be read.
        HTTPException: 400, no button was pressed.
    """
    verdict, comment = posted.get("verdict", ""), posted.get("comment", "").strip()[:2000]
    if verdict == "reject":
        return Answer(approved=False, comment=comment)
    if verdict not in ("approve", "answer"):
        raise HTTPException(400, "the form names no verdict: use its buttons")
    value: JsonValue = posted.get("value", "")
    if asked.schema is not None:
        value = forms.read_form(asked.schema, posted, value=thaw(asked.proposed))
    if verdict == "answer":
        return Answer(value=value, has_value=True, comment=comment)
    return Answer(approved=True, value=value, has_value=asked.schema is not None, comment=comment)


def _at_fields(
    error: Invalid, prefix: str, schema: Mapping[str, JsonValue] | None
) -> dict[str, forms.Problem]:
    """What is wrong with a value, at the fields of its form."""
    plain = schema is None or "properties" not in schema
    return {
        prefix if plain or not path else f"{prefix}.{path.partition('.')[0]}": forms.Problem(
            "form.schema", {"reason": said}
        )
        for path, said in error.errors.items()
    }


# The model


@_page
async def model(request: Request) -> Response:
    """`GET /model`: which model plays the scripted parts."""
    return await _model_page(request, views.model_choice(sessions_of(request)))


async def _model_page(request: Request, choice: ModelChoice, status: int = 200) -> Response:
    waiting = await views.waiting_count(sessions_of(request))
    return html(templating.page("model", language_of(request), model=choice, waiting=waiting), status)


async def set_model(request: Request) -> Response:
    """`POST /model`: use another model, or none, until the server ends; its key is kept nowhere else."""
    posted = await bodies.form(request)
    sessions = sessions_of(request)
    if "forget" in posted:
        sessions.blueprints.model = None
        return _see(paths.MODEL)
    name, address, key = (posted.get(field, "").strip() for field in ("name", "address", "key"))
    used = views.model_choice(sessions)
    if not (address or key):
        needed = str(Translator(language_of(request))("model.needed"))
        return await _model_page(request, replace(used, entered=(name, address), problem=needed), 422)
    try:
        sessions.blueprints.model = OpenAICompatibleLlm(
            model=name or None, base_url=address or None, api_key=key
        )
    except (ValueError, ModuleNotFoundError) as error:
        return await _model_page(request, replace(used, entered=(name, address), problem=str(error)), 422)
    return _see(paths.MODEL)


# Help for whoever makes the pages


@_page
async def gallery_page(request: Request) -> Response:
    """`GET /gallery`: every part of the pages in every state."""
    lang = language_of(request)
    return html(gallery.render_gallery(lang, Translator(lang)))


def _is_htmx(request: Request) -> bool:
    return "hx-request" in request.headers


def _see(address: str) -> Response:
    return RedirectResponse(address, 303)
