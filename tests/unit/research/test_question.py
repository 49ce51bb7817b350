"""What a question asks, read off its form: English and Chinese, any string at all."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import SOAK
from muniment.errors import InvalidInput
from muniment.research.questions.phrases import clip, join, title_case
from muniment.research.questions.question import analyse
from products import for_each

INSURERS = (
    "收集整理目前国际综合实力前十的保险公司的相关资料，横向比较各公司的融资情况、信誉度、过往五年的增长幅度、"
    "实际分红、未来在中国发展潜力等维度，并为我评估出最有可能在未来资产排名靠前的2-3家公司"
)
ELDERLY = (
    "From 2020 to 2050, how many elderly people will there be in Japan? What is their consumption potential across "
    "various aspects such as clothing, food, housing, and transportation? Based on population projections, elderly "
    "consumer willingness, and potential changes in their consumption habits, please produce a market size analysis "
    "report for the elderly demographic."
)


@pytest.mark.req("RP-01")
def test_a_chinese_comparison_gives_its_subject_dimensions_and_judgement() -> None:
    found = analyse(INSURERS)
    assert found.language == "zh"
    assert found.subject == "国际综合实力前十的保险公司"
    assert found.topics == ("融资情况", "信誉度", "过往五年的增长幅度", "实际分红", "未来在中国发展潜力")
    assert [part.kind for part in found.parts] == ["ranking", "comparison", "ranking"]
    assert found.parts[-1].text == "最有可能在未来资产排名靠前的2-3家公司"
    assert found.time == ("过往五年",)
    assert found.open_set


@pytest.mark.req("RP-01")
def test_an_english_question_of_three_sentences_has_three_parts() -> None:
    found = analyse(ELDERLY)
    assert found.language == "en"
    assert found.parts[0].text == "number of elderly people in Japan"
    assert found.parts[1].topics == ("clothing", "food", "housing", "transportation")
    assert found.parts[1].head == "consumption potential"
    assert found.parts[2].topics[:2] == ("population projections", "elderly consumer willingness")
    assert found.time == ("From 2020 to 2050",)
    assert "Japan" in found.entities


@for_each(
    ("question", "compared"),
    [
        ("What are the differences between TCP and UDP?", ("TCP", "UDP")),
        ("Explain the differences between Google's recently released A2A protocol and the MCP protocol.",
         ("A2A protocol", "MCP protocol")),
        ("What are the investment philosophies of Duan Yongping, Warren Buffett, and Charlie Munger?",
         ("Duan Yongping", "Warren Buffett", "Charlie Munger")),
        ("PostgreSQL vs SQLite", ("PostgreSQL", "SQLite")),
        ("中国当前的刑罚体系中，死刑、死刑缓期执行、终身监禁的数量、比例、减刑率。",
         ("死刑", "死刑缓期执行", "终身监禁")),
        ("比较想了解创新赛、青教赛的全国一等奖课程的情况和资料。", ("创新赛", "青教赛")),
        ("Kafka vs RabbitMQ vs NATS for event streaming", ("Kafka", "RabbitMQ", "NATS")),
        ("请比较Python、Go和Rust在后端开发中的性能、生态和学习成本", ("Python", "Go", "Rust")),
        ("What is the differences between these various models in terms of risk, return, and cost?", ()),
    ],
)  # fmt: skip
def test_things_set_side_by_side(question: str, compared: tuple[str, ...]) -> None:
    assert analyse(question).compared == compared


@for_each(
    ("question", "kind"),
    [
        ("How do birds navigate during migration?", "how"),
        ("Why did the Roman Empire fall?", "why"),
        ("How many people live in Lagos?", "quantity"),
        ("Compare the cost of rail and road freight.", "comparison"),
        ("Which database can handle the most writes?", "ranking"),
        ("What is the future of the smart home industry?", "forecast"),
        ("What is the impact of tariffs on inflation?", "evaluation"),
        ("What is a monad?", "definition"),
        ("Summarize recent work on protein folding.", "survey"),
        ("碳滑板每年的用量是多少？", "quantity"),
        ("为什么选择原子层沉积？", "why"),
        ("如何增强自闭症学生课堂参与度？", "how"),
        ("中国金融未来的发展趋势", "forecast"),
        ("低代码平台是否真正提高了开发效率？", "evaluation"),
    ],
)
def test_kinds_of_answer(question: str, kind: str) -> None:
    assert analyse(question).kinds[0] == kind


@for_each(
    ("question", "time"),
    [
        ("Growth of solar power since 2010?", ("since 2010",)),
        ("Bank failures in the past five years", ("in the past five years",)),
        ("How did countries grow following World War II?", ("following World War II",)),
        ("分析 2010 年至今的黄金走势", ("2010 年至今",)),
        ("未来5-10年内量子计算会有什么突破", ("未来5-10年内",)),
        ("收集近三年内珠宝设计流行趋势变化", ("近三年内",)),
        ("50年代至今的学者差异调查", ("50年代至今",)),
    ],
)
def test_stretches_of_time(question: str, time: tuple[str, ...]) -> None:
    assert analyse(question).time == time


def test_constraints_are_kept_apart_from_what_is_asked() -> None:
    found = analyse(
        "Please write a literature review on the impact of AI on the labor market. "
        "Ensure the review only cites high-quality, English-language journal articles."
    )
    assert found.constraints == ("Ensure the review only cites high-quality, English-language journal articles",)
    assert [part.text for part in found.parts] == ["impact of AI on the labor market"]
    assert any("思维导图" in said for said in analyse("用思维导图告诉我黄金未来有可能的趋势").constraints)


def test_controversy_is_seen_in_both_languages() -> None:
    assert analyse("Should governments regulate facial recognition?").controversy
    assert analyse("人工智能是否会替代软件工程师").controversy
    assert not analyse("How do birds navigate during migration?").controversy


def test_a_question_turned_into_a_phrase_is_still_english() -> None:
    texts = [part.text for part in analyse(
        "Is there a general method for solving such auctions? How can system accuracy be enhanced by design? "
        "Are AI tools leading to homogenization?"
    ).parts]  # fmt: skip
    assert texts == [
        "whether there is a general method for solving such auctions",
        "how system accuracy can be enhanced by design",
        "are AI tools leading to homogenization?",
    ]


@for_each(
    ("question", "parts"),
    [
        ("Can you find out which countries have a four-day week, what their results were and how unions reacted?",
         ["which countries have a four-day week?", "what their results were?", "how unions reacted?"]),
        ("How has the price of lithium developed and what will drive it next?",
         ["how has the price of lithium developed?", "what will drive it next?"]),
        ("Explain how and why people move.", ["how and why people move"]),
        ("帮我写一份关于上海养老产业的调研报告，包括市场规模、政策、代表企业和投资机会",
         ["上海养老产业", "市场规模、政策、代表企业和投资机会"]),
        ("在房地产市场低迷的情况下，政府税收减少，这会多大程度上影响财政收入",
         ["在房地产市场低迷的情况下，政府税收减少，这会多大程度上影响财政收入"]),
    ],
)  # fmt: skip
def test_what_is_asked_in_one_sentence_is_told_apart_and_nothing_is_lost(question: str, parts: list[str]) -> None:
    assert [part.text for part in analyse(question).parts] == parts


def test_numbered_items_are_parts() -> None:
    found = analyse(
        "For a research project titled 'Player Actions in Sports Videos,' please refine the following components: "
        "1) Object Detection within Badminton Videos; 2) Recognition of Technical Actions; 3) Prediction of Strokes."
    )
    assert found.subject == "Player Actions in Sports Videos"
    assert [part.text for part in found.parts] == [
        "Object Detection within Badminton Videos",
        "Recognition of Technical Actions",
        "Prediction of Strokes",
    ]


@for_each("empty", ["", "   \n\t", "???", "。。。", "—"])
def test_nothing_asked_is_refused_with_a_hint(empty: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        analyse(empty)
    assert caught.value.hint
    assert caught.value.path == "$.question"


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(InvalidInput):
        analyse("what is \ud800?")


def test_other_scripts_are_read_by_the_english_rules() -> None:
    for question in ("日本の高齢者の人口はどうなりますか", "인공지능의 미래는 무엇입니까?", "Что такое инфляция?"):
        found = analyse(question)
        assert found.language == "en"
        assert found.parts


@given(st.text(max_size=400))
def test_any_string_is_read_or_refused_and_always_the_same(question: str) -> None:
    try:
        found = analyse(question)
    except InvalidInput:
        return
    assert found == analyse(question)
    assert found.parts
    assert found.subject
    assert all(part.text for part in found.parts)
    assert all("\n" not in part.text for part in found.parts)


MIXED = st.lists(
    st.sampled_from([
        "compare", " A", ", ", "and ", "B", "? ", ". ", "such as ", "(", ")", "e.g. ", "1) ", "the ", "vs ", "如何",
        "、", "，", "。", "？", "包括", "等", "的", "《", "》", "各公司", "是否", "“", "”", "\n", "2020", "：",
        "/", "一是",
    ]),
    min_size=1,
    max_size=60,
)  # fmt: skip


@given(MIXED)
def test_every_mixture_of_marks_is_read(pieces: list[str]) -> None:
    try:
        found = analyse("".join(pieces))
    except InvalidInput:
        return
    assert found.parts
    assert found.subject


class _Steps:
    """Counts the lines run, which grow with the work and not with the load of the machine."""

    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, frame: object, event: str, arg: object) -> _Steps:
        self.lines += event == "line"
        return self


@pytest.mark.soak
@for_each(
    "unit",
    [
        "Compare a, b, and c (e.g. d, e). ",
        "如何比较甲、乙、丙的数量（如丁、戊）？",
        "(",
        "《",
        "，",
        "a, ",
        "1) A ",
        "x vs y ",
    ],
)
def test_the_work_grows_with_the_length_and_no_faster(unit: str) -> None:
    def lines(times: int) -> int:
        steps = _Steps()
        text = "what " + unit * times
        before = sys.gettrace()
        sys.settrace(steps)
        try:
            analyse(text)
        finally:
            sys.settrace(before)
        return steps.lines

    lines(800)  # compiles the patterns, which takes lines too
    assert lines(800) <= 12 * lines(100) + 2_000


@pytest.mark.soak
def test_a_very_long_question_is_read() -> None:
    size = 1_000_000 if SOAK else 150_000
    assert analyse("What are the costs, risks, and benefits of this? " * (size // 49)).parts
    assert analyse("如何比较各公司的融资情况、信誉度、增长幅度等维度？" * (size // 75)).parts
    assert analyse("what " + "a" * size).parts


def test_phrases_are_cut_where_a_part_ends() -> None:
    text = "global investments, key initiatives, and outputs related to Artificial Intelligence by major firms"
    assert clip(text, 90, "en") == "global investments, key initiatives, and outputs related to Artificial Intelligence"
    assert clip("short", 90, "en") == "short"
    assert clip("机器学习在材料领域的研究进展，以及模型应用现状", 18, "zh") == "机器学习在材料领域的研究进展"
    assert join(["a", "b", "c"], "en") == "a, b and c"
    assert title_case("m6A sites") == "m6A sites"
    assert title_case("how it works") == "How it works"


@given(st.text(min_size=1, max_size=300), st.integers(min_value=10, max_value=120))
def test_a_clipped_phrase_is_a_beginning_of_the_whole(text: str, chars_max: int) -> None:
    for language in ("en", "zh"):
        kept = clip(text, chars_max, language)
        assert len(kept) <= chars_max
        assert text.replace(" ", "").startswith(kept.replace(" ", ""))
