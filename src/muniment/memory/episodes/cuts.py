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
    found = [row]
    for seq, ts in turns:
        last = found[-1]
        if not last.turns:
            found[-1] = last._replace(last=seq, turns=1, started_at=ts, ended_at=ts)
        elif last.turns >= EPISODE_TURNS_MAX or parse_instant(ts) - parse_instant(last.ended_at) > GAP:
            found.append(EpisodeRow(row.user_id, row.session_id, seq, seq, 1, ts, ts))
        else:
            found[-1] = last._replace(last=seq, turns=last.turns + 1, ended_at=ts)
    return found
