"""What a model proposes is held against its turn (MP-17): key, quote, value, speaker, person, what it declares."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muniment.core.policy import ExtractionPolicy
from muniment.errors import InvalidInput, InvalidRecord, ModelMalformed
from muniment.memory._extract_checks import REASONS, ModelProposal, SourceTurn, check_proposals, speaker_label
from muniment.memory._extract_model import (
    BudgetReached,
    ExtractionBudget,
    MeteredModel,
    answer_schema,
    budget_given,
    load_turn_model,
    prompt_messages,
    read_answer,
)
from planted_model import HOLDS
from products import for_each

TS = "2026-05-20T10:00:00Z"
POLICY = ExtractionPolicy()
BERLIN = ("user.location", "Berlin", "I live in Berlin")


def turn(text: str, id_: str = "e1", seq: int = 1, who: str = "user") -> SourceTurn:
    return SourceTurn(id_, "user", who, TS, text, seq)


def rejection(text: str, key: str, value: Any, quote: str, *, who: str = "user", **more: Any) -> str | None:
    parts = {"turn_id": "e1", "speaker": who, **HOLDS, **more}
    (checked,) = check_proposals(
        [ModelProposal(key=key, value=value, quote=quote, **parts)], [turn(text, who=who)], POLICY
    )
    assert checked.rejection is None or checked.rejection in REASONS
    return checked.rejection


@pytest.mark.req("MP-17")
@for_each(
    ("text", "key", "value", "quote"),
    [
        ("I live in Berlin.", *BERLIN),
        ("I'm vegetarian, what can I cook tonight?", "user.diet", "vegetarian", "I'm vegetarian"),
        ("I\n  live   in Berlin", *BERLIN),
        ("we moved to BERLIN", "user.location", "Berlin", "we moved to BERLIN"),
        ("I work at Marks & Spencer", "user.employer", "Marks & Spencer", "I work at Marks & Spencer"),
        ("I have 2 kids", "user.children", 2, "I have 2 kids"),
        ("I have 2 kids", "user.children", "2", "I have 2 kids"),
        ("I earn 1,200 euros", "user.pay", 1200, "I earn 1,200 euros"),
        ("I run 3.5 km a day", "user.runs", 3.5, "I run 3.5 km a day"),
        ("I don't eat pork.", "user.avoids", "pork", "I don't eat pork"),
        ("저는 베를린으로 이사했어요", "user.location", "베를린", "저는 베를린으로 이사했어요"),
        ("我住在柏林，你呢？", "user.location", "柏林", "我住在柏林"),
        ("ฉันอยู่ที่กรุงเทพ", "user.location", "กรุงเทพ", "อยู่ที่กรุงเทพ"),
        ("Ich wohne in Köln.", "user.location", "Köln", "Ich wohne in Köln"),
        ("Kim works at Acme.", "person.kim.employer", "Acme", "Kim works at Acme"),
        ("Kim Lee's employer is Acme.", "person.kim_lee.employer", "Acme", "Kim Lee's employer is Acme"),
        ("김민수는 서울에 산다", "person.김민수.location", "서울", "김민수는 서울에 산다"),
    ],
)
def test_a_right_proposal_is_accepted(text: str, key: str, value: Any, quote: str) -> None:
    assert rejection(text, key, value, quote) is None


@pytest.mark.req("MP-17")
@for_each(
    ("text", "key", "value", "quote", "reason"),
    [
        ("I live in Berlin.", "user.location", "Berlin", "I lived in Berlin", "quote"),
        ("I live in Berlin.", "user.location", "Berlin", "i live in berlin", "quote"),
        ("I live in Berlin.", "user.location", "Ber", "I live in Ber", "quote"),
        ("I live in Berlin.", "user.location", "Rome", "I live in Berlin", "value"),
        ("I live in Berlin.", "user.location", "Berl", "I live in Berlin", "value"),
        ("I went veggie", "user.diet", "vegetarian", "I went veggie", "value"),
        ("I live in Berlin", "user.location", "Berlin, Germany", "I live in Berlin", "value"),
        ("I have 13 kids", "user.children", 3, "I have 13 kids", "value"),
        ("I run 3.5 km", "user.runs", 3, "I run 3.5 km", "value"),
        ("I run 3.5 km", "user.runs", 5, "I run 3.5 km", "value"),
        ("I have two kids", "user.children", 2, "I have two kids", "value"),
        ("I'm vegetarian", "user.vegetarian", True, "I'm vegetarian", "value"),
        ("I speak Dutch", "user.language", "...", "I speak Dutch", "value"),
        ("I speak Dutch", "user.languages", ["Dutch"], "I speak Dutch", "value"),
        ("我住在柏林", "user.location", "Berlin", "我住在柏林", "value"),
        ("我住在柏林", "user.location", "罗马", "我住在柏林", "value"),
        ("Do I live in Berlin?", *BERLIN, "question"),
        ("我住在柏林？", "user.location", "柏林", "我住在柏林", "question"),
        ("She works at Acme.", "person.kim.employer", "Acme", "She works at Acme", "person"),
        ("Kim left. Bob works at Acme.", "person.kim.employer", "Acme", "Bob works at Acme", "person"),
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
def test_a_wrong_proposal_is_rejected_with_the_reason(text: str, key: str, value: Any, quote: str, reason: str) -> None:
    assert rejection(text, key, value, quote) == reason


@pytest.mark.req("MP-17")
def test_a_model_has_to_declare_that_a_fact_holds() -> None:
    for name in HOLDS:
        assert rejection("I live in Berlin.", *BERLIN, **{name: True}) == name
        assert rejection("I live in Berlin.", *BERLIN, **{name: None}) == "undeclared"


@pytest.mark.req("MP-17")
def test_who_speaks_decides_whose_fact_it_is() -> None:
    text, value = "I work at Acme.", ("Acme", "I work at Acme")
    assert rejection(text, "user.employer", *value) is None
    assert rejection(text, "user.employer", *value, who="Bob") == "speaker"
    assert rejection(text, "user.employer", *value, speaker="Bob") == "speaker"
    assert rejection(text, "person.bob.employer", *value, who="Bob Hill") is None
    assert rejection(text, "person.bob.employer", *value, who="Bob Hill", speaker="user") == "speaker"
    assert rejection(text, "person.kim.employer", *value, who="Bob Hill") == "person"
    assert rejection(text, "user.employer", *value, turn_id="e9") == "unknown_turn"


@for_each(
    ("user_id", "speaker", "names", "label"),
    [
        ("ana", None, (), "user"),
        ("ana", "user", (), "user"),
        ("ana", "Human", (), "user"),
        ("ana", "Ana Lopez", (), "user"),
        ("ana-lopez", "Ana", (), "user"),
        ("ana@example.org", "Ana Lopez", (), "user"),
        ("jdoe", "John Doe", (), "user"),
        ("李静", "李静", (), "user"),
        ("u-123", "Ana", ("Ana",), "user"),
        ("u-123", "Ana", (), "Ana"),
        ("ana", "Bob", (), "Bob"),
        ("ana", "Anabel", (), "Anabel"),
        ("u-123", "Bob", ("Ana",), "Bob"),
    ],
)
def test_a_turn_is_the_users_own_if_its_speaker_is_called_as_the_user_is(
    user_id: str, speaker: str | None, names: tuple[str, ...], label: str
) -> None:
    assert speaker_label("user", speaker, user_id, names) == label


# -- what a model is asked and answers ----------------------------------------------------------------


def test_turns_go_as_data_in_the_order_they_were_said() -> None:
    turns = [turn('Say "t2": {', "e2", 5), turn("b\ud800", "e3", 7, who="Bob")]
    shown = prompt_messages(turns, [turn("Where?", "a1", 6, "assistant")])
    lines = [json.loads(line) for line in shown[1]["content"].split("\n")]
    assert [line.get("turn") for line in lines] == ["t1", None, "t2"]
    assert [line["who"] for line in lines] == ["user", "assistant", "Bob"]
    assert "e2" not in shown[1]["content"]
    item = answer_schema(turns, 16)["properties"]["facts"]["items"]
    assert (item["properties"]["turn"]["enum"], item["properties"]["speaker"]["enum"]) == (
        ["t1", "t2"],
        ["user", "Bob"],
    )
    assert set(HOLDS) < set(item["required"])


def test_what_is_no_fact_in_an_answer_is_counted() -> None:
    rome = {"turn": "t1", "speaker": "user", "key": "User.City", "value": "Rome", "quote": " Rome "}
    odd = [3, None, {}, {"turn": 1}, rome | {"key": ""}, rome | {"value": None}, rome | {"quote": "x" * 3000}]
    text = f"```json\n{json.dumps({'facts': [rome, rome | HOLDS | {'quoted': 'no'}, *odd]})}\n```"
    (bare, declared), malformed = read_answer(text, [turn("Rome")])
    assert (bare.turn_id, bare.key, bare.quote, bare.negated, malformed) == ("e1", "user.city", "Rome", None, len(odd))
    assert (declared.negated, declared.quoted) == (False, None)


@for_each("said", ["", "no", "[]", '{"facts": 3}', '{"facts": [', '{"other": []}', "[" * 5000, "null"])
def test_an_answer_that_is_no_list_of_facts(said: str) -> None:
    with pytest.raises(ModelMalformed):
        read_answer(said, [turn("x")])


def test_of_an_answer_that_was_cut_off_the_whole_facts_are_taken_if_it_is_about_one_turn() -> None:
    rome = json.dumps({"turn": "t1", "speaker": "user", "key": "user.city", "value": "Rome", "quote": "Rome", **HOLDS})
    for cut in (f'{{"facts": [{rome}, {rome[:30]}', f'{{"facts": [{rome}', f'{{"facts": [{rome},'):
        assert len(read_answer(cut, [turn("Rome")], is_cut=True)[0]) == 1
        with pytest.raises(ModelMalformed, match="cut"):
            read_answer(cut, [turn("Rome"), turn("x", "e2")], is_cut=True)
    for cut in ("", "{", '{"facts"', '{"facts": [', "[" * 5000):
        assert read_answer(cut, [turn("Rome")], is_cut=True) == ((), 0)


# -- clients ------------------------------------------------------------------------------------------


class Refused(Exception):
    status_code = 400


class Completions:
    """The calls of a client, as plain data; `is_old` refuses what it does not know."""

    def __init__(self, *, is_old: bool = False) -> None:
        self.asked: list[dict[str, Any]] = []
        self.is_old = is_old

    def create(self, **given: Any) -> Any:
        self.asked.append(given)
        if self.is_old and "response_format" in given:
            raise Refused
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "input_tokens": 7, "output_tokens": 3}
        choice = {"message": {"content": "{}"}, "finish_reason": "length"}
        return (
            {"choices": [choice], "usage": usage}
            if "system" not in given
            else {"content": [{"text": "{}"}], "usage": usage}
        )


class OpenAi:
    def __init__(self, calls: Completions) -> None:
        self.chat = type("Chat", (), {"completions": calls})()


class Anthropic:
    def __init__(self, calls: Completions) -> None:
        self.messages = calls


def test_a_client_of_either_kind_is_asked_for_the_model_that_is_named() -> None:
    messages = prompt_messages([turn("x")], ())
    for kind, is_cut in ((OpenAi, True), (Anthropic, False)):
        calls = Completions()
        model = load_turn_model((kind(calls), "m"), POLICY)
        reply = model.ask(messages, {"type": "object"}, 99)
        assert (reply.text, reply.is_cut, reply.tokens_in, reply.tokens_out) == ("{}", is_cut, 7, 3)
        (asked,) = calls.asked
        assert (asked["model"], asked["max_tokens"]) == ("m", 99)
        assert (asked.get("system"), len(asked["messages"])) in ((None, 2), (messages[0]["content"], 1))


def test_a_server_that_takes_no_schema_is_asked_without_one() -> None:
    calls = Completions(is_old=True)
    model = load_turn_model(OpenAi(calls), POLICY)
    for _ in range(2):
        assert model.ask(prompt_messages([turn("x")], ()), {"type": "object"}, 99).text == "{}"
    assert [sorted(asked) for asked in calls.asked[1:]] == [["messages", "model"]] * 2


# -- budgets ------------------------------------------------------------------------------------------


def test_a_budget_is_a_number_of_calls_or_limits_by_name() -> None:
    assert budget_given(None) == ExtractionBudget()
    assert budget_given(3) == budget_given({"calls": 3}) == ExtractionBudget(calls=3)
    for wrong in (True, 1.5, "3", [3], {"call": 3}, {"calls": -1}, {"calls": 1.5}, {"usd": 1}, {"tokens": "x"}):
        with pytest.raises((InvalidInput, InvalidRecord)) as refused:
            budget_given(wrong)
        assert str(refused.value.path or refused.value.details["issues"][0]["path"]).startswith("$.budget")


class Hundred:
    """Every question counts 100 tokens."""

    name, is_exact = "hundred", True

    def count(self, _text: str) -> int:
        return 1

    def count_many(self, _texts: Any) -> list[int]:
        return [84]


@for_each(
    ("limits", "spent", "room"),
    [
        ({}, (9, 9, 9999, 9999), 1000),
        ({"calls": 2}, (1, 0, 0, 0), 1000),
        ({"calls": 2}, (2, 0, 0, 0), "calls"),
        ({"calls": 0}, (0, 0, 0, 0), "calls"),
        ({"turns": 4}, (1, 4, 0, 0), "turns"),
        ({"tokens_in": 250}, (1, 1, 100, 0), 1000),
        ({"tokens_in": 250}, (2, 2, 200, 0), "tokens_in"),
        ({"tokens_out": 500}, (1, 1, 0, 100), 400),
        ({"tokens_out": 500}, (1, 1, 0, 450), "tokens_out"),
        ({"tokens": 900}, (1, 1, 300, 100), 400),
        ({"tokens": 500}, (1, 1, 300, 50), "tokens"),
        ({"usd": 0.001, "usd_per_million_in": 1, "usd_per_million_out": 2}, (0, 0, 0, 0), 450),
        ({"usd": 0.001, "usd_per_million_in": 1, "usd_per_million_out": 2}, (5, 5, 800, 50), "usd"),
        ({"usd": 0.001, "usd_per_million_in": 1}, (1, 1, 500, 0), 1000),
        ({"usd": 0.001, "usd_per_million_in": 1}, (1, 1, 950, 0), "usd"),
    ],
)
def test_a_call_that_might_pass_a_limit_is_not_made(
    limits: dict[str, Any], spent: tuple[int, int, int, int], room: int | str
) -> None:
    policy = ExtractionPolicy(answer_tokens_max=1000)
    model = MeteredModel(load_turn_model(lambda _messages: "", policy), policy, Hundred(), budget_given(limits))
    model.calls, model.turns, model.tokens_in, model.tokens_out = spent
    if isinstance(room, int):
        assert model.room([turn("x")], ()) == room
        return
    with pytest.raises(BudgetReached) as reached:
        model.room([turn("x")], ())
    assert reached.value.limit == room


def test_what_tokens_cost() -> None:
    priced = ExtractionBudget(usd_per_million_in=0.15, usd_per_million_out=0.6)
    assert priced.cost(1_000_000, 500_000) == pytest.approx(0.45)
    assert ExtractionBudget().cost(5, 5) is None
