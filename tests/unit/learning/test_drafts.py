"""Drafts of rules: proposed, evidenced, bounded."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from run_makers import call, clean, count_words, greedy_against_random, many_runs, run, runs_with

from effort import examples
from muniment.contracts.rules import DistillDraft
from muniment.core.policy import FoldPolicy
from muniment.learning._contrast import contrast, window
from muniment.learning._drafts import draft_rules
from muniment.learning._episodes import Writer
from muniment.learning._features import features_of
from muniment.learning.keys import ANYWHERE
from muniment.learning.records import RunFacts
from muniment.verify.taxonomy import FAILURE_KINDS

POLICY = FoldPolicy()
WRITER = Writer(count_words, POLICY.summary_tokens_max, clean)


def drafted(runs: list[RunFacts], trigger: Any = "end_of_run", run_: RunFacts | None = None) -> list[DistillDraft]:
    seen = window(runs, POLICY)
    return draft_rules(
        run_ or runs[0], seen, contrast(seen, POLICY), policy=POLICY, trigger=trigger, writer=WRITER, ids=ANYWHERE
    )


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
    assert draft.evidence["evidence_ids"] == []


def test_one_failure_is_no_cluster_unless_a_trigger_asks() -> None:
    assert drafted(failing(2)) == []
    assert [draft.proposed_rule.type for draft in drafted(failing(1), "fail_cluster")] == ["GuardrailRule"]


def test_a_passing_run_drafts_no_guardrail_of_others_failures() -> None:
    runs = [*failing(5), run("p", True)]
    assert [one for one in drafted(runs, run_=runs[-1]) if "cluster_id" in one.evidence] == []


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
    found = draft_rules(
        runs[0], seen, contrast(seen, loose), policy=loose, trigger="fail_cluster", writer=WRITER, ids=ANYWHERE
    )
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


def test_failures_that_are_alike_are_one_cluster() -> None:
    alike = [run(f"a{place}", False) for place in range(3)]
    own = [run(f"b{place}", False, cluster_id="fc_1", violated=("FORMAT:JSON_ONLY",)) for place in range(3)]
    assert {one.evidence["cluster_id"] for one in drafted([*own, *alike])} == {"fc_1"}
    assert {one.evidence["failing"] for one in drafted([*own, *alike])} == {3}
    assert drafted([run(f"t{place}", True, cluster_id="fc_1") for place in range(3)]) == []


@pytest.mark.req("TM-15")
def test_no_draft_forbids_a_tool_that_a_passing_run_used() -> None:
    loose = POLICY.model_copy(update={"confidence_min": 0.2, "separation_min": 0.0})
    forbidden = 0
    for seed in range(20):
        draw = Random(seed)
        runs = []
        for place in range(120):
            tools = tuple(draw.sample(("look", "dig", "ask", "end"), draw.randint(1, 4)))
            rate = 0.0 if "dig" in tools and seed % 2 else 0.2 if "dig" in tools else 0.6
            runs.append(run(f"t{place:03}", draw.random() < rate, tools, x_summary=f"Task {draw.choice('abcd')}"))
        used = {feature.name for one in runs if one.passed for feature in features_of(one)}
        found = draft_rules(
            runs[0], runs, contrast(runs, loose), policy=loose, trigger=None, writer=WRITER, ids=ANYWHERE
        )
        for draft in found:
            if draft.proposed_rule.title.startswith("Do not"):
                forbidden += 1
                assert draft.evidence["feature"] not in used
    assert forbidden


@pytest.mark.req("LG-07")
def test_every_word_of_a_draft_comes_from_a_run_it_names() -> None:
    runs = [*runs_with({"way": "quokka"}, 9, 0, "a"), *runs_with({"way": "greedy"}, 0, 14, "g")]
    quoting = [draft for draft in drafted(runs, run_=runs[-1]) if "quokka" in str(draft.to_wire())]
    assert quoting
    assert all(any(name.startswith("a") for name in draft.source_trace_ids) for draft in quoting)
