"""Values under keys, stored as the documents of one corpus: current values are found, earlier ones are history.

Each value is a revision of a document. Writing another one supersedes it; removing it retracts it, so that references
to it still resolve, or erases it with a receipt. Searches only see current values.
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
    """A current value."""

    key: str
    value: JsonObject
    written_at: str
    revision: int


class KeyedDocuments:
    """The values of one corpus. As thread-safe as the store: of two writers to a key, the later one wins."""

    def __init__(
        self, mem: Memory, corpus_id: str, *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> None:
        self._corpus = mem.corpus(corpus_id, user_id=user_id, tenant_id=tenant_id)

    def get(self, key: str) -> Kept | None:
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, Kept]:
        """Current values of these keys."""
        found = self._corpus._newest([_document_id(key) for key in keys])
        kept = {key: found.get(_document_id(key)) for key in keys}
        return {key: _kept(document) for key, document in kept.items() if document is not None}

    def put(self, key: str, value: Mapping[str, Any], text: str) -> None:
        """Write a value; searches read `text` or, if it is empty, the key."""
        put_all([Put(self, key, value, text)])

    def take(self, key: str, *, erase: bool = False) -> bool:
        """Remove a value; return False if there is none (an erasure also reaches earlier ones)."""
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
        """Erase everything, including earlier values."""
        try:
            self._corpus.forget()
        except NotFound:
            return

    def all(self) -> list[Kept]:
        """Current values in the order of their keys."""
        return sorted(map(_kept, self._corpus._standing()), key=lambda kept: kept.key)

    def find(self, query: str, k: int) -> Iterator[tuple[Kept, float]]:
        """Current values that match a query, best first, each once."""
        hits = self._corpus.search(query, k=k)
        scores: dict[str, float] = {}
        for hit in hits:
            scores.setdefault(hit.session_id or "", float(hit.score))
        standing = self._corpus._documents_of(hits)
        for session_id, score in scores.items():
            if session_id in standing:
                yield _kept(standing[session_id]), score

    def history(self, key: str) -> list[tuple[Kept, str]]:
        """Every revision that was not erased, with its state, oldest first."""
        document_id = _document_id(key)
        revisions = self._corpus.documents(include_all=True, document_ids=[document_id])
        return [(_kept(each), each.status) for each in sorted(revisions, key=lambda each: each.revision)]


class Put(NamedTuple):
    """Arguments of a `KeyedDocuments.put`."""

    documents: KeyedDocuments
    key: str
    value: Mapping[str, Any]
    text: str


def put_all(puts: Sequence[Put]) -> None:
    """Write values of one tenant in one transaction, to one or several corpora, each key once."""
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
    """The key itself if it can be a name, else a digest of it."""
    fits = 0 < len(key) <= ID_MAX_CHARS and len(key.encode("utf-8", "replace")) <= ID_MAX_BYTES
    is_plain = fits and not key.startswith(_LONG) and not any(ord(char) < 32 or ord(char) == 127 for char in key)
    return key if is_plain and key.strip() else short_id("long", key)


def _kept(document: CorpusDocument | StoredDocument) -> Kept:
    said = document.metadata or {}
    value = said["value"]
    assert isinstance(value, dict)
    return Kept(str(said["key"]), value, document.added_at, document.revision)
