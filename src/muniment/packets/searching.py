"""Search a user's turns and facts, and build the hits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_text
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ENTRIES
from muniment.memory.fact_rows import newest_facts
from muniment.memory.index import load_index
from muniment.memory.search import Hit, check_min_score, check_search, find_turns, turn_hit, unranked_hit
from muniment.memory.turn_reading import check_cited, turns_by_id

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from muniment.core.policy import FactPolicy, RecallPolicy
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.memory._index import StoredIndex
    from muniment.memory.facts import FoundFact
    from muniment.memory.search import Within
    from muniment.store.context import Context

__all__ = ["search_user"]


def search_user(
    ctx: Context,
    scope: Scope,
    query: str,
    k: int,
    now: Any,
    min_score: float | None = None,
    within: Mapping[str, Any] | None = None,
) -> list[Hit]:
    """The best `k` turns and facts of the scope's user for a query, best first; none less likely evidence than
    `min_score`, and only those that meet the conditions `within`. Without a query, the newest turns that meet them.
    """
    query, k, moment = check_search(ctx, query, k, now)
    least = check_min_score(min_score)
    policy = ctx.recall_policy
    asked = None if within is None else _conditions(within)

    def work(reader: Reader) -> list[Hit]:
        index, among = None, None
        if asked is not None:
            index = load_index(ctx, reader, scope.tenant_id, scope.user_id)
            among = _mask(index, asked)
            if not query.strip():
                return [] if least > 0 else _newest(ctx, reader, scope.tenant_id, index, among, k)
        turns = find_turns(
            ctx, reader, scope.tenant_id, scope.user_id, query, k, moment, policy, index=index, among=among
        )
        check_cited(ctx, reader, scope.tenant_id, [found.turn.id for found in turns])
        facts = _flagged(reader, scope, _fact_hits(reader, scope, query, moment, policy, ctx.policy.memory.facts))
        if index is not None and among is not None and facts:
            facts = _resting_on(index, among, facts)
        hits = [turn_hit(found) for found in turns] + facts
        return [hit for hit in sorted(hits, key=lambda hit: -hit.score)[:k] if hit.score >= least]

    return ctx.engine.read(scope.tenant_id, work)


# Most searches are unrestricted and need none of the modules below.


def _conditions(within: Any) -> Within:
    from muniment.memory.search import within_given

    return within_given(within)


def _mask(index: StoredIndex, asked: Within) -> npt.NDArray[np.bool_]:
    from muniment.memory.search import mask_of

    return mask_of(index, asked)


def _newest(
    ctx: Context, reader: Reader, tenant_id: str, index: StoredIndex, among: npt.NDArray[np.bool_], k: int
) -> list[Hit]:
    """The newest turns in the mask, newest first, when there is no query; all are equally likely evidence."""
    from muniment.memory.search import newest_ids

    ids = newest_ids(index, among, k)
    turns = turns_by_id(ctx, reader, tenant_id, ids)
    check_cited(ctx, reader, tenant_id, list(turns))
    return [unranked_hit(turns[id_], "it lies within the conditions") for id_ in ids if id_ in turns]


def _resting_on(index: StoredIndex, among: npt.NDArray[np.bool_], facts: list[Hit]) -> list[Hit]:
    """The facts with a source among the turns in the mask."""
    from muniment.memory.search import ids_let_in

    let_in = ids_let_in(index, among, [source for fact in facts for source in fact.sources])
    return [fact for fact in facts if not let_in.isdisjoint(fact.sources)]


def _fact_hits(
    reader: Reader, scope: Scope, query: str, now: str, policy: RecallPolicy, rules: FactPolicy
) -> list[Hit]:
    """The matching facts in force; for a scope without facts, skip loading their modules."""
    rows = newest_facts(reader, scope)
    if not rows:
        return []
    from muniment.memory.evidence import calibration, chance_of_fact, read_wanted
    from muniment.memory.facts import find_facts, in_force

    made = calibration(policy.evidence)
    found = in_force(find_facts(reader, scope, rows, read_wanted(query), rules, only_matching=True), now, rules)
    return [_fact_hit(each, chance_of_fact(each.match.score, made)) for each in found if each.match.score > 0]


def _fact_hit(found: FoundFact, chance: float) -> Hit:
    fact = found.fact
    value = fact.value if isinstance(fact.value, str) else canonical_text(fact.value)
    return Hit(
        id=fact.fact_id,
        kind="fact",
        text=f"{fact.fact_key}: {value}",
        score=chance,
        ts=found.stored.since,
        sources=fact.sources,
        why=("a fact that stands", *found.match.reasons),
        parts={"match": found.match.score},
        trust=found.item.trust,
    )


class _Flags(NamedTuple):
    id: str
    user_id: str
    flags: str


def _flagged(reader: Reader, scope: Scope, facts: list[Hit]) -> list[Hit]:
    """The facts with the flags of their evidence; one with evidence not visible to this user is external."""
    ids = sorted({source for fact in facts for source in fact.sources})
    rows = by_ids(reader, ENTRIES, ids, into=_Flags) if ids else ()
    own = {row.id: row.flags.split(",") if row.flags else [] for row in rows if row.user_id == scope.user_id}
    found: list[Hit] = []
    for fact in facts:
        flags = {flag for source in fact.sources for flag in own.get(source, ())}
        trust = fact.trust if own.keys() >= set(fact.sources) else "external"
        found.append(fact.model_copy(update={"flags": tuple(sorted(flags)), "trust": trust}))
    return found
