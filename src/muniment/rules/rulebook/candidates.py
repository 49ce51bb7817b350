"""Rules made ready to be chosen: everything that no request changes is worked out once, and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from muniment.contracts.rules import PassEstimate, RuleMetrics, RuleRecord
from muniment.core.canonical import child_path
from muniment.core.limits import remembered
from muniment.core.predicates import Predicate, parse
from muniment.core.scope import InjectionMode
from muniment.core.text.sentences import words_of
from muniment.errors import InvalidInput
from muniment.learning.keys import name_key
from muniment.learning.rule_state import RuleStage
from muniment.learning.stored_memory import StoredMemory

__all__ = [
    "PREDICATES",
    "Candidate",
    "CountTokens",
    "Published",
    "RefusalCode",
    "RulePlace",
    "compile_rule",
    "stage_of",
]

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
"""Why a rule is not selected; of several reasons the first."""

PREDICATES = "$.applicability.predicates"
_DOMAIN_WIDE = frozenset({"domain_tag"})


@dataclass(frozen=True, eq=False, slots=True)
class RulePlace:
    """Where rules apply. Rules of one place share it, so that a run is asked once for all of them."""

    domain_tag: str | None
    task_family: str | None
    domain: str | None
    family: str | None
    buckets: frozenset[str]
    predicates: tuple[Predicate, ...]
    fault: str | None
    """Why its predicates cannot be asked: such rules apply nowhere."""

    @property
    def is_domain_wide(self) -> bool:
        """A whole domain, or wider."""
        named = self.family is None and not self.buckets
        return named and all(_DOMAIN_WIDE.issuperset(predicate.fields) for predicate in self.predicates)


class Published(NamedTuple):
    """A pass rate as a rule's record has it."""

    p_hat: float | None
    p_lb95: float | None
    runs: int


class Candidate(NamedTuple):
    """A rule with what selection reads of it."""

    memory: StoredMemory
    rule: RuleRecord
    stage: RuleStage
    is_guardrail: bool
    is_users: bool
    place: RulePlace
    rate: Published
    bucket_rates: Mapping[str, Published]
    inert: tuple[RefusalCode, str] | None
    """Why it acts in no run, as a code and in words."""
    is_timed: bool
    """It may have run out, or be on trial in some buckets alone: to be looked at in each run."""
    mode: InjectionMode
    line: str
    """What a prompt gets of it."""
    tokens: int
    words: Counter[str]
    word_set: frozenset[tuple[str, int]]
    """`words` as one value: rules that are equal in it say the same words."""
    overrides: frozenset[str]
    """Rules that it is an exception to: a run that has it does without them."""
    order: tuple[float, str, str, str]
    """What decides between rules of one score: rank, id, version, level."""


def compile_rule(memory: StoredMemory, count_tokens: CountTokens) -> Candidate:
    """Raises `InvalidInput` where the bank holds something else than this rule under its id."""
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
    """The stage as it is told, if the record's own status agrees; a rule of which the two differ is a draft."""
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
    """A guard of the system holds for a domain or wider, is active, and was learnt: nobody can submit one."""
    if memory.layer == "user":
        return "inline"
    is_guard = rule.type == "GuardrailRule" and stage == "active" and place.is_domain_wide
    return "system_guard" if is_guard else "prepend"


def rule_line(body: str) -> str:
    """One item of a list, its further lines indented; it ends its own line."""
    return "- " + "\n  ".join(body.strip().splitlines()) + "\n"


def _published(found: RuleMetrics | PassEstimate) -> Published:
    """Rates as rates, whatever somebody wrote there."""
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
