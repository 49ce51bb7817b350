"""Turns that lean on what was said before them, and turns that do not."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.analyzer import term_hash
from muniment.core.text.leans import LEANS, WHOLLY, leans
from muniment.memory.recall.index import index_text


@pytest.mark.parametrize(
    "text",
    [
        "Yes, that one.",
        "Yes",
        "No!",
        "He did, last week.",
        "Me too!",
        "Me neither, honestly.",
        "Because it was cheap",
        "Oh wow, she did?",
        "Oh!",
        "It was cheap.",
        "That's amazing, Caroline!",
        "At the beach.",
        "Three years.",
        "3 years",
        "Paris.",
        "The blue one.",
        "Which one?",
        "Why?",
        "How so?",
        "What about yours?",
        "And then we left",
        "Thanks, Mel!",
        "I did too.",
        "Of course I will.",
        "They’re great.",
        "Thats nice.",
        "There?",
        "Sí, claro.",
        "A mí también.",
        "Porque era barato.",
        "Ja, genau.",
        "Ich auch!",
        "Weil es billig war.",
        "Oui, bien sûr.",
        "Moi aussi !",
        "C'était super.",
        "是的，就是那个。",
        "我也是！",
        "因为很便宜",
        "他上周去了",
        "三年",
        "네, 맞아요.",
        "저도요!",
        "그건 싸서요.",
        "왜냐하면 쌌거든",
    ],
)
def test_a_reply_leans_wholly(text: str) -> None:
    assert leans(text) == WHOLLY


@pytest.mark.parametrize(
    "text",
    [
        "Yes, I went there with my sister in June and we stayed in a small hotel near the lake for nine days.",
        "It was cheap, so I bought two of them and gave the second to my neighbour for the birthday of his son.",
        "I saw him yesterday.",
        "Yesterday I called her about the car.",
        "是的，我六月和妹妹一起去了湖边的一家小旅馆，在那里住了九天。",
        "昨天我在超市见到她了，聊了很久。",
        "네, 유월에 여동생이랑 호숫가의 작은 호텔에서 아홉 밤을 묵었어요.",
        "어제 마트에서 그녀를 만나서 한참 이야기했어요.",
    ],
)
def test_a_turn_that_begins_with_a_reply_or_speaks_of_an_unnamed_person_leans_in_part(text: str) -> None:
    assert leans(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "!!!",
        "Hello there",
        "Good morning!",
        "I love pizza.",
        "My sister moved to Lisbon in May.",
        "Where do you live?",
        "How do I boil an egg?",
        "Write a poem about the sea",
        "I saw Daniel and told him about the car.",
        "My brother said he would come.",
        "This is my dog Rex.",
        "There is a leak in the kitchen.",
        "There are very strict rules about who may enter.",
        "Boats have this magic about them, I think.",
        "Caroline joined a support group yesterday.",
        "Me gusta mucho la pizza de mi barrio.",
        "Ich wohne seit drei Jahren in Berlin.",
        "Je travaille dans une banque à Lyon.",
        "我昨天去了超市买牛奶。",
        "我妹妹五月搬到了里斯本",
        "어제 마트에서 우유를 샀어요.",
        "예약을 내일로 바꿔 주세요.",
        "좋아하는 음식은 김치찌개입니다.",
    ],
)
def test_a_turn_that_says_what_it_speaks_of_stands_by_itself(text: str) -> None:
    assert leans(text) == 0


def test_the_index_holds_the_mark_and_does_not_count_it_as_a_word() -> None:
    said = date(2024, 3, 1)
    (replied,) = index_text("Yes, that one in Lisbon.", said)
    (stated,) = index_text("My sister moved to Lisbon.", said)
    assert replied.terms.count(term_hash(LEANS)) == WHOLLY
    assert term_hash(LEANS) not in stated.terms
    assert replied.length == 1


@given(st.text(max_size=500))
def test_any_text(text: str) -> None:
    assert leans(text) in (0, 1, WHOLLY)
    assert leans(text) == leans(text)
