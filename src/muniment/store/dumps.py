"""The dump format, JSON lines, and a reader that verifies everything it returns.

    {"muniment":"export.v1","scope":{…},"tenant_id":…}
    {"table":"sessions","row":{…}}   then its entries, each followed by its blob, in order; then the next session
    {"table":"items","row":{…}} …  {"table":"links",…} …  {"table":"parts",…} …
    {"table":"marks","row":{…}} …  then the idempotency keys
    {"counts":{…},"digest":"…","end":true}

Bytes are hex. The digest is over every line before the last. Rows are sorted by key, so a duplicate row is out of
order. Writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike, fspath
from typing import Any, NamedTuple, TypeVar, cast
from weakref import finalize

from muniment.core.canonical import parse_json, salted_digest
from muniment.core.ports.schema import (
    BlobRow,
    EntryRow,
    IdempotencyKeyRow,
    ItemRow,
    LinkRow,
    MarkRow,
    PartRow,
    SessionRow,
    column_names,
    table,
)
from muniment.core.scope import holder_of, is_nobody_s
from muniment.errors import ChainBroken, InvalidInput, MunimentError
from muniment.store.admission import entry_fault, is_id, is_instant, item_fault
from muniment.store.chain import Head, genesis, head_after, head_of, link_fault
from muniment.store.context import Listeners
from muniment.store.derivation import Derivation, ItemCheck
from muniment.store.engines.codec import encode_id
from muniment.store.engines.temporary import temporary_database
from muniment.store.items import SAID, Item, checked_item
from muniment.store.replay import Replay

__all__ = [
    "EXPORTED",
    "FORMAT",
    "LINE_BYTES_MAX",
    "Dump",
    "DumpRow",
    "Header",
    "Line",
    "Source",
    "check_dump",
    "plain_row",
    "read_dump",
]

FORMAT = "export.v1"
LINE_BYTES_MAX = 128 * 1024 * 1024
EXPORTED = ("sessions", "entries", "blobs", "items", "links", "parts", "marks", "idempotency")

_PHASE = {"sessions": 0, "entries": 0, "blobs": 0, "items": 1, "links": 1, "parts": 1, "marks": 2, "idempotency": 3}
_OWN: dict[str, dict[str, Any]] = {
    "entries": {"n": 0},
    "items": {"digest": None, "checked": 0, "newest": 0, "owner": None, "placed_at": ""},
}
"""By table, the columns that a store fills itself, and their values in a row of a dump."""
_NO_COLUMNS: dict[str, Any] = {}
_TABLE_OF = {"idempotency": "idempotency_keys"}
"""Tables that have another name in a dump."""
_ALTERED = "the dump was altered; export it again"
_FORGED = "the dump was altered; of a store that took in a part of another, export user by user"

Source = str | PathLike[str] | list[bytes] | Callable[[], Iterable[bytes]]


class Header(NamedTuple):
    tenant_id: str
    scope: dict[str, str]


DumpRow = SessionRow | EntryRow | BlobRow | ItemRow | LinkRow | PartRow | MarkRow | IdempotencyKeyRow
"""A row of one of the tables that a dump has."""


class Line(NamedTuple):
    """One row of a dump, its line number, and its size there."""

    table: str
    row: DumpRow
    number: int
    size: int


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump that was read once and is valid: its form, its digest, every chain."""

    tenant_id: str
    rows: int
    kinds: frozenset[str]
    """The kinds of item it brings."""
    open: Callable[[], Iterable[bytes]]
    left: Callable[[], Iterator[Line]]
    """Returns items and links that its ledger gives but the dump lacks."""


def check_dump(source: Source, kinds: Mapping[str, Derivation], checks: Sequence[ItemCheck]) -> Dump:
    """Read a dump (a path, its lines, or a function that opens them) to its end; raises for the first fault.

    `kinds` are replayed over its entries and compared with its items, which `checks` see as well.
    """
    if callable(source):
        opened = source
    elif isinstance(source, list | tuple):
        opened = lambda: source  # noqa: E731
    elif isinstance(source, str | PathLike):
        opened = lambda: _file_lines(source)  # noqa: E731
    else:
        raise InvalidInput(
            f"a dump is a path, its lines or a function that opens them, not {type(source).__name__}", path="$"
        )
    check = _Check(kinds, checks)
    count = 0
    for line in read_dump(opened(), check.begin):
        check.see(line)
        count += 1
    check.end()
    return Dump(check.header.tenant_id, count, frozenset(check.held_kinds), opened, check.left)


# -- lines --------------------------------------------------------------------------------------------


def plain_row(row: DumpRow) -> dict[str, Any]:
    """Convert a row to its dump form: no nulls, bytes in hex, without columns that a store fills itself."""
    name = "entries" if isinstance(row, EntryRow) else "items" if isinstance(row, ItemRow) else ""
    own = _OWN.get(name, _NO_COLUMNS)
    held = {column: value for column, value in row._asdict().items() if value is not None and column not in own}
    return {column: value.hex() if isinstance(value, bytes) else value for column, value in held.items()}


def read_dump(lines: Iterable[bytes], begin: Callable[[Header], None] | None = None) -> Iterator[Line]:
    """Read the rows of a dump, checking its header, digest and counts."""
    hasher, counts = sha256(), Counter[str]()
    ended = False
    number = 0
    for number, line in enumerate(lines, 1):
        if ended:
            raise InvalidInput(f"line {number}: more lines after the end of the dump", path="$")
        value = _parse(line, number)
        if number == 1:
            header = _header(value)
            if begin is not None:
                begin(header)
        elif value.get("end") is True:
            ended = True
            if value.get("digest") != hasher.hexdigest() or value.get("counts") != dict(counts):
                raise ChainBroken("the dump does not match its own digest", hint=_ALTERED)
            continue
        else:
            name = value.get("table")
            if name not in EXPORTED:
                raise InvalidInput(f"line {number}: not a line of a dump", path="$.table")
            counts[name] += 1
            yield Line(name, _row(name, value.get("row"), number), number, len(line))
        hasher.update(line)
    if not ended:
        raise InvalidInput(
            f"the dump ends at line {number} without its last line", path="$", hint="it was cut off; export it again"
        )


def _parse(line: Any, number: int) -> dict[str, Any]:
    if not isinstance(line, bytes):
        raise InvalidInput(f"line {number}: a line is bytes, not {type(line).__name__}", path="$")
    try:
        value = parse_json(line, max_bytes=LINE_BYTES_MAX)
    except MunimentError as error:
        error.message = f"line {number}: {error.message}"
        raise
    if not isinstance(value, dict):
        raise InvalidInput(f"line {number}: not a line of a dump", path="$")
    return value


def _header(value: dict[str, Any]) -> Header:
    tenant_id, scope = value.get("tenant_id"), value.get("scope", {})
    if value.get("muniment") != FORMAT or not is_id(tenant_id) or not isinstance(scope, dict):
        raise InvalidInput("not a muniment dump", path="$", hint=f"the first line of a dump says {FORMAT!r}")
    if not scope.keys() <= {"user_id", "session_id"} or not all(is_id(name) for name in scope.values()):
        raise InvalidInput("line 1: not the scope of a dump", path="$.scope")
    return Header(cast("str", tenant_id), scope)


def _row(name: str, plain: Any, number: int) -> DumpRow:
    """Convert a line's row to its table's type, checking types against the declaration."""
    spec = table(_TABLE_OF.get(name, name))
    own = _OWN.get(name, _NO_COLUMNS)
    if not isinstance(plain, dict) or not plain.keys() <= set(column_names(spec)) - own.keys():
        raise InvalidInput(f"line {number}: not a row of {name}", path="$.row")
    values = dict(own)
    for column in spec.columns:
        if column.name in own:
            continue
        value = plain.get(column.name)
        if value is None and column.nullable:
            values[column.name] = None
            continue
        wanted = int if column.type == "int" else str
        if type(value) is not wanted:
            raise InvalidInput(f"line {number}: {column.name} should be {column.type}", path=f"$.row.{column.name}")
        values[column.name] = _unhex(str(value), number, column.name) if column.type == "bytes" else value
    return cast("DumpRow", spec.row(**values))


def _unhex(value: str, number: int, name: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise InvalidInput(f"line {number}: {name} is not hex", path=f"$.row.{name}") from None


def _file_lines(path: str | PathLike[str]) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while line := file.readline(LINE_BYTES_MAX + 1):
                yield line
    except (OSError, ValueError) as error:  # ValueError: a path that holds a NUL
        said = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot read {fspath(path)!r}: {said}", hint="check the path") from None


# -- the first reading --------------------------------------------------------------------------------

_OWNERS = ("user_id", "agent_id", "session_id")
T = TypeVar("T", list[Any], dict[str, Any])


class _Check:
    """Checks the order, form and chains of the rows one by one, then the claims of items and forgets."""

    def __init__(self, kinds: Mapping[str, Derivation], checks: Sequence[ItemCheck]) -> None:
        self._kinds, self._checks = kinds, checks
        self.header = Header("", {})
        self.held_kinds: set[str] = set()
        self._phase = 0
        self._keys: dict[str, tuple[Any, ...]] = {}
        """Per table the last key seen."""
        self._orders: list[Callable[[str], Any]] = [str, encode_id]
        """The sort orders that all items have satisfied so far."""
        self._head: Head | None = None
        self._session: SessionRow | None = None
        self._versions: list[tuple[int, Item]] = []
        """The item that is being read, with its lines."""
        self._links: dict[str, int] = {}
        """The item's sources, with their lines."""
        self._salt: bytes | None = None
        self._blob: tuple[str, str, int] | None = None
        """(entry id, name, size) of the blob that must come next."""
        self._forgets = _Forgets()

    def begin(self, header: Header) -> None:
        self.header = header
        self._replay = Replay(header.tenant_id, Listeners(self._kinds).of)

    def see(self, line: Line) -> None:
        name, row, number, _ = line
        if self._blob is not None and name != "blobs":
            raise ChainBroken(f"line {number}: the blob of {self._blob[0]} is missing", path="$.row", hint=_ALTERED)
        if _PHASE[name] < self._phase:
            raise ChainBroken(f"line {number}: a row of {name} is out of place", path="$.table", hint=_ALTERED)
        if _PHASE[name] > self._phase:
            self._end_phase()
        self._phase = _PHASE[name]
        match row:
            case SessionRow():
                self._see_session(row, number)
            case EntryRow():
                self._see_entry(row, number)
            case BlobRow():
                self._see_blob(row, number)
            case ItemRow():
                self._see_item(row, number)
            case LinkRow():
                self._see_link(row, number)
            case PartRow():
                self._see_part(row, number)
            case MarkRow():
                self._see_mark(row, number)
            case IdempotencyKeyRow():
                self._see_key(row, number)

    def end(self) -> None:
        if self._blob is not None:
            raise ChainBroken(f"the blob of {self._blob[0]} is missing", path="$", hint=_ALTERED)
        self._end_phase()
        self._forgets.check(self.header.scope)
        for check in self._checks:
            check.end()

    def left(self) -> Iterator[Line]:
        """Yield items that the ledger of a whole dump gives but the dump lacks, and missing links of items it has."""
        for made in () if self.header.scope else self._replay.left():
            for version in self._replay.made(made.id):
                yield Line("items", ItemRow(*version), 0, len(version.body or ""))
            for source in self._replay.sources(made.id):
                yield Line("links", LinkRow(source, made.id), 0, len(source))
        for source, item_id in self._forgets.lacking_links():
            yield Line("links", LinkRow(source, item_id), 0, len(source))

    def _end_phase(self) -> None:
        if self._phase == 0:
            self._end_session()
            self._replay.run()
        elif self._phase == 1:
            self._end_item()

    # -- sessions

    def _see_session(self, row: SessionRow, number: int) -> None:
        self._end_session()
        user_id, session_id = row.user_id, row.session_id
        self._in_order("sessions", (user_id, session_id), number)
        if not (is_id(user_id) and is_id(session_id) and is_instant(row.created_at)):
            raise InvalidInput(f"line {number}: not a session", path="$.row")
        if is_nobody_s(user_id):
            raise InvalidInput(f"line {number}: {user_id!r:.60} is no user's name", path="$.row.user_id")
        self._in_scope(user_id, session_id, number)
        self._session = row
        self._head = genesis(self.header.tenant_id, user_id, session_id)

    def _see_entry(self, row: EntryRow, number: int) -> None:
        session, head = self._session, self._head
        is_inside = session is not None and (session.user_id, session.session_id) == (row.user_id, row.session_id)
        if head is None or not is_inside:
            raise ChainBroken(f"line {number}: an entry outside its session", path="$.row", hint=_ALTERED)
        fault = link_fault(self.header.tenant_id, row, head)
        if fault is None and row.recorded_at < head.recorded_at:
            fault = "recorded before its predecessor"
        if fault is None and row.seq == 1 and session is not None and row.recorded_at != session.created_at:
            fault = "its session began at another time"
        if fault is not None:
            place = {"id": row.id, "user_id": row.user_id, "session_id": row.session_id, "seq": row.seq}
            raise ChainBroken(
                f"line {number}: the entry {row.id!r} breaks its chain: {fault}",
                path="$.row",
                hint=_ALTERED,
                details={"line": number} | place,
            )
        fault = entry_fault(self.header.tenant_id, row)
        if fault is not None:
            raise InvalidInput(f"line {number}: not an entry: {fault}", path="$.row")
        self._head = head_after(row)
        if row.body is None:
            self._forgets.see_entry(row, number)
            return
        self._replay.add(row)
        body = parse_json(row.body) if '"blob":"' in row.body else {}
        if "blob" in body:
            self._salt = row.salt
            self._blob = (row.id, body["blob"], body.get("bytes", -1))

    def _see_blob(self, row: BlobRow, number: int) -> None:
        sound = (
            self._blob == (row.entry_id, row.hash.hex(), row.size)
            and row.data is not None
            and len(row.data) == row.size
            and salted_digest(self._salt or b"", row.data) == row.hash
        )
        if not sound:
            raise ChainBroken(f"line {number}: a blob does not hash to its name", path="$.row.data", hint=_ALTERED)
        self._blob = self._salt = None

    def _end_session(self) -> None:
        if self._session is not None and self._head is not None and self._head != head_of(self._session):
            raise ChainBroken(
                f"the session {self._session.session_id!r} of {self._session.user_id!r} does not end in its head",
                path="$",
                hint=_ALTERED,
            )
        self._head = None

    # -- items

    def _see_item(self, row: ItemRow, number: int) -> None:
        before = self._versions[-1][1] if self._versions else None
        self._item_in_order(before, row, number)
        if before is not None and before.id != row.id:
            self._end_item()
        fault = item_fault(row)
        wanted = len(self._versions) + 1
        if fault is None and row.version != wanted:
            fault = f"version {row.version!r} where {wanted} is due"
        if fault is not None:
            raise InvalidInput(f"line {number}: not an item: {fault}", path="$.row")
        self._in_scope(row.user_id, row.session_id, number)
        item = checked_item(row)
        for check in self._checks:
            check.see(item, number)
        self._versions.append((number, item))
        self._forgets.see_item(row, number)
        self._keys.pop("links", None)
        self._keys.pop("parts", None)
        self.held_kinds.add(row.kind)

    def _see_link(self, row: LinkRow, number: int) -> None:
        if not self._is_of_item(row.item_id) or not is_id(row.source_id):
            raise InvalidInput(f"line {number}: a link away from its item", path="$.row")
        self._in_order("links", row, number)
        self._links[row.source_id] = number

    def _see_part(self, row: PartRow, number: int) -> None:
        if not self._is_of_item(row.owner):
            raise InvalidInput(f"line {number}: a part away from its item", path="$.row")
        self._in_order("parts", (row.owner, row.hash), number)
        if (row.body is None) != (row.receipt_id is not None and is_id(row.receipt_id)):
            raise InvalidInput(f"line {number}: not a part", path="$.row")

    def _is_of_item(self, item_id: str) -> bool:
        return bool(self._versions) and self._versions[-1][1].id == item_id

    def _item_in_order(self, before: Item | None, row: ItemRow, number: int) -> None:
        """Check that versions come in the order of their ids, as text or as stored: either rules out duplicates."""
        if before is not None:
            one, other = (before.id, before.version), (row.id, row.version)
            self._orders = [key for key in self._orders if (key(one[0]), one[1]) < (key(other[0]), other[1])]
        if not self._orders:
            raise ChainBroken(f"line {number}: a row of items is out of order", path="$.row", hint=_ALTERED)

    def _end_item(self) -> None:
        """Compare a completely read item with what the ledger gives.

        Items are derived, so a dump with a correct digest may still contradict its ledger. Builds and receipts, which
        no entry gives, are checked for consistency.
        """
        versions, links = self._versions, self._links
        self._versions, self._links = [], {}
        if not versions:
            return
        first = versions[0][1]
        self._replay.skip(first.id)
        if any(item.receipt_id is not None for _, item in versions):
            self._forgets.see_sources(first.id, links)
            return  # its source is gone on purpose
        derivation = self._kinds.get(first.kind)
        if derivation is None:
            return
        if derivation.is_projection:
            self._check_projection(versions, links)
            return
        for number, item in versions:
            fault = self._run_fault(item)
            if fault is None and derivation.fault is not None:
                fault = derivation.fault(item, frozenset(links))
            if fault is not None:
                raise _not_given(number, item, fault)

    def _check_projection(self, versions: list[tuple[int, Item]], links: dict[str, int]) -> None:
        line, first = versions[0]
        is_whole = "session_id" not in self.header.scope
        count = self._replay.count(first.id)
        if not count and not is_whole:
            return  # its sources are in another session
        for number, item in versions:
            fault = self._replay.fault(item, SAID)
            if fault is not None:
                raise _not_given(number, item, fault)
        if len(versions) < count and is_whole:
            raise _not_given(line, first, f"version {len(versions) + 1}, which the ledger gives, is missing")
        sources = set(self._replay.sources(first.id))
        for source, number in links.items():
            if source not in sources and is_whole:
                raise _not_given(number, first, f"its link to {source!r:.80} is none that the ledger gives")
        self._forgets.note_lacking(first.id, sorted(sources - links.keys()))

    def _run_fault(self, item: Item) -> str | None:
        """Return how an item of a run belongs to another owner than the run, or None."""
        run = None if item.run_id is None else self._replay.newest(item.run_id)
        if run is None or run.kind != "run":
            return None
        named = [name for name in _OWNERS if getattr(item, name) != getattr(run, name)]
        return f"{', '.join(named)} not as its run has it" if named else None

    # -- marks and keys

    def _see_mark(self, row: MarkRow, number: int) -> None:
        self._in_order("marks", (row.user_id, row.session_id, row.number), number)
        if not (is_id(row.user_id) and is_id(row.session_id) and is_id(row.evidence_id) and row.number > 0):
            raise InvalidInput(f"line {number}: not a mark", path="$.row")
        self._in_scope(row.user_id, row.session_id, number)
        self._forgets.see_mark(row, number)

    def _see_key(self, row: IdempotencyKeyRow, number: int) -> None:
        self._in_order("idempotency", (row.user_id, row.key_hash), number)
        if not (is_id(row.user_id) and is_id(row.entry_id)):
            raise InvalidInput(f"line {number}: not an idempotency key", path="$.row")
        self._in_scope(row.user_id, self.header.scope.get("session_id"), number)

    def _in_order(self, name: str, key: tuple[Any, ...], number: int) -> None:
        before = self._keys.get(name)
        if before is not None and not before < key:
            raise ChainBroken(f"line {number}: a row of {name} is out of order", path="$.row", hint=_ALTERED)
        self._keys[name] = key

    def _in_scope(self, user_id: str | None, session_id: str | None, number: int) -> None:
        """Check that a dump of one user contains nothing of another (LG-02)."""
        scope = self.header.scope
        holder = holder_of(user_id) if user_id is not None and scope.keys() == {"user_id"} else None
        if scope.get("user_id", user_id) not in (user_id, holder) or scope.get("session_id", session_id) != session_id:
            raise InvalidInput(f"line {number}: a row outside the scope of the dump", path="$.row")


def _not_given(line: int, item: Item, why: str) -> InvalidInput:
    return InvalidInput(
        f"line {line}: the {item.kind} {item.id!r:.80} is not what its ledger gives: {why}",
        path="$.row",
        hint="the dump was altered, or is of another version; export it again",
        details={"line": line, "kind": item.kind, "id": item.id},
    )


# -- consistency of a dump's rows ---------------------------------------------------------------------

_CLAIMS = """
CREATE TABLE emptied (id PRIMARY KEY, receipt, line) WITHOUT ROWID;
CREATE TABLE receipts (id PRIMARY KEY, line) WITHOUT ROWID;
CREATE TABLE listed (receipt, id, kind, PRIMARY KEY (receipt, id)) WITHOUT ROWID;
CREATE TABLE touched (id, receipt, kind, line, PRIMARY KEY (id, receipt)) WITHOUT ROWID;
CREATE TABLE sources (id, source, PRIMARY KEY (id, source)) WITHOUT ROWID;
CREATE TABLE given (user_id, session_id, number, evidence_id, is_marked,
    PRIMARY KEY (user_id, session_id, number, evidence_id)) WITHOUT ROWID;
CREATE TABLE lacking (item_id, source_id, PRIMARY KEY (item_id, source_id)) WITHOUT ROWID;
"""
_UNLISTED_ENTRIES = """
SELECT id, receipt, line, receipt IN (SELECT id FROM receipts) AS is_here FROM emptied
WHERE (NOT ?1 OR is_here) AND NOT EXISTS
    (SELECT 1 FROM listed WHERE listed.receipt = emptied.receipt AND listed.id = emptied.id)
ORDER BY receipt, id LIMIT 1"""
_LISTED_AND_THERE = """
SELECT listed.id, receipt, line FROM listed JOIN receipts ON receipts.id = listed.receipt
WHERE kind = 'event' AND listed.id NOT IN (SELECT id FROM emptied) ORDER BY receipt, listed.id LIMIT 1"""
_UNLISTED_ITEMS = """
SELECT id, receipt, kind, line FROM touched
WHERE NOT EXISTS (SELECT 1 FROM listed WHERE listed.receipt = touched.receipt AND listed.id = touched.id)
AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.id = touched.id
    AND (source IN (SELECT id FROM emptied) OR source IN (SELECT id FROM touched)))
ORDER BY id, receipt LIMIT 1"""


class _Forgets:
    """Consistency of a dump's forgotten rows and of the marks its builds gave.

    An entry or item without its content names a receipt; a whole dump contains that receipt, which lists what it
    emptied and nothing that still exists. A rewritten item that is not listed must have lost a source. A dump of a part
    of a store has no receipts. A mark must equal the one its build gave.
    """

    def __init__(self) -> None:
        self._held = temporary_database(_CLAIMS)
        finalize(self, self._held.close)

    def see_entry(self, row: EntryRow, line: int) -> None:
        """Record an emptied entry."""
        self._held.execute("INSERT OR REPLACE INTO emptied VALUES (?, ?, ?)", (row.id, row.receipt_id, line))

    def see_item(self, row: ItemRow, line: int) -> None:
        """Record a version that a forget touched, a receipt with its list, or a build with its marks."""
        if row.receipt_id is not None:
            self._held.execute(
                "INSERT OR IGNORE INTO touched VALUES (?, ?, ?, ?)", (row.id, row.receipt_id, row.kind, line)
            )
        elif row.kind == "receipt":
            erased = [gone for gone in _part_of(row, "erased", list) if isinstance(gone, dict)]
            self._held.execute("INSERT OR REPLACE INTO receipts VALUES (?, ?)", (row.id, line))
            self._held.execute("DELETE FROM listed WHERE receipt = ?", (row.id,))  # the last version lists all
            self._held.executemany(
                "INSERT OR REPLACE INTO listed VALUES (?, ?, ?)",
                [(row.id, str(gone.get("id")), str(gone.get("kind"))) for gone in erased],
            )
        elif row.kind == "build" and row.user_id is not None and row.session_id is not None:
            self._held.executemany(
                "INSERT OR IGNORE INTO given VALUES (?, ?, ?, ?, 0)",
                [
                    (row.user_id, row.session_id, int(number), evidence_id)
                    for number, evidence_id in _part_of(row, "marks", dict).items()
                    if str(number).isdecimal() and isinstance(evidence_id, str)
                ],
            )

    def see_sources(self, item_id: str, sources: Iterable[str]) -> None:
        """Record the sources of an item that a forget touched."""
        self._held.executemany("INSERT OR IGNORE INTO sources VALUES (?, ?)", [(item_id, each) for each in sources])

    def see_mark(self, row: MarkRow, line: int) -> None:
        place = (row.user_id, row.session_id, row.number)
        where = "WHERE user_id = ? AND session_id = ? AND number = ?"
        given = [each for (each,) in self._held.execute(f"SELECT evidence_id FROM given {where}", place)]
        if given and row.evidence_id not in given:
            raise _refused(line, f"the mark {row.number} was given to {min(given)!r:.80}", row.evidence_id)
        if given:
            self._held.execute(f"UPDATE given SET is_marked = 1 {where}", place)

    def note_lacking(self, item_id: str, sources: Iterable[str]) -> None:
        """Record links that the ledger gives and the dump lacks."""
        self._held.executemany("INSERT OR IGNORE INTO lacking VALUES (?, ?)", [(item_id, each) for each in sources])

    def lacking_links(self) -> Iterator[tuple[str, str]]:
        """Return sources and items of the links that the dump lacks, item by item."""
        return iter(self._held.execute("SELECT source_id, item_id FROM lacking ORDER BY item_id, source_id"))

    def check(self, scope: Mapping[str, str]) -> None:
        """Raise for the first claim that does not hold."""
        for id_, receipt_id, line, is_here in self._held.execute(_UNLISTED_ENTRIES, (bool(scope),)):
            why = "does not list it" if is_here else "is not in the dump"
            raise ChainBroken(
                f"line {line}: the entry {id_!r} was emptied, and its receipt {receipt_id!r:.80} {why}",
                path="$.row.receipt_id",
                hint=_FORGED,
                details={"id": id_, "receipt_id": receipt_id},
            )
        for id_, receipt_id, line in () if scope else self._held.execute(_LISTED_AND_THERE):
            raise _refused(line, f"the receipt lists {id_!r:.80}, which was not forgotten", receipt_id)
        for id_, receipt_id, kind, line in () if scope else self._held.execute(_UNLISTED_ITEMS):
            why = f"it names the receipt {receipt_id!r:.80}, which does not list it, and its sources still stand"
            raise _refused(line, f"the {kind} was not forgotten: {why}", id_)
        missing = "SELECT user_id, session_id, number FROM given WHERE NOT is_marked ORDER BY 1, 2, 3 LIMIT 1"
        for user_id, session_id, number in self._held.execute(missing):
            raise InvalidInput(
                f"the mark {number} of the session {session_id!r:.80}, which a build gave, is missing",
                path="$",
                hint=_FORGED,
                details={"user_id": user_id, "session_id": session_id},
            )


def _part_of(row: ItemRow, name: str, kind: type[T]) -> T:
    """Return a body's field if it has this type; else an empty value, as the item's own check reports it."""
    body = parse_json(row.body or "{}")
    found = body.get(name) if isinstance(body, dict) else None
    return found if isinstance(found, kind) else kind()


def _refused(line: int, why: str, id_: str) -> InvalidInput:
    return InvalidInput(f"line {line}: {why}", path="$.row", hint=_FORGED, details={"line": line, "id": id_})
