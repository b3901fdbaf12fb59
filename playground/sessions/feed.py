"""The feed of a run: what its viewers see, live, without holding it up.

Live is log + tail.  Every viewer has a cursor into one short ring of what was
just told, shared by all of them, so a viewer costs a number and not a queue.
One that is too slow falls off the ring; what it missed it reads from the log,
where nothing is ever missing.  What is not in the log, such as a token, is
simply gone for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from playground.kernel import Event, EventLog, root_of

CATCH_UP = 500
"""How many events a reader takes from the log at a time."""

RING = 1024
"""How many of the latest items a feed keeps for its viewers."""

REST = 0.003
"""Seconds that viewers are left alone after they were served; what comes meanwhile reaches them as one."""


@dataclass(slots=True, eq=False)
class Told:
    """One item of a feed: an event of the log, or something that is only told live.

    Attributes:
        event: the event; None for what is only live.
        live: name and data of what is only live.
        frames: what was made of it for all, by whoever renders it, under a key of theirs.
        stored: it was read from the log for one viewer, and not heard live by all.
    """

    event: Event | None = None
    live: tuple[str, Mapping[str, object]] | None = None
    frames: dict[str, bytes] = field(default_factory=dict)
    stored: bool = False


def ends_run(event: Event) -> bool:
    """Whether it is the last event of its tree: the end of the root run."""
    return event.kind in ("run_completed", "run_failed") and root_of(event.run_id) == event.run_id


def ends(batch: Sequence[Told]) -> bool:
    """Whether the last event among these items is the last of its tree."""
    for told in reversed(batch):
        if told.event is not None:
            return ends_run(told.event)
    return False


class Feed:
    """The latest items of one tree of runs.

    Who waits is woken at once after a quiet moment, and else `REST` seconds after
    all have had their turn: ten items that leave together cost little more than one.

    `first` and `next` are the numbers of the oldest item kept and of the one to come;
    `viewers` counts who follows it, so that it can be dropped after the last one.
    """

    def __init__(self, size: int = RING) -> None:
        self._items: deque[Told] = deque(maxlen=size)
        self._waiting: list[asyncio.Future[None]] = []
        self._waking: asyncio.TimerHandle | None = None
        self._served = 0.0
        self.next = 0
        self.viewers = 0
        self.closed = False

    @property
    def first(self) -> int:
        """Number of the oldest item that is kept."""
        return self.next - len(self._items)

    def push(self, told: Told) -> None:
        """Add an item, and see that who waits for one is woken."""
        self._items.append(told)
        self.next += 1
        if self._waiting and self._waking is None:
            loop = asyncio.get_running_loop()
            rest = self._served + REST - loop.time()
            if rest > 0:
                self._waking = loop.call_later(rest, self._wake)
            else:
                self._wake()

    def close(self) -> None:
        """Nothing more will come; wakes everyone."""
        self.closed = True
        self._wake()

    def since(self, number: int) -> Sequence[Told]:
        """The items from `number` on; those that the ring has lost are left out."""
        items, count = self._items, min(self.next - number, len(self._items))
        return [items[-back] for back in range(count, 0, -1)]

    async def wait(self, number: int) -> bool:
        """Wait for item `number`; False: the feed is closed, and it will not come."""
        while self.next <= number and not self.closed:
            told = asyncio.get_running_loop().create_future()
            self._waiting.append(told)
            await told
        return self.next > number

    def _wake(self) -> None:
        self._waking = None
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            if not told.done():
                told.set_result(None)
        if waiting:  # whoever was woken runs before what is called next
            loop = asyncio.get_running_loop()
            loop.call_soon(self._rest, loop)

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        self._served = loop.time()


class Cursor:
    """A viewer's place in a run: the last event that it has, and the next item of the feed.

    Attributes:
        position: of that event; 0 for none.
        number: of that item.
        behind: whether the viewer must read from the log before it can go on with the feed.
    """

    def __init__(self, feed: Feed, position: int) -> None:
        self._feed = feed
        self.position = position
        self.number = feed.next
        self.behind = True

    def read(self, events: Sequence[Event]) -> Sequence[Told]:
        """Take up the events that the log has after `position`; none of them: the feed goes on from here."""
        if events:
            self.position = events[-1].pos
        else:
            self.behind = False
        return [Told(event, stored=True) for event in events]

    def hear(self) -> Sequence[Told]:
        """What the feed has told since, up to where an event is missing: the viewer is behind then."""
        if self.number < self._feed.first:
            self._fall_behind()
            return [Told(live=("lagging", {"after": self.position}))]
        told = self._feed.since(self.number)
        self.number += len(told)
        fresh: list[Told] = []
        for item in told:
            if item.event is not None:
                if item.event.pos <= self.position:
                    continue
                if item.event.pos != self.position + 1:
                    self._fall_behind()
                    break
                self.position = item.event.pos
            fresh.append(item)
        return fresh

    @property
    def level(self) -> bool:
        """Whether the viewer has all that was told so far."""
        return not self.behind and self.number == self._feed.next

    def twin(self) -> Cursor:
        """A cursor at the same place, for one who goes on from here alone."""
        twin = Cursor(self._feed, self.position)
        twin.number, twin.behind = self.number, self.behind
        return twin

    def _fall_behind(self) -> None:
        self.number = self._feed.next
        self.behind = True


class Follower:
    """A reader's way through a run: first what the log has, then live, in batches.

    Nothing of the log is missed or told twice, however slow the reader is; when it
    was too slow for the live feed, an item `lagging` comes before the rest is read
    from the log.

    Args:
        feed: of the run's tree.
        log: where the tree's events are.
        root: id of the root run.
        cursor: where to begin.

    Attributes:
        ended: the last event of the run has been read.
        over: that, or the feed was closed: nothing more will come.
    """

    def __init__(self, feed: Feed, log: EventLog, root: str, cursor: Cursor, *, ended: bool = False) -> None:
        self._feed = feed
        self._log = log
        self._root = root
        self.cursor = cursor
        self.ended = self.over = ended

    def twin(self) -> Follower:
        """A follower at the same place, for one who goes on from here alone."""
        twin = Follower(self._feed, self._log, self._root, self.cursor.twin(), ended=self.ended)
        twin.over = self.over
        return twin

    async def read(self) -> Sequence[Told]:
        """What follows; empty: nothing yet, or `over`.  Waits only where the cursor is level."""
        cursor = self.cursor
        if cursor.behind:
            await asyncio.sleep(0)  # a long log must not keep everyone else from being served
            batch = cursor.read(await self._log.stream(self._root, cursor.position, CATCH_UP))
        elif await self._feed.wait(cursor.number):
            batch = cursor.hear()
        else:
            batch, self.over = (), True
        if ends(batch):
            self.ended = self.over = True
        return batch


class Feeds:
    """The feeds of all trees of runs that someone watches.

    Args:
        log: where the events are that a reader must catch up with.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._feeds: dict[str, Feed] = {}

    def push(self, run_id: str, told: Told) -> None:
        """Tell it to whoever watches the tree of this run."""
        feed = self._feeds.get(root_of(run_id))
        if feed is not None:
            feed.push(told)

    @contextmanager
    def following(self, root: str, after: int, *, ended: bool) -> Iterator[Follower]:
        """A way through what happens in a tree after a position; `ended` says that nothing will."""
        feed = self._feeds.setdefault(root, Feed())
        feed.viewers += 1
        try:
            yield Follower(feed, self._log, root, Cursor(feed, after), ended=ended)
        finally:
            feed.viewers -= 1
            if not feed.viewers and self._feeds.get(root) is feed:
                del self._feeds[root]

    def watched(self) -> list[str]:
        """The root runs that someone follows."""
        return list(self._feeds)

    def drop(self, root: str) -> None:
        """End the feed of a run that is no more."""
        feed = self._feeds.pop(root, None)
        if feed is not None:
            feed.close()

    def close(self) -> None:
        """End all feeds."""
        for feed in self._feeds.values():
            feed.close()
