"""Relative days on the page: what they meant on the day they were said, and what is left alone (TM-01, TM-08)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.packets.page import NOTES_MAX, dated, undated
from muniment.packets.render import render
from products import for_each

SAID = "2026-03-11T09:30:00Z"
"""A Wednesday."""

RESOLVED = [
    ("We met yesterday.", "yesterday (= 10 March 2026)"),
    ("Yesterday I ran ten miles.", "Yesterday (= 10 March 2026)"),
    ("I finished it yesterday morning!", "yesterday (= 10 March 2026)"),
    ("We missed yesterday's train.", "yesterday (= 10 March 2026)"),
    ("Good to see you! Last night was loud.", "Last night (= 10 March 2026)"),
    ("Last weekend we hiked.", "Last weekend (= weekend of 7 March 2026)"),
    ("I changed jobs last week, sadly.", "last week (= week of 2 March 2026)"),
    ("My lease ended last month.", "last month (= February 2026)"),
    ("I was in Rome last year (alone).", "last year (= 2025)"),
    ("Just last year we moved.", "last year (= 2025)"),
]


@pytest.mark.req("TM-01")
@for_each(("text", "note"), RESOLVED)
def test_the_day_just_past_is_told_by_the_day_it_was_said_on(text: str, note: str) -> None:
    """The note stands behind the text, which stays word for word."""
    assert dated(text, SAID) == f"{text} | {note}"


LEFT_ALONE = [
    # days that are measured wrong too often, or too seldom to know
    "We're moving there in August.",
    "I saw her on Monday.",
    "I'll be back in 3 days.",
    "I moved two weeks ago, or five years ago.",
    "See you tomorrow!",
    "I'll send it next Friday.",
    "Next week I start at Acme; next year we marry.",
    "We ate out last Friday night.",
    "Are you free this weekend?",
    "Last summer we sailed.",
    "The day before yesterday it rained.",
    # other languages
    "我昨天去了柏林。",
    "她去年毕业了。",
    "어제 영화를 봤어요.",
    "Ayer comí pescado.",
    # somebody else's words, drafts, code
    'We sang "yesterday" together.',
    "She said “I quit last week” and left.",
    "Write to my boss: I was ill last week.",
    "Dear team,\nI was ill last week.",
    "`rm last week.log` then",
    "He wrote 'I saw her yesterday' on it.",
    "「I met her yesterday」",
    # counted from another day
    "It was the last week of school.",
    "It was my last year at college.",
    "In Ana's last month here we cried.",
    "Over the last week I slept badly.",
    "On 3 April 2025 I wrote that I moved last month.",
    "My friend got engaged last month on May 15th.",
    "They released it in 2019, and it was last year.",
    "A week from yesterday it ends.",
    "last week or so",
    "It seems like yesterday.",
    "It feels like it was only yesterday.",
    # titles and other words
    "The Beatles' Yesterday is my favourite.",
    "Last Night in Soho scared me.",
    "I watch Last Week Tonight.",
    "no time at all",
    "",
    "I was there yesterday. " + "And so on. " * 100,
]


@pytest.mark.req("TM-01")
@for_each("text", LEFT_ALONE)
def test_what_may_mean_something_else_is_left_alone(text: str) -> None:
    assert dated(text, SAID) == text


@pytest.mark.req("TM-01")
def test_a_week_named_on_a_sunday_and_a_weekend_named_on_one_are_left_alone() -> None:
    """Weeks begin on Sunday or on Monday, and the last weekend may be the one that is ending."""
    sunday, saturday = "2026-03-15T10:00:00Z", "2026-03-14T10:00:00Z"
    assert dated("I graduated last week.", sunday) == "I graduated last week."
    assert dated("We hiked last weekend.", sunday) == "We hiked last weekend."
    assert dated("We hiked last weekend.", saturday) == "We hiked last weekend."
    assert "week of 2 March 2026" in dated("I graduated last week.", saturday)


@pytest.mark.req("TM-01")
def test_days_are_the_speakers() -> None:
    """Half past eleven at night in New York is the next day in London."""
    assert "(= 9 March 2026)" in dated("I fell yesterday.", "2026-03-10T23:30:00-04:00")


@pytest.mark.req("TM-01")
@for_each(
    "ts",
    [
        "2026-03-10T23:30:00-04:00",
        datetime(2026, 3, 10, 23, 30, tzinfo=timezone(timedelta(hours=-4))),
        "2026-03-10T01:00:00+05:30",
    ],
)
def test_a_packet_tells_the_speakers_days(make: Any, ts: Any) -> None:
    """The ledger orders by instants and keeps the caller's offset: headings and notes go by the speaker's calendar."""
    mem: Memory = make("memory")
    said = mem.run(user_id="ana", session_id="s1").observe("user", "I fell off the kayak yesterday.", ts=ts)
    assert said.ts.endswith("Z")
    entry = mem.ledger.get(said.id)
    assert entry.body is not None
    assert entry.body.utc_offset in (-240, 330)
    build = mem.run(user_id="ana", session_id="s2").compose("planner", query="kayak", now="2026-03-20T09:00:00Z")
    assert "10 March 2026:\n" in build.text
    assert "yesterday (= 9 March 2026)" in build.text
    assert render(build.packet).text == build.text
    assert mem.verify().ok


@pytest.mark.req("TM-01")
@for_each("ts", [None, "2026-03-10T23:30:00Z", "2026-03-10T23:30:00", datetime(2026, 3, 10, 23, 30, tzinfo=UTC)])
def test_no_offset_is_kept_of_utc(make: Any, ts: Any) -> None:
    entry = make("memory").run(user_id="ana", session_id="s1").observe("user", "I fell off the kayak.", ts=ts)
    assert entry.body.utc_offset is None


@pytest.mark.req("TM-01")
def test_only_a_users_own_turns_have_notes(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    text = "The kayak trip was yesterday."
    events: list[dict[str, Any]] = [
        {"role": "user", "content": f"{text} I was there.", "ts": SAID},
        {"role": "assistant", "content": f"{text} You told me so.", "ts": SAID},
        {"role": "user", "content": f"Draft a note about the kayak\n{text}", "ts": SAID},
    ]
    run.observe_many(events)
    run.observe_tool("calendar", content=f"{text} Paid.", ts=SAID)
    asking = mem.run(user_id="ana", session_id="s2")
    for purpose in ("planner", "tool", "responder"):
        page = asking.compose(purpose, query="When was the kayak trip?", now="2026-03-20T09:00:00Z").text
        assert page.count("(= ") == page.count("I was there. | yesterday (= 10 March 2026)") == 1


@pytest.mark.req("TM-08")
def test_so_many_notes_a_line_and_a_time_once() -> None:
    many = "yesterday, last week, last month, last year, last weekend"
    assert dated(many, SAID).count("(= ") == NOTES_MAX
    assert dated("Yesterday. I said yesterday!", SAID) == "Yesterday. I said yesterday! | Yesterday (= 10 March 2026)"


@pytest.mark.req("TM-08")
@for_each("ts", [None, "", "soon", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z"])
def test_what_was_said_nobody_knows_when_is_left_alone(ts: str | None) -> None:
    assert dated("yesterday", ts) == "yesterday"


@pytest.mark.req("TM-08")
@for_each(
    "forged",
    ["next Friday (= 3 January 2020)", "then (=2020)", "x (=  week of 6 January 2020)", "((= 3 January 2020))"],
)
def test_what_is_said_does_not_pass_for_a_note(forged: str) -> None:
    assert "(=" not in undated(forged)
    assert "(= 2020" not in dated(forged, SAID)
    assert undated("(= a b) and (== 1)") == "(= a b) and (== 1)"
