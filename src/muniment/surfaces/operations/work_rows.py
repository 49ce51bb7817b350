"""Long works in the store: their state for any process of a server, and the process that runs each.

A work is a row of its tenant, so that a forget there erases its content; its lease is a row of the server's own, so
that the works of all tenants are found at once. A lease has no time in it, since the clocks of two machines differ: its
owner increments it, and another process that sees it unchanged for long enough takes it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.core.instants import format_instant
from muniment.core.ports.engine import Delete, Engine, Patch, Reader, Transaction, Value
from muniment.core.ports.rows import chunked, get, insert, select, texts
from muniment.core.ports.schema import LEASES, SERVER, WORKS, LeaseRow, WorkRow
from muniment.store.answers import hold_answers
from muniment.store.background.leases import count_on, open_leases, take_over

__all__ = ["KEPT", "KEPT_MAX", "RESULT_BYTES_MAX", "StoredWork", "WorkRows", "answer_of"]

KEPT = timedelta(days=7)
"""How long the answer of a finished work is kept, at most."""
KEPT_MAX = 1000
"""The most works of a tenant that are listed and have their answers kept."""
RESULT_BYTES_MAX = 16 << 20


class StoredWork(NamedTuple):
    tenant: str
    row: WorkRow


class _Age(NamedTuple):
    id: str
    status: str
    started_at: str
    finished_at: str | None
    salt: bytes | None


class WorkRows:
    """The works in the store, as seen and run by one process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.owner = secrets.token_hex(8)
        """The id of this process, among all that serve the store."""
        self._beats = 0

    # -- own works ------------------------------------------------------------------------------------

    def begin(self, tenant: str, row: WorkRow, now: datetime) -> None:
        """Write down a work before it begins: the lease first, so that no work is ever without one."""
        lease = LeaseRow(row.id, tenant, self.owner, self._beats, 1)
        self._engine.write(SERVER, lambda tx: insert(tx, LEASES, [lease]))

        def work(tx: Transaction) -> list[str]:
            insert(tx, WORKS, [row._replace(clearing=hold_answers(tx))])
            return _clean(tx, format_instant(now - KEPT))

        gone = self._engine.write(tenant, work)
        for ids in chunked(gone):
            self._engine.write(SERVER, lambda tx, ids=ids: tx.do(Delete("leases", (("id", "in", ids),))))  # type: ignore[misc]

    def beat(self, ids: Sequence[str], moved: Mapping[str, tuple[str, int]]) -> None:
        """Renew the leases of these works, and store their progress by id, with its tenant."""
        self._beats += 1
        self._engine.write(SERVER, lambda tx: count_on(tx, ids, [self.owner], self._beats))
        for tenant, works in groupby(sorted(moved.items(), key=_tenant_of), key=_tenant_of):
            done = [(id_, progress) for id_, (_, progress) in works]
            self._engine.write(tenant, lambda tx, done=done: _advance(tx, done))  # type: ignore[misc]

    def finish(self, tenant: str, work_id: str, values: Mapping[str, Value], *, outlives: bool) -> None:
        """Record the end of a work. Its answer is not kept if answers were cleared since it began, unless it `outlives`
        that because it cleared them itself. The first process to end a work wins.
        """

        def work(tx: Transaction) -> None:
            number = hold_answers(tx)
            row = get(tx, WORKS, (work_id,))
            if row is None or row.status != "running":
                return
            told: dict[str, Value] = {"asked": None, **values}
            answer = told.get("answer")
            is_large = isinstance(answer, str) and len(answer) > RESULT_BYTES_MAX
            if is_large or (row.clearing != number and not outlives):
                told["answer"] = None
            tx.do(Patch("works", (("id", "=", work_id),), told))

        self._engine.write(tenant, work)
        self._engine.write(SERVER, lambda tx: tx.do(Patch("leases", (("id", "=", work_id),), {"is_open": 0})))

    # -- works of others ------------------------------------------------------------------------------

    def leases(self) -> list[LeaseRow]:
        """The leases of all unfinished works."""
        return self._engine.read(SERVER, open_leases)

    def take(self, lease: LeaseRow) -> StoredWork | None:
        """Take over an abandoned work; None if another process was first, or it had ended."""
        if not self._engine.write(SERVER, lambda tx: take_over(tx, lease, self.owner, self._beats)):
            return None

        def work(tx: Transaction) -> WorkRow | None:
            number = hold_answers(tx)
            row = get(tx, WORKS, (lease.id,))
            if row is None or row.status != "running":
                return None
            changed: dict[str, Value] = {"tries": row.tries + 1, "progress": 0, "clearing": number}
            tx.do(Patch("works", (("id", "=", lease.id),), changed))
            return row._replace(tries=row.tries + 1, progress=0, clearing=number)

        row = self._engine.write(lease.tenant, work)
        if row is None:  # ended, or never begun, by a process that died before recording it
            self._engine.write(SERVER, lambda tx: tx.do(Patch("leases", (("id", "=", lease.id),), {"is_open": 0})))
            return None
        return StoredWork(lease.tenant, row)

    # -- reading --------------------------------------------------------------------------------------

    def find(self, work_id: str, tenant: str | None) -> StoredWork | None:
        """A work by its id, of a tenant or of any."""
        if tenant is None:
            lease = self._engine.read(SERVER, lambda reader: get(reader, LEASES, (work_id,)))
            tenant = SERVER if lease is None else lease.tenant
        row = self._engine.read(tenant, lambda reader: get(reader, WORKS, (work_id,)))
        return None if row is None else StoredWork(tenant, row)

    def list(self, tenant: str | None, now: datetime) -> list[StoredWork]:
        """The stored works, oldest first, of a tenant or of all."""
        since = format_instant(now - KEPT)
        if tenant is not None:
            return [StoredWork(tenant, row) for row in self._engine.read(tenant, lambda reader: _kept(reader, since))]
        tenants = self._engine.read(SERVER, lambda reader: set(texts(reader, LEASES, "tenant")))
        found = [work for each in sorted(tenants) for work in self.list(each, now)]
        return sorted(found, key=lambda work: (work.row.started_at, work.row.id))


def _tenant_of(moved: tuple[str, tuple[str, int]]) -> str:
    return moved[1][0]


def _advance(tx: Transaction, done: Iterable[tuple[str, int]]) -> None:
    for id_, progress in done:
        tx.do(Patch("works", (("id", "=", id_), ("status", "=", "running")), {"progress": progress}))


def _kept(reader: Reader, since: str) -> list[WorkRow]:
    rows = [row for row in select(reader, WORKS) if row.finished_at is None or row.finished_at >= since]
    return sorted(rows, key=lambda row: (row.started_at, row.id))[-KEPT_MAX:]


def _clean(tx: Transaction, since: str) -> list[str]:
    """Clear answers past their age; returns the ids of works emptied by a forget, which are deleted.

    Works emptied because of their age keep their salt: a copy may still be in the store's files, and a forget has to
    search for it.
    """
    finished = [row for row in select(tx, WORKS, into=_Age) if row.status != "running"]
    finished.sort(key=lambda row: (row.started_at, row.id))
    too_many = finished[: max(0, len(finished) - KEPT_MAX)]
    tx.do(Patch("works", (("finished_at", "<", since),), {"answer": None}))
    for ids in chunked([row.id for row in too_many]):
        tx.do(Patch("works", (("id", "in", ids),), {"answer": None}))
    gone = [row.id for row in finished if row.salt is None and (row in too_many or (row.finished_at or since) < since)]
    for ids in chunked(gone):
        tx.do(Delete("works", (("id", "in", ids),)))
    return gone


def answer_of(told: Mapping[str, Any]) -> str:
    """A result or an error in its stored form."""
    return canonical_bytes(dict(told)).decode()
