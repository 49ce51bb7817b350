"""What was found, as a search answers it."""

from __future__ import annotations

from typing import Literal

from muniment.memory.recall.records import Hit, outdated_by
from muniment.memory.searching import FoundTurn

__all__ = ["turn_hit"]

_HIT_FIELDS = set(Hit.model_fields)


def turn_hit(found: FoundTurn, kind: Literal["event", "chunk"] = "event", *why: str) -> Hit:
    """What was found, as it is answered; its parts are the ledger's and the ranking's own, which are typed."""
    turn = found.turn
    return Hit.unchecked(
        {
            "id": turn.id,
            "kind": kind,
            "text": turn.text,
            "score": found.ranked.chance,
            "ts": turn.ts,
            "sources": (turn.id,),
            "why": found.reasons + why,
            "parts": dict(found.ranked.parts),
            "session_id": turn.session_id,
            "speaker": turn.call or turn.speaker,
            "role": turn.role,
            "superseded": found.superseded,
            "superseded_by": outdated_by(found.superseded),
        },
        _HIT_FIELDS,
    )
