"""What a PostgreSQL URL says of servers: several hosts, where the replica is, how soon a dead connection is noticed.

Only reads and writes connection strings; connects to nothing and keeps no secret in a message.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.errors import InvalidInput
from muniment.store.engines.postgres.patience import Connection

__all__ = ["LAG_S_MAX", "has_several_hosts", "lag_seconds", "location_of", "replica_dsn", "writable_dsn"]

LAG_S_MAX = 3600.0
_PATIENCE: dict[str, str] = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""A server whose machine is gone does not answer at all: without these a call would wait for a quarter of an hour."""
_UNKNOWN = re.compile(r'invalid URI query parameter: "(\w{1,40})"')
_HINT_URL = "postgresql://user@host:5432/database; of a password every @ : / ? # and % is encoded (%40 for @)"
_HINT = "such as replica=db2.example.com:5432, or a whole URL with every sign of it encoded"


def writable_dsn(dsn: str, *, read_only: bool) -> str:
    """The connection string of the server that takes writes: of several hosts, the one that does."""
    given = _read(dsn)
    _check_places(given)
    added = {name: value for name, value in _PATIENCE.items() if name not in given}
    if not read_only and has_several_hosts(dsn) and "target_session_attrs" not in given:
        added["target_session_attrs"] = "read-write"
    return make_conninfo(dsn, **added)


def replica_dsn(dsn: str, replica: str) -> str:
    """The connection string of the replica, or of several: `host:port` with all else as for the primary, or a URL."""
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
    """Host, port and database without user and password; of several hosts, all that were given."""
    info = connection.info
    given = _read(dsn)
    if has_several_hosts(dsn):
        return f"{given['host']}:{given.get('port', info.port)}/{info.dbname}"
    return f"{info.host or 'local'}:{info.port}/{info.dbname}"


def lag_seconds(given: str) -> float:
    """How old an answer from the replica may be, in seconds."""
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
    """What the driver makes of it. Its own words are not repeated: they can hold a piece of the password."""
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
    """A password with a sign that ends it is read on as host and port. Neither is shown, nor looked up on a network."""
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
    """What was given for a replica, without a login; of keywords nothing, since a password may be any of them."""
    return "…" if "=" in given else given.rpartition("@")[2]


def _is_port(given: str) -> bool:
    return given.isascii() and given.isdigit() and len(given) <= 5 and 1 <= int(given) <= 65535
