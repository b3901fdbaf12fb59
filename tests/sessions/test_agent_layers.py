"""The layers that agents are made of, each in a real run that is paused and goes on in another process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from playground.sessions import Answer, Sessions, remembered
from tests.sessions.conftest import Opener

SCENARIO = """
import json
from pathlib import Path

from playground import InMemoryMemory, Layered, LlmReply, ModelLayer, Scenario, ToolCall, Workflow, agent_of
from playground import wait_human
from playground.agenton.compositor import Compositor, LayerNode, LayerProvider
from playground.runtime.skills import Skill, SkillRegistry
from playground.sessions.layers import ContextLayer, InstructionLayer, MemoryLayer, SkillsLayer, ToolsLayer

HEARD = Path(__file__).with_suffix(".heard")


class Listener:
    \"\"\"A model that opens a skill once, and writes down what it was told.\"\"\"

    async def chat(self, messages, *, tools=None, system=None, on_delta=None):
        names = [tool["function"]["name"] for tool in tools or ()]
        told = {"system": system, "shown": len(messages), "tools": names}
        with HEARD.open("a") as file:
            file.write(json.dumps(told) + "\\\\n")
        if "Use the skill" in system:
            return LlmReply("done")
        return LlmReply("", [ToolCall("open_skill", {"name": "tea"})])


class Known:
    async def recall(self, query, k=3):
        return "- no sugar"


class Opening:
    async def assemble(self, messages):
        return messages[:1]


def clock() -> str:
    \"\"\"Tell the time.\"\"\"
    return "noon"


def provided(layer_type, *args):
    return LayerProvider.from_factory(layer_type=layer_type, create=lambda _: layer_type(*args))


def build(env):
    skills = SkillRegistry().register(Skill("tea", "how tea is made", "Warm the pot first."))

    def flow(layers):
        def ask(_, ctx):
            return "and now?" if ctx.resumed else wait_human("On?")

        first, second = agent_of(layers, "first"), agent_of(layers, "second")
        plan = Workflow().add("first", first).add("ask", ask).add("second", second)
        return plan.edge("first", "ask").edge("ask", "second")

    nodes = [
        LayerNode("instruction", InstructionLayer),
        LayerNode("skills", provided(SkillsLayer, skills)),
        LayerNode("tools", provided(ToolsLayer, [clock])),
        LayerNode("memory", provided(MemoryLayer, Known())),
        LayerNode("context", provided(ContextLayer, Opening())),
        LayerNode("model", provided(ModelLayer, Listener())),
    ]
    return Layered(Compositor(nodes), flow, {"instruction": {"text": "Be brief."}})


scenario = Scenario(
    key="helper",
    title={"en": "Helper", "zh": "助手"},
    summary={"en": "It helps.", "zh": "它会帮忙。"},
    teaches={"en": "To help.", "zh": "帮忙。"},
    concepts=("layers",),
    default_input={"en": "Make tea.", "zh": "泡茶。"},
    make=build,
)
""".replace("\\\\n", "\\n")


@pytest.fixture
def heard(folder: Path) -> Path:
    """The scenario `helper`, and the file in which its model writes what it was told."""
    (folder / "helper.py").write_text(SCENARIO, encoding="utf-8")
    return folder / "helper.heard"


def told(heard: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in heard.read_text(encoding="utf-8").splitlines()]


async def rested(sessions: Sessions, run_id: str) -> None:
    async for _ in sessions.until_rest(run_id):
        pass


async def begun(opened: Opener) -> str:
    """A run of `helper` that waits between its two agents."""
    async with opened() as sessions:
        run_id = await sessions.start("helper")
        await rested(sessions, run_id)
        assert (await sessions.describe(run_id))["state"] == "suspended"
    return run_id


async def test_instruction_memory_tools_and_model_make_one_agent(opened: Opener, heard: Path) -> None:
    await begun(opened)

    first = told(heard)[0]
    assert str(first["system"]).startswith("Be brief.")
    assert str(first["system"]).endswith("Relevant memory:\n- no sugar")
    assert first["tools"] == ["open_skill", "clock"]


async def test_the_context_layer_chooses_what_the_model_is_shown(opened: Opener, heard: Path) -> None:
    await begun(opened)

    assert [thought["shown"] for thought in told(heard)] == [1, 1]


async def test_a_skill_that_is_opened_is_in_the_next_thought(opened: Opener, heard: Path) -> None:
    await begun(opened)

    before, after = (str(thought["system"]) for thought in told(heard))
    assert "- tea: how tea is made" in before
    assert "Warm the pot first." not in before
    assert "Warm the pot first." in after


async def test_an_opened_skill_is_open_after_a_restart(opened: Opener, heard: Path) -> None:
    run_id = await begun(opened)

    async with opened() as sessions:
        await sessions.answer(run_id, {"ask": Answer(approved=True)})
        await rested(sessions, run_id)
        states = remembered(await sessions.events(run_id))["states"]
    assert states["skills"] == {"opened": ["tea"]}  # type: ignore[index,call-overload]
    assert "Warm the pot first." in str(told(heard)[2]["system"])
    assert len(told(heard)) == 3


async def test_the_log_says_of_what_the_layers_are_and_what_each_gave(opened: Opener, heard: Path) -> None:
    run_id = await begun(opened)

    async with opened() as sessions:
        composition = remembered(await sessions.events(run_id))["composition"]
    assert [layer["name"] for layer in composition["layers"]] == [  # type: ignore[index,call-overload,union-attr]
        *("instruction", "skills", "tools", "memory", "context", "model")
    ]
    gave = [(part["layer"], part["text"]) for part in composition["tools"]]  # type: ignore[index,call-overload,union-attr]
    assert gave == [("skills", "open_skill"), ("tools", "clock")]
