"""A run: one execution of a plan, as the fold of its own events.

The trouble this file removes is two truths.  A run that the engine changes by
one set of functions and a replay rebuilds by another will differ some day.
Here there is one function, `Run.apply(event)`, and it is the only way a run
changes: the engine makes an event, the log keeps it, `apply` does it.  A replay
hands the same events to the same function, so it gives the same run.

`apply` therefore calls no user code: no body, predicate, join or model.  What
such code decided is in the event.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from playground.kernel.channels import Channel, fold_into_state
from playground.kernel.command import END
from playground.kernel.eventlog import FORMAT, Event, LogError, check_run_id
from playground.kernel.readiness import Reason
from playground.kernel.types import ALLOWED_TRANSITIONS, NodeStatus, RunState
from playground.kernel.values import (
    NO_LIMIT,
    FrozenDict,
    FrozenList,
    JsonObject,
    JsonValue,
    frozen_object,
    text_in,
)

if TYPE_CHECKING:
    from playground.kernel.graph import Plan

Data: TypeAlias = Mapping[str, Any]
"""What an event holds: its shape goes by its kind, and `apply` reports data of another shape."""

BREAKPOINT = "@breakpoint"
"""Path of the interrupt with which a whole run pauses; no node key gives this path."""


VERDICT = frozenset({"approved", "comment"})
"""The keys of an approval that are about the decision; all others are edited fields."""


def new_run_id() -> str:
    """A fresh id for a root run."""
    return f"run-{os.urandom(6).hex()}"


def escape_key(key: str) -> str:
    """A node key as a segment of an interrupt's id."""
    return key.replace("%", "%25").replace("/", "%2F").replace("@", "%40")


def split_park(interrupt_id: str) -> tuple[str, int]:
    """The path of an interrupt, and which one on that path it is, counted from 1."""
    path, _, number = interrupt_id.rpartition("@")
    return (path, int(number)) if number.isdigit() else (interrupt_id, 1)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A step that waits for an answer from outside.

    Attributes:
        kind: "approval", "input", "breakpoint", or a kind of the caller's own.
        payload: what the answer is about: JSON.
        question: what is asked, for a person.
        node_id: the node of this run that waits.
        id: the path that addresses it, unique in the whole tree of runs, for ever.
        schema: JSON Schema of the answer, where one was given.
        expires_at: wall time in seconds after which `default` is the answer; None: it waits for ever.
        default: the answer that an expiry gives.
        expires_in: seconds from the moment of parking, turned into `expires_at` by the engine.
    """

    kind: str
    payload: JsonValue = None
    question: str = ""
    node_id: str = ""
    id: str = ""
    schema: JsonObject | None = None
    expires_at: float | None = None
    default: JsonValue = None
    expires_in: float | None = None

    @property
    def proposed(self) -> JsonValue:
        """What an approval may edit: the arguments of a tool that asks, else the whole payload."""
        if isinstance(self.payload, dict) and "tool" in self.payload:
            return self.payload.get("arguments", self.payload)
        return self.payload

    def difference(self, answer: JsonValue) -> JsonObject:
        """What an approval changes in what was proposed: `{field: {"proposed", "decided"}}`."""
        if not isinstance(answer, dict) or answer.get("approved") is not True:
            return {}
        before = self.proposed if isinstance(self.proposed, dict) else {}
        return {
            name: {"proposed": before.get(name), "decided": decided}
            for name, decided in answer.items()
            if name not in VERDICT and (name not in before or before[name] != decided)
        }

    def to_json(self) -> JsonObject:
        """The interrupt as it stands in events and snapshots."""
        return {"node": self.node_id, **{name: getattr(self, name) for name in _TOLD}}

    @classmethod
    def from_json(cls, data: Data, node_id: str | None = None) -> Interrupt:
        """The interrupt that an event or a snapshot holds, for the run in which `node_id` waits."""
        told = {name: data[name] for name in _TOLD}
        return cls(**told, node_id=data["node"] if node_id is None else node_id)


_TOLD = ("id", "kind", "question", "payload", "schema", "expires_at", "default")


@dataclass(slots=True)
class NodeState:
    """Where one node or instance stands.

    `attempts` counts starts, `activation` counts new beginnings, `place` is an instance's among its siblings.
    """

    status: NodeStatus = NodeStatus.PENDING
    output: JsonValue = None
    attempts: int = 0
    activation: int = 0
    why: JsonValue = None
    place: int = 0

    def to_json(self) -> FrozenList:
        """The state as it stands in a snapshot; the place is that among the instances there."""
        return FrozenList((str(self.status), self.output, self.attempts, self.activation, self.why))


@dataclass(slots=True)
class Activation:
    """What a node remembers from when it became ready until its body returns anything but a park.

    Attributes:
        input: what the body gets, the same at each attempt.
        failures: failed attempts so far, which count against a retry policy.
        calls: results of model, tool and child calls by call key, given back when the body runs again.
        asks: interrupt id of each question by call key; the node's own park has the key "".
        answers: what was answered, by interrupt id.
        answer: id of the latest answer to the node's own park.
    """

    input: JsonValue = None
    failures: int = 0
    calls: dict[str, JsonObject] = field(default_factory=dict)
    asks: dict[str, str] = field(default_factory=dict)
    answers: dict[str, JsonValue] = field(default_factory=dict)
    answer: str = ""

    def to_json(self) -> FrozenDict:
        """The activation as it stands in a snapshot."""
        kept = {name: FrozenDict(getattr(self, name)) for name in ("calls", "asks", "answers")}
        return FrozenDict({"input": self.input, "failures": self.failures, "answer": self.answer, **kept})

    @classmethod
    def from_json(cls, data: Data) -> Activation:
        """The activation that a snapshot holds."""
        kept = {name: dict(data[name]) for name in ("calls", "asks", "answers")}
        return cls(input=data["input"], failures=data["failures"], answer=data["answer"], **kept)


@dataclass(slots=True)
class Wave:
    """The wave that is open: who waits for a slot, what others returned, how much of the barrier is done.

    `parked`: a node of it waits for an answer, so the run suspends at the barrier.
    """

    number: int = 0
    queued: set[str] = field(default_factory=set)
    returned: dict[str, Data] = field(default_factory=dict)
    parked: bool = False
    committed: int = 0

    def to_json(self) -> FrozenDict:
        """The wave as it stands in a snapshot."""
        returned = cast("dict[str, JsonValue]", self.returned)
        kept = {"queued": FrozenList(sorted(self.queued)), "returned": FrozenDict(returned)}
        return FrozenDict({name: kept.get(name, getattr(self, name)) for name in self.__slots__})

    @classmethod
    def from_json(cls, data: Data) -> Wave:
        """The wave that a snapshot holds."""
        return cls(**{**data, "queued": set(data["queued"]), "returned": dict(data["returned"])})


class Run:
    """One execution of a plan: shared state, where each node stands, open questions, and the outcome.

    Read its attributes freely; it changes by events alone, each by its step in `STEPS`.
    """

    def __init__(self, plan: Plan, run_id: str | None = None, *, parent_id: str | None = None) -> None:
        self.plan = plan
        self.run_id = check_run_id(run_id) if run_id is not None else new_run_id()
        self.parent_id = parent_id
        self.depth = 0
        self.task = ""
        self.path = ""
        self.meta: JsonObject = _NOTHING
        self.event_seq = 0
        self.last_pos = 0
        self.shared: dict[str, JsonValue] = plan.initial_shared()
        self.view: Mapping[str, JsonValue] = MappingProxyType(self.shared)
        self.node_states: dict[str, NodeState] = {}
        self.instances: dict[str, list[str]] = {}
        self.instance_inputs: dict[str, JsonValue] = {}
        self.senders: dict[str, str] = {}
        self.deliveries: dict[str, JsonValue] = {}
        self.activated: dict[str, Reason] = {}
        self.activations: dict[str, Activation] = {}
        self.wave = Wave()
        self.state = RunState.RUNNING
        self.interrupts: dict[str, Interrupt] = {}
        self.decisions: dict[str, JsonObject] = {}
        self.parks: dict[str, int] = {}
        self.children: list[str] = []
        self.sweep: list[str] = []
        self.breakpoints: list[JsonValue] = []
        self.passed = -1
        self.stepping = False
        self.ended_by: str | None = None
        self.failed_node: str | None = None
        self.final_output: JsonValue = None
        self.metrics: dict[str, int] = {"waves": 0, "llm_calls": 0, "tool_calls": 0, "tokens": 0}
        self.calls_in_flight = 0
        self.saved_seq = 0
        self.sends = 0

    @classmethod
    def start(
        cls,
        plan: Plan,
        *,
        run_id: str | None = None,
        parent_id: str | None = None,
        depth: int = 0,
        task: str = "",
        path: str = "",
        meta: Mapping[str, object] | None = None,
    ) -> Run:
        """A run of a validated plan that has not begun; until it is driven, `shared` may be set freely.

        Raises:
            ValueError: the plan is not sound, or `run_id` is not an id.
        """
        run = cls(plan.validate(), run_id, parent_id=parent_id)
        run.depth, run.task, run.path = depth, task, path
        run.meta = frozen_object(meta or {}, "meta of a run")
        return run

    # What can be asked.

    @property
    def running(self) -> bool:
        """Whether it is neither parked nor over."""
        return self.state is RunState.RUNNING

    def state_of(self, key: str) -> NodeState:
        """Where a node or instance stands."""
        return self.node_states.get(key) or NodeState()

    def status_of(self, key: str) -> NodeStatus:
        """The status of a node or instance."""
        state = self.node_states.get(key)
        return NodeStatus.PENDING if state is None else state.status

    def is_completed(self, key: str) -> bool:
        """Whether a node or instance has an output."""
        return self.status_of(key) is NodeStatus.COMPLETED

    def output_of(self, key: str) -> JsonValue:
        """The output of a node or instance; a template's is the list of its instances'."""
        if key in self.plan.shape.templates:
            return FrozenList([self.node_states[instance].output for instance in self.instances.get(key, ())])
        return self.state_of(key).output

    def parked_on(self, key: str) -> tuple[str, ...]:
        """The ids of the open interrupts that a parked node waits for; none once one of them is answered."""
        if not self.interrupts or key in self.activated or key not in self.activations:
            return ()
        return tuple(id for id, interrupt in self.interrupts.items() if interrupt.node_id == key)

    @property
    def open_nodes(self) -> list[str]:
        """The nodes of the open wave that have not returned, in plan order."""
        keys = [key for key, state in self.node_states.items() if state.status is NodeStatus.RUNNING]
        return sorted({*keys, *self.wave.queued}, key=self.order_of)

    def order_of(self, key: str) -> tuple[int, int]:
        """Where a node or instance stands in the plan: its node's place, then its own among the instances."""
        return self.plan.shape.order.get(key.partition("#")[0], -1), self.state_of(key).place

    # What events do.

    def touch(self, key: str, status: NodeStatus | None = None) -> NodeState:
        """The state of a node or instance, with a new status if one is given, to be changed."""
        state = self.node_states.get(key)
        if state is None:
            state = self.node_states[key] = NodeState()
        if status is not None:
            state.status = status
        return state

    def become(self, target: RunState) -> None:
        """Change state, if that is allowed.

        Raises:
            RuntimeError: it is not.
        """
        if target not in ALLOWED_TRANSITIONS[self.state]:
            raise RuntimeError(f"run {self.run_id} is {self.state} and cannot become {target}")
        self.state = target

    # The fold.

    def apply(self, event: Event) -> None:
        """Do what an event says.  The only way a run changes; calls no user code.

        Raises:
            LogError: the event is not this run's next one, or of a kind this version does not know.
        """
        if event.run_id != self.run_id:
            raise LogError(
                f"run {self.run_id}: event {event.seq} belongs to run {event.run_id}: "
                "the log mixes runs; restore it from a copy"
            )
        if event.seq != self.event_seq + 1:
            raise LogError(
                f"run {self.run_id}: event {event.seq} follows event {self.event_seq}: "
                "events are missing; restore the log from a copy"
            )
        if event.kind not in STEPS:
            raise LogError(
                f"run {self.run_id}: event {event.seq} has the unknown kind {event.kind!r}: "
                "it was written by a newer version; use that one"
            )
        try:
            self.take(event)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise LogError(
                f"run {self.run_id}: event {event.seq} ({event.kind}) does not fit this run "
                f"({type(error).__name__}: {error}): restore the log, or use the plan it was written with"
            ) from error

    def take(self, event: Event) -> None:
        """`apply` for an event that was just made for this run."""
        STEPS[event.kind](self, event.data)
        self.event_seq = event.seq
        if event.pos > self.last_pos:
            self.last_pos = event.pos

    # Snapshots: a cache of the fold.

    def snapshot(self) -> FrozenDict:
        """The whole run as JSON that shares nothing changeable with it; `restore` takes it back."""
        parts: JsonObject = {name: _kept(getattr(self, name)) for name in _AS_THEY_ARE}
        parts["format"] = FORMAT
        parts["state"] = self.state.value
        parts["shared"] = FrozenDict({key: _kept(value) for key, value in self.shared.items()})
        parts["node_states"] = FrozenDict({key: s.to_json() for key, s in self.node_states.items()})
        parts["instances"] = FrozenDict({key: FrozenList(keys) for key, keys in self.instances.items()})
        parts["activated"] = FrozenDict({key: reason.to_json() for key, reason in self.activated.items()})
        parts["activations"] = FrozenDict({key: found.to_json() for key, found in self.activations.items()})
        parts["wave"] = self.wave.to_json()
        parts["interrupts"] = FrozenList([FrozenDict(asked.to_json()) for asked in self.interrupts.values()])
        return FrozenDict(parts)

    @classmethod
    def restore(cls, plan: Plan, snapshot: Mapping[str, JsonValue]) -> Run:
        """The run that a snapshot was taken of.

        Raises:
            LogError: the snapshot is not one, or it does not fit the plan: a node that is
                parked or was about to run is gone, or so is a channel.
        """
        try:
            run = cls._restored(plan, frozen_object(snapshot, "snapshot", limit=NO_LIMIT))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise LogError(
                f"run {snapshot.get('run_id')}: its snapshot is unreadable: {type(error).__name__}: {error}; "
                "delete it, and the run is rebuilt from its log"
            ) from error
        run.check_fits()
        return run

    @classmethod
    def _restored(cls, plan: Plan, snap: Data) -> Run:
        if snap["format"] != FORMAT:
            raise ValueError(f"it has format {snap['format']}, this version reads {FORMAT}")
        run = cls(plan, snap["run_id"])
        for name in _AS_THEY_ARE:
            kind, value = type(getattr(run, name)), snap[name]
            if not isinstance(value, kind) and kind is not type(None):
                raise TypeError(f"{name} is {type(value).__name__}, not {kind.__name__}")
            setattr(run, name, kind(value) if kind in (dict, list) else value)
        run.saved_seq = run.event_seq
        run.state = RunState(snap["state"])
        for key, value in snap["shared"].items():
            run.set_channel(key, value)
        for key, (status, *rest) in snap["node_states"].items():
            run.node_states[key] = NodeState(NodeStatus(status), *rest)
        for template, keys in snap["instances"].items():
            run.instances[template] = list(keys)
            for place, key in enumerate(keys):
                run.node_states[key].place = place
        run.activated = {key: Reason.from_json(reason) for key, reason in snap["activated"].items()}
        run.activations = {key: Activation.from_json(found) for key, found in snap["activations"].items()}
        run.wave = Wave.from_json(snap["wave"])
        run.interrupts = {asked["id"]: Interrupt.from_json(asked) for asked in snap["interrupts"]}
        return run

    def check_fits(self) -> None:
        """Check that the plan still has what this run needs to go on; added nodes are fine.

        A plan without nodes can only be read with, and needs nothing.

        Raises:
            LogError: naming the node that is gone.
        """
        if self.state.ended or not self.plan.nodes:
            return
        for key in sorted({*self.activated, *self.activations}):
            if key.partition("#")[0] not in self.plan.nodes:
                raise LogError(
                    f"run {self.run_id}: node {key!r} was parked or about to run and is gone from the plan: "
                    "put it back, or fork the run from before it"
                )

    def channel(self, key: str) -> Channel:
        """The channel of that name.

        Raises:
            LookupError: the plan does not declare it.
        """
        channel = self.plan.channels.get(key) or self.plan.channel(key)
        if channel is None:
            raise LookupError(f"channel {key!r} is not in the plan: declare it again")
        return channel

    def set_channel(self, key: str, value: JsonValue) -> None:
        """Replace a channel's value.

        Raises:
            LookupError: the plan does not declare the channel.
        """
        self.shared[key] = self.channel(key).own(value)


def check_first(event: Event) -> None:
    """Check that a log begins as one, and is not of a newer version.

    Raises:
        LogError: naming the run and what to do.
    """
    if event.seq != 1 or event.kind != "run_started":
        raise LogError(
            f"run {event.run_id}: its log begins with event {event.seq} ({event.kind}): "
            "its start is missing; restore the log from a copy"
        )
    written = event.data.get("format", FORMAT)
    if not isinstance(written, int) or written > FORMAT:
        raise LogError(
            f"run {event.run_id}: its log has format {written}, this version reads {FORMAT}: use a newer one"
        )


def _kept(value: JsonValue) -> JsonValue:
    """A part of a run as it is now, shared where it is frozen."""
    if isinstance(value, list) and type(value) is not FrozenList:
        return FrozenList(value)
    return FrozenDict(value) if isinstance(value, dict) and type(value) is not FrozenDict else value


_NOTHING: JsonObject = FrozenDict()
_AS_THEY_ARE = (
    *("run_id", "parent_id", "depth", "task", "path", "meta", "event_seq", "last_pos"),
    *("passed", "stepping", "ended_by", "failed_node", "final_output", "sends"),
    *("instance_inputs", "senders", "deliveries", "decisions", "parks", "metrics"),
    *("children", "breakpoints", "sweep"),
)
"""The parts of a run that a snapshot holds as they are."""


def _run_started(run: Run, data: Data) -> None:
    run.task = data["task"]
    run.depth = data["depth"]
    run.path = data["path"]
    run.meta = data.get("meta", _NOTHING)
    for key, value in data.get("shared", _NOTHING).items():
        run.set_channel(key, value)
    run.breakpoints = list(data["breakpoints"])


def _node_queued(run: Run, data: Data) -> None:
    key = _open_wave(run, data)
    run.touch(key).why = data.get("why")
    run.wave.queued.add(key)
    run.activated.pop(key, None)


def _node_started(run: Run, data: Data) -> None:
    key = _open_wave(run, data)
    run.wave.queued.discard(key)
    run.activated.pop(key, None)
    state = run.touch(key, NodeStatus.RUNNING)
    state.attempts += 1
    state.why = data.get("why")


def _open_wave(run: Run, data: Data) -> str:
    """A start belongs to a wave, which it opens if it is new, and to an activation, likewise."""
    if data["wave"] != run.wave.number:
        run.metrics["waves"] = number = data["wave"]
        run.wave = Wave(number)
    key: str = data["node"]
    if key not in run.activations:
        run.activations[key] = Activation(_input(run, key, data))
        run.touch(key).activation += 1
    return key


def _input(run: Run, key: str, data: Data) -> JsonValue:
    """What an activation's body gets: a payload, or what came over the live edges that the event names."""
    if key in run.instance_inputs:
        return run.instance_inputs[key]
    if key in run.deliveries:
        return run.deliveries.pop(key)
    sources = data.get("inputs")
    if not sources:
        return run.task
    if len(sources) == 1:
        return run.output_of(sources[0])
    return FrozenDict({source: run.output_of(source) for source in sources})


def _node_completed(run: Run, data: Data) -> None:
    key = data["node"]
    run.touch(key, NodeStatus.COMPLETED).output = data["value"]
    run.activations.pop(key, None)
    if run.interrupts:
        for interrupt_id in [id for id, asked in run.interrupts.items() if asked.node_id == key]:
            _interrupt_cancelled(run, {"id": interrupt_id})
    run.wave.returned[key] = data


def _node_parked(run: Run, data: Data) -> None:
    key = data["node"]
    run.touch(key, NodeStatus.PENDING)
    run.wave.parked = True
    for found in data.get("nested", ()):
        _ask(run, Interrupt.from_json(found, key))


def _interrupted(run: Run, data: Data) -> None:
    asked = Interrupt.from_json(data)
    _ask(run, asked)
    if asked.node_id:
        run.activations[asked.node_id].asks[data["call"]] = asked.id


def _ask(run: Run, asked: Interrupt) -> None:
    run.interrupts[asked.id] = asked
    path, number = split_park(asked.id)
    run.parks[path] = max(run.parks.get(path, 0), number)


def _run_suspended(run: Run, _data: Data) -> None:
    run.become(RunState.SUSPENDED)
    run.wave = Wave(run.wave.number)


def _resumed(run: Run, data: Data) -> None:
    told = ("outcome", "by", "via", "at", "comment")
    run.decisions[data["id"]] = FrozenDict({key: data[key] for key in told if key in data})
    _answer(run, data["id"], data["value"])


def _run_continued(run: Run, data: Data) -> None:
    for interrupt_id, value in data.get("answers", _NOTHING).items():
        _answer(run, interrupt_id, value)


def _answer(run: Run, interrupt_id: str, value: JsonValue) -> None:
    asked = run.interrupts.pop(interrupt_id)
    if run.state is RunState.SUSPENDED:
        run.become(RunState.RUNNING)
    if split_park(interrupt_id)[0].endswith(BREAKPOINT):  # of this run, or of a child run inside a node
        run.passed = run.wave.number
        run.stepping = isinstance(value, dict) and value.get("step") is True
    key = asked.node_id
    if not key:
        return
    activation = run.activations[key]
    activation.answers[interrupt_id] = value
    if activation.asks.get("") == interrupt_id:
        activation.answer = interrupt_id
    _release(run, key, "resumed", interrupt_id)


def _release(run: Run, key: str, code: str, by: str) -> None:
    """Let a node run past its edges, keeping the names of all who say so in one wave."""
    before = run.activated.get(key)
    named = before.nodes if before is not None and before.code == code else ()
    run.activated[key] = Reason(code, (*named, by))
    run.touch(key, NodeStatus.PENDING)


def _interrupt_cancelled(run: Run, data: Data) -> None:
    run.interrupts.pop(data["id"], None)
    run.decisions[data["id"]] = FrozenDict({"outcome": "cancelled"})


def _node_retry(run: Run, data: Data) -> None:
    activation = run.activations[data["node"]]
    activation.failures += 1
    anew = data["anew"]
    activation.calls = {
        key: call for key, call in activation.calls.items() if call.get("ok") is not False and key not in anew
    }


def _node_failed(run: Run, data: Data) -> None:
    run.failed_node = run.failed_node or data["node"]
    run.touch(data["node"], NodeStatus.FAILED).output = data["error"]


def _node_cancelled(run: Run, data: Data) -> None:
    run.touch(data["node"], NodeStatus.FAILED).output = f"cancelled: {text_in(data, 'by')}"


def _node_skipped(run: Run, data: Data) -> None:
    run.touch(data["node"], NodeStatus.SKIPPED).why = data.get("why")
    if data.get("left"):
        run.sweep.append(data["node"])
    else:
        run.sweep.clear()


def _state_delta(run: Run, data: Data) -> None:
    fold_into_state(run.channel, run.shared, data.get("delta", _NOTHING), data.get("writers", _NOTHING))
    for key, value in data.get("reset", _NOTHING).items():
        run.set_channel(key, value)
    run.wave.committed += 1


def _control(run: Run, data: Data) -> None:
    run.wave.committed += 1
    by, payload = data["by"], data.get("payload")
    if "send" in data:
        _send(run, data["send"], data["key"], payload, by)
        return
    target = data["goto"]
    if target == END:
        run.ended_by = by
        return
    if data["immediate"]:
        _release(run, target, "goto", by)
    else:
        run.touch(target, NodeStatus.PENDING)
    if payload is not None:
        run.deliveries[target] = payload


def _send(run: Run, template: str, key: str, payload: JsonValue, by: str) -> None:
    """Make the instance of that key, if it is not there: the same key is the same instance."""
    run.sends += 1
    if key not in run.instance_inputs:
        run.instance_inputs[key] = payload
        run.senders[key] = by
        siblings = run.instances.setdefault(template, [])
        run.node_states[key] = NodeState(place=len(siblings))
        siblings.append(key)


def _model_returned(run: Run, data: Data) -> None:
    if "error" not in data:
        run.metrics["llm_calls"] += 1
        run.metrics["tokens"] += data["tokens"]
    _remember(run, data)


def _tool_returned(run: Run, data: Data) -> None:
    run.metrics["tool_calls"] += 1
    _remember(run, data)


def _delegated(run: Run, data: Data) -> None:
    run.children.append(data["child"])
    _remember(run, data)


def _remember(run: Run, data: Data) -> None:
    run.activations[data["node"]].calls[data["call"]] = cast("JsonObject", data)


def _breakpoints_set(run: Run, data: Data) -> None:
    run.breakpoints = list(data["breakpoints"])


def _forked(run: Run, data: Data) -> None:
    for key, value in data.get("updates", _NOTHING).items():
        run.set_channel(key, value)


def _run_completed(run: Run, data: Data) -> None:
    run.become(RunState.COMPLETED)
    run.final_output = data["output"]
    run.wave = Wave(run.wave.number)


def _run_failed(run: Run, data: Data) -> None:
    run.become(RunState.FAILED)
    run.final_output = data["reason"]
    run.wave = Wave(run.wave.number)


def _told(_run: Run, _data: Data) -> None:
    """A fact that tells a reader something and the engine nothing."""


STEPS: dict[str, Callable[[Run, Data], None]] = {
    "run_started": _run_started,
    "node_queued": _node_queued,
    "node_started": _node_started,
    "node_completed": _node_completed,
    "node_parked": _node_parked,
    "node_retry": _node_retry,
    "node_failed": _node_failed,
    "node_cancelled": _node_cancelled,
    "node_skipped": _node_skipped,
    "state_delta": _state_delta,
    "control": _control,
    "interrupted": _interrupted,
    "interrupt_cancelled": _interrupt_cancelled,
    "run_suspended": _run_suspended,
    "resumed": _resumed,
    "run_continued": _run_continued,
    "delegated": _delegated,
    "model_called": _told,
    "model_returned": _model_returned,
    "tool_called": _told,
    "tool_returned": _tool_returned,
    "note": _told,
    "breakpoints_set": _breakpoints_set,
    "forked": _forked,
    "run_completed": _run_completed,
    "run_failed": _run_failed,
}
"""What each kind of event does to a run; a kind that is not here is one that this version cannot read."""
