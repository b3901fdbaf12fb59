"""Front matter: a header of `key: value` lines, read as its author meant it.

It is YAML, but people write it as if it were not: `description: Use when:
writing copy` is no YAML, yet it can only mean one thing.  So the header is read
by a YAML library first, with every scalar as the text that it is; where that
fails, each entry is read by itself, and one whose value can only be plain text
is taken as that.  What could be read in two ways is refused, with its line.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias, Union

import yaml

HeaderValue: TypeAlias = Union[str, "list[HeaderValue]", "dict[str, HeaderValue]"]
"""What an entry can be: text, or lists and mappings of it."""


class FrontMatterError(ValueError):
    """A header that can be read in no way, or in several; `line` says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_front_matter(lines: Sequence[str], first: int = 1) -> Mapping[str, HeaderValue]:
    """The entries of a header.

    Args:
        lines: the header, without its fences.
        first: the number of its first line in the file, for errors.

    Raises:
        FrontMatterError: naming the line.
    """
    try:
        return _mapping("\n".join(lines), first)
    except FrontMatterError as error:
        return _repaired(lines, first, error)


def entry_lines(lines: Sequence[str], first: int = 1) -> Iterator[tuple[str, int]]:
    """Each entry's key and the number of its line, for errors about its value."""
    for number, line in enumerate(lines, first):
        if entry := _ENTRY.match(line):
            yield entry["key"], number


class _TextLoader(yaml.BaseLoader):
    """YAML in which every scalar is text and a key counts once, without tags, anchors and aliases.

    Those three change a value by its first word, which in a header is no more than that: a word.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise yaml.composer.ComposerError(problem="a tag or an anchor", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"{name!r} is there twice", problem_mark=key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep)


def _mapping(text: str, first: int) -> dict[str, HeaderValue]:
    """YAML text as a mapping; `first` is the line that it begins in.

    Raises:
        FrontMatterError: it is no YAML, or no mapping.
    """
    try:
        value = yaml.load(text, Loader=_TextLoader)  # noqa: S506 - a BaseLoader builds texts, lists and dicts only
    except yaml.MarkedYAMLError as error:
        line = 0 if error.problem_mark is None else error.problem_mark.line
        problem = error.problem or error.context
        raise FrontMatterError(
            f"the header is no YAML ({problem}): put the value in quotes", first + line
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        raise FrontMatterError(
            f"the header holds the character {chr(error.character)!a}: remove it", first + line
        ) from None
    except (ValueError, OverflowError):
        raise FrontMatterError(
            "the header holds an escape that is no character: write the character", first
        ) from None
    except RecursionError:
        raise FrontMatterError("the header is nested too deeply: write plain entries", first) from None
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise FrontMatterError("the header has no entries: write them as 'key: value'", first)
    return value


_ENTRY = re.compile(r"(?P<key>[A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(?P<value>.*))?$")


def _repaired(lines: Sequence[str], first: int, error: FrontMatterError) -> Mapping[str, HeaderValue]:
    """The header read entry by entry; `error` is why it cannot be read as a whole.

    Raises:
        FrontMatterError: an entry can be read in no way, or in several.
    """
    header: dict[str, HeaderValue] = {}
    starts = [number - first for _, number in entry_lines(lines, first)]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        raise error
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        for key, value in _entry(lines[start:end], first + start).items():
            if key in header:
                raise FrontMatterError(f"{key!r} is there twice", first + start)
            header[key] = value
    return header


def _entry(lines: Sequence[str], first: int) -> dict[str, HeaderValue]:
    try:
        return _mapping("\n".join(lines), first)
    except FrontMatterError:
        entry = _ENTRY.match(lines[0])
        text = None if entry is None else _plain(entry["value"] or "", lines[1:])
        if entry is None or text is None:
            raise
        return {entry["key"]: text}


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CLOSERS = {'"': '"', "'": "'", "[": "]", "{": "}"}


def _plain(value: str, more: Sequence[str]) -> str | None:
    """A value that is no YAML as the plain text that it is, or None where it could be something else.

    It could be if it opens a block or a structure, holds what may be a comment, or begins with a quote or
    a bracket that the end of the value may be meant to close.  Control characters are no text.
    """
    more = [line for line in more if line.strip() and not line.startswith("#")]
    if not value.strip() or value[0] in "|>#" or value.startswith("- ") or " #" in " ".join([value, *more]):
        return None
    if any(not line[0].isspace() or line.lstrip().startswith("- ") for line in more):
        return None
    text = " ".join(part.strip() for part in [value, *more])
    if text.startswith("!!") or _CONTROL.search(text):
        return None
    closer = _CLOSERS.get(text[0])
    if closer is not None and (text.endswith(closer) or closer not in text[1:]):
        return None
    return text
