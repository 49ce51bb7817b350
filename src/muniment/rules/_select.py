"""CandidateSelect (RC-15): select the rules for a run, and explain why each was or was not selected. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop
from math import fsum
from typing import Any, Literal, NamedTuple, get_args

from muniment.contracts.rules import (
    CandidateSelectRequest,
    CandidateSelectResponse,
    Exploration,
    PassEstimate,
    RuleMetrics,
    RuleRecord,
    SelectedRule,
)
from muniment.core.canonical import child_path, digest
from muniment.core.instants import parse_instant
from muniment.core.limits import remembered
from muniment.core.policy import CanaryPolicy, RulePolicy
from muniment.core.predicate_nodes import Truth
from muniment.core.predicates import Predicate, parse
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import InjectionMode, Level, RuleType
from muniment.core.text.sentences import cosine, turns, words_of
from muniment.errors import InvalidInput
from muniment.learning.keys import has_expired, name_key
from muniment.learning.records import Arm, RuleArm, RuleStage, StoredMemory
from muniment.rules._records import RefusedRule
from muniment.verify.results import parse_bucket_key

# == candidates =======================================================================================================

CountTokens = Callable[[str], int]

RefusalCode = Literal[
    "retired",
    "not_in_force",
    "type_not_allowed",
    "other_domain",
    "other_family",
    "other_bucket",
    "predicate_invalid",
    "predicate_not_true",
    "expired",
    "not_in_trial",
    "overridden",
    "same_rule",
    "tokens_max",
    "near_duplicate",
    "contradicts",
    "holdout",
    "baseline",
    "max_rules",
]
"""The reason a rule is not selected; of several, the first."""

PREDICATES = "$.applicability.predicates"
_DOMAIN_WIDE = frozenset({"domain_tag"})


@dataclass(frozen=True, eq=False, slots=True)
class RulePlace:
    """The conditions under which rules apply. Shared by rules with equal conditions, so that a run is checked once."""

    domain_tag: str | None
    task_family: str | None
    domain: str | None
    family: str | None
    buckets: frozenset[str]
    predicates: tuple[Predicate, ...]
    fault: str | None
    """The error in its predicates, if any; such rules apply nowhere."""

    @property
    def is_domain_wide(self) -> bool:
        """Applies to a whole domain, or wider."""
        named = self.family is None and not self.buckets
        return named and all(_DOMAIN_WIDE.issuperset(predicate.fields) for predicate in self.predicates)


class Published(NamedTuple):
    """A pass rate as published in a rule's record."""

    p_hat: float | None
    p_lb95: float | None
    runs: int


class Candidate(NamedTuple):
    """A rule with the fields that selection reads."""

    memory: StoredMemory
    rule: RuleRecord
    stage: RuleStage
    is_guardrail: bool
    is_users: bool
    place: RulePlace
    rate: Published
    bucket_rates: Mapping[str, Published]
    inert: tuple[RefusalCode, str] | None
    """The reason it applies to no run, as a code and in words."""
    is_timed: bool
    """It may have expired, or be on trial in certain buckets only, so it is checked for each run."""
    mode: InjectionMode
    line: str
    """The line in the prompt."""
    tokens: int
    words: Counter[str]
    word_set: frozenset[tuple[str, int]]
    """`words` as one hashable value: rules with equal sets use the same words."""
    overrides: frozenset[str]
    """Rules that it is an exception to: a run that gets it does not get them."""
    order: tuple[float, str, str, str]
    """Tie-breaker between rules of equal score: rank, id, version, level."""


def compile_rule(memory: StoredMemory, count_tokens: CountTokens) -> Candidate:
    """Prepare a rule for selection. Raises `InvalidInput` if the memory is not this rule."""
    rule = RuleRecord.from_wire(memory.record)
    if rule.rule_id != memory.id:
        raise InvalidInput(f"the rule {rule.rule_id!r:.60} is kept under the id {memory.id!r:.60}", path="$.rule_id")
    where = rule.applicability
    place = _place(where.domain_tag, where.task_family, where.predicates or (), where.bucket_keys or ())
    stage, line = stage_of(memory), rule_line(rule.body)
    words = Counter(words_of(rule.body))
    rank = rule.priority.rank if rule.priority is not None else None
    return Candidate(
        memory=memory,
        rule=rule,
        stage=stage,
        is_guardrail=rule.type == "GuardrailRule",
        is_users=memory.layer == "user",
        place=place,
        rate=_published(rule.metrics),
        bucket_rates={key: _published(one) for key, one in (rule.metrics.pass_p_bucket or {}).items()},
        inert=_inert(memory, stage),
        is_timed=memory.expires_at is not None or stage == "canary",
        mode=_mode(memory, rule, place, stage),
        line=line,
        tokens=count_tokens(line),
        words=words,
        word_set=frozenset(words.items()),
        overrides=_overrides(rule),
        order=(float("inf") if rank is None else rank, rule.rule_id, rule.version, memory.level),
    )


def _overrides(rule: RuleRecord) -> frozenset[str]:
    named = (rule.model_extra or {}).get("exception_to")
    return frozenset(filter(_is_text, named)) if isinstance(named, list | tuple) else frozenset()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def stage_of(memory: StoredMemory) -> RuleStage:
    """The stage in the lifecycle, if the record's own status agrees; otherwise the rule counts as a draft."""
    status = memory.record.get("status")
    if memory.status in ("retired", "pruned") or status == "retired" or memory.stage == "retired":
        return "retired"
    if memory.stage is None or (memory.stage == "active") != (status == "active"):
        return "drafted"
    return memory.stage


def _inert(memory: StoredMemory, stage: RuleStage) -> tuple[RefusalCode, str] | None:
    if stage == "retired":
        return "retired", "it was retired"
    if memory.layer == "user" or stage == "active" or (stage == "canary" and memory.canary is not None):
        return None
    return "not_in_force", f"it is {stage}: neither active nor on trial"


def _mode(memory: StoredMemory, rule: RuleRecord, place: RulePlace, stage: RuleStage) -> InjectionMode:
    """A system guard covers a domain or wider, is active, and was learned: nobody can submit one."""
    if memory.layer == "user":
        return "inline"
    is_guard = rule.type == "GuardrailRule" and stage == "active" and place.is_domain_wide
    return "system_guard" if is_guard else "prepend"


def rule_line(body: str) -> str:
    """One list item, with further lines indented so that they stay part of it."""
    return "- " + "\n  ".join(body.strip().splitlines()) + "\n"


def _published(found: RuleMetrics | PassEstimate) -> Published:
    """Published rates, validated, as records may hold anything."""
    if isinstance(found, RuleMetrics):
        rate, bound, runs = found.pass_p_hat, found.pass_p_lb95, found.pass_p_K
    else:
        rate, bound, runs = found.p_hat, found.p_lb95, found.K
    return Published(_as_rate(rate), _as_rate(bound), runs or 0)


def _as_rate(value: float | None) -> float | None:
    return None if value is None else min(1.0, max(0.0, value))


@remembered(1 << 14)
def _place(domain: str | None, family: str | None, texts: tuple[str, ...], buckets: tuple[str, ...]) -> RulePlace:
    predicates: list[Predicate] = []
    fault = None
    for index, text in enumerate(texts):
        try:
            predicates.append(parse(text, path=child_path(PREDICATES, index)))
        except InvalidInput as error:
            fault = f"{text!r:.80} is no predicate: {error.message}"
            break
    asked = () if fault is not None else tuple(predicates)
    return RulePlace(domain, family, name_key(domain), name_key(family), frozenset(buckets), asked, fault)


# == applicability ====================================================================================================

_TYPES: tuple[RuleType, ...] = get_args(RuleType)


class RuleRequest(NamedTuple):
    """A request with the known facts about the run."""

    request: CandidateSelectRequest
    domain_tag: str | None
    task_family: str | None
    bucket_key: str | None
    impact: Level | None
    features: Mapping[str, Any]
    """The features that predicates are evaluated on."""
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
        """Build the request for a run; the bucket fills in what its context leaves open."""
        context = request.context
        impact, clarity = (context.impact_level, context.user_clarity) if context is not None else (None, None)
        domain = context.domain_tag if context is not None else None
        if request.bucket_key is not None:
            try:
                bucket = parse_bucket_key(request.bucket_key)
                impact, domain, clarity = impact or bucket.impact, domain or bucket.domain, clarity or bucket.clarity
            except InvalidInput:  # a custom bucket: only its name is known
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
    """A rule that was not selected, with a stable code and words."""

    candidate: Candidate
    code: RefusalCode
    why: str


def applying_to(candidates: Iterable[Candidate], asked: RuleRequest) -> tuple[list[Candidate], list[Refusal]]:
    """Split candidates into rules that apply to a run and refusals."""
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
    """The known facts about the run that rules are matched against."""

    def __init__(self, asked: RuleRequest) -> None:
        self._domain, self._family = name_key(asked.domain_tag), name_key(asked.task_family)
        self._bucket, self._features = asked.bucket_key, asked.features
        self._now: datetime = parse_instant(asked.now, path="$.now")
        self._truths: dict[str, Truth] = {}

    def refusal(self, place: RulePlace) -> tuple[RefusalCode, str] | None:
        """The reason rules of this place do not apply, as a code and in words; None if they do."""
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
        """Refuse a rule that has expired, or whose trial is in other buckets."""
        if has_expired(candidate.memory, self._now):
            return "expired", f"ran out at {candidate.memory.expires_at}"
        plan = candidate.memory.canary if candidate.stage == "canary" else None
        if plan is not None and plan.bucket_keys and self._bucket not in plan.bucket_keys:
            return "not_in_trial", f"its trial is in other buckets than {self._bucket or 'unknown'}"
        return None


# == scoring ==========================================================================================================

_DOMAIN_WEIGHT, _FAMILY_WEIGHT, _BUCKET_WEIGHT, _GUARDRAIL_WEIGHT = 2, 2, 1, 1
_DEBIAS_FLOOR, _DEBIAS_MAX = 0.05, 4
_NOVELTY_N = 10
_MIDDLE = 0.5
_DIGITS = 6
"""Scores equal to this many digits are ties, decided by rank."""


class PublishedRate(NamedTuple):
    """A rule's published performance. `rate` is None for thin samples, whatever they show."""

    rate: float | None
    runs: int
    bucket_key: str | None
    """The bucket it was counted in; None: all runs."""


class Scoring:
    """Scores of rules in one run. A run of high impact uses the lower bounds of pass rates."""

    def __init__(self, policy: RulePolicy, bucket_key: str | None, *, is_high: bool) -> None:
        self._policy = policy.select
        self._thin_n = policy.stats.thin_n
        self._bucket_key = bucket_key
        self._is_high = is_high
        self._middle = self._worth(_MIDDLE)

    def value(self, candidate: Candidate) -> float:
        """The score of a rule that applies."""
        place = candidate.place
        published = self.published(candidate)
        score = self._statistics(published) + self.novelty(published)
        if place.domain is not None:
            score += _DOMAIN_WEIGHT
        if place.family is not None:
            score += _FAMILY_WEIGHT
        if place.buckets:
            score += _BUCKET_WEIGHT
        if candidate.is_guardrail:
            score += _GUARDRAIL_WEIGHT
        return round(score, _DIGITS)

    def published(self, candidate: Candidate) -> PublishedRate:
        """The published rate in the run's bucket, or over all runs if that is thin."""
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
        """The debias weight of the rate; None if it is not weighted."""
        if not self._policy.debias or published.rate is None:
            return None
        return self._weight(published.rate)

    def novelty(self, published: PublishedRate) -> float:
        """The bonus for a rarely used rule."""
        policy = self._policy
        if not policy.novelty_weight or published.runs >= _NOVELTY_N:
            return 0.0
        return policy.novelty_weight * (1 - published.runs / _NOVELTY_N)

    def reasons(self, candidate: Candidate) -> list[str]:
        """The parts of the score, in words."""
        place = candidate.place
        published = self.published(candidate)
        said = []
        if place.domain is not None:
            said.append(f"domain {place.domain_tag}: +{_DOMAIN_WEIGHT:g}")
        if place.family is not None:
            said.append(f"family {place.task_family}: +{_FAMILY_WEIGHT:g}")
        if place.buckets:
            said.append(f"bucket {self._bucket_key}: +{_BUCKET_WEIGHT:g}")
        if candidate.is_guardrail:
            said.append(f"guardrail: +{_GUARDRAIL_WEIGHT:g}")
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
        return self._worth(published.rate) - self._middle

    def _worth(self, rate: float) -> float:
        """The rate, or with debias the rate divided by how often it passes: almost level, but never reversed."""
        return rate * self._weight(rate) if self._policy.debias else rate

    def _weight(self, rate: float) -> float:
        return min(_DEBIAS_MAX, 1 / (rate + _DEBIAS_FLOOR))


# == arms =============================================================================================================


def in_arm(canary_id: str, run_id: str, share: float) -> bool:
    """Return whether the trial draws this run into its `share`. Deterministic, and independent of other trials."""
    if not 0 <= share <= 1:
        raise InvalidInput(f"a share of {share!r}", hint="from 0 to 1")
    drawn = digest(f"{canary_id}\n{run_id}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(drawn[:8], "big") < share * 2**64


# == selection ========================================================================================================

_HEADING = "## Rules"
_LEFT_OUT: dict[str, str] = {
    "holdout": "this run is of those that do without it, so that its worth stays known",
    "baseline": "this run is of those that its trial is compared with",
}
_ARM_WORDS: dict[Arm, str] = {"active": "in force", "canary": "on trial in this run"}


class Selected(NamedTuple):
    """The response, with what the run and a reader need besides it."""

    response: CandidateSelectResponse
    arms: tuple[RuleArm, ...]
    refusals: tuple[Refusal, ...]
    lines: tuple[str, ...]
    """The prompt line of each selected rule, in order."""
    tokens: int

    @property
    def refused(self) -> tuple[RefusedRule, ...]:
        """Every rule that was not selected, by id. Computed on demand: there may be thousands."""
        made = [_refused(each) for each in self.refusals]
        return tuple(sorted(made, key=lambda one: (one.rule_id, one.version, one.code)))

    @property
    def text(self) -> str:
        """The text for the prompt, guards first; empty if no rule was chosen."""
        return f"{_HEADING}\n{''.join(self.lines)}".rstrip("\n") if self.lines else ""


def select_rules(candidates: Iterable[Candidate], asked: RuleRequest, policy: RulePolicy) -> Selected:
    """Select the rules for a run."""
    applying, refusals = applying_to(candidates, asked)
    scoring = Scoring(policy, asked.bucket_key, is_high=asked.impact == "high")
    applying, overridden = _without_overridden(applying, asked, policy)
    taken, arms, left_over = _choose(_best_first(applying, scoring), applying, asked, policy)
    chosen = taken.rules
    arm_of = {arm.rule_id: arm.arm for arm in arms}
    response = CandidateSelectResponse(
        schema_version=RULECRAFT_VERSION,
        request_id=asked.request.request_id,
        selected_rules=tuple(_selected_rule(each, arm_of, scoring) for each in chosen),
        exploration=_exploration(applying, scoring, policy, taken.diversity),
    )
    lines, tokens = tuple(each.line for each in chosen), sum(each.tokens for each in chosen)
    return Selected(response, tuple(arms), (*refusals, *overridden, *left_over), lines, tokens)


def _without_overridden(
    applying: Sequence[Candidate], asked: RuleRequest, policy: RulePolicy
) -> tuple[list[Candidate], list[Refusal]]:
    """Drop rules that have an exception among the rules of this run."""
    by = {
        rule_id: each.rule.rule_id
        for each in applying
        if each.overrides and _arm(each, asked.run_id, policy.canary) in ("active", "canary")
        for rule_id in each.overrides
    }
    gone = [
        Refusal(each, "overridden", f"{by[each.rule.rule_id]} is an exception to it")
        for each in applying
        if each.rule.rule_id in by
    ]
    return [each for each in applying if each.rule.rule_id not in by] if by else list(applying), gone


# -- choice of rules ----------------------------------------------------------------------------------


def _best_first(applying: Sequence[Candidate], scoring: Scoring) -> Iterator[Candidate]:
    """Yield rules in order of preference, lazily; their place only decides between duplicates of a rule."""
    queue = [(_turn(each), -scoring.value(each), each.order, place) for place, each in enumerate(applying)]
    heapify(queue)
    while queue:
        yield applying[heappop(queue)[-1]]


def _choose(
    ordered: Iterator[Candidate], applying: Sequence[Candidate], asked: RuleRequest, policy: RulePolicy
) -> tuple[_Taken, list[RuleArm], list[Refusal]]:
    """Choose in order while there is room; a rule left out by its arm takes up none."""
    constraints, choice = asked.request.constraints, policy.select
    room = max(0, choice.max_rules if constraints is None else constraints.max_rules)
    left = choice.tokens_max
    taken = _Taken(choice.near_duplicate)
    arms: list[RuleArm] = []
    refusals: list[Refusal] = []
    named: set[str] = set()
    while len(taken.rules) < room and (candidate := next(ordered, None)) is not None:
        rule = candidate.rule
        if rule.rule_id in named:
            refusals.append(Refusal(candidate, "same_rule", "a rule of this id is before it"))
        elif candidate.tokens > left:
            refusals.append(Refusal(candidate, "tokens_max", f"{candidate.tokens} tokens, and {left} are left"))
        elif (alike := taken.like(candidate)) is not None:
            refusals.append(Refusal(candidate, *_likeness(candidate, alike)))
        else:
            arm = _arm(candidate, asked.run_id, policy.canary)
            named.add(rule.rule_id)
            arms.append(RuleArm(rule_id=rule.rule_id, version=rule.version, type=rule.type, arm=arm))
            if arm == "holdout" or arm == "baseline":
                refusals.append(Refusal(candidate, arm, _LEFT_OUT[arm]))
            else:
                taken.add(candidate)
                left -= candidate.tokens
    seen = {id(each.candidate) for each in refusals} | set(map(id, taken.rules))
    full = f"{room} rules are before it"
    refusals += [Refusal(each, "max_rules", full) for each in applying if id(each) not in seen]
    return taken, arms, refusals


class _Taken:
    """The rules chosen so far, with caches of their similarity."""

    def __init__(self, near: float) -> None:
        self.rules: list[Candidate] = []
        self._near = near
        self._known: dict[frozenset[tuple[str, int]], Candidate] = {}
        self._last: list[float] = []
        self._pairs: list[float] = []

    def like(self, candidate: Candidate) -> Candidate | None:
        """Find the chosen rule that is nearly the same; results are cached by words."""
        found = self._known.get(candidate.word_set)
        if found is not None:
            return found
        self._last = []
        for each in self.rules:
            likeness = cosine(candidate.words, each.words)
            if likeness >= self._near:
                self._known[candidate.word_set] = each
                return each
            self._last.append(likeness)
        return None

    def add(self, candidate: Candidate) -> None:
        """Choose a rule that `like` was just called with."""
        self.rules.append(candidate)
        self._pairs += self._last

    @property
    def diversity(self) -> float | None:
        """1 − the mean cosine of all pairs; None where there is no pair."""
        return 1 - fsum(self._pairs) / len(self._pairs) if self._pairs else None


def _turn(candidate: Candidate) -> int:
    """Order guardrails first; submitted guardrails cannot crowd out a learned one."""
    return 2 if not candidate.is_guardrail else int(candidate.is_users)


def _arm(candidate: Candidate, run_id: str, policy: CanaryPolicy) -> Arm:
    """Choose the arm. Guardrails and rules requested by a person are never held out."""
    plan = candidate.memory.canary
    if candidate.stage == "canary" and plan is not None and not candidate.is_users:
        return "canary" if in_arm(plan.canary_id, run_id, plan.share) else "baseline"
    if candidate.is_guardrail or candidate.is_users:
        return "active"
    name = f"holdout:{candidate.rule.rule_id}:{candidate.rule.version}"
    return "holdout" if in_arm(name, run_id, policy.holdout_share) else "active"


def _likeness(candidate: Candidate, other: Candidate) -> tuple[RefusalCode, str]:
    """The reason to leave out the later of two rules with the same words: it says the same, or the opposite."""
    name = other.rule.rule_id
    if any(map(turns, candidate.words.keys() ^ other.words.keys())):
        return "contradicts", f"says in nearly the same words something else than {name}, which is before it"
    return "near_duplicate", f"says nearly what {name} says, which is before it"


# -- results ------------------------------------------------------------------------------------------


def _selected_rule(candidate: Candidate, arm_of: Mapping[str, Arm], scoring: Scoring) -> SelectedRule:
    """A chosen candidate, as it appears in the response."""
    rule = candidate.rule
    return SelectedRule(
        rule_id=rule.rule_id,
        version=rule.version,
        type=rule.type,
        injection_mode=candidate.mode,
        score=scoring.value(candidate),
        reasons=(*scoring.reasons(candidate), _ARM_WORDS[arm_of[rule.rule_id]]),
    )


def _exploration(
    scored: Sequence[Candidate], scoring: Scoring, policy: RulePolicy, diversity: float | None
) -> Exploration:
    """The exploration that took effect: weights that changed no score are omitted. The debias weight is the mean of
    those applied.
    """
    weights: list[float] = []
    used_novelty = False
    if policy.select.debias or policy.select.novelty_weight:
        standings = list(map(scoring.published, scored))
        weights = [weight for each in standings if (weight := scoring.debias(each)) is not None]
        used_novelty = any(map(scoring.novelty, standings))
    return Exploration(
        used_debias=bool(weights),
        debias_weight=fsum(weights) / len(weights) if weights else None,
        used_novelty=used_novelty,
        novelty_weight=policy.select.novelty_weight if used_novelty else None,
        diversity_score=diversity,
    )


def _refused(refusal: Refusal) -> RefusedRule:
    rule = refusal.candidate.rule
    fields = {"rule_id": rule.rule_id, "version": rule.version, "code": refusal.code, "why": refusal.why}
    return RefusedRule.unchecked(fields)
