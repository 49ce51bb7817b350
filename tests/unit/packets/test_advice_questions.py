"""Who asks for advice is not told that memory holds nothing, where it tells of them; who asks for a fact is."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.packets.compose.advice_questions import asks_for_advice
from products import for_each

ADVICE = (
    "Where should I go for dinner?",
    "What shall we do on Saturday?",
    "Can you recommend a restaurant near me?",
    "Any ideas for a birthday present?",
    "I need some tips on sleeping better.",
    "What would be a good first course tonight?",
    "Help me pick a laptop.",
    "Which database can we use?",
    "Where can I book a table tonight?",
    "What language could I learn?",
    "Which password manager can I use?",
    "What can I use to code on a train?",
    "Plan a weekend trip for two.",
    "What can I cook with rice?",
    "I'm in the mood for a film. Something light.",
    "Wo soll ich heute essen?",
    "Hast zwar viel zu tun, aber: was kann ich kochen?",
    "Que me recommandes-tu pour ce soir ?",
    "¿Qué puedo cocinar hoy?",
    "Cosa potrei regalare a mia madre?",
    "推荐一家餐厅吧",
    "夕食のおすすめはありますか",
    "저녁 메뉴 추천해 줘",
)
FACTS = (
    "When is my sister's birthday?",
    "What did you recommend last time?",
    "Which restaurant did you suggest for dinner?",
    "What is the name of my dog?",
    "Who gave me the idea for the garden?",
    "Where do I park my car?",
    "What was the advice about coursework?",
    "Wie heißt meine Katze?",
    "上次你推荐了哪家餐厅？",
    "What wifi password can I use?",
    "Which key can we use for the cellar?",
    "What code can I use for the door?",
    "Which room can I book on Friday with my voucher?",
    "Where can I use the card?",
    "Which account could we use?",
    "Which medication can I use according to my doctor?",
    "What should I eat according to my doctor?",
)


@for_each("query", ADVICE)
def test_a_question_for_advice_is_known_as_one(query: str) -> None:
    assert asks_for_advice(query)


@for_each("query", FACTS)
def test_a_question_for_a_fact_is_none(query: str) -> None:
    assert not asks_for_advice(query)


def known(mem: Any, *, facts: bool = True) -> Any:
    run = mem.run(user_id="ana", agent_id="guide")
    said = run.observe("user", "I live in Leipzig. I avoid fish. I like sushi with cucumber.")
    if facts:
        for key, value in (("home.city", "Leipzig"), ("diet.avoids", "fish"), ("food.likes", "sushi")):
            run.remember(key, value, sources=[said.id])
    return mem.run(user_id="ana", agent_id="guide")


def says_nothing_found(build: Any) -> bool:
    return any("answers this" in line for line in build.text.splitlines())


@pytest.mark.parametrize("facts", [True, False])
@pytest.mark.parametrize(
    "query", ["Where should I go for dinner?", "Any idea what to bring along?", "Wohin soll ich ziehen?"]
)
def test_what_helps_to_advise_does_not_stand_above_that_nothing_answers(mem: Any, query: str, facts: bool) -> None:
    build = known(mem, facts=facts).compose("responder", query=query, max_tokens=1024)
    assert "Leipzig" in build.text
    assert not says_nothing_found(build)
    assert "Nothing in memory" not in str(build.to_openai())
    assert mem.replay(build.id).packet_bytes == build.packet_bytes


@pytest.mark.parametrize("query", ["When is my sister's birthday?", "What is the name of my dog?"])
def test_a_fact_that_nobody_told_is_still_said_to_be_missing(mem: Any, query: str) -> None:
    assert says_nothing_found(known(mem).compose("responder", query=query, max_tokens=1024))


def test_where_nothing_is_known_advice_finds_nothing(mem: Any) -> None:
    run = mem.run(user_id="bob", agent_id="guide")
    assert says_nothing_found(run.compose("responder", query="Where should I go for dinner?", max_tokens=1024))
