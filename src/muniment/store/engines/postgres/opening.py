"""Opening a PostgreSQL store: reaching the server, bringing its schema up to date, finding the role to work as.

LG-02: row-level security does not bind superusers and roles with BYPASSRLS. Where the URL names such a role, a
plain role without login is made and every connection works as that one; a store whose connections would not
be bound is not opened. Holds no connection afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from muniment.errors import Conflict, MunimentError, SchemaMismatch, StorageFailure, StorageLost
from muniment.store.engines.ddl import LAYOUT, LAYOUT_TABLE, check_layout, fingerprint, old_store, postgres_tables
from muniment.store.engines.postgres.addresses import location_of
from muniment.store.engines.postgres.confirming import check_standbys
from muniment.store.engines.postgres.failures import translate
from muniment.store.engines.postgres.patience import Connection

__all__ = ["Connection", "Ready", "Target", "connect", "is_pooled", "lock_number", "only_new", "prepare"]


@dataclass(frozen=True, slots=True)
class Target:
    """Which server, which schema in it, and how to behave there."""

    dsn: str
    schema: str
    app_role: str
    connect_timeout_s: int
    busy_timeout_s: float
    read_only: bool


@dataclass(frozen=True, slots=True)
class Ready:
    location: str
    """Without user and password: safe to show."""
    version: str
    schema_number: int
    role: str | None
    """The role every transaction works as; None where the URL's own role is bound by row-level security."""
    is_pooled: bool
    """Somebody stands between: what one transaction prepares, the next may not find, or find another in its place."""


def lock_number(*parts: str) -> int:
    """A 64-bit number for an advisory lock; texts of different lengths and places never run together."""
    digest = hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def connect(target: Target) -> Connection:
    try:
        return Connection.connect(
            target.dsn,
            autocommit=True,
            connect_timeout=target.connect_timeout_s,
            application_name="muniment",
            prepare_threshold=None,
        )
    except psycopg.OperationalError as error:
        failure = translate(error, "the server")
        if type(failure) is StorageLost:
            failure = StorageLost(
                "cannot reach the PostgreSQL server",
                hint="is it up, and are host and port of the URL right?",
                details={"postgres": _without_dsn(error, target)},
            )
        raise failure from None
    except psycopg.ProgrammingError as error:
        raise StorageFailure(
            "the PostgreSQL URL cannot be read", details={"postgres": _without_dsn(error, target)}
        ) from None


def _without_dsn(error: psycopg.Error, target: Target) -> str:
    return str(error).replace(target.dsn, "…").strip()


def prepare(target: Target, *, is_confirmed: bool = False) -> Ready:
    with connect(target) as connection:
        location = f"{location_of(connection, target.dsn)}#{target.schema}"
        try:
            if is_confirmed:
                check_standbys(connection, location)
            version, encoding = _one(connection, "SELECT current_setting('server_version'), getdatabaseencoding()")
            if encoding != "UTF8":
                raise StorageFailure(f"{location} is encoded as {encoding}", hint="create the database with UTF8")
            unbound = _is_unbound(connection)
            is_new = not _is_made(connection, target.schema, location)
            if is_new and target.read_only:
                raise SchemaMismatch(f"{location} has no store", hint="open it once for writing")
            if is_new or (unbound and not target.read_only and not _is_granted(connection, target)):
                _make_tables(connection, target, location, unbound=unbound)
            role = target.app_role if unbound else None
            _verify_bound(connection, target, role)
            return Ready(location, str(version), LAYOUT, role, is_pooled(connection))
        except psycopg.Error as error:
            raise translate(error, location) from error


def _one(connection: Connection, statement: str, parameters: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    return tuple(row)


def is_pooled(connection: Connection) -> bool:
    """Does the server process know itself by another number than the connection was told? A pooler makes one up."""
    return bool(_one(connection, "SELECT pg_backend_pid()")[0] != connection.info.backend_pid)


def _is_unbound(connection: Connection) -> bool:
    asked = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    return bool(_one(connection, asked)[0])


def _is_made(connection: Connection, schema: str, location: str) -> bool:
    """Whether the schema has our tables already; refuses another layout or version."""
    asked = "SELECT to_regclass(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL"
    made, old = _one(connection, asked, (f'"{schema}".{LAYOUT_TABLE}', f'"{schema}".migrations'))
    if made:
        rows = connection.execute(f'SELECT number, fingerprint FROM "{schema}".{LAYOUT_TABLE}').fetchall()
        check_layout([(number, mark) for number, mark in rows], location)
    elif old:
        raise old_store(location)
    return bool(made)


def _is_granted(connection: Connection, target: Target) -> bool:
    asked = """SELECT coalesce(bool_and(has_table_privilege(rolname, %s, 'INSERT')), false)
               FROM pg_roles WHERE rolname = %s"""
    return bool(_one(connection, asked, (f'"{target.schema}".entries', target.app_role))[0])


def _make_tables(connection: Connection, target: Target, location: str, *, unbound: bool) -> None:
    """Make the tables and grant them in one transaction, one process at a time; the others find it done."""
    schema = f'"{target.schema}"'
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("migrate", target.schema),))
        if not _one(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = %s", (target.schema,))[0]:
            connection.execute(f"CREATE SCHEMA {schema}")
        if not _is_made(connection, target.schema, location):
            for statement in postgres_tables(target.schema):
                connection.execute(statement)
            added = f"INSERT INTO {schema}.{LAYOUT_TABLE} (number, fingerprint) VALUES (%s, %s)"
            connection.execute(added, (LAYOUT, fingerprint()))
        if unbound:
            _grant(connection, target)


def _grant(connection: Connection, target: Target) -> None:
    role, schema = f'"{target.app_role}"', f'"{target.schema}"'
    statements = (
        f"""DO $$ BEGIN
              IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{target.app_role}') THEN
                CREATE ROLE {role} NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
              END IF;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another process was first
            END $$""",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        f"REVOKE INSERT, UPDATE, DELETE ON {schema}.{LAYOUT_TABLE} FROM {role}",
    )
    for statement in statements:
        connection.execute(statement)


def _verify_bound(connection: Connection, target: Target, role: str | None) -> None:
    """Refuse to work as a role that row-level security does not bind."""
    try:
        with connection.transaction():
            if role is not None:
                connection.execute(f'SET LOCAL ROLE "{role}"')
            unbound = _is_unbound(connection)
    except psycopg.Error as error:
        raise _unwalled(target) from error
    if unbound:
        raise _unwalled(target)


def _unwalled(target: Target) -> MunimentError:
    return StorageFailure(
        f"no role to work as that row-level security binds ({target.app_role})",
        hint="name a plain role in the URL, or a superuser who can make one",
    )


@contextmanager
def only_new(target: Target) -> Iterator[None]:
    """Refuse a schema that has tables; if the block fails, drop what it made in the schema."""
    held = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
    name = f'"{target.schema}"'
    with connect(target) as connection:
        if _one(connection, held, (name,))[0]:
            raise Conflict(
                f"the schema {target.schema} has tables already",
                path="$.new",
                hint="name another one with ?schema=, or drop it if an upgrade that was killed has left it",
            )
        is_there = _one(connection, "SELECT to_regnamespace(%s) IS NOT NULL", (name,))[0]
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            with connect(target) as connection:
                _drop(connection, target.schema, keep=is_there)


def _drop(connection: Connection, schema: str, *, keep: bool) -> None:
    """Drop a schema; or, if it is to be kept with its grants, the tables and functions in it."""
    if not keep:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
        return
    tables = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p')"
    for (name,) in connection.execute(tables, (f'"{schema}"',)).fetchall():
        connection.execute(f'DROP TABLE IF EXISTS "{schema}"."{name}" CASCADE')
    functions = "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = to_regnamespace(%s)"
    for (name,) in connection.execute(functions, (f'"{schema}"',)).fetchall():
        connection.execute(f"DROP ROUTINE IF EXISTS {name} CASCADE")
