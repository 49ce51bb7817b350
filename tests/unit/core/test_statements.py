"""What a text states: of whom, of what, with which value, in which words; and what states nothing."""

# ruff: noqa: E501 - a table of cases reads best with one to a line

from __future__ import annotations

import pytest

from muniment.core.text.stated.statements import STATEMENTS_MAX, read_statements
from products import for_each

YEAR = 2026


def stated(text: str) -> list[tuple[str, str, str]]:
    """Key, mode and words of each."""
    return [(each.label, each.mode, text[each.start : each.end]) for each in read_statements(text, YEAR)]


@pytest.mark.req("TM-01")
@for_each(
    ("text", "found"),
    [
        ("I live in Lisbon and I am allergic to peanuts.", [("home", "is", "I live in Lisbon"), ("allergy", "is", "I am allergic to peanuts")]),
        ("I live in Lisbon, work at Acme and drive a Honda.", [("home", "is", "I live in Lisbon"), ("employer", "is", "work at Acme"), ("car", "is", "drive a Honda")]),
        ("My sister Ana lives in Porto and I work at Siemens.", [("sister.home", "is", "My sister Ana lives in Porto"), ("employer", "is", "I work at Siemens")]),
        ("My sister is a nurse and lives in Porto.", [("sister.home", "is", "lives in Porto")]),
        ("My brother visited. He moved to Rome.", [("brother.home", "changes", "He moved to Rome")]),
        ("Just moved to Berlin!", [("home", "changes", "moved to Berlin")]),
        ("I used to live in Lisbon.", [("home", "ends", "I used to live in Lisbon")]),
        ("I don't work at Acme anymore.", [("employer", "ends", "I don't work at Acme anymore")]),
        ("I'm not allergic to peanuts.", [("allergy", "ends", "I'm not allergic to peanuts")]),
        ("I work for IBM now.", [("employer", "changes", "I work for IBM now")]),
        ("My sister's birthday is June 5.", [("sister.birthday", "is", "My sister's birthday is June 5")]),
        ("My favourite colour is blue.", [("favorite.colour", "is", "My favourite colour is blue")]),
        ("I love my sister and moved to Rome.", [("home", "changes", "moved to Rome")]),
        ("我住在上海。", [("home", "is", "我住在上海")]),
        ("저는 서울로 이사했어요.", [("home", "changes", "저는 서울로 이사했어요")]),
    ],
)  # fmt: skip
def test_what_is_stated_and_by_which_words(text: str, found: list[tuple[str, str, str]]) -> None:
    assert stated(text) == found


@pytest.mark.req("TM-01")
@for_each(
    "text",
    [
        "Where do I live?",
        "Do you know whether I live in Lisbon?",
        "I would love to live in Rome.",
        "If I lived in Rome, I would work at Acme.",
        "I moved the meeting to Friday.",
        "I moved to Slack last year.",
        "We moved to Jira at work.",
        "The company moved to Berlin.",
        "I heard the company moved to Berlin.",
        "She moved to Rome.",
        "I moved to Berlin in 2010 and came back.",
        "I lived in Berlin as a child.",
        "I'll move to Berlin.",
        'He wrote "I live in Rome" on the wall.',
        "> I live in Rome.",
        "```\nI live in Rome.\n```",
        "My boss is great.",
        "My manager is on vacation in Spain.",
        "I bought a phone case.",
        "I work with Globex a lot.",
        "要是我住在北京就好了。",
        "제주도에 살고 싶어요.",
        "",
    ],
)
def test_what_states_nothing(text: str) -> None:
    assert stated(text) == []


def test_a_form_is_nobodys_plain_word() -> None:
    one = "I work at Acme{}. "
    assert len(read_statements("".join(one.format(number) for number in range(3)), YEAR)) == 3
    assert read_statements("".join(one.format(number) for number in range(STATEMENTS_MAX + 1)), YEAR) == ()


@pytest.mark.parametrize(("text", "count"), [("I moved to Berlin in 2026.", 1), ("I moved to Berlin in 2025.", 1), ("I moved to Berlin in 2019.", 0)])  # fmt: skip
def test_a_move_of_years_ago_says_little_of_today(text: str, count: int) -> None:
    assert len(read_statements(text, YEAR)) == count
