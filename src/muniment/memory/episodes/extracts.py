"""What a stretch of a session comes to, as places in its entries: the best sentences, and what was settled.

A stretch of level 0 is so many consecutive entries of a session; one of level n + 1 is so many of level n. Boundaries
go by the entries' numbers alone, so that a forget moves none of them. An extract of turns is a pure function of those
that are left, and an extract of extracts one of them and the words they point to: made again, it has the same bytes.
What was settled is carried up whole, up to a bound for each kind; what is left behind is counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from muniment.memory.episodes.agreements import AGREEMENT_KINDS, AgreementKind
from muniment.memory.episodes.salience import best_sentences
from muniment.memory.episodes.turns import ReadTurn, sentence_at

__all__ = [
    "CARRIED_MAX",
    "FAN",
    "FORMAT",
    "LEVELS",
    "STRETCH",
    "Extract",
    "Span",
    "decode_extract",
    "encode_extract",
    "extract_turns",
    "first_of",
    "merge_extracts",
    "size_of",
    "strongest",
]

FORMAT = 1
"""Which way of reading made an extract. Rows of another one are made again by a rebuild."""
STRETCH = 48
"""Entries of a stretch. Fewer than are read for every packet, so that the open end is read with those."""
FAN = 16
LEVELS = 4
"""Up to 48 × 16³ = 196,608 entries are under one row; a longer session has more rows of the highest level."""
LINES = 6
CARRIED_MAX: Mapping[AgreementKind, int] = {"constraint": 96, "commitment": 32, "decision": 32, "end": 48}
"""How many of each kind are carried up from the stretches below."""
_WEIGHT_MAX = 65_535
_WEIGHTS = 1_000
_HEAD = struct.Struct(f">BHH{len(AGREEMENT_KINDS)}I")
_SPAN = struct.Struct(">QIIHB")
_LINE = len(AGREEMENT_KINDS)


class Span(NamedTuple):
    """A sentence of an entry, by its place: characters of the text of the turn."""

    seq: int
    start: int
    end: int
    weight: int
    kind: AgreementKind | None = None


class Extract(NamedTuple):
    """The best sentences of a stretch and what was settled in it, each in the order said."""

    lines: tuple[Span, ...] = ()
    agreements: tuple[Span, ...] = ()
    left: tuple[int, ...] = (0,) * len(AGREEMENT_KINDS)
    """How many agreements of each kind were not carried up."""


def size_of(level: int) -> int:
    """How many entries a stretch of this level has."""
    return int(STRETCH * FAN**level)


def first_of(level: int, seq: int) -> int:
    """The number of the first entry of the stretch that has this one."""
    size = size_of(level)
    return (seq - 1) // size * size + 1


def extract_turns(turns: Sequence[ReadTurn]) -> Extract:
    """The extract of a stretch of level 0, from those of its turns that are left.

    A short sentence would be the last of its few lines: rows stay what they are, and the open end is read with them.
    """
    said = [
        (read.turn, sentence)
        for read in turns
        if read.turn.role != "tool"
        for sentence in read.sentences
        if not sentence.is_short
    ]
    lines = [
        Span(turn.seq, sentence.start, sentence.end, _whole(gain))
        for turn, sentence, gain in best_sentences(said, LINES)
    ]
    settled = [
        Span(read.turn.seq, found.start, found.end, found.strength, found.kind)
        for read in turns
        for found in read.agreements
    ]
    return _bounded(lines, settled, Extract().left)


def merge_extracts(parts: Sequence[Extract], turns: Mapping[int, ReadTurn]) -> Extract:
    """The extract of a stretch of a higher level, from those below it and the turns they point to, by their number."""
    said = [
        (turns[span.seq].turn, sentence)
        for part in parts
        for span in part.lines
        if span.seq in turns and (sentence := sentence_at(turns[span.seq].turn, span.start, span.end)) is not None
    ]
    lines = [
        Span(turn.seq, sentence.start, sentence.end, _whole(gain))
        for turn, sentence, gain in best_sentences(said, LINES)
    ]
    settled = [span for part in parts for span in part.agreements]
    left = tuple(map(sum, zip(*(part.left for part in parts), strict=True))) or Extract().left
    return _bounded(lines, settled, left)


def strongest(spans: Iterable[Span], kind: AgreementKind) -> list[Span]:
    """The agreements of a kind that are carried where they are too many: the strongest, then the newest."""
    of_kind = sorted((span for span in spans if span.kind == kind), key=lambda span: (span.weight, span), reverse=True)
    return of_kind[: CARRIED_MAX[kind]]


def encode_extract(extract: Extract) -> bytes:
    """The bytes of a row; a place has no word in it."""
    head = _HEAD.pack(FORMAT, len(extract.lines), len(extract.agreements), *extract.left)
    spans = (
        _SPAN.pack(span.seq, span.start, span.end, span.weight, _number(span.kind))
        for span in (*extract.lines, *extract.agreements)
    )
    return head + b"".join(spans)


def decode_extract(data: bytes) -> Extract | None:
    """An extract, or None where the bytes are none of this way of reading."""
    if len(data) < _HEAD.size or data[0] != FORMAT:
        return None
    _, lines, agreements, *left = _HEAD.unpack_from(data)
    if len(data) != _HEAD.size + _SPAN.size * (lines + agreements):
        return None
    read = list(_SPAN.iter_unpack(data[_HEAD.size :]))
    if any(kind > _LINE for *_, kind in read):
        return None
    spans = [
        Span(seq, start, end, weight, None if kind == _LINE else AGREEMENT_KINDS[kind])
        for seq, start, end, weight, kind in read
    ]
    return Extract(tuple(spans[:lines]), tuple(spans[lines:]), tuple(left))


def _bounded(lines: Sequence[Span], settled: Sequence[Span], left: Sequence[int]) -> Extract:
    carried = {kind: strongest(settled, kind) for kind in AGREEMENT_KINDS}
    counts = [
        before + sum(span.kind == kind for span in settled) - len(carried[kind])
        for kind, before in zip(AGREEMENT_KINDS, left, strict=True)
    ]
    kept = sorted((span for spans in carried.values() for span in spans), key=_place)
    return Extract(tuple(sorted(lines, key=_place)), tuple(kept), tuple(counts))


def _place(span: Span) -> tuple[int, int, int]:
    return span.seq, span.start, span.end


def _whole(gain: float) -> int:
    return min(_WEIGHT_MAX, round(gain * _WEIGHTS))


def _number(kind: AgreementKind | None) -> int:
    return _LINE if kind is None else AGREEMENT_KINDS.index(kind)
