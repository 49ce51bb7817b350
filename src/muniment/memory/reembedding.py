"""Bringing every turn of a store to the present embedder, in small transactions, while others read and write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from muniment.core.ports.engine import Reader, Transaction
from muniment.core.ports.models import Embedder
from muniment.core.ports.rows import stream_texts
from muniment.core.ports.schema import SESSIONS
from muniment.errors import InvalidInput
from muniment.memory.turn_reading import entries_by_id
from muniment.memory.vectoring import (
    VECTORS,
    VectorCache,
    add_vectors,
    embed_turns,
    lacking,
    retire_vectors,
    vectors_of,
)
from muniment.store.blocks import BlockCache, read_blocks
from muniment.store.context import Context

__all__ = ["reembed", "reembed_user"]

Vectors = npt.NDArray[np.float16]


def reembed(ctx: Context, tenant_id: str, progress: Callable[[int], None] | None = None) -> int:
    """Give each turn that lacks one a vector of the present embedder, then let go of the others'; answers how many.

    It can be stopped and run again at any time: what is done stays done. Until all turns of a user are there,
    search is by words alone.
    """
    embedder = ctx.embedder
    if embedder is None:
        raise InvalidInput("this store was opened without an embedder", path="$.embedder", hint="open(..., embedder=…)")
    users = ctx.engine.read(tenant_id, _users)
    done = 0
    for user_id in users:
        done += reembed_user(ctx, tenant_id, user_id, embedder, progress)
    ctx.cache(VectorCache).clear()
    return done


def reembed_user(
    ctx: Context, tenant_id: str, user_id: str, embedder: Embedder, progress: Callable[[int], None] | None
) -> int:
    """The same for the turns of one user."""
    done = 0
    with ctx.engine.snapshot(tenant_id) as view:
        for batch in lacking(view, tenant_id, user_id, embedder.identity):
            rows = embed_turns(embedder, [(speaker, text) for _, speaker, text in batch])
            keep = partial(_keep, tenant_id, user_id, embedder, [id_ for id_, _, _ in batch], rows)
            done += ctx.engine.write(tenant_id, keep)
            if progress is not None:
                progress(len(batch))
    ctx.engine.write(tenant_id, lambda tx: retire_vectors(tx, user_id, embedder.identity))
    return done


def _keep(tenant_id: str, user_id: str, embedder: Embedder, ids: list[str], rows: Vectors, tx: Transaction) -> int:
    """Keep those that are still there and still lack a vector: others may have forgotten or embedded meanwhile."""
    _, blocks = read_blocks(tx, tenant_id, vectors_of(user_id, embedder.identity), BlockCache(VECTORS))
    have = {id_ for block in blocks for id_ in block.ids}
    alive = {entry.id for entry in entries_by_id(tx, tenant_id, ids) if entry.body is not None}
    places = [place for place, id_ in enumerate(ids) if id_ in alive and id_ not in have]
    add_vectors(tx, user_id, embedder, [ids[place] for place in places], rows[places])
    return len(places)


def _users(reader: Reader) -> list[str]:
    return sorted(set(stream_texts(reader, SESSIONS, "user_id")))
