"""Histories of several facts a sentence, of which one changes: what stands is never told as outdated, what changed is."""

# ruff: noqa: E501 - a table of cases reads best with one to a line

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from effort import SOAK
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.packets.compose.audit import audit
from muniment.packets.rendering import render

CITIES = ("Lisbon", "Berlin", "Oslo", "Turin", "Ghent", "Kyoto", "Boston", "Cork")
FIRMS = ("Acme", "Globex", "Initech", "Siemens", "Novartis", "Umbrella Corp", "Stark Industries")
DAYS = (("May 3", "05-03"), ("June 14", "06-14"), ("December 1", "12-01"), ("March 22nd", "03-22"))
CARS = ("Honda", "Toyota", "Volvo", "Tesla")
PHONES = ("Pixel", "Galaxy", "iPhone")
NAMES = ("Tom", "Nina", "Omar", "Lea")
COLOURS = ("blue", "green", "red", "yellow")
FOODS = ("peanuts", "shellfish", "eggs", "kiwis")


class Key(NamedTuple):
    """A fact key: how it is stated, how it is changed, and how it is asked for. `{}` is the value."""

    fact: str
    stated: tuple[str, ...]
    changed: tuple[str, ...]
    values: tuple[str, ...]
    asked: str


KEYS = (
    Key("user.city", ("I live in {}", "I'm based in {}", "I'm currently living in {}"), ("I moved to {}", "I live in {} now", "We have just relocated to {}", "I settled in {}"), CITIES, "Where do I live?"),
    Key("user.employer", ("I work at {}", "I work for {}", "I'm working at {}"), ("I started at {} last week", "I got a new job at {}", "I work for {} now"), FIRMS, "Where do I work?"),
    Key("user.birthday", ("my birthday is {}", "my birthday is on {}"), ("actually my birthday is {}",), tuple(day for day, _ in DAYS), "When is my birthday?"),
    Key("user.car", ("I drive a {}", "I own a {}"), ("I switched to a {}", "I bought a {}", "I traded my car for a {}"), CARS, "What car do I drive?"),
    Key("user.phone", ("I use a {}", "I have a {}"), ("I upgraded to a {}", "I switched to a {}"), PHONES, "What phone do I use?"),
    Key("user.manager", ("my manager is {}",), ("my new manager is {}", "my manager is now {}"), NAMES, "Who is my manager?"),
    Key("user.favorite.colour", ("my favourite colour is {}",), ("my favourite colour is now {}",), COLOURS, "What is my favourite colour?"),
    Key("user.sister.city", ("my sister lives in {}", "my sister is based in {}"), ("my sister moved to {}", "my sister lives in {} now"), CITIES, "Where does my sister live?"),
    Key("user.brother.employer", ("my brother works for {}",), ("my brother started at {}",), FIRMS, "Where does my brother work?"),
    Key("user.allergy", ("I am allergic to {}", "I'm allergic to {}"), (), FOODS, "What am I allergic to?"),
    Key("user.diet", ("I'm vegetarian",), ("I became vegan",), ("vegetarian", "vegan"), "What is my diet?"),
)  # fmt: skip
CHANGING = tuple(key for key in KEYS if key.changed)


class History(NamedTuple):
    first: str
    facts: dict[str, str]
    changed: Key
    later: list[str]
    asked: str


def _sentence(parts: list[str], joint: str) -> str:
    text = f"{', '.join(parts[:-1])}{joint}{parts[-1]}." if len(parts) > 1 else f"{parts[0]}."
    return text[0].upper() + text[1:]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A sentence of two to four facts; later a change of one of them, and others said again, in any order."""
    changed = draw(st.sampled_from(CHANGING))
    others = draw(
        st.lists(st.sampled_from([key for key in KEYS if key is not changed]), min_size=1, max_size=3, unique=True)
    )
    keys = draw(st.permutations([changed, *others]))
    values: dict[str, str] = {}
    parts = []
    for key in keys:
        values[key.fact] = "vegetarian" if key.fact == "user.diet" else draw(st.sampled_from(key.values))
        parts.append(draw(st.sampled_from(key.stated)).format(values[key.fact]))
    first = _sentence(parts, draw(st.sampled_from([" and ", ", and ", ", but "])))
    new = draw(st.sampled_from([value for value in changed.values if value != values[changed.fact]]))
    change = _sentence([draw(st.sampled_from(changed.changed)).format(new)], "")
    again = [
        _sentence([draw(st.sampled_from(key.stated)).format(values[key.fact])], "")
        for key in draw(st.lists(st.sampled_from(others), max_size=2, unique=True))
    ]
    small_talk = draw(
        st.lists(st.sampled_from(["It rained all day.", "Could you suggest a film?", "I had soup."]), max_size=2)
    )
    later = draw(st.permutations([change, *again, *small_talk]))
    asked = draw(st.sampled_from([changed.asked, draw(st.sampled_from(others)).asked, "What do you know about me?"]))
    return History(first, values, changed, later, asked)


@pytest.mark.soak
@pytest.mark.req("TM-01")
@settings(max_examples=400 if SOAK else 60, deadline=None)
@given(histories(), st.booleans(), st.sampled_from(["responder", "planner", "tool"]))
def test_what_stands_is_never_told_as_outdated_and_what_changed_is(history: History, apart: bool, purpose: str) -> None:
    with muniment.open(":memory:", clock=TickingClock(), ids=CountingIds()) as mem:
        run = mem.run(user_id="ana", session_id="s0")
        source = run.observe("user", history.first, ts="2026-01-01T10:00:00Z")
        days = dict(DAYS)
        for key, value in history.facts.items():
            run.remember(key, days.get(value, value), sources=[source.id])
        for day, text in enumerate(history.later, 2):
            where = mem.run(user_id="ana", session_id=f"s{day}") if apart else run
            where.observe("user", text, ts=f"2026-02-{day:02d}T10:00:00Z")
        asking = mem.run(user_id="ana", session_id="asks")
        build = asking.compose(purpose, query=history.asked, now="2026-03-01T00:00:00Z")  # type: ignore[arg-type]
    assert audit(build.pool, build.packet) == []
    assert render(build.packet).text == build.text
    told = re.findall(r"(?m)^- ([\w.]+): .*\(superseded(?: by \[\d+\])?\)$", build.text)
    assert set(told) <= {history.changed.fact}, "a fact that stands is told as outdated"
    (hit,) = [hit for hit in build.pool.hits if hit.turn.id == source.id] or [None]
    if hit is None:
        return
    known = {each.turn.text for each in build.pool.hits}
    texts = " ".join(known)
    parts = hit.superseded
    assert not any(part.is_whole for part in parts), "the rest of the sentence stands"
    assert len(parts) <= 1
    if any(
        value in texts.replace(history.first, "")
        for value in set(history.changed.values) - {history.facts[history.changed.fact]}
    ) and _states_change(history, known):
        assert len(parts) == 1
        assert history.facts[history.changed.fact] in parts[0].quote
        for key, value in history.facts.items():
            assert (
                key == history.changed.fact
                or value not in parts[0].quote
                or value == history.facts[history.changed.fact]
            )


def _states_change(history: History, known: set[str]) -> bool:
    """Was the turn found that tells of the change?"""
    changes = [form.partition("{}")[0].casefold() for form in history.changed.changed]
    return any(text.casefold().startswith(change) and text in history.later for text in known for change in changes)
