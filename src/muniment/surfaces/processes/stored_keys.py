"""API keys in the store, for servers that share it: a key that one of them takes away holds in none of them a second
later. The rows are of no tenant, so no forget takes them and no export has them; they hold hashes of random secrets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from muniment.core.canonical import parse_json
from muniment.core.ports.engine import Engine, Lock, Reader, Transaction
from muniment.core.ports.rows import first, put, select
from muniment.core.ports.schema import KEYS, SERVER, KeyRow
from muniment.errors import Conflict
from muniment.surfaces.http.keys import Key, KeyFile, KeyRing
from muniment.surfaces.http.settings import KEYS_FILE

__all__ = ["FRESH_S", "IN_THE_STORE", "StoredKeys", "are_stored", "open_keys"]

IN_THE_STORE = "store"
"""The setting `keys` that means the store."""
FRESH_S = 1.0
"""For so long, what was read of the keys is taken for what stands."""


class StoredKeys(KeyRing):
    """Keys in a store. Looked at again when what was read is a second old; read again where one of them changed."""

    def __init__(
        self, engine: Engine, now: Callable[[], datetime], clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(now)
        self._engine, self._clock_s = engine, clock_s
        self._lock = threading.Lock()
        self._keys: dict[str, Key] = {}
        self._number = -1
        self._read_s = float("-inf")

    @property
    def place(self) -> str:
        return "the store"

    @property
    def age_s(self) -> float:
        """How long ago the keys were looked at."""
        return self._clock_s() - self._read_s

    def refresh(self) -> None:
        """Look whether a key changed. Waits for the store: not for the event loop."""
        with self._lock:
            started_s = self._clock_s()
            number, rows = self._engine.read(SERVER, self._changed)
            if rows is not None:
                self._keys = {row.key_id: Key.from_wire(parse_json(row.body.encode())) for row in rows}
                self._number = number
            self._read_s = started_s

    def _changed(self, reader: Reader) -> tuple[int, list[KeyRow] | None]:
        number = _newest(reader)
        return number, None if number == self._number else select(reader, KEYS)

    def _loaded(self) -> dict[str, Key]:
        if self.age_s >= FRESH_S:
            self.refresh()
        return self._keys

    def held(self, token: str) -> Key | None:
        """The key of a token by what was read last; whoever asks sees to it that that is fresh."""
        return self._matching(self._keys, token)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """Changed beside the store and written at once; refused where somebody else changed a key meanwhile."""
        self.refresh()
        keys, number = dict(self._keys), self._number
        yield keys
        changed = [key for key_id, key in keys.items() if self._keys.get(key_id) != key]

        def work(tx: Transaction) -> None:
            tx.do(Lock(("keys",)))
            if _newest(tx) != number:
                raise Conflict("another key was changed at the same time", hint="try again")
            put(tx, KEYS, [KeyRow(key.key_id, number + 1, key.to_bytes().decode()) for key in changed])

        try:
            self._engine.write(SERVER, work)
        finally:
            self.refresh()


def _newest(reader: Reader) -> int:
    row = first(reader, KEYS, order=("number",), descending=True)
    return 0 if row is None else row.number


def are_stored(named: str, *, is_shared: bool) -> bool:
    """Do the keys lie in the store? Where they are said to; else where servers share it and there is no file.

    `is_shared` says that the store is a server's own, which others on other machines may serve too.
    """
    if named == IN_THE_STORE:
        return True
    return is_shared and named == KEYS_FILE and not Path(named).exists()


def open_keys(named: str, engine: Engine, now: Callable[[], datetime]) -> KeyRing:
    """The keys of a server over this store, by the setting `keys`."""
    if are_stored(named, is_shared=engine.is_walled_by_the_server):
        return StoredKeys(engine, now)
    return KeyFile(named, now)
