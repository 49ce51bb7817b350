"""Plain BM25 over turns, as anybody would write it: the reference that an eval's arms are read against. Pure.

It knows words alone: no stems, no dates, no names, nothing of who speaks or what is outdated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log

__all__ = ["PlainBm25"]

_K1, _B = 1.2, 0.75
_SIGNS = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"[{_SIGNS}]+|[^\W_{_SIGNS}]+")


def _words(text: str) -> Iterator[str]:
    """Words in small letters; of scripts without blanks, pairs of signs."""
    for word in _WORD.findall(text.casefold()):
        if "\u3041" <= word[0] <= "\ud7a3" and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word


class PlainBm25:
    """The turns of one user, to be ranked for any number of questions."""

    def __init__(self, texts: Sequence[str]) -> None:
        lengths: list[int] = []
        self._turns: dict[str, list[tuple[int, int]]] = {}
        for place, text in enumerate(texts):
            counts = Counter(_words(text))
            lengths.append(counts.total())
            for word, count in counts.items():
                self._turns.setdefault(word, []).append((place, count))
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._size = len(lengths)
        self._norms = [_K1 * (1 - _B + _B * length / (mean or 1.0)) for length in lengths]

    def ranked(self, question: str) -> list[int]:
        """The places of the turns that share a word with the question, best first; of equals, the first said."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(_words(question)):
            held = self._turns.get(word, ())
            weight = log(1 + (self._size - len(held) + 0.5) / (len(held) + 0.5))
            for place, count in held:
                scores[place] = scores.get(place, 0.0) + weight * count * (_K1 + 1) / (count + self._norms[place])
        return sorted(scores, key=lambda place: (-scores[place], place))
