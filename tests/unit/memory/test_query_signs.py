"""The cue words that a query is looked through for first never hide what the patterns behind them would find."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.analyzer import ascii_words
from muniment.core.text.patterns import Sign
from muniment.core.text.times.asked_when import query_window
from muniment.memory import query as reading
from muniment.memory.query import read_query

SIGNS = {name: value for name, value in vars(reading).items() if isinstance(value, Sign)}
CUES = sorted({cue for sign in SIGNS.values() for cue in sign.cues})
NOW = date(2026, 5, 9)
TIMES = ["in", "last", "next", "may", "sept", "june", "3", "days", "ago", "weekend", "on", "friday", "2024", "before"]


def _ascii(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(SIGNS))
@given(data=st.data())
def test_what_a_pattern_matches_has_a_cue(name: str, data: st.DataObject) -> None:
    sign = SIGNS[name]
    text = data.draw(st.from_regex(_ascii(sign.pattern.pattern), alphabet=st.characters(max_codepoint=126)))
    folded = text.casefold()
    if sign.pattern.search(folded):
        assert sign.is_in(folded, frozenset(ascii_words(text)))


@given(st.lists(st.sampled_from([*CUES, "to", "of", "the", "is", "how", "what", "dogs", "my"]), max_size=8))
def test_signs_are_told_alike_with_and_without_cues(words: list[str]) -> None:
    text = " ".join(words)
    for sign in SIGNS.values():
        assert sign.is_in(text, frozenset(ascii_words(text))) == (sign.pattern.search(text) is not None)


@given(st.lists(st.sampled_from(TIMES), max_size=6))
def test_a_time_is_read_alike_in_ascii_and_beyond(words: list[str]) -> None:
    text = " ".join(words)
    assert query_window(text, NOW) == query_window(f"{text} ·", NOW)


def test_a_month_that_is_no_month_names_no_time() -> None:
    assert query_window("in sepember", NOW) is None
    slots = read_query("what did I do on 5 sepember", ("user",), NOW).slots
    assert not any(slot.word.startswith("#") for slot in slots)
