"""docs/recipes.md is true: every recipe runs as printed, and its picture shows the nodes of its plan."""

from __future__ import annotations

import ast
import inspect
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from playground import Plan

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")
RECIPE = re.compile(
    r"^## (?P<title>.+?)\n\n"
    r"```\n(?P<picture>.+?)```.*?"
    r"```python\n(?P<code>.+?)```\n\n"
    r"```text\n(?P<output>.+?)```",
    re.DOTALL | re.MULTILINE,
)
RECIPES = [pytest.param(found.groupdict(), id=found["title"]) for found in RECIPE.finditer(PAGE)]


async def run(code: str) -> tuple[str, dict[str, object]]:
    """What a recipe prints, and the names it leaves behind."""
    names: dict[str, object] = {}
    compiled = compile(code, "recipe", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(compiled, CodeType)
    printed = StringIO()
    with redirect_stdout(printed):
        waiting = FunctionType(compiled, names)()
        if inspect.isawaitable(waiting):
            await waiting
    return printed.getvalue(), names


def plan_in(names: dict[str, object]) -> Plan:
    """The plan that a recipe builds: the last of its plans, flows, agents and teams."""
    for value in reversed(names.values()):
        plan = value if isinstance(value, Plan) else getattr(value, "plan", None)
        if isinstance(plan, Plan) and not hasattr(value, "run_id"):
            return plan
    raise AssertionError("the recipe builds no plan")


def test_every_section_is_a_recipe() -> None:
    assert len(RECIPES) == len(re.findall(r"^## ", PAGE, re.M))


@pytest.mark.parametrize("recipe", RECIPES)
async def test_it_prints_what_is_shown(recipe: dict[str, str]) -> None:
    printed, _ = await run(recipe["code"])
    assert printed == recipe["output"]


@pytest.mark.parametrize("recipe", RECIPES)
async def test_its_picture_shows_all_nodes_of_its_plan(recipe: dict[str, str]) -> None:
    _, names = await run(recipe["code"])
    shown = set(re.findall(r"[a-z]+", recipe["picture"]))
    assert plan_in(names).nodes.keys() <= shown
