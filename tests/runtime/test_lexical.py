"""Finding texts by their words, Chinese and English mixed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.runtime.lexical import WordIndex, terms


def index_of(**texts):
    index = WordIndex()
    for key, text in texts.items():
        index.add(key, text)
    return index


def found(index, query, **options):
    scores = index.scores(query, **options)
    return sorted(scores, key=lambda key: -scores[key])


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("Orders", "one ORDER"),
        ("a city", "many cities"),
        ("boxes", "a box"),
        ("order 123", "订单123"),
        ("ＡＢＣ", "abc"),
        ("our user's plan", "the plan"),
        ("我对什么过敏？", "用户对芒果过敏"),
        ("退款", "这个客户要退款。"),
        ("カメラ", "新しいカメラです"),
    ],
)
def test_case_plural_width_and_neighbours_do_not_hide_a_word(asked, stored):
    assert found(index_of(it=stored), asked) == ["it"]


@pytest.mark.parametrize("asked", ["what is this", "我的", "这个什么", "", "?!", "的"])
def test_words_that_say_nothing_find_nothing(asked):
    assert found(index_of(it="what is this 我的 这个什么 的"), asked) == []


def test_a_rare_word_says_more_than_a_common_one():
    index = index_of(a="coffee with milk", b="coffee with sugar", c="coffee and mango")
    assert found(index, "coffee mango")[0] == "c"


def test_a_word_says_more_in_a_short_text():
    index = index_of(long="mango " + "word " * 40, short="mango juice")
    assert found(index, "mango") == ["short", "long"]


def test_single_characters_count_only_where_no_pair_is_known_and_only_if_wanted():
    index = index_of(tea="喜欢喝茶", coffee="咖啡")
    assert found(index, "茶叶") == ["tea"]
    assert found(index, "茶叶", single_characters=False) == []


def test_a_text_added_again_replaces_the_one_before():
    index = index_of(a="mango")
    index.add("a", "coffee")
    assert (found(index, "mango"), found(index, "coffee"), len(index)) == ([], ["a"], 1)


def test_a_common_word_ranks_but_does_not_find_beside_a_rarer_one():
    index = WordIndex()
    for number in range(600):
        index.add(f"n{number}", f"common text {number}" + (" rare" if number < 3 else ""))
    assert len(found(index, "common")) == 600
    assert sorted(found(index, "common rare")) == ["n0", "n1", "n2"]


def test_only_the_beginning_of_a_huge_question_is_read():
    index = index_of(it="mango")
    assert found(index, "mango " + "x " * 10**6) == ["it"]
    assert found(index, "x " * 10**6 + "mango") == []


words = st.lists(st.sampled_from(["mango", "coffee", "茶叶", "过敏", "x1"]), max_size=5).map(" ".join)


@given(st.lists(st.tuples(st.sampled_from("abcd"), words), max_size=12), words)
def test_an_index_that_grew_and_shrank_equals_a_fresh_one(steps, query):
    grown, kept = WordIndex(), {}
    for key, text in steps:
        if text:
            grown.add(key, text)
            kept[key] = text
        else:
            grown.remove(key)
            kept.pop(key, None)
    assert grown.scores(query) == pytest.approx(index_of(**kept).scores(query))
    assert len(grown) == len(kept)


@given(st.text(), st.text())
def test_any_text_can_be_stored_and_asked_for_and_finds_itself(stored, asked):
    index = index_of(it=stored)
    assert all(score > 0 for score in index.scores(asked).values())
    assert bool(index.scores(stored)) == bool(terms(stored))


def test_of_many_common_words_only_the_rarer_ones_count():
    """Each word that half of the texts hold costs a look at half of them and tells next to nothing."""
    common = [f"w{number}" for number in range(6)]
    index = WordIndex()
    for number in range(3_000):
        index.add(str(number), " ".join(common))
    index.add("it", f"mango {' '.join(common)}")
    assert found(index, "mango " + " ".join(common)) == ["it"]
    assert index.scores(" ".join(common)) == index.scores(" ".join(common[:3]))
