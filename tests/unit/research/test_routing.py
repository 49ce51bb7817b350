"""The router: tracks dealt exactly, perspectives that say what is asked, and one check for ours and for a model's."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.research import Perspective, Perspectives
from muniment.core.canonical import canonical_bytes
from muniment.core.policy import ResearchLimits, ResearchPolicy, TrackShares
from muniment.errors import InvalidInput, InvalidRecord
from muniment.research.plan import check_plan, deal_tracks, plan, plan_second_wave, read_plan
from muniment.research.records import Gap, Mode
from products import for_each

POLICY = ResearchPolicy()
AGENTS = POLICY.agent_types
INSURERS = (
    "收集整理目前国际综合实力前十的保险公司的相关资料，横向比较各公司的融资情况、信誉度、过往五年的增长幅度、"
    "实际分红、未来在中国发展潜力等维度，并为我评估出最有可能在未来资产排名靠前的2-3家公司"
)
INVESTORS = "What are the investment philosophies of Duan Yongping, Warren Buffett, and Charlie Munger?"


def planned(
    question: str, mode: Mode = "standard", most: int = 6, agents: tuple[str, ...] = AGENTS
) -> tuple[Perspective, ...]:
    limits = ResearchLimits(max_wave1_agents=most)
    return plan(question, POLICY, limits, agents, mode)


def proposal(perspectives: tuple[Perspective, ...]) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(each.to_wire())) for each in perspectives]


# -- tracks -------------------------------------------------------------------------------------------


@pytest.mark.req("RP-01")
@for_each(
    ("n", "counts"),
    [(0, (0, 0, 0)), (1, (1, 0, 0)), (2, (1, 1, 0)), (3, (1, 1, 1)), (4, (2, 1, 1)), (5, (3, 1, 1)), (6, (3, 2, 1)),
     (7, (3, 2, 2)), (8, (4, 2, 2))],
)  # fmt: skip
def test_half_a_quarter_and_a_quarter(n: int, counts: tuple[int, int, int]) -> None:
    dealt = Counter(deal_tracks(n, TrackShares()))
    assert (dealt["standard"], dealt["independent"], dealt["contrarian"]) == counts


WEIGHT = st.one_of(st.integers(min_value=0, max_value=100), st.floats(min_value=0, max_value=100, allow_nan=False))


@given(st.integers(min_value=0, max_value=60), WEIGHT, WEIGHT, WEIGHT)
def test_tracks_are_dealt_by_largest_remainder(n: int, one: float, two: float, three: float) -> None:
    if not one + two + three > 0:
        return
    shares = TrackShares(standard=one, independent=two, contrarian=three)
    dealt = deal_tracks(n, shares)
    names = ("standard", "independent", "contrarian")
    weights = [Fraction(getattr(shares, name)) for name in names]
    exact = [n * weight / sum(weights) for weight in weights]
    counts = [dealt.count(name) for name in names]
    assert len(dealt) == n
    assert list(dealt) == sorted(dealt, key=names.index)
    assert all(int(quota) <= count <= int(quota) + 1 for quota, count in zip(exact, counts, strict=True))
    for place, quota in enumerate(exact):
        for other, its in enumerate(exact):
            if counts[place] > int(quota) and counts[other] == int(its):
                assert (quota - int(quota), other) >= (its - int(its), place) or quota - int(quota) > its - int(its)


# -- plans --------------------------------------------------------------------------------------------


@pytest.mark.req("RP-01")
@pytest.mark.parametrize("question", [INSURERS, INVESTORS])
def test_each_track_has_angles_of_its_own_on_the_whole_question(question: str) -> None:
    found = planned(question, mode="deep")
    assert [(each.id, each.track) for each in found] == [
        ("p1", "standard"), ("p2", "standard"), ("p3", "standard"),
        ("p4", "independent"), ("p5", "independent"), ("p6", "contrarian"),
    ]  # fmt: skip
    labels = [each.title.partition(": ")[0] for each in found]
    assert labels == [
        "Direct answer",
        "Figures and trends",
        "Causes and mechanisms",
        "Primary data",
        "Original documents",
        "Evidence against the expected answer",
    ]
    assert all(question[:40] in each.title for each in found)
    assert all((each.model_extra or {})["focus"] for each in found)
    assert all((each.model_extra or {})["wave"] == 1 for each in found)


def test_angles_that_are_used_again_are_numbered() -> None:
    titles = [each.title for each in planned(INVESTORS, mode="deep", most=40)]
    assert len(set(titles)) == 40
    assert "Direct answer (2): " in "".join(titles)


@pytest.mark.req("RP-01")
def test_the_contract_is_the_policys() -> None:
    for each in planned(INVESTORS):
        assert each.prompt_contract.to_wire() == {
            "max_words": 900,
            "max_sources": 12,
            "tool_budget": {"search_calls": 4, "fetch_calls": 6},
            "must_include_sections": ["Findings", "Sources", "Gaps"],
        }
        assert each.expected_platforms


def test_each_further_sentence_gets_a_perspective_up_to_the_limit() -> None:
    assert len(planned("How do birds navigate?")) == POLICY.perspectives_min
    assert len(planned("How do birds navigate? Which get lost?")) == POLICY.perspectives_min + 1
    assert len(planned("How? " * 40)) == 6
    assert len(planned("How do birds navigate?", mode="deep")) == 6
    assert len(planned(INSURERS, mode="quick")) == 3
    assert len(planned(INSURERS, mode="quick", most=1)) == 1
    assert len(planned(INSURERS, most=2)) == 2
    assert len(planned(INSURERS, mode="deep", most=40)) == 40


def test_tracks_do_not_share_agents_where_there_are_enough() -> None:
    for agents in (AGENTS, AGENTS[:3], ("a", "b", "c", "d", "e", "f", "g")):
        of_track: dict[str, set[str]] = {}
        for each in planned(INSURERS, agents=agents):
            of_track.setdefault(each.track, set()).add(each.agent_type)
        used = [agent for names in of_track.values() for agent in names]
        assert len(used) == len(set(used))
    two = planned(INSURERS, agents=("one", "two"))
    assert {each.agent_type for each in two if each.track == "standard"} == {"one"}
    assert {each.agent_type for each in two if each.track != "standard"} == {"two"}
    assert {each.agent_type for each in planned(INSURERS, agents=("only",))} == {"only"}


def test_no_agents_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(INSURERS, agents=())
    assert caught.value.hint


relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(20))


@pytest.mark.req("RP-01")
@relaxed
@given(st.text(min_size=1, max_size=200), st.sampled_from(["quick", "standard", "deep"]), st.integers(1, 30))
def test_whatever_is_asked_the_plan_holds_and_is_the_same(question: str, mode: Mode, most: int) -> None:
    try:
        found = planned(question, mode, most)
    except InvalidInput:
        return
    limits = ResearchLimits(max_wave1_agents=most)
    assert check_plan(found, POLICY, limits, AGENTS, 1) == []
    again = planned(question, mode, most)
    assert [each.to_bytes() for each in found] == [each.to_bytes() for each in again]
    assert read_plan(proposal(found), POLICY, limits, AGENTS) == found


def test_the_document_of_a_plan_is_valid() -> None:
    document = Perspectives.from_wire(
        {
            "schema_version": "perspectives.v1",
            "run_id": "dr_1",
            "created_at": "2026-02-13T12:05:00Z",
            "perspectives": proposal(planned(INSURERS)),
        }
    )
    assert read_plan(document.to_wire(), POLICY, POLICY.limits, AGENTS) == document.perspectives


# -- checks -------------------------------------------------------------------------------------------


def issues_of(change: Any, wave: Any = 1, **more: Any) -> list[tuple[str, str]]:
    plain = proposal(planned(INVESTORS, most=4, mode="deep"))
    change(plain)
    with pytest.raises(InvalidRecord) as caught:
        read_plan({"perspectives": plain}, POLICY, POLICY.limits, AGENTS, wave, **more)
    return [(issue.path, issue.code) for issue in caught.value.issues]


def put(path: str, value: Any) -> Any:
    *keys, last = path.split(".")

    def change(plain: Any) -> None:
        here = plain[0]
        for key in keys:
            here = here[key]
        here[last] = value

    return change


FIRST = "$.perspectives[0]"


@pytest.mark.req("RP-01")
@for_each(
    ("change", "issue"),
    [
        (put("id", "p2"), ("$.perspectives[1].id", "duplicate_id")),
        (put("id", "one"), (f"{FIRST}.id", "id")),
        (put("id", "p0"), (f"{FIRST}.id", "id")),
        (put("title", "  "), (f"{FIRST}.title", "title")),
        (put("title", "x" * 201), (f"{FIRST}.title", "title")),
        (put("title", "two\nlines"), (f"{FIRST}.title", "title")),
        (put("track", "contrarian"), ("$.perspectives", "tracks")),
        (put("agent_type", "ClaudeResearch"), (f"{FIRST}.agent_type", "agent_type")),
        (put("prompt_contract.max_words", 0), (f"{FIRST}.prompt_contract.max_words", "number")),
        (put("prompt_contract.max_words", 10**9), (f"{FIRST}.prompt_contract.max_words", "number")),
        (put("prompt_contract.max_words", 2.5), (f"{FIRST}.prompt_contract.max_words", "number")),
        (put("prompt_contract.max_sources", -1), (f"{FIRST}.prompt_contract.max_sources", "number")),
        (put("prompt_contract.tool_budget", {"search_calls": -1}),
         (f"{FIRST}.prompt_contract.tool_budget.search_calls", "number")),
        (put("prompt_contract.tool_budget", {"search_calls": "4"}),
         (f"{FIRST}.prompt_contract.tool_budget.search_calls", "number")),
        (put("prompt_contract.tool_budget", {"search_calls": True}),
         (f"{FIRST}.prompt_contract.tool_budget.search_calls", "number")),
        (put("prompt_contract.must_include_sections", ["Findings", "Gaps"]),
         (f"{FIRST}.prompt_contract.must_include_sections", "section")),
        (put("expected_platforms", [" "]), (f"{FIRST}.expected_platforms[0]", "platform")),
        (put("track", "sideways"), (f"{FIRST}.track", "literal_error")),
        (lambda plain: plain[1].update(title=plain[0]["title"].upper()),
         ("$.perspectives[1].title", "duplicate_title")),
        (lambda plain: plain.clear(), ("$.perspectives", "count")),
        (lambda plain: plain.extend(plain * 2), ("$.perspectives", "count")),
        (lambda plain: plain[0].pop("prompt_contract"), (f"{FIRST}.prompt_contract", "missing")),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_proposal_is_named_with_its_path(change: Any, issue: tuple[str, str]) -> None:
    assert issue in issues_of(change)


def test_all_issues_are_named_at_once() -> None:
    def spoil(plain: Any) -> None:
        plain[0]["title"] = ""
        plain[1]["agent_type"] = "nobody"
        plain[2]["prompt_contract"]["max_sources"] = 0

    assert {path for path, _ in issues_of(spoil)} == {
        "$.perspectives[0].title",
        "$.perspectives[1].agent_type",
        "$.perspectives[2].prompt_contract.max_sources",
    }


def test_an_agent_that_is_nearly_right_is_suggested() -> None:
    plain = proposal(planned(INVESTORS))
    plain[0]["agent_type"] = "ClaudeReseacher"
    with pytest.raises(InvalidRecord) as caught:
        read_plan(plain, POLICY, POLICY.limits, AGENTS)
    assert caught.value.issues[0].path == "$[0].agent_type"
    assert "did you mean 'ClaudeResearcher'?" in caught.value.issues[0].message


@for_each("plain", [None, "[]", 3, {}, {"plan": []}, {"perspectives": "p1"}, {"perspectives": {}}, b"[]"])
def test_nothing_but_a_list_or_an_object_that_holds_one_is_read(plain: Any) -> None:
    with pytest.raises(InvalidRecord) as caught:
        read_plan(plain, POLICY, POLICY.limits, AGENTS)
    assert caught.value.issues


def test_ids_of_an_earlier_wave_are_taken_and_the_second_has_its_own_limit() -> None:
    assert ("$.perspectives[0].id", "duplicate_id") in issues_of(lambda plain: None, 2, taken=["p1"])
    limits = ResearchLimits(max_wave2_agents=2)
    found = check_plan(planned(INVESTORS), POLICY, limits, AGENTS, 2)
    assert [issue.code for issue in found] == ["count"]
    assert "max_wave2_agents" in found[0].message


# -- the second wave ----------------------------------------------------------------------------------


def gap(who: str, priority: Any, text: str) -> Gap:
    return Gap(perspective_id=who, priority=priority, text=text, origin="said")


GAPS = (
    gap("p1", "P2", "Dividend policy of Allianz before 2015 was not found"),
    gap("p2", "P0", "No audited figures for Ping An in 2023 were found"),
    gap("p3", "P1", "Market share of foreign insurers in China since 2020 is unknown"),
    gap("p4", "P1", "No audited figures were found for Ping An, 2023"),
    gap("p5", "P3", "The colour of the logo"),
)


@pytest.mark.req("RP-01")
def test_the_second_wave_follows_gaps_by_weight_and_joins_those_that_say_the_same() -> None:
    first = planned(INVESTORS, mode="deep")
    second = plan_second_wave(GAPS, first, POLICY, POLICY.limits, AGENTS)
    assert [each.id for each in second] == ["p7", "p8", "p9"]
    assert "Ping An" in second[0].title
    assert "Market share" in second[1].title
    assert "Dividend policy" in second[2].title
    assert [each.track for each in second] == ["standard", "independent", "contrarian"]
    focus = str((second[0].model_extra or {})["focus"])
    assert "P0" in focus
    assert "p2, p4" in focus
    assert (second[0].model_extra or {})["wave"] == 2
    assert check_plan(second, POLICY, POLICY.limits, AGENTS, 2, taken=[each.id for each in first]) == []


def test_a_gap_goes_to_another_agent_than_the_one_that_left_it() -> None:
    first = planned(INVESTORS, mode="deep")
    gaps = [gap("p1", "P1", f"{name} figures are missing") for name in ("Solar", "Wind")]
    second = plan_second_wave(gaps, first, POLICY, POLICY.limits, AGENTS)
    assert first[0].agent_type not in {each.agent_type for each in second}


def test_the_second_wave_keeps_its_limit() -> None:
    gaps = [gap("p1", "P1", f"{word} is not known") for word in ("Alpha", "Beta", "Gamma", "Delta")]
    first = planned(INVESTORS)
    assert len(plan_second_wave(gaps, first, POLICY, ResearchLimits(max_wave2_agents=2), AGENTS)) == 2
    assert plan_second_wave(gaps, first, POLICY, ResearchLimits(max_wave2_agents=0), AGENTS) == ()
    assert plan_second_wave([], first, POLICY, POLICY.limits, AGENTS) == ()
    assert plan_second_wave(GAPS[4:], first, POLICY, POLICY.limits, AGENTS) == ()


TEXTS = st.text(min_size=1, max_size=80)
GAP = st.builds(gap, st.sampled_from(["p1", "p2", "p9"]), st.sampled_from(["P0", "P1", "P2", "P3"]), TEXTS)


@pytest.mark.soak
@relaxed
@given(st.lists(GAP, max_size=12))
def test_any_gaps_give_a_plan_that_holds(gaps: list[Gap]) -> None:
    first = planned(INVESTORS)
    second = plan_second_wave(gaps, first, POLICY, POLICY.limits, AGENTS)
    if second:
        assert check_plan(second, POLICY, POLICY.limits, AGENTS, 2, taken=[each.id for each in first]) == []
    again = plan_second_wave(gaps, first, POLICY, POLICY.limits, AGENTS)
    assert canonical_bytes(proposal(second)) == canonical_bytes(proposal(again))
