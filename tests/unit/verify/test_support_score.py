"""The support score: a chance that agrees with the verdict, and moves the way its signs say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import SourceText, check_facts
from muniment.verify.facts._score import DOUBT_SIGNS, WORDING_SIGNS, log_odds, pressed, read_signs
from muniment.verify.outputs import Finding
from muniment.verify.results import compose_result, fact_score, unit_score
from products import for_each

POLICY = FactCheckPolicy()
PAGE = (
    "The ferry Marigold left Dunmore on 4 March 1901 with 62 passengers. Captain Calder turned back after two hours. "
    "Petra Lund wrote in 1903 that the engine had failed. The company denied it and paid nothing."
)
WORDS = [*sorted(set(PAGE.replace(".", "").split())), "Berlin", "1987", "never", "sank", "seventeen", "because", "she"]
CLAIMS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=3)


@given(CLAIMS)
def test_the_score_stands_on_the_side_of_its_verdict(sentences: list[str]) -> None:
    report = check_facts(". ".join(sentences) + ".", [SourceText("page", PAGE)], policy=POLICY)
    units = report.units or ()
    for unit in units:
        assert (unit_score(unit) >= 0.5) if unit.verdict == "SUPPORTED" else (unit_score(unit) <= 0.5)
    passes = all(unit.verdict == "SUPPORTED" for unit in units)
    assert (fact_score(report) >= 0.5) if passes else (fact_score(report) <= 0.5)
    if len(units) == 1:
        assert fact_score(report) == unit_score(units[0])


@given(st.floats(-40, 40), st.floats(-40, 40))
def test_the_verdict_changes_no_order_on_its_side(one: float, other: float) -> None:
    low, high = sorted((pressed(one), pressed(other)))
    assert 0 < low <= high
    assert (pressed(one) <= pressed(other)) == (one <= other) or pressed(one) == pressed(other)


@for_each("name", DOUBT_SIGNS)
def test_a_doubt_takes_off(name: str) -> None:
    signs = read_signs([], POLICY.doubts_max)
    assert log_odds(signs | {name: 1.0}, POLICY) < log_odds(signs, POLICY)


@pytest.mark.parametrize("name", WORDING_SIGNS)
def test_nearer_wording_adds(name: str) -> None:
    signs = read_signs([], POLICY.doubts_max) | {name: 0.1}
    assert log_odds(signs | {name: 0.5}, POLICY) > log_odds(signs, POLICY)


def test_a_doubt_weighs_more_where_the_wording_is_the_sources() -> None:
    far = read_signs([], POLICY.doubts_max) | dict.fromkeys(WORDING_SIGNS, 0.0)
    near = far | dict.fromkeys(WORDING_SIGNS, 1.0)
    lost = [log_odds(signs, POLICY) - log_odds(signs | {"number_absent": 1.0}, POLICY) for signs in (near, far)]
    assert lost[0] > lost[1] > 0


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("Captain Calder turned back after two hours.", "The captain sold hats in Berlin for seventeen years."),
        ("The ferry Marigold left Dunmore with 62 passengers.", "The ferry Marigold left Dunmore with 87 passengers."),
        ("Petra Lund wrote that the engine had failed.", "Petra Lund sang that a violin had burned."),
    ],
)
def test_what_the_page_says_scores_higher(better: str, worse: str) -> None:
    one, two = (fact_score(check_facts(text, [SourceText("p", PAGE)], policy=POLICY)) for text in (better, worse))
    assert one > 0.5 > two


def test_a_result_has_the_score_of_its_facts_unless_its_form_is_broken() -> None:
    facts = check_facts("Captain Calder turned back after two hours.", [SourceText("p", PAGE)], policy=POLICY)
    assert compose_result(facts=facts).score == fact_score(facts) > 0.5
    assert compose_result([Finding("FORMAT:WORDS", True)], facts).score == fact_score(facts)
    assert compose_result([Finding("FORMAT:WORDS", False, "too long")], facts).score == 0


def test_the_weights_are_those_that_were_learned() -> None:
    learned = json.loads((Path(__file__).parents[3] / "benchmarks/results/fact_check_policy.json").read_text("utf-8"))
    now = POLICY.model_dump(mode="json")
    for part in ("wording", "change", "doubts", "slope", "shift"):
        assert now[part] == learned["policy"][part]


@pytest.mark.parametrize("claim", ["Captain Calder turned back [2].", "Captain Calder turned back. [2]"])
def test_a_mark_by_which_a_document_calls_itself_is_no_figure(claim: str) -> None:
    marked = check_facts(claim, [SourceText("p", f"[2] {PAGE}")], policy=POLICY)
    plain = check_facts("Captain Calder turned back.", [SourceText("p", f"[2] {PAGE}")], policy=POLICY)
    assert (
        [unit.verdict for unit in marked.units or ()] == [unit.verdict for unit in plain.units or ()] == ["SUPPORTED"]
    )
    assert fact_score(marked) == fact_score(plain)
    unknown = check_facts("Captain Calder turned back [98].", [SourceText("p", f"[2] {PAGE}")], policy=POLICY)
    assert (unknown.units or ())[0].verdict != "SUPPORTED"
