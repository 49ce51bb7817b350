"""Which sentences claim something that can be read and checked by itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.policy import ResearchPolicy
from muniment.research.reading.claims import Candidate, find_claims
from muniment.research.reading.outputs import read_markdown
from muniment.research.urls import cid_of, normalize_url
from products import for_each

POLICY = ResearchPolicy()
LIST = "\n\n## Sources\n[1] https://a.org/x - Title A\n[2] https://b.org/y/ - Title B\n"
A, B = (cid_of(normalize_url(url)) for url in ("https://a.org/x", "https://b.org/y"))


def claims(markdown: str) -> list[Candidate]:
    return find_claims(read_markdown(markdown), POLICY)


def texts(markdown: str) -> list[str]:
    return [claim.sentence.text for claim in claims(markdown)]


STAYS = "The sea covers most of the planet."


@for_each(
    "sentence",
    [
        "Prices in Norway rose by 5 % in 2023.",
        "X uses Y for Z.",
        "However, the fund lost a third of its value.",
        "It is estimated that a third of all food is lost.",
        '"I think it is difficult anywhere," the director said.',
        "World War I began in 1914.",
        "Use of coal fell by half in Britain.",
        "There are 43 cities with metro lines in China.",
        "2023年全国居民人均可支配收入为39,218元，比上年增长6.3%。",
        "此外，威立雅签署了一项出售子公司的协议。",
        "我国城镇居民收入中位数继续增长。",
        "中国电竞用户以男性为主；集中在30岁以下。",
    ],
)
def test_claims(sentence: str) -> None:
    assert texts(f"{sentence} {STAYS}") == [sentence, STAYS]


@for_each(
    "sentence",
    [
        "Why did prices rise so fast in Norway?",
        "为什么价格上涨得这么快？",
        "Let me search for more specific data on this.",
        "I'll research the price of fish in Japan.",
        "I need more information about the market.",
        "Based on the search results, the market is growing.",
        "This report examines the price dynamics of fish.",
        "The following section provides an overview of prices.",
        "Here are the main results of the study:",
        "To answer your question, prices are compared below.",
        "让我搜索更具体的中产阶级财务数据。",
        "我需要进一步了解各阶层的收入状况。",
        "我将为您撰写一份关于收入分布的报告。",
        "本报告将深入分析各国的收入分布情况。",
        "根据搜索结果，价格正在上涨之中。",
        "需要进一步了解中国社会阶层的具体分类。",
        "Please note that prices may change at any time.",
        "Consider adding more sources to the report.",
        "Ensure that all the doors are closed at night.",
        "请注意价格可能会随时发生变化。",
        "建议企业加强内部管理和风险控制。",
        "加强跨学科培养，培育复合型人才。",
        "Prices rose by TBD in the last year.",
        "Lorem ipsum dolor sit amet is what it says.",
        "The market has grown by [insert number here] so far.",
        "具体数据待补充，以后再作说明。",
        "Prices rose fast.",
        "价格上涨。",
        "and so the price went up by half.",
        "It grew by 5 % in the last year.",
        "This trend is expected to continue in 2025.",
        "However, these results are not sufficient to decide.",
        "With this power, the fund beat all of the others.",
        "Its main product is a drug for the heart.",
        "这一趋势应该会在2025年继续保持。",
        "该基金设定为十年寿命，五年投资。",
        "其关键特性包括多维数据模型和查询语言。",
        "然而，他们当中有很多人没有退休计划。",
        "As shown in [1], the price went up by half.",
        "[The long title of a page about prices](https://c.org/z)",
        '注者写道："谷，养也，这是古人的说法。',
    ],
)
def test_what_claims_nothing_by_itself(sentence: str) -> None:
    assert texts(f"{STAYS}\n\n{sentence}{LIST}") == [STAYS]


@for_each(
    ("line", "expected"),
    [
        ("- Integrated photonics for better control of qubits", False),
        ("- Can introduce other challenges in the process", False),
        ("- Prevents allergies by tuning the immune system.", False),
        ("- 开发应援和粉丝经济相关功能", False),
        ("- 雷达在测量物体速度方面表现出色", True),
        ("- The system reached 95 % accuracy in all of the tests", True),
        ("- **Accuracy**: the system is right in 95 % of all tests", True),
        ("## The system is right in 95 % of all tests", False),
        ("| The system is right | in 95 % of all tests |", False),
        ("> The system is right in 95 % of all tests.", True),
    ],
)
def test_lists_headings_tables_and_quotes(line: str, expected: bool) -> None:
    assert (len(texts(f"{STAYS}\n\n{line}\n")) == 2) is expected


def test_sections_without_claims() -> None:
    gap = "The price of land is not known to anybody."
    assert texts(
        f"# Report\n\n{STAYS}\n\n## Gaps\n\n{gap}\n\n### More\n\n{gap}{LIST}\n{gap}\n\n## 目录\n\n- {gap}\n"
    ) == [STAYS]


def test_a_section_on_gaps_and_more_is_what_it_says_first() -> None:
    assert texts(f"## Outlook and research gaps\n\n{STAYS}\n\n## Gaps and limitations\n\n{STAYS}\n") == [STAYS]


def test_sentences_that_lean_on_others_are_claims_where_there_are_no_others() -> None:
    assert texts("It grew by 5 % in the last year. They fell by half in spring.") == [
        "It grew by 5 % in the last year.",
        "They fell by half in spring.",
    ]


def test_a_sentence_can_be_too_long() -> None:
    long = "Prices rose in " + "Norway and " * 60 + "Sweden."
    assert len(long) > POLICY.claim_chars_max
    assert texts(f"{STAYS} {long}") == [STAYS]


@pytest.mark.req("RP-08")
def test_sources_beside_a_claim_and_those_that_close_its_paragraph() -> None:
    one, two, three, four = claims(
        f"Prices in Norway rose by 5 % in 2023. Prices in Sweden fell a lot [1]. {STAYS} [2][2]\n\n"
        f"Wages in Norway were not looked at.{LIST}"
    )
    assert (one.cited, one.candidates, one.figure) == ((), (B,), True)
    assert (two.cited, two.candidates, two.figure) == ((A,), (), False)
    assert (three.cited, three.candidates) == ((B,), ())
    assert (four.cited, four.candidates) == ((), ())


@pytest.mark.req("RP-08")
def test_a_mark_that_names_no_address_cites_nothing() -> None:
    (claim,) = claims("Prices in Norway rose by 5 % [9] [cid_1a2b] [cid_" + "0" * 64 + "].")
    assert claim.cited == ("cid_" + "0" * 64,)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from([STAYS, "It fell.", "I will.", "价格上涨了很多。", "\n\n", "[1]", "- ", "# "])).map(
        " ".join
    )
)
def test_claims_of_any_text_are_sentences_of_it(markdown: str) -> None:
    reading = read_markdown(markdown)
    found = find_claims(reading, POLICY)
    assert all(claim.sentence in reading.sentences for claim in found)
    assert all(len(claim.sentence.text) <= POLICY.claim_chars_max for claim in found)


@for_each(
    "sentence",
    [
        "Heat pumps kept 84 % of homes warm.",
        "Store sales fell in 2023.",
        "Train ridership doubled between 2010 and 2020.",
        "Design patents expire after 15 years.",
        "Support vector machines reached 91 % accuracy on the set.",
        "Build times halved after the change was merged.",
    ],
)
def test_a_noun_that_is_a_verb_elsewhere_is_no_instruction(sentence: str) -> None:
    reading = read_markdown(f"## Findings\n\n{sentence} [1]\n\n## Sources\n\n[1] https://a.example.org\n")
    assert [claim.sentence.text for claim in find_claims(reading, ResearchPolicy())] == [sentence]
