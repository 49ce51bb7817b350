"""Every kind of document and its record class.

Listing the kinds imports no record: a record is imported when its kind is resolved.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from muniment.errors import UnknownKind

if TYPE_CHECKING:
    from muniment.core.record import Record

# kind → (module of this room, class), in the order of the documents. The class is the kind's own name
# unless the house words differ.
_RECORDS: dict[str, tuple[str, str]] = {
    "MemoryPacket": ("packet", "MemoryPacket"),
    "RuleRecord": ("rules", "RuleRecord"),
    "CandidateSelectRequest": ("rules", "CandidateSelectRequest"),
    "CandidateSelectResponse": ("rules", "CandidateSelectResponse"),
    "VerifierResult": ("runs", "VerifierResult"),
    "FGFCReport": ("runs", "FGFCReport"),
    "EventLog": ("runs", "EventLog"),
    "TraceCapsule": ("runs", "TraceCapsule"),
    "FoldResult": ("learning", "FoldResult"),
    "MemoryActionPlan": ("learning", "MemoryActionPlan"),
    "MemoryActionRecord": ("learning", "MemoryActionRecord"),
    "DistillDraft": ("rules", "DistillDraft"),
    "PatterningPlan": ("rules", "PatterningPlan"),
    "RegressionTestSpec": ("rules", "RegressionTestSpec"),
    "RolloutSummary": ("runs", "RolloutSummary"),
    "FlowMapSnapshot": ("rules", "FlowMapSnapshot"),
    "ReuseStateRecord": ("learning", "ReuseStateRecord"),
    "ConditionalTacticRecord": ("learning", "ConditionalTactic"),
    "ReuseBuffer": ("learning", "ReuseBuffer"),
    "ReuseSelectMeta": ("learning", "ReuseSelectMeta"),
    "WorkingSetRecord": ("learning", "WorkingSetRecord"),
    "WorkingSet": ("learning", "WorkingSet"),
    "ReasoningMemoryRecord": ("learning", "ReasoningMemory"),
    "ReasoningBank": ("learning", "ReasoningBank"),
    "MemoryRecallRequest": ("learning", "MemoryRecallRequest"),
    "MemoryHint": ("learning", "MemoryHint"),
    "MemoryRecallResponse": ("learning", "MemoryRecallResponse"),
    "SandboxPolicy": ("runs", "SandboxPolicy"),
    "SandboxActionTrace": ("runs", "SandboxActionTrace"),
    "CompactionSnapshot": ("snapshot", "CompactionSnapshot"),
    "EvidencePointer": ("snapshot", "EvidencePointer"),
    "Perspectives": ("research", "Perspectives"),
    "SummaryPack": ("research", "SummaryPack"),
}

KINDS: tuple[str, ...] = tuple(_RECORDS)
_OWN = {"PortableLine": ("portable", "PortableLine")}
_ALL = {**_RECORDS, **_OWN}
ALL_KINDS: tuple[str, ...] = tuple(_ALL)
"""Kinds of the four documents, and our own formats that others read and write."""

_DOCUMENTS = {
    "packet": "MemoryPacket v1",
    "snapshot": "Compaction snapshot v1",
    "research": "Router and summary schemas v1",
    "portable": "Portable memory v1",
}


def check_kind(kind: str) -> None:
    """Raise `UnknownKind`, with similar names, unless there is such a kind."""
    if kind in _ALL:
        return
    by_folded = {name.casefold(): name for name in ALL_KINDS}
    close = [by_folded[name] for name in get_close_matches(kind.casefold(), list(by_folded), n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(close)}?" if close else "`muniment schema list` shows every kind"
    raise UnknownKind(f"there is no kind {kind!r:.80}", hint=hint)


def document_of(kind: str) -> str:
    """Return the contract document a kind comes from."""
    check_kind(kind)
    return _DOCUMENTS.get(_ALL[kind][0], "Rulecraft v0.5.15")


def record_of(kind: str) -> type[Record]:
    """Return the record class of a kind."""
    check_kind(kind)
    module, name = _ALL[kind]
    found: type[Record] = getattr(import_module(f"muniment.contracts.{module}"), name)
    return found
