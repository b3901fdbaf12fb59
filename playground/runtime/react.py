"""ReAct: think, use tools, think again, until there is an answer.

The kernel has no loop and no mode.  A loop is a drawing with a way back, and
`Goto` is what walks it:

              asks for tools
        ┌──────────────────────┐
        ▼                      │
      tools ── Goto ───────► think ── answers ──► final

`think` asks the model once and says what the reply means; `tools` runs all
calls of that reply side by side and writes down their results; `final` holds
the answer.  The conversation is one channel that only grows, so a round costs
what it adds: nothing here copies, hashes or looks through the whole of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from playground.kernel.body import FnBody, NodeContext, Outcome
from playground.kernel.channels import append, last
from playground.kernel.graph import Node, Plan
from playground.kernel.ports import Message
from playground.kernel.run import Run
from playground.kernel.types import ToolCall, ToolResult
from playground.kernel.values import JsonObject, JsonValue
from playground.runtime.context import ContextStrategy, assembly_of
from playground.runtime.llm import with_ids
from playground.runtime.messages import paired

MAX_TURNS = 50
"""Model calls that a run may make unless the caller says otherwise."""

_WAVES_PER_TURN = 10
"""think, tools, and tools again after each of up to eight answers that its calls waited for."""


class TurnLimit(RuntimeError):
    """The model has asked for tools in every turn that it had."""


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
    system: str = "",
    context: ContextStrategy | None = None,
    memory: Recall | None = None,
    max_turns: int = MAX_TURNS,
    handovers: Mapping[str, str] | None = None,
) -> Plan:
    """The plan of an agent: think ⇄ tools, then final.

    Its state has the channels `messages`, the conversation, and `recalled`, what the memory gave;
    with `handovers` also `handed_to`, who takes over.

    Args:
        tools: what the model may call; a run of the plan needs the same tools in its scheduler.
        system: what the model is told before each thought.
        context: chooses what of the conversation is shown; without one, all of it is.
        memory: asked once, at the start of the run, about the last user message.
        max_turns: model calls in a run, after which it fails with a sentence.
        handovers: to whom the model may hand the conversation over, by name, with what they are
            for.  Each is a tool `transfer_to_NAME`; the first that is called ends the run.
    """
    takers = {f"transfer_to_{name}": name for name in handovers or {}}
    exits = [_exit(tool, (handovers or {})[name]) for tool, name in takers.items()]

    async def think(_input: JsonValue, ctx: NodeContext) -> Outcome:
        messages = cast("Sequence[Message]", ctx.shared["messages"])
        recalled = cast("str | None", ctx.shared["recalled"])
        delta: dict[str, object] = {}
        if recalled is None:
            delta["recalled"] = recalled = await memory.recall(_last_request(messages)) if memory else ""
        told = "\n\n".join(filter(None, [system, recalled and f"Relevant memory:\n{recalled}"]))

        async def on_delta(text: str, kind: str = "content") -> None:
            await ctx.emit("llm_delta", text=text, kind=kind)

        reply = await ctx.llm_chat(
            messages if context is None else await _shown(context, messages, ctx),
            tools=[*tools.schemas(), *exits],
            system=told or None,
            on_delta=on_delta,
        )
        turn = ctx.run.metrics["llm_calls"]
        if not reply.tool_calls:
            return Outcome.ok(reply.text, messages=[{"role": "assistant", "content": reply.text}], **delta)
        if turn >= max_turns:
            raise TurnLimit(
                f"the model still asked for tools in turn {turn}, the last it had: "
                "give it a clearer task, or allow more with max_turns"
            )
        calls = _requests(reply.tool_calls, turn)
        asked = {"role": "assistant", "content": reply.text, "tool_calls": calls}
        return Outcome.goto("tools", calls, messages=[asked], **delta)

    async def use_tools(input: JsonValue, ctx: NodeContext) -> Outcome:
        calls = cast("list[JsonObject]", input)
        leaving = next((call for call in calls if call["name"] in takers), None)
        results = await ctx.together(*(_call(call, leaving, takers, ctx) for call in calls))
        if leaving is None:
            return Outcome.goto("think", messages=results)
        summary = cast("JsonObject", leaving["arguments"]).get("summary", "")
        return Outcome.goto(
            "final", summary, messages=results, handed_to=takers[cast("str", leaving["name"])]
        )

    plan = Plan(channels={"messages": append(), "recalled": last()}, entry=("think",))
    plan.add(
        Node("think", FnBody(think)),
        Node("tools", FnBody(use_tools)),
        Node("final", FnBody(lambda answer: Outcome.ok(answer)), terminal=True),
    )
    plan.edge("think", "tools", when=_asks_for_tools)
    plan.edge("tools", "think")
    plan.edge("think", "final", when=_has_answered)
    if takers:
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


def _asks_for_tools(state: Mapping[str, JsonValue]) -> bool:
    return bool(_latest(state).get("tool_calls"))


def _has_answered(state: Mapping[str, JsonValue]) -> bool:
    latest = _latest(state)
    return latest.get("role") == "assistant" and not latest.get("tool_calls")


def _handed_over(state: Mapping[str, JsonValue]) -> bool:
    return state["handed_to"] is not None


def _latest(state: Mapping[str, JsonValue]) -> Message:
    return cast("list[Message]", state["messages"])[-1]


def _last_request(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            return str(message.get("content") or "")
    return ""


async def _shown(
    context: ContextStrategy, messages: Sequence[Message], ctx: NodeContext
) -> Sequence[Message]:
    """What the model is shown; what was done to get there is a fact of the run."""
    assembly = await assembly_of(context, messages)
    if assembly.level or assembly.problem:
        await ctx.note("context", **assembly.facts())
    return assembly.messages


def _requests(calls: Sequence[ToolCall], turn: int) -> list[JsonObject]:
    """Tool calls as they stand in a message, each with an id of its own."""
    return [
        {"id": call.call_id, "name": call.name, "arguments": call.arguments, "problem": call.problem}
        for call in with_ids(calls, turn)
    ]


async def _call(
    call: JsonObject, leaving: JsonObject | None, takers: Mapping[str, str], ctx: NodeContext
) -> Message:
    """The message with the result of a call; of several handovers in one turn the first one counts."""
    name = cast("str", call["name"])
    if leaving is not None and name in takers:
        taker = takers[cast("str", leaving["name"])]
        told = f"{taker} takes over" if call is leaving else f"[tool error] ignored: {taker} has taken over"
    else:
        arguments = cast("JsonObject", call["arguments"])
        told = _told(await ctx.call_tool(name, arguments, problem=cast("str", call["problem"])))
    return {"role": "tool", "name": name, "tool_call_id": call["id"], "content": told}


def _exit(tool: str, description: str) -> JsonObject:
    """The tool with which a model hands over, as it is shown."""
    summary: JsonObject = {"type": "string", "description": "what the one who takes over needs to know"}
    parameters: JsonObject = {"type": "object", "properties": {"summary": summary}, "required": ["summary"]}
    about = f"Hand the conversation over and do not come back. {description}".strip()
    function: JsonObject = {"name": tool, "description": about, "parameters": parameters}
    return {"type": "function", "function": function}


def _told(result: ToolResult) -> str:
    """A tool's result as the model reads it."""
    if not result.ok:
        return f"[tool error] {result.error}"
    if isinstance(result.output, str):
        return result.output
    return json.dumps(result.output, ensure_ascii=False)
