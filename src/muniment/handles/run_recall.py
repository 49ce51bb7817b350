"""The part of a run's handle that recalls: search, and packets composed for a purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import canonical_text
from muniment.core.policy.given import policy_named
from muniment.memory.fact_rows import visible_facts
from muniment.memory.hits import turn_hit
from muniment.memory.recall.records import Hit
from muniment.memory.searching import check_search, find_turns

if TYPE_CHECKING:
    from muniment.contracts.memory_packet import Fact
    from muniment.core.policy.policy import Policy
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.packets.builds import Build
    from muniment.packets.pool import FactCandidate
    from muniment.store.context import Context

__all__ = ["RunRecall"]


class RunRecall:
    """See `muniment.Run`."""

    _ctx: Context
    _scope: Scope
    _task_type: str

    def search(self, query: str, *, k: int = 10, now: Any = None) -> list[Hit]:
        """The best `k` of this user's turns (of all sessions) and facts for a query, best first, each saying why.

        `now` is the moment the question is asked at, against which "last week" is read; later turns are not hidden.
        """
        ctx, scope = self._ctx, self._scope
        query, k, moment = check_search(ctx, query, k, now)

        def work(reader: Reader) -> list[Hit]:
            turns = find_turns(ctx, reader, scope.tenant_id, scope.user_id, query, k, moment, ctx.recall_policy)
            hits = [turn_hit(found) for found in turns] + _fact_hits(reader, scope, query, moment)
            return sorted(hits, key=lambda hit: -hit.score)[:k]

        return ctx.engine.read(scope.tenant_id, work)

    def compose(
        self,
        purpose: str,
        *,
        query: str = "",
        cues: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        per_section: Mapping[str, int] | None = None,
        policy: str | Policy | Mapping[str, Any] = "default",
        now: Any = None,
        task_type: str | None = None,
    ) -> Build:
        """A MemoryPacket for a planner, tool or responder, and the text of it that fits the budget.

        `policy` is the store's own unless one is given, or an object of what differs from the default. `now` is the
        moment the question is asked at: "last week", validity and recency are read against it; what was said later
        is not hidden.
        """
        from muniment.packets.builds import compose_build

        return compose_build(
            self._ctx,
            self._scope,
            purpose,
            query=query,
            cues=cues,
            max_tokens=max_tokens,
            per_section=per_section,
            policy=policy_named(self._ctx.policy, policy),
            now=now,
            task_type=task_type or self._task_type,
        )


def _fact_hits(reader: Reader, scope: Scope, query: str, now: str) -> list[Hit]:
    """The facts that match and have not ended; a scope without facts loads nothing of what reads them."""
    items = visible_facts(reader, scope)
    if not items:
        return []
    from muniment.memory.recall.matching import read_wanted
    from muniment.packets.gathering import fact_match, match_facts

    wanted = read_wanted(query)
    return [
        _fact_hit(found, fact_match(wanted, found.fact.fact_key, found.fact.value).reasons)
        for found in match_facts(reader, items, wanted)
        if found.score > 0 and found.fact.status == "active" and not _has_ended(found.fact, now)
    ]


def _has_ended(fact: Fact, now: str) -> bool:
    """Valid until exactly now is still valid (MP-07)."""
    end = fact.validity.valid_to if fact.validity else None
    return end is not None and end < now


def _fact_hit(found: FactCandidate, reasons: tuple[str, ...]) -> Hit:
    fact = found.fact
    value = fact.value if isinstance(fact.value, str) else canonical_text(fact.value)
    return Hit(
        id=fact.fact_id,
        kind="fact",
        text=f"{fact.fact_key}: {value}",
        score=found.score,
        ts=found.since or found.recorded_at,
        sources=fact.sources,
        why=("a fact that stands", *reasons),
        parts={"match": found.score},
    )
