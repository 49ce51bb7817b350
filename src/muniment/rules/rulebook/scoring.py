"""What a rule that applies is worth to a run, and the words for it (RC-15).

A rule that names a domain, a family or buckets applies only where they are the run's, so that naming them is what
scores: the rule that was made for this kind of run comes before the one for any. Statistics count from their middle:
a pass rate of one half adds nothing, and one that is not known adds nothing either.
"""

from __future__ import annotations

from typing import NamedTuple

from muniment.core.policy import RulePolicy
from muniment.rules.rulebook.candidates import Candidate

__all__ = ["PublishedRate", "Scoring"]

_MIDDLE = 0.5
_DIGITS = 6
"""Scores that agree to so many digits are equal, and the rank decides."""


class PublishedRate(NamedTuple):
    """How a rule does, as it was published. Thin samples say nothing: `rate` is None, however they went."""

    rate: float | None
    runs: int
    bucket_key: str | None
    """The bucket it was counted in; None: over all."""


class Scoring:
    """The scores of rules in one run. A run of high impact reads the lower bounds of pass rates."""

    def __init__(self, policy: RulePolicy, bucket_key: str | None, *, is_high: bool) -> None:
        self._policy = policy.select
        self._thin_n = policy.stats.thin_n
        self._bucket_key = bucket_key
        self._is_high = is_high
        self._middle = self._worth(_MIDDLE)

    def value(self, candidate: Candidate) -> float:
        """The score of a rule that applies."""
        policy, place = self._policy, candidate.place
        published = self.published(candidate)
        score = self._statistics(published) + self.novelty(published)
        if place.domain is not None:
            score += policy.domain_weight
        if place.family is not None:
            score += policy.family_weight
        if place.buckets:
            score += policy.bucket_weight
        if candidate.is_guardrail:
            score += policy.guardrail_weight
        return round(score, _DIGITS)

    def published(self, candidate: Candidate) -> PublishedRate:
        """The published rate of the run's bucket or, where that is thin, over all."""
        key, thin_n, is_high = self._bucket_key, self._thin_n, self._is_high
        if candidate.bucket_rates and key is not None and (found := candidate.bucket_rates.get(key)) is not None:
            p_hat, bound, runs = found
            rate = bound if is_high else p_hat
            if rate is not None and runs >= thin_n:
                return PublishedRate(rate, runs, key)
        p_hat, bound, runs = candidate.rate
        rate = bound if is_high else p_hat
        return PublishedRate(rate if runs >= thin_n else None, runs, None)

    def debias(self, published: PublishedRate) -> float | None:
        """What the rate is weighed by; None where it is not."""
        if not self._policy.debias or published.rate is None:
            return None
        return self._weight(published.rate)

    def novelty(self, published: PublishedRate) -> float:
        """What is added for having hardly been used."""
        policy = self._policy
        if not policy.novelty_weight or published.runs >= policy.novelty_n:
            return 0.0
        return policy.novelty_weight * (1 - published.runs / policy.novelty_n)

    def reasons(self, candidate: Candidate) -> list[str]:
        """Why it scores what it scores, part by part."""
        policy, place = self._policy, candidate.place
        published = self.published(candidate)
        said = []
        if place.domain is not None:
            said.append(f"domain {place.domain_tag}: +{policy.domain_weight:g}")
        if place.family is not None:
            said.append(f"family {place.task_family}: +{policy.family_weight:g}")
        if place.buckets:
            said.append(f"bucket {self._bucket_key}: +{policy.bucket_weight:g}")
        if candidate.is_guardrail:
            said.append(f"guardrail: +{policy.guardrail_weight:g}")
        said += [f"holds: {predicate.text}" for predicate in place.predicates]
        said.append(self._statistics_words(published))
        if novelty := self.novelty(published):
            said.append(f"hardly used, {published.runs} runs: +{novelty:.3f}")
        return said

    def _statistics_words(self, published: PublishedRate) -> str:
        rate, runs, bucket = published
        if rate is None:
            return f"pass rate unknown: {runs} judged runs"
        name = "pass rate at least" if self._is_high else "pass rate"
        place = f" in {bucket}" if bucket is not None else ""
        weight = self.debias(published)
        weighed = f", weighed by {weight:.3f}" if weight is not None else ""
        return f"{name} {rate:.3f} of {runs} runs{place}{weighed}: {self._statistics(published):+.3f}"

    def _statistics(self, published: PublishedRate) -> float:
        if published.rate is None:
            return 0.0
        return self._policy.statistics_weight * (self._worth(published.rate) - self._middle)

    def _worth(self, rate: float) -> float:
        """The rate or, with debias, the rate over how often it passes: nearly level, and still never upside down."""
        return rate * self._weight(rate) if self._policy.debias else rate

    def _weight(self, rate: float) -> float:
        return min(self._policy.debias_max, 1 / (rate + self._policy.debias_floor))
