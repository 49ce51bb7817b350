"""Finding turns of one user, in all their sessions: the index put together, ranked, and read back from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.canonical import check_text
from muniment.core.instants import format_instant, parse_instant
from muniment.core.limits import checkpoint
from muniment.core.policy import RecallPolicy
from muniment.core.ports.engine import Reader
from muniment.core.record import Numeric
from muniment.core.requests import whole
from muniment.core.scope import imported_note
from muniment.errors import InvalidInput
from muniment.memory._index import StoredIndex
from muniment.memory.hits import Hit
from muniment.memory.index import load_index
from muniment.memory.query import QUERY_CHARS_MAX
from muniment.memory.ranking import Ranked, Reach, rank
from muniment.memory.scoring import weigh_dense
from muniment.memory.turn_reading import LiveTurn, turns_by_id
from muniment.store.context import Context

__all__ = ["FoundTurn", "check_min_score", "check_search", "find_turns", "turn_hit", "unranked_hit"]

SEARCH_MAX = 1000
HitCount = Annotated[int, Numeric(integral=True, minimum=1, maximum=SEARCH_MAX)]
"""How many hits may be asked for, as it is told; a search checks it by hand."""
IN_PART = "analysed in part"
"""Why a turn may be found by its words alone: it was over the budget of work."""
_HIT_FIELDS = set(Hit.model_fields)


class FoundTurn(NamedTuple):
    """A turn and its rank."""

    turn: LiveTurn
    ranked: Ranked

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it was found, and whether only a part of it was analysed."""
        return (*self.ranked.reasons, IN_PART) if self.turn.is_partly_analysed else self.ranked.reasons


def check_search(ctx: Context, query: Any, k: Any, now: Any) -> tuple[str, int, str]:
    """Check a search; answers the part of the query that is read, how many hits are wanted, and the moment it is asked
    at.
    """
    if not isinstance(query, str):
        raise InvalidInput("a query is text", path="$.query")
    check_text(query, "$.query")
    k = whole(k)
    if type(k) is not int or not 1 <= k <= SEARCH_MAX:
        raise InvalidInput(f"k should be a whole number from 1 to {SEARCH_MAX}", path="$.k")
    moment = ctx.clock() if now is None else parse_instant(now, path="$.now")
    return query[:QUERY_CHARS_MAX], k, format_instant(moment)


def check_min_score(min_score: Any) -> float:
    """Check the least score of a hit; where none is given, every hit is wanted."""
    if min_score is None:
        return 0.0
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score <= 1:
        raise InvalidInput(
            "min_score should be a number from 0 to 1",
            path="$.min_score",
            hint="a score is the chance that a hit is evidence: 0.5 keeps what is more likely so than not",
        )
    return float(min_score)


def find_turns(
    ctx: Context,
    reader: Reader,
    tenant_id: str,
    user_id: str,
    query: str,
    k: int,
    now: str,
    policy: RecallPolicy,
    without: frozenset[str] = frozenset(),
    is_asked_later: bool = False,
    index: StoredIndex | None = None,
    among: npt.NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
) -> list[FoundTurn]:
    """The best `k` turns for a query, best first; of all sessions but those that it is `without`.

    `is_asked_later`: see `turns_by_id`. `index`, where the caller has it at hand; `among` and `reach`: see `rank`.
    """
    if index is None:
        index = load_index(ctx, reader, tenant_id, user_id, without)
    dense = None
    if ctx.embedder is not None:
        policy = weigh_dense(policy, ctx.embedder.identity, query)
        if policy.dense_turn or policy.dense_window:
            from muniment.memory.vectors import dense_for

            dense = dense_for(ctx, reader, tenant_id, user_id, index, ctx.embedder, query)

    checkpoint()
    ranked = rank(query, index, policy, parse_instant(now).date(), k, dense, among, reach)
    ids = [index.id(hit.ordinal) for hit in ranked]
    turns = turns_by_id(ctx, reader, tenant_id, ids, is_asked_later=is_asked_later)
    return [FoundTurn(turns[id_], hit) for id_, hit in zip(ids, ranked, strict=True) if id_ in turns]


def turn_hit(found: FoundTurn, kind: Literal["event", "chunk"] = "event", *why: str) -> Hit:
    """What was found, as it is answered."""
    return _hit(found.turn, kind, found.ranked.chance, found.reasons + why, found.ranked.parts)


def unranked_hit(turn: LiveTurn, *why: str) -> Hit:
    """A turn that answers no question, as it is answered."""
    return _hit(turn, "event", 0.0, why, {})


def _hit(
    turn: LiveTurn,
    kind: Literal["event", "chunk"],
    score: float,
    why: tuple[str, ...],
    parts: Mapping[str, float],
) -> Hit:
    """Its parts are the ledger's and the ranking's own, which are typed."""
    origin = turn.imported_from
    why = why if origin is None else (*why, imported_note(origin))  # MV-02
    return Hit.unchecked(
        {
            "id": turn.id,
            "kind": kind,
            "text": turn.text,
            "score": score,
            "ts": turn.ts,
            "sources": (turn.id,),
            "why": why,
            "parts": dict(parts),
            "session_id": turn.session_id,
            "speaker": turn.call or turn.speaker,
            "role": turn.role,
            "trust": turn.trust,
            "flags": turn.flags,
        },
        _HIT_FIELDS,
    )
