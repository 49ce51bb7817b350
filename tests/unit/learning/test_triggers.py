"""When a run is folded."""

from __future__ import annotations

import pytest

from muniment.core.policy import FoldPolicy
from muniment.learning.fold.triggers import Moment, triggers_of
from products import for_each

POLICY = FoldPolicy()


@pytest.mark.req("RC-10")
@for_each(
    ("moment", "kind", "details"),
    [
        (Moment(has_ended=True), "end_of_run", "the run has ended"),
        (Moment(working_set_bytes=8193), "ws_overflow", "8193 bytes, 8192 allowed"),
        (Moment(phase="full", phase_before="probe"), "phase_shift", "probe to full"),
        (Moment(spent=100, budget=100), "budget_hit", "100 of 100 spent"),
        (Moment(cluster_id="fc", recent_clusters=["fc", "x", "fc", "fc"]), "fail_cluster", "fc seen 3 times"),
        (Moment(asked_by="ops"), "manual", "ops"),
    ],
)
def test_each_has_its_reason(moment: Moment, kind: str, details: str) -> None:
    (found,) = triggers_of(moment, POLICY)
    assert (found.kind, found.details) == (kind, details)


@for_each(
    "moment",
    [
        Moment(),
        Moment(working_set_bytes=8192),
        Moment(phase="full"),
        Moment(phase="full", phase_before="full"),
        Moment(spent=99, budget=100),
        Moment(spent=10**9),
        Moment(cluster_id="fc", recent_clusters=["fc", "fc"]),
        Moment(recent_clusters=["fc"] * 9),
    ],
)
def test_none_without_one(moment: Moment) -> None:
    assert triggers_of(moment, POLICY) == []


def test_all_that_hold_are_told_the_most_pressing_first() -> None:
    moment = Moment(True, 10**6, "full", "probe", 5, 1, "fc", ["fc"] * 3, "me")
    assert [one.kind for one in triggers_of(moment, POLICY)] == [
        "manual",
        "fail_cluster",
        "budget_hit",
        "ws_overflow",
        "phase_shift",
        "end_of_run",
    ]
