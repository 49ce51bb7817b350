"""The router: zones, ladders, reasons, counterfactuals; and what comes next after each attempt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import RoutePolicy
from muniment.rules._records import TIERS, RouteRequest
from muniment.rules.routing import (
    BucketStats,
    LogRow,
    RouteAttempt,
    Seen,
    Spent,
    expected_of,
    guesses_of,
    ladders_of,
    likeness_of,
    needs_repair,
    next_step,
    route,
    row_of,
    should_scale,
)
from products import for_each

POLICY = RoutePolicy()
FAILED = {"verdict": "FAIL", "outcome": "FAIL"}


def rows(passes, n, tier="hot", after=0, cost=10.0, outcome="OK"):
    mode = "main" if tier == "hot" else "kroll"
    good = LogRow("PASS", outcome, mode=mode, tier=tier, cost=cost, passed=True, after=after)
    bad = LogRow("FAIL", "FAIL", mode=mode, tier=tier, cost=cost, after=after)
    return [good] * passes + [bad] * (n - passes)


def stats(*groups):
    return BucketStats.of([each for group in groups for each in group])


def codes(decision):
    return [each.code for each in decision.reasons]


# -- statistics ---------------------------------------------------------------------------------------

ROWS = st.lists(
    st.builds(
        lambda passed, tier, after, cost, mode: LogRow(
            "PASS" if passed else "FAIL",
            "OK" if passed else "FAIL",
            mode=mode,
            tier=tier,
            cost=cost,
            passed=passed,
            after=after,
        ),
        st.booleans(),
        st.sampled_from([None, *TIERS]),
        st.integers(0, 20),
        st.floats(0, 1e6),
        st.sampled_from(["main", "kroll", "matts", "synth", "tree", "sot"]),
    ),
    max_size=60,
)
ASKED = st.builds(
    lambda judged, **more: RouteRequest(**more, **judged),
    st.one_of(
        st.just({}),
        st.fixed_dictionaries(
            {
                "verdict": st.sampled_from(["PASS", "PARTIAL", "FAIL"]),
                "outcome": st.sampled_from(["OK", "FAIL", "UNKNOWN"]),
            }
        ),
    ),
    impact=st.sampled_from(["low", "med", "high"]),
    pressure=st.sampled_from(["none", "mild", "strong", "severe"]),
    reason_codes=st.lists(st.sampled_from(["format_leak", "exec_unavailable", "self_inconsistency"]), max_size=2).map(
        tuple
    ),
    cluster_hits=st.integers(0, 5),
    rules_changed=st.booleans(),
    is_parallel=st.booleans(),
    repairs=st.integers(0, 2),
)


@pytest.mark.req("RC-16")
@given(ROWS, st.integers(0, 60))
def test_statistics_merge_exactly(rows_, at):
    whole = BucketStats.of(rows_)
    merged = BucketStats.of(rows_[at:][::-1]).merge(BucketStats.of(rows_[:at]))
    assert merged.cells == whole.cells
    assert whole.at().n == sum(each.mode != "synth" for each in rows_)


def test_costs_add_up_exactly():
    one, other = rows(1, 1, cost=0.1), rows(1, 1, cost=0.2)
    assert stats(one * 3, other).cells == stats(other, one * 3).cells
    assert stats(one * 3).at("hot") == Spent(3, 3, 3, 300_000)


def test_a_run_that_says_nothing_counts_for_nothing():
    mute = LogRow("PARTIAL", "UNKNOWN", ("exec_unavailable",))
    assert BucketStats.of([mute, LogRow(None, None)]).at().n == 0


def test_later_attempts_are_worth_less_of_a_first_one():
    known = stats(rows(2, 10, "probe", after=8))
    assert known.exposure("probe", 8) == pytest.approx(5)
    assert guesses_of(known, POLICY, 8, is_cautious=False)["probe"].rate > 0.2


def test_how_alike_tasks_are_is_read_from_the_runs():
    alike = stats(*(rows(30, 100, "hot", after=n) for n in range(6)))
    unlike = stats(
        rows(50, 100), rows(10, 50, after=1), rows(2, 40, after=2), rows(1, 38, after=3), rows(0, 37, after=4)
    )
    assert likeness_of(unlike, POLICY) < POLICY.likeness_runs < likeness_of(alike, POLICY)
    assert likeness_of(BucketStats(), POLICY) == POLICY.likeness_runs


def test_a_tier_nobody_tried_is_priced_by_its_budget():
    guesses = guesses_of(stats(rows(5, 10, cost=12.0)), POLICY, 16, is_cautious=False)
    assert guesses["full"].cost == pytest.approx(12 * 5)
    assert guesses_of(BucketStats(), POLICY, 16, is_cautious=False)["hot"].cost == 1_200


def test_expected_by_hand():
    guesses = guesses_of(BucketStats(), POLICY, 1e9, is_cautious=False)
    ladder = next(each for each in ladders_of(TIERS, guesses, POLICY, k_full_max=8) if len(each) == 2)
    assert [(step.tier, step.k) for step in ladder] == [("hot", 1), ("probe", 3)]
    found = expected_of(ladder, guesses, 1e9)
    assert found.pass_rate == pytest.approx(1 - 0.5**4)
    assert found.cost == pytest.approx(1200 + 2500 * (0.5 + 0.25 + 0.125))
    assert found.cost_max == 1200 + 3 * 2500
    assert expected_of(ladder, guesses, 1e9, is_parallel=True).cost == pytest.approx(1200 + 0.5 * 7500)


# -- the decision -------------------------------------------------------------------------------------


@pytest.mark.req("RC-26")
@given(ASKED, ROWS)
def test_what_holds_of_every_decision(asked, rows_):
    known = BucketStats.of(rows_)
    decision = route(asked, known, POLICY)
    assert decision == route(asked, BucketStats.of(rows_[::-1]), POLICY)
    assert type(decision).from_wire(decision.to_wire()) == decision
    assert decision.reasons
    assert all(each.code and each.words for each in decision.reasons)
    tiers = [rung.tier for rung in decision.rungs]
    assert tiers == sorted(set(tiers), key=TIERS.index)
    assert all(rung.k <= POLICY.k_full_max for rung in decision.rungs)
    if len(decision.rungs) > 1:  # never more than all full attempts would cost
        full = guesses_of(known, POLICY, likeness_of(known, POLICY), is_cautious=False)["full"].cost
        assert decision.expected.cost_max <= POLICY.k_full_max * full * (1 + 1e-9)
    if decision.zone == "deadzone":
        assert set(tiers) <= {"hot"}
        assert not decision.synth
    if decision.rungs and decision.cheaper is None:
        assert len(tiers) == 1
    if decision.cheaper is not None:
        assert decision.cheaper.expected.cost < decision.expected.cost
        assert decision.cheaper.cost_saved > 0
    if asked.pressure != "none":
        assert not decision.synth
    if asked.pressure == "severe":
        assert "full" not in tiers


@pytest.mark.req("RC-26")
def test_nothing_known_climbs_from_hot_and_says_how_many_runs_are_missing():
    decision = route(RouteRequest(), BucketStats(), POLICY)
    assert (decision.action, decision.tier, decision.mode, decision.k) == ("run", "hot", "main", 1)
    assert [rung.tier for rung in decision.rungs] == ["hot", "probe", "full"]
    assert decision.runs_missing == POLICY.thin_n
    assert "not_enough_runs" in codes(decision)
    assert decision.cheaper is not None


@pytest.mark.req("RC-26")
def test_a_dead_zone_is_never_scaled():
    known = stats(rows(0, 6), rows(0, 18, "probe", after=1))
    decision = route(RouteRequest(impact="high", rules_changed=True), known, POLICY)
    assert (decision.zone, decision.action, decision.rungs) == ("deadzone", "escalate", ())
    assert next_step(decision, []).action == "escalate"
    some = stats(rows(0, 3), rows(0, 3, "probe"), rows(0, 18, "probe", after=1))
    decision = route(RouteRequest(), some, POLICY)
    assert [rung.tier for rung in decision.rungs] == ["hot"]
    step = next_step(decision, [RouteAttempt("FAIL", "FAIL")])
    assert step.action == "escalate"


def test_a_few_plain_failures_are_no_dead_zone():
    assert route(RouteRequest(), stats(rows(0, 8)), POLICY).zone == "hard"
    assert route(RouteRequest(), stats(rows(1, 6, "full")), POLICY).zone == "hard"
    assert route(RouteRequest(), stats(rows(0, 6, "full")), POLICY).zone == "deadzone"


@pytest.mark.req("RC-26")
def test_easy_skips_scaling():
    decision = route(RouteRequest(), stats(rows(95, 100), rows(19, 20, "probe"), rows(19, 20, "full")), POLICY)
    assert (decision.zone, decision.tier, decision.k, decision.synth) == ("easy", "hot", 1, False)
    assert "full" not in [rung.tier for rung in decision.rungs]


@pytest.mark.req("RC-16")
@pytest.mark.parametrize(("passes", "zone", "missing"), [(21, "good", 1), (22, "easy", 0), (8, "good", 14)])
def test_high_impact_reads_the_lower_bound_and_says_what_it_lacks(passes, zone, missing):
    decision = route(RouteRequest(impact="high"), stats(rows(passes, passes)), POLICY)
    assert (decision.zone, decision.runs_missing) == (zone, missing)
    assert ("bound_out_of_reach" in codes(decision)) == (missing > 0)
    assert route(RouteRequest(), stats(rows(passes, passes)), POLICY).zone == "easy"


@pytest.mark.req("RC-26")
def test_high_impact_keeps_its_probes_under_any_pressure():
    known = stats(rows(12, 40), rows(5, 30, "probe", after=1), rows(5, 30, "full", after=4))
    for pressure in ("none", "mild", "strong", "severe"):
        decision = route(RouteRequest(impact="high", pressure=pressure), known, POLICY)
        (probe,) = [rung for rung in decision.rungs if rung.tier == "probe"]
        assert probe.k == POLICY.k_probe
        assert decision.synth == (pressure == "none")
    strong = route(RouteRequest(impact="high", pressure="strong"), known, POLICY)
    assert all(rung.k <= POLICY.k_full_min for rung in strong.rungs if rung.tier == "full")


def test_a_useless_cheap_tier_is_left_out_only_beyond_doubt():
    dear = rows(30, 40, "full", cost=20.0)
    few = route(RouteRequest(), stats(rows(0, 5), rows(0, 5, "probe"), dear), POLICY)
    many = route(RouteRequest(), stats(rows(0, 200), rows(0, 200, "probe"), dear), POLICY)
    assert [rung.tier for rung in few.rungs] == ["hot", "probe", "full"]
    assert [rung.tier for rung in many.rungs] == ["full"]


def test_a_cap_on_cost():
    decision = route(RouteRequest(cost_max=9_000), BucketStats(), POLICY)
    assert [rung.tier for rung in decision.rungs] == ["hot", "probe"]
    assert "cost_cap" in codes(decision)
    nothing = route(RouteRequest(cost_max=100), BucketStats(), POLICY)
    assert (nothing.action, codes(nothing)[0]) == ("stop", "cost_cap")
    spent = [RouteAttempt("FAIL", "FAIL", cost=1_200), RouteAttempt("FAIL", "FAIL", "probe", cost=6_000)]
    assert next_step(decision, spent).reason.code == "cost_cap"


def test_modes():
    known = stats(rows(50, 100), rows(10, 40, "probe", after=1), rows(10, 40, "full", after=4))
    modes = {rung.tier: rung.mode for rung in route(RouteRequest(), known, POLICY).rungs}
    assert modes["full"] == "matts"
    debated = RouteRequest(reason_codes=("self_inconsistency",))
    assert route(debated, BucketStats(), POLICY).mode == "sot"


# -- should it be scaled ------------------------------------------------------------------------------


@pytest.mark.req("RC-26")
@for_each(
    ("asked", "yes", "code"),
    [
        ({}, False, "no_trigger"),
        ({"impact": "high"}, True, "high_impact"),
        ({"cluster_hits": 3}, True, "hard_cluster"),
        ({"utility_change": -0.1}, True, "falling_utility"),
        ({"rules_changed": True}, True, "rules_changed"),
        ({"verdict": "PASS", "outcome": "OK", "impact": "high"}, False, "confirmed"),
        ({"verdict": "PARTIAL", "outcome": "OK"}, True, "undecided"),
        ({"verdict": "PASS", "outcome": "UNKNOWN"}, True, "undecided"),
        ({**FAILED}, True, "not_passed"),
        ({**FAILED, "violated": ("FORMAT:JSON_ONLY",)}, False, "repair_first"),
        ({**FAILED, "violated": ("POLICY:NO_NETWORK",)}, False, "repair_first"),
        ({**FAILED, "violated": ("FORMAT:JSON_ONLY",), "repairs": 1}, True, "not_passed"),
        ({"verdict": "PASS", "outcome": "UNKNOWN", "impact": "low"}, False, "low_impact_unknown"),
        ({"verdict": "PASS", "outcome": "UNKNOWN", "impact": "low", "cluster_hits": 3}, True, "undecided"),
        ({"verdict": "PASS", "outcome": "UNKNOWN", "reason_codes": ("exec_unavailable",)}, False, "cannot_confirm"),
    ],
)
def test_should_scale(asked, yes, code):
    scaling = should_scale(RouteRequest(**asked), POLICY)
    assert (scaling.yes, scaling.reasons[0].code) == (yes, code)
    decision = route(RouteRequest(**asked), BucketStats(), POLICY)
    assert decision.scale == yes
    if "verdict" in asked:
        assert decision.action == ("run" if yes else "repair" if code == "repair_first" else "stop")


def test_only_a_fail_of_form_is_repaired():
    assert needs_repair(Seen("FAIL", "UNKNOWN", ("format_leak",)))
    assert not needs_repair(Seen("PARTIAL", "UNKNOWN", ("format_leak",)))
    assert not needs_repair(Seen("FAIL", "FAIL", ("numeric_error",), ("CONTENT:CONTAINS",)))


def test_after_an_attempt_that_failed_the_hot_tier_is_behind():
    decision = route(RouteRequest(**FAILED), BucketStats(), POLICY)
    assert decision.tier == "probe"


# -- climbing -----------------------------------------------------------------------------------------


@pytest.mark.req("RC-20")
def test_up_the_ladder_then_synthesis_then_escalation():
    decision = route(RouteRequest(impact="high"), BucketStats(), POLICY)
    attempts, steps = [], []
    while (step := next_step(decision, attempts)).action not in ("stop", "escalate"):
        steps.append(step.action)
        kind = "synth" if step.action == "synth" else "attempt"
        attempts.append(RouteAttempt("FAIL", "FAIL", step.action if kind == "attempt" else "full", kind))
    assert steps == ["hot", *["probe"] * 3, *["full"] * 6, "synth"]
    assert step.action == "escalate"


@pytest.mark.req("RC-20")
def test_it_stops_at_the_first_confirmed_pass():
    decision = route(RouteRequest(), BucketStats(), POLICY)
    attempts = [RouteAttempt("FAIL", "FAIL"), RouteAttempt("PASS", "OK", "probe")]
    assert next_step(decision, attempts).reason.code == "confirmed"


def test_a_form_is_repaired_once_at_its_tier():
    decision = route(RouteRequest(), BucketStats(), POLICY)
    broken = RouteAttempt("FAIL", "FAIL", violated=("FORMAT:JSON_ONLY",))
    assert next_step(decision, [broken]).action == "repair"
    assert next_step(decision, [broken, broken._replace(kind="repair")]).action == "probe"


def test_a_repair_that_was_asked_for_comes_first():
    decision = route(RouteRequest(**FAILED, violated=("FORMAT:JSON_ONLY",)), BucketStats(), POLICY)
    assert next_step(decision, []).action == "repair"
    mended = RouteAttempt("FAIL", "FAIL", kind="repair", violated=("FORMAT:JSON_ONLY",))
    assert next_step(decision, [mended]).action == "probe"


@pytest.mark.parametrize(
    ("impact", "reason_codes", "action"),
    [
        ("low", (), "stop"),
        ("med", (), "probe"),
        ("med", ("sandbox_denied",), "stop"),
        ("high", ("sandbox_denied",), "probe"),
    ],
)
def test_a_pass_that_nobody_confirmed(impact, reason_codes, action):
    decision = route(RouteRequest(impact=impact), BucketStats(), POLICY)
    assert next_step(decision, [RouteAttempt("PASS", "UNKNOWN", reason_codes=reason_codes)]).action == action


def test_where_nothing_was_ever_confirmed_a_pass_is_enough():
    decision = route(RouteRequest(), stats(rows(8, 20, outcome="UNKNOWN")), POLICY)
    assert not decision.can_confirm
    assert next_step(decision, [RouteAttempt("PASS", "UNKNOWN")]).reason.code == "never_confirmed"


@given(ASKED, ROWS, st.lists(st.booleans(), max_size=30))
def test_every_climb_ends(asked, rows_, outcomes):
    decision = route(asked, BucketStats.of(rows_), POLICY)
    attempts = []
    for number in range(40):
        step = next_step(decision, attempts)
        if step.action in ("stop", "escalate"):
            break
        passed = number < len(outcomes) and outcomes[number]
        kind = step.action if step.action in ("repair", "synth") else "attempt"
        tier = step.action if kind == "attempt" else "hot"
        attempts.append(RouteAttempt("PASS" if passed else "FAIL", "OK" if passed else "FAIL", tier, kind))
    assert step.action in ("stop", "escalate")
    assert sum(each.kind == "attempt" for each in attempts) <= sum(rung.k for rung in decision.rungs)


# -- rows ---------------------------------------------------------------------------------------------


def body(verifier=None, run=None, **facts):
    return {
        "event_log": {
            "verifier": verifier or {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"},
            "run": run or {},
        },
        "facts": {"at": "2026-05-01T00:00:00Z", "passed": False, **facts},
    }


def test_a_row_of_a_log():
    found = row_of(
        body(
            run={"mode": "kroll", "attempt": 3},
            verdict="PASS",
            outcome="OK",
            passed=True,
            reason_codes=["retry_recovered"],
            violated=["FORMAT:LENGTH"],
            cluster_id="fc_1",
            bucket_key="I1|general|clarity_high",
            state={"budget_tier": "full"},
            cost=12,
        )
    )
    assert found == LogRow(
        "PASS", "OK", ("retry_recovered",), ("FORMAT:LENGTH",), "fc_1", "I1|general|clarity_high",
        "kroll", "full", 12.0, "2026-05-01T00:00:00Z", True, 2,
    )  # fmt: skip
    assert found.is_confirmed


def test_what_facts_leave_out_is_a_verifier_that_could_not_run():
    mute = row_of(body(verifier={"verifier_id": "v", "verdict": "PARTIAL", "outcome": "UNKNOWN"}))
    assert (mute.reason_codes, mute.is_judged, mute.counts) == (("exec_unavailable",), True, False)
    nobody = row_of(body(verifier={"verifier_id": "none", "verdict": "PARTIAL", "outcome": "UNKNOWN"}))
    assert (nobody.verdict, nobody.is_judged, nobody.counts) == (None, False, False)


@pytest.mark.parametrize(
    ("mode", "tier", "rung"),
    [("main", None, "hot"), ("kroll", None, "probe"), ("tree", None, "full"), ("kroll", "hot", "hot")],
)
def test_the_tier_of_a_run(mode, tier, rung):
    assert row_of(body(run={"mode": mode}, state={"budget_tier": tier})).rung == rung
    assert row_of(body(run={"mode": "other"}, state={"budget_tier": "huge"})).rung == "hot"
