"""A store behind a server in this process, and connections to it: with keys, where a test is about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import muniment
from muniment.core.outside.system import system_clock
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings

__all__ = ["connected", "key_for"]

URL = "http://localhost"


def key_for(folder: Path, access: Any = "write", tenant: str = "default", user: str | None = None) -> str:
    """A key of the server that `connected` starts over this folder."""
    return KeyFile(folder / "keys.json", system_clock).create("test", tenant=tenant, user=user, access=access).token


@contextmanager
def connected(mem: muniment.Memory, folder: Path, key: str | None = None) -> Iterator[muniment.Memory]:
    """A connection to a server over this store; the server asks for keys where one is given."""
    settings = ServerSettings(
        keys=str(folder / "keys.json"),
        research_dir=str(folder / "research"),
        auth="on" if key is not None else "off",
    )
    with TestClient(create_app(mem, settings), base_url=URL) as http:
        yield muniment.connect(URL, key=key, http=http)
