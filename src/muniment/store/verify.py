"""Verification that a store is unaltered (LG-05), and repair of what the ledger can reproduce.

`verify` walks every hash chain, checks the dependent tables, and compares what is stored with a replay of the
projections; `rebuild` writes the differences that the same comparison finds. Both read the ledger in index order and
hold only one session's ends in memory: whatever must be sorted is in the replay's temporary database.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Literal, NamedTuple

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.core.ports.engine import Count, Delete, Reader, Transaction
from muniment.core.ports.rows import (
    ASKED_MAX,
    Where,
    by_ids,
    first,
    get,
    insert,
    stream,
    stream_texts,
)
from muniment.core.ports.schema import (
    ENTRIES,
    IDEMPOTENCY_KEYS,
    ITEMS,
    SESSIONS,
    TENANTS,
    USERS,
    EntryRow,
    IdempotencyKeyRow,
    SessionRow,
)
from muniment.core.record import Items, Record
from muniment.core.scope import lock_rank
from muniment.errors import EmbedderFailure, InvalidInput, MunimentError, StoreDamaged, UnknownScope
from muniment.store.admission import is_instant
from muniment.store.append import number_of_key
from muniment.store.chain import blob_fault, genesis, head_after, head_of, link_fault
from muniment.store.context import Context
from muniment.store.item_terms import rebuild_terms, term_faults
from muniment.store.items import (
    Item,
    lineage_fault,
    links_of,
    listed_versions,
    listing_faults,
    put_lineage,
    put_links,
    relist,
    stream_items,
)
from muniment.store.proofs import proof_fault, proof_faults
from muniment.store.replay import Replay
from muniment.store.reports import BrokenLink, Differing, RebuildReport, VerifyReport
from muniment.store.sampling import sampled_sessions
from muniment.store.tombstones import listed_by
from muniment.store.watermark import users_behind

__all__ = ["SAMPLE_SESSIONS", "VerifyCursor", "key_fault", "lost_keys", "rebuild", "verify"]

SAMPLE_SESSIONS = 64
"""Maximum number of sessions of a tenant that a quick verification walks."""
COUNTED_MAX = 10_000
"""Maximum number of sessions of a tenant that a quick verification counts, to report its sample's coverage."""
_RECEIPTS_HELD_MAX = 16
"""Receipts cached during a walk: consecutive tombstones mostly name the same one."""
_AFTER_ALL = 2**62
"""No entry has this number."""
_BY_SESSION = ("user_id", "session_id", "seq")
_COUNTS = ("sessions", "entries", "forgotten", "unreceipted", "outdated", "derived", "lacking", "unproven")


def verify(
    ctx: Context,
    tenant_id: str | None = None,
    *,
    quick: bool = False,
    entries_max: int | None = None,
    resume: str | None = None,
) -> VerifyReport:
    """Check each session of one tenant, or of all; the report names the first broken link of each session.

    Everything derived from valid chains is derived again and compared. `quick` walks a sample of each tenant's sessions
    instead. With `entries_max` it stops after that many entries, and the report's `resume` continues it.
    """
    if not isinstance(quick, bool):
        raise InvalidInput("quick should be true or false", path="$.quick")
    if entries_max is not None and (type(entries_max) is not int or entries_max < 1):
        raise InvalidInput("entries_max should be a whole number from 1 on", path="$.entries_max")
    tenants = _tenants(ctx, tenant_id)
    start = VerifyCursor(asked=tenant_id) if resume is None else VerifyCursor.decode(resume, tenant_id)
    check = _Check(ctx, entries_max)
    if quick:
        for tenant in tenants:
            check.sample(tenant)
        return check.report(len(tenants))
    left = [tenant for tenant in tenants if start.tenant is None or tenant >= start.tenant]
    for number, tenant in enumerate(left, 1):
        cursor = start if tenant == start.tenant else VerifyCursor(asked=tenant_id, tenant=tenant)
        stopped = check.walk(tenant, cursor)
        if stopped is not None:
            return check.report(number, resume=stopped.encode())
    return check.report(len(left))


def rebuild(ctx: Context, tenant_id: str) -> RebuildReport:
    """Replay every projection over a tenant's ledger, and rewrite the items that differ from what it gives.

    Items that a forget has touched are left alone: their sources are gone on purpose.
    """

    def work(tx: Transaction) -> RebuildReport:
        replay = Replay(tenant_id, ctx.listeners)
        for row in _replayed_rows(tx):
            replay.add(row)
        replay.run()
        repaired = sorted({item.id for item, _ in _differing_items(ctx, tx, replay, stream_items(tx, ()))})
        for id_ in repaired:
            _rewrite(tx, replay, id_)
        relist(tx)
        rebuild_terms(ctx, tx)
        users = sorted(set(stream_texts(tx, SESSIONS, "user_id")), key=lock_rank)
        for user_id in users:
            ctx.derived.sessions.rebuild(tx, user_id)
        turns = sum(ctx.derived.index.rebuild(tx, tenant_id, user_id) for user_id in users)
        return RebuildReport(items=replay.items, repaired=tuple(repaired), turns=turns)

    for user in ctx.engine.read(tenant_id, users_behind):  # a rebuild makes no vectors: they come before it
        with suppress(StoreDamaged, EmbedderFailure):
            ctx.derived.index.follow(ctx, tenant_id, user.user_id)
    return ctx.engine.write(tenant_id, work)


# -- where a verification stopped ---------------------------------------------------------------------

Phase = Literal["chains", "tables", "index", "derived"]
"""Phases of a tenant's verification, in order: sessions by name, other tables, users by name, items."""
_PLACES: dict[Phase, tuple[int, ...]] = {"chains": (0, 2), "index": (0, 1)}
"""Numbers of names that the place of a phase may have, if any."""


class VerifyCursor(Record):
    """The place where a verification stopped, to continue later in any process."""

    asked: str | None
    """The requested tenant; None for all of them."""
    tenant: str | None = None
    phase: Phase = "chains"
    place: Items[str] = ()
    """The last session, or user, that was checked."""
    is_broken: bool = False
    """A chain of this tenant does not hold: nothing is rederived from it."""

    def encode(self) -> str:
        """Encode the cursor as letters and digits."""
        return base64.urlsafe_b64encode(canonical_bytes(self.to_wire())).decode().rstrip("=")

    @classmethod
    def decode(cls, text: Any, tenant_id: str | None) -> VerifyCursor:
        """Decode the cursor of a verification of the same tenants."""
        try:
            plain = parse_json(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
            cursor = cls.from_wire(plain)
        except (binascii.Error, TypeError, ValueError, MunimentError):
            cursor = None
        if cursor is None or cursor.asked != tenant_id or len(cursor.place) not in _PLACES.get(cursor.phase, (0,)):
            raise InvalidInput(
                "not where a verification of these tenants stopped",
                path="$.resume",
                hint="send back `resume` of the report as it was answered",
            )
        return cursor


def _tenants(ctx: Context, tenant_id: str | None) -> list[str]:
    """Return the tenants to check, including those whose row was removed."""
    listed = ctx.engine.tenants()
    if tenant_id is None:
        return sorted({*listed, *ctx.engine.unlisted_tenants()})
    if tenant_id in listed or ctx.engine.read(tenant_id, lambda reader: first(reader, SESSIONS)) is not None:
        return [tenant_id]
    raise UnknownScope(f"no tenant {tenant_id!r} in this store", path="$.tenant_id")


# -- the walk -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Check:
    """One call of `verify`: its findings, and how much of its entry budget is used."""

    ctx: Context
    entries_max: int | None
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[BrokenLink] = field(default_factory=list)
    differing: list[Differing] = field(default_factory=list)
    sample_of: dict[str, Any] = field(default_factory=dict)
    """Additional fields of a sample's report: the number of sessions."""

    @property
    def is_spent(self) -> bool:
        return self.entries_max is not None and self.counts["entries"] + self.counts["indexed"] >= self.entries_max

    def report(self, tenants: int, resume: str | None = None) -> VerifyReport:
        counts: dict[str, Any] = {name: self.counts[name] for name in _COUNTS} | self.sample_of
        broken, differing = tuple(self.broken), tuple(self.differing)
        return VerifyReport(tenants=tenants, resume=resume, broken=broken, differing=differing, **counts)

    def walk(self, tenant: str, cursor: VerifyCursor) -> VerifyCursor | None:
        """Check a tenant from a cursor on; returns where it stopped, None at its end."""
        with self.ctx.engine.snapshot(tenant) as reader:
            return _TenantCheck(self, tenant, reader).walk(cursor)

    def sample(self, tenant: str) -> None:
        """Walk some sessions of a tenant, spread over their names."""
        with self.ctx.engine.snapshot(tenant) as reader:
            of_tenant = _TenantCheck(self, tenant, reader)
            chosen = sampled_sessions(reader, SAMPLE_SESSIONS)
            for session in chosen:
                where = (("user_id", "=", session.user_id), ("session_id", "=", session.session_id))
                of_tenant.check_session(session, stream(reader, ENTRIES, where, order=_BY_SESSION))  # type: ignore[arg-type]
            users = sorted({session.user_id for session in chosen})
            self.counts["outdated"] += self.ctx.derived.index.outdated(reader, users)
            held = reader.do(Count("sessions", limit=COUNTED_MAX + 1))
        self.sample_of = {
            "sampled": True,
            "sessions_held": self.sample_of.get("sessions_held", 0) + min(held, COUNTED_MAX),
            "sessions_uncounted": self.sample_of.get("sessions_uncounted", False) or held > COUNTED_MAX,
        }


class _TenantCheck:
    """The check of one tenant, from one consistent view."""

    def __init__(self, check: _Check, tenant: str, reader: Reader) -> None:
        self.check, self.tenant, self.reader = check, tenant, reader
        self.ctx, self.counts = check.ctx, check.counts
        self._receipts: dict[str, frozenset[str] | None] = {}
        self._named: set[str] = set()
        """Items that already have a reported fault."""

    def walk(self, cursor: VerifyCursor) -> VerifyCursor | None:
        """Run the remaining phases, and stop once this call's entry budget is spent."""
        phases: dict[Phase, Callable[[VerifyCursor], VerifyCursor | None]] = {
            "chains": self._walk_chains,
            "tables": self._walk_tables,
            "index": self._walk_index,
            "derived": self._walk_derived,
        }
        names = list(phases)
        for phase in names[names.index(cursor.phase) :]:
            if cursor.phase != phase:
                cursor = cursor.model_copy(update={"phase": phase, "place": ()})
            if cursor.is_broken and phase in ("index", "derived"):
                return None  # nothing can be made again from a ledger that does not hold
            broken = len(self.check.broken)
            stopped = phases[phase](cursor)
            if len(self.check.broken) > broken:
                cursor = cursor.model_copy(update={"is_broken": True})
            if stopped is not None:
                return stopped.model_copy(update={"is_broken": cursor.is_broken})
        return None

    def _differs(self, kind: str, id_: str, reason: str, version: int = 0) -> None:
        made = Differing(tenant_id=self.tenant, kind=kind, id=id_, version=version, reason=reason)
        self.check.differing.append(made)
        self._named.add(id_)

    def _item_differs(self, item: Item, reason: str) -> None:
        if item.id not in self._named:
            self._differs(item.kind, item.id, reason, item.version)

    # -- chains

    def _walk_chains(self, cursor: VerifyCursor) -> VerifyCursor | None:
        """Walk the sessions after a place. Sessions and entries share one order, so one pass over each suffices."""
        place = cursor.place
        entries = stream(self.reader, ENTRIES, order=_BY_SESSION, after=(*place, _AFTER_ALL) if place else None)
        groups = groupby(entries, key=lambda row: (row.user_id, row.session_id))
        group = next(groups, None)
        for session in stream(self.reader, SESSIONS, order=_BY_SESSION[:2], after=place or None):
            address = (session.user_id, session.session_id)
            while group is not None and group[0] < address:
                self._stray(*group)
                group = next(groups, None)
            is_here = group is not None and group[0] == address
            self.check_session(session, group[1] if is_here and group is not None else iter(()))
            if self.check.is_spent:
                return cursor.model_copy(update={"place": address})
            if is_here:
                group = next(groups, None)
        while group is not None:
            self._stray(*group)
            group = next(groups, None)
        self.counts["outdated"] += self.ctx.derived.index.outdated(self.reader)
        return None

    def _stray(self, address: tuple[str, str], rows: Iterator[EntryRow]) -> None:
        """Report entries whose session is missing."""
        row = next(rows)
        self.counts["entries"] += 1 + sum(1 for _ in rows)
        self._breaks(address, row.seq, row.id, "entries without a session")

    def _breaks(self, address: tuple[str, str], seq: int, id_: str | None, reason: str) -> None:
        user_id, session_id = address
        self.check.broken.append(
            BrokenLink(
                tenant_id=self.tenant, user_id=user_id, session_id=session_id, seq=max(seq, 0), id=id_, reason=reason
            )
        )

    def check_session(self, session: SessionRow, rows: Iterator[EntryRow]) -> None:
        """Walk the chain of a session, and recheck the rows derived from it. Only its first fault is reported."""
        address = (session.user_id, session.session_id)
        head = genesis(self.tenant, *address)
        begun, is_sound = session.created_at, True
        self.counts["sessions"] += 1
        for row in rows:
            begun = row.recorded_at if head.seq == 0 else begun
            self.counts["entries"] += 1
            self.counts["forgotten"] += row.receipt_id is not None
            unproven = self._receipt_fault(row)
            reason = (
                (link_fault(self.tenant, row, head) or blob_fault(self.reader, row) or unproven) if is_sound else None
            )
            if reason is not None:
                self._breaks(address, row.seq, row.id, reason)
                is_sound = False
            head = head_after(row)
        if not is_sound:
            return
        if head.seq != session.head_seq:
            why = f"the session's head is at seq {session.head_seq!r}, its last entry at {head.seq}"
            self._breaks(address, head.seq + 1, None, why)
        elif head != head_of(session):
            self._breaks(address, head.seq + 1, None, "the session's head was altered")
        elif begun != session.created_at:
            self._breaks(address, 0, None, "the session's beginning was altered")
        elif (found := self._session_fault(session)) is not None:
            self._breaks(address, found[0], None, found[1])

    def _receipt_fault(self, row: EntryRow) -> str | None:
        """Describe a tombstone that its receipt does not list. Missing receipts are only counted: an imported part of a
        store may lack them.
        """
        receipt_id = row.receipt_id
        if receipt_id is None:
            return None
        if receipt_id not in self._receipts:
            if len(self._receipts) >= _RECEIPTS_HELD_MAX:
                self._receipts.pop(next(iter(self._receipts)))
            self._receipts |= listed_by(self.reader, (receipt_id,))
        listed = self._receipts[receipt_id]
        self.counts["unreceipted"] += listed is None
        return "its receipt does not list it" if listed is not None and row.id not in listed else None

    def _session_fault(self, session: SessionRow) -> tuple[int, str] | None:
        try:
            return self.ctx.derived.sessions.fault(self.reader, session.user_id, session.session_id, session.head_seq)
        except StoreDamaged as error:
            return 0, error.message

    # -- tables and the index

    def _walk_tables(self, _cursor: VerifyCursor) -> None:
        """Check the tables that are neither chains nor projections."""
        reader = self.reader
        entered = get(reader, TENANTS, ())
        if entered is None:
            self._differs("tenant", self.tenant, "its row is missing")
        elif not is_instant(entered.created_at) or not _has_session_of(reader, entered.created_at):
            self._differs("tenant", self.tenant, "none of its sessions began when it is said to have")
        for id_, reason in _id_faults(reader):
            self._differs("id", id_, reason)
        for user_id, reason in _user_faults(reader):
            self._differs("user", user_id, reason)
        for user_id, reason in lost_keys(reader):
            self._differs("idempotency", user_id, reason)
        for key in stream(reader, IDEMPOTENCY_KEYS):
            fault = key_fault(reader, key)
            if fault is not None:
                self._differs("idempotency", key.entry_id, fault)
        for id_, reason in () if self.ctx.derived.marks is None else self.ctx.derived.marks(reader, ()):
            self._differs("mark", id_, reason)
        for proof in proof_faults(self.ctx, reader, self.counts):
            self._differs(proof.kind, proof.id, proof.reason, proof.version)

    def _walk_index(self, cursor: VerifyCursor) -> VerifyCursor | None:
        """Rederive the search index of each user after a place, and compare."""
        where: Where = (("user_id", ">", cursor.place[0]),) if cursor.place else ()
        for user_id in sorted(set(stream_texts(self.reader, SESSIONS, "user_id", where))):
            try:
                fault = self.ctx.derived.index.fault(self.reader, self.tenant, user_id)
            except StoreDamaged as error:
                fault = error.message
            if fault is not None:
                self._differs("index", user_id, fault)
            self.counts["indexed"] += self.reader.do(Count("entries", (("user_id", "=", user_id),)))
            if self.check.is_spent:
                return cursor.model_copy(update={"place": (user_id,)})
        return None

    # -- derived items

    def _walk_derived(self, _cursor: VerifyCursor) -> None:
        """Compare the stored items with a replay, and check the rest for consistency."""
        replay = Replay(self.tenant, self.ctx.listeners)
        failed: Callable[[str, StoreDamaged], object] = lambda id_, error: self._differs(  # noqa: E731
            "event", id_, f"derived of it: {error.message}"
        )
        for row in _replayed_rows(self.reader):
            try:
                replay.add(row)
            except StoreDamaged as error:
                failed(row.id, error)
        replay.run(failed)
        self.counts["derived"] += replay.versions
        for item, reason in _differing_items(self.ctx, self.reader, replay, self._sound_items(), self._lacks):
            self._item_differs(item, reason)
        for id_, reason in term_faults(self.ctx, self.reader):
            if id_ not in self._named:
                self._differs("terms", id_, reason)
        for place in listing_faults(self.reader):
            if place.id not in self._named:
                why = "no list shows this version where the versions of the item say"
                self._differs("listing", place.id, why, place.version)

    def _lacks(self, _made: Item) -> None:
        self.counts["lacking"] += 1

    def _sound_items(self) -> Iterator[Item]:
        """Yield all versions of all items, in order, reporting individual faults on the way."""
        for item in stream_items(self.reader, ()):
            fault = self._own_fault(item)
            if fault is not None:
                self._item_differs(item, fault)
            yield item

    def _own_fault(self, item: Item) -> str | None:
        """Describe the fault of a version in its row, its proof or its content."""
        if item.receipt_id is not None:
            return "what a forget left of it was altered" if not item.is_sound else lineage_fault(self.reader, item)
        derivation = self.ctx.derivations.get(item.kind)
        if derivation is not None and derivation.is_projection:
            return None
        if not item.is_sound:
            return "the row was altered"
        if derivation is None or derivation.fault is None:
            return None
        self.counts["derived"] += 1
        sources = frozenset(link.source_id for link in links_of(self.reader, item.id))
        return derivation.fault(item, sources) or proof_fault(self.ctx, self.reader, item)


def _has_session_of(reader: Reader, created_at: str) -> bool:
    return first(reader, SESSIONS, (("created_at", "=", created_at),)) is not None


# -- projections --------------------------------------------------------------------------------------


def _replayed_rows(reader: Reader) -> Iterator[EntryRow]:
    return stream(reader, ENTRIES, (("receipt_id", "=", None),), order=_BY_SESSION)


def _differing_items(
    ctx: Context,
    reader: Reader,
    replay: Replay,
    items: Iterator[Item],
    lacks: Callable[[Item], object] | None = None,
) -> Iterator[tuple[Item, str]]:
    """Compare stored projections with what the ledger gives: the versions that differ, and those that are missing.

    `items` are all versions of the store in the order of their key, so that nothing has to be sorted. An item that is
    missing with all its links may be of a kind that an earlier version did not derive: it is passed to `lacks` instead,
    if given. Items that a forget has touched are not compared.
    """
    kinds = {kind for kind, derivation in ctx.derivations.items() if derivation.is_projection}
    for id_ in stream_texts(reader, ITEMS, "id", (("receipt_id", ">=", ""),)):
        replay.skip(id_)
    before: Item | None = None
    for item in items:
        if item.kind not in kinds:
            continue
        if before is None or before.id != item.id:
            yield from _missing_versions(replay, before)
            before = None if replay.is_skipped(item.id) else item
            if before is not None:
                replay.skip(item.id)
                fault = replay.source_fault(item.id, {link.source_id for link in links_of(reader, item.id)})
                if fault is not None:
                    yield item, fault
        if before is not None:
            before = item
            if (fault := replay.fault(item)) is not None:
                yield item, fault
    yield from _missing_versions(replay, before)
    for made in replay.left():
        is_known = bool(links_of(reader, made.id)) or _derived_by_then(reader, made)
        if lacks is None or is_known:
            yield made, "it was made, and is missing"
        else:
            lacks(made)


class _Made(NamedTuple):
    kind: str
    created_at: str


def _derived_by_then(reader: Reader, made: Item) -> bool:
    """Return whether items of this kind were derived when this one should have been: an earlier version may not have
    done so.
    """
    oldest = first(reader, ITEMS, (("kind", "=", made.kind),), into=_Made, order=("kind", "created_at"))
    return oldest is not None and oldest.created_at <= made.created_at


def _missing_versions(replay: Replay, last: Item | None) -> Iterator[tuple[Item, str]]:
    """Yield the last stored version of an item, if the ledger gives more."""
    if last is not None and replay.count(last.id) > last.version:
        yield last, "a version that the ledger gives is missing"


def _rewrite(tx: Transaction, replay: Replay, item_id: str) -> None:
    """Replace the stored versions and links of an item."""
    for table, column in (("items", "id"), ("links", "item_id"), ("lineages", "item_id")):
        tx.do(Delete(table, ((column, "=", item_id),)))
    versions = listed_versions(list(replay.made(item_id)))
    if versions:
        insert(tx, ITEMS, versions)
        put_links(tx, item_id, replay.sources(item_id, turns=False))
        put_lineage(tx, item_id, versions[0].user_id or "", replay.sources(item_id, turns=True))


# -- users --------------------------------------------------------------------------------------------


class _Number(NamedTuple):
    n: int


def _user_faults(reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield users whose entries do not match their row's count, or are not numbered from 1 without gaps."""
    for user in stream(reader, USERS):
        of_user: Where = (("user_id", "=", user.user_id),)
        ends = [
            first(reader, ENTRIES, of_user, into=_Number, order=("user_id", "n"), descending=is_last)
            for is_last in (False, True)
        ]
        numbers = [0 if end is None else end.n for end in ends]
        if reader.do(Count("entries", of_user)) != user.tail or numbers != [min(user.tail, 1), user.tail]:
            yield user.user_id, "its entries are not those that were counted"
        elif not (0 <= user.indexed <= user.tail and 0 <= user.embedded <= user.tail and user.generation >= 0):
            yield user.user_id, "more of its entries are said to be indexed than there are"
    for user_id, _ in groupby(stream_texts(reader, SESSIONS, "user_id")):
        if get(reader, USERS, (user_id,)) is None and first(
            reader, ENTRIES, (("user_id", "=", user_id),), into=_Number
        ):
            yield user_id, "its row is missing"


# -- ids and idempotency keys -------------------------------------------------------------------------

_HASH_BYTES = 32


class _Owned(NamedTuple):
    id: str
    user_id: str
    receipt_id: str | None


class _Id(NamedTuple):
    id: str


def key_fault(reader: Reader, key: IdempotencyKeyRow) -> str | None:
    """Describe what is wrong with an idempotency key; None where it belongs to an event of its user."""
    entry = first(reader, ENTRIES, (("id", "=", key.entry_id),), into=_Owned)
    if entry is None or entry.user_id != key.user_id:
        return "an idempotency key names an event that is none of its user"
    is_sound = len(key.key_hash) == _HASH_BYTES and (key.request_hash is None) == (entry.receipt_id is not None)
    is_sound = is_sound and (key.request_hash is None or len(key.request_hash) == _HASH_BYTES)
    return None if is_sound else "an idempotency key is not as it was written"


def lost_keys(reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield users whose idempotency keys were altered: a request under a lost key could be written twice."""
    altered = "an idempotency key is missing or altered"
    for user_id, keys in groupby(stream(reader, IDEMPOTENCY_KEYS), key=lambda row: row.user_id):
        user = get(reader, USERS, (user_id,))
        if sum(number_of_key(key.key_hash, key.entry_id) for key in keys) != (0 if user is None else user.key_sum):
            yield user_id, altered
    for user in stream(reader, USERS):
        if user.key_sum and first(reader, IDEMPOTENCY_KEYS, (("user_id", "=", user.user_id),)) is None:
            yield user.user_id, altered


def _id_faults(reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield ids that both an event and an item have."""
    of_items = (item.id for item in stream(reader, ITEMS, (("version", "=", 1),), into=_Id))
    while ids := list(islice(of_items, ASKED_MAX)):
        shared = by_ids(reader, ENTRIES, ids, into=_Id)
        yield from ((row.id, "both an event and an item have this id") for row in shared)
