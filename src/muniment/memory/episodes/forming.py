"""Episodes: stretches of one session that belong together in time, with their best sentences (MP-11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from muniment.core.canonical import short_id
from muniment.core.instants import parse_instant
from muniment.core.scope import lowest_trust
from muniment.memory.episodes.salience import best_lines
from muniment.memory.episodes.turns import ReadTurn
from muniment.memory.turns import EpisodeCandidate

__all__ = ["EPISODE_TURNS_MAX", "GAP", "form_episode", "form_episodes", "stretches"]

T = TypeVar("T")

GAP = timedelta(hours=6)
"""A silence this long ends an episode."""
EPISODE_TURNS_MAX = 40
LINES = 6


def stretches(turns: Iterable[T], moment_of: Callable[[T], str]) -> Iterator[list[T]]:
    """Turns of one session, in order, cut where a long silence or too many turns say so; one stretch in memory."""
    held: list[T] = []
    last = None
    for turn in turns:
        moment = parse_instant(moment_of(turn))
        if last is not None and (len(held) >= EPISODE_TURNS_MAX or moment - last > GAP):
            yield held
            held = []
        held.append(turn)
        last = moment
    if held:
        yield held


def form_episodes(turns: Sequence[ReadTurn], scores: Mapping[str, float]) -> list[EpisodeCandidate]:
    """The episodes of one session's turns. `scores` are by event id."""
    return [form_episode(stretch, scores) for stretch in stretches(turns, lambda read: read.turn.ts)]


def form_episode(stretch: Sequence[ReadTurn], scores: Mapping[str, float]) -> EpisodeCandidate:
    """The episode that one stretch of turns is."""
    turns = [read.turn for read in stretch]
    first, last = turns[0], turns[-1]
    return EpisodeCandidate.unchecked(  # of turns that were validated
        {
            "episode_id": short_id("epi", [first.session_id, first.id, last.id]),
            "session_id": first.session_id,
            "start": first.ts,
            "end": max(last.ts, first.ts),
            "lines": tuple(best_lines(stretch, LINES)),
            "sources": tuple([turn.id for turn in turns]),
            "tags": _most_common(label for read in stretch for label in read.tags),
            "entities": _most_common(label for read in stretch for label in read.entities),
            "score": max([scores.get(turn.id, 0.0) for turn in turns], default=0.0),
            "trust": lowest_trust([turn.trust for turn in turns]),
        }
    )


def _most_common(labels: Iterable[str]) -> tuple[str, ...]:
    counted = Counter(labels)
    return tuple(label for label, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:8])
