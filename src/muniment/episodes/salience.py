"""Which sentences of a conversation carry it: chosen, never written (MP-05).

A sentence weighs as much as the terms it brings that the conversation keeps coming back to, a little more where it has
numbers, dates or names, a little less where it only asks. The same turns give the same sentences.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from muniment.prompts.sentences import sentence_spans
from muniment.records.pool import SummaryLine, Turn
from muniment.text.analyzer import analyze

__all__ = ["LINE_CHARS_MAX", "best_lines"]

LINE_CHARS_MAX = 240
"""Longer sentences are not lines of a summary."""
TURN_CHARS_MAX = 2_000
"""What of a turn is looked at: of a longer one, its start."""
_TERMS_MIN = 2
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]+")
_FIGURE = re.compile(r"\d")


class _Sentence(NamedTuple):
    turn: Turn
    text: str
    terms: frozenset[str]
    factor: float
    """What kind of sentence it is, as a weight."""


def best_lines(turns: Sequence[Turn], count: int) -> list[SummaryLine]:
    """The `count` sentences that say most of what the turns say, best first. Each is verbatim from its turn."""
    sentences = _sentences(turns)
    weight = _term_weights(sentences)
    said: set[str] = set()
    chosen: list[SummaryLine] = []
    # What a sentence adds only shrinks as others are chosen, so one that is still the best when looked at again is it.
    waiting = [(-_gain(sentence, weight, said), place) for place, sentence in enumerate(sentences)]
    heapify(waiting)
    while waiting and len(chosen) < count:
        _, place = waiting[0]
        sentence = sentences[place]
        gain = _gain(sentence, weight, said)
        if len(waiting) > 1 and (-gain, place) > min(waiting[1:3]):
            heapreplace(waiting, (-gain, place))
            continue
        if gain <= 0:
            break
        heappop(waiting)
        said |= sentence.terms
        chosen.append(SummaryLine(evidence_id=sentence.turn.id, text=sentence.text, ts=sentence.turn.ts, weight=gain))
    return chosen


def _sentences(turns: Sequence[Turn]) -> list[_Sentence]:
    found: list[_Sentence] = []
    for turn in turns:
        speaks = 1.1 if turn.role == "user" else 1.0
        for start, end in sentence_spans(turn.text[:TURN_CHARS_MAX]):
            text = turn.text[start:end]
            if len(text) > LINE_CHARS_MAX:
                continue
            terms = frozenset(analyze(text))
            if len(terms) >= _TERMS_MIN:
                found.append(_Sentence(turn, text, terms, speaks * _factor(text) / math.sqrt(4 + len(terms))))
    return found


def _factor(text: str) -> float:
    factor = 1.2 if _FIGURE.search(text) or _NAME.search(text) else 1.0
    return factor * 0.5 if text.rstrip("\"'”’)").endswith(("?", "？")) else factor


def _term_weights(sentences: Sequence[_Sentence]) -> dict[str, float]:
    """A term weighs more the more sentences have it, up to a third of them; what is everywhere says nothing."""
    holding = Counter(term for sentence in sentences for term in sentence.terms)
    limit = max(3.0, len(sentences) / 3)
    return {
        term: math.log1p(min(float(count), limit)) if count <= 2 * limit else 0.1 for term, count in holding.items()
    }


def _gain(sentence: _Sentence, weight: dict[str, float], said: set[str]) -> float:
    return round(sentence.factor * math.fsum(weight[term] for term in sentence.terms if term not in said), 6)
