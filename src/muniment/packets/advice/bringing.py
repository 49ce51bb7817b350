"""Brings turns into a request for advice that tell of the one who asks: looked up by word, read, and put first.

The index is asked for the words of `topics`, so what it costs does not grow with what a user has said, but for the
postings of those words. At most `READ_MAX` turns are read, the shortest and the newest of each topic, and each text
once in a process. How many more there are is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from muniment.core.instants import parse_instant
from muniment.core.policy.policy import Policy
from muniment.core.ports.engine import Reader
from muniment.core.text.analyzer import term_hash
from muniment.core.text.patterns import lazy_pattern
from muniment.memory.extraction.patterns import KIN, corrections
from muniment.memory.extraction.speakers import is_nameless, why_unheard
from muniment.memory.facts.rules import is_many_valued
from muniment.memory.recall.index import ONLY_ASKS, QUESTION, ROLES, Ints, StoredIndex
from muniment.memory.recall.outdated_turns import superseded_among
from muniment.memory.recall.records import SupersededStatement
from muniment.memory.turn_reading import LiveTurn, turns_by_id
from muniment.packets.advice.statements import Asker, Reading, Standing, choose, names_in, read_standing
from muniment.packets.advice.topics import Matter, matter_of, trigger_terms
from muniment.packets.cued_turns import CuedTurns, Hits
from muniment.packets.pool import ComposeRequest, FactCandidate, HitCandidate, NotGathered
from muniment.store.context import Context

__all__ = ["STANDING", "with_standing"]

STANDING = "standing"
"""The kind under which `explain.filters.not_gathered` counts turns that may tell of the one who asks."""
READ_MAX = 64
TOPIC_SHORTEST, TOPIC_NEWEST = 8, 6
"""Of each topic so many turns are read: those that say little else than its words, and the newest."""
TURNS_MAX, TURNS_MIN = 12, 3
TOKENS_A_TURN = 40
CHARS_A_TOKEN, LINE_TOKENS = 4, 10
"""About what a turn takes on the page: its text, and its mark, speaker and day."""
BUDGET_SHARE = 0.5
"""Of the budget: the rest is for what the words of the question find."""
CORRECTED_WITHIN = 4
"""Turns after a statement in which it may be put right."""
_USER = ROLES.index("user")
_QUESTION = term_hash(QUESTION)
_CORRECTS = lazy_pattern(r"(?i)\b(?:sorry|meant|mean|correction|actually|wrong|oops|typo|not|no|rather|scratch)\b")


class _Found(NamedTuple):
    """Turns that may state something, oldest first, and how many more have a word of it."""

    ordinals: list[int]
    held: int


def with_standing(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    policy: Policy,
    index: StoredIndex,
    cued: CuedTurns,
    found: Hits,
    facts: Sequence[FactCandidate],
) -> tuple[Hits, NotGathered]:
    """The hits of a request for advice with the turns before them that tell of the asker, and how many were left."""
    matter = matter_of(request.query)
    looked_up = _look_up(index, matter, request, cued)
    turns = _read(ctx, reader, request, index, looked_up.ordinals)
    heard = _Heard(request.scope.user_id, index, facts)
    ordinals = [ordinal for ordinal in looked_up.ordinals if ordinal in turns and heard.hears(ordinal)]
    outdated = superseded_among({turns[each].id: turns[each] for each in ordinals}, {})
    readings, names = _readings([turns[each] for each in ordinals], _people(facts))
    chosen, more = choose(
        readings,
        Asker.of(request.query, matter, names),
        partial(is_many_valued, policy=policy.memory.facts),
        min(TURNS_MAX, max(TURNS_MIN, request.budget.max_tokens // TOKENS_A_TURN)),
        [any(part.is_whole for part in outdated.get(turns[each].id, ())) for each in ordinals],
    )
    standing = {ordinals[each.number]: each for each in chosen}
    corrected = _corrected(ctx, reader, request, index, turns, standing)
    turns |= corrected.turns
    brought = _within_budget({**standing, **corrected.standing}, turns, request.budget.max_tokens)
    more += len(standing) - sum(ordinal in brought for ordinal in standing)
    hits = {
        ordinal: _hit(told, turns[ordinal], found, ordinal, outdated.get(turns[ordinal].id, ()))
        for ordinal, told in brought.items()
    }
    looked = sum(ordinal in standing for ordinal in brought)
    counted = NotGathered.of(
        STANDING,
        looked_up.held,
        looked,
        {
            "unread": looked_up.held - len(looked_up.ordinals),
            "count_limit": more,
            "no_match": len(looked_up.ordinals) - looked - more,
        },
    )
    return found.led_by(hits), counted


# -- looking up ----------------------------------------------------------------------------------------


def _look_up(index: StoredIndex, matter: Matter, request: ComposeRequest, cued: CuedTurns) -> _Found:
    """The user's turns that have a word of a topic that matters: the best of each topic, oldest first."""
    said_by = int(parse_instant(request.now).timestamp())
    questions, counts = index.postings(_QUESTION)
    only_asking = questions[counts >= ONLY_ASKS]
    index.prepare([term for topic in matter.topics for term in trigger_terms(topic)])
    every: list[Ints] = []
    best: dict[int, None] = {}
    for topic in matter.topics:
        ordinals, shares = _saying(index, trigger_terms(topic))
        is_fit = (index.role[ordinals] == _USER) & (index.ts[ordinals] <= said_by)
        is_fit &= ~np.isin(ordinals, only_asking)
        if cued.within is not None:
            is_fit &= cued.within[ordinals]
        ordinals, shares = ordinals[is_fit], shares[is_fit]
        every.append(ordinals)
        newest = np.lexsort((-ordinals, -index.ts[ordinals]))
        shortest = np.lexsort((-ordinals, -index.ts[ordinals], -shares))
        for chosen in (shortest[:TOPIC_SHORTEST], newest[:TOPIC_NEWEST]):
            best.update(dict.fromkeys(ordinals[chosen].tolist()))
    held = len(np.unique(np.concatenate(every))) if every else 0
    read = sorted(list(best)[:READ_MAX], key=lambda ordinal: (int(index.ts[ordinal]), ordinal))
    return _Found(read, held)


def _saying(index: StoredIndex, terms: Sequence[int]) -> tuple[Ints, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """The turns that have one of these terms, and how much of what each says they are."""
    held = [index.postings(term)[0] for term in terms]
    ordinals, counts = np.unique(np.concatenate(held), return_counts=True)
    return ordinals, counts / np.maximum(index.length[ordinals], 1)


def _read(
    ctx: Context, reader: Reader, request: ComposeRequest, index: StoredIndex, ordinals: Sequence[int]
) -> dict[int, LiveTurn]:
    """The turns of these ordinals that are there and were said, not given back by a tool."""
    ids = {ordinal: index.id(ordinal) for ordinal in ordinals}
    turns = turns_by_id(ctx, reader, request.scope.tenant_id, list(ids.values()), is_asked_later=True)
    said = {ordinal: turns[id_] for ordinal, id_ in ids.items() if id_ in turns}
    return {ordinal: turn for ordinal, turn in said.items() if turn.kind == "message" and turn.role == "user"}


# -- whose words they are ------------------------------------------------------------------------------


class _Heard:
    """Whose turns of role `user` are the user's own words."""

    def __init__(self, user_id: str, index: StoredIndex, facts: Sequence[FactCandidate]) -> None:
        self._user_id, self._index = user_id, index
        self._names = [str(each.fact.value) for each in _active(facts) if each.fact.fact_key == "user.name"]

    def hears(self, ordinal: int) -> bool:
        speaker = self._index.speakers[int(self._index.speaker[ordinal])]
        if is_nameless(speaker):
            return True
        return why_unheard(speaker, self._user_id, self._names, partial(self._voices, ordinal)) is None

    def _voices(self, ordinal: int) -> frozenset[str | None]:
        index = self._index
        begin, end = index.session_span(int(index.session[ordinal]))
        numbers = np.unique(index.speaker[begin:end][index.role[begin:end] == _USER]).tolist()
        names = [index.speakers[number] for number in numbers]
        return frozenset(None if is_nameless(name) else name for name in names)


def _active(facts: Sequence[FactCandidate]) -> Iterator[FactCandidate]:
    """The facts of the user themselves that stand."""
    return (each for each in facts if each.fact.status == "active")


def _people(facts: Sequence[FactCandidate]) -> dict[str, str]:
    """The names of the user's people that are known as facts, in small letters, and what each is to them."""
    told = ((each.fact.fact_key.removeprefix("user."), each.fact.value) for each in _active(facts))
    return {value.casefold(): kin for kin, value in told if kin in KIN and isinstance(value, str)}


def _readings(turns: Sequence[LiveTurn], known: Mapping[str, str]) -> tuple[list[Reading], dict[str, str]]:
    """What each turn states, read with the names that any of them tells."""
    names = {**known, **names_in(read_standing(turn.quotable, turn.ts, known) for turn in turns)}
    return [read_standing(turn.quotable, turn.ts, names) for turn in turns], names


# -- what puts it right --------------------------------------------------------------------------------


class _Corrected(NamedTuple):
    standing: dict[int, Standing]
    turns: dict[int, LiveTurn]


def _corrected(
    ctx: Context,
    reader: Reader,
    request: ComposeRequest,
    index: StoredIndex,
    turns: Mapping[int, LiveTurn],
    standing: Mapping[int, Standing],
) -> _Corrected:
    """The user's turns right behind what was chosen that put its words right: "Sorry, I meant cashews, not peanuts"."""
    near: dict[int, int] = {}
    for ordinal in standing:
        _, end = index.session_span(int(index.session[ordinal]))
        for after in range(ordinal + 1, min(end, ordinal + 1 + CORRECTED_WITHIN)):
            if index.role[after] == _USER and after not in standing:
                near.setdefault(after, ordinal)
    read = _read(ctx, reader, request, index, list(near))
    found = _Corrected({}, {})
    for after, turn in read.items():
        told = standing[near[after]]
        if not _CORRECTS.search(turn.quotable):
            continue
        put_right = [each for each in corrections(turn.quotable, "user") if each.place_in(turns[near[after]].quotable)]
        if put_right:
            found.standing[after] = Standing(told.number, told.topics, tuple(each.quote for each in put_right))
            found.turns[after] = turn
    return found


# -- what has room -------------------------------------------------------------------------------------


def _within_budget(
    standing: Mapping[int, Standing], turns: Mapping[int, LiveTurn], tokens_max: int
) -> dict[int, Standing]:
    """As many as a share of the budget has room for, what matters most first, and one at least."""
    kept: dict[int, Standing] = {}
    left = BUDGET_SHARE * tokens_max
    for ordinal, told in standing.items():
        tokens = min(len(turns[ordinal].quotable) / CHARS_A_TOKEN, left / 2) + LINE_TOKENS
        if kept and tokens > left:
            continue
        kept[ordinal] = told
        left -= tokens
    return kept


def _hit(
    told: Standing, turn: LiveTurn, found: Hits, ordinal: int, superseded: tuple[SupersededStatement, ...]
) -> HitCandidate:
    """The turn as a hit; one that the search found too keeps how likely it is evidence."""
    reason = f"tells of the one who asks: {', '.join(told.topics)}"
    known = found.at(ordinal)
    if known is not None:
        fields = {**known.__dict__, "reasons": (*known.reasons, reason), "standing": told.quotes}
    else:
        fields = {
            "turn": turn.read.turn,
            "score": 0.0,
            "parts": {},
            "reasons": (reason,),
            "superseded": superseded,
            "standing": told.quotes,
        }
    return HitCandidate.unchecked(fields, set(fields))
