"""The evidence pointer of the snapshot contract (002 §C): which evidence, which chunk of it, which span."""

from muniment.core.record import ObjectArrayOrText, OpenRecord

__all__ = ["EvidencePointer"]


class EvidencePointer(OpenRecord):  # CS-03
    """A reference to stored bytes; never the bytes themselves."""

    evidence_id: str
    chunk_id: str
    span: ObjectArrayOrText
    """`{start, end}` when we write it; "offsets or equivalent", so an array or a string, when we read it."""
