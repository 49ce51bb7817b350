"""Values under keys, kept as the documents of one corpus: what stands is found, what stood before is history.

Each value is a revision of a document. Putting another one supersedes it; taking it out retracts it, so that what
pointed to it still resolves, or erases it with a receipt. Searches see what stands and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.errors import Forgotten, NotFound
from muniment.records.scope import DEFAULT_TENANT, ID_MAX_BYTES, ID_MAX_CHARS
from muniment.text.hashing import short_id

if TYPE_CHECKING:
    from muniment.records.base import JsonObject
    from muniment.records.corpus import CorpusDocument
    from muniment.runtime.memory import Memory

__all__ = ["Drawer", "Kept"]

_LONG = "long_"
_REASON = "taken out through an integration"


class Kept(NamedTuple):
    """A value as it stands."""

    key: str
    value: JsonObject
    written_at: str
    revision: int


class Drawer:
    """The values of one corpus. Thread-safe as far as the store is: of two writers to a key, the later one stands."""

    def __init__(
        self, mem: Memory, corpus_id: str, *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> None:
        self._corpus = mem.corpus(corpus_id, user_id=user_id, tenant_id=tenant_id)

    def get(self, key: str) -> Kept | None:
        try:
            document = self._corpus.get(_document_id(key))
        except (NotFound, Forgotten):
            return None
        return _kept(document) if document.status == "live" else None

    def put(self, key: str, value: Mapping[str, Any], text: str) -> Kept:
        """`text` is what a search reads; where it holds nothing, the key is."""
        readable = text.replace("\x00", " ")
        document = self._corpus.add(
            readable if readable.strip() else f"({key})",
            document_id=_document_id(key),
            media_type="text/plain",
            metadata={"key": key, "value": dict(value)},
        )
        return _kept(document)

    def take(self, key: str, *, erase: bool = False) -> bool:
        """Take a value out; False where none stands (an erasure also reaches what stood before)."""
        stands = self.get(key) is not None
        if erase:
            try:
                self._corpus.forget(_document_id(key))
            except (NotFound, Forgotten):
                return False
        elif stands:
            self._corpus.retract(_document_id(key), _REASON)
        return stands

    def clear(self) -> None:
        """Erase everything, with all that stood before."""
        try:
            self._corpus.forget()
        except NotFound:
            return

    def all(self) -> list[Kept]:
        """What stands, in the order of its keys."""
        return sorted(map(_kept, self._corpus.documents()), key=lambda kept: kept.key)

    def find(self, query: str, k: int) -> Iterator[tuple[Kept, float]]:
        """What stands and answers a query, best first, each value once."""
        seen = set()
        for hit in self._corpus.search(query, k=k):
            document_id = self._corpus.chunk(hit.id).document_id
            if document_id in seen:
                continue
            seen.add(document_id)
            yield _kept(self._corpus.get(document_id)), float(hit.score)

    def history(self, key: str) -> list[tuple[Kept, str]]:
        """Every revision that was not erased and how it stands, oldest first."""
        document_id = _document_id(key)
        revisions = [each for each in self._corpus.documents(include_all=True) if each.document_id == document_id]
        return [(_kept(each), each.status) for each in sorted(revisions, key=lambda each: each.revision)]


def _document_id(key: str) -> str:
    """The key itself where it can be a name, else a digest of it."""
    fits = 0 < len(key) <= ID_MAX_CHARS and len(key.encode("utf-8", "replace")) <= ID_MAX_BYTES
    is_plain = fits and not key.startswith(_LONG) and not any(ord(char) < 32 or ord(char) == 127 for char in key)
    return key if is_plain and key.strip() else short_id("long", key)


def _kept(document: CorpusDocument) -> Kept:
    said = document.metadata
    value = said["value"]
    assert isinstance(value, dict)
    return Kept(str(said["key"]), value, document.added_at, document.revision)
