"""Skill files: the SKILL.md files of a folder, read one by one.

A skill file is Markdown with a header between two lines `---`.  Whatever the
file is like, there is one of two outcomes: it is a skill, or it is a problem
that names the file, the line and the way out.  A skill that is just absent
would be looked for in all the wrong places.

Files come from anywhere and are read by a model, so they are bounded in size
and number, and none outside the folder is read through a link.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playground.runtime.front_matter import HeaderValue

MAX_BYTES: Final = 256 * 1024
"""How large a skill file, or a file beside it, may be: it is to be read by a model."""

MAX_HEADER: Final = 16 * 1024
"""How many characters the header of a skill file may have."""

MAX_FOLDERS: Final = 2_000
"""In how many folders skills are looked for."""

MAX_DEPTH: Final = 8
"""How many folders deep they are looked for."""

MAX_FILES: Final = 50
"""How many files beside it a skill tells of."""

FILE_NAME: Final = "SKILL.md"
_SKIPPED: Final = frozenset({"node_modules", "__pycache__"})


class SkillFileError(ValueError):
    """What is wrong with a skill file, and in which line (1 is the first, 0 the file as a whole)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A skill that cannot be used, or not as it should be; as text, `path:line: message`."""

    path: Path
    message: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class SkillText:
    """What a skill file says.

    Attributes:
        header: its entries, scalars as text.
        lines: the line of each entry.
        body: the instructions.
    """

    header: Mapping[str, HeaderValue]
    lines: Mapping[str, int]
    body: str

    def text(self, key: str) -> str:
        """The entry as one line of text; empty if there is none.

        Raises:
            SkillFileError: it is a list or a mapping.
        """
        value = self.header.get(key, "")
        if not isinstance(value, str):
            raise SkillFileError(
                f"{key!r} is no text: write it in one line, in quotes", self.lines.get(key, 0)
            )
        if not value.isascii() and value.encode(errors="ignore").decode() != value:
            raise SkillFileError(
                f"{key!r} holds half a character: write the character", self.lines.get(key, 0)
            )
        return " ".join(value.split())

    def names(self, *keys: str) -> tuple[str, ...]:
        """The first of these entries that is there, as names: a list, or text with commas or spaces.

        Raises:
            SkillFileError: it is something else.
        """
        key = next((key for key in keys if key in self.header), None)
        if key is None:
            return ()
        value = self.header[key]
        if isinstance(value, str):
            value = list(value.split(",") if "," in value else value.split())
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise SkillFileError(
                f"{key!r} is no list of names: write [first, second]", self.lines.get(key, 0)
            )
        return tuple(name.strip() for name in value if isinstance(name, str) and name.strip())


def read_text(path: Path) -> str:
    """The text of a file that a model is to read, with plain line ends.

    Raises:
        SkillFileError: it is no regular file, too large, not UTF-8, or cannot be read.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise SkillFileError("is no regular file")
        if found.st_size > MAX_BYTES:
            raise SkillFileError(
                f"has {found.st_size:,} bytes, and {MAX_BYTES:,} is the most: move parts into files beside it"
            )
        data = path.read_bytes()
    except OSError as error:
        raise SkillFileError(f"cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SkillFileError("is not UTF-8 text: save it in UTF-8", line) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_skill(text: str) -> SkillText:
    """Header and body of a skill file.

    Raises:
        SkillFileError: there is no header between two lines `---`, or it can be read in no way or in several.
    """
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != "---":
        raise SkillFileError("has no header: begin it with a line '---'", start + 1)
    end = next((n for n in range(start + 1, len(lines)) if lines[n].rstrip() == "---"), None)
    if end is None:
        raise SkillFileError(
            f"the header has no end: close it with a line '---'{_near_fence(lines, start)}", start + 1
        )
    header = lines[start + 1 : end]
    if sum(map(len, header)) > MAX_HEADER:
        raise SkillFileError(
            f"the header has more than {MAX_HEADER:,} characters: move text below it", start + 1
        )
    # Here, since YAML takes a while to load, and few programs have skills.
    from playground.runtime.front_matter import FrontMatterError, entry_lines, read_front_matter

    try:
        entries = read_front_matter(header, start + 2)
    except FrontMatterError as error:
        raise SkillFileError(str(error), error.line) from None
    return SkillText(entries, dict(entry_lines(header, start + 2)), "\n".join(lines[end + 1 :]).strip("\n"))


def _near_fence(lines: Sequence[str], start: int) -> str:
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if re.fullmatch(r"\s*(-{2,}|[—–]+)\s*", line):
            return f"; line {number} is {line.strip()!r}"
    return ""


# The folder


def skill_files(root: Path) -> Iterator[Path | SkillProblem]:
    """The skill files in and under `root`, in order of their folders, and what looks like one but is none.

    Links that lead out of `root` are not followed; hidden folders are passed over.
    """
    if not root.is_dir():
        yield SkillProblem(root, "is no folder: give one that holds skills")
        return
    failed: list[OSError] = []
    for number, (name, folders, files) in enumerate(os.walk(root, onerror=failed.append)):
        folder = Path(name)
        if number >= MAX_FOLDERS:
            yield SkillProblem(
                root, f"has more than {MAX_FOLDERS:,} folders: give the one that holds the skills"
            )
            return
        yield from _links(root, folder, folders)
        yield from _files(root, folder, [*files, *filter(_is_skill_name, folders)])
        folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in _SKIPPED)
        if folders and len(folder.relative_to(root).parts) >= MAX_DEPTH:
            folders.clear()
            yield SkillProblem(folder, f"is {MAX_DEPTH} folders deep: skills below it are not looked for")
    for error in failed:
        yield SkillProblem(Path(error.filename or root), f"cannot be read: {error.strerror}")


def _is_skill_name(name: str) -> bool:
    return name.casefold() == FILE_NAME.casefold()


def _links(root: Path, folder: Path, names: Sequence[str]) -> Iterator[SkillProblem]:
    """The linked folders that lead out of `root` and hold a skill; the others are no loss."""
    for name in sorted(names):
        path = folder / name
        if path.is_symlink() and not _is_inside(root, path) and (path / FILE_NAME).exists():
            yield SkillProblem(path, f"is a link out of {root}: copy the skill into it")


def _files(root: Path, folder: Path, names: Sequence[str]) -> Iterator[Path | SkillProblem]:
    """The skill file of one folder: `SKILL.md`, or the only one that is spelled otherwise."""
    found = sorted(filter(_is_skill_name, names), key=lambda name: (name != FILE_NAME, name))
    for name in found[1:]:
        yield SkillProblem(folder / name, f"is passed over: {found[0]} is beside it")
    if found:
        path = folder / found[0]
        if path.is_symlink() and not _is_inside(root, path):
            yield SkillProblem(path, f"is a link out of {root}: copy the file into it")
        else:
            yield path


def _is_inside(root: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def files_beside(folder: Path) -> list[str]:
    """The names of the files that come with the skill of `folder`, relative to it, at most `MAX_FILES`.

    Links, hidden files, and the files of skills below it are not among them.
    """
    found: list[str] = []
    for name, folders, files in os.walk(folder):
        here = Path(name)
        if here != folder and any(map(_is_skill_name, files)):
            folders.clear()
            continue
        folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in _SKIPPED)
        plain = (n for n in sorted(files) if not n.startswith(".") and not _is_skill_name(n))
        found += [str((here / n).relative_to(folder)) for n in plain if not (here / n).is_symlink()]
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]


def read_beside(folder: Path, name: str) -> str:
    """The text of the file `name` that comes with the skill of `folder`.

    Raises:
        SkillFileError: there is none of that name inside the folder, or it cannot be read as text.
    """
    path = folder / name
    if not name or not _is_inside(folder, path) or not path.is_file():
        raise SkillFileError("is not there")
    return read_text(path)
