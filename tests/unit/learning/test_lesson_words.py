"""The words of a lesson: the sentence without its figures, the condition as a person would say it, the figures."""

from __future__ import annotations

import pytest

from muniment.learning._lesson_words import condition_words, figure_words, lesson_line, sentence_of
from muniment.learning.records import StoredMemory, Tally
from products import for_each


@for_each(
    ("predicates", "words"),
    [
        ([], "any task"),
        (['task_family == "lookup"'], "lookup tasks"),
        (['domain_tag == "shop"'], "any task in shop"),
        (['domain_tag == "shop"', 'task_family == "lookup"'], "lookup tasks in shop"),
        (['task_family == "lookup"', 'x_features.size == "large"'], "lookup tasks, when size is large"),
        (["x_features.is_member == true"], "any task, when is member holds"),
        (["x_features.is_member == false"], "any task, when is member does not hold"),
        (["x_features.items == 12"], "any task, when items is 12"),
        (['run.mode == "main"', "x_features.n == -2.5"], "any task, when run mode is main and n is -2.5"),
        (["x_features.items > 12"], "any task, when x_features.items > 12"),
        ([r'task_family == "say \"hi\""'], 'say "hi" tasks'),
        ([r'task_family == "it\'s"'], r'any task, when task_family == "it\'s"'),
    ],
)
def test_a_condition_is_said_as_a_person_would(predicates: list[str], words: str) -> None:
    assert condition_words(predicates) == words


@for_each(
    ("said", "sentence"),
    [
        ("Use way=by_number: passed 3 of 3 with it, 0 of 3 without.", "Use way=by_number."),
        ("Look it up by number (passed 12 of 14 with it, 5 of 13 without).", "Look it up by number."),
        ("Look it up by number", "Look it up by number."),
        ("Read the\n  file first!", "Read the file first!"),
        ("They passed 3 of 3 tests.", "They passed 3 of 3 tests."),
        ("", ""),
        (None, ""),
    ],
)
def test_a_sentence_holds_no_figures_of_when_it_was_written(said: str | None, sentence: str) -> None:
    assert sentence_of(said) == sentence


def test_figures_say_nothing_of_a_side_without_runs() -> None:
    some, none = Tally(n=12, passes=9), Tally()
    assert figure_words(some, Tally(n=11, passes=3)) == "Runs told this passed 9 of 12, others 3 of 11."
    assert figure_words(some, none) == "Runs told this passed 9 of 12."
    assert figure_words(none, none) == ""


@pytest.mark.parametrize("when", ["when the upload is refused", "If the upload is refused", "the upload is refused"])
def test_a_condition_that_begins_with_when_is_told_once(when: str) -> None:
    record = {"summary": "Ask for the size.", "lesson": {"origin": "model", "when": when}}
    plain = {"id": "tac_1", "kind": "tactic", "level": "user", "version": 1, "status": "active", "record": record}
    memory = StoredMemory.from_wire(plain | {"created_at": "2026-01-01T00:00:00Z"})
    assert lesson_line(memory) == "When the upload is refused: Ask for the size."
    assert condition_words((), when) == "any task, when the upload is refused"
