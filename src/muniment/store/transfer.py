"""Export and import: everything in a scope as JSON lines, with identical ids, hashes and chains on any engine.

The form is in `store.dumps`. An import reads the whole dump once to check it (chains included) before it writes; it
skips what is there already, so one that was interrupted is run again. What was forgotten here is never brought back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any, cast

from muniment.core.canonical import canonical_bytes
from muniment.core.ports.engine import (
    Condition,
    Get,
    Insert,
    KeyTaken,
    Lock,
    Patch,
    Put,
    Reader,
    Row,
    Select,
    Transaction,
)
from muniment.core.ports.schema import column_names, table
from muniment.errors import Conflict, InvalidInput, UnknownKind, UnknownScope
from muniment.store.context import Context
from muniment.store.dumps import EXPORTED, FORMAT, LINE_BYTES_MAX, Dump, Line, check_dump, plain_row, read_dump
from muniment.store.forget import SCRUB_DUE, names_of, receipt_change
from muniment.store.item_entries import carriers_of
from muniment.store.items import latest, links_of, write_changes
from muniment.store.ledger.chain import genesis
from muniment.store.ledger.records import Erased, Receipt
from muniment.store.reports import ImportReport
from muniment.store.scrub import due_receipts, note_scrub
from muniment.store.writing import enter_tenant

__all__ = ["FORMAT", "LINE_BYTES_MAX", "Dump", "check_dump", "export_lines", "import_dump"]

BATCH_ROWS = 1000
BATCH_BYTES = 16 * 1024 * 1024
_NAME, _BODY = 8, 11
"""Where the name and the body of an item stand in its row, which a forget empties; the rest before them stays."""
_TOLD = ("claim", "conflict", "failure", "question")

Progress = Callable[[int], None]


# -- export -------------------------------------------------------------------------------------------


def export_lines(
    ctx: Context, tenant_id: str, user_id: str | None = None, session_id: str | None = None
) -> Iterator[bytes]:
    """The dump of a tenant, a user or a session, line by line, from one consistent view, in flat memory.

    A user's has the documents that are the user's own as well; those that the tenant shares are in the tenant's.
    """
    hasher, counts = sha256(), Counter[str]()

    def line(value: dict[str, Any]) -> bytes:
        data = canonical_bytes(value) + b"\n"
        hasher.update(data)
        return data

    with ctx.engine.snapshot(tenant_id) as reader:
        scope = _scope(reader, user_id, session_id)
        yield line({"muniment": FORMAT, "tenant_id": tenant_id, "scope": scope})
        for name, row in _rows(reader, scope):
            counts[name] += 1
            yield line({"table": name, "row": plain_row(name, row)})
    yield canonical_bytes({"end": True, "counts": dict(counts), "digest": hasher.hexdigest()}) + b"\n"


def _scope(reader: Reader, user_id: str | None, session_id: str | None) -> dict[str, str]:
    """The scope that is meant, which must exist; a session's name alone must mean one user's (LG-02)."""
    given = {"user_id": user_id, "session_id": session_id}
    scope = {name: value for name, value in given.items() if value is not None}
    for name, value in scope.items():
        if not isinstance(value, str):
            raise InvalidInput(f"{name} should be a string", path=f"$.{name}")
    found = reader.do(Select("sessions", where=_conditions(reader, scope), columns=("user_id",), limit=2))
    if not found:
        raise UnknownScope("nothing is stored for this scope", hint="check the tenant, user and session ids")
    if session_id is not None and user_id is None:
        if len(found) > 1:
            raise InvalidInput(
                f"several users have a session {session_id!r}", path="$.user_id", hint="give user_id as well"
            )
        scope["user_id"] = cast("str", found[0][0])
    return scope


def _conditions(reader: Reader, scope: dict[str, str]) -> tuple[Condition, ...]:
    """The rows of a scope. A user's are also those of the documents that are the user's own."""
    if scope.keys() == {"user_id"}:
        return (("user_id", "in", names_of(reader, scope["user_id"])),)
    return tuple((name, "=", value) for name, value in scope.items())


def _rows(reader: Reader, scope: dict[str, str]) -> Iterator[tuple[str, Row]]:
    order, where = ("user_id", "session_id"), _conditions(reader, scope)
    for session in reader.stream(Select("sessions", where=where, order=order)):
        yield "sessions", session
        of_session: tuple[Condition, ...] = (("user_id", "=", session[0]), ("session_id", "=", session[1]))
        for entry in reader.stream(Select("entries", where=of_session, order=(*order, "seq"))):
            yield "entries", entry
            for blob in _blobs_of(reader, entry):
                yield "blobs", blob
    for item in reader.stream(Select("items", where=where, order=("id", "version"))):
        yield "items", item
        if item[1] == 1:
            for link in links_of(reader, cast("str", item[0])):
                yield "links", link
            if item[2] == "snapshot":
                for part in reader.stream(Select("parts", where=(("owner", "=", item[0]),))):
                    yield "parts", part
    users: tuple[Condition, ...] = (("user_id", "=", scope["user_id"]),) if "user_id" in scope else ()
    for key in reader.stream(Select("idempotency", where=users)):
        if not scope or _in_scope(reader, cast("str", key[2]), scope):
            yield "idempotency", key


def _blobs_of(reader: Reader, entry: Row) -> Sequence[Row]:
    body = entry[16]
    if not isinstance(body, str) or '"blob":"' not in body:
        return ()
    return reader.do(Select("blobs", where=(("entry_id", "=", entry[0]),)))


def _in_scope(reader: Reader, entry_id: str, scope: dict[str, str]) -> bool:
    row = reader.do(Get("entries", (entry_id,)))
    names = column_names(table("entries"))
    return row is not None and all(row[names.index(column)] == value for column, value in scope.items())


# -- import -------------------------------------------------------------------------------------------


def import_dump(ctx: Context, dump: Dump, progress: Progress | None = None) -> ImportReport:
    """Write a checked dump, batch by batch; what is there already is skipped."""
    unknown = dump.kinds - ctx.derivations.keys()
    if unknown:
        raise UnknownKind(f"the dump holds items of kind {', '.join(sorted(unknown))}, which is not known here")
    if progress is not None and not callable(progress):
        raise InvalidInput("progress should be a function", path="$.progress")
    written, skipped = Counter[str](), Counter[str]()
    gone: dict[str, str] = {}
    emptied: list[bytes] = []
    waited = ctx.engine.read(dump.tenant_id, due_receipts)
    for batch in _batches(read_dump(dump.open())):
        try:
            done, more, salts = ctx.engine.write(
                dump.tenant_id,
                lambda tx, batch=batch: _write_batch(ctx, tx, dump.tenant_id, batch, gone),  # type: ignore[misc]
            )
        except KeyTaken as error:
            raise Conflict(
                f"a row of {error.table} in the dump collides with another record of this store",
                hint="an id or a place in a session is taken, perhaps by another tenant",
            ) from None
        gone.update(more)
        emptied += salts
        written.update(done)
        skipped.update(Counter(line.table for line in batch) - done)
        if progress is not None:
            progress(len(batch))
    ctx.clear_caches()
    if emptied:
        report = ctx.engine.scrub(emptied)
        longer = set(gone.values()).difference(waited)
        ctx.engine.write(
            dump.tenant_id, lambda tx: note_scrub(tx, [id_ for id_ in due_receipts(tx) if id_ in longer], report)
        )
    return ImportReport(tenant_id=dump.tenant_id, written=dict(written), skipped=dict(+skipped))


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Stretches of a dump; an entry stays with its blob, an item with its versions and links."""
    batch: list[Line] = []
    size, item = 0, None
    for line in lines:
        starts = line.table not in ("blobs", "links") and (line.table != "items" or line.row[0] != item)
        if starts and (len(batch) >= BATCH_ROWS or size >= BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += line.size
        item = line.row[0] if line.table == "items" else item
    if batch:
        yield batch


def _write_batch(
    ctx: Context, tx: Transaction, tenant_id: str, batch: list[Line], gone: dict[str, str]
) -> tuple[Counter[str], dict[str, str], list[bytes]]:
    """Write what is not there yet; refuse what is there with other bytes.

    `gone`, and the second answer, which adds to it: ids that the dump has and that were forgotten here → the receipt.
    The third: the salts of entries that were emptied on the way in.
    """
    done: Counter[str] = Counter()
    rows: dict[str, list[Row]] = {name: [] for name in EXPORTED}
    for line in batch:
        rows[line.table].append(line.row)
    for user_id, session_id in sorted({cast("tuple[str, str]", (row[1], row[3])) for row in rows["entries"]}):
        tx.do(Lock(("session", user_id, session_id)))
    new_entries, more = _sort_entries(tx, rows["entries"])
    _write_heads(tx, tenant_id, rows["sessions"], new_entries, done)
    fresh = {row[0] for row in new_entries}
    new_blobs = [row for row in rows["blobs"] if row[1] in fresh]
    tx.do(Insert("ids", [(row[0], "event") for row in new_entries]))
    tx.do(Insert("entries", new_entries))
    tx.do(Insert("blobs", new_blobs))
    ctx.derived.index.add_rows(tx, tenant_id, new_entries)
    done.update(entries=len(new_entries), blobs=len(new_blobs))
    lost = _lost_of_runs(ctx, tx, gone | more) if rows["items"] else {}
    for id_, versions in groupby(rows["items"], key=lambda row: cast("str", row[0])):
        receipt_id = _write_item(tx, list(versions), rows["links"], gone | more, lost, done)
        if receipt_id is not None:
            more[id_] = receipt_id
    new_links = _new_links(tx, rows["links"])
    tx.do(Insert("links", new_links))
    emptied = _empty_carriers(tx, more)
    new_parts = [row for row in _kept_parts(rows["parts"], gone | more) if tx.do(Get("parts", row[:2])) is None]
    tx.do(Insert("parts", new_parts))
    new_keys = [row for row in rows["idempotency"] if _lacks_key(tx, row)]
    tx.do(Insert("idempotency", new_keys))
    done.update(links=len(new_links), parts=len(new_parts), idempotency=len(new_keys))
    return done, more, emptied


def _new_links(tx: Transaction, rows: list[Row]) -> list[Row]:
    """Those that are not here in either form."""
    new: list[Row] = []
    for item_id, links in groupby(rows, key=lambda row: cast("str", row[1])):
        here = set(links_of(tx, item_id))
        new += [link for link in links if link not in here]
    return new


def _sort_entries(tx: Transaction, rows: list[Row]) -> tuple[list[Row], dict[str, str]]:
    """(what is new, what was forgotten here though the dump still has it)."""
    new: list[Row] = []
    gone: dict[str, str] = {}
    ids = tuple(row[0] for row in rows)
    here = {row[0]: row for row in tx.do(Select("entries", where=(("id", "in", ids),)))}
    for row in rows:
        there = here.get(row[0])
        if there is None:
            new.append(row)
        elif there[:15] != row[:15]:
            raise Conflict(
                f"the event {row[0]!r} is here already, and differs", details={"id": row[0]}, path="$.row.id"
            )
        elif there[17] is not None and row[17] is None:
            gone[cast("str", row[0])] = cast("str", there[17])
    return new, gone


def _write_heads(tx: Transaction, tenant_id: str, sessions: list[Row], entries: list[Row], done: Counter[str]) -> None:
    """A session's head follows the entries that are really here, whatever part of the dump has been read."""
    for session in sessions:
        if tx.do(Get("sessions", session[:2])) is None:
            user_id, session_id = cast("tuple[str, str]", session[:2])
            start = genesis(tenant_id, user_id, session_id)
            tx.do(Insert("sessions", [(user_id, session_id, start.seq, start.hash, start.recorded_at, session[5])]))
            enter_tenant(tx, cast("str", session[5]))
            done["sessions"] += 1
    for (user_id, session_id), rows in groupby(entries, key=lambda row: (row[1], row[3])):
        every = list(rows)
        first, last = every[0], every[-1]
        there = tx.do(Get("sessions", (user_id, session_id)))
        if there is None or first[5] != cast("int", there[2]) + 1 or first[13] != there[3]:
            raise Conflict(f"the session {session_id!r} of {user_id!r} went on differently here", path="$.row")
        tx.do(Put("sessions", [(user_id, session_id, last[5], last[14], last[7], there[5])]))


def _lost_of_runs(ctx: Context, tx: Transaction, gone: dict[str, str]) -> dict[str, str]:
    """The items that tell of runs that lost an event here, which fall with it, and the receipts."""
    ids_of = [derivation.id_of_run for derivation in ctx.derivations.values() if derivation.id_of_run is not None]
    ids, lost = sorted(gone), dict[str, str]()
    for at in range(0, len(ids), BATCH_ROWS):
        where: tuple[Condition, ...] = (("id", "in", tuple(ids[at : at + BATCH_ROWS])),)
        rows = tx.do(Select("entries", where=where, columns=("id", "run_id")))
        lost |= {of(run_id): gone[id_] for id_, run_id in cast("list[tuple[str, str]]", rows) for of in ids_of}
    return lost


def _write_item(
    tx: Transaction,
    versions: list[Row],
    links: list[Row],
    gone: dict[str, str],
    lost: dict[str, str],
    done: Counter[str],
) -> str | None:
    """Add the versions that are not here. Those of an item that was forgotten here come as tombstones.

    Answers the receipt by which it was forgotten here, though not where the dump was made.
    """
    id_, kind = versions[0][0], versions[0][2]
    here = {row[1]: row for row in tx.do(Select("items", where=(("id", "=", id_),)))}
    known = tx.do(Get("ids", (id_,)))
    if known is not None and known[1] != kind:
        raise Conflict(f"the id {id_!r} of a {kind!r} is here already, as a {known[1]!r}", details={"id": id_})
    receipt_id = gone.get(cast("str", id_))  # its first versions came with an earlier batch
    for row in versions:
        there = here.get(row[1])
        if there is None:
            continue
        is_whole = None not in (there[_BODY], row[_BODY])
        if _shown(there) != _shown(row) or (is_whole and there != row):
            raise Conflict(f"the {kind!r} {id_!r} is here already, and differs", details={"id": id_})
        if there[_BODY] is None and row[_BODY] is not None:
            receipt_id = cast("str", there[-1])
    if receipt_id is None and not here:
        sources = [cast("str", link[0]) for link in links if link[1] == id_]
        receipt_id = _lost_source(tx, cast("str", id_), sources, gone) or _lost_run(tx, versions[0], gone)
        new_here = (each for each in (cast("str", id_), *sources) if each in lost and latest(tx, each) is None)
        receipt_id = receipt_id or next((lost[each] for each in new_here), None)
    new = [row for row in versions if row[1] not in here]
    if receipt_id is not None:
        new = [row if row[_BODY] is None else _emptied(row, receipt_id) for row in new]
    if known is None:
        tx.do(Insert("ids", [(id_, kind)]))
    tx.do(Insert("items", new))
    done["items"] += len(new)
    return receipt_id


def _shown(row: Row) -> Row:
    """What an item's row says of it whether or not it was forgotten."""
    return (*row[:_NAME], *row[_NAME + 1 : _BODY])


def _emptied(row: Row, receipt_id: str) -> Row:
    return (*row[:_NAME], None, *row[_NAME + 1 : _BODY], None, receipt_id)


def _lost_run(tx: Transaction, row: Row, gone: dict[str, str]) -> str | None:
    """A snapshot holds something of all that its run did: the receipt by which any of that was forgotten here."""
    user_id, session_id, run_id = row[3], row[5], row[6]
    if row[2] != "snapshot" or not gone:
        return None
    of_run: tuple[Condition, ...] = (
        ("user_id", "=", user_id),
        ("session_id", "=", session_id),
        ("run_id", "=", run_id),
    )
    entries = Select("entries", where=of_run, order=("user_id", "session_id", "seq"), columns=("id",))
    told = Select("items", where=(("kind", "in", _TOLD), ("run_id", "=", run_id)), columns=("id",))
    for (id_,) in (*tx.do(entries), *tx.do(told)):
        if id_ in gone:
            return gone[id_]
    return None


def _empty_carriers(tx: Transaction, gone: dict[str, str]) -> list[bytes]:
    """The patches that carry the words of what comes as a tombstone are emptied as well; the receipts list them, and
    wait for a scrub."""
    emptied: dict[str, dict[str, bytes]] = {}
    salts: list[bytes] = []
    for carrier in carriers_of(tx, gone):
        emptied.setdefault(gone[carrier.item_id], {})[carrier.entry_id] = carrier.hash
        salts.append(carrier.salt)
    for receipt_id, entries in emptied.items():
        values = {"body": None, "salt": None, "receipt_id": receipt_id}
        for id_ in entries:
            tx.do(Patch("entries", (("id", "=", id_),), values))
        item = latest(tx, receipt_id)
        if item is not None and item.kind == "receipt":
            receipt = Receipt.from_wire(item.plain())
            erased = (Erased(kind="event", id=id_, hash=hash_.hex()) for id_, hash_ in entries.items())
            longer = receipt.model_copy(update={"erased": (*receipt.erased, *erased)})
            write_changes(tx, [receipt_change(longer, SCRUB_DUE)])
    return salts


def _kept_parts(rows: list[Row], gone: dict[str, str]) -> list[Row]:
    """Parts of an item that was forgotten here come empty."""
    return [(*row[:2], None, gone[row[0]]) if row[0] in gone else row for row in rows]


def _lost_source(tx: Transaction, item_id: str, sources: list[str], gone: dict[str, str]) -> str | None:
    """The receipt by which a source of this item was forgotten here, though not where the dump was made."""
    for source in sources:
        if source in gone:
            return gone[source]
        item = latest(tx, source) if source > item_id else None  # those before it in the dump are in `gone`
        if item is not None and item.body is None:
            return item.receipt_id
    return None


def _lacks_key(tx: Transaction, key: Row) -> bool:
    if tx.do(Get("idempotency", key[:2])) is not None:
        return False
    entry = tx.do(Get("entries", (key[2],)))
    if entry is None or entry[1] != key[0]:
        raise Conflict(
            f"an idempotency key names the event {key[2]!r}, which is not this user's", path="$.row.entry_id"
        )
    return True
