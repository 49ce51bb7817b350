"""Summaries to the byte, shares of the total, and the pack that names them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.research import Perspective
from muniment.core.canonical import canonical_text
from muniment.core.policy import ResearchLimits, ResearchPolicy
from muniment.core.scope import Span
from muniment.errors import InvalidInput
from muniment.research.pack import PackEntry, Summary, allot, best_first, build_pack, is_packable, write_summary
from muniment.research.records import CheckedClaim, Citation, Support
from products import for_each

POLICY = ResearchPolicy()
QUESTION = "How do heat pumps perform in cold climates?"


def cid(number: int) -> str:
    return f"cid_{number:08x}" + "0" * 56


SHORT = {cid(number): cid(number)[:12] for number in range(10)}


def perspective(id: str = "p1", title: str = "Field performance", **more: Any) -> Perspective:
    contract = {"max_words": 900, "max_sources": 12, "tool_budget": {}, "must_include_sections": ["Findings"]}
    return Perspective.from_wire(
        {"id": id, "title": title, "track": "standard", "agent_type": "A", "prompt_contract": contract, **more}
    )


def claim(
    text: str,
    at: int = 0,
    *,
    section: str = "Findings",
    support: Support = "supported",
    confidence: int = 80,
    **more: Any,
) -> CheckedClaim:
    cids = more.pop("cids", (cid(1),) if support in ("supported", "unchecked") else ())
    return CheckedClaim(
        perspective_id="p1",
        claim=text,
        section=section,
        span=Span(start=at, end=at + len(text.encode())),
        cited=more.pop("cited", cids),
        citation_cids=cids,
        support=support,
        confidence=confidence,
        reason="said so",
        **more,
    )


def citation(number: int, **more: Any) -> Citation:
    url = f"https://example.org/{number}"
    return Citation(cid=cid(number), url=url, url_original=url, status="valid", found_by=("p1",), **more)


CITATIONS = [citation(number) for number in range(10)]
LINES = [
    claim("Heat pumps kept 84 % of homes warm at minus twenty degrees.", 100),
    claim("Air source units lose capacity as the outdoor air gets colder.", 200, section="Limits", confidence=60),
    claim("Ground source units draw on soil that hardly freezes.", 300, cids=(cid(1), cid(2))),
    claim("Norway has more of them for each household than any other country.", 400, section="Limits", confidence=90),
]
WHOLE = """# Field performance

## Findings

- Heat pumps kept 84 % of homes warm at minus twenty degrees. [cid_00000001]
- Ground source units draw on soil that hardly freezes. [cid_00000001] [cid_00000002]

## Limits

- Air source units lose capacity as the outdoor air gets colder. [cid_00000001]
- Norway has more of them for each household than any other country. [cid_00000001]
"""


def sizes(text: str) -> int:
    return len(text.encode())


def summarise(one: Perspective, claims: Sequence[CheckedClaim], bytes_max: int, *rest: Any) -> Summary:
    return write_summary(one, [claim for claim in claims if is_packable(claim)], bytes_max, *rest)


# -- one summary --------------------------------------------------------------------------------------


@pytest.mark.req("RP-04")
def test_a_summary_is_claims_word_for_word_by_section_in_order() -> None:
    made = summarise(perspective(), list(reversed(LINES)), 5120, SHORT, POLICY)
    assert made.markdown == WHOLE
    assert made.used[0] == LINES[0]  # best first: it answers the question, with a figure


@pytest.mark.req("RP-05")
def test_a_claim_that_fits_to_the_byte_is_in_and_one_byte_more_is_out() -> None:
    assert summarise(perspective(), LINES, sizes(WHOLE), SHORT, POLICY).markdown == WHOLE
    less = summarise(perspective(), LINES, sizes(WHOLE) - 1, SHORT, POLICY)
    assert sizes(less.markdown) < sizes(WHOLE)
    assert len(less.used) == 3


def test_a_smaller_claim_may_still_fit_after_a_larger_one_did_not() -> None:
    large = claim("寒冷地区的热泵" * 40, 0, confidence=100)
    small = claim("Heat pumps work.", 900, confidence=30)
    made = summarise(perspective(), [large, small], 200, SHORT, POLICY)
    assert made.used == (small,)


def test_a_new_section_costs_its_heading() -> None:
    one = claim("Heat pumps work.", 0, confidence=100)
    two = claim("Heat pumps hum.", 90, section="热泵的局限", confidence=10)
    whole = summarise(perspective(), [one, two], 5120, SHORT, POLICY).markdown
    assert whole.endswith("\n## 热泵的局限\n\n- Heat pumps hum. [cid_00000001]\n")
    assert summarise(perspective(), [one, two], sizes(whole), SHORT, POLICY).used == (one, two)
    assert summarise(perspective(), [one, two], sizes(whole) - 1, SHORT, POLICY).used == (one,)


def test_claims_under_no_heading_come_first() -> None:
    made = summarise(
        perspective(), [claim("Pumps hum.", 9), claim("Heat pumps work.", 90, section="")], 999, SHORT, POLICY
    )
    assert made.markdown == (
        "# Field performance\n\n- Heat pumps work. [cid_00000001]\n\n## Findings\n\n- Pumps hum. [cid_00000001]\n"
    )


def test_a_limit_that_cannot_hold_the_title_says_what_it_would_take() -> None:
    title = "热泵 in the cold"
    taken = sizes(f"# {title}\n")
    with pytest.raises(InvalidInput) as refused:
        summarise(perspective(title=title), LINES, taken - 1, SHORT, POLICY)
    assert refused.value.details == {"perspective_id": "p1", "bytes_max": taken - 1, "bytes_needed": taken}
    made = summarise(perspective(title=title), LINES, taken, SHORT, POLICY)
    assert made.markdown == f"# {title}\n"


@pytest.mark.req("RP-08")
@for_each(
    ("support", "packed"),
    [("supported", True), ("unchecked", True), ("refuted", False), ("not_supported", False), ("uncited", False)],
)
def test_only_what_is_borne_out_is_packed(support: Support, packed: bool) -> None:
    made = summarise(perspective(), [claim("Heat pumps work.", support=support)], 999, SHORT, POLICY)
    assert bool(made.used) is packed
    assert ("Heat pumps work." in made.markdown) is packed


def test_a_claim_that_kept_no_citation_is_not_packed() -> None:
    assert not summarise(perspective(), [claim("Heat pumps work.", cids=())], 999, SHORT, POLICY).used


def test_nothing_to_show_is_said_in_one_line() -> None:
    made = summarise(perspective(), [], 999, SHORT, POLICY)
    assert made.markdown == (
        "# Field performance\n\nNo finding of this perspective is supported by a source that may be cited.\n"
    )


def test_no_more_citations_than_the_policy_has() -> None:
    policy = ResearchPolicy(claim_cids_max=2)
    made = summarise(perspective(), [claim("It works.", cids=tuple(map(cid, range(4))))], 999, SHORT, policy)
    assert made.markdown.endswith("- It works. [cid_00000000] [cid_00000001]\n")


# -- ranking ------------------------------------------------------------------------------------------


def test_claims_are_ranked_by_support_then_figure_then_position() -> None:
    claims = [
        claim("Sales of gas boilers went down.", 0, confidence=90),
        claim("Heat pumps perform in cold climates.", 100, confidence=50),
        claim("Sales of gas boilers went down by 12 %.", 200, confidence=80),
        claim("Heat pumps hum.", 300, confidence=50),
    ]
    assert [claims.index(one) for one in best_first(claims)] == [2, 0, 1, 3]


# -- any claims, any limits ---------------------------------------------------------------------------

ANYTHING = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.sampled_from("热泵👩‍👩‍👧é\u0301שלוםعربی\u202e𝄞"),
    min_size=1,
    max_size=60,
)
DRAWN = st.lists(
    st.builds(
        lambda text, section, support, confidence, cids: (text, section, support, confidence, cids),
        ANYTHING,
        st.sampled_from(["", "Findings", "发现", "النتائج"]),
        st.sampled_from(["supported", "unchecked", "refuted", "uncited"]),
        st.integers(0, 100),
        st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True),
    ),
    max_size=12,
)


def claims_of(drawn: list[Any]) -> list[CheckedClaim]:
    return [
        claim(text, at * 1000, section=section, support=support, confidence=confidence, cids=tuple(map(cid, cids)))
        for at, (text, section, support, confidence, cids) in enumerate(drawn)
    ]


def line_of(one: CheckedClaim) -> str:
    return f"- {one.claim}" + "".join(f" [{SHORT[each]}]" for each in one.citation_cids[:5])


@pytest.mark.req("RP-05")
@given(DRAWN, ANYTHING, st.integers(0, 600))
def test_any_claims_in_any_limit(drawn: list[Any], title: str, room: int) -> None:
    claims, angle = claims_of(drawn), perspective(title=title)
    bytes_max = sizes(f"# {' '.join(title.split())}\n") + room
    made = summarise(angle, claims, bytes_max, SHORT, POLICY)
    assert sizes(made.markdown) <= bytes_max
    lines = [line for line in made.markdown.split("\n")[1:] if line.startswith("- ")]
    assert sorted(lines) == sorted(map(line_of, made.used))
    assert set(made.used) <= {one for one in claims if one.support in ("supported", "unchecked")}
    assert summarise(angle, claims, bytes_max, SHORT, POLICY) == made
    whole = summarise(angle, claims, 1 << 30, SHORT, POLICY)
    assert len(made.used) <= len(whole.used)
    if sizes(whole.markdown) <= bytes_max:
        assert made == whole


# -- shares -------------------------------------------------------------------------------------------


@for_each(
    ("demands", "each_max", "total_max", "shares"),
    [
        ([], 10, 10, []),
        ([5, 5], 10, 10, [5, 5]),
        ([9, 9], 10, 10, [5, 5]),
        ([9, 9, 9], 10, 10, [4, 3, 3]),
        ([1, 9, 9], 10, 10, [1, 5, 4]),
        ([9, 1, 9], 10, 11, [5, 1, 5]),
        ([99, 99], 10, 60, [10, 10]),
        ([99, 2, 99], 10, 15, [7, 2, 6]),
        ([3, 0, 3], 10, 0, [0, 0, 0]),
    ],
)
def test_shares(demands: list[int], each_max: int, total_max: int, shares: list[int]) -> None:
    assert allot(demands, each_max, total_max) == shares


@given(st.lists(st.integers(0, 200), max_size=14), st.integers(0, 150), st.integers(0, 900))
def test_no_byte_is_left_that_somebody_could_use(demands: list[int], each_max: int, total_max: int) -> None:
    shares = allot(demands, each_max, total_max)
    wanted = [min(demand, each_max) for demand in demands]
    assert all(share <= want for share, want in zip(shares, wanted, strict=True))
    assert sum(shares) == min(total_max, sum(wanted))
    short_of = [share for share, want in zip(shares, wanted, strict=True) if share < want]
    assert all(share <= min(short_of) + 1 for share in shares if short_of)  # nobody has more than one who wants more
    assert short_of == sorted(short_of, reverse=True)  # odd bytes go to the first


# -- the pack -----------------------------------------------------------------------------------------


def packed(
    *entries: PackEntry, limits: ResearchLimits | None = None, policy: ResearchPolicy = POLICY
) -> tuple[Any, dict[str, str]]:
    pack, summaries = build_pack(
        "r1", "2026-02-13T12:40:00Z", limits or ResearchLimits(), entries, CITATIONS, QUESTION, policy, len
    )
    return pack.to_wire(), summaries


@pytest.mark.req("RP-04")
def test_a_pack_names_its_summaries_and_its_sources() -> None:
    lines = [*LINES, claim("It costs 40 % more.", 500, support="refuted", cited=(cid(3),), cids=())]
    lines[2] = lines[2].model_copy(update={"evidence_id": "e7", "quote": "hardly freezes"})
    pack, summaries = packed(PackEntry(perspective(), "wave-1/p1.md", lines))
    assert summaries == {"summaries/p1.summary.md": WHOLE}
    (entry,) = pack["summaries"]
    assert entry["source_artifact"] == "wave-1/p1.md"
    assert entry["summary_md"] == "summaries/p1.summary.md"
    assert {one["claim"] for one in entry["key_claims"]} == {one.claim for one in LINES}
    assert entry["key_claims"][0] == {
        "claim": LINES[0].claim,
        "citation_cids": [cid(1)],
        "confidence": 80,
        "support": "supported",
    }
    (soil,) = [one for one in entry["key_claims"] if one["claim"] == LINES[2].claim]
    assert (soil["evidence_id"], soil["quote"]) == ("e7", "hardly freezes")
    assert entry["flagged"] == [{"claim": "It costs 40 % more.", "reason": "said so", "cited": [cid(3)]}]
    assert (entry["flagged_total"], entry["left_out"], entry["duplicates"]) == (1, 0, 0)
    assert pack["question"] == QUESTION
    assert pack["sources"] == [
        {"cid": cid(n), "short": cid(n)[:12], "url": f"https://example.org/{n}", "status": "valid"} for n in (1, 2)
    ]


@pytest.mark.req("RP-05")
def test_limits_are_all_written_out_and_tokens_are_those_of_what_is_read() -> None:
    pack, summaries = packed(PackEntry(perspective(), "wave-1/p1.md", LINES))
    assert pack["limits"] == ResearchLimits().model_dump(mode="json")
    assert pack["limits"]["max_summary_kb"] == 5
    read = canonical_text({**pack, "total_estimated_tokens": 0})
    assert pack["total_estimated_tokens"] == len(read) + sum(map(len, summaries.values()))


def test_key_claims_are_the_best_of_the_summary() -> None:
    pack, _ = packed(PackEntry(perspective(), "w", LINES), limits=ResearchLimits(max_key_claims=2))
    best = summarise(perspective(), LINES, 5120, SHORT, POLICY).used
    assert [one["claim"] for one in pack["summaries"][0]["key_claims"]] == [one.claim for one in best[:2]]


def test_what_is_too_long_for_a_key_claim_is_none() -> None:
    policy = ResearchPolicy(claim_chars_max=58, snippet_chars_max=5)
    lines = [LINES[0], LINES[2].model_copy(update={"quote": "longer than that"})]
    pack, summaries = packed(PackEntry(perspective(), "w", lines), policy=policy)
    (only_one,) = pack["summaries"][0]["key_claims"]
    assert only_one["claim"] == LINES[2].claim
    assert "quote" not in only_one
    assert LINES[0].claim in summaries["summaries/p1.summary.md"]


def test_a_claim_that_two_perspectives_make_stands_where_it_is_borne_best() -> None:
    weak, strong = claim("Heat pumps work in the cold.", 0, confidence=50), claim("Heat pumps work in the cold!", 0)
    other = claim("Heat pumps do not work in the cold.", 50, confidence=40)
    pack, summaries = packed(
        PackEntry(perspective("p1"), "w", [weak, other]), PackEntry(perspective("p2"), "w", [strong])
    )
    assert weak.claim not in summaries["summaries/p1.summary.md"]
    assert other.claim in summaries["summaries/p1.summary.md"]
    assert strong.claim in summaries["summaries/p2.summary.md"]
    assert [entry["duplicates"] for entry in pack["summaries"]] == [1, 0]


def test_a_perspective_that_only_repeats_says_so() -> None:
    _, summaries = packed(PackEntry(perspective("p1"), "w", LINES), PackEntry(perspective("p2"), "w", LINES))
    assert summaries["summaries/p1.summary.md"] == WHOLE
    assert (
        summaries["summaries/p2.summary.md"]
        == "# Field performance\n\nOther perspectives report what this one found.\n"
    )


def test_a_perspective_with_nothing_borne_out_has_a_summary_and_its_flags() -> None:
    policy = ResearchPolicy(flagged_max=3, claim_chars_max=40)
    lines = [
        claim("Nobody says so.", 0, support="uncited"),
        claim("It rose by 5 %.", 100, support="uncited"),
        claim("It fell by 5 %.", 200, support="not_supported", cited=(cid(1),)),
        claim("It fell by 6 %, " * 3, 300, support="refuted", cited=(cid(1),)),
        claim("It fell by 7 %.", 400, support="refuted", cited=(cid(1),)),
        claim("It fell by 8 %.", 500, support="not_supported", cited=(cid(1),)),
    ]
    pack, summaries = packed(PackEntry(perspective(), "w", lines), policy=policy)
    (entry,) = pack["summaries"]
    assert [one["claim"] for one in entry["flagged"]] == ["It fell by 7 %.", "It fell by 5 %.", "It fell by 8 %."]
    assert entry["flagged_total"] == 5
    assert entry["key_claims"] == []
    assert pack["sources"] == []
    assert list(summaries) == ["summaries/p1.summary.md"]


def test_the_total_is_shared_and_what_one_does_not_need_goes_to_the_others() -> None:
    many = [
        claim(f"Unit {at} of the field trial kept working through winter number {at}.", at * 100) for at in range(40)
    ]
    few = [claim("Sales rose.", 0)]
    limits = ResearchLimits(max_summary_kb=2, max_total_summary_kb=2)
    _, summaries = packed(
        PackEntry(perspective("p1"), "w", many), PackEntry(perspective("p2"), "w", few), limits=limits
    )
    first, second = map(sizes, summaries.values())
    assert first + second <= 2048
    assert second < 100
    assert first > 1800


@pytest.mark.soak
@given(st.lists(DRAWN, min_size=1, max_size=4), st.integers(1, 6), st.integers(1, 6))
def test_any_pack_is_within_its_limits(drawn: list[list[Any]], eighths: int, total: int) -> None:
    limits = ResearchLimits(max_summary_kb=eighths / 8, max_total_summary_kb=total / 2)
    entries = [PackEntry(perspective(f"p{at}"), "w", claims_of(each)) for at, each in enumerate(drawn)]
    pack, summaries = packed(*entries, limits=limits)
    assert all(sizes(text) <= 128 * eighths for text in summaries.values())
    assert sum(map(sizes, summaries.values())) <= 512 * total
    cited = {each for entry in pack["summaries"] for one in entry["key_claims"] for each in one["citation_cids"]}
    assert cited <= {source["cid"] for source in pack["sources"]}
    for entry in pack["summaries"]:
        assert all(f"- {one['claim']} [" in summaries[entry["summary_md"]] for one in entry["key_claims"])
    assert packed(*entries, limits=limits) == (pack, summaries)
    assert json.loads(canonical_text(pack)) == pack
