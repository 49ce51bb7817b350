"""A store brought into another layout while it is in use: `muniment store partition`.

Table by table. A twin is made beside the table; from then on a trigger writes to it whatever is written to the table,
in the same transaction. The rows of before are copied in batches, each locked against changes for as long as its batch
takes. Then the two are compared, and the twin takes the table's place, under a lock held for the renaming alone.

Each step is one transaction that begins by reading how far the last came (the table `partitioning`, and the catalog):
whoever is killed between two steps, or in one, starts the command again. Nothing is kept in the session, and no row is
taken out of a table before its twin has its name. Decision 0037 has the argument.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import psycopg

from muniment.core.ports.schema import table as table_named
from muniment.errors import Conflict, MunimentError, SchemaMismatch, StorageBusy, StorageFailure
from muniment.store.engines.postgres.failures import LostRace, translate
from muniment.store.engines.postgres.layouts import (
    STATE,
    Connection,
    Layout,
    is_under_way,
    layout_of,
    read_shapes,
)
from muniment.store.engines.postgres.opening import Target, connect, lock_number
from muniment.store.engines.postgres.partitions import POLICY, Place, make_twin, put_in_place, see_all

__all__ = ["Step", "convert"]

R = TypeVar("R")

_BATCH_ROWS = 1000
_LOCK_WAIT = "500ms"
"""How long a step waits for a table; whoever comes to the table then waits behind it, so no longer."""
_TRIES = 120
_PAUSE_S = 1.0
_OLDER_WAIT_S = 600.0
_OTHERS = """
SELECT virtualxid FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locktype = 'virtualxid' AND pid <> pg_backend_pid() AND activity.datname = current_database()
  AND activity.usesysid IS NOT NULL
"""
"""The transactions that are open in this database; those of the server's own workers read no row of ours."""


class Step(NamedTuple):
    """What was done just now."""

    table: str
    done: str
    """`begun`, `copied`, `compared` or `replaced`; `finished` in the end, of no table."""
    rows: int = 0
    """How many rows of the table were copied so far."""


def convert(
    target: Target, layout: Layout, *, named: Collection[str] | None = None, batch_rows: int = _BATCH_ROWS
) -> Generator[Step, None, None]:
    """Bring the store to this layout, step by step; a caller that stops in between has lost nothing.

    The role of the URL owns the tables, or is a superuser. A store that is in this layout is left alone. Of tenants
    that have partitions of their own, only those that are `named` can lose them, where that is said.
    """
    with connect(target) as connection:
        conversion = _Conversion(connection, target.schema, layout, batch_rows, named)
        try:
            yield from conversion.run()
        except psycopg.Error as error:
            raise _failure(error, target.schema) from error


def _failure(error: psycopg.Error, schema: str) -> MunimentError:
    """What went wrong; a twin or a note that is gone was another command's doing."""
    if isinstance(error, psycopg.errors.UndefinedTable):
        return _met(f"the tables of #{schema}")
    return translate(error, f"#{schema}")


def _met(what: str) -> Conflict:
    return Conflict(
        f"another command has replaced {what} meanwhile",
        hint="leave it to that one, or start this one again: it goes on where the other stops",
    )


class _Conversion:
    def __init__(
        self,
        connection: Connection,
        schema: str,
        layout: Layout,
        batch_rows: int,
        named: Collection[str] | None,
    ) -> None:
        self._connection = connection
        self._named = named
        self._schema = schema
        self._layout = layout
        self._batch_rows = batch_rows
        self._state = f'"{schema}"."{STATE}"'

    def run(self) -> Iterator[Step]:
        for table in self._begin():
            place = Place(self._schema, table)
            begun = self._patiently(partial(self._start, place))
            if begun is None:
                continue
            if begun:
                yield Step(table, "begun")
            rows, more = 0, True
            while more:
                rows, more = self._patiently(partial(self._copy, place))
                yield Step(table, "copied", rows)
            self._compare(place)
            yield Step(table, "compared", rows)
            self._await_older()
            self._patiently(partial(self._replace, place))
            yield Step(table, "replaced", rows)
        with self._step():
            self._connection.execute(f"DROP TABLE IF EXISTS {self._state}".encode())
        yield Step("", "finished")

    # -- what is to be done

    def _begin(self) -> list[str]:
        """The tables that are left to do; the first time, the note that a conversion is under way is made."""
        with self._step():
            shapes = read_shapes(self._connection, self._schema)
            if not shapes:
                raise SchemaMismatch(f"#{self._schema} has no store", hint="open it once for writing")
            self._check_owner(list(shapes))
            wanted = json.dumps([self._layout.parts, [list(each) for each in self._layout.own]])
            left = [name for name in shapes if shapes[name] != self._layout.shape(table_named(name))]
            if is_under_way(self._connection, self._schema):
                self._check_same(wanted)
            elif left:
                self._check_named(layout_of(shapes))
                self._connection.execute(
                    f"""CREATE TABLE {self._state} (
                          name text PRIMARY KEY, layout text NOT NULL, reached text, rows bigint NOT NULL DEFAULT 0
                        )""".encode()
                )
                self._connection.execute(f"ALTER TABLE {self._state} ENABLE ROW LEVEL SECURITY".encode())
                self._connection.execute(
                    f"INSERT INTO {self._state} (name, layout) VALUES ('', %s)".encode(), (wanted,)
                )
            # The small ones first: what is wrong shows before hours were spent on the ledger.
            return sorted(left, key=lambda name: (self._bytes(name), name))

    def _check_same(self, wanted: str) -> None:
        begun = self._one(f"SELECT layout FROM {self._state} WHERE name = ''")[0]
        if begun != wanted:
            parts, own = json.loads(begun)
            words = Layout(parts, tuple((tenant, count) for tenant, count in own)).words
            raise Conflict(
                f"#{self._schema} is being brought into another layout, and that was not finished",
                hint=f"finish it first: `muniment store partition {words}`",
                details={"parts": parts},
            )

    def _check_named(self, found: Layout | None) -> None:
        """A tenant loses its own partitions only by name, or where there are to be none at all: every table is copied
        for it, and whoever gives the number of the others alone may not know of them."""
        if self._named is None or found is None or not self._layout.parts:
            return
        kept = [(tenant, count) for tenant, count in found.own if tenant not in self._named]
        if kept:
            tenant, count = kept[0]
            raise Conflict(
                f"{tenant!r:.80} has {count} partitions of its own in #{self._schema}, and is not named",
                hint=f"--own {tenant}={count} keeps them, --own {tenant}=0 puts it among the others; nothing was done",
                details={"own": dict(kept)},
            )

    def _check_owner(self, names: list[str]) -> None:
        asked = """SELECT coalesce(bool_and(pg_has_role(current_user, relowner, 'USAGE')), false) FROM pg_class
                   WHERE relnamespace = to_regnamespace(%s) AND relname = ANY (%s)"""
        if not self._one(asked, (f'"{self._schema}"', names))[0]:
            raise StorageFailure(
                f"the role of the URL does not own the tables of #{self._schema}",
                hint="give the URL of the role that opened the store first, or of a superuser",
            )

    def _bytes(self, name: str) -> int:
        asked = """SELECT pg_table_size(%(table)s::regclass) + coalesce(
                     (SELECT sum(pg_table_size(relid)) FROM pg_partition_tree(%(table)s::regclass) WHERE isleaf), 0)"""
        row = self._connection.execute(asked, {"table": Place(self._schema, name).name}).fetchone()
        assert row is not None
        return int(row[0])

    # -- the steps

    def _start(self, place: Place) -> bool | None:
        """The twin, and the trigger that keeps it in step: was it made now? None where another command was here before.

        The lock waits for whoever is writing to the table now.
        """
        with self._step():
            if read_shapes(self._connection, self._schema)[place.table] == self._layout.shape(place.spec):
                return None
            (noted,) = self._one(f"SELECT count(*) FROM {self._state} WHERE name = %s", (place.table,))
            (present,) = self._one("SELECT to_regclass(%s) IS NOT NULL", (place.twin,))
            if present and noted:
                return False
            self._discard(place)  # what somebody left of a twin without a note of how far it had come
            make_twin(self._connection, place, self._layout)
            self._connection.execute(_mirror(place).encode())
            self._connection.execute(
                f"""INSERT INTO {self._state} (name, layout) VALUES (%s, '')
                    ON CONFLICT (name) DO UPDATE SET reached = NULL, rows = 0""".encode(),
                (place.table,),
            )
            return True

    def _copy(self, place: Place) -> tuple[int, bool]:
        """The next rows in the order of the key: how many there are by now, and whether there are more.

        FOR SHARE: a row that is being changed is waited for, and then copied as it came to be; one that is copied is
        changed only after the copy is there for the trigger to change.
        """
        key = ", ".join(f'"{name}"' for name in place.key)
        with self._step(quickly=False):
            see_all(self._connection)
            row = self._connection.execute(
                f"SELECT reached, rows FROM {self._state} WHERE name = %s FOR UPDATE".encode(), (place.table,)
            ).fetchone()
            if row is None:
                raise _met(place.table)
            after = None if row[0] is None else _read_key(row[0])
            given = "" if after is None else f"({key}) > ({', '.join(['%s'] * len(after))})"
            end = self._connection.execute(
                f"""SELECT {key} FROM {place.name} {f"WHERE {given}" if given else ""}
                    ORDER BY {key} OFFSET {self._batch_rows - 1} LIMIT 1""".encode(),
                after or (),
            ).fetchone()
            until = "" if end is None else f"({key}) <= ({', '.join(['%s'] * len(end))})"
            where = " AND ".join(each for each in (given, until) if each)
            copied = self._connection.execute(
                f"""WITH batch AS MATERIALIZED (
                      SELECT * FROM {place.name} {f"WHERE {where}" if where else ""} ORDER BY {key} FOR SHARE
                    ) INSERT INTO {place.twin} SELECT * FROM batch ON CONFLICT DO NOTHING""".encode(),
                (*(after or ()), *(end or ())),
            ).rowcount
            rows = row[1] + copied
            self._connection.execute(
                f"UPDATE {self._state} SET reached = coalesce(%s, reached), rows = %s WHERE name = %s".encode(),
                (None if end is None else _write_key(end), rows, place.table),
            )
            return rows, end is not None

    def _compare(self, place: Place) -> None:
        """Hold the twin against the table, row by row, as one moment shows both. Nobody waits for it."""
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            see_all(self._connection)
            sums = [
                self._one(f"SELECT count(*), sum(hash_record_extended(held, 0)::numeric) FROM {name} AS held")
                for name in (place.name, place.twin)
            ]
        if sums[0] != sums[1]:
            self._patiently(partial(self._give_up, place))
            raise StorageFailure(
                f"the copy of {place.table} has other rows than the table ({sums[1][0]} and {sums[0][0]})",
                hint="the copy was dropped and the table stays; were triggers switched off? Start the command again",
                details={"table": place.table, "rows": sums[0][0], "copied": sums[1][0]},
            )
        self._connection.execute(f"ANALYZE {place.twin}".encode())  # else its first plans would know nothing of it

    def _give_up(self, place: Place) -> None:
        with self._step():
            self._discard(place)

    def _discard(self, place: Place) -> None:
        """Take away the twin and its trigger; the table is as it was."""
        for statement in (
            f"DROP TABLE IF EXISTS {place.twin}",
            f'DROP FUNCTION IF EXISTS "{self._schema}"."{_mirror_name(place)}"() CASCADE',
            f"DROP POLICY IF EXISTS {POLICY} ON {place.name}",
            f"DELETE FROM {self._state} WHERE name = '{place.table}'",
        ):
            self._connection.execute(statement.encode())

    def _await_older(self) -> None:
        """Until every transaction has ended that was open before the last row was copied.

        A reader sees a store as it was when it began: one that began before the copying ended, and came to the table
        after the twin took its place, would miss rows there.
        """
        older = {name for (name,) in self._connection.execute(_OTHERS).fetchall()}
        deadline = time.monotonic() + _OLDER_WAIT_S
        while older := older & {name for (name,) in self._connection.execute(_OTHERS).fetchall()}:
            if time.monotonic() > deadline:
                raise StorageBusy(
                    f"{len(older)} transactions have been open for more than {_OLDER_WAIT_S:.0f} s",
                    hint="end them (pg_stat_activity lists them), then start the command again: it goes on from here",
                )
            time.sleep(0.05)

    def _replace(self, place: Place) -> None:
        with self._step():
            put_in_place(self._connection, place)
            self._connection.execute(f'DROP FUNCTION "{self._schema}"."{_mirror_name(place)}"()'.encode())
            self._connection.execute(f"DELETE FROM {self._state} WHERE name = %s".encode(), (place.table,))

    # -- how a step is taken

    @contextmanager
    def _step(self, *, quickly: bool = True) -> Iterator[None]:
        """One transaction, one process at a time; migrations wait for it, and it for them."""
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("migrate", self._schema),))
            if quickly:
                self._connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
            yield

    def _patiently(self, step: Callable[[], R]) -> R:
        """Try again where somebody held a lock for too long, or where two waited for each other."""
        for tried in range(1, _TRIES + 1):
            try:
                return step()
            except psycopg.Error as error:
                failure = _failure(error, self._schema)
                is_race = isinstance(failure, LostRace) or isinstance(error, psycopg.errors.LockNotAvailable)
                if not is_race or tried == _TRIES:
                    raise failure from error
            time.sleep(_PAUSE_S)
        raise AssertionError("unreachable")

    def _one(self, statement: str, parameters: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        row = self._connection.execute(statement.encode(), parameters).fetchone()
        assert row is not None
        return tuple(row)


def _mirror_name(place: Place) -> str:
    return f"{place.table}__mirror"


def _mirror(place: Place) -> str:
    """What writes to the twin whatever is written to the table. It works as who writes, so the walls hold for it."""
    function = f'"{place.schema}"."{_mirror_name(place)}"'
    same = " AND ".join(f'"{name}" = OLD."{name}"' for name in place.key)
    return f"""
CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $mirror$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE EXCEPTION 'the store is being partitioned: no table of it is truncated' USING ERRCODE = '55006';
  END IF;
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM {place.twin} WHERE {same};
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO {place.twin} VALUES (NEW.*);
  END IF;
  RETURN NULL;
END $mirror$;
CREATE TRIGGER partitioning_rows AFTER INSERT OR UPDATE OR DELETE ON {place.name}
  FOR EACH ROW EXECUTE FUNCTION {function}();
CREATE TRIGGER partitioning_truncate BEFORE TRUNCATE ON {place.name}
  FOR EACH STATEMENT EXECUTE FUNCTION {function}();
"""


def _write_key(key: tuple[Any, ...]) -> str:
    return json.dumps([{"hex": part.hex()} if isinstance(part, bytes) else part for part in key])


def _read_key(text: str) -> tuple[Any, ...]:
    return tuple(bytes.fromhex(part["hex"]) if isinstance(part, dict) else part for part in json.loads(text))
