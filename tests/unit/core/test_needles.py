"""What every match of a pattern holds: told from the pattern alone, and never too much."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.patterns import needle_sets_of, needles_of
from products import for_each


@for_each(
    ("pattern", "needles"),
    [
        ("never", {"never"}),
        (r"\bnever\b", {"never"}),
        ("do not|don't", {"do not", "don't"}),
        ("(?:do not|don't) ever", {" ever"}),
        ("e-?mail you", {"mail you"}),
        ("a*", None),
        ("(?:word)?", None),
        ("(?:word|)", None),
        ("word|[a-z]+", None),
        ("(?!never )always", {"always"}),
        ("(?<!not )always", {"always"}),
        ("(?=.*promise).*", {"promise"}),
        ("cancell?ed", {"cancel"}),
        ("good{0,3} morning", {" morning"}),
        ("wait{2,}", {"wait"}),
        ("[ ]with", {" with"}),
        ("[ab]with", {"with"}),
        (r"3\.5 hours\s+later", {"3.5 hours"}),
        (r"\w+ing\b", {"ing"}),
        ("more than|no more than", {"more than"}),
        ("(?:one|two|three) (?:of them|of us)", {"of them", "of us"}),
        ("没有|不经", {"没有", "不经"}),
        ("^(?:a)$", {"a"}),
    ],
)
def test_the_words_that_a_match_cannot_do_without(pattern: str, needles: set[str] | None) -> None:
    assert needles_of(pattern) == needles


@for_each(
    ("pattern", "sets"),
    [
        ("never", [{"never"}]),
        ("(?:is|are) (?:now )?(?:fine|okay|allowed)", [{"fine", "okay", "allowed"}]),
        (r"please\s+(?:now )?remember", [{"remember"}, {"please"}]),
        ("please|never", [{"please", "never"}]),
        ("[a-z]+", []),
    ],
)
def test_a_match_holds_a_word_of_each_set(pattern: str, sets: list[set[str]]) -> None:
    assert list(needle_sets_of(pattern)) == sets


def test_a_pattern_that_is_not_understood_is_refused() -> None:
    with pytest.raises(ValueError, match="not a pattern"):
        needles_of("never)")


_WORDS = st.sampled_from(("ab", "b", "c a", "abc", r"\b", "^", "$", ".", r"\s", r"\w", "[ab]", "[^c]", "[ ]"))
_REPEATS = st.sampled_from(("", "", "?", "*", "+", "+?", "*?", "{2}", "{0,2}", "{1,2}", "{,2}"))


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    either = st.lists(inner, min_size=1, max_size=3).map("|".join)
    grouped = st.tuples(st.sampled_from(("(?:", "(")), either, _REPEATS).map(
        lambda each: f"{each[0]}{each[1]}){each[2]}"
    )
    looked = st.tuples(st.sampled_from(("(?=", "(?!")), either).map(lambda each: f"{each[0]}{each[1]})")
    signs = st.tuples(st.sampled_from("abc "), _REPEATS).map("".join)
    return st.lists(st.one_of(grouped, looked, signs, inner), min_size=1, max_size=4).map("".join)


@given(st.recursive(_WORDS, _grown, max_leaves=12), st.text("abc ", max_size=12))
def test_whatever_is_matched_holds_one_of_them(pattern: str, text: str) -> None:
    try:
        compiled = re.compile(pattern)
    except re.error:
        return
    needles = needles_of(pattern)
    if needles is not None and compiled.search(text) is not None:
        assert any(needle in text for needle in needles)
        assert needle_sets_of(pattern)
    if compiled.search(text) is not None:
        assert all(any(needle in text for needle in needles) for needles in needle_sets_of(pattern))
