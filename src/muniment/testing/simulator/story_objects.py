"""The object store of a story: files of a folder, that can be looked into, and that does its part badly when told to.

Nothing waits for the disk: stories are ended by kills of processes, not of machines. Requests that change something are
counted, as writes of an engine are; those that read are not, since what is cached differs between engines.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muniment.core.ports.objects import Listed, Removal
from muniment.errors import ObjectsUnavailable
from muniment.testing.simulator.faults import OBJECT_FAULTS, Fault, Strike

__all__ = ["StoryObjects"]

_AGE_S = 48 * 3600.0
"""Every object is older than any grace: a sweep depends on what is named, not on when it runs."""


class StoryObjects:
    """An object store of one store of one story."""

    location = "objects of a story"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._fault: Fault | None = None
        self._strike: Strike | None = None
        self._changes = 0
        self._is_down = False

    # -- what goes wrong

    def arm(self, fault: Fault, strike: Strike) -> None:
        if fault.kind in OBJECT_FAULTS:
            self._fault, self._strike, self._changes = fault, strike, 0

    def disarm(self) -> None:
        self._fault = self._strike = None
        self._is_down = False

    @contextmanager
    def down(self) -> Iterator[None]:
        """While it answers nobody."""
        self._is_down = True
        try:
            yield
        finally:
            self._is_down = False

    def _change(self, work: Callable[[], None]) -> None:
        self._changes += 1
        fault = self._fault
        is_due = fault is not None and self._changes == fault.at
        if fault is not None and is_due and fault.kind == "objects_down":
            self._is_down = True
        self._check()
        work()
        if fault is not None and is_due and self._strike is not None:
            self._strike(fault, None)

    def _check(self) -> None:
        if self._is_down:
            raise ObjectsUnavailable("the object store does not answer", path="$.objects")

    # -- the port

    def put(self, key: str, data: bytes) -> None:
        self._change(lambda: self._put(key, data))

    def _put(self, key: str, data: bytes) -> None:
        self._path(key).write_bytes(data)

    def get(self, key: str) -> bytes | None:
        self._check()
        return self.peek(key)

    def remove(self, key: str) -> Removal:
        self._change(lambda: self._path(key).unlink(missing_ok=True))
        return Removal(key)

    def listed(self, prefix: str) -> Iterator[Listed]:
        self._check()
        for key in self.names():
            if key.startswith(prefix):
                yield Listed(key, self._path(key).stat().st_size, _AGE_S)

    def _path(self, key: str) -> Path:
        return self._folder / key.replace("/", "~")

    # -- behind the store's back

    def names(self) -> list[str]:
        return sorted(path.name.replace("~", "/") for path in self._folder.iterdir())

    def peek(self, key: str) -> bytes | None:
        path = self._path(key)
        return path.read_bytes() if path.exists() else None

    def replace(self, key: str, data: bytes | None) -> None:
        """Alter an object, or lose it."""
        if data is None:
            self._path(key).unlink(missing_ok=True)
        else:
            self._put(key, data)

    def texts(self) -> dict[str, str]:
        """What lies in the objects, archives unpacked."""
        held: dict[str, Any] = {key: self.peek(key) or b"" for key in self.names()}
        plain = {key: zlib.decompress(data) if "/archives/" in key else data for key, data in held.items()}
        return {key: data.decode("utf-8", "replace") for key, data in plain.items()}

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
