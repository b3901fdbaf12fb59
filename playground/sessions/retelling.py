"""A run kept as a test: its script and its decisions are played again, and have to lead the same way.

Two runs of one scenario differ in ids, in times, and in which of two parallel
nodes was quicker.  What is left when that is taken away is what a change of the
scenario or of the engine must not touch unseen: who ran in which wave and why,
what each of them did, what was asked, and how it was decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat

from playground import assets
from playground.backends import open_store
from playground.kernel import Event, JsonObject, JsonValue, root_of
from playground.kernel.run import BREAKPOINT
from playground.kernel.values import dict_in, list_in, text_in, thaw
from playground.sessions.answers import Answer
from playground.sessions.catalog import Catalog
from playground.sessions.errors import Conflict
from playground.sessions.portrait import portrait
from playground.sessions.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Retelling:
    """How a run went.

    Attributes:
        story: a line for each node in each wave, with what it did; see `story`.
        output: what came of it: its output, why it failed, or the ids of the questions that it waits for.
    """

    story: list[str]
    output: JsonValue


async def retold(
    key: str,
    given: JsonValue,
    decisions: Mapping[str, JsonValue],
    *,
    lang: str = "en",
    scenarios: Iterable[str | Path] = (),
) -> Retelling:
    """Run a scenario from its input to its end, with decisions that were made before.

    Args:
        decisions: the answers, by interrupt id; where one is missing the story ends.
        scenarios: folders or files with scenarios of one's own.

    Raises:
        NotFound, Conflict, Invalid: as `Sessions.start` and `Sessions.answer` do.
    """
    catalog = Catalog([*map(Path, scenarios), assets.path("scenarios")])
    events = await played(catalog, key, given, decisions, lang=lang)
    open_steps = portrait(None, events, events[0].run_id).run.interrupts
    return Retelling(story(events), _output(events, open_steps))


async def played(
    catalog: Catalog, key: str, given: JsonValue, decisions: Mapping[str, JsonValue], *, lang: str = "en"
) -> list[Event]:
    """All events of a run that is played in memory, at once and for nobody to watch.

    Args:
        given: its input; None for the scenario's default.
        decisions: the answers, by interrupt id; the run rests where one is missing.

    Raises:
        NotFound, Conflict, Invalid: as `Sessions.start` and `Sessions.answer` do.
    """
    sessions = Sessions(open_store("memory:"), catalog)
    await sessions.open()
    try:
        run_id = await sessions.start(key, given, lang=lang)
        while True:
            events = [event async for event in sessions.until_rest(run_id)]
            open_steps = portrait(None, events, run_id).run.interrupts
            answers = {id: Answer.of(decisions[id]) for id in open_steps if id in decisions}
            if not answers:
                return events
            await sessions.answer(run_id, answers, via="script")
    finally:
        await sessions.close()


def story(events: Sequence[Event]) -> list[str]:
    """What happened in a tree of runs, without what two equal runs may differ in.

    A line is `RUN WAVE NODE: facts`; RUN is empty for the root run and `~1` and so on for the runs in it.
    """
    lines: dict[tuple[str, int, str], list[str]] = {}
    for event in events:
        run = event.run_id.removeprefix(root_of(event.run_id))
        wave, told = event.data.get("wave"), _fact(event)
        if told:
            place = (run, wave if isinstance(wave, int) else 0, _subject(event))
            lines.setdefault(place, []).append(told)
    told_by_wave = sorted(lines.items(), key=lambda item: item[0][:2])
    return [
        f"{run} {wave} {subject}: {', '.join(facts)}".lstrip() for (run, wave, subject), facts in told_by_wave
    ]


def _subject(event: Event) -> str:
    return str(event.data.get("node") or event.data.get("by") or "run")


def _fact(event: Event) -> str:
    """What an event says to a story; empty: nothing."""
    data = event.data
    match event.kind:
        case "node_started":
            why = dict_in(data, "why")
            code, nodes = text_in(why, "code"), " ".join(map(str, list_in(why, "nodes")))
            return "" if code == "recovered" else f"started ({code} {nodes})".replace(" )", ")")
        case "node_completed":
            return "returned"
        case "node_failed":
            return "failed"
        case "node_retry":
            return "tried again"
        case "node_skipped":
            return f"skipped ({text_in(dict_in(data, 'why'), 'code')})"
        case "state_delta":
            return f"wrote {' '.join(sorted({*dict_in(data, 'delta'), *dict_in(data, 'reset')}))}"
        case "control":
            return f"goto {data['goto']}" if "goto" in data else f"send {data['key']}"
        case "delegated" | "tool_called":
            return f"called {data['name']}"
        case "model_called":
            return "asked the model"
        case "interrupted":
            return "" if _pauses(event) else f"asked {data['id']}"
        case "resumed":
            return "" if _pauses(event) else f"{data['outcome']} {data['id']}"
        case "run_completed":
            return "completed"
        case "run_failed":
            return f"failed ({data['code']})"
    return ""


def _pauses(event: Event) -> bool:
    return BREAKPOINT in text_in(event.data, "id")


def _output(events: Sequence[Event], open_steps: Iterable[str]) -> JsonValue:
    last = events[-1]
    if last.kind == "run_completed":
        return thaw(last.data["output"])
    if last.kind == "run_failed":
        return text_in(last.data, "reason")
    waits: list[JsonValue] = [*sorted(open_steps)]
    return waits


async def saved_test(sessions: Sessions, run_id: str) -> str:
    """The source of a test that plays a run again, with the file of its scenario where that is one's own.

    Raises:
        NotFound: no such run, or its scenario is gone.
        Conflict: it cannot be played again, see `as_test`.
    """
    events = await sessions.events(root_of(run_id))
    entry = sessions.catalog.get(str(dict_in(events[0].data, "meta").get("scenario")))
    bundled = entry.path.is_relative_to(assets.path("scenarios"))
    return as_test(events, [] if bundled else [entry.path])


def as_test(events: Sequence[Event], scenarios: Iterable[str | Path] = ()) -> str:
    """The source of a test that plays a run again and holds it to its story.

    Args:
        events: of the whole tree.
        scenarios: where the scenario is, if it is none of the bundled ones.

    Raises:
        Conflict: what happened in the run cannot be played again from its input and its decisions.
    """
    first, last = events[0], events[-1]
    meta, decisions = dict_in(first.data, "meta"), _decisions(events)
    if "continues" in meta:
        raise Conflict(f"run {first.run_id} goes on from another one: a test begins at a beginning")
    if any(event.kind == "forked" and event.data.get("updates") for event in events):
        raise Conflict(f"run {first.run_id} was forked with edited state: save the run that it came from")
    if last.kind == "run_failed" and last.data["code"] == "cancelled":
        raise Conflict(f"run {first.run_id} was cancelled: a test cannot know when")
    open_steps = [] if last.kind in ("run_completed", "run_failed") else list_in(last.data, "interrupts")
    if last.kind not in ("run_completed", "run_failed", "run_suspended"):
        raise Conflict(f"run {first.run_id} is going on: save it when it has come to rest")
    return _SOURCE.format(
        run_id=first.run_id,
        scenario=meta.get("scenario"),
        scenarios=[str(place) for place in scenarios],
        input=pformat(thaw(meta.get("input")), width=100),
        lang=str(meta.get("lang", "en")),
        decisions=pformat(decisions, width=100, sort_dicts=False),
        story=_listed(story(events)),
        output=pformat(_output(events, map(str, open_steps)), width=100, sort_dicts=False),
    )


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(["[", *(f"    {line!r}," for line in lines), "]"])


def _decisions(events: Sequence[Event]) -> JsonObject:
    """The answers that people gave, by interrupt id."""
    root, found = events[0].run_id, JsonObject()
    for event in events:
        if event.kind == "resumed" and event.run_id == root and not _pauses(event):
            if event.data["outcome"] == "expired":
                raise Conflict(f"{event.data['id']} expired in run {root}: a test cannot wait for that")
            found[text_in(event.data, "id")] = thaw(event.data["value"])
    return found


_SOURCE = '''"""Run {run_id} of scenario {scenario}: what changes the way it goes is seen here first."""

import asyncio

from playground.testing import retold

SCENARIO = {scenario!r}
SCENARIOS = {scenarios}
INPUT = {input}
DECISIONS = {decisions}

STORY = {story}
OUTPUT = {output}


def test_the_run_goes_as_it_went():
    told = asyncio.run(retold(SCENARIO, INPUT, DECISIONS, lang={lang!r}, scenarios=SCENARIOS))

    assert told.story == STORY
    assert told.output == OUTPUT
'''
