"""A time that was said relative to its day is found by who asks for the day, in English, Chinese and Korean."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.analyzer import ascii_words, term_hash
from muniment.core.text.times.turn_dates import date_terms, feast_terms
from muniment.memory._index import index_text
from muniment.memory.query import read_query
from products import for_each


def asked_for(question: str, asked: date) -> list[str]:
    """The most exact terms of time that a question asks for: days, else months, else years."""
    words = [slot.word for slot in read_query(question, (), asked).slots]
    for sign in ("#d", "#m", "20"):
        found = [word for word in words if word.startswith(sign)]
        if found:
            return found
    return []


@for_each(
    ("said", "text", "asked", "question"),
    [
        ("2024-02-10", "I'm flying to Rome next month.", "2024-06-01", "Where did I fly in March?"),
        ("2024-02-10", "I'll visit my mom in two weeks.", "2024-06-01", "What happened in February?"),
        ("2024-02-10", "In two weeks we move.", "2024-06-01", "What happened on February 22?"),
        ("2024-02-14", "We're camping this weekend.", "2024-06-01", "What did we do on February 17?"),
        ("2024-02-14", "The exam is the day after tomorrow.", "2024-06-01", "What was on February 16?"),
        ("2024-02-14", "We went to Crete last summer.", "2024-06-01", "Where did we go in July 2023?"),
        ("2024-02-14", "We went to Crete last summer.", "2024-06-01", "Where did we go in summer 2023?"),
        ("2024-02-14", "We went to Crete last summer.", "2024-06-01", "Where did we go in the summer of 2023?"),
        ("2024-02-14", "The dentist is on the 20th.", "2024-06-01", "What was on February 20?"),
        ("2024-02-14", "I started on the 5th.", "2024-06-01", "What happened on February 5th?"),
        ("2024-02-14", "I quit smoking a year ago.", "2024-06-01", "What happened in 2023?"),
        ("2024-12-10", "We fly home at Christmas.", "2025-06-01", "What happened in December?"),
        ("2024-12-10", "We fly home at Christmas.", "2025-06-01", "What did we do on December 25?"),
        ("2024-12-10", "We fly home at Christmas.", "2025-06-01", "What did we do at Christmas?"),
        ("2024-12-10", "Party on New Year's Eve!", "2025-06-01", "What was on December 31?"),
        ("2024-10-10", "I dress up for Halloween.", "2025-06-01", "What did I do in October?"),
        ("2024-10-28", "Costume party on October 31.", "2025-06-01", "What did I do on Halloween?"),
        ("2024-02-10", "Dinner on Valentine's Day", "2025-06-01", "What was on February 14?"),
        ("2024-11-10", "Thanksgiving at my parents'.", "2025-06-01", "What was in November?"),
        ("2024-02-14", "See you on Friday.", "2024-06-01", "What was on February 16?"),
        ("2024-02-14", "I met Ana on Monday.", "2024-06-01", "Whom did I meet on February 12?"),
        ("2024-02-14", "I met Ana last Friday.", "2024-06-01", "Whom did I meet on February 9?"),
        ("2024-02-14", "The show is this Saturday.", "2024-06-01", "What was on 17 February?"),
        ("2024-02-14", "I leave tomorrow.", "2024-06-01", "What was on 15 February?"),
        ("2024-02-14", "I arrived three days ago.", "2024-06-01", "What was on 11 February?"),
        ("2024-02-14", "The wedding is in three months.", "2024-06-01", "What happened in May?"),
        ("2024-02-14", "She moved two months ago.", "2024-06-01", "What happened in December?"),
        ("2024-02-14", "We meet a week from now.", "2024-06-01", "What happened on February 21?"),
        ("2024-02-14", "We meet a week from Friday.", "2024-06-01", "What happened on February 23?"),
        ("2024-02-14", "The trip is later this month.", "2024-06-01", "What happened in February?"),
        ("2024-02-14", "The trip is at the end of the month.", "2024-06-01", "What happened in February?"),
        ("2024-02-14", "The trip is at the end of next month.", "2024-06-01", "What happened in March?"),
        ("2024-02-14", "The trip is early next month.", "2024-06-01", "What happened in March?"),
        ("2024-02-14", "We did it the week before last.", "2024-06-01", "What happened on January 31?"),
        ("2024-02-14", "We ski next winter.", "2025-06-01", "What did we do in January?"),
        ("2024-02-14", "We ski this winter.", "2025-06-01", "What did we do in January 2024?"),
        ("2024-07-14", "We sail this summer.", "2025-06-01", "What did we do in August?"),
        ("2024-07-14", "We sail in the summer.", "2025-06-01", "What did we do in August?"),
        ("2024-02-14", "We met half a year ago.", "2024-06-01", "What happened in August?"),
        ("2024-02-14", "We met six months ago.", "2024-06-01", "What happened in August?"),
        (
            "2024-02-14",
            "I begin within a fortnight; a fortnight ago I quit.",
            "2024-06-01",
            "What happened on January 31?",
        ),
        ("2024-02-14", "Last night I cooked.", "2024-06-01", "What did I cook on February 13?"),
        ("2024-02-14", "In the last week of January we met", "2024-06-01", "What happened in January?"),
        ("2024-02-14", "It was last March", "2024-06-01", "What happened in March 2023?"),
        ("2024-02-14", "It is next March", "2024-06-01", "What happened in March?"),
        ("2024-02-14", "I go back in 10 days", "2024-06-01", "What was on 24 February?"),
        ("2024-02-14", "We had a fight the night before last", "2024-06-01", "What was on 12 February?"),
        ("2024-02-14", "My birthday is tomorrow night", "2024-06-01", "What was on 15 February?"),
        ("2024-02-14", "I have been here since last Tuesday", "2024-06-01", "What was on 13 February?"),
        ("2024-02-14", "a couple of weeks ago I fell", "2024-06-01", "What happened in January?"),
        ("2024-02-14", "I graduated two years ago", "2024-06-01", "What happened in 2022?"),
        ("2024-02-14", "next year I graduate", "2025-06-01", "What happens in 2025?"),
        ("2024-02-14", "下个月我去罗马", "2024-06-01", "三月我去了哪里？"),
        ("2024-02-14", "下个月我去罗马", "2024-06-01", "3月我去了哪里？"),
        ("2024-02-14", "两周后搬家", "2024-06-01", "2月28日发生了什么？"),
        ("2024-02-14", "这个周末去露营", "2024-06-01", "2月17日做了什么？"),
        ("2024-02-14", "后天考试", "2024-06-01", "2月16日有什么？"),
        ("2024-02-14", "去年夏天去了克里特", "2024-06-01", "2023年7月去了哪里？"),
        ("2024-02-14", "我5号开始上班", "2024-06-01", "2月5日发生了什么？"),
        ("2024-02-14", "我20号去看牙医", "2024-06-01", "2月20日有什么？"),
        ("2024-02-14", "一年前戒烟了", "2024-06-01", "2023年发生了什么？"),
        ("2024-12-10", "圣诞节回家", "2025-06-01", "12月25日做了什么？"),
        ("2024-12-10", "圣诞节回家", "2025-06-01", "去年十二月做了什么？"),
        ("2024-02-14", "周五见", "2024-06-01", "2月16日有什么？"),
        ("2024-02-14", "上周五见了安娜", "2024-06-01", "2月9日见了谁？"),
        ("2024-02-14", "三天前到的", "2024-06-01", "2月11日发生了什么？"),
        ("2024-02-14", "月底去旅行", "2024-06-01", "二月有什么？"),
        ("2024-02-14", "上个月买的车", "2024-06-01", "一月买了什么？"),
        ("2024-02-14", "半年前认识的", "2024-06-01", "去年八月发生了什么？"),
        ("2024-02-14", "다음 달에 로마에 가요", "2024-06-01", "3월에 어디에 갔어요?"),
        ("2024-02-14", "2주 후에 이사해요", "2024-06-01", "2월 28일에 무슨 일이 있었어요?"),
        ("2024-02-14", "이번 주말에 캠핑 가요", "2024-06-01", "2월 17일에 뭐 했어요?"),
        ("2024-02-14", "모레 시험이 있어요", "2024-06-01", "2월 16일에 뭐가 있었어요?"),
        ("2024-02-14", "작년 여름에 크레타에 갔어요", "2024-06-01", "2023년 7월에 어디 갔어요?"),
        ("2024-02-14", "지난 여름에 크레타에 갔어요", "2024-06-01", "2023년 7월에 어디 갔어요?"),
        ("2024-02-14", "20일에 치과에 가요", "2024-06-01", "2월 20일에 뭐가 있었어요?"),
        ("2024-02-14", "일 년 전에 담배를 끊었어요", "2024-06-01", "2023년에 무슨 일이 있었어요?"),
        ("2024-12-10", "크리스마스에 집에 가요", "2025-06-01", "12월 25일에 뭐 했어요?"),
        ("2024-02-14", "금요일에 만나요", "2024-06-01", "2월 16일에 뭐 했어요?"),
        ("2024-02-14", "지난 금요일에 안나를 만났어요", "2024-06-01", "2월 9일에 누구를 만났어요?"),
        ("2024-02-14", "사흘 전에 도착했어요", "2024-06-01", "2월 11일에 무슨 일이?"),
        ("2024-02-14", "지난달에 차를 샀어요", "2024-06-01", "1월에 뭘 샀어요?"),
        ("2024-02-14", "월말에 여행 가요", "2024-06-01", "2월에 뭐 했어요?"),
        ("2024-02-14", "반년 전에 만났어요", "2024-06-01", "작년 8월에 무슨 일이?"),
    ],
)
def test_what_was_said_relative_to_its_day_is_found_by_the_day(said: str, text: str, asked: str, question: str) -> None:
    wanted = asked_for(question, date.fromisoformat(asked))
    held = set(index_text(text, date.fromisoformat(said))[1])
    assert wanted
    assert any(term_hash(term) in held for term in wanted)


@for_each(
    ("said", "text", "asked", "question"),
    [
        ("2024-02-10", "I'm flying to Rome next month.", "2024-06-01", "Where did I fly in April?"),
        ("2024-02-14", "I met Ana on Monday.", "2024-06-01", "Whom did I meet on February 19?"),
        ("2024-02-14", "I will meet Ana on Monday.", "2024-06-01", "Whom did I meet on February 20?"),
        ("2024-02-14", "I live on the 5th floor.", "2024-06-01", "What happened on February 5th?"),
        ("2024-02-14", "我住在5号楼", "2024-06-01", "2月5日发生了什么？"),
        ("2024-02-14", "3일 동안 쉬었어요", "2024-06-01", "2월 3일에 뭐 했어요?"),
        ("2024-12-10", "We fly home on Christmas Eve.", "2025-06-01", "What did we do on December 25?"),
        ("2024-12-10", "Party on New Year's Eve!", "2025-06-01", "What happened on January 1?"),
        ("2024-02-14", "We met half a year ago.", "2024-06-01", "What happened in February?"),
        ("2024-02-14", "지난 여름에 크레타에 갔어요", "2024-06-01", "2월에 어디 갔어요?"),
        ("2024-02-14", "We sat by the springs.", "2024-06-01", "What happened in April?"),
    ],
)
def test_another_day_finds_nothing(said: str, text: str, asked: str, question: str) -> None:
    wanted = asked_for(question, date.fromisoformat(asked))
    held = set(index_text(text, date.fromisoformat(said))[1])
    assert wanted
    assert not any(term_hash(term) in held for term in wanted)


@for_each(
    ("year", "text", "days"),
    [
        (2024, "thanksgiving", {"#m11", "#d11-28"}),
        (2024, "mother's day", {"#m5", "#d5-12"}),
        (2024, "father’s day", {"#m6", "#d6-16"}),
        (2024, "memorial day", {"#m5", "#d5-27"}),
        (2023, "labor day", {"#m9", "#d9-4"}),
        (2024, "christmas and halloween", {"#m12", "#d12-25", "#m10", "#d10-31"}),
        (2024, "크리스마스 이브", {"#m12", "#d12-24"}),
        (2024, "nothing of the kind", set()),
    ],
)
def test_feasts(year: int, text: str, days: set[str]) -> None:
    assert set(feast_terms(text, year)) == days
    if text.isascii():
        assert set(feast_terms(text, year, frozenset(ascii_words(text)))) == days


@given(st.text(max_size=200), st.dates())
def test_any_text_on_any_day(text: str, said: date) -> None:
    assert date_terms(text, said) == date_terms(text, said)


PIECES = "on,the,31st,30th,friday,christmas,summer,in,half,a,year,ago,fortnight,week,from,month"


@given(
    st.lists(st.sampled_from(PIECES.split(","))),
    st.sampled_from([date.min, date.max, date(2024, 2, 29), date(2023, 1, 31)]),
)
def test_the_ends_of_the_calendar(words: list[str], said: date) -> None:
    assert all(date_terms(" ".join(words), said))
