"""CandidateSelect: who is chosen, why, why the others are not, and what is said of it."""

from __future__ import annotations

from itertools import combinations
from typing import Any, get_args

import pytest
from rule_makers import (
    BUCKET,
    HOUSE,
    asked,
    chosen,
    codes,
    compiled,
    count_words,
    guard,
    kept,
    on_trial,
    policy,
    rule,
    select,
)

from muniment.contracts.schemas import unknown_keys, validate
from muniment.core.text.sentences import cosine, words_of
from muniment.errors import InvalidInput, InvalidRecord
from muniment.rules._select import RefusalCode, compile_rule, in_arm, select_rules
from products import for_each

LINES = (
    "Search for the cheapest fare",
    "Ask which airport the traveller prefers",
    "Convert every price into euros",
    "Never book without a passport number",
    "Compare trains with flights under three hours",
    "Write dates in ISO form",
)


# -- who applies --------------------------------------------------------------------------------------


@pytest.mark.req("RC-15")
def test_a_rule_applies_by_domain_family_bucket_and_predicates() -> None:
    selected = select(
        rule("fits", LINES[0], applicability=HOUSE | {"bucket_keys": [BUCKET], "predicates": ["x_features.n == 3"]}),
        rule("any", LINES[1]),
        rule("domain", LINES[2], applicability={"domain_tag": "coding"}),
        rule("family", LINES[3], applicability={"domain_tag": "travel", "task_family": "refunds"}),
        rule("bucket", LINES[4], applicability={"bucket_keys": ["I3|travel|clarity_low"]}),
        rule("false", LINES[5], applicability={"predicates": ["x_features.n == 4"]}),
        rule("unknown", LINES[0], applicability={"predicates": ["x_features.m == 4"]}),
        rule("broken", LINES[0], applicability={"predicates": ["x_features.m =="]}),
        features={"x_features": {"n": 3}},
    )
    assert chosen(selected) == ["fits", "any"]
    assert codes(selected) == {
        "domain": "other_domain",
        "family": "other_family",
        "bucket": "other_bucket",
        "false": "predicate_not_true",
        "unknown": "predicate_not_true",
        "broken": "predicate_invalid",
    }
    words = {each.rule_id: each.why for each in selected.refused}
    assert words["unknown"] == "x_features.m == 4 is unknown"
    assert words["family"] == "for the family refunds; the run's is booking"


@pytest.mark.req("RC-15")
def test_what_is_not_known_of_a_run_matches_nothing_that_is_named() -> None:
    selected = select(
        rule("family", LINES[0], applicability={"task_family": "booking"}),
        rule("bucket", LINES[1], applicability={"bucket_keys": [BUCKET]}),
        rule("domain", LINES[2], applicability={"domain_tag": "travel"}),
        rule("any", LINES[3]),
        family=None,
        bucket_key=None,
    )
    assert chosen(selected) == ["any"]
    assert codes(selected) == {"family": "other_family", "bucket": "other_bucket", "domain": "other_domain"}


def test_names_match_in_any_case_and_composed() -> None:
    names = {"domain_tag": " Travel", "task_family": "caf\u00e9"}
    assert chosen(select(rule("r", LINES[0], applicability=names), family="CAFE\u0301")) == ["r"]


@pytest.mark.req("RC-14")
@pytest.mark.parametrize("stage", ["drafted", "gated", "replayed", None])
def test_only_what_is_active_or_on_trial_acts(stage: str | None) -> None:
    waiting = kept(rule("w", LINES[0], status="temporary"), **({"stage": stage} if stage else {}))
    if stage is None:
        waiting = waiting.model_copy(update={"stage": None})
    selected = select(waiting, kept(rule("gone", LINES[1], status="retired")), rule("on", LINES[2]))
    assert chosen(selected) == ["on"]
    assert codes(selected) == {"w": "not_in_force", "gone": "retired"}
    assert [arm.rule_id for arm in selected.arms] == ["on"]


@pytest.mark.req("RC-14")
@for_each(
    ("status", "around", "code"),
    [
        ("active", {"stage": "gated"}, "not_in_force"),
        ("temporary", {"stage": "active"}, "not_in_force"),
        ("active", {"stage": "canary"}, "not_in_force"),
        ("temporary", {"stage": "canary"}, "not_in_force"),  # without a plan there is no trial
        ("active", {"stage": "retired"}, "retired"),
        ("retired", {"stage": "active", "status": "active"}, "retired"),
        ("active", {"status": "retired"}, "retired"),
    ],
)
def test_a_rule_whose_stage_and_status_disagree_acts_nowhere(status: str, around: Any, code: str) -> None:
    selected = select(kept(rule("r", LINES[0], status=status), **around))
    assert chosen(selected) == []
    assert codes(selected) == {"r": code}
    assert selected.arms == ()


def test_what_ran_out_does_not_act() -> None:
    until = "2026-05-01T12:00:00Z"
    memory = kept(rule("r", LINES[0]), expires_at=until)
    assert chosen(select(memory, now=until)) == ["r"]  # until exactly now is still valid
    selected = select(memory, now="2026-05-01T14:00:01+02:00")
    assert codes(selected) == {"r": "expired"}
    pinned = kept(rule("r", LINES[0]), expires_at=until, status="pinned")
    assert chosen(select(pinned, now="2027-01-01T00:00:00Z")) == ["r"]


def test_what_is_no_rule_is_refused_when_it_is_made_ready() -> None:
    with pytest.raises(InvalidRecord):
        compile_rule(kept(rule()).model_copy(update={"record": {"id": "r1", "digest": "d"}}), count_words)
    with pytest.raises(InvalidInput, match="kept under the id"):
        compile_rule(kept(rule("r1"), id="r2"), count_words)


# -- order and limits ---------------------------------------------------------------------------------


@pytest.mark.req("RC-14", "RC-15")
def test_guardrails_come_first_then_score_rank_and_id() -> None:
    ranked = [
        rule(name, line, priority={"guardrail_first": False, "rank": n})
        for name, line, n in (("b", LINES[0], 2), ("c", LINES[1], 1))
    ]
    selected = select(
        *ranked,
        rule("a", LINES[2]),
        rule("best", LINES[3], applicability=HOUSE),
        guard("g", LINES[4]),
    )
    assert chosen(selected) == ["g", "best", "c", "b", "a"]
    assert [each.score for each in selected.response.selected_rules] == [1, 4, 0, 0, 0]
    assert selected.text.splitlines() == ["## Rules", *(f"- {LINES[n]}" for n in (4, 3, 1, 0, 2))]


@pytest.mark.req("RC-14")
def test_submitted_guardrails_do_not_crowd_out_learnt_ones() -> None:
    pushy = [kept(guard(f"u{n}", line, applicability=HOUSE), layer="user") for n, line in enumerate(LINES[:3])]
    using = {"max_rules": 2, "allow_types": ["StrategyRule", "GuardrailRule"]}
    selected = select(*pushy, guard("learnt", LINES[4]), constraints=using)
    assert chosen(selected) == ["learnt", "u0"]


@pytest.mark.req("RC-15")
def test_max_rules_types_and_tokens_are_kept() -> None:
    rules = [rule(f"r{n}", line) for n, line in enumerate(LINES)]
    two = {"max_rules": 2, "allow_types": ["StrategyRule"]}
    selected = select(*rules, guard("g", "Guard it"), constraints=two)
    assert chosen(selected) == ["r0", "r1"]
    assert codes(selected) == {"g": "type_not_allowed"} | dict.fromkeys(("r2", "r3", "r4", "r5"), "max_rules")
    none = select(*rules, constraints=two | {"allow_types": []})
    assert chosen(none) == []
    assert set(codes(none).values()) == {"type_not_allowed"}
    for nothing in (0, -3):
        assert chosen(select(*rules, constraints=two | {"max_rules": nothing})) == []
    tight = select(*rules, using=policy(select={"tokens_max": 13}))
    assert tight.tokens <= 13
    assert tight.tokens == sum(count_words(line) for line in tight.lines)
    assert codes(tight)["r2"] == "tokens_max"
    assert chosen(tight) == ["r0", "r1"]  # 6 + 7 words, and no room is left


@pytest.mark.req("RC-15")
def test_a_smaller_rule_may_fit_where_a_larger_one_did_not() -> None:
    selected = select(
        rule("a", "one two three"),
        rule("b", "four five six seven"),
        rule("c", "eight"),
        using=policy(select={"tokens_max": 6}),
    )
    assert chosen(selected) == ["a", "c"]
    assert codes(selected) == {"b": "tokens_max"}


def test_a_rule_of_several_lines_is_one_item() -> None:
    assert select(rule("r", "First this.\n\nThen that.\n")).text == "## Rules\n- First this.\n  \n  Then that."


# -- likes and contraries -----------------------------------------------------------------------------


LONG = (
    "When a fare is shown in several currencies then always convert each of the prices into euros "
    "before you compare the offers of the airlines"
)


@pytest.mark.req("RC-15")
def test_of_near_duplicates_the_first_is_chosen() -> None:
    near = LONG.replace("shown", "given")
    assert cosine(words_of(LONG), words_of(near)) >= 0.95
    selected = select(rule("b", near), rule("a", LONG), rule("other", LINES[1]))
    assert chosen(selected) == ["a", "other"]
    assert codes(selected) == {"b": "near_duplicate"}
    assert len(select(rule("b", near), rule("a", LONG), using=policy(select={"near_duplicate": 1})).lines) == 2


@pytest.mark.req("RC-15")
@pytest.mark.parametrize("turned", [LONG.replace("always", "never"), LONG.replace("several", "3")])
def test_a_rule_and_its_contrary_are_never_given_together(turned: str) -> None:
    selected = select(rule("do", turned), guard("dont", LONG))
    assert chosen(selected) == ["dont"]
    assert codes(selected) == {"do": "contradicts"}
    assert "dont" in selected.refused[0].why


def test_the_same_rule_from_two_banks_is_given_once() -> None:
    mine, theirs = kept(rule("r", LINES[0])), kept(rule("r", LINES[1]), level="agent")
    for order in ((mine, theirs), (theirs, mine)):
        selected = select(*order)
        assert selected.text == f"## Rules\n- {LINES[1]}"  # agent before user
        assert codes(selected) == {"r": "same_rule"}


# -- statistics ---------------------------------------------------------------------------------------


def rated(
    rule_id: str, line: str, p_hat: float | None, p_lb95: float | None, runs: int | None, **more: Any
) -> dict[str, Any]:
    return rule(rule_id, line, metrics={"pass_p_hat": p_hat, "pass_p_lb95": p_lb95, "pass_p_K": runs} | more)


@pytest.mark.req("RC-15", "RC-16")
def test_high_impact_reads_the_lower_bound_and_others_the_rate() -> None:
    lucky, steady = rated("lucky", LINES[0], 1.0, 0.6, 6), rated("steady", LINES[1], 0.8, 0.75, 400)
    assert chosen(select(lucky, steady)) == ["lucky", "steady"]
    high = select(lucky, steady, context={"impact_level": "high"})
    assert chosen(high) == ["steady", "lucky"]
    assert high.response.selected_rules[0].reasons == ("pass rate at least 0.750 of 400 runs: +0.250", "in force")


@pytest.mark.req("RC-16")
def test_thin_samples_are_neutral_and_said_to_be_unknown() -> None:
    selected = select(
        rated("thin", LINES[0], 1.0, 0.5, 5),
        rated("bad", LINES[1], 0.2, 0.1, 50),
        rated("good", LINES[2], 0.9, 0.8, 50),
    )
    assert chosen(selected) == ["good", "thin", "bad"]
    assert selected.response.selected_rules[1].reasons == ("pass rate unknown: 5 judged runs", "in force")
    assert selected.response.selected_rules[1].score == 0


@pytest.mark.req("RC-16")
def test_the_bucket_of_the_run_is_read_where_it_is_not_thin() -> None:
    here, thin = {BUCKET: {"p_hat": 0.9, "p_lb95": 0.7, "K": 20}}, {BUCKET: {"p_hat": 0.9, "p_lb95": 0.7, "K": 5}}
    selected = select(
        rated("a", LINES[0], 0.1, 0.1, 99, pass_p_bucket=here), rated("b", LINES[1], 0.1, 0.1, 99, pass_p_bucket=thin)
    )
    assert [each.score for each in selected.response.selected_rules] == [0.4, -0.4]
    assert f"in {BUCKET}" in (selected.response.selected_rules[0].reasons or ())[0]


def test_absurd_figures_are_read_as_rates() -> None:
    selected = select(rated("a", LINES[0], 1e9, 1e9, 50), rated("b", LINES[1], -4, -4, 50))
    assert [each.score for each in selected.response.selected_rules] == [0.5, -0.5]


# -- exploration --------------------------------------------------------------------------------------


@pytest.mark.req("RC-15")
def test_the_exploration_block_says_what_was_done() -> None:
    rules = [
        rated("a", LINES[0], 0.95, 0.9, 50),
        rated("b", LINES[1], 0.05, 0.01, 50),
        rated("c", LINES[2], None, None, 2),
    ]
    plain = select(*rules).response.exploration
    assert plain is not None
    pairs = [cosine(words_of(one), words_of(other)) for one, other in combinations(LINES[:3], 2)]
    assert plain.diversity_score == pytest.approx(1 - sum(pairs) / 3)
    assert plain.model_copy(update={"diversity_score": None}).to_wire() == {
        "used_debias": False,
        "debias_weight": None,
        "used_novelty": False,
        "novelty_weight": None,
        "diversity_score": None,
    }
    both = select(*rules, using=policy(select={"debias": True, "novelty_weight": 0.5}))
    told = both.response.exploration
    assert told is not None
    assert told.used_debias is True
    assert told.debias_weight == pytest.approx((1.0 + 4.0) / 2)  # 1/(.95 + .05), and 1/(.05 + .05) cut to 4
    assert (told.used_novelty, told.novelty_weight) == (True, 0.5)
    unused = select(rules[2], using=policy(select={"debias": True})).response.exploration
    assert unused is not None
    assert (unused.used_debias, unused.debias_weight, unused.diversity_score) == (False, None, None)


@pytest.mark.req("RC-15")
def test_debias_levels_the_rates_and_never_turns_them_round() -> None:
    low, high = rated("low", LINES[0], 0.3, 0.2, 50), rated("high", LINES[1], 0.9, 0.8, 50)
    scores = [
        [each.score or 0 for each in select(low, high, using=policy(select={"debias": on})).response.selected_rules]
        for on in (False, True)
    ]
    assert scores[0][0] - scores[0][1] == pytest.approx(0.6)
    assert 0 < scores[1][0] - scores[1][1] < 0.15
    named = rule("named", LINES[2], applicability={"predicates": ["x_features.n == 3"]}, metrics=low["metrics"])
    assert (
        chosen(select(low, high, named, features={"x_features": {"n": 3}}, using=policy(select={"debias": True})))[0]
        == "high"
    )


@pytest.mark.req("RC-15")
def test_novelty_brings_what_was_hardly_used_forward() -> None:
    rules = [rated("old", LINES[0], 0.6, 0.5, 500), rated("new", LINES[1], None, None, 2)]
    assert chosen(select(*rules)) == ["old", "new"]
    selected = select(*rules, using=policy(select={"novelty_weight": 0.5}))
    assert chosen(selected) == ["new", "old"]
    assert selected.response.selected_rules[0].score == pytest.approx(0.4)


# -- arms ---------------------------------------------------------------------------------------------


@pytest.mark.req("RC-14", "RC-15")
def test_a_trial_is_by_the_hash_of_the_run() -> None:
    trial = on_trial(rule("r", LINES[0]), share=0.3)
    drawn = 0
    for n in range(200):
        selected = select(trial, rule("s", LINES[1]), run_id=f"run_{n}")
        has_it = in_arm("can_r", f"run_{n}", 0.3)
        drawn += has_it
        assert {arm.rule_id: arm.arm for arm in selected.arms} == {
            "r": "canary" if has_it else "baseline",
            "s": "active",
        }
        assert chosen(selected) == (["r", "s"] if has_it else ["s"])
        assert codes(selected) == ({} if has_it else {"r": "baseline"})
        if has_it:
            assert (selected.response.selected_rules[0].reasons or ())[-1] == "on trial in this run"
    assert 40 <= drawn <= 80


def test_a_trial_in_buckets_leaves_other_runs_alone() -> None:
    elsewhere = on_trial(rule("r", LINES[0]), share=1, buckets=["I3|travel|clarity_low"])
    assert codes(select(elsewhere)) == {"r": "not_in_trial"}
    assert select(elsewhere).arms == ()
    assert [arm.arm for arm in select(on_trial(rule("r", LINES[0]), share=1, buckets=[BUCKET])).arms] == ["canary"]
    assert codes(select(elsewhere, bucket_key=None)) == {"r": "not_in_trial"}


@pytest.mark.req("RC-14")
def test_some_runs_do_without_an_active_strategy_and_none_without_a_guardrail() -> None:
    using = policy(canary={"holdout_share": 0.2})
    rules = compiled(rule("s", LINES[0]), guard("g", LINES[1]), kept(rule("u", LINES[2]), layer="user"))
    held = 0
    for n in range(300):
        selected = select_rules(rules, asked(run_id=f"run_{n}"), using)
        arms = {arm.rule_id: arm.arm for arm in selected.arms}
        held += arms["s"] == "holdout"
        assert codes(selected) == ({"s": "holdout"} if arms["s"] == "holdout" else {})
        assert (arms["g"], arms["u"]) == ("active", "active")
    assert 35 <= held <= 90


def test_an_arm_is_told_only_of_what_would_have_been_chosen() -> None:
    one = {"max_rules": 1, "allow_types": ["StrategyRule", "GuardrailRule"]}
    best, trial = rule("a", LINES[0], applicability=HOUSE), on_trial(rule("t", LINES[1]), share=0.0001)
    selected = select(best, trial, constraints=one)
    assert [arm.rule_id for arm in selected.arms] == ["a"]
    assert codes(selected) == {"t": "max_rules"}
    first = on_trial(rule("t", LINES[1], applicability=HOUSE | {"bucket_keys": [BUCKET]}), share=0.0001)
    without = select(best, first, constraints=one)  # what is left out takes no place
    assert chosen(without) == ["a"]
    assert {arm.rule_id: arm.arm for arm in without.arms} == {"t": "baseline", "a": "active"}


# -- modes, contract, order of input ------------------------------------------------------------------


@pytest.mark.req("RC-14")
@for_each(
    ("memory", "mode"),
    [
        (kept(guard("r", LINES[0])), "system_guard"),
        (
            kept(
                guard("r", LINES[0], applicability={"domain_tag": "travel", "predicates": ['domain_tag == "travel"']})
            ),
            "system_guard",
        ),
        (kept(guard("r", LINES[0], applicability=HOUSE)), "prepend"),
        (kept(guard("r", LINES[0], applicability={"bucket_keys": [BUCKET]})), "prepend"),
        (kept(guard("r", LINES[0], applicability={"predicates": ['task_family == "booking"']})), "prepend"),
        (on_trial(guard("r", LINES[0]), share=1), "prepend"),
        (kept(rule("r", LINES[0])), "prepend"),
        (kept(rule("r", LINES[0]), layer="user"), "inline"),
        (kept(guard("r", LINES[0]), layer="user"), "inline"),
        (kept(guard("r", LINES[0], status="temporary"), layer="user"), "inline"),
    ],
)
def test_how_a_rule_is_injected(memory: Any, mode: str) -> None:
    (told,) = select(memory).response.selected_rules
    assert told.injection_mode == mode


@pytest.mark.req("RC-15")
def test_the_response_is_the_contracts_and_the_same_for_any_order() -> None:
    rules = compiled(
        *(rule(f"r{n}", line, applicability=HOUSE if n % 2 else {}) for n, line in enumerate(LINES)),
        guard("g", "Keep to the budget that was named"),
        on_trial(rule("t", "Offer a refundable fare first"), share=0.5),
    )
    using = policy(select={"debias": True, "novelty_weight": 0.3, "max_rules": 5}, canary={"holdout_share": 0.3})
    first = select_rules(rules, asked(), using)
    wire = first.response.to_wire()
    assert validate("CandidateSelectResponse", wire) == []
    assert unknown_keys("CandidateSelectResponse", wire) == []
    assert wire["request_id"] == "q1"
    for start in range(len(rules)):
        again = select_rules(rules[start:] + rules[:start], asked(), using)
        assert (again.response.to_bytes(), again.refused, again.arms, again.lines) == (
            first.response.to_bytes(),
            first.refused,
            first.arms,
            first.lines,
        )
    assert {each.rule_id for each in first.refused} | set(chosen(first)) == {each.rule.rule_id for each in rules}
    assert {each.code for each in first.refused} <= set(get_args(RefusalCode))


def test_no_rules_give_an_empty_answer() -> None:
    selected = select()
    assert (selected.text, selected.tokens, selected.arms, selected.refused) == ("", 0, (), ())
    assert validate("CandidateSelectResponse", selected.response.to_wire()) == []


def test_a_request_says_what_its_bucket_says() -> None:
    one = asked(bucket_key="I3|travel|clarity_low")
    assert (one.impact, one.domain_tag, one.features["user_clarity"]) == ("high", "travel", "low")
    told = asked(bucket_key="I3|travel|clarity_low", context={"impact_level": "low", "domain_tag": "coding"})
    assert (told.impact, told.domain_tag) == ("low", "coding")
    own = asked(bucket_key="their own", features={"domain_tag": "mine"})
    assert (own.impact, own.domain_tag, own.bucket_key, own.features["domain_tag"]) == (None, None, "their own", "mine")


def test_arms_are_shares_of_runs_and_independent_of_each_other() -> None:
    runs = [f"run_{n}" for n in range(4000)]
    one, other = ({run for run in runs if in_arm(name, run, 0.25)} for name in ("one", "other"))
    assert 900 < len(one) < 1100
    assert 200 < len(one & other) < 300  # a quarter of a quarter
    assert all(in_arm("one", run, 1) and not in_arm("one", run, 0) for run in runs)
    assert {run for run in runs if in_arm("one", run, 0.1)} <= one  # a larger share keeps the runs it had
    with pytest.raises(InvalidInput):
        in_arm("one", "run", 1.5)
