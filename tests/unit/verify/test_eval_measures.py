"""What an arm's text is worth for a question, when that passes, and what is said of a miss."""

from __future__ import annotations

from typing import Any

from muniment.verify.evals.measures import MEASURES, Given, Miss, Piece, Wanted, judge, misses_of, passes
from muniment.verify.evals.questions import EvalQuestion
from muniment.verify.evals.run import PlainBm25
from products import for_each


def asked(**fields: Any) -> EvalQuestion:
    return EvalQuestion.from_wire({"question": "Where?", **fields})


def given(text: str = "", *ids: str, **more: Any) -> Given:
    return Given(text, ids, 10, **more)


BY_ID, BY_QUOTE = Piece("evt_1", ("evt_1",), False), Piece("moved to Berlin", ("evt_1", "evt_2"), True)
STALE = Piece("evt_0", ("evt_0",), False)


def test_evidence_by_id_has_to_stand_there_and_by_quote_word_for_word() -> None:
    wanted = Wanted((BY_ID, BY_QUOTE))
    question = asked(evidence=["evt_1", "moved to Berlin"])
    assert judge(question, wanted, given("She\n  MOVED to Berlin.", "evt_1"))["recall"] == 1
    assert judge(question, wanted, given("She moved.", "evt_1"))["recall"] == 0.5
    assert judge(question, wanted, given("She moved to Berlin.", "evt_2"))["recall"] == 0.5
    assert judge(question, wanted, given())["recall"] == 0


def test_only_what_applies_is_measured() -> None:
    assert judge(asked(answers=["Berlin"]), Wanted(), given("Berlin")) == {"told": 1}
    assert judge(asked(not_told=["Paris"]), Wanted(), given("Berlin")) == {"clean": 1}
    assert judge(asked(answerable=False), Wanted(), given("Berlin")) == {}
    assert judge(asked(answerable=False), Wanted(), given("Berlin", found=False)) == {"recognised": 1}
    assert judge(asked(answers=["Berlin"]), Wanted(), given("", found=False)) == {"told": 0, "offered": 0}


@for_each(
    ("ids", "newest"),
    [
        (("evt_1",), 1),
        (("evt_1", "evt_0"), 1),
        (("evt_0", "evt_1"), 0),
        (("evt_0",), 0),
        ((), 0),
    ],
)
def test_stale_evidence_ranks_below_fresh_evidence(ids: tuple[str, ...], newest: int) -> None:
    question = asked(evidence=["evt_1"], stale=["evt_0"])
    assert judge(question, Wanted((BY_ID,), (STALE,)), given("", *ids))["newest"] == newest


def test_a_turn_that_is_evidence_is_not_stale_as_well() -> None:
    question = asked(evidence=["evt_1"], stale=["moved"])
    stale = Piece("moved", ("evt_1",), True)
    assert judge(question, Wanted((BY_ID,), (stale,)), given("", "evt_1"))["newest"] == 1


def test_a_models_answer_is_measured_by_what_was_expected() -> None:
    known = asked(answers=["Berlin"], evidence=["evt_1"])
    right = given("…", "evt_1", marks={"1": "evt_1"}, answer="Berlin [1]")
    assert judge(known, Wanted((BY_ID,)), right) == {
        "recall": 1,
        "told": 0,
        "f1": 1,
        "contains": 1,
        "answered": 1,
        "cited": 1,
    }
    unknown = judge(asked(answerable=False), Wanted(), given("", answer="I don't know."))
    assert unknown == {"declined": 1}
    assert judge(asked(answerable=False), Wanted(), given("", answer="Berlin")) == {"declined": 0}
    assert judge(known, Wanted((BY_ID,)), given("", answer="I don't know."))["answered"] == 0


@for_each(
    ("measures", "passed"),
    [
        ({}, None),
        ({"offered": 0.0}, None),
        ({"recall": 1.0, "told": 0.0}, True),
        ({"recall": 0.5, "told": 1.0}, False),
        ({"told": 0.0}, False),
        ({"told": 1.0, "clean": 0.0}, False),
        ({"recall": 1.0, "newest": 0.0}, False),
        ({"recognised": 1.0, "clean": 1.0}, True),
        ({"recognised": 0.0}, False),
        ({"recall": 1.0, "contains": 0.0}, True),
    ],
)
def test_when_a_question_passes(measures: dict[str, float], passed: bool | None) -> None:
    assert passes(measures) is passed
    assert set(measures) <= set(MEASURES)


def test_each_miss_says_what_and_why() -> None:
    question = asked(evidence=["evt_1", "moved to Berlin"], stale=["evt_0"], not_told=["Paris"])
    wanted = Wanted((BY_ID, BY_QUOTE), (STALE,))
    got = given("Paris is nice", "evt_0", "evt_2", omitted={"evt_1": "over_budget"}, found=False)
    measures = judge(question, wanted, got) | {"recall": 0.5}
    assert list(misses_of(question, wanted, got, measures, {"evt_1": 14})) == [
        Miss("missing", "evt_1", "over_budget", 14),
        Miss("cut", "moved to Berlin"),
        Miss("stale", "evt_0"),
        Miss("told", "Paris"),
        Miss("refused"),
    ]
    nothing = given()
    assert list(misses_of(asked(answers=["Berlin", "B."]), Wanted(), nothing, {"told": 0}, {})) == [
        Miss("untold", "Berlin / B.")
    ]


def test_bm25_is_the_plain_one() -> None:
    turns = ["I like tea.", "My dog is called Rex, a dog of dogs.", "The dog", "我住在北京"]
    ranked = PlainBm25(turns).ranked
    assert ranked("dog") == [2, 1]
    assert ranked("dogs") == [1]
    assert ranked("北京") == [3]
    assert ranked("nothing of it") == [1]
    assert ranked("?") == []
    assert PlainBm25([]).ranked("dog") == []
