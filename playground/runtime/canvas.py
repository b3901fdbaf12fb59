"""Canvas: a history taken apart, so that a part of it can be shown.

To show less of a conversation one must know where it can be cut, how large the
pieces are, and what has to stay.  A `Canvas` knows; it is a value, and the
strategies decide by it.

A conversation comes back with every turn, a little longer.  A `Reader` takes
apart only what is new, so that a turn costs nearly the same however long the
history has become.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from playground.kernel.ports import Message
from playground.kernel.values import JsonObject
from playground.runtime.compaction import Background, CompressionLevel, Cut, History
from playground.runtime.messages import MESSAGES, Block, Measure, blocks, clipped, text_of

_RESULT_CHARS = 400
"""How much of an old tool result stays when results are shortened."""

_STEPS = (32_000, 16_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 125)
"""To how many characters texts are shortened, one step after the other, until they fit."""

_CONVERSATIONS = 8
"""How many conversations a reader remembers."""


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


_NOTHING = History(())


@dataclass(frozen=True, slots=True)
class Canvas:
    """A history taken apart, and what of it is shown under a cut.

    Attributes:
        measure: what sizes count.
        pin_opening: whether the first user message is shown even when it is cut off; the last one always is.
        messages: the whole history.
        head: its system messages, each once.
        history: the others, in blocks.
        blocks: those blocks as they are shown: tool results in them may be shortened.
        sizes: the size of each block.
        users: the indices of the blocks with the first and the last user message; empty if there is none.
        settled: whether it came in without loose ends, so that nothing that follows can change a block.
        before: the size of the whole.
    """

    measure: Measure
    pin_opening: bool = False
    messages: Sequence[Message] = ()
    head: Sequence[Message] = ()
    history: History = _NOTHING
    blocks: Sequence[Block] = ()
    sizes: Sequence[int] = ()
    users: tuple[int, ...] = ()
    settled: bool = True
    before: int = 0

    def grown(self, messages: Sequence[Message]) -> Canvas:
        """The canvas of `messages`, which begin with those of this one, taken apart from there on."""
        new = messages[len(self.messages) :]
        systems = [message for message in new if message.get("role") == "system"]
        rest = [message for message in new if message.get("role") != "system"] if systems else new
        head, told = {text_of(message): message for message in self.head}, self.history.told
        for message in systems:
            background = Background.told_by(message)
            if background is None:
                head.setdefault(text_of(message), message)
            told = background or told
        pieces = blocks(rest)
        parted = [*self.blocks, *pieces]
        users = [i for i, block in enumerate(pieces, len(self.blocks)) if block[0].get("role") == "user"]
        users = [*self.users, *users]
        canvas = replace(
            self,
            messages=messages,
            head=tuple(head.values()),
            history=History(parted, told),
            blocks=parted,
            sizes=[*self.sizes, *map(self.measure.total, pieces)],
            users=tuple(dict.fromkeys([*users[:1], *users[-1:]])),
            settled=self.settled and list(chain.from_iterable(pieces)) == rest,
        )
        return replace(canvas, before=canvas.size(canvas.history.uncut))

    def pinned(self, start: int) -> list[int]:
        """The blocks before `start` that are shown all the same, in order."""
        pins = self.users if self.pin_opening else self.users[-1:]
        return [index for index in pins if index < start]

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

    def with_short_results(self, start: int, room: int, enough: float) -> Canvas:
        """The same with tool results shortened, from the end back to `start` or until the end is `enough`.

        Those of the last block are news to the model: they are shortened only as far as it takes to fit
        into `room`.
        """
        shorter, sizes, total = list(self.blocks), list(self.sizes), 0
        last = len(shorter) - 1
        for index in range(last, start - 1, -1):
            whole = shorter[index]
            if len(whole) > 1:
                block = _fitted(whole, self.measure, room) if index == last else _short_results(whole)
                if block is not whole:
                    shorter[index], sizes[index] = block, self.measure.total(block)
            total += sizes[index]
            if total > enough:
                break
        return replace(self, blocks=shorter, sizes=sizes)

    def assembly(
        self, cut: Cut, level: CompressionLevel = CompressionLevel.NONE, problem: str = ""
    ) -> Assembly:
        """What is shown under `cut`: head, background, pinned blocks, and the blocks from its start."""
        shown = [self.blocks[index] for index in self.pinned(cut.start)] + list(self.blocks[cut.start :])
        background = [] if cut.background is None else [cut.background.message()]
        messages = [*self.head, *background, *chain.from_iterable(shown)]
        hidden = sum(map(len, self.blocks)) - sum(map(len, shown))
        return Assembly(messages, level, self.before, self.size(cut), self.measure.unit, hidden, problem)

    def squeezed(self, assembly: Assembly, room: int) -> Assembly:
        """`assembly` with texts shortened until it fits: the task's last, the system messages' never."""
        if assembly.after <= room:
            return assembly
        users = (message for message in reversed(assembly.messages) if message.get("role") == "user")
        messages = _fitted(assembly.messages, self.measure, room, spared=next(users, None))
        if self.measure.total(messages) > room:
            messages = _fitted(assembly.messages, self.measure, room)
        after = self.measure.total(messages)
        if after == assembly.after:
            return assembly
        return replace(assembly, messages=messages, level=CompressionLevel.EMERGENCY, after=after)


def _short_results(block: Block) -> Block:
    """`block` with its results shortened; itself, if they are short."""
    shorter = block
    for position in range(1, len(block)):
        content = block[position].get("content")
        if isinstance(content, str) and len(content) <= _RESULT_CHARS:
            continue
        result = clipped(block[position], _RESULT_CHARS)
        if result is not block[position]:
            shorter = [*shorter[:position], result, *block[position + 1 :]]
    return shorter


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


class Reader:
    """Takes histories apart; of those that it has seen lately, only what is new in them.

    What it remembers is a help to speed and nothing else: it changes no answer.
    """

    def __init__(self, measure: Measure, *, pin_opening: bool = False) -> None:
        self._empty = Canvas(measure, pin_opening)
        self._recent: list[Canvas] = []

    def read(self, messages: Sequence[Message]) -> Canvas:
        """The canvas of `messages`."""
        messages = list(messages)
        base = next((c for c in self._recent if messages[: len(c.messages)] == c.messages), self._empty)
        canvas = base.grown(messages)
        if canvas.settled:
            self._recent = [canvas, *(c for c in self._recent if c is not base)][:_CONVERSATIONS]
        return canvas
