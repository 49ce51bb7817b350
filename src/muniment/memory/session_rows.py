"""Episodes of sessions in storage, and those of entries that the watermark has not reached.

An episode is a stretch of a session that belongs together in time: a pure function of the entries. Its rows follow the
ledger with the index (`memory.index`): a user's rows are those that the first `users.indexed` entries give. What later
entries give is computed when it is asked for, so that readers see the same wherever the watermark is. A forgotten turn
keeps its place, so no cut moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.instants import parse_instant
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import first, put, select, stream
from muniment.core.ports.schema import ENTRIES, EPISODES, EpisodeRow
from muniment.core.scope import is_corpus, is_reserved
from muniment.memory.episodes.forming import EPISODE_TURNS_MAX, GAP
from muniment.store.turns import can_be_turn
from muniment.store.watermark import read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.store.derivation import SessionFold

__all__ = ["EPISODE_ORDER", "SessionPiece", "SessionRows", "TurnPlace", "extend_sessions", "read_episodes"]

EPISODE_ORDER = ("user_id", "session_id", "first")
_BY_SEQ = ("user_id", "session_id", "seq")


class TurnPlace(NamedTuple):
    """The number of a turn in its session, and when it was said."""

    seq: int
    ts: str


class SessionPiece(NamedTuple):
    """The entries of one session among consecutive entries of a user."""

    session_id: str
    first: int
    """The number of the first of them in the session."""
    places: list[TurnPlace]
    """Those that are turns, or were before they were forgotten."""


# -- following the ledger -----------------------------------------------------------------------------


def extend_sessions(tx: Transaction, user_id: str, pieces: Sequence[SessionPiece]) -> None:
    """Write the rows that the next entries of a user give, in the transaction that moves the watermark behind them."""
    episodes: list[EpisodeRow] = []
    for piece in pieces:
        episodes += cut(_last_episode(tx, user_id, piece), piece.places)
    if episodes:
        put(tx, EPISODES, episodes)


def _last_episode(reader: Reader, user_id: str, piece: SessionPiece) -> EpisodeRow:
    """The episode that the entries of a piece go on with."""
    if piece.first > 1:
        of_session = _of_session(user_id, piece.session_id)
        last = first(reader, EPISODES, of_session, order=EPISODE_ORDER, descending=True)
        if last is not None:
            return last
    return unbegun(user_id, piece.session_id)


def unbegun(user_id: str, session_id: str) -> EpisodeRow:
    """The first episode of a session that has no turn yet."""
    return EpisodeRow(user_id, session_id, first=1, last=1, turns=0, started_at="", ended_at="")


def cut(row: EpisodeRow, turns: Iterable[TurnPlace]) -> list[EpisodeRow]:
    """The episode with these turns after it, and those that begin among them."""
    user_id, session_id, first, last, count, started_at, ended_at = row
    ended = parse_instant(ended_at) if count else None
    found: list[EpisodeRow] = []
    for seq, ts in turns:
        moment = parse_instant(ts)
        if ended is None:
            started_at = ts
        elif count >= EPISODE_TURNS_MAX or moment - ended > GAP:
            found.append(EpisodeRow(user_id, session_id, first, last, count, started_at, ended_at))
            first, count, started_at = seq, 0, ts
        last, count, ended_at, ended = seq, count + 1, ts, moment
    return [*found, EpisodeRow(user_id, session_id, first, last, count, started_at, ended_at)]


def _of_session(user_id: str, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", user_id), ("session_id", "=", session_id)


# -- reading, wherever the watermark is ---------------------------------------------------------------


class _Entry(NamedTuple):
    session_id: str
    seq: int
    ts: str
    kind: str
    role: str


def read_episodes(
    reader: Reader,
    user_id: str,
    session_id: str | None,
    after: tuple[str, int] | None,
    size: int,
    *,
    descending: bool = False,
) -> list[EpisodeRow]:
    """The next episodes of a user's sessions, or of one, behind the place (session, number) of another."""
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    where += () if session_id is None else (("session_id", "=", session_id),)
    place = None if after is None else (user_id, *after)
    stored = select(reader, EPISODES, where, order=EPISODE_ORDER, after=place, descending=descending, limit=size)
    rows = {(row.session_id, row.first): row for row in stored}
    for row in _episodes_of_tail(reader, user_id, session_id):
        key = row.session_id, row.first
        if after is None or (key < after if descending else key > after):
            rows[key] = row
    return [rows[key] for key in sorted(rows, reverse=descending)][:size]


def _episodes_of_tail(reader: Reader, user_id: str, session_id: str | None) -> Iterator[EpisodeRow]:
    """The rows that the entries behind the watermark will give: the last of each session as it will be, and new
    ones."""
    user = read_user(reader, user_id)
    if user.indexed >= user.tail or is_reserved(user_id):
        return
    where: tuple[Condition, ...] = (("user_id", "=", user_id), ("n", ">", user.indexed))
    where += () if session_id is None else (("session_id", "=", session_id),)
    sessions: dict[str, list[_Entry]] = {}
    for entry in select(reader, ENTRIES, where, into=_Entry, order=("user_id", "n")):
        sessions.setdefault(entry.session_id, []).append(entry)
    for name, entries in sessions.items():
        piece = SessionPiece(name, entries[0].seq, _places(entries))
        yield from cut(_last_episode(reader, user_id, piece), piece.places)


def _places(entries: Iterable[_Entry]) -> list[TurnPlace]:
    """Those that are turns, or were before they were forgotten."""
    return [TurnPlace(entry.seq, entry.ts) for entry in entries if can_be_turn(entry.kind, entry.role)]


# -- rebuilding, verifying ----------------------------------------------------------------------------


class SessionRows:
    """Episodes as the store verifies them, and what corpora keep beside them (`SessionFold`).

    The folds of corpora are written with the entries, since what is kept is asked for by its name at once.
    """

    def __init__(self, *corpora: SessionFold) -> None:
        self._corpora = corpora

    def extend(self, tx: Transaction, user_id: str, session_id: str, last_seq: int, written: int) -> None:
        for fold in self._corpora if is_corpus(user_id) else ():
            fold.extend(tx, user_id, session_id, last_seq, written)

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        """Make again what corpora keep; the rest is rebuilt with the index."""
        for fold in self._corpora if is_corpus(user_id) else ():
            fold.rebuild(tx, user_id)

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        if is_reserved(user_id):
            folds = self._corpora if is_corpus(user_id) else ()
            faults = (fold.fault(reader, user_id, session_id, last_seq) for fold in folds)
            return next((fault for fault in faults if fault is not None), None)
        indexed = _last_indexed(reader, user_id, session_id)
        return _episode_fault(reader, user_id, session_id, indexed)


class _Seq(NamedTuple):
    seq: int


def _last_indexed(reader: Reader, user_id: str, session_id: str) -> int:
    """The number in the session of the last entry that the watermark has reached; 0 of a session behind it."""
    indexed = read_user(reader, user_id).indexed
    where = (*_of_session(user_id, session_id), ("n", "<=", indexed))
    last = first(reader, ENTRIES, where, into=_Seq, order=_BY_SEQ, descending=True)
    return 0 if last is None else last.seq


def _episode_fault(reader: Reader, user_id: str, session_id: str, indexed: int) -> tuple[int, str] | None:
    held = select(reader, EPISODES, _of_session(user_id, session_id), order=EPISODE_ORDER)
    made: Sequence[EpisodeRow] = ()
    if indexed:
        where = (*_of_session(user_id, session_id), ("seq", "<=", indexed))
        entries = stream(reader, ENTRIES, where, into=_Entry, order=_BY_SEQ)
        made = cut(unbegun(user_id, session_id), _places(entries))
    for row, other in zip(held, made, strict=False):
        if row != other:
            return other.first, f"its episode from entry {other.first} on is not what its turns give"
    if len(held) != len(made):
        at = min(len(held), len(made))
        number = (held if len(held) > len(made) else made)[at].first
        return number, f"its episode from entry {number} on is missing, or one too many"
    return None
