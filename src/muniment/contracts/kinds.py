"""The kinds of the four documents and the record each one is (X-01), and the formats of ours that have a schema too.

Listing the kinds imports no record: the modules are loaded when a kind is resolved.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from muniment.errors import UnknownKind

if TYPE_CHECKING:
    from muniment.core.record import Record

__all__ = ["ALL_KINDS", "KINDS", "check_kind", "document_of", "record_of"]

# kind → (module of this room, class), in the order of the documents. The class is the kind's own name
# unless the house words say otherwise.
_RECORDS: dict[str, tuple[str, str]] = {
    "MemoryPacket": ("memory_packet", "MemoryPacket"),
    "RuleRecord": ("rules", "RuleRecord"),
    "CandidateSelectRequest": ("rules", "CandidateSelectRequest"),
    "CandidateSelectResponse": ("rules", "CandidateSelectResponse"),
    "VerifierResult": ("run_records", "VerifierResult"),
    "FGFCReport": ("run_records", "FGFCReport"),
    "EventLog": ("run_records", "EventLog"),
    "TraceCapsule": ("run_records", "TraceCapsule"),
    "FoldResult": ("folding", "FoldResult"),
    "MemoryActionPlan": ("folding", "MemoryActionPlan"),
    "MemoryActionRecord": ("folding", "MemoryActionRecord"),
    "DistillDraft": ("rules", "DistillDraft"),
    "PatterningPlan": ("patterning", "PatterningPlan"),
    "RegressionTestSpec": ("rules", "RegressionTestSpec"),
    "RolloutSummary": ("run_records", "RolloutSummary"),
    "FlowMapSnapshot": ("flow_map", "FlowMapSnapshot"),
    "ReuseStateRecord": ("learned_memory", "ReuseStateRecord"),
    "ConditionalTacticRecord": ("learned_memory", "ConditionalTactic"),
    "ReuseBuffer": ("learned_memory", "ReuseBuffer"),
    "ReuseSelectMeta": ("learned_memory", "ReuseSelectMeta"),
    "WorkingSetRecord": ("learned_memory", "WorkingSetRecord"),
    "WorkingSet": ("learned_memory", "WorkingSet"),
    "ReasoningMemoryRecord": ("learned_memory", "ReasoningMemory"),
    "ReasoningBank": ("learned_memory", "ReasoningBank"),
    "MemoryRecallRequest": ("learned_memory", "MemoryRecallRequest"),
    "MemoryHint": ("learned_memory", "MemoryHint"),
    "MemoryRecallResponse": ("learned_memory", "MemoryRecallResponse"),
    "SandboxPolicy": ("sandbox", "SandboxPolicy"),
    "SandboxActionTrace": ("sandbox", "SandboxActionTrace"),
    "CompactionSnapshot": ("snapshot", "CompactionSnapshot"),
    "EvidencePointer": ("evidence", "EvidencePointer"),
    "Perspectives": ("research", "Perspectives"),
    "SummaryPack": ("research", "SummaryPack"),
}

KINDS: tuple[str, ...] = tuple(_RECORDS)
_OWN = {"PortableLine": ("portable", "PortableLine")}
_ALL = {**_RECORDS, **_OWN}
ALL_KINDS: tuple[str, ...] = tuple(_ALL)
"""Those of the four documents, and the formats of ours that others read and write."""

_DOCUMENTS = {
    "memory_packet": "MemoryPacket v1",
    "snapshot": "Compaction snapshot v1",
    "evidence": "Compaction snapshot v1",
    "research": "Router and summary schemas v1",
    "portable": "Portable memory v1",
}


def check_kind(kind: str) -> None:
    """Raise `UnknownKind`, with the names that come close, unless there is such a kind."""
    if kind in _ALL:
        return
    by_folded = {name.casefold(): name for name in ALL_KINDS}
    close = [by_folded[name] for name in get_close_matches(kind.casefold(), list(by_folded), n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(close)}?" if close else "`muniment schema list` shows every kind"
    raise UnknownKind(f"there is no kind {kind!r:.80}", hint=hint)


def document_of(kind: str) -> str:
    """The contract document a kind comes from."""
    check_kind(kind)
    return _DOCUMENTS.get(_ALL[kind][0], "Rulecraft v0.5.15")


def record_of(kind: str) -> type[Record]:
    """The record class of a kind."""
    check_kind(kind)
    module, name = _ALL[kind]
    found: type[Record] = getattr(import_module(f"muniment.contracts.{module}"), name)
    return found
