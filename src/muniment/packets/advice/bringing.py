"""Brings turns into a request for advice that tell of the one who asks: looked up by word, read, and put first.

The index is asked for the words of `topics`, so what it costs does not grow with what a user has said, but for the
postings of those words. At most `READ_MAX` turns are read, the shortest and the newest of each topic, `READ_CHARS_MAX`
characters in all, and each text once in a process; then a few that may take back what was found. How many more there
are is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from muniment.core.policy import Policy
from muniment.core.ports.engine import Reader
from muniment.core.text.analyzer import analyze, term_hash
from muniment.core.text.patterns import lazy_pattern
from muniment.memory.extraction.patterns import corrections
from muniment.memory.facts.rules import is_many_valued
from muniment.memory.recall.index import Ints, StoredIndex
from muniment.memory.turn_reading import LiveTurn, turns_by_id
from muniment.packets.advice.gate import Gate
from muniment.packets.advice.known import KnownFacts
from muniment.packets.advice.statements import (
    TEXT_CHARS_MAX,
    URGENT,
    Asker,
    Reading,
    Standing,
    Stated,
    choose,
    names_in,
    read_standing,
)
from muniment.packets.advice.topics import Matter, matter_of, trigger_terms
from muniment.packets.cued_turns import CuedTurns, Hits
from muniment.packets.pool import ComposeRequest, FactCandidate, HitCandidate, NotGathered
from muniment.store.context import Context

__all__ = ["STANDING", "with_standing"]

STANDING = "standing"
"""The kind under which `explain.filters.not_gathered` counts turns that may tell of the one who asks."""
READ_MAX = 96
READ_CHARS_MAX = 64_000
"""In all: whoever says very much in every turn is read less far."""
TOPIC_SHORTEST, TOPIC_NEWEST = 8, 6
"""Of each topic so many turns are read: those that say little else than its words, and the newest."""
URGENT_TIMES = 2
"""Of an urgent topic so many times as many."""
BEHIND_EACH, BEHIND_MAX = 4, 24
"""Of later turns with the words of a statement so many are read besides: one of them may take it back."""
WORDING_CHARS = 40
TURNS_MAX, TURNS_MIN = 12, 3
"""How many turns are told, where not more are urgent."""
TOKENS_A_TURN = 40
CHARS_A_TOKEN, LINE_TOKENS = 4, 10
"""About what a turn takes on the page: its text, and its mark, speaker and day."""
BUDGET_SHARE = 0.5
"""Of the budget: the rest is for what the words of the question find."""
CORRECTED_WITHIN = 4
"""Turns after a statement in which it may be put right."""
_CORRECTS = lazy_pattern(r"(?i)\b(?:sorry|meant|mean|correction|actually|wrong|oops|typo|not|no|rather|scratch)\b")
_ENDS = tuple(
    term_hash(term)
    for term in analyze(
        "stopped quit longer anymore gave given outgrew switched divorced separated died learned cured over"
    )
)


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
    known = KnownFacts(facts, request.now)
    gate = Gate(request, policy, index, cued, known.names())
    seeking = _Seeking(ctx, reader, request, policy, index, gate, known)
    matter = matter_of(request.query)
    looked_up = _look_up(index, matter, gate)
    turns = seeking.read(looked_up.best)
    told = seeking.choose(turns, matter)
    behind = _behind(index, gate, told.standing, turns, looked_up.best)
    if further := seeking.read(behind, sum(map(_chars, turns.values()))):
        turns |= further
        told = seeking.choose(turns, matter)
    corrected = seeking.corrected(turns, told.standing)
    turns |= corrected.turns
    brought = _within_budget({**told.standing, **corrected.standing}, turns, request.budget.max_tokens)
    hits = {ordinal: _hit(each, turns[ordinal], found, ordinal) for ordinal, each in brought.items()}
    looked = {*looked_up.every.tolist(), *behind}
    return found.led_by(hits), _counted(looked, set(turns), told, brought)


def _counted(looked: set[int], read: set[int], told: _Told, brought: Mapping[int, Standing]) -> NotGathered:
    """How many turns have a word that may tell of the asker, and what became of them."""
    shown = sum(ordinal in looked for ordinal in brought)
    more = told.more + sum(ordinal not in brought for ordinal in told.standing)
    unread = len(looked - read)
    reasons = {"unread": unread, "count_limit": more, "no_match": len(looked) - unread - shown - more}
    return NotGathered.of(STANDING, len(looked), shown, reasons)


# -- looking up ----------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """Turns that may state something: those to be read, what matters most first, and all that have a word of it."""

    best: list[int]
    every: Ints


def _look_up(index: StoredIndex, matter: Matter, gate: Gate) -> _Found:
    """The user's turns that have a word of a topic that matters, and the best of each topic."""
    index.prepare([term for topic in matter.topics for term in trigger_terms(topic)])
    every: list[Ints] = []
    best: dict[int, None] = {}
    for topic in matter.topics:
        ordinals, shares = _saying(index, trigger_terms(topic))
        is_fit = gate.lets_in(ordinals)
        ordinals, shares = ordinals[is_fit], shares[is_fit]
        every.append(ordinals)
        newest = np.lexsort((-ordinals, -index.ts[ordinals]))
        shortest = np.lexsort((-ordinals, -index.ts[ordinals], -shares))
        times = URGENT_TIMES if topic in URGENT else 1
        for chosen in (shortest[: times * TOPIC_SHORTEST], newest[: times * TOPIC_NEWEST]):
            best.update(dict.fromkeys(ordinals[chosen].tolist()))
    return _Found(list(best)[:READ_MAX], np.unique(np.concatenate(every)))


def _saying(index: StoredIndex, terms: Sequence[int]) -> tuple[Ints, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """The turns that have one of these terms, and how much of what each says they are."""
    ordinals, counts = _holding(index, terms)
    return ordinals, counts / np.maximum(index.length[ordinals], 1)


def _holding(index: StoredIndex, terms: Sequence[int]) -> tuple[Ints, Ints]:
    """The turns that have one of these terms, and how many of them each has."""
    return np.unique(np.concatenate([index.postings(term)[0] for term in terms]), return_counts=True)


def _behind(
    index: StoredIndex,
    gate: Gate,
    standing: Mapping[int, Standing],
    turns: Mapping[int, LiveTurn],
    known: Sequence[int],
) -> list[int]:
    """Turns after what is to be told that have most of its words, and words of an end: they may take it back."""
    terms = {
        ordinal: [term_hash(term) for term in dict.fromkeys(analyze(_wording(turns[ordinal].quotable, told.quotes)))]
        for ordinal, told in standing.items()
    }
    index.prepare([*_ENDS, *(term for each in terms.values() for term in each)])
    ends = _holding(index, _ENDS)[0]
    found: dict[int, None] = {}
    for ordinal, words in terms.items():
        if not words:
            continue
        ordinals, counts = _holding(index, words)
        is_later = (index.ts[ordinals] >= index.ts[ordinal]) & ~np.isin(ordinals, known) & gate.lets_in(ordinals)
        ordinals, counts = ordinals[is_later], counts[is_later]
        counts = counts + np.isin(ordinals, ends)
        best = np.lexsort((-ordinals, -index.ts[ordinals], -counts))[:BEHIND_EACH]
        found.update(dict.fromkeys(ordinals[best].tolist()))
    return list(found)[:BEHIND_MAX]


def _wording(text: str, quotes: Sequence[str]) -> str:
    """The words that state something, and those right before them: a quote may be no more than its value."""
    places = [(text.find(quote), quote) for quote in quotes]
    return " ".join(text[max(0, at - WORDING_CHARS) : at + len(quote)] for at, quote in places if at >= 0)


# -- reading -------------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """What is to be told, by ordinal, what matters most first."""

    standing: dict[int, Standing]
    more: int
    """How many turns state something besides."""


class _Corrected(NamedTuple):
    standing: dict[int, Standing]
    turns: dict[int, LiveTurn]


@dataclass(frozen=True, slots=True)
class _Seeking:
    """What a request for advice reads with."""

    ctx: Context
    reader: Reader
    request: ComposeRequest
    policy: Policy
    index: StoredIndex
    gate: Gate
    known: KnownFacts

    def read(self, ordinals: Sequence[int], chars: int = 0) -> dict[int, LiveTurn]:
        """The turns of these ordinals that may be told, as far as there is room to read; `chars` were read before."""
        ids = {ordinal: self.index.id(ordinal) for ordinal in ordinals}
        scope = self.request.scope
        found = turns_by_id(self.ctx, self.reader, scope.tenant_id, list(ids.values()), is_asked_later=True)
        read: dict[int, LiveTurn] = {}
        for ordinal, id_ in ids.items():
            turn = found.get(id_)
            if turn is None or not self.gate.lets_tell(ordinal, turn):
                continue
            if chars + _chars(turn) <= READ_CHARS_MAX:
                chars += _chars(turn)
                read[ordinal] = turn
        return read

    def choose(self, turns: Mapping[int, LiveTurn], matter: Matter) -> _Told:
        """What of these turns stands and bears on the question."""
        ordinals = sorted(turns, key=lambda ordinal: (int(self.index.ts[ordinal]), ordinal))
        said = [turns[each] for each in ordinals]
        readings, names = _readings(said, self.known.people())
        many = partial(is_many_valued, policy=self.policy.memory.facts)

        def has_ended(place: int, stated: Stated) -> bool:
            return self.known.end(stated, said[place].ts, many, self.gate.lets_tell_fact)

        count_max = min(TURNS_MAX, max(TURNS_MIN, self.request.budget.max_tokens // TOKENS_A_TURN))
        chosen, more = choose(readings, Asker.of(self.request.query, matter, names), many, count_max, has_ended)
        return _Told({ordinals[each.number]: each for each in chosen}, more)

    def corrected(self, turns: Mapping[int, LiveTurn], standing: Mapping[int, Standing]) -> _Corrected:
        """The turns right behind what was chosen that put its words right: "Sorry, I meant cashews, not peanuts"."""
        near: dict[int, int] = {}
        for ordinal in standing:
            _, end = self.index.session_span(int(self.index.session[ordinal]))
            next_ones = np.arange(ordinal + 1, min(end, ordinal + 1 + CORRECTED_WITHIN))
            for each in next_ones[self.gate.lets_in(next_ones)].tolist():
                if each not in standing:
                    near.setdefault(each, ordinal)
        found = _Corrected({}, {})
        for after, turn in self.read(list(near)).items():
            told = standing[near[after]]
            if not _CORRECTS.search(turn.quotable):
                continue
            said = turns[near[after]].quotable
            put_right = [each for each in corrections(turn.quotable, "user") if each.place_in(said)]
            if put_right:
                found.standing[after] = Standing(told.number, told.topics, tuple(each.quote for each in put_right))
                found.turns[after] = turn
        return found


def _chars(turn: LiveTurn) -> int:
    return min(len(turn.text), TEXT_CHARS_MAX)


def _readings(turns: Sequence[LiveTurn], known: Mapping[str, str]) -> tuple[list[Reading], dict[str, str]]:
    """What each turn states, read with the names that any of them tells."""
    names = {**known, **names_in(read_standing(turn.quotable, turn.ts, known) for turn in turns)}
    return [read_standing(turn.quotable, turn.ts, names) for turn in turns], names


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


def _hit(told: Standing, turn: LiveTurn, found: Hits, ordinal: int) -> HitCandidate:
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
            "standing": told.quotes,
        }
    return HitCandidate.unchecked(fields, set(fields))
