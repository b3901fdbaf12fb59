"""Each message exists in every language, with the same gaps, and no value speaks HTML."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markupsafe import Markup

from playground import assets
from playground.kernel.run import STEPS
from playground.web.i18n import LANGUAGES, Language, MissingMessage, Translator, catalogue, choose

GAP = re.compile(r"\{(\w+)\}")
PACKAGE = Path(__file__).parents[2] / "playground" / "web"


def texts(language: Language, key: str) -> list[str]:
    message = catalogue(language)[key]
    return [message] if isinstance(message, str) else list(message.values())


def sources() -> str:
    files = [*assets.path("templates").rglob("*.html"), *PACKAGE.glob("*.py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_every_language_has_the_same_keys() -> None:
    keys = {language: set(catalogue(language)) for language in LANGUAGES}

    assert keys["en"] == keys["zh"]


@pytest.mark.parametrize("key", sorted(catalogue("en")))
def test_a_message_has_the_same_gaps_in_every_language(key: str) -> None:
    gaps = [set(GAP.findall(text)) for language in LANGUAGES for text in texts(language, key)]

    assert all(found == gaps[0] for found in gaps)


def test_every_key_that_a_template_names_is_in_the_catalogue() -> None:
    named = set(re.findall(r"""\bt\("([a-z_.]+)"[,)]""", sources()))

    assert named - set(catalogue("en")) == set()


def test_every_message_is_used_somewhere() -> None:
    text = sources()
    groups = tuple(re.findall(r"""\(?f?"([a-z_.]+\.)" ?~|f"([a-z_.]+\.)\{""", text))
    built = tuple(part for pair in groups for part in pair if part)
    unused = [key for key in catalogue("en") if f'"{key}"' not in text and not key.startswith(built)]

    assert unused == []


def test_a_value_is_escaped() -> None:
    said = Translator("en")("event.node_started", node="<b>x</b>")

    assert said == Markup("<code>&lt;b&gt;x&lt;/b&gt;</code> started")


def test_a_value_that_is_markup_already_stays_it() -> None:
    said = Translator("en")("parked.since", time=Markup("<time>10:02</time>"))

    assert said == Markup("since <time>10:02</time>")


def test_a_value_with_braces_is_not_filled_again() -> None:
    assert Translator("en")("event.node_started", node="{node}") == Markup("<code>{node}</code> started")


@pytest.mark.parametrize(("n", "said"), [(0, "0 waves"), (1, "1 wave"), (2, "2 waves")])
def test_english_has_a_singular(n: int, said: str) -> None:
    assert Translator("en")("run.waves", n=n) == said


def test_an_unknown_key_is_an_error_that_names_it() -> None:
    with pytest.raises(MissingMessage, match=r"no message 'no\.such' in en\.json"):
        Translator("en")("no.such")


def test_a_gap_without_its_value_is_an_error_that_names_both() -> None:
    with pytest.raises(MissingMessage, match=r"'run\.wave' has a gap \{n\}"):
        Translator("en")("run.wave")


@pytest.mark.parametrize(
    ("asked", "accepted", "spoken"),
    [
        ("zh", "en-GB", "zh"),
        (None, "de-CH, zh-Hans;q=0.8, en;q=0.5", "zh"),
        (None, "en-US,en;q=0.9", "en"),
        ("fr", "", "en"),
        (None, "", "en"),
        ("../zh", "", "en"),
    ],
)
def test_the_language_is_the_one_asked_for_then_the_browsers_then_english(
    asked: str | None, accepted: str, spoken: str
) -> None:
    assert choose(asked, accepted) == spoken


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_event_has_a_name(language: Language) -> None:
    assert {f"kind.{kind}" for kind in STEPS} <= set(catalogue(language))
