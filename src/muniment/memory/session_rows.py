"""Extracts and episodes of sessions in storage, and those of entries that the watermark has not reached.

An extract tells what was settled in a stretch of a session, as places in its entries (`episodes.extracts`); an episode
is a stretch that belongs together in time (`episodes.cuts`). Both are pure functions of the entries. Their rows follow
the ledger with the index (`memory.index`): a user's rows are those that the first `users.indexed` entries give. What
later entries give is computed when it is asked for, so that readers see the same wherever the watermark is.

Rows of a forgotten turn: an extract is made again without it, an episode keeps its cuts.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Condition, Delete
from muniment.core.ports.rows import by_ids, first, insert, put, select, stream
from muniment.core.ports.schema import ENTRIES, EPISODES, EXTRACTS, EpisodeRow, ExtractRow
from muniment.core.scope import is_corpus, is_reserved
from muniment.memory.episodes.cuts import TurnPlace, cut, unbegun
from muniment.memory.episodes.extracts import (
    STRETCH,
    Span,
    decode_extract,
    encode_extract,
    extract_turns,
    first_of,
)
from muniment.memory.turn_reading import LiveTurn, live_turns
from muniment.store.turns import can_be_turn
from muniment.store.watermark import lock_user, read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.memory.episodes.turns import ReadTurn
    from muniment.store.context import Context
    from muniment.store.derivation import SessionFold
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "EPISODE_ORDER",
    "ExtractCache",
    "SessionPiece",
    "SessionRows",
    "StoredExtracts",
    "extend_sessions",
    "read_episodes",
    "read_extracts",
]

EPISODE_ORDER = ("user_id", "session_id", "first")
_BY_SEQ = ("user_id", "session_id", "seq")
CACHED_MAX = 4_096
"""Extracts behind the watermark that a process holds in memory."""


class SessionPiece(NamedTuple):
    """The entries of one session among consecutive entries of a user."""

    session_id: str
    first: int
    last: int
    """The numbers of the first and the last of them in the session."""
    places: list[TurnPlace]
    """Those that are turns, or were before they were forgotten."""
    said: list[tuple[LedgerEntry, str]]
    """Those that are turns, with their texts."""

    def turns_from(self, at: int) -> dict[int, ReadTurn]:
        """The turns of a stretch among them, by their number."""
        begin = bisect_left(self.said, at, key=_seq)
        end = bisect_left(self.said, at + STRETCH, key=_seq)
        return {entry.seq: LiveTurn.of_entry(entry, text).read for entry, text in self.said[begin:end]}


def _seq(said: tuple[LedgerEntry, str]) -> int:
    return said[0].seq


# -- following the ledger -----------------------------------------------------------------------------


def extend_sessions(tx: Transaction, user_id: str, pieces: Sequence[SessionPiece]) -> None:
    """Write the rows that the next entries of a user give, in the transaction that moves the watermark behind them."""
    episodes: list[EpisodeRow] = []
    for piece in pieces:
        episodes += cut(_last_episode(tx, user_id, piece), piece.places)
        _extend_extracts(tx, user_id, piece)
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


def _extend_extracts(tx: Transaction, user_id: str, piece: SessionPiece) -> None:
    """Write the extracts of the stretches that end within a piece."""
    for at in range(first_of(piece.first), piece.last // STRETCH * STRETCH, STRETCH):
        _insert(tx, user_id, piece.session_id, at, piece)


def _insert(tx: Transaction, user_id: str, session_id: str, at: int, piece: SessionPiece | None = None) -> None:
    """Write the extract of a stretch; nothing for one in which nothing was settled."""
    spans = extract_turns(_turns(tx, user_id, session_id, at, piece).values())
    if spans:
        insert(tx, EXTRACTS, [ExtractRow(user_id, session_id, at, encode_extract(spans))])


def _turns(
    reader: Reader, user_id: str, session_id: str, at: int, piece: SessionPiece | None = None
) -> dict[int, ReadTurn]:
    """The turns of a stretch that were not forgotten, by their number; those of the piece are at hand."""
    end = at + STRETCH if piece is None else min(at + STRETCH, piece.first)
    found: dict[int, ReadTurn] = {}
    if at < end:
        inside: tuple[Condition, ...] = (("seq", ">=", at), ("seq", "<", end), ("receipt_id", "=", None))
        rows = select(reader, ENTRIES, (*_of_session(user_id, session_id), *inside), order=_BY_SEQ)
        found = {turn.seq: turn.read for turn in live_turns(reader, rows)}
    return found if piece is None else found | piece.turns_from(at)


def _of_session(user_id: str, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", user_id), ("session_id", "=", session_id)


# -- reading, wherever the watermark is ---------------------------------------------------------------


_Place = tuple[str, int, str, int]
"""A user, how many forgets touched them, a session, the first entry of a stretch."""


class ExtractCache:
    """Extracts that the watermark has not reached, by tenant and place; the oldest are let go. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, _Place], tuple[Span, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tenant_id: str, place: _Place) -> tuple[Span, ...] | None:
        with self._lock:
            return self._held.get((tenant_id, place))

    def put(self, tenant_id: str, place: _Place, spans: tuple[Span, ...]) -> None:
        with self._lock:
            self._held[tenant_id, place] = spans
            while len(self._held) > CACHED_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


class StoredExtracts(NamedTuple):
    """What was settled in a session from its start on, in the order said."""

    spans: tuple[Span, ...]
    covered: int
    """The number of the last entry that was looked at for it: the end of a stretch."""
    digest: str
    """Which state of the session they stand for."""


def read_extracts(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, session_id: str, last_seq: int
) -> StoredExtracts:
    """The extracts of a session whose last entry has this number. Those that are not stored yet are computed."""
    covered = last_seq // STRETCH * STRETCH
    if not covered:
        return StoredExtracts((), 0, "0")
    stored = {row.first: decode_extract(row.data) for row in select(reader, EXTRACTS, _of_session(user_id, session_id))}
    spans = [span for own in stored.values() for span in own or ()]
    beyond = _last_indexed(reader, user_id, session_id) // STRETCH * STRETCH
    unread = [at for at, own in stored.items() if own is None]
    for at in (*unread, *range(beyond + 1, covered + 1, STRETCH)):
        spans += _computed(ctx, reader, tenant_id, user_id, session_id, at)
    spans.sort()
    return StoredExtracts(tuple(spans), covered, f"{covered}-{sha256(encode_extract(spans)).hexdigest()}")


def _computed(ctx: Context, reader: Reader, tenant_id: str, user_id: str, session_id: str, at: int) -> tuple[Span, ...]:
    cache, place = ctx.cache(ExtractCache), (user_id, read_user(reader, user_id).generation, session_id, at)
    found = cache.get(tenant_id, place)
    if found is None:
        found = extract_turns(_turns(reader, user_id, session_id, at).values())
        cache.put(tenant_id, place, found)
    return found


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
        piece = SessionPiece(name, entries[0].seq, entries[-1].seq, _places(entries), [])
        yield from cut(_last_episode(reader, user_id, piece), piece.places)


def _places(entries: Iterable[_Entry]) -> list[TurnPlace]:
    """Those that are turns, or were before they were forgotten."""
    return [TurnPlace(entry.seq, entry.ts) for entry in entries if can_be_turn(entry.kind, entry.role)]


# -- forgetting, rebuilding, verifying ----------------------------------------------------------------


class _EntryPlace(NamedTuple):
    user_id: str
    session_id: str
    seq: int


class SessionRows:
    """Extracts and episodes as the store forgets and verifies them, and what corpora keep beside them (`SessionFold`).

    The folds of corpora are written with the entries, since what is kept is asked for by its name at once.
    """

    def __init__(self, *corpora: SessionFold) -> None:
        self._corpora = corpora

    def extend(self, tx: Transaction, user_id: str, session_id: str, last_seq: int, written: int) -> None:
        for fold in self._corpora if is_corpus(user_id) else ():
            fold.extend(tx, user_id, session_id, last_seq, written)

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> int:
        """Make anew the extracts that cover one of these entries; answers how many. Episodes keep their cuts."""
        found = by_ids(tx, ENTRIES, entry_ids, into=_EntryPlace)
        places = sorted({place for place in found if not is_reserved(place.user_id)})
        for user_id in dict.fromkeys(place.user_id for place in places):
            lock_user(tx, user_id)
        return sum(_remake(tx, *stretch) for stretch in sorted({(*each[:2], first_of(each.seq)) for each in places}))

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
        return _extract_fault(reader, user_id, session_id, indexed) or _episode_fault(
            reader, user_id, session_id, indexed
        )


def _remake(tx: Transaction, user_id: str, session_id: str, at: int) -> int:
    removed = tx.do(Delete("extracts", (*_of_session(user_id, session_id), ("first", "=", at))))
    if removed:
        _insert(tx, user_id, session_id, at)
    return removed


class _Seq(NamedTuple):
    seq: int


def _last_indexed(reader: Reader, user_id: str, session_id: str) -> int:
    """The number in the session of the last entry that the watermark has reached; 0 of a session behind it."""
    indexed = read_user(reader, user_id).indexed
    where = (*_of_session(user_id, session_id), ("n", "<=", indexed))
    last = first(reader, ENTRIES, where, into=_Seq, order=_BY_SEQ, descending=True)
    return 0 if last is None else last.seq


def _extract_fault(reader: Reader, user_id: str, session_id: str, indexed: int) -> tuple[int, str] | None:
    stretches = range(1, indexed // STRETCH * STRETCH + 1, STRETCH)
    made = {at: extract_turns(_turns(reader, user_id, session_id, at).values()) for at in stretches}
    for row in stream(reader, EXTRACTS, _of_session(user_id, session_id)):
        wanted = made.pop(row.first, ())
        if not wanted or decode_extract(row.data) != wanted:
            return row.first, f"the extract of its entries from {row.first} on is not what they say"
    missing = next((at for at, spans in made.items() if spans), None)
    return None if missing is None else (missing, f"the extract of its entries from {missing} on is missing")


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
