"""What a client sends, read whole, bounded, and as strictly as the log keeps values.

A body is refused where it enters: too large, of another type, not Unicode, not
JSON, a key said twice, a number that JSON does not have.  Everything behind
this file gets plain values and may trust them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from playground.kernel import JsonObject, JsonValue, NotJson
from playground.kernel.values import freeze
from playground.sessions import Invalid

MIB = 1 << 20
BODY = MIB
"""The largest body, in bytes, that a call takes unless it says otherwise."""
IMPORT = 64 * MIB
"""The largest bundle, in bytes, that can be taken in."""

MAX_FIELDS = 500
"""How many fields a form may have."""


async def read(request: Request, limit: int = BODY) -> bytes:
    """The whole body.

    Raises:
        HTTPException: 413 for one of more than `limit` bytes; 400 for a client that left in its middle.
    """
    too_large = HTTPException(413, f"the body is larger than {limit // 1024} KiB: send less")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise too_large
    found = bytearray()
    try:
        async for chunk in request.stream():
            found += chunk
            if len(found) > limit:
                raise too_large
    except ClientDisconnect:
        raise HTTPException(400, "the body is not whole: send it again") from None
    return bytes(found)


async def json_object(request: Request, *known: str) -> JsonObject:
    """The body as a JSON object that has no other keys than `known`.

    Raises:
        HTTPException: 415 for another type, 413 for one too large, 400 for what is no JSON object.
        Invalid: a key is unknown.
    """
    kind = _media_type(request)
    if kind != "application/json":
        raise HTTPException(415, f"the body is {kind or 'of no type'}: send application/json")
    value = parse_json(await read(request))
    if not isinstance(value, dict):
        raise HTTPException(400, f"the body is {_kind(value)}: send a JSON object")
    for key in value:
        if key not in known:
            raise Invalid(f"there is no field {key[:60]!r}: use {', '.join(known)}", {key: "unknown"})
    return value


async def nothing(request: Request) -> None:
    """Take a body only if it is empty, or a JSON object without keys: the call needs none.

    Raises:
        HTTPException, Invalid: as `json_object`.
    """
    length = request.headers.get("content-length", "0")
    if length != "0" or "transfer-encoding" in request.headers:
        await json_object(request)


async def form(request: Request) -> dict[str, str]:
    """The fields of a posted form; of a field sent twice the last counts.

    Raises:
        HTTPException: 415 for another type, 413 for one too large, 400 for what cannot be read.
    """
    kind = _media_type(request)
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, f"the form is {kind or 'of no type'}: send it URL-encoded")
    raw = await read(request)
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


async def bundle(request: Request) -> list[str]:
    """The lines of an exported run.

    Raises:
        HTTPException: 415 for another type, 413 for one too large, 400 for what is no UTF-8.
    """
    kind = _media_type(request)
    if kind not in ("application/x-ndjson", "application/jsonl", "application/octet-stream"):
        raise HTTPException(415, f"the bundle is {kind or 'of no type'}: send application/x-ndjson")
    raw = await read(request, IMPORT)
    try:
        return raw.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the bundle is not UTF-8 at byte {error.start}: export it again") from None


def parse_json(raw: bytes, what: str = "the body") -> JsonValue:
    """The JSON value that bytes hold, read-only; `what` they are is for errors.

    Raises:
        HTTPException: 400, with what is wrong and where.
    """
    if not raw.strip():
        raise HTTPException(400, f"{what} is empty: send a JSON object")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
        return freeze(value, what, limit=2 * len(raw) + BODY)
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"{what} is not UTF-8 at byte {error.start}: encode it so") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise HTTPException(400, f"{what} is not JSON: {error.msg} at {where}") from None
    except NotJson as error:
        raise HTTPException(400, str(error)) from None
    except RecursionError:
        raise HTTPException(400, f"{what} nests too deep: send a flatter one") from None
    except ValueError as error:
        raise HTTPException(400, f"{what} is not JSON: {error}") from None


def text(body: Mapping[str, JsonValue], name: str, *, most: int = 2000) -> str:
    """A field that is text; empty where it is absent or null.

    Raises:
        Invalid: it is something else, or longer than `most` characters.
    """
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Invalid(f"{name} is {_kind(value)}: send text", {name: "not text"})
    if len(value) > most:
        raise Invalid(f"{name} has {len(value)} characters: at most {most} are taken", {name: "too long"})
    return value


def mapping(body: Mapping[str, JsonValue], name: str) -> JsonObject:
    """A field that is an object; empty where it is absent or null.

    Raises:
        Invalid: it is something else.
    """
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid(f"{name} is {_kind(value)}: send an object", {name: "not an object"})
    return value


def whole_number(given: JsonValue, name: str, *, least: int = 0) -> int:
    """A whole number, from JSON or from the text of a query.

    Raises:
        Invalid: it is none, or less than `least`.
    """
    if isinstance(given, str) and len(given) <= 15 and given.isascii() and given.isdecimal():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise Invalid(f"{name} must be a whole number from {least} on", {name: "not such a number"})
    return given


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:60]!r} is there twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"
