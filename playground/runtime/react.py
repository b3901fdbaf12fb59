"""ReAct: think, use tools, think again, until there is an answer.

The kernel has no loop and no mode.  A loop is a drawing with a way back, and
`Goto` is what walks it:

                       ┌─ asks for tools ─► tools ─┐
                       │                           │
    [recall ─►]  think ┤ ◄───────── Goto ──────────┘
                       │
                       └─ answers ─► final

`think` asks the model once and says what the reply means; `tools` runs all
calls of that reply side by side and writes down their results; `final` holds
the answer.  The conversation is one channel that only grows, so a round costs
what it adds: nothing here copies, hashes or looks through the whole of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from playground.kernel.body import FnBody, NodeContext, Outcome
from playground.kernel.channels import append, last
from playground.kernel.graph import Node, Plan
from playground.kernel.ports import Message
from playground.kernel.run import Run
from playground.kernel.types import ToolResult
from playground.kernel.values import JsonObject, JsonValue
from playground.runtime.compaction import Documents
from playground.runtime.context import ContextStrategy, KeepingStrategy, assembly_of
from playground.runtime.llm import with_ids
from playground.runtime.messages import paired
from playground.runtime.parts import State

MAX_TURNS = 50
"""Model calls that a run may make unless the caller says otherwise."""

DOCUMENTS = "documents"
"""The point of the bus where whoever runs an agent says where its summaries are kept."""

_WAVES_PER_TURN = 10
"""think, tools, and tools again after each of up to eight answers that its calls waited for."""


class TurnLimit(RuntimeError):
    """The model has asked for tools in every turn that it had."""


class EmptyReply(RuntimeError):
    """The model has said nothing, which must not pass for an answer."""


class Shelf(Protocol):
    """The part of a tool registry that is shown to a model."""

    def schemas(self) -> Sequence[JsonObject]:
        """The tools as a model is shown them."""
        ...


class Recall(Protocol):
    """The part of a memory that is read before the first thought."""

    async def recall(self, query: str) -> str:
        """What is known that matters for `query`, as text; empty if nothing does."""
        ...


def build_react_plan(
    tools: Shelf,
    *,
    system: str | Callable[[], str] = "",
    context: ContextStrategy | None = None,
    memory: Recall | None = None,
    max_turns: int = MAX_TURNS,
    handovers: Mapping[str, str] | None = None,
) -> Plan:
    """The plan of an agent: think ⇄ tools, then final.

    Its state is the channel `messages`, the conversation; with `memory` also `recalled`, what is
    known; with `handovers` also `handed_to`, who takes over.

    Args:
        tools: what the model may call; a run of the plan needs the same tools in its scheduler.
        system: what the model is told before each thought; a function is asked each time, and must
            answer the same as long as nothing has been written to the log.
        context: chooses what of the conversation is shown; without one, all of it is.
        memory: asked once, in a node of its own, about the last user message.
        max_turns: model calls in a run, after which it fails with a sentence.
        handovers: to whom the model may hand the conversation over, by name, with what they are
            for.  Each is a tool `transfer_to_NAME`; the first that is called ends the run.
    """
    exits = _Exits(handovers or {})
    plan = Plan(channels={"messages": append()}, entry=("think",))
    if memory is not None:
        plan.channels["recalled"] = last("")
        plan.entry = ("recall",)
        plan.add(Node("recall", _Remember(memory))).edge("recall", "think")
    plan.add(
        Node("think", _Think(tools, system, context, max_turns, exits), join="any"),
        Node("tools", _Act(exits)),
        Node("final", FnBody(lambda answer: Outcome.ok(answer)), terminal=True),
    )
    plan.edge("think", "tools", when=_asks_for_tools)
    plan.edge("tools", "think")
    plan.edge("think", "final", when=_has_answered)
    if handovers:
        plan.channels["handed_to"] = last()
        plan.edge("tools", "final", when=_handed_over)
    return plan


def start_react_run(plan: Plan, task: str, history: Sequence[Message] | None = None) -> Run:
    """A run of a ReAct plan, ready to be driven.

    Args:
        task: what the user says.
        history: the messages of the conversation so far, which it goes on.
    """
    run = Run.start(plan, task=task)
    run.shared.update(cast("JsonObject", conversation(task, history)))
    return run


def conversation(task: str, history: Sequence[Message] | None = None) -> dict[str, object]:
    """The state in which a ReAct run begins: what was said before, and then the task.

    A call whose result was lost, because a process died in between, gets a placeholder:
    no model takes a conversation with loose ends.
    """
    return {"messages": [*paired(history or ()), {"role": "user", "content": task}]}


def next_turn(task: str, before: Mapping[str, JsonValue]) -> dict[str, object]:
    """The state in which the next turn of a conversation begins, after a run that ended in `before`."""
    return conversation(task, cast("list[Message]", before["messages"]))


def waves_for(max_turns: int) -> int:
    """How many waves a run of so many turns may need."""
    return max_turns * _WAVES_PER_TURN


# The nodes.


@dataclass(frozen=True, slots=True)
class _Remember:
    """Looks up what is known, once: what the log has of it does not change when the memory does."""

    memory: Recall

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:
        return Outcome.ok(input, recalled=await self.memory.recall(_last_request(_messages(ctx.shared))))


@dataclass(frozen=True, slots=True)
class _Think:
    """Asks the model once."""

    tools: Shelf
    system: str | Callable[[], str]
    context: ContextStrategy | None
    max_turns: int
    exits: _Exits
    kind = "model"

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:  # noqa: ARG002 (it reads the state)
        async def on_delta(text: str, kind: str = "content") -> None:
            await ctx.emit("llm_delta", text=text, kind=kind)

        reply = await ctx.llm_chat(
            await self._shown(ctx),
            tools=[*self.tools.schemas(), *self.exits.schemas],
            system=self._told(ctx) or None,
            on_delta=on_delta,
        )
        if not reply.tool_calls:
            if not reply.text.strip():
                raise EmptyReply(
                    "the model answered nothing, neither a word nor a tool call: "
                    "run it again, or choose another model"
                )
            return Outcome.ok(reply.text, messages=[{"role": "assistant", "content": reply.text}])
        turn = ctx.run.metrics["llm_calls"]
        if turn >= self.max_turns:
            raise TurnLimit(
                f"the model still asked for tools in turn {turn}, the last it had: "
                "give it a clearer task, or allow more with max_turns"
            )
        calls = [
            {"id": call.call_id, "name": call.name, "arguments": call.arguments, "problem": call.problem}
            for call in with_ids(reply.tool_calls, turn)
        ]
        return Outcome.goto(
            "tools", messages=[{"role": "assistant", "content": reply.text, "tool_calls": calls}]
        )

    def _told(self, ctx: NodeContext) -> str:
        recalled = str(ctx.shared.get("recalled") or "")
        system = self.system if isinstance(self.system, str) else self.system()
        return "\n\n".join(filter(None, [system, recalled and f"Relevant memory:\n{recalled}"]))

    async def _shown(self, ctx: NodeContext) -> Sequence[Message]:
        """What the model is shown; what was done to get there is a fact of the run."""
        messages = _messages(ctx.shared)
        if self.context is None:
            return messages
        assembly = await assembly_of(await self._strategy(self.context, ctx), messages)
        if assembly.level or assembly.problem:
            await ctx.note("context", **assembly.facts())
        return assembly.messages

    async def _strategy(self, context: ContextStrategy, ctx: NodeContext) -> ContextStrategy:
        """The strategy, with its summaries where whoever runs this keeps documents, if anyone does."""
        bus = ctx.host.bus
        if isinstance(context, KeepingStrategy) and bus.has_provider(DOCUMENTS):
            for documents in await bus.collect(DOCUMENTS):
                return context.kept_in(cast("Documents", documents))
        return context


@dataclass(frozen=True, slots=True)
class _Act:
    """Runs the tool calls of one reply side by side, and writes their results down in call order."""

    exits: _Exits
    kind = "tool"

    async def run(self, input: JsonValue, ctx: NodeContext) -> Outcome:  # noqa: ARG002 (it reads the state)
        calls = cast("list[JsonObject]", _messages(ctx.shared)[-1]["tool_calls"])
        leaving = next((call for call in calls if call["name"] in self.exits.takers), None)
        taker = self.exits.takers[cast("str", leaving["name"])] if leaving else ""
        results = await ctx.together(*(self._result(call, leaving, taker, ctx) for call in calls))
        if leaving is None:
            return Outcome.goto("think", messages=results)
        summary = cast("JsonObject", leaving["arguments"]).get("summary", "")
        return Outcome.goto("final", summary, messages=results, handed_to=taker)

    async def _result(
        self, call: JsonObject, leaving: JsonObject | None, taker: str, ctx: NodeContext
    ) -> Message:
        """The message with the result of a call; of several handovers in one turn the first one counts."""
        name = cast("str", call["name"])
        if call is leaving:
            told = f"{taker} takes over"
        elif leaving is not None and name in self.exits.takers:
            told = f"[tool error] ignored: {taker} has taken over"
        else:
            arguments = cast("JsonObject", call["arguments"])
            told = _told(await ctx.call_tool(name, arguments, problem=cast("str", call["problem"])))
        return {"role": "tool", "name": name, "tool_call_id": call["id"], "content": told}


class _Exits:
    """The tools with which a model hands the conversation over; nobody dispatches them."""

    def __init__(self, handovers: Mapping[str, str]) -> None:
        self.takers = {f"transfer_to_{name}": name for name in handovers}
        self.schemas = [self._schema(tool, handovers[name]) for tool, name in self.takers.items()]

    def _schema(self, tool: str, description: str) -> JsonObject:
        summary: JsonObject = {"type": "string", "description": "what the one who takes over needs to know"}
        parameters: JsonObject = {
            "type": "object",
            "properties": {"summary": summary},
            "required": ["summary"],
        }
        about = f"Hand the conversation over and do not come back. {description}".strip()
        return {
            "type": "function",
            "function": {"name": tool, "description": about, "parameters": parameters},
        }


def _told(result: ToolResult) -> str:
    """A tool's result as the model reads it."""
    if not result.ok:
        return f"[tool error] {result.error}"
    if isinstance(result.output, str):
        return result.output
    return json.dumps(result.output, ensure_ascii=False)


# What the edges and the nodes read off the conversation.


def _messages(state: State) -> Sequence[Message]:
    return cast("Sequence[Message]", state["messages"])


def _asks_for_tools(state: State) -> bool:
    return bool(_messages(state)[-1].get("tool_calls"))


def _has_answered(state: State) -> bool:
    latest = _messages(state)[-1]
    return latest.get("role") == "assistant" and not latest.get("tool_calls")


def _handed_over(state: State) -> bool:
    return state["handed_to"] is not None


def _last_request(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            return str(message.get("content") or "")
    return ""
