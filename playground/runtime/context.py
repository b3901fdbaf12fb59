"""Context: what of a long conversation the model is shown.

The history in a run's state only grows, and a model's window does not.  So
what is sent is not the history but a *projection* of it, made afresh before
every call, by a strategy that can be exchanged: `WindowContext` shows the end,
`SummarizingContext` a summary and the end, and `TieredCompactionContext` does
as little as will do, in five levels.

Whatever is cut, these laws hold for what the model gets:

- system messages come first, each of them once;
- a tool call and its results stay together, see `playground.runtime.messages`;
- the last user message is there and still is the last one: it is the task;
- at most one message tells of what is not shown, see `playground.runtime.compaction`.

A strategy keeps nothing that matters: its answer follows from the history and
from summaries that are filed by what they cover.  A summariser that fails,
hangs or talks garbage costs detail, never the turn: the mechanical levels need
no model, and the `Assembly` says what went wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol, Self, runtime_checkable

from playground.kernel.ports import LlmPort, Message
from playground.kernel.values import JsonObject
from playground.runtime.compaction import (
    Background,
    CompressionLevel,
    Cut,
    Documents,
    History,
    Summaries,
    SummaryFailed,
)
from playground.runtime.messages import MESSAGES, Block, Measure, blocks, clipped, paired, text_of

__all__ = [
    "Assembly",
    "CompressionLevel",
    "ContextStrategy",
    "ReportingStrategy",
    "SummarizingContext",
    "TieredCompactionContext",
    "WindowContext",
    "assembly_of",
]


@dataclass(frozen=True, slots=True)
class Assembly:
    """What is sent to the model, and what was done to get there.

    Attributes:
        messages: the messages to send, in order.
        level: how much was done.
        before: the size of the history, in `unit`.
        after: the size of `messages`.
        unit: what sizes count, "messages" or "tokens".
        hidden: how many messages of the history are not shown.
        problem: what went wrong on the way, such as a failed summary; empty if nothing did.
    """

    messages: list[Message]
    level: CompressionLevel = CompressionLevel.NONE
    before: int = 0
    after: int = 0
    unit: str = MESSAGES.unit
    hidden: int = 0
    problem: str = ""

    def facts(self) -> JsonObject:
        """All but the messages, as the data of an event."""
        return {
            "level": int(self.level),
            "name": self.level.name.lower(),
            "before": self.before,
            "after": self.after,
            "unit": self.unit,
            "hidden": self.hidden,
            "problem": self.problem,
        }


class ContextStrategy(Protocol):
    """Chooses what the model is shown."""

    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        """What to send in place of `messages`, which are left as they are."""
        ...


@runtime_checkable
class ReportingStrategy(Protocol):
    """A strategy that also tells what it did; those of this file do."""

    async def compact(self, messages: Sequence[Message]) -> Assembly:
        """What `assemble` gives, with level and saving."""
        ...


async def assembly_of(strategy: ContextStrategy | None, messages: Sequence[Message]) -> Assembly:
    """What to send for `messages`, by any strategy or by none: the one door for recipes.

    Loose ends are mended in any case, so that a foreign strategy may cut where it likes.
    """
    if isinstance(strategy, ReportingStrategy):
        return await strategy.compact(messages)
    chosen = paired(messages if strategy is None else await strategy.assemble(messages))
    hidden = max(0, len(messages) - len(chosen))
    level = CompressionLevel.TOOL_COMPRESS if hidden else CompressionLevel.NONE
    return Assembly(chosen, level, len(messages), len(chosen), hidden=hidden)


class WindowContext:
    """Shows the opening request, the task, and the end of the conversation.

    Args:
        keep_last: how many messages of the end are shown: fewer where the cut would part a tool call from
            its results, more where the last such group alone is larger.
    """

    def __init__(self, keep_last: int = 8) -> None:
        self._keep_last = keep_last

    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        return (await self.compact(messages)).messages

    async def compact(self, messages: Sequence[Message]) -> Assembly:
        """What `assemble` gives, with level and saving."""
        canvas = _Canvas.of(messages, MESSAGES, pin_opening=True)
        cut = canvas.history.uncut
        if len(messages) > self._keep_last + 1:
            cut = replace(cut, start=canvas.tail_start(self._keep_last))
        level = CompressionLevel.TOOL_COMPRESS if cut.start else CompressionLevel.NONE
        return canvas.assembly(cut, level)


class SummarizingContext:
    """Shows a summary of the older messages, the task, and the end of the conversation.

    Args:
        llm: makes the summaries.
        max_messages: up to how many messages are shown as they are.
        keep_last: how many messages of the end are shown once there is a summary.
        documents: where summaries are kept for other processes; without it they live with this object.
        summary_chars: how long a summary may be; a longer one is shortened.
        timeout: seconds that a summary may take.
    """

    def __init__(
        self,
        llm: LlmPort,
        max_messages: int = 10,
        keep_last: int = 4,
        *,
        documents: Documents | None = None,
        summary_chars: int = 1_200,
        timeout: float = 60.0,
    ) -> None:
        self._max_messages = max_messages
        self._keep_last = keep_last
        self._summaries = Summaries(llm, documents, summary_chars, timeout)

    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        return (await self.compact(messages)).messages

    async def compact(self, messages: Sequence[Message]) -> Assembly:
        """What `assemble` gives, with level and saving."""
        canvas = _Canvas.of(messages, MESSAGES)
        if canvas.size(canvas.history.uncut) <= self._max_messages:
            return canvas.assembly(canvas.history.uncut)
        cut = await self._summaries.known(canvas.history) or canvas.history.uncut
        start = canvas.tail_start(self._keep_last, low=cut.start)
        if canvas.size(cut) <= self._max_messages or start == cut.start:
            return canvas.assembly(cut, cut.level)
        level = CompressionLevel.HISTORY_SUMMARY
        try:
            cut = await self._summaries.extended(canvas.history, cut, start, level)
        except SummaryFailed as failure:
            level = CompressionLevel.TOOL_COMPRESS
            return canvas.assembly(canvas.leaving_out(cut, start, level), level, str(failure))
        return canvas.assembly(cut, level)

    def kept_in(self, documents: Documents) -> Self:
        """The same strategy, with its summaries kept in `documents`."""
        other = copy(self)
        other._summaries = self._summaries.kept_in(documents)
        return other


class TieredCompactionContext:
    """Does as little as will do to make a conversation fit, in five levels.

    While it fits, it is sent as it is.  Then tool results are shortened.  If that is not enough, up to one
    and a half times the window the oldest messages are left out; up to two and a half, a summary stands for
    them; up to four, a summary by topics that stands for more; beyond, only the end is kept.  Once there is a
    summary it is extended as the conversation grows, by one model call for each half a window.

    Args:
        summarizer: makes the summaries, by one call each.
        capacity: the window, in the unit of `measure`; leave room beside it for system prompt and reply.
        measure: what the window counts: `MESSAGES`, `TOKENS`, or `tokens_by` your tokenizer.
        documents: where summaries are kept for other processes; without it they live with this object.
        summary_chars: how long a summary may be, in a window of tokens a quarter of it at most; a longer one
            is shortened.
        timeout: seconds that a summary may take.

    Attributes:
        last_level: the level of the latest assembly, to look at from outside; nothing depends on it.
    """

    def __init__(
        self,
        summarizer: LlmPort,
        *,
        capacity: int = 12,
        measure: Measure = MESSAGES,
        documents: Documents | None = None,
        summary_chars: int = 1_200,
        timeout: float = 60.0,
    ) -> None:
        if capacity < 1:
            raise ValueError(
                f"a window of {capacity} {measure.unit} holds nothing: give a capacity of 1 or more"
            )
        self.last_level = CompressionLevel.NONE
        self._capacity = capacity
        self._measure = measure
        if measure is MESSAGES:
            self._summaries = Summaries(summarizer, documents, summary_chars, timeout)
        else:
            chars = max(80, min(summary_chars, capacity // 4))
            self._summaries = Summaries(summarizer, documents, chars, timeout, reading=max(4_000, capacity))

    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        return (await self.compact(messages)).messages

    async def compact(self, messages: Sequence[Message]) -> Assembly:
        """What `assemble` gives, with level and saving."""
        assembly = await self._compact(_Canvas.of(messages, self._measure))
        self.last_level = assembly.level
        return assembly

    def kept_in(self, documents: Documents) -> Self:
        """The same strategy, with its summaries kept in `documents`."""
        other = copy(self)
        other._summaries = self._summaries.kept_in(documents)
        return other

    async def _compact(self, full: _Canvas) -> Assembly:
        capacity, problem = self._capacity, ""
        if full.size(full.history.uncut) <= capacity:
            return full.assembly(full.history.uncut)
        cut = await self._summaries.known(full.history) or full.history.uncut
        short = full.with_short_results(cut.start, capacity)
        if min(full.size(cut), short.size(cut)) > capacity:
            cut, problem = await self._cut_further(short, cut)
        if full.size(cut) <= capacity:
            return full.assembly(cut, cut.level, problem)
        level = max(cut.level, CompressionLevel.TOOL_COMPRESS)
        return _squeezed(short.assembly(cut, level, problem), self._measure, capacity)

    async def _cut_further(self, canvas: _Canvas, cut: Cut) -> tuple[Cut, str]:
        """A cut under which less is shown, and what went wrong in making it."""
        capacity, over = self._capacity, canvas.size(cut) / self._capacity
        if over >= _TOO_MUCH_TO_SUMMARISE:
            start = canvas.start_beside_note(capacity // 2, cut)
            emergency = canvas.leaving_out(cut, start, CompressionLevel.EMERGENCY)
            if emergency != cut:
                await self._summaries.keep(canvas.history, emergency)
            return emergency, ""
        problem = ""
        if over >= _WORTH_A_SUMMARY or cut.background is not None:
            try:
                return await self._summarised(canvas, cut, by_topics=over >= _WORTH_TOPICS), ""
            except SummaryFailed as failure:
                problem = str(failure)
        start = canvas.start_beside_note(capacity, cut)
        return canvas.leaving_out(cut, start, CompressionLevel.TOOL_COMPRESS), problem

    async def _summarised(self, canvas: _Canvas, cut: Cut, *, by_topics: bool) -> Cut:
        level = CompressionLevel.TOPIC_SUMMARY if by_topics else CompressionLevel.HISTORY_SUMMARY
        start = canvas.start_within(self._capacity // (4 if by_topics else 2), cut.start)
        if start == cut.start:
            return cut
        return await self._summaries.extended(canvas.history, cut, start, level)


_WORTH_A_SUMMARY, _WORTH_TOPICS, _TOO_MUCH_TO_SUMMARISE = 1.5, 2.5, 4.0
"""From how many windows full on a history gets a summary, one by topics, and none any more."""

_RESULT_CHARS = 400
"""How much of an old tool result stays."""

_STEPS = (32_000, 16_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 125)
"""To how many characters texts are shortened, one step after the other, until they fit."""


@dataclass(frozen=True, slots=True)
class _Canvas:
    """A history taken apart, and what of it is shown under a cut.

    Attributes:
        history: what came in, but for the system messages.
        head: the system messages.
        blocks: what of the history can be shown; old tool results in it may be shortened.
        sizes: the size of each block.
        pins: the indices of blocks that are shown even when they are cut off, in order; the last is the task.
        measure: what sizes count.
        before: the size of the whole.
    """

    history: History
    head: list[Message]
    blocks: list[Block]
    sizes: list[int]
    pins: tuple[int, ...]
    measure: Measure
    before: int = 0

    @classmethod
    def of(cls, messages: Sequence[Message], measure: Measure, *, pin_opening: bool = False) -> _Canvas:
        """`messages` taken apart; the last user message is pinned, and the first one if asked."""
        head: dict[str, Message] = {}
        told: Background | None = None
        for message in messages:
            if message.get("role") == "system":
                background = Background.told_by(message)
                if background is None:
                    head.setdefault(text_of(message), message)
                told = background or told
        if head or told:
            messages = [message for message in messages if message.get("role") != "system"]
        pieces = blocks(messages)
        users = [index for index, block in enumerate(pieces) if block[0].get("role") == "user"]
        pins = tuple(sorted({users[0], users[-1]} if pin_opening else users[-1:])) if users else ()
        sizes = [measure.total(block) for block in pieces]
        canvas = cls(History(pieces, told), list(head.values()), pieces, sizes, pins, measure)
        return replace(canvas, before=canvas.size(canvas.history.uncut))

    def pinned(self, start: int) -> list[int]:
        """The blocks before `start` that are shown all the same."""
        return [index for index in self.pins if index < start]

    def size(self, cut: Cut) -> int:
        """The size of what is shown under `cut`."""
        told = [] if cut.background is None else [cut.background.message()]
        pinned = sum(self.sizes[index] for index in self.pinned(cut.start))
        return self.measure.total([*self.head, *told]) + pinned + sum(self.sizes[cut.start :])

    def tail_start(self, room: int, low: int = 0) -> int:
        """Where the last blocks begin that fit into `room`, at least one of them, and none before `low`."""
        start, used = low, 0
        for start in range(len(self.blocks) - 1, low - 1, -1):
            used += self.sizes[start]
            if used > room:
                return min(start + 1, len(self.blocks) - 1)
        return start

    def start_within(self, room: int, low: int) -> int:
        """Where the last blocks begin that fit into `room` together with head and task."""
        room -= self.measure.total(self.head)
        start = self.tail_start(room, low)
        pinned = self.pinned(start)
        return self.tail_start(room - self.sizes[pinned[-1]], low) if pinned else start

    def start_beside_note(self, room: int, cut: Cut) -> int:
        """The same, with a note in the room that says how much is left out."""
        note = replace(cut.background or Background(), left_out=10**6)
        return self.start_within(room - self.measure.total([note.message()]), cut.start)

    def leaving_out(self, cut: Cut, start: int, level: CompressionLevel) -> Cut:
        """The cut at `start`, where messages from the old cut to there are in no summary."""
        count = sum(map(len, self.blocks[cut.start : start]))
        if not count:
            return cut
        count -= sum(len(self.blocks[index]) for index in self.pinned(start) if index >= cut.start)
        told = cut.background or Background()
        return Cut(start, Background(told.text, told.left_out + count, max(told.level, level)))

    def with_short_results(self, start: int, capacity: int) -> _Canvas:
        """The same with tool results from `start` on shortened, as far back as it matters for what is shown.

        Those of the last block are news to the model: they are shortened only to fit into half the window.
        """
        matters = capacity if self.measure.of is None else capacity * _TOO_MUCH_TO_SUMMARISE
        shorter, sizes, total = list(self.blocks), list(self.sizes), 0
        last = len(shorter) - 1
        for index in range(last, start - 1, -1):
            whole = shorter[index]
            if len(whole) > 1:
                block = (
                    _fitted(whole, self.measure, capacity // 2) if index == last else _short_results(whole)
                )
                if block is not whole:
                    shorter[index], sizes[index] = block, self.measure.total(block)
            total += sizes[index]
            if total > matters:
                break
        return replace(self, blocks=shorter, sizes=sizes)

    def assembly(
        self, cut: Cut, level: CompressionLevel = CompressionLevel.NONE, problem: str = ""
    ) -> Assembly:
        """What is shown under `cut`: head, background, pinned blocks, and the blocks from its start."""
        shown = [self.blocks[index] for index in self.pinned(cut.start)] + self.blocks[cut.start :]
        background = [] if cut.background is None else [cut.background.message()]
        messages = [*self.head, *background, *chain.from_iterable(shown)]
        hidden = sum(map(len, self.blocks)) - sum(map(len, shown))
        return Assembly(messages, level, self.before, self.size(cut), self.measure.unit, hidden, problem)


def _short_results(block: Block) -> Block:
    """`block` with its results shortened; itself, if they are short."""
    results = [clipped(result, _RESULT_CHARS) for result in block[1:]]
    unchanged = all(short is result for short, result in zip(results, block[1:], strict=True))
    return block if unchanged else [block[0], *results]


def _fitted(
    messages: list[Message], measure: Measure, room: int, spared: Message | None = None
) -> list[Message]:
    """`messages` with texts shortened as far as it takes to fit into `room`, if that helps at all."""
    whole = measure.total(messages)
    if whole <= room:
        return messages
    for limit in _STEPS:
        fitted = [
            message if message is spared or message.get("role") == "system" else clipped(message, limit)
            for message in messages
        ]
        size = measure.total(fitted)
        if size <= room:
            break
    return fitted if size < whole else messages


def _squeezed(assembly: Assembly, measure: Measure, capacity: int) -> Assembly:
    """`assembly` with texts shortened until it fits: the task's last of all, the system messages' never."""
    if assembly.after <= capacity:
        return assembly
    users = (message for message in reversed(assembly.messages) if message.get("role") == "user")
    messages = _fitted(assembly.messages, measure, capacity, spared=next(users, None))
    if measure.total(messages) > capacity:
        messages = _fitted(assembly.messages, measure, capacity)
    after = measure.total(messages)
    if after == assembly.after:
        return assembly
    return replace(assembly, messages=messages, level=CompressionLevel.EMERGENCY, after=after)
