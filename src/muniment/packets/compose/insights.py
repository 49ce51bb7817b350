"""Which insights stand in a packet: a planner's while they live, a responder's if every door is open (MP-12)."""

from __future__ import annotations

from muniment.contracts.memory_packet import InsightItem
from muniment.core.rfc3339 import parse_rfc3339
from muniment.packets.compose.budget import typical_mark
from muniment.packets.compose.explain import Reason, names_of
from muniment.packets.compose.placing import Desk, Placed, instant_order
from muniment.packets.page.lines import insight_line
from muniment.packets.page.matrix import may_show
from muniment.packets.pool import InsightCandidate

__all__ = ["allows_insights", "place_insights"]

_DEFAULT_CONFIDENCE = 0.3
_TYPES = ("hypothesis", "strategy", "pattern")

Named = tuple[str, InsightCandidate]


def allows_insights(desk: Desk) -> bool:
    """What `usage_policy.allow_in_responder` says in this packet."""
    return desk.policy.allow_validated_insights_in_responder


def place_insights(desk: Desk) -> None:
    names = names_of("insight", (each.insight.id for each in desk.pool.insights))
    fit: list[Named] = []
    taken: set[str] = set()
    for name, each in zip(names, desk.pool.insights, strict=True):
        if (reason := _unfit(desk, each)) is not None:
            desk.tally.omit(name, reason, validation_state=each.insight.validation_state)
        elif each.insight.id in taken:
            desk.tally.omit(name, "duplicate")
        else:
            taken.add(each.insight.id)
            fit.append((name, each))
    for at, (name, each) in enumerate(sorted(fit, key=_worth)):
        price = desk.purse.price(insight_line(each.insight, typical_mark))
        if at >= desk.policy.insights_max:
            desk.tally.omit(name, "count_limit", limit=desk.policy.insights_max)
        elif price > desk.purse.room("insights"):
            desk.tally.omit(name, "over_budget", tokens=price)
        else:
            order = (_TYPES.index(each.insight.type), at)
            rules = (each.insight.validation_state, "not_expired")
            desk.place(Placed(name, "insights", price, each.insight, order), _confidence(each.insight), rules)


def _unfit(desk: Desk, each: InsightCandidate) -> Reason | None:
    item = each.insight
    if item.validation_state == "rejected":
        return "insight_wall"  # never shows, to nobody
    if not may_show("insights", desk.purpose):
        return "purpose"
    if desk.purpose == "responder" and not (allows_insights(desk) and item.validation_state == "validated"):
        return "insight_wall"
    if _is_expired(desk, each):
        return "expired"
    return desk.bars(each.trust) or next(filter(None, map(desk.bars_evidence, item.sources or ())), None)


def _is_expired(desk: Desk, each: InsightCandidate) -> bool:
    """`run_end`, which is also what null and absence mean, falls with the run; what cannot be read has fallen."""
    text = each.insight.expires_at
    if text is None or text == "run_end":
        return each.run_is_finished
    moment = parse_rfc3339(text)
    return moment is None or moment < desk.now


def _confidence(item: InsightItem) -> float:
    return item.confidence if item.confidence is not None else _DEFAULT_CONFIDENCE


def _worth(named: Named) -> tuple[bool, float, int, str, str]:
    name, each = named
    recorded = instant_order(each.recorded_at).seconds
    is_open = each.insight.validation_state != "validated"
    return (is_open, -_confidence(each.insight), -recorded, each.insight.id, name)
