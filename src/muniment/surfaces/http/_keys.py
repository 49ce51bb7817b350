"""API keys and their permissions. Only hashes are stored, in a file apart from every store; or, for servers that share
a store and no disk, in the store, without an owner: no forget deletes a key, no export contains one.

    mun_3f9c0a1b2c4d_Rw8…      key id (public, names the key in logs), secret (shown once, never stored)

The secret has 256 random bits, so its SHA-256 cannot be guessed and needs no slow hash. A rotated key has two secrets
until the old one expires.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Literal

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.core.instants import format_instant
from muniment.core.outside.posix import fcntl
from muniment.core.ports.engine import Engine, Lock, Reader, Transaction
from muniment.core.ports.rows import first, put, select
from muniment.core.ports.schema import KEYS, SERVER, KeyRow
from muniment.core.record import Absent, Count, Items, NonEmpty, Record
from muniment.core.scope import IdText
from muniment.errors import Conflict, InvalidInput, NotFound, StorageFailure
from muniment.surfaces.http.settings import KEYS_FILE

__all__ = [
    "FRESH_S",
    "IN_THE_STORE",
    "Key",
    "KeyFile",
    "KeyRing",
    "Made",
    "Secret",
    "StoredKeys",
    "are_stored",
    "lifetime",
    "open_keys",
]

_TOKEN = re.compile(r"mun_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODY = sha256(b"muniment.nobody").hexdigest()
FORMAT = 1


class Secret(Record):
    """The hash of a secret, and its expiry."""

    hash: NonEmpty
    created_at: str
    expires_at: Absent[str] = None


class Key(Record):
    """A stored key."""

    key_id: NonEmpty
    name: str
    tenant: IdText
    """`*` means every tenant."""
    user: Absent[IdText] = None
    """The one user it is for."""
    access: Literal["read", "write", "admin"]
    created_at: str
    expires_at: Absent[str] = None
    revoked_at: Absent[str] = None
    requests_per_minute: Absent[Count] = None
    body_bytes_max: Absent[Count] = None
    request_seconds_max: Absent[Count] = None
    secrets: Items[Secret]

    def public_fields(self) -> dict[str, object]:
        """All fields except the hashes."""
        plain = self.to_wire()
        plain["secrets"] = [{key: each[key] for key in each if key != "hash"} for each in plain["secrets"]]
        return plain


class Made(Record):
    """A new key, with its token, which is shown only once."""

    key: Key
    token: str


class KeyRing(ABC):
    """The keys of a server, wherever they are stored."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    @property
    @abstractmethod
    def place(self) -> str:
        """The storage place, in words."""

    @abstractmethod
    def _loaded(self) -> dict[str, Key]:
        """The current keys, by their ids."""

    @abstractmethod
    def _changing(self) -> AbstractContextManager[dict[str, Key]]:
        """The keys, to be changed by one caller at a time; saved atomically."""

    # -- finding --------------------------------------------------------------------------------------

    def find(self, token: str) -> Key | None:
        """The key of a token, if valid. Takes the same steps for an invalid token."""
        return self._matching(self._loaded(), token)

    def _matching(self, keys: dict[str, Key], token: str) -> Key | None:
        read = _TOKEN.fullmatch(token)
        key_id, secret = read.groups() if read else ("", "")
        key = keys.get(key_id)
        given = sha256(secret.encode()).hexdigest()
        now = format_instant(self._now())
        is_right = False
        for each in (key.secrets if key else ()) or (Secret(hash=_NOBODY, created_at=now),):
            is_equal = hmac.compare_digest(each.hash, given)
            is_right |= is_equal and (each.expires_at is None or now < each.expires_at)
        if key is None or not is_right or key.revoked_at is not None:
            return None
        return key if key.expires_at is None or now < key.expires_at else None

    def list(self) -> list[Key]:
        return sorted(self._loaded().values(), key=lambda key: (key.created_at, key.key_id))

    # -- changing -------------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        *,
        tenant: str,
        user: str | None = None,
        access: Literal["read", "write", "admin"] = "write",
        lasts: timedelta | None = None,
        requests_per_minute: int | None = None,
        body_bytes_max: int | None = None,
        request_seconds_max: int | None = None,
    ) -> Made:
        key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = self._now()
        parts = {
            "key_id": key_id,
            "name": name,
            "tenant": tenant,
            "user": user,
            "access": access,
            "created_at": format_instant(now),
            "expires_at": None if lasts is None else format_instant(now + lasts),
            "requests_per_minute": requests_per_minute,
            "body_bytes_max": body_bytes_max,
            "request_seconds_max": request_seconds_max,
            "secrets": [_hashed(secret, now)],
        }
        key = Key.from_wire({part: value for part, value in parts.items() if value is not None})
        with self._changing() as keys:
            keys[key_id] = key
        return Made(key=key, token=f"mun_{key_id}_{secret}")

    def rotate(self, key_id: str, overlap: timedelta) -> Made:
        """Make a new secret for a key; its current secrets stay valid for the overlap, and no longer than before."""
        secret, now = secrets.token_urlsafe(32), self._now()
        end = format_instant(now + overlap)
        with self._changing() as keys:
            key = _find_key(keys, key_id)
            if key.revoked_at is not None:
                raise InvalidInput(f"the key {key_id} is revoked", path="$.key_id", hint="make a new one")
            kept = [
                each.to_wire() | {"expires_at": min(end, each.expires_at or end)}
                for each in key.secrets
                if each.expires_at is None or format_instant(now) < each.expires_at
            ]
            keys[key_id] = Key.from_wire(key.to_wire() | {"secrets": [*kept, _hashed(secret, now)]})
            return Made(key=keys[key_id], token=f"mun_{key_id}_{secret}")

    def revoke(self, key_id: str) -> Key:
        with self._changing() as keys:
            key = _find_key(keys, key_id)
            gone = key.to_wire() | {"revoked_at": key.revoked_at or format_instant(self._now()), "secrets": []}
            keys[key_id] = Key.from_wire(gone)
            return keys[key_id]


class KeyFile(KeyRing):
    """Keys in a file, read again whenever it has changed, so that a revocation takes effect at once."""

    def __init__(self, path: str | os.PathLike[str], now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.path = Path(path)
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._keys: dict[str, Key] = {}

    @property
    def place(self) -> str:
        return str(self.path)

    def _loaded(self) -> dict[str, Key]:
        with self._lock:
            try:
                found = self.path.stat()
            except FileNotFoundError:
                self._stamp, self._keys = None, {}
                return self._keys
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._stamp:
                self._keys, self._stamp = _read(self.path), stamp
            return self._keys

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """The keys, to be changed by one caller at a time; written atomically, readable only by their owner."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        held = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            keys = _read(self.path) if self.path.exists() else {}
            yield keys
            _write(self.path, keys)
        finally:
            os.close(held)


def _hashed(secret: str, now: datetime) -> dict[str, str]:
    return {"hash": sha256(secret.encode()).hexdigest(), "created_at": format_instant(now)}


def _find_key(keys: dict[str, Key], key_id: str) -> Key:
    """The key of this id; raises if there is none."""
    if key_id not in keys:
        raise NotFound(f"no key {key_id!r:.40}", path="$.key_id", hint="`muniment store keys list` names them")
    return keys[key_id]


def _read(path: Path) -> dict[str, Key]:
    try:
        plain = parse_json(path.read_bytes())
    except OSError as error:
        raise StorageFailure(f"the keys in {path} cannot be read: {error.strerror}") from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise InvalidInput(f"{path} is no file of keys", path="$.format", hint="`muniment store keys create` makes one")
    keys = [Key.from_wire(each) for each in plain.get("keys", ())]
    return {key.key_id: key for key in keys}


def _write(path: Path, keys: dict[str, Key]) -> None:
    listed = [key.to_wire() for key in sorted(keys.values(), key=lambda key: key.key_id)]
    new = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(canonical_bytes({"format": FORMAT, "keys": listed}))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def lifetime(text: str, path: str) -> timedelta:
    """Parse `90d`, `12h`, `30m` or `45s`."""
    read = re.fullmatch(r"(\d{1,6})([dhms])", text)
    if read is None:
        raise InvalidInput(f"{text!r:.40} is no length of time", path=path, hint="such as 90d, 12h, 30m or 45s")
    unit = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}[read[2]]
    return timedelta(**{unit: int(read[1])})


# -- keys in the store --------------------------------------------------------------------------------


IN_THE_STORE = "store"
"""The value of the setting `keys` that means the store."""
FRESH_S = 1.0
"""Seconds for which keys read from the store count as current."""


class StoredKeys(KeyRing):
    """Keys in a store. Checked again when the last read is a second old; read again if one of them changed."""

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
        """Seconds since the keys were last checked."""
        return self._clock_s() - self._read_s

    def refresh(self) -> None:
        """Check whether a key changed. Blocks on the store: not for the event loop."""
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
        """The key of a token, from the last read; the caller makes sure that it is fresh."""
        return self._matching(self._keys, token)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """Change the keys in a copy and write it at once; refused if another process changed a key meanwhile."""
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
    """True if the keys are kept in the store: as set, or if servers share the store and there is no file.

    `is_shared` is true for a store on a database server, which other machines may use too.
    """
    if named == IN_THE_STORE:
        return True
    return is_shared and named == KEYS_FILE and not Path(named).exists()


def open_keys(named: str, engine: Engine, now: Callable[[], datetime]) -> KeyRing:
    """Open the keys of a server over this store, by the setting `keys`."""
    if are_stored(named, is_shared=engine.is_walled_by_the_server):
        return StoredKeys(engine, now)
    return KeyFile(named, now)
