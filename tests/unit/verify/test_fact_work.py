"""What the fact checker looks at: a claim asks for the sentences that share its words, and trees give what they say."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from muniment.core.policy import FactCheckPolicy
from muniment.core.text.word_lists import read_data
from muniment.verify.facts import Source, SourceText, check_source
from muniment.verify.facts._slots import Signs
from muniment.verify.facts._swaps import swap_score
from products import for_each

POLICY = FactCheckPolicy()
TREES: dict[str, Any] = json.loads(read_data("muniment.verify.facts", "slots.json"))["trees"]
SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"]


def walked(tree: Any, signs: Signs) -> float:
    """What a tree says, question by question."""
    while isinstance(tree, list):
        sign, limit, low, high = tree
        tree = low if getattr(signs, sign) <= limit else high
    return float(tree)


def limits_of(tree: Any) -> list[float]:
    return [tree[1], *limits_of(tree[2]), *limits_of(tree[3])] if isinstance(tree, list) else []


@for_each("group", sorted(TREES))
def test_all_trees_together_say_what_each_says(group: str) -> None:
    random = Random(group)
    limits = sorted({limit for tree in TREES[group] for limit in limits_of(tree)})
    for _ in range(60):
        choices = [0.0, 1.0, 0.5, random.random(), random.choice(limits)]
        signs = Signs(*(random.choice(choices) for _ in Signs._fields))
        total = 0.0
        for tree in TREES[group]:
            total += walked(tree, signs)
        assert swap_score(group, Signs._fields, signs) == total
    assert swap_score("no such group", Signs._fields, Signs()) == 0.0


class Watched(Source):
    """A source that notes which sentences were looked into."""

    def __init__(self, documents: list[SourceText]) -> None:
        self.seen: list[int] = []
        super().__init__(documents)

    def positions(self, place: int) -> dict[str, list[int]]:
        self.seen.append(place)
        return super().positions(place)

    def content(self, place: int) -> tuple[str, ...]:
        self.seen.append(place)
        return super().content(place)


def sentences(count: int) -> list[str]:
    """Each with a name, a verb and nouns of its own."""
    random = Random(7)

    def word() -> str:
        return "".join(random.choice(SYLLABLES) for _ in range(4))

    return [f"{word().title()} founded the {word()} of {word().title()} near {word()}." for _ in range(count)]


@pytest.mark.soak
@pytest.mark.parametrize("count", [50, 200, 800])
def test_a_claim_is_compared_with_the_sentences_of_its_words_alone(count: int) -> None:
    """Fifty claims look into no more of a long source than of a short one."""
    said = sentences(count)
    source = Watched([SourceText("text", " ".join(said))])
    claims = [one.replace("near", "behind") for one in said[:50]]
    report = check_source(" ".join(claims), source, policy=POLICY)
    assert len(report.units or ()) == 50
    assert len(source.seen) <= 50 * 85
    assert len(set(source.seen)) <= 70
