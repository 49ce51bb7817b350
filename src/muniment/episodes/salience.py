"""Which sentences of a conversation carry it: chosen, never written (MP-05).

A sentence weighs as much as the terms it brings that the conversation keeps coming back to, a little more where it has
numbers, dates or names, a little less where it only asks. The same turns give the same sentences.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from muniment.prompts.sentences import sentence_spans
from muniment.records.pool import SummaryLine, Turn
from muniment.text.analyzer import analyze

__all__ = ["LINE_CHARS_MAX", "best_lines"]

LINE_CHARS_MAX = 240
"""Longer sentences are not lines of a summary."""
_TERMS_MIN = 2
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]+")
_FIGURE = re.compile(r"\d")


class _Sentence(NamedTuple):
    place: int
    turn: Turn
    text: str
    terms: frozenset[str]


def best_lines(turns: Sequence[Turn], count: int) -> list[SummaryLine]:
    """The `count` sentences that say most of what the turns say, best first. Each is verbatim from its turn."""
    sentences = _sentences(turns)
    if not sentences or count < 1:
        return []
    weight = _term_weights(sentences)
    said: set[str] = set()
    chosen: list[SummaryLine] = []
    left = dict(enumerate(sentences))
    while left and len(chosen) < count:
        at, gain = max(
            ((number, _gain(sentence, weight, said)) for number, sentence in left.items()),
            key=lambda pair: (pair[1], -pair[0]),
        )
        if gain <= 0:
            break
        sentence = left.pop(at)
        said |= sentence.terms
        chosen.append(SummaryLine(evidence_id=sentence.turn.id, text=sentence.text, ts=sentence.turn.ts, weight=gain))
    return chosen


def _sentences(turns: Sequence[Turn]) -> list[_Sentence]:
    found: list[_Sentence] = []
    for turn in turns:
        for start, end in sentence_spans(turn.text[: 64 * LINE_CHARS_MAX]):
            text = turn.text[start:end]
            if len(text) > LINE_CHARS_MAX:
                continue
            terms = frozenset(analyze(text))
            if len(terms) >= _TERMS_MIN:
                found.append(_Sentence(len(found), turn, text, terms))
    return found


def _term_weights(sentences: Sequence[_Sentence]) -> dict[str, float]:
    """A term weighs more the more sentences have it, up to a third of them; what is everywhere says nothing."""
    holding = Counter(term for sentence in sentences for term in sentence.terms)
    limit = max(3.0, len(sentences) / 3)
    return {
        term: math.log1p(min(float(count), limit)) if count <= 2 * limit else 0.1 for term, count in holding.items()
    }


def _gain(sentence: _Sentence, weight: dict[str, float], said: set[str]) -> float:
    fresh = sum(weight[term] for term in sentence.terms - said)
    gain = fresh / math.sqrt(4 + len(sentence.terms))
    if _FIGURE.search(sentence.text) or _NAME.search(sentence.text):
        gain *= 1.2
    if sentence.text.rstrip("\"'”’)").endswith(("?", "？")):
        gain *= 0.5
    return round(gain * (1.1 if sentence.turn.role == "user" else 1.0), 6)
