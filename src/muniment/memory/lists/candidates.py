"""Candidates of a user, and documents of a corpus, a page at a time, in the order in which they were first written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from muniment.core.listing import ListQuery, Placed, matches
from muniment.memory.candidates import check_status, view_candidate
from muniment.memory.document_reading import view_document
from muniment.memory.facts.records import StoredCandidate
from muniment.store.lists.seeking import find_listed, read_listed, seek

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.memory.document_reading import CorpusScope
    from muniment.memory.documents.records import CorpusDocument
    from muniment.memory.facts.candidate_records import Candidate
    from muniment.memory.patches import Writer
    from muniment.store.context import Context
    from muniment.store.items import Item

__all__ = ["page_candidates", "page_documents"]


def page_candidates(writer: Writer, status: str | None, asked: ListQuery) -> Iterator[Placed[Candidate]]:
    """This user's candidates, of one status or of all."""
    check_status(status)

    def make(reader: Reader, items: Sequence[Item]) -> list[Candidate | None]:
        return [view_candidate(reader, writer, StoredCandidate.from_wire(item.plain())) for item in items]

    user_id = writer.scope.user_id
    reading = read_listed("candidate", user_id, make, asked, status)
    return seek(writer.ctx, writer.scope.tenant_id, reading, asked, find_listed(("candidate",), user_id, make))


def page_documents(
    ctx: Context, corpus: CorpusScope, asked: ListQuery, *, include_all: bool
) -> Iterator[Placed[CorpusDocument]]:
    """The live documents of a corpus, or every revision that was not forgotten."""

    def make(reader: Reader, items: Sequence[Item]) -> list[CorpusDocument | None]:
        viewed = [view_document(reader, corpus, item) for item in items]
        return [each if matches(asked.q, each.document_id, each.title) else None for each in viewed]

    reading = read_listed("document", corpus.owner, make, asked, None if include_all else "live")
    return seek(ctx, corpus.tenant_id, reading, asked)
