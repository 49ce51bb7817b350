"""Walking every hash chain and every blob (LG-05), and making again what is read out of the sessions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from muniment.core.canonical import parse_json, salted_digest
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import get, stream
from muniment.core.ports.schema import BLOBS, ENTRIES, SESSIONS, EntryRow, SessionRow
from muniment.errors import InvalidJson, UnknownScope
from muniment.store.context import Context
from muniment.store.derivation import SessionFold
from muniment.store.items import latest
from muniment.store.ledger.chain import genesis, head_after, head_of, link_fault
from muniment.store.reports import BrokenLink, VerifyReport

__all__ = ["blob_fault", "verify"]


def verify(ctx: Context, tenant_id: str | None = None) -> VerifyReport:
    """Check each session of one tenant, or of all; the report names the first broken link of each session."""
    tenants = ctx.engine.tenants()
    if tenant_id is not None:
        if tenant_id not in tenants:
            raise UnknownScope(f"no tenant {tenant_id!r} in this store", path="$.tenant_id")
        tenants = [tenant_id]
    counts = {"sessions": 0, "entries": 0, "forgotten": 0, "unreceipted": 0, "outdated": 0}
    broken: list[BrokenLink] = []
    for tenant in tenants:
        with ctx.engine.snapshot(tenant) as reader:
            broken.extend(_walk_tenant(_Walk(reader, tenant, ctx.derived.extracts), counts))
            counts["outdated"] += ctx.derived.index.outdated(reader)
    return VerifyReport(tenants=len(tenants), broken=tuple(broken), **counts)


class _Walk:
    """A view of one tenant, and the receipts that its tombstones name."""

    def __init__(self, reader: Reader, tenant: str, extracts: SessionFold) -> None:
        self.reader = reader
        self.extracts = extracts
        self.tenant = tenant
        self._receipts: dict[str, frozenset[str] | None] = {}

    def receipt_fault(self, row: EntryRow, counts: dict[str, int]) -> str | None:
        """Does the receipt of a tombstone list it? One that is not here is counted: a part of a store may lack it."""
        receipt_id = row.receipt_id
        if receipt_id is None:
            return None
        if receipt_id not in self._receipts:
            item = latest(self.reader, receipt_id)
            known = item is not None and item.kind == "receipt" and item.body is not None
            self._receipts[receipt_id] = (
                frozenset(gone["id"] for gone in item.plain()["erased"]) if known and item is not None else None
            )
        listed = self._receipts[receipt_id]
        counts["unreceipted"] += listed is None
        return "its receipt does not list it" if listed is not None and row.id not in listed else None


def _walk_tenant(walk: _Walk, counts: dict[str, int]) -> Iterator[BrokenLink]:
    """Sessions and entries come in the same order, so one pass over each is enough."""
    reader, tenant = walk.reader, walk.tenant
    order = ("user_id", "session_id")
    entries = stream(reader, ENTRIES, order=(*order, "seq"))
    groups = groupby(entries, key=lambda row: (row.user_id, row.session_id))
    group = next(groups, None)
    for session in stream(reader, SESSIONS, order=order):
        counts["sessions"] += 1
        address = (session.user_id, session.session_id)
        while group is not None and group[0] < address:
            yield _stray(tenant, group, counts)
            group = next(groups, None)
        rows: Iterator[EntryRow] = group[1] if group is not None and group[0] == address else iter(())
        fault = _walk_session(walk, session, rows, counts)
        if fault is not None:
            yield fault
        if group is not None and group[0] == address:
            group = next(groups, None)
    while group is not None:
        yield _stray(tenant, group, counts)
        group = next(groups, None)


def _stray(tenant: str, group: tuple[tuple[str, str], Iterator[EntryRow]], counts: dict[str, int]) -> BrokenLink:
    """Entries whose session is not there."""
    (user_id, session_id), rows = group
    first = next(rows)
    counts["entries"] += 1 + sum(1 for _ in rows)
    return BrokenLink(
        tenant_id=tenant,
        user_id=user_id,
        session_id=session_id,
        seq=max(first.seq, 0),
        id=first.id,
        reason="entries without a session",
    )


def _walk_session(
    walk: _Walk, session: SessionRow, rows: Iterator[EntryRow], counts: dict[str, int]
) -> BrokenLink | None:
    reader, tenant = walk.reader, walk.tenant
    user_id, session_id = session.user_id, session.session_id
    head = genesis(tenant, user_id, session_id)
    first: BrokenLink | None = None
    for row in rows:
        counts["entries"] += 1
        counts["forgotten"] += row.receipt_id is not None
        unproven = walk.receipt_fault(row, counts)
        if first is not None:
            continue
        reason = link_fault(tenant, row, head) or blob_fault(reader, row) or unproven
        if reason is not None:
            first = BrokenLink(
                tenant_id=tenant,
                user_id=user_id,
                session_id=session_id,
                seq=max(row.seq, 0),
                id=row.id,
                reason=reason,
            )
        head = head_after(row)
    if first is None and head != head_of(session):
        first = BrokenLink(
            tenant_id=tenant,
            user_id=user_id,
            session_id=session_id,
            seq=head.seq + 1,
            id=None,
            reason=f"the session's head is at seq {session.head_seq!r}, its last entry at {head.seq}"
            if head.seq != session.head_seq
            else "the session's head was altered",
        )
    return first or _extract_fault(walk, session)


def _extract_fault(walk: _Walk, session: SessionRow) -> BrokenLink | None:
    """What was read out of a session whose chain holds is made again, and must be the same."""
    found = walk.extracts.fault(walk.reader, session.user_id, session.session_id, session.head_seq)
    if found is None:
        return None
    seq, reason = found
    return BrokenLink(
        tenant_id=walk.tenant,
        user_id=session.user_id,
        session_id=session.session_id,
        seq=seq,
        id=None,
        reason=reason,
    )


def blob_fault(reader: Reader, row: EntryRow) -> str | None:
    """Is the blob an entry refers to there, and does it hash to its name?"""
    if row.body is None or '"blob":"' not in row.body:
        return None
    try:
        name = parse_json(row.body).get("blob")
        key = None if name is None else bytes.fromhex(name)
    except (InvalidJson, AttributeError, TypeError, ValueError):
        return "the content was altered"
    if key is None:
        return None
    blob = get(reader, BLOBS, (key,))
    if blob is None:
        return f"its blob {name[:12]}… is missing"
    sound = blob.data is not None and salted_digest(row.salt or b"", blob.data).hex() == name
    return None if sound else f"its blob {name[:12]}… was altered"
