"""Extracts and episodes of sessions in storage, and those of entries that the watermark has not reached.

An extract tells what a stretch of a session comes to, as places in its entries (`episodes.extracts`); an episode is a
stretch that belongs together in time (`episodes.cuts`). Both are pure functions of the entries. Their rows follow the
ledger with the index (`memory.index`): a user's rows are those that the first `users.indexed` entries give. What later
entries give is computed when it is asked for, so that readers see the same wherever the watermark is.

Rows of a forgotten turn: an extract is made again without it, an episode keeps its cuts.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Condition, Delete
from muniment.core.ports.rows import by_ids, first, insert, put, select, stream
from muniment.core.ports.schema import ENTRIES, EPISODES, EXTRACTS, EpisodeRow, ExtractRow
from muniment.core.scope import is_corpus, is_reserved
from muniment.memory.episodes.cuts import TurnPlace, cut, unbegun
from muniment.memory.episodes.extracts import (
    FAN,
    FORMAT,
    LEVELS,
    STRETCH,
    Extract,
    decode_extract,
    encode_extract,
    extract_turns,
    first_of,
    merge_extracts,
    size_of,
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
    """Write the extracts of the stretches that end within a piece, each level behind the one below it."""
    start = (piece.first - 1) // STRETCH * STRETCH + 1
    for at in range(start, piece.last // STRETCH * STRETCH, STRETCH):
        _insert(tx, user_id, piece.session_id, 0, at, piece)
        for level in range(1, LEVELS):
            if (at + STRETCH - 1) % size_of(level):
                break
            _insert(tx, user_id, piece.session_id, level, first_of(level, at))


def _insert(
    tx: Transaction, user_id: str, session_id: str, level: int, at: int, piece: SessionPiece | None = None
) -> None:
    if level == 0:
        extract = extract_turns(list(_turns(tx, user_id, session_id, at, piece).values()))
    else:
        inside: tuple[Condition, ...] = (
            ("level", "=", level - 1),
            ("first", ">=", at),
            ("first", "<", at + size_of(level)),
        )
        rows = select(tx, EXTRACTS, (*_of_session(user_id, session_id), *inside))
        extract = _merged(tx, user_id, session_id, [decode_extract(row.data) or Extract() for row in rows])
    insert(tx, EXTRACTS, [ExtractRow(user_id, session_id, level, at, encode_extract(extract))])


def _merged(reader: Reader, user_id: str, session_id: str, parts: Sequence[Extract]) -> Extract:
    seqs = tuple(sorted({span.seq for part in parts for span in part.lines}))
    where = (*_of_session(user_id, session_id), ("seq", "in", seqs), ("receipt_id", "=", None))
    rows = select(reader, ENTRIES, where, order=_BY_SEQ)
    return merge_extracts(parts, {turn.seq: turn.read for turn in live_turns(reader, rows)})


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


class ExtractCache:
    """Extracts that the watermark has not reached, by tenant and place; the oldest are let go. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, tuple[str, int, str, int, int]], Extract] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tenant_id: str, place: tuple[str, int, str, int, int]) -> Extract | None:
        with self._lock:
            return self._held.get((tenant_id, place))

    def put(self, tenant_id: str, place: tuple[str, int, str, int, int], extract: Extract) -> None:
        with self._lock:
            self._held[tenant_id, place] = extract
            while len(self._held) > CACHED_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


class StoredExtracts(NamedTuple):
    """The fewest extracts that cover a session from its start, in order."""

    extracts: tuple[tuple[int, Extract], ...]
    """Each with its level."""
    covered: int
    """The number of the last entry that they cover."""
    digest: str
    """Which state of the session they stand for."""


def read_extracts(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, session_id: str, last_seq: int
) -> StoredExtracts:
    """The extracts of a session whose last entry has this number. Of each level at most as many are read as one of the
    next has; those that are not stored yet are computed."""
    source = _ExtractSource(ctx, reader, tenant_id, user_id, session_id)
    found: list[tuple[int, Extract]] = []
    covered, hasher = 0, sha256()
    for level in reversed(range(LEVELS)):
        end = last_seq // size_of(level) * size_of(level)
        if covered >= end:
            continue
        for extract in source.read(level, covered, end):
            found.append((level, extract))
            hasher.update(encode_extract(extract))
        covered = end
    return StoredExtracts(tuple(found), covered, f"{covered}-{hasher.hexdigest()}")


class _ExtractSource:
    """The extracts of one session, from their rows or computed from its entries."""

    def __init__(self, ctx: Context, reader: Reader, tenant_id: str, user_id: str, session_id: str) -> None:
        self._ctx, self._reader, self._tenant_id = ctx, reader, tenant_id
        self._user_id, self._session_id = user_id, session_id
        self._generation: int | None = None

    def read(self, level: int, after: int, end: int) -> list[Extract]:
        """Those of a level over the entries behind one number and up to another."""
        where = (*_of_session(self._user_id, self._session_id), ("level", "=", level), ("first", ">", after))
        rows = select(self._reader, EXTRACTS, (*where, ("first", "<=", end)))
        stored = {row.first: decode_extract(row.data) for row in rows}
        return [stored.get(at) or self._computed(level, at) for at in range(after + 1, end + 1, size_of(level))]

    def _computed(self, level: int, at: int) -> Extract:
        cache, place = self._ctx.cache(ExtractCache), self._place(level, at)
        found = cache.get(self._tenant_id, place)
        if found is None:
            if level == 0:
                turns = _turns(self._reader, self._user_id, self._session_id, at)
                found = extract_turns(list(turns.values()))
            else:
                parts = self.read(level - 1, at - 1, at - 1 + size_of(level))
                found = _merged(self._reader, self._user_id, self._session_id, parts)
            cache.put(self._tenant_id, place, found)
        return found

    def _place(self, level: int, at: int) -> tuple[str, int, str, int, int]:
        if self._generation is None:
            self._generation = read_user(self._reader, self._user_id).generation
        return self._user_id, self._generation, self._session_id, level, at


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
        by_session = groupby(places, key=lambda place: (place.user_id, place.session_id))
        return sum(_remake(tx, level, own) for _, each in by_session if (own := list(each)) for level in range(LEVELS))

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


def _remake(tx: Transaction, level: int, places: Sequence[_EntryPlace]) -> int:
    touched = sorted({(user_id, session_id, first_of(level, seq)) for user_id, session_id, seq in places})
    changed = 0
    for user_id, session_id, at in touched:
        where = (*_of_session(user_id, session_id), ("level", "=", level), ("first", "=", at))
        if tx.do(Delete("extracts", where)):
            _insert(tx, user_id, session_id, level, at)
            changed += 1
    return changed


class _Seq(NamedTuple):
    seq: int


def _last_indexed(reader: Reader, user_id: str, session_id: str) -> int:
    """The number in the session of the last entry that the watermark has reached; 0 of a session behind it."""
    indexed = read_user(reader, user_id).indexed
    where = (*_of_session(user_id, session_id), ("n", "<=", indexed))
    last = first(reader, ENTRIES, where, into=_Seq, order=_BY_SEQ, descending=True)
    return 0 if last is None else last.seq


def _extract_fault(reader: Reader, user_id: str, session_id: str, indexed: int) -> tuple[int, str] | None:
    made: dict[tuple[int, int], Extract] = {}
    for level in range(LEVELS):
        size = size_of(level)
        for at in range(1, indexed // size * size + 1, size):
            if level == 0:
                made[level, at] = extract_turns(list(_turns(reader, user_id, session_id, at).values()))
            else:
                parts = [made[level - 1, at + size_of(level - 1) * number] for number in range(FAN)]
                made[level, at] = _merged(reader, user_id, session_id, parts)
    for row in stream(reader, EXTRACTS, _of_session(user_id, session_id)):
        wanted, extract = made.pop((row.level, row.first), None), decode_extract(row.data)
        is_old = extract is None and row.data[:1] < bytes((FORMAT,))  # computed again by whoever reads it
        if wanted is None or (extract != wanted and not is_old):
            return row.first, f"the extract of its entries from {row.first} on is not what they say"
    if made:
        _, at = min(made)
        return at, f"the extract of its entries from {at} on is missing"
    return None


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
