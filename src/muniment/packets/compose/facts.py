"""Which facts stand in a packet: active, valid now, not overridden, sure enough (MP-06…MP-09)."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.contracts.memory_packet import Fact
from muniment.core.rfc3339 import Instant, parse_rfc3339
from muniment.core.text.duplicates import Seen
from muniment.packets.compose.budget import TYPICAL_MARK, typical_mark
from muniment.packets.compose.explain import Reason, names_of
from muniment.packets.compose.placing import Desk, Placed, instant_order
from muniment.packets.page.lines import fact_line, shown, superseded_note
from muniment.packets.pool import FactCandidate

__all__ = ["DEFAULT_CONFIDENCE", "place_facts", "unfit_validity"]

DEFAULT_CONFIDENCE = 0.5
"""The document's, for a fact that says nothing of it."""
_LEVELS = {"user": 0, "agent": 1, "tenant": 2}

Named = tuple[str, FactCandidate]


def place_facts(desk: Desk) -> None:
    """Matching facts while the section lasts; of the others at most `facts_max` and `unmatched_share`."""
    names = names_of("fact", (each.fact.fact_id for each in desk.pool.facts))
    named = list(zip(names, desk.pool.facts, strict=True))
    chosen = sorted(_not_overridden(desk, list(_eligible(desk, named))), key=_worth)
    seen = Seen(desk.policy.near_duplicate)
    desk.purse.price_many(_line(desk, each.fact) for _, each in chosen)
    unmatched_max = desk.share_beside_hits(desk.policy.unmatched_share)
    unmatched = unmatched_tokens = 0
    for at, (name, each) in enumerate(chosen):
        price, text = desk.purse.price(_line(desk, each.fact)), f"{each.fact.fact_key}: {shown(each.fact.value)}"
        is_matched = each.score > 0
        if (other := seen.find(text)) is not None:
            desk.tally.omit(name, "near_duplicate", of=other)
        elif not is_matched and unmatched >= desk.policy.facts_max:
            desk.tally.omit(name, "count_limit", limit=desk.policy.facts_max)
        elif price > desk.purse.room("facts"):
            desk.tally.omit(name, "over_budget", tokens=price)
        elif not is_matched and unmatched_tokens + price > unmatched_max:
            desk.tally.omit(name, "over_budget", tokens=price, detail="no match with the query")
        else:
            desk.place(Placed(name, "facts", price, each, (at,)), each.score, _rules(each))
            seen.add(text, name)
            unmatched += not is_matched
            unmatched_tokens += 0 if is_matched else price
            if each.stale_dependency:
                said = f"{each.fact.fact_key} rests on a fact that no longer holds"
                desk.tally.conflict("stale_dependency", said, (each.fact.fact_id,))


def _line(desk: Desk, fact: Fact) -> str:
    """As it may stand on the page: with a note where all it rests on is outdated."""
    is_outdated = fact.sources and all(source in desk.newer for source in fact.sources)
    return fact_line(fact, typical_mark) + (superseded_note(TYPICAL_MARK) if is_outdated else "")


def _rules(each: FactCandidate) -> Iterator[str]:
    yield "active"
    yield "valid_now"
    if each.score > 0:
        yield "query_match"
    if each.is_preference:
        yield "preference"


def _worth(named: Named) -> tuple[float, float, int, str, str]:
    """Match with the query, confidence, recency, id (MP-15: these are the sort keys that explain names)."""
    _, each = named
    recorded = instant_order(each.recorded_at)
    confidence = each.fact.confidence if each.fact.confidence is not None else DEFAULT_CONFIDENCE
    return (-max(each.score, 0.0), -confidence, -recorded.seconds, each.fact.fact_id, named[0])


# -- filters ------------------------------------------------------------------------------------------


def _eligible(desk: Desk, named: list[Named]) -> Iterator[Named]:
    newest: dict[str, int] = {}
    for _, each in named:
        newest[each.fact.fact_id] = max(each.version, newest.get(each.fact.fact_id, 0))
    taken: set[str] = set()
    for name, each in named:
        fact = each.fact
        reason = _unfit(desk, each)
        if each.version < newest[fact.fact_id]:
            desk.tally.omit(name, "superseded", version=each.version, by=newest[fact.fact_id])
        elif fact.fact_id in taken:
            desk.tally.omit(name, "duplicate")
        elif reason is not None:
            desk.tally.omit(name, reason)
            if reason == "disputed":
                _note_dispute(desk, each)
        else:
            taken.add(fact.fact_id)
            yield name, each


def _unfit(desk: Desk, each: FactCandidate) -> Reason | None:
    fact = each.fact
    if fact.status != "active":
        return fact.status
    if (reason := unfit_validity(fact, desk.now)) is not None:
        return reason
    if (reason := desk.bars(each.trust)) is not None:
        return reason
    if desk.wall.bars_id(fact.fact_id, *fact.sources) or desk.wall.bars_value([fact.value, fact.notes]):
        return "insight_wall"  # MP-12: promotion that skipped validation
    for source in fact.sources:
        if (reason := desk.bars_evidence(source)) == "instruction_like":
            return reason
    confidence = fact.confidence if fact.confidence is not None else DEFAULT_CONFIDENCE
    return "low_confidence" if confidence < desk.policy.confidence_min else None


def unfit_validity(fact: Fact, now: Instant) -> Reason | None:
    """Instants are compared, not strings; until exactly now is still valid. What cannot be read does not hold."""
    if fact.validity is None:
        return None
    for text, reason in ((fact.validity.valid_from, "not_yet_valid"), (fact.validity.valid_to, "expired")):
        if text is None:
            continue
        moment = parse_rfc3339(text)
        if moment is None or (moment > now if reason == "not_yet_valid" else moment < now):
            return "not_yet_valid" if reason == "not_yet_valid" else "expired"
    return None


# -- conflicts ----------------------------------------------------------------------------------------


def _not_overridden(desk: Desk, named: list[Named]) -> Iterator[Named]:
    """MP-08: of one key, only the nearest scope level speaks."""
    nearest: dict[str, Fact] = {}
    for _, each in named:
        held = nearest.setdefault(each.fact.fact_key, each.fact)
        if _level(each.fact) < _level(held):
            nearest[each.fact.fact_key] = each.fact
    for name, each in named:
        winner = nearest[each.fact.fact_key]
        if _level(winner) == _level(each.fact):
            yield name, each
            continue
        desk.tally.omit(name, "overridden", by=f"fact:{winner.fact_id}")
        said = f"{each.fact.fact_key}: {_name(winner)} level overrides {_name(each.fact)} level"
        desk.tally.conflict("override", said, (winner.fact_id, each.fact.fact_id))


def _name(fact: Fact) -> str:
    return fact.scope_level or "user"


def _level(fact: Fact) -> int:
    return _LEVELS[_name(fact)]


def _note_dispute(desk: Desk, each: FactCandidate) -> None:
    """Both sides of a dispute by id, so that a reader can look; the disputed value is not shown."""
    key = each.fact.fact_key
    others = tuple(
        other.fact.fact_id
        for other in desk.pool.facts
        if other.fact.fact_key == key and other.fact.fact_id != each.fact.fact_id and other.fact.status == "active"
    )
    desk.tally.conflict("disputed", f"{key}: a disputed value is left out", (*others, each.fact.fact_id))
