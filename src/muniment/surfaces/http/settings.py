"""What a server is told: where it listens, who may ask, how much.

    MUNIMENT_HOST, MUNIMENT_PORT, MUNIMENT_AUTH, MUNIMENT_KEYS, MUNIMENT_TLS_CERT, MUNIMENT_TLS_KEY, …

or the same names in the `[server]` table of `muniment.toml`; arguments come first, as everywhere.
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
    """The defaults suit one machine; everything that bounds a request is here."""

    host: str = "127.0.0.1"
    """The address it listens on."""
    port: int = 8765
    """0 is any that is free."""
    auth: str = "auto"
    """on asks for keys, as `muniment serve` does unless it is given something else; off lets in everyone who can reach
    the port; auto, the default of an application made in Python, is off where only this machine can reach it."""
    keys: str = KEYS_FILE
    """The file of the keys: hashes alone, for its owner alone. `store` keeps them in the store, and so does PostgreSQL
    where no file is named and this one is not there."""
    tls_cert: str = ""
    """A certificate (PEM); with its key the server speaks TLS."""
    tls_key: str = ""
    """The key of the certificate."""
    research_dir: str = "muniment-research"
    """Where the files of research runs lie."""
    workers: int = 1
    """Processes that serve, on one socket."""
    threads: int = 2
    """Quick requests of a process that are worked on at the same time; the others wait their turn."""
    long_threads: int = 1
    """Long requests that are worked on beside them at the same time."""
    request_seconds_max: int = 30
    """How long a request may take, waiting included, or a part of a long answer; unless its key says otherwise."""
    waiting_max: int = 2000
    """Requests that wait for their turn."""
    waiting_per_tenant_max: int = 200
    """Of them, those of one tenant."""
    body_bytes_max: int = 2 << 20
    """The largest body of a request, unless its key says otherwise."""
    bodies_bytes_max: int = 64 << 20
    """Bodies of all requests that are held at the same time; those of one key take half of it."""
    import_bytes_max: int = 1 << 30
    """The largest dump that is taken in, and what all dumps on their way in may take on the disk together."""
    requests_max: int = 4096
    """Requests that are open at the same time, streams among them."""
    body_seconds_max: int = 60
    """How long the head of a request, or the next part of its body, may keep us waiting; beyond it, a body has to come
    at 16 KiB a second or more."""
    requests_per_minute: int = 6000
    """Of one key, unless the key says otherwise."""
    guesses_per_minute: int = 30
    """Refused keys from one address before it has to wait."""
    streams_max: int = 512
    """Streams of changes that are open at the same time."""
    streams_per_key_max: int = 64
    """Of them, those of one key."""
    works_max: int = 4
    """Operations of a process that run at the same time."""
    lease_seconds: int = 10
    """After so long without a sign of life of its process, an operation is taken up by another."""
    upkeep: str = ""
    """What a process does beside its requests, shared with all others by leases in the store: some of `index`,
    `scrub` and `extract`, with commas between them. Nothing unless it is set."""
    upkeep_seconds: int = 30
    """How often it looks whether something waits."""
    shutdown_seconds: int = 30
    """How long requests under way may take to end."""
    ready_wait_seconds_max: int = 10
    """A server whose oldest waiting request has waited longer says that it is not ready."""
    metrics: str = "loopback"
    """Who may read `/metrics` beside those with an admin key for every tenant: `loopback`, networks such as
    `10.1.0.0/16` with commas between them, `open` (everybody), `key` (nobody else), `off` (nobody at all)."""
    otel: str = "off"
    """on tells OpenTelemetry of every request, and of what memory was asked."""
    trace_user: str = ""
    """Whose memory it is where a traced span, its key and its headers name nobody; nobody's unless it is set."""
    trace_user_attributes: str = ",".join(USER_ATTRIBUTES)
    """The attributes by which a traced span names its user; empty where spans are not to say."""

    @property
    def asks_for_keys(self) -> bool:
        return self.auth == "on" or (self.auth == "auto" and not is_loopback(self.host))

    @property
    def upkeep_kinds(self) -> tuple[UpkeepKind, ...]:
        """What is done beside requests; an error where it names none."""
        named = [each.strip() for each in self.upkeep.split(",") if each.strip()]
        try:
            return kinds_given(named) if named else ()
        except InvalidInput as error:
            error.path = "$.upkeep"
            raise


def is_loopback(host: str) -> bool:
    """Can only this machine reach it?"""
    if host in ("localhost", ""):
        return host == "localhost"
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load_server_settings(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> ServerSettings:
    """Settle every setting of a server that is started by itself; `given` are arguments, None where not given."""
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
    """The networks that a setting names: `loopback`, `open`, addresses with the length of their prefix; or `key`."""
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
