"""A finished run for whoever has none yet: the first page shows it at its most telling step.

It is played in memory, so nothing is in the store that nobody asked for.  Only
whoever wants to step through it gets it as a run of their own, to be scrubbed,
forked and decided otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from playground.kernel import Event, JsonValue
from playground.sessions import Entry, Sessions, played
from playground.web.graphview import Graph
from playground.web.i18n import Language
from playground.web.runviews import picture
from playground.web.story import Story
from playground.web.views import entry_of, said

_log = logging.getLogger(__name__)

KEY = "trader"
"""The scenario: an agent called by another one, a question, and two ways on."""

DECISIONS: dict[str, JsonValue] = {"approve": {"approved": True}}


@dataclass(frozen=True, slots=True)
class Sample:
    """A finished run.

    Attributes:
        title: of its scenario.
        events: its whole log.
        at: position of its most telling step: where it waits for a person.
        graph: the picture of that moment.
    """

    title: str
    events: Sequence[Event]
    at: int
    graph: Graph


class Samples:
    """The sample in each language, played once and again when its scenario changes.

    Args:
        sessions: whose catalog has the scenario, and whose store gets the sample that someone asks for.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._kept: dict[Language, tuple[Entry, Sample | None]] = {}

    async def get(self, lang: Language) -> Sample | None:
        """The sample; None where the scenario is gone or does not play to its end."""
        entry = entry_of(self._sessions, KEY)
        if entry is None or entry.scenario is None:
            return None
        kept = self._kept.get(lang)
        if kept is None or kept[0] is not entry:
            kept = self._kept[lang] = entry, await self._play(entry, lang)
        return kept[1]

    async def _play(self, entry: Entry, lang: Language) -> Sample | None:
        try:
            events = await played(self._sessions.catalog, KEY, None, DECISIONS, lang=lang)
        except Exception:  # noqa: BLE001 - a scenario is anyone's code, and the page is there without it
            _log.exception("scenario %r cannot be played as a sample; the first page does without it", KEY)
            return None
        asked = [event.pos for event in events if event.kind == "interrupted"]
        if not asked or events[-1].kind != "run_completed" or entry.scenario is None:
            return None
        root = events[0].run_id
        story = Story(root, self._sessions.blueprints.plan_of(events, root))
        story.take(events)
        return Sample(said(entry.scenario.title, lang), events, asked[0], picture(story, asked[0]))

    async def adopted(self, lang: Language) -> tuple[str, int] | None:
        """The sample as a run of the store, made when it is first asked for: its id, and its telling step."""
        sample = await self.get(lang)
        if sample is None:
            return None
        documents = self._sessions.store.documents
        known = await documents.get("samples", lang)
        if not isinstance(known, str) or await self._sessions.store.runs.get(known) is None:
            known = await self._sessions.adopt(sample.events)
            await documents.put("samples", lang, known)
        return known, sample.at
