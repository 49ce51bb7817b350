"""Users' regular expressions: the same answers as `re`, in linear time, and what cannot be had is refused."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.regex import compile_pattern
from muniment.errors import InvalidInput, TooLarge
from products import for_each

ATOMS = st.sampled_from(
    ["a", "b", r"\w", r"\d", r"\s", ".", "[ab]", "[^a]", r"\.", "[]x]", "é", r"\x61", r"[\w-]", "{", "-"]
)
EDGES = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "*?", "??"])


def extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})")
        | st.tuples(inner, REPEATS).map(lambda two: f"({two[0]}){two[1]}")
        | inner.map(lambda one: f"(?i:{one})")
        | st.just("")
    )


PATTERNS = st.tuples(st.sampled_from(["", "(?i)", "(?m)", "(?s)"]), st.recursive(ATOMS | EDGES, extended, max_leaves=6))
TEXTS = st.text(alphabet="abAB1 \n.-xéÉ_{", max_size=12)


@settings(max_examples=examples(150))
@given(PATTERNS.map("".join), TEXTS)
@example("$a", "a")
@example("(?m)^b$", "a\nb\n")
@example("a$", "a\n")
@example("(?P<name>a)b", "ab")
def test_the_automaton_finds_what_re_finds(source: str, text: str) -> None:
    wanted = re.search(source, text) is not None
    pattern = compile_pattern(source)
    assert (pattern._automaton.search(text) is not None) == wanted
    assert (pattern.search(text) is not None) == wanted


@pytest.mark.req("TM-13")
@for_each(
    ("source", "text"),
    [
        (r"(a+)+$", "a" * 100_000 + "b"),
        (r"(a|aa)+$", "a" * 100_000 + "b"),
        (r"(a|a?)+c", "a" * 100_000 + "b"),
        (r".*.*.*.*=x", "=" * 50_000),
        (r"(x+x+)+y", "x" * 100_000),
        (r"(\w+\s?)*\.$", "word " * 20_000 + "!"),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        (r"(?:a?){100}a{100}", "a" * 99),
    ],
)
def test_patterns_that_explode_elsewhere_answer_at_once(source: str, text: str) -> None:
    """Backtracking would take from hours to the age of the universe: the suite's timeout is the test."""
    assert compile_pattern(source).search(text) is None


@pytest.mark.soak
def test_a_pattern_with_too_many_states_is_given_up_by_its_steps() -> None:
    pattern = compile_pattern("(?:a|b)*a(?:a|b){200}c")
    text = "".join(Random(1).choices("ab", k=60_000))
    with pytest.raises(TooLarge, match="too many steps"):
        pattern.search(text)


@for_each(
    "source",
    [
        *("(?=a)b", "(?!a)b", "(?<=a)b", r"(a)\1", "(?P<n>a)(?P=n)", "(?(1)a|b)", "(?>a)", "a*+", "a++"),
        *(
            "(",
            "a)",
            "[a",
            "a**",
            "*a",
            r"\q",
            "a{2,1}",
            "a{2000}",
            "(?x) a",
            "[[a]",
            "[a--b]",
            "(?P<n>a)(?P<n>b)",
            "\\",
        ),
        *("((a{100}){100}){100}", "(" * 40 + ")" * 40, "a" * 1001, "(?L)a", "^*"),
    ],
)
def test_what_is_not_linear_or_not_a_pattern_is_refused(source: str) -> None:
    with pytest.raises(InvalidInput):
        compile_pattern(source)


def test_the_end_of_the_match_is_told() -> None:
    assert compile_pattern("b+").search("aabba") == 4
    assert compile_pattern("FOO", ignore_case=True).search("a foo") == 5


@settings(max_examples=examples(100))
@given(st.text(alphabet="ab|()[]{}*+?\\.^$-,0123<>=!:Pims", max_size=14), st.text(alphabet="ab1-", max_size=8))
def test_any_pattern_is_searched_as_re_does_or_refused(source: str, text: str) -> None:
    try:
        pattern = compile_pattern(source)
    except InvalidInput:
        return
    assert (pattern.search(text) is not None) == (re.search(source, text) is not None)
    assert (pattern._automaton.search(text) is not None) == (re.search(source, text) is not None)
