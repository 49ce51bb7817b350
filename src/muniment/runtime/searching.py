"""Finding turns of one user, in all their sessions: the index put together, ranked, and read back from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from muniment.ledger.rows import entry_of_row
from muniment.ports.engine import Reader, Select
from muniment.recall.rank import Ranked, rank
from muniment.recall.stored import StoredIndex
from muniment.records.entry import LedgerEntry
from muniment.records.recall_policy import RecallPolicy
from muniment.runtime.blocks import list_blocks, load_blocks, state_of
from muniment.runtime.context import Context
from muniment.runtime.indexing import segments_of, speaker_of, text_of
from muniment.runtime.vectoring import dense_for
from muniment.text.instants import parse_instant

__all__ = ["Found", "entries_by_id", "find_turns", "load_index"]


@dataclass(frozen=True, slots=True)
class Found:
    """A turn with its entry, its full text and its rank."""

    entry: LedgerEntry
    text: str
    ranked: Ranked
    superseded_by: str | None


def load_index(ctx: Context, reader: Reader, tenant_id: str, user_id: str) -> StoredIndex:
    """The index of a user as it stands; what has not changed since it was last asked for is not read again."""
    place = segments_of(user_id)
    listed = list_blocks(reader, place)
    state = state_of(listed)
    index = ctx.indexes.get((tenant_id, user_id), state)
    if index is None:

        def names(ids: Sequence[str]) -> list[str]:
            spoken = {entry.id: speaker_of(entry) for entry in entries_by_id(reader, tenant_id, ids)}
            return [spoken.get(id_, "") for id_ in ids]

        index = StoredIndex(load_blocks(reader, tenant_id, place, listed, ctx.segments), names)
        ctx.indexes.put((tenant_id, user_id), state, index)
    return index


def entries_by_id(reader: Reader, tenant_id: str, ids: Sequence[str]) -> list[LedgerEntry]:
    """The entries with these ids, in their order; those that are not there are left out."""
    rows = reader.do(Select("entries", where=(("id", "in", tuple(ids)),)))
    by_id = {cast("str", row[0]): entry_of_row(tenant_id, row) for row in rows}
    return [by_id[id_] for id_ in ids if id_ in by_id]


def _weighed(policy: RecallPolicy, identity: str) -> RecallPolicy:
    """The policy with the weight that this embedder's vectors deserve."""
    share = policy.dense_light.get(identity.partition("@")[0])
    if share is None:
        return policy
    lighter = {"dense_turn": policy.dense_turn * share, "dense_window": policy.dense_window * share}
    return policy.model_copy(update=lighter)


def find_turns(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, query: str, k: int, now: str, policy: RecallPolicy
) -> list[Found]:
    """The best `k` turns for a query, best first."""
    index = load_index(ctx, reader, tenant_id, user_id)
    dense = None
    if ctx.embedder is not None:
        dense = dense_for(reader, tenant_id, user_id, index, ctx.embedder, ctx.vectors, query)
        policy = _weighed(policy, ctx.embedder.identity)
    ranked = rank(query, index, policy, parse_instant(now).date(), k, dense)
    ids = [index.id(hit.ordinal) for hit in ranked]
    entries = {entry.id: entry for entry in entries_by_id(reader, tenant_id, ids)}
    found = []
    for id_, hit in zip(ids, ranked, strict=True):
        entry = entries.get(id_)
        if entry is not None and entry.body is not None:
            newer = None if hit.superseded_by is None else index.id(hit.superseded_by)
            found.append(Found(entry, text_of(reader, entry), hit, newer))
    return found
