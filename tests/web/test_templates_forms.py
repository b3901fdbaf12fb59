"""Forms from JSON Schema: what is edited comes back as the type it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel.values import JsonObject, JsonValue
from playground.web.forms import Form, FormError, form_for, read_form

ORDER: JsonObject = {
    "properties": {
        "item": {"type": "string", "title": "Item"},
        "pieces": {"type": "integer", "minimum": 1, "maximum": 9},
        "price": {"type": "number"},
        "gift": {"type": "boolean"},
        "size": {"enum": ["S", "M", 3]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array"},
    },
    "required": ["item", "pieces", "note"],
}
VALUE: JsonObject = {
    "item": "tea",
    "pieces": 2,
    "price": 1.5,
    "gift": True,
    "size": 3,
    "note": None,
    "tags": ["a"],
}


def posted(form: Form) -> dict[str, str]:
    """What a browser would send of an untouched form."""
    return {
        field.name: "on" if field.kind == "checkbox" else field.value
        for field in form.fields
        if field.kind != "checkbox" or field.checked
    } | {f"{form.prefix}:mode": form.mode, f"{form.prefix}:json": form.raw}


def test_an_untouched_form_gives_the_same_value_with_the_same_types() -> None:
    read = read_form(ORDER, posted(form_for(ORDER, VALUE)), value=VALUE)

    assert json.dumps(read) == json.dumps(VALUE)


PROPERTIES = st.fixed_dictionaries(
    {
        "text": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")),
        "whole": st.integers(),
        "real": st.floats(allow_nan=False, allow_infinity=False),
        "yes": st.booleans(),
    }
)


@given(PROPERTIES)
def test_any_value_of_plain_types_survives_the_form(value: JsonObject) -> None:
    schema: JsonObject = {
        "properties": {
            "text": {"type": "string"},
            "whole": {"type": "integer"},
            "real": {"type": "number"},
            "yes": {"type": "boolean"},
        },
        "required": list(value),
    }

    read = read_form(schema, posted(form_for(schema, value)), value=value)

    assert read == value
    assert isinstance(read, dict)
    assert {key: type(item) for key, item in read.items()} == {k: type(item) for k, item in value.items()}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 500}, "textarea"),
        ({"type": "string", "format": "multiline"}, "textarea"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "integer"}, "integer"),
        ({"type": ["integer", "null"]}, "integer"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "checkbox"),
        ({"enum": ["a", "b"]}, "select"),
        ({"type": "object"}, "json"),
        ({"type": ["string", "integer"]}, "json"),
        ({}, "text"),
    ],
)
def test_the_schema_chooses_the_field(schema: JsonObject, kind: str) -> None:
    assert form_for({"properties": {"x": schema}}).fields[0].kind == kind


def test_bounds_are_said_beside_the_field() -> None:
    assert form_for(ORDER).fields[1].bounds == "1 – 9"


def test_an_unchecked_box_is_false_and_not_absent() -> None:
    assert read_form({"properties": {"gift": {"type": "boolean"}}}, {}) == {"gift": False}


def test_an_optional_text_left_empty_is_absent() -> None:
    assert read_form({"properties": {"note": {"type": "string"}}}, {"value.note": ""}) == {}


def test_a_text_emptied_on_purpose_is_an_empty_text() -> None:
    schema: JsonObject = {"properties": {"note": {"type": "string"}}}

    assert read_form(schema, {"value.note": ""}, value={"note": "old"}) == {"note": ""}


def test_without_properties_the_form_is_one_field_for_the_value_itself() -> None:
    form = form_for({"type": "integer"}, 3)

    assert form.plain
    assert read_form({"type": "integer"}, {"value": "4"}) == 4


def test_the_json_side_is_read_when_it_was_chosen() -> None:
    sent = {"value:mode": "json", "value:json": '{"pieces": "two"}', "value.pieces": "2"}

    assert read_form(ORDER, sent) == {"pieces": "two"}


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("pieces", "two", "form.integer"),
        ("pieces", "2.5", "form.integer"),
        ("pieces", "", "form.required"),
        ("price", "a lot", "form.number"),
        ("price", "nan", "form.number"),
        ("price", "1e999", "form.number"),
        ("size", "XL", "form.choice"),
        ("tags", "[1", "form.json"),
        ("tags", "NaN", "form.json"),
        ("tags", "[" * 100_000, "form.json"),
    ],
)
def test_what_cannot_be_read_is_said_at_its_field(field: str, text: str, message: str) -> None:
    sent = {"value.pieces": "2", "value.size": "S", f"value.{field}": text}

    with pytest.raises(FormError) as refused:
        read_form(ORDER, sent)

    assert {name: problem.key for name, problem in refused.value.problems.items()} == {
        f"value.{field}": message
    }


def test_a_refused_form_shows_what_was_typed() -> None:
    sent = {"value.item": "tea", "value.pieces": "two"}
    with pytest.raises(FormError) as refused:
        read_form(ORDER, sent)

    form = form_for(ORDER, VALUE, posted=sent, problems=refused.value.problems)

    assert [(field.value, field.problem is not None) for field in form.fields[:2]] == [
        ("tea", False),
        ("two", True),
    ]


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.text(max_size=5),
            lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
        ),
    )
)
def test_any_schema_draws_a_form(schema: dict[str, JsonValue]) -> None:
    assert form_for(schema).prefix == "value"
