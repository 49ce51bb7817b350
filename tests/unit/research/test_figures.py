"""What is a quantity and what only looks like one."""

from muniment.research._figures import has_figure
from products import for_each


@for_each(
    "text",
    [
        "It grew by 5 % in a year.",
        "Sales rose to $4.2 billion from US$5m.",
        "A rise of 12 percentage points",
        "from JPY 79 (USD 0.59)",
        "about 3.5 million people",
        "between 10-30% of them",
        "30%至40%的家庭",
        "在6万-22.9万元之间",
        "共有4.2亿人",
        "人均39,218元，增长6.3%",
        "2023年39,218元",
        "1,234 patients in 15 countries",
        "超过100个城市",
        "a Gini of 0.469",
        "with p<0.05",
        "2.5倍，即三分之一，约七成，百分之五十",
        "two-thirds of five million users",
        "1/3 of voters",
        "500 km at 25 °C and 60 J/cm²",
        "10年来",
        "over 20 minutes",
    ],
)
def test_quantities(text: str) -> None:
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
    assert not has_figure(text)
