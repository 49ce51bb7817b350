"""The pool of one request: what the search found, what this session said, what the stores hold with their match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from muniment.contracts.memory_packet import OpenLoop
from muniment.core.canonical import canonical_text
from muniment.core.policy.policy import Policy
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import select
from muniment.core.ports.schema import SESSIONS
from muniment.core.scope import Scope
from muniment.core.text.attributes import key_attributes
from muniment.memory.caches import TurnCache
from muniment.memory.episodes.forming import form_episodes
from muniment.memory.episodes.loops import open_loops
from muniment.memory.episodes.salience import best_lines
from muniment.memory.episodes.turns import ReadTurn
from muniment.memory.fact_reading import fallen_of, read_fact_items
from muniment.memory.fact_rows import LEVELS, level_of
from muniment.memory.facts.records import StoredInsight, StoredProcedure
from muniment.memory.recall.query import QUERY_CHARS_MAX
from muniment.memory.recall.reasons import NOTHING, Match, Wanted, match_text, read_wanted
from muniment.memory.searching import FoundTurn, find_turns
from muniment.memory.turn_reading import last_turns
from muniment.memory.turns import EpisodeCandidate, SummaryLine
from muniment.packets.pool import (
    ComposeRequest,
    FactCandidate,
    HitCandidate,
    InsightCandidate,
    Pool,
    ProcedureCandidate,
    ToolCandidate,
)
from muniment.packets.run_state import gather_run
from muniment.store.context import Context
from muniment.store.items import Item, latest, newest_items

__all__ = ["Stores", "fact_match", "gather", "load_stores", "match_facts"]

SESSION_TURNS = 60
"""How far back in this session the summary and the loops look."""
SUMMARY_LINES = 6
TOOL_CHARS_MAX = 200
EPISODE_SESSIONS = 4
"""Sessions that give an episode: those of the best hits, and the most recent ones."""
RECENT_SESSIONS = 2
CHARS_A_TOKEN = 4
TOKENS_A_HIT = 16
HITS_MIN = 20
"""No more hits are gathered than could fit: a line of a prompt takes this many tokens or more."""
AROUND = 3
"""An episode reaches this many turns before its first hit and after its last."""
AROUND_MAX = 16
_HIT_FIELDS = set(HitCandidate.model_fields)

T = TypeVar("T")


def gather(
    ctx: Context, reader: Reader, request: ComposeRequest, policy: Policy, opening: Mapping[str, Any] | None = None
) -> Pool:
    """Everything the composer may choose from. Whoever keeps what is made of it asks whether it was forgotten.

    `opening` is what a run is started with that has not written yet.
    """
    scope = request.scope
    asked = " ".join(part for part in (request.query, *(request.cues.keywords or ())) if part)[:QUERY_CHARS_MAX]
    found: list[FoundTurn] = []
    if asked.strip():
        k = min(policy.compose.candidates_max, max(HITS_MIN, request.budget.max_tokens // TOKENS_A_HIT))
        whose = scope.tenant_id, scope.user_id
        without = frozenset({scope.session_id}) if request.exclude_session else frozenset()
        found = find_turns(ctx, reader, *whose, asked, k, request.now, policy.recall, without, is_asked_later=True)
    hits = tuple(_hit(each, asked) for each in found)
    session: list[ReadTurn] = []
    if not request.exclude_session:
        session = _last(ctx, reader, request, _in_session(request, scope.session_id), SESSION_TURNS)
    before, window = session, session[:0]
    if policy.compose.window_turns:
        before, window = session[: -policy.compose.window_turns], session[-policy.compose.window_turns :]
    wanted = read_wanted(asked)
    stores = load_stores(reader, scope, wanted)
    run = gather_run(reader, scope, wanted, policy.compose, opening)
    return Pool(
        working_state=run.state,
        facts=stores.facts,
        procedures=stores.procedures,
        insights=stores.insights,
        hits=hits,
        window=tuple(read.turn for read in window),
        summary=_gleaned(ctx, scope.tenant_id, _summary, before),
        loops=(*run.loops, *_gleaned(ctx, scope.tenant_id, _loops, session)),
        tools=_tools(session, policy.compose.tool_evidence_max),
        episodes=_episodes(ctx, reader, request, hits) if _leaves_room(request, hits) else (),
        **({} if run.basis is None else {"run": run.basis}),
    )


def _hit(found: FoundTurn, asked: str) -> HitCandidate:
    ranked = found.ranked
    return HitCandidate.unchecked(
        {
            "turn": found.turn.about(asked),
            "score": ranked.score,
            "parts": ranked.parts,
            "reasons": found.reasons,
            "superseded": found.superseded,
        },
        _HIT_FIELDS,
    )


def _in_session(request: ComposeRequest, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", request.scope.user_id), ("session_id", "=", session_id)


def _last(
    ctx: Context, reader: Reader, request: ComposeRequest, where: tuple[Condition, ...], count: int
) -> list[ReadTurn]:
    return [turn.read for turn in last_turns(ctx, reader, request.scope.tenant_id, where, count)]


def _gleaned(ctx: Context, tenant_id: str, read: Callable[[Sequence[ReadTurn]], T], turns: Sequence[ReadTurn]) -> T:
    """What follows from these turns alone: read once, as long as they are the ones."""
    return ctx.cache(TurnCache).glean(read.__name__, tenant_id, (each.turn.id for each in turns), lambda: read(turns))


def _loops(turns: Sequence[ReadTurn]) -> tuple[OpenLoop, ...]:
    return tuple(open_loops(turns))


def _summary(turns: Sequence[ReadTurn]) -> tuple[SummaryLine, ...]:
    """Best sentences of what lies before the window, in the order they were said."""
    places = {read.turn.id: place for place, read in enumerate(turns)}
    lines = best_lines([read for read in turns if read.turn.role != "tool"], SUMMARY_LINES)
    return tuple(sorted(lines, key=lambda line: places[line.evidence_id]))


def _tools(turns: Sequence[ReadTurn], count: int) -> tuple[ToolCandidate, ...]:
    results = [read for read in turns if read.turn.kind == "tool_result"]
    recent = list(reversed(results))[:count]
    return tuple(
        ToolCandidate(
            ref=read.turn.id,
            summary=read.line or " ".join(read.turn.text[:TOOL_CHARS_MAX].split()),
            ts=read.turn.ts,
            trust=read.turn.trust,
            flags=read.turn.flags,
        )
        for read in recent
    )


def _leaves_room(request: ComposeRequest, hits: Sequence[HitCandidate]) -> bool:
    """Would the hits alone fill the budget? Then sentences from around them would only crowd them out."""
    return sum([len(hit.turn.text) for hit in hits]) < CHARS_A_TOKEN * request.budget.max_tokens


def _episodes(
    ctx: Context, reader: Reader, request: ComposeRequest, hits: Sequence[HitCandidate]
) -> tuple[EpisodeCandidate, ...]:
    """Stretches around the hits of other sessions, best first, then the end of the most recent other sessions."""
    here = request.scope.session_id
    by_session: dict[str, list[HitCandidate]] = {}
    for hit in hits:
        if hit.turn.session_id != here:
            by_session.setdefault(hit.turn.session_id, []).append(hit)
    found: list[EpisodeCandidate] = []
    for session_id, members in list(by_session.items())[:EPISODE_SESSIONS]:
        scores = {hit.turn.id: hit.score for hit in members}
        first = max(1, members[0].turn.seq - AROUND)
        where = (*_in_session(request, session_id), ("seq", ">=", first), ("seq", "<=", first + AROUND_MAX))
        found += _formed(ctx, reader, request, where, scores)
    for session_id in _recent_sessions(reader, request):
        if session_id not in by_session and session_id != here:
            found += _formed(ctx, reader, request, _in_session(request, session_id), {})
    found.sort(key=lambda episode: (-episode.score, _backwards(episode.end), episode.episode_id))
    return tuple(found)


def _formed(
    ctx: Context, reader: Reader, request: ComposeRequest, where: tuple[Condition, ...], scores: Mapping[str, float]
) -> list[EpisodeCandidate]:
    """The episodes of a stretch that have something to say."""
    turns = _last(ctx, reader, request, where, AROUND_MAX)
    episodes = [episode for episode in _gleaned(ctx, request.scope.tenant_id, _episodes_of, turns) if episode.lines]
    return [_scored(episode, scores) for episode in episodes] if scores else episodes


def _episodes_of(turns: Sequence[ReadTurn]) -> list[EpisodeCandidate]:
    """The episodes that these turns make."""
    return form_episodes(turns, {})


def _scored(episode: EpisodeCandidate, scores: Mapping[str, float]) -> EpisodeCandidate:
    return episode.model_copy(update={"score": max(scores.get(source, 0.0) for source in episode.sources)})


def _backwards(text: str) -> tuple[int, ...]:
    return tuple(-ord(char) for char in text)


class _Written(NamedTuple):
    """A session by when it was last written."""

    head_recorded_at: str
    session_id: str


def _recent_sessions(reader: Reader, request: ComposeRequest) -> list[str]:
    sessions = select(reader, SESSIONS, (("user_id", "=", request.scope.user_id),), into=_Written, limit=200)
    return [session.session_id for session in sorted(sessions, reverse=True)[: RECENT_SESSIONS + 1]]


class Stores(NamedTuple):
    """Candidates of the memory stores, each list best first."""

    facts: tuple[FactCandidate, ...]
    procedures: tuple[ProcedureCandidate, ...]
    insights: tuple[InsightCandidate, ...]


def load_stores(reader: Reader, scope: Scope, wanted: Wanted = NOTHING) -> Stores:
    """What this run can see of facts, procedures and insights: its user's, and what the agent and the tenant share."""
    kinds = {"user": ("fact", "procedure", "insight")}
    items = [
        item
        for level in LEVELS
        for item in newest_items(
            reader, (("kind", "in", kinds.get(level, ("fact", "procedure"))), *level_of(scope, level))
        )
    ]
    return Stores(
        facts=tuple(match_facts(reader, (item for item in items if item.kind == "fact"), wanted)),
        procedures=tuple(_procedures((item for item in items if item.kind == "procedure"), wanted)),
        insights=tuple(_insights(reader, (item for item in items if item.kind == "insight"), scope)),
    )


def fact_match(wanted: Wanted, key: str, value: Any) -> Match:
    """How well a fact answers, by the words of its key and value and by the attribute that its key names."""
    return match_text(wanted, f"{key} {_text(value)}", key_attributes(key))


def match_facts(reader: Reader, items: Iterable[Item], wanted: Wanted) -> list[FactCandidate]:
    """The facts of these rows, best match first, then newest."""
    known: dict[str, bool] = {}
    found = []
    for item, stored in read_fact_items(items):
        fallen = fallen_of(reader, stored, known)
        found.append(
            FactCandidate(
                fact=stored.to_fact(fallen),
                trust=stored.trust,
                recorded_at=item.created_at,
                version=item.version,
                score=fact_match(wanted, stored.key, stored.value).score,
                is_preference=stored.is_preference,
                stale_dependency=bool(fallen),
                since=stored.since,
            )
        )
    return _ordered(found, lambda each: each.score, lambda each: (each.recorded_at, each.fact.fact_id))


def _procedures(items: Iterable[Item], wanted: Wanted) -> list[ProcedureCandidate]:
    """Procedures that were not retired, of every task type and level: by priority, usage, match, age (MP-10)."""
    found: list[tuple[tuple[float, ...], ProcedureCandidate]] = []
    for item in items:
        if item.user_id is not None and item.agent_id is not None:
            continue
        stored = StoredProcedure.from_wire(item.plain())
        if stored.is_retired:
            continue
        score = match_text(wanted, f"{stored.procedure.task_type} {_text(stored.procedure.content)}").score
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


def _text(value: Any) -> str:
    """The words of a value, for matching."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(f"{key} {_text(part)}" for key, part in value.items())
    return " ".join(map(_text, value)) if isinstance(value, list) else canonical_text(value)


def _ordered(found: Iterable[T], score: Callable[[T], float], age: Callable[[T], Any]) -> list[T]:
    newest_first = sorted(found, key=age, reverse=True)
    return sorted(newest_first, key=score, reverse=True)
