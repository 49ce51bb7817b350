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
TOKENS_AN_EPISODE = 60
"""An episode worth its place takes about so many tokens."""
CHARS_A_TOKEN = 4
AROUND = 3
"""An episode reaches this many turns before its first hit and after its last."""
AROUND_MAX = 16
"""Turns of which an episode is formed."""
TIGHT_AROUND, TIGHT_MAX = 1, 4
"""The same of an episode that has little room: what the hit answers, and what it is answered."""
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
    reach = _reach(request, policy, hits)
    tried: set[str] = set()
    found: list[EpisodeCandidate] = []
    for session_id, members in list(by_session.items())[: reach.matched]:
        tried.add(session_id)
        found += _around(ctx, reader, request, cues, members, reach.turns)
    latest = 0
    for number in sessions.open.tolist():
        if len(tried) >= reach.sessions or latest >= RECENT_SESSIONS:
            break
        session_id = index.session_ids[number]
        if session_id not in by_session:
            latest += 1
            tried.add(session_id)
            found += _latest(ctx, reader, request, cues, index, number, cued.within)
    found.sort(key=lambda episode: (-episode.score, _backwards(episode.end), episode.episode_id))
    gathered = len({episode.session_id for episode in found})
    rest = "over_budget" if reach.is_tight else "count_limit"
    open_count = sessions.held - sessions.out_of_window - sessions.not_cued
    reasons = {
        "out_of_window": sessions.out_of_window,
        "not_cued": sessions.not_cued,
        "empty": len(tried) - gathered,
        rest: open_count - len(tried),
    }
    return Episodes(tuple(found), NotGathered.of("sessions", sessions.held, gathered, reasons))


class _Reach(NamedTuple):
    """From how many sessions with hits, and how many in all, episodes are formed, and of how many turns each."""

    matched: int
    sessions: int
    turns: int

    @property
    def is_tight(self) -> bool:
        return self.turns < AROUND_MAX


def _reach(request: ComposeRequest, policy: ComposePolicy, hits: Sequence[HitCandidate]) -> _Reach:
    """Where the hits alone would fill the budget, only as many as the floor of episodes has room for."""
    budget = request.budget
    if sum([len(hit.turn.text) for hit in hits]) < CHARS_A_TOKEN * budget.max_tokens:
        return _Reach(EPISODE_SESSIONS, EPISODE_SESSIONS + RECENT_SESSIONS, AROUND_MAX)
    floor = floors_of(policy, request.purpose, budget, budget.max_tokens).kept.get("episodes", 0)
    count = min(EPISODE_SESSIONS, floor // TOKENS_AN_EPISODE)
    return _Reach(count, count, TIGHT_MAX)


def _sessions(index: StoredIndex, here: str, now: str, cued: CuedTurns) -> _Sessions:
    """By when something was last said in them up to now, as far as the cues let it be told."""
    whole, order = index.kept("session ends", lambda: _latest_first(_ends(index, None)))
    number = index.session_number(here)
    held = len(order) - (number is not None)
    said_by = int(parse_instant(now).timestamp())
    if cued.within is None and (not len(order) or int(whole[order[0]]) <= said_by):
        return _Sessions(held, order if number is None else order[order != number], 0, 0)
    others = whole > _NEVER
    if number is not None:
        others[number] = False
    if cued.within is None:
        ends, in_range = whole, held
    else:
        ends = _ends(index, cued.within)
        in_range = held
        if cued.in_range is not None:
            in_range = int(np.count_nonzero(others & (_ends(index, cued.in_range) > _NEVER)))
    left = int(np.count_nonzero(others & (ends > _NEVER)))
    if len(ends) and int(ends.max()) > said_by:  # asked about an earlier moment
        until = index.ts <= said_by
        ends = _ends(index, until if cued.within is None else until & cued.within)
    latest = _latest_first(np.where(others, ends, _NEVER))[1]
    return _Sessions(held, latest, held - in_range, in_range - left)


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
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    cues: AskedCues,
    members: Sequence[HitCandidate],
    turns_max: int,
) -> list[EpisodeCandidate]:
    """The stretch around the best hit of a session."""
    best = members[0].turn
    first = max(1, best.seq - (AROUND if turns_max == AROUND_MAX else TIGHT_AROUND))
    where = (*_in_session(request, best.session_id), ("seq", ">=", first), ("seq", "<", first + turns_max))
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
