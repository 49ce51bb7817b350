"""CandidateSelect (RC-15): the rules that a run gets, why these, and why not the others.

Applicability → score → near-duplicates → limits; guardrails first, then score, rank and id. A function of the rules as
published, the request and the policy, whatever order they come in: no clock, no counts, no chance.

A rule on trial, or an active strategy, is left out of the runs that its hash draws for that, and the arm of each rule
is told. What is left out takes no place, so that the run is what it would be without the rule. An arm is told only of
a rule that was within reach of being chosen: which runs those are never depends on the rule's own draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop
from math import fsum
from typing import NamedTuple

from muniment.contracts.rules import CandidateSelectResponse, Exploration, SelectedRule
from muniment.core.policy import CanaryPolicy, RulePolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.text.sentences import cosine, turns
from muniment.learning.rule_state import Arm, RuleArm
from muniment.rules.promotion.records import RefusedRule
from muniment.rules.rulebook.applicability import Refusal, RuleRequest, applying_to
from muniment.rules.rulebook.arms import in_arm
from muniment.rules.rulebook.candidates import Candidate, RefusalCode, compile_rule
from muniment.rules.rulebook.scoring import Scoring

__all__ = ["Candidate", "Refusal", "RefusalCode", "RuleRequest", "Selected", "compile_rule", "select_rules"]

_HEADING = "## Rules"
_LEFT_OUT: dict[str, str] = {
    "holdout": "this run is of those that do without it, so that its worth stays known",
    "baseline": "this run is of those that its trial is compared with",
}
_ARM_WORDS: dict[Arm, str] = {"active": "in force", "canary": "on trial in this run"}


class Selected(NamedTuple):
    """The answer, and what a run and a reader need beside it."""

    response: CandidateSelectResponse
    arms: tuple[RuleArm, ...]
    refusals: tuple[Refusal, ...]
    lines: tuple[str, ...]
    """What the prompt gets of each selected rule, in their order."""
    tokens: int

    @property
    def refused(self) -> tuple[RefusedRule, ...]:
        """Every rule that was not selected, by id. Made when it is asked for: there may be thousands."""
        made = [_refused(each) for each in self.refusals]
        return tuple(sorted(made, key=lambda one: (one.rule_id, one.version, one.code)))

    @property
    def text(self) -> str:
        """What goes into the prompt, guards first; nothing where no rule was chosen."""
        return f"{_HEADING}\n{''.join(self.lines)}".rstrip("\n") if self.lines else ""


def select_rules(candidates: Iterable[Candidate], asked: RuleRequest, policy: RulePolicy) -> Selected:
    """The rules for a run."""
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
    """The rules, but for those that another one, which this run has, is an exception to."""
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


# -- which of them the run gets -----------------------------------------------------------------------


def _best_first(applying: Sequence[Candidate], scoring: Scoring) -> Iterator[Candidate]:
    """Rules in the order of choice, as far as anybody asks; their place decides only where a rule comes twice."""
    queue = [(_turn(each), -scoring.value(each), each.order, place) for place, each in enumerate(applying)]
    heapify(queue)
    while queue:
        yield applying[heappop(queue)[-1]]


def _choose(
    ordered: Iterator[Candidate], applying: Sequence[Candidate], asked: RuleRequest, policy: RulePolicy
) -> tuple[_Taken, list[RuleArm], list[Refusal]]:
    """Down the list while there is room; what is left out by its arm takes none."""
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
    """The rules chosen so far, what is like one of them, and how alike they are themselves."""

    def __init__(self, near: float) -> None:
        self.rules: list[Candidate] = []
        self._near = near
        self._known: dict[frozenset[tuple[str, int]], Candidate] = {}
        self._last: list[float] = []
        self._pairs: list[float] = []

    def like(self, candidate: Candidate) -> Candidate | None:
        """The chosen rule that is nearly the same; words that were found so once are so again."""
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
        """Choose a rule, of which it was just asked whether it is like another."""
        self.rules.append(candidate)
        self._pairs += self._last

    @property
    def diversity(self) -> float | None:
        """1 − the mean cosine of all pairs; None where there is no pair."""
        return 1 - fsum(self._pairs) / len(self._pairs) if self._pairs else None


def _turn(candidate: Candidate) -> int:
    """Guardrails first, and no number of guardrails that people submit crowds out one that was learnt."""
    return 2 if not candidate.is_guardrail else int(candidate.is_users)


def _arm(candidate: Candidate, run_id: str, policy: CanaryPolicy) -> Arm:
    """Guardrails and what a person asked for are never held out."""
    plan = candidate.memory.canary
    if candidate.stage == "canary" and plan is not None and not candidate.is_users:
        return "canary" if in_arm(plan.canary_id, run_id, plan.share) else "baseline"
    if candidate.is_guardrail or candidate.is_users:
        return "active"
    name = f"holdout:{candidate.rule.rule_id}:{candidate.rule.version}"
    return "holdout" if in_arm(name, run_id, policy.holdout_share) else "active"


def _likeness(candidate: Candidate, other: Candidate) -> tuple[RefusalCode, str]:
    """Of two rules that use the same words the later one is left out, whether it says the same or the contrary."""
    name = other.rule.rule_id
    if any(map(turns, candidate.words.keys() ^ other.words.keys())):
        return "contradicts", f"says in nearly the same words something else than {name}, which is before it"
    return "near_duplicate", f"says nearly what {name} says, which is before it"


# -- what is told -------------------------------------------------------------------------------------


def _selected_rule(candidate: Candidate, arm_of: Mapping[str, Arm], scoring: Scoring) -> SelectedRule:
    """A candidate that was chosen, as the answer has it."""
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
    """What was done: weights that moved no score were not used. The debias weight is the mean of those applied."""
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
