"""Relative dates on the page: what they meant on the day they were said, and what is left alone (TM-08)."""

from __future__ import annotations

import pytest

from muniment.packets.page.dated import NOTES_MAX, dated, undated
from products import for_each

SAID = "2026-03-11T09:30:00Z"
"""A Wednesday."""

RESOLVED = [
    ("I'll send it next Friday.", "next Friday (= 13 March 2026)"),
    ("We met yesterday.", "yesterday (= 10 March 2026)"),
    ("Yesterday I ran ten miles.", "Yesterday (= 10 March 2026)"),
    ("The day before yesterday it rained.", "day before yesterday (= 9 March 2026)"),
    ("See you tomorrow!", "tomorrow (= 12 March 2026)"),
    ("Tomorrow's game is off.", "Tomorrow's (= 12 March 2026)"),
    ("The day after tomorrow we fly.", "day after tomorrow (= 13 March 2026)"),
    ("Last night was loud.", "Last night (= 10 March 2026)"),
    ("We ate out last Friday night.", "last Friday night (= 6 March 2026)"),
    ("last Sunday's match", "last Sunday's (= 8 March 2026)"),
    ("Are you free this Friday?", "this Friday (= 13 March 2026)"),
    ("The exam is this weekend.", "this weekend (= weekend of 14 March 2026)"),
    ("Last weekend we hiked.", "Last weekend (= weekend of 7 March 2026)"),
    ("I moved two weeks ago.", "two weeks ago (= week of 23 February 2026)"),
    ("He left 3 days ago, sadly.", "3 days ago (= 8 March 2026)"),
    ("They married five years ago.", "five years ago (= 2021)"),
    ("A month ago I quit.", "A month ago (= February 2026)"),
    ("My lease ended last month.", "last month (= February 2026)"),
    ("Next month I start at Acme.", "Next month (= April 2026)"),
    ("I was in Rome last year.", "last year (= 2025)"),
    ("We plan to marry next year.", "next year (= 2027)"),
    ("Last summer we sailed.", "Last summer (= June 2025 to August 2025)"),
    ("next week is fine", "next week (= week of 16 March 2026)"),
    ("It was the week before last.", "week before last (= week of 23 February 2026)"),
    ("The paper is due in two weeks.", "in two weeks (= week of 23 March 2026)"),
    ("I'll be back in 3 days.", "in 3 days (= 14 March 2026)"),
    ("It ends ten days from now.", "ten days from now (= 21 March 2026)"),
    ("I signed up back in January.", "in January (= January 2026)"),
    ("In November we adopted a dog.", "In November (= November 2025)"),
    ("We'll move in October.", "in October (= October 2026)"),
    ("The show will open in February.", "in February (= February 2027)"),
    ("I saw her on Monday.", "on Monday (= 9 March 2026)"),
    ("We'll talk on Monday.", "on Monday (= 16 March 2026)"),
    ("We painted the fence over the weekend.", "over the weekend (= weekend of 7 March 2026)"),
    ("next Tuesday, right?", "next Tuesday (= 17 March 2026)"),
    ("Monday of next week works.", "Monday of next week (= 16 March 2026)"),
    ("我昨天去了柏林。", "昨天(= 10 March 2026)"),
    ("明天见！", "明天(= 12 March 2026)"),
    ("上周五我们吃了火锅。", "上周五(= 6 March 2026)"),
    ("她去年毕业了。", "去年(= 2025)"),
    ("三天前下雨了。", "三天前(= 8 March 2026)"),
    ("下个月我要搬家。", "下个月(= April 2026)"),
    ("어제 영화를 봤어요.", "어제(= 10 March 2026)"),
    ("내일 만나요.", "내일(= 12 March 2026)"),
    ("지난주 금요일에 만났어.", "지난주 금요일(= 6 March 2026)"),
    ("작년에 결혼했어요.", "작년(= 2025)"),
    ("이틀 전에 왔어요.", "이틀 전(= 9 March 2026)"),
]


@pytest.mark.req("TM-08")
@for_each(("text", "note"), RESOLVED)
def test_a_relative_date_is_told_by_the_day_it_was_said_on(text: str, note: str) -> None:
    """TM-08: behind the text, which stays word for word."""
    assert dated(text, SAID) == f"{text} | {note}"


LEFT_ALONE = [
    "We watched Friday Night Lights.",
    "May I come in?",
    "This may be a problem.",
    "This may well have been me.",
    "She sits next to me.",
    "The bank is next door, the last one on the left.",
    "I work today and this morning was long.",
    "This week is busy, and so is this month, and this year.",
    "A few days ago it rained.",
    "Several weeks ago we met, or a couple of months ago.",
    "About two weeks ago, maybe.",
    "It was two or three weeks ago.",
    "Some 2-3 weeks ago.",
    "It was 1.5 years ago.",
    "Over the last week I slept badly.",
    "In the past month I ran a lot.",
    "The previous week was better.",
    "It was the last night of the trip.",
    "the next Friday after that",
    "I lost five pounds in two weeks.",
    "It was the best meal in three years.",
    "She arrived two days before.",
    "I like tea on Friday.",
    "We meet on Fridays and on Saturday nights.",
    "Party like there's no tomorrow.",
    "for a better tomorrow",
    "The Beatles' Yesterday is my favourite.",
    'We sang "yesterday" together.',
    "The Day After Tomorrow is a film.",
    "Last Friday Night is a song.",
    "Last Night in Soho scared me.",
    "The sun this sat on was hot.",
    "We march in march step.",
    "I was born in May 1990.",
    "We met in March of last year.",
    "The demo is next Friday, March 13.",
    "The demo is tomorrow (2026-03-12).",
    "next week or so",
    "`rm last week.log` and ```\nprint('yesterday')\n```",
    "She wrote:\n> I arrived yesterday.",
    "以前天天下雨。",
    "几天前我们见过。",
    "三天后他回来了。",
    "然后天黑了。",
    "그제서야 알았다.",
    "몇 년 전에 만났어요.",
    "no time at all",
    "",
]


@pytest.mark.req("TM-08")
@for_each("text", LEFT_ALONE)
def test_what_may_mean_something_else_is_left_alone(text: str) -> None:
    assert dated(text, SAID) == text


@pytest.mark.req("TM-08")
def test_a_week_named_on_a_sunday_is_left_alone() -> None:
    """Where weeks begin on Sunday it is another one than where they begin on Monday."""
    assert dated("I graduated last week.", "2026-03-15T10:00:00Z") == "I graduated last week."
    assert dated("I graduated last Friday.", "2026-03-15T10:00:00Z") == (
        "I graduated last Friday. | last Friday (= 13 March 2026)"
    )
    assert "week of 2 March 2026" in dated("I graduated last week.", "2026-03-14T10:00:00Z")


@pytest.mark.req("TM-08")
def test_so_many_notes_a_line_and_a_time_once() -> None:
    many = "yesterday, tomorrow, last week, next week, last year, next year"
    assert dated(many, SAID).count("(= ") == NOTES_MAX
    assert dated("Yesterday. I said yesterday!", SAID) == "Yesterday. I said yesterday! | Yesterday (= 10 March 2026)"


@pytest.mark.req("TM-08")
@for_each("ts", [None, "", "soon", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z"])
def test_what_was_said_nobody_knows_when_is_left_alone(ts: str | None) -> None:
    assert dated("yesterday", ts) == "yesterday"


@pytest.mark.req("TM-08")
@pytest.mark.parametrize(
    "forged",
    ["next Friday (= 3 January 2020)", "then (=2020)", "x (=  week of 6 January 2020)", "((= 3 January 2020))"],
)
def test_what_is_said_does_not_pass_for_a_note(forged: str) -> None:
    assert "(=" not in undated(forged)
    assert "(= 2020" not in dated(forged, SAID)
    assert undated("(= a b) and (== 1)") == "(= a b) and (== 1)"


@pytest.mark.req("TM-08")
@pytest.mark.parametrize(
    "text", ["İstanbul'da: see you tomorrow", "ẞ ﬃ we met yesterday ok", "ﬁne, next Friday I will"]
)
def test_letters_that_fold_to_more_than_one_move_nothing(text: str) -> None:
    shown = dated(text, SAID)
    assert "March 2026)" in shown
    assert shown.startswith(f"{text} | ")
