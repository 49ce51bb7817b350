"""A logged run as the router and the observables read it: a few words and figures, nothing of what was said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast, get_args

from muniment.core.scope import RunMode
from muniment.rules.routing.records import Tier
from muniment.verify.results import is_pass

__all__ = ["NOT_EXECUTED", "LogRow", "row_of"]

NOT_EXECUTED = frozenset({"sandbox_denied", "sandbox_timeout", "exec_unavailable"})
"""Reason codes of a run whose outcome could not be found out by execution (§5.4)."""
_TIER_OF_MODE: Mapping[str, Tier] = {"kroll": "probe", "matts": "probe", "synth": "full", "tree": "full"}
_NOBODY = "none"
"""The verifier of a run that nobody judged."""


class LogRow(NamedTuple):
    """One run of the logs."""

    verdict: str | None
    """None where nobody judged it."""
    outcome: str | None
    reason_codes: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    cluster_id: str | None = None
    bucket_key: str | None = None
    mode: RunMode = "main"
    tier: Tier | None = None
    cost: float = 0.0
    at: str = ""
    passed: bool = False
    after: int = 0
    """Attempts at the same task that had failed before this one."""
    cluster_sign: str | None = None
    """How its failure shows, where nobody named the cluster."""

    @property
    def is_judged(self) -> bool:
        """Somebody looked at it, even if they could not tell."""
        return self.verdict is not None

    @property
    def counts(self) -> bool:
        """Whether the run passed or did not; a verifier that could not do its work says neither."""
        is_mute = (self.verdict, self.outcome) == ("PARTIAL", "UNKNOWN") and "exec_unavailable" in self.reason_codes
        return self.is_judged and not is_mute

    @property
    def is_confirmed(self) -> bool:
        return self.passed and self.outcome == "OK"

    @property
    def rung(self) -> Tier:
        """The tier it was run at; one that was not said is told by the mode."""
        return self.tier or _TIER_OF_MODE.get(self.mode, "hot")


def row_of(body: Mapping[str, Any]) -> LogRow:
    """An `event_log` item's body as a row.

    Facts leave out a result that says nothing: its verdict stands in the log alone. Only that of a verifier that could
    not execute is left out, so its reason is known.
    """
    log, facts = body["event_log"], body["facts"]
    verifier, run = log["verifier"], log.get("run", {})
    verdict, outcome = facts.get("verdict"), facts.get("outcome")
    codes = tuple(facts.get("reason_codes", ()))
    if verdict is None and verifier.get("verifier_id") != _NOBODY:
        verdict, outcome, codes = verifier.get("verdict"), verifier.get("outcome"), ("exec_unavailable",)
    mode, tier = run.get("mode"), facts.get("state", {}).get("budget_tier")
    return LogRow(
        verdict=verdict,
        outcome=outcome,
        reason_codes=codes,
        violated=tuple(facts.get("violated", ())),
        cluster_id=facts.get("cluster_id"),
        cluster_sign=facts.get("cluster_sign"),
        bucket_key=facts.get("bucket_key") or facts.get("bucket_derived"),
        mode=cast("RunMode", mode) if mode in get_args(RunMode) else "main",
        tier=cast("Tier", tier) if tier in get_args(Tier) else None,
        cost=float(facts.get("cost", 0)),
        at=facts["at"],
        passed=verdict is not None and is_pass(verdict, outcome or ""),
        after=_failed_before(run),
    )


def _failed_before(run: Mapping[str, Any]) -> int:
    """How many attempts failed before, by the number of the attempt that whoever makes several writes into the run's
    block.
    """
    number = run.get("attempt")
    return number - 1 if type(number) is int and number > 0 else 0
