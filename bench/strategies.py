"""What strategies cost: recalling a memory, and making a long conversation fit.

    python -m bench.strategies

Milliseconds of processor time at 1,000 and at 10,000, the best of several
rounds, and how the cost grows from one to the other: 0 is independent of the
size, 1 is linear, 2 is quadratic.  Beside recall stands what a memory without
an index does, a look at every record; beside the levels of compaction, which
are measured without the model, the least that any of them must do: a look at
every message.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from bench.common import growth
from playground.kernel.ports import LlmReply, Message
from playground.runtime.context import CompressionLevel, TieredCompactionContext
from playground.runtime.lexical import terms
from playground.runtime.memory import InMemoryMemory
from playground.runtime.messages import MESSAGES, TOKENS, Measure

SIZES = (1_000, 10_000)
ROUNDS = 9

Work: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Row:
    """One line of the report: what is done, and the work for each size."""

    label: str
    works: dict[int, Work]


# Recall

_CHARACTERS = "今天北京上海吃饭喝茶咖啡芒果过敏旅行机票酒店订单退款客户系统会议时间喜欢音乐运动孩子工作项目"
_WORDS = [f"word{number}" for number in range(3_000)]
_WEIGHTS = [1 / (rank + 1) for rank in range(len(_WORDS))]


def facts(count: int) -> list[str]:
    """Facts of some twenty words, Chinese and English in turn, common and rare ones as in a real text."""
    chance = random.Random(7)  # noqa: S311 - a fixed text
    return [
        f"用户{''.join(chance.choices(_CHARACTERS, k=24))}，订单{number}"
        if number % 2
        else f"user {' '.join(chance.choices(_WORDS, _WEIGHTS, k=14))} order {number}"
        for number in range(count)
    ]


async def recalls() -> list[Row]:
    stored = {size: facts(size) for size in SIZES}
    memories = {size: InMemoryMemory() for size in SIZES}
    for size, memory in memories.items():
        for fact in stored[size]:
            await memory.remember(fact)

    def asked(question: str) -> dict[int, Work]:
        return {size: lambda m=memory: m.recall(question) for size, memory in memories.items()}

    return [
        Row("recall: a question in Chinese", asked("我对什么过敏，喜欢喝什么咖啡？")),
        Row("recall: a question in English", asked("what did word40 order with word3 and word7?")),
        Row("recall: the commonest word alone", asked("用户")),
        Row(
            "remember one more", {s: lambda m=m: m.remember("用户 likes word40") for s, m in memories.items()}
        ),
        Row("(a look at every record)", {size: lambda f=f: rescan(f) for size, f in stored.items()}),
    ]


async def rescan(records: list[str]) -> int:
    asked = set(terms("我对什么过敏，喜欢喝什么咖啡？"))
    return max(len(asked.intersection(terms(record))) for record in records)


# Compaction


class Instant:
    """A summariser that takes no time."""

    async def chat(self, messages: object, **_: object) -> LlmReply:
        return LlmReply(text="- 要点一\n- point two")


def history(count: int) -> list[Message]:
    """A tool loop: a task, then calls and results of some two hundred characters each."""
    messages: list[Message] = [{"role": "user", "content": "修复测试 the failing tests"}]
    for number in range(count // 2):
        call_id = f"call-{number}"
        call: Message = {"id": call_id, "name": "read", "arguments": {"path": f"src/part{number}.py"}}
        result = f"def part{number}(x): return x  # 第{number}行\n" * 5
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "name": "read", "tool_call_id": call_id, "content": result})
    return messages


_WINDOWS = {
    CompressionLevel.NONE: 0.9,
    CompressionLevel.TOOL_COMPRESS: 1.3,
    CompressionLevel.HISTORY_SUMMARY: 2.0,
    CompressionLevel.TOPIC_SUMMARY: 3.0,
    CompressionLevel.EMERGENCY: 10.0,
}
"""How many windows full the history is, for each level."""


def compactions(measure: Measure) -> Iterator[Row]:
    histories = {size: history(size) for size in SIZES}
    for level, full in _WINDOWS.items():
        works: dict[int, Work] = {}
        for size, messages in histories.items():
            works[size] = compacting(messages, int(measure.total(messages) / full), measure, level)
        yield Row(f"{level.name.lower()}, in {measure.unit}", works)
    window = measure.total(histories[SIZES[0]]) // 4
    yield Row(
        f"one turn later, in {measure.unit}", {s: later(m, window, measure) for s, m in histories.items()}
    )
    if measure is MESSAGES:
        yield Row("(a look at every message)", {s: lambda m=m: look(m) for s, m in histories.items()})


def compacting(messages: list[Message], capacity: int, measure: Measure, level: CompressionLevel) -> Work:
    async def work() -> None:
        context = TieredCompactionContext(Instant(), capacity=capacity, measure=measure)
        assembly = await context.compact(messages)
        assert assembly.level == level, assembly.facts()
        assert assembly.after <= capacity

    return work


def later(messages: list[Message], capacity: int, measure: Measure) -> Work:
    """A turn of a conversation that has been compacted before: the history is read on from where it was."""
    context = TieredCompactionContext(Instant(), capacity=capacity, measure=measure)
    growing = messages[:-2]

    async def work() -> None:
        growing.extend(messages[-2:])
        assembly = await context.compact(growing)
        assert assembly.after <= capacity

    return work


async def look(messages: list[Message]) -> int:
    return sum(message.get("role") == "user" and bool(message.get("content")) for message in messages)


async def milliseconds(work: Work) -> float:
    """Processor time of the quickest of `ROUNDS` runs."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        begun = time.process_time_ns()
        await work()
        best = min(best, time.process_time_ns() - begun)
    return best / 1e6


async def report(title: str, rows: list[Row]) -> None:
    print(f"\n### {title}, ms\n| | {' | '.join(f'N={size:,}' for size in SIZES)} | growth |")
    print("|---" * (len(SIZES) + 2) + "|")
    for row in rows:
        times = {size: await milliseconds(work) for size, work in row.works.items()}
        exponent = growth(times)
        figures = [f"{times[size]:.2f}" for size in SIZES] + ["–" if exponent is None else f"{exponent:.2f}"]
        print(f"| {row.label} | {' | '.join(figures)} |")


async def main() -> None:
    await report("Memory", await recalls())
    await report("Compaction", [*compactions(MESSAGES), *compactions(TOKENS)])


if __name__ == "__main__":
    asyncio.run(main())
