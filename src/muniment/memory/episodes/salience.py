"""Which sentences of a conversation carry it: chosen, never written (MP-05).

A sentence weighs as much as the terms it brings that the conversation keeps coming back to, a little more where it has
numbers, dates or names, a little less where it only asks. The same turns give the same sentences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain

from muniment.memory.episodes.turns import ReadTurn, Sentence
from muniment.memory.turns import SummaryLine, Turn
from muniment.store.ledger import IMPORTED, INSTRUCTION_LIKE

__all__ = ["best_lines", "best_sentences", "line_of"]


_ALWAYS = set(SummaryLine.model_fields) - {"speaker", "cited", "flags"}
_NAMED = _ALWAYS | {"speaker"}


def best_lines(turns: Sequence[ReadTurn], count: int) -> list[SummaryLine]:
    """The `count` sentences that say most of what the turns say, best first. Each is verbatim from its turn.

    What reads like orders from outside carries nothing: it is a source, and never a line (LG-08).
    """
    said = [(read.turn, sentence) for read in turns for sentence in read.sentences]
    return [line_of(turn, sentence.text, gain) for turn, sentence, gain in best_sentences(said, count)]


def line_of(turn: Turn, text: str, weight: float) -> SummaryLine:
    """A sentence of a turn as a line of a summary."""
    fields = {"evidence_id": turn.id, "text": text, "ts": turn.ts, "weight": weight}
    fields |= {"role": turn.role, "speaker": turn.speaker or None, "trust": turn.trust, "cited": turn.cited}
    present = _NAMED if turn.speaker else _ALWAYS
    origin = tuple(flag for flag in turn.flags if flag.startswith(IMPORTED)) if turn.flags else ()
    fields["flags"] = origin or None
    more = {name for name in ("cited", "flags") if fields[name] is not None}
    return SummaryLine.unchecked(fields, present | more if more else present)


def best_sentences(given: Iterable[tuple[Turn, Sentence]], count: int) -> list[tuple[Turn, Sentence, float]]:
    """The `count` of these sentences that say most of what they all say, best first, each with what it adds."""
    pairs = [(turn, sentence) for turn, sentence in given if INSTRUCTION_LIKE not in turn.flags]
    said_by: list[Turn] = [turn for turn, _ in pairs]
    sentences = [sentence for _, sentence in pairs]
    weight = _term_weights(sentences)
    said: set[str] = set()
    chosen: list[tuple[Turn, Sentence, float]] = []
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
        chosen.append((said_by[place], sentence, gain))
    return chosen


def _term_weights(sentences: Sequence[Sentence]) -> dict[str, float]:
    """A term weighs more the more sentences have it, up to a third of them; what is everywhere says nothing."""
    holding = Counter(chain.from_iterable(sentence.terms for sentence in sentences))
    limit = max(3.0, len(sentences) / 3)
    weights = {
        count: math.log1p(min(float(count), limit)) if count <= 2 * limit else 0.1 for count in set(holding.values())
    }
    return {term: weights[count] for term, count in holding.items()}


def _gain(sentence: Sentence, weight: dict[str, float], said: set[str]) -> float:
    fresh = sentence.terms - said if said else sentence.terms
    return round(sentence.factor * math.fsum(map(weight.__getitem__, fresh)), 6)
