"""Models inside whole runs: the script over a restart, and the real client where the script was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from playground import Agent, ScriptedLlm, ToolCall
from playground.kernel.eventlog import InMemoryEventLog, InMemoryStore
from playground.kernel.ports import LlmPort
from playground.kernel.values import JsonObject
from playground.runtime.openai_lite import OpenAICompatibleLlm
from tests.runtime.protocol_server import Answer, Request, calling, saying, served, speaking


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


SCRIPT = [
    ToolCall("add", {"a": 1, "b": 2}),
    [ToolCall("add", {"a": 3, "b": 3}), ToolCall("add", {"a": 3, "b": 4})],
    "3, 6 and 7",
]


async def test_a_run_that_goes_on_with_new_objects_hears_the_rest_of_the_script() -> None:
    store, log = InMemoryStore(), InMemoryEventLog()
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return "paid"

    def agent() -> Agent:
        script = [ToolCall("add", {"a": 1, "b": 2}), ToolCall("pay", {"amount": 3}), "paid 3"]
        made = Agent("payer", model=ScriptedLlm(script), tools=[add], store=store, eventlog=log)
        return made.add_tool(pay, side_effect="write")

    waiting = await agent().run("pay the sum")
    assert (waiting.status, paid) == ("suspended", [])
    done = await agent().resume(waiting.run_id, {"approved": True})
    assert (done.output, paid) == ("paid 3", [3])


async def test_a_second_turn_of_a_conversation_goes_on_in_the_script() -> None:
    agent = Agent("greeter", model=ScriptedLlm(["hello", "goodbye"]))
    first = await agent.run("hi")
    second = await agent.run("bye", history=first.messages)
    assert (first.output, second.output) == ("hello", "goodbye")


@contextmanager
def real(script: list[object]) -> Iterator[LlmPort]:
    with served(speaking(script)) as address:
        yield OpenAICompatibleLlm(base_url=address)


async def test_an_agent_does_the_same_on_a_real_service_as_on_a_script() -> None:
    scripted = await Agent("a", model=ScriptedLlm(SCRIPT), tools=[add]).run("add")
    with real([*SCRIPT]) as model:
        served_run = await Agent("a", model=model, tools=[add]).run("add")
    assert served_run.output == scripted.output == "3, 6 and 7"
    assert served_run.messages == scripted.messages


class Service:
    """Gives one answer after the other, and keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        return self._answers.pop(0)

    def results(self) -> list[JsonObject]:
        """The tool results in the last request."""
        return [message for message in self.requests[-1].messages if message["role"] == "tool"]


def asking_for(text: str, *, finish: str = "tool_calls") -> Answer:
    return calling({"index": 0, "id": "c1", "function": {"name": "square", "arguments": text}}, finish=finish)


class Squares:
    """A tool that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def agent(self, address: str) -> Agent:
        def square(a: int) -> int:
            """The square of a number."""
            self.calls += 1
            return a * a

        return Agent("a", model=OpenAICompatibleLlm(base_url=address, retries=0), tools=[square])


@pytest.mark.parametrize("text", ['{"a":', "null", "[1]", '"x"', '{"a":1}{"a":2}', ""])
async def test_unreadable_arguments_never_call_the_tool_and_the_model_is_told(text: str) -> None:
    """Case D32."""
    service, squares = Service(asking_for(text), saying("sorry")), Squares()
    with served(service) as address:
        result = await squares.agent(address).run("go")
    assert (result.output, squares.calls) == ("sorry", 0)
    [told] = service.results()
    assert "'square' was not called" in str(told["content"])
    assert text in str(told["content"])


async def test_no_text_at_all_is_a_normal_call_of_a_tool_without_parameters() -> None:
    """Case D32, the last part."""

    def now() -> str:
        """The time."""
        return "noon"

    call: JsonObject = {"index": 0, "id": "c1", "function": {"name": "now", "arguments": ""}}
    service = Service(calling(call), saying("it is noon"))
    with served(service) as address:
        agent = Agent("a", model=OpenAICompatibleLlm(base_url=address), tools=[now])
        assert (await agent.run("go")).output == "it is noon"
    assert [told["content"] for told in service.results()] == ["noon"]


async def test_a_call_that_is_cut_off_is_not_run_and_the_model_can_mend_it() -> None:
    """Case D19."""
    service = Service(asking_for('{"a": 1', finish="length"), asking_for('{"a": 3}'), saying("9"))
    squares = Squares()
    with served(service) as address:
        result = await squares.agent(address).run("go")
    assert (result.output, squares.calls) == ("9", 1)
    assert "cut off" in str(service.requests[1].messages[-1]["content"])


async def test_calls_that_are_cut_off_again_and_again_end_the_run() -> None:
    """Case D19: repeated failure stops."""
    service, squares = Service(*[asking_for('{"a": 1', finish="length")] * 9), Squares()
    with served(service) as address:
        result = await squares.agent(address).run("go")
    assert (result.status, squares.calls) == ("failed", 0)
    assert len(service.requests) == 3
