"""Terms: one form for one thing, in three languages; total and repeatable on any string."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text import analyzer
from muniment.core.text.analyzer import analyze, ascii_words, porter_stem, stem, term_hash
from muniment.core.text.kinds import widen
from products import for_each


@given(st.text())
def test_any_text_has_terms_and_always_the_same(text: str) -> None:
    terms = analyze(text)
    assert terms == analyze(text)
    assert all(terms)
    assert all(0 <= term_hash(term) < 1 << 64 for term in terms)


@given(st.text(alphabet="abstdnrhAZ0129 .,:-/_'\n") | st.text(alphabet=st.characters(max_codepoint=127)))
def test_where_no_sign_joins_digits_the_words_of_ascii_are_its_tokens(text: str) -> None:
    if analyzer._MORE_THAN_WORDS.search(text) is None:
        assert ascii_words(text) == analyzer._ASCII_TOKEN.findall(text.lower())
        assert analyzer._MAY_BE_DATE.search(text) is None
    assert analyze(text, ascii_words(text)) == analyze(text)


@pytest.mark.soak
@given(st.text(alphabet=st.characters(categories=("Cs", "Nd", "Lo", "Mn", "Po", "Sc"))))
def test_surrogates_foreign_digits_and_marks_are_no_trouble(text: str) -> None:
    assert [term_hash(term) for term in analyze(text)] == [term_hash(term) for term in analyze(text)]


@for_each(
    ("word", "root"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("agreed", "agre"), ("hopping", "hop"), ("filing", "file"),
        ("relational", "relat"), ("conditional", "condit"), ("vietnamization", "vietnam"), ("hopefulness", "hope"),
        ("electrical", "electr"), ("adjustable", "adjust"), ("adoption", "adopt"), ("controlling", "control"),
        ("sky", "sky"), ("possibly", "possibl"), ("replacement", "replac"),
    ],
)  # fmt: skip
def test_porter(word: str, root: str) -> None:
    assert porter_stem(word) == root


_VOWEL = re.compile(r"[aeiou]|(?<![aeiou])y(?!\Z)|(?<=[^aeiou])y")
_CONSONANTS_AFTER_VOWELS = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)(?:[^aeiouy]|(?<![^aeiou])y)")
_SHORT_END = re.compile(r"(?:\A|[^aeiou])[aeiouy][^aeiouwxy]\Z")


@given(st.text(alphabet="aeiouybcdlstwxz", max_size=12))
def test_what_porter_says_of_letters(text: str) -> None:
    """His definitions, written as patterns: a y is a consonant at the start and behind a vowel."""
    assert analyzer._measure(text) == len(_CONSONANTS_AFTER_VOWELS.findall(text))
    assert analyzer._has_vowel(text) == (_VOWEL.search(text) is not None)
    assert analyzer._ends_short(text) == (_SHORT_END.search(text) is not None)


_SUFFIXES = [
    suffix
    for step in (analyzer._STEP_2, analyzer._STEP_3, analyzer._STEP_4)
    for each in step.values()
    for suffix, _ in each
]


@given(
    st.text(alphabet="aeiouybcdlstz", max_size=5), st.lists(st.sampled_from([*_SUFFIXES, "s", "ed", "ing"]), max_size=3)
)
def test_a_stem_is_never_longer_than_its_word(start: str, suffixes: list[str]) -> None:
    word = start + "".join(suffixes)
    root = porter_stem(word)
    assert len(root) <= len(word)
    assert bool(root) == bool(word)


@pytest.mark.parametrize(
    ("one", "other"), [("bought", "buy"), ("children", "child"), ("died", "die"), ("pics", "photo")]
)
def test_irregular_forms_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@for_each(
    "text",
    [
        "7 May 2023",
        "2023-05-07",
        "May 7th, 2023",
        "the 7th of May, 2023",
        "2023年5月7日",
        "2023년 5월 7일",
        "2023/5/7",
        "7.5.2023",
        "07.05.2023",
    ],
)
def test_a_date_is_one_thing_however_it_is_written(text: str) -> None:
    assert sorted(analyze(text)) == ["#d5-7", "#m5", "2023"]


@for_each("text", ["21.05.2023", "21/5/2023", "5/21/2023", "05-21-2023", "am 21.5.2023 um 9"])
def test_a_date_in_digits_is_read_where_one_of_them_can_be_no_month(text: str) -> None:
    assert {"#d5-21", "#m5", "2023"} <= set(analyze(text))


@for_each(
    "text", ["4/5/2023", "4-5-2023", "31/31/2023", "40.5.2023", "7.5.20231", "3.7.5.2023", "7.5/2023", "7.5.2023.1"]
)
def test_digits_that_may_be_another_day_or_none_are_no_date(text: str) -> None:
    assert not [term for term in analyze(text) if term.startswith("#")]


def test_may_is_a_month_only_where_it_must_be() -> None:
    assert "#m5" in analyze("in May")
    assert "#m5" in analyze("May 7th")
    assert "#m5" not in analyze("we may go")
    assert analyze("2023-99-99") != []


def test_numbers_have_one_form() -> None:
    assert analyze("1,000") == analyze("1000") == ["1000"]
    assert analyze("2.50") == ["2.5"]
    assert analyze("three kids") == analyze("3 kids")


def test_accents_width_and_case_fold() -> None:
    assert analyze("Rogério") == analyze("ROGERIO")
    assert analyze("ｗｏｒｄ") == analyze("word")


def test_stop_words_are_left_out() -> None:
    assert analyze("What is it that you would have done?") == []
    assert analyze("什么") == []


def test_han_has_signs_and_pairs() -> None:
    assert set(analyze("北京")) == {"北", "京", "北京"}


def test_hangul_has_pairs_and_loses_its_particle() -> None:
    assert set(analyze("서울에서")) & set(analyze("서울은")) >= {"서울", "^서"}
    assert "은" not in analyze("서울은")


def test_hashes_are_stable_across_processes_and_releases() -> None:
    assert term_hash("adopt") == 0x9BCEE3C61B943E1D
    assert term_hash("北京") == 0x94B75E301EBDE866
    assert term_hash("adopt") != term_hash("adopts")


def test_a_question_is_widened_by_what_may_stand_for_it() -> None:
    groups = dict(widen(analyze("What pets does she have?")))
    assert stem("dog") in groups[frozenset({stem("pets")})]
    assert widen(analyze("xylograph")) == []


def test_the_narrower_kind_counts() -> None:
    heads = [head for head, _ in widen(analyze("Which European countries?"))]
    assert frozenset(analyze("European country")) in heads
    assert frozenset(analyze("country")) not in heads


@for_each(
    ("form", "verb"), [("lives", "live"), ("leaves", "leave"), ("flies", "fly"), ("tries", "try"), ("cried", "cry")]
)
def test_what_somebody_does_is_the_verb(form: str, verb: str) -> None:
    assert analyze(form) == analyze(verb)
