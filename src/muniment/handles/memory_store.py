"""The store as a whole: who is in it, many documents brought in at once, and its upkeep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.scope import DEFAULT_TENANT

if TYPE_CHECKING:
    from muniment.memory.documents.records import CorpusDocument
    from muniment.store.context import Context
    from muniment.store.reports import RebuildReport, ScrubbedFiles, UserState

__all__ = ["MemoryStore"]


class MemoryStore:
    """The tenants and users of a store, documents for several corpora, and the store's upkeep: `mem.store`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def tenants(self) -> list[str]:
        """The tenants of this store."""
        return self._ctx.engine.tenants()

    def users(self, *, tenant_id: str = DEFAULT_TENANT) -> Iterator[UserState]:
        """The users of a tenant who have sessions, by their ids; who was forgotten is not among them."""
        from muniment.store.users import list_users

        return list_users(self._ctx, tenant_id)

    def add_documents(
        self, documents: Iterable[Mapping[str, Any]], *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> list[CorpusDocument]:
        """Add documents to one corpus or several, all of them or none, each once.

        Each is an object of `corpus.add`'s arguments with its `corpus_id` and, for a user's own, the `user_id`. Where
        `user_id` is given here, all go to that user's own corpora, and one that names another is refused.
        """
        from muniment.memory.corpus import add_to_corpora

        return add_to_corpora(self._ctx, documents, tenant_id, user_id)

    def rebuild(self, *, tenant_id: str = DEFAULT_TENANT) -> RebuildReport:
        """Compute every projection again from the ledger and repair what differs."""
        from muniment.store import rebuild as rebuilding

        return rebuilding.rebuild(self._ctx, tenant_id)

    def reembed(self, *, tenant_id: str = DEFAULT_TENANT, progress: Callable[[int], None] | None = None) -> int:
        """Bring every turn to the present embedder; run it after an embedder was added or changed."""
        from muniment.memory import reembedding

        return reembedding.reembed(self._ctx, tenant_id, progress)

    def scrub(self) -> ScrubbedFiles:
        """Rebuild the store's files without what forgets have emptied, and settle the receipts that waited for it.

        Most forgets see to it themselves. On PostgreSQL they leave large tables to this, which locks each for a while.
        """
        from muniment.store.scrub import scrub

        return scrub(self._ctx)
