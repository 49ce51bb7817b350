"""What vectors count for."""

from __future__ import annotations

import pytest

from muniment.core.policy import RecallPolicy
from muniment.memory.scoring import weigh_dense
from products import for_each

POLICY = RecallPolicy()


@for_each("query", ["where does she live", "wo wohnt Zoë?", "", "!?", "GDP 2024"])
def test_latin_questions_use_the_vectors(query: str) -> None:
    assert weigh_dense(POLICY, "e5-small@1", query) == POLICY


@pytest.mark.parametrize("query", ["她住在哪里", "어디에 살아요?", "где она живёт", "Berlin 有什么好吃的东西吗"])
def test_an_english_embedder_is_not_asked_in_another_script(query: str) -> None:
    weighed = weigh_dense(POLICY, "e5-small@1", query)
    assert weighed.dense_turn == weighed.dense_window == 0
    assert weigh_dense(POLICY, "openai:http://x#m@1", query) == POLICY
