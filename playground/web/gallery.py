"""Every page and every partial in every state, from the real templates with sample data.

What is designed here is what is shown: the gallery has no markup of its own
but headings.  The samples are told as logs, by the same builders that a live
page uses, so a picture of the gallery is a picture of the product.

    python -m playground.web.gallery DIR      # the gallery and all pages, as files
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from playground.kernel.eventlog import Event
from playground.kernel.types import NodeStatus, RunState
from playground.kernel.values import JsonObject, JsonValue, frozen_object
from playground.sessions import ChannelDifference, Proof
from playground.web.branchviews import BranchRow, BranchTree, Comparison, PairView, Stretch
from playground.web.forms import Problem as FieldProblem
from playground.web.forms import form_for
from playground.web.graphview import EdgeShape, NodeShape, Topology, graph
from playground.web.i18n import LANGUAGES, Language, Translator
from playground.web.samples import Sample
from playground.web.stops import OFFERED, OPERATORS, sentence
from playground.web.templating import page
from playground.web.timeline import Timeline, ticks
from playground.web.viewmodels import (
    Decision,
    EventRow,
    Failure,
    Follows,
    ForkPoint,
    LessonStep,
    Metrics,
    Moment,
    Mood,
    NodeView,
    ParkedStep,
    Picker,
    Problem,
    RunList,
    RunRow,
    RunView,
    ScenarioCard,
    ScenarioView,
    Source,
    SourceLine,
    StateRow,
    Stops,
    TokenStream,
    Write,
)
from playground.web.waterfall import ClockBook
from playground.web.wavegrid import wave_grid

NOON = 1_764_500_400.0
"""When all samples happen; pictures of them never differ by the clock."""


class Log:
    """Writes a sample log: positions, sequence numbers and times count by themselves."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events: list[Event] = []
        self._seq: dict[str, int] = {}
        self._clock = NOON

    def note(self, kind: str, run: str = "", after: float = 0.04, /, **data: object) -> Log:
        """One event, `after` seconds later, of the root or of the child `run` (`~1`)."""
        self._clock += after
        run_id = self.run_id + run
        self._seq[run_id] = self._seq.get(run_id, 0) + 1
        parent = run_id.rpartition("~")[0] or None
        frozen = frozen_object(data, kind)
        self.events.append(
            Event(
                self._seq[run_id], run_id, kind, frozen, parent, len(self.events) + 1, round(self._clock, 3)
            )
        )
        return self

    def ran(self, node: str, wave: int, /, run: str = "", why: object = None, value: object = None) -> Log:
        """A node that starts and returns."""
        reason = why or {"code": "entry"}
        self.note("node_started", run, node=node, wave=wave, attempt=1, activation=1, why=reason)
        return self.note("node_completed", run, 0.21, node=node, wave=wave, value=value)


def _from(*nodes: str) -> JsonObject:
    return {"code": "edges", "nodes": list(nodes)}


def _by(*nodes: str) -> JsonObject:
    return {"code": "goto", "nodes": list(nodes)}


def _chain(*names: str, kind: str = "function") -> list[NodeShape]:
    return [{"key": name, "kind": kind} for name in names]


def _links(*names: str, into: str = "") -> list[EdgeShape]:
    """Edges from the first name to all others, or from all of them into one."""
    if into:
        return [{"source": name, "target": into} for name in names]
    return [{"source": names[0], "target": name} for name in names[1:]]


EXPERTS = ("law", "cost", "risk")

REACT: Topology = {
    "nodes": [
        {"key": "think", "entry": True, "kind": "model"},
        {"key": "tools", "kind": "tool"},
        {"key": "final", "terminal": True},
    ],
    "edges": [],
}

INCIDENT: Topology = {
    "nodes": [
        {"key": "diagnose", "entry": True, "kind": "plan"},
        {"key": "decide"},
        {"key": "approve_fix"},
        {"key": "repair", "kind": "agent", "terminal": True},
        {"key": "escalate", "terminal": True},
    ],
    "edges": [
        {"source": "diagnose", "target": "decide"},
        {"source": "approve_fix", "target": "repair", "conditional": True, "label": "approved"},
        {"source": "approve_fix", "target": "escalate", "conditional": True, "label": "rejected"},
    ],
    "channels": [{"name": "findings", "reducer": "append"}, {"name": "cause", "reducer": "last"}],
}

QUESTION: Mapping[Language, str] = {
    "en": "Enlarge the connection pool on orders-db?",
    "zh": "要扩大 orders-db 的连接池吗？",
}
TASK: Mapping[Language, str] = {
    "en": "Orders time out since 12:10. Find out why and mend it.",
    "zh": "12:10 起订单超时，找出原因并修复。",
}
TITLE: Mapping[Language, str] = {"en": "Incident response", "zh": "故障响应"}
CAUSE: Mapping[Language, str] = {
    "en": "The pool of orders-db is exhausted.",
    "zh": "orders-db 的连接池已耗尽。",
}


def incident(lang: Language) -> Log:
    """Two agents are called at once and return; a third takes over and asks before it acts."""
    log = Log("inc7")
    log.note("run_started", task=TASK[lang], meta={}, depth=0, path="", relation="root", format=1)
    log.note("node_started", node="diagnose", wave=1, attempt=1, activation=1, why={"code": "entry"})
    for number, name, tool in ((1, "diag_cpu", "cpu_metrics"), (2, "diag_log", "error_log")):
        child = f"inc7~{number}"
        log.note(
            "delegated",
            node="diagnose",
            wave=1,
            call=name,
            child=child,
            task=tool,
            name=name,
            relation="call",
        )
        log.note("run_started", f"~{number}", task=tool, relation="call", parent_node="diagnose")
    for number in (1, 2):
        log.ran("think", 1, f"~{number}", value=None)
        log.note("control", f"~{number}", wave=1, by="think", goto="tools", immediate=True)
    for number, tool, gave in (
        (1, "cpu_metrics", "12:10 92 % → 12:20 93 %"),
        (2, "error_log", "pool timeout ×214"),
    ):
        run = f"~{number}"
        log.note("node_started", run, node="tools", wave=2, attempt=1, activation=1, why=_by("think"))
        log.note("tool_called", run, node="tools", call_id=f"c{number}", name=tool, arguments={"minutes": 15})
        log.note(
            "tool_returned", run, 0.3, node="tools", call_id=f"c{number}", name=tool, ok=True, output=gave
        )
        log.note("node_completed", run, node="tools", wave=2, value=gave)
        log.note("control", run, wave=2, by="tools", goto="think", immediate=True)
    for number, says in ((1, "CPU is not the cause."), (2, "The pool is exhausted.")):
        run = f"~{number}"
        log.ran("think", 3, run, _by("tools"), says)
        log.note("control", run, wave=3, by="think", goto="final", immediate=True)
        log.ran("final", 4, run, _by("think"), says)
        log.note("run_completed", run, output=says, wave=4)
    log.note(
        "node_completed", node="diagnose", wave=1, value=["CPU is not the cause.", "The pool is exhausted."]
    )
    log.note(
        "state_delta",
        wave=1,
        delta={"findings": ["CPU is not the cause.", "The pool is exhausted."]},
        writers={"findings": ["diagnose"]},
        reducers={"findings": "append"},
    )
    log.ran("decide", 2, why=_from("diagnose"), value=CAUSE[lang])
    log.note("control", wave=2, by="decide", goto="approve_fix", immediate=True, payload={"pool_size": 200})
    log.note(
        "state_delta",
        wave=2,
        delta={"cause": CAUSE[lang]},
        writers={"cause": ["decide"]},
        reducers={"cause": "last"},
    )
    log.note("node_started", node="approve_fix", wave=3, attempt=1, activation=1, why=_by("decide"))
    log.note(
        "interrupted", id="approve_fix", node="approve_fix", wave=3, kind="approval", question=QUESTION[lang]
    )
    return log.note("run_suspended", wave=3, interrupts=["approve_fix"])


def decided(lang: Language, approved: bool) -> Log:
    """The same run after its answer."""
    log = incident(lang)
    outcome = "approved" if approved else "rejected"
    goal, skipped = ("repair", "escalate") if approved else ("escalate", "repair")
    log.note("resumed", "", 42.0, id="approve_fix", node="approve_fix", outcome=outcome, by="Ana", via="web")
    log.ran("approve_fix", 4, why={"code": "resumed", "nodes": ["approve_fix"]}, value={"approved": approved})
    log.note("node_skipped", node=skipped, why={"code": "dead_edges", "nodes": ["approve_fix"]})
    log.ran(goal, 5, why=_from("approve_fix"), value=OUTPUT[lang])
    return log.note("run_completed", output=OUTPUT[lang], wave=5)


OUTPUT: Mapping[Language, str] = {
    "en": "The pool of orders-db now holds 200 connections; time-outs stopped at 12:31.",
    "zh": "orders-db 的连接池已扩大到 200，超时在 12:31 停止。",
}

CHILDREN: Mapping[str, Topology] = {"diag_cpu": REACT, "diag_log": REACT}


def step_sample(lang: Language) -> ParkedStep:
    """An approval with evidence, a form to edit it, an expiry, and what each verb leads to."""
    payload: JsonObject = {"service": "orders-db", "pool_size": 200, "throttle": True}
    schema: JsonObject = {
        "properties": {
            "pool_size": {"type": "integer", "minimum": 10, "maximum": 500},
            "throttle": {"type": "boolean"},
        },
        "required": ["pool_size"],
    }
    return ParkedStep(
        id="approve_fix",
        run_id="inc7",
        node="approve_fix",
        kind="approval",
        question=QUESTION[lang],
        payload=payload,
        since=NOON + 3,
        expires_at=NOON + 900,
        default="escalate",
        form=form_for(schema, payload),
        follows=Follows(("repair",), ("escalate",)),
        tool="resize_pool",
    )


SOURCE_TEXT = '''"""Incident response: two diagnoses are called, one repair takes over."""

from playground import Agent, Workflow, go, wait_human

wf = Workflow()


async def diagnose(task, ctx):
    return await ctx.together(ctx.spawn(cpu, task), ctx.spawn(log, task))


def decide(findings):
    return go("approve_fix", {"pool_size": 200}, cause=findings[-1])


def approve_fix(fix, ctx):
    if not ctx.resumed:
        return wait_human("Enlarge the connection pool on orders-db?", fix)
    return ctx.resume_value


wf.add("diagnose", diagnose)
wf.add("decide", decide)
wf.add("approve_fix", approve_fix)
wf.add("repair", repair_agent, terminal=True)
wf.edge("diagnose", "decide")
wf.entry("diagnose")
'''


def source_sample(active: range = range(17, 21)) -> Source:
    """A file with a function marked."""
    lines = tuple(SourceLine(n, text, n in active) for n, text in enumerate(SOURCE_TEXT.splitlines(), 1))
    return Source("scenarios/aiops.py", lines, {"decide": 12, "approve_fix": 16})


def lesson_sample(lang: Language) -> tuple[LessonStep, ...]:
    """Three steps, one of them a question."""
    if lang == "zh":
        return (
            LessonStep("diagnose 同时委派两个智能体：它们画在它里面，因为会返回。", at=3, passed=True),
            LessonStep(
                "decide 发出 Goto。repair 之后还会回到 decide 吗？",
                question="下一波会运行哪个节点？",
                options=("decide", "approve_fix"),
                answers=("approve_fix",),
            ),
            LessonStep("批准之后，approve_fix 的函数体会从头再运行一次。", node="approve_fix"),
        )
    return (
        LessonStep(
            "diagnose calls two agents at once: they are drawn inside it, for they return.", at=3, passed=True
        ),
        LessonStep(
            "decide says Goto. Nothing leads back, so that is a transfer.",
            question="Which node runs in the next wave?",
            options=("decide", "approve_fix"),
            answers=("approve_fix",),
        ),
        LessonStep("After your answer the body of approve_fix runs again from its top.", node="approve_fix"),
    )


def run_sample(lang: Language, log: Log | None = None, **changes: object) -> RunView:
    """The page of the incident, or of another sample log with the same plan."""
    log = log or incident(lang)
    rows = tuple(Timeline(log.events))
    last = rows[-1]
    parked = any(row.kind == "run_suspended" for row in rows) and last.kind == "run_suspended"
    failed = last.kind == "run_failed"
    state = RunState.SUSPENDED if parked else RunState.FAILED if failed else RunState.RUNNING
    if last.kind == "run_completed":
        state = RunState.COMPLETED
    moods = {
        RunState.SUSPENDED: Mood.WAITING,
        RunState.FAILED: Mood.FAILED,
        RunState.RUNNING: Mood.RUNNING,
        RunState.COMPLETED: Mood.COMPLETED,
    }
    clock = ClockBook()
    for event in log.events:
        clock.add(event)
    waves = max((row.wave for row in rows if not row.depth), default=0)
    view = RunView(
        run_id=log.run_id,
        scenario="aiops",
        title=TITLE[lang],
        state=state,
        mood=moods[state],
        driven=state is RunState.RUNNING,
        task=TASK[lang],
        waves=waves,
        last_event_id=last.id,
        created=NOON,
        graph=graph(INCIDENT, log.events, children=CHILDREN, stops=[("before", "repair")]),
        grid=wave_grid(log.events),
        moment=moment_sample(lang, last),
        events=rows,
        interrupts=(step_sample(lang),) if parked else (),
        output=OUTPUT[lang] if state is RunState.COMPLETED else None,
        metrics=Metrics(waves, 9, 1840, last.offset, 4, 2),
        source=source_sample(),
        tokens=tokens_sample(),
        lesson=lesson_sample(lang),
        ticks=ticks(rows),
        proof=Proof(last.id),
        stops=stops_sample(lang),
        waterfall=clock.chart(),
        kinds=tuple(dict.fromkeys(row.kind for row in rows)),
        names=tuple(dict.fromkeys(row.node for row in rows if row.node)),
    )
    return replace(view, **changes)  # type: ignore[arg-type]


def moment_sample(lang: Language, event: EventRow) -> Moment:
    """The inspector: a changed channel, an unchanged one, a reason and the proof."""
    findings: JsonValue = ["CPU is not the cause.", "The pool is exhausted."]
    return Moment(
        at=event.id,
        last=event.id,
        wave=event.wave,
        event=event,
        rows=(
            StateRow("findings", "append", findings),
            StateRow("cause", "last", CAUSE[lang], None, (Write("decide", CAUSE[lang], 38),)),
        ),
        node=NodeView("approve_fix", NodeStatus.RUNNING, None, 1, _by("decide")),
    )


def tokens_sample() -> tuple[TokenStream, ...]:
    """Two finished calls, one of them with its reasoning."""
    return (
        TokenStream("c1", "think", "diag_cpu", "CPU is not the cause.", tokens=212),
        TokenStream(
            "c2", "think", "diag_log", "The pool is exhausted.", "214 time-outs, all on the pool.", 388
        ),
    )


@dataclass(frozen=True, slots=True)
class _Card:
    title: Mapping[Language, str]
    summary: Mapping[Language, str]
    concepts: Mapping[Language, tuple[str, ...]]
    plan: Topology


_CARDS: Mapping[str, _Card] = {
    "graph_demo": _Card(
        {"en": "How waves advance", "zh": "波次怎么推进"},
        {"en": "A fan-out and a join, seen wave by wave.", "zh": "一次扇出与汇合，一波一波地看。"},
        {"en": ("waves", "join", "fan-out"), "zh": ("波次", "汇合", "扇出")},
        {
            "nodes": _chain("split", "a", "b", "c", "join", "report"),
            "edges": [
                *_links("split", "a", "b", "c"),
                *_links("a", "b", "c", into="join"),
                *_links("join", "report"),
            ],
        },
    ),
    "react_demo": _Card(
        {"en": "ReAct by hand", "zh": "手工拼出 ReAct"},
        {
            "en": "A loop between thinking and tools, driven by Goto.",
            "zh": "思考与工具之间的环，由 Goto 驱动。",
        },
        {"en": ("ReAct", "Goto", "tools"), "zh": ("ReAct", "Goto", "工具")},
        {**REACT, "edges": [*_links("think", "tools", "final"), *_links("tools", "think")]},
    ),
    "trader": _Card(
        {"en": "A buyer who haggles", "zh": "砍价的买手"},
        {
            "en": "Several rounds of haggling, and a person approves before the order goes out.",
            "zh": "多轮砍价，下单前由人批准。",
        },
        {"en": ("approval", "memory", "write tools"), "zh": ("审批", "记忆", "写操作")},
        {
            "nodes": [
                {"key": "offer", "entry": True, "kind": "model"},
                *_chain("haggle", "approve", "buy", "leave"),
            ],
            "edges": [
                *_links("offer", "haggle"),
                *_links("haggle", "offer", "approve"),
                *_links("approve", "buy", "leave"),
            ],
        },
    ),
    "aiops": _Card(
        TITLE,
        {
            "en": "Diagnosis is a call and returns; repair is a transfer and does not.",
            "zh": "诊断是委派，会返回；修复是接力，不返回。",
        },
        {"en": ("call", "transfer", "approval"), "zh": ("委派", "接力", "审批")},
        INCIDENT,
    ),
    "blackboard": _Card(
        {"en": "Blackboard", "zh": "黑板"},
        {
            "en": "Experts write on one board at once, a moderator decides, in rounds until they agree.",
            "zh": "专家并行写板，主持人裁决，可多轮趋同。",
        },
        {"en": ("blackboard", "join", "rounds"), "zh": ("黑板", "汇合", "多轮")},
        {
            "nodes": [
                {"key": "board", "entry": True},
                *_chain(*EXPERTS, kind="agent"),
                *_chain("moderator", "verdict"),
            ],
            "edges": [
                *_links("board", *EXPERTS),
                *_links(*EXPERTS, into="moderator"),
                *_links("moderator", "board", "verdict"),
            ],
        },
    ),
}


def cards_sample(lang: Language) -> tuple[ScenarioCard, ...]:
    """Scenarios in the picker, the last one broken."""
    reason = "Line 12 has a syntax error: '(' was never closed."
    if lang == "zh":
        reason = "第 12 行有语法错误：'(' 没有闭合。"
    return (
        *(
            ScenarioCard(
                key,
                card.title[lang],
                card.summary[lang],
                card.concepts[lang],
                graph(card.plan, direction="right"),
                waiting=int(key == "trader"),
            )
            for key, card in _CARDS.items()
        ),
        ScenarioCard("my_flow", "my_flow.py", error=reason, traceback=TRACEBACK),
    )


TRACEBACK = """Traceback (most recent call last):
  File "scenarios/my_flow.py", line 12
    wf.add("think", think
          ^
SyntaxError: '(' was never closed"""


def rows_sample(lang: Language) -> tuple[RunRow, ...]:
    """Runs in a list, one of each mood."""
    tasks: tuple[tuple[Mood, RunState, dict[str, object]], ...] = (
        (Mood.WAITING, RunState.SUSPENDED, {"waiting": 1}),
        (Mood.RUNNING, RunState.RUNNING, {}),
        (Mood.COMPLETED, RunState.COMPLETED, {"forked_from": ForkPoint("inc6", 17)}),
        (Mood.PAUSED, RunState.SUSPENDED, {}),
        (Mood.STOPPED, RunState.RUNNING, {}),
        (Mood.COMPLETED, RunState.COMPLETED, {"continues": "inc3"}),
        (Mood.FAILED, RunState.FAILED, {}),
        (Mood.CANCELLED, RunState.FAILED, {}),
    )
    return tuple(
        RunRow(
            f"inc{7 - number}",
            "aiops",
            TITLE[lang],
            state,
            mood,
            TASK[lang],
            NOON,
            NOON - 900 * number,
            **more,  # type: ignore[arg-type]
        )
        for number, (mood, state, more) in enumerate(tasks)
    )


def scenario_sample(lang: Language) -> ScenarioView:
    """A scenario's page with a form of several fields."""
    schema: JsonObject = {
        "properties": {
            "task": {"type": "string", "title": "Task" if lang == "en" else "任务", "format": "multiline"},
            "minutes": {
                "type": "integer",
                "title": "Minutes" if lang == "en" else "分钟",
                "minimum": 1,
                "maximum": 60,
            },
            "severity": {"enum": ["low", "high"], "title": "Severity" if lang == "en" else "级别"},
        },
        "required": ["task"],
    }
    card = cards_sample(lang)[3]
    return ScenarioView(
        key="aiops",
        title=TITLE[lang],
        summary=card.summary,
        teaches=card.summary,
        concepts=card.concepts,
        lesson=lesson_sample(lang),
        graph=graph(INCIDENT),
        form=form_for(schema, {"task": TASK[lang], "minutes": 15, "severity": "high"}, prefix="input"),
        source=source_sample(range(0)),
        runs=rows_sample(lang)[:2],
    )


def failed(lang: Language) -> Log:
    """A run whose repair fails after a second try."""
    log = decided(lang, True)
    log.events = log.events[:-3]
    log.note("node_started", node="repair", wave=5, attempt=1, activation=1, why=_from("approve_fix"))
    log.note("node_retry", node="repair", wave=5, attempt=1, error="connection refused", backoff=0.4)
    log.note("node_started", "", 0.4, node="repair", wave=5, attempt=2, activation=1, why={"code": "retry"})
    log.note(
        "node_failed", node="repair", wave=5, error="orders-db refused the change twice", type="RefusedError"
    )
    return log.note(
        "run_failed", node="repair", reason="orders-db refused the change twice", code="node", wave=5
    )


def fan_out(lang: Language) -> tuple[Topology, Log]:
    """Instances of a template made by Send, one still running, one failed."""
    towns = ("Kyoto", "Lisbon", "Oaxaca") if lang == "en" else ("京都", "里斯本", "瓦哈卡")
    plan: Topology = {
        "nodes": [
            {"key": "plan", "entry": True, "kind": "model"},
            {"key": "scout", "template": True, "kind": "agent"},
            {"key": "choose", "terminal": True},
        ],
        "edges": [{"source": "scout", "target": "choose"}],
    }
    log = Log("trip")
    log.note("run_started", task="", relation="root")
    log.ran("plan", 1, value=list(towns))
    for town in towns:
        log.note("control", wave=1, by="plan", send="scout", key=town)
    for town in towns:
        log.note(
            "node_started", node=f"scout#{town}", wave=2, attempt=1, why={"code": "send", "nodes": ["plan"]}
        )
    log.note("node_completed", node=f"scout#{towns[0]}", wave=2, value=8.4)
    log.note("node_failed", node=f"scout#{towns[2]}", wave=2, error="no flights")
    return plan, log


HARD: Mapping[str, Topology] = {
    "no node": {"nodes": [], "edges": []},
    "one node": {"nodes": _chain("alone"), "edges": []},
    "a loop of its own": {
        "nodes": _chain("draft", "publish"),
        "edges": [
            {"source": "draft", "target": "draft", "conditional": True, "label": "again"},
            {"source": "draft", "target": "publish"},
        ],
    },
    "think, act, redo": {
        "nodes": [{"key": "think", "entry": True}, *_chain("act", "check", "answer")],
        "edges": [
            {"source": "think", "target": "act", "conditional": True, "label": "needs a tool"},
            {"source": "act", "target": "check"},
            {"source": "check", "target": "think", "conditional": True, "label": "not yet"},
            {"source": "check", "target": "answer", "conditional": True, "label": "good"},
            {"source": "think", "target": "answer", "conditional": True, "label": "knows it"},
        ],
    },
    "long names in any script": {
        "nodes": [
            {"key": "a_node_whose_name_goes_on_and_on_and_on", "kind": "agent"},
            {"key": "核对合规条款并汇总所有专家的意见书", "kind": "tool"},
            {"key": "تحقق من صحة البيانات قبل الإرسال"},
        ],
        "edges": [
            {
                "source": "a_node_whose_name_goes_on_and_on_and_on",
                "target": "核对合规条款并汇总所有专家的意见书",
                "conditional": True,
                "label": "如果风险等级高于中等",
            },
            {"source": "核对合规条款并汇总所有专家的意见书", "target": "تحقق من صحة البيانات قبل الإرسال"},
        ],
    },
    "a wide fan": {
        "nodes": _chain("split", *(f"expert_{n}" for n in range(1, 9)), "join", "revise", "done"),
        "edges": [
            *_links("split", *(f"expert_{n}" for n in range(1, 9))),
            *_links(*(f"expert_{n}" for n in range(1, 9)), into="join"),
            {"source": "join", "target": "revise"},
            {"source": "revise", "target": "split", "conditional": True, "label": "redo"},
            {"source": "revise", "target": "done"},
        ],
    },
}


def pages(lang: Language) -> dict[str, str]:
    """Every page with sample data, by a name fit for a file."""
    t = Translator(lang)
    done, broken = run_sample(lang, decided(lang, True)), cards_sample(lang)[-1]
    wrong = Failure(
        "orders-db refused the change twice",
        "repair",
        "node",
        "Its policy allows two tries. Fork before it with another pool size.",
        at=44,
    )
    step = step_sample(lang)
    picker = Picker(cards_sample(lang), "", ("call", "transfer", "approval", "Goto"), 6, 1)
    sample = Sample(TITLE[lang], (), 1, done.graph)
    listed = RunList(
        rows_sample(lang), "sqlite:.playground/runs.db", waiting=1, scenarios=(("aiops", TITLE[lang]),)
    )
    problem = Problem(404, "No such run" if lang == "en" else "没有这个运行", "inc99", "/runs")
    return {
        "picker": page("picker", lang, picker=picker, sample=sample),
        "picker-none": page("picker", lang, picker=replace(picker, cards=(), q="zebra"), sample=None),
        "scenario": page("scenario", lang, scenario=scenario_sample(lang)),
        "scenario-broken": page(
            "scenario",
            lang,
            scenario=replace(
                scenario_sample(lang),
                title="my_flow.py",
                error=broken.error,
                traceback=TRACEBACK,
                concepts=(),
            ),
        ),
        "run-start": page(
            "run", lang, run=run_sample(lang, _first(incident(lang), 1), moment=Moment(1, 1, 0, None))
        ),
        "run-running": page("run", lang, run=run_sample(lang, _first(incident(lang), 19))),
        "run-parked": page("run", lang, run=run_sample(lang)),
        "run-completed": page("run", lang, run=done),
        "run-failed": page("run", lang, run=run_sample(lang, failed(lang), error=wrong)),
        "compare": page(
            "compare", lang, tree=tree_sample(lang), comparison=comparison_sample(lang), title=TITLE[lang]
        ),
        "branches": page("compare", lang, tree=tree_sample(lang, ""), comparison=None, title=TITLE[lang]),
        "runs": page("runs", lang, list=listed),
        "runs-empty": page("runs", lang, list=replace(listed, runs=(), waiting=0)),
        "waiting": page(
            "waiting",
            lang,
            steps=(
                replace(step, scenario=TITLE[lang]),
                replace(step, id="pay", scenario=TITLE[lang]),
                input_sample(lang),
            ),
            decided=None,
            refused=(),
        ),
        "waiting-empty": page(
            "waiting", lang, steps=(), decided=1, refused=("pay is already approved by Ana",)
        ),
        "decision": page("decision", lang, step=replace(step, scenario=TITLE[lang])),
        "decision-done": page("decision", lang, step=replace(step, decision=decision_sample(lang))),
        "problem": page("error", lang, problem=problem),
        "gallery": render_gallery(lang, t),
    }


def stops_sample(lang: Language) -> Stops:
    """Two breakpoints."""
    t = Translator(lang)
    given: list[JsonObject] = [{"before": "repair"}, {"channel": "pool_size", "op": ">", "value": 100}]
    words = tuple(sentence(t, found) for found in given)
    return Stops("inc7", words, ("diagnose", "decide"), ("findings", "cause"), OFFERED, OPERATORS)


def tree_sample(lang: Language, other: str = "B") -> BranchTree:
    """A run that was approved, a fork of it that was rejected, and a fork of that with another state."""
    letters = ("A", other, "")
    return BranchTree(
        "inc7",
        (
            BranchRow(
                *("inc7", 0, 0, 53, Mood.COMPLETED, {}),
                decided=(("approve_fix", "approved"),),
                output=OUTPUT[lang],
                here=True,
                letter=letters[0] if other else "",
            ),
            BranchRow(
                *("inc8", 1, 43, 51, Mood.COMPLETED, {}),
                decided=(("approve_fix", "rejected"),),
                output=None,
                letter=letters[1],
            ),
            BranchRow("inc9", 2, 43, 45, Mood.WAITING, {"pool_size": 100}),
        ),
    )


def comparison_sample(lang: Language) -> Comparison:
    """The incident with its fix approved beside the one where it was rejected."""
    yes, no = [decided(lang, approved) for approved in (True, False)]
    left, right = [Timeline(log.events) for log in (yes, no)]
    asked = next(row.id for row in left if row.kind == "run_suspended")
    pairs = tuple(map(PairView, left[asked:], right[asked:]))
    return Comparison(
        left=run_sample(lang, yes),
        right=replace(run_sample(lang, no), run_id="inc8", forked_from=ForkPoint("inc7", asked)),
        shared=asked,
        same=False,
        first=pairs[0],
        stretches=(Stretch(False, pairs[:1]), Stretch(True, pairs[1:2]), Stretch(False, pairs[2:])),
        channels=(
            ChannelDifference("findings", [], CAUSE[lang], CAUSE[lang]),
            ChannelDifference("pool_size", 50, 200, 50),
        ),
        more=3,
    )


def _first(log: Log, count: int) -> Log:
    log.events = log.events[:count]
    return log


def decision_sample(lang: Language) -> Decision:
    """A rejection with its reason."""
    return Decision("rejected", "Ana", NOON + 42, "web", "too costly" if lang == "en" else "太贵了")


def input_sample(lang: Language) -> ParkedStep:
    """A question that wants a text."""
    return ParkedStep(
        "ask_date",
        "inc5",
        "ask_date",
        "input",
        "When should the change go live?" if lang == "en" else "什么时候上线？",
        {},
        NOON + 5,
        follows=Follows(("schedule",)),
        scenario=TITLE[lang],
    )


def render_gallery(lang: Language, t: Translator | None = None) -> str:
    """The gallery itself: each partial in each of its states, by name."""
    t = t or Translator(lang)
    step, row = step_sample(lang), rows_sample(lang)
    schema: JsonObject = {"properties": {"pool_size": {"type": "integer"}}}
    wrong = {"value.pool_size": FieldProblem("form.integer", {"text": "many"})}
    typed = {"value.pool_size": "many"}
    plan, sent = fan_out(lang)
    every = every_kind()
    steps = {
        "approval": step,
        "approval without a form": replace(step, form=None, expires_at=None, payload="rm -rf build", tool=""),
        "a diff and a command": replace(
            step,
            form=None,
            payload={"diff": "--- a\n+++ b\n-pool = 50\n+pool = 200", "command": "deploy --all"},
        ),
        "wrong value": replace(step, form=form_for(schema, posted=typed, problems=wrong), error="422"),
        "input": input_sample(lang),
        "breakpoint": replace(step, kind="breakpoint", form=None, payload=None, tool="", expires_at=None),
        **{
            outcome: replace(step, decision=replace(decision_sample(lang), outcome=outcome))
            for outcome in ("approved", "rejected", "answered", "expired", "cancelled")
        },
    }
    graphs = {
        "parked inside its wave": graph(INCIDENT, incident(lang).events, children=CHILDREN),
        "instances": graph(plan, sent.events),
        **{name: graph(topology) for name, topology in HARD.items()},
    }
    runs = {mood: replace(run_sample(lang), mood=mood) for mood in Mood}
    return page(
        "gallery",
        lang,
        steps={name: replace(step, id=name) for name, step in steps.items()},
        graphs=graphs,
        runs=runs,
        rows=row,
        cards=cards_sample(lang),
        events=every,
        grid=wave_grid(incident(lang).events),
        values=VALUES,
        run=run_sample(lang, decided(lang, True)),
        nothing=run_sample(lang, moment=Moment(0, 0, 0, None), source=None, tokens=(), lesson=()),
    )


VALUES: Mapping[str, JsonValue] = {
    "null": None,
    "false": False,
    "zero": 0,
    "blank": "",
    "text": "a short text",
    "markup": "<img src=x onerror=alert(1)> & {{ 7 * 7 }}",
    "long": "Wer reitet so spät durch Nacht und Wind? " * 40,
    "list": [1, 2.5, "three", None],
    "object": {"a": 1, "b": {"c": [True, {"d": {"e": "deep"}}]}},
    "many": list(range(200)),
}


def every_kind() -> list[EventRow]:
    """One row of each event kind that has a partial, and one of a kind that has none."""
    log = Log("all")
    for kind, data in KINDS.items():
        log.note(kind, **dict(data))
    return list(Timeline(log.events))


KINDS: Mapping[str, JsonObject] = {
    "run_started": {"task": "mend it", "relation": "root"},
    "node_queued": {"node": "a", "wave": 1, "why": {"code": "parked"}},
    "node_started": {"node": "a", "wave": 1, "attempt": 2, "why": {"code": "edges", "nodes": ["x", "y"]}},
    "node_completed": {"node": "a", "wave": 1, "value": {"price": 12}},
    "node_retry": {"node": "a", "wave": 1, "attempt": 1, "error": "timed out", "backoff": 0.4},
    "node_failed": {"node": "a", "wave": 1, "error": "no such file", "type": "FileNotFoundError"},
    "node_cancelled": {"node": "b", "wave": 1, "by": "a"},
    "node_skipped": {"node": "c", "why": {"code": "dead_edges", "nodes": ["a"]}},
    "state_delta": {
        "wave": 1,
        "delta": {"price": 12},
        "writers": {"price": ["a"]},
        "reducers": {"price": "last"},
    },
    "control": {"wave": 1, "by": "a", "goto": "b"},
    "interrupted": {"id": "a", "node": "a", "wave": 2, "kind": "approval", "question": "Buy?"},
    "node_parked": {"node": "b", "wave": 2, "interrupts": ["b/a"], "nested": [{"id": "b/a"}]},
    "run_suspended": {"wave": 2, "interrupts": ["a"]},
    "resumed": {"id": "a", "node": "a", "outcome": "approved", "by": "Ana", "comment": "go ahead"},
    "run_continued": {"answers": {}},
    "interrupt_cancelled": {"id": "a@2"},
    "delegated": {"node": "b", "wave": 3, "call": "x", "child": "all~1", "task": "look", "name": "scout"},
    "model_called": {"node": "a", "call_id": "c1", "messages": 3, "tools": []},
    "model_returned": {"node": "a", "call_id": "c1", "text": "Twelve is fair.", "tokens": 40},
    "tool_called": {"node": "a", "call_id": "c2", "name": "price", "arguments": {"item": "tea"}},
    "tool_returned": {"node": "a", "call_id": "c2", "name": "price", "ok": False, "error": "no such item"},
    "breakpoints_set": {"breakpoints": [{"before": "a"}]},
    "forked": {"run_id": "inc6", "at": 17},
    "run_completed": {"output": "done", "wave": 3},
    "run_failed": {"reason": "cancelled", "code": "cancelled"},
    "note": {"node": "a", "topic": "context", "data": {"level": 3, "before": 9000, "after": 1200}},
    "a_kind_of_tomorrow": {"node": "a", "level": 3},
}


def write(folder: Path) -> list[Path]:
    """Write the gallery and all pages into `folder`, one subfolder a language."""
    written = []
    for lang in LANGUAGES:
        for name, html in pages(lang).items():
            file = folder / lang / f"{name}.html"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(html, encoding="utf-8")
            written.append(file)
    return written


if __name__ == "__main__":
    write(Path(sys.argv[1]))
