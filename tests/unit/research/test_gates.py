"""Gates A to E, each exactly at its threshold."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.contracts.research import Perspective, SummaryPack
from muniment.core.policy import ResearchLimits, ResearchPolicy
from muniment.errors import InvalidRecord, Issue
from muniment.research.gates import gate_a, gate_b, gate_c, gate_d, gate_e, pending_gates
from muniment.research.records import Citation, CitationStatus, DraftCheck, DraftFinding, GateResult, WaveResult
from products import for_each

NOW = "2026-02-13T12:40:00Z"
POLICY = ResearchPolicy()


def perspective(number: int, track: str = "standard") -> Perspective:
    contract = {"max_words": 900, "max_sources": 12, "tool_budget": {}, "must_include_sections": ["Findings"]}
    return Perspective.from_wire(
        {
            "id": f"p{number}",
            "title": f"Angle {number}",
            "track": track,
            "agent_type": "ClaudeResearcher",
            "prompt_contract": contract,
        }
    )


def perspectives(count: int) -> list[Perspective]:
    return [perspective(number) for number in range(1, count + 1)]


def passes(result: GateResult) -> bool:
    assert (result.status == "pass") is (not result.reasons)
    assert result.checked_at == NOW
    return result.status == "pass"


def test_all_gates_are_pending_at_first() -> None:
    assert [(gate.gate, gate.status) for gate in pending_gates()] == [(gate, "not_run") for gate in "ABCDE"]


# -- A ------------------------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
def test_a_plan_without_issues_passes() -> None:
    plan = [perspective(1), perspective(2, "independent"), perspective(3, "contrarian"), perspective(4)]
    result = gate_a(plan, [], NOW)
    assert passes(result)
    assert result.metrics == {
        "perspectives": 4,
        "agent_types": 1,
        "issues": 0,
        "standard": 2,
        "independent": 1,
        "contrarian": 1,
    }


def test_every_issue_of_a_plan_is_a_reason() -> None:
    issues = [Issue("$.perspectives[0].agent_type", "no such agent"), Issue("$.perspectives[1].id", "stands twice")]
    result = gate_a(perspectives(2), issues, NOW)
    assert not passes(result)
    assert result.reasons == (
        "no such agent (at $.perspectives[0].agent_type)",
        "stands twice (at $.perspectives[1].id)",
    )


def test_an_empty_plan_fails() -> None:
    assert not passes(gate_a([], [], NOW))


# -- B ------------------------------------------------------------------------------------------------


def wave_result(number: int, *, accepted: bool = True) -> WaveResult:
    return WaveResult(
        perspective_id=f"p{number}",
        wave=1,
        attempt=1,
        accepted=accepted,
        breaches=(),
        words=100,
        sources=2,
        digest="cd" * 32,
        evidence_id=f"e{number}",
    )


def waves(accepted: int, given_up: int, **more: Any) -> GateResult:
    total = accepted + given_up
    standings: dict[str, Any] = {f"p{n}": "accepted" if n <= accepted else "given_up" for n in range(1, total + 1)}
    reasons = {f"p{n}": "nobody could read it" for n in range(accepted + 1, total + 1)}
    return gate_b(
        perspectives(total),
        standings | more.get("standings", {}),
        more.get("results", [wave_result(n) for n in range(1, accepted + 1)]),
        reasons | more.get("why", {}),
        POLICY,
        NOW,
    )


@pytest.mark.req("RP-07")
@pytest.mark.parametrize(
    ("accepted", "given_up", "ok"),
    [(1, 0, True), (3, 3, True), (2, 3, False), (1, 1, True), (0, 1, False), (0, 0, False), (6, 0, True), (3, 2, True)],
)
def test_half_of_the_perspectives_must_be_accepted(accepted: int, given_up: int, ok: bool) -> None:
    result = waves(accepted, given_up)
    assert passes(result) is ok
    assert result.metrics["accepted"] == accepted
    assert result.metrics["given_up"] == given_up


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"standings": {"p6": "waiting"}}, "no output of p6"),
        ({"standings": {"p6": "rejected"}}, "the output of p6 breaks its contract"),
        ({"why": {"p6": "  "}}, "p6 was given up without a reason"),
        ({"results": [wave_result(n, accepted=n != 2) for n in range(1, 6)]}, "p2 passes for accepted"),
    ],
)
def test_what_keeps_the_waves_open(more: dict[str, Any], said: str) -> None:
    result = waves(5, 1, **more)
    assert not passes(result)
    (reason,) = result.reasons
    assert said in reason


def test_a_perspective_nobody_spoke_of_is_waited_for() -> None:
    result = gate_b(perspectives(1), {}, [], {}, POLICY, NOW)
    assert result.metrics["waiting"] == 1
    assert not passes(result)


# -- C ------------------------------------------------------------------------------------------------


def cited(**counts: int) -> list[Citation]:
    urls = [
        (status, f"https://{status}.example/{number}") for status, count in counts.items() for number in range(count)
    ]
    return [
        Citation.from_wire(
            {"cid": f"cid_{at:064x}", "url": url, "url_original": url, "status": status, "found_by": ["p1"]}
        )
        for at, (status, url) in enumerate(urls)
    ]


def gate_of(
    citations: list[Citation], uncategorised: tuple[str, ...] = (), policy: ResearchPolicy = POLICY
) -> GateResult:
    return gate_c(citations, uncategorised, policy, NOW)


@pytest.mark.req("RP-07")
@for_each(
    ("counts", "ok"),
    [
        ({"valid": 9, "unchecked": 1}, True),
        ({"valid": 8, "unchecked": 2}, False),
        ({"valid": 18, "blocked": 2}, True),
        ({"valid": 17, "blocked": 3}, False),
        ({"valid": 9, "invalid": 1}, True),
        ({"valid": 10, "paywalled": 8, "invalid": 2}, True),
        ({"valid": 17, "invalid": 3}, False),
        ({"paywalled": 9, "blocked": 1}, True),
        ({"valid": 27, "invalid": 1, "blocked": 1, "unchecked": 1}, True),
        ({"valid": 63, "invalid": 7}, True),
        ({"valid": 62, "invalid": 7, "blocked": 1}, False),
        ({"valid": 1}, True),
        ({"unchecked": 1}, False),
        ({}, False),
    ],
)
def test_nine_in_ten_citations_must_hold(counts: dict[str, int], ok: bool) -> None:
    result = gate_of(cited(**counts))
    assert passes(result) is ok
    assert result.metrics["citations"] == sum(counts.values())
    assert {status: result.metrics[status] for status in counts} == counts


@pytest.mark.parametrize(("invalid", "ok"), [(3, True), (4, False)])
def test_the_invalid_are_bounded_on_their_own(invalid: int, ok: bool) -> None:
    policy = ResearchPolicy(validated_share_min=0.5)
    assert passes(gate_of(cited(valid=30 - invalid, invalid=invalid), policy=policy)) is ok


def test_a_share_is_the_number_that_is_written() -> None:
    """0.07 × 100 is 7.000000000000001 in floats."""
    policy = ResearchPolicy(validated_share_min=0, invalid_share_max=0.07)
    assert passes(gate_of(cited(valid=93, invalid=7), policy=policy))
    assert not passes(gate_of(cited(valid=92, invalid=8), policy=policy))
    policy = ResearchPolicy(validated_share_min=0.07, invalid_share_max=1)
    assert passes(gate_of(cited(valid=7, unchecked=93), policy=policy))


def test_an_address_without_a_line_fails() -> None:
    result = gate_of(cited(valid=10), ("https://lost.example/",))
    assert not passes(result)
    assert result.metrics["uncategorised"] == 1
    assert "https://lost.example/" in result.reasons[0]


def test_a_reason_says_how_many_more_and_names_a_few() -> None:
    (reason,) = gate_of(cited(valid=10, unchecked=10)).reasons
    assert "10 of 20" in reason
    assert "8 more are needed" in reason
    assert reason.count("https://") == 5
    assert "and 5 more" in reason


# -- D ------------------------------------------------------------------------------------------------

LIMITS = ResearchLimits(max_summary_kb=1, max_total_summary_kb=2, max_key_claims=2)
CID = f"cid_{0:064x}"


def key_claim(text: str = "X uses Y for Z.", *cids: str) -> dict[str, Any]:
    return {"claim": text, "citation_cids": list(cids or (CID,)), "confidence": 85}


def entry(number: int, *claims: dict[str, Any]) -> dict[str, Any]:
    return {
        "perspective_id": f"p{number}",
        "source_artifact": f"wave-1/p{number}.md",
        "summary_md": f"summaries/p{number}.summary.md",
        "key_claims": list(claims),
    }


def pack_of(*entries: dict[str, Any], limits: dict[str, Any] | None = None) -> SummaryPack:
    return SummaryPack.from_wire(
        {
            "schema_version": "summary_pack.v1",
            "run_id": "r1",
            "generated_at": NOW,
            "limits": LIMITS.model_dump(mode="json") if limits is None else limits,
            "summaries": list(entries),
            "total_estimated_tokens": 10,
        }
    )


def summary(size: int, text: str = "X uses Y for Z.") -> bytes:
    return text.encode().ljust(size, b".")


def packed(pack: SummaryPack, *sizes: int, planned: int | None = None, **more: Any) -> GateResult:
    files = {f"summaries/p{at}.summary.md": summary(size) for at, size in enumerate(sizes, start=1)}
    return gate_d(
        pack,
        more.get("files", files),
        more.get("limits", LIMITS),
        perspectives(len(sizes) if planned is None else planned),
        more.get("citations", cited(valid=1)),
        POLICY,
        NOW,
        given_up=more.get("given_up", ()),
    )


@pytest.mark.req("RP-05")
@for_each(
    ("sizes", "ok"),
    [((1024,), True), ((1025,), False), ((1024, 1024), True), ((700, 700, 648), True), ((700, 700, 649), False)],
)
def test_bytes_on_disk_are_what_counts(sizes: tuple[int, ...], ok: bool) -> None:
    result = packed(pack_of(*(entry(at, key_claim()) for at in range(1, len(sizes) + 1))), *sizes)
    assert passes(result) is ok
    assert result.metrics["bytes_total"] == sum(sizes)
    assert result.metrics["bytes_largest"] == max(sizes)


def test_a_kilobyte_is_bytes_not_characters() -> None:
    pack = pack_of(entry(1, key_claim("数")))
    files = {"summaries/p1.summary.md": ("数" * 342).encode()}
    assert len(files["summaries/p1.summary.md"]) == 1026
    assert not passes(packed(pack, 0, files=files))


@pytest.mark.req("RP-05")
def test_the_packs_limits_must_be_the_manifests() -> None:
    plain = LIMITS.model_dump(mode="json")
    assert passes(packed(pack_of(entry(1, key_claim()), limits=plain), 100))
    for other in ({**plain, "max_summary_kb": 5}, {**plain, "more": 1}, {"max_summary_kb": 1}):
        result = packed(pack_of(entry(1), limits=other), 100)
        assert [reason for reason in result.reasons if "other limits" in reason]


@for_each(
    ("summarised", "planned", "ok"), [(9, 10, True), (8, 9, False), (18, 20, True), (17, 20, False), (1, 1, True)]
)
def test_nine_in_ten_perspectives_must_be_summarised(summarised: int, planned: int, ok: bool) -> None:
    pack = pack_of(*(entry(at, key_claim()) for at in range(1, summarised + 1)))
    result = packed(pack, *[50] * summarised, planned=planned)
    assert passes(result) is ok
    assert result.metrics["summarised"] == summarised


def test_what_was_given_up_is_not_waited_for() -> None:
    pack = pack_of(entry(1, key_claim()), entry(2))
    assert not passes(packed(pack, 50, 50, planned=3))
    assert passes(packed(pack, 50, 50, planned=3, given_up={"p3": "no agent"}))


def test_a_pack_of_nothing_fails() -> None:
    assert not passes(packed(pack_of()))
    assert not passes(packed(pack_of(entry(1), entry(2)), 50, 50))


@for_each(
    ("entries", "said"),
    [
        ([entry(1), entry(2)], "there is no such file"),
        ([entry(1), entry(1)], "more than once"),
        ([{**entry(1), "perspective_id": "p9"}], "which the plan does not have"),
        ([entry(1, *[key_claim()] * 3)], "more than 2 key claims"),
        ([entry(1, key_claim("X uses Y for Z.", f"cid_{9:064x}"))], "citations.jsonl does not have"),
        ([entry(1, {**key_claim(), "citation_cids": []})], "without a citation"),
        ([entry(1, key_claim("Something else."))], "their summaries do not have"),
    ],
)
def test_what_a_pack_may_not_say(entries: list[dict[str, Any]], said: str) -> None:
    result = packed(pack_of(*entries), 100)
    assert not passes(result)
    assert [reason for reason in result.reasons if said in reason]


@pytest.mark.req("RP-03")
@for_each(
    ("status", "ok"),
    [("valid", True), ("paywalled", True), ("blocked", False), ("invalid", False), ("unchecked", False)],
)
def test_only_what_may_be_cited_is_cited(status: CitationStatus, ok: bool) -> None:
    assert passes(packed(pack_of(entry(1, key_claim())), 100, citations=cited(**{status: 1}))) is ok


def test_two_key_claims_are_within_two() -> None:
    assert passes(packed(pack_of(entry(1, key_claim(), key_claim())), 100))


@pytest.mark.req("RP-04")
def test_no_pack_holds_a_confidence_over_a_hundred() -> None:
    with pytest.raises(InvalidRecord):
        pack_of(entry(1, {**key_claim(), "confidence": 101}))


# -- E ------------------------------------------------------------------------------------------------


def test_a_clean_draft_passes() -> None:
    check = DraftCheck(passed=True, findings=(), metrics={"figures": 3}, digest="ef" * 32, review=2)
    result = gate_e(check, NOW)
    assert passes(result)
    assert result.metrics["figures"] == 3
    assert result.metrics["review"] == 2
    assert result.metrics["uncited_figure"] == 0


def test_a_draft_with_findings_fails_by_kind() -> None:
    findings = [DraftFinding(problem="uncited_figure", message="a figure")] * 2
    findings.append(DraftFinding(problem="missing_section", message="no sources"))
    check = DraftCheck(passed=False, findings=tuple(findings), metrics={}, digest="ef" * 32, review=1)
    result = gate_e(check, NOW)
    assert not passes(result)
    assert [reason.split(":")[0] for reason in result.reasons] == ["2 × uncited_figure", "1 × missing_section"]
    assert result.metrics["findings"] == 3
