"""Counting logs: exact, and bounded whatever names they invent."""

from __future__ import annotations

import pytest
from flow_makers import NOW, row

from muniment.rules import flow_map
from muniment.rules.flow_map import NO_CODE, OTHER, CodeKey, FlowTally, flow_snapshot, is_risky, k_band
from products import for_each


@pytest.mark.req("RC-23")
def test_cells_do_not_grow_with_logs_or_with_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that invents a bucket, a code and a mode for every log."""
    sizes = {"bucket": 3, "stage": 8, "code": 40, "mode": 8, "tier": 6}
    monkeypatch.setattr(flow_map, "_NAMES_MAX", sizes)
    tally, grown = FlowTally(), []
    for number in range(2_000):
        name = f"n{number}"
        tally.add(row(number, passed=False, codes=(name,), mode=name, tier=name, bucket_key=name))
        grown.append(len(tally.codes) + len(tally.arms) + len(tally.climbs))
    assert grown[1_000] == grown[-1]
    assert tally.folded == {"bucket", "stage", "code", "mode", "tier"}
    assert sum(n for key, (n, _) in tally.codes.items() if key.code == "") == 2_000
    snapshot = flow_snapshot(tally, "aggregate_v1", now=NOW)
    assert "stand together as (other)" in str(snapshot.notes)
    assert any(spot.reason_code == OTHER for spot in snapshot.risk.stage_hotspots or ())


@pytest.mark.req("RC-23")
@for_each(
    ("verdict", "outcome", "risky"),
    [
        ("PASS", "OK", False),
        ("PASS", "UNKNOWN", True),
        ("PASS", "FAIL", True),
        ("PARTIAL", "OK", True),
        ("FAIL", "OK", True),
    ],
)
def test_risk_is_the_contracts(verdict: str, outcome: str, risky: bool) -> None:
    assert is_risky(verdict, outcome) is risky


def test_a_log_counts_once_for_each_of_its_codes() -> None:
    tally = FlowTally().add_all([row(1, passed=False, codes=("test_fail", "", "test_fail", "format_leak"))])
    bucket, stage = "I1|math|clarity_high", "main→verify"
    assert tally.codes == {
        CodeKey(bucket, stage, ""): (1, 1),
        CodeKey(bucket, stage, "test_fail"): (1, 1),
        CodeKey(bucket, stage, "format_leak"): (1, 1),
    }


def test_what_goes_wrong_without_a_code_says_so() -> None:
    tally = FlowTally().add_all([row(1, passed=False), row(2)])
    assert {key.code for key in tally.codes} == {"", NO_CODE}


def test_a_run_whose_verifier_could_not_say_is_at_risk_and_neither_pass_nor_fail() -> None:
    tally = FlowTally().add_all([row(1, passed=None, codes=("exec_unavailable",)), row(2)])
    assert (tally.n, tally.judged_n) == (2, 1)
    assert tally.codes[CodeKey("I1|math|clarity_high", "main→verify", "exec_unavailable")] == (1, 1)


def test_attempts_stand_in_bands() -> None:
    assert [k_band(k) for k in (0, 1, 2, 4, 5, 8)] == ["1", "1", "2-4", "2-4", "5+", "5+"]
