"""What was settled in a stretch of a session, as places in its entries.

A stretch is so many consecutive entries. Boundaries go by the entries' numbers alone, so that a forget moves none of
them, and an extract is a pure function of the turns that are left: made again, it has the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from muniment.memory.episodes.agreements import AGREEMENT_KINDS, AgreementKind
from muniment.memory.episodes.turns import ReadTurn

__all__ = ["SHOWN_MAX", "STRETCH", "Span", "decode_extract", "encode_extract", "extract_turns", "first_of", "strongest"]

_FORMAT = 2
STRETCH = 48
"""Entries of a stretch. Fewer than are read for every packet, so that the open end is read with those."""
SHOWN_MAX: Mapping[AgreementKind, int] = {"constraint": 96, "commitment": 32, "decision": 32, "end": 48}
"""How many of each kind a summary has."""
_SPAN = struct.Struct(">QIIHB")


class Span(NamedTuple):
    """A sentence of an entry that settles something, by its place: characters of the text of the turn."""

    seq: int
    start: int
    end: int
    weight: int
    kind: AgreementKind


def first_of(seq: int) -> int:
    """The number of the first entry of the stretch that has this one."""
    return (seq - 1) // STRETCH * STRETCH + 1


def extract_turns(turns: Iterable[ReadTurn]) -> tuple[Span, ...]:
    """What some turns settle, in the order said."""
    found = (
        Span(read.turn.seq, each.start, each.end, each.strength, each.kind)
        for read in turns
        for each in read.agreements
    )
    return tuple(sorted(found))


def strongest(spans: Sequence[Span], kind: AgreementKind) -> list[Span]:
    """The agreements of a kind that are shown where they are too many: the strongest, then the newest."""
    of_kind = sorted((span for span in spans if span.kind == kind), key=lambda span: (span.weight, span), reverse=True)
    return of_kind[: SHOWN_MAX[kind]]


def encode_extract(spans: Iterable[Span]) -> bytes:
    """The bytes of a row; a place has no word in it."""
    packed = (_SPAN.pack(*span[:4], AGREEMENT_KINDS.index(span.kind)) for span in spans)
    return bytes((_FORMAT,)) + b"".join(packed)


def decode_extract(data: bytes) -> tuple[Span, ...] | None:
    """The places of a row, or None where the bytes are none of this way of reading."""
    if data[:1] != bytes((_FORMAT,)) or (len(data) - 1) % _SPAN.size:
        return None
    read = list(_SPAN.iter_unpack(data[1:]))
    if any(kind >= len(AGREEMENT_KINDS) for *_, kind in read):
        return None
    return tuple(Span(seq, start, end, weight, AGREEMENT_KINDS[kind]) for seq, start, end, weight, kind in read)
