"""Evidence pointers against the bytes they point to (CS-06): span, quote hash and evidence id, all made anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.contracts.snapshot import EvidencePointer
from muniment.core.scope import Span, derive_evidence_id, quote_hash
from muniment.errors import InvalidRecord
from muniment.runs.compaction.folding import corpus_of

__all__ = ["chunk_faults"]


def chunk_faults(held: bytes | str, refs: Sequence[EvidencePointer]) -> Iterator[str | None]:
    """What is wrong with each of these pointers into one chunk; `held` is its bytes, or in words why there are none."""
    for ref in refs:
        yield held if isinstance(held, str) else _fault(held, ref)


def _fault(data: bytes, ref: EvidencePointer) -> str | None:
    extras = ref.model_extra or {}
    if not isinstance(extras.get("corpus_id"), str):
        return "it names no corpus"
    try:
        span = Span.from_wire(ref.span)
    except InvalidRecord:
        return "its span is not {start, end}"
    if span.end > len(data):
        return f"its span ends at byte {span.end}, the chunk has {len(data)}"
    if span.start == span.end:
        return "its span is empty"
    try:
        digest = quote_hash(data[span.start : span.end].decode())
    except UnicodeDecodeError:
        return "its span cuts a character in two"
    if extras.get("quote_hash") != digest:
        return "the bytes at its span are not those that were quoted"
    if ref.evidence_id != derive_evidence_id(corpus_of(ref), ref.chunk_id, span, digest):
        return "its evidence_id is not that of its corpus, chunk, span and quote"
    return None
