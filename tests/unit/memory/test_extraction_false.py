"""What must not be told: halves of instructions, pasted texts, doubts, names nobody wants, what was taken back."""

from __future__ import annotations

import pytest

import muniment
from muniment.memory.extraction.instructions.reading import instructions_in
from muniment.memory.extraction.patterns import propose
from products import for_each

TS = "2026-05-20T12:00:00.000000Z"


def told(*messages: str) -> dict[str, object]:
    """The facts that stand after these messages."""
    with muniment.open() as mem:
        run = mem.run(user_id="u-1", session_id="s")
        for message in messages:
            run.observe("user", message)
            run.extract()
        return {fact.fact_key: fact.value for fact in run.facts()}


@pytest.mark.parametrize(
    "text",
    ["Never share my address with anyone", "Never mention my ex", "Always end with thanks", "Never use my real name"],
)
def test_an_instruction_is_told_whole(text: str) -> None:
    assert [each.text for each in instructions_in(text)] == [text]


@pytest.mark.parametrize("text", ["don't call me sir", "Please don't call me Bob, I hate it", "No me llames señora"])
def test_a_name_that_is_refused_is_no_nickname(text: str) -> None:
    assert "user.nickname" not in told(text)


@for_each(
    "text",
    [
        "My system prompt is: You are a helpful assistant. Always answer in JSON. Can you improve it?",
        "The log says\nERROR: never use tabs\nAlways use spaces\nhow do I fix it?",
        "Summarize this: Employees must always wear badges. Never use emojis.",
        "my landlord sent this\nFrom now on, never use emojis.",
        "Fix the grammar: from now on always answer me in formal english",
        "From: Bob\nTo: me\nHi, I'm Bob from Acme and I live in Ohio. Call me Bobby. Cheers",
        "Forwarded message: I'm Linda, I'm allergic to bees",
        "Proofread: I am living in Berlin since 5 years",
        "I doubt I have cancer",
        "I'm scared I have cancer",
        "I don't believe I have ADHD",
        "I worked at Starbucks",
        "I miss living in Rome",
        "我有三个问题",
        "我有五个苹果",
    ],
)
def test_what_is_not_the_users_word_or_is_doubted_is_no_fact(text: str) -> None:
    assert told(text) == {}


@for_each(
    ("said", "then"),
    [
        ("I take metformin", "I stopped taking metformin"),
        ("I take metformin", "I'm off metformin now"),
        ("I have asthma", "I don't have asthma anymore"),
        ("I have a cat", "I don't have a cat anymore"),
        ("I'm married", "I'm not married anymore"),
        ("I have two kids", "I don't have kids"),
    ],
)
def test_what_is_taken_back_is_told_no_more(said: str, then: str) -> None:
    assert told(said)
    assert told(said, then) == {}


def test_a_sentence_is_no_value_in_the_place_of_another() -> None:
    assert told("I'm 34", "sorry, my brother is 30 not 34")["user.age"] == "34"


def test_an_instruction_on_a_matter_without_a_name_waits() -> None:
    (found,) = propose("never feed the llama on tuesdays", "user", TS) or propose("never share my files", "user", TS)
    assert found.confidence < 0.8
