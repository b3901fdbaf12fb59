"""A real server on loopback, in a thread, with a folder of small scenarios."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from playground.web.app import create_app
from playground.web.server import Server, listen

SCENARIOS = {
    "asks": """
SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "maximum": 100}, "urgent": {"type": "boolean"}},
    "required": ["amount"],
}


def make(env):
    def draft(topic):
        return {"topic": topic, "amount": 40}

    def check(_, ctx):
        if not ctx.resumed:
            return wait_human("Pay?", {"amount": ctx.shared["amount"], "urgent": True}, schema=SCHEMA)
        answer = ctx.resume_value
        return f"{answer['approved']} {answer.get('amount')!r} {answer.get('comment')}"

    flow = Workflow().add("draft", draft).add("check", check, terminal=True)
    return flow.edge("draft", "check")
""",
    "wonders": """
def make(env):
    def ask(_, ctx):
        if not ctx.resumed:
            return wait_human("Which colour?", kind="input")
        return repr(ctx.resume_value)

    return Workflow().add("ask", ask)
""",
    "greets": """
def make(env):
    return Workflow().add("greet", lambda name: f"Hello, {name}!")
""",
    "sleeps": """
import asyncio


def make(env):
    return Workflow().add("nap", lambda _: asyncio.sleep(3600))
""",
    "fails": """
def make(env):
    def burn(_):
        raise ValueError("it is on fire")

    return Workflow().add("burn", burn)
""",
    "counts": """
def make(env):
    def count(_, ctx):
        n = (ctx.shared.get("n") or 0) + 1
        return go("count", n, n=n) if n < 20 else n

    return Workflow().add("count", count)
""",
    "notes": """
import asyncio


def make(env):
    async def note(count, ctx):
        for number in range(int(count)):
            await ctx.note("tick", number=number, pad="x" * 1000)
            await asyncio.sleep(0)
        return count

    return Workflow().add("note", note)
""",
    "pays": """
from playground import ToolCall, ToolRegistry


def pay(amount: int, to: str = "the shop") -> str:
    return f"{amount} to {to}"


def make(env):
    tools = ToolRegistry().function(pay, side_effect="write")
    return Agent("payer", model=env.model(ToolCall("pay", {"amount": 40}), "done"), registry=tools)
""",
    "expires": """
def make(env):
    def check(wait, ctx):
        if not ctx.resumed:
            late = {"approved": False, "comment": "nobody came"}
            return wait_human("Open?", kind="approval", expires_in=float(wait), default=late)
        return str(ctx.resume_value)

    return Workflow().add("check", check)
""",
    "talks": """
def make(env):
    return Agent("talker", model=env.model("One two three four five six."))
""",
}

HEAD = "from playground import Agent, Scenario, Workflow, go, wait_human\n"
FOOT = """

scenario = Scenario(
    key="{key}",
    title={{"en": "It {key}", "zh": "{key}"}},
    summary={{"en": "It {key}.", "zh": "{key}。"}},
    teaches={{"en": "One thing.", "zh": "一件事。"}},
    concepts=("approval",),
    default_input={{"en": "lamp", "zh": "灯"}},
    make=make,
)
"""


def write_scenario(folder: Path, key: str, body: str) -> Path:
    """Write a scenario file whose `make` is in `body`."""
    file = folder / f"{key}.py"
    file.write_text(HEAD + body + FOOT.format(key=key), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def scenario_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenarios above, and one file that does not load."""
    folder = tmp_path_factory.mktemp("scenarios")
    for key, body in SCENARIOS.items():
        write_scenario(folder, key, body)
    (folder / "broken.py").write_text("def make(:\n", encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Message:
    """One server-sent message; `id` is empty where it carried none, a comment has the name ":"."""

    event: str
    data: str
    id: str = ""

    @property
    def json(self) -> dict[str, object]:
        """Its data, which must be JSON."""
        return json.loads(self.data)


def messages(lines: Iterable[str]) -> Iterator[Message]:
    """The messages of an event stream, as the standard says to read them."""
    event, data, id_ = "", [], ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line.startswith(":"):
            yield Message(":", value)
        elif line:
            event = value if name == "event" else event
            id_ = value if name == "id" else id_
            data += [value] if name == "data" else []
        else:
            if data:
                yield Message(event, "\n".join(data), id_)
            event, data, id_ = "", [], ""


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines of a byte stream, cut at LF alone: a client must not cut where the text has other separators."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode("utf-8") for line in lines)


class Client(httpx2.Client):
    """A client of one server, in the words of its API."""

    def start(self, scenario: str, until: str = "", **body: object) -> str:
        """Start a run, wait until it is in a state, if one is named, and return its id."""
        made = self.post("/api/runs", json={"scenario": scenario, **body})
        assert made.status_code == 201, made.text
        run_id = made.json()["run_id"]
        if until:
            self.until(run_id, until)
        return run_id

    def until(self, run_id: str, state: str) -> dict[str, object]:
        """Wait until a run is in a state and at rest; return it.  "running" takes it as it is."""
        deadline = time.monotonic() + 20
        while True:
            run = self.get(f"/api/runs/{run_id}").json()
            if state == "running" or (run["state"] == state and not run["driven"]):
                return run
            assert time.monotonic() < deadline, f"the run is {run['state']}, not {state}: {run}"
            time.sleep(0.01)

    @contextmanager
    def stream_of(self, path: str, **headers: str) -> Iterator[Iterator[Message]]:
        """The messages of an event stream, as they come."""
        accept = {"accept": "text/event-stream"}
        with self.stream("GET", path, headers={**accept, **headers}) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            yield messages(lines_of(answer.iter_raw()))

    def told(self, run_id: str, query: str = "", **headers: str) -> list[Message]:
        """All messages of a run's event stream, up to its end."""
        with self.stream_of(f"/api/runs/{run_id}/events{query}", **headers) as found:
            return list(found)

    def answer(self, run_id: str, interrupt: str, **answer: object) -> httpx2.Response:
        """Answer one question."""
        return self.post(f"/api/runs/{run_id}/resume", json={"answers": {interrupt: answer}})

    def kinds(self, run_id: str) -> list[str]:
        """The kinds of a run's events."""
        return [event["kind"] for event in self.get(f"/api/runs/{run_id}/events").json()]


@contextmanager
def serving(**options: object) -> Iterator[Client]:
    """Serve an app on a free port of loopback while the block runs."""
    options.setdefault("pace", 0.0)
    server, listening = Server(create_app(**options)), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        host, port = listening.getsockname()
        with Client(base_url=f"http://{host}:{port}", timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(15)
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="module")
def client(scenario_folder: Path) -> Iterator[Client]:
    """A client of a server with the scenarios above, in memory."""
    with serving(store="memory:", scenarios=[scenario_folder]) as found:
        yield found
