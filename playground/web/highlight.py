"""Python source with its keywords, names, texts and comments told apart, for a reader at some distance."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from functools import lru_cache

from markupsafe import Markup, escape

_Span = tuple[int, int, str]
"""Where a token begins and ends in its line, and its class."""


def highlighted(lines: Sequence[str]) -> list[Markup]:
    """The lines of a file, or of a part of one, with a `<span>` around each token that stands out.

    What cannot be read as Python, such as a part that ends inside a text, is shown plain from there on.
    """
    return list(_highlighted(tuple(lines)))


@lru_cache(maxsize=64)
def _highlighted(lines: tuple[str, ...]) -> tuple[Markup, ...]:
    """The same, kept: the page of each run shows its scenario's file."""
    spans: dict[int, list[_Span]] = {}
    for row, span in _tokens(lines):
        spans.setdefault(row, []).append(span)
    return tuple(_line(text, spans.get(row, ())) for row, text in enumerate(lines, 1))


def _tokens(lines: Sequence[str]) -> Iterator[tuple[int, _Span]]:
    """The tokens that stand out, by line; one over several lines comes as one for each."""
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            look = _look(token, before)
            before = token.string if token.type == tokenize.NAME else before
            if look:
                (first, start), (last, end) = token.start, token.end
                for row in range(first, last + 1):
                    begins = start if row == first else 0
                    ends = end if row == last else len(lines[row - 1])
                    yield row, (begins, ends, look)
    except (tokenize.TokenError, SyntaxError):
        return


def _look(token: tokenize.TokenInfo, before: str) -> str:
    if token.type == tokenize.NAME:
        if keyword.iskeyword(token.string):
            return "code-word"
        return "code-name" if before in ("def", "class") else ""
    if token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith("FSTRING"):
        return "code-text"
    return {tokenize.COMMENT: "code-note", tokenize.NUMBER: "code-number"}.get(token.type, "")


def _line(text: str, spans: Sequence[_Span]) -> Markup:
    parts, at = [], 0
    for start, end, look in spans:
        parts += [escape(text[at:start]), f'<span class="{look}">', escape(text[start:end]), "</span>"]
        at = end
    return Markup("".join([*parts, escape(text[at:])]))  # noqa: S704 - every part is escaped
