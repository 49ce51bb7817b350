"""Where sessions are cut into episodes, in storage: written with the turns, made again by a rebuild.

A session of a store of before is gone through whole by the next turn that is written to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.ports.engine import Condition, Delete, Lock
from muniment.core.ports.rows import first, get, put, select, stream
from muniment.core.ports.schema import ENTRIES, EPISODES, SESSIONS, EpisodeRow
from muniment.core.scope import is_corpus, is_reserved
from muniment.memory.episodes.cuts import TurnPlace, cut, unbegun
from muniment.store.turns import can_be_turn

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.store.derivation import SessionFold
    from muniment.store.ledger.records import LedgerEntry

__all__ = ["ORDER", "SessionEpisodes", "SessionFolds", "cut_session", "episodes_made", "sessions_uncut"]

ORDER = ("user_id", "session_id", "first")


class _Entry(NamedTuple):
    seq: int
    ts: str
    kind: str
    role: str


class SessionEpisodes:
    """See `SessionFold`."""

    def extend(
        self,
        tx: Transaction,
        user_id: str,
        session_id: str,
        last_seq: int,
        written: int,
        said: Sequence[tuple[LedgerEntry, str]] | None = None,
    ) -> None:
        if is_reserved(user_id):
            return
        turns = None if said is None else [TurnPlace(entry.seq, entry.ts) for entry, _ in said]
        _extend(tx, user_id, session_id, last_seq - written, turns)

    def postpone(
        self,
        tx: Transaction,
        user_id: str,
        session_id: str,
        last_seq: int,
        written: int,
        turns: Sequence[tuple[int, str]],
    ) -> None:
        if not is_reserved(user_id):
            _extend(tx, user_id, session_id, last_seq - written, list(map(TurnPlace._make, turns)))

    def catch_up(
        self, tx: Transaction, user_id: str, session_id: str, place: range, said: Sequence[tuple[LedgerEntry, str]]
    ) -> None:
        """Nothing: it was not postponed."""

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> int:
        """Their rows stay, so nothing moves: an episode of which nothing is left is not shown."""
        del tx, entry_ids
        return 0

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        if is_reserved(user_id):
            return
        sessions = select(tx, SESSIONS, (("user_id", "=", user_id),))
        for session in sessions:
            tx.do(Lock(("session", user_id, session.session_id)))
        tx.do(Delete("episodes", (("user_id", "=", user_id),)))
        for session in sessions:
            put(tx, EPISODES, episodes_made(tx, user_id, session.session_id))

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        if is_reserved(user_id) or not last_seq:
            return None
        held = select(reader, EPISODES, _of_session(user_id, session_id), order=ORDER)
        if [row.first for row in held] == [0]:
            return None  # of a store of before
        made = episodes_made(reader, user_id, session_id)
        for row, other in zip(held, made, strict=False):
            if row != other:
                return other.first, f"its episode from entry {other.first} on is not what its turns give"
        if len(held) != len(made):
            at = min(len(held), len(made))
            number = (held if len(held) > len(made) else made)[at].first
            return number, f"its episode from entry {number} on is missing, or one too many"
        return None


def _extend(
    tx: Transaction, user_id: str, session_id: str, written_after: int, turns: Sequence[TurnPlace] | None
) -> None:
    """The turns behind an entry of a session go on with its last episode, or begin others."""
    of_session = _of_session(user_id, session_id)
    last, start = first(tx, EPISODES, of_session, order=ORDER, descending=True), written_after
    if last is not None and last.first == 0:
        tx.do(Delete("episodes", of_session))
    if last is None or last.first == 0:
        last, start = unbegun(user_id, session_id), 0
    if turns is None or start != written_after:
        turns = list(_turns(tx, user_id, session_id, start))
    put(tx, EPISODES, cut(last, turns))


def sessions_uncut(reader: Reader, where: tuple[Condition, ...] = ()) -> Iterator[tuple[str, str]]:
    """The sessions of a store of before that nobody has cut into episodes."""
    for row in stream(reader, EPISODES, (*where, ("first", "=", 0)), order=ORDER):
        if not is_reserved(row.user_id):
            yield row.user_id, row.session_id


def cut_session(tx: Transaction, user_id: str, session_id: str) -> None:
    """Cut a session into its episodes, where nobody has."""
    tx.do(Lock(("session", user_id, session_id)))
    session = get(tx, SESSIONS, (user_id, session_id))
    last = first(tx, EPISODES, _of_session(user_id, session_id), order=ORDER, descending=True)
    if session is not None and last is not None and last.first == 0:
        SessionEpisodes().extend(tx, user_id, session_id, session.head_seq, 0)


class SessionFolds:
    """Several folds of the same sessions, as one; and those that concern corpora alone.

    Rows of the latter name their entry, and go with it.
    """

    def __init__(self, *folds: SessionFold, corpora: tuple[SessionFold, ...] = ()) -> None:
        self._of_users = folds
        self._folds = (*folds, *corpora)

    def extend(
        self,
        tx: Transaction,
        user_id: str,
        session_id: str,
        last_seq: int,
        written: int,
        said: Sequence[tuple[LedgerEntry, str]] | None = None,
    ) -> None:
        for fold in self._folds if is_corpus(user_id) else self._of_users:
            fold.extend(tx, user_id, session_id, last_seq, written, said)

    def postpone(
        self,
        tx: Transaction,
        user_id: str,
        session_id: str,
        last_seq: int,
        written: int,
        turns: Sequence[tuple[int, str]],
    ) -> None:
        for fold in self._folds if is_corpus(user_id) else self._of_users:
            fold.postpone(tx, user_id, session_id, last_seq, written, turns)

    def catch_up(
        self, tx: Transaction, user_id: str, session_id: str, place: range, said: Sequence[tuple[LedgerEntry, str]]
    ) -> None:
        for fold in self._folds if is_corpus(user_id) else self._of_users:
            fold.catch_up(tx, user_id, session_id, place, said)

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> int:
        return sum(fold.remove(tx, entry_ids) for fold in self._of_users)

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        for fold in self._folds:
            fold.rebuild(tx, user_id)

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        faults = (fold.fault(reader, user_id, session_id, last_seq) for fold in self._folds)
        return next((fault for fault in faults if fault is not None), None)


def episodes_made(reader: Reader, user_id: str, session_id: str) -> list[EpisodeRow]:
    """The episodes of a session as its entries give them."""
    return cut(unbegun(user_id, session_id), _turns(reader, user_id, session_id, 0))


def _turns(reader: Reader, user_id: str, session_id: str, after: int) -> Iterator[TurnPlace]:
    """Every entry after a number that is a turn, or was."""
    where = (*_of_session(user_id, session_id), ("seq", ">", after))
    for entry in stream(reader, ENTRIES, where, into=_Entry, order=("user_id", "session_id", "seq")):
        if can_be_turn(entry.kind, entry.role):
            yield TurnPlace(entry.seq, entry.ts)


def _of_session(user_id: str, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", user_id), ("session_id", "=", session_id)
