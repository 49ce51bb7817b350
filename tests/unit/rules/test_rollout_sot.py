"""The talk of four roles: asked for in one prompt, read without a model."""

from __future__ import annotations

import pytest

from muniment.rules._summaries import ROLES, read_talk, sot_prompt

TALK = """
**Solver:** 8 / (3 - 8 / 3) makes 24.
**Challenger:** Is 8 / 3 allowed? I think that is wrong.
Solver: It is; the task says nothing against fractions.
Mediator: On the other hand whole numbers are usual. We agree that the value is right.
Verifier: Checked, it is 24.

Answer: 8 / (3 - 8 / 3)
"""


@pytest.mark.req("RC-20")
def test_the_prompt_names_roles_and_turns() -> None:
    prompt = sot_prompt("Reach 24.", 2)
    assert prompt.startswith("Reach 24.")
    assert all(f"{role}:" in prompt for role in ROLES)
    assert "2 turns" in prompt


@pytest.mark.req("RC-20")
def test_signals_are_read_and_the_talk_is_left_out() -> None:
    talk = read_talk(TALK)
    assert talk.answer == "8 / (3 - 8 / 3)"
    assert talk.signals == {
        "qa": 1,
        "shift": 1,
        "conflict": 1,
        "reconcile": 1,
        "turns": 2,
        "roles": ["Solver", "Challenger", "Mediator", "Verifier"],
    }


def test_without_a_talk_the_text_is_the_answer() -> None:
    talk = read_talk("24\nthat is all")
    assert talk.answer == "24\nthat is all"
    assert talk.signals["turns"] == 0
    assert talk.signals["qa"] == 0


def test_without_an_answer_the_last_word_is_it() -> None:
    assert read_talk("Solver: it is 7\nVerifier: it is 24").answer == "it is 24"


def test_an_answer_may_have_many_lines_and_the_word_may_come_up_before() -> None:
    talk = read_talk("Solver: a\nAnswer: first\nChallenger: really?\nVerifier: no\nFinal answer:\n{\n  1: 2\n}")
    assert talk.answer == "{\n  1: 2\n}"
    assert talk.signals["qa"] == 1
