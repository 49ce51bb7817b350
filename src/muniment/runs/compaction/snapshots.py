"""A run's log as a snapshot of the contract, and back.

The snapshot says all that the log says, so that `log_of` is an exact inverse. What the contract does not list stands in
extra keys: `budgets`, `previous_snapshot_id`, `deltas`, `cursor` (where the fold stands), and in `state` the keys
`next_actions` and `open_question_refs` (the id and the entry of each question, in their order).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.contracts.snapshot import CompactionSnapshot, SnapshotValidation
from muniment.core.canonical import short_id
from muniment.core.record import JsonObject
from muniment.errors import InvalidRecord, Issue
from muniment.runs.records import RunLog

__all__ = [
    "DELTAS",
    "NEXT_ACTIONS_MAX",
    "PROVENANCE_MODE",
    "log_of",
    "log_of_wire",
    "snapshot_id_of",
    "snapshot_of",
    "snapshots_id",
    "split_snapshot_id",
]

PROVENANCE_MODE = "audit_only"
NEXT_ACTIONS_MAX = 3
DELTAS = (
    "claims_made",
    "claims_verified",
    "claims_retracted",
    "claims_demoted",
    "conflicts_recorded",
    "conflicts_settled",
    "failures_met",
    "questions_opened",
    "questions_closed",
)
"""The lists of ids in `deltas`; besides them stand `counts`."""
_CURSOR = ("seq", "step", "phase", "last_action", "repeats", "loops")
_SHOWN_CHARS_MAX = 120
_NOTHING_OPEN = "Compare what is verified with the done definition: finish, or plan the next step"


def snapshots_id(run_id: str) -> str:
    """The one item whose versions are the run's snapshots."""
    return short_id("snp", run_id)


def snapshot_id_of(run_id: str, sequence: int) -> str:
    return f"{snapshots_id(run_id)}.{sequence}"


def split_snapshot_id(snapshot_id: str) -> tuple[str, int] | None:
    """The item and the version that an id names; None where it is not one of ours."""
    match = re.fullmatch(r"(snp_[0-9a-f]{32})\.([1-9][0-9]{0,18})", snapshot_id, re.ASCII)
    return None if match is None else (match[1], int(match[2]))


# -- from the log -------------------------------------------------------------------------------------


def snapshot_of(
    log: RunLog,
    *,
    snapshot_id: str,
    created_at: str,
    previous: CompactionSnapshot | None,
    policy_ref: str | None,
    retrieval_diagnostics: JsonObject,
    validation: SnapshotValidation,
) -> CompactionSnapshot:
    """The next snapshot of the run: its log as it stands, and what changed since `previous`.

    Its sequence is the one its id names: an earlier snapshot may have been forgotten, with the entry that told of it.
    """
    wire = log.to_wire()
    named = split_snapshot_id(snapshot_id)
    state = {
        "claims": wire["claims"],
        "conflicts": wire["conflicts"],
        "open_questions": [question.text for question in log.open_questions],
        "open_question_refs": [
            {"question_id": question.question_id, "opened_by": question.opened_by} for question in log.open_questions
        ],
        "failures": wire["failures"],
        "source_coverage": wire["coverage"],
        "next_actions": wire["next_actions"] or _derived_actions(log),
    }
    return CompactionSnapshot.from_wire(
        {
            "snapshot_id": snapshot_id,
            "run_id": log.run_id,
            "sequence": log.sequence + 1 if named is None else named[1],
            "created_at": created_at,
            "objective": log.objective,
            "done_definition": wire["done_definition"],
            "provenance_mode": PROVENANCE_MODE,
            "policy_snapshot_ref": policy_ref,
            "counts": {
                "steps_since_last_compaction": len(log.steps_since),
                "counted_events_since_last_compaction": len(log.counted_since),
            },
            "latest_context_manifest_ids": wire["manifest_ids"],
            "state": state,
            "retrieval_diagnostics": retrieval_diagnostics,
            "validation": validation.to_wire(),
            "previous_snapshot_id": None if previous is None else previous.snapshot_id,
            "budgets": {"limits": wire["budgets"], "used": wire["spent"]},
            "deltas": _deltas(log, previous),
            "cursor": {name: wire[name] for name in _CURSOR} | {"planned": len(log.next_actions)},
        }
    )


def _derived_actions(log: RunLog) -> list[str]:
    """What is open, where the run planned nothing: conflicts first, then what lacks evidence, then questions."""
    found = [
        f"Settle the conflict {each.conflict_id}: {_short_line(each.description)}" for each in _open(log.conflicts)
    ]
    for claim in log.claims:
        if claim.status == "candidate":
            found.append(f"Find evidence for the claim {claim.claim_id}: {_short_line(claim.statement)}")
        if len(found) >= NEXT_ACTIONS_MAX:
            break
    found += [f"Answer the question: {_short_line(each.text)}" for each in log.open_questions[:NEXT_ACTIONS_MAX]]
    return found[:NEXT_ACTIONS_MAX] or [_NOTHING_OPEN]


def _open(records: Iterable[Any]) -> list[Any]:
    return [record for record in records if record.status == "open"][:NEXT_ACTIONS_MAX]


def _short_line(words: str) -> str:
    """Words on one line, cut to the length that is shown."""
    line = " ".join(words.split())
    return line if len(line) <= _SHOWN_CHARS_MAX else line[: _SHOWN_CHARS_MAX - 1] + "…"


# -- what changed -------------------------------------------------------------------------------------


def _deltas(log: RunLog, previous: CompactionSnapshot | None) -> dict[str, Any]:
    before = {} if previous is None else previous.to_wire()
    state = before.get("state", {})
    claims = _by_id(state, "claims", "claim_id", "status")
    conflicts = _by_id(state, "conflicts", "conflict_id", "status")
    failures = _by_id(state, "failures", "failure_id", "count")
    questions = _by_id(state, "open_question_refs", "question_id", "opened_by")
    now = {question.question_id: question.opened_by for question in log.open_questions}
    changed = [claim for claim in log.claims if claims.get(claim.claim_id) != claim.status]
    lists = (
        [claim.claim_id for claim in changed if claim.claim_id not in claims],
        [claim.claim_id for claim in changed if claim.status == "verified"],
        [claim.claim_id for claim in changed if claim.status == "retracted"],
        [claim.claim_id for claim in changed if claim.status == "candidate" and claim.claim_id in claims],
        [each.conflict_id for each in log.conflicts if each.conflict_id not in conflicts],
        [each.conflict_id for each in log.conflicts if each.status == "settled" != conflicts.get(each.conflict_id)],
        [each.failure_id for each in log.failures if each.count != failures.get(each.failure_id)],
        [id_ for id_, by in now.items() if by != questions.get(id_)],
        [id_ for id_, by in questions.items() if by != now.get(id_)],
    )
    used = _used(before)
    counts = {name: value - used.get(name, 0) for name, value in log.spent.to_wire().items()}
    return dict(zip(DELTAS, lists, strict=True)) | {"counts": counts}


def _by_id(state: Mapping[str, Any], name: str, key: str, value: str) -> dict[str, Any]:
    return {each[key]: each.get(value) for each in state.get(name, ())}


def _used(before: Mapping[str, Any]) -> dict[str, int]:
    return before["budgets"]["used"] if before else {}


# -- and back -----------------------------------------------------------------------------------------


def log_of(snapshot: CompactionSnapshot) -> RunLog:
    """The log as it stands just after this snapshot: nothing has happened since.

    Raises `InvalidRecord` where the snapshot lacks the keys of ours that a log is made of.
    """
    return log_of_wire(snapshot.to_wire())


def log_of_wire(wire: Mapping[str, Any]) -> RunLog:
    """`log_of` a snapshot in its plain form."""
    cursor, budgets = _part(wire, "$", "cursor"), _part(wire, "$", "budgets")
    state = wire["state"]
    return RunLog.from_wire(
        {name: cursor[name] for name in _CURSOR if name in cursor}
        | {
            "run_id": wire["run_id"],
            "objective": wire["objective"],
            "done_definition": wire["done_definition"],
            "budgets": budgets.get("limits"),
            "spent": budgets.get("used"),
            "claims": state["claims"],
            "conflicts": state["conflicts"],
            "failures": state["failures"],
            "open_questions": _questions(state),
            "next_actions": _planned(cursor, state),
            "coverage": state["source_coverage"],
            "manifest_ids": wire["latest_context_manifest_ids"],
            "sequence": wire["sequence"],
            "counted_since": [],
            "steps_since": [],
        }
    )


def _planned(cursor: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    """The next actions that the run named; those that were derived are none of its plan."""
    planned, actions = cursor.get("planned"), state.get("next_actions")
    if planned == 0:
        return []
    if not isinstance(actions, list) or planned != len(actions):
        raise _not_ours("$.state.next_actions", "not as many as were planned")
    return actions


def _questions(state: Mapping[str, Any]) -> list[Any]:
    texts: Sequence[str] = state["open_questions"]
    refs = state.get("open_question_refs")
    if not isinstance(refs, list) or len(refs) != len(texts) or not all(isinstance(ref, dict) for ref in refs):
        raise _not_ours("$.state.open_question_refs", "wanted one for each open question")
    return [ref | {"text": text, "status": "open"} for text, ref in zip(texts, refs, strict=True)]


def _part(wire: Mapping[str, Any], path: str, name: str) -> Mapping[str, Any]:
    part = wire.get(name)
    if not isinstance(part, dict):
        raise _not_ours(f"{path}.{name}", "wanted an object")
    return part


def _not_ours(path: str, said: str) -> InvalidRecord:
    return InvalidRecord("not a snapshot that a log can be made of", [Issue(path, said)])
