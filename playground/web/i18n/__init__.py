"""The interface in English and Chinese: one catalogue file a language, one function that reads it.

A message is plain text with `{names}` to fill and backquotes around code.
It is escaped before anything is put in, and what is put in is escaped too, so
no scenario, model or tool can speak HTML through a message.  A message that
depends on a number is a pair `{"one": …, "other": …}`, chosen by `n`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from markupsafe import Markup, escape

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
NAMES: Mapping[Language, str] = {"en": "English", "zh": "中文"}

Message: TypeAlias = str | dict[str, str]

_GAP = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"`([^`]*)`")


class MissingMessage(KeyError):
    """A key that the catalogue does not have, or a gap that nobody fills: it names both."""


@cache
def catalogue(language: Language) -> Mapping[str, Message]:
    """All messages of a language."""
    found: dict[str, Message] = json.loads(
        (Path(__file__).parent / f"{language}.json").read_text(encoding="utf-8")
    )
    return found


@cache
def _pieces(message: str) -> tuple[str, ...]:
    """A message as HTML, cut at its gaps: a text, the name of a gap, a text, and so on."""
    return tuple(_GAP.split(_CODE.sub(r"<code>\1</code>", str(escape(message)))))


@cache
def _plain(language: Language, key: str) -> Markup:
    """A message without gaps, of which a page has a hundred."""
    return Translator(language)._filled(key, {})


class Translator:
    """The messages of one language, called by key: `t("run.wave", n=3)`."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._messages = catalogue(language)

    def __call__(self, key: str, **values: object) -> Markup:
        """The message, ready for a page.

        Raises:
            MissingMessage: no such key, or a gap without its value.
        """
        if not values:
            return _plain(self.language, key)
        return self._filled(key, values)

    def _filled(self, key: str, values: Mapping[str, object]) -> Markup:
        message = self._messages.get(key)
        if message is None:
            raise MissingMessage(f"no message {key!r} in {self.language}.json: add it to every language")
        if isinstance(message, dict):
            message = message["one" if values.get("n") == 1 and "one" in message else "other"]
        pieces = _pieces(message)
        try:
            filled = [str(escape(values[piece])) if gap % 2 else piece for gap, piece in enumerate(pieces)]
        except KeyError as error:
            name = error.args[0]
            raise MissingMessage(
                f"message {key!r} has a gap {{{name}}} that nobody fills: pass {name}="
            ) from None
        return Markup("".join(filled))  # noqa: S704 - texts and values are escaped

    def list(self, names: Iterable[str]) -> str:
        """Names one after the other, as the language separates them."""
        return ("、" if self.language == "zh" else ", ").join(names)

    def words(self, group: str) -> str:
        """The plain messages of a group as JSON, for a script that may set texts: `words("state")`."""
        start = f"{group}."
        found = {k[len(start) :]: m for k, m in self._messages.items() if k.startswith(start)}
        return json.dumps(found, ensure_ascii=False)

    def __contains__(self, key: str) -> bool:
        return key in self._messages


def choose(asked: str | None, accepted: str = "") -> Language:
    """The language to speak: the one asked for, else the browser's first that there is, else English.

    Args:
        asked: from the address or a cookie.
        accepted: the header `Accept-Language`.
    """
    for wish in (asked or "", *(part.partition(";")[0] for part in accepted.split(","))):
        for language in LANGUAGES:
            if wish.strip().lower().partition("-")[0] == language:
                return language
    return "en"
