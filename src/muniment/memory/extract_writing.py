"""Extracts in storage: written with the entry that ends a stretch, made anew by a forget, made again by a rebuild.

The rows hold places (`episodes.extracts`); their words are read from the entries whenever they are needed. A session of
a store of before is caught up a piece at a time, by what is written to it, or at once by a rebuild.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.ports.engine import Condition, Delete, Lock
from muniment.core.ports.rows import by_ids, first, get, insert, select, stream
from muniment.core.ports.schema import ENTRIES, EXTRACTS, SESSIONS, ExtractRow
from muniment.core.scope import is_reserved
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

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.memory.episodes.turns import ReadTurn
    from muniment.store.ledger.records import LedgerEntry

__all__ = ["SessionExtracts", "StoredExtracts", "catch_up_session", "read_extracts", "sessions_behind"]

CATCH_UP_MAX = 16
"""Stretches of before that one write makes good, besides those that it ends itself."""


class _Place(NamedTuple):
    user_id: str
    session_id: str
    seq: int


class SessionExtracts:
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
        ended = last_seq // STRETCH - (last_seq - written) // STRETCH
        if ended and not is_reserved(user_id):
            tx.do(Lock(("extracts", user_id)))
            fresh = None if said is None else _Fresh(last_seq - written + 1, said)
            _extend(tx, user_id, session_id, last_seq, ended + CATCH_UP_MAX, fresh)

    def postpone(
        self,
        tx: Transaction,
        user_id: str,
        session_id: str,
        last_seq: int,
        written: int,
        turns: Sequence[tuple[int, str]],
    ) -> None:
        """Nothing: the next row says by its number how far the session was read."""

    def catch_up(
        self, tx: Transaction, user_id: str, session_id: str, place: range, said: Sequence[tuple[LedgerEntry, str]]
    ) -> None:
        last_seq = place.stop - 1
        if is_reserved(user_id) or last_seq < STRETCH:
            return
        tx.do(Lock(("extracts", user_id)))
        _extend(tx, user_id, session_id, last_seq, last_seq, _Fresh(place.start, said))

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> int:
        places = sorted({place for place in by_ids(tx, ENTRIES, entry_ids, into=_Place) if not is_reserved(place[0])})
        for user_id in dict.fromkeys(place.user_id for place in places):
            tx.do(Lock(("extracts", user_id)))
        by_session = groupby(places, key=lambda place: (place.user_id, place.session_id))
        return sum(_remake_session(tx, list(own)) for _, own in by_session)

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        if is_reserved(user_id):
            return
        tx.do(Lock(("extracts", user_id)))
        tx.do(Delete("extracts", (("user_id", "=", user_id),)))
        for session in select(tx, SESSIONS, (("user_id", "=", user_id),)):
            _extend(tx, user_id, session.session_id, session.head_seq, session.head_seq)

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        made = _made_again(reader, user_id, session_id, last_seq)
        for row in stream(reader, EXTRACTS, _of_session(user_id, session_id)):
            extract = decode_extract(row.data)
            if extract is None and row.data[:1] and row.data[0] < FORMAT:
                continue  # of a way of reading of before: what it lacks, a rebuild finds
            if extract is None or made.get((row.level, row.first)) != extract:
                return row.first, f"the extract of its entries from {row.first} on is not what they say"
        return None


class _Written(NamedTuple):
    user_id: str
    session_id: str
    level: int
    first: int
    data: bytes


class _Head(NamedTuple):
    user_id: str
    session_id: str
    head_seq: int


def sessions_behind(reader: Reader, where: tuple[Condition, ...] = ()) -> Iterator[_Head]:
    """The sessions that lack extracts, or have some of a way of reading of before: those of a store of before.

    One look at every row, in order: both tables are sorted by user and session.
    """
    order = ("user_id", "session_id")
    rows = groupby(stream(reader, EXTRACTS, where, into=_Written), key=lambda row: row[:2])
    place, written = next(rows, (None, iter(())))
    for session in stream(reader, SESSIONS, where, into=_Head, order=order):
        while place is not None and place < session[:2]:
            place, written = next(rows, (None, iter(())))
        is_old, covered = False, 0
        if place == session[:2]:
            for row in written:
                is_old = is_old or row.data[:1] < bytes((FORMAT,))
                covered = max(covered, row.first + STRETCH - 1) if row.level == 0 else covered
        if not is_reserved(session.user_id) and (is_old or covered + STRETCH <= session.head_seq):
            yield session


def catch_up_session(tx: Transaction, user_id: str, session_id: str, stretches_max: int) -> int:
    """Make so many of the extracts that a session lacks; answers of how many entries that was, 0 where none lack.

    Where one is of a way of reading of before, all of the session are made anew.
    """
    tx.do(Lock(("session", user_id, session_id)))
    tx.do(Lock(("extracts", user_id)))
    session = get(tx, SESSIONS, (user_id, session_id))
    if session is None:
        return 0
    where = _of_session(user_id, session_id)
    if any(row.data[:1] < bytes((FORMAT,)) for row in stream(tx, EXTRACTS, where, into=_Written)):
        tx.do(Delete("extracts", where))
    before = _covered(tx, user_id, session_id)
    _extend(tx, user_id, session_id, session.head_seq, stretches_max)
    return _covered(tx, user_id, session_id) - before


def _covered(reader: Reader, user_id: str, session_id: str) -> int:
    """The number of the last entry that an extract of the lowest level covers."""
    where = (*_of_session(user_id, session_id), ("level", "=", 0))
    last = first(reader, EXTRACTS, where, order=("user_id", "session_id", "level", "first"), descending=True)
    return 0 if last is None else last.first + STRETCH - 1


class StoredExtracts(NamedTuple):
    """The fewest extracts that cover a session from its start, in order."""

    extracts: tuple[tuple[int, Extract], ...]
    """Each with its level."""
    covered: int
    """The number of the last entry that they cover."""
    digest: str
    """Which state of the session they stand for."""


def read_extracts(reader: Reader, user_id: str, session_id: str, last_seq: int) -> StoredExtracts:
    """At most so many rows of each level are read as one of the next has, whatever the length of the session.

    `last_seq` is the number of the session's last entry: a level that is longer than what is left has no row.
    """
    found: list[tuple[int, Extract]] = []
    covered, hasher = 0, sha256()
    for level in reversed(range(LEVELS)):
        if covered + size_of(level) > last_seq:
            continue
        where = (*_of_session(user_id, session_id), ("level", "=", level), ("first", ">", covered))
        for row in select(reader, EXTRACTS, where, order=("user_id", "session_id", "level", "first")):
            extract = decode_extract(row.data)
            if extract is None or row.first != covered + 1:
                break
            found.append((level, extract))
            hasher.update(row.data)
            covered += size_of(level)
    return StoredExtracts(tuple(found), covered, f"{covered}-{hasher.hexdigest()}")


def _of_session(user_id: str, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", user_id), ("session_id", "=", session_id)


class _Fresh(NamedTuple):
    """What was just written to a session: all turns from an entry on, with their texts."""

    first: int
    said: Sequence[tuple[LedgerEntry, str]]

    def turns(self, at: int) -> dict[int, ReadTurn]:
        """Those of a stretch, by their number."""
        inside = self.said[bisect_left(self.said, at, key=_seq) : bisect_left(self.said, at + STRETCH, key=_seq)]
        return {entry.seq: LiveTurn.of_entry(entry, text).read for entry, text in inside}


def _seq(said: tuple[LedgerEntry, str]) -> int:
    return said[0].seq


def _extend(
    tx: Transaction, user_id: str, session_id: str, last_seq: int, stretches_max: int, fresh: _Fresh | None = None
) -> None:
    """Write the extracts of stretches that have ended and have none yet, from the first that lacks one."""
    start = _covered(tx, user_id, session_id) + 1
    end = min(last_seq // STRETCH * STRETCH, start - 1 + stretches_max * STRETCH)
    for at in range(start, end + 1, STRETCH):
        _insert(tx, user_id, session_id, 0, at, fresh)
        for level in range(1, LEVELS):
            if (at + STRETCH - 1) % size_of(level):
                break
            _insert(tx, user_id, session_id, level, first_of(level, at))


def _insert(tx: Transaction, user_id: str, session_id: str, level: int, at: int, fresh: _Fresh | None = None) -> None:
    extract = _extract_at(tx, user_id, session_id, level, at, fresh)
    insert(tx, EXTRACTS, [ExtractRow(user_id, session_id, level, at, encode_extract(extract))])


def _remake_session(tx: Transaction, places: Sequence[_Place]) -> int:
    """Make anew the extracts of a session that cover one of these entries; answers how many."""
    return sum(_remake(tx, level, places) for level in range(LEVELS))


def _remake(tx: Transaction, level: int, places: Sequence[_Place]) -> int:
    """Make anew the extracts of a level that cover one of these entries; answers how many."""
    touched = sorted({(user_id, session_id, first_of(level, seq)) for user_id, session_id, seq in places})
    changed = 0
    for user_id, session_id, at in touched:
        where = (*_of_session(user_id, session_id), ("level", "=", level), ("first", "=", at))
        if tx.do(Delete("extracts", where)):
            _insert(tx, user_id, session_id, level, at)
            changed += 1
    return changed


def _extract_at(
    reader: Reader, user_id: str, session_id: str, level: int, at: int, fresh: _Fresh | None = None
) -> Extract:
    if level == 0:
        return extract_turns(list(_turns(reader, user_id, session_id, at, fresh).values()))
    inside: tuple[Condition, ...] = (
        ("level", "=", level - 1),
        ("first", ">=", at),
        ("first", "<", at + size_of(level)),
    )
    rows = select(reader, EXTRACTS, (*_of_session(user_id, session_id), *inside))
    return _merged(reader, user_id, session_id, [decode_extract(row.data) or Extract() for row in rows])


def _merged(reader: Reader, user_id: str, session_id: str, parts: Sequence[Extract]) -> Extract:
    seqs = tuple(sorted({span.seq for part in parts for span in part.lines}))
    where = (*_of_session(user_id, session_id), ("seq", "in", seqs), ("receipt_id", "=", None))
    rows = select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))
    return merge_extracts(parts, {turn.seq: turn.read for turn in live_turns(reader, rows)})


def _turns(reader: Reader, user_id: str, session_id: str, at: int, fresh: _Fresh | None = None) -> dict[int, ReadTurn]:
    """The turns of a stretch that were not forgotten, by their number."""
    end = at + STRETCH if fresh is None else min(at + STRETCH, fresh.first)
    found: dict[int, ReadTurn] = {}
    if at < end:
        inside: tuple[Condition, ...] = (("seq", ">=", at), ("seq", "<", end), ("receipt_id", "=", None))
        where = (*_of_session(user_id, session_id), *inside)
        rows = select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))
        found = {turn.seq: turn.read for turn in live_turns(reader, rows)}
    return found if fresh is None else found | fresh.turns(at)


def _made_again(reader: Reader, user_id: str, session_id: str, last_seq: int) -> dict[tuple[int, int], Extract]:
    """Every extract of a session as its entries give it."""
    made: dict[tuple[int, int], Extract] = {}
    for at in _firsts(0, last_seq):
        made[0, at] = _extract_at(reader, user_id, session_id, 0, at)
    for level in range(1, LEVELS):
        for at in _firsts(level, last_seq):
            parts = [made[level - 1, at + size_of(level - 1) * number] for number in range(FAN)]
            made[level, at] = _merged(reader, user_id, session_id, parts)
    return made


def _firsts(level: int, last_seq: int) -> Iterator[int]:
    size = size_of(level)
    return iter(range(1, last_seq // size * size + 1, size))
