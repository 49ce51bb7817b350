"""Dates of an answer in one form, and days that are told by another day."""

from __future__ import annotations

import pytest
from benchmarks.answer_dates import in_dates, one_form

from muniment.verify.answers import contains_any, token_f1
from products import for_each


@for_each(
    ("told", "form"),
    [
        ("2023 may 7", "7 may 2023"),
        ("2023 jan 29: [1]", "29 january 2023: [1]"),
        ("2023 sept. 3rd", "3 september 2023"),
        ("2023-05", "may 2023"),
        ("since 2021-12.", "since december 2021."),
        ("the sunday before 25 may 2023", "21 may 2023"),
        ("the sunday before may 25th, 2023", "21 may 2023"),
        ("the sunday before 2023-05-25", "21 may 2023"),
        ("the sunday before 2023 may 25", "21 may 2023"),
        ("saturday before the 20th of may 2023", "13 may 2023"),
        ("two fridays before 15 july 2023", "7 july 2023"),
        ("the friday after 15 july 2023", "21 july 2023"),
        ("the week before 3 july 2023", "week of 26 june 2023"),
        ("the week before 9 june 2023", "week of 29 may 2023"),
        ("two weeks before 11 august 2023", "week of 24 july 2023"),
        ("the weekend before 17 july 2023", "weekend of 15 july 2023"),
        ("the weekend before 16 july 2023", "weekend of 8 july 2023"),
        ("two weekends before 17 july 2023", "weekend of 8 july 2023"),
        ("the weekend after 12 july 2023", "weekend of 15 july 2023"),
        ("the weekend after 15 july 2023", "weekend of 22 july 2023"),
        ("the day before 1 march 2024", "29 february 2024"),
        ("3 days after 30 december 2023", "2 january 2024"),
        ("a month before 9 june 2023", "may 2023"),
        ("the year before 9 june 2023", "2022"),
        ("the day before 2 may 2023, then the day after 2 may 2023", "1 may 2023, then 3 may 2023"),
    ],
)
def test_a_date_is_told_in_one_form(told: str, form: str) -> None:
    assert one_form(told) == form


@for_each(
    "told",
    [
        "2021-13 is not",
        "the day before 31 june 2024",
        "the week before june 2023",
        "the week before 3 july",
        "the day before 1 january 0001",
        "9999 years before 3 july 2023",
        "0 days before 3 july 2023",
        "call 2023-05-07 or 555-2023-05",
        "in 2023 may 7:30 do",
        "no date at all",
    ],
)
def test_what_is_none_stays(told: str) -> None:
    assert one_form(told) == told


@for_each(
    ("one", "other"),
    [
        ("2023-05-21", "The Sunday before 25 May 2023"),
        ("May 7, 2023", "2023 May 7"),
        ("2023-06", "June, 2023"),
        ("week of 29 May 2023", "The week before 9 June 2023"),
        ("２０２３-０６", "June 2023"),
    ],
)
def test_two_ways_of_naming_a_day_are_one_answer(one: str, other: str) -> None:
    one, other = in_dates(one), in_dates(other)
    assert token_f1(one, other) == token_f1(other, one) == 1
    assert contains_any(f"She said {one}.", [other])


def test_another_day_is_another_answer() -> None:
    sunday = in_dates("The Sunday before 25 May 2023")
    assert token_f1("22 May 2023", sunday) == pytest.approx(2 / 3)
    assert not contains_any("22 May 2023", [sunday])
    assert token_f1("8 June 2023", "8 May 2023") == pytest.approx(1 / 3)


@pytest.mark.soak
def test_a_long_text_is_read_once() -> None:
    text = "the day before 2 may 2023 and " * 20_000
    assert one_form(text).count("1 may 2023") == 20_000
    assert one_form("week before " * 50_000 + "1") == "week before " * 50_000 + "1"
