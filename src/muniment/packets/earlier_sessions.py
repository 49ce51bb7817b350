"""Episodes of earlier sessions for one request: around what the search found, then the latest of them all.

Forming one reads turns and their sentences, so no more sessions are looked at than there is room for; how many were
not, and why, is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muniment.core.instants import parse_instant
from muniment.core.policy.compose import ComposePolicy
from muniment.core.ports.engine import Condition, Reader
from muniment.memory.caches import TurnCache
from muniment.memory.episodes.forming import form_episodes
from muniment.memory.recall.index import Ints, StoredIndex
from muniment.memory.turn_reading import last_turns, turns_by_id
from muniment.memory.turns import EpisodeCandidate
from muniment.packets.compose.cues import AskedCues
from muniment.packets.compose.floors import floors_of
from muniment.packets.cued_turns import CuedTurns, Mask
from muniment.packets.pool import ComposeRequest, HitCandidate, NotGathered
from muniment.store.context import Context

__all__ = ["Episodes", "gather_episodes"]

EPISODE_SESSIONS = 4
"""Sessions that give an episode for their hits, where there is room for so many."""
RECENT_SESSIONS = 2
"""Sessions that give one for being the latest."""
TOKENS_AN_EPISODE = 40
"""An episode worth its place takes this many tokens or more."""
CHARS_A_TOKEN = 4
AROUND = 3
"""An episode reaches this many turns before its first hit and after its last."""
AROUND_MAX = 16
_NEVER = np.iinfo(np.int64).min


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


def gather_episodes(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    policy: ComposePolicy,
    index: StoredIndex,
    hits: Sequence[HitCandidate],
    cues: AskedCues,
    cued: CuedTurns,
) -> Episodes:
    """Stretches around the hits of other sessions, best first, then the end of the latest other sessions."""
    here = request.scope.session_id
    by_session: dict[str, list[HitCandidate]] = {}
    for hit in hits:
        if hit.turn.session_id != here:
            by_session.setdefault(hit.turn.session_id, []).append(hit)
    sessions = _sessions(index, here, request.now, cued)
    matched_max, sessions_max = _counts(request, policy, hits)
    tried: set[str] = set()
    found: list[EpisodeCandidate] = []
    for session_id, members in list(by_session.items())[:matched_max]:
        tried.add(session_id)
        found += _around(ctx, reader, request, cues, members)
    latest = 0
    for number in sessions.open.tolist():
        if len(tried) >= sessions_max or latest >= RECENT_SESSIONS:
            break
        session_id = index.session_ids[number]
        if session_id not in by_session:
            latest += 1
            tried.add(session_id)
            found += _latest(ctx, reader, request, cues, index, number, cued.within)
    found.sort(key=lambda episode: (-episode.score, _backwards(episode.end), episode.episode_id))
    gathered = len({episode.session_id for episode in found})
    rest = "count_limit" if sessions_max > EPISODE_SESSIONS else "over_budget"
    open_count = sessions.held - sessions.out_of_window - sessions.not_cued
    reasons = {
        "out_of_window": sessions.out_of_window,
        "not_cued": sessions.not_cued,
        "empty": len(tried) - gathered,
        rest: open_count - len(tried),
    }
    return Episodes(tuple(found), NotGathered.of("sessions", sessions.held, gathered, reasons))


def _counts(request: ComposeRequest, policy: ComposePolicy, hits: Sequence[HitCandidate]) -> tuple[int, int]:
    """From how many sessions with hits, and how many in all, episodes are formed: as many as may find room."""
    budget = request.budget
    if sum([len(hit.turn.text) for hit in hits]) < CHARS_A_TOKEN * budget.max_tokens:
        return EPISODE_SESSIONS, EPISODE_SESSIONS + RECENT_SESSIONS
    floor = floors_of(policy, request.purpose, budget, budget.max_tokens).kept.get("episodes", 0)
    count = min(EPISODE_SESSIONS, floor // TOKENS_AN_EPISODE)
    return count, count


def _sessions(index: StoredIndex, here: str, now: str, cued: CuedTurns) -> _Sessions:
    """By when something was last said in them up to now, as far as the cues let it be told."""
    whole = index.kept("session ends", lambda: _ends(index, None))
    others = np.array([session_id != here for session_id in index.session_ids], bool) & (whole > _NEVER)
    held = int(np.count_nonzero(others))
    if cued.within is None:
        ends, in_range = whole, held
    else:
        ends = _ends(index, cued.within)
        in_range = held
        if cued.in_range is not None:
            in_range = int(np.count_nonzero(others & (_ends(index, cued.in_range) > _NEVER)))
    left = int(np.count_nonzero(others & (ends > _NEVER)))
    said_by = int(parse_instant(now).timestamp())
    if len(ends) and int(ends.max()) > said_by:  # asked about an earlier moment
        until = index.ts <= said_by
        ends = _ends(index, until if cued.within is None else until & cued.within)
    (numbers,) = (others & (ends > _NEVER)).nonzero()
    latest = numbers[np.lexsort((-numbers, -ends[numbers]))]
    return _Sessions(held, latest, held - in_range, in_range - left)


def _ends(index: StoredIndex, among: Mask | None) -> Ints:
    """For each session when the last of its turns was said, of those that are meant; never, where none is."""
    ends = np.full(len(index.session_ids), _NEVER)
    if among is None:
        np.maximum.at(ends, index.session, index.ts)
    else:
        np.maximum.at(ends, index.session[among], index.ts[among])
    return ends


def _around(
    ctx: Context, reader: Reader, request: ComposeRequest, cues: AskedCues, members: Sequence[HitCandidate]
) -> list[EpisodeCandidate]:
    """The stretch around the best hit of a session."""
    best = members[0].turn
    first = max(1, best.seq - AROUND)
    where = (*_in_session(request, best.session_id), ("seq", ">=", first), ("seq", "<=", first + AROUND_MAX))
    scores = {hit.turn.id: hit.score for hit in members}
    return [_scored(episode, scores) for episode in _formed(ctx, reader, request, cues, where)]


def _latest(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    cues: AskedCues,
    index: StoredIndex,
    number: int,
    within: Mask | None,
) -> list[EpisodeCandidate]:
    """The end of a session, or of what the cues leave of it."""
    where = _in_session(request, index.session_ids[number])
    if within is not None:
        last = int(((index.session == number) & within).nonzero()[0][-1])
        turns = turns_by_id(ctx, reader, request.scope.tenant_id, [index.id(last)], is_asked_later=True)
        where = (*where, *(("seq", "<=", turn.seq + AROUND) for turn in turns.values()))
    return _formed(ctx, reader, request, cues, where)


def _formed(
    ctx: Context, reader: Reader, request: ComposeRequest, cues: AskedCues, where: tuple[Condition, ...]
) -> list[EpisodeCandidate]:
    """The episodes of a stretch that have something to say; nothing of what lies outside a time range."""
    tenant_id = request.scope.tenant_id
    turns = [turn.read for turn in last_turns(ctx, reader, tenant_id, where, AROUND_MAX)]
    if cues.is_wall:
        turns = [read for read in turns if cues.bars(read.turn.ts) is None]
    ids = (read.turn.id for read in turns)
    episodes = ctx.cache(TurnCache).glean("episodes", tenant_id, ids, lambda: form_episodes(turns, {}))
    return [episode for episode in episodes if episode.lines]


def _in_session(request: ComposeRequest, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", request.scope.user_id), ("session_id", "=", session_id)


def _scored(episode: EpisodeCandidate, scores: Mapping[str, float]) -> EpisodeCandidate:
    return episode.model_copy(update={"score": max(scores.get(source, 0.0) for source in episode.sources)})


def _backwards(text: str) -> tuple[int, ...]:
    return tuple(-ord(char) for char in text)
