"""Parts of the run page as they travel, each made of the partial that painted it first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import cast

from playground.web.branchviews import BranchTree
from playground.web.finding import Found
from playground.web.i18n import Language
from playground.web.story import Region
from playground.web.templating import environment, one_line, partial, region
from playground.web.viewmodels import EventRow, ParkedStep, RunView, TokenStream

REGIONS: tuple[Region, ...] = ("status", "cards", "end", "graph", "grid", "stops", "spent")


def row(event: EventRow, lang: Language) -> str:
    """One row of the timeline, as one line."""
    return one_line(_row(lang)(event))


@cache
def _row(lang: Language) -> Callable[..., str]:
    """The macro of a row, without its template around it, which costs more to enter than a row to write."""
    module = environment(lang).get_template("macros/rows.html").module
    return cast("Callable[..., str]", vars(module)["row"])


def rows(rendered: str) -> str:
    """Rows on their way to the timeline; a row that is there already is replaced."""
    return partial("#timeline", rendered, "upsert")


def regions(names: Iterable[Region], run: RunView, lang: Language) -> str:
    """Regions of the page, painted anew; the cards of open questions go one by one, by `card`."""
    return "".join(_PAINT[name](run, lang) for name in names if name in _PAINT)


def _status(run: RunView, lang: Language) -> str:
    return partial("#status", region("status", lang, run=run), "outerMorph") + partial(
        "#controls", region("controls", lang, run=run), "outerMorph"
    )


def _end(run: RunView, lang: Language) -> str:
    return partial("#failure", region("failure", lang, run=run)) + partial(
        "#output", region("output", lang, run=run)
    )


def _graph(run: RunView, lang: Language) -> str:
    return partial("#graph", region("graph", lang, graph=run.graph, live=True))


def grid(run: RunView, lang: Language) -> str:
    """The wave grid; what is there already and has not changed stays."""
    return partial("#grid", region("grid", lang, grid=run.grid), "outerMorph")


def clock(run: RunView, lang: Language) -> str:
    """Who ran when, for whoever looks at it."""
    return partial("#waterfall", region("waterfall", lang, chart=run.waterfall))


def _stops(run: RunView, lang: Language) -> str:
    return partial("#stops", region("stops", lang, stops=run.stops))


def _spent(run: RunView, lang: Language) -> str:
    return partial("#spent", region("spent", lang, run=run))


_PAINT: Mapping[Region, Callable[[RunView, Language], str]] = {
    "status": _status,
    "end": _end,
    "graph": _graph,
    "grid": grid,
    "stops": _stops,
    "spent": _spent,
}


def card(step: ParkedStep, lang: Language) -> str:
    """The card of a question: a new one joins the others, one that was decided says so in its place."""
    html = region("step", lang, step=step)
    if step.decision is None:
        return partial("#parked", html, "upsert")
    return partial(_by("data-step", step.id), html)


def gone(interrupt_id: str) -> str:
    """The card of a question leaves the page."""
    return partial(_by("data-step", interrupt_id), "", "delete")


def stream_begun(stream: TokenStream, lang: Language) -> str:
    """A place for what a model is about to say."""
    return partial("#tokens", region("stream", lang, stream=stream), "beforeend")


def stream_ended(stream: TokenStream, lang: Language) -> str:
    """What a model has said, whole."""
    return partial(_by("data-stream", stream.call_id), region("stream", lang, stream=stream))


def moment(run: RunView, lang: Language) -> str:
    """The inspector at the moment of the run; the lesson is about what is known by now."""
    live = run.moment.at == run.moment.last
    return "".join(
        partial(f"#inspect-{tab}", region(f"inspect_{tab}", lang, run=run), "innerHTML")
        for tab in (
            *("event", "state", "why"),
            *(("layers",) if run.layers else ()),
            *(("lesson",) if live else ()),
        )
    )


def source(run: RunView, lang: Language) -> str:
    """The scenario's source, with the function of the node that the moment is about."""
    return partial("#inspect-source", region("inspect_source", lang, run=run), "innerHTML")


def proof(run: RunView, lang: Language) -> str:
    """The checkpoint held against the log: the badge, and what the state says of it."""
    return partial("#proof", region("proof_badge", lang, run=run)) + partial(
        "#inspect-proof", region("proof", lang, run=run), "innerHTML"
    )


def branches(tree: BranchTree, lang: Language) -> str:
    """The runs that share a past with the one on the page."""
    return partial("#branches", region("branches", lang, tree=tree))


def earlier(run: RunView, lang: Language) -> str:
    """Older rows of the timeline, and the button that asks for those before them."""
    return rows(_shown(run, lang)) + _edge("earlier", run, lang)


def later(run: RunView, lang: Language) -> str:
    """Newer rows of the timeline, and the button that asks for those after them."""
    return rows(_shown(run, lang)) + _edge("later", run, lang)


def stretch(run: RunView, lang: Language) -> str:
    """Another stretch of the timeline, in place of the one that is there."""
    rows_there = partial("#timeline", _shown(run, lang), "innerHTML")
    return rows_there + _edge("earlier", run, lang) + _edge("later", run, lang)


def found(seen: Found | None, run_id: str, lang: Language, *, quiet: bool = False) -> str:
    """The events that fit what was asked for, in place of all; None where all are to be seen again."""
    listed = region("found", lang, found=seen, run_id=run_id)
    if quiet:
        return partial("#found", listed, "outerMorph")
    return partial("#found", listed) + partial(
        "#found-said", region("found_said", lang, found=seen), "innerHTML"
    )


def found_earlier(seen: Found, run_id: str, lang: Language) -> str:
    """Earlier events that fit, and the button that asks for those before them."""
    listed = "".join(_row(lang)(event, "found-") for event in seen.rows)
    edge = region("found_earlier", lang, found=seen, run_id=run_id)
    return partial("#found-rows", one_line(listed), "upsert") + partial("#found-earlier", edge)


def _edge(name: str, run: RunView, lang: Language) -> str:
    """The button at one end of the timeline; it stays the same element, as it may be the one that asked."""
    return partial(f"#{name}", region(name, lang, run=run), "outerMorph")


def _shown(run: RunView, lang: Language) -> str:
    return "".join(row(event, lang) for event in run.events)


def without_run(run_id: str) -> str:
    """The row of a run leaves the list."""
    return partial(_by("id", f"run-{run_id}"), "", "delete")


def fork_problem(text: str, lang: Language) -> str:
    """Why a fork was not made, in the dialog that asked for it."""
    return partial("#fork-problem", region("fork_problem", lang, problem=text))


def notice(text: str, lang: Language) -> str:
    """A sentence over the page that asked."""
    return partial("#notice", region("notice", lang, notice=text))


def _by(attribute: str, value: str) -> str:
    """A CSS selector of the element with an attribute of that value."""
    return f"[{attribute}={json.dumps(value, ensure_ascii=False)}]"
