"""Which sentences are claims: those with a mark or a figure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.policy import ResearchPolicy
from muniment.research._markdown import Claim, find_claims, read_markdown
from muniment.research.urls import cid_of, normalize_url
from products import for_each

POLICY = ResearchPolicy()
LIST = "\n\n## Sources\n[1] https://a.org/x - Title A\n[2] https://b.org/y/ - Title B\n"
A, B = (cid_of(normalize_url(url)) for url in ("https://a.org/x", "https://b.org/y"))


def claims(markdown: str) -> list[Claim]:
    return find_claims(read_markdown(markdown), POLICY)


def texts(markdown: str) -> list[str]:
    return [claim.sentence.text for claim in claims(markdown)]


STAYS = "The sea covers 71 % of the planet."


@pytest.mark.req("RP-08")
@for_each(
    "sentence",
    [
        "Prices in Norway rose by 5 % in 2023.",
        "X uses Y for Z [1].",
        "However, the fund lost a third of its value [1].",
        "It grew by 5 % in the last year.",
        '"I think it is difficult anywhere," the director said [2].',
        "There are 43 cities with metro lines in China.",
        "2023年全国居民人均可支配收入为39,218元，比上年增长6.3%。",
        "中国电竞用户以男性为主；集中在30岁以下。",
        "我国城镇居民收入中位数继续增长[1]。",
    ],
)
def test_a_sentence_with_a_mark_or_a_figure_is_a_claim(sentence: str) -> None:
    assert len(texts(f"{sentence}\n\n{STAYS}{LIST}")) == 2


@for_each(
    "sentence",
    [
        "X uses Y for Z.",
        "Let me search for more specific data on this.",
        "Why did prices rise by 5 % in Norway [1]?",
        "为什么价格上涨了5%[1]？",
        "Here are the main results of the study [1]:",
        "Prices rose 5 %.",
        "价格涨5%。",
        "and so the price went up by 5 % [1].",
        "As shown in [1], the price went up by half.",
        "[The long title of a page about prices](https://c.org/z)",
        '注者写道："谷，养也，这是古人的说法[1]。',
        "Prices rose by 5 % in " + "Norway and " * 60 + "Sweden.",
    ],
)
def test_other_sentences_are_none(sentence: str) -> None:
    assert texts(f"{STAYS}\n\n{sentence}{LIST}") == [STAYS]


@for_each(
    ("line", "expected"),
    [
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
    gap = "The price of 20 % of the land is not known to anybody."
    assert texts(
        f"# Report\n\n{STAYS}\n\n## Gaps\n\n{gap}\n\n### More\n\n{gap}{LIST}\n{gap}\n\n## 目录\n\n- {gap}\n"
    ) == [STAYS]


def test_a_section_on_gaps_and_more_is_what_it_says_first() -> None:
    assert texts(f"## Outlook and research gaps\n\n{STAYS}\n\n## Gaps and limitations\n\n{STAYS}\n") == [STAYS]


@pytest.mark.req("RP-08")
def test_sources_beside_a_claim_and_those_that_close_its_paragraph() -> None:
    one, two, three, four = claims(
        f"Prices in Norway rose by 5 % in 2023. Prices in Sweden fell a lot [1]. The sea is far away. [2][2]\n\n"
        f"Wages in Norway rose by 2 %.{LIST}"
    )
    assert (one.cited, one.closing, one.figure) == ((), (B,), True)
    assert (two.cited, two.closing, two.figure) == ((A,), (), False)
    assert (three.cited, three.closing) == ((B,), ())
    assert (four.cited, four.closing, four.figure) == ((), (), True)


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
