"""Drafts of rules: proposed, evidenced, bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from run_makers import NOW, call, clean, count_words, greedy_against_random, many_runs, run, runs_with

from effort import examples
from muniment.contracts.rules import DistillDraft
from muniment.core.policy import FoldPolicy, LearnPolicy
from muniment.learning._contrast import contrast, window
from muniment.learning._distill import Distilling, tactic
from muniment.learning._drafts import cluster_of, drafts
from muniment.learning._episodes import Writer
from muniment.learning.records import RunFacts
from muniment.verify.taxonomy import FAILURE_KINDS

POLICY = FoldPolicy()
WRITER = Writer(count_words, POLICY.summary_tokens_max, clean)


def drafted(runs: list[RunFacts], trigger: Any = "end_of_run", run_: RunFacts | None = None) -> list[DistillDraft]:
    seen = window(runs, POLICY)
    return drafts(run_ or runs[0], seen, contrast(seen, POLICY), policy=POLICY, trigger=trigger, writer=WRITER)


def failing(count: int) -> list[RunFacts]:
    steps = (call("search", 1), call("book", 2, ok=False, detail='{"to": "OSL"}'))
    return [
        run(f"f{place}", False, steps=steps, violated=("FORMAT:JSON_ONLY",), reason_codes=("format_leak",))
        for place in range(count)
    ]


@pytest.mark.req("RC-18")
def test_a_failure_that_comes_back_is_a_guardrail_with_its_evidence() -> None:
    (draft,) = drafted(failing(3))
    rule = draft.proposed_rule
    assert rule.type == "GuardrailRule"
    assert rule.body == (
        "Keep FORMAT:JSON_ONLY: one JSON document and nothing else. Seen in 3 of 3 runs, most often at book."
    )
    assert draft.source_trace_ids == ("f2", "f1", "f0")
    assert draft.evidence["evidence_ids"] == ["e2", "e2", "e2"]
    assert rule.applicability == {
        "domain_tag": "travel",
        "task_family": "booking",
        "predicates": ['domain_tag == "travel"', 'task_family == "booking"'],
    }
    assert draft.micro_regression_packs == ("FORMAT",)
    assert draft.failure_prediction is not None
    assert draft.failure_prediction.mechanism
    assert [one.id for one in draft.failure_prediction.predicted_failures or ()][:2] == [
        "format_leak",
        "instruction_conflict",
    ]


def test_where_to_look_is_not_said_of_the_answer_itself() -> None:
    said = [step.model_copy(update={"action": "say", "kind": "say"}) for step in (call("say", 1),)]
    runs = [one.model_copy(update={"steps": tuple(said)}) for one in failing(3)]
    (draft,) = drafted(runs)
    assert draft.proposed_rule.body == (
        "Keep FORMAT:JSON_ONLY: one JSON document and nothing else. Seen in 3 of 3 runs."
    )
    assert draft.evidence["evidence_ids"] == ["e1", "e1", "e1"]


def test_one_failure_is_no_cluster_unless_a_trigger_asks() -> None:
    assert drafted(failing(2)) == []
    assert [draft.proposed_rule.type for draft in drafted(failing(1), "fail_cluster")] == ["GuardrailRule"]


def test_a_passing_run_drafts_no_guardrail_of_others_failures() -> None:
    runs = [*failing(5), run("p", True)]
    assert [one for one in drafted(runs, run_=runs[-1]) if "cluster_id" in one.evidence] == []


def test_clusters_are_the_verifiers_or_made_of_what_it_said() -> None:
    one, other = failing(2)
    assert cluster_of(one) == cluster_of(other) != cluster_of(run("t", False, violated=("TOOL:ORDER",)))
    assert cluster_of(run("t", False, cluster_id="fc_1")) == "fc_1"
    assert cluster_of(run("t", False)) == cluster_of(run("u", False)) is not None
    assert cluster_of(run("t", True, cluster_id="fc_1")) is None


@pytest.mark.req("RC-18")
def test_what_separates_strongly_is_a_strategy_or_a_guardrail() -> None:
    runs = [
        *runs_with({"a": "x"}, 9, 0, "x"),
        *runs_with({"a": "y"}, 5, 4, "y"),
        *runs_with({"a": "z"}, 0, 9, "z"),
    ]
    found = {draft.proposed_rule.type: draft for draft in drafted(runs, run_=runs[0])}
    assert found["StrategyRule"].proposed_rule.title == "Use a=x"
    assert found["GuardrailRule"].proposed_rule.title == "Avoid a=z"
    assert found["GuardrailRule"].evidence["with"] == {"n": 9, "passes": 0, "cost_sum": 90}
    assert set(found["StrategyRule"].source_trace_ids) <= {one.trace_id for one in runs if one.passed}


def test_what_is_sure_enough_for_a_tactic_is_drafted() -> None:
    """The gate, its replay and its trial decide; a draft that waits for more runs comes too late for most of them."""
    runs = [*runs_with({"a": "x"}, 4, 0, "x"), *runs_with({"a": "y"}, 2, 4, "y")]
    (found,) = (one for one in contrast(runs, POLICY) if one.helps)
    assert 0.5 * (1 - POLICY.confidence_min) < found.doubt <= 1 - POLICY.confidence_min
    assert "Use a=x" in {draft.proposed_rule.title for draft in drafted(runs, run_=runs[0])}


def test_the_same_again_has_the_same_ids() -> None:
    runs = greedy_against_random()
    assert [one.draft_id for one in drafted(runs)] == [one.draft_id for one in drafted(runs[::-1], run_=runs[0])]


@pytest.mark.soak
@settings(max_examples=examples(20), deadline=None)
@given(many_runs())
def test_all_are_valid_bounded_and_foresee_two_failures(runs: list[RunFacts]) -> None:
    loose = POLICY.model_copy(update={"confidence_min": 0.3, "separation_min": 0.0})
    seen = window([one for one in runs if one.verdict is not None], loose)
    found = drafts(runs[0], seen, contrast(seen, loose), policy=loose, trigger="fail_cluster", writer=WRITER)
    for type_ in ("StrategyRule", "GuardrailRule"):
        assert sum(one.proposed_rule.type == type_ for one in found) <= loose.drafts_max
    for draft in found:
        assert DistillDraft.from_wire(draft.to_wire()) == draft
        assert draft.failure_prediction is not None
        foreseen = draft.failure_prediction.predicted_failures or ()
        assert len({one.id for one in foreseen}) >= 2
        assert {one.id for one in foreseen} <= set(FAILURE_KINDS)
        assert all(one.triggers and one.severity for one in foreseen)
        assert len(draft.tests.counterexample_tests or ()) == 2
        assert 1 <= len(draft.source_trace_ids) <= 12
        assert len(draft.to_bytes()) < 16_384


# -- whose words they are -------------------------------------------------------------------------------


def left_in_other_ways() -> list[RunFacts]:
    """The newest runs that passed went each its own way; the way that most passing runs went is an older one."""
    return [
        *runs_with({"way": "quokka"}, 9, 0, "a"),
        *(run(f"c{place}", True, own_features={"way": f"other{place}"}) for place in range(7)),
        *runs_with({"way": "greedy"}, 0, 14, "g"),
    ]


def checked_by_others() -> list[RunFacts]:
    return [
        *(run(f"a{place}", True, ("search", "run_quokka_tests")) for place in range(9)),
        *(run(f"c{place}", True, ("search", f"run_tests_{place}")) for place in range(7)),
        *(run(f"g{place:02}", False) for place in range(14)),
    ]


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("story", [left_in_other_ways, checked_by_others])
def test_for_every_word_that_is_told_a_run_is_named_that_brought_it(story: Any) -> None:
    """Else a user who is forgotten would live on in what others are told."""
    runs = window(story(), POLICY)
    separations = contrast(runs, POLICY)
    distilling = Distilling(LearnPolicy(), NOW, WRITER)
    told = [
        (str(made.to_wire()), made.evidence.trace_ids or ())
        for one in separations
        if (made := tactic(one, runs[-1], runs, distilling, None)) is not None and made.evidence is not None
    ]
    told += [(str(draft.to_wire()), draft.source_trace_ids) for draft in drafted(list(runs), run_=runs[-1])]
    quoting = [sources for text, sources in told if "quokka" in text]
    assert len(quoting) > 1, "a lesson and a draft say it"
    assert all(any(name.startswith("a") for name in sources) for sources in quoting)
