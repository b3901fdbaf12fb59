"""The page of a run, live: rows as they come, and the regions that became stale, painted now and then.

Everyone who watches a run shares one story and one painting of each region in
each language.  Rows travel at once.  Regions such as the grid are painted anew
as a whole, so they wait a little for each other: a run that is busy is painted
now and then, a calm one at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import cast

from playground.kernel import Event
from playground.sessions import Entry, Sessions, Told
from playground.web import render, runviews, views
from playground.web.i18n import Language
from playground.web.story import Region, Story, questions
from playground.web.story import regions as regions_of
from playground.web.stream import END, Place, live_frame, message
from playground.web.viewmodels import EventRow

PAINT_PAUSE = 0.25
"""The least seconds between two paintings of a run's regions."""

ROWS = 1000
"""How many rendered rows the viewers of a run share, the latest ones."""

PAINT_SHARE = 0.05
"""How much of the time the painting of one run may take."""

KEPT = 40_000
"""How many events the stories may have together that are kept though nobody watches."""


class Watches:
    """The runs whose pages are open, each with what its viewers share."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._watches: dict[str, Watch] = {}
        self._told: dict[str, tuple[Story, Entry | None]] = {}

    async def story(self, root: str) -> Story:
        """The story of a run up to now: the one its viewers share, or else one of one's own.

        Raises:
            NotFound: no such run.
        """
        watch = self._watches.get(root)
        if watch is not None and watch.current():
            await watch.story.reach(self._sessions)
            watch.paint_soon()
            return watch.story
        first = await self._sessions.events(root, 0, 1)
        story = self._kept(root, first[0])
        if story is None:
            story = Story(root, self._sessions.blueprints.plan_of(first, root), staged=self._is_staged(first))
        await story.reach(self._sessions)
        self._keep(story)
        return story

    def _kept(self, root: str, first: Event) -> Story | None:
        """A story that was told before, if its run and its scenario's file are still the same."""
        story, entry = self._told.pop(root, (None, None))
        if story is None or story.events[0] != first or entry is not _entry_of(self._sessions, story):
            return None
        return story

    def _keep(self, story: Story) -> None:
        """Keep a story for whoever asks next, and let go of those that nobody asked for longest."""
        self._told.pop(story.root, None)
        self._told[story.root] = (story, _entry_of(self._sessions, story))
        while sum(len(kept.events) for kept, _ in self._told.values()) > KEPT:
            del self._told[next(iter(self._told))]

    def _is_staged(self, first: Sequence[Event]) -> bool:
        meta = first[0].data.get("meta")
        if not isinstance(meta, dict):
            return False
        return self._sessions.blueprints.is_staged(str(meta.get("scenario")), str(meta.get("lang", "en")))

    async def enter(self, root: str) -> Watch:
        """The watch over a run, for one more viewer, who calls `leave` afterwards.

        Raises:
            NotFound: no such run.
        """
        story = await self.story(root)
        watch = self._watches.get(root)
        if watch is None or not watch.current():
            watch = self._watches[root] = Watch(self._sessions, story)
        watch.viewers += 1
        return watch

    def leave(self, watch: Watch) -> None:
        """A viewer goes; the last one takes the story along."""
        watch.viewers -= 1
        if not watch.viewers:
            watch.close()
            if watch.current():
                self._keep(watch.story)
            if self._watches.get(watch.story.root) is watch:
                del self._watches[watch.story.root]


class Watch:
    """What the viewers of one run's page share: its story, and what of the page has become stale."""

    def __init__(self, sessions: Sessions, story: Story) -> None:
        self.story = story
        story.watched = True
        self.viewers = 0
        self._sessions = sessions
        self._entry = self._entry_now()
        self._speaking = dict(story.speaking)
        self._timer: asyncio.TimerHandle | None = None
        self._rested = 0.0
        self._ending: dict[Language, bytes] = {}
        self._rows: dict[tuple[Language, int], str] = {}

    def current(self) -> bool:
        """Whether the scenario's file is still the one that the story was begun with."""
        return self._entry is self._entry_now()

    def _entry_now(self) -> Entry | None:
        return _entry_of(self._sessions, self.story)

    def close(self) -> None:
        """Nobody watches any more."""
        self.story.watched = False
        self.story.stale.clear()
        self.story.changed.clear()
        if self._timer is not None:
            self._timer.cancel()

    async def hear(self, batch: Sequence[Told]) -> None:
        """Bring the story up to a batch that was heard live; the first viewer to hear it does so for all."""
        frames = batch[-1].frames
        if "heard" in frames:
            return
        frames["heard"] = b""
        self._attribute(batch)
        events = [told.event for told in batch if told.event is not None]
        if events and events[-1].pos > self.story.pos:
            await self.story.reach(self._sessions, events[0].pos - 1)
            self.story.take(events)
        if any(told.live is not None and told.live[0] == "rest" for told in batch):
            self.story.stale.add("status")
        self.paint_soon()

    async def read(self, batch: Sequence[Told]) -> None:
        """Bring the story up to what a viewer read from the log, which may be ahead of what was heard."""
        last = batch[-1].event
        if last is not None and last.pos > self.story.pos:
            await self.story.reach(self._sessions, last.pos)
            self.paint_soon()

    def _attribute(self, batch: Sequence[Told]) -> None:
        """Find for each piece of text the model call that it belongs to: the one open at that moment."""
        for told in batch:
            if told.event is not None:
                data, place = told.event.data, (told.event.run_id, str(told.event.data.get("node")))
                if told.event.kind == "model_called":
                    self._speaking[place] = str(data["call_id"])
                elif told.event.kind == "model_returned":
                    self._speaking.pop(place, None)
            elif told.live is not None and told.live[0] == "llm_delta":
                about = told.live[1]
                place = str(about.get("run_id")), str(about.get("node_id"))
                told.frames["call"] = self._speaking.get(place, "").encode()

    def paint_soon(self) -> None:
        """Have painted what is stale, as soon as the last painting is long enough ago."""
        if self.story.stale and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._rested - loop.time()), self._tell)

    def _tell(self) -> None:
        self._timer = None
        self._rested = asyncio.get_running_loop().time() + PAINT_PAUSE
        story = self.story
        about = {"regions": frozenset(story.stale), "cards": tuple(story.changed)}
        story.stale.clear()
        story.changed.clear()
        self._sessions.tell(story.root, "paint", about)

    def painted(self, stale: AbstractSet[Region], cards: Iterable[str], lang: Language) -> bytes:
        """Regions and cards as they are now: a message each, so that a page can spread them over frames."""
        clock, story = asyncio.get_running_loop().time, self.story
        begun = clock()
        run = runviews.glance(story, self._sessions, lang)
        if "graph" in stale:
            run = replace(run, graph=runviews.picture(story, story.pos))
        if "grid" in stale:
            run = replace(run, grid=story.book.grid())
        parts = [render.regions([name], run, lang) for name in render.REGIONS if name in stale]
        parts += [self._card(interrupt_id, lang) for interrupt_id in cards]
        self._rested = max(self._rested, begun + (clock() - begun) / PAINT_SHARE)
        return b"".join(message("", part) for part in parts if part)

    def row(self, row: EventRow, lang: Language) -> str:
        """A row of the timeline, rendered once for all who are shown it at about the same time."""
        made = self._rows.get((lang, row.id))
        if made is None:
            made = self._rows[lang, row.id] = render.row(row, lang)
            if len(self._rows) > ROWS:
                del self._rows[next(iter(self._rows))]
        return made

    def ending(self, lang: Language) -> bytes:
        """All regions of a run that has ended, painted once for everyone."""
        made = self._ending.get(lang)
        if made is None:
            made = self._ending[lang] = self.painted(frozenset(render.REGIONS), self.story.changed, lang)
        return made

    def _card(self, interrupt_id: str, lang: Language) -> str:
        asked = self.story.run.interrupts.get(interrupt_id)
        if asked is not None:
            return render.card(runviews.parked_step(self.story, asked, lang), lang)
        decided = runviews.decided_step(self.story, interrupt_id, lang)
        if decided is None or decided.kind == "breakpoint":
            return render.gone(interrupt_id)
        return render.card(decided, lang)


class PageTeller:
    """Tells a run as parts of its page, in one language."""

    def __init__(self, watch: Watch, lang: Language, place: Place) -> None:
        self._watch = watch
        self._lang = lang
        self._back = place.back
        self._owed: set[Region] = {"status"}
        self._owed_cards: dict[str, None] = {}

    @property
    def kind(self) -> tuple[Watch, Language]:
        return self._watch, self._lang

    async def live(self, batch: Sequence[Told]) -> bytes:
        """The items of a batch in order, with rows that follow each other in one message."""
        await self._watch.hear(batch)
        made: list[bytes] = []
        events: list[Event] = []
        for told in batch:
            if told.event is not None:
                events.append(told.event)
                continue
            made += [self._rows(events), self._frame(told)]
            events = []
        return b"".join([*made, self._rows(events)])

    async def stored(self, batch: Sequence[Told]) -> bytes:
        """Rows, and after them how many there were; the regions follow once the viewer is level."""
        await self._watch.read(batch)
        events = [told.event for told in batch if told.event is not None]
        for event in events:
            row = self._watch.story.row(event.pos)
            if row is not None:
                self._owed |= regions_of(row)
            self._owed_cards.update(dict.fromkeys(questions(event.kind, event.data)))
        made = self._rows(events)
        return made + message("caught-up", str(len(events))) if self._back else made

    def level(self) -> bytes:
        return self._paid(frozenset(self._owed)) if self._owed else b""

    def farewell(self) -> bytes:
        return self._paid(frozenset()) + self._watch.ending(self._lang) + END

    def _paid(self, regions: frozenset[Region]) -> bytes:
        """These regions, and the cards that this viewer is owed."""
        cards = tuple(self._owed_cards)
        self._owed.clear()
        self._owed_cards.clear()
        return self._watch.painted(regions, cards, self._lang)

    def _frame(self, told: Told) -> bytes:
        """What is only told live; a painting is made once for all, whatever batch it comes in."""
        name, about = told.live or ("", {})
        if name == "llm_delta":
            return _token(told.frames.get("call", b"").decode(), about)
        if name != "paint":
            return live_frame(told)
        made = told.frames.get("painted " + self._lang)
        if made is None:
            stale = cast("frozenset[Region]", about["regions"])
            cards = cast("tuple[str, ...]", about["cards"])
            made = told.frames["painted " + self._lang] = self._watch.painted(stale, cards, self._lang)
        return made

    def _rows(self, events: Sequence[Event]) -> bytes:
        """Rows of the timeline in one message that carries the last position, and before it their marks."""
        story = self._watch.story
        found = [row for event in events if (row := story.row(event.pos)) is not None]
        if not found:
            return b""
        marks = ",".join(row.graph[1:-1] for row in found if row.graph)
        before = message("graph", f"[{marks}]") if marks else b""
        html = render.rows("".join(self._watch.row(row, self._lang) for row in found))
        for row in found:
            if row.kind in ("model_called", "model_returned"):
                html += self._speech(row.kind, str(row.data.get("call_id")))
        return before + message("", html, found[-1].id)

    def _speech(self, kind: str, call_id: str) -> str:
        call = self._watch.story.calls.get(call_id)
        if call is None:
            return ""
        begun = kind == "model_called"
        return render.stream_begun(call, self._lang) if begun else render.stream_ended(call, self._lang)


def _entry_of(sessions: Sessions, story: Story) -> Entry | None:
    """The file of a story's scenario, as it is now."""
    return views.entry_of(sessions, str(story.meta.get("scenario", "")))


def _token(call_id: str, about: Mapping[str, object]) -> bytes:
    """A piece of what a model says, for the place of its call."""
    if not call_id:
        return b""
    said = {"call_id": call_id, "kind": about.get("kind"), "text": about.get("text")}
    return message("token", json.dumps(said, ensure_ascii=False))
