"""The summary of a whole session, read from its extracts and its last turns, however long it is.

It holds what was settled: constraints, commitments and decisions in the order said, unless a later turn ends one; and
the summary that the caller gave. What is left out over a bound is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from muniment.core.ports.rows import get
from muniment.core.ports.schema import SESSIONS
from muniment.core.text.sentences import words_of
from muniment.memory.caches import TurnCache
from muniment.memory.episodes.agreements import AGREEMENT_KINDS, ends_agreement
from muniment.memory.episodes.extracts import Span, extract_turns, strongest
from muniment.memory.episodes.salience import line_of
from muniment.memory.session_rows import StoredExtracts, read_extracts
from muniment.memory.summary_writing import newest_given
from muniment.memory.turn_reading import turns_at
from muniment.memory.turns import SessionLine, SummaryKind

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.memory.episodes.given_summary import GivenSummary
    from muniment.memory.episodes.turns import ReadTurn
    from muniment.memory.turns import Turn
    from muniment.store.context import Context

__all__ = ["RECENT_ENTRIES", "SessionSummary", "read_summary"]

RECENT_ENTRIES = 60
"""How many of the last entries the caller has read: more than a stretch, so that nothing lies between."""


class Counted(NamedTuple):
    """How much of one kind a session holds, how much of that is in its summary, and why the rest is not."""

    kind: str
    held: int
    gathered: int
    reasons: Mapping[str, int]


class SessionSummary(NamedTuple):
    lines: tuple[SessionLine, ...]
    not_gathered: tuple[Counted, ...]
    """Agreements that are not in it."""


def read_summary(ctx: Context, reader: Reader, scope: Scope, recent: Sequence[ReadTurn]) -> SessionSummary:
    """`recent` are the turns among the last `RECENT_ENTRIES` of the session."""
    tenant_id, user_id, session_id = scope.tenant_id, scope.user_id, scope.session_id
    session = get(reader, SESSIONS, (user_id, session_id))
    if session is None:
        return SessionSummary((), ())
    stored = read_extracts(ctx, reader, tenant_id, user_id, session_id, session.head_seq)

    def read() -> SessionSummary:
        settled, left = _settled(stored, recent)
        turns = {read.turn.seq: read.turn for read in recent}
        missing = {span.seq for spans in settled.values() for span in spans} - turns.keys()
        found = turns_at(ctx, reader, tenant_id, user_id, session_id, missing) if missing else {}
        turns |= {seq: turn.read.turn for seq, turn in found.items()}
        agreed, fallen = _agreed(settled, turns)
        return SessionSummary(tuple(agreed), tuple(_counted(agreed, fallen, left)))

    state = (user_id, session_id, stored.digest)
    ids = (each.turn.id for each in recent)
    found = ctx.cache(TurnCache).glean("summary", tenant_id, (*state, *ids), read)
    given = newest_given(reader, user_id, session_id)
    return found if given is None else found._replace(lines=(*found.lines, _given_line(given)))


def _given_line(given: GivenSummary) -> SessionLine:
    return SessionLine(
        evidence_id=given.summary_id,
        text=given.text,
        ts=given.given_at,
        weight=0,
        trust=given.trust,
        kind="given",
        sources=given.sources,
        flags=given.flags,
    )


def _settled(stored: StoredExtracts, recent: Iterable[ReadTurn]) -> tuple[dict[str, list[Span]], dict[str, int]]:
    """Agreements by kind, the strongest and newest of all that the session has; and how many there are besides."""
    spans = [*stored.spans, *extract_turns(read for read in recent if read.turn.seq > stored.covered)]
    settled: dict[str, list[Span]] = {kind: strongest(spans, kind) for kind in AGREEMENT_KINDS}
    left: dict[str, int] = {}
    for kind in AGREEMENT_KINDS:
        more = sum(span.kind == kind for span in spans) - len(settled[kind])
        if kind != "end" and more:
            left[kind] = more
    return settled, left


def _agreed(
    settled: Mapping[str, Sequence[Span]], turns: Mapping[int, Turn]
) -> tuple[list[SessionLine], Counter[tuple[str, str]]]:
    """What still holds of what was settled, each once, in the order said; and how much does not, by kind and reason."""
    ends = [(span, turns[span.seq]) for span in settled["end"] if span.seq in turns]
    lines: list[SessionLine] = []
    fallen: Counter[tuple[str, str]] = Counter()
    said: set[tuple[str, ...]] = set()
    spans = sorted(span for kind in AGREEMENT_KINDS if kind != "end" for span in settled[kind])
    for span in spans:
        turn = turns.get(span.seq)
        text = "" if turn is None else turn.text[span.start : span.end]
        words = (str(span.kind), *words_of(text))
        if turn is None or not text:
            fallen[str(span.kind), "empty"] += 1
        elif _is_ended(span, turn, text, ends):
            fallen[str(span.kind), "deprecated"] += 1
        elif words in said:
            fallen[str(span.kind), "duplicate"] += 1
        else:
            said.add(words)
            lines.append(_line(turn, text, span.weight, cast("SummaryKind", span.kind)))
    return lines, fallen


def _counted(
    agreed: Sequence[SessionLine], fallen: Counter[tuple[str, str]], left: Mapping[str, int]
) -> Iterator[Counted]:
    """The agreements of a session by kind: told, fallen by the way, over the bound."""
    for kind in AGREEMENT_KINDS:
        if kind != "end":
            reasons = {reason: count for (of, reason), count in sorted(fallen.items()) if of == kind}
            reasons["count_limit"] = left.get(kind, 0)
            gathered = sum(line.kind == kind for line in agreed)
            yield Counted(f"{kind}s", gathered + sum(reasons.values()), gathered, reasons)


def _is_ended(span: Span, turn: Turn, text: str, ends: Sequence[tuple[Span, Turn]]) -> bool:
    return any(
        (end.seq, end.start) > (span.seq, span.start)
        and ends_agreement(str(span.kind), turn.role, text, by.role, by.text[end.start : end.end])
        for end, by in ends
    )


def _line(turn: Turn, text: str, weight: float, kind: SummaryKind) -> SessionLine:
    return SessionLine.from_wire(line_of(turn, text, weight).to_wire() | {"kind": kind})
