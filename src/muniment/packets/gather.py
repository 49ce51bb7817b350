"""Gather the pool of one request: search hits, this session's turns, and the stores' items with their match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from muniment.contracts.packet import OpenLoop
from muniment.core.instants import parse_instant
from muniment.core.policy import ComposePolicy, FactPolicy, Policy
from muniment.core.ports.engine import Condition, Reader
from muniment.core.scope import Scope
from muniment.core.text.analyzer import analyze, term_hash
from muniment.memory._fact_records import StoredInsight, StoredProcedure, is_many_valued, words_of
from muniment.memory._index import ROLES, Ints, StoredIndex, role_number
from muniment.memory.evidence import NOTHING, Wanted, match_text, read_wanted
from muniment.memory.fact_rows import LEVELS, level_of, newest_facts
from muniment.memory.facts import FoundFact, find_facts
from muniment.memory.index import load_index
from muniment.memory.profile import LASTING_MIN, build_profile
from muniment.memory.query import QUERY_CHARS_MAX
from muniment.memory.ranking import Reach
from muniment.memory.search import FoundTurn, find_turns, labelled_turns
from muniment.memory.sessions import form_episodes, open_loops, summary_lines
from muniment.memory.tool_results import WRITE, changed, did
from muniment.memory.turn_reading import TurnCache, last_turns, turns_by_id
from muniment.memory.turns import EpisodeCandidate, ReadTurn
from muniment.packets._run_section import gather_run
from muniment.packets.admission import AskedCues, barred
from muniment.packets.allocate import floors_of
from muniment.packets.page import may_show
from muniment.packets.pool import (
    CUE_PART,
    SAID_LATELY,
    ComposeRequest,
    FactCandidate,
    HitCandidate,
    InsightCandidate,
    NotGathered,
    Pool,
    ProcedureCandidate,
    ProfileCandidate,
    ToolCandidate,
)
from muniment.store.context import Context
from muniment.store.items import Item, latest, newest_items

__all__ = [
    "CuedTurns",
    "Episodes",
    "Hits",
    "Stores",
    "find_hits",
    "gather_episodes",
    "gather_pool",
    "load_stores",
    "read_cued",
    "with_newer_results",
    "with_newest_own",
]

TOKENS_A_HIT = 16
HITS_MIN = 20
"""The minimum tokens of a prompt line, which bounds the number of useful hits."""
LABELLED_TURNS_MAX = 50_000
"""Maximum number of turns whose labels are read for tags and entities, newest first."""
_OWN_MAX = 128
_TOKENS_A_SHORT_TURN, _TOKENS_A_MARK = 8, 4
_USER = role_number("user")
_EPOCH_SECONDS = date(1970, 1, 1).toordinal() * 86_400
"""The epoch 1970 in the seconds of an `Instant`."""
_PART_DIGITS = 6
_HIT_FIELDS = set(HitCandidate.model_fields)

Mask = npt.NDArray[np.bool_]


class CuedTurns(NamedTuple):
    """The effect of cues on the turns of an index, turn by turn."""

    within: Mask | None
    """Mask of turns that may be shown; None for all."""
    in_range: Mask | None
    """Mask of turns within a hard time range; None without such a range."""
    cues: Ints | None
    """The number of cues (tags, entities, keywords, soft range) that each turn matches; None without cues."""
    out_of_window: int
    not_cued: int
    unread: int
    """Excluded turns, by reason."""
    unlabelled: Mask | None
    """Mask of turns whose labels were not read because there are too many; None if all or none were needed."""

    @property
    def first(self) -> Mask | None:
        """Mask of preferred turns; None if there are none."""
        if self.cues is None:
            return None
        first = self.cues > 0 if self.within is None else (self.cues > 0) & self.within
        return first if first.any() else None


def read_cued(ctx: Context, reader: Reader, request: ComposeRequest, index: StoredIndex, cues: AskedCues) -> CuedTurns:
    """The turns that a request's cues allow, and those they prefer."""
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
    """By whole seconds; the composer checks hits again, exactly."""
    found = np.ones(len(ts), bool)
    if cues.start is not None:
        found &= ts >= cues.start.seconds - _EPOCH_SECONDS
    if cues.end is not None:
        found &= ts <= cues.end.seconds - _EPOCH_SECONDS
    return found


def _carrying(
    ctx: Context, reader: Reader, request: ComposeRequest, index: StoredIndex, cues: AskedCues
) -> tuple[Mask, Mask | None]:
    """The turns with a tag or entity as a label, or an entity in their text; and those with unread labels."""
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
    """Quotable turns, and the number not gathered, by reason."""

    hits: tuple[HitCandidate, ...]
    ordinals: tuple[int, ...]
    """The hits' ordinals in the index."""
    not_gathered: NotGathered
    eligible: Mask | None = None
    """Mask of turns with a reason to be shown; None for all, or without a query."""

    def at(self, ordinal: int) -> HitCandidate | None:
        """The hit of a turn, by its ordinal."""
        return self.hits[self.ordinals.index(ordinal)] if ordinal in self.ordinals else None

    def marked(self, newest: frozenset[int]) -> Hits:
        """The hits, with the reason `SAID_LATELY` added to those among these turns."""
        hits = [
            hit.model_copy(update={"reasons": (*hit.reasons, SAID_LATELY)}) if ordinal in newest else hit
            for ordinal, hit in zip(self.ordinals, self.hits, strict=True)
        ]
        return self._replace(hits=tuple(hits))

    def followed_by(self, hits: Mapping[int, HitCandidate]) -> Hits:
        """The hits followed by these new ones."""
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
    """Search for the query within the turns that cues allow; without a query, return the newest."""
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
    """The hits by ordinal, best first, and the reach of the search."""
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
    """The hits, followed by the user's newest turns, which fill otherwise unused room."""
    own = index.role == _USER
    among = own if cued.within is None else own & cued.within
    newest = index.newest(among, min(_OWN_MAX, request.budget.max_tokens // _TOKENS_A_SHORT_TURN))
    room = np.cumsum(index.length[newest] + _TOKENS_A_MARK)  # some are repeated or cannot be shown
    newest = newest[: 1 + int(np.searchsorted(room, 2 * request.budget.max_tokens))]
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
    """Add the newer call for each outdated hit: neither is shown without it."""
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
    """The newest turns that match a cue, by ordinal, when there is no query."""
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


EPISODE_SESSIONS = 4
"""Sessions that give an episode for their hits, if there is room."""
RECENT_SESSIONS = 2
"""Sessions that give an episode for being the latest."""
TOKENS_AN_EPISODE = 60
"""Approximate tokens of a useful episode."""
CHARS_A_TOKEN = 4
TOKENS_A_QUOTE = 30
"""Approximate tokens of a quote."""
FRESH_MIN = 2
"""The number of turns unlikely to be quoted without which a stretch adds little."""
AROUND = 3
"""An episode begins this many turns before the best hit."""
AROUND_MAX = 16
"""Maximum number of turns in an episode."""
TIGHT_AROUND, TIGHT_MAX = 1, 4
"""The same for an episode with little room: the hit with the turns before and after it."""
_NEVER = np.iinfo(np.int64).min
_SET = set(EpisodeCandidate.model_fields)


class Episodes(NamedTuple):
    """Episodes, best first, and the number of sessions without one, by reason."""

    episodes: tuple[EpisodeCandidate, ...]
    not_gathered: NotGathered


class _Sessions(NamedTuple):
    """A user's other sessions with turns, by session number of the index."""

    held: int
    open: Ints
    """Those that the cues allow, latest first."""
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
    """The number of sessions with hits, and in all, that give episodes, and the turns of each."""

    matched: int
    sessions: int
    before: int
    turns: int
    quotes: int
    """The minimum number of hits that will be quoted."""

    @property
    def is_tight(self) -> bool:
        return self.turns < AROUND_MAX


def _reach(request: ComposeRequest, policy: ComposePolicy, hits: Sequence[HitCandidate]) -> _Reach:
    """If the hits alone would fill the budget, only as many as the floor of episodes has room for."""
    budget = request.budget
    if sum([len(hit.turn.text) for hit in hits]) < CHARS_A_TOKEN * budget.max_tokens:
        return _Reach(EPISODE_SESSIONS, EPISODE_SESSIONS + RECENT_SESSIONS, AROUND, AROUND_MAX, 0)
    floor = floors_of(policy, request.purpose, budget, budget.max_tokens).kept.get("episodes", 0)
    count = min(EPISODE_SESSIONS, floor // TOKENS_AN_EPISODE)
    return _Reach(count, count, TIGHT_AROUND, TIGHT_MAX, budget.max_tokens // TOKENS_A_QUOTE)


def _sessions(index: StoredIndex, here: int | None, said_by: int, cued: CuedTurns) -> _Sessions:
    """Sessions by the time of their last turn up to a moment, within the cues."""
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
    if len(ends) and int(ends.max()) > said_by:  # a question about an earlier moment
        until = index.ts <= said_by
        ends = _ends(index, until if cued.within is None else until & cued.within)
    latest = _latest_first(np.where(others, ends, _NEVER))[1]
    return _Sessions(held, latest, held - in_range, in_range - left - unread, unread)


def _latest_first(ends: Ints) -> tuple[Ints, Ints]:
    """The end times of sessions, and the numbers of those with one, latest first."""
    (numbers,) = (ends > _NEVER).nonzero()
    return ends, numbers[np.lexsort((-numbers, -ends[numbers]))]


def _ends(index: StoredIndex, among: Mask | None) -> Ints:
    """The time of each session's last turn among those masked, or a minimum value if there is none."""
    ends = np.full(len(index.session_ids), _NEVER)
    if among is None:
        np.maximum.at(ends, index.session, index.ts)
    else:
        np.maximum.at(ends, index.session[among], index.ts[among])
    return ends


def _around(
    index: StoredIndex, best: Mapping[int, int], found: Hits, cued: CuedTurns, reach: _Reach
) -> dict[int, Sequence[int]]:
    """The turns around each session's best hit. With little room, prefer sessions not fully quoted anyway."""
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
    """The last turns of a session up to a moment, within the cues."""
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
    """The non-empty episodes of stretches, within the time range."""
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


SESSION_TURNS = 60
"""Turns of this session searched for open questions."""
TOOL_CHARS_MAX = 200
_WROTE = term_hash(did(WRITE))
"""The mark of a call that changed, created or ended something."""
_ACTED_READ = 4
"""The number of such calls examined, as a multiple of those that may be shown; some are repetitions."""
_TOOL = ROLES.index("other")
"""Among turns, only a tool's result has a role other than user and assistant."""

_WISH_MIN = 170
"""From this wish score on, a standing wish comes first in a packet: tasks and remarks score less, plain wishes 198 or
more.
"""

T = TypeVar("T")


def gather_pool(
    ctx: Context, reader: Reader, request: ComposeRequest, policy: Policy, opening: Mapping[str, Any] | None = None
) -> Pool:
    """Gather everything the composer may choose from. A caller that keeps the result must check that nothing was
    forgotten.

    `opening` is the start data of a run that has not written yet.
    """
    scope, cues = request.scope, AskedCues(request.cues)
    asked = " ".join(part for part in (request.query, *cues.keywords) if part)[:QUERY_CHARS_MAX]
    without = frozenset({scope.session_id}) if request.exclude_session else frozenset()
    index = load_index(ctx, reader, scope.tenant_id, scope.user_id, without)
    cued = read_cued(ctx, reader, request, index, cues)
    wanted = read_wanted(asked)
    run = gather_run(
        reader,
        scope,
        wanted,
        policy.compose,
        opening,
        cues.holds if cues.is_wall else None,
        has_board=not request.exclude_session,
    )
    outdated = (run.basis.outdated if run.basis is not None else None) or {}
    found = find_hits(ctx, reader, request, policy, asked, index, cued)
    found = with_newer_results(ctx, reader, request, index, cued, found, outdated)
    stores = load_stores(reader, scope, policy.memory.facts, wanted, " ".join((*cues.tags, *cues.entities)))
    quotable = with_newest_own(ctx, reader, request, index, cued, found)
    session: list[ReadTurn] = []
    if not request.exclude_session:
        session = _last(ctx, reader, request, _in_session(request, scope.session_id), SESSION_TURNS)
    window = session[-policy.compose.window_turns :] if policy.compose.window_turns else session[:0]
    about = {hit.turn.id: hit.turn for hit in found.hits}  # for a long result, the parts that match the query
    summary = () if request.exclude_session else summary_lines(reader, scope)
    profile = _profile(ctx, reader, request, policy)
    results = _key_results(ctx, reader, request, policy.compose, index, session, outdated)
    tools = tuple(_tool(read) for read in results if read.turn.id not in run.on_board)
    episodes = gather_episodes(ctx, reader, request, policy.compose, index, found, cues, cued)
    fields: dict[str, Any] = {
        "working_state": run.state,
        "facts": stores.facts,
        "procedures": stores.procedures,
        "insights": stores.insights,
        "hits": quotable.hits,
        "window": tuple(about.get(read.turn.id, read.turn) for read in window),
        "summary": summary,
        "loops": (*run.loops, *_gleaned(ctx, scope.tenant_id, _loops, _within(session, cues))),
        "tools": tools,
        "episodes": episodes.episodes,
        "run": run.basis,
        "profile": profile,
        "not_gathered": tuple(
            counted
            for counted in (
                quotable.not_gathered,
                episodes.not_gathered,
                *_beside(index, scope.session_id, len(window), len(tools)),
                *stores.not_gathered,
                *run.not_gathered,
            )
            if counted.reasons
        ),
    }
    return Pool.unchecked(fields, set(fields) - ({"run"} if run.basis is None else set()))  # of records that are ours


def _profile(ctx: Context, reader: Reader, request: ComposeRequest, policy: Policy) -> tuple[ProfileCandidate, ...]:
    """The lines of the user's profile that this packet may hold, one stretch of each turn."""
    scope, own = request.scope, policy.memory.profile
    share = own.responder_share if request.purpose == "responder" else own.share
    lines = build_profile(
        ctx,
        reader,
        scope.tenant_id,
        scope.user_id,
        max(own.tokens_min, int(share * request.budget.max_tokens)) if share else 0,
        purpose=request.purpose,
        policy=policy,
        query=request.query,
        without=scope.session_id if request.exclude_session else None,
        safety_min=LASTING_MIN,
        wish_min=_WISH_MIN,
    )
    turns = turns_by_id(ctx, reader, scope.tenant_id, [line.event_id for line in lines], is_asked_later=True)
    stretches: dict[str, ProfileCandidate] = {}
    for line in lines:
        start, safety, wish = line.start, line.safety, line.wish
        if (other := stretches.get(line.event_id)) is not None:
            start, safety, wish = other.start, max(safety, other.safety), max(wish, other.wish)
        turn = turns[line.event_id].read.turn
        given = {"turn": turn, "start": start, "end": line.end, "safety": safety, "wish": wish}
        stretches[line.event_id] = ProfileCandidate.unchecked(given, set(given))
    return tuple(stretches.values())


def _within(turns: list[ReadTurn], cues: AskedCues) -> list[ReadTurn]:
    """The turns within a time range, since an open question has no time of its own."""
    return [read for read in turns if cues.bars(read.turn.ts) is None] if cues.is_wall else turns


def _beside(index: StoredIndex, session_id: str, window: int, tools: int) -> Iterator[NotGathered]:
    """Counts of this session's turns and results beyond the gathered ones."""
    here = index.session_number(session_id)
    if here is None:
        return
    roles = index.role[index.session == here]
    for kind, held, gathered in (
        ("window", len(roles), window),
        ("tools", int(np.count_nonzero(roles == _TOOL)), tools),
    ):
        yield NotGathered.of(kind, held, gathered, {"count_limit": held - gathered})


def _in_session(request: ComposeRequest, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", request.scope.user_id), ("session_id", "=", session_id)


def _last(
    ctx: Context, reader: Reader, request: ComposeRequest, where: tuple[Condition, ...], count: int
) -> list[ReadTurn]:
    return [turn.read for turn in last_turns(ctx, reader, request.scope.tenant_id, where, count)]


def _gleaned(ctx: Context, tenant_id: str, read: Callable[[Sequence[ReadTurn]], T], turns: Sequence[ReadTurn]) -> T:
    """The result of `read` for these turns, cached until they change."""
    return ctx.cache(TurnCache).glean(read.__name__, tenant_id, (each.turn.id for each in turns), lambda: read(turns))


def _loops(turns: Sequence[ReadTurn]) -> tuple[OpenLoop, ...]:
    return tuple(open_loops(turns))


def _key_results(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    policy: ComposePolicy,
    index: StoredIndex,
    session: Sequence[ReadTurn],
    outdated: Mapping[str, str],
) -> list[ReadTurn]:
    """Choose the results of this session to show, newest first: the newest one, the newest calls that changed
    something, however old, then the newest of all that still hold.

    The last turns already show recent reads; changes are shown only here. Nothing is fetched for it: an old result
    stored outside its row is skipped.
    """
    count = policy.tool_evidence_max
    recent = [read for read in reversed(session) if read.turn.kind == "tool_result" and read.turn.id not in outdated]
    if request.exclude_session or not may_show("tools", request.purpose):
        return recent[:count]
    known = {read.turn.id for read in recent}
    acted_ids = _acted(index, request.scope.session_id, _ACTED_READ * count)
    older = [id_ for id_ in acted_ids if id_ not in known and id_ not in outdated]
    turns = turns_by_id(ctx, reader, request.scope.tenant_id, older, is_near=True)
    acted = [read for read in recent if read.line and changed(read.line, read.turn.text)]
    acted += [turns[id_].read for id_ in older if id_ in turns]
    cues, tellable = AskedCues(request.cues), dict[str | None, ReadTurn]()
    for read in acted:
        turn = read.turn
        if (barred(policy, request.purpose, turn.trust, turn.flags) or cues.bars(turn.ts)) is None:
            tellable.setdefault(read.line, read)
    chosen = {read.turn.id: read for read in (*recent[:1], *tellable.values(), *recent)}
    return sorted(list(chosen.values())[:count], key=lambda read: read.turn.seq, reverse=True)


def _acted(index: StoredIndex, session_id: str, count: int) -> list[str]:
    """The newest calls of a session that changed, created or ended something, newest first."""
    here = index.session_number(session_id)
    if here is None:
        return []
    begin, end = index.session_span(here)
    acted = index.postings(_WROTE)[0]
    mine = acted[(acted >= begin) & (acted < end)]
    return [index.id(int(ordinal)) for ordinal in mine[::-1][:count]]


def _tool(read: ReadTurn) -> ToolCandidate:
    return ToolCandidate(
        ref=read.turn.id,
        summary=read.line or " ".join(read.turn.text[:TOOL_CHARS_MAX].split()),
        ts=read.turn.ts,
        trust=read.turn.trust,
        flags=read.turn.flags,
    )


class Stores(NamedTuple):
    """Candidates of the memory stores, each list best first."""

    facts: tuple[FactCandidate, ...]
    procedures: tuple[ProcedureCandidate, ...]
    insights: tuple[InsightCandidate, ...]
    not_gathered: tuple[NotGathered, ...] = ()
    """Items of other scopes and items no longer in force, counted."""


def load_stores(reader: Reader, scope: Scope, policy: FactPolicy, wanted: Wanted = NOTHING, words: str = "") -> Stores:
    """The facts, procedures and insights visible to this run: its user's, and those shared by the agent and the tenant.

    `words` come from cues that facts may match, besides the query.
    """
    kinds = {"user": ("procedure", "insight")}
    items = [
        item
        for level in LEVELS
        for item in newest_items(reader, (("kind", "in", kinds.get(level, ("procedure",))), *level_of(scope, level)))
    ]
    rows = newest_facts(reader, scope)
    found = find_facts(reader, scope, rows, wanted, policy, words=words)
    facts = [_fact_candidate(each, policy) for each in found]
    procedure_items = [item for item in items if item.kind == "procedure"]
    insight_items = [item for item in items if item.kind == "insight"]
    procedures, insights = _procedures(procedure_items, wanted), _insights(reader, insight_items, scope)
    of_both = sum(_is_of_both(item) for item in procedure_items)
    retired = len(procedure_items) - of_both - len(procedures)
    others = len(insight_items) - len(insights)
    return Stores(
        facts=tuple(facts),
        procedures=tuple(procedures),
        insights=tuple(insights),
        not_gathered=(
            *(() if all(each.is_whole for each in rows) else (_older_facts(len(facts)),)),
            NotGathered.of(
                "procedures", len(procedure_items), len(procedures), {"scope": of_both, "deprecated": retired}
            ),
            NotGathered.of("insights", len(insight_items), len(insights), {"scope": others}),
        ),
    )


def _older_facts(gathered: int) -> NotGathered:
    """A note that there are more facts than a request reads, in unknown number."""
    return NotGathered.unchecked(
        {"kind": "facts", "held": None, "gathered": gathered, "reasons": {"count_limit": None}}
    )


def _is_of_both(item: Item) -> bool:
    """True for an item of one user with one agent, which is no level that a run inherits from."""
    return item.user_id is not None and item.agent_id is not None


def _fact_candidate(found: FoundFact, policy: FactPolicy) -> FactCandidate:
    return FactCandidate.unchecked(
        {
            "fact": found.fact,
            "trust": found.stored.trust,
            "recorded_at": found.item.created_at,
            "version": found.item.version,
            "score": found.match.score,
            "is_preference": found.stored.is_preference,
            "stale_dependency": found.is_stale,
            "is_many_valued": is_many_valued(found.stored.key, policy),
            "since": found.stored.since,
        }
    )


def _procedures(items: Iterable[Item], wanted: Wanted) -> list[ProcedureCandidate]:
    """Procedures not retired, of every task type and level: by priority, usage, match, age (MP-10)."""
    found: list[tuple[tuple[float, ...], ProcedureCandidate]] = []
    for item in items:
        if _is_of_both(item):
            continue
        stored = StoredProcedure.from_wire(item.plain())
        if stored.is_retired:
            continue
        score = match_text(wanted, f"{stored.procedure.task_type} {words_of(stored.procedure.content)}").score
        candidate = ProcedureCandidate(
            procedure=stored.procedure,
            trust=item.trust,
            usage=stored.usage,
            recorded_at=item.created_at,
        )
        found.append(((stored.procedure.priority or 0, stored.usage, score), candidate))
    found.sort(key=lambda pair: pair[1].procedure.procedure_id)
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [candidate for _, candidate in found]


def _insights(reader: Reader, items: Iterable[Item], scope: Scope) -> list[InsightCandidate]:
    """This user's insights with this agent, newest first, of every state, expired or not."""
    ended: dict[str, bool] = {}
    found = []
    for item in items:
        if item.agent_id != scope.agent_id:
            continue
        stored = StoredInsight.from_wire(item.plain())
        if stored.run_id not in ended:
            run = latest(reader, stored.run_id)
            ended[stored.run_id] = run is None or run.status == "finished"
        found.append(
            InsightCandidate(
                insight=stored.insight,
                trust=item.trust,
                run_id=stored.run_id,
                run_is_finished=ended[stored.run_id],
                recorded_at=item.created_at,
            )
        )
    return sorted(found, key=lambda each: (each.recorded_at, each.insight.id), reverse=True)
