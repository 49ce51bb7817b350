"""Episodes: stretches of one session that belong together in time, with their best sentences (MP-11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from muniment.episodes.salience import best_lines
from muniment.records.pool import EpisodeCandidate, Turn
from muniment.semantics.trust import lowest_trust
from muniment.text.hashing import short_id
from muniment.text.instants import parse_instant

__all__ = ["EPISODE_TURNS_MAX", "GAP", "form_episodes", "stretches"]

GAP = timedelta(hours=6)
"""A silence this long ends an episode."""
EPISODE_TURNS_MAX = 40
LINES = 6


def stretches(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Turns of one session, in order, cut where a long silence or too many turns say so."""
    found: list[list[Turn]] = []
    for turn in turns:
        if found and len(found[-1]) < EPISODE_TURNS_MAX:
            silence = parse_instant(turn.ts) - parse_instant(found[-1][-1].ts)
            if silence <= GAP:
                found[-1].append(turn)
                continue
        found.append([turn])
    return found


def form_episodes(
    turns: Sequence[Turn],
    scores: Mapping[str, float],
    tags: Mapping[str, Sequence[str]],
    entities: Mapping[str, Sequence[str]],
) -> list[EpisodeCandidate]:
    """The episodes of one session's turns. `scores`, `tags` and `entities` are by event id."""
    return [_episode(stretch, scores, tags, entities) for stretch in stretches(turns)]


def _episode(
    stretch: Sequence[Turn],
    scores: Mapping[str, float],
    tags: Mapping[str, Sequence[str]],
    entities: Mapping[str, Sequence[str]],
) -> EpisodeCandidate:
    first, last = stretch[0], stretch[-1]
    return EpisodeCandidate(
        episode_id=short_id("epi", [first.session_id, first.id, last.id]),
        session_id=first.session_id,
        start=first.ts,
        end=max(last.ts, first.ts),
        lines=tuple(best_lines(stretch, LINES)),
        sources=tuple(turn.id for turn in stretch),
        tags=_most_common(tags, stretch),
        entities=_most_common(entities, stretch),
        score=max((scores.get(turn.id, 0.0) for turn in stretch), default=0.0),
        trust=lowest_trust(turn.trust for turn in stretch),
    )


def _most_common(labels: Mapping[str, Sequence[str]], stretch: Sequence[Turn]) -> tuple[str, ...]:
    counted = Counter(label for turn in stretch for label in labels.get(turn.id, ()))
    return tuple(label for label, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:8])
