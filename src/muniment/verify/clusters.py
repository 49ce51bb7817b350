"""Which failures are the same failure (RC-02): one id for the same constraints, reasons and stage, in any order."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.core.canonical import short_id

__all__ = ["failure_cluster_id"]


def failure_cluster_id(stage: str, constraints: Iterable[str], reasons: Iterable[str]) -> str:
    """Deterministic, and indifferent to order and repetition."""
    return short_id("fc", [stage, sorted(set(constraints)), sorted(set(reasons))])
