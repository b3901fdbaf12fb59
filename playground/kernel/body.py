"""Bodies: the one interface of everything that does work in a node.

Whatever a node is — a function, a tool call, a model call, a whole plan — it
is an object with `run(input, ctx)` that returns an `Outcome`.  That is why the
pieces compose: a plan inside a node is one more body.

`ctx` is wiring, not data: the ports a body may call.  What a body asks of them
is written down under the node's *activation*, so when the body runs again after
a pause or a crash, it gets the results it already had instead of doing the work
twice.  A body is therefore written as a plain function from the top down.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from playground.kernel.command import Command, Goto, Send
from playground.kernel.ports import (
    ChildSpec,
    LlmPort,
    LlmReply,
    Message,
    ModelError,
    OnDelta,
    Spawnable,
    SubagentPort,
    ToolPort,
)
from playground.kernel.run import Activation, Data, Interrupt, Run, escape_key
from playground.kernel.types import ToolCall, ToolResult
from playground.kernel.values import JsonObject, JsonValue, freeze, frozen_object, text_in, thaw

if TYPE_CHECKING:
    from playground.kernel.bus import Bus
    from playground.kernel.graph import Plan

T = TypeVar("T")

_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=repr).encode
"""What was asked of a model, a tool or a child as one text."""

Control: TypeAlias = Command | Sequence[Command] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a node says when it returns.

    Args:
        value: its output, the input of its successors: JSON.
        state_delta: writes by channel name; a `Reset` value replaces instead of folding.
        control: a command, or several.
        suspend: if set, the node waits for an answer and the rest is ignored.
    """

    value: object = None
    state_delta: Mapping[str, object] = field(default_factory=dict)
    control: Control = None
    suspend: Interrupt | None = None

    @classmethod
    def ok(cls, value: object = None, /, **delta: object) -> Outcome:
        """An output, and writes to channels."""
        return cls(value, delta)

    @classmethod
    def goto(cls, target: str, payload: object = None, /, **delta: object) -> Outcome:
        """Go on at `target` at once, handing it `payload`."""
        return cls(None, delta, Goto(target, True, payload))

    @classmethod
    def send(cls, template: str, payload: object = None, key: str | None = None) -> Outcome:
        """Start one instance of a template."""
        return cls(control=Send(template, payload, key))

    @classmethod
    def fan_out(cls, *sends: Send, **delta: object) -> Outcome:
        """Start several instances at once."""
        return cls(None, delta, list(sends))

    @classmethod
    def park(
        cls,
        kind: str,
        payload: object = None,
        question: str = "",
        *,
        schema: Mapping[str, object] | None = None,
        expires_in: float | None = None,
        default: object = None,
    ) -> Outcome:
        """Wait for an answer; the body then runs again from its top, with `ctx.resumed` true.

        Args:
            schema: JSON Schema that an answer must fit.
            expires_in: seconds after which `default` is the answer.
        """
        return cls(
            suspend=Interrupt(
                kind,
                freeze(payload, "payload of a question"),
                question,
                schema=frozen_object(schema, "schema of a question") if schema else None,
                default=freeze(default, "default answer of a question"),
                expires_in=expires_in,
            )
        )


def coerce_outcome(raw: object) -> Outcome:
    """What a body returned, as an `Outcome`.

    A bare value is an output, a dict a state delta, a command (or a list of
    commands and outcomes, not empty) is control, None is nothing.

    Raises:
        ValueError: a list holds a question, or outcomes that say different things of the same.
    """
    if isinstance(raw, Outcome):
        return raw
    if raw is None:
        return Outcome()
    if isinstance(raw, Command):
        return Outcome(control=raw)
    if isinstance(raw, dict):
        return Outcome(state_delta=raw)
    if isinstance(raw, list) and raw and all(isinstance(item, Command | Outcome) for item in raw):
        return _joined([coerce_outcome(item) for item in raw])
    return Outcome(value=raw)


def _joined(outcomes: list[Outcome]) -> Outcome:
    delta: dict[str, object] = {}
    commands: list[Command] = []
    values = [outcome.value for outcome in outcomes if outcome.value is not None]
    if len(values) > 1:
        raise ValueError("two outcomes of one list have a value: a node has one output")
    for outcome in outcomes:
        if outcome.suspend is not None:
            raise ValueError("a list of outcomes cannot hold a question: return wait_human(...) alone")
        for key in outcome.state_delta.keys() & delta.keys():
            raise ValueError(f"two outcomes of one list write channel {key!r}: write it once")
        delta.update(outcome.state_delta)
        commands.extend(commands_of(outcome.control))
    return Outcome(values[0] if values else None, delta, commands)


def commands_of(control: Control) -> Sequence[Command]:
    """The commands of an outcome, none, one or several."""
    if control is None:
        return ()
    return (control,) if isinstance(control, Command) else control


@runtime_checkable
class NodeBody(Protocol):
    """What does the work of a node."""

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        """Do it once; an exception is a failed attempt."""
        ...


class Parked(BaseException):
    """Unwinds a body that waits for answers.

    Not an `Exception`, so that a body's or a tool's `except Exception` does not take it for an error.
    """

    def __init__(self, interrupts: Sequence[Interrupt]) -> None:
        super().__init__(", ".join(interrupt.id for interrupt in interrupts))
        self.interrupts = tuple(interrupts)


class Host(Protocol):
    """The part of the engine that a context calls: the ports of its run, and the log."""

    run: Run
    llm: LlmPort | None
    tools: ToolPort | None
    subagent: SubagentPort
    bus: Bus

    async def record(self, kind: str, data: Mapping[str, JsonValue]) -> None:
        """Append one fact to the run's log and apply it."""
        ...

    def addressed(self, asked: Interrupt, key: str, path: str, call: str) -> JsonObject:
        """A question with its id and its moment of expiry, as it stands in the event."""
        ...


class NodeContext:
    """What a body may use while it runs: read the state, call models, tools and child runs, ask a person.

    `host` is the engine behind it and `activation` what it remembers, for ports that are part of the engine.
    """

    __slots__ = ("_counts", "_inside", "_scope", "activation", "attempt", "host", "node_id", "run")

    def __init__(self, host: Host, node_id: str, *, inside: str = "", scope: str = "") -> None:
        self.host = host
        self.run = host.run
        self.node_id = node_id
        self.attempt = host.run.node_states[node_id].attempts
        self.activation: Activation = host.run.activations[node_id]
        self._counts: dict[str, int] = {}
        self._inside = inside
        self._scope = scope

    @property
    def shared(self) -> Mapping[str, JsonValue]:
        """The run's state as it was when the wave began, read-only; to change it return a state delta."""
        return self.run.view

    @property
    def run_id(self) -> str:
        """The id of the run that this node belongs to."""
        return self.run.run_id

    @property
    def resumed(self) -> bool:
        """Whether the node's own question was answered; tells an answer of None from none."""
        return bool(self.activation.answer)

    @property
    def resume_value(self) -> JsonValue:
        """The latest answer to the node's own question, or None."""
        return thaw(self.activation.answers.get(self.activation.answer))

    async def emit(self, event: str, **data: object) -> None:
        """Tell whoever listens right now, such as one token; it is not kept in the log."""
        await self.host.bus.fire(event, run_id=self.run_id, node_id=self.node_id, **data)

    async def note(self, topic: str, **data: object) -> None:
        """Write a fact of one's own into the log, for the reader of the run."""
        told = {"node": self.node_id, "topic": topic, "data": data}
        await self.host.record("note", frozen_object(told, f"note {topic!r}"))

    async def llm_complete(self, prompt: str, system: str | None = None) -> str:
        """The text of a model's reply to one prompt."""
        reply = await self.llm_chat([{"role": "user", "content": prompt}], system=system)
        return reply.text

    async def llm_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, JsonValue]] | None = None,
        system: str | None = None,
        on_delta: OnDelta | None = None,
    ) -> LlmReply:
        """Ask the run's model; a reply that this activation already had is given back, a failure too.

        Two calls are the same if they come in the same order among calls with as many
        messages and the same last one: comparing all of a long history would cost
        each round what all rounds before it cost together.

        Raises:
            RuntimeError: the run has no model.
            ModelError: no whole reply came.
        """
        model = self.host.llm
        if model is None:
            raise RuntimeError(
                f"node {self.node_id!r} calls a model and there is none: pass llm= to the Scheduler"
            )
        asked = [len(messages), messages[-1] if messages else None, system]
        key = self.call_key("model", "", asked)
        had = self.activation.calls.get(key)
        if had is not None:
            return _reply(had)
        call_id = self._call_id(key)
        names = [str(cast("JsonObject", tool.get("function", tool)).get("name")) for tool in tools or ()]
        called = frozen_object(
            {"node": self.node_id, "call_id": call_id, "messages": len(messages), "tools": names},
            "tool names",
        )
        turn = self.run.metrics["llm_calls"] + self.run.calls_in_flight
        chat_at = getattr(model, "chat_at", None)  # a look at the protocol would cost more than the call
        ask: Callable[..., Awaitable[LlmReply]] = partial(chat_at, turn) if chat_at else model.chat
        await self.host.record("model_called", called)
        returned: JsonObject = {"node": self.node_id, "call_id": call_id, "call": key}
        self.run.calls_in_flight += 1
        try:
            reply = await ask(messages, tools=tools, system=system, on_delta=on_delta)
        except Exception as error:
            await self.host.record("model_returned", {**returned, **_failure(error)})
            raise
        finally:
            self.run.calls_in_flight -= 1
        told: dict[str, object] = {
            **returned,
            "text": reply.text or "",
            "reasoning": reply.reasoning or "",
            "tool_calls": [
                {"id": c.call_id, "name": c.name, "arguments": dict(c.arguments), "problem": c.problem}
                for c in reply.tool_calls
            ],
            "tokens": int(reply.tokens or 0),
        }
        kept = frozen_object(told, f"reply of the model in node {self.node_id!r}")
        await self.host.record("model_returned", kept)
        return _reply(kept)

    async def call_tool(
        self, name: str, arguments: Mapping[str, object] | None = None, *, problem: str = ""
    ) -> ToolResult:
        """Call a tool of the run; a result that this activation already had is given back.

        Args:
            problem: what is wrong with arguments that could not be read; the tool is then not run.

        Raises:
            RuntimeError: the run has no tools.
            NotJson: the arguments or the output are not JSON.
        """
        tools = self.host.tools
        if tools is None:
            raise RuntimeError(
                f"node {self.node_id!r} calls tool {name!r} and there are none: pass tools= to the Scheduler"
            )
        given = frozen_object(arguments or {}, f"arguments of tool {name!r} in node {self.node_id!r}")
        key = self.call_key("tool", name, given)
        had = self.activation.calls.get(key)
        if had is not None:
            return _result(had)
        call = ToolCall(name, cast("JsonObject", thaw(given)), self._call_id(key), problem)
        freeze(name, "name of a tool that node ", self.node_id, " calls")
        about = {"node": self.node_id, "call_id": call.call_id, "name": name}
        await self.host.record("tool_called", {**about, "arguments": given})
        inner = NodeContext(
            self.host, self.node_id, inside=f"{self._inside}/{escape_key(name)}", scope=f"{key}>"
        )
        result = await tools.dispatch(call, inner)
        kept = frozen_object(
            {**about, "call": key, "ok": result.ok, "output": result.output, "error": result.error},
            f"result of tool {name!r} in node {self.node_id!r}",
        )
        await self.host.record("tool_returned", kept)
        return _result(kept)

    async def spawn(
        self, spec: Plan | Spawnable | ChildSpec, task: JsonValue, payload: Mapping[str, object] | None = None
    ) -> JsonObject:
        """Run a plan, an agent or a workflow as a child and wait for its end.

        Args:
            task: text; anything else is given as its JSON.
            payload: initial values of the child's channels, by name.

        Returns:
            `{"run_id", "state", "output", "shared"}` of the child run.

        Raises:
            RuntimeError: the child failed.
            RecursionError: children nest too deep.
        """
        return await self.host.subagent.activate(spec, task_text(task), self, payload)

    async def interrupt(
        self,
        kind: str,
        question: str = "",
        payload: object = None,
        *,
        schema: Mapping[str, object] | None = None,
        expires_in: float | None = None,
        default: object = None,
    ) -> JsonValue:
        """Ask a person in the middle of a body: returns the answer, or parks the node until there is one.

        Once answered, the body runs again from its top and gets here again, with the answer.
        """
        asked = Outcome.park(
            kind, payload, question, schema=schema, expires_in=expires_in, default=default
        ).suspend
        assert asked is not None
        key = self.call_key("ask", kind, [question, asked.payload])
        interrupt_id = self.activation.asks.get(key)
        if interrupt_id in self.activation.answers:
            return thaw(self.activation.answers[interrupt_id])
        if interrupt_id is None:
            data = self.host.addressed(asked, self.node_id, self.path, key)
            await self.host.record("interrupted", data)
            interrupt_id = text_in(data, "id")
        raise Parked([self.run.interrupts[interrupt_id]])

    @property
    def path(self) -> str:
        """The path of this node, or of the tool call inside it, from the root run."""
        return f"{self.run.path}{escape_key(self.node_id)}{self._inside}"

    async def together(self, *calls: Awaitable[T]) -> list[T]:
        """Await several calls at once; results in the order of the calls.

        If some park, the others finish first and keep their results; then the node parks.
        If one raises, the rest are cancelled and the error goes on.
        """
        if len(calls) == 1:
            return [await calls[0]]
        tasks = [asyncio.ensure_future(call) for call in calls]
        try:
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    error = None if task.cancelled() else task.exception()
                    if error is not None and not isinstance(error, Parked):
                        raise error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        parked = [
            interrupt
            for task in tasks
            if isinstance(error := task.exception(), Parked)
            for interrupt in error.interrupts
        ]
        if parked:
            raise Parked(parked)
        return [task.result() for task in tasks]

    def call_key(self, kind: str, name: str, asked: object) -> str:
        """The key under which this activation remembers a call: what was asked, and which of equals it is."""
        text = _ENCODE(asked)
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        base = f"{self._scope}{kind}:{name}:{digest}"
        count = self._counts.get(base, 0) + 1
        self._counts[base] = count
        return base if count == 1 else f"{base}:{count}"

    def _call_id(self, key: str) -> str:
        state = self.run.node_states[self.node_id]
        return f"{self.run_id}:{self.node_id}:{state.activation}:{key}"


_TOLD = ("asked", "status", "todo", "partial")
"""What a `ModelError` tells besides its message."""


def _failure(error: Exception) -> JsonObject:
    """A model's failure as the log keeps it, for a body that runs again to meet it again."""
    told: JsonObject = {"ok": False, "error": error_text(error)}
    if isinstance(error, ModelError):
        told |= {name: getattr(error, name) for name in _TOLD}
    return frozen_object(told, "error of a model")


def error_text(error: BaseException) -> str:
    """An error as events tell it: its type and what it says, as text that any log can keep."""
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    try:
        what = str(said)
    except Exception:  # noqa: BLE001 - an error of the user's own that cannot say what it is
        what = ""
    if isinstance(error, BaseExceptionGroup):
        what = "; ".join(map(error_text, error.exceptions))
    text = f"{type(error).__name__}: {what}" if what else type(error).__name__
    return text.encode("utf-8", "replace").decode()[:4000]


def _reply(kept: Data) -> LlmReply:
    if "error" in kept:
        told = {name: kept[name] for name in _TOLD if name in kept}
        raise ModelError(kept["error"].partition(": ")[2], **told)
    calls = [
        ToolCall(call["name"], cast("JsonObject", thaw(call["arguments"])), call["id"], call["problem"])
        for call in kept["tool_calls"]
    ]
    return LlmReply(kept["text"], tuple(calls), kept["tokens"], kept["reasoning"])


def _result(kept: Data) -> ToolResult:
    return ToolResult(bool(kept["ok"]), thaw(kept["output"]), kept["error"], kept["call_id"])


class FnBody:
    """A Python function `f(input)` or `f(input, ctx)`, sync or async."""

    kind = "function"

    def __init__(self, fn: Callable[..., object]) -> None:
        self.fn = fn
        self._is_async = inspect.iscoroutinefunction(fn)
        self._wants_context = _takes_two(fn)

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        result = self.fn(input, ctx) if self._wants_context else self.fn(input)
        if self._is_async or inspect.isawaitable(result):
            result = await result  # type: ignore[misc]
        return result if type(result) is Outcome else coerce_outcome(result)


def _takes_two(fn: Callable[..., object]) -> bool:
    """Whether to hand over the context: not in place of a default, unless that parameter is called `ctx`."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:
        return False
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(places) >= 2 and (places[1].default is inspect.Parameter.empty or places[1].name == "ctx")


class ToolBody:
    """One tool call: the node's input is its arguments, its output the result, also when the tool failed."""

    kind = "tool"

    def __init__(self, tool_name: str) -> None:
        self.tool_name = tool_name

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        result = await ctx.call_tool(self.tool_name, input if isinstance(input, dict) else {})
        return Outcome.ok({"ok": result.ok, "output": result.output, "error": result.error})


class LLMBody:
    """One model call; `prompt` is text, or a function from the node's input to text."""

    kind = "model"

    def __init__(self, prompt: str | Callable[[JsonValue], str], system: str | None = None) -> None:
        self.prompt = prompt
        self.system = system

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        text = self.prompt if isinstance(self.prompt, str) else self.prompt(input)
        return Outcome.ok(await ctx.llm_complete(text, system=self.system))


class SubPlanBody:
    """A whole plan, agent or workflow as one node: it runs as a child, and its output is the node's."""

    kind = "plan"

    def __init__(self, spec: Plan | Spawnable | ChildSpec) -> None:
        self.spec = spec
        self.kind = "agent" if isinstance(spec, Spawnable) else "plan"

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        child = await ctx.spawn(self.spec, task_text(input))
        return Outcome.ok(child["output"])


def task_text(input: JsonValue) -> str:
    """A node's input as the task of a child run: text as it is, anything else as JSON.

    Raises:
        NotJson: it is neither.
    """
    if isinstance(input, str):
        return input
    return "" if input is None else json.dumps(freeze(input, "the task"), ensure_ascii=False)
