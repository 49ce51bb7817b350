"""Time in words: seen from the day it was said on, and asked for."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.times import when
from muniment.core.text.times.asked_when import query_window
from muniment.core.text.times.turn_dates import date_terms
from muniment.core.text.times.when import _WAYS, Window, find_spans, likely_ways, resolve, window_terms
from products import for_each

SAID = date(2023, 5, 8)  # a Monday


@for_each(
    ("text", "start", "end"),
    [
        ("I went yesterday", "2023-05-07", "2023-05-07"),
        ("the day before yesterday", "2023-05-06", "2023-05-06"),
        ("see you tomorrow", "2023-05-09", "2023-05-09"),
        ("last Friday", "2023-05-05", "2023-05-05"),
        ("next Friday", "2023-05-12", "2023-05-12"),
        ("last Monday", "2023-05-01", "2023-05-01"),
        ("two weeks ago", "2023-04-24", "2023-04-30"),
        ("a couple of months ago", "2023-03-01", "2023-03-31"),
        ("3 days ago", "2023-05-05", "2023-05-05"),
        ("next month", "2023-06-01", "2023-06-30"),
        ("last week", "2023-05-01", "2023-05-07"),
        ("last year", "2022-01-01", "2022-12-31"),
        ("last May", "2022-05-01", "2022-05-31"),
        ("last summer", "2022-06-01", "2022-08-31"),
        ("last weekend", "2023-05-06", "2023-05-07"),
        ("this past weekend", "2023-05-06", "2023-05-07"),
        ("昨天去了", "2023-05-07", "2023-05-07"),
        ("上周五", "2023-05-05", "2023-05-05"),
        ("三个月前", "2023-02-01", "2023-02-28"),
        ("去年", "2022-01-01", "2022-12-31"),
        ("明天", "2023-05-09", "2023-05-09"),
        ("어제 갔다", "2023-05-07", "2023-05-07"),
        ("지난주에", "2023-05-01", "2023-05-07"),
        ("작년", "2022-01-01", "2022-12-31"),
        ("2주 전", "2023-04-24", "2023-04-30"),
        ("내일", "2023-05-09", "2023-05-09"),
    ],
)
def test_relative_expressions(text: str, start: str, end: str) -> None:
    (window,) = resolve(text, SAID)
    assert (window.start.isoformat(), window.end.isoformat()) == (start, end)


def test_a_resolved_day_has_the_terms_of_that_date() -> None:
    assert sorted(date_terms("I went yesterday", SAID)) == ["#d5-7", "#m5", "2023"]
    assert date_terms("last year", SAID) == ["2022"]
    assert date_terms("nothing here", SAID) == []


@for_each(
    ("text", "start", "end", "grain"),
    [
        ("What happened in May 2022?", "2022-05-01", "2022-05-31", "month"),
        ("What happened last May?", "2022-05-01", "2022-05-31", "month"),
        ("What happened on 7 May?", "2023-05-07", "2023-05-07", "day"),
        ("What happened on May 9th?", "2022-05-09", "2022-05-09", "day"),
        ("What happened in August?", "2022-08-01", "2022-08-31", "month"),
        ("What happened in 2021?", "2021-01-01", "2021-12-31", "year"),
        ("before May 2022", "0001-01-01", "2022-04-30", "before"),
        ("after 2021-03-04", "2021-03-05", "9999-12-31", "after"),
        ("5月去了哪里", "2023-05-01", "2023-05-31", "month"),
        ("2022년 3월 이후", "2022-03-01", "9999-12-31", "after"),
        ("what did I do two weeks ago", "2023-04-24", "2023-04-30", "week"),
    ],
)
def test_questions_name_a_window(text: str, start: str, end: str, grain: str) -> None:
    window = query_window(text, SAID)
    assert window is not None
    assert (window.start.isoformat(), window.end.isoformat(), window.grain) == (start, end, grain)


@pytest.mark.parametrize("text", ["May I ask?", "before the trip", "after we met", "who is she"])
def test_what_names_no_date_has_no_window(text: str) -> None:
    assert query_window(text, SAID) is None


@given(st.text(), st.dates())
def test_any_text_on_any_day(text: str, said: date) -> None:
    windows = resolve(text, said)
    assert windows == resolve(text, said)
    for window in [*windows, query_window(text, said)]:
        assert window is None or window.start <= window.end
        assert window is None or all(window_terms(window))


PIECES = (
    "last next this 3 999 days weeks months years ago in from now on friday weekend may 31 february 2023 9999 0000 "
    "before after 上周 个月前 年 月 日 지난 주 전 99"
)


@given(
    st.lists(st.sampled_from(PIECES.split()), max_size=8).map(" ".join),
    st.sampled_from([date.min, date.max, SAID, date(2024, 2, 29)]),
)
def test_odd_expressions_at_the_ends_of_the_calendar(text: str, said: date) -> None:
    for window in [*resolve(text, said), query_window(text, said)]:
        assert window is None or isinstance(window, Window)


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "an",
                "one",
                "two",
                "ten",
                "couple",
                "of",
                "few",
                "several",
                "3",
                "12",
                "in",
                "ago",
                "back",
                "before",
                "from",
                "now",
                "day",
                "days",
                "week",
                "weeks",
                "month",
                "months",
                "year",
                "years",
                "last",
                "past",
                "previous",
                "this",
                "next",
                "coming",
                "the",
                "over",
                "on",
                "weekend",
                "night",
                "morning",
                "afternoon",
                "evening",
                "yesterday",
                "today",
                "tonight",
                "tomorrow",
                "after",
                "monday",
                "tue",
                "wed",
                "thursday",
                "thur",
                "fri",
                "sat",
                "sunday",
                "mon",
                "january",
                "may",
                "june",
                "sept",
                "dec",
                "spring",
                "summer",
                "fall",
                "winter",
                "half",
                "fortnight",
                "I",
                "moved",
                "dog",
            ]
        ),
        max_size=9,
    )
)
def test_the_quick_look_misses_nothing(words: list[str]) -> None:
    """`resolve` skips texts by a cheap look; it must find what the patterns find."""
    folded = " ".join(words).casefold()
    said = date(2024, 5, 8)
    assert resolve(folded, said) == [window for _, window in when.find_spans(folded, said, when._WAYS)]


@for_each("name", ["thursday", "thu", "thur", "thurs", "tue", "tues"])
def test_a_day_of_the_week_however_it_is_cut_short(name: str) -> None:
    said = date(2024, 5, 8)
    found = resolve(f"see you on {name}", said)
    assert all(window.start == window.end < said for window in found)
    assert found or name == "thu"


@for_each("slip", ["1th", "1rd", "2st", "2th", "3nd", "3th", "4st", "5rd"])
def test_a_slip_in_an_ordinal_leaves_the_month_it_is_part_of(slip: str) -> None:
    said = date(2024, 5, 8)
    april = [when.Window(date(2024, 4, 1), date(2024, 4, 30), "month")]
    assert resolve(f"we met on the {slip} day of last month", said) == april


def test_of_times_that_share_letters_the_first_way_to_read_them_wins() -> None:
    said = date(2024, 5, 8)
    found = dict(when.find_spans("yesterday, the day before yesterday, and yesterday", said, when._WAYS))
    assert {span: window.start.day for span, window in found.items()} == {(0, 9): 7, (15, 35): 6, (41, 50): 7}


@for_each(
    "text",
    [
        "the café closed two weeks ago — we’d been there last friday",
        "昨天我们去了上海，下周三回来，去年也去过",
        "三天前说好的，后天见，上个月的事",
        "지난주 금요일에 만났고 다음 달에 또 보기로 했어요. 사흘 전에도, 올해도",
        "l’été: next summer, the day after tomorrow, the first week of last month …",
        "in three days · on monday · the weekend before last · 3 months from now",
        "“this morning” said naïve 민수, 내일 — tomorrow",
    ],
)
def test_no_way_is_passed_over_that_a_text_in_any_script_could_hold(text: str) -> None:
    folded, said = text.casefold(), date(2026, 3, 4)
    assert list(find_spans(folded, said, likely_ways(folded))) == list(find_spans(folded, said, _WAYS))
    assert 0 < len(likely_ways(folded)) < len(_WAYS)
