"""Rows of what is kept under names for others: the values of a store of a framework, the checkpoints of its threads.

The words stay in the entries; these rows say where which of them stands, so that a read costs what it shows. Their
tables are declared with all others in `core.ports.schema`, which reads these annotations while it loads, so they are no
texts.
"""

from typing import NamedTuple

__all__ = ["LIVE", "NEVER", "REMOVED", "SUPERSEDED", "VALUES_SESSION", "PlaceRow", "PlaceVectorRow", "PrefixRow"]

VALUES_SESSION = "kept_values"
"""The session of an owner in which values are kept: each is forgotten by itself, in all that it ever was."""

LIVE, SUPERSEDED, REMOVED = 1, 2, 3
"""How something that is kept stands."""
NEVER = 2**62
"""When something expires that does not, in microseconds since 1970."""


class PlaceRow(NamedTuple):
    """Where something stands that an entry keeps: one row for each that it keeps, older ones included."""

    entry_id: str
    number: int
    """Which of those that the entry keeps."""
    user_id: str
    session_id: str
    seq: int
    space: str
    """Whose names these are: one store, or one saver."""
    path: str
    """The labels it stands below, each with a sign behind it that no label holds, so that a prefix is a range."""
    name: str
    state: int
    made: int
    """When something was first put under this name, in microseconds since 1970."""
    changed: int
    expires: int


class PrefixRow(NamedTuple):
    """One row for each prefix of the path of what is live: a search below any of them walks along an index."""

    space: str
    prefix: str
    changed: int
    entry_id: str


class PlaceVectorRow(NamedTuple):
    """What a search compares a query with, of one text of one entry; by whom it was made, and a digest of it.

    The row with number -1 says that there is nothing to be compared.
    """

    entry_id: str
    embedder: str
    number: int
    digest: bytes
    data: bytes
