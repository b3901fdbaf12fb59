"""LangGraph: with its in-memory checkpointer, which it needs to wait for people, and without."""

from __future__ import annotations

import itertools
import operator
import warnings
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from bench.common import Case
from bench.kernel.workload import result, thought

warnings.filterwarnings("ignore", module="langgraph|langchain")
_threads = itertools.count()


class Count(TypedDict):
    n: Annotated[int, operator.add]


class Pieces(TypedDict):
    out: Annotated[list[int], operator.add]


class History(TypedDict):
    messages: Annotated[list[dict[str, object]], operator.add]
    i: Annotated[int, operator.add]


class LangGraph:
    """The workloads as state graphs."""

    def __init__(self, saver: bool) -> None:
        self.saver = saver

    def _case(self, graph: Any, start: dict[str, Any], channel: str, want: int) -> Case:
        saver = InMemorySaver() if self.saver else None
        app = graph.compile(checkpointer=saver)
        used: list[str] = []

        async def run() -> int:
            used.append(f"t{next(_threads)}")
            config = {"recursion_limit": 10**8, "configurable": {"thread_id": used[-1]}}
            value = (await app.ainvoke(start, config))[channel]
            return len(value) if isinstance(value, list) else value

        def cleanup() -> None:
            thread = used.pop()
            if saver is not None:
                saver.delete_thread(thread)

        return Case(run, want, cleanup=cleanup)

    def chain(self, n: int) -> Case:
        async def one(state: Any) -> Any:
            return {"n": 1}

        graph = StateGraph(Count)
        for i in range(n):
            graph.add_node(f"n{i}", one)
            graph.add_edge(f"n{i - 1}" if i else START, f"n{i}")
        graph.add_edge(f"n{n - 1}", END)
        return self._case(graph, {"n": 0}, "n", n)

    @staticmethod
    def loop_graph(n: int) -> Any:
        """Think and tools in turn over a conditional edge."""

        async def think(state: Any) -> Any:
            return {"messages": [thought(state["i"])], "i": 1}

        async def tools(state: Any) -> Any:
            return {"messages": [result(state["i"])]}

        graph = StateGraph(History)
        graph.add_node("think", think)
        graph.add_node("tools", tools)
        graph.add_edge(START, "think")
        graph.add_edge("think", "tools")
        graph.add_conditional_edges("tools", lambda s: END if s["i"] >= n else "think", ["think", END])
        return graph

    def loop(self, n: int) -> Case:
        return self._case(self.loop_graph(n), {"messages": [], "i": 0}, "messages", 2 * n)

    def fanout(self, n: int) -> Case:
        async def nothing(state: Any) -> Any:
            return {}

        async def work(piece: Any) -> Any:
            return {"out": [piece["x"]]}

        graph = StateGraph(Pieces)
        graph.add_node("seed", nothing)
        graph.add_node("work", work)
        graph.add_node("join", nothing)
        graph.add_edge(START, "seed")
        graph.add_conditional_edges("seed", lambda s: [Send("work", {"x": i}) for i in range(n)], ["work"])
        graph.add_edge("work", "join")
        graph.add_edge("join", END)
        return self._case(graph, {"out": []}, "out", n)

    def diamond(self, n: int) -> Case:
        async def nothing(state: Any) -> Any:
            return {}

        def branch(i: int) -> Any:
            async def work(state: Any) -> Any:
                return {"out": [i]}

            return work

        graph = StateGraph(Pieces)
        graph.add_node("seed", nothing)
        graph.add_node("join", nothing)
        graph.add_edge(START, "seed")
        for i in range(n):
            graph.add_node(f"w{i}", branch(i))
            graph.add_edge("seed", f"w{i}")
        graph.add_edge([f"w{i}" for i in range(n)], "join")
        graph.add_edge("join", END)
        return self._case(graph, {"out": []}, "out", n)


ENGINES = {"langgraph": LangGraph(True), "langgraph, no checkpoint": LangGraph(False)}
