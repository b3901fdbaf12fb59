"""The floor: the same awaits and merges, written by hand.

`limit-bare` only awaits and merges.  `limit-bsp` adds what any honest engine
owes: three event tuples a node, one delta a wave, one small checkpoint record,
and tasks only where a wave is wider than one.  Neither can fail, wait, retry or resume.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bench.common import Case
from bench.kernel.workload import result, thought

State = dict[str, Any]
Body = Callable[[State], Awaitable[State]]


async def _one(state: State) -> State:
    return {"n": 1}


async def _nothing(state: State) -> State:
    return {}


async def _think(state: State) -> State:
    return {"messages": [thought(state["i"])], "i": 1}


async def _tools(state: State) -> State:
    return {"messages": [result(state["i"])]}


def _worker(i: int) -> Body:
    async def work(state: State) -> State:
        return {"out": [i]}

    return work


def _fold(state: State, delta: State) -> None:
    for key, value in delta.items():
        if isinstance(value, list):
            state[key].extend(value)
        else:
            state[key] += value


class Bare:
    """Awaits and merges."""

    async def wave(self, bodies: Sequence[Body], state: State, record: list[object]) -> None:
        outs = (
            [await bodies[0](state)]
            if len(bodies) == 1
            else await asyncio.gather(*[f(state) for f in bodies])
        )
        for out in outs:
            _fold(state, out)

    def chain(self, n: int) -> Case:
        async def run() -> int:
            state, record = {"n": 0}, []
            for _ in range(n):
                await self.wave((_one,), state, record)
            return state["n"]

        return Case(run, n)

    def loop(self, n: int) -> Case:
        async def run() -> int:
            state, record = {"messages": [], "i": 0}, []
            while state["i"] < n:
                await self.wave((_think,), state, record)
                await self.wave((_tools,), state, record)
            return len(state["messages"])

        return Case(run, 2 * n)

    def fanout(self, n: int) -> Case:
        async def run() -> int:
            state, record = {"out": []}, []
            await self.wave((_nothing,), state, record)
            await self.wave([_worker(i) for i in range(n)], state, record)
            await self.wave((_nothing,), state, record)
            return len(state["out"])

        return Case(run, n)

    diamond = fanout


class Bsp(Bare):
    """Waves with a log and a checkpoint record."""

    async def wave(self, bodies: Sequence[Body], state: State, record: list[object]) -> None:
        record.extend([(len(record), "node_started", i) for i in range(len(bodies))])
        outs = (
            [await bodies[0](state)]
            if len(bodies) == 1
            else await asyncio.gather(*[f(state) for f in bodies])
        )
        delta: State = {}
        for i, out in enumerate(outs):
            record.append((len(record), "node_completed", i))
            for key, value in out.items():
                if key not in delta:
                    delta[key] = list(value) if isinstance(value, list) else value
                elif isinstance(value, list):
                    delta[key].extend(value)
                else:
                    delta[key] += value
        _fold(state, delta)
        record.append((len(record), "state_delta", delta))
        sizes = {key: len(value) if isinstance(value, list) else value for key, value in state.items()}
        record.append(("checkpoint", len(record), sizes))


ENGINES = {"limit-bare": Bare(), "limit-bsp": Bsp()}
