"""Events of a run that fit a wish: of a kind, of a node, with words in them, wherever in the log they lie."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from playground.web.i18n import Language, catalogue
from playground.web.viewmodels import EventRow

MOST = 100
"""How many events are shown at a time, the newest ones first to come."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is looked for; what is empty does not matter.

    Args:
        kind: the kind of event.
        node: the key of a node, in whatever run; it stands for its instances as well.
        words: all of them must be in the event, in any order and case.
    """

    kind: str = ""
    node: str = ""
    words: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Wish:
        """The wish of a query."""
        kind, node, words = (asked.get(name, "")[:200].strip() for name in ("kind", "node", "q"))
        return cls(kind, node, words)

    def __bool__(self) -> bool:
        return bool(self.kind or self.node or self.words)


@dataclass(frozen=True, slots=True)
class Found:
    """The rows that fit, at most `MOST` of them, in order.

    Args:
        count: how many fit in all, of `total` rows.
        earlier: how many of them lie before these.
    """

    rows: tuple[EventRow, ...] = ()
    count: int = 0
    earlier: int = 0
    total: int = 0


def find(rows: Sequence[EventRow], wish: Wish, lang: Language, before: int = 0) -> Found:
    """The last rows that fit, or the last before a position."""
    fit = [row for row in rows if _fits(row, wish, lang)]
    there = [row for row in fit if row.id < before] if before else fit
    return Found(tuple(there[-MOST:]), len(fit), max(0, len(there) - MOST), len(rows))


def _fits(row: EventRow, wish: Wish, lang: Language) -> bool:
    if wish.kind and row.kind != wish.kind:
        return False
    if wish.node and row.node.partition("#")[0] != wish.node:
        return False
    if not wish.words:
        return True
    text = _text(row, lang)
    return all(word in text for word in wish.words.casefold().split())


def _text(row: EventRow, lang: Language) -> str:
    """What can be read of an event in a language, in lower case."""
    said = catalogue(lang).get(f"event.{row.kind}", "")
    data = json.dumps(row.data, ensure_ascii=False)
    return f"{row.kind} {said} {row.owner} {data}".casefold()
