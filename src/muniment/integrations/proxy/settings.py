"""Settings of a proxy: its upstream, its address, access and limits.

    MUNIMENT_PROXY_UPSTREAM, MUNIMENT_PROXY_ANTHROPIC_UPSTREAM, MUNIMENT_PROXY_PORT, MUNIMENT_PROXY_ON_ERROR, …

or the same names in the `[proxy]` table of `muniment.toml`; arguments come first, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput
from muniment.integrations.proxy.routes import checked_upstream
from muniment.integrations.session.memory import check_max_tokens
from muniment.integrations.wrapping.placing import PLACES
from muniment.surfaces.http.settings import KEYS_FILE, is_loopback
from muniment.surfaces.settings import settle_table

__all__ = ["CHOICES", "ProxySettings", "load_proxy_settings"]

CHOICES: Mapping[str, tuple[str, ...]] = {
    "auth": ("auto", "on", "off"),
    "on_error": ("open", "closed"),
    "missing_user": ("refuse", "pass"),
    "place": PLACES,
}


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Settings of a proxy. The defaults suit one machine; all limits on requests are here."""

    upstream: str = ""
    """The model server, such as `https://api.openai.com`."""
    anthropic_upstream: str = ""
    """The server of requests in Anthropic's API, if it is another, such as `https://api.anthropic.com`."""
    host: str = "127.0.0.1"
    """The address it listens on."""
    port: int = 8766
    """The port it listens on; 0 is any free one."""
    auth: str = "auto"
    """auto requires a key (the header `muniment-key`) unless only this machine can reach the proxy; on; off."""
    keys: str = KEYS_FILE
    """The key file, or `store`: the keys of `muniment store keys`."""
    tls_cert: str = ""
    """A certificate (PEM); with its key the proxy uses TLS."""
    tls_key: str = ""
    """The key of the certificate."""
    on_error: str = "open"
    """If memory fails: open continues without it and reports that in `muniment-error`; closed refuses."""
    missing_user: str = "refuse"
    """A request that names no user: refuse it, or pass it on without memory."""
    place: str = "question"
    """Place of the packet: question (before the last question) or system (after the system prompt)."""
    max_tokens: int = 0
    """The maximum tokens of a packet; 0 is the policy's own limit."""
    threads: int = 4
    """Maximum concurrent memory operations."""
    requests_max: int = 512
    """Maximum concurrent requests; more are refused."""
    memory_seconds_max: int = 10
    """Maximum time for memory before a request; after that, `on_error` applies."""
    connect_seconds_max: int = 10
    """Maximum time to connect to the upstream."""
    upstream_seconds_max: int = 600
    """Maximum silence of the upstream, before its answer or within it."""
    body_seconds_max: int = 60
    """Maximum wait for a caller: for the next part of its request, or until it reads the next part of the answer."""
    body_bytes_max: int = 64 << 20
    """The largest request that asks a model."""
    bodies_bytes_max: int = 256 << 20
    """Maximum total size of such requests held at once; those of one key may take half of it."""
    requests_per_minute: int = 6000
    """Limit per key, unless the key sets its own."""
    guesses_per_minute: int = 30
    """Refused keys from one address before it has to wait."""
    passed_bytes_max: int = 1 << 30
    """The largest request that is only passed on."""
    answer_bytes_max: int = 32 << 20
    """The largest answer that is recorded; a larger one still passes."""
    shutdown_seconds: int = 30
    """Maximum time for running requests to end."""

    @property
    def workers(self) -> int:
        """Number of processes, always one."""
        return 1

    @property
    def import_bytes_max(self) -> int:
        """Maximum import size, zero as a proxy accepts no imports."""
        return 0

    @property
    def asks_for_keys(self) -> bool:
        return self.auth == "on" or (self.auth == "auto" and not is_loopback(self.host))


def load_proxy_settings(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> ProxySettings:
    """Resolve every setting; `given` are arguments, None if not given."""
    known = {each.name: type(each.default) for each in fields(ProxySettings)}
    said = settle_table("proxy", "MUNIMENT_PROXY_", known, given, environ)
    return checked(ProxySettings(**{name: _as(known[name], name, value) for name, value in said.items()}))


def checked(settings: ProxySettings) -> ProxySettings:
    """Return the settings with normalised upstreams; raise if one is invalid."""
    for name, allowed in CHOICES.items():
        if getattr(settings, name) not in allowed:
            raise InvalidInput(f"{name} is one of {', '.join(allowed)}", path=f"$.proxy.{name}")
    if not (settings.upstream or settings.anthropic_upstream):
        raise InvalidInput(
            "which server the proxy stands in front of is not said",
            path="$.proxy.upstream",
            hint="give --upstream https://…, or set MUNIMENT_PROXY_UPSTREAM",
        )
    for name in ("upstream", "anthropic_upstream"):
        if getattr(settings, name):
            checked_upstream(getattr(settings, name), name)
    if not 0 <= settings.port <= 65535:
        raise InvalidInput("a port is a number from 0 to 65535", path="$.proxy.port")
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise InvalidInput("TLS takes a certificate and its key", path="$.proxy.tls_key")
    for name in ("tls_cert", "tls_key"):
        if getattr(settings, name) and not Path(getattr(settings, name)).is_file():
            raise InvalidInput(f"there is no file {getattr(settings, name)!r:.200}", path=f"$.proxy.{name}")
    try:
        check_max_tokens(settings.max_tokens or None)
    except InvalidInput as error:
        raise error.within("$.proxy") from None
    for each in fields(ProxySettings):
        if type(each.default) is int and each.name not in ("port", "max_tokens") and getattr(settings, each.name) < 1:
            raise InvalidInput(f"{each.name} should be at least 1", path=f"$.proxy.{each.name}")
    return settings


def _as(kind: type, name: str, found: Any) -> Any:
    if kind is int and isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 16:
        found = int(found)
    if type(found) is not kind:
        wanted = "a whole number" if kind is int else "text"
        raise InvalidInput(f"the setting {name!r} should be {wanted}", path=f"$.proxy.{name}")
    return found
