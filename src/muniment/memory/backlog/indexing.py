"""The index of what was loaded in bulk, built afterwards, a piece in each transaction.

The turns of a piece are read and analysed before its transaction, which then takes the rows of `backlog` that it was
made of: who finds one of them gone or changed writes nothing. So several processes may index at once, one that was held
up and comes back writes nothing twice, and one that is killed leaves what it had not done. Vectors follow: a row of
`backlog` says that they are due until they are there, whatever becomes of the embedder. Never touches the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.limits import checkpoint
from muniment.core.ports.engine import Condition, LockAll
from muniment.core.ports.rows import by_ids, find, insert, put, remove, select, stream, texts
from muniment.core.ports.schema import BACKLOG, ENTRIES, BacklogRow
from muniment.memory.backlog.reading import FOR_INDEX, FOR_VECTORS, for_vectors, users_unembedded
from muniment.memory.indexing import SEGMENTS, indexed
from muniment.memory.recall.segments import build_segment
from muniment.memory.reembedding import reembed_user
from muniment.store.blocks import append_blocks
from muniment.store.ledger.rows import entry_of_row
from muniment.store.turns import is_turn, text_of

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.models import Embedder
    from muniment.memory.recall.segments import IndexedTurn
    from muniment.store.context import Context
    from muniment.store.ledger.records import LedgerEntry

__all__ = ["index_backlog"]

PIECE_ENTRIES = 4_096
_ROWS = 500
_BY = ("user_id", "session_id", "first")
_LOOKED_AT = 20_000
"""Rows among which a call chooses where to begin."""


class _Stretch(NamedTuple):
    """A row of the backlog as far as a piece takes it, with the turns in it."""

    row: BacklogRow
    last: int
    said: list[tuple[LedgerEntry, str]]


class _Piece(NamedTuple):
    stretches: list[_Stretch]
    turns: list[IndexedTurn]


def index_backlog(
    ctx: Context,
    tenant_id: str,
    progress: Callable[[int], None],
    *,
    of_users: Sequence[str] | None = None,
    embeds: bool = True,
) -> int:
    """Index all that waits of a tenant, or of some of its users; answers how many turns this call has indexed.

    It can be stopped and run again at any time: what is done stays done. Each call begins somewhere else, and where it
    meets another it goes elsewhere: so those who index at once seldom do the same piece twice. An embedder that fails
    keeps no word out of the index: its error is raised when all of that is done, and the vectors stay due. Without
    `embeds` it is not asked.
    """
    turns = 0
    start = "" if of_users is not None else _anywhere(ctx, tenant_id)
    while True:
        checkpoint()
        piece = ctx.engine.read(tenant_id, partial(_read_piece, tenant_id, start=start, of_users=of_users))
        if not piece.stretches:
            if not start:
                break
            start = ""  # nothing is left behind where it began: what stands before it
            continue
        is_ours = ctx.engine.write(tenant_id, partial(_write_piece, ctx, piece))
        if not is_ours:
            start = "" if of_users is not None else _anywhere(ctx, tenant_id)
        else:
            turns += len(piece.turns)
            progress(sum(stretch.last - stretch.row.first + 1 for stretch in piece.stretches))
    if ctx.embedder is not None and embeds:
        _embed(ctx, tenant_id, ctx.embedder, of_users)
    return turns


def _embed(ctx: Context, tenant_id: str, embedder: Embedder, of_users: Sequence[str] | None) -> None:
    """Vectors of those to whom they are due. The rows that said so before the turns were read go when all are there:
    what somebody else indexes meanwhile has a row of its own."""
    for user_id in ctx.engine.read(tenant_id, users_unembedded):
        if of_users is not None and user_id not in of_users:
            continue
        checkpoint()
        due: tuple[Condition, ...] = (("user_id", "=", user_id), FOR_VECTORS)
        rows = ctx.engine.read(tenant_id, lambda reader, due=due: select(reader, BACKLOG, due))  # type: ignore[misc]
        reembed_user(ctx, tenant_id, user_id, embedder, None)
        ctx.engine.write(tenant_id, partial(_settle, rows))


def _settle(rows: Sequence[BacklogRow], tx: Transaction) -> None:
    remove(tx, BACKLOG, _BY, [row[:3] for row in rows])


def _anywhere(ctx: Context, tenant_id: str) -> str:
    """One of those of whom something waits, by chance; "" where there is nobody."""

    def look(reader: Reader) -> list[str]:
        return texts(reader, BACKLOG, "user_id", (FOR_INDEX,), limit=_LOOKED_AT)

    users = sorted(set(ctx.engine.read(tenant_id, look)))
    return users[int.from_bytes(ctx.ids.salts(1)[0], "big") % len(users)] if users else ""


def _read_piece(tenant_id: str, reader: Reader, *, start: str = "", of_users: Sequence[str] | None = None) -> _Piece:
    """What waits of a user and of those who come next by their names, as much as one transaction takes."""
    where: tuple[Condition, ...] = (FOR_INDEX, ("user_id", ">=", start)) if start else (FOR_INDEX,)
    if of_users is not None:
        where = (FOR_INDEX, ("user_id", "in", tuple(of_users)))
    cut = _cut(select(reader, BACKLOG, where, limit=_ROWS))
    stretches = [_Stretch(row, last, list(_turns(reader, tenant_id, row, last))) for row, last in cut]
    made = [indexed(entry, text) for stretch in stretches for entry, text in stretch.said]
    return _Piece(stretches, made)


def _cut(rows: list[BacklogRow]) -> list[tuple[BacklogRow, int]]:
    """As many rows as a piece takes, each with the last entry that it takes of it.

    A user's rows are cut only where the user begins the piece: so where blocks of the index end depends on what waits
    of that user alone, whoever indexes it and whoever comes before.
    """
    piece: list[tuple[BacklogRow, int]] = []
    room = PIECE_ENTRIES
    for _, each in groupby(rows, key=lambda row: row.user_id):
        of_user = list(each)
        is_whole = of_user[-1] is not rows[-1] or len(rows) < _ROWS
        if piece and not (is_whole and sum(row.last - row.first + 1 for row in of_user) <= room):
            break
        for row in of_user:
            last = min(row.last, row.first + room - 1)
            room -= last - row.first + 1
            piece.append((row, last))
            if room <= 0:
                return piece
    return piece


def _turns(reader: Reader, tenant_id: str, row: BacklogRow, last: int) -> Iterator[tuple[LedgerEntry, str]]:
    """The turns of a stretch that were not forgotten."""
    where: tuple[Condition, ...] = (
        ("user_id", "=", row.user_id),
        ("session_id", "=", row.session_id),
        ("seq", ">=", row.first),
        ("seq", "<=", last),
        ("receipt_id", "=", None),
    )
    for entry_row in stream(reader, ENTRIES, where, order=("user_id", "session_id", "seq")):
        entry = entry_of_row(tenant_id, entry_row)
        if is_turn(entry):
            yield entry, text_of(reader, entry)


class _Live(NamedTuple):
    id: str
    receipt_id: str | None


class _Session(NamedTuple):
    user_id: str
    session_id: str


def _write_piece(ctx: Context, piece: _Piece, tx: Transaction) -> bool:
    """Put a piece into the index and take it off the backlog; False where somebody else did meanwhile."""
    rows = [stretch.row for stretch in piece.stretches]
    sessions = sorted({_Session(row.user_id, row.session_id) for row in rows})
    users = sorted({row.user_id for row in rows})
    tx.do(LockAll([("session", *session) for session in sessions]))
    tx.do(LockAll([(name, user_id) for name in ("extracts", "index") for user_id in users]))
    keys = [row[:3] for row in rows]
    if set(find(tx, BACKLOG, _BY, keys, into=BacklogRow)) != set(rows):
        return False
    alive = {row.id for row in by_ids(tx, ENTRIES, [t.id for t in piece.turns], into=_Live) if row.receipt_id is None}
    made = _write_segments(tx, piece, alive)
    for row, last, said in piece.stretches:
        left = [each for each in said if each[0].id in alive]
        ctx.derived.extracts.catch_up(tx, row.user_id, row.session_id, range(row.first, last + 1), left)
    remove(tx, BACKLOG, _BY, keys)
    insert(tx, BACKLOG, [row._replace(first=last + 1) for row, last, _ in piece.stretches if last < row.last])
    if ctx.embedder is not None:
        ends = {row.user_id: row._replace(last=last) for row, last, _ in piece.stretches if row.user_id in made}
        put(tx, BACKLOG, [for_vectors(row) for row in ends.values()])
    return True


def _write_segments(tx: Transaction, piece: _Piece, alive: Set[str]) -> Set[str]:
    """The turns that are left of a piece, each into the index of its user; answers whose index has more now."""
    by_id = {turn.id: turn for turn in piece.turns if turn.id in alive}
    made: dict[str, list[IndexedTurn]] = {}
    for row, _, said in piece.stretches:
        made.setdefault(row.user_id, []).extend(by_id[entry.id] for entry, _ in said if entry.id in by_id)
    segments = {user_id: build_segment(turns) for user_id, turns in made.items() if turns}
    append_blocks(tx, "segments", "user_id", SEGMENTS, segments)
    return segments.keys()
