"""What the pages with scenarios and lists receive, in the reader's language.

Nothing here renders and nothing decides; each function answers one question of
one page.  The page of a run has a file of its own, `runviews`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import CodeType
from typing import cast

from playground.backends import RunRecord
from playground.kernel import JsonValue, Plan, RunState
from playground.runtime.openai_lite import DEFAULT_BASE_URL, DEFAULT_MODEL, OpenAICompatibleLlm
from playground.runtime.scenario import CONCEPTS, Scenario, Text
from playground.sessions import Conflict, Entry, NotFound, Sessions
from playground.web.forms import Form, Problem, form_for
from playground.web.graphview import Graph, Topology, graph
from playground.web.i18n import Language, Translator
from playground.web.story import child_topologies
from playground.web.viewmodels import (
    ForkPoint,
    LessonStep,
    ModelChoice,
    Picker,
    RunList,
    RunRow,
    ScenarioCard,
    ScenarioView,
    Source,
    SourceLine,
    mood_of,
)

PAGE = 50
"""How many runs a list shows at once."""

INPUT = "input"
"""The name of the fields of a scenario's input in a posted form."""


# Scenarios


def picker(sessions: Sessions, q: str, lang: Language, records: Sequence[RunRecord]) -> Picker:
    """The first page; `records` are the newest runs, for what waits."""
    entries = sessions.catalog.entries()
    shown = [entry for entry in entries if matches(entry, q, lang)]
    concepts = dict.fromkeys(tag for e in entries if e.scenario for tag in e.scenario.concepts)
    waiting: dict[str, int] = {}
    for record in records:
        waiting[record.scenario] = waiting.get(record.scenario, 0) + record.waiting
    return Picker(
        cards=tuple(
            replace(
                card(entry, lang, waiting.get(entry.key, 0)), graph=sketch(sessions, entry.key, entry.source)
            )
            for entry in shown
        ),
        q=q,
        concepts=tuple(concept(tag, lang) for tag in concepts),
        total=len(entries),
        waiting=sum(waiting.values()),
    )


def matches(entry: Entry, q: str, lang: Language) -> bool:
    """Whether every word of a search occurs in a scenario's key, texts or concepts, in any case."""
    if entry.scenario is None:
        text = f"{entry.key} {entry.error}"
    else:
        found = entry.scenario
        tags = [f"{tag} {concept(tag, lang)}" for tag in found.concepts]
        texts = (found.title, found.summary, found.teaches)
        text = " ".join([entry.key, *tags, *(said for each in texts for said in each.values())])
    return all(word in text.casefold() for word in q.casefold().split())


def card(entry: Entry, lang: Language, waiting: int = 0) -> ScenarioCard:
    """A scenario in the picker; one that cannot run says why."""
    found, t = entry.scenario, Translator(lang)
    if found is None:
        return ScenarioCard(entry.key, entry.path.name, error=entry.error, traceback=entry.trace)
    return ScenarioCard(
        key=entry.key,
        title=said(found.title, lang),
        summary=said(found.summary, lang),
        concepts=tuple(concept(tag, lang) for tag in found.concepts),
        waiting=waiting,
        error=str(t("card.missing", extras=", ".join(entry.missing))) if entry.missing else "",
    )


@lru_cache(maxsize=64)
def sketch(sessions: Sessions, key: str, _source: str) -> Graph | None:
    """The graph of a scenario for its card, drawn anew when its source changes; None where it fails."""
    try:
        return graph(cast("Topology", sessions.blueprints.plan(key).topology()), direction="right")
    except (Conflict, NotFound):
        return None


def concept(tag: str, lang: Language) -> str:
    """The name of a concept."""
    return said(CONCEPTS[tag], lang) if tag in CONCEPTS else tag


def said(text: Text, lang: Language) -> str:
    """A text of a scenario in a language, or in English where it has no other."""
    return text.get(lang) or text.get("en", "")


def scenario_view(
    sessions: Sessions, entry: Entry, lang: Language, runs: Sequence[RunRow], form: Form | None = None
) -> ScenarioView:
    """A scenario's page.

    Args:
        form: its input form as it was posted, where that did not do.
    """
    found = entry.scenario
    if found is None:
        return ScenarioView(
            *(entry.key, entry.path.name, "", "", (), (), graph(None), form_for({})),
            error=entry.error,
            traceback=entry.trace,
        )
    plan, error = None, card(entry, lang).error
    if not error:
        try:
            plan = sessions.blueprints.plan(entry.key, lang)
        except Conflict as conflict:
            error = str(conflict)
    topology = cast("Topology", plan.topology()) if plan else None
    return ScenarioView(
        key=entry.key,
        title=said(found.title, lang),
        summary=said(found.summary, lang),
        teaches=said(found.teaches, lang),
        concepts=tuple(concept(tag, lang) for tag in found.concepts),
        lesson=tuple(LessonStep(said({"en": s.en, "zh": s.zh}, lang), s.node or "") for s in found.lesson),
        graph=graph(topology, children=child_topologies(plan) if plan else {}),
        form=form or input_form(found, lang),
        source=source(entry, plan),
        model=model_choice(sessions).name,
        runs=tuple(runs),
        error=error,
    )


def model_choice(sessions: Sessions) -> ModelChoice:
    """The model that was set on the page, else that of the environment, else none."""
    if isinstance(sessions.blueprints.model, OpenAICompatibleLlm):
        return ModelChoice(sessions.blueprints.model.model, sessions.blueprints.model.address, set_here=True)
    if not os.environ.get("OPENAI_API_KEY"):
        return ModelChoice()
    return ModelChoice(
        os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL, os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
    )


def input_form(
    found: Scenario,
    lang: Language,
    posted: Mapping[str, str] | None = None,
    problems: Mapping[str, Problem] | None = None,
) -> Form:
    """The form of a scenario's input, with its default or with what was posted."""
    schema = found.input_schema or {}
    return form_for(
        schema,
        cast("JsonValue", found.default_input[lang]),
        prefix=INPUT,
        posted=posted,
        problems=problems,
    )


def source(entry: Entry | None, plan: Plan | None, node: str = "") -> Source | None:
    """A scenario's file, with the function of a node marked."""
    if entry is None or not entry.source:
        return None
    codes = {} if plan is None else codes_of(plan, str(entry.path))
    active = codes.get(node.partition("#")[0], range(0))
    return Source(
        entry.path.name,
        tuple(
            SourceLine(number, text, number in active)
            for number, text in enumerate(entry.source.splitlines(), 1)
        ),
        {key: lines.start for key, lines in codes.items()},
    )


def codes_of(plan: Plan, file: str) -> dict[str, range]:
    """The lines of the function behind each node, for those that a file defines."""
    found: dict[str, range] = {}
    for key, node in plan.nodes.items():
        code = getattr(getattr(node.body, "fn", None), "__code__", None)
        if isinstance(code, CodeType) and code.co_filename == file:
            last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
            found[key] = range(code.co_firstlineno, last + 1)
    return found


# Lists


def run_row(record: RunRecord, sessions: Sessions, lang: Language) -> RunRow:
    """A run in a list."""
    paused = record.state is RunState.SUSPENDED and not record.waiting
    mood = mood_of(record.state, driven=sessions.is_driven(record.run_id), paused=paused)
    return RunRow(
        run_id=record.run_id,
        scenario=record.scenario,
        title=title_of(sessions, record.scenario, lang),
        state=record.state,
        mood=mood,
        task=record.task,
        created=record.created,
        updated=record.updated,
        waiting=record.waiting,
        continues=record.continues,
        forked_from=ForkPoint(record.forked_from, 0) if record.forked_from else None,
    )


def title_of(sessions: Sessions, key: str, lang: Language) -> str:
    """The title of a scenario, or its key where the file is gone."""
    found = entry_of(sessions, key)
    return said(found.scenario.title, lang) if found and found.scenario else key


def entry_of(sessions: Sessions, key: str) -> Entry | None:
    """A scenario's file, if there is one."""
    try:
        return sessions.catalog.get(key)
    except NotFound:
        return None


async def run_list(
    sessions: Sessions, lang: Language, *, state: str, scenario: str, q: str, cursor: str
) -> RunList:
    """The list of runs, narrowed.

    Raises:
        Invalid: no such state, or a cursor that cannot be.
    """
    records, after = await sessions.find(
        state=state or None, scenario=scenario or None, text=q or None, limit=PAGE, cursor=cursor or None
    )
    scenarios = [entry.scenario for entry in sessions.catalog.entries() if entry.scenario]
    return RunList(
        runs=tuple(run_row(record, sessions, lang) for record in records),
        store=sessions.store.url,
        state=state,
        scenario=scenario,
        q=q,
        next=after,
        waiting=await waiting_count(sessions),
        scenarios=tuple((found.key, said(found.title, lang)) for found in scenarios),
    )


async def waiting_count(sessions: Sessions) -> int:
    """How many steps wait for a person, over the newest runs that are suspended."""
    records, _ = await sessions.find(state=RunState.SUSPENDED, limit=200)
    return sum(record.waiting for record in records)
