"""A port for a server in a process of its own, which cannot be asked which one it was given."""

from __future__ import annotations

import itertools
import os
import socket

__all__ = ["free_port"]

_FIRST, _COUNT = 16_000, 16_000
_numbers = itertools.count(os.getpid() * 97)


def free_port() -> int:
    """Below the ports that systems hand out themselves, so that nobody is given it before the server listens."""
    while True:
        port = _FIRST + next(_numbers) % _COUNT
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
