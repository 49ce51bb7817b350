"""Gaps by priority, and when they are worth a second wave."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.policy import PivotPolicy
from muniment.research._markdown import read_markdown
from muniment.research.records import Gap, Priority
from muniment.research.waves import decide_pivot, read_gaps
from products import for_each


def gaps(markdown: str) -> list[tuple[str, str]]:
    found = read_gaps(read_markdown(markdown), "p1")
    assert all(gap.perspective_id == "p1" and gap.origin == "said" for gap in found)
    return [(gap.priority, gap.text) for gap in found]


@for_each(
    ("line", "priority"),
    [
        ("P0: no data on rents", "P0"),
        ("P1 - no data on rents", "P1"),
        ("[P1] no data on rents", "P1"),
        ("(P2) no data on rents", "P2"),
        ("**P1**: no data on rents", "P1"),
        ("**[P0]** no data on rents", "P0"),
        ("P3 no data on rents", "P3"),
        ("p0：no data on rents", "P0"),
        ("P7: no data on rents", "P3"),
        ("Priority: high - no data on rents", "P1"),
        ("Critical: no data on rents", "P0"),
        ("High priority: no data on rents", "P1"),
        ("[High] no data on rents", "P1"),
        ("(low) no data on rents", "P3"),
        ("no data on rents (P1)", "P1"),
        ("no data on rents [priority: critical]", "P0"),
        ("no data on rents（高优先级）", "P1"),
        ("关键：no data on rents", "P0"),
        ("【重要】no data on rents", "P1"),
        ("no data on rents", "P2"),
    ],
)
def test_priorities(line: str, priority: str) -> None:
    assert gaps(f"## Gaps\n\n- {line}\n") == [(priority, "no data on rents")]


@pytest.mark.parametrize(
    "line",
    [
        "High rents are not explained",
        "Important questions remain on rents",
        "P2P lending was not covered",
        "低收入群体缺乏数据",
    ],
)
def test_words_that_are_no_tags(line: str) -> None:
    assert gaps(f"## Gaps\n\n- {line}\n") == [("P2", line)]


@for_each(
    "body",
    [
        "None.",
        "- None",
        "N/A",
        "None identified.",
        "No significant gaps were found.",
        "无",
        "- 无。",
        "暂无",
        "没有明显缺口。",
        "---",
        "",
        "The following gaps remain:",
    ],
)
def test_nothing_is_no_gap(body: str) -> None:
    assert gaps(f"## Gaps\n\n{body}\n") == []


def test_items_paragraphs_and_rows() -> None:
    assert gaps(
        "## Findings\n\n- P0: not here\n\n## 4. Knowledge gaps\n\nThese remain:\n\n"
        "- P1: rents. Nobody counted them [1].\n- wages\n\n"
        "Costs of care are unknown. So are those of food.\n\n| Gap | Priority |\n|---|---|\n| Age of buyers | P0 |\n\n"
        "## Sources\n- https://a.org\n"
    ) == [
        ("P1", "rents. Nobody counted them."),
        ("P2", "wages"),
        ("P2", "Costs of care are unknown. So are those of food."),
        ("P0", "Age of buyers"),
    ]  # fmt: skip


def test_a_heading_gives_the_priority_of_what_is_under_it() -> None:
    assert gaps("## 研究空白\n\n### P1 重要\n\n- 租金\n- P0：工资\n\n**P3**\n\n- 食品\n") == [
        ("P1", "租金"),
        ("P0", "工资"),
        ("P3", "食品"),
    ]


def test_a_section_on_gaps_alone_counts_before_one_on_more() -> None:
    more = "## Outlook and open questions\n\nThe future is open to all.\n\n"
    assert gaps(f"{more}## Gaps\n\n- rents\n") == [("P2", "rents")]
    assert gaps(more) == [("P2", "The future is open to all.")]


def test_no_section_no_gaps() -> None:
    assert gaps("## Findings\n\n- P0: one\n") == []


def some(**counts: int) -> list[Gap]:
    return [
        Gap.model_validate(
            {"perspective_id": "p1", "priority": priority, "text": f"{priority} {number}", "origin": "said"}
        )
        for priority, count in counts.items()
        for number in range(count)
    ]


@pytest.mark.req("RP-07")
@for_each(
    ("counts", "expected"),
    [
        ({}, False),
        ({"P0": 1}, True),
        ({"P1": 1}, False),
        ({"P1": 2}, True),
        ({"P2": 3}, False),
        ({"P2": 4}, True),
        ({"P1": 1, "P2": 2, "P3": 1}, True),
        ({"P2": 2, "P3": 9}, False),
        ({"P1": 1, "P2": 2}, False),
    ],
)
def test_when_a_second_wave_is_worth_it(counts: dict[str, int], expected: bool) -> None:
    decision = decide_pivot(some(**counts), PivotPolicy(), allowed=True)
    assert decision.second_wave is expected
    assert decision.counts == {"P0": 0, "P1": 0, "P2": 0, "P3": 0} | counts
    refused = decide_pivot(some(**counts), PivotPolicy(), allowed=False)
    assert refused.second_wave is False
    assert ("allow none" in refused.reason) is expected


def test_the_same_gap_of_two_perspectives_counts_once_at_its_gravest() -> None:
    one, two = some(P2=1), some(P1=1)
    two = [gap.model_copy(update={"text": one[0].text.upper(), "perspective_id": "p2"}) for gap in two]
    decision = decide_pivot([*one, *two], PivotPolicy(), allowed=True)
    assert decision.counts == {"P0": 0, "P1": 1, "P2": 0, "P3": 0}
    assert [gap.priority for gap in decision.gaps] == ["P1", "P2"]


@settings(max_examples=examples(30), deadline=None)
@given(st.text(max_size=100), st.dictionaries(st.sampled_from(["P0", "P1", "P2", "P3"]), st.integers(0, 6)))
def test_any_text_and_any_gaps(text: str, counts: dict[Priority, int]) -> None:
    assert all(gap.text.strip() for gap in read_gaps(read_markdown(f"## Gaps\n\n- {text}\n{text}"), "p1"))
    assert decide_pivot(some(**counts), PivotPolicy(), allowed=True).reason
