"""Where the objects of one store lie: their keys, their encryption, and what was read of them lately.

Keys of the object store say nothing: the folder of a tenant is a hash under a random name that this store alone has, so
two stores and two tenants share a bucket and no key, and equal content has equal names nowhere. Writes no row.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from muniment.core.ports.engine import Condition, Count, Engine, KeyTaken
from muniment.core.ports.objects import BrokenSeal, ObjectKey, ObjectKeys, ObjectRow, ObjectStore
from muniment.core.ports.outside import Ids
from muniment.core.ports.rows import get, insert
from muniment.core.ports.schema import OBJECTS
from muniment.core.ports.server_rows import SERVER
from muniment.errors import NoObjectsKey

__all__ = ["Fetched", "Outside", "count_outside", "open_outside"]

CACHE_BYTES_MAX = 64 * 1024 * 1024
_STORE = b"store"


class Fetched:
    """What was read or sent lately, up to so many bytes; never the only copy. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> Any:
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def keep(self, key: str, value: Any, size: int) -> None:
        with self._lock:
            self._size -= self._held.pop(key, (None, 0))[1]
            self._held[key] = (value, size)
            self._size += size
            while self._size > CACHE_BYTES_MAX and len(self._held) > 1:  # the last one stays, whatever its size
                self._size -= self._held.popitem(last=False)[1][1]

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._size = 0


class Outside:
    """The object store that a store was opened with."""

    def __init__(self, store: ObjectStore, keys: ObjectKeys | None, folder: str, ids: Ids) -> None:
        self.store = store
        self.keys = keys
        self._ids = ids
        self.folder = folder
        """Below it lies everything that this store has outside."""
        self.fetched = Fetched()

    def tenant_folder(self, tenant_id: str) -> str:
        return f"{self.folder}/{sha256(f'{self.folder}/{tenant_id}'.encode()).hexdigest()[:32]}"

    def blob_key(self, tenant_id: str, name: bytes) -> str:
        """Another one each time, so that what a sweep took of an earlier attempt is no matter to this one."""
        attempt = self._ids.salts(1)[0].hex()[:16]
        return f"{self.tenant_folder(tenant_id)}/blobs/{name.hex()[:2]}/{name.hex()}-{attempt}"

    def send_blob(self, tenant_id: str, row: ObjectRow, salt: bytes, data: bytes) -> ObjectRow:
        """Put the content of an event where its row says; answers the row as the caller is to write it."""
        key = self._first_key()
        sent = data if key is None else key.seal(data, salt, _place(tenant_id, row.name))
        self.store.put(row.held_at, sent)
        self.fetched.keep(row.held_at, data, len(data))
        return row._replace(sealed_by=None if key is None else key.id)

    def blob_row(self, tenant_id: str, entry_id: str, name: bytes, size: int) -> ObjectRow:
        """What the content of an event will be known by."""
        return ObjectRow(name, "blob", entry_id, self.blob_key(tenant_id, name), None, size)

    def blob(self, tenant_id: str, row: ObjectRow, salt: bytes | None) -> bytes | None:
        """The content of an event; None where it is missing, and bytes that do not hash to its name where it was
        altered."""
        known = self.fetched.get(row.held_at)
        if known is not None:
            return bytes(known)
        data = self.store.get(row.held_at)
        if data is None:
            return None
        if row.sealed_by is not None:
            try:
                data = self.key_named(row.sealed_by).open(data, salt or b"", _place(tenant_id, row.name))
            except BrokenSeal:
                return data
        self.fetched.keep(row.held_at, data, len(data))
        return data

    def key_named(self, key_id: str) -> ObjectKey:
        for key in () if self.keys is None else self.keys():
            if key.id == key_id:
                return key
        raise NoObjectsKey(
            f"this lies outside the store, encrypted with the key {key_id:.40}, which was not given",
            path="$.objects_key",
            hint="add the key with which it was encrypted behind the others",
            details={"key_id": key_id},
        )

    def _first_key(self) -> ObjectKey | None:
        return None if self.keys is None else self.keys()[0]


def count_outside(engine: Engine) -> int:
    """How many objects a store needs, of all tenants."""
    where: tuple[Condition, ...] = (("use", "in", ("blob", "archive", "rewrite")),)
    return sum(engine.read(tenant, lambda reader: reader.do(Count("objects", where))) for tenant in engine.tenants())


def _place(tenant_id: str, name: bytes) -> Sequence[bytes]:
    """What an encrypted object is bound to: it opens nowhere else."""
    return (tenant_id.encode(), name)


def open_outside(
    engine: Engine, store: ObjectStore, keys: ObjectKeys | None, ids: Ids, *, read_only: bool = False
) -> Outside:
    """The objects of this store. The name of its folder is minted once, by whoever first opens it with objects."""

    def known() -> str | None:
        row = engine.read(SERVER, lambda reader: get(reader, OBJECTS, (_STORE,)))
        return None if row is None else row.held_at

    folder = known()
    if folder is None:
        minted = ids.salts(1)[0].hex()
        if read_only:
            return Outside(store, keys, minted, ids)  # nothing of this store lies anywhere yet
        try:
            engine.write(SERVER, lambda tx: insert(tx, OBJECTS, [ObjectRow(_STORE, "store", "", minted, None, 0)]))
            folder = minted
        except KeyTaken:
            folder = known() or minted
    return Outside(store, keys, folder, ids)
