"""How the tables of a PostgreSQL store lie: whole, in partitions by hash of the tenant, some tenants in their own.

Reads the server's catalog and compares it with what is wanted; changes nothing. Decision 0037 says why these shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import psycopg

from muniment.core.ports.schema import ENTRIES, TABLES, TENANTS, Table
from muniment.errors import InvalidInput, SchemaMismatch

__all__ = [
    "PARTS_MAX",
    "STATE",
    "WHOLE",
    "Layout",
    "Shape",
    "check_layout",
    "is_by_user",
    "is_under_way",
    "layout_of",
    "partitioned_names",
    "read_shapes",
]

PARTS_MAX = 64
"""To make or drop a schema of more takes more locks in one transaction than a server has by default (tried)."""
STATE = "partitioning"
"""The table that says how far a conversion has come; it is there while one is under way."""
_OWN_MAX = 64

Connection = psycopg.Connection[tuple[Any, ...]]
Shape = tuple[Any, ...]
"""How one table lies, so that two of them can be compared."""


class Layout(NamedTuple):
    """Into how many partitions tenants are spread, and which tenants have partitions of their own, by user."""

    parts: int = 0
    own: tuple[tuple[str, int], ...] = ()

    @classmethod
    def checked(cls, parts: int, own: Mapping[str, int] | None = None) -> Layout:
        """What was asked for; an error where it makes no sense. No parts: whole tables; none of its own: a tenant lies
        among the others."""
        given = {tenant: count for tenant, count in (own or {}).items() if type(count) is not int or count != 0}
        if type(parts) is not int or not (parts == 0 or 2 <= parts <= PARTS_MAX):
            raise InvalidInput(
                f"a store has 2 to {PARTS_MAX} partitions (0: whole tables), not {parts!r:.40}",
                path="$.parts",
                hint="such as 8, or 32 on a large machine",
            )
        if given and not parts:
            raise InvalidInput("tenants of their own need partitions for the others", path="$.parts")
        if len(given) > _OWN_MAX:
            raise InvalidInput(f"at most {_OWN_MAX} tenants have partitions of their own", path="$.own")
        for tenant, count in given.items():
            if type(count) is not int or not 1 <= count <= PARTS_MAX:
                raise InvalidInput(
                    f"{tenant!r:.80} can have 0 to {PARTS_MAX} partitions, not {count!r:.40}", path="$.own"
                )
        return cls(parts, tuple(sorted(given.items())))

    def shape(self, spec: Table[Any]) -> Shape:
        """How this table lies in such a store."""
        if not self.parts:
            return ("whole",)
        spread: Shape = ("hash", ("tenant_id",), self.parts)
        if not self.own:
            return spread
        by_user = is_by_user(spec)
        own = tuple(
            (tenant, ("hash", ("user_id",), count) if by_user and count > 1 else ("whole",))
            for tenant, count in self.own
        )
        return ("list", ("tenant_id",), own, spread)

    @property
    def words(self) -> str:
        """What the command is given for it."""
        return " ".join([f"--parts {self.parts}", *(f"--own {tenant}={count}" for tenant, count in self.own)])

    def __str__(self) -> str:
        own = "".join(f", {tenant} in {count} of its own" for tenant, count in self.own)
        return f"{self.parts} partitions{own}" if self.parts else "whole tables"


WHOLE = Layout()


def partitioned_names() -> tuple[str, ...]:
    """The tables that are partitioned. The list of tenants is read as a whole, and has one small row for each."""
    return tuple(spec.name for spec in TABLES if spec is not TENANTS)


def is_by_user(spec: Table[Any]) -> bool:
    """Can the rows of one tenant be spread by user? Every unique key of a partitioned table must hold what it is
    spread by. The one exception is the ledger: that its ids are unique rests on the table of ids, where each is
    inserted before.
    """
    column = next((column for column in spec.columns if column.name == "user_id"), None)
    if column is None or column.nullable:
        return False
    return spec is ENTRIES or all("user_id" in key for key in (spec.key, *spec.unique))


# -- what is there ------------------------------------------------------------------------------------

_TREE = """
WITH RECURSIVE tree AS (
  SELECT oid, 0::oid AS parent, relname AS name, ''::text COLLATE "C" AS bound FROM pg_class
  WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p') AND NOT relispartition AND relname = ANY (%s)
  UNION ALL
  SELECT child.oid, tree.oid, child.relname, pg_get_expr(child.relpartbound, child.oid)
  FROM tree JOIN pg_inherits ON inhparent = tree.oid JOIN pg_class AS child ON child.oid = inhrelid
)
SELECT tree.oid, parent, name, bound, partstrat,
       ARRAY(SELECT attname::text FROM unnest(partattrs) WITH ORDINALITY AS key(number, place)
             JOIN pg_attribute ON attrelid = tree.oid AND attnum = key.number ORDER BY place)
FROM tree LEFT JOIN pg_partitioned_table ON partrelid = tree.oid
"""
_LOOKS = 3
"""How often a layout that is nobody's is looked at: a conversion may end between what is asked of the catalog."""
_MODULUS = re.compile(r"FOR VALUES WITH \(modulus (\d+), remainder (\d+)\)")
_VALUE = re.compile(r"FOR VALUES IN \((.*)\)", re.DOTALL)


class _Node(NamedTuple):
    name: str
    bound: str
    strategy: str | None
    keys: tuple[str, ...]
    below: list[_Node]


def read_shapes(connection: Connection, schema: str) -> dict[str, Shape]:
    """How each table that is there lies; what we would not make so is `odd`."""
    nodes: dict[int, _Node] = {}
    rows = connection.execute(_TREE, (f'"{schema}"', list(partitioned_names()))).fetchall()
    for oid, _, name, bound, strategy, keys in rows:
        plain = strategy.decode() if isinstance(strategy, bytes) else strategy
        nodes[oid] = _Node(name, bound or "", plain, tuple(keys), [])  # no bound: dropped since the query began
    roots: list[_Node] = []
    for oid, parent, *_ in rows:
        (nodes[parent].below if parent else roots).append(nodes[oid])
    return {node.name: _shape(connection, node) for node in roots}


def _shape(connection: Connection, node: _Node) -> Shape:
    if node.strategy is None:
        return ("whole",)
    if node.strategy == "h":
        found = sorted(match.groups() for each in node.below if (match := _MODULUS.fullmatch(each.bound)))
        count = len(node.below)
        is_full = {(str(count), str(number)) for number in range(count)} == set(found) and count > 0
        if is_full and all(each.strategy is None for each in node.below):
            return ("hash", node.keys, count)
    if node.strategy == "l":
        rest = [each for each in node.below if each.bound == "DEFAULT"]
        own = [(value, each) for each in node.below if (value := _VALUE.fullmatch(each.bound))]
        if len(rest) == 1 and len(own) == len(node.below) - 1:
            named = ((_value(connection, value[1]), _shape(connection, each)) for value, each in own)
            return ("list", node.keys, tuple(sorted(named)), _shape(connection, rest[0]))
    return ("odd", node.name)


def _value(connection: Connection, literal: str) -> str:
    """A text as the catalog writes it, quoted, read back by the server that wrote it."""
    row = connection.execute(f"SELECT {literal}".encode()).fetchone()
    assert row is not None
    return str(row[0])


def layout_of(shapes: Mapping[str, Shape]) -> Layout | None:
    """The layout that all of these tables have; None where they differ, or have one of somebody's own."""
    ledger = shapes.get(ENTRIES.name, ("whole",))
    spread = ledger[3] if ledger[0] == "list" else ledger
    if spread[0] == "whole":
        found = WHOLE
    elif spread[0] == "hash":
        named = ledger[2] if ledger[0] == "list" else ()
        found = Layout(spread[2], tuple((tenant, each[2] if each[0] == "hash" else 1) for tenant, each in named))
    else:
        return None
    return found if not _differing(shapes, found) else None


def _differing(shapes: Mapping[str, Shape], layout: Layout) -> list[str]:
    return [spec.name for spec in TABLES if spec.name in shapes and shapes[spec.name] != layout.shape(spec)]


# -- whether it is what is wanted ---------------------------------------------------------------------


def is_under_way(connection: Connection, schema: str) -> bool:
    """Is the store being converted?"""
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f'"{schema}"."{STATE}"',)).fetchone()
    assert row is not None
    return bool(row[0])


def check_layout(connection: Connection, schema: str, location: str, wanted: int | None) -> None:
    """Refuse a store that lies otherwise than its URL says, or that is neither whole nor partitioned.

    One that is being converted is in use all the while, so it is opened by a URL that says nothing of partitions.
    """
    for _ in range(_LOOKS):
        shapes = read_shapes(connection, schema)
        found = layout_of(shapes)
        under_way = is_under_way(connection, schema)
        if under_way or found is not None:
            break
    if under_way:
        if wanted is not None:
            raise SchemaMismatch(
                f"{location} is being partitioned, and that was not finished",
                hint="run `muniment store partition` again, with the parts it was begun with: it goes on where it "
                "stopped; or open the store without ?partitions=",
                details={"partitions": wanted, "done": _partitioned(shapes)},
            )
    elif found is None:
        partitioned = _partitioned(shapes)
        raise SchemaMismatch(
            f"{location} is half partitioned: {len(partitioned)} of its {len(shapes)} tables are, or not all alike",
            hint=f"`muniment store partition --parts {wanted or 8}` on its owner's URL brings all of them to one shape",
            details={"partitioned": partitioned},
        )
    elif wanted is not None and found.parts != wanted:
        raise SchemaMismatch(
            f"{location} has {found}, and its URL says partitions={wanted}",
            hint=f"`muniment store partition {found._replace(parts=wanted).words}` on its owner's URL converts it; or "
            "leave partitions out of the URL",
            details={"partitions": wanted, "found": found.parts},
        )


def _partitioned(shapes: Mapping[str, Shape]) -> list[str]:
    return sorted(_names(shapes.items()))


def _names(shapes: Iterable[tuple[str, Shape]]) -> Iterable[str]:
    return (name for name, shape in shapes if shape != ("whole",))
