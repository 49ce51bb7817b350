"""The form of a dump: JSON lines, and the reader that believes nothing it has not checked.

    {"muniment":"export.v1","scope":{…},"tenant_id":…}
    {"table":"sessions","row":{…}}   then its entries, each followed by its blob, in order; then the next session
    {"table":"items","row":{…}} …  {"table":"links",…} …  {"table":"parts",…} …  then the idempotency keys
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

from muniment.core.canonical import parse_json
from muniment.core.hashing import salted_digest
from muniment.core.owners.reserved import holder_of, is_nobody_s
from muniment.core.ports.engine import Row
from muniment.core.ports.schema import column_names, table
from muniment.errors import ChainBroken, InvalidInput, MunimentError
from muniment.store.derivation import ItemCheck
from muniment.store.ledger.chain import Head, genesis, link_fault
from muniment.store.ledger.foreign import entry_fault, is_id, is_instant, item_fault

__all__ = [
    "EXPORTED",
    "FORMAT",
    "LINE_BYTES_MAX",
    "Dump",
    "Header",
    "Line",
    "Source",
    "check_dump",
    "plain_row",
    "read_dump",
]

FORMAT = "export.v1"
LINE_BYTES_MAX = 128 * 1024 * 1024
EXPORTED = ("sessions", "entries", "blobs", "items", "links", "parts", "idempotency")

_PHASE = {"sessions": 0, "entries": 0, "blobs": 0, "items": 1, "links": 1, "parts": 1, "idempotency": 2}
_ALTERED = "the dump was altered; export it again"

Source = str | PathLike[str] | list[bytes] | Callable[[], Iterable[bytes]]


class Header(NamedTuple):
    tenant_id: str
    scope: dict[str, str]


class Line(NamedTuple):
    """One row of a dump, where it stands, and how large it is there."""

    table: str
    row: Row
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


def check_dump(source: Source, items: ItemCheck) -> Dump:
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
    return Dump(check.header.tenant_id, count, frozenset(check.kinds), opened)


# -- lines --------------------------------------------------------------------------------------------


def plain_row(name: str, row: Row) -> dict[str, Any]:
    """A row as a line shows it: nulls left out, bytes in hex."""
    pairs = zip(column_names(table(name)), row, strict=True)
    return {column: value.hex() if isinstance(value, bytes) else value for column, value in pairs if value is not None}


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
        values.append(_unhex(str(value), number, column.name) if column.type == "bytes" else value)
    return tuple(values)


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

    items: ItemCheck
    header: Header = field(default_factory=lambda: Header("", {}))
    kinds: set[str] = field(default_factory=set)
    phase: int = 0
    keys: dict[str, Row] = field(default_factory=dict)
    """Per table the last key seen."""
    head: Head | None = None
    session: Row = ()
    salt: bytes | None = None
    blob: tuple[str, str, int] | None = None
    """(entry id, name, size) of the blob that must come next."""

    def begin(self, header: Header) -> None:
        self.header = header

    def see(self, line: Line) -> None:
        name, row, number, _ = line
        if self.blob is not None and name != "blobs":
            raise ChainBroken(f"line {number}: the blob of {self.blob[0]} is missing", path="$.row", hint=_ALTERED)
        if _PHASE[name] < self.phase:
            raise ChainBroken(f"line {number}: a row of {name} is out of place", path="$.table", hint=_ALTERED)
        if _PHASE[name] > self.phase:
            self._end_session()
        self.phase = _PHASE[name]
        getattr(self, f"_see_{name}")(row, number)

    def end(self) -> None:
        if self.blob is not None:
            raise ChainBroken(f"the blob of {self.blob[0]} is missing", path="$", hint=_ALTERED)
        self._end_session()
        self.items.end()

    def _see_sessions(self, row: Row, number: int) -> None:
        self._end_session()
        self._in_order("sessions", row[:2], number)
        user_id, session_id = cast("tuple[str, str]", row[:2])
        if not (is_id(user_id) and is_id(session_id) and is_instant(row[5])):
            raise InvalidInput(f"line {number}: not a session", path="$.row")
        if is_nobody_s(user_id):
            raise InvalidInput(f"line {number}: {user_id!r:.60} is no user's name", path="$.row.user_id")
        self._in_scope(user_id, session_id, number)
        self.session = row
        self.head = genesis(self.header.tenant_id, user_id, session_id)

    def _see_entries(self, row: Row, number: int) -> None:
        if self.head is None or self.session[:2] != (row[1], row[3]):
            raise ChainBroken(f"line {number}: an entry outside its session", path="$.row", hint=_ALTERED)
        fault = link_fault(self.header.tenant_id, row, self.head)
        if fault is None and cast("str", row[7]) < self.head.recorded_at:
            fault = "recorded before its predecessor"
        if fault is not None:
            raise ChainBroken(
                f"line {number}: the entry {row[0]!r} breaks its chain: {fault}",
                path="$.row",
                hint=_ALTERED,
                details={"line": number, "id": row[0], "user_id": row[1], "session_id": row[3], "seq": row[5]},
            )
        fault = entry_fault(self.header.tenant_id, row)
        if fault is not None:
            raise InvalidInput(f"line {number}: not an entry: {fault}", path="$.row")
        self.head = Head(cast("int", row[5]), cast("bytes", row[14]), cast("str", row[7]))
        body = parse_json(row[16]) if isinstance(row[16], str) and '"blob":"' in row[16] else {}
        if "blob" in body:
            self.salt = cast("bytes", row[15])
            self.blob = (cast("str", row[0]), body["blob"], body.get("bytes", -1))

    def _see_blobs(self, row: Row, number: int) -> None:
        name, entry_id, size, data = row
        sound = (
            self.blob is not None
            and isinstance(data, bytes)
            and (entry_id, cast("bytes", name).hex(), size) == self.blob
            and len(data) == size
            and salted_digest(cast("bytes", self.salt), data) == name
        )
        if not sound:
            raise ChainBroken(f"line {number}: a blob does not hash to its name", path="$.row.data", hint=_ALTERED)
        self.blob = self.salt = None

    def _see_items(self, row: Row, number: int) -> None:
        id_, version = row[:2]
        before = self.keys.get("items")
        self._in_order("items", row[:2], number)
        wanted = cast("int", before[1]) + 1 if before is not None and before[0] == id_ else 1
        fault = item_fault(row) or (None if version == wanted else f"version {version!r} where {wanted} is due")
        if fault is not None:
            raise InvalidInput(f"line {number}: not an item: {fault}", path="$.row")
        self._in_scope(row[3], row[5], number)
        self.items.see(row, number)
        self.keys.pop("links", None)
        self.keys.pop("parts", None)
        self.kinds.add(cast("str", row[2]))

    def _see_links(self, row: Row, number: int) -> None:
        item = self.keys.get("items")
        if item is None or row[1] != item[0] or not is_id(row[0]):
            raise InvalidInput(f"line {number}: a link away from its item", path="$.row")
        self._in_order("links", row, number)

    def _see_parts(self, row: Row, number: int) -> None:
        item = self.keys.get("items")
        if item is None or row[0] != item[0]:
            raise InvalidInput(f"line {number}: a part away from its item", path="$.row")
        self._in_order("parts", row[:2], number)
        if (row[2] is None) != (row[3] is not None and is_id(row[3])):
            raise InvalidInput(f"line {number}: not a part", path="$.row")

    def _see_idempotency(self, row: Row, number: int) -> None:
        self._in_order("idempotency", row[:2], number)
        if not (is_id(row[0]) and is_id(row[2])):
            raise InvalidInput(f"line {number}: not an idempotency key", path="$.row")
        self._in_scope(row[0], self.header.scope.get("session_id"), number)

    def _in_order(self, name: str, key: Row, number: int) -> None:
        before = self.keys.get(name)
        if before is not None and not cast("Any", before) < key:
            raise ChainBroken(f"line {number}: a row of {name} is out of order", path="$.row", hint=_ALTERED)
        self.keys[name] = key

    def _in_scope(self, user_id: Any, session_id: Any, number: int) -> None:
        """A dump of one user brings nothing of another (LG-02)."""
        scope = self.header.scope
        holder = holder_of(user_id) if isinstance(user_id, str) and scope.keys() == {"user_id"} else None
        if scope.get("user_id", user_id) not in (user_id, holder) or scope.get("session_id", session_id) != session_id:
            raise InvalidInput(f"line {number}: a row outside the scope of the dump", path="$.row")

    def _end_session(self) -> None:
        if self.head is not None and (self.head.seq, self.head.hash, self.head.recorded_at) != self.session[2:5]:
            raise ChainBroken(
                f"the session {self.session[1]!r} of {self.session[0]!r} does not end in its head",
                path="$",
                hint=_ALTERED,
            )
        self.head = None
