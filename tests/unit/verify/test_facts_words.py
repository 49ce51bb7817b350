"""Words as the fact checker reads them: one form for a number, sorts of words, places that are true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.verify.facts._source import Source, SourceText
from muniment.verify.facts._words import read_words, unit_of
from products import for_each


def keys(text: str, *kinds: str) -> list[str]:
    return [word.key for word in read_words(text) if word.kind in (kinds or ("number", "date"))]


@for_each(
    ("text", "numbers"),
    [
        ("1,100ft", ["1100"]),
        ("2.50 and 2.5", ["2.5", "2.5"]),
        ("5 million, 5m, five million", ["5000000"] * 3),
        ("twenty-two of 22", ["22", "22"]),
        ("the fourth, the 4th, in Q4 and 4Q", ["4th"] * 4),
        ("2018–19", ["2018", "2019"]),
        ("2023-05-07", ["2023", "#m5", "7"]),
        ("7 May 2023", ["7", "#m5", "2023"]),
        ("on Mondays or on Monday", ["#w0", "#w0"]),
        ("at 7:30", ["7:30"]),
        ("三百万元 二〇二三年 两个 3万", ["3000000", "2023", "2", "30000"]),
        ("5月 5월", ["#m5", "#m5"]),
        ("세 명 두번 3만 원", ["3", "2", "30000"]),
    ],
)
def test_one_form_for_a_number(text: str, numbers: list[str]) -> None:
    assert keys(text) == numbers


def test_sorts_of_words() -> None:
    found = {word.text: word.kind for word in read_words("The U.S. didn't tell Ana-Maria of COVID-19 in May, it may")}
    assert found["U.S."] == found["Ana"] == found["COVID-19"] == "name"
    assert found["The"] == found["didn't"] == found["may"] == "small"
    assert found["May"] == "date"
    assert found["tell"] == "word"


def test_korean_words_lose_their_particle() -> None:
    assert keys("친구와 서울로", "word") == ["친구", "서울"]


@pytest.mark.soak
@given(st.text())
def test_places_are_true(text: str) -> None:
    last = 0
    for word in read_words(text):
        assert text[word.start : word.end] == word.text
        assert word.key
        assert word.start >= last or word.text
        last = word.start


@for_each(
    ("text", "unit"),
    [("$40", "dollar"), ("40 dollars", "dollar"), ("12%", "percent"), ("12 percent", "percent"), ("5km", "kilometre"),
     ("5 公里", "kilometre"), ("5英里", "mile"), ("3만 원", "won"), ("25-minute", "minute"), ("7 apples", None)],
)  # fmt: skip
def test_units(text: str, unit: str | None) -> None:
    words = read_words(text)
    at = next(place for place, word in enumerate(words) if word.kind == "number")
    assert unit_of(text, words, at) == unit


def test_nearness_of_two_words() -> None:
    source = Source([SourceText("d", "Calder hired Wendt. The strike came much later, in a hard winter.")])
    beside, same, never = (
        source.closeness(*pair, 1) for pair in (("calder", "hire"), ("strike", "winter"), ("a", "zoo"))
    )
    assert beside == 1
    assert 0 < same < beside
    assert never == 0
