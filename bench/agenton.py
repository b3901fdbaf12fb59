"""What it costs to enter and leave a compositor: microseconds per layer, in small graphs and in large ones.

    python -m bench.agenton

The yardstick is the least that any such library must do: as many objects whose
two hooks are awaited inside nested asynchronous contexts.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeAlias

from pydantic import BaseModel

from playground.agenton.compositor import Compositor, LayerNode, LayerProvider
from playground.agenton.layers import LayerConfig, LayerDeps, PlainLayer

SIZES = (10, 50, 200)
ROUNDS = 50

Work: TypeAlias = Callable[[], Awaitable[None]]


class Config(LayerConfig):
    prefix: str = "You are a helpful part of a larger agent."


class State(BaseModel):
    entries: int = 0


class Deps(LayerDeps):
    before: Link | None


class Link(PlainLayer[Deps, Config, State]):
    """A layer that uses everything: a config, a state, a dependency, a prompt and a hook."""

    @property
    def prefix_prompts(self) -> list[str]:
        return [self.config.prefix]

    async def on_context_create(self) -> None:
        self.runtime_state.entries += 1


LINK = LayerProvider.from_factory(layer_type=Link, create=lambda _config: Link())


def chain(size: int) -> Compositor:
    """`size` layers, each on top of the one before."""
    names = [str(number) for number in range(size)]
    return Compositor(
        [LayerNode(name, LINK, deps={"before": names[i - 1]} if i else {}) for i, name in enumerate(names)]
    )


def entering(size: int) -> Work:
    compositor = chain(size)

    async def work() -> None:
        async with compositor.enter() as run:
            run.suspend_on_exit()
            assert len(run.prompts) == size

    return work


def resuming(size: int) -> Work:
    compositor = chain(size)
    layer = {"lifecycle_state": "suspended", "runtime_state": {"entries": 1}}
    stored = {"layers": [{"name": node.name, **layer} for node in compositor.nodes]}

    async def work() -> None:
        async with compositor.enter(session_snapshot=stored) as run:
            run.suspend_on_exit()

    return work


class Part:
    """The least that has an enter and an exit hook."""

    async def enter(self) -> None: ...

    async def leave(self) -> None: ...

    @asynccontextmanager
    async def active(self) -> AsyncIterator[None]:
        await self.enter()
        try:
            yield
        finally:
            await self.leave()


def bare(size: int) -> Work:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(size):
                await stack.enter_async_context(Part().active())

    return work


async def per_layer(work: Work, size: int) -> float:
    """Microseconds of processor time per layer, the best of `ROUNDS`; every round enters as many layers."""
    times = max(SIZES) // size
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        begun = time.process_time_ns()
        for _ in range(times):
            await work()
        best = min(best, time.process_time_ns() - begun)
    return best / 1000 / (times * size)


async def main() -> None:
    print(f"{'µs per layer':<18}" + "".join(f"{size:>5} layers" for size in SIZES) + f"{'growth':>10}")
    middle: dict[str, float] = {}
    for name, make in {"bare contexts": bare, "first entry": entering, "resumed entry": resuming}.items():
        costs = [await per_layer(make(size), size) for size in SIZES]
        middle[name] = costs[1]
        print(f"{name:<18}" + "".join(f"{cost:>12.1f}" for cost in costs) + f"{costs[-1] / costs[0]:>9.2f}×")
    for name in ("first entry", "resumed entry"):
        print(f"{name} at {SIZES[1]} layers: {middle[name] / middle['bare contexts']:.1f}× bare contexts")


if __name__ == "__main__":
    asyncio.run(main())
