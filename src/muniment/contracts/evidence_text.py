"""Evidence pointers in a line of Markdown."""

from __future__ import annotations

from muniment.contracts.evidence import EvidencePointer
from muniment.core.markdown import escaped, span_text, value_text

__all__ = ["place_text", "pointer_text"]


def pointer_text(pointer: EvidencePointer) -> str:
    """`ev_1 [corpus/chunk 12–34]`."""
    return f"{value_text(pointer.evidence_id)} [{place_text(pointer)}]"


def place_text(pointer: EvidencePointer) -> str:
    """`corpus/chunk 12–34`; without the corpus where the pointer does not name it."""
    named = getattr(pointer, "corpus_id", None)
    corpus = escaped(named) if isinstance(named, str) else ""
    return f"{corpus}{'/' if corpus else ''}{value_text(pointer.chunk_id)} {span_text(pointer.span)}"
