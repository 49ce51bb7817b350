"""Relative dates on the page: what they meant on the day they were said, and what is left alone (TM-08)."""

from __future__ import annotations

import pytest

from muniment.packets.page.dated import NOTES_MAX, dated, undated

SAID = "2026-03-11T09:30:00Z"
"""A Wednesday."""

RESOLVED = [
    ("I'll send it next Friday.", "next Friday (= 2026-03-13)"),
    ("We met yesterday.", "yesterday (= 2026-03-10)"),
    ("Yesterday I ran ten miles.", "Yesterday (= 2026-03-10)"),
    ("The day before yesterday it rained.", "day before yesterday (= 2026-03-09)"),
    ("See you tomorrow!", "tomorrow (= 2026-03-12)"),
    ("Tomorrow's game is off.", "Tomorrow's (= 2026-03-12)"),
    ("The day after tomorrow we fly.", "day after tomorrow (= 2026-03-13)"),
    ("Last night was loud.", "Last night (= 2026-03-10)"),
    ("We ate out last Friday night.", "last Friday night (= 2026-03-06)"),
    ("last Sunday's match", "last Sunday's (= 2026-03-08)"),
    ("Are you free this Friday?", "this Friday (= 2026-03-13)"),
    ("The exam is this weekend.", "this weekend (= weekend of 2026-03-14)"),
    ("Last weekend we hiked.", "Last weekend (= weekend of 2026-03-07)"),
    ("I moved two weeks ago.", "two weeks ago (= week of 2026-02-23)"),
    ("He left 3 days ago, sadly.", "3 days ago (= 2026-03-08)"),
    ("They married five years ago.", "five years ago (= 2021)"),
    ("A month ago I quit.", "A month ago (= 2026-02)"),
    ("My lease ended last month.", "last month (= 2026-02)"),
    ("Next month I start at Acme.", "Next month (= 2026-04)"),
    ("I was in Rome last year.", "last year (= 2025)"),
    ("We plan to marry next year.", "next year (= 2027)"),
    ("Last summer we sailed.", "Last summer (= 2025-06 to 2025-08)"),
    ("next week is fine", "next week (= week of 2026-03-16)"),
    ("It was the week before last.", "week before last (= week of 2026-02-23)"),
    ("The paper is due in two weeks.", "in two weeks (= week of 2026-03-23)"),
    ("I'll be back in 3 days.", "in 3 days (= 2026-03-14)"),
    ("It ends ten days from now.", "ten days from now (= 2026-03-21)"),
    ("I signed up back in January.", "in January (= 2026-01)"),
    ("In November we adopted a dog.", "In November (= 2025-11)"),
    ("We'll move in October.", "in October (= 2026-10)"),
    ("The show will open in February.", "in February (= 2027-02)"),
    ("I saw her on Monday.", "on Monday (= 2026-03-09)"),
    ("We'll talk on Monday.", "on Monday (= 2026-03-16)"),
    ("We painted the fence over the weekend.", "over the weekend (= weekend of 2026-03-07)"),
    ("next Tuesday, right?", "next Tuesday (= 2026-03-17)"),
    ("Monday of next week works.", "Monday of next week (= 2026-03-16)"),
    ("我昨天去了柏林。", "昨天(= 2026-03-10)"),
    ("明天见！", "明天(= 2026-03-12)"),
    ("上周五我们吃了火锅。", "上周五(= 2026-03-06)"),
    ("她去年毕业了。", "去年(= 2025)"),
    ("三天前下雨了。", "三天前(= 2026-03-08)"),
    ("下个月我要搬家。", "下个月(= 2026-04)"),
    ("어제 영화를 봤어요.", "어제(= 2026-03-10)"),
    ("내일 만나요.", "내일(= 2026-03-12)"),
    ("지난주 금요일에 만났어.", "지난주 금요일(= 2026-03-06)"),
    ("작년에 결혼했어요.", "작년(= 2025)"),
    ("이틀 전에 왔어요.", "이틀 전(= 2026-03-09)"),
]


@pytest.mark.req("TM-08")
@pytest.mark.parametrize(("text", "note"), RESOLVED)
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
@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_may_mean_something_else_is_left_alone(text: str) -> None:
    assert dated(text, SAID) == text


@pytest.mark.req("TM-08")
def test_a_week_named_on_a_sunday_is_left_alone() -> None:
    """Where weeks begin on Sunday it is another one than where they begin on Monday."""
    assert dated("I graduated last week.", "2026-03-15T10:00:00Z") == "I graduated last week."
    assert dated("I graduated last Friday.", "2026-03-15T10:00:00Z") == (
        "I graduated last Friday. | last Friday (= 2026-03-13)"
    )
    assert "week of 2026-03-02" in dated("I graduated last week.", "2026-03-14T10:00:00Z")


@pytest.mark.req("TM-08")
def test_so_many_notes_a_line_and_a_time_once() -> None:
    many = "yesterday, tomorrow, last week, next week, last year, next year"
    assert dated(many, SAID).count("(= ") == NOTES_MAX
    assert dated("Yesterday. I said yesterday!", SAID) == "Yesterday. I said yesterday! | Yesterday (= 2026-03-10)"


@pytest.mark.req("TM-08")
@pytest.mark.parametrize("ts", [None, "", "soon", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z"])
def test_what_was_said_nobody_knows_when_is_left_alone(ts: str | None) -> None:
    assert dated("yesterday", ts) == "yesterday"


@pytest.mark.req("TM-08")
@pytest.mark.parametrize(
    "forged", ["next Friday (= 2020-01-03)", "then (=2020)", "x (=  week of 2020-01-06)", "((= 2020-01-03))"]
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
    assert "(= 2026-03-1" in shown
    assert shown.startswith(f"{text} | ")
