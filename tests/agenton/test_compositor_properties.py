"""Laws over random graphs, sessions and failures."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_probes import Boom, Stage, factory, states

from playground.agenton.compositor import Compositor, CompositorRun, CompositorSessionSnapshot, LayerNode
from playground.agenton.layers import EmptyLayerConfig, LayerDeps, LifecycleState, PlainLayer

STEPS = ("open", "create", "resume", "suspend", "delete", "close")
# What may happen to one layer, as the state machine allows: each line of a trace by its first letters.
LIFE = re.compile(r"(open( (create|resume)( (suspend|delete))?)?( close)?)?")

names = st.integers(1, 6).map(lambda size: ascii_lowercase[:size])


@dataclass
class Plan:
    """One entry: who was suspended before, who fails where, who is to be suspended, if the body fails."""

    names: str
    stored: frozenset[str]
    failing: dict[str, frozenset[str]] = field(default_factory=dict)
    suspend: frozenset[str] = frozenset()
    body_fails: bool = False


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    chosen = draw(names)
    some = st.frozensets(st.sampled_from(chosen))
    failing = st.dictionaries(
        st.sampled_from(chosen), st.frozensets(st.sampled_from(STEPS), max_size=3), max_size=3
    )
    return Plan(chosen, draw(some), draw(failing), draw(some), draw(st.booleans()))


async def enter(plan: Plan) -> tuple[CompositorRun, list[str], Boom | None]:
    stage = Stage(plan.names, plan.failing)
    snapshot = CompositorSessionSnapshot.model_validate(
        {
            "layers": [
                {"name": n, "lifecycle_state": "suspended" if n in plan.stored else "new"} for n in plan.names
            ]
        }
    )
    run = stage.compositor.enter(session_snapshot=snapshot)
    failure = None
    try:
        async with run:
            for name in plan.suspend:
                run.suspend_layer_on_exit(name)
            if plan.body_fails:
                raise Boom("body")
    except Boom as error:
        failure = error
    return run, stage.trace, failure


def steps_of(name: str, trace: list[str]) -> list[str]:
    return [step for owner, step in (line.split(": ") for line in trace) if owner == name]


@given(plans())
def test_every_opened_resource_is_closed_once_in_reverse_order(plan: Plan) -> None:
    _, trace, _ = asyncio.run(enter(plan))
    opened = [n for n in plan.names if "open" in steps_of(n, trace) and "open" not in plan.failing.get(n, ())]
    assert [line[0] for line in trace if line.endswith("close")] == opened[::-1]


@given(plans())
def test_hooks_run_as_the_state_machine_allows(plan: Plan) -> None:
    run, trace, failure = asyncio.run(enter(plan))
    entered = [n for n in plan.names if any(step in ("suspend", "delete") for step in steps_of(n, trace))]
    whole = len(entered) == len(plan.names)  # the body ran only if every layer became active
    for name in plan.names:
        steps, failing = steps_of(name, trace), plan.failing.get(name, frozenset())
        assert LIFE.fullmatch(" ".join(steps))
        assert ("create" in steps) <= (name not in plan.stored)
        assert ("resume" in steps) <= (name in plan.stored)
        if name in entered:
            intent = name in (plan.suspend if whole else plan.stored)
            assert ("suspend" in steps) == intent
            left = not failing & {"suspend", "delete"} & set(steps)
            expected = LifecycleState.SUSPENDED if left and intent else LifecycleState.CLOSED
        else:
            expected = LifecycleState.SUSPENDED if name in plan.stored else LifecycleState.NEW
        assert run.slots[name].lifecycle_state is expected
    failed = any(step in plan.failing.get(n, ()) for n in plan.names for step in steps_of(n, trace))
    assert (failure is not None) == (failed or (whole and plan.body_fails))


@given(plans())
def test_a_session_at_rest_always_has_a_snapshot_that_survives_json(plan: Plan) -> None:
    run, _, _ = asyncio.run(enter(plan))
    snapshot = run.session_snapshot
    assert snapshot is not None
    assert CompositorSessionSnapshot.model_validate_json(snapshot.model_dump_json()) == snapshot
    assert {layer.name: layer.lifecycle_state for layer in snapshot.layers} == states(run)


@given(names, st.integers(1, 4))
def test_a_session_counts_on_over_any_number_of_pauses(chosen: str, entries: int) -> None:
    async def live() -> None:
        stage, snapshot = Stage(chosen), None
        for _ in range(entries):
            async with stage.compositor.enter(session_snapshot=snapshot) as run:
                run.suspend_on_exit()
            snapshot = run.session_snapshot
        assert run.runtime_states() == {name: {"entries": entries} for name in chosen}

    asyncio.run(live())


class LinkDeps(LayerDeps):
    first: LinkLayer | None
    second: LinkLayer | None


@dataclass
class LinkLayer(PlainLayer[LinkDeps, EmptyLayerConfig]):
    """Gives its own name and, as a dependent, those of the layers it stands on."""

    name: str

    def roots(self) -> Iterator[str]:
        for link in (self.deps.first, self.deps.second):
            if link is not None:
                yield from link.roots()
        yield self.name

    @property
    def prefix_prompts(self) -> list[str]:
        return list(self.roots())

    @property
    def suffix_prompts(self) -> list[str]:
        return [self.name]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, dict[str, str]]:
    graph: dict[str, dict[str, str]] = {}
    for name in draw(names):
        earlier = st.sampled_from(sorted(graph)) if graph else st.nothing()
        graph[name] = draw(st.dictionaries(st.sampled_from(["first", "second"]), earlier))
    return graph


def link(name: str, deps: dict[str, str]) -> LayerNode:
    return LayerNode(name, factory(LinkLayer, lambda: LinkLayer(name)), deps=deps)


@given(graphs())
def test_prompts_come_in_graph_order_whatever_depends_on_what(graph: dict[str, dict[str, str]]) -> None:
    def roots(name: str) -> list[str]:
        deps = graph[name]
        return [root for key in ("first", "second") if key in deps for root in roots(deps[key])] + [name]

    run = Compositor([link(name, deps) for name, deps in graph.items()]).enter()
    prefixes = [root for name in graph for root in roots(name)]
    assert [prompt.value for prompt in run.prompts] == prefixes + list(graph)[::-1]
    assert [part.text for part in run.explain().prompts] == [prompt.value for prompt in run.prompts]


@given(graphs().flatmap(lambda graph: st.tuples(st.just(graph), st.permutations(list(graph)))))
def test_a_graph_is_refused_exactly_if_something_comes_before_what_it_needs(
    drawn: tuple[dict[str, dict[str, str]], list[str]],
) -> None:
    graph, order = drawn
    in_order = all(
        order.index(target) < order.index(name) for name in order for target in graph[name].values()
    )
    refused = pytest.raises(ValueError, match="must target preceding layer nodes")
    with nullcontext() if in_order else refused:
        Compositor([link(name, graph[name]) for name in order])
