"""A user's entries by session, or a run's: from any place, in either direction; filtered by kind, time and words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import by_ids, first, get, select
from muniment.core.ports.schema import ENTRIES, SESSIONS, EntryRow
from muniment.errors import InvalidInput
from muniment.store.chain import ChainWalk
from muniment.store.context import Context
from muniment.store.ledger import EntryKind, LedgerEntry
from muniment.store.lists.seeking import count_rows, seek
from muniment.store.tombstones import load_entries, load_entry
from muniment.store.turns import text_of

__all__ = ["ENTRY_KINDS", "count_entries", "entry_says", "list_placed"]

ENTRY_KINDS: tuple[str, ...] = get_args(EntryKind)
_ORDER = ("user_id", "session_id", "seq")
_LOOKED = 200
"""Entries examined in one transaction where a filter applies."""

Where = tuple[Condition, ...]


class _Scope(NamedTuple):
    """The entries listed: a user's, a session's, or a run's."""

    user_id: str
    session_id: str | None
    run_id: str | None

    @property
    def where(self) -> Where:
        """Return the conditions, by the index that fits. A run id is unique to a tenant; its user is checked
        separately.
        """
        if self.run_id is not None:
            return (("run_id", "=", self.run_id),)
        where: Where = (("user_id", "=", self.user_id),)
        return where + (() if self.session_id is None else (("session_id", "=", self.session_id),))

    @property
    def order(self) -> tuple[str, ...]:
        """Return the order; within one session, or a run, which has one, by the number alone."""
        return _ORDER if self.session_id is None and self.run_id is None else ("seq",)

    def holds(self, row: EntryRow | _Seen) -> bool:
        told = (row.user_id, row.session_id, row.run_id)
        return all(own in (None, given) for own, given in zip(self, told, strict=True))


class _Seen(NamedTuple):
    """The columns of an entry that decide whether it matches the filter."""

    id: str
    user_id: str
    session_id: str
    run_id: str
    seq: int
    kind: str


def list_placed(
    ctx: Context, tenant_id: str, user_id: str, session_id: str | None, run_id: str | None, asked: ListQuery
) -> Iterator[Placed[LedgerEntry]]:
    """List each entry with its place: its session and number. `since` and `until` refer to when it was written."""
    for name, given in (("user_id", user_id), ("session_id", session_id), ("run_id", run_id)):
        if not isinstance(given, str) and (name == "user_id" or given is not None):
            raise InvalidInput(f"{name} should be a string", path=f"$.{name}")
    scope = _Scope(user_id, session_id, run_id)
    is_whole = (asked.kind, asked.q, asked.since, asked.until, asked.around, run_id) == (None,) * 6
    begun = None if asked.after is None else (user_id, *asked.after)
    walk = ChainWalk(tenant_id, begun) if is_whole and not asked.descending else None

    def read(reader: Reader, after: Any, descending: bool, size: int) -> list[Placed[LedgerEntry]]:
        place = None if after is None else (user_id, *after)
        if asked.since is None and asked.until is None:
            return _stretch(reader, tenant_id, scope, (), place, descending, size, asked, walk)
        return _timed(reader, tenant_id, scope, after, descending, size, asked)

    def find(reader: Reader, entry_id: str) -> Placed[LedgerEntry] | None:
        row = get(reader, ENTRIES, (entry_id,))
        if row is None or not scope.holds(row):
            return None
        return Placed((row.session_id, row.seq), load_entry(reader, tenant_id, row))

    return seek(ctx, tenant_id, read, asked, find)


def _stretch(
    reader: Reader,
    tenant_id: str,
    scope: _Scope,
    more: Where,
    after: Any,
    descending: bool,
    size: int,
    asked: ListQuery,
    walk: ChainWalk | None = None,
) -> list[Placed[LedgerEntry]]:
    """Return the next entries; with a filter, the places of non-matching ones with no value."""
    where, order = (*scope.where, *more), scope.order
    after = None if after is None else after[-len(order) :]
    if asked.kind is None and asked.q is None:
        rows = select(reader, ENTRIES, where, order=order, after=after, descending=descending, limit=size)
        told = {entry.id: entry for entry in load_entries(reader, tenant_id, [row for row in rows if scope.holds(row)])}
        found = [Placed((row.session_id, row.seq), told.get(row.id)) for row in rows]
        if walk is not None:
            for row in rows:
                walk.see(reader, row)
            if len(rows) < size:
                walk.end(reader)
        return found
    limit = max(size, _LOOKED)
    seen = select(reader, ENTRIES, where, into=_Seen, order=order, after=after, descending=descending, limit=limit)
    wanted = [each.id for each in seen if asked.kind in (None, each.kind) and scope.holds(each)]
    meant = {entry.id: entry for entry in load_entries(reader, tenant_id, list(by_ids(reader, ENTRIES, wanted)))}
    shown = {id_: entry for id_, entry in meant.items() if asked.q is None or entry_says(reader, entry, asked.q)}
    return [Placed((each.session_id, each.seq), shown.get(each.id)) for each in seen]


def entry_says(reader: Reader, entry: LedgerEntry, q: str) -> bool:
    """Return whether an entry's text, another part of its body, or its id contains the words."""
    body = entry.body
    if body is None or matches(q, entry.id, body.speaker):
        return body is not None
    rest = body.to_wire()
    rest.pop("content", None)
    return matches(q, text_of(reader, entry)) or matches(q, *_texts_in(rest))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, including keys."""
    if isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from _texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts_in(each)
    elif value is not None:
        yield str(value)


# -- by time ----------------------------------------------------------------------------------------------


class _Session(NamedTuple):
    session_id: str
    head_seq: int


class _Written(NamedTuple):
    seq: int
    recorded_at: str


def _timed(
    reader: Reader, tenant_id: str, scope: _Scope, after: Any, descending: bool, size: int, asked: ListQuery
) -> list[Placed[LedgerEntry]]:
    """Return the next entries written in a window. Times rise within a session, so its part is found by bisection;
    sessions that ended before the window or began after it are skipped.
    """
    found: list[Placed[LedgerEntry]] = []
    for session in _sessions(reader, scope, None if after is None else after[0], descending, size, asked):
        low = _first_since(reader, scope.user_id, session, asked.since)
        high = (
            session.head_seq + 1 if asked.until is None else _first_since(reader, scope.user_id, session, asked.until)
        )
        own = scope._replace(session_id=session.session_id)
        within: Where = (("seq", ">=", low), ("seq", "<", high))
        is_begun = after is not None and after[0] == session.session_id
        place = (scope.user_id, *after) if is_begun else None
        found += _stretch(reader, tenant_id, own, within, place, descending, size - len(found), asked)
        if len(found) >= size:
            break
    return found


def _sessions(
    reader: Reader, scope: _Scope, begun: str | None, descending: bool, size: int, asked: ListQuery
) -> Iterator[_Session]:
    where: Where = (("user_id", "=", scope.user_id),)
    where += () if scope.session_id is None else (("session_id", "=", scope.session_id),)
    where += () if asked.since is None else (("head_recorded_at", ">=", asked.since),)
    where += () if asked.until is None else (("created_at", "<", asked.until),)
    where += () if begun is None else (("session_id", "<=" if descending else ">=", begun),)
    order, after = ("user_id", "session_id"), None
    while True:
        rows = select(
            reader, SESSIONS, where, into=_Session, order=order, after=after, descending=descending, limit=size
        )
        yield from rows
        if len(rows) < size:
            return
        after = (scope.user_id, rows[-1].session_id)


def _first_since(reader: Reader, user_id: str, session: _Session, moment: str | None) -> int:
    """Return the number of the first entry of a session written at or after a moment."""
    low, high = 1, session.head_seq + 1
    while moment is not None and low < high:
        middle = (low + high) // 2
        where: Where = (("user_id", "=", user_id), ("session_id", "=", session.session_id), ("seq", ">=", middle))
        entry = first(reader, ENTRIES, where, into=_Written, order=_ORDER)
        if entry is None or entry.recorded_at >= moment:
            high = middle
        else:
            low = entry.seq + 1
    return low


def count_entries(
    ctx: Context, tenant_id: str, user_id: str, session_id: str | None, run_id: str | None, asked: ListQuery
) -> int | None:
    """Count entries, including forgotten ones; None where a filter applies, or there are too many."""
    if (asked.kind, asked.q, asked.since, asked.until) != (None,) * 4:
        return None
    if session_id is not None and run_id is None:
        session = ctx.engine.read(tenant_id, lambda reader: get(reader, SESSIONS, (user_id, session_id)))
        return 0 if session is None else session.head_seq
    scope = _Scope(user_id, session_id, run_id)
    if run_id is not None:
        begun = ctx.engine.read(tenant_id, lambda reader: first(reader, ENTRIES, scope.where, order=("seq",)))
        if begun is None or not scope.holds(begun):
            return 0
    return count_rows(ctx, tenant_id, "entries", scope.where)
