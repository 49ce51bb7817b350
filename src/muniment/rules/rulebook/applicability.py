"""Which rules apply to a run (RC-15): stage, type, domain, family, bucket, predicates, time. Unknown is not true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, get_args

from muniment.contracts.rules import CandidateSelectRequest
from muniment.core.instants import parse_instant
from muniment.core.predicate_nodes import Truth
from muniment.core.scope import Level, RuleType
from muniment.errors import InvalidInput
from muniment.learning.keys import has_expired, name_key
from muniment.rules.rulebook.candidates import Candidate, RefusalCode, RulePlace
from muniment.verify.results import parse_bucket_key

__all__ = ["Refusal", "RuleRequest", "applying_to"]

_TYPES: tuple[RuleType, ...] = get_args(RuleType)


class RuleRequest(NamedTuple):
    """A request with what is known of the run."""

    request: CandidateSelectRequest
    domain_tag: str | None
    task_family: str | None
    bucket_key: str | None
    impact: Level | None
    features: Mapping[str, Any]
    """What predicates are asked of."""
    run_id: str
    now: str

    @classmethod
    def of(
        cls,
        request: CandidateSelectRequest,
        *,
        run_id: str,
        now: str,
        task_family: str | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> RuleRequest:
        """What the request says of the run, the bucket filling in what its context leaves open."""
        context = request.context
        impact, clarity = (context.impact_level, context.user_clarity) if context is not None else (None, None)
        domain = context.domain_tag if context is not None else None
        if request.bucket_key is not None:
            try:
                bucket = parse_bucket_key(request.bucket_key)
                impact, domain, clarity = impact or bucket.impact, domain or bucket.domain, clarity or bucket.clarity
            except InvalidInput:  # a bucket of the caller's own: nothing but its name is known
                pass
        known = {
            "bucket_key": request.bucket_key,
            "domain_tag": domain,
            "task_family": task_family,
            "impact_level": impact,
            "user_clarity": clarity,
        }
        said = {name: value for name, value in known.items() if value is not None}
        return cls(request, domain, task_family, request.bucket_key, impact, {**said, **(features or {})}, run_id, now)


class Refusal(NamedTuple):
    """A rule that was not selected, with a code that stays and words."""

    candidate: Candidate
    code: RefusalCode
    why: str


def applying_to(candidates: Iterable[Candidate], asked: RuleRequest) -> tuple[list[Candidate], list[Refusal]]:
    """The rules that apply to a run, and why the others do not."""
    constraints = asked.request.constraints
    types = _TYPES if constraints is None else constraints.allow_types
    here = _Here(asked)
    known: dict[RulePlace, tuple[RefusalCode, str] | None] = {}
    applying: list[Candidate] = []
    refusals: list[Refusal] = []
    for candidate in candidates:
        against = candidate.inert
        if against is None and candidate.rule.type not in types:
            against = "type_not_allowed", f"the request allows no {candidate.rule.type}"
        if against is None:
            place = candidate.place
            if place not in known:
                known[place] = here.refusal(place)
            against = known[place]
        if against is None and candidate.is_timed:
            against = here.is_past(candidate)
        if against is None:
            applying.append(candidate)
        else:
            refusals.append(Refusal(candidate, *against))
    return applying, refusals


class _Here:
    """What is known of the run that rules are to apply to."""

    def __init__(self, asked: RuleRequest) -> None:
        self._domain, self._family = name_key(asked.domain_tag), name_key(asked.task_family)
        self._bucket, self._features = asked.bucket_key, asked.features
        self._now: datetime = parse_instant(asked.now, path="$.now")
        self._truths: dict[str, Truth] = {}

    def refusal(self, place: RulePlace) -> tuple[RefusalCode, str] | None:
        """Why rules of this place do not apply, as a code and in words; None where they do."""
        if place.domain is not None and place.domain != self._domain:
            return "other_domain", f"for the domain {place.domain_tag}; the run's is {self._domain or 'unknown'}"
        if place.family is not None and place.family != self._family:
            return "other_family", f"for the family {place.task_family}; the run's is {self._family or 'unknown'}"
        if place.buckets and self._bucket not in place.buckets:
            return "other_bucket", f"not for the bucket {self._bucket or 'unknown'}"
        if place.fault is not None:
            return "predicate_invalid", place.fault
        for predicate in place.predicates:
            truth = self._truths.get(predicate.text)
            if truth is None:
                truth = self._truths[predicate.text] = predicate.holds(self._features)
            if truth is not Truth.TRUE:
                return "predicate_not_true", f"{predicate.text} is {truth.value}"
        return None

    def is_past(self, candidate: Candidate) -> tuple[RefusalCode, str] | None:
        """Has it run out, or is its trial held elsewhere?"""
        if has_expired(candidate.memory, self._now):
            return "expired", f"ran out at {candidate.memory.expires_at}"
        plan = candidate.memory.canary if candidate.stage == "canary" else None
        if plan is not None and plan.bucket_keys and self._bucket not in plan.bucket_keys:
            return "not_in_trial", f"its trial is in other buckets than {self._bucket or 'unknown'}"
        return None
