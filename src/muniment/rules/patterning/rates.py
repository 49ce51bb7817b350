"""Observables read from runs: pass, unknown and reason-code rates and costs, of all runs or of one bucket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from muniment.contracts.rules import PatterningObservable
from muniment.contracts.runs import EventLog
from muniment.errors import InvalidInput
from muniment.learning.stored_memory import RunFacts
from muniment.verify.results import is_pass

__all__ = ["RunRow", "read_rates", "row_of_facts", "row_of_log"]


class RunRow(NamedTuple):
    """What counts of one run. None: not known of it."""

    bucket_key: str | None
    passed: bool
    is_unknown: bool
    reason_codes: frozenset[str] | None
    cost: float | None


def row_of_log(log: EventLog) -> RunRow:
    """A run by its EventLog. The contract's log names no reason codes; where its open mirror does, they are read."""
    verdict, outcome = log.verifier.verdict or "", log.verifier.outcome or "UNKNOWN"
    codes: Any = (log.verifier.model_extra or {}).get("reason_codes")
    named = frozenset(code for code in codes if isinstance(code, str)) if isinstance(codes, list | tuple) else None
    cost = log.cost
    tokens = None if cost is None else (cost.tokens_in, cost.tokens_out)
    known = None if tokens is None or tokens == (None, None) else float(sum(each or 0 for each in tokens))
    return RunRow(log.bucket_key, is_pass(verdict, outcome), outcome == "UNKNOWN", named, known)


def row_of_facts(facts: RunFacts) -> RunRow:
    """A run as a fold read it."""
    unknown = (facts.outcome or "UNKNOWN") == "UNKNOWN"
    bucket = facts.bucket_key or facts.bucket_derived
    return RunRow(bucket, facts.passed, unknown, frozenset(facts.reason_codes), float(facts.cost))


def read_rates(rows: Iterable[RunRow], observables: Sequence[PatterningObservable]) -> dict[str, float]:
    """The value of each observable over the rows; one that no row speaks of is refused, not nought."""
    listed = list(rows)
    return {each.obs_id: _read(listed, each) for each in observables}


def _read(rows: Sequence[RunRow], observable: PatterningObservable) -> float:
    mine = [row for row in rows if observable.bucket_key in (None, row.bucket_key)]
    kind = observable.kind
    if kind == "pass_rate":
        values = [float(row.passed) for row in mine]
    elif kind == "unknown_rate":
        values = [float(row.is_unknown) for row in mine]
    elif kind == "reason_code_rate":
        values = [float(observable.reason_code in row.reason_codes) for row in mine if row.reason_codes is not None]
    elif kind == "avg_cost":
        values = [row.cost for row in mine if row.cost is not None]
    else:
        raise InvalidInput(
            f"{observable.obs_id} cannot be read from runs: its kind is {kind or 'custom'}",
            path="$.observables",
            hint="pass_rate, unknown_rate, reason_code_rate or avg_cost; measure the others yourself",
        )
    if not values:
        where = f" in {observable.bucket_key}" if observable.bucket_key else ""
        raise InvalidInput(
            f"no run{where} says anything of {observable.obs_id}",
            path="$.observables",
            hint="widen the window, or leave the observable out",
        )
    return sum(values) / len(values)
