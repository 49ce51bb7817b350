"""What a model proposes is held against its turn (MP-17): key, quote, value, person; what turns the words round."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.policy import ExtractionPolicy
from muniment.errors import InvalidInput, InvalidRecord, ModelMalformed
from muniment.memory.extraction.borne import bears
from muniment.memory.extraction.budget import ExtractionBudget, Spent, answer_room, budget_given, cost_usd
from muniment.memory.extraction.checks import REASONS, check_proposal
from muniment.memory.extraction.model import SaidTurn, TurnProposal
from muniment.memory.extraction.prompts import answer_schema, messages_of, read_answer
from muniment.memory.facts.candidate_records import Proposal
from products import for_each

TS = "2026-05-20T10:00:00Z"
POLICY = ExtractionPolicy()


def turn(text: str, id_: str = "e1", place: int = 1, role: str = "user") -> SaidTurn:
    return SaidTurn(id_, role, None, TS, text, place)


def judged(text: str, key: str, value: Any, quote: str, context: tuple[SaidTurn, ...] = (), event: str = "e1") -> Any:
    proposal = Proposal(key=key, value=value, quote=quote, confidence=0.9, why="read")
    said = turn(text)
    return check_proposal(TurnProposal(event, proposal), {said.id: said}, context, POLICY)


@pytest.mark.req("MP-17")
@for_each(
    ("quote", "value", "key"),
    [
        ("I moved to Berlin in May.", "Berlin", "user.location"),
        ("we moved to BERLIN", "Berlin", "user.location"),
        ("my cats are loud", "cat", "user.pet"),
        ("I live in the city of Porto", "Porto", "user.location"),
        ("I work at Marks & Spencer", "Marks & Spencer", "user.employer"),
        ("Kim's employer is Acme", "Kim", "user.friend"),
        ("I have two kids", 2, "user.children"),
        ("I have twenty-one hens", 21, "user.hens"),
        ("I have 2 kids", "2", "user.children"),
        ("I earn 1,200 euros", 1200, "user.pay"),
        ("born on May 3, 1990", "1990-05-03", "user.birthday"),
        ("I was born in 1990", "1990", "user.born"),
        ("I quit yesterday", "2026-05-19", "user.quit"),
        ("we wed last month", "2026-04", "user.wed"),
        ("I'm vegetarian", True, "user.vegetarian"),
        ("I'm not vegetarian", False, "user.vegetarian"),
        ("저는 베를린으로 이사했어요", "베를린", "user.location"),
        ("我住在柏林", "柏林", "user.location"),
        ("I speak Dutch and Thai", ["Dutch", "Thai"], "user.languages"),
    ],
)
def test_words_that_bear_a_value(quote: str, value: Any, key: str) -> None:
    assert bears(quote, value, key, TS)


@pytest.mark.req("MP-17")
@for_each(
    ("quote", "value", "key"),
    [
        ("I moved to Berlin in May.", "Rome", "user.location"),
        ("I went veggie", "vegetarian", "user.diet"),
        ("I moved to Berlin", "Berlin, Germany", "user.location"),
        ("I have two kids", 3, "user.children"),
        ("I have two kids", "3", "user.children"),
        ("I was born on May 3, 1990", "1990-05-04", "user.birthday"),
        ("I was born on May 3, 1990", "1991-05-03", "user.birthday"),
        ("I quit yesterday", "2026-05-18", "user.quit"),
        ("I'm not vegetarian", True, "user.vegetarian"),
        ("I'm vegetarian", False, "user.vegetarian"),
        ("I'm tired", True, "user.vegetarian"),
        ("我住在柏林", "罗马", "user.location"),
        ("I speak Dutch", ["Dutch", "Thai"], "user.languages"),
        ("I speak Dutch", [], "user.languages"),
        ("I speak Dutch", "", "user.language"),
        ("I speak Dutch", "...", "user.language"),
        ("I speak Dutch", {"a": "Dutch"}, "user.language"),
        ("I speak Dutch", None, "user.language"),
        ("I live here", "the", "user.location"),
        ("...", 3, "user.children"),
        ("9" * 400, 10**400, "user.number"),
        ("9" * 400, "8" * 400, "user.number"),
        ("I have inf", "nan", "user.number"),
    ],
)
def test_words_that_do_not(quote: str, value: Any, key: str) -> None:
    assert not bears(quote, value, key, TS)


@pytest.mark.req("MP-17")
@for_each(
    ("text", "key", "value", "quote", "rejection"),
    [
        ("I live in Berlin.", "user.location", "Berlin", "I live in Berlin", None),
        ("I live in Berlin.", "user.location", "Berlin", "I lived in Berlin", "quote"),
        ("I live in Berlin.", "user.location", "Rome", "I live in Berlin", "value"),
        ("Do I live in Berlin?", "user.location", "Berlin", "I live in Berlin", "question"),
        ("I don't live in Berlin.", "user.location", "Berlin", "live in Berlin", "denied"),
        ("I never lived in Berlin.", "user.location", "Berlin", "lived in Berlin", "denied"),
        ("我不住在柏林。", "user.location", "柏林", "住在柏林", "denied"),
        ("I'm not from here, but I live in Berlin.", "user.location", "Berlin", "I live in Berlin", None),
        ("I don't eat pork.", "user.avoids", "pork", "I don't eat pork", None),
        ("Kim works at Acme.", "person.kim.employer", "Acme", "Kim works at Acme", None),
        ("Kim Lee works at Acme.", "person.kim_lee.employer", "Acme", "works at Acme", None),
        ("She works at Acme.", "person.kim.employer", "Acme", "works at Acme", "person"),
        ("I am admin here.", "user.role", "admin", "I am admin here", "key"),
        ("My pin is 1234.", "user.pin", "1234", "My pin is 1234", "key"),
        ("I live in Berlin.", "location", "Berlin", "I live in Berlin", "key"),
        ("I live in Berlin.", "system.prompt", "Berlin", "I live in Berlin", "key"),
        ("I live in Berlin.", "person.location", "Berlin", "I live in Berlin", "key"),
        ("I live in Berlin.", "User.Location", "Berlin", "I live in Berlin", "key"),
        ("I live in Berlin.", "user." + "x" * 300, "Berlin", "I live in Berlin", "key"),
        ("I live in Berlin.", "user.location; drop", "Berlin", "I live in Berlin", "key"),
    ],
)
def test_a_proposal_is_held_against_its_turn(
    text: str, key: str, value: Any, quote: str, rejection: str | None
) -> None:
    if len(key) > 256:
        key = key[:256]
    checked = judged(text, key, value, quote)
    assert checked.rejection == rejection
    assert rejection is None or rejection in REASONS


@pytest.mark.req("MP-17")
def test_a_person_may_be_named_before_and_that_is_evidence_too() -> None:
    before = (turn("My friend Kim is moving.", "e0", 0), turn("How nice.", "a0", 0, "assistant"))
    checked = judged("She works at Acme.", "person.kim.employer", "Acme", "She works at Acme", before)
    assert (checked.rejection, checked.sources) == (None, ("e1", "e0"))


@pytest.mark.req("MP-17")
def test_a_turn_that_was_not_given_is_no_source() -> None:
    before = (turn("I live in Rome.", "e0", 0),)
    assert (
        judged("I live in Berlin.", "user.location", "Rome", "I live in Rome", before, "e0").rejection == "unknown_turn"
    )
    assert (
        judged("I live in Berlin.", "user.location", "Berlin", "I live in Berlin", (), "e9").rejection == "unknown_turn"
    )


@pytest.mark.parametrize(
    ("text", "quote", "doubt"),
    [
        ("If I moved, I would live in Berlin.", "I would live in Berlin", "supposes"),
        ("Living in Berlin is great.", "Living in Berlin", "speaker"),
        ("I mean Berlin.", "Berlin", "bare"),
    ],
)
def test_what_holds_may_be_doubtful(text: str, quote: str, doubt: str) -> None:
    checked = judged(text, "user.location", "Berlin", quote)
    assert checked.rejection is None
    assert any(doubt in each for each in checked.doubts)
    assert judged("I live in Berlin.", "user.location", "Berlin", "I live in Berlin").doubts == ()


# -- what a model is asked and answers ----------------------------------------------------------------


def test_turns_go_as_data_in_the_order_they_were_said() -> None:
    shown = messages_of(
        [turn('Say "t2": {', "e2", 5), turn("b\ud800", "e3", 7)], [turn("Where?", "a1", 6, "assistant")]
    )
    lines = shown[1]["content"].split("\n")
    assert [line.find('"turn"') >= 0 for line in lines] == [True, False, True]
    assert "e2" not in shown[1]["content"]
    assert "\ud800" not in shown[1]["content"]
    assert answer_schema(2, 16)["properties"]["facts"]["items"]["properties"]["turn"]["enum"] == ["t1", "t2"]


def test_what_is_no_fact_in_an_answer_is_counted() -> None:
    fact = '{"turn": "t1", "key": "user.city", "value": "Rome", "quote": "Rome", "confidence": 0.9}'
    odd = '3, null, {}, {"turn": 1}, {"turn": "t1", "key": "", "value": "x", "quote": "y", "confidence": 1}'
    answer = read_answer(f'```json\n{{"facts": [{fact}, {odd}]}}\n```', [turn("Rome")], "m", 0.7)
    assert [(each.event_id, each.proposal.confidence) for each in answer.proposals] == [("e1", 0.7)]
    assert answer.malformed == 5


@for_each("said", ["", "no", "[]", '{"facts": 3}', '{"facts": [', '{"other": []}', "[" * 5000, "null"])
def test_an_answer_that_is_no_list_of_facts(said: str) -> None:
    with pytest.raises(ModelMalformed):
        read_answer(said, [turn("x")], "m", 0.7)


def test_of_an_answer_that_was_cut_off_the_whole_facts_are_taken_if_it_is_about_one_turn() -> None:
    fact = '{"turn": "t1", "key": "user.city", "value": "Rome", "quote": "Rome", "confidence": 0.9}'
    for cut in (f'{{"facts": [{fact}, {fact[:30]}', f'{{"facts": [{fact}', f'{{"facts": [{fact},'):
        assert len(read_answer(cut, [turn("Rome")], "m", 0.7, is_cut=True).proposals) == 1
        with pytest.raises(ModelMalformed, match="cut"):
            read_answer(cut, [turn("Rome"), turn("x", "e2")], "m", 0.7, is_cut=True)
    for cut in ("", "{", '{"facts"', '{"facts": [', "[" * 5000):
        assert read_answer(cut, [turn("Rome")], "m", 0.7, is_cut=True).proposals == ()


# -- budgets ------------------------------------------------------------------------------------------


def test_a_budget_is_a_number_of_calls_or_limits_by_name() -> None:
    assert budget_given(None) == ExtractionBudget()
    assert budget_given(3) == budget_given({"calls": 3}) == ExtractionBudget(calls=3)
    for wrong in (True, 1.5, "3", [3], {"call": 3}, {"calls": -1}, {"calls": 1.5}, {"usd": 1}, {"tokens": "x"}):
        with pytest.raises((InvalidInput, InvalidRecord)) as refused:
            budget_given(wrong)
        assert str(refused.value.path or refused.value.details["issues"][0]["path"]).startswith("$.budget")


@for_each(
    ("limits", "spent", "room"),
    [
        ({}, Spent(9, 9, 9999, 9999), 1000),
        ({"calls": 2}, Spent(1), 1000),
        ({"calls": 2}, Spent(2), "calls"),
        ({"calls": 0}, Spent(), "calls"),
        ({"turns": 4}, Spent(1, 4), "turns"),
        ({"tokens_in": 250}, Spent(1, 1, 100), 1000),
        ({"tokens_in": 250}, Spent(2, 2, 200), "tokens_in"),
        ({"tokens_out": 500}, Spent(1, 1, 0, 100), 400),
        ({"tokens_out": 500}, Spent(1, 1, 0, 450), "tokens_out"),
        ({"tokens": 900}, Spent(1, 1, 300, 100), 400),
        ({"tokens": 500}, Spent(1, 1, 300, 50), "tokens"),
        ({"usd": 0.001, "usd_per_million_in": 1, "usd_per_million_out": 2}, Spent(), 450),
        ({"usd": 0.001, "usd_per_million_in": 1, "usd_per_million_out": 2}, Spent(5, 5, 800, 50), "usd"),
        ({"usd": 0.001, "usd_per_million_in": 1}, Spent(1, 1, 500), 1000),
        ({"usd": 0.001, "usd_per_million_in": 1}, Spent(1, 1, 950), "usd"),
    ],
)
def test_a_call_that_might_pass_a_limit_is_not_made(limits: dict[str, Any], spent: Spent, room: Any) -> None:
    assert answer_room(budget_given(limits), spent, 100, 1000) == room


def test_what_tokens_cost() -> None:
    priced = ExtractionBudget(usd_per_million_in=0.15, usd_per_million_out=0.6)
    assert cost_usd(priced, 1_000_000, 500_000) == pytest.approx(0.45)
    assert cost_usd(ExtractionBudget(), 5, 5) is None
