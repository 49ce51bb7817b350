"""A user's search index: stored blocks that follow the ledger behind a watermark, and the same turns in memory.

Appending indexes nothing. A user's entries are numbered 1 to `users.tail`; the stored blocks and episodes cover those
up to `users.indexed`. `follow` advances it, one piece per transaction; several processes may do so at once, and one
that is killed leaves a valid position. The entries behind the watermark, the tail, are read from the ledger and
analysed on demand, so that search results do not depend on the watermark.

In memory an index grows at its end by the entries appended since, wherever they are stored. It is reloaded after a
forget or a rebuild of the user (`users.generation`) and when the analyzer has changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.instants import parse_instant
from muniment.core.limits import checkpoint, remembered
from muniment.core.ports.engine import Condition, Delete, Patch
from muniment.core.ports.rows import by_ids, chunked, stream
from muniment.core.ports.schema import ENTRIES, SEGMENTS, USERS, UserRow
from muniment.core.scope import is_reserved, lock_rank
from muniment.core.text.analyzer import ANALYZER_VERSION, analyze, term_hash, term_hashes
from muniment.errors import EmbedderFailure, StoreDamaged
from muniment.memory._index import StoredIndex, field_terms, index_text
from muniment.memory._segments import (
    IndexedTurn,
    Segment,
    build_segment,
    decode_segment,
    drop_turns,
    encode_segment,
    is_outdated,
    merge_segments,
)
from muniment.memory.tool_results import call_marks, call_words, further_words, is_chunk
from muniment.memory.turn_reading import entries_by_id
from muniment.store.blocks import BlockScope, append_block, drop_from_blocks, list_blocks, read_data
from muniment.store.ledger import entry_of_row
from muniment.store.turns import blob_text, can_be_turn, speaker_of
from muniment.store.watermark import count_tail, lock_user, read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.schema import EntryRow, StatementRow
    from muniment.memory.sessions import SessionPiece
    from muniment.memory.statements import UserTurn
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "PIECE_ENTRIES",
    "IndexCache",
    "RecallIndex",
    "count_unindexed",
    "follow",
    "index_tenant",
    "load_index",
    "read_turns",
    "segments_of",
    "turn_state",
]

PIECE_ENTRIES = 4_096
"""Entries indexed per transaction, and turns per block loaded from the ledger."""
TEXT_CHARS_MAX = 64 * 1024
"""Characters analysed of a turn whose entry does not specify the number."""
INDEXES_MAX, INDEX_TURNS_MAX = 64, 1_000_000
"""Limits of the indexes a process holds in memory: their number and their total turns; a single one may have more."""


def turn_state(reader: Reader, user_id: str) -> int:
    """A number that changes when turns of a user are forgotten."""
    return read_user(reader, user_id).generation


# -- one turn -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _moment(ts: str) -> tuple[date, int]:
    """The day and Unix time of a time stamp; cached, as turns written together often share it."""
    moment = parse_instant(ts)
    return moment.date(), int(moment.timestamp())


@remembered(1024)
def _voice(speaker: str) -> str:
    """The key of a speaker in the index, which holds no names."""
    return f"{term_hash(speaker):016x}"


def analyse_turn(entry: LedgerEntry, text: str) -> IndexedTurn:
    """Analyse a turn for the index. The entry records how much of a long text to analyse, as the policy may change."""
    day, seconds = _moment(entry.ts)
    reach = TEXT_CHARS_MAX if entry.analysed_chars is None else entry.analysed_chars
    length, terms = index_text(text[:reach], day)
    tool = entry.tool
    is_call = tool is not None and not is_chunk(tool, entry.metadata)
    rest = text[reach:]
    further: list[str] = []
    if is_call and tool is not None:
        further += analyze(call_words(tool))  # TM-03
    if rest and (is_call or entry.analysed_chars is not None):
        further += analyze(further_words(rest))
    marks = call_marks(tool, text) if is_call and tool is not None else []
    terms = [*terms, *term_hashes([*further, *marks]), *field_terms(entry.metadata)]
    voice = _voice(speaker_of(entry))
    return IndexedTurn(
        entry.id, entry.scope.session_id, entry.seq, voice, entry.role, seconds, length + len(further), terms
    )


def read_turns(
    reader: Reader, tenant_id: str, user_id: str, after: int, last: int
) -> Iterator[tuple[LedgerEntry, str]]:
    """The turns with their texts among a user's entries after one number up to another, without forgotten ones."""
    where: tuple[Condition, ...] = (*_numbered(user_id, after, last), ("receipt_id", "=", None))
    for row in stream(reader, ENTRIES, where, order=("user_id", "n")):
        if can_be_turn(row.kind, row.role):
            yield _turn_of(reader, tenant_id, row)


def _turn_of(reader: Reader, tenant_id: str, row: EntryRow) -> tuple[LedgerEntry, str]:
    entry = entry_of_row(tenant_id, row)
    assert entry.body is not None
    blob = entry.body.blob
    return entry, entry.body.content or "" if blob is None else blob_text(reader, row.id, blob, row.salt)


def _numbered(user_id: str, after: int, last: int) -> tuple[Condition, ...]:
    return ("user_id", "=", user_id), ("n", ">", after), ("n", "<=", last)


# -- in memory ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldIndex:
    """An index in memory, with the state it reflects."""

    index: StoredIndex
    covers: int
    """The number of the last entry it covers."""
    generation: int
    analyzer: str


class IndexCache:
    """Indexes by tenant and user, evicted least recently used first. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], HeldIndex] = OrderedDict()
        self._turns = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> HeldIndex | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: tuple[str, str], held: HeldIndex) -> None:
        """Cache an index, unless a newer one is cached: a replica may return an older state of the store."""
        with self._lock:
            other = self._held.get(key)
            if other is not None and (other.generation, other.covers) > (held.generation, held.covers):
                return
            self._drop(key)
            self._held[key] = held
            self._turns += len(held.index)
            while len(self._held) > 1 and (len(self._held) > INDEXES_MAX or self._turns > INDEX_TURNS_MAX):
                self._drop(next(iter(self._held)))

    def _drop(self, key: tuple[str, str]) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self._turns -= len(found.index)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            for key in [key for key in self._held if tenant_id in (None, key[0])]:
                self._drop(key)


def load_index(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, without: frozenset[str] = frozenset()
) -> StoredIndex:
    """The index of a user as of this transaction. Only entries appended since the last call are read.

    Sessions named in `without` are excluded, as if they had never existed.
    """
    user = read_user(reader, user_id)
    last = user.tail if ctx.indexes_turns else user.indexed
    cache = ctx.cache(IndexCache)
    held = cache.get((tenant_id, user_id))
    is_usable = held is not None and (held.generation, held.analyzer) == (user.generation, ANALYZER_VERSION)
    if held is None or not is_usable or not _can_extend(held, user, last):
        held = HeldIndex(_load(reader, tenant_id, user, last), last, user.generation, ANALYZER_VERSION)
        cache.put((tenant_id, user_id), held)
    elif held.covers < last:
        segments, names = _tail_segments(reader, tenant_id, user_id, held.covers, last)
        held = replace(held, index=held.index.extended(segments, names), covers=last)
        cache.put((tenant_id, user_id), held)
    return held.index.without(without) if without else held.index


def _can_extend(held: HeldIndex, user: UserRow, last: int) -> bool:
    """True if reading the entries appended since is faster than loading all blocks."""
    return held.covers <= last and (last - held.covers <= PIECE_ENTRIES or user.indexed <= held.covers)


def _load(reader: Reader, tenant_id: str, user: UserRow, last: int) -> StoredIndex:
    """Load the index from all stored blocks and the tail."""
    place = segments_of(user.user_id)
    stored = [decode_segment(data) for data in read_data(reader, place, list_blocks(reader, place))]
    tail, names = _tail_segments(reader, tenant_id, user.user_id, user.indexed, last)
    return StoredIndex([*stored, *tail], names)


def _tail_segments(
    reader: Reader, tenant_id: str, user_id: str, after: int, last: int
) -> tuple[list[Segment], Callable[[Sequence[str]], list[str]]]:
    """Segments over the turns among some entries, and a function that names speakers by their turns."""
    speakers: dict[str, str] = {}
    made: list[IndexedTurn] = []
    for entry, text in read_turns(reader, tenant_id, user_id, after, last) if after < last else ():
        speakers[entry.id] = speaker_of(entry)
        made.append(analyse_turn(entry, text))

    def names(ids: Sequence[str]) -> list[str]:
        older = entries_by_id(reader, tenant_id, [id_ for id_ in ids if id_ not in speakers])
        spoken = speakers | {entry.id: speaker_of(entry) for entry in older}
        return [spoken.get(id_, "") for id_ in ids]

    return [build_segment(portion) for portion in chunked(made, PIECE_ENTRIES)], names


# -- in storage ---------------------------------------------------------------------------------------


class SegmentCodec:
    """Segments as blocks."""

    def size(self, block: Segment) -> int:
        return len(block)

    def encode(self, block: Segment) -> bytes:
        return encode_segment(block)

    def decode(self, data: bytes) -> Segment:
        return decode_segment(data)

    def merge(self, blocks: Sequence[Segment]) -> Segment:
        return merge_segments(blocks)

    def drop(self, block: Segment, lost: Set[str]) -> Segment | None:
        return drop_turns(block, lost)


CODEC = SegmentCodec()


def segments_of(user_id: str) -> BlockScope:
    return BlockScope("segments", (("user_id", user_id),))


class RecallIndex:
    """The index of turns, as the store follows, forgets, rebuilds and verifies it (`TurnIndex`)."""

    def follow(
        self,
        ctx: Context,
        tenant_id: str,
        user_id: str,
        *,
        entries_max: int | None = None,
        progress: Callable[[int], None] | None = None,
        embeds: bool = True,
    ) -> int:
        return follow(ctx, tenant_id, user_id, entries_max=entries_max, progress=progress, embeds=embeds)

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> dict[str, int]:
        from muniment.memory.statements import drop_statements
        from muniment.memory.vectors import remove_vectors

        lost: dict[str, list[_Numbered]] = {}
        for entry in by_ids(tx, ENTRIES, entry_ids, into=_Numbered):
            lost.setdefault(entry.user_id, []).append(entry)
        counts = {"segments": 0, "vectors": 0, "statements": 0}
        for user_id in sorted(lost, key=lock_rank):
            user = lock_user(tx, user_id)
            counts["statements"] += drop_statements(tx, user_id, [each.n for each in lost[user_id]])
            covered = {entry.id for entry in lost[user_id] if entry.n <= user.indexed}
            if covered:
                counts["segments"] += drop_from_blocks(tx, segments_of(user_id), CODEC, covered)
            embedded = {entry.id for entry in lost[user_id] if entry.n <= max(user.indexed, user.embedded)}
            if embedded:
                counts["vectors"] += remove_vectors(tx, user_id, embedded)
        return counts

    def outdated(self, reader: Reader, users: Sequence[str] | None = None) -> int:
        from muniment.memory.statements import outdated_users

        asked: list[tuple[Condition, ...]] = [()]
        if users is not None:
            asked = [(("user_id", "in", some),) for some in chunked(users)]
        rows = (row for where in asked for row in stream(reader, SEGMENTS, where))
        outdated = {row.user_id for row in rows if is_outdated(row.data)}
        return len(outdated | outdated_users(reader, users))

    def fault(self, reader: Reader, tenant_id: str, user_id: str) -> str | None:
        from muniment.memory.statements import statement_fault

        return index_fault(reader, tenant_id, user_id) or statement_fault(reader, tenant_id, user_id)

    def reset(self, tx: Transaction, user_id: str) -> int:
        return reset(tx, user_id)

    def rebuild(self, tx: Transaction, tenant_id: str, user_id: str) -> int:
        """Reset the user's index and follow the ledger to its end, in this one transaction. Vectors stay."""
        reset(tx, user_id, vectors=False)
        turns = 0
        while (piece := _read_piece(tenant_id, user_id, PIECE_ENTRIES, tx)).last > piece.user.indexed:
            _write_piece(piece, tx)
            turns += len(piece.turns)
        return turns


class _Numbered(NamedTuple):
    id: str
    user_id: str
    n: int


class _Piece(NamedTuple):
    """Consecutive entries of a user, analysed before the transaction that indexes them."""

    user: UserRow
    """The user's row when they were read."""
    last: int
    turns: list[IndexedTurn]
    said: list[tuple[LedgerEntry, str]]
    places: list[_Place]
    """All entries, by session."""
    statements: list[StatementRow]


class _Place(NamedTuple):
    session_id: str
    seq: int
    ts: str
    was_turn: bool


def follow(
    ctx: Context,
    tenant_id: str,
    user_id: str,
    *,
    entries_max: int | None = None,
    progress: Callable[[int], None] | None = None,
    embeds: bool = True,
) -> int:
    """Index the entries behind a user's watermark, a piece per transaction; return the number of turns.

    It can be stopped and resumed at any time, and run by several processes at once. It ends after `entries_max`
    entries, if given. With `embeds` vectors are made after the words: a failing embedder keeps no word out of the
    index.
    """
    if not ctx.indexes_turns:
        return 0
    turns = entries = lost = 0
    while lost < _LOST_MAX and (entries_max is None or entries < entries_max):
        checkpoint()
        size = PIECE_ENTRIES if entries_max is None else min(PIECE_ENTRIES, entries_max - entries)
        piece = ctx.engine.read(tenant_id, partial(_read_piece, tenant_id, user_id, size))
        if piece.last <= piece.user.indexed:
            break
        if ctx.engine.write(tenant_id, partial(_write_piece, piece)):
            turns += len(piece.turns)
            entries += piece.last - piece.user.indexed
            if progress is not None:
                progress(piece.last - piece.user.indexed)
        else:
            lost += 1  # another process indexed the same entries, or forgot some of them
    if embeds and ctx.embedder is not None:
        from muniment.memory.vectors import embed_behind

        embed_behind(ctx, ctx.embedder, tenant_id, user_id, entries_max)
    return turns


def index_tenant(
    ctx: Context,
    tenant_id: str,
    *,
    progress: Callable[[int], None] | None = None,
    of_users: Sequence[str] | None = None,
    embeds: bool = True,
) -> int:
    """Index everything behind the watermarks of a tenant, or of some of its users; return the number of turns. Each
    call begins with a different user, so that concurrent indexers seldom repeat each other's work.
    """
    if not ctx.indexes_turns:
        return 0
    users = list(of_users or ()) if of_users is not None else ctx.engine.read(tenant_id, _users_due)
    start = int.from_bytes(ctx.ids.salts(1)[0], "big") % len(users) if users and of_users is None else 0
    failure: EmbedderFailure | None = None
    turns = 0
    for user_id in (*users[start:], *users[:start]):
        try:
            turns += follow(ctx, tenant_id, user_id, progress=progress, embeds=embeds and failure is None)
        except EmbedderFailure as error:  # other users' words are indexed nevertheless
            failure = error
    if failure is not None:
        raise failure
    return turns


def _users_due(reader: Reader) -> list[str]:
    return sorted(
        user.user_id for user in stream(reader, USERS) if user.indexed < user.tail or user.embedded < user.tail
    )


def count_unindexed(ctx: Context, tenant_id: str) -> int:
    """The number of a tenant's entries still to be indexed."""
    return ctx.engine.read(tenant_id, count_tail) if ctx.indexes_turns else 0


_LOST_MAX = 16
"""Lost races before this call leaves the rest to other processes."""


def _read_piece(tenant_id: str, user_id: str, size: int, reader: Reader) -> _Piece:
    """The next entries behind a user's watermark."""
    user = read_user(reader, user_id)
    last = min(user.tail, user.indexed + size)
    piece = _Piece(user, last, [], [], [], [])
    spoken: list[UserTurn] = []
    if user.indexed < last:
        from muniment.memory.statements import UserTurn, has_statements, read_statements

        for row in stream(reader, ENTRIES, _numbered(user_id, user.indexed, last), order=("user_id", "n")):
            was_turn = can_be_turn(row.kind, row.role)
            piece.places.append(_Place(row.session_id, row.seq, row.ts, was_turn))
            if was_turn and row.receipt_id is None:
                entry, text = _turn_of(reader, tenant_id, row)
                piece.said.append((entry, text))
                piece.turns.append(analyse_turn(entry, text))
                if has_statements(row):
                    spoken.append(UserTurn(row.n, text))
        piece.statements.extend(read_statements(user_id, spoken))
    return piece


def _write_piece(piece: _Piece, tx: Transaction) -> bool:
    """Write a piece's rows and move the watermark past it; False if the user has changed meanwhile."""
    user_id = piece.user.user_id
    if lock_user(tx, user_id)._replace(tail=piece.user.tail) != piece.user:
        return False
    if piece.turns:
        append_block(tx, segments_of(user_id), CODEC, build_segment(piece.turns))
    if not is_reserved(user_id):
        from muniment.memory.sessions import extend_sessions
        from muniment.memory.statements import add_statements

        add_statements(tx, piece.statements)
        extend_sessions(tx, user_id, _session_pieces(piece))
    tx.do(Patch("users", (("user_id", "=", user_id),), {"indexed": piece.last}))
    return True


def _session_pieces(piece: _Piece) -> list[SessionPiece]:
    """The entries of a piece by session."""
    from muniment.memory.sessions import SessionPiece, TurnPlace

    made: dict[str, SessionPiece] = {}
    for place in piece.places:
        own = made.get(place.session_id) or SessionPiece(place.session_id, place.seq, [])
        if place.was_turn:
            own.places.append(TurnPlace(place.seq, place.ts))
        made[place.session_id] = own
    return list(made.values())


def reset(tx: Transaction, user_id: str, *, vectors: bool = True) -> int:
    """Drop a user's index and reset its watermark to 0; return the number of blocks dropped. Nothing else is lost: the
    index is computed from the ledger until it is stored again.
    """
    user = lock_user(tx, user_id)
    moved = {"indexed": 0, "generation": user.generation + 1}
    of_user: tuple[Condition, ...] = (("user_id", "=", user_id),)
    dropped = 0
    for name in ("segments", "episodes", "statements"):
        dropped += tx.do(Delete(name, of_user))
    if vectors:
        moved["embedded"] = 0
        dropped += tx.do(Delete("vectors", of_user))
    tx.do(Patch("users", of_user, moved))
    return dropped


_CHECKED_TURNS = 512
"""Turns whose texts a verification holds at a time."""


def index_fault(reader: Reader, tenant_id: str, user_id: str) -> str | None:
    """The first difference between a user's blocks and those recomputed from entries up to the watermark; None if there
    is none. Blocks of another analyzer version cannot be recomputed: of these, only the list of turns is checked.
    """
    user = read_user(reader, user_id)
    turns = read_turns(reader, tenant_id, user_id, 0, user.indexed)
    place = segments_of(user_id)
    for listed in list_blocks(reader, place):
        try:
            (data,) = read_data(reader, place, [listed])
            ids = decode_segment(data).ids
        except StoreDamaged as error:
            return error.message
        if len(ids) != listed.turns:
            return f"the index from turn {listed.first} on holds another number of turns than it says"
        said: list[str] = []
        built: list[Segment] = []
        while chunk := list(islice(turns, min(_CHECKED_TURNS, len(ids) - len(said)))):
            said += [entry.id for entry, _ in chunk]
            built.append(build_segment([analyse_turn(*each) for each in chunk]))
        if tuple(said) != ids:
            return f"the index from turn {listed.first} on does not hold the turns that were said"
        if not is_outdated(data) and encode_segment(merge_segments(built)) != data:
            return f"the index from turn {listed.first} on is not what was said"
    missing = next(turns, None)
    return None if missing is None else f"the turn {missing[0].id} is not in the index"
