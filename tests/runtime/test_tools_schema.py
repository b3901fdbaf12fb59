"""What a function takes: the schema that a model is shown, and how its JSON becomes typed values."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from playground.kernel import ToolCall
from playground.runtime.tools import ToolRegistry, ToolSpec

if TYPE_CHECKING:
    from playground.kernel.body import NodeContext


class Place(BaseModel):
    city: str
    country: str = "NL"


@dataclass
class Span:
    start: date
    days: int = 1


class Unit(Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


def schema_of(function, **options):
    registry = ToolRegistry().function(function, **options)
    return registry.schemas()[0]["function"]["parameters"]


async def seen_by(function, **arguments):
    """What the function is called with for these JSON arguments."""
    seen = {}

    def catch(*args, **kwargs):
        seen.update(kwargs)

    catch.__signature__ = __import__("inspect").signature(function)
    catch.__wrapped__ = function
    registry = ToolRegistry().function(catch, name="catch")
    result = await registry.dispatch(ToolCall("catch", arguments))
    assert result.ok, result.error
    return seen


# The schema


def test_parameters_without_a_default_are_required() -> None:
    def add(a, b, c=1):
        return a + b + c

    assert schema_of(add)["required"] == ["a", "b"]


def test_annotations_become_json_types_bounds_and_choices() -> None:
    def weather(
        city: str, unit: Literal["C", "F"] = "C", days: Annotated[int, Field(ge=1, le=7)] = 1
    ) -> str: ...

    assert schema_of(weather)["properties"] == {
        "city": {"type": "string"},
        "unit": {"enum": ["C", "F"], "type": "string", "default": "C"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
    }


def test_a_nested_model_is_described_with_its_own_fields() -> None:
    def go(place: Place): ...

    place = schema_of(go)["$defs"]["Place"]
    assert place["required"] == ["city"]
    assert set(place["properties"]) == {"city", "country"}


@pytest.mark.parametrize("name", ["ctx", "_ctx", "context"])
def test_the_context_parameter_is_not_shown_to_the_model(name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"def act(x, {name}): ...", namespace)  # noqa: S102 - the name is what varies
    assert set(schema_of(namespace["act"])["properties"]) == {"x"}


def test_a_parameter_annotated_as_node_context_is_not_shown_whatever_its_name() -> None:
    def act(x: int, run: NodeContext | None = None): ...

    assert set(schema_of(act)["properties"]) == {"x"}


def test_names_that_python_objects_use_themselves_are_fine_for_parameters() -> None:
    def act(json, copy, model_config, _private, schema=1): ...

    assert set(schema_of(act)["properties"]) == {"json", "copy", "model_config", "_private", "schema"}


def test_a_default_that_is_not_json_is_left_out_of_the_schema() -> None:
    def act(limit: float = math.inf, marker: object = object()): ...

    assert all("default" not in about for about in schema_of(act)["properties"].values())


def test_a_field_given_as_default_describes_the_parameter() -> None:
    def act(days: int = Field(3, ge=1, description="how many")): ...

    assert schema_of(act)["properties"]["days"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "how many",
    }


def test_the_schema_of_a_partial_offers_what_is_left() -> None:
    def scale(value: int, factor: int): ...

    assert set(schema_of(partial(scale, 2), name="scale")["required"]) == {"factor"}


def test_a_parameter_that_json_cannot_fill_is_refused_by_name() -> None:
    class Socket: ...

    def act(socket): ...

    act.__annotations__["socket"] = Socket
    with pytest.raises(TypeError, match=r"tool 'act' has a parameter that JSON cannot fill.*Socket"):
        ToolRegistry().function(act)


def test_an_annotation_for_type_checkers_only_is_refused_with_the_way_out() -> None:
    def act(x: Missing): ...  # noqa: F821

    with pytest.raises(TypeError, match=r"tool 'act'.*'Missing' is not defined.*module level"):
        ToolRegistry().function(act)


def test_a_builtin_without_a_signature_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match="wrap it in a function"):
        ToolRegistry().function(iter)


# Made again and again, as a scenario is for each run


def made(default: object = 1, kind: type = int):
    def act(x=default): ...

    act.__annotations__["x"] = kind
    return act


def test_what_one_def_makes_again_is_described_once() -> None:
    first = ToolRegistry().function(made())
    second = ToolRegistry().function(made())

    described = [registry.schemas()[0]["function"]["parameters"] for registry in (first, second)]
    assert described[0] is described[1]


@pytest.mark.parametrize(("again", "said"), [(made(True, bool), True), (made(2), 2), (made("1", str), "1")])
def test_what_differs_from_one_making_to_the_next_is_described_as_it_is(again, said) -> None:
    first = ToolRegistry().function(made())

    assert schema_of(again)["properties"]["x"]["default"] is said
    assert first.schemas()[0]["function"]["parameters"]["properties"]["x"]["default"] == 1


# Descriptions


def google(city: str, days: int = 1):
    """Tell the weather.

    Only for places on land.

    Args:
        city: name of the place,
            in English.
        days (int): how many days ahead

    Returns:
        A sentence.
    """


def sphinx(city: str, days: int = 1):
    """Tell the weather.

    :param city: name of the place,
        in English.
    :param int days: how many days ahead
    :returns: A sentence.
    """


def chinese(city: str, days: int = 1):
    """查询天气。

    参数：
        city：城市名
        days：几天
    """


@pytest.mark.parametrize("function", [google, sphinx])
def test_a_docstring_describes_the_parameters(function) -> None:
    properties = schema_of(function)["properties"]
    assert properties["city"]["description"] == "name of the place, in English."
    assert properties["days"]["description"] == "how many days ahead"


def test_a_chinese_docstring_describes_the_parameters() -> None:
    assert schema_of(chinese)["properties"]["city"]["description"] == "城市名"


def test_the_prose_of_the_docstring_describes_the_tool() -> None:
    registry = ToolRegistry().function(google).function(chinese)
    assert registry.get("google").description == "Tell the weather.\n\nOnly for places on land."
    assert registry.get("chinese").description == "查询天气。"


def test_a_given_description_goes_before_the_docstring() -> None:
    assert ToolRegistry().function(google, description="Weather").get("google").description == "Weather"


def test_a_description_in_the_annotation_goes_before_the_docstring() -> None:
    def act(city: Annotated[str, Field(description="a capital")]):
        """Act.

        Args:
            city: a place
        """

    assert schema_of(act)["properties"]["city"]["description"] == "a capital"


# Values


async def test_json_arrives_as_the_annotated_types() -> None:
    def act(day: date, unit: Unit, place: Place, span: Span, pair: tuple[int, str], tags: set[str]): ...

    seen = await seen_by(
        act,
        day="2026-01-02",
        unit="F",
        place={"city": "Delft"},
        span={"start": "2026-01-02"},
        pair=[1, "a"],
        tags=["x", "x"],
    )
    assert seen == {
        "day": date(2026, 1, 2),
        "unit": Unit.FAHRENHEIT,
        "place": Place(city="Delft"),
        "span": Span(date(2026, 1, 2)),
        "pair": (1, "a"),
        "tags": {"x"},
    }


async def test_a_number_written_as_text_arrives_as_a_number() -> None:
    def act(n: int): ...

    assert await seen_by(act, n="3") == {"n": 3}


async def test_what_was_not_given_gets_the_functions_own_default() -> None:
    marker = object()

    def act(x: object = marker, days: int = Field(3)): ...

    assert await seen_by(act) == {"x": marker, "days": 3}


async def test_arguments_given_to_the_tool_are_its_own_to_change() -> None:
    def act(items: list, extra: dict):
        items.append(1)
        extra["x"] = 1
        return [items, extra]

    call = ToolCall("act", {"items": [], "extra": {}})
    result = await ToolRegistry().function(act).dispatch(call)
    assert result.output == [[1], {"x": 1}]
    assert call.arguments == {"items": [], "extra": {}}


async def test_positional_only_and_open_ended_parameters_are_filled() -> None:
    def act(a, /, b, **more):
        return [a, b, more]

    result = await ToolRegistry().function(act).dispatch(ToolCall("act", {"a": 1, "b": 2, "c": 3}))
    assert result.output == [1, 2, {"c": 3}]


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.none() | st.integers() | st.text()))
async def test_the_function_runs_exactly_when_the_arguments_fit(arguments) -> None:
    calls = []

    def act(a: int, b: str = ""):
        calls.append((a, b))

    result = await ToolRegistry().function(act).dispatch(ToolCall("act", arguments))
    assert result.ok == bool(calls)
    assert all(type(a) is int and type(b) is str for a, b in calls)


# Schemas from elsewhere

ECHO = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0}, "y": {"$ref": "#/$defs/word"}},
    "required": ["x"],
    "$defs": {"word": {"type": "string", "maxLength": 3}},
}


def echo_tool(schema=ECHO, func=lambda arguments: arguments):
    return ToolRegistry().add(ToolSpec("echo", "", func, schema))


async def test_a_function_of_all_arguments_gets_them_as_one_dict() -> None:
    result = await echo_tool().dispatch(ToolCall("echo", {"x": 1, "z": [2]}))
    assert result.output == {"x": 1, "z": [2]}


async def test_a_function_with_the_schemas_names_gets_them_by_name() -> None:
    result = await echo_tool(func=lambda x, y="": [x, y]).dispatch(ToolCall("echo", {"x": 1}))
    assert result.output == [1, ""]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "'x' is a required property"),
        ({"x": "1"}, "x: '1' is not of type 'integer'"),
        ({"x": True}, "x: True is not of type 'integer'"),
    ],
)
@pytest.mark.parametrize("package", ["with jsonschema", "without jsonschema"])
async def test_arguments_are_checked_against_the_schema(package, arguments, complaint, monkeypatch) -> None:
    if package == "without jsonschema":
        monkeypatch.setitem(sys.modules, "jsonschema", None)
    result = await echo_tool(func=lambda arguments: pytest.fail("called")).dispatch(
        ToolCall("echo", arguments)
    )
    assert not result.ok
    assert complaint in result.error


async def test_the_check_is_complete_where_jsonschema_is_installed() -> None:
    result = await echo_tool().dispatch(ToolCall("echo", {"x": -1, "y": "long"}))
    assert "x: -1 is less than the minimum of 0; y: 'long' is too long" in result.error


@pytest.mark.parametrize(
    "odd",
    [
        {"properties": {"y": {"$ref": "http://127.0.0.1:9/never-fetched"}}},
        {"properties": {"y": {"type": 7}}},
    ],
    ids=["points elsewhere", "is broken"],
)
async def test_a_schema_that_cannot_be_followed_leaves_the_judgement_to_the_tool(odd) -> None:
    schema = {"type": "object", "required": ["x"], **odd}
    assert (await echo_tool(schema).dispatch(ToolCall("echo", {"x": 1, "y": 1}))).ok
    assert "'x' is a required property" in (await echo_tool(schema).dispatch(ToolCall("echo", {}))).error
