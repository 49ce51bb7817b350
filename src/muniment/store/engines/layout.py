"""The tables of `core.ports.schema` as SQL: one declaration gives SQLite and PostgreSQL the same tables and indexes.

A store records the fingerprint of the declaration it was made from. There is no migration in place: a store of another
layout is refused, and `muniment store upgrade` copies one of version 0.1. Never touches a database.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from muniment.core.ports.schema import TABLES, TENANTS, Column, Table, table
from muniment.errors import SchemaMismatch
from muniment.store.engines.codec import BUCKETS, MINTED, PREFIXES, WORD_OF, WORDS, encode_word

__all__ = [
    "LAYOUT",
    "LAYOUT_TABLE",
    "NAMES_TABLE",
    "TENANTS_SHARD",
    "VIEWS",
    "check_layout",
    "fingerprint",
    "index_name",
    "old_store",
    "postgres_tables",
    "sqlite_tables",
]


LAYOUT = 2
LAYOUT_TABLE = "layout"
NAMES_TABLE = "names"
"""The names of users, sessions, agents and runs with their numbers, by shard; those of tenants in `TENANTS_SHARD`."""
TENANTS_SHARD = 0
_SQLITE_TYPE = {"text": "TEXT", "int": "INTEGER", "bytes": "BLOB", "packed": "ANY"}
_POSTGRES_TYPE = {"text": 'text COLLATE "C"', "int": "bigint", "bytes": "bytea"}
_FORM_TYPE = {"id": "bytes", "ids": "bytes", "name": "int", "instant": "int"}


@cache
def fingerprint() -> str:
    """A digest of everything that decides how rows are stored."""
    codes = [",".join(WORDS), ",".join(PREFIXES)]
    return sha256("\n".join([*sqlite_tables(), *postgres_tables("s"), *codes]).encode()).hexdigest()[:32]


def check_layout(found: Sequence[tuple[Any, Any]], location: str) -> None:
    """Refuse a store whose layout (number, fingerprint) differs from the one this muniment writes."""
    number, mark = found[0] if len(found) == 1 else (None, None)
    if number == LAYOUT and mark == fingerprint():
        return
    if type(number) is int and number > LAYOUT:
        raise SchemaMismatch(
            f"{location} was written by a newer muniment (layout {number}; this one knows {LAYOUT})",
            hint="upgrade muniment, or restore the copy that was made before the upgrade",
            details={"number": number, "known": LAYOUT},
        )
    raise SchemaMismatch(
        f"{location} does not have the layout that this muniment writes",
        hint="it was written by another pre-release of 0.2, or altered: import a dump of it into a new store",
        details={"number": number, "known": LAYOUT},
    )


def old_store(location: str) -> SchemaMismatch:
    """The error for a store of version 0.1."""
    return SchemaMismatch(
        f"{location} is a store of version 0.1",
        hint="run `muniment store upgrade OLD NEW`: it copies the store into a new one and verifies it",
    )


def index_name(spec: Table[Any], columns: tuple[str, ...]) -> str:
    return f"{spec.name}_{'_'.join(columns)}"


def _indexes(spec: Table[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (UNIQUE or "", name, columns) of each index besides the primary key."""
    for columns in (*spec.unique, *spec.indexes):
        kind = "UNIQUE " if columns in spec.unique else ""
        yield kind, index_name(spec, columns), ", ".join(f'"{name}"' for name in ("shard", *columns))


def _columns(spec: Table[Any], types: dict[str, str]) -> str:
    lines = [f'"shard" {types["int"]} NOT NULL']
    for each in spec.columns:
        held = types.get(each.form) or types[_FORM_TYPE.get(each.form, each.type)]
        lines.append(f'"{each.name}" {held}{"" if each.nullable else " NOT NULL"}')
    key = ", ".join(f'"{name}"' for name in ("shard", *spec.key))
    return ",\n  ".join([*lines, f"PRIMARY KEY ({key})"])


def sqlite_tables() -> list[str]:
    """The statements that make an empty store.

    A table with content is a plain rowid table whose rows are only appended and emptied. `secure_delete` overwrites
    what is freed, but moving a cell between pages may leave its bytes behind; appending never moves one. Tables without
    content are stored in key order.
    """
    made = [
        f'CREATE TABLE "{LAYOUT_TABLE}" (number INTEGER NOT NULL PRIMARY KEY, fingerprint TEXT NOT NULL) STRICT',
        f'CREATE TABLE "{NAMES_TABLE}" (shard INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL,'
        " PRIMARY KEY (shard, number), UNIQUE (shard, name)) STRICT, WITHOUT ROWID",
    ]
    for spec in TABLES:
        order = "" if any(column.content for column in spec.columns) else ", WITHOUT ROWID"
        made.append(f'CREATE TABLE "{spec.name}" (\n  {_columns(spec, _SQLITE_TYPE)}\n) STRICT{order}')
        for kind, name, columns in _indexes(spec):
            made.append(f'CREATE {kind}INDEX "{name}" ON "{spec.name}" ({columns})')
    made += sqlite_views()
    made.append("ANALYZE sqlite_schema")
    made += [_statistics(spec) for spec in TABLES]
    return made


# -- views --------------------------------------------------------------------------------------------

VIEWS: dict[str, tuple[str, str | None]] = {
    "events": ("entries", None),
    "facts": ("items", "fact"),
    "builds": ("items", "build"),
    "receipts": ("items", "receipt"),
    "runs": ("items", "run"),
    "item_versions": ("items", None),
    "sessions_by_name": ("sessions", None),
    "users_by_name": ("users", None),
}
"""Read-only views for people who open the file with `sqlite3`: their tables, and the kind of items they show."""


def sqlite_views() -> list[str]:
    """Views that show every column as text or a plain number; writers never read them. `docs/format.md` lists them."""
    codes = ", ".join(f"(x'{2 * place:02x}', '{prefix}')" for place, prefix in enumerate(MINTED, 1))
    letters = ", ".join(f"('{letter}', '{word}')" for letter, word in WORD_OF.items())
    made = [
        f"CREATE VIEW id_prefixes (code, prefix) AS VALUES {codes}",
        f"CREATE VIEW words (code, word) AS VALUES {letters}",
    ]
    for view, (name, kind) in VIEWS.items():
        spec = table(name)
        shown = [f"(SELECT name FROM names WHERE shard = {TENANTS_SHARD} AND number = own.shard / {BUCKETS}) AS tenant"]
        for column in spec.columns:
            shown.append(f"{_readable(column)} AS {column.name}")
            if column.form == "body":
                shown.append(f"{_text_of(column)} AS content")
        where = "" if kind is None else f" WHERE kind = '{encode_word(kind)}' AND newest = 1"
        made.append(f"CREATE VIEW {view} AS SELECT\n  " + ",\n  ".join(shown) + f"\nFROM {name} AS own{where}")
    return made


def _text_of(column: Column) -> str:
    """Return an expression for the text in an entry's body."""
    held = f'own."{column.name}"'
    in_json = f"iif(json_valid({held}), json_extract({held}, '$.content'), NULL)"
    return f"iif(substr({held}, 1, 1) = '{{', {in_json}, {held})"


def _readable(column: Column) -> str:
    """Return an expression of SQLite's own functions that decodes a stored value."""
    held = f'own."{column.name}"'
    if column.form == "id":
        text = f"CASE length({held}) WHEN 17 THEN prefix || lower(hex(substr({held}, 2)))"
        text += f" ELSE CAST(substr({held}, 18) AS TEXT) END"
        known = f"(SELECT {text} FROM id_prefixes WHERE code = substr({held}, 1, 1))"
        return f"coalesce({known}, CAST(substr({held}, 2) AS TEXT))"
    if column.form == "name":
        return f"(SELECT name FROM names WHERE shard = own.shard AND number = {held})"
    if column.form == "instant":
        fraction = f"({held} % 1000000 + 1000000) % 1000000"
        seconds = f"strftime('%Y-%m-%dT%H:%M:%S', ({held} - {fraction}) / 1000000, 'unixepoch')"
        return f"coalesce({seconds} || printf('.%06dZ', {fraction}), '')"
    if column.form == "word":
        return f"coalesce((SELECT word FROM words WHERE code = {held}), substr({held}, 2))"
    if column.form == "body":
        return (
            f"CASE WHEN substr({held}, 1, 1) <> '{{' THEN '{{\"content\":\"' || {held} || '\"}}'"
            f" WHEN substr({held}, 1, 2) = '{{{{' THEN substr({held}, 3) ELSE {held} END"
        )
    if column.form == "packed" and column.type == "text":
        return f"CASE typeof({held}) WHEN 'blob' THEN '(compressed)' ELSE {held} END"
    if column.form == "ids":
        return "'(compressed)'"
    return f"iif({held} IS NULL, NULL, lower(hex({held})))" if column.type == "bytes" else held


def _statistics(spec: Table[Any]) -> str:
    """Return ANALYZE's figures for a large store, so that SQLite plans for one from the start."""
    own = spec.name if not any(column.content for column in spec.columns) else f"sqlite_autoindex_{spec.name}_1"
    rows = [(own, spec.key, True)]
    rows += [(index_name(spec, each), each, each in spec.unique) for each in (*spec.unique, *spec.indexes)]
    values = ", ".join(f"('{spec.name}', '{name}', '{_shares(spec, each, unique)}')" for name, each, unique in rows)
    return f"INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES {values}"


_TABLE_ROWS, _SHARD_ROWS = 1_000_000, 100_000
_FEW_VALUES = frozenset({"kind", "status", "state", "newest", "kept", "is_open", "level", "embedder"})
_OWNERS = frozenset({"user_id", "owner", "space"})
_SESSIONS = frozenset({"session_id"})


def _shares(spec: Table[Any], columns: tuple[str, ...], is_unique: bool) -> str:
    """Return rows in the table, then rows that share the first, the first two … columns of the index. No index is
    walked once for each shard, which SQLite takes to be cheap.
    """
    form_of = {column.name: column.form for column in spec.columns}
    shares = [_TABLE_ROWS, _SHARD_ROWS]
    for name in columns:
        if name in _FEW_VALUES:
            values = 4
        elif name in _OWNERS:
            values = 100
        elif name in _SESSIONS:
            values = 10
        else:
            values = 50_000 if form_of[name] == "id" else 1_000
        shares.append(max(2, shares[-1] // values))
    if is_unique:
        shares[-1] = 1
    return " ".join([*map(str, shares), "noskipscan"])


def postgres_tables(schema: str) -> list[str]:
    """Return the statements that make an empty store in an existing schema.

    Row-level security is enabled and forced, so that it binds the owner too (LG-02): a transaction sees and writes the
    rows of the shard in the setting muniment.shard, and nothing without one; and the number of the tenant that
    muniment.tenant names. Only the list of tenants can be read as a whole, by the tenant '*', and which of them have
    sessions, with the setting muniment.census.
    """
    prefix = f'"{schema}".'
    names = f'{prefix}"{NAMES_TABLE}"'
    own = "shard = nullif(current_setting('muniment.shard', true), '')::bigint"
    tenant = "current_setting('muniment.tenant', true)"
    made = [
        f'CREATE TABLE {prefix}"{LAYOUT_TABLE}" (number bigint NOT NULL PRIMARY KEY, fingerprint text NOT NULL)',
        f"CREATE TABLE {names} (shard bigint NOT NULL, number bigint GENERATED BY DEFAULT AS IDENTITY,"
        f' name text COLLATE "C" NOT NULL, PRIMARY KEY (shard, number), UNIQUE (shard, name))',
        f"ALTER TABLE {names} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {names} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY own_tenant ON {names} USING ({own}) WITH CHECK ({own})",
        f"CREATE POLICY own_number ON {names} USING (shard = {TENANTS_SHARD} AND name = {tenant})"
        f" WITH CHECK (shard = {TENANTS_SHARD} AND name = {tenant})",
        f"CREATE POLICY every_tenant ON {names} FOR SELECT USING (shard = {TENANTS_SHARD} AND {tenant} = '*')",
    ]
    for spec in TABLES:
        own_name = f'{prefix}"{spec.name}"'
        made.append(f"CREATE TABLE {own_name} (\n  {_columns(spec, _POSTGRES_TYPE)}\n)")
        for kind, name, columns in _indexes(spec):
            made.append(f'CREATE {kind}INDEX "{name}" ON {own_name} ({columns})')
        made += [
            f"ALTER TABLE {own_name} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {own_name} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY own_tenant ON {own_name} USING ({own}) WITH CHECK ({own})",
        ]
    made.append(
        f'CREATE POLICY every_tenant ON {prefix}"{TENANTS.name}" FOR SELECT'
        " USING (current_setting('muniment.tenant', true) = '*')"
    )
    made.append(
        f'CREATE POLICY every_tenant ON {prefix}"sessions" FOR SELECT'
        " USING (current_setting('muniment.census', true) = 'on')"
    )
    return made
