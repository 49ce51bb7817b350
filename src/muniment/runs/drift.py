"""How well runs keep to their way, measured from the ledger, and what that says of the thresholds (CS-13)."""

from typing import Literal

from muniment.core.record import Confidence, Count, Items, Number, Record

__all__ = ["Advice", "DriftReport"]

Advice = Literal["keep", "lower", "raise", "not enough steps"]


class DriftReport(Record):
    """What happened to the runs that were looked at. A rate or share of nothing is None."""

    runs: Count
    """Runs that took steps, claimed something or ended; runs that only talk are left out."""
    steps: Count
    actions: Count
    snapshots: Count
    tokens: Count
    loops: Count
    """Rows of equal actions."""
    loop_rate: Number | None
    """Loops an action."""
    stalls: Count
    """Rows of steps with neither new evidence nor a change of a claim, and runs that ended for want of evidence."""
    stall_rate: Number | None
    """Stalls a step."""
    constraints_forgotten: Count
    """Failures so named, and windows that left constraints out."""
    forgotten_rate: Number | None
    """Forgotten constraints a step."""
    verified: Count
    candidates: Count
    verified_share: Confidence | None
    """Of the claims that were not retracted."""
    chunks_cited: Count
    chunks_seen: Count
    cited_share: Confidence | None
    tokens_per_verified_claim: Number | None
    early: Count
    """Loops, stalls and forgotten constraints that began in the first half of a stretch between two snapshots."""
    late: Count
    """Loops, stalls and forgotten constraints that began in the second half of a stretch between two snapshots."""
    p_late: Confidence
    """How likely so many late ones are, or more, if both halves were alike (exact sign test)."""
    advice: Advice
    reasons: Items[str]
    event_threshold: Count
    """As advised; what the policy has, unless the advice is to lower or raise it."""
    step_fallback: Count
