"""What the pages receive: frozen values, named as the API names them.

A template sees nothing but these.  They carry no behaviour beyond questions
that a page asks of them (`mood`, `commands`), so a page can be painted, tested
and shown in the gallery without a server, a store or an engine.

Texts are in the reader's language already.  Times are seconds since the epoch,
durations are seconds, positions (`id`, `at`) count events over the whole tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from playground.kernel.types import NodeStatus, RunState
from playground.kernel.values import JsonObject, JsonValue
from playground.sessions import Proof, writes_of
from playground.web import paths
from playground.web.forms import Form
from playground.web.graphview import Graph, Mark, marks_json, node_id
from playground.web.waterfall import Waterfall
from playground.web.wavegrid import WaveGrid


class Mood(StrEnum):
    """How a run stands in the eyes of a person: finer than the kernel's four states."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    STOPPED = "stopped"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


Command = Literal["pause", "step", "continue", "cancel", "crash", "fork", "again", "breakpoints", "delete"]
"""What a person may ask of a run; each is a button where `RunView.commands` has it."""


_COMMANDS: Mapping[Mood, tuple[Command, ...]] = {
    Mood.RUNNING: ("pause", "breakpoints", "crash", "cancel"),
    Mood.WAITING: ("breakpoints", "fork", "cancel"),
    Mood.PAUSED: ("continue", "step", "breakpoints", "fork", "cancel"),
    Mood.STOPPED: ("continue", "breakpoints", "fork", "cancel"),
    Mood.COMPLETED: ("again", "fork"),
    Mood.CANCELLED: ("again", "fork"),
    Mood.FAILED: ("fork", "again"),
}


_GOING_ON: frozenset[Command] = frozenset({"continue", "step", "again", "fork", "breakpoints"})
"""What needs the scenario: without it a run can only be read, or ended."""


def mood_of(state: RunState, *, driven: bool, paused: bool, reason: str = "") -> Mood:
    """The mood of a run.

    Args:
        driven: whether a process is at it now.
        paused: whether all that it waits for is a breakpoint.
        reason: why it failed, the code in its last event.
    """
    if state is RunState.RUNNING:
        return Mood.RUNNING if driven else Mood.STOPPED
    if state is RunState.SUSPENDED:
        return Mood.PAUSED if paused else Mood.WAITING
    if state is RunState.COMPLETED:
        return Mood.COMPLETED
    return Mood.CANCELLED if reason == "cancelled" else Mood.FAILED


# Scenarios


@dataclass(frozen=True, slots=True)
class LessonStep:
    """One thing to look at.

    Args:
        node: key of the node it points at, if any.
        at: position of the event it points at, if any.
        question: a prediction to make before going on; `options` are the possible answers
            and `answers` the right ones.
        passed: whether the log bears the step out; None while it cannot tell yet.
    """

    text: str
    node: str = ""
    at: int = 0
    question: str = ""
    options: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file; `active` when it belongs to the chosen node."""

    number: int
    text: str
    active: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A scenario's file, or the part of it that is worth showing.

    Args:
        file: its name as a reader would say it, such as `scenarios/trader.py`.
        nodes: for each node, the number of the line where its function begins.
    """

    file: str
    lines: tuple[SourceLine, ...]
    nodes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScenarioCard:
    """A scenario in the picker, with its graph as a sketch; one that does not load has the reason."""

    key: str
    title: str
    summary: str = ""
    concepts: tuple[str, ...] = ()
    graph: Graph | None = None
    waiting: int = 0
    error: str = ""
    traceback: str = ""

    @property
    def url(self) -> str:
        """Its page."""
        return paths.scenario(self.key)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model plays the scripted parts; its key is never shown.

    Args:
        name: of the model; empty: the scripts play themselves.
        address: of its service.
        set_here: whether it was set on the page; else the environment says it.
        entered: the name and the address that were asked for and cannot be used.
        problem: why not.
    """

    name: str = ""
    address: str = ""
    set_here: bool = False
    entered: tuple[str, str] | None = None
    problem: str = ""

    @property
    def shown(self) -> tuple[str, str]:
        """The name and the address in the form."""
        return self.entered or (self.name, self.address)


@dataclass(frozen=True, slots=True)
class ScenarioView:
    """A scenario's page.

    Args:
        teaches: what it teaches, in a sentence.
        model: the name of the model it will use; empty for its script.
    """

    key: str
    title: str
    summary: str
    teaches: str
    concepts: tuple[str, ...]
    lesson: tuple[LessonStep, ...]
    graph: Graph
    form: Form
    source: Source | None = None
    model: str = ""
    runs: tuple[RunRow, ...] = ()
    error: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Picker:
    """The first page: scenarios that match `q`, grouped as the files say, and what waits for a person."""

    cards: tuple[ScenarioCard, ...]
    q: str = ""
    concepts: tuple[str, ...] = ()
    total: int = 0
    waiting: int = 0


# Runs


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """Where a run left another one's history."""

    run_id: str
    at: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list."""

    run_id: str
    scenario: str
    title: str
    state: RunState
    mood: Mood
    task: str
    created: float
    updated: float
    waiting: int = 0
    events: int = 0
    continues: str | None = None
    forked_from: ForkPoint | None = None

    @property
    def url(self) -> str:
        """Its page."""
        return paths.run(self.run_id)


@dataclass(frozen=True, slots=True)
class RunList:
    """The list of runs and what narrows it; `waiting` counts parked steps over all runs."""

    runs: tuple[RunRow, ...]
    store: str
    state: str = ""
    scenario: str = ""
    q: str = ""
    next: str | None = None
    waiting: int = 0
    scenarios: tuple[tuple[str, str], ...] = ()

    @property
    def narrowed(self) -> bool:
        """Whether some runs may be hidden."""
        return bool(self.state or self.scenario or self.q)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about a parked step, by whom, when, through what, and what it changes."""

    outcome: Literal["approved", "rejected", "answered", "expired", "cancelled"]
    by: str
    at: float
    via: str = ""
    comment: str = ""
    difference: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Follows:
    """The nodes that each verb leads to, as far as the plan can tell."""

    approve: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParkedStep:
    """A step that waits for a person.

    Args:
        id: the interrupt's address in the run, such as `research/approve`.
        kind: `approval`, `input`, `breakpoint`, or a scenario's own word.
        payload: the evidence.
        since: when it parked.
        expires_at: when the run goes on without a person, with `default`.
        form: the fields to edit or fill, from the interrupt's schema; None when it has none.
        tool: the tool that asks, when the call of one does.
        again: how often the node's body will have run after the answer, counted from its top.
        decision: set when someone has decided already.
        error: why the last answer was refused.
    """

    id: str
    run_id: str
    node: str
    kind: str
    question: str
    payload: JsonValue
    since: float
    expires_at: float | None = None
    default: JsonValue = None
    form: Form | None = None
    follows: Follows = Follows()
    tool: str = ""
    scenario: str = ""
    again: int = 2
    decision: Decision | None = None
    error: str = ""

    @property
    def url(self) -> str:
        """Its plain page."""
        return paths.step(self.run_id, self.id)

    @property
    def verdict(self) -> bool:
        """Whether the answer is a yes or a no, not a text."""
        return self.kind != "input"


class EventRow(NamedTuple):
    """An event in the timeline; a tuple, like the event itself, since a long run makes thousands at once.

    Args:
        id: its position in the tree's stream.
        offset: seconds since the root run's first event.
        owner: who the event belongs to: the names of the child runs down to it, such as `diag_cpu`.
        depth: how many child runs deep it lies.
        opens: the wave of the root run that this row is the first of, or 0.
        width: how many nodes start in that wave.
        repeats: how many events just like it, of the same kind and node, come right before it.
        marks: what the event changes in the graph.
        layers: the layers whose state the event changes.
        again: how often the same call was made before, as its node's body ran again.
        given: the tools whose results a body that starts gets from memory, without running them.
    """

    id: int
    seq: int
    run_id: str
    parent_id: str | None
    kind: str
    ts: float
    data: Mapping[str, JsonValue]
    offset: float = 0.0
    owner: str = ""
    depth: int = 0
    opens: int = 0
    width: int = 0
    repeats: int = 0
    marks: tuple[Mark, ...] = ()
    layers: tuple[str, ...] = ()
    again: int = 0
    given: tuple[str, ...] = ()

    @property
    def graph(self) -> str:
        """What the event changes in the graph, as JSON for the page's script; empty for nothing."""
        return marks_json(self.marks) if self.marks else ""

    @property
    def writes(self) -> bool:
        """Whether it changes the state."""
        return bool(writes_of(self.kind, self.data))

    @property
    def node(self) -> str:
        """The node it speaks of, or nothing."""
        node = self.data.get("node")
        return node if isinstance(node, str) else ""

    @property
    def wave(self) -> int:
        """The wave of its own run that it belongs to, 0 before the first."""
        wave = self.data.get("wave")
        return wave if isinstance(wave, int) else 0

    @property
    def mark(self) -> str:
        """The element of the graph that it speaks of, or nothing."""
        return node_id(self.run_id, self.node) if self.node else ""


@dataclass(frozen=True, slots=True)
class Ticks:
    """The events of one tone on the scrubber's track.

    Args:
        tone: as in the timeline, or `wave` for those that a wave of the root begins with.
        kinds: of the events that are drawn so.
        path: one stroke for each event, at its position, as an SVG path.
    """

    tone: str
    kinds: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as of a moment: `why` is the reason in the engine's terms, with a `code`."""

    key: str
    status: NodeStatus
    output: JsonValue = None
    attempts: int = 0
    why: JsonObject = field(default_factory=dict)
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One writer's part in a channel's new value, and the event that holds it."""

    node: str
    value: JsonValue
    at: int = 0


@dataclass(frozen=True, slots=True)
class StateRow:
    """A channel as of a moment: its value before the wave, who wrote what, and its value after.

    `update` is what a fork writes to leave it as it is, as JSON to be edited; empty where a fork cannot,
    or the value is too long for that.
    """

    channel: str
    reducer: str
    after: JsonValue
    before: JsonValue = None
    writes: tuple[Write, ...] = ()
    update: str = ""

    @property
    def changed(self) -> bool:
        """Whether this wave wrote to it."""
        return bool(self.writes)


@dataclass(frozen=True, slots=True)
class Moment:
    """The run as of one event: what the inspector shows."""

    at: int
    last: int
    wave: int
    event: EventRow | None
    rows: tuple[StateRow, ...] = ()
    node: NodeView | None = None


@dataclass(frozen=True, slots=True)
class LayerGift:
    """A prompt, a piece of the user's message or a tool, and the layer that gave it.

    Args:
        surface: the layer's property that holds it, such as `prefix_prompts`.
        text: the prompt, or the tool's name.
        changed: whether it is new with this event.
    """

    layer: str
    surface: str
    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class LayerView:
    """A layer as of a moment.

    Args:
        type: the name of its class.
        deps: the layers that it builds on, by the field that holds each.
        state: what it remembers.
        before: what it remembered before this event.
    """

    name: str
    type: str = ""
    deps: Mapping[str, str] = field(default_factory=dict)
    state: JsonObject = field(default_factory=dict)
    before: JsonObject = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether this event changed what it remembers."""
        return self.state != self.before


Lifecycle = Literal["active", "suspended", "closed"]


@dataclass(frozen=True, slots=True)
class LayersView:
    """What a run's layers have put together as of a moment; without layers: they are still being entered."""

    lifecycle: Lifecycle
    layers: tuple[LayerView, ...] = ()
    prompts: tuple[LayerGift, ...] = ()
    user_prompts: tuple[LayerGift, ...] = ()
    tools: tuple[LayerGift, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenStream:
    """What a model said in one call, its reasoning apart."""

    call_id: str
    node: str
    owner: str = ""
    text: str = ""
    reasoning: str = ""
    tokens: int = 0
    done: bool = True


@dataclass(frozen=True, slots=True)
class Spent:
    """What a node has spent on models and tools, over all of its attempts.

    Args:
        owner: the names of the child runs down to it.
        seconds: how long it waited for their answers.
    """

    owner: str
    node: str
    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed, in a sentence, and the way out.

    Args:
        at: position of the event before which a fork would go on, 0 if there is none.
    """

    reason: str
    node: str = ""
    code: str = ""
    way_out: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a run has used."""

    waves: int = 0
    nodes: int = 0
    tokens: int = 0
    seconds: float = 0.0
    model_calls: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True)
class Stops:
    """The breakpoints of a run, and what else could be one.

    Args:
        given: each in words, in the order of the log.
        nodes: the paths of the nodes that there are.
        channels: the channels of the root run.
        kinds: the kinds of events that are offered.
        operators: how a value may be compared.
        problem: why the last one was not taken.
    """

    run_id: str = ""
    given: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run's page.

    Args:
        driven: whether a process is at it.
        reason: why it can only be read, when its scenario is gone or changed; empty otherwise.
        events: a stretch of the timeline's rows; `earlier` and `later` count those before and after it.
        ticks: the whole run on the scrubber's track, thinned out where it is long.
        base: the graph's marks just before the first of `events`, as JSON, for going back in time.
        interrupts: its open questions; `decided`: the one that was decided last, for when none is open.
        chain: the runs of the conversation that this one belongs to, oldest first.
        branches: the runs forked from this one.
        layers: the layers at the moment; None for a scenario that is not made of them.
        proof: the checkpoint held against the log; None where there is no checkpoint.
        stops: the breakpoints.
        kinds, names: the kinds of its events, and the keys of its nodes, to choose from.
        asked: the position that the address named, 0 for none; the moment is the nearest to it.
        unproved: whether it rests, and has gone on since that was looked at.
    """

    run_id: str
    scenario: str
    title: str
    state: RunState
    mood: Mood
    driven: bool
    task: str
    waves: int
    last_event_id: int
    created: float
    graph: Graph
    grid: WaveGrid
    moment: Moment
    events: tuple[EventRow, ...] = ()
    earlier: int = 0
    later: int = 0
    interrupts: tuple[ParkedStep, ...] = ()
    decided: tuple[ParkedStep, ...] = ()
    output: JsonValue = None
    error: Failure | None = None
    metrics: Metrics = Metrics()
    parent_id: str | None = None
    children: tuple[str, ...] = ()
    continues: str | None = None
    forked_from: ForkPoint | None = None
    chain: tuple[RunRow, ...] = ()
    branches: tuple[RunRow, ...] = ()
    source: Source | None = None
    tokens: tuple[TokenStream, ...] = ()
    spent: tuple[Spent, ...] = ()
    lesson: tuple[LessonStep, ...] = ()
    ticks: tuple[Ticks, ...] = ()
    base: str = ""
    reason: str = ""
    layers: LayersView | None = None
    proof: Proof | None = None
    unproved: bool = False
    stops: Stops = Stops()
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    asked: int = 0
    waterfall: Waterfall = field(default_factory=Waterfall)

    @property
    def url(self) -> str:
        """Its page."""
        return paths.run(self.run_id)

    @property
    def steps(self) -> tuple[ParkedStep, ...]:
        """The cards of its page."""
        return self.interrupts or self.decided

    @property
    def testable(self) -> bool:
        """Whether a test can play it again, from its own beginning to its own end."""
        ended = self.mood in (Mood.COMPLETED, Mood.FAILED)
        return ended and not (self.forked_from or self.continues or self.reason)

    @property
    def commands(self) -> tuple[Command, ...]:
        """What a person may ask of it as it stands."""
        allowed = _COMMANDS[self.mood]
        return tuple(c for c in allowed if c not in _GOING_ON) if self.reason else allowed


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a page: what happened, the rule, and the way out."""

    status: int
    title: str
    detail: str
    back: str = paths.HOME
