"""The addresses of the pages, built in one place.

Templates and routes both ask here, so a link can never name a page that is
not there.  Each part of an address is escaped: ids of parked steps hold `/`,
and a scenario's key may be any file name.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

HOME = "/"
RUNS = "/runs"
IMPORT = "/api/runs/import"
WAITING = "/waiting"
MODEL = "/model"
SAMPLE = "/sample"


def static(name: str) -> str:
    """A file of `static/`, such as `css/base.css`."""
    return f"/static/{name}"


def scenario(key: str) -> str:
    """The page of one scenario."""
    return f"/scenarios/{quote(key, safe='')}"


def home(**query: str | None) -> str:
    """The picker, perhaps with `q`."""
    return _with(HOME, query)


def runs(**query: str | None) -> str:
    """The list of runs; `state`, `scenario`, `q` and `cursor` narrow it. Posting here starts a run."""
    return _with(RUNS, query)


def run(run_id: str) -> str:
    """The page of one run."""
    return f"/runs/{quote(run_id, safe='~')}"


def live(run_id: str, after: int) -> str:
    """The stream of page fragments of a run, from the event after position `after`."""
    return f"{run(run_id)}/live?after={after}"


def moment(run_id: str) -> str:
    """The run as of event `?at=`, as page fragments; rows are shown from `?before=` to `?after=`."""
    return f"{run(run_id)}/moment"


def more(run_id: str) -> str:
    """Older or newer rows of the timeline; `?before=` or `?after=` says than which position."""
    return f"{run(run_id)}/events"


def step(run_id: str, interrupt: str) -> str:
    """The plain page of one parked step, which works without JavaScript."""
    return f"{run(run_id)}/steps/{quote(interrupt, safe='/')}"


def answers(run_id: str) -> str:
    """Posting here answers a parked step of the run."""
    return f"{run(run_id)}/answers"


def commands(run_id: str) -> str:
    """Posting `command` here pauses, steps, continues, cancels, crashes or deletes the run."""
    return f"{run(run_id)}/commands"


def forks(run_id: str) -> str:
    """Posting `at` here makes a new run that shares this one's past."""
    return f"{run(run_id)}/forks"


def proof(run_id: str) -> str:
    """The run's checkpoint held against its log, as parts of its page."""
    return f"{run(run_id)}/proof"


def source(run_id: str) -> str:
    """The scenario's source with the function of the node of event `?at=`, as a part of the run's page."""
    return f"{run(run_id)}/source"


def clock(run_id: str) -> str:
    """Who ran when, as a part of the run's page."""
    return f"{run(run_id)}/clock"


def branches(run_id: str) -> str:
    """The runs that share a past with the run; for htmx the part of its page that shows them."""
    return f"{run(run_id)}/branches"


def compare(run_id: str, other: str) -> str:
    """The run and another one side by side."""
    return f"{run(run_id)}/compare/{quote(other, safe='~')}"


def without(run_id: str, at: int) -> str:
    """What the run would have come to without what its event at position `at` wrote."""
    return f"{run(run_id)}/without/{at}"


def breakpoints(run_id: str) -> str:
    """Posting here sets the run's breakpoints."""
    return f"{run(run_id)}/breakpoints"


def keepsake(run_id: str) -> str:
    """The run as one HTML file, to be kept."""
    return f"{run(run_id)}/export"


def saved_test(run_id: str) -> str:
    """A test that plays the run again."""
    return f"{keepsake(run_id)}?as=test"


def export(run_id: str) -> str:
    """The run as JSON Lines."""
    return f"/api{run(run_id)}/export"


def fragment(key: str) -> str:
    """A key as part of an element's id."""
    return quote(key, safe="")


def _with(path: str, query: dict[str, str | None]) -> str:
    given = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path
