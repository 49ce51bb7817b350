"""What of a query the turns of a pool say: bits that tell the same as the turns' own terms."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.core.text.stated.attributes import CHANGE, QUANTITY
from muniment.memory.recall.index import ONLY_ASKS, QUESTION, MemoryIndex, SpokenTurn
from muniment.memory.recall.newest import newest_first
from muniment.memory.recall.query import Query, read_query
from muniment.memory.recall.rank import rank
from muniment.memory.recall.reasons import terms_of
from muniment.memory.recall.said import Said
from products import for_each

NOW = date(2025, 12, 1)
TURNS = (
    "I moved to Berlin.",
    "Where do I live?",
    "I have 3 cats and a bicycle.",
    "I paid 40 euros for the bicycle. Was that too much?",
    "The red apple fell.",
    "",
)
QUERIES = (
    "Where does she live?",
    "How many cats do I have?",
    "What did the bicycle cost?",
    "Which fruit fell from the tree?",
    "Where does she live now?",
    "",
)


def _index(texts: list[str]) -> MemoryIndex:
    ts = datetime(2025, 1, 6, 9, tzinfo=UTC)
    return MemoryIndex([SpokenTurn(str(place % 3), "user", "user", ts, text) for place, text in enumerate(texts)])


def _slots(query: Query, terms: frozenset[int], *, kinds: bool) -> int:
    """The same from the turn's own terms."""
    bits = sum(1 << place for place, slot in enumerate(query.slots) if slot.term in terms)
    for kind in query.kinds if kinds else ():
        if terms.intersection(kind.terms):
            for slot in kind.slots:
                bits |= 1 << slot
    return bits


@given(st.lists(st.sampled_from(TURNS), min_size=1, max_size=8), st.sampled_from(QUERIES), st.data())
def test_the_bits_tell_what_the_turns_say(texts: list[str], asked: str, data: st.DataObject) -> None:
    index = _index(texts)
    query = read_query(asked, index.speakers, NOW)
    pool = data.draw(st.lists(st.integers(0, len(texts) - 1), unique=True))
    said = Said(query, index, np.array(pool, np.int64))
    held = [index.terms(ordinal) for ordinal in pool]
    for kinds in (False, True):
        assert said.slots(pool, kinds=kinds) == [_slots(query, terms, kinds=kinds) for terms in held]
    asking = dict(zip(*(part.tolist() for part in index.postings(term_hash(QUESTION))), strict=True))
    assert said.may_answer(pool) == [
        asking.get(ordinal, 0) < ONLY_ASKS and (not query.quantity or term_hash(QUANTITY) in terms)
        for ordinal, terms in zip(pool, held, strict=True)
    ]
    assert [said.tells_of_change(ordinal) for ordinal in pool] == [
        query.state and term_hash(CHANGE) in terms for terms in held
    ]
    assert said.counts == [len(index.postings(slot.term)[0]) for slot in query.slots]
    assert len(set(terms_of(query))) == len(terms_of(query))


def test_more_slots_than_a_machine_word_has_bits() -> None:
    words = [f"word{number}" for number in range(90)]
    index = _index([" ".join(words), words[80]])
    query = read_query(" ".join(words), index.speakers, NOW)
    assert len(query.slots) > 64
    (first, second) = Said(query, index, np.array([0, 1])).slots([0, 1], kinds=False)
    assert first == (1 << len(query.slots)) - 1
    assert second == 1 << [slot.word for slot in query.slots].index(words[80])


@for_each("asked", QUERIES)
@for_each("texts", [[], ["I moved to Berlin."], [""], ["I live here."] * 3])
def test_nothing_one_turn_and_the_very_same_are_ranked(texts: list[str], asked: str) -> None:
    index, policy = _index(texts), RecallPolicy()
    query = read_query(asked, index.speakers, NOW)
    pool = np.arange(len(texts))
    said = Said(query, index, pool)
    order = newest_first(query, index, policy, said, pool, np.ones(len(texts)))
    assert sorted(order.ordinals) == pool.tolist()
    assert len(rank(asked, index, policy, NOW, 5)) <= len(texts)
