"""Evidence cited by claims and conflicts: each pointer is checked against the stored bytes as it is written (CS-06)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.contracts.snapshot import EvidencePointer
from muniment.core.requests import ByRule, is_listing
from muniment.core.scope import (
    LEDGER_CORPUS,
    ChunkSpan,
    EventSpan,
    Pointer,
    Span,
    derive_evidence_id,
    owner_of,
    quote_hash,
)
from muniment.errors import InvalidInput, MunimentError, QuoteMismatch
from muniment.store.ledger import pointer_address
from muniment.store.reading import pointer_of, resolve_in, source_row

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope, Trust

__all__ = ["Cited", "Pointers", "cite", "cite_again", "owners_of", "pointer_to", "pointers_of", "sources_of"]

_NO_EVIDENCE = ("state_patch", "system", "step")


class Cited(NamedTuple):
    """A pointer that was found to hold."""

    pointer: EvidencePointer
    trust: Trust
    role: str


def pointers_of(evidence: Any, path: str) -> list[Pointer]:
    """What a caller gave as evidence: event ids, pointer records or their plain forms. Read before any transaction."""
    if not is_listing(evidence):
        raise InvalidInput("evidence is a list of pointers", path=path, hint="wrap a single one in a list")
    found: list[Pointer] = []
    for index, given in enumerate(evidence):
        with _at(path, index):
            found.append(pointer_of(given))
    return found


Pointers = Annotated[list[Pointer], ByRule(pointers_of)]
"""Of a request: evidence, as `pointers_of` reads it."""


def owners_of(scope: Scope, pointers: Iterable[Pointer]) -> list[str]:
    """Whose documents are cited: what is built on them is not written while they are forgotten."""
    corpora = {pointer.corpus_id for pointer in pointers if isinstance(pointer, ChunkSpan)}
    return [owner_of(corpus_id, user) for corpus_id in sorted(corpora) for user in (None, scope.user_id)]


def cite(reader: Reader, scope: Scope, pointers: Sequence[Pointer], path: str) -> list[Cited]:
    """Each pointer as a snapshot writes it, its bytes checked."""
    found: dict[str, Cited] = {}
    for index, pointer in enumerate(pointers):
        with _at(path, index):
            cited = _cite(reader, scope, pointer)
        found.setdefault(cited.pointer.evidence_id, cited)
    return list(found.values())


@contextmanager
def _at(path: str, index: int) -> Iterator[None]:
    """Says of an error in which pointer it was met."""
    try:
        yield
    except MunimentError as error:
        error.path = f"{path}[{index}]{(error.path or '$')[1:]}"
        raise


def _cite(reader: Reader, scope: Scope, pointer: Pointer) -> Cited:
    row = source_row(reader, pointer, scope.user_id)
    if row.kind in _NO_EVIDENCE:
        raise InvalidInput(
            f"the event {row.id} is a {row.kind} entry, which is no evidence",
            hint="point to what was said, to a tool's result or to a chunk of a document",
        )
    resolved = resolve_in(reader, scope.tenant_id, pointer, scope.user_id)
    if not resolved.data:
        raise InvalidInput("there is nothing at the span", path="$.span", hint="point to words that are there")
    corpus_id, chunk_id = pointer_address(pointer)
    digest = quote_hash(resolved.text)
    plain = {
        "evidence_id": derive_evidence_id(corpus_id, chunk_id, resolved.span, digest),
        "chunk_id": chunk_id,
        "span": resolved.span.to_wire(),
        "corpus_id": corpus_id,
        "quote_hash": digest,
    }
    return Cited(EvidencePointer.from_wire(plain), row.trust, row.role)


def cite_again(reader: Reader, scope: Scope, pointers: Sequence[EvidencePointer], path: str) -> list[Cited]:
    """Pointers that were written before, checked once more: what they quoted still stands there."""
    again = cite(reader, scope, [pointer_to(pointer) for pointer in pointers], path)
    for index, (before, cited) in enumerate(zip(pointers, again, strict=True)):
        if before.evidence_id != cited.pointer.evidence_id:
            raise QuoteMismatch(
                f"the bytes at the span of {before.evidence_id} are not those that were quoted",
                path=f"{path}[{index}]",
                hint="the event was altered on disk: run `muniment verify`, and retract the claim",
                details={"evidence_id": before.evidence_id, "chunk_id": before.chunk_id},
            )
    return again


def pointer_to(pointer: EvidencePointer) -> Pointer:
    """A snapshot's pointer as one that resolves."""
    plain = pointer.to_wire()
    span = Span.from_wire(plain["span"])
    if plain.get("corpus_id", LEDGER_CORPUS) == LEDGER_CORPUS:
        return EventSpan(event_id=pointer.chunk_id, span=span)
    return ChunkSpan(corpus_id=plain["corpus_id"], chunk_id=pointer.chunk_id, span=span)


def sources_of(cited: Iterable[Cited]) -> list[str]:
    """The events and chunks that were cited, each once."""
    return list(dict.fromkeys(each.pointer.chunk_id for each in cited))
