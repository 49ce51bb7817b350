"""What the bench of answers measures besides what `muniment eval` does: LoCoMo's F1, traps, letters of an example."""

from __future__ import annotations

import pytest
from benchmarks.answers_score import plain_f1, score


def test_plain_f1_has_neither_dates_nor_numbers_in_one_form() -> None:
    assert plain_f1("2023-05-21", "The Sunday before 25 May 2023") == 0.0
    assert plain_f1("two dogs", "2 dogs") == 0.5
    assert plain_f1("The dogs, and a cat [3].", "dog cat") == 1.0
    assert plain_f1("", "anything") == 0.0


def test_the_best_of_the_keys_counts() -> None:
    best = score("2023-05-21", ["London", "The Sunday before 25 May 2023"], gold=frozenset(), marks={})
    assert (best.f1, best.f1_plain, best.contains, best.declined) == (1.0, 0.0, True, False)
    none = score("not mentioned", [], gold=frozenset(), marks={})
    assert (none.f1, none.f1_plain, none.contains, none.declined) == (0.0, 0.0, False, True)


def test_citations() -> None:
    marks = {"1": "a", "2": "b", "3": "c"}
    gold = frozenset({"b", "x"})
    right = score("Paris [2]", ["Paris"], gold=gold, marks=marks)
    assert (right.f1, right.contains, right.cites, right.right, right.unknown) == (1.0, True, True, True, False)
    assert right.cited_recall == 0.5
    wrong = score("Paris [1][9]", ["Paris"], gold=gold, marks=marks)
    assert (wrong.cites, wrong.right, wrong.unknown, wrong.cited_recall) == (True, False, True, 0.0)
    made_up = score("Paris [9]", ["Paris"], gold=gold, marks=marks)
    assert (made_up.cites, made_up.unknown) == (False, True)
    assert score("Paris [n]", ["Paris"], gold=gold, marks=marks).literal
    none = score("Paris", ["London", "Paris"], gold=gold, marks=marks)
    assert (none.f1, none.cites, none.literal) == (1.0, False, False)


@pytest.mark.parametrize("answer", ["self-care is important", "She said: self-care is important!", "self-care"])
def test_the_answer_of_another_is_a_trap(answer: str) -> None:
    assert score(answer, [], gold=frozenset(), marks={}, trap="Self-care is important").trapped


@pytest.mark.parametrize("answer", ["not mentioned", "", "a walk in the park"])
def test_another_answer_is_none(answer: str) -> None:
    assert not score(answer, [], gold=frozenset(), marks={}, trap="Self-care is important").trapped
    assert not score(answer, [], gold=frozenset(), marks={}).trapped
