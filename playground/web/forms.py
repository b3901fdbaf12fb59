"""Forms made from JSON Schema, and read back with their types.

A browser sends text.  What a person edits in a form must come back as what it
was: an int stays an int, a bool a bool, an empty text an empty text.  So one
module draws the fields and reads them, and both ask the same schema.

Fields cover the top level of an object, or one plain value; anything deeper is
a field of JSON text.  Beside the fields every form offers the whole value as
JSON; the field `<prefix>:mode` tells which of the two was sent.  Whether the
value fits the whole schema is for the session to judge, not for the form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from playground.kernel.values import JsonObject, JsonValue

Kind = Literal["text", "textarea", "integer", "number", "checkbox", "select", "date", "json"]

LONG_TEXT = 80
"""A text longer than this gets more than one line."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a field: a key of the message catalogue and its parameters."""

    key: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `name` is its key in the posted form, `value` the text it shows.

    A number is a text field too: what was typed wrong must be shown again, and a browser's
    own number field would swallow it.
    """

    name: str
    label: str
    kind: Kind
    value: str = ""
    checked: bool = False
    required: bool = False
    help: str = ""
    options: tuple[str, ...] = ()
    bounds: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a value and the value as JSON text; `mode` says which side is in front."""

    prefix: str
    fields: tuple[Field, ...]
    raw: str
    mode: Literal["fields", "json"] = "fields"
    problem: Problem | None = None

    @property
    def plain(self) -> bool:
        """Whether it is one field only, so that the JSON side adds nothing."""
        return len(self.fields) == 1 and self.fields[0].name == self.prefix


class FormError(ValueError):
    """What was posted cannot be read: `problems` by field name, to be shown at the fields."""

    def __init__(self, problems: Mapping[str, Problem]) -> None:
        super().__init__(f"fields that cannot be read: {', '.join(sorted(problems))}")
        self.problems = dict(problems)


def form_for(
    schema: JsonObject,
    value: JsonValue = None,
    *,
    prefix: str = "value",
    posted: Mapping[str, str] | None = None,
    problems: Mapping[str, Problem] | None = None,
) -> Form:
    """The form of a value.

    Args:
        schema: its JSON Schema; `{}` gives one field for any text.
        value: what to show at first; missing keys take the schema's defaults.
        prefix: the name under which it is posted; an object's keys are `prefix.key`.
        posted: what was posted last time, to be shown again beside its `problems`.
    """
    problems = problems or {}
    shown = dict(posted or {})
    if value is None:
        value = schema.get("default")
    fields = tuple(
        _field(name, label, part, item, required, posted if posted is None else shown, problems.get(name))
        for name, label, part, item, required in _parts(schema, value, prefix)
    )
    raw = shown.get(f"{prefix}:json", json.dumps(value, ensure_ascii=False, indent=2))
    mode: Literal["fields", "json"] = "json" if shown.get(f"{prefix}:mode") == "json" else "fields"
    return Form(prefix, fields, raw, mode, problems.get(f"{prefix}:json"))


def read_form(
    schema: JsonObject, posted: Mapping[str, str], *, prefix: str = "value", value: JsonValue = None
) -> JsonValue:
    """The value that was posted, with the types of the schema.

    Args:
        value: what the form showed at first; an optional text it held comes back even when emptied.

    Raises:
        FormError: a number that is none, JSON that is none, a required field left empty.
    """
    if posted.get(f"{prefix}:mode") == "json":
        return _json(posted.get(f"{prefix}:json", ""), f"{prefix}:json")
    problems: dict[str, Problem] = {}
    found: dict[str, JsonValue] = {}
    for name, _, part, item, required in _parts(schema, value, prefix):
        try:
            read, given = _read(name, part, posted.get(name), required or item is not None)
        except FormError as error:
            problems.update(error.problems)
            continue
        if given:
            found[name] = read
    if problems:
        raise FormError(problems)
    if _properties(schema) is None:
        return found.get(prefix)
    return {name[len(prefix) + 1 :]: item for name, item in found.items()}


def _parts(
    schema: JsonObject, value: JsonValue, prefix: str
) -> list[tuple[str, str, JsonObject, JsonValue, bool]]:
    """Name, label, schema, value and whether it is required, for each field of the form."""
    properties = _properties(schema)
    if properties is None:
        title = schema.get("title")
        return [(prefix, title if isinstance(title, str) else "", schema, value, False)]
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    held = value if isinstance(value, dict) else {}
    parts = []
    for key, part in properties.items():
        part = part if isinstance(part, dict) else {}
        title = part.get("title")
        label = title if isinstance(title, str) else key
        parts.append((f"{prefix}.{key}", label, part, held.get(key, part.get("default")), key in needed))
    return parts


def _properties(schema: JsonObject) -> JsonObject | None:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else None


def _types(schema: JsonObject) -> tuple[str, ...]:
    """The JSON types that a schema allows, `null` among them where it is nullable."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    if isinstance(kind, list):
        return tuple(k for k in kind if isinstance(k, str))
    found: tuple[str, ...] = ()
    for group in ("anyOf", "oneOf"):
        choices = schema.get(group)
        for choice in choices if isinstance(choices, list) else []:
            found += _types(choice) if isinstance(choice, dict) else ()
    return found


def _kind(schema: JsonObject, value: JsonValue) -> Kind:
    if isinstance(schema.get("enum"), list):
        return "select"
    types = [t for t in _types(schema) if t != "null"]
    kind = types[0] if len(types) == 1 else ""
    if kind == "boolean":
        return "checkbox"
    if kind == "integer":
        return "integer"
    if kind == "number":
        return "number"
    if kind in ("object", "array") or len(types) > 1 or isinstance(value, dict | list):
        return "json"
    if schema.get("format") == "date":
        return "date"
    text = value if isinstance(value, str) else ""
    longest = schema.get("maxLength")
    long = "\n" in text or len(text) > LONG_TEXT or (isinstance(longest, int) and longest > LONG_TEXT)
    return "textarea" if long or schema.get("format") == "multiline" else "text"


def _field(
    name: str,
    label: str,
    schema: JsonObject,
    value: JsonValue,
    required: bool,
    posted: Mapping[str, str] | None,
    problem: Problem | None,
) -> Field:
    kind = _kind(schema, value)
    text = _shown(kind, value) if posted is None else posted.get(name, "")
    checked = value is True if posted is None else name in posted
    enum = schema.get("enum")
    options = tuple(_shown("json", o) for o in enum) if isinstance(enum, list) else ()
    about = schema.get("description")
    return Field(
        name,
        label,
        kind,
        text,
        checked,
        required and kind != "checkbox",
        about if isinstance(about, str) else "",
        options,
        _bounds(schema),
        problem,
    )


def _bounds(schema: JsonObject) -> str:
    """The least and the greatest number allowed, such as `10 – 500`, `≥ 10`."""
    low, high = (schema.get(name) for name in ("minimum", "maximum"))
    has_low, has_high = (isinstance(bound, int | float) for bound in (low, high))
    if has_low and has_high:
        return f"{low} – {high}"
    return f"≥ {low}" if has_low else f"≤ {high}" if has_high else ""


def _shown(kind: Kind, value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, indent=2 if kind == "json" else None)


def _read(name: str, schema: JsonObject, text: str | None, wanted: bool) -> tuple[JsonValue, bool]:
    """The value of one field, and whether it was given at all."""
    kind = _kind(schema, None)
    if kind == "checkbox":
        return text is not None, True
    text = text or ""
    if kind == "select":
        enum = schema.get("enum")
        for option in enum if isinstance(enum, list) else []:
            if _shown("json", option) == text:
                return option, True
        raise FormError({name: Problem("form.choice")})
    if text == "" and "null" in _types(schema):
        return None, wanted
    if kind in ("text", "textarea", "date"):
        return text, wanted or text != ""
    if not text.strip():
        if wanted:
            raise FormError({name: Problem("form.required")})
        return None, False
    return (_json(text, name) if kind == "json" else _number(text.strip(), name, kind)), True


def _number(text: str, name: str, kind: Kind) -> JsonValue:
    try:
        return int(text)
    except ValueError:
        pass
    if kind == "integer":
        raise FormError({name: Problem("form.integer", {"text": text})})
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise FormError({name: Problem("form.number", {"text": text})})
    return number


def _json(text: str, name: str) -> JsonValue:
    def refuse(constant: str) -> JsonValue:
        raise ValueError(f"{constant} is not JSON")

    try:
        value: JsonValue = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise FormError({name: Problem("form.json", {"reason": str(error)})}) from error
    return value
