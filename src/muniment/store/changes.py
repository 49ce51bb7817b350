"""Changes in a user's scope after a position, found from session ends and the newest items rather than a full scan.
Yields ids and kinds; content is read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES
from muniment.core.scope import UserScope, is_reserved
from muniment.errors import InvalidInput
from muniment.store.context import Context
from muniment.store.ledger import read_body
from muniment.store.positions import (
    SEEN_MAX,
    Read,
    Standpoint,
    Tail,
    TailItem,
    Who,
    builds_where,
    own_receipts,
    read_heads,
    read_tail,
    receipts_where,
    restore,
    seal,
    stand,
)
from muniment.store.reports import Appended, Built, Changes

__all__ = ["begin", "changes_after", "look", "whose"]

ENTRIES_MAX = 256
"""Maximum number of entries named in one answer; it then reports that there are more."""
_RUN_KINDS = ("system", "state_patch")
"""Kinds of entries in which a run reports its own events."""


def whose(tenant_id: str, user_id: str) -> Who:
    """Return the user whose changes are requested, if a user of that name can exist."""
    names = {"tenant_id": tenant_id, "user_id": user_id}
    scope = UserScope.of_given(names, "not a valid scope")
    if is_reserved(scope.user_id):
        raise InvalidInput("that is not the name of a user", path="$.user_id")
    return Who(scope.tenant_id, scope.user_id)


def changes_after(ctx: Context, who: Who, position: str | None) -> Changes:
    """Return what was committed after the position; without one, the current position."""
    return ctx.engine.read(who.tenant_id, lambda reader: begin(reader, who, position)[1])


def begin(reader: Reader, who: Who, position: str | None) -> tuple[Standpoint, Changes]:
    """Start at a position, or at the current one."""
    if position is None:
        here = stand(reader, who)
        return here, _changes(who, here, {})
    at = restore(reader, who, position)
    return _reset(reader, who) if at is None else look(reader, who, at)


def look(reader: Reader, who: Who, at: Standpoint) -> tuple[Standpoint, Changes]:
    """Return the changes after a position, and the next position."""
    heads, found = dict(at.heads), list[Appended]()
    room = ENTRIES_MAX
    is_more = False
    for name, head in read_heads(reader, who):
        read = heads.get(name, Read(0, ""))
        if head.seq == read.seq:
            continue
        rows = _new_entries(reader, name, read.seq, room) if room else []
        if room and not rows:  # the session is shorter than it was: a backup was put in the store's place
            return _reset(reader, who)
        room -= len(rows)
        is_more = is_more or not rows or rows[-1].seq < head.seq
        if rows:
            heads[name] = Read(rows[-1].seq, rows[-1].recorded_at)
            found += _appended(reader, who, name, rows)
    builds, made = _new_builds(reader, who, at.builds)
    shared, named, unseen = _unseen_receipts(reader, who, at.receipts)
    if max(len(made), len(named), len(unseen)) == SEEN_MAX:  # and who knows how many more
        return _reset(reader, who)
    issued = sorted((*named, *own_receipts(reader, who, unseen)), key=lambda item: item.key)
    receipts = Tail(0, at.receipts.newest | {item.key for item in issued}, shared)
    fields: dict[str, Any] = {
        "entries": tuple(found),
        "builds": tuple(_built(item) for item in made),
        "receipts": tuple(item.id for item in issued if item.version == 1),
        "more": is_more,
    }
    then = Standpoint(heads, builds, receipts)
    return then, _changes(who, then, {name: value for name, value in fields.items() if value})


def _reset(reader: Reader, who: Who) -> tuple[Standpoint, Changes]:
    """Return the current position for a caller whose own position can no longer be continued."""
    here = stand(reader, who)
    return here, _changes(who, here, {"reset": True})


def _changes(who: Who, at: Standpoint, fields: dict[str, Any]) -> Changes:
    return Changes(position=seal(who, at), **fields)


class _NewEntry(NamedTuple):
    seq: int
    run_id: str
    kind: str
    recorded_at: str


def _new_entries(reader: Reader, name: tuple[str, str], after_seq: int, limit: int) -> list[_NewEntry]:
    where: tuple[Condition, ...] = (("user_id", "=", name[0]), ("session_id", "=", name[1]))
    return select(reader, ENTRIES, where, into=_NewEntry, order=("seq",), after=(after_seq,), limit=limit)


def _appended(reader: Reader, who: Who, name: tuple[str, str], entries: list[_NewEntry]) -> Iterator[Appended]:
    owner, session_id = name
    names = _names(reader, name, entries)
    for run_id, group in groupby(entries, key=lambda entry: entry.run_id):
        of_run = list(group)
        yield Appended(
            ledger="user" if owner == who.user_id else "bank",
            session_id=session_id,
            run_id=run_id,
            first_seq=of_run[0].seq,
            last_seq=of_run[-1].seq,
            events=tuple(dict.fromkeys(names.get(entry.seq, entry.kind) for entry in of_run)),
        )


class _Content(NamedTuple):
    id: str
    seq: int
    content_hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def _names(reader: Reader, name: tuple[str, str], entries: list[_NewEntry]) -> dict[int, str]:
    """Return the event names of a run's own entries, by their numbers."""
    if not any(entry.kind in _RUN_KINDS for entry in entries):
        return {}
    where: tuple[Condition, ...] = (
        ("user_id", "=", name[0]),
        ("session_id", "=", name[1]),
        ("seq", ">=", entries[0].seq),
        ("seq", "<=", entries[-1].seq),
        ("kind", "in", _RUN_KINDS),
    )
    bodies = {row.seq: read_body(row) or {} for row in select(reader, ENTRIES, where, into=_Content)}
    events = {seq: (body.get("metadata") or {}).get("event") for seq, body in bodies.items()}
    return {seq: event for seq, event in events.items() if isinstance(event, str)}


def _new_builds(reader: Reader, who: Who, tail: Tail) -> tuple[Tail, list[TailItem]]:
    """Return new builds, oldest first."""
    items = read_tail(reader, builds_where(who))
    new = [item for item in reversed(items) if item.key not in tail.newest]
    return Tail(tail.count + len(new), frozenset(item.key for item in items)), new


class _Unseen(NamedTuple):
    shared: frozenset[tuple[str, str, int]]
    """The newest receipts in the shared list."""
    named: list[TailItem]
    """The user's own new items."""
    unseen: list[TailItem]
    """Items of the shared list that were not examined yet."""


def _unseen_receipts(reader: Reader, who: Who, tail: Tail) -> _Unseen:
    named, shared = (read_tail(reader, receipts_where(whom)) for whom in (who, None))
    known = tail.newest | tail.seen
    new = ([item for item in items if item.key not in known] for items in (named, shared))
    return _Unseen(frozenset(item.key for item in shared), *new)


def _built(item: TailItem) -> Built:
    return Built(build_id=item.id, session_id=item.session_id or "", run_id=item.run_id or "")
