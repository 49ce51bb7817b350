"""The time that a question is about, by families, in three languages: all asked on Friday, 12 June 2026."""

from __future__ import annotations

from datetime import date

from muniment.core.text.times.asked_when import query_window
from products import for_each

NOW = date(2026, 6, 12)

ENGLISH = """
before June = … 26-05-31
between June 1 and June 3 = 26-06-01 … 26-06-03
before June 3 = … 26-06-02
after June 5 = 26-06-06 …
until June 2 = … 26-06-02
in the week of June 1 = 26-06-01 … 26-06-07
from Monday to Wednesday = 26-06-08 … 26-06-10
between Monday and Wednesday = 26-06-08 … 26-06-10
June 1-3 = 26-06-01 … 26-06-03
June 1 to 3 = 26-06-01 … 26-06-03
1-3 June = 26-06-01 … 26-06-03
from 1 to 3 June 2025 = 25-06-01 … 25-06-03
June 1-3, 2025 = 25-06-01 … 25-06-03
from May to June = 26-05-01 … 26-06-30
between April and May 2025 = 25-04-01 … 25-05-31
from December to February = 25-12-01 … 26-02-28
since last week = 26-06-01 …
before last week = … 26-05-31
the week before last = 26-05-25 … 26-05-31
the weekend before last = 26-05-30 … 26-05-31
the month before last = 26-04-01 … 26-04-30
Friday before last = 26-05-29
Friday last week = 26-06-05
last week Friday = 26-06-05
Friday of last week = 26-06-05
Wednesday this week = 26-06-10
Monday next week = 26-06-15
Friday of the week before last = 26-05-29
in June last year = 25-06-01 … 25-06-30
on June 3 last year = 25-06-03
last day of May = 26-05-31
first day of June = 26-06-01
last day of last month = 26-05-31
first day of this month = 26-06-01
the first Monday of June = 26-06-01
last Friday of May = 26-05-29
second week of May = 26-05-08 … 26-05-14
last week of May = 26-05-25 … 26-05-31
first half of May = 26-05-01 … 26-05-15
in 3 days = 26-06-15
three days from now = 26-06-15
two months ago = 26-04-01 … 26-04-30
eleven days ago = 26-06-01
a year ago = 25-01-01 … 25-12-31
the day after tomorrow = 26-06-14
over the weekend = 26-06-06 … 26-06-07
on the weekend = 26-06-06 … 26-06-07
What do I have on Friday? = 26-06-19
Where should we eat on Friday? = 26-06-19
Can we meet on Monday? = 26-06-15
Shall we swim on Wednesday? = 26-06-17
Am I free on Sunday? = 26-06-14
Are we hiking on Saturday? = 26-06-13
Who did we meet on Monday? = 26-06-08
What could I see on Monday, when I was in Rome? = 26-06-08
since 2024 = 24-01-01 …
until 2024 = … 23-12-31
by June 3 = … 26-06-03
from June 1 on = 26-06-01 …
from June 1 onwards = 26-06-01 …
the day before June 3 = 26-06-02
up to June 3 = … 26-06-03
in May or June = 26-05-01 … 26-05-31
day before yesterday = 26-06-10
year before last = 24-01-01 … 24-12-31
between last Monday and yesterday = 26-06-08 … 26-06-11
from yesterday to today = 26-06-11 … 26-06-12
last month = 26-05-01 … 26-05-31
since yesterday = 26-06-11 …
after last Friday = 26-06-06 …
before yesterday = … 26-06-10
before 2024 = … 23-12-31
in early June = 26-06-01 … 26-06-30
during May = 26-05-01 … 26-05-31
December 25 = 25-12-25
on 21.01.2024 = 24-01-21
on 4.5.2024 = 24-05-04
on 21/01/2024 = 24-01-21
on 1/21/2024 = 24-01-21
on 31-12-2023 = 23-12-31
on 5/5/2024 = 24-05-05
before 10.01.2024 = … 24-01-09
since 10.01.2024 = 24-01-10 …
from 10.01.2024 to 12.01.2024 = 24-01-10 … 24-01-12
in the week of 10.01.2024 = 24-01-08 … 24-01-14
"""
CHINESE = """
6月1日到3日 = 26-06-01 … 26-06-03
6月3日之前 = … 26-06-02
6月3日前 = … 26-06-02
周一到周三 = 26-06-08 … 26-06-10
从周一到周三 = 26-06-08 … 26-06-10
五月到六月 = 26-05-01 … 26-06-30
5月和6月之间 = 26-05-01 … 26-06-30
六月一号到三号 = 26-06-01 … 26-06-03
去年六月 = 25-06-01 … 25-06-30
去年6月3日 = 25-06-03
今年三月 = 26-03-01 … 26-03-31
6月第一周 = 26-06-01 … 26-06-07
5月最后一天 = 26-05-31
5月的最后一周 = 26-05-25 … 26-05-31
六月第一个周末 = 26-06-06 … 26-06-07
上个月第一周 = 26-05-01 … 26-05-07
上个月3号 = 26-05-03
这个月1号 = 26-06-01
上上个月 = 26-04-01 … 26-04-30
上周末 = 26-06-06 … 26-06-07
这周末 = 26-06-13 … 26-06-14
下周末 = 26-06-20 … 26-06-21
下周一 = 26-06-15
下下周一 = 26-06-22
两周前 = 26-05-25 … 26-05-31
2个星期前 = 26-05-25 … 26-05-31
两个月前 = 26-04-01 … 26-04-30
十二天前 = 26-05-31
三年前 = 23-01-01 … 23-12-31
大后天 = 26-06-15
周五有什么安排 = 26-06-19
6月1日以来 = 26-06-01 …
自6月1日起 = 26-06-01 …
截至6月3日 = … 26-06-03
下周一起去 = 26-06-15 … 26-06-21
六月 = 26-06-01 … 26-06-30
前年 = 24-01-01 … 24-12-31
后年 = 28-01-01 … 28-12-31
昨天到今天 = 26-06-11 … 26-06-12
本月 = 26-06-01 … 26-06-30
这个月 = 26-06-01 … 26-06-30
3天后 = 26-06-15
上周五之前 = … 26-06-04
2026年6月 = 26-06-01 … 26-06-30
十二月二十五日 = 25-12-25
"""
KOREAN = """
6월 1일부터 3일까지 = 26-06-01 … 26-06-03
6월 1일에서 3일 사이 = 26-06-01 … 26-06-03
월요일부터 수요일까지 = 26-06-08 … 26-06-10
작년 6월 = 25-06-01 … 25-06-30
6월 첫째 주 = 26-06-01 … 26-06-07
5월 마지막 날 = 26-05-31
5월 마지막 주 = 26-05-25 … 26-05-31
5월 첫날 = 26-05-01
지난달 첫째 주 = 26-05-01 … 26-05-07
지난달 3일 = 26-05-03
지지난달 = 26-04-01 … 26-04-30
이번 주말 = 26-06-13 … 26-06-14
다음 주말 = 26-06-20 … 26-06-21
다음 주 월요일 = 26-06-15
다다음 주 월요일 = 26-06-22
두 달 전 = 26-04-01 … 26-04-30
석 달 전 = 26-03-01 … 26-03-31
일주일 전 = 26-06-01 … 26-06-07
열흘 전 = 26-06-02
하루 전 = 26-06-11
2년 전 = 24-01-01 … 24-12-31
3주 전 = 26-05-18 … 26-05-24
3개월 전 = 26-03-01 … 26-03-31
글피 = 26-06-15
내일모레 = 26-06-14
금요일에 뭐 했어? = 26-06-05
금요일 일정 = 26-06-19
6월 1일부터 = 26-06-01 …
6월 3일까지 = … 26-06-03
6월 3일 이후 = 26-06-03 …
6월 3일 전에 = … 26-06-02
6월 3일 이전 = … 26-06-02
내후년 = 28-01-01 … 28-12-31
어제부터 오늘까지 = 26-06-11 … 26-06-12
이번 달 = 26-06-01 … 26-06-30
이달 = 26-06-01 … 26-06-30
사흘 뒤 = 26-06-15
지난주 이후 = 26-06-01 …
2025년 3월 5일 = 25-03-05
12월 25일 = 25-12-25
"""
"""What is asked = the day, or the first … the last, of this century; an end that is left out is open."""


def rows(*tables: str) -> list[tuple[str, str, str]]:
    found = []
    for line in "".join(tables).split("\n"):
        text, is_row, days = line.partition(" = ")
        if not is_row:
            continue
        start, dots, end = days.partition("…")
        found.append((text, start.strip(), end.strip() if dots else start.strip()))
    return found


@for_each(("text", "start", "end"), rows(ENGLISH, CHINESE, KOREAN))
def test_the_time_asked_about(text: str, start: str, end: str) -> None:
    window = query_window(text, NOW)
    assert window is not None
    assert window.start == (date.fromisoformat(f"20{start}") if start else date.min)
    assert window.end == (date.fromisoformat(f"20{end}") if end else date.max)
    assert (window.grain in ("before", "after")) == (not start or not end)


UNREAD = """
ages ago
the week before June 3
How many days before June 3
three weeks before June 3
6/3
on the 3rd
3号线
晚上周围
지난 주문
may I
since Christmas
from Rome to Oslo
2024
version 2024
周杰伦
一周
每周一
every Monday
on Mondays
매주 월요일
between 3 and 5
June
last quarter
on 4/5/2024
on 31.02.2024
version 3.21.01.2024
"""


@for_each("text", UNREAD.strip().splitlines())
def test_what_cannot_be_read_surely_stays_unread(text: str) -> None:
    assert query_window(text, NOW) is None


@for_each(
    ("now", "text", "day"),
    [
        ("2026-06-13", "지난 금요일", "2026-06-12"),
        ("2026-06-13", "what did I do over the weekend", "2026-06-13"),
        ("2026-06-14", "周末做了什么", "2026-06-13"),
        ("2026-06-09", "from Monday to Wednesday", "2026-06-08"),
        ("2026-01-05", "上个月最后一天", "2025-12-31"),
        ("2026-01-05", "in December", "2025-12-01"),
    ],
)
def test_seen_from_other_days(now: str, text: str, day: str) -> None:
    window = query_window(text, date.fromisoformat(now))
    assert window is not None
    assert window.start.isoformat() == day


def test_a_slip_in_an_ordinal_leaves_the_month_it_is_part_of() -> None:
    window = query_window("who came in the 1th week of May 2023", NOW)
    assert window is not None
    assert (window.start.isoformat(), window.end.isoformat()) == ("2023-05-01", "2023-05-31")
