"""The pool of one request: what the search found, what this session said, what the stores hold with their match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from muniment.contracts.packet import OpenLoop
from muniment.core.policy import ComposePolicy, FactPolicy, Policy
from muniment.core.ports.engine import Condition, Reader
from muniment.core.scope import Scope
from muniment.core.text.analyzer import term_hash
from muniment.memory._fact_records import StoredInsight, StoredProcedure, is_many_valued, words_of
from muniment.memory._index import ROLES, StoredIndex
from muniment.memory.evidence import NOTHING, Wanted, match_text, read_wanted
from muniment.memory.fact_rows import LEVELS, level_of, newest_facts
from muniment.memory.facts import FoundFact, find_facts
from muniment.memory.index import load_index
from muniment.memory.profile import LASTING_MIN, build_profile
from muniment.memory.query import QUERY_CHARS_MAX
from muniment.memory.sessions import open_loops, summary_lines
from muniment.memory.tool_results import WRITE, changed, did
from muniment.memory.turn_reading import TurnCache, last_turns, turns_by_id
from muniment.memory.turns import ReadTurn
from muniment.packets.admission import barred
from muniment.packets.cued_turns import find_hits, read_cued, with_newer_results, with_newest_own
from muniment.packets.cues import AskedCues
from muniment.packets.earlier_sessions import gather_episodes
from muniment.packets.page.lines import may_show
from muniment.packets.pool import (
    ComposeRequest,
    FactCandidate,
    InsightCandidate,
    NotGathered,
    Pool,
    ProcedureCandidate,
    ProfileCandidate,
    ToolCandidate,
)
from muniment.packets.run_state import gather_run
from muniment.store.context import Context
from muniment.store.items import Item, latest, newest_items

__all__ = ["Stores", "gather", "load_stores"]

SESSION_TURNS = 60
"""How far back in this session open questions are looked for."""
TOOL_CHARS_MAX = 200
_WROTE = term_hash(did(WRITE))
"""The mark of a call that changed, created or ended something."""
_ACTED_READ = 4
"""Of such calls before the last turns so many times those that may be told are looked at: some say the same."""
_TOOL = ROLES.index("other")
"""Of turns, only a tool's result has another role than user and assistant."""

_WISH_MIN = 170
"""From this score of the gate on a standing wish leads a packet: tasks and remarks score less, plain wishes 198 or
more.
"""

T = TypeVar("T")


def gather(
    ctx: Context, reader: Reader, request: ComposeRequest, policy: Policy, opening: Mapping[str, Any] | None = None
) -> Pool:
    """Everything the composer may choose from. Whoever keeps what is made of it asks whether it was forgotten.

    `opening` is what a run is started with that has not written yet.
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
    about = {hit.turn.id: hit.turn for hit in found.hits}  # of a long result, what matches the query
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
    """The turns that a time range leaves: an open question has no time of its own."""
    return [read for read in turns if cues.bars(read.turn.ts) is None] if cues.is_wall else turns


def _beside(index: StoredIndex, session_id: str, window: int, tools: int) -> Iterator[NotGathered]:
    """What this session holds besides its last turns and the last results of tools."""
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
    """What follows from these turns alone: read once, as long as they are the ones."""
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
    """Choose the results of this session that a packet shows, newest first: the newest one, the newest of the calls
    that changed something, however long ago, then the newest of all that still hold.

    Who goes on with the work sees what was looked at last among the last turns. What was done is seen here alone.
    Nothing is fetched for it: an old result that lies outside of its row is not told.
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
    """What lies there for others, or no longer stands, counted."""


def load_stores(reader: Reader, scope: Scope, policy: FactPolicy, wanted: Wanted = NOTHING, words: str = "") -> Stores:
    """What this run can see of facts, procedures and insights: its user's, and what the agent and the tenant share.

    `words` are of cues that facts may say, besides the query.
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
    """That there are more facts than are read for a request, which nobody counts."""
    return NotGathered.unchecked(
        {"kind": "facts", "held": None, "gathered": gathered, "reasons": {"count_limit": None}}
    )


def _is_of_both(item: Item) -> bool:
    """Is it a user's with one agent? Such a one is no level that a run inherits from."""
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
    """Procedures that were not retired, of every task type and level: by priority, usage, match, age (MP-10)."""
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
