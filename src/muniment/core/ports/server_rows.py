"""Rows that the processes of a server share: long works, kept answers, rates, keys.

They are no evidence: no dump has them, no chain covers them, no report tells of them. Their tables are declared with
all others in `core.ports.schema`, which reads these annotations while it loads, so they are no texts.
"""

from typing import NamedTuple

__all__ = ["SERVER", "UPKEEP", "ClearingRow", "KeyRow", "LeaseRow", "RateRow", "ReplyRow", "WorkRow"]

SERVER = "\x1fserver"
"""The tenant of rows that are of no tenant. No tenant's name holds a control character, so it is nobody's, and listed
nowhere."""
UPKEEP = "\x1fupkeep"
"""The tenant of leases on upkeep of the store as a whole; nobody's either."""


class WorkRow(NamedTuple):
    """Long work of a server, as any of its processes tells of it."""

    id: str
    name: str
    user_id: str | None
    status: str
    progress: int
    tries: int
    """How many processes took it up."""
    clearing: int
    """How often answers had been cleared when it began."""
    started_at: str
    finished_at: str | None
    salt: bytes | None
    asked: str | None
    """What was asked, to start it again; None where it cannot be, and once it is finished."""
    answer: str | None
    """Its result or its error."""


class LeaseRow(NamedTuple):
    """Who carries out a work, whichever tenant's: its process counts it on while it lives. A row of `SERVER`; for a
    piece of upkeep, of the tenant whose it is, or of `UPKEEP`."""

    id: str
    tenant: str
    owner: str
    beats: int
    is_open: int


class ReplyRow(NamedTuple):
    """An answer to a request with an idempotency key, as it was sent."""

    user_id: str
    key_hash: bytes
    created_at: str
    kept: int
    """1 while there is an answer; 0 once it ran out."""
    size: int
    status: int
    salt: bytes | None
    said: bytes | None
    """Of the request, under the salt."""
    headers: str | None
    body: bytes | None


class ClearingRow(NamedTuple):
    """How often a forget or an import cleared what was kept of answers."""

    number: int


class RateRow(NamedTuple):
    """How many requests a key has left, in thousandths, and when that was reckoned. A row of `SERVER`."""

    name: str
    left_milli: int
    at_ms: int


class KeyRow(NamedTuple):
    """An API key, by the hashes of its secrets; `number` counts the changes of any key. A row of `SERVER`."""

    key_id: str
    number: int
    body: str
