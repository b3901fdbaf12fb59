"""The picture of a plan and of a run: what is drawn, where, and what an event changes in it."""

from __future__ import annotations

import random
import re
import time
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.web import gallery
from playground.web.gallery import CHILDREN, HARD, INCIDENT, Log
from playground.web.graphmarks import Story
from playground.web.graphview import (
    Graph,
    GraphLane,
    GraphNode,
    Mark,
    NodeShape,
    Topology,
    edge_id,
    graph,
    lane_id,
    marks_of,
    node_id,
    reshapes,
)


def plan(*edges: str, **flags: list[str]) -> Topology:
    """A topology from `a>b` words; `entry=["a"]`, `template=[…]`, `terminal=[…]` mark nodes."""
    pairs = [tuple(edge.split(">")) for edge in edges]
    keys = list(dict.fromkeys(key for pair in pairs for key in pair if key))
    nodes: list[NodeShape] = [
        {
            "key": key,
            "entry": key in flags.get("entry", []),
            "template": key in flags.get("template", []),
            "terminal": key in flags.get("terminal", []),
        }
        for key in keys
    ]
    return {
        "nodes": nodes,
        "edges": [{"source": pair[0], "target": pair[1]} for pair in pairs if len(pair) == 2],
    }


def node(picture: Graph, key: str) -> GraphNode:
    return next(box for box in picture.nodes if box.key == key)


def edges(picture: Graph) -> dict[tuple[str, str], tuple[str, str]]:
    return {(edge.source, edge.target): (edge.kind, edge.state) for edge in picture.edges}


def overlap(one: GraphNode | GraphLane, other: GraphNode | GraphLane) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def inside(inner: GraphNode | GraphLane, outer: GraphNode | GraphLane) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


KEYS = st.integers(0, 14).map(lambda n: f"n{n}")
PLANS = st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=30).map(
    lambda pairs: plan(*(f"{a}>{b}" for a, b in pairs))
)


# The shape


@given(PLANS)
def test_no_two_nodes_overlap_and_all_lie_in_the_picture(topology: Topology) -> None:
    picture = graph(topology)

    assert not any(overlap(one, other) for one, other in combinations(picture.nodes, 2))
    assert all(box.x >= 0 and box.x + box.width <= picture.width for box in picture.nodes)
    assert all(box.y >= 0 and box.y + box.height <= picture.height for box in picture.nodes)


@given(PLANS)
def test_the_same_plan_gives_the_same_picture(topology: Topology) -> None:
    assert graph(topology) == graph(topology)


@given(PLANS)
def test_every_edge_of_the_plan_is_drawn_once(topology: Topology) -> None:
    drawn = [(edge.source, edge.target) for edge in graph(topology).edges]

    assert sorted(drawn) == sorted({(edge["source"], edge["target"]) for edge in topology["edges"]})


@pytest.mark.parametrize("direction", ["right", "down"])
def test_the_entry_comes_first_even_when_a_cycle_leads_back_to_it(direction: str) -> None:
    picture = graph(
        plan("ask>think", "think>act", "act>think", "act>ask", entry=["ask"]), direction=direction
    )  # type: ignore[arg-type]

    along = {box.key: box.x if direction == "right" else box.y for box in picture.nodes}

    assert along["ask"] < along["think"] < along["act"]


def test_a_back_edge_is_drawn_from_the_later_node_to_the_earlier() -> None:
    picture = graph(plan("a>b", "b>a"))

    assert {(e.source, e.target): e.line.back for e in picture.edges} == {("a", "b"): False, ("b", "a"): True}


@pytest.mark.parametrize("name", HARD)
def test_no_label_lies_on_a_node(name: str) -> None:
    picture = graph(HARD[name])

    for edge in picture.edges:
        if edge.label and edge.source != edge.target:
            x, y = edge.line.x + edge.line.dx, edge.line.y + edge.line.dy
            half = edge.label_width / 2
            chip = GraphNode("", "", "", "", "", "", x - half, y - 8, 2 * half, 16)
            assert not [box.key for box in picture.nodes if overlap(chip, box)]


def test_an_empty_plan_is_an_empty_picture() -> None:
    assert graph({"nodes": [], "edges": []}).boxes == ()


def test_a_loop_of_its_own_is_drawn_above_the_node() -> None:
    picture = graph(plan("a>a"))

    (edge,) = picture.edges
    assert edge.line.y + edge.line.dy < node(picture, "a").y


def test_three_hundred_nodes_are_drawn() -> None:
    chain = [f"n{i}>n{i + 1}" for i in range(299)]
    picture = graph(plan(*chain, *(f"n{i}>n{i // 2}" for i in range(2, 300))))

    assert len(picture.nodes) == 300
    assert picture.large
    assert not any(overlap(one, other) for one, other in combinations(picture.nodes, 2))


def test_three_hundred_nodes_with_links_across_are_laid_out_within_a_second() -> None:
    picked = random.Random(7)  # noqa: S311 - a fixed picture, not a secret
    links = [f"n{picked.randrange(300)}>n{picked.randrange(300)}" for _ in range(900)]
    topology = plan(*(f"n{i}>n{i + 1}" for i in range(299)), *links)
    begun = time.process_time()
    graph(topology)

    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize("name", ["x" * 500, "核对" * 100, "تحقق" * 60, "a\nb\tc", "<b>&\"'"])
def test_a_long_name_is_cut_and_kept_whole_as_the_title(name: str) -> None:
    box = node(graph({"nodes": [{"key": name}], "edges": []}), name)

    assert box.width <= 208
    assert len(box.name) < 40
    assert box.title == name


def test_only_a_command_can_start_a_node_without_edges_so_it_follows_the_one_before() -> None:
    picture = graph(plan("think>", "tools>", "final>", entry=["think"]))

    assert node(picture, "think").x < node(picture, "tools").x < node(picture, "final").x


def test_ids_are_the_same_for_the_drawing_and_for_the_marks() -> None:
    log = Log("r1").ran("a b/c", 1).ran("d", 2, why={"code": "edges", "nodes": ["a b/c"]})
    picture = graph(
        {"nodes": [{"key": "a b/c"}, {"key": "d"}], "edges": [{"source": "a b/c", "target": "d"}]}
    )

    drawn = {box.id for box in picture.boxes} | {edge.id for edge in picture.edges}

    assert {mark.id for fact in log.events for mark in marks_of(fact)} == drawn
    assert not any(re.search(r"\s", id_) for id_ in drawn)


# The run


def test_a_goto_edge_is_drawn_only_after_the_command() -> None:
    topology = plan("think>", "tools>", entry=["think"])
    log = Log("r1").ran("think", 1)
    before = edges(graph(topology, log.events))

    log.note("control", wave=1, by="think", goto="tools")

    assert before == {}
    assert edges(graph(topology, log.events)) == {("think", "tools"): ("transfer", "taken")}


def test_a_goto_that_something_leads_back_from_is_no_transfer() -> None:
    log = Log("r1").ran("think", 1).note("control", wave=1, by="think", goto="tools")
    log.ran("tools", 2).note("control", wave=2, by="tools", goto="think")

    assert edges(graph(plan("think>", "tools>", entry=["think"]), log.events)) == {
        ("think", "tools"): ("goto", "taken"),
        ("tools", "think"): ("goto", "taken"),
    }


def test_a_goto_to_the_closing_step_is_no_transfer() -> None:
    log = Log("r1").ran("think", 1).note("control", wave=1, by="think", goto="final")
    topology = plan("think>", "final>", entry=["think"], terminal=["final"])

    assert edges(graph(topology, log.events)) == {("think", "final"): ("goto", "taken")}


def test_a_goto_along_an_edge_of_the_plan_takes_that_edge() -> None:
    log = Log("r1").ran("a", 1).note("control", wave=1, by="a", goto="b")

    assert edges(graph(plan("a>b"), log.events)) == {("a", "b"): ("edge", "taken")}


def test_the_end_is_no_node_to_go_to() -> None:
    log = Log("r1").ran("a", 1).note("control", wave=1, by="a", goto="__end__")

    assert edges(graph(plan("a>b"), log.events)) == {("a", "b"): ("edge", "possible")}


def test_instances_are_rows_inside_their_template() -> None:
    topology, log = gallery.fan_out("en")
    picture = graph(topology, log.events)
    template = node(picture, "scout")

    rows = [box for box in picture.nodes if box.instance]

    assert [(row.key, row.state) for row in rows] == [
        ("scout#Kyoto", "completed"),
        ("scout#Lisbon", "running"),
        ("scout#Oaxaca", "failed"),
    ]
    assert all(inside(row, template) for row in rows)
    assert edges(picture)["plan", "scout"] == ("send", "taken")


def test_many_instances_are_counted_and_not_all_drawn() -> None:
    log = Log("r1").ran("plan", 1)
    for number in range(40):
        log.note("control", wave=1, by="plan", send="work", key=str(number))
        log.note("node_started", node=f"work#{number}", wave=2)

    picture = graph(plan("plan>", "work>", template=["work"]), log.events)

    assert len([box for box in picture.nodes if box.instance]) == 6
    assert node(picture, "work").more == 34


def test_a_call_is_a_lane_inside_the_node_that_called() -> None:
    picture = graph(INCIDENT, gallery.incident("en").events, children=CHILDREN)
    caller = node(picture, "diagnose")
    lanes = [box for box in picture.boxes if isinstance(box, GraphLane)]

    assert [(lane.name, lane.state) for lane in lanes] == [
        ("diag_cpu", "completed"),
        ("diag_log", "completed"),
    ]
    assert all(inside(lane, caller) for lane in lanes)
    for lane in lanes:
        steps = [box for box in picture.nodes if box.run_id == lane.run_id]
        assert [step.key for step in steps] == ["think", "tools", "final"]
        assert all(inside(step, lane) for step in steps)


def test_a_transfer_is_an_arrow_between_nodes_and_no_lane() -> None:
    picture = graph(INCIDENT, gallery.incident("en").events, children=CHILDREN)

    assert edges(picture)["decide", "approve_fix"] == ("transfer", "taken")


def test_lanes_nest_as_deep_as_the_calls() -> None:
    log = Log("r1").note("node_started", node="a", wave=1)
    for depth in range(4):
        outer = "~1" * depth
        log.note("delegated", outer, node="a", wave=1, child=f"r1{outer}~1", name=f"level {depth}")
        log.note("node_started", f"{outer}~1", node="a", wave=1)

    boxes = [box for box in graph(plan("a>"), log.events).boxes if isinstance(box, GraphLane)]

    assert [lane.depth for lane in boxes] == [1, 2, 3, 4]
    assert all(inside(lane, outer) for outer, lane in pairwise(boxes))


def test_without_its_plan_a_run_is_drawn_from_its_events() -> None:
    log = Log("r1").ran("a", 1).ran("b", 2, why={"code": "edges", "nodes": ["a"]})

    picture = graph(None, log.events)

    assert [(box.key, box.entry, box.state) for box in picture.nodes] == [
        ("a", True, "completed"),
        ("b", False, "completed"),
    ]
    assert edges(picture) == {("a", "b"): ("edge", "taken")}


def test_every_moment_of_a_run_can_be_drawn() -> None:
    events = gallery.decided("en", True).events

    for count in range(len(events) + 1):
        assert graph(INCIDENT, events[:count], children=CHILDREN).boxes


def test_the_marks_of_all_events_in_order_give_the_states_of_the_picture() -> None:
    events = gallery.decided("en", False).events
    picture = graph(INCIDENT, events, children=CHILDREN)

    last = {mark.id: mark.state for fact in events for mark in marks_of(fact)}

    assert {box.id: box.state for box in picture.boxes if box.id in last} == {
        box.id: last[box.id] for box in picture.boxes if box.id in last
    }


def test_a_node_and_the_edge_into_it_age_by_a_wave_whenever_one_begins() -> None:
    log = Log("r1").ran("a", 1)
    for wave, (source, node) in enumerate(pairwise("abcd"), 2):
        log.ran(node, wave, why={"code": "edges", "nodes": [source]})
    picture = graph(plan("a>b", "b>c", "c>d", "d>e"), log.events)

    assert {node.key: node.age for node in picture.nodes} == {"a": 3, "b": 2, "c": 1, "d": 0, "e": 3}
    assert {edge.target: edge.age for edge in picture.edges} == {"b": 2, "c": 1, "d": 0, "e": 3}


def test_a_template_is_as_young_as_the_youngest_of_its_instances() -> None:
    log = Log("r1").ran("a", 1).ran("t#1", 2).ran("a", 3).ran("t#2", 4).ran("a", 5)
    picture = graph(plan("a>t", template=["t"]), log.events)

    assert {node.key: node.age for node in picture.nodes} == {"a": 0, "t": 1, "t#1": 3, "t#2": 1}


def test_a_breakpoint_is_drawn_at_the_node_whose_path_it_names() -> None:
    log = Log("r1").ran("a", 1)
    log.note("delegated", node="a", wave=1, call="x", child="r1~1", task="t", name="x", relation="call")
    log.note("run_started", "~1", task="t", path="a/").ran("b", 1, "~1")
    picture = graph(plan("a>b"), log.events, stops=[("before", "b"), ("after", "a/b"), ("after", "b")])

    stops = {node.id: node.stops for node in picture.nodes}

    assert stops == {"node-/a": (), "node-/b": ("before", "after"), "node-~1/b": ("after",)}


def test_only_what_adds_to_the_shape_asks_for_a_new_layout() -> None:
    kinds = {fact.kind for fact in gallery.decided("en", True).events if reshapes(fact)}

    assert kinds == {"control", "delegated"}


def test_a_way_that_is_taken_again_leaves_the_shape_as_it_is() -> None:
    log = Log("r1").note("run_started")
    for wave in (1, 2):
        log.note("control", wave=wave, by="a", goto="b").note("node_started", wave=wave, node="b#1")
    told = Story()

    assert [told.add(fact, ()) for fact in log.events] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("node_queued", "queued"),
        ("node_started", "running"),
        ("node_completed", "completed"),
        ("node_retry", "retrying"),
        ("node_failed", "failed"),
        ("node_cancelled", "cancelled"),
        ("node_skipped", "skipped"),
        ("interrupted", "parked"),
        ("node_parked", "parked"),
        ("resumed", "queued"),
    ],
)
def test_an_event_marks_its_node(kind: str, state: str) -> None:
    (fact,) = Log("r1").note(kind, node="a", wave=3).events

    assert marks_of(fact) == (Mark(node_id("r1", "a"), state, 3),)


def test_a_node_that_parks_on_a_run_inside_it_waits() -> None:
    (fact,) = Log("r1").note("node_parked", node="a", wave=3, nested=[{"id": "a/b"}]).events

    assert marks_of(fact) == (Mark(node_id("r1", "a"), "waiting", 3),)


def test_a_skip_marks_the_edges_that_were_dead() -> None:
    why = {"code": "dead_edges", "nodes": ["x", "y"]}
    (fact,) = Log("r1").note("node_skipped", node="a", why=why).events

    assert [mark.id for mark in marks_of(fact) if mark.state == "dead"] == [
        edge_id("r1", "x", "a"),
        edge_id("r1", "y", "a"),
    ]


def test_the_end_of_a_child_run_marks_its_lane_and_the_end_of_the_root_marks_nothing() -> None:
    root, child = Log("r1").note("run_completed").note("run_completed", "~1").events

    assert marks_of(root) == ()
    assert marks_of(child) == (Mark(lane_id("r1~1"), "completed"),)


@given(
    st.sampled_from(sorted(gallery.KINDS)),
    st.dictionaries(
        st.sampled_from(["node", "why", "by", "goto", "send", "child", "wave", "name"]),
        st.none()
        | st.integers()
        | st.text(max_size=3)
        | st.lists(st.integers() | st.lists(st.text(max_size=2)), max_size=2),
    ),
)
def test_an_event_of_an_unexpected_shape_is_drawn_all_the_same(kind: str, data: dict[str, object]) -> None:
    log = Log("r1").note("node_started", node="a", wave=1).note(kind, **data)

    assert graph(plan("a>b"), log.events).boxes


def test_a_rejoin_is_no_transfer_and_rearming_oneself_is_no_edge() -> None:
    log = Log("r1").ran("a", 1)
    log.note("control", wave=1, by="a", goto="b", immediate=False)
    log.note("control", wave=1, by="a", goto="a", immediate=False)

    assert edges(graph(plan("a>", "b>", entry=["a"]), log.events)) == {("a", "b"): ("rejoin", "rearmed")}


def called_again() -> Log:
    """A node that calls the same agent twice; the second run has only begun."""
    log = Log("r1").note("node_started", node="ask", wave=1)
    for number in (1, 2):
        log.note("delegated", node="ask", wave=number, child=f"r1~{number}", name="clerk")
        log.note("node_started", f"~{number}", node="think", wave=1, why={"code": "entry"})
        if number == 1:
            log.ran("answer", 2, "~1", why={"code": "edges", "nodes": ["think"]})
            log.note("run_completed", "~1")
    return log


def test_calling_the_same_agent_again_reuses_its_lane() -> None:
    picture = graph(plan("ask>"), called_again().events)

    (lane,) = [box for box in picture.boxes if isinstance(box, GraphLane)]

    assert (lane.id, lane.also, lane.runs, lane.state) == (
        lane_id("r1~2"),
        (lane_id("r1~1"),),
        2,
        "running",
    )


def test_a_reused_lane_shows_the_last_run_in_the_shape_of_all() -> None:
    picture = graph(plan("ask>"), called_again().events)

    assert [(box.key, box.state, box.also) for box in picture.nodes if box.depth] == [
        ("think", "running", (node_id("r1~1", "think"),)),
        ("answer", "pending", (node_id("r1~1", "answer"),)),
    ]


def test_a_called_run_whose_plan_is_not_known_follows_one_that_fits() -> None:
    agent = plan("think>tools", "tools>think", "think>final", entry=["think"])
    log = Log("r1").note("node_started", node="ask", wave=1)
    log.note("delegated", node="ask", wave=1, child="r1~1", name="clerk")
    log.ran("think", 1, "~1").ran("final", 2, "~1", why={"code": "edges", "nodes": ["think"]})

    picture = graph(plan("ask>"), log.events, children={"": agent})

    assert [box.key for box in picture.nodes if box.depth] == ["think", "tools", "final"]


def test_nodes_of_deep_calls_are_small() -> None:
    log = Log("r1").note("node_started", node="a", wave=1)
    for depth in range(2):
        outer = "~1" * depth
        log.note("delegated", outer, node="a", wave=1, child=f"r1{outer}~1", name="inner")
        log.note("node_started", f"{outer}~1", node="a", wave=1)

    assert [box.small for box in graph(plan("a>"), log.events).nodes] == [False, False, True]
