"""`aggregate_v1`: rates with their bounds, and gains that a bucket's own difficulty does not fool."""

from __future__ import annotations

import random
from typing import Any

import pytest
from benchmarks.rules_flowmap import World
from flow_makers import EASY, HARD, NOW, row, rows_of

from muniment.contracts.rules import FlowMapSnapshot
from muniment.contracts.schemas import validate
from muniment.core.stats import wilson_bounds
from muniment.errors import InvalidInput, NotFound
from muniment.rules import flow_map
from muniment.rules.flow_map import FlowRow, FlowTally, estimator_of, flow_snapshot


def snapshot_of(rows: list[FlowRow], **more: Any) -> FlowMapSnapshot:
    return flow_snapshot(FlowTally().add_all(rows), "aggregate_v1", now=NOW, **more)


def spots(snapshot: FlowMapSnapshot) -> list[dict[str, Any]]:
    return [each.to_wire() for each in snapshot.risk.stage_hotspots or ()]


def gains(snapshot: FlowMapSnapshot) -> dict[str, dict[str, Any]]:
    return {each.intervention or "": each.to_wire() for each in snapshot.opportunity.interventions or ()}


# -- risk -------------------------------------------------------------------------------------------------


@pytest.mark.req("RC-23")
def test_hotspots_have_rate_support_and_wilsons_bounds() -> None:
    rows = rows_of(70, 0) + rows_of(0, 20, 100, codes=("test_fail",)) + rows_of(0, 10, 200, codes=("format_leak",))
    whole, tests, leaks = spots(snapshot_of(rows))
    assert (whole["stage"], whole["reason_code"], whole["risk_rate"], whole["support_n"]) == (
        "main→verify",
        None,
        0.3,
        100,
    )
    assert (tests["reason_code"], tests["risk_rate"], tests["support_n"], tests["risky_n"]) == (
        "test_fail",
        0.2,
        100,
        20,
    )
    assert (leaks["reason_code"], leaks["risk_rate"]) == ("format_leak", 0.1)
    bounds = wilson_bounds(20, 100)
    assert (tests["lower"], tests["upper"]) == (round(bounds.lower, 6), round(bounds.upper, 6))


def test_worst_first_is_by_the_lower_bound() -> None:
    """Two of two is no worse than sixty of a hundred."""
    rows = rows_of(0, 2, mode="tree") + rows_of(40, 60, 100, mode="synth") + rows_of(95, 5, 300)
    found = [spot["stage"] for spot in spots(snapshot_of(rows)) if spot["reason_code"] is None]
    assert found == ["synth→verify", "tree→verify", "main→verify"]
    assert [spot["thin"] for spot in spots(snapshot_of(rows)) if spot["stage"] == "tree→verify"] == [True, True]


@pytest.mark.req("RC-23")
def test_a_map_is_of_one_bucket_or_of_all() -> None:
    rows = rows_of(8, 2) + rows_of(2, 8, 100, bucket_key=HARD)
    assert spots(snapshot_of(rows))[0]["risk_rate"] == 0.5
    assert spots(snapshot_of(rows, bucket_key=HARD))[0]["risk_rate"] == 0.8
    assert snapshot_of(rows, bucket_key=EASY).bucket_key == EASY
    assert snapshot_of(rows).bucket_key == "*"
    with pytest.raises(NotFound, match="no logs of the bucket"):
        snapshot_of(rows, bucket_key="I2|law|clarity_med")


def test_lesser_hotspots_are_cut_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_map, "_HOTSPOTS_MAX", 10)
    rows = [row(at, passed=False, codes=(f"code_{at}",)) for at in range(30)]
    found = snapshot_of(rows)
    assert len(spots(found)) == 10
    assert "21 lesser hotspots are not listed" in str(found.notes)


# -- windows ------------------------------------------------------------------------------------------


@pytest.mark.req("RC-23")
def test_an_empty_window_is_told_and_no_map() -> None:
    with pytest.raises(NotFound, match="no judged run") as caught:
        snapshot_of([])
    assert caught.value.path == "$.window"
    assert caught.value.hint


@pytest.mark.req("RC-23")
@pytest.mark.parametrize("end", ["2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"])
def test_a_window_that_ends_before_it_starts_is_refused(end: str) -> None:
    with pytest.raises(InvalidInput, match="ends before it starts"):
        snapshot_of(rows_of(1, 1), start_at="2026-01-01T00:00:00Z", end_at=end)


def test_a_window_that_was_not_given_is_that_of_the_logs() -> None:
    window = snapshot_of([row(5), row(3), row(9)]).window
    assert window is not None
    assert (window.start_at, window.end_at) == ("2026-02-01T00:00:03Z", NOW)


def test_an_estimator_is_one_of_those_there_are() -> None:
    assert estimator_of(None, "aggregate_v1") == "aggregate_v1"
    with pytest.raises(InvalidInput, match="no estimator"):
        estimator_of("nn_field_v9", "aggregate_v1")


@pytest.mark.req("RC-23")
def test_snapshots_are_valid_by_the_contract() -> None:
    for rows in (rows_of(3, 0), rows_of(3, 2), list(World(1).rows(300))):
        assert validate("FlowMapSnapshot", snapshot_of(rows).to_wire()) == []
        assert FlowMapSnapshot.from_wire(snapshot_of(rows).to_wire()) == snapshot_of(rows)


# -- opportunity ------------------------------------------------------------------------------------------


@pytest.mark.req("RC-23")
def test_a_gain_is_measured_within_buckets() -> None:
    """Hints do harm in both buckets and were mostly given in the easy one: by the crude rates they seem to help."""
    rows = rows_of(80, 20, 0, hints=1) + rows_of(9, 1, 200)
    rows += rows_of(1, 9, 300, hints=1, bucket_key=HARD) + rows_of(20, 80, 400, bucket_key=HARD)
    hints = gains(snapshot_of(rows))["hints"]
    assert hints["crude_gain"] > 0.4
    assert hints["gain_pass"] == pytest.approx(-0.1)
    assert hints["lower"] < -0.1 < hints["upper"]
    assert (hints["support_n"], hints["base_n"], hints["strata_n"]) == (110, 110, 2)


def test_a_gain_is_measured_among_runs_that_had_the_same_of_everything_else() -> None:
    """Hints went with the full tier, which is what helped."""
    rows = rows_of(90, 10, 0, hints=1, tier="full") + rows_of(9, 1, 200, tier="full")
    rows += rows_of(5, 5, 300, hints=1, tier="hot") + rows_of(50, 50, 400, tier="hot")
    found = gains(snapshot_of(rows))
    assert found["hints"]["gain_pass"] == pytest.approx(0.0)
    assert found["hints"]["crude_gain"] > 0.2
    assert found["tier:full"]["gain_pass"] == pytest.approx(0.4)


@pytest.mark.req("RC-23")
def test_costs_and_efficiency() -> None:
    rows = rows_of(50, 50, cost=1000.0) + rows_of(70, 30, 200, mode="kroll", tier="probe", cost=3000.0)
    found = gains(snapshot_of(rows))
    assert set(found) == {"mode:kroll", "tier:probe"}
    one = found["tier:probe"]
    assert (one["gain_pass"], one["delta_cost"], one["efficiency"]) == (0.2, 2000.0, 0.0001)
    assert one["design"] == "between_tasks"
    assert one["cost_lower"] == one["cost_upper"] == 2000.0
    free = gains(snapshot_of(rows_of(50, 50) + rows_of(70, 30, 200, rules=2)))["rules"]
    assert (free["delta_cost"], free["efficiency"]) == (0.0, 0.2)


def test_what_no_run_went_without_is_compared_with_nothing() -> None:
    found = snapshot_of(rows_of(5, 5, mode="sot"))
    assert gains(found) == {}
    assert "nothing to compare with: mode:sot" in str(found.notes)


def test_runs_that_could_not_be_judged_count_for_no_gain() -> None:
    rows = rows_of(5, 5) + rows_of(8, 2, 100, hints=1)
    more = [row(200 + at, passed=None, hints=1, codes=("exec_unavailable",)) for at in range(50)]
    assert gains(snapshot_of(rows + more))["hints"] == gains(snapshot_of(rows))["hints"]


@pytest.mark.soak
def test_bounds_of_a_gain_hold_the_truth_as_often_as_they_say() -> None:
    """Twelve strata of different difficulty, some of them thin."""
    made = random.Random(5)
    held = 0
    for _ in range(200):
        rows = []
        for stratum in range(12):
            base = made.uniform(0.2, 0.7)
            for number in range(made.choice((6, 20, 60))):
                hints = made.random() < 0.4
                passed = made.random() < base + 0.1 * hints
                rows.append(row(number, passed=passed, hints=int(hints), bucket_key=f"b{stratum}"))
        one = gains(snapshot_of(rows))["hints"]
        held += one["lower"] <= 0.1 <= one["upper"]
    assert held >= 186  # 95 % of 200 are 190; 186 and more come by chance nine times in ten
