"""JSON as the stores write it: compact, readable UTF-8, and strict both ways."""

from __future__ import annotations

import json
from typing import NoReturn

from playground.kernel.values import JsonValue


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
_decoder = json.JSONDecoder(parse_constant=_refuse)


def encode(value: JsonValue) -> str:
    """The JSON text of a value that has passed `freeze`; it holds no raw line break."""
    return _encoder.encode(value)


def decode(text: str) -> JsonValue:
    """The value of a JSON text.

    Raises:
        ValueError: it is none.
    """
    value: JsonValue
    text = text.strip(" \t\r\n")
    try:
        value, end = _decoder.raw_decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON from character {error.pos + 1} on") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: it nests too deep") from None
    if end != len(text):
        raise ValueError(f"not JSON from character {end + 1} on")
    return value
