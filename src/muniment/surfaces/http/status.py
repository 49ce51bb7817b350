"""What a server says of itself without being asked who asks: health, readiness, its own description."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.errors import MunimentError, WrongMethod
from muniment.handles.memory import Memory

__all__ = ["Plain", "ServerStatus"]


class Plain(NamedTuple):
    status: int
    media: str
    body: bytes


class ServerStatus:
    """Alive: the process answers. Ready: the store answers too, and nobody has begun to close."""

    def __init__(self, memory: Memory, describe: Callable[[], bytes], describe_core: Callable[[], bytes]) -> None:
        self._memory = memory
        self._pages: dict[tuple[str, ...], Plain | Callable[[], Plain]] = {
            ("v1", "health"): Plain(200, "application/json", b'{"status":"ok"}'),
            ("v1", "ready"): self._ready,
            ("v1", "openapi.json"): lambda: Plain(200, "application/json", describe()),
            ("v1", "openapi-core.json"): lambda: Plain(200, "application/json", describe_core()),
        }
        self.is_closing = False

    def page(self, method: str, segments: tuple[str, ...]) -> Plain | Callable[[], Plain] | None:
        """What answers at that address, or the answer where nothing has to be asked; None where it is none of these."""
        page = self._pages.get(segments)
        if page is not None and method not in ("GET", "HEAD"):
            raise WrongMethod(f"{method:.20} is not taken there", details={"allowed": ["GET", "HEAD"]})
        return page

    def _ready(self) -> Plain:
        if self.is_closing:
            return Plain(503, "application/json", b'{"reason":"closing","status":"not ready"}')
        try:
            self._memory.store.tenants()
        except MunimentError as error:
            return Plain(503, "application/json", canonical_bytes({"status": "not ready", "reason": error.code}))
        return Plain(200, "application/json", b'{"status":"ready"}')
