"""Words and vectors of turns as the store knows them (`store.derivation.TurnIndex`): written, forgotten with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muniment.memory.indexing import SegmentCache, index_rows, index_turns, reindex_user, unindex
from muniment.store.turns import can_be_turn, users_of

if TYPE_CHECKING:
    from muniment.core.ports.engine import Transaction
    from muniment.core.ports.schema import EntryRow
    from muniment.core.scope import Scope
    from muniment.store.context import Context
    from muniment.store.ledger.admission import Admitted
    from muniment.store.ledger.records import EntryDraft, LedgerEntry

__all__ = ["RecallIndex"]

# Vectors bring numpy's typing and an embedder's blocks: a store without an embedder loads none of it.


class RecallIndex:
    """See `TurnIndex`. What is prepared of a draft is its vector."""

    def prepare(self, ctx: Context, drafts: Sequence[EntryDraft], admitted: Sequence[Admitted]) -> Mapping[int, Any]:
        if ctx.embedder is None:
            return {}
        places = [place for place, draft in enumerate(drafts) if can_be_turn(draft.kind, draft.role)]
        if not places:
            return {}
        from muniment.memory.vectoring import embed_turns

        said = [(admitted[at].body.get("speaker") or drafts[at].role, admitted[at].text) for at in places]
        return dict(zip(places, embed_turns(ctx.embedder, said), strict=True))

    def add(
        self,
        ctx: Context,
        tx: Transaction,
        scope: Scope,
        said: Sequence[tuple[LedgerEntry, str]],
        prepared: Sequence[tuple[str, Any]],
    ) -> None:
        index_turns(tx, scope.user_id, said, (scope.tenant_id, ctx.cache(SegmentCache)))
        if ctx.embedder is not None and prepared:
            import numpy as np

            from muniment.memory.vectoring import VectorCache, add_vectors

            ids, vectors = zip(*prepared, strict=True)
            kept = (scope.tenant_id, ctx.cache(VectorCache))
            add_vectors(tx, scope.user_id, ctx.embedder, ids, np.stack(vectors), kept)

    def add_rows(self, tx: Transaction, tenant_id: str, rows: Sequence[EntryRow]) -> None:
        index_rows(tx, tenant_id, rows)

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> dict[str, int]:
        from muniment.memory.vectoring import remove_vectors

        return {
            "segments": unindex(tx, entry_ids),
            "vectors": remove_vectors(tx, users_of(tx, entry_ids), frozenset(entry_ids)),
        }

    def rebuild(self, tx: Transaction, tenant_id: str, user_id: str) -> int:
        return reindex_user(tx, tenant_id, user_id)
