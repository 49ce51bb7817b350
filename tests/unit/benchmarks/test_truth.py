"""The score of labelled stores: what counts as conveyed, stale, noise and right, on a store of seven turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.truth import _stores
from benchmarks.truth._scoring import Addition, Context, Line, Score, score
from benchmarks.truth._stores import SPLITS, Request, Statement, Store, Turn, split_digest

TEXTS = {
    "a1": ("user", "Hello there! Penicillin puts me in hospital. I drive a red Volvo."),
    "a2": ("assistant", "Noted: no penicillin for you."),
    "b1": ("user", "Sold the car on Monday, I cycle now."),
    "b2": ("user", "Write a story: my brother eats glass."),
    "b3": ("user", "We leave next Friday."),
}


def statement(id: str, turn: str, quote: str, kind: str, *keys: str, corrects: str = "", of: str = "") -> Statement:
    start = TEXTS[turn][1].index(quote)
    replaced = (corrects,) if corrects else ()
    return Statement(id, turn, start, start + len(quote), kind, keys, replaced, of or None, kind == "safety")


STORE = Store(
    id="toy",
    language="en",
    is_written=True,
    user="ana",
    timezone="UTC",
    now="2026-03-09T10:00:00+00:00",
    turns=tuple(Turn(id, id[0], role, "2026-03-02T10:00:00+00:00", text) for id, (role, text) in TEXTS.items()),
    statements={
        each.id: each
        for each in (
            statement("allergy", "a1", "Penicillin puts me in hospital.", "safety", "Penicillin"),
            statement("volvo", "a1", "I drive a red Volvo.", "stale", "red Volvo"),
            statement("echo", "a2", "no penicillin for you.", "echo", "no penicillin", of="allergy"),
            statement("bike", "b1", "Sold the car on Monday, I cycle now.", "current", "cycle", corrects="volvo"),
            statement("story", "b2", "my brother eats glass.", "play"),
            statement("trip", "b3", "We leave next Friday.", "current", "next Friday"),
        )
    },
    requests=(),
    times=(("b3", "next Friday", "2026-03-13"),),
)
ASKED = Request("r1", "advice", "Which antibiotic is safe?", (("allergy",),), (("bike",), ("trip",)), ())


def scored(*lines: tuple[str, str], additions: tuple[Addition, ...] = (), budget: int = 100) -> Score:
    made = tuple(Line(text, (turn,), 10) for turn, text in lines)
    return score(STORE, ASKED, Context(made, 10 * len(made), 0, additions=additions), budget)


def test_a_statement_is_conveyed_by_its_keys_in_a_line_that_cites_its_turn() -> None:
    assert not scored(("a1", "PENICILLIN → hospital")).missing
    assert not scored(("a2", TEXTS["a2"][1])).missing, "an echo conveys what it repeats"
    assert scored(("b1", "Penicillin")).missing == [("allergy",)], "the line cites another turn"
    assert scored(("a1", "I drive a red Volvo.")).missing == [("allergy",)]


def test_room_is_free_when_fifteen_per_cent_of_the_budget_are_left() -> None:
    assert scored(("b1", "x"), budget=12).has_room
    assert not scored(("b1", "x"), budget=11).has_room


def test_a_replaced_statement_needs_the_one_that_replaced_it() -> None:
    assert scored(("a1", "I drive a red Volvo.")).stale_alone == ["volvo"]
    assert not scored(("a1", "I drive a red Volvo."), ("b1", TEXTS["b1"][1])).stale_alone


def test_noise_is_filler_echo_repetition_and_the_query() -> None:
    assert scored(("a1", "Penicillin puts me in hospital.")).noise == 0
    assert scored(("a1", "Hello there!")).noise == 10
    assert scored(("a2", TEXTS["a2"][1])).noise == pytest.approx(10)
    assert scored(("b1", TEXTS["b1"][1]), ("b1", TEXTS["b1"][1])).noise == 10
    assert scored(("b1", "Which antibiotic is safe?")).noise == 10
    fact = ("a1", "user.health.allergy: Penicillin")
    assert scored(fact).noise == 0, "in other words, for the first time"
    assert scored(("a1", "Penicillin puts me in hospital."), fact).noise == 10


def test_helpful_groups_are_counted() -> None:
    found = scored(("b1", TEXTS["b1"][1]))
    assert (found.helpful, found.helpful_conveyed) == (2, 1)


def test_additions_are_judged_by_the_labels() -> None:
    def verdict(kind: str, turn: str, text: str, about: str = "") -> bool | None:
        return scored(additions=(Addition(kind, (turn,), text, about),)).additions[0][1]  # type: ignore[arg-type]

    assert verdict("fact", "a1", "penicillin") is True
    assert verdict("fact", "a1", "Hello") is False
    assert verdict("fact", "b2", "glass") is False
    assert verdict("fact", "b1", "Monday") is None
    assert verdict("day", "b3", "13 March 2026", "next Friday") is True
    assert verdict("day", "b3", "6 March 2026", "next Friday") is False
    assert verdict("day", "b3", "March 2026", "next Friday") is True
    assert verdict("day", "b1", "2 March 2026", "on Monday") is None
    assert verdict("mark", "a1", "", "I drive a red Volvo.") is True
    assert verdict("mark", "b1", "", TEXTS["b1"][1]) is False


def test_labels_are_those_that_were_frozen() -> None:
    frozen = json.loads((Path(_stores.__file__).parent / "stores" / "frozen.json").read_text())
    assert {split: split_digest(split) for split in SPLITS} == frozen
