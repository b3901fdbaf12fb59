"""Tools: local functions, tools of MCP servers and agents, all called in one way.

To a model a tool is a name, a description and a schema.  Where it comes from
must not matter to anyone else, so every call takes the same five steps:

    it exists → its arguments fit → whoever must agree has agreed → it runs → one result

Each step that fails gives a failed result with a reason written for the model,
never an exception: a call that does not work is news, not an accident.  Only
what is not the tool's own passes through: a cancellation, and the park of a run
that waits for a person.

A tool that changes things (`side_effect="write"`) needs consent.  A checker for
`tool:NAME` on the bus gives or refuses it; where there is none a person is
asked, and the run waits.  The answer approves, approves with edited arguments,
or rejects; a tool that was not approved has not run.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self, TypeAlias, get_args

from pydantic import BaseModel

from playground.kernel.body import NodeContext
from playground.kernel.bus import Bus
from playground.kernel.run import VERDICT
from playground.kernel.types import ToolCall, ToolResult
from playground.kernel.values import MAX_BYTES, FrozenDict, JsonObject, JsonValue, freeze
from playground.runtime.arguments import (
    Arguments,
    BadArguments,
    Documentation,
    SchemaArguments,
    is_context,
    parameters_of,
    shorten,
    signature_arguments,
)

SideEffect: TypeAlias = Literal["read", "write"]
"""What a tool does to the world: nothing that matters, or something that needs consent."""

TIMEOUT = 60.0
"""Seconds that a call may take unless its spec says otherwise."""

MAX_OUTPUT = MAX_BYTES - (16 << 10)
"""Largest output kept, in bytes of JSON: with all that an event adds, it still fits one."""

_ERROR_LENGTH = 4_000
_NAMES_SHOWN = 20
_TAKES_ALL = frozenset({"arguments", "args", "payload"})


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool, as a value.

    Args:
        name: what the model calls it by.
        description: what it is for, written for the model.
        func: what runs, sync or async.  It gets the arguments by name, and the
            run's context in a parameter called `ctx`.  With `parameters` given, a
            function of one parameter `arguments` gets them all as one dict.
        parameters: JSON Schema of the arguments; by default made from the
            signature, the annotations and the docstring of `func`.
        side_effect: "write" needs consent before each call.
        timeout: seconds that one call may take, None for no limit.  Waiting for
            consent does not count.
        blocking: run a sync `func` in a thread, because it blocks; otherwise it
            runs on the event loop, where nothing can interrupt it.

    Raises:
        ValueError: when a field has a value that it cannot have.
    """

    name: str
    description: str
    func: Callable[..., object]
    parameters: JsonObject | None = None
    side_effect: SideEffect = "read"
    timeout: float | None = field(default=TIMEOUT, kw_only=True)
    blocking: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("a tool needs a name that a model can call: give name=")
        if self.side_effect not in get_args(SideEffect):
            raise ValueError(
                f"tool {self.name!r} has side_effect={self.side_effect!r}: it is either 'read' or 'write'"
            )
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"tool {self.name!r} has timeout={self.timeout}: give seconds above 0, or None")


class ToolRegistry:
    """Tools by name, and the one way to call them; it is the `ToolPort` of a scheduler.

    Args:
        bus: where the checkers of `tool:NAME` are; may be set later.
        write_needs_approval: whether write tools need consent; without it they
            run as read tools do.
        max_output: largest output kept, in bytes of JSON; a larger one fails.
    """

    def __init__(
        self,
        *,
        bus: Bus | None = None,
        write_needs_approval: bool = True,
        max_output: int = MAX_OUTPUT,
    ) -> None:
        self.bus = bus
        self.write_needs_approval = write_needs_approval
        self.max_output = max_output
        self._tools: dict[str, _Tool] = {}

    def add(self, spec: ToolSpec) -> Self:
        """Register a tool.

        Raises:
            ValueError: when there is one of that name.
            TypeError: when the function's parameters cannot be described.
        """
        if spec.name in self._tools:
            raise ValueError(f"there is a tool {spec.name!r} already: give this one another name")
        self._tools[spec.name] = _Tool(spec)
        return self

    def function(
        self,
        fn: Callable[..., object],
        *,
        name: str | None = None,
        description: str = "",
        side_effect: SideEffect = "read",
        timeout: float | None = TIMEOUT,
        blocking: bool = False,
    ) -> Self:
        """Register a Python function; name, description and schema come from the function itself.

        The arguments are those of `ToolSpec`.

        Raises:
            ValueError: when there is a tool of that name.
            TypeError: when the function's parameters cannot be described.
        """
        if name is None:
            name = str(getattr(fn, "__name__", ""))
        about = description or Documentation.of(fn).prose
        spec = ToolSpec(name, about, fn, None, side_effect, timeout=timeout, blocking=blocking)
        return self.add(spec)

    def get(self, name: str) -> ToolSpec | None:
        """The spec of a tool, with its schema filled in."""
        tool = self._tools.get(name)
        return tool.spec if tool else None

    def names(self) -> list[str]:
        """The names, in the order of registration."""
        return list(self._tools)

    def schemas(self) -> list[JsonObject]:
        """The tools as a model is shown them.

        Returns:
            `{"type": "function", "function": {"name", "description", "parameters"}}` for each.
        """
        return [tool.schema for tool in self._tools.values()]

    async def dispatch(self, call: ToolCall, ctx: NodeContext | None = None) -> ToolResult:
        """Call a tool.

        Args:
            call: name and arguments, as a model wrote them.
            ctx: the context of the node that calls; needed to ask a person.

        Returns:
            The output, or why there is none.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult.failure(self._unknown(call.name), call.call_id)
        try:
            arguments = tool.read(call)
            if self.write_needs_approval and tool.spec.side_effect == "write":
                edits = await self._consent(tool, call, ctx)
                arguments = tool.edited(call.arguments, edits) if edits else arguments
        except _Refused as refusal:
            return ToolResult.failure(str(refusal), call.call_id)
        return await self._run(tool, arguments, call, ctx)

    def _unknown(self, name: str) -> str:
        known = self.names()
        more = f" and {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
        listed = ", ".join(known[:_NAMES_SHOWN]) or "none"
        return f"there is no tool {shorten(name)!r}; the known tools are: {listed}{more}"

    async def _consent(self, tool: _Tool, call: ToolCall, ctx: NodeContext | None) -> JsonObject:
        """Get consent for a call.

        Returns:
            Edited arguments, mostly none.

        Raises:
            _Refused: when there is no consent.
        """
        gate = f"tool:{call.name}"
        if self.bus is not None and self.bus.has_checker(gate):
            verdict = await self.bus.check(gate, call=call, ctx=ctx)
            if not verdict.allowed:
                raise _Refused(f"operation not approved: {_clean(verdict.reason)}")
            return {}
        if ctx is None:
            raise _Refused(
                f"operation not approved: {call.name!r} changes things and outside of a run there is nobody "
                f"to ask; register a checker for {gate!r} on the registry's bus"
            )
        answer = await ctx.interrupt(
            "approval", f"Run {call.name}?", tool.proposal(call.arguments), schema=tool.edit_schema
        )
        return _edits(answer)

    async def _run(
        self, tool: _Tool, arguments: dict[str, object], call: ToolCall, ctx: NodeContext | None
    ) -> ToolResult:
        try:
            output = await tool.run(arguments, ctx)
        except _TimedOut as error:
            return ToolResult.failure(str(error), call.call_id)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises is news for the model
            return ToolResult.failure(_clean(f"{type(error).__name__}: {_message(error)}"), call.call_id)
        if isinstance(output, ToolResult):
            if not output.ok:
                return ToolResult.failure(_clean(output.error), call.call_id)
            output = output.output
        try:
            plain = output.model_dump(mode="json") if isinstance(output, BaseModel) else output
            kept = freeze(plain, f"the output of tool {call.name!r}", limit=self.max_output)
        except ValueError as error:
            return ToolResult.failure(_clean(str(error)), call.call_id)
        return ToolResult.success(kept, call.call_id)


class _Refused(Exception):
    """The call does not take place; the message is the reason."""


class _TimedOut(Exception):
    """The call took too long."""


class _Tool:
    """A spec made ready: what it takes, how it is called, how it is shown."""

    def __init__(self, spec: ToolSpec) -> None:
        if spec.parameters is None:
            self._arguments: Arguments = signature_arguments(spec.func, spec.name)
        else:
            self._arguments = SchemaArguments(spec.parameters, spec.name)
        schema = self._arguments.schema
        self.spec = replace(spec, parameters=schema)
        self.schema: JsonObject = FrozenDict(
            type="function",
            function=FrozenDict(name=spec.name, description=spec.description, parameters=schema),
        )
        self._call = _Calling.of(self.spec)

    def read(self, call: ToolCall) -> dict[str, object]:
        """The values to call with.

        Raises:
            _Refused: when the arguments could not be read or do not fit.
        """
        arguments: object = call.arguments
        problem = call.problem
        if not problem and not isinstance(arguments, dict):
            problem = f"they are a {type(arguments).__name__}: {arguments!r}"
        if problem:
            raise _Refused(
                f"{self.spec.name!r} was not called, its arguments cannot be read: {_clean(problem)}; "
                "send one JSON object"
            )
        return self._read(call.arguments, "was not called, its arguments do not fit")

    def edited(self, arguments: JsonObject, edits: JsonObject) -> dict[str, object]:
        """The values to call with, when a person has edited some.

        Raises:
            _Refused: when the edited arguments do not fit.
        """
        return self._read(
            {**arguments, **edits}, "was not called: it is approved, but the edited arguments do not fit"
        )

    def _read(self, arguments: JsonObject, complaint: str) -> dict[str, object]:
        try:
            return self._arguments.read(arguments)
        except BadArguments as error:
            raise _Refused(f"{self.spec.name!r} {complaint}: {error}") from None
        except Exception as error:  # noqa: BLE001 - a validator is the tool's own code
            raise _Refused(
                f"{self.spec.name!r} {complaint}: {type(error).__name__}: {_clean(_message(error))}"
            ) from None

    def proposal(self, arguments: JsonObject) -> JsonObject:
        """What a person is asked to approve, defaults included: what is seen is what happens."""
        properties = self._arguments.schema.get("properties")
        described = properties.items() if isinstance(properties, dict) else ()
        defaults = {
            name: about["default"]
            for name, about in described
            if isinstance(about, dict) and "default" in about
        }
        return {"tool": self.spec.name, "arguments": {**defaults, **arguments}}

    @property
    def edit_schema(self) -> JsonObject:
        """The schema of an edit: any of the arguments, except where a name belongs to the decision."""
        schema = {key: value for key, value in self._arguments.schema.items() if key != "required"}
        properties = schema.get("properties")
        if isinstance(properties, dict):
            schema["properties"] = {name: about for name, about in properties.items() if name not in VERDICT}
        return schema

    async def run(self, arguments: dict[str, object], ctx: NodeContext | None) -> object:
        """Call the function.

        Raises:
            _TimedOut: when it took longer than its spec allows.
        """
        if not self.spec.blocking:
            output = self._call(arguments, ctx)
            if not inspect.isawaitable(output):
                return output
        limit = asyncio.timeout(self.spec.timeout)
        try:
            async with limit:
                if self.spec.blocking:
                    output = await _in_thread(lambda: self._call(arguments, ctx))
                return await output if inspect.isawaitable(output) else output
        except TimeoutError:
            if not limit.expired():
                raise
            raise _TimedOut(
                f"{self.spec.name!r} took longer than {self.spec.timeout:g} s and was given up"
            ) from None


class _Calling(NamedTuple):
    """How a function wants its arguments."""

    function: Callable[..., object]
    contexts: tuple[str, ...]
    takes_all: str | None
    positional: tuple[str, ...]

    @classmethod
    def of(cls, spec: ToolSpec) -> _Calling:
        parameters = parameters_of(spec.func, spec.name)
        contexts = tuple(p.name for p in parameters if is_context(p))
        data = [p.name for p in parameters if p.name not in contexts]
        properties = (spec.parameters or {}).get("properties")
        known: Iterable[str] = properties if isinstance(properties, dict) else ()
        takes_all = data[0] if len(data) == 1 and data[0] in _TAKES_ALL.difference(known) else None
        positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY)
        return cls(spec.func, contexts, takes_all, positional)

    def __call__(self, arguments: dict[str, object], ctx: NodeContext | None) -> object:
        named: dict[str, object] = {self.takes_all: arguments} if self.takes_all else dict(arguments)
        for name in self.contexts:
            named[name] = ctx
        first = [named.pop(name) for name in self.positional if name in named]
        return self.function(*first, **named)


async def _in_thread(call: Callable[[], object]) -> object:
    """Run `call` in a daemon thread of its own and wait for it.

    Not in the loop's pool: a call that never returns would keep one of the
    pool's few threads for ever, and the program from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def tell(output: object, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((output, error))

    def work() -> None:
        output: object = None
        failure: BaseException | None = None
        try:
            output = context.run(call)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            failure = error
        with suppress(RuntimeError):  # the loop is closed, nobody waits any more
            loop.call_soon_threadsafe(tell, output, failure)

    threading.Thread(target=work, daemon=True).start()
    output, failure = await done
    if failure is not None:
        raise failure
    return output


def _edits(answer: JsonValue) -> JsonObject:
    """The arguments that an approval changes.

    Raises:
        _Refused: when the answer is anything but a clear yes.
    """
    decision: JsonObject = answer if isinstance(answer, dict) else {"approved": answer}
    if decision.get("approved") is not True:
        reason = decision.get("comment") or decision.get("reason") or "it was rejected without a reason"
        raise _Refused(f"operation not approved: {_clean(str(reason))}")
    return {name: value for name, value in decision.items() if name not in VERDICT}


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that cannot even be printed must not break the call
        return "(its message cannot be shown)"


def _clean(text: str) -> str:
    return shorten(text, _ERROR_LENGTH)
