"""The table of kinds is read by and by, and no line of it is missed."""

from __future__ import annotations

import random

from muniment.core.text import kinds
from muniment.core.text.analyzer import analyze


def whole_table() -> list[tuple[frozenset[str], frozenset[str]]]:
    """Every head with its group, read at once."""
    found = []
    for heads, members in kinds._KINDS.pairs():
        for head in heads.split(","):
            found.append((frozenset(kinds._key_terms(head)), kinds._group(members)))
    return found


def widened(asked: set[str]) -> list[tuple[frozenset[str], frozenset[str]]]:
    merged: dict[frozenset[str], frozenset[str]] = {}
    for head, group in whole_table():
        if head and head <= asked:
            merged[head] = merged.get(head, frozenset()) | (group - asked)
    return [(head, group) for head, group in merged.items() if group and not any(head < other for other in merged)]


def test_every_head_is_found_under_its_own_terms() -> None:
    for heads, _ in kinds._KINDS.pairs():
        for head in heads.split(","):
            asked = set(analyze(head))
            assert sorted(map(repr_of, kinds.widen(asked))) == sorted(map(repr_of, widened(asked))), head


def test_so_are_heads_among_other_words() -> None:
    draw = random.Random(7)
    words = sorted({word.strip(",:") for word in kinds._KINDS.words()})
    for _ in range(100):
        asked = set(analyze(" ".join(draw.sample(words, 6))))
        assert sorted(map(repr_of, kinds.widen(asked))) == sorted(map(repr_of, widened(asked)))


def repr_of(pair: tuple[frozenset[str], frozenset[str]]) -> tuple[list[str], list[str]]:
    return sorted(pair[0]), sorted(pair[1])
