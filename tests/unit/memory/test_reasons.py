"""Why a turn was found: told in the words of the asker, never in those of the index."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from muniment.core.policy import RecallPolicy
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.query import read_query
from muniment.memory.ranking import Ranked, rank
from products import for_each

START = datetime(2026, 4, 2, 9, tzinfo=UTC)
NOW = date(2026, 6, 12)


def ask(query: str, *said: str) -> list[Ranked]:
    passages = [
        SpokenTurn(str(at), "user", "user", START + timedelta(weeks=4 * at), text) for at, text in enumerate(said)
    ]
    return rank(query, MemoryIndex(passages), RecallPolicy(), NOW, 10)


@for_each(
    ("query", "said", "told"),
    [
        ("Where does Lucía live?", "My friend Lucia lives in Seattle.", "says Lucía, live"),
        ("Which conferences did Atlas plan?", "Atlas has one conference.", "says conferences, Atlas"),
        ("What did we bake in April?", "We baked bread on 3 April.", "says bake, April"),
        ("Was it on 2026-04-03?", "We met on April 3.", "says April 3"),
        ("任务完成了吗？", "这个任务很难。", "says 任务"),
        ("4月做了什么蛋糕？", "4月的蛋糕很好吃。", "says 蛋糕, 4月"),
        ("서울에서 무엇을 했어요?", "서울은 넓어요.", "says 서울에서"),
    ],
)
def test_the_words_of_the_asker(query: str, said: str, told: str) -> None:
    (hit,) = ask(query, said)
    assert hit.reasons[0] == told


@pytest.mark.parametrize(
    "query", ["Where does Lucia live now, in April 2026?", "4월에 어디에 살아요?", "她四月住在哪里？"]
)
def test_no_term_of_the_index_is_shown(query: str) -> None:
    said = ("Lucia lives in Rome since April 2026.", "저는 4월부터 서울에 살아요.", "我四月搬到上海，住在那里。")
    found = ask(query, *said)
    assert found
    assert not any(sign in reason for hit in found for reason in hit.reasons for sign in "#^")


def test_a_named_month_does_not_match_by_its_year() -> None:
    words = [slot.word for slot in read_query("What did we bake in April?", (), NOW).slots]
    assert "#m4" in words
    assert "2026" not in words
    assert "2026" in [slot.word for slot in read_query("What did we bake in April 2026?", (), NOW).slots]
    assert "2025" in [slot.word for slot in read_query("What did we bake last year?", (), NOW).slots]


@pytest.mark.parametrize("query", ["What did we bake before June 3?", "What did we bake after April?"])
def test_what_lies_before_or_after_a_date_does_not_have_it(query: str) -> None:
    assert not any(slot.word.startswith("#") for slot in read_query(query, (), NOW).slots)
