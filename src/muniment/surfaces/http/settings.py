"""Settings of a server: where it listens, who may call it, and its limits.

    MUNIMENT_HOST, MUNIMENT_PORT, MUNIMENT_AUTH, MUNIMENT_KEYS, MUNIMENT_TLS_CERT, MUNIMENT_TLS_KEY, …

or the same names in the `[server]` table of `muniment.toml`; arguments take precedence, as everywhere.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput
from muniment.handles.upkeep.records import UpkeepKind, kinds_given
from muniment.surfaces.settings import settle_table
from muniment.traces.sessions import USER_ATTRIBUTES

__all__ = ["KEYS_FILE", "ServerSettings", "is_loopback", "load_server_settings", "networks_of"]

KEYS_FILE = "muniment.keys.json"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The defaults suit one machine; every limit on a request is here."""

    host: str = "127.0.0.1"
    """The address it listens on."""
    port: int = 8765
    """The port; 0 is any free one."""
    auth: str = "auto"
    """on requires keys, the default of `muniment serve`; off admits everyone who can reach the port; auto, the default
    of an application made in Python, is off if only this machine can reach it.
    """
    keys: str = KEYS_FILE
    """The file of the keys: hashes only, readable only by their owner. `store` keeps them in the store, the default for
    PostgreSQL if no file is named and this one does not exist.
    """
    tls_cert: str = ""
    """A certificate (PEM); with its key the server speaks TLS."""
    tls_key: str = ""
    """The key of the certificate."""
    research_dir: str = "muniment-research"
    """The folder for the files of research runs."""
    workers: int = 1
    """Processes that serve, on one socket."""
    threads: int = 2
    """Quick requests of a process that run at the same time; the others wait their turn."""
    long_threads: int = 1
    """Long requests that run at the same time, in addition."""
    request_seconds_max: int = 30
    """The time limit of a request, waiting included, or of a part of a long answer; unless its key says otherwise."""
    waiting_max: int = 2000
    """The most requests waiting for their turn."""
    waiting_per_tenant_max: int = 200
    """The most of these from one tenant."""
    body_bytes_max: int = 2 << 20
    """The largest body of a request, unless its key says otherwise."""
    bodies_bytes_max: int = 64 << 20
    """Bytes of the bodies of all requests held at the same time; those of one key may take half of it."""
    import_bytes_max: int = 1 << 30
    """The largest dump that can be imported, and the disk space of all dumps being imported."""
    requests_max: int = 4096
    """Requests open at the same time, including streams."""
    body_seconds_max: int = 60
    """The most seconds to wait for a request's head, or for the next part of its body; after that, a body has to arrive
    at 16 KiB a second or more.
    """
    requests_per_minute: int = 6000
    """The rate limit of one key, unless the key says otherwise."""
    guesses_per_minute: int = 30
    """Refused keys from one address before it has to wait."""
    streams_max: int = 512
    """Streams of changes open at the same time."""
    streams_per_key_max: int = 64
    """The most of these of one key."""
    works_max: int = 4
    """Operations of a process that run at the same time."""
    lease_seconds: int = 10
    """Seconds without a heartbeat of its process after which another process takes over an operation."""
    upkeep: str = ""
    """The background upkeep of a process, shared with all others by leases in the store: some of `index`, `scrub` and
    `extract`, separated by commas. None by default.
    """
    upkeep_seconds: int = 30
    """Seconds between checks for pending upkeep."""
    shutdown_seconds: int = 30
    """Seconds that requests in progress may take to end."""
    ready_wait_seconds_max: int = 10
    """A server whose oldest waiting request has waited longer reports that it is not ready."""
    metrics: str = "loopback"
    """Who may read `/metrics` besides those with an admin key for every tenant: `loopback`, networks such as
    `10.1.0.0/16` separated by commas, `open` (everybody), `key` (nobody else), `off` (nobody at all).
    """
    otel: str = "off"
    """on traces every request and memory operation with OpenTelemetry."""
    trace_user: str = ""
    """The user of a traced span if the span, its key and its headers name none; none by default."""
    trace_user_attributes: str = ",".join(USER_ATTRIBUTES)
    """The attributes that name a traced span's user; empty to ignore users in spans."""

    @property
    def asks_for_keys(self) -> bool:
        return self.auth == "on" or (self.auth == "auto" and not is_loopback(self.host))

    @property
    def upkeep_kinds(self) -> tuple[UpkeepKind, ...]:
        """The kinds of background upkeep; raises if the setting names none."""
        named = [each.strip() for each in self.upkeep.split(",") if each.strip()]
        try:
            return kinds_given(named) if named else ()
        except InvalidInput as error:
            error.path = "$.upkeep"
            raise


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the host."""
    if host in ("localhost", ""):
        return host == "localhost"
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load_server_settings(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> ServerSettings:
    """Settle every setting of a standalone server; `given` are arguments, None if not given."""
    known = {each.name: type(each.default) for each in fields(ServerSettings)}
    said = {"auth": "on"} | settle_table("server", "MUNIMENT_", known, given, environ)
    settings = ServerSettings(**{name: _as(known[name], name, value) for name, value in said.items()})
    _check(settings)
    return settings


def _as(kind: type, name: str, found: Any) -> Any:
    if kind is int and isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 16:
        found = int(found)
    if type(found) is not kind:
        wanted = "a whole number" if kind is int else "text"
        raise InvalidInput(f"the setting {name!r} should be {wanted}", path=f"$.{name}")
    return found


def _check(settings: ServerSettings) -> None:
    choices = {"auth": ("auto", "on", "off"), "otel": ("on", "off")}
    for name, allowed in choices.items():
        if getattr(settings, name) not in allowed:
            raise InvalidInput(f"{name} is one of {', '.join(allowed)}", path=f"$.{name}")
    if not 0 <= settings.port <= 65535:
        raise InvalidInput("a port is a number from 0 to 65535", path="$.port")
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise InvalidInput("TLS takes a certificate and its key", path="$.tls_key")
    for name in ("tls_cert", "tls_key"):
        if getattr(settings, name) and not Path(getattr(settings, name)).is_file():
            raise InvalidInput(f"there is no file {getattr(settings, name)!r:.200}", path=f"$.{name}")
    networks_of(settings.metrics)
    least_one = (
        "threads", "long_threads", "workers", "works_max", "waiting_max", "waiting_per_tenant_max",
        "body_bytes_max", "bodies_bytes_max", "import_bytes_max", "body_seconds_max", "request_seconds_max",
        "requests_max", "requests_per_minute", "streams_max", "streams_per_key_max", "lease_seconds", "upkeep_seconds",
    )  # fmt: skip
    _ = settings.upkeep_kinds
    for name in least_one:
        if getattr(settings, name) < 1:
            raise InvalidInput(f"{name} should be at least 1", path=f"$.{name}")


# -- networks ---------------------------------------------------------------------------------------


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LOOPBACK = ("127.0.0.0/8", "::1/128")
_EVERYWHERE = ("0.0.0.0/0", "::/0")
_WORDS = {"loopback": _LOOPBACK, "open": _EVERYWHERE, "key": (), "off": ()}


def networks_of(setting: str) -> tuple[Network, ...]:
    """The networks in a setting: `loopback`, `open`, addresses with the length of their prefix; or `key`."""
    named: list[str] = []
    for part in filter(None, (part.strip() for part in setting.split(","))):
        named += _WORDS.get(part, (part,))
    try:
        return tuple(ipaddress.ip_network(each) for each in named)
    except ValueError:
        raise InvalidInput(
            f"metrics names networks, not {setting!r:.100}",
            path="$.metrics",
            hint="loopback, open, key, off, or networks such as 10.1.0.0/16, with commas between them",
        ) from None
