"""Every page and partial renders in both languages, escaped, strict, and as one line where it must be."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from jinja2 import UndefinedError

from playground import assets
from playground.kernel.values import frozen_object
from playground.web import gallery, render
from playground.web.gallery import Log
from playground.web.i18n import LANGUAGES, Language
from playground.web.static import STYLES, content
from playground.web.templating import (
    PARTS,
    brief,
    duration,
    environment,
    one_line,
    page,
    partial,
    reason,
    region,
)
from playground.web.timeline import Timeline
from playground.web.viewmodels import EventRow, RunView

NASTY = "<img src=x onerror=alert(1)>\"'`{{7*7}}</script><hx-partial hx-target='body'>"


class Elements(HTMLParser):
    """All start tags of a page, as (tag, attributes)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))

    def ids(self) -> list[str]:
        return [given["id"] or "" for _, given in self.all if "id" in given]


PAGES = [(lang, name) for lang in LANGUAGES for name in gallery.pages("en")]


@pytest.fixture(scope="module")
def pages() -> dict[Language, dict[str, str]]:
    return {lang: gallery.pages(lang) for lang in LANGUAGES}


def event(kind: str, /, **data: object) -> EventRow:
    log = Log("r1").note(kind, **data)
    return Timeline(log.events)[0]


@pytest.mark.parametrize(("lang", "name"), PAGES)
def test_every_page_is_whole_and_says_its_language(
    pages: dict[Language, dict[str, str]], lang: Language, name: str
) -> None:
    html = pages[lang][name].strip()

    assert html.startswith("<!doctype html>")
    assert html.endswith("</html>")
    assert f'<html lang="{lang}"' in html


@pytest.mark.parametrize("name", [name for name in gallery.pages("en") if name != "gallery"])
def test_an_id_names_one_element_of_a_page(pages: dict[Language, dict[str, str]], name: str) -> None:
    ids = Elements(pages["en"][name]).ids()

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", gallery.pages("en"))
def test_a_label_or_description_refers_to_an_element_of_the_page(
    pages: dict[Language, dict[str, str]], name: str
) -> None:
    elements = Elements(pages["en"][name])
    ids = set(elements.ids())
    named = {
        part
        for tag, given in elements.all
        for key in ("for", "aria-labelledby", "aria-describedby", "aria-controls", "data-opens")
        for part in (given.get(key) or "").split()
    }

    assert named <= ids


@pytest.mark.parametrize("name", gallery.pages("en"))
def test_every_static_file_and_icon_that_a_page_names_exists(
    pages: dict[Language, dict[str, str]], name: str
) -> None:
    sprite = set(Elements(assets.path("static", "icons.svg").read_text(encoding="utf-8")).ids())
    for address in re.findall(r'"/static/([^"]+)"', pages["en"][name]):
        file, _, icon = address.partition("#")
        assert content(file.partition("?")[0])
        assert not icon or icon in sprite, icon


def test_every_icon_in_the_sprite_is_used() -> None:
    shown = "".join(html for html in gallery.pages("en").values())
    scripts = "".join(file.read_text() for file in assets.path("static", "js").glob("*.js"))
    sprite = Elements(assets.path("static", "icons.svg").read_text(encoding="utf-8")).ids()

    assert [icon for icon in sprite if f"#{icon}" not in shown and f'"{icon}"' not in scripts] == []


def test_every_style_sheet_is_part_of_the_one_and_the_first_one_fixes_the_layers() -> None:
    sheets = {file.stem for file in assets.path("static", "css").glob("*.css")}
    first = assets.path("static", "css", f"{STYLES[0]}.css").read_text(encoding="utf-8")

    assert set(STYLES) == sheets
    assert first.startswith("@layer tokens, base, layout, components, pages;")


def test_a_script_stays_small_enough_to_read() -> None:
    long = {
        file.name: lines
        for file in assets.path("static", "js").glob("*.js")
        if (lines := len(file.read_text(encoding="utf-8").splitlines())) > 90
    }

    assert long == {}


def test_a_language_has_one_environment_so_that_what_was_compiled_at_start_up_is_what_pages_use() -> None:
    assert environment("en", alone=False) is environment("en")
    assert environment("en", alone=True) is not environment("en")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_parts_of_a_page_are_the_page(lang: Language) -> None:
    run = gallery.run_sample(lang)
    assert "".join(page("run", lang, part=part, run=run) for part in PARTS) == page("run", lang, run=run)


def test_a_template_that_misses_a_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        page("error", "en")


# Escaping: model, tool and scenario text is never markup (case D40)


@pytest.mark.parametrize("kind", [*gallery.KINDS, "no_such_kind", "../../base", "a/b\\c"])
def test_text_in_an_event_is_shown_literally(kind: str) -> None:
    names = ("task", "value", "error", "question", "name", "output", "text", "reason", "node", "by", "goto")
    row = event(kind, **dict.fromkeys(names, NASTY), wave=1)

    tags = {tag for tag, _ in Elements(render.row(row._replace(owner=NASTY), "en")).all}

    assert not tags & {"img", "script", "hx-partial"}


def test_text_in_a_card_is_shown_literally() -> None:
    step = replace(
        gallery.step_sample("en"), id=NASTY, node=NASTY, question=NASTY, tool=NASTY, payload={NASTY: NASTY}
    )

    elements = Elements(region("step", "en", step=step))

    assert not {tag for tag, _ in elements.all} & {"img", "script", "hx-partial"}
    assert [given["value"] for _, given in elements.all if given.get("name") == "interrupt"] == [NASTY]


def test_no_message_holds_a_line_break() -> None:
    row = event("node_completed", node="a", wave=1, value="one\ntwo\r\nthree")

    html = partial("#timeline", render.row(row, "en"), "upsert")

    assert "\n" not in html
    assert "\r" not in html


def test_a_line_break_inside_a_value_survives_the_one_line() -> None:
    step = replace(gallery.step_sample("en"), payload={"note": "first\nsecond"}, form=None)

    assert "first&#10;second" in region("step", "en", step=step)


def test_an_unusual_separator_inside_a_value_survives_the_one_line() -> None:
    assert one_line("<p>\n  a\u2028b\x85c\n</p>") == "<p> a\u2028b\x85c </p>"


def test_the_target_of_a_partial_is_escaped() -> None:
    assert partial('#a"b', "x") == '<hx-partial hx-target="#a&#34;b" hx-swap="outerHTML">x</hx-partial>'


# Events: the kind picks its partial by name


def test_a_kind_without_a_partial_shows_its_name_and_its_data() -> None:
    html = render.row(event("context_compressed", level=3), "en")

    assert "context_compressed" in html
    assert "level" in html


LOOKS = vars(environment("en").get_template("macros/rows.html").module)["looks"]
"""How each kind of event looks; `stage` is a note of a stage."""


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("kind", sorted(LOOKS.keys() - {"stage"}))
def test_every_kind_of_event_that_has_a_look_has_a_sample(lang: Language, kind: str) -> None:
    assert f'data-kind="{kind}"' in render.row(event(kind, **dict(gallery.KINDS[kind])), lang)


def test_a_row_is_found_by_its_position() -> None:
    assert Elements(render.row(event("run_suspended"), "en")).all[0][1]["id"] == "ev-1"


@pytest.mark.parametrize("attribute", ["hx-on", "style", "onclick"])
def test_no_page_uses_an_attribute_that_the_policy_forbids(
    pages: dict[Language, dict[str, str]], attribute: str
) -> None:
    used = [
        name
        for name, html in pages["en"].items()
        for _, given in Elements(html).all
        if any(key.startswith(attribute) for key in given)
    ]

    assert used == []


# Values on a line


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "null"),
        (False, "false"),
        (0, "0"),
        ("", ""),
        ("two\nlines", "two lines"),
        ({"a": [1, "x"]}, '{"a": [1, "x"]}'),
        ("x" * 200, "x" * 89 + "…"),
    ],
)
def test_a_value_is_brief(value: object, line: str) -> None:
    assert brief(value) == line  # type: ignore[arg-type]


def test_a_large_value_is_not_written_out_to_be_cut() -> None:
    class Endless(list[int]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for number in range(10_000_000):
                assert number < 1_000
                yield number

    assert brief(Endless([1])).startswith("[0, 1, 2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 ms"), (0.0421, "42 ms"), (0.31, "0.31 s"), (3.44, "3.4 s"), (42, "42 s"), (600, "10 min")],
)
def test_a_duration_takes_the_unit_that_keeps_it_short(seconds: float, said: str) -> None:
    assert duration(seconds) == said


# Reasons


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    ("why", "names"),
    [
        ({"code": "entry"}, []),
        ({"code": "edges", "nodes": ["x", "y"]}, ["x", "y"]),
        ({"code": "goto", "nodes": ["think"]}, ["think"]),
        ({"code": "send", "nodes": ["plan"]}, ["plan"]),
        ({"code": "resumed", "nodes": ["a"]}, []),
        ({"code": "retry"}, []),
        ({"code": "recovered"}, []),
        ({"code": "dead_edges", "nodes": ["a"]}, ["a"]),
        ({"code": "skipped_predecessors", "nodes": ["a"]}, ["a"]),
        ({"code": "not_commanded"}, []),
        ({"code": "ended"}, []),
        ({"code": "open_predecessors", "nodes": ["a"]}, ["a"]),
        ({"code": "join_short", "done": 1, "live": 3}, ["1", "3"]),
        ({"code": "parked", "nodes": ["a"]}, []),
        ({"code": "a code of tomorrow"}, ["a code of tomorrow"]),
        ({}, ["?"]),
    ],
)
def test_each_reason_is_a_sentence_with_its_names(
    lang: Language, why: dict[str, object], names: list[str]
) -> None:
    from playground.web.i18n import Translator

    said = str(reason(Translator(lang), frozen_object(why, "why")))

    assert said.endswith((".", "。"))
    assert all(name in said for name in names)


# A state carries its own next moves


def commands(run: RunView) -> list[str]:
    html = region("controls", "en", run=run)
    return re.findall(r'name="command" value="(\w+)"', html)


def test_what_can_be_asked_of_a_run_follows_from_how_it_stands() -> None:
    runs = {mood: replace(gallery.run_sample("en"), mood=mood) for mood in gallery.Mood}

    assert {mood.value: commands(run) for mood, run in runs.items()} == {
        "running": ["pause", "crash", "cancel"],
        "waiting": ["cancel"],
        "paused": ["continue", "step", "cancel"],
        "stopped": ["continue", "cancel"],
        "completed": [],
        "cancelled": [],
        "failed": [],
    }


def test_a_run_whose_scenario_is_gone_cannot_go_on() -> None:
    run = replace(gallery.run_sample("en"), mood=gallery.Mood.STOPPED, reason="The scenario is gone.")

    assert commands(run) == ["cancel"]


def test_approve_and_reject_are_two_buttons_with_their_consequences() -> None:
    html = region("step", "en", step=gallery.step_sample("en"))

    assert re.findall(r'name="verdict" value="(\w+)"', html) == ["approve", "reject"]
    assert "Approve leads to <code>repair</code>." in html
    assert "Reject leads to <code>escalate</code>." in html


def test_the_verbs_in_chinese_are_the_agreed_ones() -> None:
    html = region("step", "zh", step=gallery.step_sample("zh"))

    assert re.findall(r"</svg>(批准|拒绝)</button>", html) == ["批准", "拒绝"]


def test_a_decided_step_offers_no_second_decision() -> None:
    step = replace(gallery.step_sample("en"), decision=gallery.decision_sample("en"))

    html = region("step", "en", step=step)

    assert "<form" not in html
    assert "Rejected by Ana" in html
