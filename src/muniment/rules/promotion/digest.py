"""What a rule says and where it applies, as one digest. Whatever was tested is tested of this, and of nothing else."""

from __future__ import annotations

from muniment.contracts.rules import RuleRecord
from muniment.core.hashing import digest_of
from muniment.core.record import Record

__all__ = ["policy_digest", "rule_digest"]


def rule_digest(rule: RuleRecord) -> str:
    """Over type, title, body and applicability: not over metrics, evidence, tests, status, version or lifecycle."""
    return digest_of(["rule", rule.type, rule.title, rule.body, rule.applicability.to_wire()])


def policy_digest(policy: Record) -> str:
    """Of a policy with its defaults written out: two that say the same have the same."""
    return digest_of(policy.model_dump(mode="json"))
