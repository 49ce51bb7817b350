"""How sure a research run is of a claim: the fact checker's score, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from muniment.core.policy import Policy
from muniment.research.sources import HELD_CHARS_MAX, SourceJudge
from muniment.verify.facts import SourceText, check_facts
from muniment.verify.results import compose_result, fact_score
from products import for_each

PAGE = (
    "The field study followed 550 homes in Norway for three winters. "
    "At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4."
)


def judge(claim: str, research: dict[str, Any] | None = None):
    corpus = SimpleNamespace(chunk=lambda _: SimpleNamespace(text=PAGE))
    shelved = cast("Any", {"cid_a": SimpleNamespace(chunk_ids=("c1",))})
    policy = Policy.from_wire({"research": research or {}})
    return SourceJudge(cast("Any", corpus), shelved, policy)(claim, ["cid_a"])["cid_a"]


@pytest.mark.req("RP-08")
def test_confidence_is_above_half_where_the_checker_says_yes_and_below_where_it_does_not():
    verbatim = judge("The field study followed 550 homes in Norway for three winters.")
    reworded = judge("For three winters the study followed 550 homes in Norway.")
    foreign = judge("Solar panels were banned from all roofs of Portugal by a court in Lisbon.")
    assert verbatim.support == reworded.support == "supported"
    assert foreign.support == "not_supported"
    assert verbatim.confidence >= reworded.confidence >= 50 > foreign.confidence


@pytest.mark.req("RP-08")
def test_a_figure_that_the_source_gives_otherwise_has_little_confidence():
    judged = judge("The field study followed 950 homes in Norway for three winters.")
    assert judged.support == "refuted"
    assert judged.confidence < 50


@pytest.mark.req("RP-08")
@for_each(
    "claim",
    [
        "The field study followed 550 homes in Norway for three winters.",
        "For three winters the study followed 550 homes in Norway.",
        "The field study followed 950 homes in Norway for three winters.",
        "At minus 10 degrees the pumps delivered 2.4. The study was in Norway.",
        "Solar panels were banned from all roofs of Portugal by a court in Lisbon.",
    ],
)
def test_confidence_is_the_score_of_the_checker(claim: str):
    report = check_facts(claim, [SourceText("c1", PAGE)], policy=Policy().verify)
    assert judge(claim).confidence == round(100 * fact_score(report))
    assert judge(claim).confidence == round(100 * compose_result(facts=report).score)


@pytest.mark.req("RP-08")
def test_a_judge_holds_a_bounded_amount_of_text():
    texts = {f"c{at}": f"House {at} used {at} kilowatts. " * 400 for at in range(60)}
    read: list[str] = []

    def chunk(chunk_id: str) -> SimpleNamespace:
        read.append(chunk_id)
        return SimpleNamespace(text=texts[chunk_id])

    documents = cast("Any", {f"cid_{at}": SimpleNamespace(chunk_ids=(f"c{at}",)) for at in range(60)})
    judge_all = SourceJudge(cast("Any", SimpleNamespace(chunk=chunk)), documents, Policy())
    for at in range(60):
        for _ in range(2):
            assert judge_all(f"House {at} used {at} kilowatts.", [f"cid_{at}"])[f"cid_{at}"].support == "supported"
        assert 0 < judge_all.held_chars <= HELD_CHARS_MAX
    assert sum(map(len, texts.values())) > 4 * HELD_CHARS_MAX
    assert read == list(texts)  # source by source, each is read once


def test_a_threshold_above_half_asks_for_nearer_wording():
    claim = "For three winters a study followed 550 homes in Norway."
    least = judge(claim).confidence
    assert judge(claim, {"support_min": least / 100}).support == "supported"
    assert judge(claim, {"support_min": (least + 1) / 100}).support == "not_supported"
