"""Every scenario on a real model service: three environment variables are set, and nothing else changes.

The service speaks HTTP and server-sent events on the loopback.  It has heard each
scenario played by its script, and says the same to the same question; to any other it answers
with an error, so a client that asks differently fails its test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from playground import ScenarioEnv
from playground.kernel import JsonObject, JsonValue, LlmPort, LlmReply, Message
from playground.runtime.llm import ScriptedLlm, ScriptEntry
from playground.runtime.openai_wire import wire_messages
from tests.runtime.protocol_server import Answer, Request, answer_of, respond, served, what_is_wrong_with
from tests.scenarios.stage import FOLDER, KEYS, play_in_sessions

KEY, MODEL = "sk-of-the-test", "house-model"


class Heard:
    """What a script said to which question; as a service, it says so again.

    Attributes:
        replies: by the question, as it goes over the wire.
        requests: what the service was asked.
    """

    def __init__(self) -> None:
        self.replies: dict[str, LlmReply] = {}
        self.requests: list[Request] = []

    def listen(self, *script: ScriptEntry) -> LlmPort:
        """A model that plays `script` and is overheard."""
        return _Overheard(ScriptedLlm(script), self)

    def note(self, messages: Sequence[Message], system: str | None, reply: LlmReply) -> LlmReply:
        self.replies[_question(wire_messages(messages, system))] = reply
        return reply

    async def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        complaint = what_is_wrong_with(request.body)
        reply = self.replies.get(_question(request.body["messages"]))
        if reply is None or complaint:
            return respond(400, {"error": {"message": complaint or "nobody has asked this before"}})
        return answer_of(reply, bool(request.body.get("stream")))


class _Overheard:
    def __init__(self, script: ScriptedLlm, heard: Heard) -> None:
        self._script = script
        self._heard = heard

    async def chat(
        self, messages: Sequence[Message], *, system: str | None = None, **about: object
    ) -> LlmReply:
        return self._heard.note(messages, system, await self._script.chat(messages))

    async def chat_at(
        self, turn: int, messages: Sequence[Message], *, system: str | None = None, **about: object
    ) -> LlmReply:
        return self._heard.note(messages, system, await self._script.chat_at(turn, messages))


def _question(wire: JsonValue) -> str:
    return json.dumps(wire, sort_keys=True)


@contextmanager
def configured(heard: Heard) -> Iterator[dict[str, str]]:
    """A service that has listened, and the three variables that lead to it."""
    with served(heard) as address:
        yield {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address, "OPENAI_MODEL": MODEL}


async def scripted(key: str, lang: str, heard: Heard, approved: bool, url: str) -> JsonObject:
    """Play a scenario by its script, overheard."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScenarioEnv, "model", lambda _env, *script: heard.listen(*script))
        told, _ = await play_in_sessions(key, url, approved=approved, lang=lang)
    return told


@pytest.mark.parametrize(("lang", "approved"), [("en", True), ("zh", False)])
@pytest.mark.parametrize("key", KEYS)
async def test_it_ends_the_same_on_a_real_service_that_three_variables_lead_to(
    key: str, lang: str, approved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    expected = await scripted(key, lang, heard, approved, f"sqlite:{tmp_path / 'script.db'}")

    with configured(heard) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        url = f"sqlite:{tmp_path / 'real.db'}"
        told, events = await play_in_sessions(key, url, approved=approved, lang=lang)

    assert (told["state"], told["output"]) == (expected["state"], expected["output"])
    asked = [request.body for request in heard.requests]
    assert bool(asked) == bool(heard.replies)
    assert {body["model"] for body in asked} <= {MODEL}
    assert {request.headers["authorization"] for request in heard.requests} <= {f"Bearer {KEY}"}
    calls = sum(event.kind == "model_returned" for event in events)
    assert len(asked) >= calls


def run_on_the_command_line(key: str, variables: dict[str, str], folder: Path) -> list[JsonObject]:
    """The events of a run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "playground", "run", key, "--json"],
        cwd=folder,
        env={**variables, "PYTHONPATH": str(FOLDER.parent), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def test_the_command_line_takes_the_same_three_variables(tmp_path: Path) -> None:
    heard = Heard()
    expected = await scripted("react_demo", "en", heard, True, f"sqlite:{tmp_path / 'script.db'}")
    with configured(heard) as variables:
        events = run_on_the_command_line("react_demo", variables, tmp_path)
    assert events[-1]["data"]["output"] == expected["output"]  # type: ignore[index,call-overload]
    assert len(heard.requests) == 2
