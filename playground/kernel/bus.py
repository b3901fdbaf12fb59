"""The bus: the kernel's one seam to whoever watches, judges or contributes.

Three protocols for callbacks:

- `fire` tells observers; an observer that breaks is reported and never disturbs the run.
- `check` asks checkers; one veto blocks, and a checker that breaks counts as a veto (fail-closed).
- `collect` gathers what providers contribute; one that breaks is reported and contributes nothing.

And one for streams: `subscribe` gives a bounded queue.  When it is full, the
policy "block" makes the producer wait, so the pressure reaches whoever produces;
"drop" never waits and counts what it dropped.  With nobody listening a `fire`
costs next to nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

Handler: TypeAlias = Callable[..., object]
Item: TypeAlias = Mapping[str, object]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BlockingResult:
    """A verdict: whether to go on, and if not, why."""

    allowed: bool
    reason: str = ""


class Subscription:
    """A bounded stream of what is fired: `get()` one item, or iterate with `async for`.

    An item is a read-only dict that all who subscribed share: `event`, the name that was fired, and the data
    fired with it.
    Closing it releases a producer that waits for room and ends a reader that waits
    for an item; what it still holds can be read.
    """

    def __init__(
        self, bus: Bus, kinds: tuple[str, ...], maxsize: int, on_full: Literal["block", "drop"]
    ) -> None:
        self.kinds = frozenset(kinds)
        self.maxsize = maxsize
        self.on_full = on_full
        self.dropped = 0
        self.closed = False
        self._bus = bus
        self._items: deque[Item] = deque()
        self._readers: deque[asyncio.Future[None]] = deque()
        self._producers: deque[tuple[asyncio.Future[None], Item]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def wants(self, event: str) -> bool:
        """Whether it takes this event; without kinds it takes all."""
        return not self.closed and (not self.kinds or event in self.kinds)

    @property
    def full(self) -> bool:
        """Whether there is no room left."""
        return 0 < self.maxsize <= len(self._items)

    def offer(self, item: Item) -> bool:
        """Take an item if there is room, or drop it if that is the policy; False: the producer must wait."""
        if self.full:
            if self.on_full == "block":
                return False
            self.dropped += 1
            return True
        self._items.append(item)
        wake_first(self._readers)
        return True

    async def deliver(self, item: Item) -> None:
        """Wait for room for an item, in line with other producers, as long as the subscription is open."""
        taken = asyncio.get_running_loop().create_future()
        self._producers.append((taken, item))
        await taken

    async def get(self) -> Item:
        """The next item, waiting for one.

        Raises:
            StopAsyncIteration: the subscription is closed and holds nothing more.
        """
        while not self._items:
            if self.closed:
                raise StopAsyncIteration
            await wait_in(self._readers)
        item = self._items.popleft()
        while self._producers and not self.full:  # whoever waited longest, before anyone who comes now
            taken, waiting = self._producers.popleft()
            if not taken.done():
                taken.set_result(None)
                self._items.append(waiting)
        return item

    def __aiter__(self) -> Subscription:
        return self

    __anext__ = get

    def close(self) -> None:
        """Take no more; wakes everyone who waits on it."""
        self.closed = True
        self._bus.unsubscribe(self)
        while self._readers:
            wake_first(self._readers)
        while self._producers:
            taken, _ = self._producers.popleft()
            if not taken.done():
                taken.set_result(None)


async def wait_in(waiters: deque[asyncio.Future[None]]) -> None:
    """Wait in a queue to be woken; who is cancelled once woken wakes the next."""
    future = asyncio.get_running_loop().create_future()
    waiters.append(future)
    try:
        await future
    except asyncio.CancelledError:
        if future.done() and not future.cancelled():
            wake_first(waiters)
        raise


def wake_first(waiters: deque[asyncio.Future[None]]) -> None:
    """Wake whoever has waited longest, if anyone still does."""
    while waiters:
        future = waiters.popleft()
        if not future.done():
            future.set_result(None)
            return


class Bus:
    """Observers, checkers, providers and subscriptions, by name."""

    def __init__(self) -> None:
        self._observers: dict[str, tuple[Handler, ...]] = {}
        self._checkers: dict[str, tuple[Handler, ...]] = {}
        self._providers: dict[str, tuple[Handler, ...]] = {}
        self._subscriptions: tuple[Subscription, ...] = ()

    def on(self, event: str, handler: Handler) -> Callable[[], None]:
        """Call `handler(**data)` whenever `event` is fired; returns a function that undoes it."""
        return _register(self._observers, event, handler)

    def checker(self, gate: str, handler: Handler) -> Callable[[], None]:
        """Ask `handler(**data)` at a gate: False or a `BlockingResult` may block; returns its undoing."""
        return _register(self._checkers, gate, handler)

    def provider(self, point: str, handler: Handler) -> Callable[[], None]:
        """Let `handler(**data)` contribute at a point; returns a function that undoes it."""
        return _register(self._providers, point, handler)

    def has_checker(self, gate: str) -> bool:
        """Whether anyone judges at this gate."""
        return bool(self._checkers.get(gate))

    def has_provider(self, point: str) -> bool:
        """Whether anyone contributes at this point."""
        return bool(self._providers.get(point))

    @property
    def heard(self) -> bool:
        """Whether anyone observes or subscribes to anything."""
        return bool(self._observers or self._subscriptions)

    def subscribe(
        self, *kinds: str, maxsize: int = 0, on_full: Literal["block", "drop"] = "block"
    ) -> Subscription:
        """A stream of the events of these kinds, or of all.

        Args:
            maxsize: how many items it holds; 0: without bound.
            on_full: whether the producer waits or the item is dropped and counted.
        """
        if on_full not in ("block", "drop"):
            raise ValueError(f"on_full must be 'block' or 'drop', not {on_full!r}")
        subscription = Subscription(self, kinds, maxsize, on_full)
        self._subscriptions = (*self._subscriptions, subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Deliver nothing more to a subscription; `Subscription.close` calls this."""
        self._subscriptions = tuple(kept for kept in self._subscriptions if kept is not subscription)

    async def fire(self, event: str, **data: object) -> None:
        """Tell observers and subscribers, in order; waits only for a full queue of policy "block"."""
        for handler in self._observers.get(event, ()):
            try:
                await _call(handler, data)
            except Exception:  # noqa: BLE001 - an observer may raise anything
                _log.exception("an observer of %r failed; the run goes on", event)
        if not self._subscriptions:
            return
        item = MappingProxyType({"event": event, **data})
        for subscription in self._subscriptions:
            if subscription.wants(event) and not subscription.offer(item):
                await subscription.deliver(item)

    async def check(self, gate: str, **data: object) -> BlockingResult:
        """Ask the checkers of a gate in turn; the first veto, or the first that breaks, blocks."""
        for handler in self._checkers.get(gate, ()):
            try:
                verdict = await _call(handler, data)
            except Exception as error:  # noqa: BLE001 - so may a checker
                _log.exception("a checker of %r failed, which blocks", gate)
                return BlockingResult(False, f"checker error: {type(error).__name__}: {error}")
            if isinstance(verdict, BlockingResult):
                if not verdict.allowed:
                    return verdict
            elif verdict is False:
                return BlockingResult(False, f"vetoed by {gate}")
        return BlockingResult(True)

    async def collect(self, point: str, **data: object) -> list[object]:
        """What the providers of a point contribute, in order, without None."""
        found = []
        for handler in self._providers.get(point, ()):
            try:
                value = await _call(handler, data)
            except Exception:  # noqa: BLE001 - so may a provider
                _log.exception("a provider of %r failed and contributes nothing", point)
                continue
            if value is not None:
                found.append(value)
        return found


def _register(table: dict[str, tuple[Handler, ...]], name: str, handler: Handler) -> Callable[[], None]:
    mine = partial(handler)  # another than the same handler's that is registered once more
    table[name] = (*table.get(name, ()), mine)

    def undo() -> None:
        kept = tuple(other for other in table.get(name, ()) if other is not mine)
        if kept:
            table[name] = kept
        else:
            table.pop(name, None)

    return undo


async def _call(handler: Handler, data: dict[str, object]) -> object:
    result = handler(**data)
    return await result if inspect.isawaitable(result) else result
