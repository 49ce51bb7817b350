"""The fold of a run's entries, in order, into its items and its `RunLog`. Pure.

The effect of an entry on a record is defined once, for the items and for the log. Every field of a log is bounded or
grows only with the run's claims, and each can be continued from a snapshot: so a snapshot and the entries after it give
the same log as all of them (CS-12).

- Steps: only `<PHASE>_DONE` moves the step machine. With a number, a greater one begins that step, and a smaller one
  belongs to a finished step. Without, a phase that does not come after the last begins the next step.
- Loops: `loop_actions` equal actions in a row are one loop, regardless of length. An action without a description is
  equal to none.
- Seen: everything cited, in the order in which it was first cited, then the latest `seen_max` others, oldest first.

An entry in another format, such as one from an imported ledger, changes nothing; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from muniment.contracts.snapshot import EvidencePointer, SourceCoverage
from muniment.core.canonical import digest_of, short_id
from muniment.core.policy import CompactionPolicy
from muniment.core.record import JsonObject
from muniment.core.scope import LEDGER_CORPUS
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidRecord
from muniment.runs.records import CountedFailure, OpenQuestion, RunClaim, RunConflict, RunLog, Spent
from muniment.store.items import Change, Item, digest_name
from muniment.store.ledger import (
    ACTIONS_PLANNED,
    CLAIM_DEMOTED,
    CLAIM_MADE,
    CLAIM_RETRACTED,
    CLAIM_VERIFIED,
    CONFLICT_RECORDED,
    CONFLICT_SETTLED,
    COUNTED_EVENTS,
    FAILURE_RECORDED,
    OUTPUT_VERIFIED,
    PHASES,
    PINNED,
    QUESTION_CLOSED,
    QUESTION_OPENED,
    RUN_FINISHED,
    RUN_LOCKED,
    RUN_STARTED,
    RUN_UNLOCKED,
    SNAPSHOT_TAKEN,
    LedgerEntry,
    RunState,
    StepEvent,
)

if TYPE_CHECKING:
    from muniment.core.record import Record

__all__ = [
    "TOOL_FAILURE",
    "RunFold",
    "Started",
    "change_of",
    "claim_after",
    "conflict_after",
    "corpus_of",
    "erased",
    "failure_after",
    "failure_fingerprint",
    "failure_id",
    "name_of_words",
    "project_actions",
    "project_claim",
    "project_conflict",
    "project_failure",
    "project_question",
    "project_run",
    "project_verification",
    "question_after",
    "run_without",
    "sources_named",
    "started_by",
    "subject_of",
]

# -- the log ------------------------------------------------------------------------------------------

_PHASE_ENDS = {f"{phase}_DONE": (phase, place) for place, phase in enumerate(PHASES)}
_PLACES = {phase: place for place, phase in enumerate(PHASES)}


class RunFold:
    """A run's log under construction. `apply` its entries in order, or the whole session's; `log` is the result."""

    def __init__(self, run_id: str, policy: CompactionPolicy, log: RunLog | None = None) -> None:
        log = log or _empty(run_id)
        self._run_id = run_id
        self._objective, self._done, self._budgets = log.objective, log.done_definition, log.budgets
        self._seq = log.seq
        spent = log.spent
        self._events, self._steps, self._counted = spent.events, spent.steps, spent.counted_events
        self._tool_calls, self._tokens = spent.tool_calls, spent.tokens
        self._step, self._phase = log.step, log.phase
        self._last_action, self._repeats, self._loops = log.last_action, log.repeats, log.loops
        self._claims = {claim.claim_id: claim for claim in log.claims}
        self._conflicts = {conflict.conflict_id: conflict for conflict in log.conflicts}
        self._failures = {failure.failure_id: failure for failure in log.failures}
        self._questions = {question.question_id: question for question in log.open_questions}
        self._next_actions = log.next_actions
        cited = log.coverage.chunk_ids_cited
        self._cited = dict.fromkeys(cited)
        self._recent = dict.fromkeys(log.coverage.chunk_ids_seen[len(cited) :])
        self._sources = dict.fromkeys(log.coverage.source_ids_seen)
        self._manifests = dict.fromkeys(log.manifest_ids)
        self.use(policy)
        self._sequence = log.sequence
        self._counted_since, self._steps_since = list(log.counted_since), list(log.steps_since)

    def use(self, policy: CompactionPolicy) -> None:
        """Continue under these limits, which may be stricter than before."""
        self._policy = policy
        _touch(self._recent, (), policy.seen_max)
        _touch(self._manifests, (), policy.manifests_max)

    def apply(self, entry: LedgerEntry) -> None:
        """Fold in the next entry; one already folded in changes nothing."""
        if entry.seq <= self._seq:
            return
        self._seq = entry.seq
        body = entry.body
        if body is None or entry.scope.run_id != self._run_id:
            return
        kind = entry.kind
        if kind == "step" and body.step is not None:
            self._apply_step(entry, body.step)
        elif kind == "state_patch":
            self._apply_patch(entry)
        elif kind == "tool_result":
            self._tool_calls += 1
            if body.tool is not None and not body.tool.ok:
                self._apply_record(entry)
        elif kind == "system" and not self._events:
            self._apply_start(entry)
        self._events += 1

    def skip_damaged(self, seq: int, kind: str) -> bool:
        """Count the next, unreadable entry; return whether it could have changed the log."""
        is_telling = kind != "message" and (kind != "system" or not self._events)
        self._seq = max(self._seq, seq)
        self._events += 1
        return is_telling

    def _apply_start(self, entry: LedgerEntry) -> None:
        """Apply a start entry. Only the run's first entry sets its purpose (CS-05)."""
        started = started_by(entry)
        if started is not None:
            self._objective, self._done, self._budgets = started

    # -- steps

    def _apply_step(self, entry: LedgerEntry, step: StepEvent) -> None:
        self._tokens += step.tokens or 0
        ended = _PHASE_ENDS.get(step.event)
        if ended is not None:
            self._move(entry.seq, *ended, step.step)
        if step.event in COUNTED_EVENTS:
            self._counted += 1
            self._counted_since.append(entry.seq)
        if step.event == "ACT_DONE":
            self._act(action_signature(step.action, entry.content))
        manifest = step.manifest
        if manifest is not None:
            _touch(self._manifests, (manifest.manifest_id,), self._policy.manifests_max)
            if manifest.selected:
                self._sources.setdefault(LEDGER_CORPUS)
                seen = [id_ for id_ in manifest.selected if id_ not in self._cited]
                _touch(self._recent, seen, self._policy.seen_max)

    def _move(self, seq: int, phase: str, place: int, number: int | None) -> None:
        if number is not None and number < self._step:
            return
        if number is None:
            is_next = self._phase is None or place <= _PLACES.get(self._phase, -1)
            number = self._step + is_next
        if number > self._step or self._phase is None:
            self._step = number
            self._steps += 1
            self._steps_since.append(seq)
        self._phase = phase

    def _act(self, signature: str | None) -> None:
        if signature is None:
            self._repeats = 0
        else:
            self._repeats = self._repeats + 1 if signature == self._last_action else 1
            self._loops += self._repeats == self._policy.loop_actions
        self._last_action = signature

    # -- the run's own records

    def _apply_patch(self, entry: LedgerEntry) -> None:
        event = entry.metadata.get("event")
        if event == SNAPSHOT_TAKEN:
            self._apply_snapshot(entry.metadata)
        elif event == ACTIONS_PLANNED:
            actions = entry.metadata.get("actions")
            if isinstance(actions, list) and all(isinstance(each, str) and each.strip() for each in actions):
                self._next_actions = tuple(str(each) for each in actions[: self._policy.next_actions_max])
        else:
            self._apply_record(entry)

    def _apply_snapshot(self, said: JsonObject) -> None:
        """Reset the counters of events since the last snapshot."""
        sequence, upto = said.get("sequence"), said.get("upto")
        if type(sequence) is not int or type(upto) is not int or sequence < 1 or not 0 <= upto < self._seq:
            return
        self._sequence = sequence
        self._counted_since = [seq for seq in self._counted_since if seq > upto]
        self._steps_since = [seq for seq in self._steps_since if seq > upto]

    def _apply_record(self, entry: LedgerEntry) -> None:
        subject = subject_of(entry)
        if subject is None:
            return
        kind, id_ = subject
        if kind == "claim":
            self._put_claim(claim_after(entry, self._claims.get(id_)))
        elif kind == "conflict":
            self._put_conflict(conflict_after(entry, self._conflicts.get(id_)))
        elif kind == "failure":
            self._put_failure(failure_after(entry, self._failures.get(id_)))
        else:
            self._put_question(question_after(entry, self._questions.get(id_)))

    def _put_claim(self, claim: RunClaim | None) -> None:
        if claim is not None:
            self._claims[claim.claim_id] = claim
            self._cite((*claim.evidence_refs, *(claim.refuted_by or ())))

    def _put_conflict(self, conflict: RunConflict | None) -> None:
        if conflict is not None:
            self._conflicts[conflict.conflict_id] = conflict
            self._cite((*conflict.side_a_refs, *conflict.side_b_refs))

    def _put_failure(self, failure: CountedFailure | None) -> None:
        if failure is not None:
            self._failures[failure.failure_id] = failure

    def _put_question(self, question: OpenQuestion | None) -> None:
        if question is None:
            return
        if question.status == "open":
            self._questions[question.question_id] = question
        else:
            self._questions.pop(question.question_id, None)

    def _cite(self, refs: Iterable[EvidencePointer]) -> None:
        for ref in refs:
            self._recent.pop(ref.chunk_id, None)
            self._cited.setdefault(ref.chunk_id)
            self._sources.setdefault(corpus_of(ref))

    # -- the result

    @property
    def steps(self) -> int:
        """The number of steps begun."""
        return self._steps

    @property
    def sequence(self) -> int:
        """The number of the last snapshot."""
        return self._sequence

    @property
    def chunks_cited(self) -> int:
        return len(self._cited)

    def log(self) -> RunLog:
        """The current log."""
        return RunLog(
            run_id=self._run_id,
            objective=self._objective,
            done_definition=self._done,
            budgets=self._budgets,
            seq=self._seq,
            spent=Spent(
                events=self._events,
                steps=self._steps,
                counted_events=self._counted,
                tool_calls=self._tool_calls,
                tokens=self._tokens,
            ),
            step=self._step,
            phase=self._phase,
            last_action=self._last_action,
            repeats=self._repeats,
            loops=self._loops,
            claims=tuple(self._claims.values()),
            conflicts=tuple(self._conflicts.values()),
            failures=tuple(self._failures.values()),
            open_questions=tuple(self._questions.values()),
            next_actions=self._next_actions,
            coverage=SourceCoverage(
                source_ids_seen=tuple(self._sources),
                chunk_ids_seen=(*self._cited, *self._recent),
                chunk_ids_cited=tuple(self._cited),
            ),
            manifest_ids=tuple(self._manifests),
            sequence=self._sequence,
            counted_since=tuple(self._counted_since),
            steps_since=tuple(self._steps_since),
        )


def action_signature(action: JsonObject | None, content: str | None) -> str | None:
    """The identity of an action: the action itself, or else its description; None without either."""
    if action:
        return digest_of(action)
    return digest_of(content) if content and content.strip() else None


def corpus_of(ref: EvidencePointer) -> str:
    """The corpus of a pointer; by default the ledger."""
    named = (ref.model_extra or {}).get("corpus_id")
    return named if isinstance(named, str) and named else LEDGER_CORPUS


def _touch(recent: dict[str, None], ids: Iterable[str], limit: int) -> None:
    """Mark these as the latest, and evict the oldest over the limit."""
    for id_ in ids:
        recent.pop(id_, None)
        recent[id_] = None
    while len(recent) > limit:
        del recent[next(iter(recent))]


def _empty(run_id: str) -> RunLog:
    """A run before its first entry."""
    return RunLog(
        run_id=run_id,
        objective="",
        done_definition="",
        budgets={},
        seq=0,
        spent=Spent(events=0, steps=0, counted_events=0, tool_calls=0, tokens=0),
        step=0,
        phase=None,
        last_action=None,
        repeats=0,
        loops=0,
        claims=(),
        conflicts=(),
        failures=(),
        open_questions=(),
        next_actions=(),
        coverage=SourceCoverage(source_ids_seen=(), chunk_ids_seen=(), chunk_ids_cited=()),
        manifest_ids=(),
        sequence=0,
        counted_since=(),
        steps_since=(),
    )


# -- one entry and one record --------------------------------------------------------------------------

TOOL_FAILURE = "tool_failure"
"""The category of a `tool_result` that was not ok."""
WHY_CHARS_MAX = 200
"""Maximum length of a tool's output used as a failure's reason."""

Kind = Literal["claim", "conflict", "failure", "question"]
Subject = tuple[Kind, str]

_SUBJECTS: dict[str, Kind] = {
    CLAIM_MADE: "claim",
    CLAIM_VERIFIED: "claim",
    CLAIM_RETRACTED: "claim",
    CLAIM_DEMOTED: "claim",
    CONFLICT_RECORDED: "conflict",
    CONFLICT_SETTLED: "conflict",
    QUESTION_OPENED: "question",
    QUESTION_CLOSED: "question",
}


def subject_of(entry: LedgerEntry) -> Subject | None:
    """The record that an entry concerns."""
    if entry.kind == "tool_result":
        failed = _failed_tool(entry)
        return None if failed is None else ("failure", failure_id(entry.scope.run_id, failed["fingerprint"]))
    said = _patch(entry)
    event = said.get("event")
    if not isinstance(event, str):
        return None
    if event == FAILURE_RECORDED:
        mark = said.get("fingerprint")
        return ("failure", failure_id(entry.scope.run_id, mark)) if isinstance(mark, str) and mark else None
    kind, id_ = _SUBJECTS.get(event), said.get("id")
    return (kind, id_) if kind is not None and isinstance(id_, str) and id_ else None


def _patch(entry: LedgerEntry) -> JsonObject:
    """The content of a `state_patch`. Other kinds, whose metadata anyone may choose, have none."""
    return entry.metadata if entry.kind == "state_patch" else {}


# -- the run ------------------------------------------------------------------------------------------


class Started(NamedTuple):
    """A run's purpose, from its first entry; empty if none was given."""

    objective: str
    done_definition: JsonObject | str
    budgets: JsonObject


def started_by(entry: LedgerEntry) -> Started | None:
    """The pins of this entry, if it starts a run."""
    if entry.kind != "system" or entry.metadata.get("event") != RUN_STARTED:
        return None
    said = entry.metadata
    objective, done, budgets = said.get("objective", ""), said.get("done_definition", ""), said.get("budgets", {})
    if isinstance(objective, str) and isinstance(done, str | dict) and isinstance(budgets, dict):
        return Started(objective, done, budgets)
    return None


# -- claims and conflicts -----------------------------------------------------------------------------


def claim_after(entry: LedgerEntry, before: RunClaim | None) -> RunClaim | None:
    """The claim after this entry. A retracted one stays so: a new claim takes its place."""
    said = _patch(entry)
    event = said.get("event")
    try:
        if event == CLAIM_MADE:
            return None if before is not None else _claim_made(entry, said)
        if before is None or said.get("id") != before.claim_id or before.status == "retracted":
            return None
        change = _CLAIM_CHANGES.get(event) if isinstance(event, str) else None
        return None if change is None else change(entry, said, before)
    except InvalidRecord:
        return None


def _claim_made(entry: LedgerEntry, said: JsonObject) -> RunClaim | None:
    if said.get("status") == "retracted":
        return None
    return RunClaim.from_wire(
        {
            "claim_id": said.get("id"),
            "status": said.get("status"),
            "statement": said.get("statement"),
            "evidence_refs": said.get("evidence_refs", []),
            "made_by": entry.id,
            "between": [],
            "changed_by": entry.id,
            "depends_on": said.get("depends_on", []),
        }
    )


def _claim_verified(entry: LedgerEntry, said: JsonObject, before: RunClaim) -> RunClaim:
    refs = {ref.evidence_id: ref for ref in (*_pointers(said), *before.evidence_refs)}
    order = dict.fromkeys((*(ref.evidence_id for ref in before.evidence_refs), *refs))
    return _changed(before, entry, None, status="verified", evidence_refs=tuple(refs[id_] for id_ in order))


def _claim_retracted(entry: LedgerEntry, said: JsonObject, before: RunClaim) -> RunClaim:
    refs = _pointers(said)
    against = {"refuted_by": refs} if refs else {}
    return _changed(before, entry, said.get("reason"), status="retracted", **against)


def _claim_demoted(entry: LedgerEntry, said: JsonObject, before: RunClaim) -> RunClaim | None:
    if before.status != "verified":
        return None
    return _changed(before, entry, said.get("reason"), status="candidate")


_CLAIM_CHANGES: dict[str, Callable[[LedgerEntry, JsonObject, RunClaim], RunClaim | None]] = {
    CLAIM_VERIFIED: _claim_verified,
    CLAIM_RETRACTED: _claim_retracted,
    CLAIM_DEMOTED: _claim_demoted,
}


def _changed(before: RunClaim, entry: LedgerEntry, reason: Any, **fields: Any) -> RunClaim:
    """The claim with these fields, only the reason for its current status, and this entry as its last."""
    if reason is not None and not isinstance(reason, str):
        raise InvalidRecord("not a reason", [])
    kept = {name: getattr(before, name) for name in before.model_fields_set if name != "reason"}
    between = before.between if before.changed_by == before.made_by else (*before.between, before.changed_by)
    if reason is not None:
        fields["reason"] = reason
    return RunClaim(**kept | fields | {"between": between, "changed_by": entry.id})


def _pointers(said: JsonObject) -> tuple[EvidencePointer, ...]:
    given = said.get("evidence_refs", [])
    if not isinstance(given, list):
        raise InvalidRecord("not a list of pointers", [])
    return tuple(EvidencePointer.from_wire(each) for each in given)


def conflict_after(entry: LedgerEntry, before: RunConflict | None) -> RunConflict | None:
    """The conflict after this entry. It is settled once."""
    said = _patch(entry)
    event = said.get("event")
    if event == CONFLICT_RECORDED and before is None:
        wire = {
            "conflict_id": said.get("id"),
            "description": said.get("description"),
            "side_a_refs": said.get("side_a_refs"),
            "side_b_refs": said.get("side_b_refs"),
            "status": "open",
            "claim_ids": said.get("claim_ids", []),
            "made_by": entry.id,
            "changed_by": entry.id,
        }
    elif event == CONFLICT_SETTLED and before is not None and before.status == "open":
        if said.get("id") != before.conflict_id:
            return None
        settled = {"status": "settled", "changed_by": entry.id, "resolution": said.get("resolution")}
        wire = before.to_wire() | settled
    else:
        return None
    try:
        return RunConflict.from_wire(wire)
    except InvalidRecord:
        return None


# -- failures -----------------------------------------------------------------------------------------


def failure_after(entry: LedgerEntry, before: CountedFailure | None) -> CountedFailure | None:
    """The failure with this occurrence counted; its words stay those of the first."""
    said = _failed_tool(entry) if entry.kind == "tool_result" else _patch(entry)
    if said is None or said.get("event", FAILURE_RECORDED) != FAILURE_RECORDED:
        return None
    mark = said.get("fingerprint")
    if not isinstance(mark, str) or not mark:
        return None
    id_ = failure_id(entry.scope.run_id, mark)
    try:
        met = CountedFailure.from_wire(
            {name: said.get(name) for name in ("category", "where", "why", "fingerprint")}
            | {"failure_id": id_, "count": 1, "first_by": entry.id, "last_by": entry.id}
        )
    except InvalidRecord:
        return None
    if before is None:
        return met
    if before.failure_id != id_:
        return None
    return before.model_copy(update={"count": before.count + 1, "last_by": entry.id})


def _failed_tool(entry: LedgerEntry) -> dict[str, str] | None:
    """A failed tool result as a failure."""
    tool, body = entry.tool, entry.body
    if entry.kind != "tool_result" or body is None or tool is None or tool.ok:
        return None
    if body.content is None:
        why = f"an output of {body.bytes or 0} bytes"
    else:
        why = body.content.strip().partition("\n")[0].strip()[:WHY_CHARS_MAX] or "no output"
    mark = failure_fingerprint(TOOL_FAILURE, tool.name, why)
    return {"category": TOOL_FAILURE, "where": tool.name, "why": why, "fingerprint": mark}


_ALIKE = (
    (lazy_pattern(r'"[^"]*+"|“[^“”]*+”|`[^`]*+`|(?<!\w)\'[^\']*+\'(?!\w)'), "<text>"),
    (lazy_pattern(r"(?:(?<![a-z0-9+.-])|(?<=[+.-])(?<![a-z0-9+.-][+.-]))[a-z][a-z0-9+.-]*+://\S++"), "<path>"),
    (lazy_pattern(r"(?<![\w.~/\\-])(?:[a-z]:|~|\.{1,2})?(?:[\\/][\w.@+~-]++)++[\\/]?"), "<path>"),
    (lazy_pattern(r"(?<![\w.\\/-])(?:[\w.-]++[\\/])++[\w-]*+\.\w++"), "<path>"),
    (lazy_pattern(r"(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])"), "#"),
    (lazy_pattern(r"(?<![0-9a-z])(?:0x[0-9a-f]++|(?=[a-f]*+\d)[0-9a-f]{8,}+)(?![0-9a-z])"), "#"),
    (lazy_pattern(r"\d++(?:[.,:]\d++)*+"), "#"),
    (lazy_pattern(r"\s++"), " "),
)
"""Variable parts of a failure, and their placeholders. Each pattern starts only at the beginning of a run of its
characters, so that a text full of openings is read once.
"""


def failure_fingerprint(category: str, where: str, why: str) -> str:
    """A key that is equal for failures that differ only in numbers, ids, quoted words, paths, case or white space."""
    return short_id("ffp", [category, _alike(where), _alike(why)])


def _alike(words: str) -> str:
    said = words.casefold()
    for pattern, stands in _ALIKE:
        said = pattern.sub(stands, said)
    return said.strip()


def failure_id(run_id: str, fingerprint: str) -> str:
    return short_id("flr", [run_id, fingerprint])


# -- questions ----------------------------------------------------------------------------------------


def question_after(entry: LedgerEntry, before: OpenQuestion | None) -> OpenQuestion | None:
    """The question after this entry, open or closed. A closed one may be asked again."""
    said = _patch(entry)
    event = said.get("event")
    is_open = before is not None and before.status == "open"
    if event == QUESTION_OPENED and not is_open:
        wire = {"question_id": said.get("id"), "text": said.get("text"), "opened_by": entry.id, "status": "open"}
    elif event == QUESTION_CLOSED and before is not None and is_open and said.get("id") == before.question_id:
        answer = {"answer": said["answer"]} if "answer" in said else {}
        wire = before.to_wire() | {"status": "closed"} | answer
    else:
        return None
    try:
        return OpenQuestion.from_wire(wire)
    except InvalidRecord:
        return None


# -- items --------------------------------------------------------------------------------------------

_SAID_AT_START = ("task_type", *PINNED)
_FAILED: tuple[str, ...] = ("category", "where", "why", "fingerprint")
_VERIFIED: tuple[str, ...] = ("sources", "sandbox", "traces")
_SAID_OF_LOCK = ("diagnosis", "stop_reason")
Lookup = Callable[[str], Item | None]
_NOT_ITS: Final = object()


def project_run(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project the start, end, locking and unlocking of a run, from the metadata of `system` entries."""
    event = entry.metadata.get("event")
    if event not in (RUN_STARTED, RUN_FINISHED, RUN_LOCKED, RUN_UNLOCKED):
        return []
    before = lookup(entry.scope.run_id)
    if event == RUN_STARTED:
        said = {key: entry.metadata[key] for key in _SAID_AT_START if key in entry.metadata}
        plain: dict[str, Any] = {"scope": entry.scope.to_wire(), "started_at": entry.ts} | said
        status = "open"
    elif before is None:
        return []
    else:
        # A forgotten run continues, and ends, without its purpose.
        started: dict[str, Any] = {"scope": entry.scope.to_wire(), "started_at": before.created_at}
        plain = started if before.body is None else before.plain()
        plain, status = _after(entry, event, plain)
    try:
        state = RunState.from_wire(plain | {"run_id": entry.scope.run_id})
    except InvalidRecord:  # not written by one of our runs, so no run
        return []
    return [change_of(entry, entry.scope.run_id, "run", status, state.to_wire(), (entry.id,))]


def _after(entry: LedgerEntry, event: str, plain: dict[str, Any]) -> tuple[dict[str, Any], str]:
    if event == RUN_LOCKED:
        said = {"diagnosis": entry.metadata.get("diagnosis") or {}, "stop_reason": "SYSTEM_ERROR"}
        return plain | said, "locked"
    open_again = {key: value for key, value in plain.items() if key not in _SAID_OF_LOCK}
    if event == RUN_UNLOCKED:
        return open_again, "open"
    return plain | {"finished_at": entry.ts, "stop_reason": entry.metadata.get("stop_reason") or ""}, "finished"


def run_without(item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    """The run without its purpose, which came from the lost entry; the run itself goes on. Null records that there was
    one.
    """
    plain = item.plain()
    told = {key: None for key in PINNED if key in plain}
    return {key: value for key, value in plain.items() if key not in _SAID_AT_START} | told


def erased(_item: Item, _lost: frozenset[str]) -> None:
    """Drop the item, since it may hold words of what was forgotten."""


def name_of_words(run_id: str, words: str) -> str:
    """The lookup name of a claim or question: its words within its run."""
    return digest_name(f"{run_id}\n{words}")


def project_claim(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    before = _before(entry, lookup, "claim", RunClaim)
    claim = None if before is _NOT_ITS else claim_after(entry, before)
    if claim is None or claim == before:
        return []
    cited = (ref.chunk_id for ref in (*claim.evidence_refs, *(claim.refuted_by or ())))
    sources = (entry.id, *cited, *claim.depends_on)
    name = name_of_words(entry.scope.run_id, claim.statement)
    return [change_of(entry, claim.claim_id, "claim", claim.status, claim.to_wire(), sources, name)]


def project_conflict(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    before = _before(entry, lookup, "conflict", RunConflict)
    conflict = None if before is _NOT_ITS else conflict_after(entry, before)
    if conflict is None or conflict == before:
        return []
    cited = (ref.chunk_id for ref in (*conflict.side_a_refs, *conflict.side_b_refs))
    sources = (entry.id, *cited, *conflict.claim_ids)
    return [change_of(entry, conflict.conflict_id, "conflict", conflict.status, conflict.to_wire(), sources)]


def project_question(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    before = _before(entry, lookup, "question", OpenQuestion)
    question = None if before is _NOT_ITS else question_after(entry, before)
    if question is None or question == before:
        return []
    name = name_of_words(entry.scope.run_id, question.text)
    return [change_of(entry, question.question_id, "question", question.status, question.to_wire(), (entry.id,), name)]


def project_failure(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """One occurrence, recorded by the run or a failed tool result. The run's log counts occurrences."""
    if entry.kind == "tool_result":
        return _change_of_failed_tool(entry)
    said = entry.metadata
    id_ = said.get("id")
    if said.get("event") != FAILURE_RECORDED or not isinstance(id_, str) or lookup(id_) is not None:
        return []
    body: dict[str, Any] = {key: said[key] for key in _FAILED if key in said}
    return [change_of(entry, id_, "failure", "recorded", body, sources_named(entry))]


def _change_of_failed_tool(entry: LedgerEntry) -> list[Change]:
    if entry.tool is None or entry.tool.ok:
        return []
    met = failure_after(entry, None)
    if met is None:
        return []
    body: dict[str, Any] = {key: getattr(met, key) for key in _FAILED}
    return [change_of(entry, short_id("flr", [entry.id]), "failure", "met", body, (entry.id,))]


def project_actions(entry: LedgerEntry, _lookup: Lookup) -> list[Change]:
    """The run's plan of next actions; the latest counts. Each is a separate item, so that forgetting one does not
    affect later ones.
    """
    actions = entry.metadata.get("actions")
    if entry.metadata.get("event") != ACTIONS_PLANNED or not isinstance(actions, list):
        return []
    if not all(isinstance(each, str) and each.strip() for each in actions):
        return []
    body = {"actions": actions, "seq": entry.seq, "planned_by": entry.id}
    return [change_of(entry, short_id("act", [entry.id]), "next_actions", "planned", body, (entry.id,))]


def project_verification(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """A result of the verifier, and the event that it judges."""
    said = entry.metadata
    id_, result = said.get("id"), said.get("result")
    if said.get("event") != OUTPUT_VERIFIED or not isinstance(id_, str) or lookup(id_) is not None:
        return []
    from muniment.contracts.runs import VerifierResult

    try:
        judged = VerifierResult.from_wire(result)
    except InvalidRecord:  # not written by one of our runs, so no verification
        return []
    body: dict[str, Any] = {"result": judged.to_wire()} | {key: said[key] for key in _VERIFIED if key in said}
    return [change_of(entry, id_, "verification", judged.verdict, body, sources_named(entry))]


def sources_named(entry: LedgerEntry) -> tuple[str, ...]:
    """The entry itself, and the sources that it names."""
    named = entry.metadata.get("sources")
    return (entry.id, *(each for each in named if isinstance(each, str))) if isinstance(named, list) else (entry.id,)


def _before(entry: LedgerEntry, lookup: Lookup, kind: str, record: type[Record]) -> Any:
    """The previous state of an entry's record; None if it is new, `_NOT_ITS` if there is no such record.

    An imported entry may name anything: one that names another's record changes nothing of it.
    """
    subject = subject_of(entry)
    if subject is None or subject[0] != kind:
        return _NOT_ITS
    item = lookup(subject[1])
    if item is None:
        return None
    if item.kind != kind or item.run_id != entry.scope.run_id or item.user_id != entry.scope.user_id:
        return _NOT_ITS
    return None if item.body is None else record.from_wire(item.plain())


def change_of(
    entry: LedgerEntry,
    id_: str,
    kind: str,
    status: str,
    body: dict[str, Any],
    sources: tuple[str, ...],
    name: str | None = None,
) -> Change:
    return Change(
        id=id_,
        kind=kind,
        status=status,
        body=body,
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=tuple(dict.fromkeys(sources)),
        name=name,
        user_id=entry.scope.user_id,
        agent_id=entry.scope.agent_id,
        session_id=entry.scope.session_id,
        run_id=entry.scope.run_id,
    )
