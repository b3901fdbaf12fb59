"""What the page of a run receives: the run as it stands, its open questions, and any moment of its past.

All of it is read off a `Story`; nothing here asks the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import cast

from playground.kernel import Event, Interrupt, JsonObject, JsonValue, LogError, RunState, root_of
from playground.kernel.types import NodeStatus
from playground.kernel.values import dict_in
from playground.runtime.scenario import Step, next_wave
from playground.sessions import Entry, Portrait, Sessions, portrait
from playground.sessions.answers import follows
from playground.web.forms import Form, Problem, form_for
from playground.web.graphmarks import template_of
from playground.web.graphview import Graph, Topology, graph, marks_json
from playground.web.i18n import Language, Translator
from playground.web.layerviews import layers_view
from playground.web.stops import beside_nodes, sentence, stops_of
from playground.web.story import Ask, Story
from playground.web.templating import bounded
from playground.web.timeline import ticks
from playground.web.viewmodels import (
    EventRow,
    Failure,
    Follows,
    ForkPoint,
    LessonStep,
    Metrics,
    Moment,
    Mood,
    NodeView,
    ParkedStep,
    RunView,
    StateRow,
    Write,
    mood_of,
)
from playground.web.views import entry_of, said, source
from playground.web.wavegrid import WaveGrid

_NO_GRAPH = graph(None)

STRETCH = 100
"""How many rows of the timeline a page begins with, and how many more it asks for at a time."""


EDITABLE = 2000
"""How many characters of a channel's JSON a person may be given to edit."""


def glance(story: Story, sessions: Sessions, lang: Language) -> RunView:
    """The run as it stands, without what takes long to draw: graph, grid and timeline are empty."""
    run, t = story.run, Translator(lang)
    key = str(story.meta.get("scenario", ""))
    entry = entry_of(sessions, key)
    return RunView(
        run_id=story.root,
        scenario=key,
        title=said(entry.scenario.title, lang) if entry and entry.scenario else key,
        state=run.state,
        mood=mood_now(story, sessions),
        driven=sessions.is_driven(story.root),
        task=run.task,
        waves=run.metrics["waves"],
        last_event_id=story.pos,
        created=story.events[0].ts,
        graph=_NO_GRAPH,
        grid=WaveGrid(),
        moment=Moment(story.pos, story.pos, run.wave.number, None),
        interrupts=tuple(parked_step(story, asked, lang) for asked in run.interrupts.values()),
        output=run.final_output if run.state is RunState.COMPLETED else None,
        error=failure(story, t),
        metrics=Metrics(
            waves=run.metrics["waves"],
            nodes=story.nodes,
            tokens=story.tokens,
            seconds=story.events[-1].ts - story.events[0].ts,
            model_calls=story.model_calls,
            tool_calls=story.tool_calls,
        ),
        parent_id=run.parent_id,
        children=tuple(run.children),
        continues=_text(story.meta.get("continues")),
        forked_from=_fork_point(story.meta),
        reason=readable_only(story, entry, t),
        spent=tuple(story.spent.values()),
        proof=story.proof,
        stops=stops_of(story, t),
        unproved=story.proved < story.pos and not sessions.is_driven(story.root),
    )


def run_view(story: Story, sessions: Sessions, lang: Language, at: int | None = None) -> RunView:
    """The page of a run, as it stands or as of position `at`.

    What other runs have to do with it, `chain` and `branches`, is left to whoever can search for them.
    """
    upto = story.pos if at is None else at
    return replace(
        around(at_moment(story, sessions, lang, upto), story, upto),
        decided=_decided_last(story, lang),
        graph=picture(story, upto),
        grid=story.book.grid(),
        tokens=tuple(story.calls.values()),
        ticks=ticks(story.rows),
        kinds=tuple(dict.fromkeys(event.kind for event in story.events)),
        names=names(story),
    )


def names(story: Story) -> tuple[str, ...]:
    """The keys of the nodes that a run has or may come to have, its plan's first."""
    planned = () if story.foreign else story.plan.nodes
    seen = chain.from_iterable(chapter.seen for chapter in story.drawn.chapters.values())
    return tuple(dict.fromkeys([*planned, *map(template_of, seen)]))


def around(run: RunView, story: Story, at: int) -> RunView:
    """The run with the rows of its timeline around position `at`."""
    first = max(1, min(at - STRETCH // 2, story.pos - STRETCH + 1))
    return stretch(run, story, first, first + STRETCH)


def stretch(run: RunView, story: Story, first: int, stop: int) -> RunView:
    """The run with the rows of its timeline from position `first` to before position `stop`."""
    rows = story.rows[first - 1 : stop - 1]
    return replace(
        run,
        events=tuple(rows),
        earlier=first - 1,
        later=story.pos - (first - 1 + len(rows)),
        base=base(story, first),
    )


def at_moment(story: Story, sessions: Sessions, lang: Language, at: int) -> RunView:
    """The run as it stands, and what the inspector says of it as of position `at`."""
    entry = entry_of(sessions, str(story.meta.get("scenario", "")))
    return replace(
        glance(story, sessions, lang),
        moment=moment_view(story, at),
        lesson=lesson(entry, story, lang),
        layers=layers_view(story.events, at) if story.layered else None,
    )


def beside_source(story: Story, sessions: Sessions, lang: Language, at: int) -> RunView:
    """The run as it stands, and its scenario's source with the node of position `at`."""
    entry, row = entry_of(sessions, str(story.meta.get("scenario", ""))), story.row(at)
    node = row.node or str(row.data.get("by", "")) if row else ""
    plan = None if story.foreign else story.plan
    return replace(glance(story, sessions, lang), source=source(entry, plan, node))


def mood_now(story: Story, sessions: Sessions) -> Mood:
    """How the run stands in the eyes of a person."""
    run = story.run
    kinds = {asked.kind for asked in run.interrupts.values()}
    reason = str(story.failed.data.get("code", "")) if story.failed else ""
    driven = sessions.is_driven(story.root)
    return mood_of(run.state, driven=driven, paused=kinds == {"breakpoint"}, reason=reason)


def picture(story: Story, at: int) -> Graph:
    """The graph of the run as of position `at`."""
    topology = None if story.foreign else cast("Topology", story.plan.topology())
    return graph(topology, story.drawn_at(at), children=story.children, stops=beside_nodes(story))


def base(story: Story, first: int) -> str:
    """The graph's marks just before position `first`, as JSON; nothing where there are none."""
    marks = story.marks_before(first)
    return marks_json(marks.values()) if marks else ""


def readable_only(story: Story, entry: Entry | None, t: Translator) -> str:
    """Why the run can be read and not gone on with; empty where it can."""
    if entry is None or entry.scenario is None:
        return str(t("run.scenario_gone", scenario=str(story.meta.get("scenario", "?"))))
    return str(t("run.scenario_changed")) if story.foreign else ""


def failure(story: Story, t: Translator) -> Failure | None:
    """Why the run failed, and the position before which a fork would go on."""
    event = story.failed
    if event is None:
        return None
    node, code = str(event.data.get("node", "")), str(event.data.get("code", ""))
    error, at = str(event.data.get("reason", "")), 0
    for earlier in reversed(story.events):
        if earlier.run_id != story.root or earlier.data.get("node") != node:
            continue
        if earlier.kind == "node_failed":
            error = str(earlier.data.get("error", error))
        if earlier.kind == "node_started":
            at = max(1, earlier.pos - 1)
            break
    way_out = f"failure.way_out.{code}"
    return Failure(error, node, code, str(t(way_out)) if way_out in t else "", at)


def any_step(
    story: Story,
    interrupt_id: str,
    lang: Language,
    *,
    posted: Mapping[str, str] | None = None,
    problems: Mapping[str, Problem] | None = None,
    error: str = "",
) -> ParkedStep | None:
    """The card of a question, open or decided; None if it never was asked.

    Args:
        posted: an answer that did not do, to be shown again beside its `problems` or its `error`.
    """
    asked = story.run.interrupts.get(interrupt_id)
    if asked is None:
        return decided_step(story, interrupt_id, lang)
    form = answer_form(asked, posted, problems)
    return replace(parked_step(story, asked, lang), form=form, error=error)


def parked_step(story: Story, asked: Interrupt, lang: Language) -> ParkedStep:
    """The card of a question that is open."""
    ask = story.asks.get(asked.id) or Ask(asked.id, story.root, asked.node_id, 0.0, "", 0)
    after = follows(Portrait(story.run, story.pos, story.plan), asked)
    t = Translator(lang)
    pause = asked.kind == "breakpoint"
    question = _pause(asked, t) if pause else asked.question
    if pause:
        after = {"approve": _object(asked.payload).get("next")}
    return ParkedStep(
        id=asked.id,
        run_id=story.root,
        node=ask.node,
        kind=asked.kind,
        question=question,
        payload=None if pause else asked.payload,
        since=ask.since,
        expires_at=asked.expires_at,
        default=asked.default,
        form=answer_form(asked),
        follows=Follows(_texts(after.get("approve")), _texts(after.get("reject"))),
        tool=ask.tool,
        again=ask.starts + 1,
    )


def _pause(asked: Interrupt, t: Translator) -> str:
    """What made a run pause, in words."""
    met = _object(asked.payload).get("breakpoint")
    if not isinstance(met, dict) or "every" in met:
        return str(t("parked.pause"))
    return t("parked.pause.at", place=sentence(t, met).striptags()).striptags()


def answer_form(
    asked: Interrupt,
    posted: Mapping[str, str] | None = None,
    problems: Mapping[str, Problem] | None = None,
) -> Form | None:
    """The form of an answer, made from the schema of the question; None where it has none."""
    if asked.schema is None:
        return None
    return form_for(asked.schema, asked.proposed, posted=posted, problems=problems)


def decided_step(story: Story, interrupt_id: str, lang: Language) -> ParkedStep | None:
    """The card of a question that was decided; None if it never was asked."""
    decision, ask = story.decisions.get(interrupt_id), story.asks.get(interrupt_id)
    if decision is None or ask is None:
        return None
    asked = next(
        event
        for event in reversed(story.events)
        if event.kind == "interrupted" and event.data["id"] == interrupt_id
    )
    question = Interrupt.from_json(asked.data)
    return replace(parked_step(story, question, lang), decision=decision, form=None)


def _decided_last(story: Story, lang: Language) -> tuple[ParkedStep, ...]:
    """The card of the latest decision, as a page that was open would still show it."""
    for interrupt_id in reversed(story.decisions):
        found = decided_step(story, interrupt_id, lang)
        if found is not None and found.kind != "breakpoint":
            return (found,)
    return ()


def lesson(entry: Entry | None, story: Story, lang: Language) -> tuple[LessonStep, ...]:
    """The lesson beside the run, each step with what the log has to say to it."""
    steps = entry.scenario.lesson if entry and entry.scenario else ()
    return tuple(_lesson_step(step, story, lang) for step in steps)


def _lesson_step(step: Step, story: Story, lang: Language) -> LessonStep:
    event, asked = step.anchor(story.events), step.predict
    text = said({"en": step.en, "zh": step.zh}, lang)
    if asked is None:
        seen = None if event is None and not story.run.state.ended else event is not None
        return LessonStep(text, step.node or "", event.pos if event else 0, passed=seen)
    ran = next_wave(story.events, event) if event else ()
    others = [key for key in story.plan.nodes if key not in asked.nodes]
    return LessonStep(
        text,
        step.node or "",
        event.pos if event else 0,
        question=said({"en": asked.en, "zh": asked.zh}, lang),
        options=tuple(sorted([*asked.nodes, *others[:3]])),
        answers=tuple(ran),
        passed=ran == asked.nodes if ran else None,
    )


# A moment


def moment_view(story: Story, at: int) -> Moment:
    """The run as of the event at `at`: that event, the state it left, and why its node ran or waits."""
    row = story.row(at)
    if row is None:
        return Moment(at, story.pos, 0, None)
    seen = as_of(story, row)
    wave = row.wave or seen.run.wave.number
    return Moment(at, story.pos, wave, row, state_rows(story, row, seen), node_view(row, seen))


def as_of(story: Story, row: EventRow, at: int | None = None) -> Portrait:
    """The run that an event belongs to, as it stood just after it, or at position `at`."""
    at = row.id if at is None else at
    if row.run_id != story.root or story.foreign:
        return portrait(None, story.events, row.run_id, at)
    return Portrait(story.run if at == story.pos else story.stood(at), at, story.plan)


def _update(channel: str, value: JsonValue) -> str:
    """A channel and its value as JSON to be edited by hand, if it is not too long for that."""
    text = bounded({channel: value}, EDITABLE)
    return text if len(text) <= EDITABLE else ""


def state_rows(story: Story, row: EventRow, seen: Portrait) -> tuple[StateRow, ...]:
    """Each channel at a moment; for those that the latest fold wrote to, from what and by whom."""
    fold = _latest_fold(story, row)
    before: Mapping[str, JsonValue] = {}
    writes: dict[str, tuple[Write, ...]] = {}
    if fold is not None:
        before = as_of(story, fold, fold.id - 1).run.shared
        writes = _writes(story, fold)
    channels = seen.plan.channels
    return tuple(
        StateRow(
            name,
            channels[name].name if name in channels else "last",
            value,
            before.get(name),
            writes.get(name, ()),
            _update(name, value) if row.run_id == story.root else "",
        )
        for name, value in seen.run.shared.items()
    )


def _latest_fold(story: Story, row: EventRow) -> EventRow | None:
    before = map(story.events.__getitem__, range(row.id - 1, -1, -1))
    folds = (event.pos for event in before if event.kind == "state_delta" and event.run_id == row.run_id)
    return story.row(next(folds, 0))


def _writes(story: Story, fold: EventRow) -> dict[str, tuple[Write, ...]]:
    """What each node of a wave wrote, by channel, in the order of the fold."""
    writers = dict_in(fold.data, "writers")
    returned: dict[str, Event] = {}
    for before in map(story.events.__getitem__, range(fold.id - 2, -1, -1)):
        if before.run_id == fold.run_id:
            if before.kind == "state_delta":
                break
            if before.kind == "node_completed" and before.data.get("wave") == fold.wave:
                returned.setdefault(str(before.data.get("node")), before)
    found: dict[str, tuple[Write, ...]] = {}
    for channel, nodes in writers.items():
        listed = []
        for node in nodes if isinstance(nodes, list) else []:
            event = returned.get(str(node))
            if event is not None:
                data: JsonObject = {**_object(event.data.get("reset")), **_object(event.data.get("delta"))}
                listed.append(Write(str(node), data.get(channel), event.pos))
        found[channel] = tuple(listed)
    return found


def node_view(row: EventRow, seen: Portrait) -> NodeView | None:
    """The node that an event speaks of, with why it ran, waits or was skipped."""
    key = row.node or str(row.data.get("by", ""))
    if not key or (key not in seen.run.node_states and key not in seen.plan.nodes):
        return None
    state = seen.run.state_of(key)
    try:
        why: JsonObject = seen.plan.explain(seen.run, key).to_json()
    except (KeyError, LogError, RuntimeError):
        why = {"code": "unknown"}
    if state.status is not NodeStatus.PENDING and isinstance(state.why, dict):
        why = state.why
    return NodeView(key, state.status, state.output, state.attempts, why, seen.run.run_id)


# Small readers


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _fork_point(meta: JsonObject) -> ForkPoint | None:
    forked = meta.get("forked_from")
    if not isinstance(forked, dict):
        return None
    at = forked.get("at")
    return ForkPoint(root_of(str(forked.get("run_id"))), at if isinstance(at, int) else 0)
