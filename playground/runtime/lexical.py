"""Finding text by its words, in Chinese and English alike.

Chinese is written without spaces, so "the words of a text" has no easy answer.
Pairs of neighbouring characters are the usual one: they need no dictionary,
and a pair such as 过敏 is nearly as telling as a word.  English words are
compared without case and plural.

`WordIndex` ranks by Okapi BM25 (Robertson and others, 1994): a rare word says
more than a common one, and a word in a short text more than in a long one.
Memories and skills are found with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import pairwise
from math import log

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PIECE = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]").match

_LONGEST_WORD = 64

_FILLERS = frozenset(
    """
    a an and any are as at be but by can could did do does for from had has have he her him his how i if
    in is it its let me my no not of on or our please s she should so t than that the their them then
    there these they this those to us was we were what when where which who why will with would you your
    """.split()  # noqa: SIM905 - eighty quoted words are harder to read
)
_FILLER_CHARACTERS = frozenset(
    "的了是我你他她它们这那在有和就也都很吗呢吧啊哦嗯呀个么什给把被让要会能可请帮对与及或为因所以但而且还又再从到着过去来下上里"
)

_K1, _B = 1.2, 0.75
_MOST_TERMS = 32
_MOST_CHARACTERS = 10_000
"""How much of a question is read: it may be a message with a whole file in it."""

_COMMON_FROM = 64
"""A term known from fewer texts than this is never too common to find one by itself."""

_MOST_LOOKUPS = 10_000
"""How often a question looks at a text: common terms that come after so many looks say next to nothing."""


def pieces(text: str) -> list[str]:
    """The runs of `text`: words without case, width and plural, and stretches of CJK characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return [_singular(piece) for piece in _PIECE.findall(text.casefold())]


def _singular(word: str) -> str:
    if not word.isascii():
        return word
    if len(word) > 3 and word[-1] == "s" and not word.endswith(("ss", "us", "is")):
        if word.endswith("ies"):
            word = word[:-3] + "y"
        elif word.endswith(("xes", "ches", "shes", "sses")) or (word.endswith("oes") and len(word) > 5):
            word = word[:-2]
        else:
            word = word[:-1]
    return word[:_LONGEST_WORD]


def _pairs(run: str) -> list[str]:
    """The neighbouring characters of a CJK run, without pairs such as 我的 that say nothing."""
    return [a + b for a, b in pairwise(run) if not (a in _FILLER_CHARACTERS and b in _FILLER_CHARACTERS)]


def _characters(run: str) -> list[str]:
    return [character for character in run if character not in _FILLER_CHARACTERS]


def terms(text: str) -> list[str]:
    """What `text` can be found by: its telling words, CJK pairs, and single CJK characters."""
    found: list[str] = []
    for piece in pieces(text):
        if _IS_CJK(piece):
            found += _pairs(piece)
            found += _characters(piece)
        elif piece not in _FILLERS:
            found.append(piece)
    return found


class WordIndex:
    """Texts by key, found by BM25; adding and removing cost what one text costs."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[int, int]] = {}
        self._numbers: dict[str, int] = {}
        self._keys: list[str] = []
        self._lengths: list[int] = []
        self._terms: list[tuple[str, ...]] = []
        self._free: list[int] = []
        self._total = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, key: str, text: str) -> None:
        """Make `text` findable under `key`, in place of what was there."""
        self.remove(key)
        counts = Counter(terms(text))
        number = self._numbered(key, tuple(counts), counts.total())
        for term, count in counts.items():
            holders = self._postings.get(term)
            if holders is None:
                holders = self._postings[term] = {}
            holders[number] = count

    def _numbered(self, key: str, found_by: tuple[str, ...], length: int) -> int:
        """A number for a new text: postings hold numbers, which are small and quick to look up."""
        if self._free:
            number = self._free.pop()
            self._keys[number], self._terms[number], self._lengths[number] = key, found_by, length
        else:
            number = len(self._keys)
            self._keys.append(key)
            self._terms.append(found_by)
            self._lengths.append(length)
        self._numbers[key] = number
        self._total += length
        return number

    def remove(self, key: str) -> None:
        """Forget `key`, if it is known."""
        number = self._numbers.pop(key, None)
        if number is None:
            return
        for term in self._terms[number]:
            holders = self._postings[term]
            del holders[number]
            if not holders:
                del self._postings[term]
        self._total -= self._lengths[number]
        self._free.append(number)

    def scores(self, query: str, *, single_characters: bool = True) -> dict[str, float]:
        """The BM25 score of each text that shares a telling term with `query`.

        Args:
            query: any text; of its first 10,000 characters the 32 rarest known terms count.
            single_characters: let a CJK run of which no pair is known be found by its
                characters, so that 茶叶 finds 喝茶; finds more, and more that is wrong.

        Returns:
            Scores above 0 by key, in no order.  A term that many texts hold raises the score of
            a text that a rarer term has found, but finds none by itself.
        """
        known = sorted(self._known_terms(query, single_characters), key=self._rarity)[:_MOST_TERMS]
        found: dict[int, float] = {}
        too_common = max(_COMMON_FROM, len(self) // 8)
        looks = 0
        for term in known:
            holders = self._postings[term]
            only_raise = bool(found) and len(holders) > too_common
            looks += min(len(found), len(holders)) if only_raise else len(holders)
            if found and looks > _MOST_LOOKUPS:
                break
            self._score(holders, found, only_raise=only_raise)
        keys = self._keys
        return {keys[number]: score for number, score in found.items()}

    def _known_terms(self, query: str, single_characters: bool) -> set[str]:
        known: set[str] = set()
        for piece in pieces(query[:_MOST_CHARACTERS]):
            if not _IS_CJK(piece):
                wanted = [] if piece in _FILLERS else [piece]
            else:
                wanted = [pair for pair in _pairs(piece) if pair in self._postings]
                if not wanted and single_characters:
                    wanted = _characters(piece)
            known.update(term for term in wanted if term in self._postings)
        return known

    def _rarity(self, term: str) -> tuple[int, str]:
        """What terms are sorted by, the rarest first and always in the same order."""
        return len(self._postings[term]), term

    def _score(self, holders: dict[int, int], found: dict[int, float], *, only_raise: bool) -> None:
        """Add what a term is worth to the texts that hold it, or only to those of them in `found`."""
        lengths = self._lengths
        weight = (_K1 + 1) * log(1 + (len(self) - len(holders) + 0.5) / (len(holders) + 0.5))
        base, slope = _K1 * (1 - _B), _K1 * _B * len(self) / self._total
        if not found:  # the usual question has one common word at most, and may have only that
            found.update(
                {n: weight * count / (count + base + slope * lengths[n]) for n, count in holders.items()}
            )
            return
        for number in found.keys() & holders.keys() if only_raise else holders:
            count = holders[number]
            worth = weight * count / (count + base + slope * lengths[number])
            found[number] = found.get(number, 0.0) + worth
