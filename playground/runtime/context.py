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
from dataclasses import replace
from typing import Protocol, Self, runtime_checkable

from playground.kernel.ports import LlmPort, Message
from playground.runtime.canvas import Assembly, Canvas, Reader
from playground.runtime.compaction import CompressionLevel, Cut, Documents, Summaries, SummaryFailed
from playground.runtime.messages import MESSAGES, Measure, paired

__all__ = [
    "Assembly",
    "CompressionLevel",
    "ContextStrategy",
    "KeepingStrategy",
    "ReportingStrategy",
    "SummarizingContext",
    "TieredCompactionContext",
    "WindowContext",
    "assembly_of",
]


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


@runtime_checkable
class KeepingStrategy(Protocol):
    """A strategy that makes summaries, which may outlive the process; those of this file do."""

    def kept_in(self, documents: Documents) -> ContextStrategy:
        """The same strategy, filing in `documents` unless it has documents of its own."""
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
        self._reader = Reader(MESSAGES, pin_opening=True)

    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        return (await self.compact(messages)).messages

    async def compact(self, messages: Sequence[Message]) -> Assembly:
        """What `assemble` gives, with level and saving."""
        canvas = self._reader.read(messages)
        cut = canvas.history.uncut
        if len(messages) > self._keep_last + 1:
            cut = replace(cut, start=canvas.tail_start(self._keep_last))
        level = CompressionLevel.TOOL_COMPRESS if cut.start else CompressionLevel.NONE
        return canvas.assembly(cut, level)


class _Summarising:
    """A strategy with summaries."""

    _summaries: Summaries
    _kept: tuple[Documents, Self] | None = None

    def kept_in(self, documents: Documents) -> Self:
        """The same strategy, filing in `documents` unless it has documents of its own.

        For the same documents it is the same object, which knows what it has filed.
        """
        if self._summaries.are_filed:
            return self
        if self._kept is None or self._kept[0] is not documents:
            other = copy(self)
            other._summaries = self._summaries.kept_in(documents)
            self._kept = documents, other
        return self._kept[1]


class SummarizingContext(_Summarising):
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
        self._reader = Reader(MESSAGES)
        self._summaries = Summaries(llm, documents, summary_chars, timeout)

    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        return (await self.compact(messages)).messages

    async def compact(self, messages: Sequence[Message]) -> Assembly:
        """What `assemble` gives, with level and saving."""
        canvas = self._reader.read(messages)
        if canvas.before <= self._max_messages:
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


class TieredCompactionContext(_Summarising):
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
        self._reader = Reader(measure)
        if measure is MESSAGES:
            self._summaries = Summaries(summarizer, documents, summary_chars, timeout)
        else:
            chars = max(80, min(summary_chars, capacity // 4))
            reading = max(4_000, min(_MOST_READ, capacity))
            self._summaries = Summaries(summarizer, documents, chars, timeout, reading=reading)

    async def assemble(self, messages: Sequence[Message]) -> list[Message]:
        return (await self.compact(messages)).messages

    async def compact(self, messages: Sequence[Message]) -> Assembly:
        """What `assemble` gives, with level and saving."""
        assembly = await self._compact(self._reader.read(messages))
        self.last_level = assembly.level
        return assembly

    async def _compact(self, full: Canvas) -> Assembly:
        capacity, cut, problem = self._capacity, full.history.uncut, ""
        if full.before <= capacity:
            return full.assembly(cut)
        cut = await self._summaries.known(full.history) or cut
        short = full.with_short_results(cut.start, capacity // 2, self._matters(full))
        if min(full.size(cut), short.size(cut)) > capacity:
            cut, problem = await self._cut_further(short, cut)
        if full.size(cut) <= capacity:
            return full.assembly(cut, cut.level, problem)
        level = max(cut.level, CompressionLevel.TOOL_COMPRESS)
        return short.squeezed(short.assembly(cut, level, problem), capacity)

    def _matters(self, canvas: Canvas) -> float:
        """How much of the end decides what is shown; where texts have no size, no more than is shown."""
        return self._capacity * (1 if canvas.measure.of is None else _TOO_MUCH_TO_SUMMARISE)

    async def _cut_further(self, canvas: Canvas, cut: Cut) -> tuple[Cut, str]:
        """A cut under which less is shown, and what went wrong in making it."""
        capacity, over = self._capacity, canvas.size(cut) / self._capacity
        if over >= _TOO_MUCH_TO_SUMMARISE:
            start = canvas.start_beside_note(capacity // 2, cut)
            emergency = canvas.leaving_out(cut, start, CompressionLevel.EMERGENCY)
            if emergency != cut:  # no model was asked, so another process can as well make it again
                self._summaries.remember(canvas.history, emergency)
            return emergency, ""
        problem = ""
        if over >= _WORTH_A_SUMMARY or cut.background is not None:
            try:
                return await self._summarised(canvas, cut, by_topics=over >= _WORTH_TOPICS), ""
            except SummaryFailed as failure:
                problem = str(failure)
        start = canvas.start_beside_note(capacity, cut)
        return canvas.leaving_out(cut, start, CompressionLevel.TOOL_COMPRESS), problem

    async def _summarised(self, canvas: Canvas, cut: Cut, *, by_topics: bool) -> Cut:
        level = CompressionLevel.TOPIC_SUMMARY if by_topics else CompressionLevel.HISTORY_SUMMARY
        start = canvas.start_within(self._capacity // (4 if by_topics else 2), cut.start)
        if start == cut.start:
            return cut
        return await self._summaries.extended(canvas.history, cut, start, level)


_MOST_READ = 60_000
"""How many characters a summariser is given at once, however large the window: its summary is short."""

_WORTH_A_SUMMARY, _WORTH_TOPICS, _TOO_MUCH_TO_SUMMARISE = 1.5, 2.5, 4.0
"""From how many windows full on a history gets a summary, one by topics, and none any more."""
