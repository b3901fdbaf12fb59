"""Burr: an application per run, since it carries the state, over a graph that is built once.

It has no fixed parallel branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burr.core import ApplicationBuilder, GraphBuilder, State, action, default, when
from burr.core.action import create_action
from burr.core.parallelism import MapStates

from bench.common import Case
from bench.kernel.workload import result, thought


class Burr:
    """The workloads as state machines."""

    def _case(
        self, graph: Any, entry: str, halt: str, start: Callable[[], dict[str, Any]], field: str, want: int
    ) -> Case:
        async def run() -> int:
            builder = ApplicationBuilder().with_graph(graph).with_entrypoint(entry).with_state(**start())
            _, _, state = await builder.build().arun(halt_after=[halt])
            value = state[field]
            return len(value) if isinstance(value, list) else value

        return Case(run, want)

    def chain(self, n: int) -> Case:
        @action(reads=["n"], writes=["n"])
        async def one(state: State) -> State:
            return state.update(n=state["n"] + 1)

        graph = GraphBuilder().with_actions(**{f"n{i}": one for i in range(n)})
        graph = graph.with_transitions(*[(f"n{i}", f"n{i + 1}") for i in range(n - 1)])
        return self._case(graph.build(), "n0", f"n{n - 1}", lambda: {"n": 0}, "n", n)

    @staticmethod
    def loop_graph(n: int) -> Any:
        """Think and tools in turn over a transition with a condition."""

        @action(reads=["i", "messages"], writes=["messages", "i"])
        async def think(state: State) -> State:
            return state.append(messages=thought(state["i"])).update(i=state["i"] + 1)

        @action(reads=["i", "messages"], writes=["messages", "done"])
        async def tools(state: State) -> State:
            return state.append(messages=result(state["i"])).update(done=state["i"] >= n)

        @action(reads=[], writes=[])
        async def end(state: State) -> State:
            return state

        graph = GraphBuilder().with_actions(think=think, tools=tools, end=end)
        return graph.with_transitions(
            ("think", "tools"), ("tools", "end", when(done=True)), ("tools", "think", default)
        ).build()

    def loop(self, n: int) -> Case:
        return self._case(
            self.loop_graph(n),
            "think",
            "end",
            lambda: {"messages": [], "i": 0, "done": False},
            "messages",
            2 * n,
        )

    def fanout(self, n: int) -> Case:
        @action(reads=["x"], writes=["y"])
        async def work(state: State) -> State:
            return state.update(y=state["x"])

        class Fan(MapStates):
            reads = property(lambda self: [])
            writes = property(lambda self: ["out"])

            def action(self, state: State, inputs: Any) -> Any:
                return create_action(work, "work")

            async def states(self, state: State, context: Any, inputs: Any) -> Any:
                for i in range(n):
                    yield state.update(x=i)

            async def reduce(self, state: State, states: Any) -> State:
                return state.update(out=[piece["y"] async for piece in states])

            def is_async(self) -> bool:
                return True

        @action(reads=[], writes=[])
        async def seed(state: State) -> State:
            return state

        @action(reads=["out"], writes=[])
        async def join(state: State) -> State:
            return state

        graph = GraphBuilder().with_actions(seed=seed, fan=Fan(), join=join)
        graph = graph.with_transitions(("seed", "fan"), ("fan", "join")).build()
        return self._case(graph, "seed", "join", lambda: {"out": []}, "out", n)

    def diamond(self, n: int) -> None:
        return None


ENGINES = {"burr": Burr()}
