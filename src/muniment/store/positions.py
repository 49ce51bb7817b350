"""Positions: how far a reader of a user's changes has read.

A position is kept whole while the changes are watched. It also has a short text form, from which the reader can
continue later, in any process.

The text names the sessions written last, and the total number of entries. So restoring it either yields the exact place
in every session, or reports that it cannot.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, NamedTuple, cast

from muniment.core.canonical import canonical_bytes, digest_of, parse_json
from muniment.core.ports.engine import Condition, Count, Reader, Row
from muniment.core.ports.rows import get, select
from muniment.core.ports.schema import ENTRIES, ITEMS, SESSIONS
from muniment.core.scope import user_bank
from muniment.errors import InvalidInput, InvalidJson
from muniment.store.items import latest, receipts_of

__all__ = [
    "SEEN_MAX",
    "Read",
    "Standpoint",
    "Tail",
    "TailItem",
    "Who",
    "builds_where",
    "own_receipts",
    "read_heads",
    "read_tail",
    "receipts_where",
    "restore",
    "seal",
    "stand",
]

LISTED_MAX = 8
SEEN_MAX = 64
"""Number of the newest builds, and receipts, that a position remembers to recognise later ones."""
_PAGE_ROWS = 256
_ERASED_LOOKED_AT = 32
"""Number of erased things of a receipt that are checked for their owner."""
_FORMAT = 2
_SEALED_CHARS = 24
Where = tuple[Condition, ...]
_Key = tuple[str, str, int]
"""When an item was made, its id and version."""


class Who(NamedTuple):
    """The owner of the changes: a user, with that user's bank."""

    tenant_id: str
    user_id: str

    @property
    def owners(self) -> tuple[str, str]:
        """Return the names that own the entries: the user's, and that of the user's bank."""
        return self.user_id, user_bank(self.user_id)


class Read(NamedTuple):
    """The end of the read part of a session: the entry's number, and when it was recorded."""

    seq: int
    recorded_at: str


@dataclass(frozen=True, slots=True)
class Tail:
    """Items of a kind: their number, and the newest by creation time, id and version.

    For receipts, which no user owns, only those that concern the user: others do not move a position. Those that
    concern several users are in a shared list, as are those older than lists.
    """

    count: int
    newest: frozenset[_Key] = field(default_factory=frozenset)
    seen: frozenset[_Key] = field(default_factory=frozenset)
    """Receipts in the shared list that were examined. While they are few, all are examined again, and the text of a
    position does not include them.
    """

    @property
    def last(self) -> _Key:
        return max(self.newest, default=("", "", 0))


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Everything that a reader has seen."""

    heads: Mapping[tuple[str, str], Read]
    """By owner and session."""
    builds: Tail
    receipts: Tail


# -- reading ------------------------------------------------------------------------------------------


def stand(reader: Reader, who: Who) -> Standpoint:
    """Return the position of a reader who has read everything there is."""
    return Standpoint(dict(read_heads(reader, who)), _builds(reader, who), _receipts(reader, who))


def read_heads(reader: Reader, who: Who) -> Iterator[tuple[tuple[str, str], Read]]:
    """Yield the end of each session, by the key of the sessions."""
    for owner in who.owners:
        for session in select(reader, SESSIONS, (("user_id", "=", owner),), into=_SessionEnd):
            yield (owner, session.session_id), Read(session.head_seq, session.head_recorded_at)


class _SessionEnd(NamedTuple):
    session_id: str
    head_seq: int
    head_recorded_at: str


class TailItem(NamedTuple):
    """One of the newest items of a kind, with the columns an index holds."""

    created_at: str
    id: str
    version: int
    session_id: str | None
    run_id: str | None

    @property
    def key(self) -> _Key:
        return self.created_at, self.id, self.version


def builds_where(who: Who) -> Where:
    """Select a user's builds, which have no name."""
    return ("kind", "=", "build"), ("user_id", "=", who.user_id), ("name", "=", None)


def receipts_where(who: Who | None) -> Where:
    """Select the receipts that concern this user alone; without a user, those in the shared list."""
    name = receipts_of(None if who is None else who.user_id)
    return ("kind", "=", "receipt"), ("user_id", "=", None), ("name", "=", name)


def read_tail(reader: Reader, where: Where) -> list[TailItem]:
    """Read the newest of these items, newest first."""
    order = ("created_at", "id", "version")
    return select(reader, ITEMS, where, into=TailItem, order=order, descending=True, limit=SEEN_MAX)


def own_receipts(reader: Reader, who: Who, receipts: Iterable[TailItem]) -> list[TailItem]:
    """Return those receipts in the shared list that concern something of this user's."""
    known: dict[str, bool] = {}
    for receipt in receipts:
        if receipt.id not in known:
            item = latest(reader, receipt.id)
            known[receipt.id] = item is not None and _concerns(reader, who, item.plain())
    return [receipt for receipt in receipts if known[receipt.id]]


def _concerns(reader: Reader, who: Who, receipt: dict[str, Any]) -> bool:
    if receipt["selector"].get("user_id") == who.user_id:
        return True
    erased = receipt["erased"][:_ERASED_LOOKED_AT]
    return any(_owner(reader, each["kind"], each["id"]) in who.owners for each in erased)


def _owner(reader: Reader, kind: str, id_: str) -> str | None:
    if kind == "event":
        entry = get(reader, ENTRIES, (id_,))
        return None if entry is None else entry.user_id
    item = latest(reader, id_)
    return None if item is None else item.user_id


def _receipts(reader: Reader, who: Who) -> Tail:
    shared = read_tail(reader, receipts_where(None))
    own = [*read_tail(reader, receipts_where(who)), *own_receipts(reader, who, shared)]
    return Tail(0, frozenset(item.key for item in own), frozenset(item.key for item in shared))


def _builds(reader: Reader, who: Who) -> Tail:
    newest = frozenset(item.key for item in read_tail(reader, builds_where(who)))
    return Tail(reader.do(Count("items", builds_where(who))), newest)


# -- as text ------------------------------------------------------------------------------------------


def seal(who: Who, at: Standpoint) -> str:
    """Encode the position in a few hundred characters."""
    listed = nlargest(LISTED_MAX, at.heads.items(), key=lambda each: (each[1].recorded_at, each[0]))
    since = listed[-1][1].recorded_at if len(listed) < len(at.heads) else ""
    owners = who.owners
    plain = [
        _FORMAT,
        _owner_digest(who),
        sum(read.seq for read in at.heads.values()),
        since,
        [[owners.index(owner), session_id, *read] for (owner, session_id), read in listed],
        _sealed(who, at.builds),
        _sealed(who, at.receipts) + _sealed_seen(who, at.receipts.seen),
    ]
    return base64.urlsafe_b64encode(canonical_bytes(plain)).decode().rstrip("=")


def _sealed(who: Who, tail: Tail) -> str:
    """Return a digest that identifies a tail without revealing it."""
    return digest_of(["muniment.tail.v1", *who, tail.count, *tail.last])[:_SEALED_CHARS]


def _sealed_seen(who: Who, seen: frozenset[_Key]) -> str:
    """Return how far the shared list was examined; nothing while all of it still can be."""
    return _digest_seen(who, seen) if len(seen) >= SEEN_MAX else ""


def _digest_seen(who: Who, seen: frozenset[_Key]) -> str:
    """Return a digest of the newest of these, as for a tail."""
    return digest_of(["muniment.seen.v1", *who, *max(seen)])[:_SEALED_CHARS]


def _owner_digest(who: Who) -> str:
    """Return a digest of the position's owner, so that it is not accepted for another user."""
    return digest_of(["muniment.position.v1", *who])[:12]


def restore(reader: Reader, who: Who, position: str) -> Standpoint | None:
    """Restore a sealed position; None where later changes can no longer be determined."""
    total, since, listed, builds, receipts = _opened_position(who, position)
    owners = who.owners
    listed_heads = {
        (owners[owner], session_id): Read(seq, recorded_at) for owner, session_id, seq, recorded_at in listed
    }
    heads: dict[tuple[str, str], Read] = {}
    for name, head in read_heads(reader, who):
        read = listed_heads.get(name) or (head if head.recorded_at <= since else _last_by(reader, name, since))
        if read is not None:
            heads[name] = read
    built, issued = _builds_then(reader, who, builds), _receipts_then(reader, who, receipts)
    if sum(read.seq for read in heads.values()) != total or built is None or issued is None:
        return None
    return Standpoint(heads, built, issued)


def _last_by(reader: Reader, name: tuple[str, str], since: str) -> Read | None:
    """Return a session's last entry recorded by then; reads as many rows as there are new ones."""
    where: tuple[Condition, ...] = (("user_id", "=", name[0]), ("session_id", "=", name[1]))
    after: Row | None = None
    while True:
        page = select(reader, ENTRIES, where, into=Read, order=("seq",), after=after, descending=True, limit=_PAGE_ROWS)
        for read in page:
            if read.recorded_at <= since:
                return read
        if len(page) < _PAGE_ROWS:
            return None
        after = (page[-1].seq,)


def _builds_then(reader: Reader, who: Who, sealed: str) -> Tail | None:
    """Return the earlier state of the builds: today's without the newest few; None if others came in between, or too
    many.
    """
    now = _builds(reader, who)
    tails = (Tail(now.count - new, newest) for new, newest in _without_newest(now.newest))
    return next((tail for tail in tails if _sealed(who, tail) == sealed), None)


def _receipts_then(reader: Reader, who: Who, sealed: str) -> Tail | None:
    """Return the earlier state of the receipts and of the shared list; None as for builds."""
    now = _receipts(reader, who)
    own, mark = sealed[:_SEALED_CHARS], sealed[_SEALED_CHARS:]
    looked_at = (seen for _, seen in _without_newest(now.seen) if seen and _digest_seen(who, seen) == mark)
    seen = next(looked_at, None) if mark else frozenset[_Key]()
    tails = (newest for _, newest in _without_newest(now.newest))
    newest = next((newest for newest in tails if _sealed(who, Tail(0, newest)) == own), None)
    return None if newest is None or seen is None else Tail(0, newest, seen)


def _without_newest(keys: frozenset[_Key]) -> Iterator[tuple[int, frozenset[_Key]]]:
    """Yield these keys without the newest none, one, two, …, with how many are left out."""
    newest_first = sorted(keys, reverse=True)
    return ((new, frozenset(newest_first[new:])) for new in range(len(newest_first) + 1))


def _opened_position(who: Who, position: str) -> tuple[int, str, list[list[Any]], str, str]:
    """Return the parts of a position that was sealed for this user."""
    try:
        plain = parse_json(base64.b64decode(position + "=" * (-len(position) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, InvalidJson):
        plain = None
    if not _is_position(plain) or plain[:2] != [_FORMAT, _owner_digest(who)]:
        raise InvalidInput(
            "not a position of this user's changes", path="$.after", hint="send back `position` as it was answered"
        )
    return cast("tuple[int, str, list[list[Any]], str, str]", tuple(plain[2:]))


def _is_position(plain: Any) -> bool:
    def has(value: Any, *kinds: type) -> bool:
        return isinstance(value, list) and tuple(map(type, value)) == kinds

    return has(plain, int, str, int, str, list, str, str) and all(
        has(each, int, str, int, str) and each[0] in (0, 1) for each in plain[4]
    )
