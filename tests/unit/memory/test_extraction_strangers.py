"""What strangers found to be told falsely: words of others, idioms, names given up, another partner, hidden signs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muniment.handles.memory import Memory
from muniment.memory.extraction.patterns import corrections, propose

TS = "2026-05-20T12:00:00.000000Z"


def told(mem: Memory, *messages: str) -> dict[str, object]:
    """The facts that stand after these messages."""
    run = mem.run(user_id="u-1", session_id="s")
    for message in messages:
        run.observe("user", message)
        run.extract()
    return {fact.fact_key: fact.value for fact in run.facts()}


@pytest.mark.req("MP-17")
@pytest.mark.parametrize(
    ("messages", "facts"),
    [
        (["I'm Batman"], {}),
        (["Call me Jo", "Don't call me Jo"], {}),
        (["Call me Jo", "please stop calling me Jo"], {}),
        (["I live in Berlin", "it's not Berlin, it's Munich"], {"user.location": "Munich"}),
        (["I live in Berlin", "no, not Berlin but Munich"], {"user.location": "Munich"}),
        (["My wife Ana is here", "Never use emojis", "You can use emojis now"], {"user.wife": "Ana"}),
        (["Never use emojis", "emojis are fine with me"], {}),
        (["Always use emojis", "you can use emojis"], {"user.instruction.emoji": "Always use emojis"}),
        (
            ["my partner Kim works at Bosch", "my new partner Lee is a vet", "my partner lives in Oslo"],
            {
                "person.kim.employer": "Bosch",
                "person.lee.job": "vet",
                "person.lee.location": "Oslo",
                "user.partner": "Lee",
            },
        ),
    ],
)
def test_what_strangers_said(make: Callable[..., Memory], messages: list[str], facts: dict[str, object]) -> None:
    found = told(make("memory"), *messages)
    assert {key: value for key, value in found.items() if ".address." not in key} == facts


@pytest.mark.req("MP-17")
def test_hidden_signs_cut_no_value_and_quotes_keep_them() -> None:
    for sign in "\u00ad\u200b\u200d\u2060\ufeff\u202e":
        text = f"I live in Ber{sign}lin and my sis{sign}ter An{sign}a hates tea"
        found = propose(text, "user", TS)
        assert ("user.location", "Berlin") in [(each.key, each.value) for each in found]
        assert all(each.quote in text for each in found)


@pytest.mark.req("MP-17")
@pytest.mark.parametrize("text", ["我喜欢的人住在广州", "我暗恋的女生是护士", "我认识的朋友住在北京"])
def test_a_relative_clause_tells_of_whom_it_names(text: str) -> None:
    assert [each for each in propose(text, "user", TS) if each.key.startswith(("user.location", "user.job"))] == []


def test_what_is_not_and_what_is() -> None:
    (found,) = corrections("It's not Monday, it's Tuesday.", "user")
    assert (found.new, found.old) == ("Tuesday", "Monday")
