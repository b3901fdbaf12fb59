"""The catalog: scenario files, loaded by path, the bundled ones and a user's own alike.

A file is read again when it has changed, so that saving it is enough.  A file
that does not load is an entry too, with the reason: a broken scenario must not
take the others down, and must not just be absent.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from playground.kernel.body import error_text
from playground.runtime.scenario import Scenario
from playground.sessions.errors import Conflict, NotFound

_MODULES_OF_EXTRAS = {"mcp": "mcp", "openai": "httpx2", "pydantic-ai": "pydantic_ai"}

_Stamp: TypeAlias = tuple[int, int] | str
"""When a file was changed and how large it is; or why it cannot be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One scenario file.

    Attributes:
        key: name of the scenario, or of the file where there is none.
        path: where it is.
        source: its text.
        scenario: what it defines; None if it does not load.
        error: why it does not load, in one sentence; `trace` is the whole story.
        missing: extras that it needs and that are not installed.
    """

    key: str
    path: Path
    source: str = ""
    scenario: Scenario | None = None
    error: str = ""
    trace: str = ""
    missing: tuple[str, ...] = ()


class Catalog:
    """The scenarios in some folders or files.

    Args:
        places: folders of scenario files, or single files; the first to define a key has it.
    """

    def __init__(self, places: Iterable[Path]) -> None:
        self._places = [Path(place).absolute() for place in places]
        self._read: dict[str, tuple[_Stamp, Entry]] = {}
        self._files: dict[str, _Stamp] = {}
        self._entries: dict[str, Entry] = {}

    def entries(self) -> list[Entry]:
        """All of them, in order of folder and file name, as the files are now."""
        return list(self._known().values())

    def get(self, key: str) -> Entry:
        """The entry of that key; the same object as long as no file has changed.

        Raises:
            NotFound: there is none.
        """
        entries = self._known()
        if key in entries:
            return entries[key]
        known = ", ".join(entry.key for entry in entries.values() if entry.scenario)
        raise NotFound(f"there is no scenario {key!r}; there are {known or 'none'}")

    def scenario(self, key: str) -> Scenario:
        """The scenario of that key, ready to be run.

        Raises:
            NotFound: there is none.
            Conflict: its file does not load, or an extra that it needs is missing.
        """
        entry = self.get(key)
        if entry.scenario is None:
            raise Conflict(f"scenario {key!r} does not load: {entry.error}")
        if entry.missing:
            extras = ", ".join(entry.missing)
            raise Conflict(f"scenario {key!r} needs the extra {extras}: install agent-playground[{extras}]")
        return entry.scenario

    def _known(self) -> dict[str, Entry]:
        """The entries by key, put together anew when a file has come, gone or changed."""
        files = self._stamped()
        if files != self._files:
            found: dict[str, Entry] = {}
            for path, stamp in files.items():
                entry = self._entry(path, stamp)
                twin = found.get(entry.key)
                if twin is not None:
                    entry = _second(entry, twin)
                found[entry.key] = entry
            folders = groupby(found.values(), lambda entry: entry.path.parent)
            ordered = [entry for _, inside in folders for entry in sorted(inside, key=_order)]
            self._files, self._entries = files, {entry.key: entry for entry in ordered}
        return self._entries

    def _stamped(self) -> dict[str, _Stamp]:
        """The scenario files that there are, in order; every request asks, so a folder is read in one go."""
        found: dict[str, _Stamp] = {}
        for place in self._places:
            try:
                with os.scandir(place) as listed:
                    inside = [file for file in listed if file.name.endswith(".py") and file.name[0] != "_"]
            except OSError:
                found[str(place)] = _stamp(place)
            else:
                found.update((file.path, _stamp(file)) for file in sorted(inside, key=lambda f: f.name))
        return found

    def _entry(self, file: str, stamp: _Stamp) -> Entry:
        path = Path(file)
        if isinstance(stamp, str):
            return Entry(path.stem, path, error=f"{path.name} cannot be read: {stamp}")
        read = self._read.get(file)
        if read is None or read[0] != stamp:
            read = self._read[file] = stamp, load(path)
        return read[1]


def _stamp(file: os.DirEntry[str] | Path) -> _Stamp:
    try:
        stat = file.stat()
    except OSError as error:
        return error.strerror or type(error).__name__
    return stat.st_mtime_ns, stat.st_size


def _order(entry: Entry) -> int:
    return entry.scenario.order if entry.scenario else 0


def _second(entry: Entry, twin: Entry) -> Entry:
    """What stands for a file whose key another one has taken."""
    name = entry.path.name
    why = f"{name} and {twin.path.name} both define {entry.key!r}: rename one"
    return Entry(f"{entry.key} ({name})", entry.path, entry.source, error=why)


def load(path: Path) -> Entry:
    """Read one scenario file; whatever is wrong with it ends up in the entry."""
    source = ""
    try:
        source = path.read_text(encoding="utf-8")
        scenario = _scenario_in(path)
        missing = tuple(extra for extra in scenario.requires if not _is_there(extra))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's file may raise anything
        where = _line_of(error, path)
        reason = f"{path.name}{f', line {where}' if where else ''}: {error_text(error)}"
        return Entry(path.stem, path, source, error=reason, trace=_trace(error, path))
    return Entry(scenario.key, path, source, scenario, missing=missing)


def _is_there(extra: str) -> bool:
    try:
        return find_spec(_MODULES_OF_EXTRAS.get(extra, extra)) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False


def _scenario_in(path: Path) -> Scenario:
    name = f"playground_scenario_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python file: give it the ending .py")
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        raise
    found = getattr(module, "scenario", None)
    if not isinstance(found, Scenario):
        raise TypeError("it sets no scenario: end it with scenario = Scenario(...)")
    return found


def _line_of(error: BaseException, path: Path) -> int | None:
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return error.lineno
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return lines[-1] if lines else None


def _trace(error: BaseException, path: Path) -> str:
    """The traceback from the scenario's own file on: what lies above it is our machinery."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [index for index, frame in enumerate(frames) if frame.filename == str(path)]
    shown = traceback.StackSummary.from_list(frames[own[0] :] if own else [])
    for frame in shown:
        frame.filename = Path(frame.filename).name
    text = "".join([*shown.format(), *traceback.format_exception_only(error)])[-8000:]
    return text.encode("utf-8", "replace").decode()
