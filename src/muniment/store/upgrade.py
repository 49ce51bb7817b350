"""Stores of version 0.1: their files are read as the dumps that 0.1 would export, for `muniment store upgrade`.

Everything here describes a frozen format, so it shares no table, row class or engine with the present store. `read_old`
opens a file or a dump, `new_store` guards the target of the upgrade. Only faults that a dump could not show are checked
here: digests of items, the chains of proofs of builds and receipts, missing rows. Ledger chains, blobs and everything
derived are checked by the reader of dumps.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes, digest, digest_of, salted_digest
from muniment.errors import (
    Conflict,
    InvalidInput,
    NotADatabase,
    NotFound,
    SchemaMismatch,
    StorageFailure,
    StoreDamaged,
)

__all__ = ["OldTenant", "new_store", "read_old"]

_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID = 0x6D756E69
_FIRST, _NEWEST = "ground", (16, "fewer_trees")
"""The first and the last migration of version 0.1."""
_DAMAGED = "restore the file from a backup, or upgrade a dump that version 0.1 exported"
_COLUMNS = {
    "sessions": "user_id session_id head_seq head_hash head_recorded_at created_at",
    "entries": "id user_id agent_id session_id run_id seq ts recorded_at kind role trust flags content_hash prev_hash"
    " hash salt body receipt_id",
    "blobs": "hash entry_id size data",
    "items": "id version kind user_id agent_id session_id run_id status name created_at trust body receipt_id",
    "parts": "owner hash body receipt_id",
    "marks": "user_id session_id number evidence_id",
    "idempotency": "user_id key_hash entry_id request_hash",
}
"""Columns of each table in a 0.1 dump, except `links`."""


class OldTenant(NamedTuple):
    """One tenant of an old store as a dump, which may be read any number of times."""

    name: str
    """Empty if the source is a dump, which names its tenant itself."""
    lines: Callable[[], Iterable[bytes]] | str
    """The lines, or the path of the dump."""


# -- the old store ------------------------------------------------------------------------------------


@contextmanager
def read_old(path: str) -> Iterator[list[OldTenant]]:
    """Open a file or a dump of version 0.1 for reading; its tenants as dumps. Writes no file."""
    from muniment.store.engines.opening import refuse_keywords

    refuse_keywords(path, "$.old")
    if re.match(r"postgres(ql)?:", path, re.IGNORECASE):
        raise InvalidInput(
            "a 0.1 store on PostgreSQL is upgraded from its dumps",
            path="$.old",
            hint="run `muniment export` of version 0.1 for each tenant, and give the dump",
        )
    if not _is_file(path):
        yield [OldTenant("", path)]
        return
    with closing(_connected(path)) as connection:
        file = _OldFile(connection, path)
        file.check()
        yield [OldTenant(name, _lines_of(file, name)) for name in file.tenants()]


def _is_file(path: str) -> bool:
    """Return whether a path names a SQLite file; otherwise it is a dump."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(_MAGIC))
    except FileNotFoundError:
        raise NotFound(f"there is no store at {path}", path="$.old", hint="check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a path that holds a NUL
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot read {path}: {why}", path="$.old", hint="check the path") from None
    if start != _MAGIC and not start.startswith(b"{"):
        raise NotADatabase(
            f"{path} is neither a store nor a dump of version 0.1", path="$.old", hint="name a file of version 0.1"
        )
    return start == _MAGIC


def _connected(path: str) -> sqlite3.Connection:
    """Open a connection in one read transaction. A file that is not in use is read without creating a log file."""
    log = f"{path}-wal"
    how = "mode=ro" if os.path.exists(log) and os.path.getsize(log) else "immutable=1"
    connection = sqlite3.connect(f"{Path(os.path.abspath(path)).as_uri()}?{how}", uri=True, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute("BEGIN")
    connection.row_factory = sqlite3.Row
    return connection


def _lines_of(file: _OldFile, tenant_id: str) -> Callable[[], Iterator[bytes]]:
    return lambda: file.dump(tenant_id)


class _OldFile:
    """A SQLite file of version 0.1."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path

    def check(self) -> None:
        """Refuse a file of another program or version, and one whose content is elsewhere."""
        path = self._path
        names = {row[0] for row in self._rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        (application_id,) = next(self._rows("PRAGMA application_id"))
        if application_id != _APPLICATION_ID:
            raise NotADatabase(f"{path} is a SQLite file of another program", path="$.old", hint="name another file")
        asked = "SELECT number, name FROM migrations WHERE number = 1"
        first = next(self._rows(asked), None) if "migrations" in names else None
        if first is None or first["name"] != _FIRST:
            raise SchemaMismatch(
                f"{path} is a store of this version already", path="$.old", hint="open it: there is nothing to upgrade"
            )
        number, name = next(self._rows("SELECT number, name FROM migrations ORDER BY number DESC LIMIT 1"), (0, ""))
        if number < _NEWEST[0]:
            raise SchemaMismatch(
                f"{path} was written by a development version before 0.1 (schema {number} of {_NEWEST[0]})",
                path="$.old",
                hint="open it once with version 0.1, which brings it to its own schema; then upgrade it",
                details={"number": number},
            )
        if (number, name) != _NEWEST:
            raise SchemaMismatch(
                f"{path} has the schema {number} ({name}), which is none of version 0.1",
                path="$.old",
                hint="it was written by an altered muniment",
                details={"number": number},
            )
        if next(self._rows("SELECT 1 FROM objects WHERE use IN ('blob', 'archive', 'rewrite') LIMIT 1"), None):
            raise InvalidInput(
                f"{path} keeps content in an object store, which is not read here",
                path="$.old",
                hint="with version 0.1, run `muniment store unarchive` and `muniment store move-contents --back` first",
            )

    def tenants(self) -> list[str]:
        asked = "SELECT tenant_id FROM tenants UNION SELECT tenant_id FROM sessions ORDER BY tenant_id"
        return [row[0] for row in self._rows(asked)]

    def dump(self, tenant_id: str) -> Iterator[bytes]:
        """Yield the lines that version 0.1 exports for a tenant, in flat memory."""
        hasher, counts = sha256(), Counter[str]()
        header = canonical_bytes({"muniment": "export.v1", "scope": {}, "tenant_id": tenant_id}) + b"\n"
        hasher.update(header)
        yield header
        for name, row in self._dumped(tenant_id):
            counts[name] += 1
            line = canonical_bytes({"row": _plain(row), "table": name}) + b"\n"
            hasher.update(line)
            yield line
        yield canonical_bytes({"counts": dict(counts), "digest": hasher.hexdigest(), "end": True}) + b"\n"

    def _dumped(self, tenant: str) -> Iterator[tuple[str, Mapping[str, Any] | sqlite3.Row]]:
        self._check_missing(tenant)
        self._check_proofs(tenant)
        for session in self._table("sessions", tenant, order="user_id, session_id"):
            yield "sessions", session
            place = (session["user_id"], session["session_id"])
            for entry in self._table("entries", tenant, "user_id = ? AND session_id = ?", place, order="seq"):
                yield "entries", entry
                if '"blob":"' in (entry["body"] or ""):
                    for blob in self._table("blobs", tenant, "entry_id = ?", (entry["id"],)):
                        if blob["hash"].hex() in entry["body"]:
                            yield "blobs", blob
        for item in self._table("items", tenant, order="id, version", more=("digest", "checked")):
            self._check_item(tenant, item)
            yield "items", {name: item[name] for name in _COLUMNS["items"].split()}
            if item["version"] == 1:
                for source in self._made_from(tenant, item["id"])[1]:
                    yield "links", {"item_id": item["id"], "source_id": source}
                if item["kind"] == "snapshot":
                    for part in self._table("parts", tenant, "owner = ?", (item["id"],), order="hash"):
                        yield "parts", part
        for mark in self._table("marks", tenant, order="user_id, session_id, number"):
            yield "marks", mark
        for key in self._table("idempotency", tenant, order="user_id, key_hash"):
            yield "idempotency", key

    # -- faults a dump cannot show --------------------------------------------------------------------

    def _check_missing(self, tenant: str) -> None:
        """Check for missing rows: everything written has a row in `ids`, which survives a forget."""
        for kind, asked in _MISSING.items():
            row = next(self._rows(asked, (tenant,)), None)
            if row is not None:
                raise self._damaged(f"the {kind} {row[0]!r:.80} is missing", row[0])

    def _check_item(self, tenant: str, item: sqlite3.Row) -> None:
        """Check an item against its digest, and a build or receipt against its proof."""
        kind, id_, kept = item["kind"], item["id"], item["digest"]
        is_empty, checked = item["body"] is None, item["checked"]
        newest = "SELECT max(version) FROM items WHERE tenant_id = ? AND id = ?"
        if kept is None:
            is_sound = checked == 0 or (is_empty and checked != _LINKED)
        else:
            is_sound = kept[:32] == _row_digest(item) and len(kept) == (64 if checked == _LINKED else 32)
            if is_sound and checked == _LINKED and next(self._rows(newest, (tenant, id_)))[0] == item["version"]:
                is_sound = kept[32:] == self._item_digest(tenant, item)
        if is_sound and kind in ("build", "receipt") and checked:
            where = "item_id = ? AND version = ?"
            proof = next(self._table("proofs", tenant, where, (id_, item["version"])), None)
            is_sound = proof is not None and (
                (proof["user_id"], proof["session_id"]) == (item["user_id"] or "", item["session_id"] or "")
                and (proof["salt"] is None) == is_empty
                and (is_empty or salted_digest(proof["salt"], self._item_digest(tenant, item)) == proof["digest"])
            )
        if not is_sound:
            raise self._damaged(f"the {kind} {id_!r:.80} is not as it was written", id_)

    def _check_proofs(self, tenant: str) -> None:
        """Check that no proof of a session's builds, or of receipts, is missing or altered; the row with number 0 is
        the end.

        Keyed proofs cannot be checked without the key.
        """
        end: sqlite3.Row | None = None
        last: sqlite3.Row | None = None
        number, before = 0, b""
        for proof in self._table("proofs", tenant, order="user_id, session_id, number"):
            chain = (proof["user_id"], proof["session_id"])
            if end is None or chain != (end["user_id"], end["session_id"]):
                self._check_end(end, last, number)
                end, last, number = proof, None, 0
                before = bytes.fromhex(digest_of(["muniment.proofs.v1", *chain]))
                if proof["number"] == 0:
                    continue
            number += 1
            if end["number"] != 0 or proof["number"] != number or not _is_linked(proof, before):
                raise self._damaged("the chain of proofs of its builds or receipts is broken", proof["item_id"])
            last, before = proof, proof["hash"]
        self._check_end(end, last, number)

    def _check_end(self, end: sqlite3.Row | None, last: sqlite3.Row | None, number: int) -> None:
        if end is not None and (last is None or end["version"] != number or not _is_linked(end, last["hash"])):
            raise self._damaged("the chain of proofs of builds or receipts does not end where it did", end["item_id"])

    def _item_digest(self, tenant: str, item: sqlite3.Row) -> bytes:
        """Return the digest of an item's row and its sources."""
        owner, sources = self._made_from(tenant, item["id"])
        return digest(_row_digest(item) + canonical_bytes([owner, *sources]))

    def _made_from(self, tenant: str, item_id: str) -> tuple[str | None, list[str]]:
        """Return the user whose turns its lineage has, and all its sources in order."""
        links = self._rows("SELECT source_id FROM links WHERE tenant_id = ? AND item_id = ?", (tenant, item_id))
        sources = {row[0] for row in links}
        owner = None
        asked = "SELECT user_id, turns FROM lineages WHERE tenant_id = ? AND item_id = ?"
        for lineage in self._rows(asked, (tenant, item_id)):
            owner = lineage["user_id"]
            sources.update(lineage["turns"].split("\n"))
        return owner, sorted(sources)

    # -- rows -----------------------------------------------------------------------------------------

    def _table(
        self,
        name: str,
        tenant: str,
        where: str = "",
        values: tuple[Any, ...] = (),
        *,
        order: str = "",
        more: tuple[str, ...] = (),
    ) -> Iterator[sqlite3.Row]:
        columns = ", ".join((*_COLUMNS[name].split(), *more)) if name in _COLUMNS else "*"
        asked = f"SELECT {columns} FROM {name} WHERE tenant_id = ?"
        asked += f" AND {where}" if where else ""
        return self._rows(asked + (f" ORDER BY {order}" if order else ""), (tenant, *values))

    def _rows(self, asked: str, values: tuple[Any, ...] = ()) -> Iterator[sqlite3.Row]:
        try:
            yield from self._connection.execute(asked, values)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StoreDamaged(
                f"{self._path} cannot be read: {error}", path="$.old", hint=_DAMAGED, details={"location": self._path}
            ) from None

    def _damaged(self, why: str, id_: str) -> StoreDamaged:
        return StoreDamaged(f"{self._path} is damaged: {why}", path="$.old", hint=_DAMAGED, details={"id": id_})


_LINKED = 3
"""`checked` of a forgotten item: the digest of its row is followed by a digest of its sources."""
_DIGESTED = tuple("id version kind user_id agent_id session_id run_id status name created_at trust body".split())  # noqa: SIM905
_MISSING = {
    "event": "SELECT id FROM ids WHERE tenant_id = ?1 AND kind = 'event' AND NOT EXISTS"
    " (SELECT 1 FROM entries WHERE entries.tenant_id = ids.tenant_id AND entries.id = ids.id) LIMIT 1",
    "item": "SELECT id FROM ids WHERE tenant_id = ?1 AND kind NOT IN ('event', 'idempotency') AND NOT EXISTS"
    " (SELECT 1 FROM items WHERE items.tenant_id = ids.tenant_id AND items.id = ids.id) LIMIT 1",
    "session of the event": "SELECT id FROM entries WHERE tenant_id = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE"
    " sessions.tenant_id = entries.tenant_id AND sessions.user_id = entries.user_id"
    " AND sessions.session_id = entries.session_id) LIMIT 1",
    "version of the item": "SELECT item_id FROM proofs WHERE tenant_id = ?1 AND number > 0 AND NOT EXISTS"
    " (SELECT 1 FROM items WHERE items.tenant_id = proofs.tenant_id AND id = item_id"
    " AND items.version = proofs.version) LIMIT 1",
    "idempotency key of the event": "SELECT substr(id, 1, instr(id, char(10)) - 1) FROM ids WHERE tenant_id = ?1"
    " AND kind = 'idempotency' AND NOT EXISTS (SELECT 1 FROM idempotency AS own WHERE own.tenant_id = ids.tenant_id"
    " AND own.entry_id = substr(ids.id, 1, instr(ids.id, char(10)) - 1)"
    " AND instr(ids.id, char(10) || lower(hex(own.key_hash)) || char(10))) LIMIT 1",
}


def _plain(row: Mapping[str, Any] | sqlite3.Row) -> dict[str, Any]:
    held = {name: row[name] for name in row.keys() if row[name] is not None}  # noqa: SIM118 - a row of sqlite3
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in held.items()}


def _row_digest(item: sqlite3.Row) -> bytes:
    values = ["\0" if item[name] is None else str(item[name]) for name in _DIGESTED]
    if item["body"] is None:
        values.append(item["receipt_id"] or "\0")
    if item["checked"]:
        values.append(str(item["checked"]))
    return digest("\x1f".join(values).encode("utf-8", "surrogatepass"))


def _is_linked(proof: sqlite3.Row, before: bytes) -> bool:
    """Return whether a proof follows the one before it, as far as can be checked without the key."""
    names = ("user_id", "session_id", "number", "item_id", "version", "keyed")
    held = before + canonical_bytes([*(proof[name] for name in names), proof["digest"].hex()])
    return bool(proof["keyed"]) or proof["hash"] == sha256(held).digest()


# -- the new store ------------------------------------------------------------------------------------


@contextmanager
def new_store(target: str) -> Iterator[str]:
    """Yield the target to open for a new store at `target`, a path or an address of PostgreSQL without a store.

    A file gets its name when the block ends. If the block fails, nothing is left.
    """
    from muniment.store.engines.opening import file_named, new_schema

    path = None if target == ":memory:" else file_named(target)
    if path is None:
        with new_schema(target):
            yield target
        return
    if os.path.lexists(path):
        raise Conflict(f"there is a file {path} already", path="$.new", hint="name a new file for the upgraded store")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise InvalidInput(f"there is no folder {folder}", path="$.new", hint="make the folder first")
    part = f"{path}.part"
    _remove(part)
    try:
        yield part
        _name_file(part, path)
    except OSError as error:
        raise StorageFailure(f"cannot write {path}: {error.strerror or error}", path="$.new") from None
    finally:
        _remove(part)


def _name_file(part: str, path: str) -> None:
    for name in (part, os.path.dirname(os.path.abspath(path))):
        handle = os.open(name, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    if os.path.lexists(path):
        raise Conflict(f"a file {path} was made meanwhile", path="$.new", hint="name another file")
    os.rename(part, path)


def _remove(part: str) -> None:
    for name in (part, f"{part}-wal", f"{part}-shm", f"{part}-journal"):
        if os.path.lexists(name):
            os.unlink(name)
