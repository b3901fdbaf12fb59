"""Pages and fragments from the templates: one environment a language, strict and escaping.

A region of a page is one file in `templates/partials`, painted first inside
the page and later alone, when it changes.  Alone it travels as an
`<hx-partial>` that names its place.  A stream carries it as one line, so what
is one message stays one message: line breaks in texts are written as
character references, those of the templates become spaces.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from functools import partial as partial_of
from hashlib import sha256
from typing import Literal
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import do as statements
from markupsafe import Markup, escape

from playground import assets
from playground.kernel.run import split_park
from playground.kernel.values import JsonValue
from playground.web import paths
from playground.web.graphmarks import LOUDEST, OLDEST
from playground.web.highlight import highlighted
from playground.web.i18n import LANGUAGES, NAMES, Language, Translator
from playground.web.looks import Looks
from playground.web.static import SHEET, content

PARTS = ("head", "first", "rest")
"""What a page can be sent in: what a browser needs to begin, for which a title is enough; what is to be seen
first; and the rest."""

BODY = PARTS[1:]
"""What follows the head."""

Swap = Literal["outerHTML", "innerHTML", "outerMorph", "upsert", "beforeend", "delete"]

BRIEF = 90
"""How many characters of a value fit on a line of the timeline."""


def environment(language: Language, *, alone: bool = False) -> Environment:
    """The Jinja environment that speaks a language; there is one, however it is asked for.

    Args:
        alone: for pages that have their icons inside of them, as there is no server to ask.
    """
    return _environment(language, alone)


@cache
def _environment(language: Language, alone: bool) -> Environment:
    env = Environment(
        loader=FileSystemLoader(assets.path("templates")),
        autoescape=True,
        auto_reload=False,  # else each of a page's many parts is looked up on disk, for each visitor
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        extensions=[statements],
    )
    env.globals.update(
        t=Translator(language),
        lang=language,
        languages=[(code, NAMES[code]) for code in LANGUAGES],
        paths=paths,
        asset=_nowhere if alone else asset,
        icon_of=partial_of(icon, _nowhere if alone else asset),
        sheet=SHEET,
        config=HTMX,
        part="",
        looks=Looks(),
        kind_of=kind_of,
        loudest=LOUDEST,
        oldest=OLDEST,
    )
    env.filters.update(
        asker=asker,
        brief=brief,
        pretty=pretty,
        offset=offset,
        duration=duration,
        clock=clock,
        day=day,
        iso=iso,
        reason=lambda why: reason(Translator(language), why),
        slug=paths.fragment,
        enumerated=enumerate,
        highlighted=lambda lines: highlighted([line.text for line in lines]),
        number=lambda n: f"{n:,}".replace(",", "\u202f"),
    )
    return env


HTMX = json.dumps(
    {
        "extensions": "sse,upsert",
        "noSwap": [204, 304, "4xx", "5xx"],
        "history": False,
        "includeIndicatorCSS": False,
        "defaultSettleDelay": 0,
        "sse": {"reconnectMaxDelay": 5000},
    }
)
"""What htmx is told: only our extensions, that no error page is ever swapped into a region, and that
a part is at once as it was sent: what is put right later would undo what our scripts changed meanwhile."""


def warm() -> None:
    """Compile all templates in every language, so that no visitor has to wait for it."""
    for language in LANGUAGES:
        env = environment(language)
        for name in env.list_templates(extensions=["html"]):
            env.get_template(name)


def page(name: str, language: Language, /, *, alone: bool = False, **context: object) -> str:
    """A whole page, `templates/pages/<name>.html`; `alone` if it is to do without a server.

    With `part` it is one of `PARTS` alone, which together are the page.
    """
    return environment(language, alone=alone).get_template(f"pages/{name}.html").render(**context)


def region(name: str, language: Language, /, **context: object) -> str:
    """A region of a page, `templates/partials/<name>.html`, as one line."""
    return one_line(environment(language).get_template(f"partials/{name}.html").render(**context))


def partial(target: str, html: str, swap: Swap = "outerHTML") -> str:
    """`html` on its way to the element `target`, a CSS selector, in a live message or an answer."""
    return f'<hx-partial hx-target="{escape(target)}" hx-swap="{swap}">{html}</hx-partial>'


def one_line(html: str) -> str:
    """The same HTML without line breaks; those inside of values were written as references already."""
    return " ".join(stripped for line in str(html).split("\n") if (stripped := line.strip()))


def lines(partials: Iterable[str]) -> str:
    """Several partials as the data of one message."""
    return "".join(partials)


@cache
def asset(name: str) -> str:
    """The address of a static file, with a mark that changes when the file does."""
    return f"{paths.static(name)}?{sha256(content(name)).hexdigest()[:8]}"


@cache
def icon(address: Callable[[str], str], name: str) -> Markup:
    """An icon of the sprite at an address; a page has so many that macros would be slow."""
    sprite = escape(f"{address('icons.svg')}#{name}")
    return Markup(f'<svg class="icon" aria-hidden="true" focusable="false"><use href="{sprite}"/></svg>')  # noqa: S704


def _nowhere(_: str) -> str:
    """The address of a static file that is part of the page."""
    return ""


def _finalize(value: object) -> object:
    """Keep line breaks in texts apart from those of the templates."""
    if isinstance(value, str) and not isinstance(value, Markup) and ("\n" in value or "\r" in value):
        return Markup(  # noqa: S704 - escaped in the same breath
            str(escape(value)).replace("\r", "&#13;").replace("\n", "&#10;")
        )
    return value


def brief(value: JsonValue, most: int = BRIEF) -> str:
    """A value on one line: text as it is, the rest as JSON, cut where it gets long."""
    text = value[: most * 2] if isinstance(value, str) else bounded(value, most * 2)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def bounded(value: JsonValue, most: int) -> str:
    """The beginning of a value's JSON, without writing out the whole of a large one."""
    text = ""
    for chunk in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        text += chunk
        if len(text) > most:
            break
    return text


def asker(interrupt_id: object) -> str:
    """The node, or the tool in it, that a question comes from: the end of its path."""
    return unquote(split_park(str(interrupt_id))[0].rpartition("/")[2])


def pretty(value: JsonValue) -> str:
    """A value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def kind_of(value: JsonValue) -> str:
    """The JSON type of a value, for its looks."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
    return "object"


def offset(seconds: float) -> str:
    """A moment counted from the beginning of a run."""
    return f"+{duration(seconds)}"


def duration(seconds: float) -> str:
    """A span of time with a unit that keeps it short."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"


def _local(ts: float) -> datetime:
    return datetime.fromtimestamp(ts).astimezone()


def clock(ts: float) -> str:
    """The time of day."""
    return _local(ts).strftime("%H:%M:%S")


def day(ts: float) -> str:
    """The day and the time of day."""
    return _local(ts).strftime("%Y-%m-%d %H:%M")


def iso(ts: float) -> str:
    """A moment for a machine."""
    return _local(ts).isoformat(timespec="seconds")


def reason(t: Translator, why: Mapping[str, JsonValue]) -> Markup:
    """Why a node ran, waits or was skipped, as a sentence; the engine gives a code and the names involved."""
    code = str(why.get("code", ""))
    nodes = why.get("nodes")
    listed = [str(node) for node in nodes] if isinstance(nodes, list) else []
    values = {"done": 0, "live": 0, **why, "names": t.list(listed), "n": len(listed)}
    return t(f"why.{code}", **values) if f"why.{code}" in t else t("why.other", code=code or "?")
