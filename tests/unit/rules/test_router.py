"""The router: counts, zones, the fixed ladder and its reasons, should_scale, rows of logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import RoutePolicy
from muniment.rules._records import TIERS, RouteRequest
from muniment.rules.routing import BucketStats, LogRow, TierCounts, route, row_of, should_scale, tier_costs
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
    repairs=st.integers(0, 2),
)


@pytest.mark.req("RC-16")
@given(ROWS)
def test_counts_do_not_depend_on_order(rows_):
    whole = BucketStats.of(rows_)
    assert whole.cells == BucketStats.of(rows_[::-1]).cells
    assert whole.at().n == sum(each.mode != "synth" for each in rows_)


def test_costs_add_up_exactly():
    one, other = rows(1, 1, cost=0.1), rows(1, 1, cost=0.2)
    assert stats(one * 3, other).cells == stats(other, one * 3).cells
    assert stats(one * 3).at("hot") == TierCounts(3, 3, 3, 300_000)


def test_a_run_that_says_nothing_counts_for_nothing():
    mute = LogRow("PARTIAL", "UNKNOWN", ("exec_unavailable",))
    assert BucketStats.of([mute, LogRow(None, None)]).at().n == 0


def test_a_tier_nobody_tried_is_priced_by_its_budget():
    assert tier_costs(stats(rows(5, 10, cost=12.0)))["full"] == pytest.approx(12 * 5)
    assert tier_costs(BucketStats())["hot"] == 1_200


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
    if decision.zone == "deadzone":
        assert set(tiers) <= {"hot"}
        assert not decision.synth
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


@pytest.mark.req("RC-26")
def test_a_dead_zone_is_never_scaled():
    known = stats(rows(0, 6), rows(0, 18, "probe", after=1))
    decision = route(RouteRequest(impact="high", rules_changed=True), known, POLICY)
    assert (decision.zone, decision.action, decision.rungs) == ("deadzone", "escalate", ())
    some = stats(rows(0, 3), rows(0, 3, "probe"), rows(0, 18, "probe", after=1))
    decision = route(RouteRequest(), some, POLICY)
    assert [rung.tier for rung in decision.rungs] == ["hot"]


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


def test_a_cap_on_cost():
    decision = route(RouteRequest(cost_max=9_000), BucketStats(), POLICY)
    assert [rung.tier for rung in decision.rungs] == ["hot", "probe"]
    assert decision.cost_max <= 9_000
    assert "cost_cap" in codes(decision)
    nothing = route(RouteRequest(cost_max=100), BucketStats(), POLICY)
    assert (nothing.action, codes(nothing)[0]) == ("stop", "cost_cap")


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


def test_after_an_attempt_that_failed_the_hot_tier_is_behind():
    decision = route(RouteRequest(**FAILED), BucketStats(), POLICY)
    assert decision.tier == "probe"


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
    assert (mute.reason_codes, mute.verdict, mute.counts) == (("exec_unavailable",), "PARTIAL", False)
    nobody = row_of(body(verifier={"verifier_id": "none", "verdict": "PARTIAL", "outcome": "UNKNOWN"}))
    assert (nobody.verdict, nobody.counts) == (None, False)


@pytest.mark.parametrize(
    ("mode", "tier", "rung"),
    [("main", None, "hot"), ("kroll", None, "probe"), ("tree", None, "full"), ("kroll", "hot", "hot")],
)
def test_the_tier_of_a_run(mode, tier, rung):
    assert row_of(body(run={"mode": mode}, state={"budget_tier": tier})).rung == rung
    assert row_of(body(run={"mode": "other"}, state={"budget_tier": "huge"})).rung == "hot"
