"""One turn of a conversation in a process of its own: `agent_turn.py QUESTION SNAPSHOT_FILE` prints JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessagesTypeAdapter
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models.test import TestModel

from playground.agenton.collections.layers.plain import PromptLayer
from playground.agenton.collections.layers.pydantic_ai import PydanticAIHistoryLayer
from playground.agenton.collections.transformers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS
from playground.agenton.compositor import Compositor, CompositorSessionSnapshot, LayerNode
from playground.agenton.layers import EmptyLayerConfig, NoLayerDeps, PlainLayer


class TurnState(BaseModel):
    turns: int = 0


class TurnLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, TurnState]):
    """Counts the turns of a session, tells the agent, and remembers how this one began."""

    entered = ""

    async def on_context_create(self) -> None:
        self.entered = "create"
        self.runtime_state.turns = 1

    async def on_context_resume(self) -> None:
        self.entered = "resume"
        self.runtime_state.turns += 1

    @property
    def tools(self) -> list:
        return [self.which_turn]

    def which_turn(self) -> int:
        """Tell which turn of the session this is."""
        return self.runtime_state.turns


compositor = Compositor(
    [
        LayerNode("prompt", PromptLayer),
        LayerNode("turn", TurnLayer),
        LayerNode("history", PydanticAIHistoryLayer),
    ],
    **PYDANTIC_AI_TRANSFORMERS,
)


async def turn(
    question: str, stored: CompositorSessionSnapshot | None
) -> tuple[dict, CompositorSessionSnapshot]:
    configs = {"prompt": {"prefix": "Answer.", "user": question}}
    async with compositor.enter(configs=configs, session_snapshot=stored) as run:
        run.suspend_on_exit()
        history, counting = run.get_layer("history", PydanticAIHistoryLayer), run.get_layer("turn", TurnLayer)
        agent = Agent(TestModel(), instructions=run.prompts, tools=run.tools)
        result = await agent.run(run.user_prompts, message_history=history.message_history)
        history.replace_messages(result.all_messages())
    asked = [
        piece
        for message in history.message_history
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
        for piece in part.content
    ]
    report = {
        "pid": os.getpid(),
        "entered": counting.entered,
        "turns": counting.runtime_state.turns,
        "messages": ModelMessagesTypeAdapter.dump_python(history.message_history, mode="json"),
        "asked": asked,
    }
    return report, run.session_snapshot


def main(question: str, file: Path) -> None:
    stored = CompositorSessionSnapshot.model_validate_json(file.read_bytes()) if file.exists() else None
    report, snapshot = asyncio.run(turn(question, stored))
    file.write_text(snapshot.model_dump_json(), encoding="utf-8")
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
