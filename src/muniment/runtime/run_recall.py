"""The part of a run's handle that recalls: search, and packets composed for a purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from muniment.errors import InvalidInput, NotFound
from muniment.records.hit import Hit
from muniment.records.policy import Policy
from muniment.runtime.fact_rows import visible_facts
from muniment.runtime.searching import Found, check_search, find_turns
from muniment.text.canonical import canonical_text

if TYPE_CHECKING:
    from muniment.ports.engine import Reader
    from muniment.records.pool import FactCandidate
    from muniment.records.scope import Scope
    from muniment.runtime.builds import Build
    from muniment.runtime.context import Context

__all__ = ["RunRecall", "turn_hit"]

_HIT_FIELDS = set(Hit.model_fields)


class RunRecall:
    """See `muniment.Run`."""

    _ctx: Context
    _scope: Scope
    _task_type: str

    def search(self, query: str, *, k: int = 10, now: Any = None) -> list[Hit]:
        """The best `k` of this user's turns (of all sessions) and facts for a query, best first, each saying why."""
        ctx, scope = self._ctx, self._scope
        query, moment = check_search(ctx, query, k, now)

        def work(reader: Reader) -> list[Hit]:
            turns = find_turns(ctx, reader, scope.tenant_id, scope.user_id, query, k, moment, ctx.policy.recall)
            hits = [turn_hit(found) for found in turns] + _fact_hits(reader, scope, query)
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
        policy: str | Policy = "default",
        now: Any = None,
        task_type: str | None = None,
    ) -> Build:
        """A MemoryPacket for a planner, tool or responder, and the text of it that fits the budget."""
        from muniment.runtime.builds import compose_build

        return compose_build(
            self._ctx,
            self._scope,
            purpose,
            query=query,
            cues=cues,
            max_tokens=max_tokens,
            per_section=per_section,
            policy=policy_named(self._ctx, policy),
            now=now,
            task_type=task_type or self._task_type,
        )


def policy_named(ctx: Context, policy: str | Policy) -> Policy:
    """A policy given as such, or the store's own by its id."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        raise InvalidInput("a policy is a record or the id of the store's own", path="$.policy")
    if policy not in ("default", ctx.policy.policy_id):
        raise NotFound(f"no policy {policy!r} is known here", path="$.policy", hint="pass a muniment.Policy")
    return ctx.policy


def turn_hit(found: Found, kind: Literal["event", "chunk"] = "event", *why: str) -> Hit:
    """What was found, as it is answered; its parts are the ledger's and the ranking's own, which are typed."""
    turn = found.turn
    return Hit.unchecked(
        {
            "id": turn.id,
            "kind": kind,
            "text": turn.text,
            "score": found.ranked.score,
            "ts": turn.ts,
            "sources": (turn.id,),
            "why": (*found.ranked.reasons, *why),
            "parts": dict(found.ranked.parts),
            "session_id": turn.session_id,
            "speaker": turn.speaker,
            "role": turn.role,
            "superseded_by": found.superseded_by,
        },
        _HIT_FIELDS,
    )


def _fact_hits(reader: Reader, scope: Scope, query: str) -> list[Hit]:
    """The facts that match; a scope without facts loads nothing of what reads them."""
    items = visible_facts(reader, scope)
    if not items:
        return []
    from muniment.recall.matching import read_wanted
    from muniment.runtime.pooling import fact_match, match_facts

    wanted = read_wanted(query)
    return [
        _fact_hit(found, fact_match(wanted, found.fact.fact_key, found.fact.value).reasons)
        for found in match_facts(reader, items, wanted)
        if found.score > 0 and found.fact.status == "active"
    ]


def _fact_hit(found: FactCandidate, reasons: tuple[str, ...]) -> Hit:
    fact = found.fact
    value = fact.value if isinstance(fact.value, str) else canonical_text(fact.value)
    return Hit(
        id=fact.fact_id,
        kind="fact",
        text=f"{fact.fact_key}: {value}",
        score=found.score,
        ts=found.recorded_at,
        sources=fact.sources,
        why=("a fact that stands", *reasons),
        parts={"match": found.score},
    )
