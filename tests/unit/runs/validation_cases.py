"""The second snapshot of a run, what the store knows of it, and ways to spoil it: shared by the tests of validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from run_entries import (
    DEPTH,
    POLICY,
    SEA,
    A,
    B,
    Told,
    claim,
    conflict,
    entries,
    failure,
    fold,
    known,
    patch,
    question,
    snapshot,
    start,
    step,
    steps,
    taken,
    window,
)

from muniment.contracts.snapshot import CompactionSnapshot
from muniment.runs._validation import CHECKS, SnapshotContext, validate

FIRST: list[Told] = [start(), *steps(2, action={"tool": "map"}), claim("k1", A), claim("k0", B, status="candidate")]
STORY: list[Told] = [
    *FIRST,
    taken(1, len(FIRST)),
    *steps(1),
    step("COMPILE_DONE", manifest=window("evt_a", "evt_q")),
    patch("claim_verified", id="k0", evidence_refs=[SEA]),
    claim("k2", DEPTH, depends_on=["k0"]),
    conflict("c1", A, SEA),
    failure(),
    question("Which year?"),
]


def case() -> tuple[CompactionSnapshot, SnapshotContext]:
    """The second snapshot of a run, and what the store knows of it."""
    seen = entries(STORY)
    previous = snapshot(fold(seen[: len(FIRST)]))
    log = fold(seen)
    return snapshot(log, previous), known(seen, log, previous)


def failed(made: CompactionSnapshot, held: SnapshotContext, **policy: Any) -> dict[str, str]:
    """The checks that do not hold, with what they say."""
    checks = validate(made, held, POLICY.model_copy(update=policy))
    assert tuple(check.name for check in checks) == CHECKS
    return {check.name: check.message for check in checks if check.status == "FAIL"}


def failed_after(*told: Told) -> dict[str, str]:
    """Of the first snapshot of a run that told this."""
    seen = entries(told)
    log = fold(seen)
    return failed(snapshot(log), known(seen, log))


def altered(change: Callable[[dict[str, Any]], Any]) -> CompactionSnapshot:
    wire = case()[0].to_wire()
    change(wire)
    return CompactionSnapshot.from_wire(wire)
