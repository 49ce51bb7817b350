"""The turns that a request may quote: where its cues let it look, what they put first, and what the search finds there.

Of every turn that the store holds of the user it is known afterwards whether it was gathered, and if not, why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.policy import Policy
from muniment.core.ports.engine import Reader
from muniment.core.text.analyzer import analyze, term_hash
from muniment.memory._index import Ints, StoredIndex, role_number
from muniment.memory.ranking import Reach
from muniment.memory.search import FoundTurn, find_turns, labelled_turns
from muniment.memory.turn_reading import turns_by_id
from muniment.packets.cues import AskedCues
from muniment.packets.pool import CUE_PART, SAID_LATELY, ComposeRequest, HitCandidate, NotGathered
from muniment.store.context import Context

__all__ = ["CuedTurns", "Hits", "find_hits", "read_cued", "with_newer_results", "with_newest_own"]

TOKENS_A_HIT = 16
HITS_MIN = 20
"""No more hits are gathered than could fit: a line of a prompt takes this many tokens or more."""
LABELLED_TURNS_MAX = 50_000
"""Turns whose labels are read for tags and entities: of a user who has more, the newest."""
_OWN_MAX = 128
_TOKENS_A_SHORT_TURN, _TOKENS_A_MARK = 8, 4
_USER = role_number("user")
_EPOCH_SECONDS = date(1970, 1, 1).toordinal() * 86_400
"""Of 1970, as an `Instant` counts its seconds."""
_PART_DIGITS = 6
_HIT_FIELDS = set(HitCandidate.model_fields)

Mask = npt.NDArray[np.bool_]


class CuedTurns(NamedTuple):
    """What the cues make of the turns of an index, turn by turn."""

    within: Mask | None
    """May it be told at all? None where every turn may."""
    in_range: Mask | None
    """Does it lie within a time range that is a wall? None where there is no such range."""
    cues: Ints | None
    """How many of the tags, entities, keywords, and of a soft range, it carries; None where nothing is asked for."""
    out_of_window: int
    not_cued: int
    unread: int
    """How many turns are kept out, and why."""
    unlabelled: Mask | None
    """Were its labels left unread, of too many? None where those of every turn were read, or none was asked for."""

    @property
    def first(self) -> Mask | None:
        """Those that come before the others; None where none does."""
        if self.cues is None:
            return None
        first = self.cues > 0 if self.within is None else (self.cues > 0) & self.within
        return first if first.any() else None


def read_cued(ctx: Context, reader: Reader, request: ComposeRequest, index: StoredIndex, cues: AskedCues) -> CuedTurns:
    """Which turns the cues of a request let in, and which they put first."""
    in_range = _in_range(index.ts, cues) if cues.is_wall else None
    lifts = [_in_range(index.ts, cues)] if cues.has_range and cues.is_soft else []
    within = in_range
    inside = len(index) if within is None else int(np.count_nonzero(within))
    not_cued = unread = 0
    unlabelled: Mask | None = None
    if cues.tags or cues.entities:
        carrying, unlabelled = _carrying(ctx, reader, request, index, cues)
        lifts.append(carrying)
        chosen = carrying if within is None else carrying & within
        if cues.chooses and chosen.any():
            if unlabelled is not None:
                left_out = unlabelled & ~chosen
                unread = int(np.count_nonzero(left_out if within is None else left_out & within))
            within, not_cued = chosen, inside - int(np.count_nonzero(chosen)) - unread
    if cues.keywords:
        lifts.append(_saying(index, cues.keywords))
    counted: Ints | None = None
    for lifted in lifts:
        counted = lifted.astype(np.int8) if counted is None else counted + lifted
    return CuedTurns(within, in_range, counted, len(index) - inside, not_cued, unread, unlabelled)


def _in_range(ts: Ints, cues: AskedCues) -> Mask:
    """By whole seconds: the composer looks at what was found once more, exactly."""
    found = np.ones(len(ts), bool)
    if cues.start is not None:
        found &= ts >= cues.start.seconds - _EPOCH_SECONDS
    if cues.end is not None:
        found &= ts <= cues.end.seconds - _EPOCH_SECONDS
    return found


def _carrying(
    ctx: Context, reader: Reader, request: ComposeRequest, index: StoredIndex, cues: AskedCues
) -> tuple[Mask, Mask | None]:
    """The turns that carry a tag or an entity as a label, or say an entity; and those whose labels were not read."""
    ids = index.ids()
    read = ids
    unlabelled: Mask | None = None
    if len(ids) > LABELLED_TURNS_MAX:
        newest = np.argsort(-index.ts, kind="stable")[:LABELLED_TURNS_MAX]
        read = [ids[ordinal] for ordinal in newest.tolist()]
        unlabelled = np.ones(len(ids), bool)
        unlabelled[newest] = False
    whose = request.scope.tenant_id, request.scope.user_id
    labelled = labelled_turns(ctx, reader, *whose, read, tags=cues.tags, entities=cues.entities)
    found = np.fromiter((id_ in labelled for id_ in ids), bool, len(ids))
    return found | _saying(index, cues.entities), unlabelled


def _saying(index: StoredIndex, words: Sequence[str]) -> Mask:
    """The turns whose own text has all terms of one of the words."""
    found = np.zeros(len(index), bool)
    for word in words:
        terms = [term_hash(term) for term in dict.fromkeys(analyze(word))]
        if not terms:
            continue
        counted = np.zeros(len(index), np.int32)
        for term in terms:
            counted[index.postings(term)[0]] += 1
        found |= counted == len(terms)
    return found


class Hits(NamedTuple):
    """Turns that may be quoted, and how many were not gathered, by reason."""

    hits: tuple[HitCandidate, ...]
    ordinals: tuple[int, ...]
    """Of the hits, by the index."""
    not_gathered: NotGathered
    eligible: Mask | None = None
    """Of every turn: was there a reason to show it? None where there was for all, or nothing was asked."""

    def at(self, ordinal: int) -> HitCandidate | None:
        """The hit of a turn, by its ordinal."""
        return self.hits[self.ordinals.index(ordinal)] if ordinal in self.ordinals else None

    def marked(self, newest: frozenset[int]) -> Hits:
        """With the reason `SAID_LATELY` for the hits that are among these turns."""
        hits = [
            hit.model_copy(update={"reasons": (*hit.reasons, SAID_LATELY)}) if ordinal in newest else hit
            for ordinal, hit in zip(self.ordinals, self.hits, strict=True)
        ]
        return self._replace(hits=tuple(hits))

    def followed_by(self, hits: Mapping[int, HitCandidate]) -> Hits:
        """With these hits, none of which is here, behind the others."""
        every = (*self.hits, *hits.values())
        return Hits(every, (*self.ordinals, *hits), self._counted_without(list(hits)), self.eligible)

    def _counted_without(self, fresh: Sequence[int]) -> NotGathered:
        if "no_query" in self.not_gathered.reasons:
            return self.not_gathered.less(len(fresh), {"no_query": len(fresh)})
        matched = sum(self.eligible is None or bool(self.eligible[ordinal]) for ordinal in fresh)
        return self.not_gathered.less(len(fresh), {"count_limit": matched, "no_match": len(fresh) - matched})


def find_hits(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    policy: Policy,
    asked: str,
    index: StoredIndex,
    cued: CuedTurns,
) -> Hits:
    """What the search finds for what is asked, where the cues let it look; without a question, the newest there."""
    reasons = {"out_of_window": cued.out_of_window, "not_cued": cued.not_cued, "unread": cued.unread}
    inside = len(index) - sum(reasons.values())
    eligible: Mask | None = None
    if asked.strip():
        found, reach = _searched(ctx, reader, request, policy, asked, index, cued)
        eligible = reach.eligible
        reasons |= {"count_limit": reach.matched - len(found), "no_match": inside - reach.matched}
    else:
        chosen = cued.within if cued.first is None else cued.first
        found = _newest(ctx, reader, request, policy.compose.quotes_max, index, cued, chosen)
        shown = 0 if chosen is None else int(np.count_nonzero(chosen))
        reasons |= {"count_limit": shown - len(found), "no_query": inside - shown}
    counted = NotGathered.of("turns", len(index), len(found), reasons)
    return Hits(tuple(found.values()), tuple(found), counted, eligible)


def _searched(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    policy: Policy,
    asked: str,
    index: StoredIndex,
    cued: CuedTurns,
) -> tuple[dict[int, HitCandidate], Reach]:
    """The hits by ordinal, best first, and which turns there was a reason to show."""
    k = min(policy.compose.candidates_max, max(HITS_MIN, request.budget.max_tokens // TOKENS_A_HIT))
    reach = Reach()

    def find(among: Mask | None, reach: Reach | None) -> list[FoundTurn]:
        scope = request.scope
        return find_turns(
            ctx,
            reader,
            scope.tenant_id,
            scope.user_id,
            asked,
            k,
            request.now,
            policy.recall,
            is_asked_later=True,
            index=index,
            among=among,
            reach=reach,
        )

    found = {each.ranked.ordinal: each for each in find(cued.within, reach)}
    if cued.first is not None:
        lifted = {each.ranked.ordinal: each for each in find(cued.first, None)}
        found = dict(list((lifted | found).items())[:k])
    return {ordinal: _hit(each, cued, asked) for ordinal, each in found.items()}, reach


def _hit(found: FoundTurn, cued: CuedTurns, asked: str) -> HitCandidate:
    ranked = found.ranked
    parts = {name: round(value, _PART_DIGITS) for name, value in ranked.parts.items()}
    reasons = found.reasons
    if cued.cues is not None and (carried := int(cued.cues[ranked.ordinal])):
        parts, reasons = {**parts, CUE_PART: float(carried)}, (*reasons, "a cue points at it")
    return HitCandidate.unchecked(
        {
            "turn": found.turn.about(asked),
            "score": ranked.chance,
            "parts": parts,
            "reasons": reasons,
        },
        _HIT_FIELDS,
    )


def with_newest_own(
    ctx: Context, reader: Reader, request: ComposeRequest, index: StoredIndex, cued: CuedTurns, found: Hits
) -> Hits:
    """The hits, and behind them the newest turns of the user's own: they fill the room that nothing else needs."""
    own = index.role == _USER
    among = own if cued.within is None else own & cued.within
    newest = index.newest(among, min(_OWN_MAX, request.budget.max_tokens // _TOKENS_A_SHORT_TURN))
    room = np.cumsum(index.length[newest] + _TOKENS_A_MARK)  # a term takes a token or more
    newest = newest[: 1 + int(np.searchsorted(room, request.budget.max_tokens))]
    ids = {each: index.id(each) for each in newest if each not in found.ordinals}
    turns = turns_by_id(ctx, reader, request.scope.tenant_id, list(ids.values()), is_asked_later=True)
    given = {"score": 0.0, "parts": {}, "reasons": (SAID_LATELY,)}
    fresh = {
        each: HitCandidate.unchecked({**given, "turn": turns[id_].read.turn}, _HIT_FIELDS)
        for each, id_ in ids.items()
        if id_ in turns
    }
    return found.marked(frozenset(newest)).followed_by(fresh)


def with_newer_results(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    index: StoredIndex,
    cued: CuedTurns,
    found: Hits,
    outdated: Mapping[str, str],
) -> Hits:
    """Add to the hits the newer call of each one that no longer holds: neither is shown without it."""
    held = {hit.turn.id for hit in found.hits}
    scores = {outdated[hit.turn.id]: hit.score for hit in reversed(found.hits) if hit.turn.id in outdated}
    missing = [id_ for id_ in scores if id_ not in held]
    if not missing:
        return found
    ordinals = {id_: ordinal for ordinal, id_ in enumerate(index.ids()) if id_ in missing}
    turns = turns_by_id(ctx, reader, request.scope.tenant_id, list(ordinals), is_asked_later=True)
    newer = {
        ordinal: HitCandidate.unchecked(
            {
                "turn": turns[id_].read.turn,
                "score": scores[id_],
                "parts": {},
                "reasons": ("the newer call of a result that matches",),
            },
            _HIT_FIELDS,
        )
        for id_, ordinal in ordinals.items()
        if id_ in turns and (cued.within is None or cued.within[ordinal])
    }
    return found.followed_by(newer)


def _newest(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    count: int,
    index: StoredIndex,
    cued: CuedTurns,
    chosen: Mask | None,
) -> dict[int, HitCandidate]:
    """Nothing is asked, but a cue points at turns: the newest of them, by ordinal."""
    if chosen is None:
        return {}
    newest = index.newest(chosen, count)
    ids = [index.id(ordinal) for ordinal in newest]
    turns = turns_by_id(ctx, reader, request.scope.tenant_id, ids, is_asked_later=True)
    hits: dict[int, HitCandidate] = {}
    for ordinal, id_ in zip(newest, ids, strict=True):
        if id_ in turns:
            carried = 0 if cued.cues is None else int(cued.cues[ordinal])
            parts = {CUE_PART: float(carried)} if carried else {}
            said = {"turn": turns[id_].read.turn, "score": 0.0, "parts": parts}
            hits[ordinal] = HitCandidate.unchecked({**said, "reasons": ("a cue points at it",)}, _HIT_FIELDS)
    return hits
