"""Scenarios: runs to pick, watch and learn from.

A scenario is one file that sets `scenario = Scenario(…)`.  It says what it
shows, in English and Chinese, and `make` gives a fresh agent, workflow or
plan each time it is asked.  After a restart that is how a run gets its code
back, so nothing that matters may live in a closure: it is in a channel, in a
store, or follows from the run.

A lesson is read beside the run: each step points at a node or a kind of event,
and may ask the reader what will run next.  The answer is checked against the
log, so a lesson cannot drift from what it is about.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias, cast, runtime_checkable

from playground.kernel.eventlog import Event
from playground.kernel.graph import Plan
from playground.kernel.ports import ChildSpec, LlmPort, Spawnable
from playground.kernel.run import Run
from playground.kernel.values import JsonObject, JsonValue, freeze
from playground.runtime.llm import ScriptedLlm, ScriptEntry

Text: TypeAlias = Mapping[str, str]
"""One text in each language, by its code: "en", "zh"."""

Runnable: TypeAlias = Plan | Spawnable | ChildSpec
"""What can be run: an agent, a workflow, a plan, or a plan with its own model and tools."""

LANGUAGES = ("en", "zh")

_KEY = re.compile(r"(?=.*\w)[^/]{1,100}")


class Stage(Protocol):
    """What is set up around one run while it is driven."""

    @property
    def runnable(self) -> Runnable:
        """What is run."""
        ...

    def remembers(self) -> JsonObject:
        """What must outlive a pause or a crash; the run's log is told whenever a wave has changed it."""
        ...

    def ends(self) -> None:
        """The run has ended for good; called before the stage is left."""
        ...


@runtime_checkable
class Staged(Protocol):
    """A scenario that needs things around its run: layers to enter, a server to start."""

    def sketch(self) -> Plan:
        """The plan to draw, without setting anything up."""
        ...

    def stage(self, remembered: JsonObject) -> AbstractAsyncContextManager[Stage]:
        """Set up what a run needs, and take it down when the run comes to rest.

        Args:
            remembered: what the stage before told to remember; empty for a new run.
        """
        ...


_PAUSE = 10
"""A pause lasts as long as so many pieces of text."""

CONCEPTS: Mapping[str, Text] = {
    "wave": {"en": "wave", "zh": "波次"},
    "edge": {"en": "conditional edge", "zh": "条件边"},
    "join": {"en": "join", "zh": "汇合"},
    "loop": {"en": "loop", "zh": "循环"},
    "fan-out": {"en": "fan-out", "zh": "扇出"},
    "state": {"en": "state", "zh": "状态"},
    "agent": {"en": "agent", "zh": "智能体"},
    "react": {"en": "ReAct", "zh": "ReAct"},
    "tool": {"en": "tool", "zh": "工具"},
    "approval": {"en": "approval", "zh": "审批"},
    "call": {"en": "call", "zh": "委派"},
    "transfer": {"en": "transfer", "zh": "接力"},
    "parallel": {"en": "side by side", "zh": "并行"},
    "plan-first": {"en": "plan first", "zh": "先规划后执行"},
    "pipeline": {"en": "pipeline", "zh": "流水线"},
    "supervisor": {"en": "supervisor", "zh": "主管"},
    "blackboard": {"en": "blackboard", "zh": "黑板"},
    "mcp": {"en": "MCP", "zh": "MCP"},
    "skill": {"en": "skill", "zh": "技能"},
    "memory": {"en": "memory", "zh": "记忆"},
    "context": {"en": "context", "zh": "上下文"},
    "retry": {"en": "retry", "zh": "重试"},
    "timeout": {"en": "timeout", "zh": "超时"},
    "stream": {"en": "stream", "zh": "流式"},
    "recovery": {"en": "recovery", "zh": "断点续跑"},
    "layers": {"en": "layers", "zh": "分层"},
}
"""The tags that scenarios are found by, with their names; a scenario of one's own may have others."""


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
        real: LlmPort | None = None,
    ) -> ScenarioEnv:
        """The environment with `real`, or else with the model that `OPENAI_API_KEY` and its kin configure."""
        if real is None and os.environ.get("OPENAI_API_KEY"):
            from playground.runtime.openai_lite import OpenAICompatibleLlm

            real = OpenAICompatibleLlm()
        return cls(lang, real, pace, documents, files or Path())

    def text(self, en: str, zh: str) -> str:
        """The one of two texts that is in the reader's language."""
        return zh if self.lang == "zh" else en

    def model(self, *script: ScriptEntry) -> LlmPort:
        """The configured model, or else one that plays `script`."""
        return self.real or ScriptedLlm(script, delay=self.pace)

    async def pause(self) -> None:
        """Let a moment pass, so that a step which takes no time can be seen; none at all where pace is 0."""
        if self.pace:
            await asyncio.sleep(self.pace * _PAUSE)


@dataclass(frozen=True, slots=True)
class Predict:
    """A question to the reader: which nodes start in the next wave?

    Args:
        en, zh: the question.
        nodes: the right answer, keys of nodes or instances.
    """

    en: str
    zh: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a lesson: what to look at.

    It is anchored to the first event that fits all of what is given, of the run itself if there is
    one, else of its child runs.

    Args:
        en, zh: what is to be seen there.
        node: key of a node; a template's key also fits its instances.
        event: kind of an event; with `node` alone, the start of that node.
        predict: a question about the wave after the anchor.
    """

    en: str
    zh: str
    node: str | None = None
    event: str | None = None
    predict: Predict | None = None

    def anchor(self, events: Iterable[Event]) -> Event | None:
        """The event of a run's tree that this step points at."""
        inside: Event | None = None
        for event in events:
            if event.kind != (self.event or "node_started"):
                continue
            if self.node is None or _is_at(event, self.node):
                if event.parent_id is None:
                    return event
                inside = inside or event
        return inside

    def to_json(self) -> JsonObject:
        """The step for a page."""
        asked = self.predict
        return {
            "text": {"en": self.en, "zh": self.zh},
            "node": self.node,
            "event": self.event,
            "predict": {"ask": {"en": asked.en, "zh": asked.zh}, "nodes": list(asked.nodes)}
            if asked
            else None,
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
        make: makes what is run, anew each time, for an environment.
        input_schema: JSON Schema of the input; None for plain text.
        lesson: what to look at, in order.
        requires: extras of the package that it needs, such as "mcp".
        order: where it stands among the scenarios of its folder, the smallest first: what one learns first.
    """

    key: str
    title: Text
    summary: Text
    teaches: Text
    concepts: tuple[str, ...]
    default_input: Mapping[str, str | JsonObject]
    make: Callable[[ScenarioEnv], Runnable | Staged]
    input_schema: JsonObject | None = None
    lesson: tuple[Step, ...] = ()
    requires: tuple[str, ...] = ()
    order: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.order, int):
            raise TypeError(f"scenario {self.key!r} has the order {self.order!r}: use a whole number")
        if not isinstance(self.key, str) or not _KEY.fullmatch(self.key) or not self.key.isprintable():
            raise ValueError(
                f"a scenario's key is part of addresses, which {str(self.key)[:40]!r} cannot be: "
                "use up to 100 characters without a slash, and letters or digits among them"
            )
        freeze(self._said(), f"scenario {self.key!r}")
        for name in ("title", "summary", "teaches", "default_input"):
            missing = [lang for lang in LANGUAGES if lang not in getattr(self, name)]
            if missing:
                raise ValueError(f"scenario {self.key!r} has no {name} in {', '.join(missing)}: add it")

    def _said(self) -> JsonObject:
        """What a scenario says of itself, which pages and programs are sent."""
        texts = (self.title, self.summary, self.teaches, self.default_input)
        return {
            "texts": [cast("JsonValue", dict(text)) for text in texts],
            "concepts": list(self.concepts),
            "input_schema": self.input_schema,
            "lesson": [cast("JsonValue", step.to_json()) for step in self.lesson],
        }

    def build(self, lang: str, env: ScenarioEnv) -> Runnable | Staged:
        """What is run, made anew, for a reader of `lang`."""
        return self.make(replace(env, lang=lang))


def start_run(
    spec: ChildSpec, task: str, *, run_id: str | None = None, meta: Mapping[str, object] | None = None
) -> Run:
    """A run of what a scenario built, ready to be driven; `playground.kernel.child_spec` gives the spec.

    Args:
        task: the input as text; a dict as its JSON.
        run_id: id of the run.
        meta: JSON that the run's first event keeps.
    """
    run = Run.start(spec.plan, run_id=run_id, task=task, meta=meta)
    if spec.shared is not None:
        run.shared.update(cast("JsonObject", spec.shared(task)))
    return run


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
