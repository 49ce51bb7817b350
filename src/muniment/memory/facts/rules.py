"""What a new saying about a key does to the facts that stand for it, by the rules of the policy."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, Literal

from muniment.contracts.packet import Fact, FactStatus
from muniment.core.canonical import canonical_text
from muniment.core.instants import Instant, parse_rfc3339
from muniment.core.limits import remembered
from muniment.core.policy import FactPolicy
from muniment.core.scope import TRUST_ORDER, Trust
from muniment.memory.fact_rows import LEVELS
from muniment.memory.facts.records import StoredFact

__all__ = [
    "Outcome",
    "Saying",
    "find_overridden",
    "has_less_trust",
    "is_many_valued",
    "is_preference",
    "names_value",
    "resolve",
    "same_value",
    "validity_problem",
    "why_not_in_force",
]

Effect = Literal["new", "reinforces", "coexists", "disputes", "history", "supersedes"]


@dataclass(frozen=True, slots=True)
class Saying:
    """A new value for a key, as the rules need it."""

    key: str
    value: Any
    trust: Trust
    since: str
    until: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be done: which rule spoke, the status of the saying, the fact it adds to, the facts it ends."""

    effect: Effect
    status: FactStatus
    adds_to: str | None = None
    ends: tuple[str, ...] = ()
    ended_at: str | None = None
    against: str | None = None
    """The active fact it disagrees with or takes over from."""


def resolve(saying: Saying, standing: Sequence[StoredFact], policy: FactPolicy) -> Outcome:
    """The rules in their order: same value, many-valued key, lower trust, older, newer (0002)."""
    active = [fact for fact in standing if fact.status == "active"]
    same = [fact for fact in active if same_value(fact.value, saying.value) and _still_holds(fact, saying)]
    if same:
        return Outcome("reinforces", "active", adds_to=same[0].fact_id)
    if not active:
        return Outcome("new", "active")
    if is_many_valued(saying.key, policy):
        return Outcome("coexists", "active")
    current = max(active, key=lambda fact: (fact.since, fact.fact_id))
    holds = _still_holds(current, saying)
    if holds and policy.lower_trust_disputes and has_less_trust(saying.trust, current.trust):
        twin = next((fact for fact in standing if fact.status == "disputed" and _is_twin(fact, saying)), None)
        return Outcome("disputes", "disputed", adds_to=twin.fact_id if twin else None, against=current.fact_id)
    if holds and saying.since < current.since:
        return Outcome("history", "deprecated", ended_at=current.since, against=current.fact_id)
    return Outcome(
        "supersedes",
        "active",
        ends=tuple(fact.fact_id for fact in active),
        ended_at=saying.since,
        against=current.fact_id,
    )


OutOfForce = Literal["deprecated", "disputed", "not_yet_valid", "expired"]


def why_not_in_force(fact: Fact, now: str) -> OutOfForce | None:
    """Why a fact does not hold now; None if it does, as far as facts of other levels do not override it (MP-07)."""
    return fact.status if fact.status != "active" else validity_problem(fact, parse_rfc3339(now))


def validity_problem(fact: Fact, now: Instant | None) -> Literal["not_yet_valid", "expired"] | None:
    """Instants are compared, not strings; until exactly now is still valid. What cannot be read does not hold."""
    validity = fact.validity
    if validity is None or now is None:
        return None
    if validity.valid_from is not None:
        start = parse_rfc3339(validity.valid_from)
        if start is None or start > now:
            return "not_yet_valid"
    if validity.valid_to is not None:
        end = parse_rfc3339(validity.valid_to)
        if end is None or end < now:
            return "expired"
    return None


def find_overridden(facts: Iterable[Fact], is_many_valued: Callable[[str], bool]) -> dict[str, Fact]:
    """By id, the facts that a nearer scope level overrides, and the fact that does (MP-08).

    A key of many values holds those of all levels. The facts are those in force.
    """
    facts = list(facts)
    nearest: dict[str, Fact] = {}
    for fact in facts:
        held = nearest.setdefault(fact.fact_key, fact)
        if _distance(fact) < _distance(held):
            nearest[fact.fact_key] = fact
    return {
        fact.fact_id: nearest[fact.fact_key]
        for fact in facts
        if _distance(fact) > _distance(nearest[fact.fact_key]) and not is_many_valued(fact.fact_key)
    }


def _distance(fact: Fact) -> int:
    return LEVELS.index(fact.scope_level or "user")


def _still_holds(fact: StoredFact, saying: Saying) -> bool:
    """A fact that ended before the saying begins does not stand in its way, nor is it the same saying again."""
    return fact.until is None or fact.until >= saying.since


def _is_twin(fact: StoredFact, saying: Saying) -> bool:
    return fact.trust == saying.trust and same_value(fact.value, saying.value)


def same_value(one: Any, other: Any) -> bool:
    """Equal as JSON; texts also where they differ only in case, width or white space."""
    if isinstance(one, str) and isinstance(other, str):
        return _folded_text(one) == _folded_text(other)
    return canonical_text(one) == canonical_text(other)


def names_value(name: str, value: Any) -> bool:
    """`Portland` names `Portland, Oregon`, and the other way round; else only the same value does."""
    if not isinstance(value, str):
        return False
    one, other = _folded_text(name).removeprefix("the "), _folded_text(value).removeprefix("the ")
    return one == other or one.partition(",")[0] == other or one == other.partition(",")[0]


def _folded_text(text: str) -> str:
    """A text in one form: letters normalised and folded, single blanks between words."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def has_less_trust(one: Trust, other: Trust) -> bool:
    return TRUST_ORDER.index(one) > TRUST_ORDER.index(other)


def is_many_valued(key: str, policy: FactPolicy) -> bool:
    return _any_of(policy.many_valued).match(key) is not None


def is_preference(key: str, policy: FactPolicy) -> bool:
    return _any_of(policy.preferences).match(key) is not None


@remembered(64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or "(?!)")
