"""Content that lies outside the store: what an object store must do, and how its rows say what lies there.

An object store holds bytes under keys and knows nothing of events. Everything about it that may fail is the
`StorageFailure` branch of `errors`. This module holds no adapter; those stand in `core.outside`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

__all__ = [
    "ARCHIVED",
    "ARCHIVE_GONE",
    "BrokenSeal",
    "Listed",
    "ObjectKey",
    "ObjectKeys",
    "ObjectRow",
    "ObjectStore",
    "Removal",
]

ARCHIVED = "@"
"""How the body of an entry begins that lies in an archive: `@`, the archive's name in hex, `:`, its number there. No
body of an entry begins so."""
ARCHIVE_GONE = ARCHIVED
"""What stands in its place where the archive is missing, or does not hold it."""


class ObjectRow(NamedTuple):
    """An object of this store, by a name that says nothing of what it holds."""

    name: bytes
    """Of a blob its salted hash, of an archive a random id."""
    use: str
    """`blob`, `archive`; `rewrite`, an archive that still holds what was forgotten; `due`, what is to be deleted;
    `going`, what somebody deletes; `swept`, a key that an earlier version gave up; `store`, the name of this store's
    own folder."""
    subject: str
    """The event of a blob; the receipts of what is due, one to a line."""
    held_at: str
    """The key in the object store."""
    sealed_by: str | None
    """The id of the key it is encrypted with; None where it is not."""
    size: int
    """Of what it holds, in bytes; of what was swept, when that was, in seconds since 1970."""


class Listed(NamedTuple):
    """An object as a list of them has it."""

    key: str
    size: int
    age_s: float
    """By the clock of the object store."""


class Removal(NamedTuple):
    """What came of deleting one object."""

    key: str
    left: int = 0
    """Versions of it that are still there."""
    reason: str = ""
    """Why, where some are."""


class ObjectStore(Protocol):
    """Bytes under keys. Thread-safe. Every call ends within a bounded time."""

    @property
    def location(self) -> str:
        """Where it is, for people: no secret is in it."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Hold these bytes under the key. When it returns they are there; the same again changes nothing."""
        ...

    def get(self, key: str) -> bytes | None:
        """All bytes under the key; None where there is no such object."""
        ...

    def remove(self, key: str) -> Removal:
        """Delete every version of the object, as far as that is allowed; of one that is not there, nothing is left."""
        ...

    def listed(self, prefix: str) -> Iterator[Listed]:
        """The objects whose keys begin so, whoever wrote them."""
        ...


class BrokenSeal(Exception):
    """The bytes are none that this key sealed for this place."""


class ObjectKey(Protocol):
    """What encrypts objects. It is never stored, exported, logged or shown; its id is."""

    @property
    def id(self) -> str: ...

    def seal(self, data: bytes, salt: bytes, place: Sequence[bytes]) -> bytes:
        """The data, encrypted under a key made of this one and the salt: without the salt nobody opens it again."""
        ...

    def open(self, sealed: bytes, salt: bytes, place: Sequence[bytes]) -> bytes:
        """The data again; raises `BrokenSeal` where bytes, salt or place are others."""
        ...


ObjectKeys = Callable[[], Sequence[ObjectKey]]
"""The keys as they are now: the first encrypts, all of them decrypt."""
