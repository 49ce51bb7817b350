"""Walking every hash chain and every blob (LG-05), and making again what is read out of the sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from muniment.core.ports.engine import Condition, Count, Reader
from muniment.core.ports.rows import first, stream, stream_texts
from muniment.core.ports.schema import ENTRIES, SESSIONS, EntryRow, SessionRow
from muniment.errors import InvalidInput, StoreDamaged, UnknownScope
from muniment.store.context import Context
from muniment.store.derivation import SessionFold
from muniment.store.derived_checking import check_derived
from muniment.store.items import listing_faults
from muniment.store.ledger.chain import genesis, head_after, head_of, link_fault
from muniment.store.proving.blob_checking import blob_fault
from muniment.store.proving.sampling import sampled_sessions
from muniment.store.proving.standing import Standing, read_standing, written_standing
from muniment.store.proving.table_checking import table_faults
from muniment.store.proving.tombstones import listed_by
from muniment.store.reports import BrokenLink, Differing, VerifyReport

__all__ = ["SAMPLE_SESSIONS", "verify"]

SAMPLE_SESSIONS = 64
"""Sessions of a tenant that a quick verification walks, at most."""
COUNTED_MAX = 10_000
"""Sessions of a tenant that a quick verification counts, to say of how many its sample is."""
_MISPLACED = "no list shows this version where the versions of the item say"
_AFTER_ALL = 2**62
"""No entry has this number."""

_COUNTS = ("sessions", "entries", "forgotten", "unreceipted", "outdated", "derived", "lacking", "unproven")


@dataclass(slots=True)
class _Work:
    """One call: what it has found, and how much of its share it has spent."""

    ctx: Context
    entries_max: int | None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    broken: list[BrokenLink] = field(default_factory=list)
    differing: list[Differing] = field(default_factory=list)
    spent: int = 0
    uncounted: bool = False
    """Of a sample: there are more sessions than were counted."""

    @property
    def is_spent(self) -> bool:
        return self.entries_max is not None and self.spent >= self.entries_max


def verify(
    ctx: Context,
    tenant_id: str | None = None,
    *,
    quick: bool = False,
    entries_max: int | None = None,
    resume: str | None = None,
) -> VerifyReport:
    """Check each session of one tenant, or of all; the report names the first broken link of each session.

    What was derived from chains that hold is made again: items, links, the index. A quick one walks a sample of
    at most so many sessions of each tenant, and says so. One with `entries_max` stops behind so many entries, and its
    report says where to go on.
    """
    if not isinstance(quick, bool):
        raise InvalidInput("quick should be true or false", path="$.quick")
    if entries_max is not None and (type(entries_max) is not int or entries_max < 1):
        raise InvalidInput("entries_max should be a whole number from 1 on", path="$.entries_max")
    at = Standing(tenant_id) if resume is None else read_standing(resume, tenant_id)
    listed = ctx.engine.tenants()
    if tenant_id is None:
        tenants = sorted({*listed, *ctx.engine.unlisted_tenants()})
    elif tenant_id in listed or ctx.engine.read(tenant_id, _has_sessions):
        tenants = [tenant_id]
    else:
        raise UnknownScope(f"no tenant {tenant_id!r} in this store", path="$.tenant_id")
    work = _Work(ctx, entries_max)
    if quick:
        held = sum(_verify_sample(work, tenant) for tenant in tenants)
        return _report(work, len(tenants), sampled=True, sessions_held=held, sessions_uncounted=work.uncounted)
    walked = [tenant for tenant in tenants if at.tenant is None or tenant >= at.tenant]
    for number, tenant in enumerate(walked, 1):
        here = at if tenant == at.tenant else Standing(tenant_id)
        left = _verify_tenant(work, tenant, here._replace(asked=tenant_id, tenant=tenant))
        if left is not None:
            return _report(work, number, resume=written_standing(left))
    return _report(work, len(walked))


def _has_sessions(reader: Reader) -> bool:
    """Whether a tenant that is in no list has something all the same: then its row was taken out."""
    return first(reader, SESSIONS) is not None


def _report(work: _Work, tenants: int, **more: Any) -> VerifyReport:
    counts: dict[str, Any] = {**work.counts, **more}
    return VerifyReport(tenants=tenants, broken=tuple(work.broken), differing=tuple(work.differing), **counts)


def _verify_tenant(work: _Work, tenant: str, at: Standing) -> Standing | None:
    """Walk a tenant from where it stands; answers where it stopped, None at its end."""
    ctx, counts = work.ctx, work.counts
    with ctx.engine.snapshot(tenant) as reader:
        if at.phase == "chains":
            walk = _Walk(reader, tenant, ctx.derived.extracts)
            for place, fault in _walk_tenant(walk, counts, at.place):
                if fault is not None:
                    work.broken.append(fault)
                    at = at._replace(is_broken=True)
                work.spent = counts["entries"]
                if work.is_spent:
                    return at._replace(place=place)
            at = at._replace(phase="tables", place=())
            counts["outdated"] += ctx.derived.index.outdated(reader)
        if at.phase == "tables":
            work.differing += table_faults(ctx, reader, tenant, counts)
            at = at._replace(phase="index", place=())
        if at.is_broken:  # nothing can be made again from a ledger that does not hold
            return None
        if at.phase == "index":
            for user_id in _users_after(reader, at.place):
                work.differing += _index_fault(ctx, reader, tenant, user_id)
                work.spent += reader.do(Count("entries", (("user_id", "=", user_id),)))
                if work.is_spent:
                    return at._replace(place=(user_id,))
            at = at._replace(phase="derived", place=())
        made = check_derived(ctx, reader, tenant)
        counts["derived"] += made.items
        counts["lacking"] += made.lacking
        named = {each.id for each in work.differing}
        work.differing += [each for each in made.differing if each.id not in named]
        work.differing += _list_faults(reader, tenant, {each.id for each in work.differing})
    return None


def _list_faults(reader: Reader, tenant: str, named: set[str]) -> list[Differing]:
    """Items that do not stand in their list where they should, and of which nothing else is wrong."""
    return [
        Differing(tenant_id=tenant, kind="listing", id=each.id, version=each.version, reason=_MISPLACED)
        for each in listing_faults(reader)
        if each.id not in named
    ]


def _users_after(reader: Reader, place: tuple[str, ...]) -> list[str]:
    where: tuple[Condition, ...] = (("user_id", ">", place[0]),) if place else ()
    return sorted(set(stream_texts(reader, SESSIONS, "user_id", where)))


def _index_fault(ctx: Context, reader: Reader, tenant: str, user_id: str) -> list[Differing]:
    try:
        fault = ctx.derived.index.fault(reader, tenant, user_id)
    except StoreDamaged as error:
        fault = error.message
    if fault is None:
        return []
    return [Differing(tenant_id=tenant, kind="index", id=user_id, version=0, reason=fault)]


def _verify_sample(work: _Work, tenant: str) -> int:
    """A sample of the sessions, spread over their names, each walked whole; answers how many there are, as far as they
    are counted."""
    ctx, counts = work.ctx, work.counts
    order = ("user_id", "session_id", "seq")
    with ctx.engine.snapshot(tenant) as reader:
        walk = _Walk(reader, tenant, ctx.derived.extracts)
        chosen = sampled_sessions(reader, SAMPLE_SESSIONS)
        for session in chosen:
            where = (("user_id", "=", session.user_id), ("session_id", "=", session.session_id))
            counts["sessions"] += 1
            rows = stream(reader, ENTRIES, where, order=order)  # type: ignore[arg-type]
            fault = _walk_session(walk, session, rows, counts)
            work.broken += [] if fault is None else [fault]
        users = sorted({session.user_id for session in chosen})
        counts["outdated"] += ctx.derived.index.outdated(reader, users)
        held = reader.do(Count("sessions", limit=COUNTED_MAX + 1))
    work.uncounted = work.uncounted or held > COUNTED_MAX
    return min(held, COUNTED_MAX)


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
            self._receipts |= listed_by(self.reader, (receipt_id,))
        listed = self._receipts[receipt_id]
        counts["unreceipted"] += listed is None
        return "its receipt does not list it" if listed is not None and row.id not in listed else None


def _walk_tenant(
    walk: _Walk, counts: dict[str, int], after: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, str], BrokenLink | None]]:
    """Session by session behind a place, what is wrong with it. Sessions and entries come in the same order, so one
    pass over each is enough."""
    reader, tenant = walk.reader, walk.tenant
    order = ("user_id", "session_id")
    entries = stream(reader, ENTRIES, order=(*order, "seq"), after=(*after, _AFTER_ALL) if after else None)
    groups = groupby(entries, key=lambda row: (row.user_id, row.session_id))
    group = next(groups, None)
    for session in stream(reader, SESSIONS, order=order, after=after or None):
        counts["sessions"] += 1
        address = (session.user_id, session.session_id)
        while group is not None and group[0] < address:
            yield group[0], _stray(tenant, group, counts)
            group = next(groups, None)
        rows: Iterator[EntryRow] = group[1] if group is not None and group[0] == address else iter(())
        fault = _walk_session(walk, session, rows, counts)
        is_here = group is not None and group[0] == address
        yield address, fault
        if is_here:
            group = next(groups, None)
    while group is not None:
        yield group[0], _stray(tenant, group, counts)
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
    begun: str | None = None
    for row in rows:
        begun = begun or row.recorded_at
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
    if first is None and begun not in (None, session.created_at):
        first = BrokenLink(
            tenant_id=tenant,
            user_id=user_id,
            session_id=session_id,
            seq=0,
            id=None,
            reason="the session's beginning was altered",
        )
    return first or _extract_fault(walk, session)


def _extract_fault(walk: _Walk, session: SessionRow) -> BrokenLink | None:
    """What was read out of a session whose chain holds is made again, and must be the same."""
    try:
        found = walk.extracts.fault(walk.reader, session.user_id, session.session_id, session.head_seq)
    except StoreDamaged as error:
        found = 0, error.message
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
