"""Episodes of earlier sessions for one request: around what the search found, then the latest of them all.

Forming one reads turns and their sentences, so no more sessions are looked at than there is room for; how many were
not, and why, is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muniment.core.instants import parse_instant
from muniment.core.policy import ComposePolicy
from muniment.core.ports.engine import Reader
from muniment.memory._index import Ints, StoredIndex
from muniment.memory.sessions import form_episodes
from muniment.memory.turn_reading import TurnCache, turns_by_id
from muniment.memory.turns import EpisodeCandidate
from muniment.packets.allocate import floors_of
from muniment.packets.cued_turns import CuedTurns, Hits, Mask
from muniment.packets.cues import AskedCues
from muniment.packets.pool import ComposeRequest, HitCandidate, NotGathered
from muniment.store.context import Context

__all__ = ["Episodes", "gather_episodes"]

EPISODE_SESSIONS = 4
"""Sessions that give an episode for their hits, where there is room for so many."""
RECENT_SESSIONS = 2
"""Sessions that give one for being the latest."""
TOKENS_AN_EPISODE = 60
"""An episode worth its place takes about so many tokens."""
CHARS_A_TOKEN = 4
TOKENS_A_QUOTE = 30
"""About what a quote takes."""
FRESH_MIN = 2
"""Turns that will hardly be quoted, without which a stretch says little of its own."""
AROUND = 3
"""An episode begins this many turns before the best hit."""
AROUND_MAX = 16
"""Turns of which an episode is formed."""
TIGHT_AROUND, TIGHT_MAX = 1, 4
"""The same of an episode that has little room: what the hit answers, and what it is answered."""
_NEVER = np.iinfo(np.int64).min
_SET = set(EpisodeCandidate.model_fields)


class Episodes(NamedTuple):
    """Episodes, best first, and how many sessions gave none, by reason."""

    episodes: tuple[EpisodeCandidate, ...]
    not_gathered: NotGathered


class _Sessions(NamedTuple):
    """The other sessions of a user that have turns, by number of the index."""

    held: int
    open: Ints
    """Those that the cues leave, latest first."""
    out_of_window: int
    not_cued: int
    unread: int


def gather_episodes(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    policy: ComposePolicy,
    index: StoredIndex,
    found: Hits,
    cues: AskedCues,
    cued: CuedTurns,
) -> Episodes:
    """Stretches around the hits of other sessions, best first, then the end of the latest other sessions."""
    here = index.session_number(request.scope.session_id)
    said_by = int(parse_instant(request.now).timestamp())
    sessions = _sessions(index, here, said_by, cued)
    reach = _reach(request, policy, found.hits)
    best: dict[int, int] = {}
    for ordinal, session in zip(found.ordinals, index.session[list(found.ordinals)].tolist(), strict=True):
        if session != here:
            best.setdefault(session, ordinal)
    stretches = _around(index, best, found, cued, reach)
    stretches_max = min(reach.sessions, len(stretches) + RECENT_SESSIONS)
    for session in map(int, sessions.open):
        if len(stretches) >= stretches_max:
            break
        if session not in best:
            stretches[session] = _end(index, session, said_by, cued.within)
    episodes = _formed(ctx, reader, request, index, cues, stretches.values())
    scores = {hit.turn.id: hit.score for hit in found.hits}
    formed = [_scored(episode, scores) for episode in episodes]
    formed.sort(key=lambda episode: (-episode.score, _backwards(episode.end), episode.episode_id))
    gathered = len({episode.session_id for episode in formed})
    rest = "over_budget" if reach.is_tight else "count_limit"
    closed = {
        "out_of_window": sessions.out_of_window,
        "not_cued": sessions.not_cued,
        "unread": sessions.unread,
    }
    open_count = sessions.held - sum(closed.values())
    reasons = closed | {"empty": len(stretches) - gathered, rest: open_count - len(stretches)}
    return Episodes(tuple(formed), NotGathered.of("sessions", sessions.held, gathered, reasons))


class _Reach(NamedTuple):
    """From how many sessions with hits, and how many in all, episodes are formed, and of which turns each."""

    matched: int
    sessions: int
    before: int
    turns: int
    quotes: int
    """So many hits will be quoted, or more."""

    @property
    def is_tight(self) -> bool:
        return self.turns < AROUND_MAX


def _reach(request: ComposeRequest, policy: ComposePolicy, hits: Sequence[HitCandidate]) -> _Reach:
    """Where the hits alone would fill the budget, only as many as the floor of episodes has room for."""
    budget = request.budget
    if sum([len(hit.turn.text) for hit in hits]) < CHARS_A_TOKEN * budget.max_tokens:
        return _Reach(EPISODE_SESSIONS, EPISODE_SESSIONS + RECENT_SESSIONS, AROUND, AROUND_MAX, 0)
    floor = floors_of(policy, request.purpose, budget, budget.max_tokens).kept.get("episodes", 0)
    count = min(EPISODE_SESSIONS, floor // TOKENS_AN_EPISODE)
    return _Reach(count, count, TIGHT_AROUND, TIGHT_MAX, budget.max_tokens // TOKENS_A_QUOTE)


def _sessions(index: StoredIndex, here: int | None, said_by: int, cued: CuedTurns) -> _Sessions:
    """By when something was last said in them up to a moment, as far as the cues let it be told."""
    whole, order = index.kept("session ends", lambda: _latest_first(_ends(index, None)))
    held = len(order) - (here is not None)
    if cued.within is None and (not len(order) or int(whole[order[0]]) <= said_by):
        return _Sessions(held, order if here is None else order[order != here], 0, 0, 0)
    others = whole > _NEVER
    if here is not None:
        others[here] = False
    if cued.within is None:
        ends, in_range = whole, held
    else:
        ends = _ends(index, cued.within)
        in_range = held
        if cued.in_range is not None:
            in_range = int(np.count_nonzero(others & (_ends(index, cued.in_range) > _NEVER)))
    is_left = others & (ends > _NEVER)
    left, unread = int(np.count_nonzero(is_left)), 0
    if cued.unlabelled is not None and cued.unread:
        hidden = cued.unlabelled if cued.in_range is None else cued.unlabelled & cued.in_range
        unread = int(np.count_nonzero(others & ~is_left & (_ends(index, hidden) > _NEVER)))
    if len(ends) and int(ends.max()) > said_by:  # asked about an earlier moment
        until = index.ts <= said_by
        ends = _ends(index, until if cued.within is None else until & cued.within)
    latest = _latest_first(np.where(others, ends, _NEVER))[1]
    return _Sessions(held, latest, held - in_range, in_range - left - unread, unread)


def _latest_first(ends: Ints) -> tuple[Ints, Ints]:
    """The ends of sessions, and the numbers of those that have one, latest first."""
    (numbers,) = (ends > _NEVER).nonzero()
    return ends, numbers[np.lexsort((-numbers, -ends[numbers]))]


def _ends(index: StoredIndex, among: Mask | None) -> Ints:
    """For each session when the last of its turns was said, of those that are meant; never, where none is."""
    ends = np.full(len(index.session_ids), _NEVER)
    if among is None:
        np.maximum.at(ends, index.session, index.ts)
    else:
        np.maximum.at(ends, index.session[among], index.ts[among])
    return ends


def _around(
    index: StoredIndex, best: Mapping[int, int], found: Hits, cued: CuedTurns, reach: _Reach
) -> dict[int, Sequence[int]]:
    """By session, the turns around its best hit. Where there is little room, sessions first of which not everything
    will be quoted anyway.
    """
    likely = frozenset(found.ordinals[: reach.quotes]) if reach.is_tight else frozenset()
    stretches: dict[int, Sequence[int]] = {}
    told_already: dict[int, Sequence[int]] = {}
    for session, ordinal in best.items():
        if len(stretches) >= reach.matched:
            break
        begin, end = index.session_span(session)
        first = max(begin, ordinal - reach.before)
        stretch = _left(range(first, min(end, first + reach.turns)), cued.in_range)
        is_fresh = not reach.is_tight or sum(each not in likely for each in stretch) >= FRESH_MIN
        (stretches if is_fresh else told_already)[session] = stretch
    for session, stretch in told_already.items():
        if len(stretches) >= reach.matched:
            break
        stretches[session] = stretch
    return stretches


def _end(index: StoredIndex, session: int, said_by: int, within: Mask | None) -> Sequence[int]:
    """The last turns of a session, up to a moment, and as far as the cues leave them."""
    begin, end = index.session_span(session)
    is_meant = index.ts[begin:end] <= said_by
    if within is not None:
        is_meant &= within[begin:end]
    (places,) = is_meant.nonzero()
    ordinals: list[int] = (places[-AROUND_MAX:] + begin).tolist()
    return ordinals


def _left(ordinals: Sequence[int], in_range: Mask | None) -> Sequence[int]:
    return ordinals if in_range is None else [ordinal for ordinal in ordinals if in_range[ordinal]]


def _formed(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    index: StoredIndex,
    cues: AskedCues,
    stretches: Iterable[Sequence[int]],
) -> list[EpisodeCandidate]:
    """The episodes of stretches that have something to say; nothing of what lies outside a time range."""
    tenant_id = request.scope.tenant_id
    ids = [[index.id(ordinal) for ordinal in stretch] for stretch in stretches]
    flat = [id_ for stretch in ids for id_ in stretch]
    turns = turns_by_id(ctx, reader, tenant_id, flat, is_asked_later=True) if flat else {}
    cache = ctx.cache(TurnCache)
    episodes: list[EpisodeCandidate] = []
    for stretch in ids:
        read = [turns[id_].read for id_ in stretch if id_ in turns]
        if cues.is_wall:
            read = [each for each in read if cues.bars(each.turn.ts) is None]
        named = (each.turn.id for each in read)
        episodes += cache.glean("episodes", tenant_id, named, lambda read=read: form_episodes(read, {}))  # type: ignore[misc]
    return [episode for episode in episodes if episode.lines]


def _scored(episode: EpisodeCandidate, scores: Mapping[str, float]) -> EpisodeCandidate:
    score = max([scores.get(source, 0.0) for source in episode.sources], default=0.0)
    return EpisodeCandidate.unchecked(episode.__dict__ | {"score": score}, _SET) if score else episode


def _backwards(text: str) -> tuple[int, ...]:
    return tuple(-ord(char) for char in text)
