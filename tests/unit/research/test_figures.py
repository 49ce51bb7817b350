"""What is a quantity and what only looks like one."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.research.reading.figures import figures, has_figure
from products import for_each


@for_each(
    ("text", "expected"),
    [
        ("It grew by 5 % in a year.", ["5 %"]),
        ("Sales rose to $4.2 billion from US$5m.", ["$4.2 billion", "$5m"]),
        ("A rise of 12 percentage points", ["12 percentage points"]),
        ("from JPY 79 (USD 0.59)", ["JPY 79", "USD 0.59"]),
        ("about 3.5 million people", ["3.5 million"]),
        ("between 10-30% of them", ["10-30%"]),
        ("30%至40%的家庭", ["30%至40%"]),
        ("在6万-22.9万元之间", ["6万-22.9万元"]),
        ("共有4.2亿人", ["4.2亿"]),
        ("人均39,218元，增长6.3%", ["39,218元", "6.3%"]),
        ("2023年39,218元", ["39,218元"]),
        ("1,234 patients in 15 countries", ["1,234 patients", "15 countries"]),
        ("超过100个城市", ["100个"]),
        ("a Gini of 0.469", ["0.469"]),
        ("with p<0.05", ["0.05"]),
        ("2.5倍，即三分之一，约七成，百分之五十", ["2.5倍", "三分之一", "七成", "百分之五十"]),
        ("two-thirds of five million users", ["two-thirds", "five million"]),
        ("1/3 of voters", ["1/3"]),
        ("500 km at 25 °C and 60 J/cm²", ["500 km", "25 °C", "60 J/cm²"]),
        ("10年来", ["10年"]),
        ("over 20 minutes", ["20 minutes"]),
    ],
)
def test_quantities(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in figures(text)] == expected
    assert has_figure(text)


@for_each(
    "text",
    [
        "In 2023, the law passed", "since 1999", "on May 5, 2023", "5 January 2024", "2023年5月3日", "2024-05-01",
        "2024/05/01", "the 1980s", "20世纪", "1950年代", "the 2016-2020 period", "(2010年至今)", "21st century",
        "the 2020 Olympics", "GPT-4 is a model", "COVID-19 spread", "Claude 3.7 Sonnet", "Python 3.11", "v2.0.1",
        "Web 2.0", "工业4.0", "TLS 1.3", "Windows 11", "iPhone 15", "A380", "Boeing 737", "H1N1", "B2B",
        "3D printing", "5G networks", "CD8+ T细胞", "ISO 27001", "Q3 results", "24/7 support", "9/11", "at 12:30",
        "call 555-1234-567", "Type 2 diabetes", "HTTP 404", "Section 3.2 shows", "Figure 4 shows", "Chapter 12",
        "第3章", "第1级", "4-6级属于中产阶级", "3 approaches exist", "two reasons", "twice as much",
        "no number at all", "",
    ],
)  # fmt: skip
def test_names_dates_and_places_are_none(text: str) -> None:
    assert figures(text) == []
    assert not has_figure(text)


@pytest.mark.soak
@settings(max_examples=examples(100), deadline=None)
@given(st.text(alphabet="0123456789.,-/%$€万亿年月 toand第vQ\n²", max_size=80) | st.text(max_size=80))
def test_any_text_has_spans_in_it_and_in_order(text: str) -> None:
    spans = figures(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
