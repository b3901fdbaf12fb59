"""Models that need no network, and the words that every model client shares.

An agent cannot be shown, tested or taught while its model costs money and says
something else each time.  `ScriptedLlm` plays the model from a list.  It keeps
no place in that list: the place follows from the run, so a run that goes on
after a restart, in another process and with a new object, hears the same words
as an undisturbed one.

Real models also write arguments that nobody can read.  `read_arguments` is the
one door for them, and what does not pass keeps the model's text and a problem:
it never becomes an empty dict, with which the tool would happily run.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Final, NoReturn, TypeAlias

from playground.kernel.ports import LlmReply, Message, ModelError, OnDelta
from playground.kernel.types import ToolCall
from playground.kernel.values import JsonObject, JsonValue, frozen_object

Step: TypeAlias = str | ToolCall | Sequence[ToolCall] | LlmReply | Exception
"""What a scripted model does once: say a text, call tools, give a whole reply, or fail."""

ScriptEntry: TypeAlias = Step | Callable[[Sequence[Message]], Step]
"""A step, or a function that makes one of the messages so far."""

UNREADABLE: Final = "unreadable arguments"
"""The only key of arguments that could not be read; its value is what the model wrote."""

_PIECE = re.compile(r"\S{1,8}\s*|\s+")
_KEPT, _SHOWN = 1_000, 100


def read_arguments(text: str, *, cut: bool = False) -> tuple[JsonObject, str]:
    """The arguments that a model wrote for a tool call, and what is wrong with them.

    Args:
        text: JSON text of one object; nothing at all means no arguments.
        cut: whether the reply hit its length limit; then nothing at all, or half
            an object, is a call that was cut off.

    Returns:
        The object and "".  If the text is anything else, `{UNREADABLE: text}`,
        the text shortened to 1,000 characters, and a problem for
        `ToolCall.problem`, in words for the model.
    """
    if not text.strip() and not cut:
        return {}, ""
    try:
        value = json.loads(text, parse_constant=_no_constant)
        if isinstance(value, dict):
            return frozen_object(value, "the object"), ""
        problem = f"they are {_JSON_KINDS[type(value)]}, not an object with named arguments"
    except RecursionError:
        problem = "they are nested too deeply"
    except ValueError as error:
        problem = f"they are not valid JSON ({error})"
    if cut:
        problem = "they were cut off by the limit on the reply's length, so send them again, shorter"
    wrote = whole_text(text)
    return {UNREADABLE: _start_of(wrote, _KEPT)}, f"{problem}: {_start_of(wrote, _SHOWN) or 'nothing'}"


_JSON_KINDS: dict[type, str] = {
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _start_of(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({len(text):,} characters)"


def whole_text(text: str) -> str:
    """`text` as valid Unicode: two halves of a sign are joined, and a half alone becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


async def tell(on_delta: OnDelta | None, text: str, kind: str = "content") -> None:
    """Hand a piece of a reply to a listener, which may be sync, async, or absent."""
    if on_delta is not None and text:
        heard = on_delta(text, kind)
        if isawaitable(heard):
            await heard


class ScriptedLlm:
    """A model that says what is written in its script, one entry a call.

    Args:
        script: the entries in order.  A str is a final text, a `ToolCall` or a
            list of them a request for tools, an `LlmReply` is given as it is,
            an exception is raised, and a function of the messages returns any
            of these.
        delay: seconds between two streamed pieces of text, to make it look alive.

    Raises:
        TypeError: for an entry that is none of these.
    """

    def __init__(self, script: Iterable[ScriptEntry], *, delay: float = 0.0) -> None:
        self._script = tuple(script)
        self._delay = delay
        self._calls = 0
        self._assistants = _AssistantCount()
        for number, entry in enumerate(self._script, 1):
            if not callable(entry):
                _check_step(entry, number)

    def __repr__(self) -> str:
        return f"ScriptedLlm({len(self._script)} entries)"

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, JsonValue]] | None = None,  # noqa: ARG002 (a script minds no tools)
        system: str | None = None,  # noqa: ARG002
        on_delta: OnDelta | None = None,
    ) -> LlmReply:
        """The next entry; outside a run the object itself counts its calls.

        Raises:
            ModelError: past the end of the script.
        """
        self._calls += 1
        return await self._perform(self._calls - 1, messages, on_delta)

    async def chat_at(
        self,
        turn: int,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, JsonValue]] | None = None,  # noqa: ARG002 (a script minds no tools)
        system: str | None = None,  # noqa: ARG002
        on_delta: OnDelta | None = None,
    ) -> LlmReply:
        """The entry for this place in a run: as many are over as the run, or its history, has replies.

        Args:
            turn: how many model calls the run has made before this one.
            messages, tools, system, on_delta: as for `chat`.

        Raises:
            ModelError: past the end of the script.
        """
        return await self._perform(max(turn, self._assistants.of(messages)), messages, on_delta)

    async def _perform(
        self, position: int, messages: Sequence[Message], on_delta: OnDelta | None
    ) -> LlmReply:
        step = self._step(position, messages)
        if isinstance(step, Exception):
            raise step
        reply = _as_reply(step, position)
        if on_delta is not None:
            for kind, text in (("reasoning", reply.reasoning), ("content", reply.text)):
                for piece in _pieces(text):
                    if self._delay:
                        await asyncio.sleep(self._delay)
                    await tell(on_delta, piece, kind)
        return reply

    def _step(self, position: int, messages: Sequence[Message]) -> Step:
        if position >= len(self._script):
            todo = "add an entry for it, or end the run before with a plain text entry"
            raise ModelError(
                f"the script of ScriptedLlm has {len(self._script)} entries and this is call"
                f" {position + 1}: {todo}",
                asked=f"entry {position + 1} of a script",
                todo=todo,
            )
        entry = self._script[position]
        if not callable(entry):
            return entry
        step = entry(messages)
        _check_step(step, position + 1)
        return step


class _AssistantCount:
    """Counts the replies in a list of messages, and reads only those added since it last looked.

    Messages are frozen values that are shared, so the same object at the same
    place tells that the list has only grown.  A round then costs the same at
    the start of a long run and at its end.
    """

    def __init__(self) -> None:
        self._length = 0
        self._ends: tuple[Message, ...] = ()
        self._count = 0

    def of(self, messages: Sequence[Message]) -> int:
        """How many of `messages` have the role assistant."""
        if not self._only_grew(messages):
            self._length = self._count = 0
        new = range(self._length, len(messages))
        self._count += sum(messages[i].get("role") == "assistant" for i in new)
        self._length = len(messages)
        self._ends = (messages[0], messages[-1]) if messages else ()
        return self._count

    def _only_grew(self, messages: Sequence[Message]) -> bool:
        if not self._ends or len(messages) < self._length:
            return False
        return messages[0] is self._ends[0] and messages[self._length - 1] is self._ends[1]


def _check_step(step: object, number: int) -> None:
    calls = isinstance(step, (list, tuple)) and bool(step) and all(isinstance(c, ToolCall) for c in step)
    if not calls and not isinstance(step, (str, ToolCall, LlmReply, Exception)):
        raise TypeError(
            f"entry {number} of the script is a {type(step).__name__}: use a text, a ToolCall, a list of"
            " ToolCalls, an LlmReply, an exception, or a function of the messages that returns one of these"
        )


def _as_reply(step: str | ToolCall | Sequence[ToolCall] | LlmReply, position: int) -> LlmReply:
    if isinstance(step, LlmReply):
        reply = step
    elif isinstance(step, str):
        reply = LlmReply(text=step, tokens=_tokens(step))
    else:
        calls = (step,) if isinstance(step, ToolCall) else tuple(step)
        reply = LlmReply(tool_calls=calls, tokens=sum(_tokens(str(call.arguments)) for call in calls))
    return replace(reply, tool_calls=with_ids(reply.tool_calls, position)) if reply.tool_calls else reply


def with_ids(calls: Sequence[ToolCall], position: int) -> tuple[ToolCall, ...]:
    """`calls`, each with an id of its own; missing and doubled ones are made from its place in the run.

    Args:
        calls: the tool calls of one reply.
        position: how many replies came before this one.
    """
    taken: set[str] = set()
    told_apart = []
    for number, call in enumerate(calls):
        known = call.call_id and call.call_id not in taken
        call_id = call.call_id if known else f"call_{position}_{number}"
        taken.add(call_id)
        told_apart.append(call if known else replace(call, call_id=call_id))
    return tuple(told_apart)


def _tokens(text: str) -> int:
    """A plausible count, so that meters move offline too: some four bytes a token."""
    return len(text.encode(errors="replace")) // 4 + 1


def _pieces(text: str) -> Iterator[str]:
    """`text` in pieces of a few signs, words kept whole where they are short."""
    return (match.group() for match in _PIECE.finditer(text))
