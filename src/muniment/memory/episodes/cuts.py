"""Where a session is cut into episodes, turn by turn. A turn that is forgotten leaves its place, so no cut moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from muniment.core.instants import parse_instant
from muniment.core.ports.schema import EpisodeRow
from muniment.memory.episodes.forming import EPISODE_TURNS_MAX, GAP

__all__ = ["TurnPlace", "cut", "unbegun"]


class TurnPlace(NamedTuple):
    """The number of a turn in its session, and when it was said."""

    seq: int
    ts: str


def unbegun(user_id: str, session_id: str) -> EpisodeRow:
    """The first episode of a session in which no turn stands yet."""
    return EpisodeRow(user_id, session_id, first=1, last=1, turns=0, started_at="", ended_at="")


def cut(row: EpisodeRow, turns: Iterable[TurnPlace]) -> list[EpisodeRow]:
    """The episode with these turns after it, and those that begin among them."""
    user_id, session_id, first, last, count, started_at, ended_at = row
    ended = parse_instant(ended_at) if count else None
    found: list[EpisodeRow] = []
    for seq, ts in turns:
        moment = parse_instant(ts)
        if ended is None:
            started_at = ts
        elif count >= EPISODE_TURNS_MAX or moment - ended > GAP:
            found.append(EpisodeRow(user_id, session_id, first, last, count, started_at, ended_at))
            first, count, started_at = seq, 0, ts
        last, count, ended_at, ended = seq, count + 1, ts, moment
    return [*found, EpisodeRow(user_id, session_id, first, last, count, started_at, ended_at)]
