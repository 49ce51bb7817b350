"""The insight wall on its own: every part of a JSON value is looked at, keys as much as values (MP-12)."""

from __future__ import annotations

from typing import Any

import pytest
from makers import make_insight

from muniment.contracts.packet import Purpose
from muniment.packets.admission import Wall
from products import for_each

SECRET = "she may be vegetarian"
INSIGHTS = [
    make_insight("i1", SECRET),
    make_insight("i2", "vegan"),
    make_insight("i3", "likes tea", validation_state="validated"),
]


def wall(purpose: Purpose = "responder") -> Wall:
    return Wall(INSIGHTS, purpose)


@pytest.mark.req("MP-12")
@for_each(
    "value",
    [
        {SECRET: True},
        {"slots": {f"Note: {SECRET.upper()}!": 1}},
        [{"a": ({SECRET.title(): None},)}],
        {"i1": "what the id stands for"},
        {"vegan": []},
    ],
    ids=["a key", "a key of a key", "a key in a list", "an id as a key", "a short statement as a key"],
)
def test_a_statement_is_barred_as_a_key_too(value: Any) -> None:
    """Mutation: the wall walks the values of an object and not its keys."""
    assert wall().bars_value(value)
    assert not wall("planner").bars_value(value)


@pytest.mark.req("MP-12")
@for_each("state", [None, "", "testing", "unvalidated", "Validated", ["validated"], True])
def test_an_object_that_names_any_other_state_is_barred(state: Any) -> None:
    """Mutation: a state that is empty or no text is taken for none."""
    assert wall().bars_value({"deep": [{"statement": "x", "validation_state": state}]})
    assert not wall().bars_value({"deep": [{"statement": "x", "validation_state": "validated"}]})


@pytest.mark.req("MP-12")
def test_a_short_statement_is_recognised_as_a_whole_text_alone() -> None:
    """Mutation: two words are enough to be found inside a text, or three are not."""
    held = Wall([make_insight("i1", "eats no meat"), make_insight("i2", "is vegan")], "responder")
    assert held.bars_text("It seems Ana eats no meat.")
    assert held.bars_text("Is vegan!")
    assert not held.bars_text("Bob is vegan, they say")
    assert not held.bars_text("she eats no meatballs")


@pytest.mark.req("MP-12")
def test_only_a_responder_stands_before_a_wall_and_only_what_is_not_validated_behind_it() -> None:
    assert wall().bars_text(SECRET)
    assert not wall("planner").bars_id("i1")
    assert not wall("planner").bars_text(SECRET)
    assert wall().bars_id("e1", "i1")
    assert not wall().bars_id("i3")
    assert not wall().bars_text("likes tea")
    assert not wall().bars_value({"n": [1, 2.5, None, True, "tea"]})
