"""A draft against its pack: every kind of finding, where it is, and what is no finding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.research import SummaryPack
from muniment.research.drafts import check_draft
from muniment.research.records import Citation, CitationStatus, DraftCheck
from muniment.research.sources import Judgement
from muniment.research.urls import cid_of, short_cids
from products import for_each

TEXTS = {
    "https://trial.example/report": "Heat pumps kept 84 % of homes warm. Noise was measured in 12 % of homes.",
    "https://sales.example/2024": "Sales of heat pumps fell by 40 % in Germany. Prices rose by 7 %.",
    "https://zh.example/a": "热泵使84%的家庭保持温暖。",
    "https://wall.example/paid": "",
}
STATUSES: dict[str, CitationStatus] = dict.fromkeys(TEXTS, "valid") | {"https://wall.example/paid": "paywalled"}
OUTSIDE: dict[str, CitationStatus] = {
    "https://gone.example": "invalid",
    "https://shut.example": "blocked",
    "https://later.example": "unchecked",
    "https://other.example": "valid",
}
CITATIONS = [
    Citation(cid=cid_of(url), url=url, url_original=url, status=status, found_by=("p1",))
    for url, status in (STATUSES | OUTSIDE).items()
]
SHORT = short_cids([citation.cid for citation in CITATIONS])
TRIAL, SALES, ZH, PAID = (SHORT[cid_of(url)] for url in TEXTS)
OTHER = SHORT[cid_of("https://other.example")]


def pack(*, listed: bool = True) -> SummaryPack:
    plain: dict[str, Any] = {
        "schema_version": "summary_pack.v1",
        "run_id": "r1",
        "generated_at": "2026-02-13T12:40:00Z",
        "limits": {},
        "summaries": [
            {
                "perspective_id": "p1",
                "source_artifact": "wave-1/p1.md",
                "summary_md": "summaries/p1.summary.md",
                "key_claims": [{"claim": "X.", "citation_cids": [cid_of(next(iter(TEXTS)))], "confidence": 85}],
            }
        ],
        "total_estimated_tokens": 1,
    }
    if listed:
        plain["sources"] = [{"cid": cid_of(url)} for url in TEXTS]
    return SummaryPack.from_wire(plain)


def terms(text: str) -> set[str]:
    return set(re.findall(r"\d+|[a-z]{4,}|[\u4e00-\u9fff]", text.lower()))


def judge(claim: str, cids: Sequence[str]) -> dict[str, Judgement]:
    """Supported by a text that has all its words."""
    judged = {}
    for cid in cids:
        (text,) = [text for url, text in TEXTS.items() if cid_of(url) == cid]
        if not text:
            judged[cid] = Judgement("unchecked", 25, "no text")
        elif terms(claim) and terms(claim) <= terms(text):
            judged[cid] = Judgement("supported", 90, "it says so")
        else:
            judged[cid] = Judgement("not_supported", 10, "it does not say so")
    return judged


def check(markdown: str, sections: Sequence[str] = (), **more: Any) -> DraftCheck:
    made = check_draft(markdown, more.get("pack", pack()), CITATIONS, sections, 1, "ab" * 32, judge)
    assert made.passed is (not made.findings)
    for finding in made.findings:
        if finding.span is not None:
            markdown.encode()[finding.span.start : finding.span.end].decode()
    return made


def problems(markdown: str, sections: Sequence[str] = (), **more: Any) -> list[str]:
    return [finding.problem for finding in check(markdown, sections, **more).findings]


GOOD = f"""# Heat pumps

## Summary

Heat pumps kept 84 % of homes warm. [{TRIAL}]

## Findings

- Sales of heat pumps fell by 40 % in Germany [{SALES}].
- Nobody knows why.

## Limitations

Few trials were long.

## Sources

- [{TRIAL}] Trial report. https://trial.example/report
- [{SALES}] Sales. https://sales.example/2024
"""


@pytest.mark.req("RP-08")
def test_a_draft_that_holds_passes() -> None:
    made = check(GOOD, ["Summary", "Findings", "Limitations", "Sources"])
    assert made.passed
    assert made.metrics == {
        "sentences": 4,
        "figures": 2,
        "figures_cited": 2,
        "citations": 2,
        "distinct": 2,
        "unsupported": 0,
        "utilisation": 0.5,
    }
    assert (made.digest, made.review) == ("ab" * 32, 1)


# -- figures ------------------------------------------------------------------------------------------


def test_a_figure_without_a_citation_is_found_where_it_stands() -> None:
    markdown = f"热泵 work. Über 84 % of homes stayed warm.\n\nPrices rose by 7 % [{SALES}]."
    (finding,) = check(markdown).findings
    assert finding.problem == "uncited_figure"
    assert finding.span is not None
    assert markdown.encode()[finding.span.start : finding.span.end].decode() == "Über 84 % of homes stayed warm."
    assert finding.text == "Über 84 % of homes stayed warm."


def test_a_mark_that_closes_the_paragraph_counts_if_it_bears_the_figure() -> None:
    assert problems(f"Heat pumps kept 84 % of homes warm. Noise was measured in 12 % of homes. [{TRIAL}]") == []
    assert problems(f"Heat pumps kept 99 % of homes warm. Noise was measured in 12 % of homes. [{TRIAL}]") == [
        "uncited_figure"
    ]


def test_a_mark_that_closes_the_paragraph_does_not_count_unchecked() -> None:
    assert problems(f"Heat pumps kept 84 % of homes warm. Noise was measured. [{PAID}]") == ["uncited_figure"]


def test_figures_in_headings_code_and_the_list_of_sources_need_none() -> None:
    body = "# Why 84 % stayed warm\n\nHeat pumps kept homes warm [1].\n\n```\n84 % and 40 %\n```\n"
    markdown = f"{body}\n## Sources\n\n[1] 84 % warm, https://trial.example/report\n"
    assert problems(markdown) == []


TABLE = "| Country | Change |\n|---|---|\n| Sales in Germany | 40 % |\n| Prices | 7 % |\n"


@for_each(
    ("markdown", "found"),
    [
        (TABLE, ["uncited_figure", "uncited_figure"]),
        (TABLE.replace("40 %", f"40 % [{SALES}]").replace("7 %", f"7 % [{SALES}]"), []),
        (f"How the market changed [{SALES}]:\n\n{TABLE}", []),
        (f"{TABLE}\nAll from one report. [{SALES}]\n", []),
        (f"How the market changed [{TRIAL}]:\n\n{TABLE}", ["unsupported_citation", "uncited_figure", "uncited_figure"]),
        (f"How the market changed [{SALES}]:\n\nIt did.\n\n{TABLE}", ["unsupported_citation", *["uncited_figure"] * 2]),
        (f"**The market in figures [{SALES}]**\n\n{TABLE}", []),
        (f"## Before\n\nIt is cold.\n\n{TABLE}\n## Sales [{SALES}]\n\nThey fell.", ["uncited_figure"] * 2),
        (TABLE.replace("40 %", f"40 % [{TRIAL}]").replace("7 %", f"7 % [{SALES}]"), ["unsupported_citation"]),
    ],
)
def test_a_row_is_cited_in_itself_or_beside_its_table(markdown: str, found: list[str]) -> None:
    assert problems(markdown) == found


# -- which source -------------------------------------------------------------------------------------


@pytest.mark.req("RP-03")
@for_each(
    ("mark", "found"),
    [
        (f"[{TRIAL}]", []),
        (f"[{cid_of('https://trial.example/report')}]", []),
        ("(https://trial.example/report)", []),
        ("([report](https://TRIAL.example/report/?utm_source=x))", []),
        ("[cid_0123456789abcdef]", ["unknown_citation"]),
        ("[cid_]", ["uncited_figure"]),
        ("(https://nowhere.example/x)", ["unknown_citation"]),
        (f"[{OTHER}]", ["unknown_citation"]),
        ("(https://gone.example)", ["invalid_citation"]),
        ("(https://shut.example)", ["invalid_citation"]),
        ("(https://later.example)", ["invalid_citation"]),
        ("[7]", ["unknown_citation"]),
        (f"[{PAID}]", []),
    ],
)
def test_only_sources_of_the_pack_are_cited(mark: str, found: list[str]) -> None:
    assert problems(f"Heat pumps kept 84 % of homes warm {mark}.") == found


def test_a_beginning_that_several_sources_share_is_unknown() -> None:
    beginnings = [cid[:5] for cid in SHORT]
    shared = next(each for each in beginnings if beginnings.count(each) > 1)
    (finding,) = check(f"Heat pumps kept homes warm [{shared}].").findings
    assert finding.problem == "unknown_citation"
    assert finding.citation == shared
    assert "several" in finding.message


def test_numbers_lead_through_the_drafts_own_list() -> None:
    body = "Heat pumps kept 84 % of homes warm [1]. Prices rose by 7 % [2].\n\n## Sources\n\n"
    assert problems(body + "1. https://trial.example/report\n2. https://sales.example/2024\n") == []
    assert problems(body + "1. https://sales.example/2024\n2. https://trial.example/report\n") == [
        "unsupported_citation",
        "unsupported_citation",
    ]
    assert problems(body + f"[1] {TRIAL} Trial\n[2] {SALES} Sales\n") == []
    assert problems(body + "1. https://trial.example/report\n2. https://nowhere.example/\n") == ["unknown_citation"]


def test_what_only_the_list_names_must_be_of_the_pack_too() -> None:
    body = f"Heat pumps kept homes warm [{TRIAL}].\n\n## Sources\n\n- https://trial.example/report\n"
    assert problems(body) == []
    made = check(f"{body}- More. https://nowhere.example/x\n- https://gone.example/\n- {OTHER} Other\n")
    assert [(finding.problem, finding.citation) for finding in made.findings] == [
        ("unknown_citation", "https://nowhere.example/x"),
        ("invalid_citation", "https://gone.example/"),
        ("unknown_citation", OTHER),
    ]


def test_the_claims_of_a_pack_without_a_list_name_its_sources() -> None:
    assert problems(f"Heat pumps kept homes warm [{TRIAL}].", pack=pack(listed=False)) == []
    assert problems(f"Prices rose [{SALES}].", pack=pack(listed=False)) == ["unknown_citation"]


# -- support ------------------------------------------------------------------------------------------


@pytest.mark.req("RP-08")
def test_a_right_source_for_a_wrong_claim_is_found() -> None:
    (finding,) = check(f"Heat pumps kept 99 % of homes warm [{TRIAL}].").findings
    assert finding.problem == "unsupported_citation"
    assert finding.citation == cid_of("https://trial.example/report")
    assert "it does not say so" in finding.message


@for_each(
    ("markdown", "unsupported"),
    [
        (f"Prices rose by 7 % [{TRIAL}][{SALES}].", 0),
        (f"Prices rose by 9 % [{TRIAL}][{SALES}].", 1),
        (f"Prices rose by 9 % [{TRIAL}][{PAID}].", 0),
        (f"Heat pumps kept 84 % of homes warm [{TRIAL}], and prices rose by 7 % [{SALES}].", 0),
        (f"Heat pumps kept 84 % of homes warm [{SALES}], and prices rose by 7 % [{TRIAL}].", 1),
        (f"Heat pumps kept 84 % of homes warm [{TRIAL}], and prices rose by 9 % [{SALES}][{ZH}].", 1),
        (f"Heat pumps kept 84 % of homes **warm** [{TRIAL}][{ZH}]; prices rose by 7 % [{SALES}] too.", 0),
        ("[Pumps](https://trial.example/report) kept homes warm, [prices](https://sales.example/2024) rose by 7 %.", 0),
        (f"热泵使84%的家庭保持温暖[{ZH}]。", 0),
        (f"热泵使94%的家庭保持温暖[{ZH}]。", 1),
    ],
)
def test_each_part_of_a_sentence_has_its_own_sources(markdown: str, unsupported: int) -> None:
    made = check(markdown)
    assert [finding.problem for finding in made.findings] == ["unsupported_citation"] * unsupported
    assert made.metrics["unsupported"] == unsupported


@for_each(
    ("markdown", "found"),
    [
        (f"See the appendix for details [{TRIAL}].", []),
        (f"For more on this, see the appendix [{TRIAL}].", []),
        (f"详见附录[{ZH}]。", []),
        (f"Why is that so [{TRIAL}]?", []),
        (f"Seemingly nobody minds [{TRIAL}].", ["unsupported_citation"]),
        (f"See how 99 % were warm [{TRIAL}].", ["unsupported_citation"]),
    ],
)
def test_what_only_points_to_a_source_need_not_be_borne_out(markdown: str, found: list[str]) -> None:
    assert problems(markdown) == found


# -- sections -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "wanted"),
    [
        ("## 2. Executive summary", "Summary"),
        ("## 摘要", "Summary"),
        ("### References", "Sources"),
        ("## Caveats", "Limitations"),
    ],
)
def test_a_section_goes_by_any_of_its_names(heading: str, wanted: str) -> None:
    assert problems(f"It is cold.\n\n{heading}\n\nHeat pumps work.\n", [wanted]) == []


def test_missing_and_empty_sections() -> None:
    markdown = "## Summary\n\nHeat pumps work.\n\n## Findings\n\n### More\n\n## Limitations\n\nFew.\n"
    made = check(markdown, ["Summary", "Findings", "Limitations", "Sources"])
    assert [finding.problem for finding in made.findings] == ["missing_section", "missing_section"]
    assert sorted(finding.message for finding in made.findings) == [
        "the section “Findings” is empty",
        "there is no section “Sources”",
    ]


@pytest.mark.parametrize("markdown", ["", "  \n\n", "# Heat pumps\n\n## Findings\n", "```\n84 %\n```\n"])
def test_a_draft_that_says_nothing_is_empty(markdown: str) -> None:
    assert problems(markdown) == ["empty_report"]


# -- anything -----------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "84 % of homes",
        "热泵。",
        f"[{TRIAL}]",
        f"[{OTHER}]",
        "[1]",
        "\n\n",
        "## Sources\n",
        "| a | 7 % |\n",
        "- ",
        ". ",
        "👩‍👩‍👧 é",
        "https://trial.example/report ",
        "**",
        "`",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=25).map(" ".join))
def test_any_text_can_be_checked(markdown: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in markdown):
        return
    made = check(markdown, ["Sources"])
    assert check(markdown, ["Sources"]) == made
    assert DraftCheck.from_wire(made.to_wire()) == made
