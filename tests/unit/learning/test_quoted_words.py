"""Does evidence contain a value: its words, its number, its day."""

from __future__ import annotations

from muniment.learning.quoted_words import contains_value
from products import for_each

TS = "2026-05-20T10:00:00Z"


@for_each(
    ("quote", "value", "is_there"),
    [
        ("we moved to BERLIN", "Berlin", True),
        ("my cats are loud", "cat", True),
        ("I work at Marks & Spencer", "Marks & Spencer", True),
        ("I have two kids", 2, True),
        ("I have twenty-one hens", 21, True),
        ("I earn 1,200 euros", 1200, True),
        ("born on May 3, 1990", "1990-05-03", True),
        ("I quit yesterday", "2026-05-19", True),
        ("我住在柏林", "柏林", True),
        ("I moved to Berlin in May.", "Rome", False),
        ("I have two kids", 3, False),
        ("I was born on May 3, 1990", "1991-05-03", False),
        ("I quit yesterday", "2026-05-18", False),
        ("我住在柏林", "罗马", False),
        ("I speak Dutch", "", False),
        ("I live here", "the", False),
        ("9" * 400, 10**400, False),
        ("9" * 400, "8" * 400, False),
        ("I have inf", "nan", False),
    ],
)
def test_a_value_is_in_the_words_or_not(quote: str, value: str | float, is_there: bool) -> None:
    assert contains_value(quote, value, TS) is is_there
