"""A run as one file: its page with the log and the scrubber inside, to be opened anywhere and by anyone.

The file asks nobody for anything: styles, icons, scripts and the log are in
it.  It is the only page with inline script and style, so it names each by its
hash in a policy of its own; what the run says stays text there as well.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from markupsafe import Markup

from playground.kernel import Event, JsonObject, Plan, Run
from playground.kernel.values import dict_in
from playground.sessions import Sessions, stored_plan, writes_of
from playground.web import runviews, templating
from playground.web.i18n import Language
from playground.web.static import SHEET, content
from playground.web.story import Story
from playground.web.viewmodels import RunView

SCRIPTS = (
    "theme",
    "keys",
    "graph",
    "fade",
    "fold",
    "select",
    "ticks",
    "tabs",
    "filter",
    "size",
    "keepsake",
    "scrubber",
)
"""The files of `static/js` that a page without a server can use; who listens comes before who tells."""

LONGEST = 4000
"""How many characters of a channel's value are kept for each event that changes it."""


@dataclass(frozen=True, slots=True)
class Inline:
    """A script or a style inside of a page, and the hash by which the page's policy lets it in."""

    text: Markup
    hash: str


def keepsake(story: Story, sessions: Sessions, lang: Language) -> RunView:
    """What the file of a run shows: the page of the run as it stands, with all of its rows."""
    run = runviews.run_view(story, sessions, lang)
    return runviews.stretch(replace(run, chain=(), branches=()), story, 1, story.pos + 1)


def written(run: RunView, events: Sequence[Event], plan: Plan, lang: Language) -> str:
    """The file of a run, as HTML.

    Args:
        run: as `keepsake` returns it.
        events: all events of the run's tree.
        plan: what the state is folded with.
    """
    scripts = [inline(content(f"js/{name}.js").decode()) for name in SCRIPTS]
    style = inline(content(SHEET).decode())
    policy = [
        "default-src 'none'",
        f"script-src {' '.join(script.hash for script in scripts)}",
        f"style-src {style.hash}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    log = {
        "events": [[event.pos, event.run_id, event.seq, event.kind, event.data] for event in events],
        "states": states(plan, events, run.run_id),
    }
    return templating.page(
        "keepsake",
        lang,
        alone=True,
        run=run,
        policy="; ".join(policy),
        style=style,
        scripts=scripts,
        icons=Markup(content("icons.svg").decode()),  # noqa: S704 - our own file
        log=data(log),
    )


def states(plan: Plan, events: Sequence[Event], root: str) -> list[tuple[int, str, dict[str, str]]]:
    """For each event that changes a run's state, the changed channels as text, cut where they get long."""
    runs, found = {root: Run(plan, root)}, []
    for event in events:
        if event.run_id not in runs:
            runs[event.run_id] = Run(stored_plan(events, event.run_id), event.run_id)
        run = runs[event.run_id]
        run.apply(event)
        changed = _changed(event)
        if changed:
            shown = {name: templating.brief(run.shared.get(name), LONGEST) for name in changed}
            found.append((event.pos, event.run_id, shown))
    return found


def _changed(event: Event) -> JsonObject:
    return dict_in(event.data, "shared") if event.kind == "run_started" else writes_of(event.kind, event.data)


def inline(text: str) -> Inline:
    """A script or a style of ours as it stands inside of a page."""
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return Inline(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - our own file


def data(value: object) -> Markup:
    """Data for a page's script: JSON in which nothing can end the element that holds it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - no `<` is left in it
