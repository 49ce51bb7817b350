"""The part of a run's handle that recalls: search, and packets composed for a purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muniment.errors import InvalidInput, NotFound
from muniment.ports.engine import Reader
from muniment.recall.query import QUERY_CHARS_MAX
from muniment.records.hit import Hit
from muniment.records.policy import Policy
from muniment.records.pool import FactCandidate
from muniment.records.scope import Scope
from muniment.runtime.context import Context
from muniment.runtime.pooling import load_facts, query_terms
from muniment.runtime.searching import Found, find_turns
from muniment.text.canonical import canonical_text
from muniment.text.instants import format_instant, parse_instant

if TYPE_CHECKING:
    from muniment.runtime.builds import Build

__all__ = ["RunRecall"]

SEARCH_MAX = 1000


class RunRecall:
    """See `muniment.Run`."""

    _ctx: Context
    _scope: Scope
    _task_type: str

    def search(self, query: str, *, k: int = 10, now: Any = None) -> list[Hit]:
        """The best `k` of this user's turns (of all sessions) and facts for a query, best first, each saying why."""
        if not isinstance(query, str):
            raise InvalidInput("a query is text", path="$.query")
        if type(k) is not int or not 1 <= k <= SEARCH_MAX:
            raise InvalidInput(f"k should be a whole number from 1 to {SEARCH_MAX}", path="$.k")
        ctx, scope = self._ctx, self._scope
        query = query[:QUERY_CHARS_MAX]
        moment = format_instant(ctx.clock() if now is None else parse_instant(now, path="$.now"))

        def work(reader: Reader) -> list[Hit]:
            turns = find_turns(ctx, reader, scope.tenant_id, scope.user_id, query, k, moment, ctx.policy.recall)
            facts = load_facts(reader, scope, query_terms(query))
            hits = [_turn_hit(found) for found in turns]
            hits += [_fact_hit(found) for found in facts if found.score > 0 and found.fact.status == "active"]
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


def _turn_hit(found: Found) -> Hit:
    entry = found.entry
    return Hit(
        id=entry.id,
        kind="event",
        text=found.text,
        score=found.ranked.score,
        ts=entry.ts,
        sources=(entry.id,),
        why=found.ranked.reasons,
        parts=dict(found.ranked.parts),
        session_id=entry.scope.session_id,
        speaker=entry.speaker,
        role=entry.role,
        superseded_by=found.superseded_by,
    )


def _fact_hit(found: FactCandidate) -> Hit:
    fact = found.fact
    value = fact.value if isinstance(fact.value, str) else canonical_text(fact.value)
    return Hit(
        id=fact.fact_id,
        kind="fact",
        text=f"{fact.fact_key}: {value}",
        score=found.score,
        ts=found.recorded_at,
        sources=fact.sources,
        why=("a fact whose key or value has words of the query",),
        parts={"words": found.score},
    )
