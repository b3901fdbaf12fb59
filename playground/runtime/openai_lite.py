"""A model behind HTTP: any service that speaks OpenAI's chat completions.

The client has one rule: what it returns is a whole reply, and anything else is
a `ModelError` that says what was asked, what came, and what to do.  A request
is asked again only while nobody has seen a word of its answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from html import unescape
from importlib.util import find_spec
from math import isfinite
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from playground.kernel.ports import LlmReply, Message, ModelError, OnDelta
from playground.kernel.values import MAX_BYTES, JsonObject, JsonValue
from playground.runtime.llm import whole_text
from playground.runtime.openai_wire import (
    TODO_LATER,
    ReplyBuilder,
    Trouble,
    json_text,
    service_error,
    wire_messages,
    wire_tools,
)

if TYPE_CHECKING:
    import ssl

    import httpx2

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
DEFAULT_MODEL: Final = "gpt-4o-mini"

_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 60.0
_LONGEST_CONNECT: Final = 10.0
_MAX_BODY: Final = 4 * MAX_BYTES
_MAX_ERROR_BODY: Final = 64 * 1024
_SHOWN_OF_AN_ERROR: Final = 400
_SHORTEST_SECRET: Final = 8

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TODO_ADDRESS: Final = "check OPENAI_BASE_URL (or base_url=), which mostly ends in /v1"


class OpenAICompatibleLlm:
    """A chat model at an OpenAI-compatible address.

    No connection outlives a call: there is nothing to close, and one object
    serves any number of calls and event loops.

    Args:
        model: name of the model; else `OPENAI_MODEL`, else "gpt-4o-mini".
        base_url: address of the service; else `OPENAI_BASE_URL`, else OpenAI's own.
        api_key: the service's secret, which is shown nowhere; else `OPENAI_API_KEY`.
            Services on the own machine mostly need none.
        temperature, max_tokens: sent where given.
        options: further fields of the request, as the service documents them; None
            leaves one out that would be sent otherwise.
        timeout: seconds of silence after which a request is given up.
        deadline: seconds that one request may take in all.
        retries: how often a request is asked again after a failure that may pass.
        sleep, clock: how to wait, and the wall time in seconds that `Retry-After` dates refer to.

    Raises:
        ModuleNotFoundError: without the package httpx2, which the extra `openai` brings.
        ValueError: when the address or the key cannot be right.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        options: Mapping[str, JsonValue] | None = None,
        timeout: float = 60.0,
        deadline: float = 600.0,
        retries: int = 3,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if find_spec("httpx2") is None:
            raise ModuleNotFoundError(
                "OpenAICompatibleLlm needs the package httpx2: install agent-playground[openai]",
                name="httpx2",
            )
        self.model = model or os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self._address = _Address.of(base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL)
        self._key = _checked_key(os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key)
        self._options: JsonObject = {"temperature": temperature, "max_tokens": max_tokens, **(options or {})}
        self._timeout = timeout
        self._deadline = deadline
        self._retries = retries
        self._sleep = sleep
        self._clock = clock
        self._asks_for_usage = True

    @property
    def address(self) -> str:
        """Where the service is, without any secret that the address may hold."""
        return self._address.shown

    def __repr__(self) -> str:
        return f"OpenAICompatibleLlm(model={self.model!r}, base_url={self._address.shown!r})"

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, JsonValue]] | None = None,
        system: str | None = None,
        on_delta: OnDelta | None = None,
    ) -> LlmReply:
        """Ask, and ask again while the failure may pass and nothing of an answer has been shown.

        Args:
            messages: the conversation so far.  Calls without a result and results
                without a call, as a crash leaves them, are mended on the way out.
            tools: schemas of what the model may call.
            system: the system message; it goes first.
            on_delta: hears the reply while it comes.

        Raises:
            ModelError: when no whole reply came.
        """
        attempts = 0
        while True:
            attempts += 1
            reply = ReplyBuilder(on_delta)
            try:
                await self._receive(self._request(messages, tools, system), reply)
                return reply.reply_to(messages)
            except Trouble as caught:
                trouble = caught
            if self._asks_for_usage and trouble.status in (400, 422) and "stream_options" in trouble.what:
                self._asks_for_usage = False  # an older service: it answers as well without
                continue
            wait = self._wait(trouble, attempts)
            if wait is None or reply.was_shown:
                break
            await self._sleep(wait)
        asked = f"a chat of {len(messages)} messages with {self.model!r} at {self._address.shown}"
        raise self._error(trouble, asked, attempts, reply.text)

    def _request(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JsonValue]] | None,
        system: str | None,
    ) -> bytes:
        try:
            request: JsonObject = {"model": self.model, "messages": wire_messages(messages, system)}
            request["stream"] = True
            if self._asks_for_usage:
                request["stream_options"] = {"include_usage": True}
            if tools:
                request["tools"] = wire_tools(tools)
            request |= self._options
            given: JsonObject = {name: value for name, value in request.items() if value is not None}
            return json_text(given).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise Trouble(
                f"the request is not JSON ({error})", "use only JSON in messages and tools"
            ) from None

    async def _receive(self, request: bytes, reply: ReplyBuilder) -> None:
        """Send one request, and give what comes back to `reply`."""
        if not self._key and self._address.shown == DEFAULT_BASE_URL:
            raise Trouble("there is no API key", "set OPENAI_API_KEY, or OPENAI_BASE_URL for another service")
        try:
            async with asyncio.timeout(self._deadline) as limit, aclosing(self._chunks(request)) as chunks:
                async for chunk in chunks:
                    await reply.add(chunk)
        except TimeoutError:
            if not limit.expired():
                raise
            raise Trouble(
                f"the answer took longer than {self._deadline:g} seconds", "ask for less, or raise deadline="
            ) from None
        except Trouble as trouble:
            if not (trouble.is_lost_connection and reply.finish):
                raise

    async def _chunks(self, request: bytes) -> AsyncGenerator[JsonObject]:
        """The chunks of one answer; they end only where the service says that it has ended."""
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        timeout = httpx2.Timeout(self._timeout, connect=min(self._timeout, _LONGEST_CONNECT))
        try:
            async with (
                httpx2.AsyncClient(verify=_trusted_authorities(), timeout=timeout) as http,
                http.stream("POST", self._address.url, content=request, headers=headers) as response,
            ):
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if not response.is_success:
                    raise await _refusal(response, self._clock())
                if kind == "text/event-stream":
                    response.encoding = "utf-8-sig"  # event streams are UTF-8, whatever the header says
                    async for event in httpx2.EventSource(response, max_event_size=_MAX_BODY):
                        data = event.data.strip()
                        if data == "[DONE]":
                            return
                        if data:
                            yield _chunk(data, is_error=event.event == "error")
                elif kind == "application/json":
                    yield _chunk(await _read(response, _MAX_BODY))
                    return
                else:
                    page = _said(await _read(response, _MAX_ERROR_BODY))
                    what = f"the answer is no reply of a model but {kind or 'of no type'}: {page}"
                    raise Trouble(what, _TODO_ADDRESS, status=response.status_code)
        except httpx2.TimeoutException:
            raise _lost(f"the service was silent for {self._timeout:g} seconds") from None
        except httpx2.SSEError as error:
            raise Trouble(f"the event stream is broken ({error})", TODO_LATER) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _lost(f"the connection failed ({type(error).__name__}: {error})") from None
        raise _lost("the stream ended before the reply did")

    def _wait(self, trouble: Trouble, attempts: int) -> float | None:
        """Seconds until it is worth asking again, or None if it is not."""
        if not trouble.may_pass or attempts > self._retries:
            return None
        if trouble.retry_after is None:
            return min(_FIRST_WAIT * 2.0 ** (attempts - 1), _LONGEST_WAIT)
        return trouble.retry_after if trouble.retry_after <= _LONGEST_WAIT else None

    def _error(self, trouble: Trouble, asked: str, attempts: int, partial: str) -> ModelError:
        tries = f" after {attempts} attempts" if attempts > 1 else ""
        what = " ".join(self._fit_to_show(trouble.what).split())
        if len(what) > _SHOWN_OF_AN_ERROR:
            what = what[:_SHOWN_OF_AN_ERROR] + "…"
        return ModelError(
            f"{asked} failed{tries}: {what}; {trouble.todo}",
            asked=asked,
            status=trouble.status,
            todo=trouble.todo,
            partial=self._fit_to_show(partial),
        )

    def _fit_to_show(self, text: str) -> str:
        """`text` of a service without our secrets, and as valid Unicode."""
        for secret in (self._key, self._address.password):
            if len(secret) >= _SHORTEST_SECRET:  # a shorter one is a placeholder, common in plain words
                text = text.replace(secret, "***")
        return whole_text(text)


@dataclass(frozen=True)
class _Address:
    """Where to ask: the whole URL, what of it may be shown, and the password that may be in it."""

    url: str
    shown: str
    password: str

    @classmethod
    def of(cls, base_url: str) -> _Address:
        try:
            parts = urlsplit(base_url.strip())
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(
                f"{base_url.rpartition('@')[2]!r} is no address of a model service: set OPENAI_BASE_URL"
                " (or base_url=) to one like https://host/v1"
            )
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        host = parts.netloc.rpartition("@")[2]
        return cls(
            url=urlunsplit((parts.scheme, parts.netloc, f"{path}/chat/completions", parts.query, "")),
            shown=urlunsplit((parts.scheme, host, path, "", "")),
            password=parts.password or "",
        )


def _checked_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValueError(
            "the API key holds signs that no key has: copy it once more into OPENAI_API_KEY (or api_key=)"
        )
    return key


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """Reading the certificates takes some 50 ms, so they are read once."""
    import httpx2

    return httpx2.create_ssl_context()


def _lost(what: str) -> Trouble:
    return Trouble(what, TODO_LATER, may_pass=True, is_lost_connection=True)


def _chunk(data: str, *, is_error: bool = False) -> JsonObject:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        chunk = None
    if is_error and not (isinstance(chunk, dict) and chunk.get("error")):
        return {"error": chunk or data}
    if not isinstance(chunk, dict):
        raise Trouble(f"the answer holds what is no JSON object: {_said(data)}", _TODO_ADDRESS)
    return chunk


async def _refusal(response: httpx2.Response, now: float) -> Trouble:
    """Why a response is no answer: a redirect, or an error in the service's own words."""
    import httpx2

    status = response.status_code
    if response.is_redirect:  # not followed: the messages would go to whomever it names
        target = urlsplit(response.headers.get("location", ""))
        shown = urlunsplit((target.scheme, target.netloc.rpartition("@")[2], target.path, "", ""))
        return Trouble(f"HTTP {status}, the service has moved to {shown}", _TODO_ADDRESS, status=status)
    try:
        body = await _read(response, _MAX_ERROR_BODY)
    except httpx2.HTTPError:
        body = ""  # the status says enough
    try:
        said: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        said = _said(body)
    return service_error(status, said, retry_after=_retry_after(response.headers.get("retry-after", ""), now))


async def _read(response: httpx2.Response, limit: int) -> str:
    """The body's text, up to `limit` bytes."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            body += part
            if len(body) >= limit:
                break
    return body[:limit].decode("utf-8-sig", "replace")


def _said(text: str) -> str:
    """What a body says to a person; of an HTML page, its title."""
    if not text.lstrip().startswith("<"):
        return text.strip() or "nothing"
    title = _TITLE.search(text)
    return f"an HTML page ({unescape(title.group(1)).strip()})" if title else "an HTML page"


def _retry_after(value: str, now: float) -> float | None:
    """The seconds that a `Retry-After` header names, as a number or as a date; None for anything else."""
    try:
        wait = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        wait = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    return max(wait, 0.0) if isfinite(wait) else None
