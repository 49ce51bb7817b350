"""Ingest traces: read an export, find each session, and write the turns it does not hold yet.

The conversation that a span names is the session; a trace without one is its own session. Each trace is a run, or one
run per agent that speaks in it. An unreadable export is refused before anything is written; a message that the ledger
refuses is left out and counted, so that it does not block the rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import digest_of, short_id
from muniment.core.record import Count, Items, Record
from muniment.errors import IdempotencyMismatch, InvalidInput, StaleState
from muniment.store.admission import admit
from muniment.store.append import match_keys
from muniment.store.items import latest
from muniment.store.ledger import draft_of
from muniment.traces.otlp import read_export
from muniment.traces.sessions import (
    NOBODY,
    Evaluation,
    KnownTurn,
    Lineage,
    Marks,
    Named,
    Pending,
    Place,
    TracedTalk,
    Turn,
    Unit,
    about_turn,
    instant_of,
    load_talk,
    prompts_of,
    turns_of,
    units_of,
)

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft, LedgerEntry
    from muniment.traces.otlp import Export, Signal

__all__ = ["OpenRun", "TraceReport", "TracedSession", "Whose", "ingest"]


# -- what is reported ------------------------------------------------------------------------------------


class TracedSession(Record):
    """A session that received traces."""

    user_id: str
    agent_id: str
    session_id: str
    written: Count
    """Number of new entries."""


class TraceReport(Record):
    """Counts of the spans and logs of an export, by their fate."""

    spans: Count
    """Spans that were read."""
    logs: Count
    """Log records that were read."""
    messages: Count
    """Messages that were written."""
    results: Count
    """Tool results that were written."""
    prompts: Count
    """System instructions that were written: stored, but never quoted."""
    known: Count
    """Messages and results already in the ledger: each model call repeats the conversation before it."""
    left_out: dict[str, Count]
    """Skipped items by reason: `no_conversation` (spans about something else), `without_content` (the emitter did not
    capture it), `no_user` (no user is named), `another_user` (not the user the export was sent for), `no_such_user`
    (a name no user can have), `no_trace`, `refused` (too large, or not text), `reasoning`, `our_own`.
    """
    rejected_spans: Count
    """Spans to report to the sender: they name no user, belong to another user, or were refused."""
    rejected_logs: Count
    sessions: Items[TracedSession]


# -- ingesting -------------------------------------------------------------------------------------------

_DEFAULT_AGENT = "agent"
_UNNAMED = "trace-"
"""Prefix of session names made up for traces that name none."""
_BATCH = 500
_STALE_MAX = 100
"""Attempts to reread a session that others write to, before its traces are refused."""


Append = Callable[[Any, "list[EntryDraft]", int], "list[LedgerEntry]"]
"""Write drafts to a run if its session still ends where it was read; raise `StaleState` otherwise."""
OpenRun = Callable[[Mapping[str, str]], Any]
"""Open the run given by five names: tenant, user, agent, session, run."""


class Whose(NamedTuple):
    """The user that traces are ingested for."""

    tenant_id: str
    user_id: str | None
    """The only user that may be written for; None if each span names its own."""
    default_user_id: str | None
    """The user of spans that name none."""
    user_attributes: tuple[str, ...]


class _Trace(NamedTuple):
    """The run that a trace began with."""

    session: str
    agent: str


def ingest(
    ctx: Context, open_run: OpenRun, append: Append, data: Any, whose: Whose, signal: Signal | None = None
) -> TraceReport:
    """Read an export and write its new turns."""
    export = read_export(data, signal)
    return _Ingest(ctx, open_run, append, whose, export).carry_out()


class _Ingest:
    def __init__(self, ctx: Context, open_run: OpenRun, append: Append, whose: Whose, export: Export) -> None:
        self._ctx, self._open_run, self._append, self._whose, self._export = ctx, open_run, append, whose, export
        self._lineage = Lineage(export.spans, whose.user_attributes)
        self._marks = Marks()
        self._traces: dict[tuple[str, str], _Trace | None] = {}
        self._left_out: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._written: Counter[tuple[str, str, str]] = Counter()

    def carry_out(self) -> TraceReport:
        units = units_of(self._export)
        self._left_out.update(units.left_out)
        placed: dict[tuple[str, str], list[tuple[Unit, Named]]] = defaultdict(list)
        for unit in units.units:
            named = self._named(unit)
            if named is not None:
                placed[named.user, named.session].append((unit, named))
        judged: dict[tuple[str, str], list[tuple[Evaluation, Named]]] = defaultdict(list)
        for evaluation in units.evaluations:
            named = self._named(evaluation)
            if named is not None:
                judged[named.user, named.session].append((evaluation, named))
        for user, session in dict.fromkeys([*placed, *judged]):
            self._write_session(user, session, placed[user, session], judged[user, session])
        return self._report()

    # -- whose ------------------------------------------------------------------------------------------------

    def _named(self, unit: Unit | Evaluation) -> Named | None:
        """Find the session of a unit; None if it names no user, or one that must not be written for."""
        named = self._lineage.named(unit.trace_id, unit.key, unit.attributes, unit.resource)
        whose = self._whose
        user = named.user or whose.user_id or whose.default_user_id or ""
        why = ""
        if user == NOBODY:
            why = "no_such_user"
        elif not user:
            why = "no_user"
        elif whose.user_id is not None and user != whose.user_id:
            why = "another_user"
        elif not unit.trace_id and not named.session:
            why = "no_trace"
        if why:
            self._reject(unit, why)
            return None
        trace = self._trace(user, unit.trace_id) if unit.trace_id else None
        session = named.session or (self._begun(user, unit) if trace is None else trace.session)
        known_agent = "" if trace is None else trace.agent
        agent = named.agent or known_agent or named.service or _DEFAULT_AGENT
        found = named._replace(user=user, session=session, agent=agent)
        if trace is None and unit.trace_id:
            self._traces[user, unit.trace_id] = _Trace(session, found.agent)
        elif trace is not None and not found.caller and trace.agent != found.agent and named.agent:
            found = found._replace(caller=trace.agent)
        return found

    def _begun(self, user: str, unit: Unit | Evaluation) -> str:
        """Name a session for a trace that names none: by the first question and answer of its list, so that a later
        trace that repeats them continues it, or else by the trace itself.
        """
        turns = turns_of(unit, {}) if isinstance(unit, Unit) and unit.tool is None else []
        if len(turns) < 2 or turns[0].event["role"] != "user":
            return f"{_UNNAMED}{unit.trace_id}"
        marks = [self._marks.of_event(turn.event) for turn in turns[:2]]
        return _UNNAMED + digest_of(["otel", self._whose.tenant_id, user, *marks])[:32]

    def _reject(self, unit: Unit | Evaluation, why: str) -> None:
        self._left_out[why] += unit.records
        self._rejected[unit.signal] += unit.records

    def _trace(self, user: str, trace_id: str) -> _Trace | None:
        """The run this trace began with, in this export or an earlier one."""
        key = (user, trace_id)
        if key not in self._traces:
            self._traces[key] = self._begun_run(user, self._run_id(user, trace_id))
        return self._traces[key]

    def _begun_run(self, user: str, run_id: str) -> _Trace | None:
        """Look up a run of this user; None if it has not begun."""
        item = self._ctx.engine.read(self._whose.tenant_id, lambda reader: latest(reader, run_id))
        if item is None or item.kind != "run" or item.user_id != user:
            return None
        return _Trace(str(item.session_id), str(item.agent_id))

    def _run_id(self, user: str, trace_id: str, *more: str) -> str:
        return short_id("run", ["otel", self._whose.tenant_id, user, trace_id, *more])

    def _place(self, named: Named, trace_id: str) -> Place:
        trace = self._traces.get((named.user, trace_id))
        if trace == (named.session, named.agent):
            return Place(named.agent, self._run_id(named.user, trace_id))
        return Place(named.agent, self._run_id(named.user, trace_id, named.session, named.agent))

    # -- one session ------------------------------------------------------------------------------------------

    def _write_session(
        self, user: str, session: str, units: list[tuple[Unit, Named]], judged: list[tuple[Evaluation, Named]]
    ) -> None:
        """Read the session, align the pieces with it and write the new ones; start over if another process wrote to the
        session meanwhile.
        """
        left_out, rejected = self._left_out.copy(), self._rejected.copy()
        known = self._counts["known"]
        for attempt in range(_STALE_MAX + 1):
            before = self._counts.total() - self._counts["known"] - self._counts["prompts"]
            try:
                self._write_once(user, session, units, judged)
            except (StaleState, IdempotencyMismatch):  # a prompt written by the other process has our key
                if attempt == _STALE_MAX:
                    raise
            else:
                return
            # The next attempt will recognise what this one wrote.
            self._left_out, self._rejected = left_out.copy(), rejected.copy()
            known -= self._counts.total() - self._counts["known"] - self._counts["prompts"] - before
            self._counts["known"] = known

    def _write_once(
        self, user: str, session: str, units: list[tuple[Unit, Named]], judged: list[tuple[Evaluation, Named]]
    ) -> None:
        held = self._load(user, session, {unit.trace_id for unit, _ in units})
        for unit, named in units:
            self._add(held, unit, named)
        for evaluation, named in judged:
            self._add_evaluation(held, evaluation, named)
        at = 0
        while at < len(held.pending):
            place = held.pending[at].place
            end = at
            while end < len(held.pending) and end - at < _BATCH and held.pending[end].place == place:
                end += 1
            self._write(held, place, held.pending[at:end])
            at = end

    def _load(self, user: str, session: str, trace_ids: set[str]) -> TracedTalk:
        """Read the session, and what a trace of it recorded before its session was known."""
        elsewhere = {trace.session for id_ in trace_ids if (trace := self._trace(user, id_)) is not None}
        early = sorted(name for name in elsewhere if name != session and name.startswith(_UNNAMED))
        return load_talk(self._ctx, self._whose.tenant_id, user, (*early, session), self._marks)

    def _add(self, held: TracedTalk, unit: Unit, named: Named) -> None:
        place = self._place(named, unit.trace_id)
        start, end = instant_of(unit.start_ns), instant_of(unit.end_ns)
        for said in (*unit.conversation.inputs, *unit.conversation.outputs):
            self._left_out.update({"reasoning": said.passed.total()} if said.passed else {})
            self._left_out.update({"without_content": 1} if said.is_empty and not said.passed else {})
        self._add_prompts(held, unit, place, start)
        turns = [self._attributed(held, turn, named) for turn in turns_of(unit, held.calls)]
        marks = [self._marks.of_event(turn.event) for turn in turns]
        roles = [str(turn.event["role"]) for turn in turns]
        is_answered = bool(unit.conversation.outputs)
        new = held.known.new_places(marks, roles, start, named.agent, is_answered=is_answered)
        self._counts["known"] += len(turns) - len(new)
        for number in new:
            turn = turns[number]
            ts = end if turn.is_answer else start
            about = about_turn(unit, is_answer=turn.is_answer)
            event = {**turn.event, "metadata": {**(turn.event.get("metadata") or {}), "otel": dict(about)}}
            way = "out" if turn.is_answer else "in"
            event["idempotency_key"] = f"otel:{unit.trace_id}:{unit.key}:{way}:{number}:{marks[number][:8]}"
            held.write(place, event, ts, unit.signal)
            held.known.add([KnownTurn(marks[number], roles[number], ts, named.agent)])

    def _attributed(self, held: TracedTalk, turn: Turn, named: Named) -> Turn:
        """Attribute to the calling agent, not the user, what one agent sent another."""
        event = turn.event
        if not named.caller or event["role"] != "user" or self._marks.of_event(event) in held.known:
            return turn
        return turn._replace(event={**event, "role": "assistant", "speaker": named.caller})

    def _add_prompts(self, held: TracedTalk, unit: Unit, place: Place, ts: str) -> None:
        for text in prompts_of(unit):
            mark = digest_of(text)
            if mark in held.prompts:
                continue
            held.prompts.add(mark)
            event: dict[str, Any] = {
                "role": "system",
                "content": text,
                "metadata": {"otel": about_turn(unit, is_answer=False)},
            }
            event["idempotency_key"] = f"otel:{held.session[:100]}:prompt:{mark[:32]}"
            held.write(place, event, ts, unit.signal)

    def _add_evaluation(self, held: TracedTalk, evaluation: Evaluation, named: Named) -> None:
        ts = instant_of(evaluation.time_ns)
        told = {"trace_id": evaluation.trace_id, "span_id": evaluation.key}
        metadata = {"event": "evaluation", "evaluation": dict(evaluation.metadata), "otel": told}
        event = {"role": "system", "content": "", "metadata": metadata}
        event["idempotency_key"] = f"otel:{evaluation.trace_id}:{evaluation.key}:eval:{digest_of(metadata)[:16]}"
        held.write(self._place(named, evaluation.trace_id), event, ts, evaluation.signal)

    # -- writing ------------------------------------------------------------------------------------------------

    def _write(self, held: TracedTalk, place: Place, pending: list[Pending]) -> None:
        run = self._opened(held, place)
        drafts = [draft for each in pending if (draft := self._draft(each)) is not None]
        found = self._ctx.engine.read(run.scope.tenant_id, lambda reader: match_keys(reader, run.scope, drafts))
        new = [draft for draft, match in zip(drafts, found, strict=True) if match.entry_id is None]
        self._counts["known"] += len(drafts) - len(new)
        if not new:
            return
        entries = self._append(run, new, held.seq)
        held.seq = max(held.seq, entries[-1].seq)
        for entry in entries:
            kind = {"message": "messages", "tool_result": "results"}.get(entry.kind)
            if kind is None and entry.kind == "system" and "event" not in entry.metadata:
                kind = "prompts"
            self._counts[kind or "other"] += 1
            self._written[held.user, place.agent, held.session] += 1

    def _draft(self, pending: Pending) -> EntryDraft | None:
        """Build the entry; None, counted, if the ledger would refuse it."""
        try:
            draft = draft_of(pending.event)
            admit(draft, self._ctx.policy.ledger)
        except InvalidInput:
            self._left_out["refused"] += 1
            self._rejected[pending.signal] += 1
            return None
        return draft

    def _opened(self, held: TracedTalk, place: Place) -> Any:
        """Open the run, or a further one if it has ended, is locked, or was begun elsewhere by a concurrent export."""
        here = _Trace(held.session, place.agent)
        names = {"tenant_id": self._whose.tenant_id, "user_id": held.user, "agent_id": place.agent}
        run_id, number = place.run_id, 0
        while True:
            if self._begun_run(held.user, run_id) in (None, here):
                run = self._open_run({**names, "session_id": held.session, "run_id": run_id})
                state = run.state()
                if state is None or (state.stop_reason is None and not state.is_locked):
                    return run
            number += 1
            run_id = short_id("run", [place.run_id, *here, number])

    def _report(self) -> TraceReport:
        counts = self._counts
        return TraceReport(
            spans=len(self._export.spans),
            logs=len(self._export.logs),
            messages=counts["messages"],
            results=counts["results"],
            prompts=counts["prompts"],
            known=counts["known"],
            left_out={why: count for why, count in sorted(self._left_out.items()) if count},
            rejected_spans=self._rejected["spans"],
            rejected_logs=self._rejected["logs"],
            sessions=tuple(
                TracedSession(user_id=user, agent_id=agent, session_id=session, written=count)
                for (user, agent, session), count in sorted(self._written.items())
            ),
        )
