"""Drafts of rules for tests, complete but for what is told."""

from __future__ import annotations

from typing import Any


def draft(draft_id="d1", *, body="Say please.", type="StrategyRule", **applicability: Any) -> dict[str, Any]:
    foreseen = [
        {"id": name, "description": "it could", "triggers": ["x"], "severity": "low"}
        for name in ("overconstraint", "context_dilution")
    ]
    return {
        "schema_version": "0.5.15", "draft_id": draft_id, "source_trace_ids": ["trc_1"],
        "proposed_rule": {"type": type, "title": body, "body": body, "applicability": applicability},
        "evidence": {"trace_ids": ["trc_1"]},
        "failure_prediction": {"mechanism": "m", "dependencies": [], "predicted_failures": foreseen},
        "tests": {"regression_tests": [], "counterexample_tests": []},
    }  # fmt: skip
