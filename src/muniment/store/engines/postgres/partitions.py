"""A table made anew in another layout: its twin, with the same columns, keys, walls, rights and owner.

The twin stands beside the table under a name of its own until it takes its place; how the rows come into it is
`partitioning`'s business, or, where nobody else can have seen the table yet, `replace_new`'s. Everything is read from
the server's catalog, so that a table of a later migration needs nothing here. Never commits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from psycopg import sql

from muniment.core.ports.schema import ENTRIES, Table
from muniment.core.ports.schema import table as table_named
from muniment.store.engines.postgres.layouts import Connection, Layout, is_by_user

__all__ = ["POLICY", "Place", "make_twin", "put_in_place", "replace_new", "see_all"]

_TWIN = "__new"
POLICY = "partitioning"
"""Lets the owner of a table see all of its rows while they are copied, in transactions that ask for it."""
_ASKED = "muniment.partitioning"
_RIGHTS = """
SELECT CASE WHEN rights.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(rights.grantee)) END,
       rights.privilege_type, rights.is_grantable, rights.column_name
FROM (
  SELECT (aclexplode(relacl)).*, NULL::name AS column_name, relowner FROM pg_class WHERE oid = %(table)s::regclass
  UNION ALL
  SELECT (aclexplode(attacl)).*, attname, relowner FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE attrelid = %(table)s::regclass AND attnum > 0 AND NOT attisdropped
) AS rights WHERE rights.grantee <> rights.relowner
"""
_POLICIES = """
SELECT polname, polpermissive, polcmd::text,
       ARRAY(SELECT CASE WHEN role = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(role)) END
             FROM unnest(polroles) AS role),
       pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)
FROM pg_policy WHERE polrelid = %s::regclass AND polname <> %s
"""
_COMMANDS = {"*": "ALL", "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}
_INDEXES = """
SELECT index.relname, pg_get_indexdef(indexrelid), indisunique FROM pg_index
JOIN pg_class AS index ON index.oid = indexrelid WHERE indrelid = %s::regclass AND NOT indisprimary
"""
_LEAVES = "SELECT relid::regclass::text FROM pg_partition_tree(%s::regclass) WHERE isleaf"
_TREE = (
    """SELECT relname FROM pg_partition_tree(%s::regclass) JOIN pg_class ON oid = relid ORDER BY level DESC, relname"""
)
_NAMED = """
SELECT CASE relkind WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX' ELSE 'TABLE' END, relname FROM pg_class
WHERE relnamespace = to_regnamespace(%s) AND (relname = ANY (%s) OR oid IN (
  SELECT indexrelid FROM pg_index JOIN pg_class AS held ON held.oid = indrelid
  WHERE held.relnamespace = pg_class.relnamespace AND held.relname = ANY (%s)))
ORDER BY relkind IN ('r', 'p'), relname
"""


class Place(NamedTuple):
    """A table of a store and where its twin stands."""

    schema: str
    table: str

    @property
    def spec(self) -> Table[Any]:
        return table_named(self.table)

    @property
    def name(self) -> str:
        return f'"{self.schema}"."{self.table}"'

    @property
    def twin_table(self) -> str:
        return self.table + _TWIN

    @property
    def twin(self) -> str:
        return f'"{self.schema}"."{self.twin_table}"'

    @property
    def key(self) -> tuple[str, ...]:
        return ("tenant_id", *self.spec.key)


def _run(connection: Connection, statement: str) -> None:
    connection.execute(statement.encode())


def see_all(connection: Connection) -> None:
    """For this transaction, whoever owns the table sees the rows of every tenant in it and in its twin."""
    connection.execute(f"SET LOCAL {_ASKED} = 'on'")


def make_twin(connection: Connection, place: Place, layout: Layout) -> None:
    """The twin, without a row, and a policy by which its owner can fill it."""
    owner = _owner(connection, place)
    options = _options(connection, place)
    _make_tables(connection, place, layout)
    _make_keys(connection, place, layout)
    for name in _tree(connection, place.twin):
        each = f'"{place.schema}"."{name}"'
        # A partition has no policy: nobody reads one but through its table.
        _run(connection, f"ALTER TABLE {each} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        if owner is not None:
            _run(connection, f"ALTER TABLE {each} OWNER TO {owner}")
    for statement in (*_policies(connection, place), *_rights(connection, place)):
        _run(connection, statement)
    for (leaf,) in connection.execute(_LEAVES, (place.twin,)).fetchall() if options else ():
        _run(connection, f"ALTER TABLE {leaf} SET ({', '.join(options)})")
    for name in (place.name, place.twin):
        allowed = f"current_setting('{_ASKED}', true) = 'on'"
        _run(
            connection,
            f"CREATE POLICY {POLICY} ON {name} TO {owner or 'CURRENT_USER'} USING ({allowed}) WITH CHECK ({allowed})",
        )


def _owner(connection: Connection, place: Place) -> str | None:
    """Who owns the table, where that is somebody else."""
    asked = """SELECT quote_ident(pg_get_userbyid(relowner)), pg_get_userbyid(relowner) = current_user
               FROM pg_class WHERE oid = %s::regclass"""
    row = connection.execute(asked, (place.name,)).fetchone()
    assert row is not None
    return None if row[1] else str(row[0])


def _options(connection: Connection, place: Place) -> list[str]:
    """How the table is stored, which a table that is partitioned says of its partitions."""
    asked = """SELECT reloptions FROM pg_class WHERE reloptions IS NOT NULL AND oid = ANY (
                 SELECT relid::oid FROM pg_partition_tree(%(table)s::regclass) WHERE isleaf
                 UNION ALL SELECT %(table)s::regclass::oid) LIMIT 1"""
    row = connection.execute(asked, {"table": place.name}).fetchone()
    return [] if row is None else list(row[0])


def _make_tables(connection: Connection, place: Place, layout: Layout) -> None:
    twin = place.twin_table
    like = f"(LIKE {place.name} INCLUDING ALL EXCLUDING INDEXES EXCLUDING COMMENTS)"
    if not layout.parts:
        _run(connection, f"CREATE TABLE {place.twin} {like}")
        return
    rest = place.twin
    if layout.own:
        rest = f'"{place.schema}"."{twin}_rest"'
        _run(connection, f"CREATE TABLE {place.twin} {like} PARTITION BY LIST (tenant_id)")
        _run(connection, f"CREATE TABLE {rest} PARTITION OF {place.twin} DEFAULT PARTITION BY HASH (tenant_id)")
    else:
        _run(connection, f"CREATE TABLE {place.twin} {like} PARTITION BY HASH (tenant_id)")
    _spread(connection, place.schema, rest, twin, layout.parts)
    for number, (tenant, count) in enumerate(layout.own, start=1):
        own = f'"{place.schema}"."{twin}_of_{number}"'
        by_user = is_by_user(place.spec) and count > 1
        statement = sql.SQL("CREATE TABLE {own} PARTITION OF {twin} FOR VALUES IN ({tenant}){how}").format(
            own=sql.SQL(own),
            twin=sql.SQL(place.twin),
            tenant=sql.Literal(tenant),
            how=sql.SQL(" PARTITION BY HASH (user_id)" if by_user else ""),
        )
        connection.execute(statement)
        if by_user:
            _spread(connection, place.schema, own, f"{twin}_of_{number}", count)


def _spread(connection: Connection, schema: str, parent: str, stem: str, count: int) -> None:
    for number in range(count):
        _run(
            connection,
            f'CREATE TABLE "{schema}"."{stem}_{number}" PARTITION OF {parent} '
            f"FOR VALUES WITH (MODULUS {count}, REMAINDER {number})",
        )


def _make_keys(connection: Connection, place: Place, layout: Layout) -> None:
    """The primary key and the indexes. Names are those that later migrations know, with the twin's mark behind."""
    columns = ", ".join(f'"{name}"' for name in place.key)
    key_name = f'"{place.table}_pkey{_TWIN}"'
    if place.spec is ENTRIES and any(count > 1 for _, count in layout.own):
        # By user, no key of the whole table can be the id alone: it is one among all tenants but those of their own.
        rest = f'"{place.schema}"."{place.twin_table}_rest"'
        _run(connection, f"ALTER TABLE {rest} ADD CONSTRAINT {key_name} PRIMARY KEY ({columns})")
        _run(connection, f'CREATE INDEX "{_id_index(place)}{_TWIN}" ON {place.twin} ({columns})')
    else:
        _run(connection, f"ALTER TABLE {place.twin} ADD CONSTRAINT {key_name} PRIMARY KEY ({columns})")
    for name, definition, is_unique in connection.execute(_INDEXES, (place.name,)).fetchall():
        if name == _id_index(place):
            continue
        how = definition[definition.index(" USING ") :]
        _run(connection, f'CREATE {"UNIQUE " if is_unique else ""}INDEX "{name}{_TWIN}" ON {place.twin}{how}')


def _id_index(place: Place) -> str:
    return f"{place.table}_id"


def _policies(connection: Connection, place: Place) -> list[str]:
    made = []
    for name, is_permissive, command, roles, using, check in connection.execute(_POLICIES, (place.name, POLICY)):
        made.append(
            f'CREATE POLICY "{name}" ON {place.twin} AS {"PERMISSIVE" if is_permissive else "RESTRICTIVE"} '
            f"FOR {_COMMANDS[command]} TO {', '.join(roles)}"
            + (f" USING ({using})" if using else "")
            + (f" WITH CHECK ({check})" if check else "")
        )
    return made


def _rights(connection: Connection, place: Place) -> list[str]:
    made = []
    for grantee, right, is_grantable, column in connection.execute(_RIGHTS, {"table": place.name}):
        what = f'{right} ("{column}")' if column else right
        made.append(f"GRANT {what} ON {place.twin} TO {grantee}{' WITH GRANT OPTION' if is_grantable else ''}")
    return made


def _tree(connection: Connection, name: str) -> list[str]:
    found = [each for (each,) in connection.execute(_TREE, (name,)).fetchall()]
    return found or [name.rpartition(".")[2].strip('"')]


def put_in_place(connection: Connection, place: Place) -> None:
    """The table goes, its twin has its name. Both are locked against everybody until the transaction ends, so all of it
    is said in one message.
    """
    tables = _tree(connection, place.twin)
    found = connection.execute(_NAMED, (f'"{place.schema}"', tables, tables)).fetchall()
    said = [
        f"LOCK TABLE {place.name}, {place.twin} IN ACCESS EXCLUSIVE MODE",
        f"DROP TABLE {place.name}",
        f"DROP POLICY {POLICY} ON {place.twin}",
        *(
            f'ALTER {kind} "{place.schema}"."{name}" RENAME TO "{name.replace(_TWIN, "", 1)}"'
            for kind, name in found
            if _TWIN in name
        ),
    ]
    _run(connection, "; ".join(said))


def replace_new(connection: Connection, schema: str, table: str, layout: Layout) -> None:
    """Bring a table that this very transaction made to a layout, with the rows that its migration put in."""
    place = Place(schema, table)
    make_twin(connection, place, layout)
    see_all(connection)
    _run(connection, f"INSERT INTO {place.twin} SELECT * FROM {place.name}")
    connection.execute(f"RESET {_ASKED}")
    put_in_place(connection, place)
