"""The form of a dump: JSON lines, and the reader that believes nothing it has not checked.

    {"muniment":"export.v1","scope":{…},"tenant_id":…}
    {"table":"sessions","row":{…}}   then its entries, each followed by its blob, in order; then the next session
    {"table":"items","row":{…}} …  {"table":"links",…} …  {"table":"parts",…} …
    {"table":"marks","row":{…}} …  then the idempotency keys
    {"counts":{…},"digest":"…","end":true}

Bytes are hex. The digest is over every line before the last. Rows stand in the order of their keys, so a row
that stands twice is out of order. Writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike, fspath
from typing import Any, NamedTuple, cast

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
from muniment.store.dump_replay import DumpReplay
from muniment.store.engines.codec import encode_id
from muniment.store.ledger.chain import Head, genesis, head_after, head_of, link_fault
from muniment.store.ledger.foreign import entry_fault, is_id, is_instant, item_fault
from muniment.store.proving.dumped_forgets import DumpedForgets

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
"""By table, the columns that a store fills for itself, and what a row of a dump has there."""
_NO_COLUMNS: dict[str, Any] = {}
_TABLE_OF = {"idempotency": "idempotency_keys"}
"""Tables that have another name in a dump."""
_ALTERED = "the dump was altered; export it again"

Source = str | PathLike[str] | list[bytes] | Callable[[], Iterable[bytes]]


class Header(NamedTuple):
    tenant_id: str
    scope: dict[str, str]


DumpRow = SessionRow | EntryRow | BlobRow | ItemRow | LinkRow | PartRow | MarkRow | IdempotencyKeyRow
"""A row of one of the tables that a dump has."""


class Line(NamedTuple):
    """One row of a dump, where it stands, and how large it is there."""

    table: str
    row: DumpRow
    number: int
    size: int


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump that was read once and holds: its form, its digest, every chain."""

    tenant_id: str
    rows: int
    kinds: frozenset[str]
    """The kinds of item it brings."""
    open: Callable[[], Iterable[bytes]]
    links: tuple[LinkRow, ...] = ()
    """Links that its ledger gives and that it does not bring."""


def check_dump(source: Source, items: DumpReplay) -> Dump:
    """Read a dump (a path, its lines, or a function that opens them) to its end; raises for the first thing wrong."""
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
    check = _Check(items)
    count = 0
    for line in read_dump(opened(), check.begin):
        check.see(line)
        count += 1
    check.end()
    return Dump(check.header.tenant_id, count, frozenset(check.kinds), opened, tuple(items.missing))


# -- lines --------------------------------------------------------------------------------------------


def plain_row(row: DumpRow) -> dict[str, Any]:
    """A row as a line shows it: nulls left out, bytes in hex; what a store makes for itself is not in it."""
    name = "entries" if isinstance(row, EntryRow) else "items" if isinstance(row, ItemRow) else ""
    own = _OWN.get(name, _NO_COLUMNS)
    held = {column: value for column, value in row._asdict().items() if value is not None and column not in own}
    return {column: value.hex() if isinstance(value, bytes) else value for column, value in held.items()}


def read_dump(lines: Iterable[bytes], begin: Callable[[Header], None] | None = None) -> Iterator[Line]:
    """The rows of a dump, its header, digest and counts checked."""
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
    """A line's row as its table has it, with its types checked against the declaration."""
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


@dataclass(slots=True)
class _Check:
    """Order, form and chains of the rows, one after the other, in flat memory."""

    items: DumpReplay
    header: Header = field(default_factory=lambda: Header("", {}))
    kinds: set[str] = field(default_factory=set)
    phase: int = 0
    keys: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Per table the last key seen."""
    orders: list[Callable[[str], Any]] = field(default_factory=lambda: [str, encode_id])
    """The orders that all items have had so far."""
    head: Head | None = None
    session: SessionRow | None = None
    item: ItemRow | None = None
    salt: bytes | None = None
    forgets: DumpedForgets = field(default_factory=DumpedForgets)
    blob: tuple[str, str, int] | None = None
    """(entry id, name, size) of the blob that must come next."""

    def begin(self, header: Header) -> None:
        self.header = header
        self.items.begin(header.tenant_id, header.scope)

    def see(self, line: Line) -> None:
        name, row, number, _ = line
        if self.blob is not None and name != "blobs":
            raise ChainBroken(f"line {number}: the blob of {self.blob[0]} is missing", path="$.row", hint=_ALTERED)
        if _PHASE[name] < self.phase:
            raise ChainBroken(f"line {number}: a row of {name} is out of place", path="$.table", hint=_ALTERED)
        if _PHASE[name] > self.phase:
            self._end_session()
        self.phase = _PHASE[name]
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
        if self.blob is not None:
            raise ChainBroken(f"the blob of {self.blob[0]} is missing", path="$", hint=_ALTERED)
        self._end_session()
        self.forgets.end(self.header.scope)
        self.items.end()

    def _see_session(self, row: SessionRow, number: int) -> None:
        self._end_session()
        user_id, session_id = row.user_id, row.session_id
        self._in_order("sessions", (user_id, session_id), number)
        if not (is_id(user_id) and is_id(session_id) and is_instant(row.created_at)):
            raise InvalidInput(f"line {number}: not a session", path="$.row")
        if is_nobody_s(user_id):
            raise InvalidInput(f"line {number}: {user_id!r:.60} is no user's name", path="$.row.user_id")
        self._in_scope(user_id, session_id, number)
        self.session = row
        self.head = genesis(self.header.tenant_id, user_id, session_id)

    def _see_entry(self, row: EntryRow, number: int) -> None:
        session, head = self.session, self.head
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
        self.head = head_after(row)
        self.items.see_entry(row)
        self.forgets.see_entry(row, number)
        body = parse_json(row.body) if row.body is not None and '"blob":"' in row.body else {}
        if "blob" in body:
            self.salt = row.salt
            self.blob = (row.id, body["blob"], body.get("bytes", -1))

    def _see_blob(self, row: BlobRow, number: int) -> None:
        sound = (
            self.blob == (row.entry_id, row.hash.hex(), row.size)
            and row.data is not None
            and len(row.data) == row.size
            and salted_digest(self.salt or b"", row.data) == row.hash
        )
        if not sound:
            raise ChainBroken(f"line {number}: a blob does not hash to its name", path="$.row.data", hint=_ALTERED)
        self.blob = self.salt = None

    def _see_item(self, row: ItemRow, number: int) -> None:
        before = self.item
        self._item_in_order(row, number)
        wanted = before.version + 1 if before is not None and before.id == row.id else 1
        fault = item_fault(row)
        if fault is None and row.version != wanted:
            fault = f"version {row.version!r} where {wanted} is due"
        if fault is not None:
            raise InvalidInput(f"line {number}: not an item: {fault}", path="$.row")
        self._in_scope(row.user_id, row.session_id, number)
        self.items.see(row, number)
        self.forgets.see_item(row, number)
        self.item = row
        self.keys.pop("links", None)
        self.keys.pop("parts", None)
        self.kinds.add(row.kind)

    def _see_link(self, row: LinkRow, number: int) -> None:
        if self.item is None or row.item_id != self.item.id or not is_id(row.source_id):
            raise InvalidInput(f"line {number}: a link away from its item", path="$.row")
        self._in_order("links", row, number)
        self.items.see_link(row, number)
        self.forgets.see_link(row)

    def _see_part(self, row: PartRow, number: int) -> None:
        if self.item is None or row.owner != self.item.id:
            raise InvalidInput(f"line {number}: a part away from its item", path="$.row")
        self._in_order("parts", (row.owner, row.hash), number)
        if (row.body is None) != (row.receipt_id is not None and is_id(row.receipt_id)):
            raise InvalidInput(f"line {number}: not a part", path="$.row")

    def _see_mark(self, row: MarkRow, number: int) -> None:
        self._in_order("marks", (row.user_id, row.session_id, row.number), number)
        if not (is_id(row.user_id) and is_id(row.session_id) and is_id(row.evidence_id) and row.number > 0):
            raise InvalidInput(f"line {number}: not a mark", path="$.row")
        self._in_scope(row.user_id, row.session_id, number)
        self.forgets.see_mark(row, number)

    def _see_key(self, row: IdempotencyKeyRow, number: int) -> None:
        self._in_order("idempotency", (row.user_id, row.key_hash), number)
        if not (is_id(row.user_id) and is_id(row.entry_id)):
            raise InvalidInput(f"line {number}: not an idempotency key", path="$.row")
        self._in_scope(row.user_id, self.header.scope.get("session_id"), number)

    def _in_order(self, name: str, key: tuple[Any, ...], number: int) -> None:
        before = self.keys.get(name)
        if before is not None and not before < key:
            raise ChainBroken(f"line {number}: a row of {name} is out of order", path="$.row", hint=_ALTERED)
        self.keys[name] = key

    def _item_in_order(self, row: ItemRow, number: int) -> None:
        """Versions come in the order of their ids, as text or as a store keeps them: in either none comes twice."""
        if (before := self.item) is not None:
            one, other = (before.id, before.version), (row.id, row.version)
            self.orders = [key for key in self.orders if (key(one[0]), one[1]) < (key(other[0]), other[1])]
        if not self.orders:
            raise ChainBroken(f"line {number}: a row of items is out of order", path="$.row", hint=_ALTERED)

    def _in_scope(self, user_id: str | None, session_id: str | None, number: int) -> None:
        """A dump of one user brings nothing of another (LG-02)."""
        scope = self.header.scope
        holder = holder_of(user_id) if user_id is not None and scope.keys() == {"user_id"} else None
        if scope.get("user_id", user_id) not in (user_id, holder) or scope.get("session_id", session_id) != session_id:
            raise InvalidInput(f"line {number}: a row outside the scope of the dump", path="$.row")

    def _end_session(self) -> None:
        if self.session is not None and self.head is not None and self.head != head_of(self.session):
            raise ChainBroken(
                f"the session {self.session.session_id!r} of {self.session.user_id!r} does not end in its head",
                path="$",
                hint=_ALTERED,
            )
        self.head = None
