"""`open_engine`: the one place that turns a target (path or URL) into an engine.

Imports an engine only when needed, so that a path loads no driver. Holds no engine and no setting.
"""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager
from importlib import import_module

from muniment.core.ports.engine import Durability, Engine
from muniment.errors import InvalidInput

__all__ = ["durability_named", "file_named", "new_schema", "open_engine", "refuse_keywords"]

_OWN = ("schema", "pool_size", "replica", "replica_lag")
_POOL_SIZE_MAX = 1000
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):")
_KEYWORD = re.compile(r"[\s;'\"]*([A-Za-z][A-Za-z0-9_ ]*?)\s*=")
_KEYWORDS = frozenset(
    (
        "application_name",
        "channel_binding",
        "client_encoding",
        "connect_timeout",
        "database",
        "dbname",
        "gssencmode",
        "host",
        "hostaddr",
        "keepalives",
        "load_balance_hosts",
        "options",
        "passfile",
        "passwd",
        "password",
        "port",
        "pwd",
        "require_auth",
        "server",
        "service",
        "sslcert",
        "sslkey",
        "sslmode",
        "sslpassword",
        "sslrootcert",
        "target_session_attrs",
        "uid",
        "user",
        "username",
    )
)
_SECRET = re.compile(r"(?i)\b(ssl_?|pgpass|user )?(password|passwd|pwd)\s*=")


def open_engine(
    target: str | os.PathLike[str],
    *,
    durability: str = "normal",
    read_only: bool = False,
) -> Engine:
    """Open `:memory:`, a path, `sqlite:///path` or `postgresql://…`; a SQLite file is made if missing.

    `?schema=name` in a PostgreSQL URL names the schema of the store (by default `muniment`), `?pool_size=16` says how
    many connections it may have at once (by default 8), `?replica=host:port` which server answers reads,
    `&replica_lag=5` how many seconds old its answers may be.
    `durability="normal"` survives a crash of the process, `"full"` a loss of power as well, `"replicated"` the loss of
    the machine: a replica has confirmed each write (PostgreSQL alone).
    """
    level = durability_named(durability)
    name = os.fspath(target)
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise InvalidInput("a store is named by a path or URL", hint=_HINT)
    if isinstance(target, os.PathLike):
        return _sqlite(os.path.join(".", name) if name == ":memory:" else name, level, read_only)
    refuse_keywords(name, "$.target")
    if name == ":memory:":
        return _sqlite(name, level, read_only)
    scheme = _SCHEME.match(name)
    if scheme is None or os.path.exists(name):
        return _sqlite(name, level, read_only)
    match scheme[1].lower():
        case "postgresql" | "postgres":
            return _postgres(name, level, read_only)
        case "sqlite" if name[len("sqlite:") :].startswith("///") and len(name) > len("sqlite:///"):
            from urllib.parse import unquote

            return _sqlite(unquote(name[len("sqlite:///") :]), level, read_only)
        case other:
            raise InvalidInput(f"no engine for {other}:", path="$.target", hint=_HINT)


def refuse_keywords(target: str, path: str) -> None:
    """Refuse `host=… password=…`, which is not a file name: a file would be made with the password in its name. The
    value is not repeated. An existing file of that name is accepted.
    """
    keyword = _KEYWORD.match(target)
    if keyword is None or os.path.exists(target):
        return
    if keyword[1].lower() in _KEYWORDS or _SECRET.search(target) is not None:
        raise InvalidInput(
            "a store on PostgreSQL is named by a URL, and not by keywords",
            path=path,
            hint="write postgresql://user@host:5432/database; a password is best left to PGPASSWORD or ~/.pgpass",
        )


def durability_named(name: str) -> Durability:
    """Return the durability of this name."""
    match name:
        case "normal" | "full" | "replicated":
            return name
        case _:
            raise InvalidInput(
                f"durability is normal, full or replicated, not {name!r:.40}",
                path="$.durability",
                hint="full survives a loss of power, replicated the loss of a PostgreSQL server",
            )


def file_named(target: str) -> str | None:
    """Return the path of the SQLite file that a target names; None where it names another kind of store."""
    refuse_keywords(target, "$.db")
    scheme = None if target == ":memory:" or os.path.exists(target) else _SCHEME.match(target)
    if target == ":memory:":
        return None
    if scheme is None:
        return target
    if scheme[1].lower() == "sqlite" and target[len("sqlite:") :].startswith("///"):
        from urllib.parse import unquote

        return unquote(target[len("sqlite:///") :])
    return None


def new_schema(target: str) -> AbstractContextManager[None]:
    """Let the block make a store at a PostgreSQL address that has none; what it made is removed if it fails."""
    if _SCHEME.match(target) is None or not target.lower().startswith("postgres"):
        raise InvalidInput(f"no store can be kept at {target!r:.80}", path="$.new", hint=_HINT)
    url, options = _split(target)
    _need_driver()
    from muniment.store.engines._postgres_opening import Target, only_new, writable_dsn

    schema = options.get("schema", "muniment")
    _check_schema(schema)
    return only_new(Target(writable_dsn(url, read_only=False), schema, "", 5, 30.0, False))


def _check_schema(schema: str) -> None:
    from muniment.store.engines.postgres import check_name

    check_name(schema)


_HINT = "give :memory:, a path, sqlite:///path or postgresql://host/database"


def _sqlite(path: str, durability: Durability, read_only: bool) -> Engine:
    if durability == "replicated":
        raise InvalidInput(
            "a SQLite store has no replica", path="$.durability", hint="durability=full, or a store on PostgreSQL"
        )
    from muniment.store.engines.sqlite import SqliteEngine

    return SqliteEngine(path, durability=durability, read_only=read_only)


def _postgres(dsn: str, durability: Durability, read_only: bool) -> Engine:
    _need_driver()
    from muniment.store.engines._postgres_opening import lag_seconds, replica_dsn, writable_dsn
    from muniment.store.engines._postgres_replica import ReplicaSettings
    from muniment.store.engines.postgres import POOL_MAX, PostgresEngine

    url, own = _split(dsn)
    lag_s = lag_seconds(own.get("replica_lag", "0"))
    replica = None
    if "replica" in own:
        home = writable_dsn(url, read_only=read_only)
        replica = ReplicaSettings(replica_dsn(home, own["replica"]), lag_s)
    elif "replica_lag" in own:
        raise InvalidInput("replica_lag without replica", path="$.target", hint="name one: replica=host:port")
    return PostgresEngine(
        url,
        schema=own.get("schema", "muniment"),
        pool_max=_pool_size(own.get("pool_size", str(POOL_MAX))),
        durability=durability,
        read_only=read_only,
        replica=replica,
    )


def _need_driver() -> None:
    try:
        import_module("muniment.store.engines.postgres")
    except ImportError as error:
        if (error.name or "psycopg").partition(".")[0] not in ("psycopg", "psycopg_pool", "psycopg_binary"):
            raise
        from muniment.core.outside.system import not_installed

        raise not_installed("PostgreSQL needs psycopg, which is not installed", "postgres") from error


def _split(url: str) -> tuple[str, dict[str, str]]:
    """Split a URL into the part the driver accepts and our own parameters; the last of a repeated one counts."""
    from urllib.parse import unquote

    base, _, query = url.partition("?")
    own: dict[str, str] = {}
    rest: list[str] = []
    for option in query.split("&") if query else ():
        name, _, value = option.partition("=")
        if name in _OWN:
            own[name] = unquote(value)
        else:
            rest.append(option)
    return (f"{base}?{'&'.join(rest)}" if rest else base), own


def _pool_size(given: str) -> int:
    if not given.isascii() or not given.isdigit() or len(given) > 4 or not 1 <= int(given) <= _POOL_SIZE_MAX:
        raise InvalidInput(
            f"pool_size is a whole number from 1 to {_POOL_SIZE_MAX}, not {given!r:.40}",
            path="$.target",
            hint="such as postgresql://host/database?pool_size=16",
        )
    return int(given)
