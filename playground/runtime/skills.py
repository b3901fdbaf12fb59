"""Skills: know-how in a folder, shown to the model only as far as it is used.

A tool is one action; a skill is know-how: instructions, the tools they need,
and files to look things up in.  Many skills would fill the window, so they are
disclosed step by step: first a name and a description each (`overview`), then
the instructions of the one that is used (`open_skill` as a tool of the model,
or `match` and `apply_to_system` by program), then a further file when the
instructions say so.

A skill may also narrow what the model can do: with `tools` given, only those
are offered while it is in use (`ScopedTools`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol, Self

from playground.kernel.body import NodeContext
from playground.kernel.types import ToolCall, ToolResult
from playground.kernel.values import JsonObject, JsonValue
from playground.runtime.lexical import WordIndex
from playground.runtime.messages import shortened
from playground.runtime.skill_file import (
    SkillFileError,
    SkillProblem,
    files_beside,
    parse_skill,
    read_beside,
    read_text,
    skill_files,
)

__all__ = ["ScopedTools", "Shelf", "Skill", "SkillProblem", "SkillRegistry"]

_MAX_NAME = 100
_DESCRIPTION_CHARS = 1_000
"""How much of a description the overview shows."""

_TASK_CHARACTERS = 10_000
"""How much of a task is read to match a skill: it may have a whole file in it."""


@dataclass(frozen=True, slots=True)
class Skill:
    """Know-how for one kind of task.

    Attributes:
        name: what it is called, unique in its registry.
        description: what it does and when to use it; it is chosen by this.
        instructions: what to do, for the model.
        tools: the tools that may be used with it, `*` for any characters; empty for all.
        folder: where its files are, if it has any.
    """

    name: str
    description: str
    instructions: str = ""
    tools: Sequence[str] = ()
    folder: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(self.tools))

    def allows(self, tool: str) -> bool:
        """Whether `tool` may be used with this skill."""
        return not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


class SkillRegistry:
    """The skills that an agent can use.

    Attributes:
        problems: what in the loaded folders is no skill, or not as it should be, with file and line.
    """

    def __init__(self) -> None:
        self._skills: dict[str, Skill] = {}
        self._roots: dict[str, Path] = {}
        self._problems: dict[Path, list[SkillProblem]] = {}
        self._index = WordIndex()

    @property
    def problems(self) -> list[SkillProblem]:
        return [problem for problems in self._problems.values() for problem in problems]

    def register(self, skill: Skill) -> Self:
        """Add `skill`, in place of one of the same name.

        Raises:
            ValueError: it has no name.
        """
        if not skill.name.strip():
            raise ValueError("a skill needs a name: give it one to be opened by")
        self._add(skill)
        return self

    def load_dir(self, root: str | Path) -> list[Skill]:
        """Load the skills of a folder: each `SKILL.md` in it or in a folder below.

        What cannot be used is listed in `problems`; loading the same folder again brings both up to date.

        Returns:
            The loaded skills, in the order of their folders.
        """
        folder = Path(root)
        for key in [key for key, origin in self._roots.items() if origin == folder]:
            self._remove(key)
        problems = self._problems[folder] = []
        loaded: list[Skill] = []
        for found in skill_files(folder):
            if isinstance(found, SkillProblem):
                problems.append(found)
                continue
            skill = self._read(found, problems)
            if skill is not None:
                self._add(skill, folder)
                loaded.append(skill)
        return loaded

    def resolve(self, name: str) -> Skill | None:
        """The skill of this name, whatever its case."""
        return self._skills.get(_key(name))

    def names(self) -> list[str]:
        """The names of all skills, in the order in which they came."""
        return [skill.name for skill in self._skills.values()]

    def match(self, task: str) -> Skill | None:
        """The skill that fits `task` best by the words of its name and description; None if none does.

        A task that names a skill gets it.
        """
        task = task[:_TASK_CHARACTERS]
        asked = _key(task)
        named = [key for key in self._skills if _is_telling(key) and re.search(_whole(key), asked)]
        if named:
            return self._skills[max(named, key=len)]
        scores = self._index.scores(_without_routine(task), single_characters=False)
        return max(self._skills.items(), key=lambda item: scores.get(item[0], 0.0))[1] if scores else None

    def apply_to_system(self, skill: Skill | None, system: str = "") -> str:
        """The system prompt `system` with the instructions of `skill`; as it is without one."""
        if skill is None:
            return system
        return "\n\n".join(filter(None, [system, f"Use the skill {skill.name!r}:\n{skill.instructions}"]))

    def overview(self) -> str:
        """Name and description of each skill, a line each: what a model needs to choose one to open."""
        return "\n".join(
            f"- {skill.name}: {shortened(' '.join(skill.description.split()), _DESCRIPTION_CHARS)}"
            for skill in self._skills.values()
        )

    def open_skill(self, name: str, file: str = "") -> str:
        """Read the instructions of a skill, or one of its files.

        Args:
            name: the name of the skill.
            file: the name of a file of the skill; leave it out to read the instructions.
        """
        skill = self.resolve(name)
        if skill is None:
            raise LookupError(
                f"there is no skill {name!r}; the skills are: {', '.join(self.names()) or 'none'}"
            )
        beside = [] if skill.folder is None else files_beside(skill.folder)
        if not file:
            return skill.instructions + (f"\n\nFiles: {', '.join(beside)}" if beside else "")
        try:
            if skill.folder is None:
                raise SkillFileError("is not there")
            return read_beside(skill.folder, file)
        except SkillFileError as error:
            raise LookupError(
                f"{file!r} of the skill {skill.name!r} {error}; its files are: {', '.join(beside) or 'none'}"
            ) from None

    def _read(self, path: Path, problems: list[SkillProblem]) -> Skill | None:
        """The skill that the file at `path` holds; what is wrong with it goes to `problems`."""
        try:
            skill = _skill_of(path, problems)
        except SkillFileError as error:
            problems.append(SkillProblem(path, str(error), error.line))
            return None
        taken = self._skills.get(_key(skill.name))
        if taken is not None:
            where = taken.folder / path.name if taken.folder else "a registered skill"
            problems.append(SkillProblem(path, f"the name {skill.name!r} is that of {where}: rename one"))
            return None
        return skill

    def _add(self, skill: Skill, root: Path | None = None) -> None:
        key = _key(skill.name)
        self._remove(key)
        self._skills[key] = skill
        self._index.add(key, _without_routine(f"{skill.name}\n{skill.name}\n{skill.description}"))
        if root is not None:
            self._roots[key] = root

    def _remove(self, key: str) -> None:
        self._skills.pop(key, None)
        self._roots.pop(key, None)
        self._index.remove(key)


def _skill_of(path: Path, problems: list[SkillProblem]) -> Skill:
    """The skill in the file at `path`; a missing name or description is no error but a problem."""
    told = parse_skill(read_text(path))
    name, description = told.text("name"), told.text("description")
    if not name:
        name = path.resolve().parent.name
        problems.append(SkillProblem(path, f"has no name and goes by that of its folder: add 'name: {name}'"))
    if len(name) > _MAX_NAME:
        raise SkillFileError(f"the name has more than {_MAX_NAME} characters: shorten it", told.lines["name"])
    if not description:
        problems.append(SkillProblem(path, "has no description, so nobody knows when to use it: add one"))
    return Skill(name, description, told.body, told.names("tools", "allowed-tools"), path.parent)


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()


def _is_telling(key: str) -> bool:
    """Whether a name is more than a word that any task may hold."""
    return len(key) > 2 or not key.isascii()


def _whole(key: str) -> str:
    """A pattern for a name that is not a part of a longer one; Chinese has no spaces around it."""
    return rf"(?<![a-z0-9_]){re.escape(key)}(?![a-z0-9_])"


_ROUTINE = re.compile(
    r"\b(?:use|uses|used|using|user|users|skills?|tasks?|helps?|works?|needs?|when)\b|使用|用于|用来|技能|任务|处理|用户|需要|帮助",
    re.IGNORECASE,
)


def _without_routine(text: str) -> str:
    """`text` without the words that nearly every description has, since they choose nothing."""
    return _ROUTINE.sub(" ", text)


class Shelf(Protocol):
    """A set of tools that can be shown to a model and called, such as a `ToolRegistry`."""

    def schemas(self) -> Sequence[JsonObject]:
        """The tools as a model is shown them."""
        ...

    async def dispatch(self, call: ToolCall, ctx: NodeContext | None = None) -> ToolResult:
        """Run one call."""
        ...


class ScopedTools:
    """The tools of `tools` that `skill` allows: no others are shown, and no others are run."""

    def __init__(self, tools: Shelf, skill: Skill) -> None:
        self._tools = tools
        self._skill = skill

    def schemas(self) -> list[JsonObject]:
        """The allowed tools as a model is shown them."""
        return [schema for schema in self._tools.schemas() if self._skill.allows(_tool_name(schema))]

    async def dispatch(self, call: ToolCall, ctx: NodeContext | None = None) -> ToolResult:
        """Run one call; a tool that the skill does not allow fails with the reason."""
        if not self._skill.allows(call.name):
            allowed = ", ".join(map(_tool_name, self.schemas())) or "none"
            return ToolResult.failure(
                f"the skill {self._skill.name!r} does not use the tool {call.name!r}; it uses: {allowed}",
                call.call_id,
            )
        return await self._tools.dispatch(call, ctx)


def _tool_name(schema: Mapping[str, JsonValue]) -> str:
    function = schema.get("function")
    return str(function.get("name") if isinstance(function, dict) else schema.get("name"))
