"""Scenarios as they are built: anew for each run, and once to be looked at."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from playground.backends import Documents
from playground.kernel import ChildSpec, Event, JsonObject, LlmPort, Plan, root_of
from playground.kernel.body import error_text
from playground.kernel.scheduler import child_spec
from playground.runtime.scenario import Scenario, ScenarioEnv, Staged
from playground.sessions.catalog import Catalog
from playground.sessions.errors import Conflict, NotFound

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sketch:
    """A scenario as it was built to be looked at, and what it was built from."""

    scenario: Scenario
    model: LlmPort | None
    plan: Plan
    staged: bool


class Blueprints:
    """Builds the scenarios of a catalog.

    Args:
        catalog: the scenarios.
        documents: what outlives runs, such as memories.
        pace: seconds between two pieces of a scripted text.

    Attributes:
        model: plays every scripted part of what is built from now on; None: the environment says which does.
    """

    def __init__(self, catalog: Catalog, documents: Documents, pace: float) -> None:
        self.model: LlmPort | None = None
        self._catalog = catalog
        self._documents = documents
        self._pace = pace
        self._sketches: dict[tuple[str, str], Sketch] = {}

    def build(self, scenario: Scenario, lang: str) -> ChildSpec | Staged:
        """A scenario with all that it needs to run.

        Raises:
            Conflict: its `make` raised, or gave what cannot be run.
        """
        entry = self._catalog.get(scenario.key)
        env = ScenarioEnv.from_environ(
            lang,
            pace=self._pace,
            documents=self._documents,
            files=entry.path.parent / entry.path.stem,
            real=self.model,
        )
        try:
            made = scenario.build(lang, env)
            return made if isinstance(made, Staged) else child_spec(made)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a user's build function may raise anything
            raise Conflict(f"scenario {scenario.key!r} cannot be built: {error_text(error)}") from error

    def sketch(self, scenario: Scenario, lang: str) -> Sketch:
        """A scenario with nothing set up to run it; built once, as no plan changes after that."""
        known = self._sketches.get((scenario.key, lang))
        if known is None or known.scenario is not scenario or known.model is not self.model:
            made = self.build(scenario, lang)
            staged = isinstance(made, Staged)
            plan = made.sketch() if isinstance(made, Staged) else made.plan
            known = self._sketches[scenario.key, lang] = Sketch(scenario, self.model, plan, staged)
        return known

    def plan(self, key: str, lang: str = "en") -> Plan:
        """The plan of a scenario.

        Raises:
            NotFound: no such scenario.
            Conflict: it does not load, or its plan cannot be built.
        """
        scenario = self._catalog.scenario(key)
        try:
            return self.sketch(scenario, lang).plan
        except Conflict:
            raise
        except Exception as error:
            raise Conflict(f"scenario {key!r} cannot be built: {error_text(error)}") from error

    def plan_of(self, events: Sequence[Event], run_id: str) -> Plan | None:
        """The plan that a tree was run with; None for a child run, or where the scenario is gone."""
        if run_id != root_of(run_id):
            return None
        meta = events[0].data.get("meta")
        key = meta.get("scenario") if isinstance(meta, dict) else None
        try:
            scenario = self._catalog.scenario(str(key))
            return self.sketch(scenario, str(cast("JsonObject", meta).get("lang", "en"))).plan
        except (NotFound, Conflict):
            return None
        except Exception:  # noqa: BLE001 - a user's build function may raise anything
            _log.exception("scenario %r cannot be built; its runs are shown from their logs", key)
            return None

    def is_staged(self, key: str, lang: str = "en") -> bool:
        """Whether a scenario sets up things around its runs, such as layers; False where it is gone."""
        try:
            return self.sketch(self._catalog.scenario(key), lang).staged
        except Exception:  # noqa: BLE001 - a user's build function may raise anything; `plan_of` tells
            return False
