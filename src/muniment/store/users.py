"""Who is in a tenant: the users with a session of their own, as far as anything of it is left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from functools import partial
from typing import NamedTuple

from muniment.core.listing import matches
from muniment.core.owners import RESERVED_PREFIXES
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ENTRIES, ITEMS, SESSIONS
from muniment.errors import InvalidInput
from muniment.store.context import Context
from muniment.store.proving.session_checking import check_session
from muniment.store.reports import UserState

__all__ = ["list_users"]

PAGE_USERS = 128


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
    """Users by their ids, from the first or `after` one, by the key of the sessions: all, or those whose id holds `q`.
    Each page is one transaction, of as many as are wanted at once."""
    if after is not None and not isinstance(after, str):
        raise InvalidInput("after is the id of a user", path="$.after")
    return _pages(ctx, tenant_id, after, PAGE_USERS if limit is None else min(limit, PAGE_USERS), q)


def _pages(ctx: Context, tenant_id: str, after: str | None, size: int, q: str | None) -> Iterator[UserState]:
    while True:
        users, after = ctx.engine.read(tenant_id, partial(_page, after, size, q))
        yield from users
        if after is None:
            return


def _page(after: str | None, size: int, q: str | None, reader: Reader) -> tuple[list[UserState], str | None]:
    """The next users, and the last name that was looked at; None where there are no more."""
    sessions = _next_sessions(reader, after, size, q)
    runs, receipts = _runs_of(reader, tuple(sessions))
    users = []
    for user_id, own in sessions.items():
        left = [each for each in own if runs[each.place] or _is_left(reader, each, receipts[each.place])]
        for each in left:
            check_session(reader, each)
        if left:
            users.append(_user(user_id, left, sum(len(runs[each.place]) for each in left)))
    return users, [*sessions][-1] if len(sessions) == size else None


def _user(user_id: str, sessions: list[_Session], runs: int) -> UserState:
    return UserState(
        user_id=user_id,
        sessions=len(sessions),
        runs=runs,
        events=sum(session.head_seq for session in sessions),
        first_seen_at=min(session.created_at for session in sessions),
        last_seen_at=max(session.head_recorded_at for session in sessions),
    )


def _next_sessions(reader: Reader, after: str | None, size: int, q: str | None) -> dict[str, list[_Session]]:
    """The sessions of the next users, by user. What stands under the names of corpora and banks is stepped over."""
    found: dict[str, list[_Session]] = {}
    for low, high in _between(RESERVED_PREFIXES):
        where: tuple[Condition, ...] = (("user_id", ">=", low),)
        where += () if high is None else (("user_id", "<", high),)
        where += () if after is None else (("user_id", ">", after),)
        for session in stream(reader, SESSIONS, where, into=_Session, order=("user_id", "session_id")):
            if not matches(q, session.user_id):
                continue
            if session.user_id not in found and len(found) == size:
                return found
            found.setdefault(session.user_id, []).append(session)
    return found


def _between(prefixes: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    """The ranges of names that begin with none of these, in order; None is without end."""
    low = ""
    for prefix in sorted(prefixes):
        yield low, prefix
        low = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    yield low, None


def _runs_of(reader: Reader, users: tuple[str, ...]) -> tuple[_Places, _Places]:
    """By user and session: the runs that are there, and the receipts of those that were forgotten."""
    runs, receipts = _Places(set), _Places(set)
    where: tuple[Condition, ...] = (("kind", "=", "run"), ("user_id", "in", users))
    for run in stream(reader, ITEMS, where, into=_Run):
        place = (run.user_id or "", run.session_id or "")
        if run.receipt_id is None:
            runs[place].add(run.id)
        else:
            receipts[place].add(run.receipt_id)
    return runs, receipts


def _is_left(reader: Reader, session: _Session, receipts: Set[str]) -> bool:
    """Whether anything was written to a session since it was forgotten; looks at no more than that and one entry."""
    where: tuple[Condition, ...] = (("user_id", "=", session.user_id), ("session_id", "=", session.session_id))
    for entry in stream(reader, ENTRIES, where, into=_Receipt, order=("seq",), descending=True):
        if entry.receipt_id is None or entry.receipt_id in receipts:
            return entry.receipt_id is None
    return False
