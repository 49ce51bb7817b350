"""Export and import: everything in a scope as JSON lines, with identical ids, hashes and chains on any engine.

The form is in `store.dumps`. An import reads the whole dump once to check it (chains included) before it writes; it
skips existing rows, so an interrupted one is run again. Content forgotten here is never restored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from hashlib import sha256
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeVar

from muniment.core.canonical import canonical_bytes
from muniment.core.ports.engine import Condition, Count, KeyTaken, Lock, Reader, Transaction
from muniment.core.ports.rows import by_ids, get, insert, put, select, stream, texts
from muniment.core.ports.schema import (
    BLOBS,
    ENTRIES,
    IDEMPOTENCY_KEYS,
    ITEMS,
    LINKS,
    MARKS,
    PARTS,
    SESSIONS,
    BlobRow,
    EntryRow,
    IdempotencyKeyRow,
    ItemRow,
    LinkRow,
    MarkRow,
    PartRow,
    SessionRow,
)
from muniment.core.scope import lock_rank
from muniment.errors import BlobCorrupt, Conflict, InvalidInput, StoreDamaged, UnknownKind, UnknownScope
from muniment.store.answers import clear_answers
from muniment.store.append import enter_tenant, number_entries, put_keys
from muniment.store.chain import (
    ChainWalk,
    Head,
    blob_fault,
    blobs_of,
    check_sessions,
    damaged_session,
    genesis,
    head_after,
)
from muniment.store.context import Context
from muniment.store.dumps import FORMAT, LINE_BYTES_MAX, Dump, DumpRow, Line, check_dump, plain_row, read_dump
from muniment.store.forget import SCRUB_DUE, carriers_of, empty_rows, receipt_change
from muniment.store.item_terms import remake_terms
from muniment.store.items import (
    Item,
    checked_item,
    emptied_item,
    kinds_held,
    latest,
    lineage_fault,
    links_of,
    listed_versions,
    lock_receipts,
    lock_shared,
    relist,
    seal_lineages,
    stream_items,
    write_changes,
)
from muniment.store.ledger import Erased, Receipt, check_content, check_header
from muniment.store.proofs import check_proof, prove
from muniment.store.reports import ImportReport
from muniment.store.scrub import due_receipts, note_scrub
from muniment.store.tombstones import Listed, is_receipted, listed_by
from muniment.store.turns import names_of
from muniment.store.verify import key_fault, lost_keys

__all__ = ["FORMAT", "LINE_BYTES_MAX", "Dump", "check_dump", "export_lines", "import_dump"]

BATCH_ROWS = 1000
BATCH_BYTES = 16 * 1024 * 1024
_LOGGED_KINDS = ("claim", "conflict", "failure", "next_actions", "question")
"""Items that a run writes into its log, and a snapshot repeats."""

Progress = Callable[[int], None]
R = TypeVar("R", bound=DumpRow)


# -- export -------------------------------------------------------------------------------------------


def export_lines(
    ctx: Context, tenant_id: str, user_id: str | None = None, session_id: str | None = None
) -> Iterator[bytes]:
    """Dump a tenant, a user or a session, line by line, from one consistent view, in flat memory.

    A user's dump includes the user's private documents; those that the tenant shares are in the tenant's.
    """
    hasher, counts = sha256(), Counter[str]()

    def line(value: dict[str, Any]) -> bytes:
        data = canonical_bytes(value) + b"\n"
        hasher.update(data)
        return data

    with ctx.engine.snapshot(tenant_id) as reader:
        scope = _scope(reader, user_id, session_id)
        yield line({"muniment": FORMAT, "tenant_id": tenant_id, "scope": scope})
        for name, row in _rows(ctx, reader, tenant_id, scope):
            counts[name] += 1
            yield line({"table": name, "row": plain_row(row)})
    yield canonical_bytes({"end": True, "counts": dict(counts), "digest": hasher.hexdigest()}) + b"\n"


def _scope(reader: Reader, user_id: str | None, session_id: str | None) -> dict[str, str]:
    """Resolve the scope, which must exist; a session's name alone must be unique to one user (LG-02)."""
    given = {"user_id": user_id, "session_id": session_id}
    scope = {name: value for name, value in given.items() if value is not None}
    for name, value in scope.items():
        if not isinstance(value, str):
            raise InvalidInput(f"{name} should be a string", path=f"$.{name}")
    where = _conditions(reader, scope)
    found = texts(reader, SESSIONS, "user_id", where, limit=2)
    if not found and texts(reader, ENTRIES, "user_id", where, limit=1):
        check_sessions(reader, where)
    if not found:
        raise UnknownScope("nothing is stored for this scope", hint="check the tenant, user and session ids")
    if session_id is not None and user_id is None:
        if len(found) > 1:
            raise InvalidInput(
                f"several users have a session {session_id!r}", path="$.user_id", hint="give user_id as well"
            )
        scope["user_id"] = found[0]
    return scope


def _conditions(reader: Reader, scope: dict[str, str]) -> tuple[Condition, ...]:
    """Return the conditions for the rows of a scope. A user's include those of the user's private documents."""
    if scope.keys() == {"user_id"}:
        return (("user_id", "in", names_of(reader, scope["user_id"])),)
    return tuple((name, "=", value) for name, value in scope.items())


def _rows(ctx: Context, reader: Reader, tenant_id: str, scope: dict[str, str]) -> Iterator[tuple[str, DumpRow]]:
    """Read the rows of a scope, checking each: a damaged store is not dumped (TM-12)."""
    order, where = ("user_id", "session_id"), _conditions(reader, scope)
    listed: Listed = {}
    check_sessions(reader, where)
    for session in stream(reader, SESSIONS, where, order=order):
        yield "sessions", session
        of_session: tuple[Condition, ...] = (
            ("user_id", "=", session.user_id),
            ("session_id", "=", session.session_id),
        )
        walk, begun = ChainWalk(tenant_id), session.created_at
        for entry in stream(reader, ENTRIES, of_session, order=(*order, "seq")):
            check_header(tenant_id, entry)
            check_content(entry)
            _check_receipted(reader, entry, listed, is_part=bool(scope))
            walk.see(reader, entry)
            if entry.seq == 1 and entry.recorded_at != begun:
                raise damaged_session(session)
            yield "entries", entry
            for blob in _blobs_of(reader, entry):
                yield "blobs", blob
        walk.end(reader)
    of_kinds: tuple[Condition, ...] = (("kind", "in", tuple(kinds_held(reader))),) if where else ()
    for item in stream_items(reader, (*of_kinds, *where)):
        if item.body is not None:
            item.plain()
            check_proof(ctx, reader, item)
        else:
            item.check()
            if (fault := lineage_fault(reader, item)) is not None:
                raise item.damaged(fault)
        yield "items", item
        if item.version == 1:
            for link in links_of(reader, item.id):
                yield "links", link
            if item.kind == "snapshot":
                for part in stream(reader, PARTS, (("owner", "=", item.id),)):
                    yield "parts", part
    _check_marks(ctx, reader, where)
    for mark in stream(reader, MARKS, where):
        yield "marks", mark
    users: tuple[Condition, ...] = (("user_id", "=", scope["user_id"]),) if "user_id" in scope else ()
    for key in stream(reader, IDEMPOTENCY_KEYS, users):
        fault = key_fault(reader, key)
        if fault is not None:
            raise StoreDamaged(fault, details={"id": key.entry_id})
        if not scope or _in_scope(reader, key.entry_id, scope):
            yield "idempotency", key
    for user_id, fault in () if scope else lost_keys(reader):
        raise StoreDamaged(f"the user {user_id!r:.80}: {fault}", details={"id": user_id})


def _check_receipted(reader: Reader, row: EntryRow, listed: Listed, *, is_part: bool) -> None:
    """Check that a forgotten entry goes out with the receipt that lists it. A dump of a part goes without, so that its
    importer may lack it; a whole dump that lacks it could not be imported. `listed` grows with each receipt.
    """
    if row.receipt_id is not None and row.receipt_id not in listed:
        listed |= listed_by(reader, (row.receipt_id,))
    if not is_receipted(row, listed) and not is_part:
        raise StoreDamaged(
            f"the event {row.id!r:.80} was forgotten, and its receipt is not in this store",
            hint="the store was altered, or took in a part of another: of such a one export user by user",
            details={"id": row.id},
        )


def _check_marks(ctx: Context, reader: Reader, where: tuple[Condition, ...]) -> None:
    """Check that every mark was given by a build, in a session that exists, or that was empty when it was composed."""
    for mark in stream(reader, MARKS, where):
        is_there = get(reader, SESSIONS, (mark.user_id, mark.session_id)) is not None
        if mark.number < 1 or not (is_there or _is_composed_for(reader, mark.user_id, mark.session_id)):
            raise StoreDamaged(
                f"the mark of {mark.evidence_id!r:.80} is of no session", details={"id": mark.evidence_id}
            )
    for id_, reason in () if ctx.derived.marks is None else ctx.derived.marks(reader, where):
        raise StoreDamaged(f"a mark of {id_!r:.80} is not as it was written: {reason}", details={"id": id_})


def _is_composed_for(reader: Reader, user_id: str, session_id: str) -> bool:
    of_session: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "=", session_id))
    return reader.do(Count("items", (("kind", "=", "build"), *of_session))) > 0


def _blobs_of(reader: Reader, entry: EntryRow) -> Sequence[BlobRow]:
    fault = blob_fault(reader, entry)
    if fault is not None:
        raise BlobCorrupt(f"the event {entry.id} cannot be exported: {fault}", details={"id": entry.id})
    if entry.body is None or '"blob":"' not in entry.body:
        return ()
    return blobs_of(reader, entry)


def _in_scope(reader: Reader, entry_id: str, scope: dict[str, str]) -> bool:
    entry = get(reader, ENTRIES, (entry_id,))
    return entry is not None and all(getattr(entry, column) == value for column, value in scope.items())


_PROVEN = "proven"
"""Count in a batch: proofs that were made."""


# -- import -------------------------------------------------------------------------------------------


def import_dump(ctx: Context, dump: Dump, progress: Progress | None = None) -> ImportReport:
    """Write a checked dump, batch by batch; existing rows are skipped."""
    unknown = dump.kinds - ctx.derivations.keys()
    if unknown:
        raise UnknownKind(f"the dump holds items of kind {', '.join(sorted(unknown))}, which is not known here")
    if progress is not None and not callable(progress):
        raise InvalidInput("progress should be a function", path="$.progress")
    written, skipped = Counter[str](), Counter[str]()
    gone: dict[str, str] = {}
    emptied: list[bytes] = []
    emptied_there: set[str] = set()
    waited = ctx.engine.read(dump.tenant_id, due_receipts)
    for batch in _batches(chain(read_dump(dump.open()), dump.left())):
        emptied_there.update(row.id for row in _rows_of(batch, EntryRow) if row.receipt_id is not None)
        emptied_there.update(row.id for row in _rows_of(batch, ItemRow) if row.body is None)
        try:
            done, more, salts = ctx.write(
                dump.tenant_id, partial(_write_batch, ctx, dump.tenant_id, batch, gone, emptied_there)
            )
        except KeyTaken as error:
            raise Conflict(
                f"a row of {error.table} in the dump collides with another record of this store",
                hint="an id or a place in a session is taken",
            ) from None
        gone.update(more)
        emptied += salts
        written.update(done)
        skipped.update(Counter(line.table for line in batch) - done)
        if progress is not None:
            progress(len(batch))
    ctx.index_tails()
    ctx.clear_caches(dump.tenant_id)
    if emptied:
        due = ctx.engine.read(dump.tenant_id, due_receipts)
        longer = {id_: due[id_] for id_ in set(gone.values()).difference(waited) if id_ in due}
        report = ctx.engine.scrub(emptied)
        ctx.engine.write(dump.tenant_id, lambda tx: note_scrub(ctx, tx, longer, report))
    proven = written.pop(_PROVEN, 0)
    return ImportReport(tenant_id=dump.tenant_id, written=dict(written), skipped=dict(+skipped), proven=proven)


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Split a dump into batches; an entry stays with its blob, an item with its versions and links."""
    batch: list[Line] = []
    size, item_id = 0, None
    for line in lines:
        of_item = line.row.id if isinstance(line.row, ItemRow) else None
        starts = line.table not in ("blobs", "links") and (of_item is None or of_item != item_id)
        if starts and (len(batch) >= BATCH_ROWS or size >= BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += line.size
        item_id = item_id if of_item is None else of_item
    if batch:
        yield batch


def _write_batch(
    ctx: Context, tenant_id: str, batch: list[Line], gone: dict[str, str], emptied_there: Set[str], tx: Transaction
) -> tuple[Counter[str], dict[str, str], list[bytes]]:
    """Write new rows; refuse existing ones with other bytes. Forgets are blocked until it is written.

    `gone`, and the second result, which adds to it: ids in the dump that were forgotten here → the receipt. The third:
    the salts of entries emptied during the import, and of stored answers.
    """
    done: Counter[str] = Counter()
    entries, links = _rows_of(batch, EntryRow), _rows_of(batch, LinkRow)
    places = {(row.user_id, row.session_id) for row in entries}
    for user_id, session_id in sorted(places, key=lambda place: (lock_rank(place[0]), place[1])):
        tx.do(Lock(("session", user_id, session_id)))
    lock_shared(tx)  # a forget takes it too; after the sessions, as in every writer of memory
    new_entries, more = _sort_entries(tx, entries)
    owners = [row.owner for row in _rows_of(batch, PartRow)]
    more |= _emptied_since(tx, [*(link.source_id for link in links), *owners], emptied_there)
    _write_heads(tx, tenant_id, _rows_of(batch, SessionRow), new_entries, done)
    fresh = {row.id for row in new_entries}
    new_blobs = [row for row in _rows_of(batch, BlobRow) if row.entry_id in fresh]
    numbered, users = number_entries(tx, new_entries)
    ctx.note_tails(tenant_id, *users)
    insert(tx, ENTRIES, numbered)
    insert(tx, BLOBS, new_blobs)
    for (user_id, session_id), rows in groupby(new_entries, key=lambda row: (row.user_id, row.session_id)):
        added = list(rows)
        ctx.derived.sessions.extend(tx, user_id, session_id, added[-1].seq, len(added))
    done.update(entries=len(new_entries), blobs=len(new_blobs))
    items = _rows_of(batch, ItemRow)
    lost = _lost_of_runs(ctx, tx, gone | more) if items else {}
    written: list[Item] = []
    for id_, versions in groupby(items, key=lambda row: row.id):
        receipt_id, new = _write_item(tx, list(versions), links, gone | more, lost)
        written += new
        if receipt_id is not None:
            more[id_] = receipt_id
    remake_terms(ctx, tx, list(dict.fromkeys(item.id for item in written)))
    new_links = _new_links(tx, links, {item.id for item in written})
    insert(tx, LINKS, new_links)
    seal_lineages(tx, [item.id for item in written if item.body is None])
    emptied = _empty_carriers(ctx, tx, more)
    parts = _kept_parts(_rows_of(batch, PartRow), gone | more)
    new_parts = [row for row in parts if get(tx, PARTS, (row.owner, row.hash)) is None]
    insert(tx, PARTS, new_parts)
    new_marks = _new_marks(tx, _rows_of(batch, MarkRow))
    insert(tx, MARKS, new_marks)
    done[_PROVEN] = prove(ctx, tx, written)
    new_keys = [row for row in _rows_of(batch, IdempotencyKeyRow) if _lacks_key(tx, row)]
    put_keys(tx, new_keys)
    done.update(
        items=len(written), links=len(new_links), parts=len(new_parts), marks=len(new_marks), idempotency=len(new_keys)
    )
    return done, more, emptied + clear_answers(tx).salts


def _rows_of(batch: list[Line], row: type[R]) -> list[R]:
    """Return the rows of one table, in order."""
    return [line.row for line in batch if isinstance(line.row, row)]


def _new_links(tx: Transaction, rows: list[LinkRow], written: Set[str]) -> list[LinkRow]:
    """Return the links that are not here yet, without those of things forgotten here before."""
    new: list[LinkRow] = []
    for item_id, links in groupby(rows, key=lambda row: row.item_id):
        there = None if item_id in written else latest(tx, item_id)
        if there is not None and there.body is None:
            continue
        here = set(links_of(tx, item_id))
        new += [link for link in links if link not in here]
    return new


def _new_marks(tx: Transaction, rows: list[MarkRow]) -> list[MarkRow]:
    """Return the marks that are not here yet. A number already in use here keeps its meaning, and anything numbered
    here keeps its number: builds, including the dump's, hold the marks they used.
    """
    new: list[MarkRow] = []
    for (user_id, session_id), group in groupby(rows, key=lambda row: (row.user_id, row.session_id)):
        given = list(group)
        tx.do(Lock(("marks", user_id, session_id)))
        of_session: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "=", session_id))
        numbers = {row.number for row in _marks_with(tx, of_session, "number", [row.number for row in given])}
        named = {
            row.evidence_id for row in _marks_with(tx, of_session, "evidence_id", [row.evidence_id for row in given])
        }
        for row in given:
            if row.number not in numbers and row.evidence_id not in named:
                new.append(row)
                named.add(row.evidence_id)
    return new


def _marks_with(
    tx: Transaction, of_session: tuple[Condition, ...], column: str, values: Sequence[Any]
) -> Iterator[MarkRow]:
    return by_ids(tx, MARKS, values, column=column, where=of_session)


def _sort_entries(tx: Transaction, rows: list[EntryRow]) -> tuple[list[EntryRow], dict[str, str]]:
    """Return (new entries, entries forgotten here but whole in the dump)."""
    new: list[EntryRow] = []
    gone: dict[str, str] = {}
    here = {row.id: row for row in by_ids(tx, ENTRIES, [row.id for row in rows])}
    for row in rows:
        there = here.get(row.id)
        if there is None:
            _check_receipt(tx, row)
            new.append(row)
        elif _without_content(there) != _without_content(row):
            raise Conflict(
                f"the event {row.id!r} is here already, and differs", details={"id": row.id}, path="$.row.id"
            )
        elif there.receipt_id is not None and row.receipt_id is None:
            gone[row.id] = there.receipt_id
    return new, gone


def _check_receipt(tx: Transaction, row: EntryRow) -> None:
    """Check that an entry without content is listed by its receipt, if present."""
    receipt = None if row.receipt_id is None else latest(tx, row.receipt_id)
    if receipt is not None and receipt.kind == "receipt" and receipt.body is not None:
        listed = {gone.id for gone in Receipt.from_wire(receipt.plain()).erased}
        if row.id not in listed:
            raise Conflict(
                f"the event {row.id!r} comes without its content, and its receipt does not list it",
                path="$.row.receipt_id",
                details={"id": row.id, "receipt_id": receipt.id},
            )


def _without_content(row: EntryRow) -> EntryRow:
    """Return the columns of an entry's row that a forget leaves unchanged."""
    return row._replace(salt=None, body=None, receipt_id=None, n=0)


def _write_heads(
    tx: Transaction, tenant_id: str, sessions: list[SessionRow], entries: list[EntryRow], done: Counter[str]
) -> None:
    """Point a session's head at its last stored entry, whatever part of the dump has been read."""
    for session in sessions:
        user_id, session_id = session.user_id, session.session_id
        if get(tx, SESSIONS, (user_id, session_id)) is None:
            start = genesis(tenant_id, user_id, session_id)
            insert(tx, SESSIONS, [_with_head(session, start)])
            enter_tenant(tx, session.created_at)
            done["sessions"] += 1
    for (user_id, session_id), rows in groupby(entries, key=lambda row: (row.user_id, row.session_id)):
        every = list(rows)
        first, last = every[0], every[-1]
        there = get(tx, SESSIONS, (user_id, session_id))
        if there is None or (first.seq, first.prev_hash) != (there.head_seq + 1, there.head_hash):
            raise Conflict(f"the session {session_id!r} of {user_id!r} went on differently here", path="$.row")
        put(tx, SESSIONS, [_with_head(there, head_after(last))])


def _with_head(session: SessionRow, head: Head) -> SessionRow:
    return session._replace(head_seq=head.seq, head_hash=head.hash, head_recorded_at=head.recorded_at)


def _lost_of_runs(ctx: Context, tx: Transaction, gone: dict[str, str]) -> dict[str, str]:
    """Return items covering runs that lost an event here, which are erased with it, and the receipts."""
    ids_of = [derivation.id_of_run for derivation in ctx.derivations.values() if derivation.id_of_run is not None]
    entries = by_ids(tx, ENTRIES, sorted(gone), into=_EntryRun)
    return {id_of(entry.run_id): gone[entry.id] for entry in entries for id_of in ids_of}


class _EntryRun(NamedTuple):
    id: str
    run_id: str


def _write_item(
    tx: Transaction,
    versions: list[ItemRow],
    links: list[LinkRow],
    gone: dict[str, str],
    lost: dict[str, str],
) -> tuple[str | None, list[Item]]:
    """Add the versions of an item that are not here yet; those of an item that was forgotten here become tombstones.

    Returns the receipt of that forget, if it happened here and not at the dump's origin, and what was added.
    """
    id_ = versions[0].id
    _check_kind(tx, id_, versions[0].kind)
    here = {row.version: row for row in select(tx, ITEMS, (("id", "=", id_),))}
    receipt_id = _receipt_of_versions(versions, here) or gone.get(
        id_
    )  # `gone`: an earlier batch had its first versions
    if receipt_id is None and not here:
        sources = [link.source_id for link in links if link.item_id == id_]
        receipt_id = _receipt_of_origins(tx, versions[0], sources, gone, lost)
    new = [row for row in versions if row.version not in here]
    if receipt_id is not None:
        new = [row if row.body is None else emptied_item(row, receipt_id) for row in new]
    known = {row.version: row for row in (*here.values(), *new)}
    listed = listed_versions([row for _, row in sorted(known.items())])
    sealed = [checked_item(row) for row in listed if row.version not in here]
    insert(tx, ITEMS, sealed)
    if here:
        relist(tx, id_)
    return receipt_id, sealed


def _check_kind(tx: Transaction, id_: str, kind: str) -> None:
    """Refuse an id that an event or an item of another kind has here. It is locked until the transaction ends."""
    tx.do(Lock(("id", id_)))
    item = latest(tx, id_)
    held = item.kind if item is not None else "event" if get(tx, ENTRIES, (id_,)) is not None else kind
    if held != kind:
        raise Conflict(f"the id {id_!r} of a {kind!r} is here already, as a {held!r}", details={"id": id_})


def _receipt_of_versions(versions: list[ItemRow], here: dict[int, ItemRow]) -> str | None:
    """Return the receipt that forgot a version here which the dump has whole. Refuses versions that differ."""
    receipt_id: str | None = None
    for row in versions:
        there = here.get(row.version)
        if there is None:
            continue
        is_whole = None not in (there.body, row.body)
        is_same = plain_row(emptied_item(there, None)) == plain_row(emptied_item(row, None))
        if not is_same or (is_whole and plain_row(there) != plain_row(row)):
            raise Conflict(f"the {row.kind!r} {row.id!r} is here already, and differs", details={"id": row.id})
        if there.body is None and row.body is not None:
            receipt_id = there.receipt_id
    return receipt_id


def _receipt_of_origins(
    tx: Transaction, first: ItemRow, sources: list[str], gone: dict[str, str], lost: dict[str, str]
) -> str | None:
    """Return the receipt that forgot, here, a source of a new item's first version."""
    receipt_id = _lost_source(tx, first.id, sources, gone) or _lost_run(tx, first, gone)
    if receipt_id is not None:
        return receipt_id
    return next((lost[each] for each in (first.id, *sources) if each in lost and latest(tx, each) is None), None)


def _lost_run(tx: Transaction, row: ItemRow, gone: dict[str, str]) -> str | None:
    """Return the receipt that forgot any event of a snapshot's run here: a snapshot covers its whole run."""
    if row.kind != "snapshot" or not gone:
        return None
    of_run: tuple[Condition, ...] = (
        ("user_id", "=", row.user_id),
        ("session_id", "=", row.session_id),
        ("run_id", "=", row.run_id),
    )
    entries = texts(tx, ENTRIES, "id", of_run, order=("user_id", "session_id", "seq"))
    logged = texts(tx, ITEMS, "id", (("kind", "in", _LOGGED_KINDS), ("run_id", "=", row.run_id)))
    return next((gone[id_] for id_ in (*entries, *logged) if id_ in gone), None)


def _empty_carriers(ctx: Context, tx: Transaction, gone: dict[str, str]) -> list[bytes]:
    """Empty the patches that carry the words of an incoming tombstone, as a forget would, in the index too; the
    receipts list them, and wait for a scrub.
    """
    emptied: dict[str, dict[str, bytes]] = {}
    salts: list[bytes] = []
    for carrier in carriers_of(tx, gone):
        emptied.setdefault(gone[carrier.item_id], {})[carrier.id] = carrier.hash
        salts.append(carrier.salt)
    if emptied:
        lock_receipts(tx)
    for receipt_id, entries in emptied.items():
        empty_rows(ctx, tx, list(entries), list(entries), receipt_id)
        item = latest(tx, receipt_id)
        if item is not None and item.kind == "receipt":
            receipt = Receipt.from_wire(item.plain())
            erased = (Erased(kind="event", id=id_, hash=hash_.hex()) for id_, hash_ in entries.items())
            longer = receipt.model_copy(update={"erased": (*receipt.erased, *erased)})
            prove(ctx, tx, write_changes(tx, [receipt_change(longer, SCRUB_DUE)]))
    return salts


def _kept_parts(rows: list[PartRow], gone: dict[str, str]) -> list[PartRow]:
    """Empty the parts of an item that was forgotten here."""
    return [row._replace(body=None, receipt_id=gone[row.owner]) if row.owner in gone else row for row in rows]


def _lost_source(tx: Transaction, item_id: str, sources: list[str], gone: dict[str, str]) -> str | None:
    """Return the receipt that forgot a source of this item here, though not where the dump was made."""
    for source in sources:
        if source in gone:
            return gone[source]
        item = latest(tx, source) if source > item_id else None  # those before it in the dump are in `gone`
        if item is not None and item.body is None:
            return item.receipt_id
    return None


def _lacks_key(tx: Transaction, key: IdempotencyKeyRow) -> bool:
    if get(tx, IDEMPOTENCY_KEYS, (key.user_id, key.key_hash)) is not None:
        return False
    entry = get(tx, ENTRIES, (key.entry_id,))
    if entry is None or entry.user_id != key.user_id:
        raise Conflict(
            f"an idempotency key names the event {key.entry_id!r}, which is not this user's", path="$.row.entry_id"
        )
    return True


class _Emptied(NamedTuple):
    id: str
    receipt_id: str | None


def _emptied_since(reader: Reader, ids: Sequence[str], emptied_there: Set[str]) -> dict[str, str]:
    """Return those of these entries and items that are forgotten here but not at the dump's origin, by their receipts.

    The dump may have imported them whole a moment ago: other rows of it that hold them are refused too.
    """
    asked = sorted(set(ids) - emptied_there)
    is_gone: tuple[Condition, ...] = (("receipt_id", ">=", ""),)
    found = [*by_ids(reader, ENTRIES, asked, where=is_gone, into=_Emptied)]
    found += by_ids(reader, ITEMS, asked, where=(*is_gone, ("body", "=", None)), into=_Emptied)
    return {row.id: row.receipt_id for row in found if row.receipt_id is not None}
