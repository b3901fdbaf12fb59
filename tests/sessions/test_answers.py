"""What people hand in is held against its schema, and a schema is only read, never followed elsewhere."""

from __future__ import annotations

import socket

import pytest

from playground.sessions.answers import schema_errors


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "banana"}, "'banana' is not valid"),
        ({"type": "string", "pattern": "("}, "is not a 'regex'"),
        ({"$ref": "#"}, "it refers to itself without end"),
        ({"$ref": "#/$defs/none"}, "it refers to /$defs/none, which is not in it"),
        ({"$ref": "other.json"}, "it refers to other.json, which is not in it"),
    ],
)
def test_a_schema_that_is_wrong_is_what_is_wrong(schema: dict[str, object], said: str) -> None:
    assert said in schema_errors(schema, "x")[""]


def test_no_schema_makes_the_server_ask_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.05)
        address = f"http://127.0.0.1:{other.getsockname()[1]}/schema.json"
        assert "which is not in it" in schema_errors({"$ref": address}, "x")[""]
        with pytest.raises(TimeoutError):
            other.accept()


def test_a_reference_inside_a_schema_is_followed() -> None:
    schema = {"$defs": {"count": {"type": "integer"}}, "$ref": "#/$defs/count"}
    assert schema_errors(schema, 3) == {}
    assert schema_errors(schema, "x") == {"": "'x' is not of type 'integer'"}
