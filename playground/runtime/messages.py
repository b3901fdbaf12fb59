"""Messages: what can be done to a conversation without breaking it.

A history is a list of messages, but not every sublist of it is a history.  A
tool call and its results belong together: every chat API refuses a result
without its call and a call without its result, and it will go on refusing for
as long as the two stand in the history so.  Hence `blocks`: pieces that can be
kept or dropped as they are.  What comes in broken, because a process died
between call and result, is mended on the way.

Then there is size.  A `Measure` says how large a message is, in messages or
in tokens, and `clipped` makes one smaller by shortening the texts in it.

None of these functions changes a message: they return new ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from playground.kernel.ports import Message
from playground.kernel.types import ToolCall
from playground.kernel.values import JsonValue

Block: TypeAlias = list[Message]
"""Messages that cannot be parted: a single one, or an assistant's with tool calls and then their results."""

INTERRUPTED = "(interrupted: this call has no result, and whether it took effect is unknown)"
"""What stands in for a tool result that never came."""


def paired(messages: Sequence[Message]) -> list[Message]:
    """`messages` without loose ends: each call with one result right behind it, and no other result."""
    return [message for block in blocks(messages) for message in block]


def blocks(messages: Sequence[Message]) -> list[Block]:
    """`messages`, cut wherever a cut does no harm, with loose ends mended.

    A result belongs to the latest call of its id or, if it has none, to the first open call of the latest
    message with calls.  It moves up to its call; a second result, and one without a call, is dropped.
    """
    found: list[Block | _Exchange] = []
    loose = _LooseCalls()
    messages = list(messages)
    position, end = 0, len(messages)
    while position < end:
        message = messages[position]
        role = message.get("role")
        position += 1
        if role == "tool":
            loose.answer(message)
        elif role == "assistant" and (calls := _calls_of(message)):
            block = messages[position - 1 : position + len(calls)]
            if _answered(calls, block):
                found.append(block)
                position += len(calls)
            else:
                found.append(loose.open(message))
        else:
            found.append([message])
    return [block.whole() if isinstance(block, _Exchange) else block for block in found]


def _answered(calls: Sequence[object], block: Block) -> bool:
    """Whether the rest of `block` are the results of `calls`, in order, as is nearly always so."""
    if len(block) != len(calls) + 1:
        return False
    for position, call in enumerate(calls, 1):
        result = block[position]
        call_id = call.get("id") if isinstance(call, dict) else None
        if not call_id or result.get("tool_call_id") != call_id or result.get("role") != "tool":
            return False
    return True


class _Exchange:
    """An assistant's message with its calls, while their results are being found."""

    __slots__ = ("calls", "message", "results")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.calls = [_identity(call) for call in _calls_of(message)]
        self.results: list[Message | None] = [None] * len(self.calls)

    def whole(self) -> Block:
        results = (
            result or _interrupted(*call) for call, result in zip(self.calls, self.results, strict=True)
        )
        return [self.message, *results]


class _LooseCalls:
    """Calls whose results do not follow at once, by what those will name."""

    def __init__(self) -> None:
        self._latest: _Exchange | None = None
        self._by_id: dict[str, list[tuple[_Exchange, int]]] = {}

    def open(self, message: Message) -> _Exchange:
        self._latest = exchange = _Exchange(message)
        own: dict[str, list[tuple[_Exchange, int]]] = {}
        for position, (call_id, _) in enumerate(exchange.calls):
            own.setdefault(call_id, []).append((exchange, position))
        self._by_id.update(own)
        return exchange

    def answer(self, result: Message) -> None:
        for exchange, position in self._candidates(result.get("tool_call_id")):
            if exchange.results[position] is None:
                call_id = exchange.calls[position][0]
                same = not call_id or result.get("tool_call_id") == call_id
                exchange.results[position] = result if same else {**result, "tool_call_id": call_id}
                return

    def _candidates(self, call_id: JsonValue) -> Iterable[tuple[_Exchange, int]]:
        if isinstance(call_id, str) and call_id:
            return self._by_id.get(call_id, ())
        latest = self._latest
        return () if latest is None else [(latest, position) for position in range(len(latest.calls))]


def _interrupted(call_id: str, name: str) -> Message:
    result: Message = {"role": "tool", "name": name, "content": INTERRUPTED}
    if call_id:
        result["tool_call_id"] = call_id
    return result


def _calls_of(message: Message) -> Sequence[object]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list | tuple) else ()


def _identity(call: object) -> tuple[str, str]:
    """Id and name of a call: one of ours, a `ToolCall`, or one in the shape that goes over the wire."""
    if isinstance(call, ToolCall):
        return call.call_id, call.name
    if not isinstance(call, dict):
        return "", ""
    function = call.get("function")
    name = call.get("name") or (function.get("name") if isinstance(function, dict) else "")
    return str(call.get("id") or ""), str(name or "")


def _arguments(call: object) -> object:
    if isinstance(call, ToolCall):
        return call.arguments
    if not isinstance(call, dict):
        return None
    function = call.get("function")
    return call.get("arguments", function.get("arguments") if isinstance(function, dict) else None)


_ENCODE = json.JSONEncoder(ensure_ascii=False, default=str).encode


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else _ENCODE(value)


def _call_text(call: object) -> str:
    arguments = _arguments(call)
    return f"{_identity(call)[1]}({'' if arguments is None else _as_text(arguments)})"


def text_of(message: Message) -> str:
    """What a message says, as plain text: its content, then its tool calls as `name({"argument": 1})`."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text", "[attachment]") if isinstance(part, dict) else part for part in content]
        said = [_as_text(part) for part in parts]
    else:
        said = [] if content in (None, "") else [_as_text(content)]
    return "\n".join([*said, *map(_call_text, _calls_of(message))])


@dataclass(frozen=True, slots=True)
class Measure:
    """How large messages are, and in what unit; without `of`, each counts as one."""

    unit: str
    of: Callable[[Message], int] | None = None

    def total(self, messages: Sequence[Message]) -> int:
        """The size of several messages."""
        return len(messages) if self.of is None else sum(map(self.of, messages))


_PER_MESSAGE = 4
_PER_ATTACHMENT = 1_000
"""Tokens of a picture or a file: its data is not read as text."""


def tokens_by(count: Callable[[str], int]) -> Measure:
    """A measure in tokens by a tokenizer of yours: `count` says how many tokens a text has."""

    def of(message: Message) -> int:
        content = message.get("content")
        calls = repr(message["tool_calls"]) if "tool_calls" in message else ""
        if isinstance(content, list):
            return _PER_MESSAGE + sum(_part_size(part, count) for part in content) + count(calls)
        text = content if isinstance(content, str) else "" if content is None else _as_text(content)
        return _PER_MESSAGE + count(text + calls)

    return Measure("tokens", of)


def _part_size(part: JsonValue, count: Callable[[str], int]) -> int:
    text = part.get("text") if isinstance(part, dict) else part
    return count(text) if isinstance(text, str) else _PER_ATTACHMENT


def estimated_tokens(text: str) -> int:
    """About how many tokens `text` has, without a tokenizer.

    Four ASCII characters count as one token, and so does one Chinese character.  The length in UTF-8
    tells them apart: a character of two, three or four bytes adds a half, one, or one and a half.
    Prose and code come out right within a fifth or so; dense numbers come out at half of what they are.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    length, octets = len(text), len(text.encode("utf-8", "surrogatepass"))
    return round(max(3 * octets - length, 4 * (octets - length)) / 8)


MESSAGES = Measure("messages")
"""Counts messages: good for teaching, and where messages are short."""

TOKENS = tokens_by(estimated_tokens)
"""Counts tokens by `estimated_tokens`, where no tokenizer is at hand."""


def shortened(text: str, limit: int) -> str:
    """`text` in at most `limit` characters: its beginning, how much is missing, and its end."""
    if len(text) <= limit:
        return text
    gap = f" … [{len(text) - limit} characters left out] … "
    room = max(0, limit - len(gap))
    tail = room // 3
    return (text[: room - tail] + gap + text[len(text) - tail :])[:limit]


def clipped(message: Message, limit: int) -> Message:
    """`message` with each text in it, arguments of calls included, shortened to `limit` characters."""
    content = message.get("content")
    changes: dict[str, object] = {}
    if isinstance(content, str):
        if len(content) > limit:
            changes["content"] = shortened(content, limit)
    elif isinstance(content, list):
        changes["content"] = [_clipped_part(part, limit) for part in content]
    if "tool_calls" in message:
        changes["tool_calls"] = [_clipped_call(call, limit) for call in _calls_of(message)]
    return cast("Message", {**message, **changes}) if changes else message


def _clipped_part(part: JsonValue, limit: int) -> JsonValue:
    if isinstance(part, dict):
        text = part.get("text")
        return {**part, "text": shortened(text, limit)} if isinstance(text, str) else part
    return shortened(part, limit) if isinstance(part, str) else part


def _clipped_call(call: object, limit: int) -> object:
    arguments = _arguments(call)
    if not isinstance(arguments, dict):
        return call
    shorter = {key: _clipped_value(value, limit) for key, value in arguments.items()}
    if isinstance(call, ToolCall):
        return replace(call, arguments=shorter)
    if isinstance(call, dict) and "arguments" in call:
        return {**call, "arguments": shorter}
    return call


def _clipped_value(value: JsonValue, limit: int) -> JsonValue:
    if isinstance(value, str):
        return shortened(value, limit)
    if isinstance(value, list):
        return [_clipped_value(item, limit) for item in value]
    if isinstance(value, dict):
        return {key: _clipped_value(item, limit) for key, item in value.items()}
    return value
