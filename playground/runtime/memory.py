"""Long-term memory: what is worth knowing in the next conversation too.

Memory is not a longer history.  It is a shelf of small facts that outlive the
run, and for each question the few that matter are fetched and shown to the
model.  There is one kind of record; *what* a fact is about is said by tags and
*how much* it matters by a number, so no second store for "preferences" or
"entities" is ever needed.

Two memories share everything but the place where facts are kept:
`InMemoryMemory` lives with the process, `StoredMemory` in a store, one shelf a
user.  How a fact is found is a strategy: `LexicalRecall` by words, the default,
or `EmbeddingRecall` by meaning, with an embedding function of yours.

**Ranking.**  A strategy says how well a record fits the question.  The memory
multiplies that by the record's importance and by its freshness, which falls
from 1 to 0.8 with a half-life of 30 days: age decides between facts that fit
about equally, and never hides the only one.  Facts that fit less than a fifth
as well as the best one are left out.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from math import exp2, inf, isfinite, sqrt
from operator import mul
from typing import Protocol, TypeAlias
from weakref import WeakKeyDictionary

from playground.kernel.values import JsonObject, JsonValue, freeze
from playground.runtime.lexical import WordIndex

FORMAT = 1
"""Version of a stored record; each record carries it."""

MAX_CONTENT = 4_000
"""How many characters one memory may have: it is a fact, not a document."""

HALF_LIFE = 30 * 86_400.0
"""Seconds after which a memory has lost half of what its freshness counts."""

_STALE = 0.8
"""What the oldest memory counts, where a fresh one counts 1."""
_FADING = 1 - _STALE

_WORST_SHARE_OF_BEST = 0.2
_JUST_BELOW = 1 - 1e-9
"""Keeps what rounding would tell apart."""

_MOST_RECORDS = 100
_BATCH = 100
"""How many texts an embedding function is given at once."""

_BREATH = 200
"""How many records are indexed before others get a turn."""

_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

_log = logging.getLogger(__name__)


class MemoryFormatError(RuntimeError):
    """A stored memory that this version cannot read; the message names the record and the way out."""


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One remembered fact.

    Attributes:
        content: the fact, in a sentence.
        tags: what it is about; they are searched as the content is, and can be filtered by.
        importance: a factor on its rank, 1.0 for the ordinary.
        created: when it was last remembered, in seconds of wall time.
        user: whose memory it is.
        record_id: derived from the content, so the same fact is one record.
    """

    content: str
    tags: tuple[str, ...] = ()
    importance: float = 1.0
    created: float = 0.0
    user: str = ""
    record_id: str = ""

    @property
    def text(self) -> str:
        """What it is found by."""
        return " ".join((self.content, *self.tags))

    def to_json(self) -> JsonObject:
        """The record as it is stored."""
        return {
            "format": FORMAT,
            "content": self.content,
            "tags": list(self.tags),
            "importance": self.importance,
            "created": self.created,
        }

    @classmethod
    def from_json(cls, record_id: str, value: JsonValue, user: str) -> MemoryRecord:
        """The record that was stored as `value`.

        Raises:
            MemoryFormatError: another version wrote it, or it is damaged.
        """
        where = f"memory {record_id!r} of user {user!r}"
        if not isinstance(value, dict):
            raise MemoryFormatError(f"{where} is not a memory record: delete it, or restore it from a backup")
        if value.get("format") != FORMAT:
            raise MemoryFormatError(
                f"{where} has format {value.get('format')!r} and this version reads format {FORMAT}: "
                "use the version that wrote it, or delete the record"
            )
        content, tags = value.get("content"), value.get("tags")
        importance, created = value.get("importance"), value.get("created")
        if (
            not isinstance(content, str)
            or not isinstance(tags, list)
            or not isinstance(importance, int | float)
            or not isinstance(created, int | float)
        ):
            raise MemoryFormatError(f"{where} is damaged: delete it, or restore it from a backup")
        return cls(content, tuple(map(str, tags)), float(importance), float(created), user, record_id)


class Memory(Protocol):
    """What an agent needs of a memory."""

    async def remember(
        self, content: str, *, tags: Sequence[str] | None = None, importance: float = 1.0
    ) -> MemoryRecord:
        """Keep a fact."""
        ...

    async def recall(self, query: str, *, k: int = 3) -> str:
        """The facts that matter for `query` as lines of text, the best first; empty when there are none."""
        ...


class RecallStrategy(Protocol):
    """How records are found: an index over one shelf that says how well each fits a question."""

    def add(self, record: MemoryRecord) -> None:
        """Index `record`, in place of the one with its id."""
        ...

    def remove(self, record_id: str) -> None:
        """Forget a record, if it is known."""
        ...

    async def relevance(self, query: str) -> Mapping[str, float]:
        """How well records fit `query`, by id: larger is better, and what does not fit is absent."""
        ...


class LexicalRecall:
    """Finds records by the words they share with the question, ranked by BM25."""

    def __init__(self) -> None:
        self._index = WordIndex()

    def add(self, record: MemoryRecord) -> None:
        self._index.add(record.record_id, record.text)

    def remove(self, record_id: str) -> None:
        self._index.remove(record_id)

    async def relevance(self, query: str) -> Mapping[str, float]:
        return self._index.scores(query)


Embed: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
"""Gives one vector for each text, in order, all of one length."""


class EmbeddingRecall:
    """Finds records by meaning: the cosine between the vectors of record and question.

    Records are embedded together with the next question, a hundred texts a call.  When the
    embedding function fails, records are found by their words instead and the failure is
    logged: a memory that answers worse is better than a run that stops.

    Args:
        embed: makes vectors of texts.
        threshold: the least cosine that counts as fitting, between 0 and 1.
    """

    def __init__(self, embed: Embed, *, threshold: float = 0.2) -> None:
        self._embed = embed
        self._threshold = threshold
        self._words = LexicalRecall()
        self._vectors: dict[str, tuple[float, ...]] = {}
        self._waiting: dict[str, str] = {}

    def add(self, record: MemoryRecord) -> None:
        self.remove(record.record_id)
        self._words.add(record)
        self._waiting[record.record_id] = record.text

    def remove(self, record_id: str) -> None:
        self._words.remove(record_id)
        self._vectors.pop(record_id, None)
        self._waiting.pop(record_id, None)

    async def relevance(self, query: str) -> Mapping[str, float]:
        try:
            asked = await self._embedded(query)
        except Exception as error:  # noqa: BLE001 - whatever a foreign function raises, words still find
            _log.warning("embedding failed (%s: %s): recalling by words", type(error).__name__, error)
            return await self._words.relevance(query)
        cosines = {key: sum(map(mul, asked, vector)) for key, vector in self._vectors.items()}
        return {key: cosine for key, cosine in cosines.items() if cosine >= self._threshold}

    async def _embedded(self, query: str) -> tuple[float, ...]:
        """The question's vector; records that wait for theirs get them on the way."""
        waiting = list(self._waiting.items())
        texts = [*(text for _, text in waiting), query]
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await self._embed(texts[start : start + _BATCH])
        lengths = {len(vector) for vector in (*vectors, *islice(self._vectors.values(), 1))}
        if len(vectors) != len(texts) or len(lengths) != 1:
            raise ValueError(
                f"{len(vectors)} vectors for {len(texts)} texts, of the lengths {sorted(lengths)}"
            )
        for (key, text), vector in zip(waiting, vectors, strict=False):
            if self._waiting.get(key) == text:
                self._vectors[key] = _unit(vector)
                del self._waiting[key]
        return _unit(vectors[-1])


def _unit(vector: Sequence[float]) -> tuple[float, ...]:
    length = sqrt(sum(map(mul, vector, vector)))
    return tuple(value / length for value in vector) if length else tuple(vector)


class _Shelf:
    """The records of one user, and the index that finds them."""

    def __init__(self, recall_by: Callable[[], RecallStrategy]) -> None:
        self.recall_by = recall_by
        self.loaded = False
        self._records: dict[str, MemoryRecord] = {}
        self._strategy = recall_by()
        self._heaviest = 1.0
        """An importance that no record is above."""

    def put(self, record: MemoryRecord) -> None:
        self._strategy.add(record)
        self._records[record.record_id] = record
        self._heaviest = max(self._heaviest, record.importance)

    def drop(self, record_id: str) -> None:
        self._strategy.remove(record_id)
        self._records.pop(record_id, None)

    def get(self, record_id: str) -> MemoryRecord | None:
        return self._records.get(record_id)

    def all(self) -> list[MemoryRecord]:
        return sorted(self._records.values(), key=lambda record: record.created)

    async def best(self, query: str, k: int, tags: frozenset[str], now: float) -> list[MemoryRecord]:
        fits = await self._strategy.relevance(query)
        records = self._records
        enough = _WORST_SHARE_OF_BEST * max(fits.values(), default=0.0)
        if tags:
            fits = {
                key: fit for key, fit in fits.items() if key in records and tags.issubset(records[key].tags)
            }
        if not fits or k < 1:
            return []

        def ranks(low: float, high: float) -> dict[str, float]:
            return {
                key: fit * record.importance * (_STALE + _FADING * exp2(age / HALF_LIFE))
                for key, fit in fits.items()
                if low <= fit < high and (record := records.get(key)) is not None
                for age in (min(0.0, record.created - now),)
            }

        # No rank is above its fit times the heaviest: those that fit best tell who else can be among the k.
        good = max(enough, _last_of_best(fits, k))
        ranked = ranks(good, inf)
        least = _last_of_best(ranked, k)
        others = ranks(max(enough, least / self._heaviest * _JUST_BELOW), good)
        if others:
            ranked |= others
            least = _last_of_best(ranked, k)
        ranked = {key: rank for key, rank in ranked.items() if rank >= least}
        first = sorted(ranked, key=lambda key: (ranked[key], records[key].created, key), reverse=True)
        return [records[key] for key in first[:k]]


def _last_of_best(values: Mapping[str, float], k: int) -> float:
    """The smallest of the `k` largest values; 0 where there are fewer."""
    return sorted(values.values())[-k] if len(values) >= k else 0.0


class InMemoryMemory:
    """A memory that lives as long as the process.

    Args:
        user: whose memory it is.
        recall_by: makes the strategy that finds records.
        clock: gives the wall time in seconds.
    """

    def __init__(
        self,
        user: str = "",
        *,
        recall_by: Callable[[], RecallStrategy] = LexicalRecall,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.user = user
        self._clock = clock
        self._shelf = _Shelf(recall_by)

    async def remember(
        self, content: str, *, tags: Sequence[str] | None = None, importance: float = 1.0
    ) -> MemoryRecord:
        """Keep a fact; a known one becomes fresh again, with the tags of both and the higher importance.

        Args:
            content: the fact, up to `MAX_CONTENT` characters.
            tags: what it is about.
            importance: a factor on its rank, 0 or more.

        Raises:
            ValueError: the content is empty, too long or not Unicode, or the importance is no such number.
        """
        shelf = await self._open()
        made = _checked(content, tags or (), importance, self.user, self._clock())
        known = shelf.get(made.record_id)
        record = made if known is None else _merged(known, made)
        await self._keep(record)
        return record

    async def recall(self, query: str, *, k: int = 3, tags: Sequence[str] = ()) -> str:
        """The best facts for `query`, one line each with a leading dash; empty when nothing fits."""
        found = await self.search(query, k=k, tags=tags)
        return "\n".join(f"- {' '.join(record.content.split())}" for record in found)

    async def search(self, query: str, *, k: int = 3, tags: Sequence[str] = ()) -> list[MemoryRecord]:
        """The at most `k` records that fit `query` best, the best first.

        Args:
            query: any text, such as the user's message.
            k: how many records at most, up to 100.
            tags: only records that have all of these.
        """
        shelf = await self._open()
        return await shelf.best(query, max(0, min(k, _MOST_RECORDS)), frozenset(tags), self._clock())

    async def forget(self, record_id: str) -> None:
        """Drop a record for good; an unknown one is no error."""
        await self._open()
        await self._drop(record_id)

    async def records(self) -> list[MemoryRecord]:
        """All records, the oldest first."""
        return (await self._open()).all()

    async def _open(self) -> _Shelf:
        return self._shelf

    async def _keep(self, record: MemoryRecord) -> None:
        self._shelf.put(record)

    async def _drop(self, record_id: str) -> None:
        self._shelf.drop(record_id)


def _checked(content: str, tags: Iterable[str], importance: float, user: str, now: float) -> MemoryRecord:
    if not isinstance(content, str) or not content.strip():
        raise ValueError("a memory needs a content: give the fact as a sentence")
    if len(content) > MAX_CONTENT:
        raise ValueError(
            f"a memory holds at most {MAX_CONTENT:,} characters and this one has {len(content):,}: "
            "keep the text in a file and remember where it is"
        )
    if type(importance) not in (int, float) or not isfinite(importance) or importance < 0:
        raise ValueError(f"importance {importance!r} is not a number from 0 up: use 1.0 for an ordinary fact")
    if isinstance(tags, str):
        raise ValueError(f"tags {tags!r} is one text: give a list of tags")
    content = content.strip()
    freeze([content, *tags], "memory")
    digest = blake2b(content.encode(), digest_size=8).hexdigest()
    return MemoryRecord(content, tuple(dict.fromkeys(tags)), float(importance), now, user, digest)


def _merged(known: MemoryRecord, again: MemoryRecord) -> MemoryRecord:
    return replace(
        again,
        tags=tuple(dict.fromkeys(known.tags + again.tags)),
        importance=max(known.importance, again.importance),
    )


class Documents(Protocol):
    """Where a `StoredMemory` keeps its records: small JSON values by space and key."""

    async def put(self, space: str, key: str, value: JsonValue) -> None:
        """Keep `value`, in place of what was there."""
        ...

    async def all(self, space: str) -> Mapping[str, JsonValue]:
        """Everything in `space`, by key."""
        ...

    async def delete(self, space: str, key: str) -> None:
        """Drop a value, if it is there."""
        ...


class _Desk:
    """The shelves of one user in one store, one a strategy, and the lock under which they change."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.shelves: list[_Shelf] = []

    def shelf(self, recall_by: Callable[[], RecallStrategy]) -> _Shelf:
        for shelf in self.shelves:
            if shelf.recall_by == recall_by:
                return shelf
        self.shelves.append(_Shelf(recall_by))
        return self.shelves[-1]


_desks: WeakKeyDictionary[Documents, dict[str, _Desk]] = WeakKeyDictionary()
"""The desks of this process: runs that share a store see each other's facts at once, and ten thousand
facts are read and indexed once a process, not once a run.  It is a cache: the store has the truth."""


class StoredMemory(InMemoryMemory):
    """A memory of one user that outlives the process.

    Records are read with the first use.  What another *process* adds later is seen after a restart.

    Args:
        documents: where the records are kept.
        user: whose memory it is; others' records are out of reach.
        recall_by: makes the strategy that finds records.
        clock: gives the wall time in seconds.

    Raises:
        ValueError: the user's name is empty or too long.
        MemoryFormatError: with the first use, when a stored record cannot be read.
    """

    def __init__(
        self,
        documents: Documents,
        user: str,
        *,
        recall_by: Callable[[], RecallStrategy] = LexicalRecall,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(user, recall_by=recall_by, clock=clock)
        self._documents = documents
        self._space = _space_of(user)
        self._desk = _desks.setdefault(documents, {}).setdefault(user, _Desk())
        self._shelf = self._desk.shelf(recall_by)

    async def _open(self) -> _Shelf:
        if not self._shelf.loaded:
            async with self._desk.lock:
                await self._load()
        return self._shelf

    async def _load(self) -> None:
        shelf = self._shelf
        if shelf.loaded:
            return
        stored = await self._documents.all(self._space)
        records = [MemoryRecord.from_json(key, value, self.user) for key, value in stored.items()]
        for number, record in enumerate(records):
            shelf.put(record)
            if number % _BREATH == _BREATH - 1:
                await asyncio.sleep(0)
        shelf.loaded = True

    async def _keep(self, record: MemoryRecord) -> None:
        async with self._desk.lock:
            await self._documents.put(self._space, record.record_id, record.to_json())
            for shelf in self._desk.shelves:
                shelf.put(record)

    async def _drop(self, record_id: str) -> None:
        async with self._desk.lock:
            await self._documents.delete(self._space, record_id)
            for shelf in self._desk.shelves:
                shelf.drop(record_id)


def _space_of(user: str) -> str:
    """The name of a user's space: readable where it is safe as a file name anywhere, else a digest."""
    if not isinstance(user, str) or not user.strip() or len(user) > 100:
        raise ValueError(f"user {str(user)[:40]!r} cannot have a memory: a name has 1 to 100 characters")
    if _PLAIN_NAME.fullmatch(user):
        return f"memory-{user}"
    return f"memory--{blake2b(user.encode(), digest_size=12).hexdigest()}"
