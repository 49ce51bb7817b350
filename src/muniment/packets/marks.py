"""The session's mark table: the number by which its packets cite each piece of evidence.

A number is assigned once in a session and never reused, so that `[7]` in an old answer keeps its meaning, or is known
to be forgotten. Concurrent composers agree: one that finds its number taken composes again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Condition, Lock, Reader, Transaction
from muniment.core.ports.rows import by_ids, first, insert, select
from muniment.core.ports.schema import MARKS, MarkRow
from muniment.core.scope import Scope

__all__ = ["KeptMarks", "SessionMarks", "assign_marks", "keep_marks", "read_marks"]

SESSIONS_MAX, KEPT_MAX = 64, 4096
"""The number of sessions whose table is cached, and of marks per session; larger tables are read selectively."""
_IN_ORDER = ("user_id", "session_id", "number")


class SessionMarks(NamedTuple):
    """The mark numbers of some evidence in a session."""

    numbers: dict[str, int]
    """Assigned numbers, by evidence id."""
    next_number: int
    """The first unassigned number."""

    def extended(self, evidence_ids: Iterable[str]) -> dict[str, int]:
        """A number for each id: its existing one, else the next free ones in this order."""
        found: dict[str, int] = {}
        free = self.next_number
        for id_ in evidence_ids:
            if id_ in found:
                continue
            if id_ in self.numbers:
                found[id_] = self.numbers[id_]
            else:
                found[id_], free = free, free + 1
        return found


class KeptMarks:
    """Cache of mark tables, by session. Thread-safe.

    Numbers are assigned once, so cached ones stay valid and only later ones are read. If the last cached mark is
    missing, as after its user was deleted, the cache entry is dropped.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str, str], tuple[dict[str, int], MarkRow]] = OrderedDict()
        self._lock = threading.Lock()

    def numbers(self, reader: Reader, scope: Scope, last: MarkRow) -> dict[str, int] | None:
        """All numbers of a session by evidence id, given the last one; None if they are too many to cache."""
        key = (scope.tenant_id, scope.user_id, scope.session_id)
        if last.number > KEPT_MAX:
            return None
        with self._lock:
            numbers, known_to = self._held.pop(key, (None, None))
        if numbers is None or last != known_to:
            since = 1 if known_to is None else known_to.number
            rows = select(reader, MARKS, (*_of_session(scope), ("number", ">=", since)), order=_IN_ORDER)
            if known_to is not None and rows[:1] != [known_to]:
                rows, numbers = select(reader, MARKS, _of_session(scope), order=_IN_ORDER), None
            numbers = (numbers or {}) | {row.evidence_id: row.number for row in rows}
        with self._lock:
            self._held[key] = numbers, last
            while len(self._held) > SESSIONS_MAX:
                self._held.popitem(last=False)
        return numbers

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


def read_marks(
    reader: Reader, scope: Scope, evidence_ids: Iterable[str], kept: KeptMarks | None = None
) -> SessionMarks:
    """The existing numbers of these ids in the session, and the next free one. Takes two queries, whatever its length.

    `kept` caches such tables between read-only transactions.
    """
    ids = frozenset(evidence_ids)
    of_session = _of_session(scope)
    last = first(reader, MARKS, of_session, order=_IN_ORDER, descending=True)
    if last is None:
        return SessionMarks({}, 1)
    known = None if kept is None else kept.numbers(reader, scope, last)
    if known is None:
        rows = by_ids(reader, MARKS, sorted(ids), column="evidence_id", where=of_session)
        known = {row.evidence_id: row.number for row in rows}
    return SessionMarks({id_: known[id_] for id_ in sorted(ids & known.keys())}, last.number + 1)


def assign_marks(tx: Transaction, scope: Scope, evidence_ids: Iterable[str]) -> dict[str, int]:
    """A number for each id, in the caller's transaction: its existing one, else newly assigned and stored."""
    ids = list(dict.fromkeys(evidence_ids))
    _lock(tx, scope)
    marks = read_marks(tx, scope, ids)
    numbers = marks.extended(ids)
    _insert(tx, scope, {id_: number for id_, number in numbers.items() if id_ not in marks.numbers})
    return numbers


def keep_marks(
    tx: Transaction, scope: Scope, numbers: Mapping[str, int], known: Mapping[str, int] | None = None
) -> bool:
    """Store the numbers a packet was written with, in the transaction that stores its build.

    Returns False, with nothing written, if another composer assigned them first. Numbers are never reassigned, so those
    already read from the table (`known`) are not checked again.
    """
    _lock(tx, scope)
    numbers = {id_: number for id_, number in numbers.items() if known is None or known.get(id_) != number}
    if not numbers:
        return True
    held = read_marks(tx, scope, numbers)
    new = {id_: number for id_, number in numbers.items() if id_ not in held.numbers}
    if any(held.numbers[id_] != numbers[id_] for id_ in held.numbers) or any(
        number < held.next_number for number in new.values()
    ):
        return False
    if len(set(numbers.values())) != len(numbers):
        return False
    _insert(tx, scope, new)
    return True


def _of_session(scope: Scope) -> tuple[Condition, ...]:
    return ("user_id", "=", scope.user_id), ("session_id", "=", scope.session_id)


def _lock(tx: Transaction, scope: Scope) -> None:
    """Serialise assignment: two concurrent readers of the next number would both use it."""
    tx.do(Lock(("marks", scope.user_id, scope.session_id)))


def _insert(tx: Transaction, scope: Scope, numbers: Mapping[str, int]) -> None:
    if numbers:
        insert(tx, MARKS, [MarkRow(scope.user_id, scope.session_id, number, id_) for id_, number in numbers.items()])
