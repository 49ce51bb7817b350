"""Statements: sentences of a user that may matter later, as places in the ledger with the gate's scores.

A row holds no words: the profile and other readers take the text from its entry. Rows are a pure function of the
entries, and follow the ledger with the index (`memory.index`): a user's rows are derived from the first `users.indexed`
entries. Later entries are evaluated on demand, so that readers see the same regardless of the watermark.

A short turn is one statement. So is a longer one with quotations, or with a sentence that seems not to be its author's
own: it may request a text or play a role, and none of its sentences can be shown alone. Of any other turn, each
sentence is a statement.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Condition, Count, Delete
from muniment.core.ports.rows import chunked, find, first, put, select, stream
from muniment.core.ports.schema import ENTRIES, STATEMENTS, StatementRow
from muniment.core.scope import is_reserved
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.core.text.word_lists import read_data
from muniment.memory.gate import SentenceScores, score_sentences
from muniment.store.ledger import entry_of_row
from muniment.store.turns import text_of
from muniment.store.watermark import read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.ports.schema import EntryRow
    from muniment.store.context import Context

__all__ = [
    "CHARS_MAX",
    "StatementCache",
    "UserTurn",
    "add_statements",
    "best_statements",
    "drop_statements",
    "gate_version",
    "has_statements",
    "is_users_own",
    "outdated_users",
    "read_statements",
    "statement_fault",
    "worth",
]

CHARS_MAX = 8_000
"""Characters of a turn that are read."""
SHORT_BYTES = 100
"""A turn up to this size is one statement."""
LONG_CHARS = 2_000
"""Longer statements fit into few profiles, so they are read last."""
QUOTE_BYTES = 20
"""Shorter quotations are names or titles."""
SENTENCES_MAX = 64
"""A turn with more is a list or a text, and one statement, scored by the first of its sentences."""
OWN_MIN = 140
"""A sentence scored below this may be somebody else's, or invented."""
EITHER_MAX = 32
"""The bonus of a statement equally likely about safety and a wish: the two probabilities add up."""
_RULES = 5
"""Raised with every change to the statements that this module derives from a turn."""
_QUOTATION = lazy_pattern(r"(?m)[\"“”„«»「」『』‘]([^\"“”„«»「」『』‘’]+)[\"“”„«»「」『』’]|^[ \t]*(?:>|```)")
_USERS_MAX = 256
_CHUNK = 256


Span = tuple[int, int]
"""A range of characters."""


class UserTurn(NamedTuple):
    """A message written by the user."""

    n: int
    text: str


def has_statements(row: EntryRow) -> bool:
    """True if this entry may hold statements of its user."""
    return is_users_own(row.kind, row.role, row.trust) and not is_reserved(row.user_id)


def is_users_own(kind: str, role: str, trust: str) -> bool:
    """True for a message in which the user speaks; never for tools and pages."""
    return kind == "message" and role == trust == "user"


@cache
def gate_version() -> int:
    """The version of the gate's weights and of the rules here. Rows of another version are rebuilt, not compared."""
    return (crc32(read_data("muniment.memory", "gate.bin")) + _RULES) % 127


def read_statements(user_id: str, turns: Sequence[UserTurn]) -> list[StatementRow]:
    """The statements of these turns, in order."""
    spans = [sentence_spans(turn.text[:CHARS_MAX])[: SENTENCES_MAX + 1] for turn in turns]
    scores = iter(score_sentences([turn.text[a:b] for turn, own in zip(turns, spans, strict=True) for a, b in own]))
    rows: list[StatementRow] = []
    for turn, own in zip(turns, spans, strict=True):
        scored = [(span, next(scores)) for span in own]
        if is_shown_whole(turn.text, scored):
            scored = [((own[0][0], len(turn.text.rstrip())), _of_turn(scored))]
        rows += (_row(user_id, turn, span, each) for span, each in scored)
    return rows


def is_shown_whole(text: str, scored: Sequence[tuple[Span, SentenceScores]]) -> bool:
    """True if the turn is short, or one of its sentences alone may mislead."""
    if len(scored) < 2:
        return False
    if len(text.encode()) <= SHORT_BYTES or len(scored) > SENTENCES_MAX:
        return True
    if any(each.own < OWN_MIN for _, each in scored):
        return True
    return any(found[1] is None or len(found[1].encode()) >= QUOTE_BYTES for found in _QUOTATION.finditer(text))


def _of_turn(scored: Sequence[tuple[Span, SentenceScores]]) -> SentenceScores:
    """The scores of a whole turn: as important as its best sentence, as authentic as its worst."""
    scores = [each for _, each in scored]
    return SentenceScores(*map(max, zip(*scores, strict=True)))._replace(own=min(each.own for each in scores))


def _row(user_id: str, turn: UserTurn, span: Span, scores: SentenceScores) -> StatementRow:
    start, end = span
    rank = max(worth(scores), scores.correction) if end - start <= LONG_CHARS else 0
    return StatementRow(user_id, rank, turn.n, start, end - start, *scores, gate=gate_version())


def worth(scores: SentenceScores | StatementRow) -> int:
    """The probability that a statement is about safety or a standing wish: higher than either alone if it may be both,
    lower if it may be a decision, which matters only for a while.
    """
    either = max(0, EITHER_MAX - abs(scores.safety - scores.wish) // 3)
    return max(0, max(scores.safety, scores.wish) + either - scores.decision // 5)


# -- reading, independent of the watermark ---------------------------------------------------------------


class _Tail(NamedTuple):
    generation: int
    last: int
    """The number of the last entry read."""
    rows: tuple[StatementRow, ...]


class StatementCache:
    """Statements past the watermark, by tenant and user; the oldest are evicted. Thread-safe."""

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
    """A user's statements, by rank and then newest first."""
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    stored = select(reader, STATEMENTS, where, order=STATEMENTS.key, descending=True, limit=limit)
    rows = [*stored, *_tail_statements(ctx, reader, tenant_id, user_id)]
    return sorted(rows, key=lambda row: (-row.rank, -row.n, -row.start))[:limit]


def _tail_statements(ctx: Context, reader: Reader, tenant_id: str, user_id: str) -> Iterable[StatementRow]:
    """The future rows of the entries past the watermark. Only entries appended since the last call are read."""
    user = read_user(reader, user_id)
    if not ctx.indexes_turns or user.indexed >= user.tail:
        return ()
    cache = ctx.cache(StatementCache)
    held = cache.get((tenant_id, user_id))
    if held is None or held.generation != user.generation or not user.indexed <= held.last <= user.tail:
        held = _Tail(user.generation, user.indexed, ())
    if held.last < user.tail:
        where: tuple[Condition, ...] = (("user_id", "=", user_id), ("n", ">", held.last), ("n", "<=", user.tail))
        turns = list(_turns(reader, tenant_id, where))
        rows = tuple(row for row in held.rows if row.n > user.indexed)
        held = _Tail(user.generation, user.tail, (*rows, *read_statements(user_id, turns)))
        cache.put((tenant_id, user_id), held)
    return (row for row in held.rows if row.n > user.indexed)


def _turns(reader: Reader, tenant_id: str, where: tuple[Condition, ...]) -> Iterator[UserTurn]:
    for row in stream(reader, ENTRIES, (*where, ("receipt_id", "=", None)), order=("user_id", "n")):
        if has_statements(row):
            yield UserTurn(row.n, text_of(reader, entry_of_row(tenant_id, row)))


# -- writing, forgetting, verifying -------------------------------------------------------------------


def add_statements(tx: Transaction, rows: Sequence[StatementRow]) -> None:
    """Write the rows of the entries that the watermark moves past."""
    if rows:
        put(tx, STATEMENTS, rows)


def drop_statements(tx: Transaction, user_id: str, numbers: Sequence[int]) -> int:
    """Remove the rows of a user's forgotten entries, by number; return how many."""
    return sum(tx.do(Delete("statements", (("user_id", "=", user_id), ("n", "in", some)))) for some in chunked(numbers))


class _Owner(NamedTuple):
    user_id: str


def outdated_users(reader: Reader, users: Sequence[str] | None = None) -> set[str]:
    """The users of a tenant, or some of them, with rows of another version of the gate."""
    asked: list[tuple[Condition, ...]] = [()]
    if users is not None:
        asked = [(("user_id", "in", some),) for some in chunked(users)]
    return {
        row.user_id
        for own in asked
        for other in _other_gates()
        for row in stream(reader, STATEMENTS, (*own, other), into=_Owner)
    }


def _other_gates() -> tuple[Condition, Condition]:
    return ("gate", "<", gate_version()), ("gate", ">", gate_version())


def statement_fault(reader: Reader, tenant_id: str, user_id: str) -> str | None:
    """The first difference between a user's rows and those recomputed from entries up to the watermark; None if there
    is none, or if another version of the gate made them.
    """
    of_user: tuple[Condition, ...] = (("user_id", "=", user_id),)
    if any(first(reader, STATEMENTS, (*of_user, other), into=_Owner) is not None for other in _other_gates()):
        return None
    count = 0
    for made in _made(reader, tenant_id, user_id):
        stored = set(find(reader, STATEMENTS, STATEMENTS.key, [_key(row) for row in made], into=StatementRow))
        for row in made:
            if row not in stored:
                return f"the statement of entry {row.n} from character {row.start} on is missing, or not what was said"
        count += len(made)
    held = reader.do(Count("statements", of_user))
    return None if held == count else f"{held - count} statements were said nowhere"


def _made(reader: Reader, tenant_id: str, user_id: str) -> Iterator[list[StatementRow]]:
    """The recomputed rows of the entries up to the watermark."""
    turns = _turns(reader, tenant_id, (("user_id", "=", user_id), ("n", "<=", read_user(reader, user_id).indexed)))
    while some := list(islice(turns, _CHUNK)):
        yield read_statements(user_id, some)


def _key(row: StatementRow) -> tuple[str, int, int, int]:
    return row.user_id, row.rank, row.n, row.start
