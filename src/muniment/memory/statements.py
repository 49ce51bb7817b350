"""Statements: the sentences that a user said and that may matter later, as places in the ledger with the gate's scores.

A row holds no word: the profile and whoever else shows a statement reads it from its entry. Rows are a pure function of
the entries, and follow the ledger with the index (`memory.index`): a user's rows are those that the first
`users.indexed` entries give. What later entries give is computed when it is asked for, so that readers see the same
wherever the watermark is.

A turn that asks for a text, quotes or plays a role may hold sentences that its author does not mean. None is cut out of
it: the whole turn is one statement.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Condition, Delete
from muniment.core.ports.rows import chunked, first, put, select, stream
from muniment.core.ports.schema import ENTRIES, STATEMENTS, StatementRow
from muniment.core.scope import is_reserved
from muniment.core.text.sentences import sentence_spans
from muniment.memory.gate import SentenceScores, score_sentences
from muniment.store.ledger import entry_of_row
from muniment.store.turns import text_of
from muniment.store.watermark import read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.schema import EntryRow
    from muniment.store.context import Context

__all__ = [
    "GATE",
    "StatementCache",
    "UserTurn",
    "add_statements",
    "best_statements",
    "drop_statements",
    "has_statements",
    "outdated_users",
    "read_statements",
    "statement_fault",
]

GATE = 1
"""The version of the gate's weights and of the rules on this page. Rows of another one are rebuilt, not compared."""
CHARS_MAX = 8_000
"""Characters of a turn that are read."""
OWN_MIN = 64
"""A sentence below it may be somebody else's, or invented."""
MATTERS_MIN = 32
"""A sentence none of whose scores reaches it gets no row."""
RANKS = 8
_USERS_MAX = 256
_CHUNK = 256
_KEY = ("user_id", "session_id", "n", "start")
_BEST = ("rank", "n", "start")


class UserTurn(NamedTuple):
    """A message of a user, in their own name."""

    session_id: str
    n: int
    text: str


def has_statements(row: EntryRow) -> bool:
    """Is this entry a message in which a user speaks? What tools and pages say never is."""
    return row.kind == "message" and row.role == "user" and row.trust == "user" and not is_reserved(row.user_id)


def read_statements(user_id: str, turns: Sequence[UserTurn]) -> list[StatementRow]:
    """The statements of some turns, in their order."""
    spans = [sentence_spans(turn.text[:CHARS_MAX]) for turn in turns]
    scores = iter(score_sentences([turn.text[a:b] for turn, own in zip(turns, spans, strict=True) for a, b in own]))
    rows: list[StatementRow] = []
    for turn, own in zip(turns, spans, strict=True):
        scored = [(span, next(scores)) for span in own]
        if is_shown_whole(turn.text, scored):
            scored = [((0, len(turn.text)), _strongest([each for _, each in scored]))]
        rows += (_row(user_id, turn, span, each) for span, each in scored if max(each) >= MATTERS_MIN)
    return rows


def is_shown_whole(text: str, scored: Sequence[tuple[tuple[int, int], SentenceScores]]) -> bool:
    """May a sentence of this turn mislead by itself?"""
    return len(scored) > 1 and any(each.own < OWN_MIN and max(each.safety, each.wish) >= 128 for _, each in scored)


def _strongest(scores: Sequence[SentenceScores]) -> SentenceScores:
    """The scores of a whole turn: it matters as much as its best sentence, and is as little its author's as its worst."""
    strongest = SentenceScores(*map(max, zip(*scores, strict=True)))
    return strongest._replace(own=min(each.own for each in scores))


def _row(user_id: str, turn: UserTurn, span: tuple[int, int], scores: SentenceScores) -> StatementRow:
    start, end = span
    rank = max(scores.safety, scores.wish, scores.correction) * RANKS // 256
    return StatementRow(user_id, turn.session_id, turn.n, start, end - start, rank, *scores, gate=GATE)


# -- reading, wherever the watermark is ---------------------------------------------------------------


class _Tail(NamedTuple):
    generation: int
    last: int
    """The number of the last entry that was read."""
    rows: tuple[StatementRow, ...]


class StatementCache:
    """Statements behind the watermark, by tenant and user; the oldest are let go. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], _Tail] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> _Tail | None:
        with self._lock:
            return self._held.get(key)

    def put(self, key: tuple[str, str], tail: _Tail) -> None:
        with self._lock:
            self._held[key] = tail
            self._held.move_to_end(key)
            while len(self._held) > _USERS_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


def best_statements(ctx: Context, reader: Reader, tenant_id: str, user_id: str, limit: int) -> list[StatementRow]:
    """A user's statements, those of the highest rank and then the newest first."""
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    stored = select(reader, STATEMENTS, where, order=_BEST, descending=True, limit=limit)
    rows = [*stored, *_tail_statements(ctx, reader, tenant_id, user_id)]
    return sorted(rows, key=lambda row: (-row.rank, -row.n, -row.start))[:limit]


def _tail_statements(ctx: Context, reader: Reader, tenant_id: str, user_id: str) -> Iterable[StatementRow]:
    """The rows that the entries behind the watermark will give. Only what was appended since the last call is read."""
    user = read_user(reader, user_id)
    if not ctx.indexes_turns or user.indexed >= user.tail:
        return ()
    cache = ctx.cache(StatementCache)
    held = cache.get((tenant_id, user_id))
    if held is None or held.generation != user.generation or not user.indexed <= held.last <= user.tail:
        held = _Tail(user.generation, user.indexed, ())
    if held.last < user.tail:
        where = (("user_id", "=", user_id), ("n", ">", held.last), ("n", "<=", user.tail))
        turns = list(_turns(reader, tenant_id, where, ("user_id", "n")))
        rows = tuple(row for row in held.rows if row.n > user.indexed)
        held = _Tail(user.generation, user.tail, (*rows, *read_statements(user_id, turns)))
        cache.put((tenant_id, user_id), held)
    return (row for row in held.rows if row.n > user.indexed)


def _turns(
    reader: Reader, tenant_id: str, where: tuple[Condition, ...], order: tuple[str, ...]
) -> Iterator[UserTurn]:
    for row in stream(reader, ENTRIES, (*where, ("receipt_id", "=", None)), order=order):
        if has_statements(row):
            yield UserTurn(row.session_id, row.n, text_of(reader, entry_of_row(tenant_id, row)))


# -- writing, forgetting, verifying -------------------------------------------------------------------


def add_statements(tx: Transaction, rows: Sequence[StatementRow]) -> None:
    """Write what the entries give that the watermark moves past."""
    if rows:
        put(tx, STATEMENTS, rows)


def drop_statements(tx: Transaction, user_id: str, places: Sequence[tuple[str, int]]) -> int:
    """Remove the rows of forgotten entries of a user, by session and number; answers how many."""
    removed = 0
    for session_id, own in groupby(sorted(places), key=itemgetter(0)):
        session: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "=", session_id))
        for some in chunked([n for _, n in own]):
            removed += tx.do(Delete("statements", (*session, ("n", "in", some))))
    return removed


class _Owner(NamedTuple):
    user_id: str


def outdated_users(reader: Reader, users: Sequence[str] | None = None) -> set[str]:
    """The users of a tenant, or those of some, that have rows of another version of the gate."""
    asked: list[tuple[Condition, ...]] = [()]
    if users is not None:
        asked = [(("user_id", "in", some),) for some in chunked(users)]
    rows = (row for own in asked for row in stream(reader, STATEMENTS, (*own, ("gate", "<", GATE)), into=_Owner))
    return {row.user_id for row in rows}


def statement_fault(reader: Reader, tenant_id: str, user_id: str) -> str | None:
    """The first difference between a user's rows and what the entries up to the watermark give; None where there is
    none, or where another version of the gate made them."""
    of_user: tuple[Condition, ...] = (("user_id", "=", user_id),)
    if first(reader, STATEMENTS, (*of_user, ("gate", "<", GATE)), into=_Owner) is not None:
        return None
    stored = stream(reader, STATEMENTS, of_user, order=_KEY)
    for row, made in zip_longest(stored, _made(reader, tenant_id, user_id)):
        if row == made:
            continue
        if row is None or (made is not None and _place(made) < _place(row)):
            return f"the statement of entry {made.n} from character {made.start} on is missing"
        return f"the statement of entry {row.n} from character {row.start} on is not what was said there"
    return None


def _made(reader: Reader, tenant_id: str, user_id: str) -> Iterator[StatementRow]:
    """The rows that the entries up to the watermark give, in the order of their key."""
    where = (("user_id", "=", user_id), ("n", "<=", read_user(reader, user_id).indexed))
    turns: list[UserTurn] = []
    for turn in _turns(reader, tenant_id, where, ("user_id", "session_id", "seq")):
        turns.append(turn)
        if len(turns) == _CHUNK:
            yield from read_statements(user_id, turns)
            turns = []
    yield from read_statements(user_id, turns)


def _place(row: StatementRow) -> tuple[str, int, int]:
    return row.session_id, row.n, row.start
