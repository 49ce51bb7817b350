"""What a proxy is told: which upstream it stands in front of, where it listens, who may ask, how much.

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
    """The defaults suit one machine; everything that bounds a request is here."""

    upstream: str = ""
    """The server of the model, such as `https://api.openai.com`."""
    anthropic_upstream: str = ""
    """The server of what asks in Anthropic's way, where it is another, such as `https://api.anthropic.com`."""
    host: str = "127.0.0.1"
    """The address it listens on."""
    port: int = 8766
    """0 is any that is free."""
    auth: str = "auto"
    """auto asks for a key (the header `muniment-key`) unless only this machine can reach the proxy; on; off."""
    keys: str = KEYS_FILE
    """The file of the keys, or `store`: those of `muniment store keys`."""
    tls_cert: str = ""
    """A certificate (PEM); with its key the proxy speaks TLS."""
    tls_key: str = ""
    """The key of the certificate."""
    on_error: str = "open"
    """Where memory fails: open goes on without it and says so in `muniment-error`; closed refuses."""
    missing_user: str = "refuse"
    """A request that does not say whose memory it is: refuse it, or pass it on without memory."""
    place: str = "question"
    """Where the packet stands: before the last question, or behind the system prompt."""
    max_tokens: int = 0
    """The most tokens of a packet; 0 is the policy's own number."""
    threads: int = 4
    """Pieces of memory's work at the same time."""
    requests_max: int = 512
    """Requests at the same time; more are refused."""
    memory_seconds_max: int = 10
    """How long memory may take before a request; beyond it, `on_error` says what happens."""
    connect_seconds_max: int = 10
    """How long the upstream may take to be reached."""
    upstream_seconds_max: int = 600
    """How long the upstream may say nothing, before its answer or within it."""
    body_seconds_max: int = 60
    """How long a caller may keep us waiting: for the next part of its request, or to take the next of its answer."""
    body_bytes_max: int = 64 << 20
    """The largest request that asks a model."""
    bodies_bytes_max: int = 256 << 20
    """Such requests that are held at the same time; those of one key take half of it."""
    requests_per_minute: int = 6000
    """Of one key, unless the key says otherwise."""
    guesses_per_minute: int = 30
    """Refused keys from one address before it has to wait."""
    passed_bytes_max: int = 1 << 30
    """The largest request that is only passed on."""
    answer_bytes_max: int = 32 << 20
    """The largest answer that is recorded; a larger one passes all the same."""
    shutdown_seconds: int = 30
    """How long requests under way may take to end."""

    @property
    def workers(self) -> int:
        """A proxy is one process."""
        return 1

    @property
    def import_bytes_max(self) -> int:
        """A proxy takes in no dumps."""
        return 0

    @property
    def asks_for_keys(self) -> bool:
        return self.auth == "on" or (self.auth == "auto" and not is_loopback(self.host))


def load_proxy_settings(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> ProxySettings:
    """Settle every setting; `given` are arguments, None where not given."""
    known = {each.name: type(each.default) for each in fields(ProxySettings)}
    said = settle_table("proxy", "MUNIMENT_PROXY_", known, given, environ)
    return checked(ProxySettings(**{name: _as(known[name], name, value) for name, value in said.items()}))


def checked(settings: ProxySettings) -> ProxySettings:
    """The same settings, upstreams in one form; refused where something is wrong with them."""
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
