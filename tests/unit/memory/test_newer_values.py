"""A value that is stated later stands above the older one, wherever in a long turn it is said (issue 18).

Matters of many kinds, each stated once and stated otherwise later, both in the midst of long turns of one session, with
an assistant that repeats the old value at length; and what looks like an update and is none.
"""

# ruff: noqa: E501 - tables of sentences read best with one to a line

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import pytest

from muniment.core.policy import RecallPolicy
from muniment.core.text.stated.measures import MEASURES, stated, value_marks
from muniment.memory.recall.index import MemoryIndex, SpokenTurn
from muniment.memory.recall.newer_values import Passage as Said
from muniment.memory.recall.newer_values import Stating, newer_above, wanted_values
from muniment.memory.recall.query import read_query
from muniment.memory.recall.rank import Ranked, rank
from products import for_each

START = datetime(2025, 3, 3, 9, tzinfo=UTC)
NOW = date(2025, 6, 1)
BEFORE = (
    "Thanks for the answer of yesterday, I went through all of it with a cup of coffee and made notes in the margin. "
    "Most of it was clear, although the part about priorities took me a while, because everything looks urgent here. "
    "My desk is covered in paper and I keep losing the list that I wrote on the train. "
    "I also spoke to the others at lunch and they had plenty of opinions, as usual, none of which agreed. "
)
BEHIND = (
    " Apart from that the week has been quiet and the weather is finally getting better, which helps a lot. "
    "I am still looking for a calm hour in which I can sort everything, and I wonder how other people manage that. "
    "Could you tell me how you would go about it, step by step, so that I do not lose the thread again?"
)
CHATTER = (
    "Good morning! Do you have an idea for a quick dinner with lentils?",
    "The train stood still for ages again, so I read half a novel.",
    "Which plants like a shady balcony that faces north?",
    "I repainted the hall in a pale yellow and it looks friendly.",
    "What is a good way to learn the names of many people?",
    "My neighbour plays the trumpet, and rather well by now.",
)


class Matter(NamedTuple):
    name: str
    query: str
    old: str
    new: str


MATTERS = (
    Matter("the catering budget for the spring gala", "What is the catering budget for the spring gala?", "$4,000", "$5,200"),
    Matter("the monthly rent of the pottery studio", "How much is the monthly rent of the pottery studio?", "850 euros", "910 euros"),
    Matter("the test coverage of the billing module", "What is the test coverage of the billing module?", "61%", "74%"),
    Matter("the bounce rate of the newsletter page", "What is the bounce rate of the newsletter page?", "48 percent", "39 percent"),
    Matter("the deadline for the museum grant report", "What is the deadline for the museum grant report?", "March 14", "March 28"),
    Matter("the launch date of the recipe podcast", "What date is the launch of the recipe podcast?", "April 2", "May 9"),
    Matter("the rehearsal of the chamber choir", "When does the rehearsal of the chamber choir start?", "6:30 pm", "7:15 pm"),
    Matter("the daily quota of the export key", "What is the daily quota of the export key?", "800 calls", "1,000 calls"),
    Matter("the running time of the nightly backup", "How long is the running time of the nightly backup?", "45 minutes", "70 minutes"),
    Matter("the memory limit of the staging server", "What is the memory limit of the staging server?", "16 GB", "32 GB"),
    Matter("the driver version on the plotter", "Which version of the driver is on the plotter?", "14.2.1", "15.4.0"),
    Matter("the weekly word target of my thesis chapter", "What is the weekly word target of my thesis chapter?", "1,200 words", "1,350 words"),
    Matter("my resting blood pressure reading", "What is my resting blood pressure reading?", "128/84", "121/79"),
    Matter("the guest count of the garden wedding", "How many guests does the garden wedding have?", "82 guests", "96 guests"),
    Matter("the size of the chess club", "How many members does the chess club have?", "twelve members", "fifteen members"),
    Matter("the response time of the search endpoint", "What is the response time of the search endpoint?", "220ms", "180ms"),
    Matter("the weekly meeting of the allotment board", "When is the weekly meeting of the allotment board?", "on Tuesday", "on Thursday"),
)  # fmt: skip
UPDATES = (
    "{name} was changed to {new}",
    "{name} has moved to {new}",
    "{name} went from {old} to {new}",
    "{name} is now {new}",
    "actually {name} is {new}",
    "{name} got updated, it is {new} instead of {old}",
    "they extended things a little, so for {name} we are at {new}",
    "{name} is {new}",
    "for {name} we have {new}",
)


def long(statement: str) -> str:
    """A turn of some 150 words with the statement in its midst."""
    return f"{BEFORE}By the way, {statement}{'' if statement.endswith('?') else '.'}{BEHIND}"


def told(*turns: tuple[str, str]) -> MemoryIndex:
    """One session: the turns, by whom each is said, with chatter between them."""
    said: list[tuple[str, str]] = []
    for place, turn in enumerate(turns):
        said += [turn, ("user", CHATTER[place % len(CHATTER)])]
    said += [("user", text) for text in CHATTER]
    return MemoryIndex(
        SpokenTurn("one", role, role, START + timedelta(minutes=place), text) for place, (role, text) in enumerate(said)
    )


def asked(query: str, *turns: tuple[str, str]) -> dict[int, Ranked]:
    """What is found, by the place among `turns` of what was said, in the order of finding."""
    found = rank(query, told(*turns), RecallPolicy(), NOW, 10)
    return {hit.ordinal // 2: hit for hit in found if hit.ordinal % 2 == 0 and hit.ordinal < 2 * len(turns)}


def is_lifted(hit: Ranked) -> bool:
    """Is it told that it stands there for being newer than what answers alike?"""
    return any("answer alike" in reason for reason in hit.reasons)


def answered(matter: Matter) -> tuple[str, str]:
    """The assistant repeats what it was told, and at length."""
    return (
        "assistant",
        f"You said that {matter.name} is {matter.old}. " + BEHIND + f" Again: {matter.name}, {matter.old}.",
    )


@pytest.mark.soak
@for_each("update", UPDATES)
@for_each("matter", MATTERS, ids=lambda matter: matter.name)
def test_a_value_in_the_midst_of_a_long_turn_stands_above_the_older_one(matter: Matter, update: str) -> None:
    old = f"{matter.name} is {matter.old}"
    new = update.format(**matter._asdict())
    for older in (long(old), f"By the way, {old}."):
        found = asked(matter.query, ("user", older), answered(matter), ("user", long(new)))
        places = list(found)
        assert places.index(2) < places.index(0)


NO_UPDATES = {
    "only asked": "should {name} move to {new}?",
    "asked of others": "the weather is fine. Is {name} {new} anywhere else?",
    "only thought of": "maybe {name} could be {new} one day",
    "planned": "I was thinking about {new} for {name}",
    "proposed": "the board suggested {new} for {name}",
    "past": "{name} used to be {new}",
    "told as past": "{name} was {new} before",
    "left behind": "{name} is no longer {new}",
}


@for_each("said", NO_UPDATES.values(), ids=NO_UPDATES)
@for_each("matter", MATTERS, ids=lambda matter: matter.name)
def test_what_states_no_value_is_not_put_above(matter: Matter, said: str) -> None:
    later = said.format(**matter._asdict())
    found = asked(matter.query, ("user", f"By the way, {matter.name} is {matter.old}."), ("user", long(later)))
    assert not is_lifted(found[1])


OTHERS = (
    ("What is my step goal?", "my step goal is 9,000 steps", "my sister's step goal is 12,000 steps"),
    ("What is my step goal?", "my step goal is 9,000 steps", "my sister raised her step goal to 12,000 steps"),
    ("What is the catering budget for the gala?", "the catering budget for the gala is $4,000", "the flower budget for the gala is $900"),
    ("How many chairs are in the reading room?", "there are 40 chairs in the reading room", "there are 12 lamps in the reading room"),
    ("What is the deadline for the museum report?", "the deadline for the museum report is March 14", "the deadline for the choir report is April 2"),
    ("What is the test coverage of the billing module?", "the test coverage of the billing module is 61%", "the test coverage of the search module is 80%"),
    ("How long is the nightly backup?", "the nightly backup takes 45 minutes", "the walk to the station takes 12 minutes"),
)  # fmt: skip


@for_each(("query", "stated", "later"), OTHERS)
def test_somebody_elses_and_another_value_are_not_put_above(query: str, stated: str, later: str) -> None:
    assert not is_lifted(asked(query, ("user", f"By the way, {stated}."), ("user", f"By the way, {later}."))[1])


@for_each("matter", MATTERS, ids=lambda matter: matter.name)
def test_what_the_assistant_suggests_changes_nothing(matter: Matter) -> None:
    stated = f"By the way, {matter.name} is {matter.old}."
    found = asked(matter.query, ("user", stated), ("assistant", f"By the way, {matter.name} is {matter.new}."))
    assert not is_lifted(found[1])


@for_each("matter", MATTERS, ids=lambda matter: matter.name)
def test_who_quotes_the_old_value_after_the_new_one_is_not_put_above(matter: Matter) -> None:
    turns = [
        f"{matter.name} is {matter.old}",
        f"{matter.name} is {matter.new}",
        f"{matter.name} used to be {matter.old}",
    ]
    found = asked(matter.query, *[("user", f"By the way, {turn}.") for turn in turns])
    places = list(found)
    assert places.index(1) < places.index(0)
    assert is_lifted(found[1])
    assert not is_lifted(found[2])


@for_each("matter", MATTERS, ids=lambda matter: matter.name)
def test_why_it_stands_there_is_told(matter: Matter) -> None:
    old, new = long(f"{matter.name} is {matter.old}"), long(f"{matter.name} is {matter.new}")
    found = asked(matter.query, ("user", old), ("user", new))
    assert is_lifted(found[1])
    assert not is_lifted(found[0])


@for_each("filler", range(60, 90))
def test_a_word_that_the_window_cuts_is_not_misread(filler: int) -> None:
    """ "the" without its first letter is nobody."""
    text = "the " * 40 + "x" * (filler % 5) + " deadline was extended to July 7, which is a relief"
    assert value_marks(text[filler:]) == [stated("date")]


# -- the decision by itself ---------------------------------------------------------------------------


def weigh(slots: int) -> float:
    return float(slots.bit_count())


def above(*turns: Stating, wanted: int = 0b11) -> dict[int, list[int]]:
    return newer_above(dict(enumerate(turns)), wanted, weigh, 0.75, 0.5)


def turn(when: int, *passages: tuple[int, int], speaker: int = 0, session: int = 0) -> Stating:
    return Stating(when, session, speaker, (when, 0), [Said(*each) for each in passages])


def test_words_elsewhere_in_the_turn_make_no_statement() -> None:
    """All of the query beside a value; all of it in another passage than the value; a part of it beside a value."""
    whole, elsewhere, part = ((0b1111, 1),), ((0b1111, 0), (0b0000, 1)), ((0b0011, 1),)
    assert above(turn(1, *whole), turn(2, *whole)) == {0: [1]}
    assert above(turn(1, *whole), turn(2, *elsewhere)) == {}
    assert above(turn(1, *elsewhere), turn(2, *whole)) == {}
    assert above(turn(1, *whole), turn(2, *part)) == {}
    assert above(turn(1, *whole), turn(2, *elsewhere, *whole)) == {0: [1]}


def test_only_later_words_of_the_same_person_with_a_value_of_the_same_kind() -> None:
    old = turn(5, (0b111, 0b01))
    assert above(old, turn(4, (0b111, 0b01))) == {1: [0]}
    assert above(old, turn(5, (0b111, 0b01))) == {}
    assert above(old, turn(6, (0b111, 0b01), speaker=1)) == {}
    assert above(old, turn(6, (0b111, 0b10))) == {}
    assert above(old, turn(6, (0b111, 0b01)), wanted=0b10) == {}
    assert above(old, turn(6, (0b111, 0b11)), turn(7, (0b111, 0b01))) == {0: [2, 1], 1: [2]}
    assert above(turn(1, (0, 1)), turn(2, (0, 1))) == {}
    assert above() == {}


def test_of_one_moment_only_a_session_tells_which_is_later() -> None:
    old = turn(5, (0b111, 1))
    later = old._replace(ordinal=6)
    assert above(old, later) == {0: [1]}
    assert above(old, later._replace(session=1)) == {}


def test_the_kinds_that_a_query_names_are_wanted_where_two_state_them() -> None:
    query = read_query("What is the budget of the gala?", (), NOW)
    money, date_ = 1 << MEASURES.index("money"), 1 << MEASURES.index("date")
    counts = ((1 << len(query.slots)) - 1) << len(MEASURES)
    every = (1 << len(MEASURES) + len(query.slots)) - 1
    assert wanted_values(query, [money, money | date_, 0]) == money | counts
    assert wanted_values(query, [money, date_]) == every
    assert wanted_values(read_query("What is the limit?", (), NOW)._replace(slots=query.slots), [money]) == every
