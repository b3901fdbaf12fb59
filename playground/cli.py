"""The command line: the same sessions as in the browser, from a terminal.

    playground                          serve the playground
    playground run trader --approve     run a scenario here
    playground runs                     list the runs of a store

Exit codes: 0 completed, 1 failed, 2 wrong use or a store that cannot be opened,
3 waiting for an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playground import assets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playground.kernel import Event, JsonObject, JsonValue
    from playground.sessions import Answer, Sessions

COMPLETED, FAILED, USAGE, SUSPENDED = 0, 1, 2, 3

DEFAULT_STORE = "sqlite:.playground/runs.db"


class UsageError(Exception):
    """What the user asked for cannot be done; `str()` is the line to print."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.command is None:
        args = parser.parse_args(["serve", *(argv if argv is not None else sys.argv[1:])])
    try:
        return _done(args)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _say_nothing_more()
        place = error.filename or "standard output"
        print(f"playground: {place} cannot be used: {error.strerror}; choose another place", file=sys.stderr)
        return USAGE


def _done(args: argparse.Namespace) -> int:
    from playground.kernel.eventlog import LogError
    from playground.sessions.errors import Invalid, SessionError

    command: Callable[[argparse.Namespace], int] = args.do
    try:
        return command(args)
    except (UsageError, SessionError, LogError) as error:
        wrong = error.errors if isinstance(error, Invalid) else {}
        where = "".join(f"; {path or 'as a whole'}: {why}" for path, why in wrong.items())
        print(f"playground: {error}{where}", file=sys.stderr)
        return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="playground", description="A visual playground for agents: watch, decide, go back in time."
    )
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, do: Callable[[argparse.Namespace], int], help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        added.add_argument(
            "--store",
            default=DEFAULT_STORE,
            metavar="URL",
            help="memory:, sqlite:PATH or file:DIR (%(default)s)",
        )
        added.add_argument(
            "--scenarios",
            action="append",
            default=[],
            metavar="DIR",
            help="a folder or file of your own scenarios",
        )
        added.set_defaults(command=name, do=do)
        return added

    serve = command(
        "serve", _serve, "serve the playground in the browser; this is what a bare `playground` does"
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    serve.add_argument("--port", type=int, default=8000, help="port to listen on (%(default)s)")
    serve.add_argument("--open", action="store_true", help="open the browser too")
    serve.add_argument("--no-recover", action="store_true", help="leave runs of a dead server as they are")

    run = command("run", _run, "run a scenario here")
    run.add_argument("key", metavar="KEY", help="the scenario")
    run.add_argument("--input", metavar="TEXT", help="its input: text, or JSON where it takes fields")
    run.add_argument(
        "--lang", choices=("en", "zh"), default="en", help="language of the scenario (%(default)s)"
    )
    _verdicts(run)
    _as_json(run)

    resume = command("resume", _resume, "answer what a run waits for, and go on")
    resume.add_argument("run_id", metavar="RUN_ID")
    _verdicts(resume, answer=True)
    _as_json(resume)

    runs = command("runs", _runs, "list the runs of a store")
    runs.add_argument("--state", choices=("running", "suspended", "completed", "failed"))
    _as_json(runs)

    show = command("show", _show, "show where a run stands, or stood")
    show.add_argument("run_id", metavar="RUN_ID")
    show.add_argument("--at", type=int, metavar="POS", help="as of this position of its events")
    _as_json(show)

    export = command("export", _export, "write a run to standard output, as JSON Lines or as a test")
    export.add_argument("run_id", metavar="RUN_ID")
    export.add_argument(
        "--test", action="store_true", help="as a pytest file that plays the run again and compares"
    )

    imported = command("import", _import, "take up a run that was exported")
    imported.add_argument("file", metavar="FILE", help="what `export` wrote; - for standard input")

    new = command("new", _new, "write a scenario file to start from")
    new.add_argument("name", metavar="NAME", help="name of the scenario: letters, digits and _")
    return parser


def _as_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def _verdicts(parser: argparse.ArgumentParser, *, answer: bool = False) -> None:
    group = parser.add_mutually_exclusive_group(required=answer)
    group.add_argument("--approve", action="store_true", help="approve whatever is asked")
    group.add_argument("--reject", action="store_true", help="reject whatever is asked")
    if answer:
        group.add_argument("--answer", metavar="JSON", help="the answer, or answers by interrupt id")
    else:
        group.add_argument("--ask", action="store_true", help="ask here, on the terminal")


# Commands.


def _serve(args: argparse.Namespace) -> int:
    from playground.web.server import serve

    serve(
        host=args.host,
        port=args.port,
        store_url=args.store,
        scenario_places=places(args.scenarios),
        open_browser=args.open,
        recover=not args.no_recover,
    )
    return COMPLETED


def _run(args: argparse.Namespace) -> int:
    async def run() -> int:
        async with _sessions(args) as sessions:
            given = _given(sessions, args.key, args.input)
            run_id = await sessions.start(args.key, given, lang=args.lang)
            return await _to_the_end(sessions, run_id, args)

    return asyncio.run(run())


def _resume(args: argparse.Namespace) -> int:
    async def resume() -> int:
        async with _sessions(args) as sessions:
            described = await sessions.describe(args.run_id)
            after = described["last_event_id"]
            open_ids = [str(asked["id"]) for asked in _asked(described)]
            answers = _answers(args, open_ids) if open_ids else {}
            await sessions.answer(args.run_id, answers, via="cli")
            return await _to_the_end(sessions, args.run_id, args, after if isinstance(after, int) else 0)

    return asyncio.run(resume())


def _runs(args: argparse.Namespace) -> int:
    async def runs() -> int:
        async with _sessions(args) as sessions:
            cursor: str | None = None
            while True:
                records, cursor = await sessions.find(state=args.state, limit=200, cursor=cursor)
                for record in records:
                    if args.json:
                        _say_json(sessions.row(record))
                    else:
                        task = _on_one_line(record.task)[:60]
                        _say(f"{record.run_id}  {record.state:<9}  {record.scenario:<18}  {task}")
                if cursor is None:
                    return COMPLETED

    return asyncio.run(runs())


def _show(args: argparse.Namespace) -> int:
    async def show() -> int:
        async with _sessions(args) as sessions:
            seen = await sessions.portrait(args.run_id, args.at)
            if args.json:
                _say_json(seen.to_json())
                return COMPLETED
            for event in await sessions.events(args.run_id):
                if event.pos <= seen.at:
                    _say(_line(event))
            return COMPLETED

    return asyncio.run(show())


def _export(args: argparse.Namespace) -> int:
    async def export() -> int:
        from playground.sessions import saved_test

        async with _sessions(args) as sessions:
            if args.test:
                _say((await saved_test(sessions, args.run_id)).removesuffix("\n"))
                return COMPLETED
            for line in await sessions.export(args.run_id):
                _say_json(line)
            return COMPLETED

    return asyncio.run(export())


def _import(args: argparse.Namespace) -> int:
    try:
        given = open(0 if args.file == "-" else args.file, "rb", closefd=args.file != "-")  # noqa: SIM115
        with given:
            text = given.read().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{args.file} cannot be read: {error.strerror}; name what `export` wrote") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{args.file} is not UTF-8 at byte {error.start}: export the run again") from error

    async def take_in() -> int:
        async with _sessions(args) as sessions:
            _say(await sessions.take_in(text.split("\n")))
            return COMPLETED

    return asyncio.run(take_in())


def _new(args: argparse.Namespace) -> int:
    name = str(args.name)
    if not name.isidentifier() or name.startswith("_"):
        raise UsageError(f"{name!r} is not a name for a scenario: use letters, digits and _, a letter first")
    path = Path(f"{name}.py")
    if path.exists():
        raise UsageError(f"{path} is there already: choose another name, or remove it")
    path.write_text(_NEW.replace("NAME", name), encoding="utf-8")
    _say(f"{path} is a scenario to start from; see it with: playground serve --scenarios {path}")
    return COMPLETED


# What commands share.


def places(given: Iterable[str]) -> list[Path]:
    """Where scenarios are: the user's places first, then the bundled ones.

    Raises:
        UsageError: a place does not exist.
    """
    own = [Path(place) for place in given]
    for place in own:
        if not place.exists():
            raise UsageError(f"--scenarios {place}: there is no such folder or file")
    return [*own, assets.path("scenarios")]


@asynccontextmanager
async def _sessions(args: argparse.Namespace) -> AsyncIterator[Sessions]:
    from playground.backends import open_store
    from playground.sessions import Catalog, Sessions

    sessions = Sessions(open_store(args.store), Catalog(places(args.scenarios)))
    await sessions.open(recover=False)
    try:
        yield sessions
    finally:
        await sessions.close()


def _given(sessions: Sessions, key: str, text: str | None) -> JsonValue:
    if text is None or sessions.catalog.scenario(key).input_schema is None:
        return text
    try:
        parsed: JsonValue = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--input: scenario {key!r} takes fields, as JSON: {error}") from error
    return parsed


def _answers(args: argparse.Namespace, ids: Sequence[str]) -> dict[str, Answer]:
    from playground.sessions import Answer

    if args.approve or args.reject:
        return {id: Answer(approved=bool(args.approve)) for id in ids}
    try:
        value = json.loads(args.answer)
    except ValueError as error:
        raise UsageError(f"--answer is not JSON: {error}") from error
    if isinstance(value, dict) and not set(ids).isdisjoint(value):
        return {id: Answer.of(found) for id, found in value.items()}
    if len(ids) > 1:
        raise UsageError(f"the run waits for {', '.join(ids)}: answer with an object by interrupt id")
    return {ids[0]: Answer.of(value)}


async def _to_the_end(sessions: Sessions, run_id: str, args: argparse.Namespace, after: int = 0) -> int:
    """Print what happens until the run has ended or waits for an answer that nobody here gives."""
    from playground.sessions import Answer, event_json

    while True:
        async for told in sessions.until_rest(run_id, after):
            after = told.pos
            if args.json:
                _say_json(event_json(told))
            else:
                _say(_line(told))
        described = await sessions.describe(run_id)
        state = described["state"]
        if state == "completed":
            if not args.json:
                _say(f"\n{_shown(described['output'])}")
            return COMPLETED
        if state == "failed":
            if not args.json:
                print(f"\nplayground: {described['error']}", file=sys.stderr)
            return FAILED
        asked = _asked(described)
        answers: dict[str, Answer] = {}
        if getattr(args, "ask", False):
            typed = {str(item["id"]): _ask_here(item) for item in asked}
            answers = {id: answer for id, answer in typed.items() if answer is not None}
        elif args.approve or args.reject:
            answers = {str(item["id"]): Answer(approved=bool(args.approve)) for item in asked}
        if not answers:
            if not args.json:
                _say(f"\nrun {run_id} waits for {', '.join(str(item['id']) for item in asked)}")
            return SUSPENDED
        await sessions.answer(run_id, answers, via="cli")


def _asked(described: JsonObject) -> list[JsonObject]:
    asked = described["interrupts"]
    return [item for item in asked if isinstance(item, dict)] if isinstance(asked, list) else []


def _ask_here(asked: JsonObject) -> Answer | None:
    """What a person at the terminal answers; None: there is nobody."""
    from playground.sessions import Answer

    print(f"\n{asked['question'] or asked['id']}\n{_shown(asked['payload'])}", file=sys.stderr)
    if asked["kind"] == "input":
        text = _typed("answer: ")
        return None if text is None else Answer(value=_as_asked(text, asked["schema"]), has_value=True)
    while (reply := _typed("[a]pprove or [r]eject? ")) is not None:
        if reply.strip().lower() in ("a", "r"):
            return Answer(approved=reply.strip().lower() == "a")
    return None


def _typed(prompt: str) -> str | None:
    """A line from the terminal; None at its end.  Standard output is left to what is told of the run."""
    print(prompt, end="", file=sys.stderr, flush=True)
    try:
        return input()
    except (EOFError, RuntimeError):  # the end, or no standard input at all
        return None


def _as_asked(text: str, schema: JsonValue) -> JsonValue:
    """A typed answer: text, or JSON where the schema asks for something else and that is what was typed."""
    if not isinstance(schema, dict) or schema.get("type", "string") == "string":
        return text
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def _line(event: Event) -> str:
    depth = event.run_id.count("~")
    node = event.data.get("node") or ""
    told = {key: value for key, value in event.data.items() if key in _TOLD}
    shown = " ".join(_shown(value) for value in told.values() if value not in (None, "", {}, []))
    return _on_one_line(f"{event.pos:>5}  {'  ' * depth}{event.kind:<16} {node} {shown}".rstrip()[:160])


def _on_one_line(text: str) -> str:
    """Text without what would break the line, or steer the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


_TOLD = ("question", "value", "delta", "goto", "send", "outcome", "text", "output", "error", "reason")


def _shown(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _say(text: str) -> None:
    """Print a line at once; where nobody reads any more the work goes on: a run outlives its viewers."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _say_nothing_more()


def _say_nothing_more() -> None:
    """Let standard output lead nowhere, so that what is still kept for it does no harm at the end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say_json(value: JsonValue) -> None:
    _say(json.dumps(value, ensure_ascii=False))


_NEW = '''"""NAME: say in a sentence what this run shows."""

from playground import Scenario, Workflow, wait_human


def draft(topic, ctx):
    return {"text": f"A few words about {topic}."}


def check(_, ctx):
    if not ctx.resumed:
        return wait_human("Publish it?", {"text": ctx.shared["text"]})
    return "published" if ctx.resume_value["approved"] else "thrown away"


def build(env):
    return Workflow().add("draft", draft).add("check", check, terminal=True).edge("draft", "check")


scenario = Scenario(
    key="NAME",
    title={"en": "NAME", "zh": "NAME"},
    summary={"en": "A draft that a person checks.", "zh": "一份由人审核的草稿。"},
    teaches={"en": "How a step waits for a person.", "zh": "一个步骤如何等待人。"},
    concepts=("interrupt",),
    default_input={"en": "the sea", "zh": "大海"},
    make=build,
)
'''
