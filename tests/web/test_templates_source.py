"""Source code beside the graph: its words are told apart, and every character is still there."""

from __future__ import annotations

from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from playground.web.highlight import highlighted


def test_words_names_texts_numbers_and_comments_are_told_apart() -> None:
    (line,) = highlighted(['def f(): return "x" + 1  # why'])

    assert line == Markup(
        '<span class="code-word">def</span> <span class="code-name">f</span>(): '
        '<span class="code-word">return</span> <span class="code-text">&#34;x&#34;</span> + '
        '<span class="code-number">1</span>  <span class="code-note"># why</span>'
    )


def test_a_text_over_several_lines_is_one_on_each() -> None:
    lines = highlighted(['"""one', "two", 'three"""'])

    assert [line.count("code-text") for line in lines] == [1, 1, 1]


@pytest.mark.parametrize(
    "broken", ["def (", '"""never closed', "  x\n y", "\x00", "if True:\n\tx\n        y"]
)
def test_what_is_no_python_is_shown_all_the_same(broken: str) -> None:
    lines = broken.split("\n")

    assert [unescape(without_spans(line)) for line in highlighted(lines)] == lines


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\f"), max_size=30), max_size=8))
def test_no_character_is_lost_or_left_unescaped(lines: list[str]) -> None:
    shown = highlighted(lines)

    assert [unescape(without_spans(line)) for line in shown] == lines
    assert not any("<" in without_spans(line) for line in shown)


def without_spans(line: Markup) -> str:
    text = str(line).replace("</span>", "")
    for look in ("word", "name", "text", "note", "number"):
        text = text.replace(f'<span class="code-{look}">', "")
    return text
