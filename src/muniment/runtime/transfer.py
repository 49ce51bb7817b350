"""Export and import: everything in a scope as JSON lines, with identical ids, hashes and chains on any engine.

    {"muniment":"export.v1","scope":{…},"tenant_id":…}
    {"table":"sessions","row":{…}}   then its entries, each followed by its blob, in order; then the next session
    {"table":"items","row":{…}} …  {"table":"links",…} …  {"table":"idempotency",…}
    {"counts":{…},"digest":"…","end":true}

Bytes are hex. The digest is over every line before the last, so a dump that was cut or altered is refused. An import reads
the whole dump once to check it (chains included) before it writes; it skips what is there already, so one that was
interrupted is run again. What was forgotten here is never brought back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from os import PathLike, fspath
from typing import Any, cast

from muniment.errors import ChainBroken, Conflict, InvalidInput, UnknownScope
from muniment.ledger.chain import Head, genesis, link_fault
from muniment.ports.engine import Condition, Get, Insert, KeyTaken, Lock, Put, Reader, Row, Select, Transaction
from muniment.ports.schema import column_names, table
from muniment.records.audit import ImportReport
from muniment.runtime.context import Context
from muniment.text.canonical import canonical_bytes, parse_json
from muniment.text.hashing import salted_digest

__all__ = ["FORMAT", "LINE_BYTES_MAX", "Dump", "check_dump", "export_lines", "import_dump"]

FORMAT = "export.v1"
LINE_BYTES_MAX = 128 * 1024 * 1024
BATCH_ROWS = 1000

Progress = Callable[[int], None]


# -- export -------------------------------------------------------------------------------------------


def export_lines(
    ctx: Context, tenant_id: str, user_id: str | None = None, session_id: str | None = None
) -> Iterator[bytes]:
    """The dump of a tenant, a user or a session, line by line, from one consistent view, in flat memory."""
    scope = {"user_id": user_id, "session_id": session_id}
    where: tuple[Condition, ...] = tuple((name, "=", value) for name, value in scope.items() if value is not None)
    hasher, counts = sha256(), Counter[str]()

    def line(value: dict[str, Any]) -> bytes:
        data = canonical_bytes(value) + b"\n"
        hasher.update(data)
        return data

    with ctx.engine.snapshot(tenant_id) as reader:
        if not reader.do(Select("sessions", where=where, limit=1)):
            raise UnknownScope("nothing is stored for this scope", hint="check the tenant, user and session ids")
        yield line(
            {
                "muniment": FORMAT,
                "tenant_id": tenant_id,
                "scope": {name: value for name, value in scope.items() if value is not None},
            }
        )
        for name, row in _rows(reader, where, user_id):
            counts[name] += 1
            yield line({"table": name, "row": _plain(name, row)})
    yield canonical_bytes({"end": True, "counts": dict(counts), "digest": hasher.hexdigest()}) + b"\n"


def _rows(reader: Reader, where: tuple[Condition, ...], user_id: str | None) -> Iterator[tuple[str, Row]]:
    order = ("user_id", "session_id")
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
            for link in reader.do(Select("links", where=(("item_id", "=", item[0]),))):
                yield "links", link
    users: tuple[Condition, ...] = () if user_id is None else (("user_id", "=", user_id),)
    for key in reader.stream(Select("idempotency", where=users)):
        if not where or _in_scope(reader, cast("str", key[2]), where):
            yield "idempotency", key


def _blobs_of(reader: Reader, entry: Row) -> Sequence[Row]:
    body = entry[16]
    if not isinstance(body, str) or '"blob":"' not in body:
        return ()
    return reader.do(Select("blobs", where=(("entry_id", "=", entry[0]),)))


def _in_scope(reader: Reader, entry_id: str, where: tuple[Condition, ...]) -> bool:
    row = reader.do(Get("entries", (entry_id,)))
    names = column_names(table("entries"))
    return row is not None and all(row[names.index(column)] == value for column, _, value in where)


def _plain(name: str, row: Row) -> dict[str, Any]:
    pairs = zip(column_names(table(name)), row, strict=True)
    return {column: value.hex() if isinstance(value, bytes) else value for column, value in pairs if value is not None}


def _row(name: str, plain: Any, number: int) -> Row:
    """A line's row back in column order, with its types checked against the declaration."""
    spec = table(name)
    if not isinstance(plain, dict) or not plain.keys() <= set(column_names(spec)):
        raise InvalidInput(f"line {number}: not a row of {name}", path="$.row")
    values: list[Any] = []
    for column in spec.columns:
        value = plain.get(column.name)
        if value is None and column.nullable:
            values.append(None)
            continue
        wanted = int if column.type == "int" else str
        if type(value) is not wanted:
            raise InvalidInput(f"line {number}: {column.name} should be {column.type}", path=f"$.row.{column.name}")
        values.append(_unhex(value, number, column.name) if column.type == "bytes" else value)
    return tuple(values)


def _unhex(value: str, number: int, name: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise InvalidInput(f"line {number}: {name} is not hex", path=f"$.row.{name}") from None


# -- import -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Check:
    """The first reading: form, digest, chains."""

    tenant_id: str = ""
    head: Head | None = None
    wanted: tuple[int, bytes] | None = None
    session: tuple[str, str] | None = None
    salts: dict[str, bytes] = field(default_factory=dict)

    def see(self, name: str, row: Row, number: int) -> None:
        if name == "sessions":
            self.end_session()
            self.session = cast("tuple[str, str]", row[:2])
            self.head = genesis(self.tenant_id, *self.session)
            self.wanted = cast("tuple[int, bytes]", row[2:4])
        elif name == "entries":
            self._see_entry(row, number)
        elif name == "blobs":
            salt, data = self.salts.get(cast("str", row[1])), row[3]
            if salt is None or not isinstance(data, bytes) or salted_digest(salt, data) != row[0]:
                raise ChainBroken(f"line {number}: a blob does not hash to its name", path="$.row.data")

    def _see_entry(self, row: Row, number: int) -> None:
        if self.head is None or self.session != (row[1], row[3]):
            raise ChainBroken(f"line {number}: an entry outside its session", path="$.row")
        fault = link_fault(self.tenant_id, row, self.head)
        if fault is not None:
            raise ChainBroken(
                f"line {number}: the entry {row[0]} breaks its chain: {fault}",
                path="$.row",
                hint="the dump was altered; export it again",
                details={"line": number, "id": row[0], "user_id": row[1], "session_id": row[3], "seq": row[5]},
            )
        self.head = Head(cast("int", row[5]), cast("bytes", row[14]), cast("str", row[7]))
        self.salts = {} if row[15] is None else {cast("str", row[0]): cast("bytes", row[15])}

    def end_session(self) -> None:
        if self.head is not None and (self.head.seq, self.head.hash) != self.wanted:
            raise ChainBroken(f"the session {self.session} ends before its head", path="$")


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump that was read once and holds: its form, its digest, every chain."""

    tenant_id: str
    rows: int
    open: Callable[[], Iterable[bytes]]


def check_dump(source: str | PathLike[str] | Callable[[], Iterable[bytes]]) -> Dump:
    """Read a dump (a path, or a function that opens its lines) from end to end; raises for the first thing wrong."""
    opened = source if callable(source) else lambda: _file_lines(source)
    check = _Check()
    count = 0
    for name, row, number in _read(opened(), check):
        check.see(name, row, number)
        count += 1
    check.end_session()
    return Dump(check.tenant_id, count, opened)


def _file_lines(path: str | PathLike[str]) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while line := file.readline(LINE_BYTES_MAX + 1):
                yield line
    except OSError as error:
        raise InvalidInput(f"cannot read {fspath(path)}: {error.strerror or error}", hint="check the path") from None


def import_dump(ctx: Context, dump: Dump, progress: Progress | None = None) -> ImportReport:
    """Write a checked dump, batch by batch; what is there already is skipped."""
    written, skipped = Counter[str](), Counter[str]()
    rows = _read(dump.open(), _Check())
    while batch := list(islice(rows, BATCH_ROWS)):
        try:
            done = ctx.engine.write(dump.tenant_id, lambda tx, batch=batch: _write_batch(tx, dump.tenant_id, batch))  # type: ignore[misc]
        except KeyTaken as error:
            raise Conflict(
                f"a row of {error.table} in the dump collides with another record of this store",
                hint="an id or a place in a session is taken, perhaps by another tenant",
            ) from None
        written.update(done)
        skipped.update(Counter(name for name, _, _ in batch) - done)
        if progress is not None:
            progress(len(batch))
    return ImportReport(tenant_id=dump.tenant_id, written=dict(written), skipped=dict(+skipped))


def _read(lines: Iterable[bytes], check: _Check) -> Iterator[tuple[str, Row, int]]:
    """The rows of a dump, its header and trailer checked."""
    hasher, counts = sha256(), Counter[str]()
    ended = False
    number = 0
    for number, line in enumerate(lines, 1):
        if ended:
            raise InvalidInput(f"line {number}: more lines after the end of the dump", path="$")
        value = parse_json(line, max_bytes=LINE_BYTES_MAX)
        if number == 1:
            if not isinstance(value, dict) or value.get("muniment") != FORMAT or not isinstance(value.get("tenant_id"), str):
                raise InvalidInput("not a muniment dump", path="$", hint=f"the first line of a dump says {FORMAT!r}")
            check.tenant_id = value["tenant_id"]
        elif isinstance(value, dict) and value.get("end") is True:
            ended = True
            if value.get("digest") != hasher.hexdigest() or value.get("counts") != dict(counts):
                raise ChainBroken("the dump does not match its own digest", hint="it was altered; export it again")
            continue
        else:
            name = value.get("table") if isinstance(value, dict) else None
            if name not in _EXPORTED:
                raise InvalidInput(f"line {number}: not a line of a dump", path="$.table")
            counts[name] += 1
            yield name, _row(name, value.get("row"), number), number
        hasher.update(line)
    if not ended:
        raise InvalidInput(
            f"the dump ends at line {number} without its last line", path="$", hint="it was cut off; export it again"
        )


_EXPORTED = ("sessions", "entries", "blobs", "items", "links", "idempotency")


def _write_batch(tx: Transaction, tenant_id: str, batch: list[tuple[str, Row, int]]) -> Counter[str]:
    """Write what is not there yet; refuse what is there with other bytes."""
    done: Counter[str] = Counter()
    by_table: dict[str, list[Row]] = {name: [] for name in _EXPORTED}
    for name, row, _ in batch:
        by_table[name].append(row)
    for user_id, session_id in sorted({cast("tuple[str, str]", (row[1], row[3])) for row in by_table["entries"]}):
        tx.do(Lock(("session", user_id, session_id)))
    new_entries = _new_entries(tx, by_table["entries"])
    fresh = {row[0] for row in new_entries}
    tx.do(Insert("ids", [(row[0], "event") for row in new_entries]))
    tx.do(Insert("entries", new_entries))
    done["entries"] += len(new_entries)
    new_blobs = [row for row in by_table["blobs"] if row[1] in fresh or _lacks_blob(tx, row)]
    tx.do(Put("blobs", new_blobs))
    done["blobs"] += len(new_blobs)
    _write_heads(tx, tenant_id, by_table["sessions"], new_entries, done)
    _write_items(tx, by_table["items"], done)
    for name in ("links", "idempotency"):
        new = [row for row in by_table[name] if tx.do(Get(name, row[:2])) is None]
        tx.do(Insert(name, new))
        done[name] += len(new)
    return done


def _new_entries(tx: Transaction, rows: list[Row]) -> list[Row]:
    new: list[Row] = []
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
    return new


def _lacks_blob(tx: Transaction, blob: Row) -> bool:
    """An earlier import was cut between an entry and its blob. One that was forgotten here stays forgotten."""
    entry = tx.do(Get("entries", (blob[1],)))
    return entry is not None and entry[17] is None and tx.do(Get("blobs", (blob[0],))) is None


def _write_heads(
    tx: Transaction, tenant_id: str, sessions: list[Row], entries: list[Row], done: Counter[str]
) -> None:
    """A session's head follows the entries that are really here, whatever part of the dump has been read."""
    for session in sessions:
        if tx.do(Get("sessions", session[:2])) is None:
            user_id, session_id = cast("tuple[str, str]", session[:2])
            start = genesis(tenant_id, user_id, session_id)
            tx.do(Insert("sessions", [(user_id, session_id, start.seq, start.hash, start.recorded_at, session[5])]))
            tx.do(Put("tenants", [(session[5],)]))
            done["sessions"] += 1
    ends: dict[tuple[str, str], Row] = {}
    for row in entries:
        ends[cast("tuple[str, str]", (row[1], row[3]))] = row
    for (user_id, session_id), row in ends.items():
        there = tx.do(Get("sessions", (user_id, session_id)))
        if there is None or cast("int", row[5]) <= cast("int", there[2]):
            raise Conflict(f"the session {session_id!r} of {user_id!r} went on differently here", path="$.row")
        tx.do(Put("sessions", [(user_id, session_id, row[5], row[14], row[7], there[5])]))


def _write_items(tx: Transaction, items: list[Row], done: Counter[str]) -> None:
    for row in items:
        there = tx.do(Get("items", row[:2]))
        if there is None:
            if row[1] == 1 and tx.do(Get("ids", (row[0],))) is None:
                tx.do(Insert("ids", [(row[0], row[2])]))
            tx.do(Insert("items", [row]))
            done["items"] += 1
        elif there[:11] != row[:11]:
            raise Conflict(f"the {row[2]} {row[0]!r} is here already, and differs", details={"id": row[0]})
