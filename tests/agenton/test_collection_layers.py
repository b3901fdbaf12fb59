"""The plain layers that come with the house: an object, tools, and tools over an object."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from layer_probes import factory

from playground.agenton.collections.layers.plain import (
    DynamicToolsLayer,
    ObjectLayer,
    PromptLayer,
    ToolsLayer,
    with_object,
)
from playground.agenton.compositor import Compositor, CompositorRun, LayerNode

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Profile:
    name: str


class OtherProfile:
    """Somebody else's."""


@with_object(Profile)
def greet(profile: Profile, topic: str) -> str:
    """Greet the user."""
    return f"{profile.name}: {topic}"


@with_object(Profile)
async def greet_slowly(profile: Profile, topic: str) -> str:
    return f"{profile.name}… {topic}"


def composed(value: object) -> CompositorRun:
    return Compositor(
        [
            LayerNode("object", factory(ObjectLayer, lambda: ObjectLayer(value))),
            LayerNode(
                "tools",
                factory(DynamicToolsLayer, lambda: DynamicToolsLayer([greet, greet_slowly])),
                deps={"object_layer": "object"},
            ),
        ]
    ).enter()


def test_the_core_imports_without_pydantic_ai() -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "import playground.agenton.compositor, playground.agenton.collections.layers.plain\n"
        "from playground.agenton.layers import PydanticAILayer, PydanticAIPromptType\n"
        "print(PydanticAIPromptType('text').kind)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "pydantic_ai\n", done.stderr


def test_an_object_layer_holds_the_very_object() -> None:
    value = Profile("Ada")
    assert composed(value).get_layer("object", ObjectLayer[Profile]).value is value


def test_a_tools_layer_gives_its_callables() -> None:
    run = Compositor([LayerNode("tools", factory(ToolsLayer, lambda: ToolsLayer([len, str.upper])))]).enter()
    assert [tool.value for tool in run.tools] == [len, str.upper]


async def test_a_dynamic_tool_is_seen_without_the_object_that_it_works_on() -> None:
    tool, slow = (tool.value for tool in composed(Profile("Ada")).tools)
    assert (tool.__name__, tool.__doc__) == ("greet", "Greet the user.")
    assert list(inspect.signature(tool).parameters) == ["topic"]
    assert tool(topic="hello") == "Ada: hello"
    assert inspect.iscoroutinefunction(slow)
    assert await slow("hello") == "Ada… hello"


def test_a_marked_function_can_still_be_called_as_itself() -> None:
    assert greet(Profile("Ada"), "hello") == "Ada: hello"


def test_a_dynamic_tool_over_an_object_of_another_type_is_refused() -> None:
    with pytest.raises(
        TypeError, match="'greet' expected object dependency of type 'Profile', got 'OtherProfile'"
    ):
        composed(OtherProfile()).tools  # noqa: B018 (reading is what fails)


def test_a_tool_over_an_object_needs_a_parameter_for_it() -> None:
    def tool(*, topic: str) -> str:
        return topic

    with pytest.raises(ValueError, match="'tool' must accept the object dependency as its first positional"):
        with_object(Profile)(tool)  # type: ignore[arg-type]


def test_a_tool_over_an_object_must_not_expect_another_type() -> None:
    def tool(profile: OtherProfile) -> str:
        return repr(profile)

    with pytest.raises(TypeError, match="'tool': its first parameter should accept 'Profile'"):
        with_object(Profile)(tool)  # type: ignore[arg-type]


def test_a_tool_over_an_object_may_leave_its_type_open() -> None:
    def tool(profile: Any, topic: str) -> str:
        return f"{profile.name}, {topic}"

    assert with_object(Profile)(tool).bound_to(Profile("Ada"))("hello") == "Ada, hello"


def test_a_prompt_layer_can_be_made_by_hand() -> None:
    layer = PromptLayer(prefix="one", suffix=("two", "three"))
    assert (layer.prefix_prompts, layer.user_prompts, layer.suffix_prompts) == (["one"], [], ["two", "three"])
