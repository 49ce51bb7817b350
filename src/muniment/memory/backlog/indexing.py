"""The index of what was loaded in bulk, built afterwards, user by user, a piece in each transaction.

The turns of a piece are read and analysed before its transaction, which then takes the rows of `backlog` that it was
made of: who finds one of them gone or changed writes nothing. So several processes may index at once, one that was held
up and comes back writes nothing twice, and one that is killed leaves what it had not done. Never touches the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.cancellation import checkpoint
from muniment.core.ports.engine import Condition, Delete, Lock
from muniment.core.ports.rows import by_ids, first, insert, select, stream
from muniment.core.ports.schema import BACKLOG, ENTRIES, BacklogRow
from muniment.memory.indexing import SEGMENTS, indexed, segments_of
from muniment.memory.recall.segments import build_segment
from muniment.memory.reembedding import reembed_user
from muniment.store.blocks import append_block
from muniment.store.ledger.rows import entry_of_row
from muniment.store.turns import is_turn, text_of

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.memory.recall.segments import IndexedTurn
    from muniment.store.context import Context
    from muniment.store.ledger.records import LedgerEntry

__all__ = ["count_waiting", "index_backlog", "index_user", "waiting_users"]

PIECE_ENTRIES = 4_096
_ROWS = 500


class _Stretch(NamedTuple):
    """A row of the backlog as far as a piece takes it, with the turns in it."""

    row: BacklogRow
    last: int
    said: list[tuple[LedgerEntry, str]]


class _Piece(NamedTuple):
    stretches: list[_Stretch]
    turns: list[IndexedTurn]


def waiting_users(ctx: Context, tenant_id: str) -> Iterator[str]:
    """Everybody of whom something waits, one after another as they stand by then."""
    after = ""
    while (found := ctx.engine.read(tenant_id, partial(_next_user, after))) is not None:
        after = found
        yield found


def _next_user(after: str, reader: Reader) -> str | None:
    row = first(reader, BACKLOG, (("user_id", ">", after),), order=("user_id", "session_id", "first"))
    return None if row is None else row.user_id


def count_waiting(reader: Reader, user_id: str | None = None) -> int:
    """How many events wait for their index: of a tenant, or of one user."""
    where: tuple[Condition, ...] = () if user_id is None else (("user_id", "=", user_id),)
    return sum(row.last - row.first + 1 for row in stream(reader, BACKLOG, where))


def index_backlog(ctx: Context, tenant_id: str, progress: Callable[[int], None]) -> int:
    """Index all that waits of a tenant; answers how many turns that were.

    It can be stopped and run again at any time: what is done stays done.
    """
    return sum(index_user(ctx, tenant_id, user_id, progress) for user_id in waiting_users(ctx, tenant_id))


def index_user(ctx: Context, tenant_id: str, user_id: str, progress: Callable[[int], None]) -> int:
    """Index all that waits of a user; answers how many turns that were."""
    turns = 0
    while True:
        checkpoint()
        piece = ctx.engine.read(tenant_id, partial(_read_piece, tenant_id, user_id))
        if not piece.stretches:
            break
        if ctx.engine.write(tenant_id, partial(_write_piece, ctx, user_id, piece)):
            turns += len(piece.turns)
            progress(sum(stretch.last - stretch.row.first + 1 for stretch in piece.stretches))
    if turns and ctx.embedder is not None:
        reembed_user(ctx, tenant_id, user_id, ctx.embedder, None)
    return turns


def _read_piece(tenant_id: str, user_id: str, reader: Reader) -> _Piece:
    stretches: list[_Stretch] = []
    room = PIECE_ENTRIES
    for row in select(reader, BACKLOG, (("user_id", "=", user_id),), limit=_ROWS):
        if room <= 0:
            break
        last = min(row.last, row.first + room - 1)
        room -= last - row.first + 1
        stretches.append(_Stretch(row, last, list(_turns(reader, tenant_id, row, last))))
    made = [indexed(entry, text) for stretch in stretches for entry, text in stretch.said]
    return _Piece(stretches, made)


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


def _write_piece(ctx: Context, user_id: str, piece: _Piece, tx: Transaction) -> bool:
    """Put a piece into the index and take it off the backlog; False where somebody else did meanwhile."""
    sessions = sorted({stretch.row.session_id for stretch in piece.stretches})
    for session_id in sessions:
        tx.do(Lock(("session", user_id, session_id)))
    tx.do(Lock(("extracts", user_id)))
    tx.do(Lock(("index", user_id)))
    of_user: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "in", tuple(sessions)))
    held = set(select(tx, BACKLOG, of_user))
    if any(stretch.row not in held for stretch in piece.stretches):
        return False
    alive = {row.id for row in by_ids(tx, ENTRIES, [t.id for t in piece.turns], into=_Live) if row.receipt_id is None}
    turns = [turn for turn in piece.turns if turn.id in alive]
    if turns:
        append_block(tx, segments_of(user_id), SEGMENTS, build_segment(turns))
    for row, last, said in piece.stretches:
        left = [each for each in said if each[0].id in alive]
        ctx.derived.extracts.catch_up(tx, user_id, row.session_id, range(row.first, last + 1), left)
        this: tuple[Condition, ...] = (
            ("user_id", "=", user_id),
            ("session_id", "=", row.session_id),
            ("first", "=", row.first),
        )
        tx.do(Delete("backlog", this))
        if last < row.last:
            insert(tx, BACKLOG, [row._replace(first=last + 1)])
    return True
