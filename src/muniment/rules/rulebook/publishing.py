"""Counts written into a rule (RC-16): what selection reads until the next time. Nothing else of the rule changes."""

from __future__ import annotations

from typing import Any

from muniment.contracts.rules import RuleLifecycle, RuleMetrics, RuleRecord
from muniment.errors import InvalidInput
from muniment.rules.rulebook.statistics import RuleStats

__all__ = ["published"]

_METRICS = frozenset({"utility_q_ema", "pass_p_hat", "pass_p_lb95", "pass_p_K", "pass_p_bucket", "pass_p_bucket_delta"})


def published(rule: RuleRecord, stats: RuleStats) -> RuleRecord:
    """The rule with its metrics as counted. What is thin is null, and a bucket that is thin is not named at all.

    What was published before and is not known any more, since runs were forgotten, goes.
    """
    if stats.rule_id != rule.rule_id:
        raise InvalidInput(f"counts of {stats.rule_id!r:.60} are not those of {rule.rule_id!r:.60}", path="$.rule_id")
    metrics = RuleMetrics.from_wire(_kept(rule.metrics.to_wire(), _METRICS) | _metrics(stats))
    update: dict[str, Any] = {"metrics": metrics}
    lifecycle = {} if rule.lifecycle is None else rule.lifecycle.to_wire()
    used = {} if stats.last_used_at is None else {"last_used_at": stats.last_used_at}
    if (changed := _kept(lifecycle, {"last_used_at"}) | used) != lifecycle:
        update["lifecycle"] = RuleLifecycle.from_wire(changed)
    return rule.model_copy(update=update)


def _metrics(stats: RuleStats) -> dict[str, Any]:
    rate = stats.rate()
    made: dict[str, Any] = {"pass_p_hat": rate.p_hat, "pass_p_lb95": rate.p_lb95, "pass_p_K": rate.K}
    if stats.utility is not None and not rate.unknown:
        made["utility_q_ema"] = stats.utility
    rates = {key: stats.rate(key) for key in sorted(stats.buckets)}
    deltas = {key: stats.delta(key) for key in sorted(stats.buckets)}
    known = {
        key: {"p_hat": one.p_hat, "p_lb95": one.p_lb95, "K": one.K} for key, one in rates.items() if not one.unknown
    }
    compared = {
        key: {"delta_p_hat": one.p_hat, "delta_p_lb95": one.p_lb95, "delta_K": one.K}
        for key, one in deltas.items()
        if not one.unknown
    }
    return made | ({"pass_p_bucket": known} if known else {}) | ({"pass_p_bucket_delta": compared} if compared else {})


def _kept(wire: dict[str, Any], names: frozenset[str] | set[str]) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key not in names}
