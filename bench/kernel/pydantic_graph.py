"""pydantic-graph: steps share one mutable state; no log and no checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_graph import GraphBuilder, StepContext, TypeExpression, reduce_list_append

from bench.common import Case
from bench.kernel.workload import Message, result, thought


@dataclass
class Shared:
    n: int = 0
    i: int = 0
    messages: list[Message] = field(default_factory=list)


Context = StepContext[Shared, None, Any]


class PydanticGraph:
    """The workloads as graphs of steps."""

    def _case(self, graph: Any, answer: Callable[[Shared, Any], int], want: int) -> Case:
        async def run() -> int:
            state = Shared()
            return answer(state, await graph.run(state=state, infer_name=False))

        return Case(run, want)

    def chain(self, n: int) -> Case:
        async def one(ctx: Context) -> None:
            ctx.state.n += 1

        graph = GraphBuilder(state_type=Shared, output_type=int)
        last: Any = graph.start_node
        for step in [graph.step(one, node_id=f"n{i}") for i in range(n)]:
            graph.add(graph.edge_from(last).to(step))
            last = step
        graph.add(graph.edge_from(last).to(graph.end_node))
        return self._case(graph.build(), lambda state, _: state.n, n)

    def loop(self, n: int) -> Case:
        async def think(ctx: Context) -> None:
            ctx.state.messages.append(thought(ctx.state.i))
            ctx.state.i += 1

        async def tools(ctx: Context) -> Literal["again", "done"]:
            ctx.state.messages.append(result(ctx.state.i))
            return "done" if ctx.state.i >= n else "again"

        graph = GraphBuilder(state_type=Shared, output_type=str)
        first, second = graph.step(think, node_id="think"), graph.step(tools, node_id="tools")
        decision = graph.decision().branch(graph.match(TypeExpression[Literal["again"]]).to(first))
        decision = decision.branch(graph.match(TypeExpression[Literal["done"]]).to(graph.end_node))
        graph.add(
            graph.edge_from(graph.start_node).to(first),
            graph.edge_from(first).to(second),
            graph.edge_from(second).to(decision),
        )
        return self._case(graph.build(), lambda state, _: len(state.messages), 2 * n)

    def fanout(self, n: int) -> Case:
        async def seed(ctx: Context) -> list[int]:
            return list(range(n))

        async def work(ctx: Context) -> int:
            return ctx.inputs

        graph = GraphBuilder(state_type=Shared, output_type=list)
        first, second = graph.step(seed, node_id="seed"), graph.step(work, node_id="work")
        join = graph.join(reduce_list_append, initial_factory=list, node_id="join")
        graph.add(
            graph.edge_from(graph.start_node).to(first),
            graph.edge_from(first).map().to(second),
            graph.edge_from(second).to(join),
            graph.edge_from(join).to(graph.end_node),
        )
        return self._case(graph.build(), lambda _, out: len(out), n)

    def diamond(self, n: int) -> Case:
        async def seed(ctx: Context) -> int:
            return 1

        async def work(ctx: Context) -> int:
            return ctx.inputs

        graph = GraphBuilder(state_type=Shared, output_type=list)
        first = graph.step(seed, node_id="seed")
        branches = [graph.step(work, node_id=f"w{i}") for i in range(n)]
        join = graph.join(reduce_list_append, initial_factory=list, node_id="join")
        graph.add(
            graph.edge_from(graph.start_node).to(first),
            graph.edge_from(first).to(*branches),
            graph.edge_from(*branches).to(join),
            graph.edge_from(join).to(graph.end_node),
        )
        return self._case(graph.build(), lambda _, out: len(out), n)


ENGINES = {"pydantic-graph": PydanticGraph()}
