"""Which turns of a user carry a tag or an entity. Labels lie in the ledger alone, and are read once for each turn."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from muniment.core.canonical import read_canonical
from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ENTRIES
from muniment.store.context import Context
from muniment.store.ledger import check_content

__all__ = ["LabelCache", "labelled_turns"]

SCOPES_MAX = 16
"""Users whose labels are kept in memory."""
KINDS = ("tags", "entities")


class _Labels:
    """The labels of the turns of one user, as far as they were read."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.turns: dict[tuple[str, str], set[str]] = {}
        """By kind and folded label, the turns that carry it."""


class LabelCache:
    """Labels by tenant and user. Thread-safe; never the only copy."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], _Labels] = OrderedDict()
        self.lock = threading.Lock()

    def of(self, tenant_id: str, user_id: str) -> _Labels:
        """What is known of a user's labels; the caller holds the lock."""
        labels = self._held.setdefault((tenant_id, user_id), _Labels())
        self._held.move_to_end((tenant_id, user_id))
        while len(self._held) > SCOPES_MAX:
            self._held.popitem(last=False)
        return labels

    def clear(self, tenant_id: str | None = None) -> None:
        with self.lock:
            drop_tenant(self._held, tenant_id)


class _Content(NamedTuple):
    id: str
    content_hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def labelled_turns(
    ctx: Context,
    reader: Reader,
    tenant_id: str,
    user_id: str,
    ids: Sequence[str],
    *,
    tags: Iterable[str] = (),
    entities: Iterable[str] = (),
) -> set[str]:
    """Those of a user's turns that carry one of the tags or one of the entities, in whichever case it is written."""
    wanted = [(kind, label.casefold()) for kind, given in zip(KINDS, (tags, entities), strict=True) for label in given]
    cache = ctx.cache(LabelCache)
    with cache.lock:
        known = cache.of(tenant_id, user_id)
        fresh = [id_ for id_ in ids if id_ not in known.read]
    read = [(row, _labels(row)) for row in by_ids(reader, ENTRIES, fresh, into=_Content)]
    with cache.lock:
        for row, labels in read:
            known.read.add(row.id)
            for label in labels:
                known.turns.setdefault(label, set()).add(row.id)
        carrying = set().union(*(known.turns.get(label, ()) for label in wanted))
    return carrying.intersection(ids)


def _labels(row: _Content) -> Iterable[tuple[str, str]]:
    check_content(row)
    if row.body is None or not any(f'"{kind}":' in row.body for kind in KINDS):
        return ()
    said = read_canonical(row.body)
    return [(kind, label.casefold()) for kind in KINDS for label in said.get(kind) or ()]
