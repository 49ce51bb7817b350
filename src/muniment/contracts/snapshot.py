"""The compaction snapshot (002): the authoritative state of a run, in pointers.

Every listed key is stable, so every one is present (X-03); `policy_snapshot_ref` alone may be null.
`contracts.semantics` checks that a verified claim has a pointer and a conflict one on each side, without reading the
document's own `validation` block.
"""

from typing import Literal

from muniment.core.record import Integer, Items, JsonObject, ObjectArrayOrText, ObjectOrText, OpenRecord


class EvidencePointer(OpenRecord):  # CS-03
    """A reference to stored bytes; never the bytes themselves."""

    evidence_id: str
    chunk_id: str
    span: ObjectArrayOrText
    """`{start, end}` when written; "offsets or equivalent", so an array or a string, when read."""


class SnapshotCounts(OpenRecord):  # CS-10
    """What happened since the last compaction."""

    steps_since_last_compaction: Integer
    counted_events_since_last_compaction: Integer


class Claim(OpenRecord):  # CS-06
    """A statement of the run with its duty of evidence; `status` is an open string. Not a `Fact`."""

    claim_id: str
    status: str
    statement: str
    evidence_refs: Items[EvidencePointer]


class ClaimConflict(OpenRecord):  # CS-07
    """Two sides that cannot both be right."""

    conflict_id: str
    description: str
    side_a_refs: Items[EvidencePointer]
    side_b_refs: Items[EvidencePointer]


class RunFailure(OpenRecord):
    """Something that went wrong, where and why."""

    failure_id: str
    category: str
    where: str
    why: str


class SourceCoverage(OpenRecord):  # CS-04
    """Which sources and chunks were seen and cited."""

    source_ids_seen: Items[str]
    chunk_ids_seen: Items[str]
    chunk_ids_cited: Items[str]


class SnapshotState(OpenRecord):
    """Claims, conflicts, open questions, failures and coverage."""

    claims: Items[Claim]
    conflicts: Items[ClaimConflict]
    open_questions: Items[str]
    failures: Items[RunFailure]
    source_coverage: SourceCoverage


class SnapshotCheck(OpenRecord):
    """One check of the validation."""

    name: str
    status: str
    message: str


class SnapshotValidation(OpenRecord):  # CS-09
    """What the writer's own validation said."""

    status: Literal["PASS", "FAIL"]
    checks: Items[SnapshotCheck]
    failure_action_taken: Literal["NONE", "RETRY", "SYSTEM_ERROR"]


class CompactionSnapshot(OpenRecord):  # CS-01
    """One immutable snapshot of a run."""

    snapshot_id: str
    run_id: str
    sequence: Integer
    created_at: str
    objective: str
    done_definition: ObjectOrText
    provenance_mode: str
    policy_snapshot_ref: str | None
    counts: SnapshotCounts
    latest_context_manifest_ids: Items[str]
    state: SnapshotState
    retrieval_diagnostics: JsonObject
    validation: SnapshotValidation
