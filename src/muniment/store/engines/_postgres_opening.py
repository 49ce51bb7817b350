"""PostgreSQL servers: addresses, connections with timeouts, errors, confirmed commits, and opening a store.

Nothing here knows what rows mean. No message repeats a password.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.errors import (
    Conflict,
    InvalidInput,
    MunimentError,
    SchemaMismatch,
    StorageBusy,
    StorageFailure,
    StorageFull,
    StorageLost,
    StorageReadOnly,
    TooLarge,
)
from muniment.store.engines.layout import LAYOUT, LAYOUT_TABLE, check_layout, fingerprint, old_store, postgres_tables

__all__ = [
    "LAG_S_MAX",
    "Connection",
    "LostRace",
    "NoAnswer",
    "NoConnection",
    "Ready",
    "Target",
    "check_standbys",
    "commit_confirmed",
    "connect",
    "has_several_hosts",
    "is_pooled",
    "lag_seconds",
    "location_of",
    "lock_number",
    "only_new",
    "prepare",
    "replica_dsn",
    "translate",
    "writable_dsn",
]

# -- connections --------------------------------------------------------------------------------------
#
# Connections with timeouts: a suspended server answers nothing, and its connections do not break.
#
# The machine of a server with stopped processes still acknowledges packets, so no keepalive notices. Where a query is
# answered at once or not at all, or another server can be asked, the wait is bounded here. An abandoned connection is
# closed, since its answer may still come. A commit is never abandoned: the server is asked to cancel its wait, and then
# reports the outcome. Other statements of a write are bounded by the server alone.

_CANCEL_WAIT_S = 5.0


class NoAnswer(psycopg.OperationalError):
    """The server was silent for so long that its connection was closed."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A psycopg connection that waits without limit unless it is given a timeout."""

    patience_s: float | None = None
    break_off_s: float | None = None

    @contextmanager
    def patient(self, seconds: float | None) -> Iterator[None]:
        """Run a block in which each query is answered within these seconds, or raises `NoAnswer`."""
        before, self.patience_s = self.patience_s, seconds
        try:
            yield
        finally:
            self.patience_s = before

    @contextmanager
    def broken_off(self, seconds: float) -> Iterator[None]:
        """Cancel statements that take longer than these seconds, and wait for the server's reply to the cancellation.

        No server timeout applies while a commit waits for its standbys.
        """
        self.break_off_s = seconds
        try:
            yield
        finally:
            self.break_off_s = None

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        if self.break_off_s is not None:
            gen = _nudged(gen, self.break_off_s, self._break_off)
        if self.patience_s is None:
            return super().wait(gen, *args, **kwargs)
        try:
            return super().wait(_bounded(gen, self.patience_s), *args, **kwargs)
        except NoAnswer:
            self.close()
            raise

    def _break_off(self) -> None:
        with suppress(psycopg.Error):  # where the server is not reached, the connection breaks by itself
            self.cancel_safe(timeout=_CANCEL_WAIT_S)


def _bounded(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Drive a psycopg generator, raising `NoAnswer` if it takes longer."""

    def give_up() -> None:
        gen.close()
        raise NoAnswer(f"the server did not answer for {seconds:g} s")

    return _nudged(gen, seconds, give_up)


def _nudged(gen: Generator[Any, Any, Any], seconds: float, nudge: Callable[[], None]) -> Generator[Any, Any, Any]:
    """Count psycopg's polls of the socket, several a second, and act once after this many seconds of waiting."""
    deadline = time.monotonic() + seconds
    ready: Any = None
    while True:
        try:
            wanted = gen.send(ready)
        except StopIteration as done:
            return done.value
        ready = yield wanted
        if not ready and time.monotonic() > deadline:
            deadline = float("inf")
            nudge()


# -- errors -------------------------------------------------------------------------------------------
#
# Translation of PostgreSQL's errors to those of `errors`: the one place that knows SQLSTATE codes.


class LostRace(StorageBusy):
    """A deadlock or serialization failure: rolled back by the server, worth another try."""


class NoConnection(StorageBusy):
    """No connection became available in time: nothing was sent to the server."""


_BY_CODE: dict[str, tuple[type[MunimentError], str, str | None]] = {
    "40001": (LostRace, "another transaction came in between", "try again"),
    "40P01": (LostRace, "two transactions waited for each other", "take locks in one order everywhere"),
    "55P03": (StorageBusy, "another transaction held a lock past the deadline", "try again"),
    "57014": (
        StorageBusy,
        "the server cancelled a statement that took too long",
        "try again; does its statement_timeout leave time enough?",
    ),
    "25P03": (
        StorageLost,
        "the server ended a transaction that stood still",
        "try again; its idle_in_transaction_session_timeout is shorter than what is done between two statements",
    ),
    "25P04": (StorageLost, "the server ended a transaction that took too long", "its transaction_timeout is too short"),
    "53300": (StorageBusy, "the server takes no more connections", "lower the pool size or raise max_connections"),
    "53200": (StorageBusy, "the server has no room for so many locks", "raise max_locks_per_transaction"),
    "25006": (StorageReadOnly, "the server refuses writes", "is it a standby, or set read-only?"),
    "53100": (StorageFull, "the server's disk is full", "free space, then try again"),
    "54000": (TooLarge, "a value is larger than PostgreSQL can hold", None),
    "22P05": (StorageFailure, "the server cannot store a character", "the database must be UTF8"),
    "42501": (StorageFailure, "the server's role lacks a privilege", "grant it the role of the store's tables"),
    "42P01": (SchemaMismatch, "a table of the store is missing", "was its schema dropped?"),
    "3F000": (SchemaMismatch, "the schema of the store is missing", "was it dropped?"),
    "28P01": (StorageFailure, "the server refused the password", "check the URL"),
    "28000": (StorageFailure, "the server refused the role", "check the URL and pg_hba.conf"),
    "3D000": (StorageFailure, "there is no such database", "create it first"),
}
_BY_WORDS = {
    "too many clients": "53300",
    "remaining connection slots are reserved": "53300",
    "too many connections for": "53300",
    "no more connections allowed": "53300",  # PgBouncer's
    "password authentication failed": "28P01",
}
"""SQLSTATE codes by message: libpq reports refused connections as text only; in another language it is `StorageLost`.
"""


def translate(error: psycopg.Error, location: str) -> MunimentError:
    if isinstance(error, NoAnswer):
        return StorageLost(
            f"{location} said nothing: {error}",
            hint="does the server stand still, or has the pooler before it no connection left?",
            details={"location": location},
        )
    code = error.sqlstate or next((code for words, code in _BY_WORDS.items() if words in str(error)), "")
    details = {"location": location, "sqlstate": code, "postgres": str(error).strip()}
    if code in _BY_CODE:
        kind, message, hint = _BY_CODE[code]
        return kind(f"{message} ({location})", hint=hint, details=details)
    lost = code[:2] in ("08", "57") or (not code and isinstance(error, psycopg.OperationalError))
    if lost or (isinstance(error, psycopg.InterfaceError) and "closed" in str(error)):
        return StorageLost(f"the connection to {location} broke", hint="is the server up?", details=details)
    if code[:2] == "53":
        return StorageBusy(f"the server is short of resources ({location})", details=details)
    return StorageFailure(f"PostgreSQL failed on {location}: {error}", details=details)


# -- addresses ----------------------------------------------------------------------------------------
#
# PostgreSQL URLs: several hosts, the replica, and how soon a dead connection is noticed.
#
# Only reads and writes connection strings; connects to nothing and keeps no secret in a message.

LAG_S_MAX = 3600.0
_PATIENCE: dict[str, str] = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""Timeouts for a server whose machine is gone: without them a call would wait for a quarter of an hour."""
_UNKNOWN = re.compile(r'invalid URI query parameter: "(\w{1,40})"')
_HINT_URL = "postgresql://user@host:5432/database; of a password every @ : / ? # and % is encoded (%40 for @)"
_HINT = "such as replica=db2.example.com:5432, or a whole URL with every sign of it encoded"


def writable_dsn(dsn: str, *, read_only: bool) -> str:
    """Return the connection string of the server that accepts writes: of several hosts, the one that does."""
    given = _read(dsn)
    _check_places(given)
    added = {name: value for name, value in _PATIENCE.items() if name not in given}
    if not read_only and has_several_hosts(dsn) and "target_session_attrs" not in given:
        added["target_session_attrs"] = "read-write"
    return make_conninfo(dsn, **added)


def replica_dsn(dsn: str, replica: str) -> str:
    """Return the connection string of one or several replicas: `host:port` with the primary's settings, or a URL."""
    if replica.startswith(("postgresql://", "postgres://")):
        try:
            return writable_dsn(replica, read_only=True)
        except InvalidInput:
            raise InvalidInput("the replica's URL cannot be read", path="$.target", hint=_HINT) from None
    given = _read(dsn)
    for name in ("hostaddr", "target_session_attrs"):
        given.pop(name, None)
    usual = str(given.get("port") or "").partition(",")[0] or "5432"
    places = [_place(each, usual) for each in replica.split(",")]
    given["host"] = ",".join(host for host, _ in places)
    given["port"] = ",".join(port for _, port in places)
    if len(places) > 1:
        given["load_balance_hosts"] = "random"
    return make_conninfo(**_PATIENCE | given)


def has_several_hosts(dsn: str) -> bool:
    return "," in str(_read(dsn).get("host", ""))


def location_of(connection: Connection, dsn: str) -> str:
    """Return host, port and database without user and password; of several hosts, all that were given."""
    info = connection.info
    given = _read(dsn)
    if has_several_hosts(dsn):
        return f"{given['host']}:{given.get('port', info.port)}/{info.dbname}"
    return f"{info.host or 'local'}:{info.port}/{info.dbname}"


def lag_seconds(given: str) -> float:
    """Parse how old an answer from the replica may be, in seconds."""
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LAG_S_MAX or not given.isascii() or "_" in given:
        raise InvalidInput(
            f"replica_lag is a number of seconds from 0 to {LAG_S_MAX:.0f}, not {given!r:.40}",
            path="$.target",
            hint="0 means: as new as the primary's",
        )
    return seconds


def _read(dsn: str) -> dict[str, Any]:
    """Parse a URL as the driver does. Its own error text is not repeated, as it can hold a piece of the password."""
    try:
        return dict(conninfo_to_dict(dsn))
    except psycopg.ProgrammingError as error:
        unknown = _UNKNOWN.match(str(error))
        if unknown is None:
            raise InvalidInput("the PostgreSQL URL cannot be read", path="$.target", hint=_HINT_URL) from None
        raise InvalidInput(
            f"a PostgreSQL URL has no option {unknown[1]}",
            path="$.target",
            hint="schema, pool_size, replica and replica_lag are the store's; the others are libpq's",
        ) from None


def _check_places(given: dict[str, Any]) -> None:
    """Refuse a password whose unescaped delimiter makes the rest read as host and port. It is neither shown nor looked
    up.
    """
    ports = str(given.get("port") or "").split(",")
    if "@" in str(given.get("host") or "") or not all(not port or _is_port(port) for port in ports):
        raise InvalidInput("the PostgreSQL URL names no host and port", path="$.target", hint=_HINT_URL)


def _place(given: str, usual_port: str) -> tuple[str, str]:
    host, colon, port = given.strip().rpartition(":")
    if not colon or port.endswith("]"):
        host, port = given.strip(), usual_port
    host = host.removeprefix("[").removesuffix("]")
    if not host or not _is_port(port) or "@" in host or "=" in host:
        raise InvalidInput(f"no host and port: {_shown(given)!r:.60}", path="$.target", hint=_HINT)
    return host, port


def _shown(given: str) -> str:
    """Return the given replica without its login; nothing of keywords, since any of them may be a password."""
    return "…" if "=" in given else given.rpartition("@")[2]


def _is_port(given: str) -> bool:
    return given.isascii() and given.isdigit() and len(given) <= 5 and 1 <= int(given) <= 65535


# -- confirmed commits --------------------------------------------------------------------------------
#
# Commits that a replica has confirmed (`durability="replicated"`): nothing is acknowledged that one server alone has.
#
# `synchronous_commit = remote_apply` makes the server wait for its synchronous standbys. It does so only where it names
# some, and a cancelled wait ends in a success with a warning; both would be false acknowledgements. So the first is
# refused when the store is opened and at each commit, and the second is an error here, even where a lower durability
# was requested but the server waits anyway. Nothing else is known of replicas.

_STANDBY_HINT = "name a standby in synchronous_standby_names of the primary, or ask for durability=full"
_HEARD = "SET LOCAL client_min_messages = warning; "
_CONFIRMED = """
DO $$ BEGIN
  IF current_setting('synchronous_standby_names') = '' THEN
    RAISE EXCEPTION 'no standby is waited for' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END $$;
SELECT pg_logical_emit_message(true, 'muniment', '') WHERE pg_current_xact_id_if_assigned() IS NULL;
"""
"""A server that took over may name no standbys. A transaction that wrote nothing waits too: its answer may include
another's write whose wait was cancelled.
"""


def check_standbys(connection: Connection, location: str) -> None:
    """Refuse a server that waits for no standby."""
    row = connection.execute("SELECT current_setting('synchronous_standby_names')").fetchone()
    if row is None or not row[0]:
        raise InvalidInput(
            f'durability="replicated" needs a server that waits for a replica, and {location} names none',
            path="$.durability",
            hint=_STANDBY_HINT,
        )


def commit_confirmed(connection: Connection, location: str, wait_s: float, *, required: bool) -> None:
    """Commit, and wait for confirmation by the server's standbys; `StorageLost` if they did not confirm in time.

    The standby list may change while a store is open, and differs once a standby took over: so every commit is bounded.
    With `required`, a server without standbys to wait for commits nothing.
    """
    warnings: list[str] = []

    def listen(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(str(notice.message_primary))

    connection.add_notice_handler(listen)
    said = _HEARD + (_CONFIRMED if required else "") + "COMMIT"
    try:
        with connection.broken_off(wait_s):
            connection.execute(said.encode(), prepare=False)
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        raise StorageFailure(
            f"{location} waits for no replica any more; nothing was written",
            hint=_STANDBY_HINT,
            details={"location": location},
        ) from error
    except psycopg.Error as error:
        raise translate(error, location) from error
    finally:
        connection.remove_notice_handler(listen)
    if warnings:
        raise StorageLost(
            f"{location} has it, and no replica has confirmed it in {wait_s:g} s",
            hint="is the replica up? With an idempotency key the call can be repeated without harm",
            details={"location": location, "postgres": "; ".join(warnings)},
        )


# -- opening ------------------------------------------------------------------------------------------
#
# Opening a PostgreSQL store: reaching the server, bringing its schema up to date, finding the role to work as.
#
# LG-02: row-level security does not bind superusers and roles with BYPASSRLS. Where the URL names such a role, a plain
# role without login is made and every connection works as that one; a store whose connections would not be bound is not
# opened. Holds no connection afterwards.


@dataclass(frozen=True, slots=True)
class Target:
    """The server, the schema in it, and the connection options."""

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
    """The role of every transaction; None where the URL's own role is bound by row-level security."""
    is_pooled: bool
    """A pooler sits in front: statements prepared in one transaction may be missing or different in the next."""


def lock_number(*parts: str) -> int:
    """Return a 64-bit number for an advisory lock; different lists of texts never share an input."""
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
    """Detect a pooler: the server's backend number differs from the one the connection was given."""
    return bool(_one(connection, "SELECT pg_backend_pid()")[0] != connection.info.backend_pid)


def _is_unbound(connection: Connection) -> bool:
    asked = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    return bool(_one(connection, asked)[0])


def _is_made(connection: Connection, schema: str, location: str) -> bool:
    """Return whether the schema has our tables already; refuses another layout or version."""
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
    """Make and grant the tables in one transaction, one process at a time; the others find it done."""
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
