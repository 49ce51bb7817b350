"""Values under keys, kept as the documents of one corpus: what stands is found, what stood before is history.

Each value is a revision of a document. Putting another one supersedes it; taking it out retracts it, so that what
pointed to it still resolves, or erases it with a receipt. Searches see what stands and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import short_id
from muniment.core.scope import DEFAULT_TENANT, ID_MAX_BYTES, ID_MAX_CHARS
from muniment.errors import Forgotten, NotFound

if TYPE_CHECKING:
    from muniment.core.record import JsonObject
    from muniment.handles.memory import Memory
    from muniment.memory.documents import CorpusDocument, StoredDocument

__all__ = ["Kept", "KeyedDocuments", "Put", "put_all"]

_LONG = "long_"
_REASON = "taken out through an integration"


class Kept(NamedTuple):
    """A value as it stands."""

    key: str
    value: JsonObject
    written_at: str
    revision: int


class KeyedDocuments:
    """The values of one corpus. Thread-safe as far as the store is: of two writers to a key, the later one stands."""

    def __init__(
        self, mem: Memory, corpus_id: str, *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> None:
        self._corpus = mem.corpus(corpus_id, user_id=user_id, tenant_id=tenant_id)

    def get(self, key: str) -> Kept | None:
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, Kept]:
        """What stands under these keys."""
        found = self._corpus._newest([_document_id(key) for key in keys])
        kept = {key: found.get(_document_id(key)) for key in keys}
        return {key: _kept(document) for key, document in kept.items() if document is not None}

    def put(self, key: str, value: Mapping[str, Any], text: str) -> None:
        """`text` is what a search reads; where it holds nothing, the key is."""
        put_all([Put(self, key, value, text)])

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
        return sorted(map(_kept, self._corpus._standing()), key=lambda kept: kept.key)

    def find(self, query: str, k: int) -> Iterator[tuple[Kept, float]]:
        """What stands and answers a query, best first, each value once."""
        hits = self._corpus.search(query, k=k)
        scores: dict[str, float] = {}
        for hit in hits:
            scores.setdefault(hit.session_id or "", float(hit.score))
        standing = self._corpus._documents_of(hits)
        for session_id, score in scores.items():
            if session_id in standing:
                yield _kept(standing[session_id]), score

    def history(self, key: str) -> list[tuple[Kept, str]]:
        """Every revision that was not erased and how it stands, oldest first."""
        document_id = _document_id(key)
        revisions = self._corpus.documents(include_all=True, document_ids=[document_id])
        return [(_kept(each), each.status) for each in sorted(revisions, key=lambda each: each.revision)]


class Put(NamedTuple):
    """A value that is to be put; see `KeyedDocuments.put`."""

    documents: KeyedDocuments
    key: str
    value: Mapping[str, Any]
    text: str


def put_all(puts: Sequence[Put]) -> None:
    """Put values of one tenant, into one corpus or several and each key once, in one transaction."""
    if puts:
        puts[0].documents._corpus._add_many([(put.documents._corpus, _given(put)) for put in puts])


def _given(put: Put) -> dict[str, Any]:
    readable = put.text.replace("\x00", " ")
    return {
        "text": readable if readable.strip() else f"({put.key})",
        "document_id": _document_id(put.key),
        "media_type": "text/plain",
        "title": None,
        "source": None,
        "metadata": {"key": put.key, "value": dict(put.value)},
    }


def _document_id(key: str) -> str:
    """The key itself where it can be a name, else a digest of it."""
    fits = 0 < len(key) <= ID_MAX_CHARS and len(key.encode("utf-8", "replace")) <= ID_MAX_BYTES
    is_plain = fits and not key.startswith(_LONG) and not any(ord(char) < 32 or ord(char) == 127 for char in key)
    return key if is_plain and key.strip() else short_id("long", key)


def _kept(document: CorpusDocument | StoredDocument) -> Kept:
    said = document.metadata or {}
    value = said["value"]
    assert isinstance(value, dict)
    return Kept(str(said["key"]), value, document.added_at, document.revision)
