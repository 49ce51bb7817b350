"""What a search of kept values compares: few texts and many are scored alike, and ranked alike."""

from __future__ import annotations

import random

import pytest

from muniment.errors import InvalidInput
from muniment.memory.kept import search as features
from muniment.memory.kept.search import VectorFeatures, WordFeatures, vectors_kept

WORDS = ["boat", "red", "blue", "car", "tea", "cup", "rain", "sun", "dog", "cat"]


@pytest.mark.parametrize("seed", range(20))
def test_a_few_texts_are_scored_as_many_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    texts = [" ".join(chosen.choices(WORDS, k=chosen.randint(0, 6))) for _ in range(chosen.randint(1, 16))]
    query = " ".join(chosen.choices([*WORDS, "unheard"], k=chosen.randint(1, 4)))
    words = WordFeatures("m")
    few = words.packed(words.made(texts))(query)
    monkeypatch.setattr(features, "_FEW", 0)
    many = words.packed(words.made(texts))(query)
    assert few.scores.tolist() == pytest.approx(many.scores.tolist(), abs=1e-12)
    assert few.density.tolist() == pytest.approx(many.density.tolist(), abs=1e-12)
    assert few.answers.tolist() == many.answers.tolist()


def test_vectors_of_two_lengths_are_refused_where_they_are_given() -> None:
    with pytest.raises(InvalidInput):
        vectors_kept([[1.0], [1.0, 2.0]], "$.values")
    with pytest.raises(InvalidInput):
        vectors_kept([[]], "$.values")
    assert vectors_kept([], "$.values") == []


def test_a_query_may_come_as_its_vector() -> None:
    by_axis = VectorFeatures("e", lambda texts: [[1.0, 0.0] if text == "x" else [0.0, 1.0] for text in texts])
    scored = by_axis.packed(by_axis.made(["x", "y"]))
    assert scored("x").scores.tolist() == scored([2.0, 0.0]).scores.tolist() == [1.0, 0.0]
