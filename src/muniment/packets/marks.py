"""The session's table of marks: which number its packets cite a piece of evidence by.

A number is given once in a session and never to anything else, so that `[7]` in an old answer means what it meant, or
says that it was forgotten. Composers side by side agree: who finds that another took a number meanwhile composes again.
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
"""Sessions whose table is kept in memory, and the marks of one: of a longer one only those are read that are asked."""
_IN_ORDER = ("user_id", "session_id", "number")


class SessionMarks(NamedTuple):
    """What a session's table of marks says of some evidence."""

    numbers: dict[str, int]
    """By evidence id: those that have a number."""
    next_number: int
    """The first that was never given."""

    def extended(self, evidence_ids: Iterable[str]) -> dict[str, int]:
        """A number for each of these: the one it has, else the next free ones in this order."""
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
    """Tables of marks that were read, by session. Thread-safe.

    A number is given once, so what is known of a table stays true and only what was given since is read. Where the last
    mark that is known is not there any more, as after its user was deleted, nothing of it counts.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str, str], tuple[dict[str, int], MarkRow]] = OrderedDict()
        self._lock = threading.Lock()

    def numbers(self, reader: Reader, scope: Scope, last: MarkRow) -> dict[str, int] | None:
        """All numbers of a session by evidence id, given the last one; None where they are too many to be kept."""
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
    """The numbers that these have in the session so far, and which comes next. Two questions, whatever its length.

    `kept` is what was read before of such tables, in transactions that only read.
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
    """A number for each of these, in the caller's transaction: the one it has, else the next ones, which are kept."""
    ids = list(dict.fromkeys(evidence_ids))
    _lock(tx, scope)
    marks = read_marks(tx, scope, ids)
    numbers = marks.extended(ids)
    _insert(tx, scope, {id_: number for id_, number in numbers.items() if id_ not in marks.numbers})
    return numbers


def keep_marks(
    tx: Transaction, scope: Scope, numbers: Mapping[str, int], known: Mapping[str, int] | None = None
) -> bool:
    """Keep the numbers that a packet was written with, in the transaction that keeps its build.

    False, with nothing written, where the table says otherwise by now: another composer was faster. Numbers are never
    given again, so that `known`, those that were read from the table before, are not asked for once more.
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
    """One at a time: two who read the same next number would both give it."""
    tx.do(Lock(("marks", scope.user_id, scope.session_id)))


def _insert(tx: Transaction, scope: Scope, numbers: Mapping[str, int]) -> None:
    if numbers:
        insert(tx, MARKS, [MarkRow(scope.user_id, scope.session_id, number, id_) for id_, number in numbers.items()])
