"""What is counted of a rule, with it against without it, and what is written into the rule."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from rule_makers import policy, record, use

from muniment.contracts.rules import RuleRecord
from muniment.core.stats import Comparison, Tally, difference_bounds, p_lb95
from muniment.errors import Conflict, InvalidInput
from muniment.rules._statistics import RuleStats, delta_of, published, rate_of, stats_of, window

POLICY = policy()
A, B = "I2|travel|clarity_high", "I3|travel|clarity_low"


def counted(*uses: Any, version: str | None = None) -> RuleStats:
    return stats_of(uses, "r1", POLICY, version=version)


def arms(passes: int, n: int, arm: str, start: int = 0, **more: Any) -> list[Any]:
    return [use(start + place, place < passes, arm, **more) for place in range(n)]


# -- rates and differences ----------------------------------------------------------------------------


@pytest.mark.req("RC-16")
def test_rates_are_of_the_runs_that_had_the_rule_over_all_and_by_bucket() -> None:
    stats = counted(
        *arms(8, 10, "active", bucket_key=A),
        *arms(3, 7, "canary", 10, bucket_key=B),
        *arms(0, 9, "holdout", 20, bucket_key=A),
        *arms(0, 9, "baseline", 30),
    )
    assert stats.rate() == rate_of(Tally(11, 17), 6)
    assert (stats.rate().p_hat, stats.rate().p_lb95, stats.rate().K) == (11 / 17, p_lb95(Tally(11, 17)), 17)
    assert (stats.rate(A).K, stats.rate(A).p_hat, stats.rate(B).K) == (10, 0.8, 7)
    assert stats.rate("nowhere").unknown
    assert stats.rate("nowhere").K == 0


@pytest.mark.req("RC-16")
def test_thin_samples_are_unknown_however_they_went() -> None:
    thin = counted(*arms(5, 5, "active"), *arms(0, 50, "holdout", 10))
    assert (thin.rate().p_hat, thin.rate().p_lb95, thin.rate().K, thin.rate().unknown) == (None, None, 5, True)
    assert (thin.delta().p_hat, thin.delta().K) == (None, 5)
    assert not counted(*arms(6, 6, "active")).rate().unknown
    nothing = counted()
    assert (nothing.rate().unknown, nothing.delta().unknown, nothing.utility) == (True, True, None)
    assert nothing.to_wire()["pass"] == {"p_hat": None, "p_lb95": None, "K": 0, "unknown": True}


@pytest.mark.req("RC-16")
def test_the_difference_is_newcombes_and_phases_are_not_mixed() -> None:
    trial = counted(*arms(40, 50, "canary"), *arms(30, 60, "baseline", 100))
    assert trial.delta().p_hat == pytest.approx(0.3)
    assert trial.delta().p_lb95 == pytest.approx(difference_bounds(Tally(40, 50), Tally(30, 60)).lower)
    assert trial.delta().K == 50
    apart = counted(*arms(40, 50, "active"), *arms(30, 60, "baseline", 100))  # never at one time
    assert (apart.delta().p_hat, apart.delta().K) == (None, 0)


@pytest.mark.req("RC-16")
def test_a_change_of_times_is_no_effect_of_the_rule() -> None:
    # Easy tasks came while few runs had the rule, hard ones since most have it: within each time it changes nothing.
    uses = [
        *arms(9, 10, "canary"),
        *arms(171, 190, "baseline", 10),
        *arms(57, 190, "active", 200),
        *arms(3, 10, "holdout", 400),
    ]
    stats = counted(*uses)
    mixed = stats.with_counts.runs.p_hat, stats.without_counts.runs.p_hat
    assert mixed[0] is not None
    assert mixed[1] is not None
    assert mixed[0] - mixed[1] < -0.4
    assert stats.delta().p_hat == pytest.approx(0, abs=1e-9)


def test_phases_weigh_by_what_they_can_tell() -> None:
    few, many = (Tally(8, 10), Tally(4, 10)), (Tally(50, 100), Tally(50, 100))
    assert delta_of([few, many], 6).p_hat == pytest.approx(5 * 0.4 / (5 + 50))


@pytest.mark.req("RC-16")
@pytest.mark.parametrize(
    ("first", "second", "n_with", "n_without"),
    [
        ((0.5, 0.5), None, 12, 60),
        ((0.9, 0.8), None, 40, 40),
        ((0.97, 0.97), None, 30, 200),
        ((0.9, 0.85), (0.3, 0.25), 20, 60),
    ],
)
def test_the_lower_bound_of_a_difference_covers(
    first: tuple[float, float], second: tuple[float, float] | None, n_with: int, n_without: int
) -> None:
    """One-sided: the bound is at or below the true difference in at least 95 of 100 samples, here of 2,000."""
    random = Random(8)
    phases = [first] if second is None else [first, second]
    truth = first[0] - first[1]
    held = beyond = 0
    for _ in range(2000):
        seen = []
        for place, (mine, other) in enumerate(phases):
            sizes = (n_with, n_without) if place == 0 else (n_without, n_with)
            passes = [sum(random.random() < p for _ in range(n)) for p, n in zip((mine, other), sizes, strict=True)]
            seen.append((Tally(passes[0], sizes[0]), Tally(passes[1], sizes[1])))
        delta = delta_of(seen, 6)
        assert delta.p_lb95 is not None
        assert delta.p_hat is not None
        held += delta.p_lb95 <= truth
        beyond += delta.p_hat <= truth
    assert held >= 0.95 * 2000
    assert beyond < 0.8 * 2000  # the figure itself is no bound: the test can fail


# -- comparisons --------------------------------------------------------------------------------------


@pytest.mark.req("RC-16")
def test_trial_and_hold_are_compared_apart_and_in_order() -> None:
    uses = [use(n, n % 3 > 0, ("canary", "baseline")[n % 2]) for n in range(40)]
    uses += [use(100 + n, n % 5 > 0, ("active", "holdout")[n % 2]) for n in range(30)]
    stats = counted(*reversed(uses))
    trial, hold = Comparison(), Comparison()
    for one in uses[:40]:
        trial = trial.add("candidate" if one.arm == "canary" else "baseline", one.passed)
    for one in uses[40:]:
        hold = hold.add("candidate" if one.arm == "active" else "baseline", one.passed)
    assert (stats.trial, stats.hold) == (trial, hold)
    harm = counted(*(use(n, n % 2 == 1, ("canary", "baseline")[n % 2]) for n in range(200)))
    assert harm.trial.decision == "harmful"
    assert harm.to_wire()["comparisons"]["trial"]["decision"] == "harmful"


# -- the rest of what is counted ----------------------------------------------------------------------


def test_costs_violations_and_clusters_are_counted_for_both_sides() -> None:
    stats = counted(
        use(0, False, "active", cluster_id="fc_b", violated=True, cost=10),
        use(1, True, "active", cluster_id="fc_b", cost=20, confirmed=False),
        use(2, False, "holdout", cluster_id="fc_a", cost=4),
        *(use(10 + n, False, "baseline", cluster_id=f"fc_{n}") for n in range(8)),
        use(50, False, "active", cluster_id="fc_b"),
    )
    assert stats.with_counts.mean("violated") == 1 / 3
    assert stats.with_counts.mean("cost") == 10
    assert stats.with_counts.confirmed == 0
    assert [each.cluster_id for each in stats.clusters] == ["fc_b", "fc_0", "fc_1", "fc_2", "fc_3"]
    assert stats.clusters[0] == ("fc_b", 2, 0)
    assert stats.without_counts.runs == Tally(0, 9)


@pytest.mark.req("RC-16")
def test_utility_is_a_moving_average_of_passes_less_their_share_of_cost() -> None:
    assert counted(use(0, True, "active")).utility == 1
    usual = [use(0, True, "holdout", cost=10)]
    assert counted(*usual, use(1, True, "active", cost=10)).utility == pytest.approx(0.5)
    assert counted(*usual, use(1, True, "active", cost=30)).utility == pytest.approx(0.25)
    assert counted(*usual, use(1, False, "active", cost=10)).utility == pytest.approx(-0.5)
    falling = counted(*arms(20, 40, "active")).utility
    assert falling is not None
    assert falling < 0.2  # the last twenty failed
    assert counted(*usual).utility is None


# -- adding, windows ----------------------------------------------------------------------------------


@pytest.mark.req("RC-16")
def test_what_comes_late_or_twice_is_not_added_but_counted_again() -> None:
    stats = counted(use(5), use(6))
    for late in (use(6), use(4)):
        with pytest.raises(Conflict, match="was counted"):
            stats.add_all([late])
    same_instant = use(6, trace_id="u")
    assert stats.add_all([same_instant]) == counted(same_instant, use(6), use(5))
    assert counted(use(1, at="2026-05-01T02:00:02+02:00"), use(2)).last == ("2026-05-01T00:00:02.000000Z", "t000002")


def test_runs_of_another_rule_or_version_are_refused() -> None:
    with pytest.raises(InvalidInput, match="not one of"):
        counted(use(1, rule_id="r2"))
    with pytest.raises(InvalidInput, match="not one of"):
        counted(use(1, version="2"), version="1")
    assert counted(use(1, version="2"), use(2)).rate().K == 2


@pytest.mark.req("RC-16")
def test_windows_are_half_open_and_an_empty_one_is_unknown() -> None:
    uses = [use(n) for n in range(10)]
    found = window(uses, "2026-05-01T00:00:02Z", "2026-05-01T00:00:05Z")
    assert [each.trace_id for each in found] == ["t000002", "t000003", "t000004"]
    assert window(uses, None, "2026-05-01T02:00:01+02:00") == uses[:1]
    assert window(uses, "2026-05-01T00:00:09Z", None) == uses[9:]
    assert counted(*window(uses, "2027-01-01", None)).rate().unknown
    for start, end in (("2026-05-02", "2026-05-01"), ("2026-05-01", "2026-05-01")):
        with pytest.raises(InvalidInput, match="window"):
            window(uses, start, end)


# -- publishing ---------------------------------------------------------------------------------------


@pytest.mark.req("RC-16")
def test_counts_are_written_into_the_rule_and_nothing_else_is_changed() -> None:
    before = record(
        title="T",
        metrics={"own": 1, "pass_p_hat": 0.1, "pass_p_bucket": {"old": {"p_hat": 1, "p_lb95": 1, "K": 9}}},
        lifecycle={"created_at": "then", "own": True, "last_used_at": "long ago"},
    )
    stats = counted(
        *arms(9, 12, "active", bucket_key=A), *arms(2, 8, "holdout", 20, bucket_key=A), use(40, bucket_key=B)
    )
    after = published(before, stats)
    wire = after.to_wire()
    assert RuleRecord.from_wire(wire) == after
    assert wire["metrics"] == {
        "own": 1,
        "pass_p_hat": 10 / 13,
        "pass_p_lb95": p_lb95(Tally(10, 13)),
        "pass_p_K": 13,
        "utility_q_ema": stats.utility,
        "pass_p_bucket": {A: {"p_hat": 0.75, "p_lb95": p_lb95(Tally(9, 12)), "K": 12}},
        "pass_p_bucket_delta": {
            A: {
                "delta_p_hat": 0.5,
                "delta_p_lb95": difference_bounds(Tally(9, 12), Tally(2, 8)).lower,
                "delta_K": 8,
            }
        },
    }
    assert wire["lifecycle"] == {"created_at": "then", "own": True, "last_used_at": "2026-05-01T00:00:40Z"}
    unchanged = before.to_wire()
    assert wire | {"metrics": 0, "lifecycle": 0} == unchanged | {"metrics": 0, "lifecycle": 0}
    assert published(after, stats) == after


@pytest.mark.req("RC-16")
def test_what_was_forgotten_is_not_published_any_more() -> None:
    full = published(record(), counted(*arms(9, 12, "active", bucket_key=A)))
    left = published(full, counted(*arms(2, 3, "active", bucket_key=A)))
    assert left.to_wire()["metrics"] == {"pass_p_hat": None, "pass_p_lb95": None, "pass_p_K": 3}
    none = published(full, counted())
    assert none.to_wire()["metrics"]["pass_p_K"] == 0
    assert "last_used_at" not in none.to_wire()["lifecycle"]
    with pytest.raises(InvalidInput, match="are not those of"):
        published(record(rule_id="other"), counted())
