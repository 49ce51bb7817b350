"""Which attempt stands, which summaries are read, and what a synthesis may replace."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.runs import RolloutSummary, VerifierResult
from muniment.core.policy import RolloutPolicy
from muniment.core.text.tokens import estimate_tokens
from muniment.errors import InvalidRecord
from muniment.rules._summaries import (
    RankedAttempt,
    best_of,
    is_confirmed,
    needs_repair,
    rank_of,
    refine_prompt,
    repair_prompt,
    replaces,
    select_summaries,
    synthesis_inputs,
    synthesis_prompt,
)
from products import for_each

VERDICTS = list(itertools.product(["PASS", "PARTIAL", "FAIL"], ["OK", "UNKNOWN", "FAIL"]))


def result(verdict: str = "PASS", outcome: str = "OK", **more: object) -> VerifierResult:
    plain = {"schema_version": "0.5.15", "verifier_id": "v", "verdict": verdict, "outcome": outcome, **more}
    return VerifierResult.from_wire(plain)


def summary(number: int, answer: str, score: float, grounds: str = "it fits") -> RolloutSummary:
    return RolloutSummary.from_wire(
        {
            "schema_version": "0.5.15",
            "summary_id": f"sum_{number}",
            "trace_id": f"trc_{number}",
            "answer": answer,
            "key_reasoning": [grounds],
            "verifier_score": score,
            "verifier_mirror": {"verdict": "PASS", "outcome": "UNKNOWN"},
            "compaction_policy": {"max_tokens": 512, "forbid_cot": True},
        }
    )


@pytest.mark.req("RC-20")
def test_the_best_comes_first_and_then_what_differs() -> None:
    alike = [summary(number, "divide eight by a third", 0.9 - number / 1000) for number in range(3)]
    other = summary(9, "multiply twelve and two instead", 0.8, "twelve was in reach")
    found = select_summaries([*alike, other], RolloutPolicy(top_m=2))
    assert [each.summary_id for each in found.chosen] == ["sum_0", "sum_9"]
    block = found.block
    assert (block.rollouts_n, block.top_m, block.selection_method) == (4, 2, "score+diversity")
    assert block.selected_summary_ids == ("sum_0", "sum_9")
    assert block.diversity_score is not None
    assert block.diversity_score > 0.5
    scored = found.chosen[0].selection_score
    assert scored is not None
    assert 0 <= scored <= 1


@pytest.mark.req("RC-20")
@given(st.permutations(range(6)))
def test_selection_does_not_depend_on_the_order(order: list[int]) -> None:
    summaries = [summary(number, f"answer {number % 3} of it", (number % 2) / 2) for number in range(6)]
    wanted = select_summaries(summaries, RolloutPolicy())
    found = select_summaries([summaries[number] for number in order], RolloutPolicy())
    assert found == wanted


def test_one_summary_has_no_diversity() -> None:
    found = select_summaries([summary(1, "a", 1.0)], RolloutPolicy())
    assert found.block.diversity_score is None
    assert select_summaries([], RolloutPolicy()).chosen == ()


@pytest.mark.req("RC-20")
@for_each(("mine", "other"), list(itertools.product(VERDICTS, VERDICTS)))
def test_a_synthesis_never_makes_it_worse(mine: tuple[str, str], other: tuple[str, str]) -> None:
    new, standing = result(*mine), result(*other)
    if replaces(new, standing):
        assert rank_of(new) >= rank_of(standing)
        assert not is_confirmed(standing)
    if rank_of(new) > rank_of(standing):
        assert replaces(new, standing)


def test_what_agrees_stands_among_equals() -> None:
    unknown = result("PASS", "UNKNOWN")
    assert best_of([RankedAttempt(unknown, "7"), RankedAttempt(unknown, "24."), RankedAttempt(unknown, " 24 ")]) == 1
    assert best_of([RankedAttempt(unknown, "24"), RankedAttempt(result(), "7")]) == 1
    assert best_of([RankedAttempt(result("FAIL", "FAIL"), "x", 9), RankedAttempt(result("FAIL", "FAIL"), "y", 3)]) == 1
    assert best_of([RankedAttempt(result("PASS", "FAIL"), "x"), RankedAttempt(result("PARTIAL", "UNKNOWN"), "y")]) == 1


@pytest.mark.req("RC-20")
def test_a_synthesis_reads_summaries_that_may_be_read() -> None:
    summaries = [summary(1, "24", 0.6), summary(2, "7", 0.6)]
    prompt = synthesis_prompt("Reach 24.", summaries, estimate_tokens)
    assert prompt.startswith("Reach 24.")
    assert "Answer: 24" in prompt
    assert "Answer: 7" in prompt
    assert "not instructions" in prompt
    inputs = synthesis_inputs(summaries)
    assert inputs.used_summary_ids == ("sum_1", "sum_2")
    assert inputs.used_trace_ids == ("trc_1", "trc_2")
    with pytest.raises(InvalidRecord):
        synthesis_prompt("Reach 24.", [summary(1, "Let me think.", 0.6)], estimate_tokens)


@pytest.mark.req("RC-20")
@for_each(
    ("verdict", "violated", "mended"),
    [
        ("FAIL", ["FORMAT:JSON_ONLY"], True),
        ("FAIL", ["SCHEMA:JSON:invoice"], True),
        ("FAIL", ["CONTENT:CONTAINS", "POLICY:NO_NETWORK"], True),
        ("FAIL", ["CONTENT:CONTAINS"], False),
        ("FAIL", [], False),
        ("PARTIAL", ["FORMAT:JSON_ONLY"], False),
    ],
)
def test_only_a_broken_form_is_mended(verdict: str, violated: list[str], mended: bool) -> None:
    assert needs_repair(result(verdict, "UNKNOWN", violated_constraints=violated)) is mended


def test_a_code_of_a_broken_form_is_named_too() -> None:
    leaked = result("FAIL", "UNKNOWN", reason_codes=["format_leak", "test_fail"])
    assert needs_repair(leaked)
    assert "- format_leak: something stands outside the wanted format" in repair_prompt("Say it.", leaked, "")
    assert "test_fail" not in repair_prompt("Say it.", leaked, "")


def test_a_repair_names_what_broke() -> None:
    prompt = repair_prompt("Say it.", result("FAIL", "FAIL", violated_constraints=["FORMAT:JSON_ONLY"]), "so be it")
    assert "FORMAT:JSON_ONLY: one JSON document and nothing else" in prompt
    assert "so be it" in prompt
    assert "so be it" in refine_prompt("Say it.", "so be it")
