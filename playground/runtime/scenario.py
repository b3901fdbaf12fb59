"""Scenarios: runs to pick, watch and learn from.

A scenario is one file that sets `scenario = Scenario(…)`.  It says what it
shows, in English and Chinese, and `build` makes a fresh agent, workflow or
plan each time it is asked.  After a restart that is how a run gets its code
back, so nothing that matters may live in a closure: it is in a channel, in a
store, or follows from the run.

A lesson is read beside the run: each step points at a node or a kind of event,
and may ask the reader what will run next.  The answer is checked against the
log, so a lesson cannot drift from what it is about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from playground.kernel.eventlog import Event
from playground.kernel.graph import Plan
from playground.kernel.ports import ChildSpec, LlmPort, Spawnable
from playground.kernel.values import JsonObject, JsonValue
from playground.runtime.llm import ScriptedLlm, ScriptEntry

Text: TypeAlias = Mapping[str, str]
"""One text in each language, by its code: "en", "zh"."""

Runnable: TypeAlias = Plan | Spawnable | ChildSpec
"""What can be run: an agent, a workflow, a plan, or a plan with its own model and tools."""

LANGUAGES = ("en", "zh")


class Documents(Protocol):
    """Small JSON records that outlive runs, by space and key."""

    async def put(self, space: str, key: str, value: JsonValue) -> None:
        """Keep `value`, in place of what was there."""
        ...

    async def get(self, space: str, key: str) -> JsonValue:
        """What is kept under `key`, or None."""
        ...

    async def all(self, space: str) -> Mapping[str, JsonValue]:
        """Everything in `space`, by key."""
        ...

    async def delete(self, space: str, key: str) -> None:
        """Drop a value, if it is there."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioEnv:
    """What a scenario finds around it when it is built.

    Args:
        lang: language of the reader, "en" or "zh".
        real: a configured model, which then plays every scripted part.
        pace: seconds between two pieces of a scripted text, so that a live run can be watched.
        documents: where what outlives a run is kept; None if nothing is.
        files: folder of the scenario's own files, such as skills.
    """

    lang: str = "en"
    real: LlmPort | None = None
    pace: float = 0.0
    documents: Documents | None = None
    files: Path = field(default_factory=Path)

    @classmethod
    def from_environ(
        cls,
        lang: str = "en",
        *,
        pace: float = 0.0,
        documents: Documents | None = None,
        files: Path | None = None,
    ) -> ScenarioEnv:
        """The environment with the model that `OPENAI_API_KEY` and its kin configure, if they do."""
        real: LlmPort | None = None
        if os.environ.get("OPENAI_API_KEY"):
            from playground.runtime.openai_lite import OpenAICompatibleLlm

            real = OpenAICompatibleLlm()
        return cls(lang, real, pace, documents, files or Path())

    def model(self, *script: ScriptEntry) -> LlmPort:
        """The configured model, or else one that plays `script`."""
        return self.real or ScriptedLlm(script, delay=self.pace)


@dataclass(frozen=True, slots=True)
class Predict:
    """A question to the reader: which nodes start in the next wave?

    Args:
        ask: the question.
        nodes: the right answer, keys of nodes or instances.
    """

    ask: Text
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a lesson: what to look at.

    It is anchored to the first event that fits all of what is given.

    Args:
        text: what is to be seen there.
        node: key of a node; a template's key also fits its instances.
        event: kind of an event; with `node` alone, the start of that node.
        predict: a question about the wave after the anchor.
    """

    text: Text
    node: str | None = None
    event: str | None = None
    predict: Predict | None = None

    def anchor(self, events: Iterable[Event]) -> Event | None:
        """The event of a run's tree that this step points at."""
        kind = self.event or "node_started"
        for event in events:
            if event.kind == kind and (self.node is None or _is_at(event, self.node)):
                return event
        return None

    def to_json(self) -> JsonObject:
        """The step for a page."""
        asked = self.predict
        return {
            "text": dict(self.text),
            "node": self.node,
            "event": self.event,
            "predict": {"ask": dict(asked.ask), "nodes": list(asked.nodes)} if asked else None,
        }


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run to pick.

    Args:
        key: its name in URLs and on the command line.
        title, summary, teaches: texts, each in both languages.
        concepts: tags to search by.
        default_input: what it is given unless the user says otherwise, by language: text, or
            a dict that fits `input_schema`.
        build: makes what is run, anew each time, for a language and an environment.
        input_schema: JSON Schema of the input; None for plain text.
        lesson: what to look at, in order.
        requires: extras of the package that it needs, such as "mcp".
    """

    key: str
    title: Text
    summary: Text
    teaches: Text
    concepts: tuple[str, ...]
    default_input: Mapping[str, str | JsonObject]
    build: Callable[[str, ScenarioEnv], Runnable]
    input_schema: JsonObject | None = None
    lesson: tuple[Step, ...] = ()
    requires: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("title", "summary", "teaches", "default_input"):
            missing = [lang for lang in LANGUAGES if lang not in getattr(self, name)]
            if missing:
                raise ValueError(f"scenario {self.key!r} has no {name} in {', '.join(missing)}: add it")


def next_wave(events: Sequence[Event], anchor: Event) -> tuple[str, ...]:
    """The nodes that started in the wave after an event, in the run of that event, in plan order.

    This is the right answer to a `Predict` anchored there.
    """
    wave: JsonValue = None
    found: list[str] = []
    for event in events:
        if event.run_id != anchor.run_id or event.kind not in ("node_started", "node_queued"):
            continue
        number, key = event.data["wave"], cast("str", event.data["node"])
        if event.seq > anchor.seq and number != anchor.data.get("wave") and wave in (None, number):
            wave = number
            if key not in found:
                found.append(key)
    return tuple(found)


def _is_at(event: Event, node: str) -> bool:
    key = str(event.data.get("node", ""))
    return node in (key, key.partition("#")[0])
