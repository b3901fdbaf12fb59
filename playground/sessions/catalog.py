"""The catalog: scenario files, loaded by path, the bundled ones and a user's own alike.

A file is read again when it has changed, so that saving it is enough.  A file
that does not load is an entry too, with the reason: a broken scenario must not
take the others down, and must not just be absent.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from playground.runtime.scenario import Scenario
from playground.sessions.errors import Conflict, NotFound

_MODULES_OF_EXTRAS = {"mcp": "mcp", "openai": "httpx2", "pydantic-ai": "pydantic_ai"}


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
        self._places = [Path(place) for place in places]
        self._read: dict[Path, tuple[tuple[int, int], Entry]] = {}

    def entries(self) -> list[Entry]:
        """All of them, in order of folder and file name, as the files are now."""
        found: dict[str, Entry] = {}
        for path in self._paths():
            entry = self._entry(path)
            twin = found.get(entry.key)
            if twin is not None:
                entry = Entry(
                    key=f"{entry.key} ({path.name})",
                    path=path,
                    source=entry.source,
                    error=f"{path.name} and {twin.path.name} both define {entry.key!r}: rename one",
                )
            found[entry.key] = entry
        return list(found.values())

    def get(self, key: str) -> Entry:
        """The entry of that key.

        Raises:
            NotFound: there is none.
        """
        for entry in self.entries():
            if entry.key == key:
                return entry
        known = ", ".join(entry.key for entry in self.entries() if entry.scenario)
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

    def _paths(self) -> list[Path]:
        found: list[Path] = []
        for place in self._places:
            if place.is_dir():
                found.extend(sorted(p for p in place.glob("*.py") if not p.name.startswith("_")))
            else:
                found.append(place)
        return found

    def _entry(self, path: Path) -> Entry:
        try:
            stat = path.stat()
        except OSError as error:
            return Entry(path.stem, path, error=f"{path.name} cannot be read: {error.strerror}")
        stamp = stat.st_mtime_ns, stat.st_size
        read = self._read.get(path)
        if read is None or read[0] != stamp:
            read = self._read[path] = stamp, load(path)
        return read[1]


def load(path: Path) -> Entry:
    """Read one scenario file; whatever is wrong with it ends up in the entry."""
    source = ""
    try:
        source = path.read_text(encoding="utf-8")
        scenario = _scenario_in(path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's file may raise anything
        where = _line_of(error, path)
        reason = f"{path.name}{f', line {where}' if where else ''}: {type(error).__name__}: {error}"
        return Entry(path.stem, path, source, error=reason, trace=_trace(error, path))
    missing = tuple(
        extra for extra in scenario.requires if find_spec(_MODULES_OF_EXTRAS.get(extra, extra)) is None
    )
    return Entry(scenario.key, path, source, scenario, missing=missing)


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
    return "".join([*shown.format(), *traceback.format_exception_only(error)])[-8000:]
