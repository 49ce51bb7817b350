"""Walking every hash chain and every blob (LG-05), and making again what is read out of the sessions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice

from muniment.core.canonical import parse_json, salted_digest
from muniment.core.ports.engine import Count, Reader
from muniment.core.ports.rows import get, stream, stream_texts
from muniment.core.ports.schema import BLOBS, ENTRIES, SESSIONS, EntryRow, SessionRow
from muniment.errors import InvalidInput, InvalidJson, MunimentError, UnknownScope
from muniment.store.context import Context
from muniment.store.derivation import SessionFold
from muniment.store.derived_checking import check_derived
from muniment.store.items import Item, latest
from muniment.store.ledger.chain import genesis, head_after, head_of, link_fault
from muniment.store.ledger.records import Receipt
from muniment.store.reports import BrokenLink, Differing, VerifyReport

__all__ = ["SAMPLE_SESSIONS", "blob_fault", "verify"]

SAMPLE_SESSIONS = 64
"""Sessions of a tenant that a quick verification walks, about."""


def verify(ctx: Context, tenant_id: str | None = None, *, quick: bool = False) -> VerifyReport:
    """Check each session of one tenant, or of all; the report names the first broken link of each session.

    What was derived from chains that hold is made again: items, links, the index. A quick one walks a sample of the
    sessions and says so.
    """
    if not isinstance(quick, bool):
        raise InvalidInput("quick should be true or false", path="$.quick")
    tenants = ctx.engine.tenants()
    if tenant_id is not None:
        if tenant_id not in tenants:
            raise UnknownScope(f"no tenant {tenant_id!r} in this store", path="$.tenant_id")
        tenants = [tenant_id]
    counts = dict.fromkeys(("sessions", "entries", "forgotten", "unreceipted", "outdated", "derived", "lacking"), 0)
    broken: list[BrokenLink] = []
    differing: list[Differing] = []
    for tenant in tenants:
        with ctx.engine.snapshot(tenant) as reader:
            walk = _Walk(reader, tenant, ctx.derived.extracts)
            found = list(_sample_tenant(walk, counts) if quick else _walk_tenant(walk, counts))
            broken += found
            counts["outdated"] += ctx.derived.index.outdated(reader)
            if not found and not quick:
                differing += _check_derived(ctx, reader, tenant, counts)
    return VerifyReport(tenants=len(tenants), broken=tuple(broken), differing=tuple(differing), sampled=quick, **counts)


def _check_derived(ctx: Context, reader: Reader, tenant: str, counts: dict[str, int]) -> Iterator[Differing]:
    """What was derived from the ledger of a tenant, which holds, and is not what it gives."""
    made = check_derived(ctx, reader, tenant)
    counts["derived"] += made.items
    counts["lacking"] += made.lacking
    yield from made.differing
    for user_id in sorted(set(stream_texts(reader, SESSIONS, "user_id"))):
        fault = ctx.derived.index.fault(reader, tenant, user_id)
        if fault is not None:
            yield Differing(tenant_id=tenant, kind="index", id=user_id, version=0, reason=fault)


def _sample_tenant(walk: _Walk, counts: dict[str, int]) -> Iterator[BrokenLink]:
    """A sample of the sessions, evenly spread over their names, each walked whole."""
    order = ("user_id", "session_id")
    total = walk.reader.do(Count("sessions"))
    step = max(1, total // SAMPLE_SESSIONS)
    chosen = list(islice(stream(walk.reader, SESSIONS, order=order), 0, None, step))
    for session in chosen:
        where = (("user_id", "=", session.user_id), ("session_id", "=", session.session_id))
        counts["sessions"] += 1
        rows = stream(walk.reader, ENTRIES, where, order=(*order, "seq"))  # type: ignore[arg-type]
        fault = _walk_session(walk, session, rows, counts)
        if fault is not None:
            yield fault


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
            self._receipts[receipt_id] = None if item is None or item.kind != "receipt" else _listed(item)
        listed = self._receipts[receipt_id]
        counts["unreceipted"] += listed is None
        return "its receipt does not list it" if listed is not None and row.id not in listed else None


def _listed(receipt: Item) -> frozenset[str] | None:
    """What a receipt lists; None where it is not as it was written, which is told of the receipt."""
    try:
        return frozenset(gone.id for gone in Receipt.from_wire(receipt.plain()).erased)
    except MunimentError:
        return None


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
