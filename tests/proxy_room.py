"""A proxy on a port of its own, in a thread, in front of the server of `model_server`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import muniment
from model_server import Server
from muniment.integrations.proxy.callers import Defaults
from muniment.integrations.proxy.serving import make_proxy
from muniment.integrations.proxy.settings import ProxySettings

__all__ = ["proxying", "stored"]


@contextmanager
def proxying(mem: muniment.Memory, upstream: str, **more: Any) -> Iterator[Server]:
    """The proxy's address, in the shape in which the doors of `model_server` make clients for it."""
    defaults = Defaults("default", more.pop("user", ""), "agent")
    settings = replace(ProxySettings(upstream=upstream, port=0), **more)
    started = threading.Event()
    found = Server()

    def ready(port: int) -> None:
        found.url = f"http://127.0.0.1:{port}"
        started.set()

    server = make_proxy(mem, settings, defaults, on_start=ready)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(20), "the proxy did not start"
    try:
        yield found
    finally:
        for client in found.clients:
            client.close()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive(), "the proxy did not stop"


def stored(mem: muniment.Memory, user: str = "ana", session: str | None = None) -> list[tuple[str, str]]:
    """What was said, in order."""
    named = {"user_id": user} | ({} if session is None else {"session_id": session})
    entries = mem.ledger.entries(**named)
    return [(each.role, each.content or "") for each in entries if each.kind in ("message", "tool_result")]
