"""The users of a tenant: those with sessions of their own that are not entirely forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from functools import partial
from itertools import islice
from typing import NamedTuple

from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.engine import Condition, Count, Reader
from muniment.core.ports.rows import by_ids, first, get, select, stream
from muniment.core.ports.schema import ENTRIES, ITEMS, SESSIONS
from muniment.core.scope import RESERVED_PREFIXES
from muniment.errors import InvalidInput
from muniment.store.chain import check_session
from muniment.store.context import Context
from muniment.store.lists.seeking import NEWEST, rows_listed
from muniment.store.reports import UserState

__all__ = ["list_users", "next_users", "page_users"]

PAGE_USERS = 128
SESSIONS_MAX, RUNS_MAX = 20, 200
"""Up to this many sessions and runs of a user are examined one by one; beyond that the index is used."""
COUNT_MAX = 200_000
"""Counts stop at this number."""
_ORDER = ("user_id", "session_id")

Where = tuple[Condition, ...]


class _Session(NamedTuple):
    user_id: str
    session_id: str
    head_seq: int
    head_hash: bytes
    head_recorded_at: str
    created_at: str

    @property
    def place(self) -> tuple[str, str]:
        return self.user_id, self.session_id


class _Run(NamedTuple):
    user_id: str | None
    session_id: str | None
    id: str
    receipt_id: str | None


class _Receipt(NamedTuple):
    receipt_id: str | None


_Places = defaultdict[tuple[str, str], set[str]]


def list_users(
    ctx: Context, tenant_id: str, after: str | None = None, limit: int | None = None, q: str | None = None
) -> Iterator[UserState]:
    """List users by id, from the first or after `after`, in session key order: all, or those whose id contains `q`.
    Each page is one transaction.
    """
    asked = ListQuery(q=q, limit=limit, after=None if after is None else (after,))
    return (each.value for each in page_users(ctx, tenant_id, asked) if each.value is not None)


def page_users(ctx: Context, tenant_id: str, asked: ListQuery) -> Iterator[Placed[UserState]]:
    """Page through users with their places (their ids), without a value for forgotten or non-matching ones."""
    after = None if asked.after is None else asked.after[0]
    if after is not None and not isinstance(after, str):
        raise InvalidInput("after is the id of a user", path="$.after")
    return _pages(ctx, tenant_id, after, asked)


def _pages(ctx: Context, tenant_id: str, after: str | None, asked: ListQuery) -> Iterator[Placed[UserState]]:
    size = PAGE_USERS if asked.limit is None else min(asked.limit + 1, PAGE_USERS)
    looked = 0
    while True:
        users = ctx.engine.read(tenant_id, partial(_page, after, size, asked.q))
        for each in users:
            looked += 1
            if each.value is not None:
                yield each
            elif asked.looked_max is not None and looked >= asked.looked_max:
                yield each
                return
        if len(users) < size:
            return
        after = users[-1].place[0]


def _page(after: str | None, size: int, q: str | None, reader: Reader) -> list[Placed[UserState]]:
    """Return the next users; for non-matching ids only the id is read."""
    found: list[Placed[UserState]] = []
    looked: dict[str, list[_Session]] = {}
    for begun in islice(next_users(reader, after), size):
        user_id = begun.user_id
        state = None
        if matches(q, user_id):
            sessions = [begun, *_rest_of(reader, begun)]
            if len(sessions) > SESSIONS_MAX or _has_many_runs(reader, user_id):
                state = _rough(reader, user_id)
            else:
                looked[user_id] = sessions
        found.append(Placed((user_id,), state))
    runs, receipts = _runs_of(reader, tuple(looked))
    return [
        Placed(each.place, _exact(reader, each.place[0], looked[each.place[0]], runs, receipts))
        if each.place[0] in looked
        else each
        for each in found
    ]


def _exact(
    reader: Reader, user_id: str, sessions: list[_Session], runs: _Places, receipts: _Places
) -> UserState | None:
    """Return a user with exact counts; None where nothing is left."""
    left = [each for each in sessions if runs[each.place] or _is_left(reader, each, receipts[each.place])]
    for each in left:
        check_session(reader, each)
    return _user(user_id, left, sum(len(runs[each.place]) for each in left)) if left else None


def _has_many_runs(reader: Reader, user_id: str) -> bool:
    where: Where = (("kind", "=", "run"), ("user_id", "=", user_id))
    return reader.do(Count("items", where, RUNS_MAX + 1)) > RUNS_MAX


def _rough(reader: Reader, user_id: str) -> UserState | None:
    """Return a user with too much to examine one by one: counted by index, and last seen in one of the newest runs."""
    where: Where = (("kind", "=", "run"), ("owner", "=", user_id), *NEWEST)
    oldest = next(iter(rows_listed(reader, where, limit=1)), None)
    if oldest is None:
        return None
    newest = rows_listed(reader, where, descending=True, limit=SESSIONS_MAX)
    held = by_ids(reader, ITEMS, [row.id for row in newest], into=_Run, where=NEWEST)
    names = dict.fromkeys(run.session_id for run in held if run.session_id is not None)
    keys = [(user_id, name) for name in names]
    sessions = [each for key in keys if (each := get(reader, SESSIONS, key)) is not None]
    for each in sessions:
        check_session(reader, each)
    mine: Where = (("user_id", "=", user_id),)
    return UserState(
        user_id=user_id,
        sessions=reader.do(Count("sessions", mine, COUNT_MAX)),
        runs=reader.do(Count("items", where, COUNT_MAX)),
        events=reader.do(Count("entries", mine, COUNT_MAX)),
        first_seen_at=oldest.placed_at,
        last_seen_at=max([each.head_recorded_at for each in sessions], default=oldest.placed_at),
        is_rough=True,
    )


def _user(user_id: str, sessions: list[_Session], runs: int) -> UserState:
    return UserState(
        user_id=user_id,
        sessions=len(sessions),
        runs=runs,
        events=sum(session.head_seq for session in sessions),
        first_seen_at=min(session.created_at for session in sessions),
        last_seen_at=max(session.head_recorded_at for session in sessions),
    )


def next_users(reader: Reader, after: str | None) -> Iterator[_Session]:
    """Yield the first session of each of the next users, skipping their other sessions and the names of corpora and
    banks.
    """
    for low, high in _between(RESERVED_PREFIXES):
        end: Where = () if high is None else (("user_id", "<", high),)
        while high is None or after is None or after < high:
            # one lower bound: of two, an engine may go by the wider one
            begin: Where = (("user_id", ">=", low),) if after is None or after < low else (("user_id", ">", after),)
            begun = first(reader, SESSIONS, (*begin, *end), into=_Session, order=_ORDER)
            if begun is None:
                break
            yield begun
            after = begun.user_id


def _rest_of(reader: Reader, begun: _Session) -> list[_Session]:
    """Return the other sessions of a user, up to one more than the limit."""
    where: Where = (("user_id", "=", begun.user_id), ("session_id", ">", begun.session_id))
    return select(reader, SESSIONS, where, into=_Session, order=_ORDER, limit=SESSIONS_MAX)


def _between(prefixes: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    """Yield the ranges of names that begin with none of these, in order; None means unbounded."""
    low = ""
    for prefix in sorted(prefixes):
        yield low, prefix
        low = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    yield low, None


def _runs_of(reader: Reader, users: tuple[str, ...]) -> tuple[_Places, _Places]:
    """Return, by user and session, the runs that are there, and the receipts of forgotten ones."""
    runs, receipts = _Places(set), _Places(set)
    where: Where = (("kind", "=", "run"), ("user_id", "in", users))
    for run in stream(reader, ITEMS, where, into=_Run):
        place = (run.user_id or "", run.session_id or "")
        if run.receipt_id is None:
            runs[place].add(run.id)
        else:
            receipts[place].add(run.receipt_id)
    return runs, receipts


def _is_left(reader: Reader, session: _Session, receipts: Set[str]) -> bool:
    """Return whether anything was written to a session since it was forgotten, from its newest entries alone."""
    where: Where = (("user_id", "=", session.user_id), ("session_id", "=", session.session_id))
    for entry in stream(reader, ENTRIES, where, into=_Receipt, order=("seq",), descending=True):
        if entry.receipt_id is None or entry.receipt_id in receipts:
            return entry.receipt_id is None
    return False
