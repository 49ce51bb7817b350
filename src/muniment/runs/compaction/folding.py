"""The fold: a run's entries, one after the other, into its `RunLog`.

Every field is either bounded or grows only with what the run claims, and each can be gone on with from where a
snapshot left it: so a snapshot and the entries after it give the same log as all of them (CS-12).

- Steps: only `<PHASE>_DONE` moves the step machine. With a number, a greater one begins that step, and a smaller one
  belongs to a step that is over. Without, a phase that does not come after the last begins the next step.
- Loops: `loop_actions` equal actions in a row are one loop, however long the row gets. An action that says neither
  what was done nor anything else is equal to none.
- Seen: everything cited, in the order in which it was first cited, then the latest `seen_max` others, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterable

from muniment.contracts.snapshot import EvidencePointer, SourceCoverage
from muniment.core.canonical import digest_of
from muniment.core.policy import CompactionPolicy
from muniment.core.record import JsonObject
from muniment.core.scope import LEDGER_CORPUS
from muniment.runs.compaction.transitions import (
    claim_after,
    conflict_after,
    failure_after,
    question_after,
    started_by,
    subject_of,
)
from muniment.runs.records import CountedFailure, OpenQuestion, RunClaim, RunConflict, RunLog, Spent
from muniment.store.ledger import ACTIONS_PLANNED, COUNTED_EVENTS, PHASES, SNAPSHOT_TAKEN, LedgerEntry, StepEvent

__all__ = ["RunFold", "action_signature", "corpus_of"]

_PHASE_ENDS = {f"{phase}_DONE": (phase, place) for place, phase in enumerate(PHASES)}
_PLACES = {phase: place for place, phase in enumerate(PHASES)}


class RunFold:
    """A run's log in the making. `see` its entries in order, or the whole session's; `log` says how it stands."""

    def __init__(self, run_id: str, policy: CompactionPolicy, log: RunLog | None = None) -> None:
        log = log or _empty(run_id)
        self._run_id = run_id
        self._policy = policy
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
        _touch(self._recent, (), policy.seen_max)  # the policy may have become stricter since the snapshot
        _touch(self._manifests, (), policy.manifests_max)
        self._sequence = log.sequence
        self._counted_since, self._steps_since = list(log.counted_since), list(log.steps_since)

    def see(self, entry: LedgerEntry) -> None:
        """Fold in the next entry; one that was folded in before changes nothing."""
        if entry.seq <= self._seq:
            return
        self._seq = entry.seq
        body = entry.body
        if body is None or entry.scope.run_id != self._run_id:
            return
        kind = entry.kind
        if kind == "step" and body.step is not None:
            self._see_step(entry, body.step)
        elif kind == "state_patch":
            self._see_patch(entry)
        elif kind == "tool_result":
            self._tool_calls += 1
            if body.tool is not None and not body.tool.ok:
                self._see_record(entry)
        elif kind == "system" and not self._events:
            self._see_start(entry)
        self._events += 1

    def miss(self, seq: int, kind: str) -> bool:
        """Count the next entry without its words, which nobody can read; would they have told of the run?"""
        is_telling = kind != "message" and (kind != "system" or not self._events)
        self._seq = max(self._seq, seq)
        self._events += 1
        return is_telling

    def _see_start(self, entry: LedgerEntry) -> None:
        """Only the run's first entry says what it is for (CS-05)."""
        started = started_by(entry)
        if started is not None:
            self._objective, self._done, self._budgets = started

    # -- steps

    def _see_step(self, entry: LedgerEntry, step: StepEvent) -> None:
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

    # -- what the run says of itself

    def _see_patch(self, entry: LedgerEntry) -> None:
        event = entry.metadata.get("event")
        if event == SNAPSHOT_TAKEN:
            self._see_snapshot(entry.metadata)
        elif event == ACTIONS_PLANNED:
            actions = entry.metadata.get("actions")
            if isinstance(actions, list) and all(isinstance(each, str) and each.strip() for each in actions):
                self._next_actions = tuple(str(each) for each in actions[: self._policy.next_actions_max])
        else:
            self._see_record(entry)

    def _see_snapshot(self, said: JsonObject) -> None:
        """What the snapshot holds is no longer since it."""
        sequence, upto = said.get("sequence"), said.get("upto")
        if type(sequence) is not int or type(upto) is not int or sequence < 1 or not 0 <= upto < self._seq:
            return
        self._sequence = sequence
        self._counted_since = [seq for seq in self._counted_since if seq > upto]
        self._steps_since = [seq for seq in self._steps_since if seq > upto]

    def _see_record(self, entry: LedgerEntry) -> None:
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

    # -- how it stands

    @property
    def steps(self) -> int:
        """Steps begun."""
        return self._steps

    @property
    def repeats(self) -> int:
        """How many times in a row the last action was taken."""
        return self._repeats

    @property
    def loops(self) -> int:
        return self._loops

    @property
    def sequence(self) -> int:
        """The number of the last snapshot."""
        return self._sequence

    @property
    def counted_since(self) -> int:
        """Counted events since that snapshot."""
        return len(self._counted_since)

    @property
    def chunks_cited(self) -> int:
        return len(self._cited)

    def log(self) -> RunLog:
        """The run as it stands."""
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
    """What tells one action from another: what was done, else what was said of it; None where nothing was."""
    if action:
        return digest_of(action)
    return digest_of(content) if content and content.strip() else None


def corpus_of(ref: EvidencePointer) -> str:
    """The corpus a pointer points into; the ledger, where it does not say."""
    named = (ref.model_extra or {}).get("corpus_id")
    return named if isinstance(named, str) and named else LEDGER_CORPUS


def _touch(recent: dict[str, None], ids: Iterable[str], limit: int) -> None:
    """Note these as the latest; what is then over the limit goes, oldest first."""
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
