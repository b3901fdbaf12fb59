"""The chat completions protocol apart from the network: what goes out, and what the pieces that come in mean.

Services agree on the protocol's outline and differ in every detail: they leave
out indexes, send arguments as objects, or answer errors as 200.  Here those
details end.  `wire_messages` writes our messages as any service takes them,
`ReplyBuilder` makes one whole `LlmReply` of whatever comes, and `Trouble` is
the reason why it could not.  Nothing here opens a connection.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from playground.kernel.ports import LlmReply, Message, OnDelta
from playground.kernel.types import ToolCall
from playground.kernel.values import MAX_BYTES, JsonObject, JsonValue
from playground.runtime.llm import UNREADABLE, read_arguments, tell, whole_text, with_ids
from playground.runtime.messages import paired

_CUT: Final = frozenset({"length", "max_tokens", "model_length"})
_REFUSED: Final = frozenset({"content_filter", "sensitive", "safety", "refusal"})
_BROKEN_OFF: Final = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})

_CUT_OFFS_IN_A_ROW: Final = 3
_SIZE_OF_A_CALL: Final = 64

_TODO: Final[Mapping[int, str]] = {
    400: "change the request as the service says",
    401: "set OPENAI_API_KEY (or api_key=) to a valid key of this service",
    402: "add credit to the account of this key",
    403: "use a key that is allowed to use this model",
    404: "check the model's name (OPENAI_MODEL) and the address (OPENAI_BASE_URL, which mostly ends in /v1)",
    413: "shorten the messages",
    422: "change the request as the service says",
    429: "wait a little, or raise the limits of this key",
}
_TODO_SHORTER: Final = "ask for less, or set max_tokens= to what the answer needs"
TODO_LATER: Final = "try again later, or use another service (OPENAI_BASE_URL)"


class Trouble(Exception):
    """Why no whole reply came.

    Attributes:
        what: what happened, possibly in the service's own words.
        todo: what the user can do about it.
        status: the HTTP status, where there was one.
        may_pass: whether the same question may be answered the next time.
        retry_after: seconds that the service asks to wait.
        is_lost_connection: whether the answer just stopped coming.
    """

    def __init__(
        self,
        what: str,
        todo: str,
        *,
        status: int | None = None,
        may_pass: bool = False,
        retry_after: float | None = None,
        is_lost_connection: bool = False,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo
        self.status = status
        self.may_pass = may_pass
        self.retry_after = retry_after
        self.is_lost_connection = is_lost_connection


def service_error(status: int | None, said: JsonValue, *, retry_after: float | None = None) -> Trouble:
    """The trouble behind an error that the service states, as a response or inside its stream.

    Args:
        status: the HTTP status that goes with it, if any.
        said: the error as JSON, in any of the forms in use, or its text.
        retry_after: seconds that the service asks to wait.
    """
    error = said.get("error", said) if isinstance(said, dict) else said
    out_of_credit = isinstance(error, dict) and error.get("code") == "insufficient_quota"
    may_pass = status is not None and (status in (408, 425, 429) or status >= 500) and not out_of_credit
    what = f"{'error' if status is None else f'HTTP {status}'}: {error_words(said)}"
    if retry_after is not None:
        what += f" (it asks to wait {retry_after:,.0f} seconds)"
    todo = _TODO.get(402 if out_of_credit else status or 400, TODO_LATER if may_pass else _TODO[400])
    return Trouble(what, todo, status=status, may_pass=may_pass, retry_after=retry_after)


def error_words(said: JsonValue) -> str:
    """The words of an error, wherever a service puts them."""
    while isinstance(said, dict):
        inner = next((said[key] for key in ("error", "message", "detail") if said.get(key)), None)
        if inner is None:
            break
        said = inner
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def wire_messages(messages: Sequence[Message], system: str | None = None) -> list[JsonValue]:
    """Our messages in the service's form: one system message first, and behind every call exactly one result.

    What a crash or a cut has left loose is mended on the way; `messages` stay as they are.
    """
    wire: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    unanswered: deque[JsonValue] = deque()
    for number, message in enumerate(paired(messages)):
        sent: JsonObject = {"role": message.get("role"), "content": _content(message)}
        calls = [_wire_call(call, f"call_{number}_{place}") for place, call in enumerate(_calls_in(message))]
        if sent["role"] == "tool":
            sent["tool_call_id"] = unanswered.popleft()
        elif calls:
            sent["tool_calls"] = list[JsonValue](calls)
            unanswered.extend(call["id"] for call in calls)
        if len(wire) == 1 and wire[0]["role"] == sent["role"] == "system":
            sent["content"] = f"{wire.pop()['content']}\n\n{sent['content']}"
        wire.append(sent)
    return list(wire)


def _content(message: Message) -> JsonValue:
    """What a message says; content parts stay as they are, any other JSON becomes its text."""
    content = message.get("content")
    if content is None:
        content = message.get("text") or ""
    if isinstance(content, str):
        return content
    parts = isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content)
    if parts and message.get("role") not in ("system", "tool"):
        return content
    return json_text(content)


def _calls_in(message: Message) -> list[JsonObject]:
    """The tool calls in an assistant's message, however they are written."""
    calls: object = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list | tuple):
        return []
    return [_fields_of(call) for call in calls]


def _fields_of(call: object) -> JsonObject:
    if isinstance(call, ToolCall):
        return {"id": call.call_id, "name": call.name, "arguments": call.arguments}
    return call if isinstance(call, dict) else {}


def _wire_call(call: JsonObject, spare_id: str) -> JsonObject:
    name, arguments = _name_and_arguments(call)
    text = arguments if isinstance(arguments, str) else json_text(arguments or {})
    function: JsonObject = {"name": name, "arguments": text}
    return {"id": call.get("id") or spare_id, "type": "function", "function": function}


def _name_and_arguments(call: JsonObject) -> tuple[str, JsonValue]:
    """Name and arguments of a call, in our form or nested in a `function` as the protocol has it."""
    function = call.get("function")
    holder = function if isinstance(function, dict) else call
    name = holder.get("name")
    return (name.strip() if isinstance(name, str) else ""), holder.get("arguments")


def json_text(value: JsonValue) -> str:
    """`value` as JSON, signs of all languages as they are.

    Raises:
        TypeError, ValueError: for what JSON cannot carry.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def wire_tools(tools: Iterable[Mapping[str, JsonValue]]) -> list[JsonValue]:
    """Tool schemas in the service's form; bare ones are wrapped."""
    return [
        dict(tool) if "function" in tool else {"type": "function", "function": dict(tool)} for tool in tools
    ]


class _Text:
    """Text that comes in pieces; a sign that was cut in two waits for its other half."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """Take a piece, and return what can be shown now."""
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        shown = whole_text(piece.removesuffix(self._half))
        self._parts.append(shown)
        return shown

    def __str__(self) -> str:
        return "".join(self._parts) + ("\ufffd" if self._half else "")


@dataclass
class _Call:
    """A tool call while its pieces arrive."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return whole_text("".join(self.pieces))

    def is_another(self, call_id: str, name: str, text: str, *, indexed: bool) -> bool:
        """Whether a piece that seems to belong here begins a call of its own.

        Some services give all calls the index 0, or neither index nor id;
        others repeat the name, or send a new id, with every piece of one call.
        """
        if not name or not self.name:
            return False
        if call_id and self.id and call_id != self.id:
            return True
        if name != self.name:
            return bool(self.pieces) or not indexed
        return text.startswith("{") and self._is_whole()

    def _is_whole(self) -> bool:
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        _, problem = read_arguments(self.text)
        return not problem


class ReplyBuilder:
    """Puts one reply together from its chunks, and shows it while it grows.

    An answer in one piece is a stream of one chunk.

    Attributes:
        text: what the model has said so far.
        finish: why it stopped, in the service's word; empty until it does.
        was_shown: whether anyone has seen a piece of it.
    """

    def __init__(self, on_delta: OnDelta | None) -> None:
        self.finish = ""
        self.was_shown = False
        self._on_delta = on_delta
        self._text, self._reasoning, self._refusal = _Text(), _Text(), _Text()
        self._calls: list[_Call] = []
        self._known: dict[int | str, _Call] = {}
        self._tokens = 0
        self._size = 0

    @property
    def text(self) -> str:
        return str(self._text)

    async def add(self, chunk: JsonObject) -> None:
        """Take one chunk; what it lacks, or holds in an unknown form, is passed over.

        Raises:
            Trouble: when the chunk is an error, or the reply grows too long.
        """
        error = chunk.get("error")
        if error:
            code = error.get("code") if isinstance(error, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else None
            raise service_error(status, error)
        self._tokens = _total_tokens(chunk.get("usage")) or self._tokens
        for choice in _dicts(chunk.get("choices")):
            if choice.get("index") in (None, 0):
                await self._add_part(choice.get("delta") or choice.get("message"))
                finish = choice.get("finish_reason")
                self.finish = finish if isinstance(finish, str) and finish else self.finish

    async def _add_part(self, part: JsonValue) -> None:
        if not isinstance(part, dict):
            return
        thought = _words(part.get("reasoning_content")) or _words(part.get("reasoning"))
        await self._show(self._reasoning, thought, "reasoning")
        await self._show(self._text, _words(part.get("content")), "content")
        refusal = _words(part.get("refusal"))
        self._grow(len(refusal))
        self._refusal.add(refusal)
        for piece in _dicts(part.get("tool_calls")):
            self._add_call(piece)

    async def _show(self, text: _Text, piece: str, kind: str) -> None:
        self._grow(len(piece))
        shown = text.add(piece)
        if shown and self._on_delta is not None:
            self.was_shown = True
            await tell(self._on_delta, shown, kind)

    def _add_call(self, piece: JsonObject) -> None:
        given_id, index = piece.get("id"), piece.get("index")
        call_id = given_id if isinstance(given_id, str) else ""
        name, arguments = _name_and_arguments(piece)
        if arguments is None:
            arguments = ""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        if not (call_id or name or text):
            return
        call = self._call_of(index if isinstance(index, int) else None, call_id, name, text)
        call.id = call.id or call_id
        if name != call.name:
            call.name += name
        self._grow(len(name) + len(text))
        if text:
            call.pieces.append(text)

    def _call_of(self, index: int | None, call_id: str, name: str, text: str) -> _Call:
        """The call that a piece belongs to: told by its index, else by its id, else the last one."""
        call = self._known.get(call_id if index is None else index)
        if call is None and index is None and self._calls:
            call = self._calls[-1]
        if call is None or call.is_another(call_id, name, text, indexed=index is not None):
            call = _Call()
            self._grow(_SIZE_OF_A_CALL + len(call_id))
            self._calls.append(call)
        if index is not None:
            self._known[index] = call
        if call_id:
            self._known[call_id] = call
        return call

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_BYTES:
            raise Trouble(f"the reply is longer than {MAX_BYTES:,} characters", _TODO_SHORTER)

    def reply_to(self, messages: Sequence[Message]) -> LlmReply:
        """The whole reply to `messages`, once all of it has come.

        A tool call that hit the length limit is in it with that problem, so that
        the model hears of it; but not for ever.

        Raises:
            Trouble: when the reply was cut, refused, or is empty.
        """
        refusal = str(self._refusal)
        if refusal or self.finish in _REFUSED:
            raise Trouble(f"the model refused to answer ({refusal or self.finish})", "ask in other words")
        if self.finish in _BROKEN_OFF:
            raise Trouble(f"the service broke the reply off ({self.finish})", TODO_LATER, may_pass=True)
        calls = self._tool_calls()
        if self.finish in _CUT:
            again_and_again = _unreadable_in_a_row(messages) + 1 >= _CUT_OFFS_IN_A_ROW
            if not calls or (again_and_again and any(call.problem for call in calls)):
                what = f"the reply was cut off by its length limit ({self.finish})"
                raise Trouble(what, _TODO_SHORTER)
        if not calls and not self.text.strip():
            held = "holds only reasoning" if str(self._reasoning) else "is empty"
            raise Trouble(f"the reply {held}", "ask again, raise max_tokens=, or use another model")
        position = sum(message.get("role") == "assistant" for message in messages)
        return LlmReply(self.text, with_ids(calls, position), self._tokens, str(self._reasoning))

    def _tool_calls(self) -> list[ToolCall]:
        cut = self.finish in _CUT
        if not cut and not all(call.name for call in self._calls):
            raise Trouble("the reply calls a tool without a name", "ask again, or use another model")
        calls = []
        for call in filter(lambda call: call.name, self._calls):
            arguments, problem = read_arguments(call.text, cut=cut)
            calls.append(ToolCall(whole_text(call.name), arguments, whole_text(call.id), problem))
        return calls


def _unreadable_in_a_row(messages: Sequence[Message]) -> int:
    """How many of the latest replies, in a row, had a call with arguments that could not be read."""
    count = 0
    for message in reversed(messages):
        if message.get("role") == "tool":
            continue
        arguments = [_name_and_arguments(call)[1] for call in _dicts(message.get("tool_calls"))]
        if not any(isinstance(given, dict) and UNREADABLE in given for given in arguments):
            break
        count += 1
    return count


def _dicts(value: JsonValue) -> list[JsonObject]:
    """The objects in a list; none where there is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _words(content: JsonValue) -> str:
    """The text of a content field: a text, or a list of parts of which some are texts."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _dicts(content)]
    return "".join(text for text in texts if isinstance(text, str))


def _total_tokens(usage: JsonValue) -> int:
    if not isinstance(usage, dict):
        return 0
    counts = [usage.get(key) for key in ("total_tokens", "prompt_tokens", "completion_tokens")]
    total, asked, said = (count if isinstance(count, int) and count > 0 else 0 for count in counts)
    return total or asked + said
