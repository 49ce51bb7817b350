"""What the user says of themselves in a word or two stands in a summary; what says nothing does not."""

from __future__ import annotations

import pytest

from muniment.handles.memory import Memory

OTHERS = ("I love fish.", "I moved to Berlin in May.", "I prefer short answers.")


def told(mem: Memory, text: str, role: str = "user") -> str:
    """What a later session is told where `text` was said in the one before."""
    run = mem.run(user_id="ana", session_id="first")
    for said in OTHERS[:2]:
        run.observe("user", said)
    run.observe(role, text)
    run.observe("user", OTHERS[2])
    later = mem.run(user_id="ana", session_id="later")
    later.observe("user", "Where should I go for dinner?")
    return later.compose("responder", query="Where should I go for dinner?", max_tokens=512).text


@pytest.mark.req("MP-11")
@pytest.mark.parametrize(
    "said",
    [
        "I am vegetarian now.",
        "I'm diabetic.",
        "I’m pregnant.",
        "I don't smoke.",
        "I am a nurse.",
        "We are vegan.",
        "Ich bin Vegetarier.",
        "Je suis végétarienne.",
        "Soy celíaca.",
    ],
)
def test_one_thing_that_the_user_says_of_themselves_is_told_in_a_later_session(mem: Memory, said: str) -> None:
    assert f"user: {said}" in told(mem, said)


@pytest.mark.req("MP-11")
def test_the_same_words_of_the_assistant_are_no_statement_of_the_user(mem: Memory) -> None:
    assert "I am vegetarian now." not in told(mem, "I am vegetarian now.", role="assistant")
