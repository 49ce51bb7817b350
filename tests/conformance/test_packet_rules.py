"""The binding runtime rules of a packet and a patterning plan (`--semantic`): MP-07, MP-09, MP-12, MP-13, RC-24."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muniment.contracts.schemas import validate
from muniment.contracts.semantics import check_semantics
from muniment.core.instants import parse_rfc3339
from products import for_each

NOW = "2026-05-01T12:00:00Z"
FACT = {"fact_id": "f1", "fact_key": "user.city", "value": "Berlin", "status": "active", "sources": ["e1"]}
INSIGHT = {
    "id": "i1",
    "type": "hypothesis",
    "statement": "may be vegetarian",
    "validation_state": "validated",
    "sources": ["e1"],
}
PACKET: dict[str, Any] = {
    "meta": {
        "schema_version": "v1",
        "scope": {"user_id": "ana", "agent_id": "a", "session_id": "s", "run_id": "r"},
        "generated_at": NOW,
        "purpose": "responder",
        "budget": {
            "max_tokens": 1024,
            "per_section": {
                "working_state": 1,
                "facts": 1,
                "procedures": 1,
                "short_term_summary": 1,
                "episodes": 1,
                "insights": 1,
            },
        },
    },
    "short_term": {"working_state": {"state_version": 0}, "rolling_summary": ""},
    "long_term": {"facts": [FACT], "procedures": [], "episodes": []},
    "insight": {
        "usage_policy": {"allow_in_responder": False},
        "hypotheses": [],
        "strategy_sketches": [],
        "patterns": [],
    },
    "citations": [{"id": "e1", "type": "message"}],
    "budget_report": {"max_tokens": 1024, "used_tokens_est": 0, "section_usage": {}, "degradations": []},
    "explain": {"selected": [], "omitted": [], "filters": {}, "conflicts": []},
}


def packet(purpose: str = "responder", **changes: Any) -> dict[str, Any]:
    made = copy.deepcopy(PACKET)
    made["meta"]["purpose"] = purpose
    for section, value in changes.items():
        made[section] = {**made[section], **value} if isinstance(value, dict) else value
    return made


def broken(document: dict[str, Any], kind: str = "MemoryPacket") -> list[tuple[str, str]]:
    assert validate(kind, document) == []
    return [(issue.code, issue.path) for issue in check_semantics(kind, document)]


def test_a_good_packet_has_no_issue() -> None:
    assert broken(PACKET) == []


@pytest.mark.req("MP-07")
@pytest.mark.parametrize("status", ["disputed", "deprecated"])
def test_only_active_facts(status: str) -> None:
    document = packet(long_term={"facts": [{**FACT, "status": status}]})
    assert broken(document) == [("MP-07", "$.long_term.facts[0].status")]


@pytest.mark.req("MP-07")
@for_each(
    ("validity", "wrong"),
    [
        ({}, None),
        ({"valid_to": None}, None),
        ({"valid_from": NOW, "valid_to": NOW}, None),  # until exactly now is still valid
        ({"valid_to": "2026-05-01T14:00:00+02:00"}, None),  # the same instant, a greater string
        ({"valid_to": "2026-05-01T13:59:59.999999999+02:00"}, "valid_to"),  # a greater string, an earlier instant
        ({"valid_to": "2026-05-01T11:00:00-02:00"}, None),  # a smaller string, a later instant
        ({"valid_to": "2026-05-01T11:59:59Z"}, "valid_to"),
        ({"valid_from": "2026-05-01T12:00:00.000000001Z"}, "valid_from"),  # not valid yet
        ({"valid_from": "2026-05-01t12:00:00z"}, None),
        ({"valid_to": "2027-05-01"}, "valid_to"),  # a date is not an instant
        ({"valid_to": "2027-05-01T12:00:00"}, "valid_to"),  # nor is a local time
        ({"valid_to": "forever"}, "valid_to"),
        ({"valid_from": "2026-02-30T12:00:00Z"}, "valid_from"),
    ],
)
def test_only_facts_that_are_valid_now(validity: dict[str, Any], wrong: str | None) -> None:
    document = packet(long_term={"facts": [{**FACT, "validity": validity}]})
    assert broken(document) == ([("MP-07", f"$.long_term.facts[0].validity.{wrong}")] if wrong else [])


@pytest.mark.req("MP-07")
def test_now_must_be_an_instant() -> None:
    document = packet(
        meta={"generated_at": "yesterday"}, long_term={"facts": [{**FACT, "validity": {"valid_to": NOW}}]}
    )
    assert broken(document) == [("MP-07", "$.meta.generated_at")]


@pytest.mark.req("MP-09")
def test_preferences_are_facts_item_by_item() -> None:
    other_key_order = dict(reversed(FACT.items()))
    assert broken(packet(long_term={"preferences": [other_key_order]})) == []
    for preference in (
        {**FACT, "value": "Paris"},
        {**FACT, "fact_id": "f2"},
        {**FACT, "notes": ""},
    ):
        assert broken(packet(long_term={"preferences": [preference]})) == [("MP-09", "$.long_term.preferences[0]")]
    one = packet(long_term={"facts": [{**FACT, "value": 1}], "preferences": [{**FACT, "value": True}]})
    assert broken(one) == [("MP-09", "$.long_term.preferences[0]")], "true is not 1"


def with_insight(purpose: str, item: dict[str, Any], *, allow: bool = False, where: str = "patterns") -> dict[str, Any]:
    return packet(purpose, insight={"usage_policy": {"allow_in_responder": allow}, where: [{**INSIGHT, **item}]})


@pytest.mark.req("MP-12")
@for_each("where", ["hypotheses", "strategy_sketches", "patterns"])
@for_each("allow", [True, False])
def test_a_responder_sees_no_insight_that_is_not_validated(where: str, allow: bool) -> None:
    for state in ("unvalidated", "testing", "rejected"):
        document = with_insight("responder", {"validation_state": state}, allow=allow, where=where)
        assert broken(document) == [("MP-12", f"$.insight.{where}[0].validation_state")]
    validated = with_insight("responder", {}, allow=allow, where=where)
    assert broken(validated) == ([] if allow else [("MP-12", f"$.insight.{where}[0]")])


@pytest.mark.req("MP-12")
@pytest.mark.parametrize("purpose", ["planner", "tool"])
def test_others_see_what_is_open_but_nothing_rejected(purpose: str) -> None:
    for state in ("unvalidated", "testing", "validated"):
        assert broken(with_insight(purpose, {"validation_state": state})) == []
    rejected = with_insight(purpose, {"validation_state": "rejected"})
    assert broken(rejected) == [("MP-12", "$.insight.patterns[0].validation_state")]


@pytest.mark.req("MP-12")
@for_each("purpose", ["planner", "tool", "responder"])
@for_each(
    ("expires_at", "holds"),
    [
        (None, True),  # read as run_end
        ("run_end", True),
        (NOW, True),
        ("2026-05-01T13:59:59+02:00", False),
        ("2026-05-01T11:00:00-02:00", True),
        ("soon", False),
        ("", False),
    ],
)
def test_an_expired_insight_shows_to_nobody(purpose: str, expires_at: str | None, holds: bool) -> None:
    document = with_insight(purpose, {"expires_at": expires_at}, allow=True)
    assert broken(document) == ([] if holds else [("MP-12", "$.insight.patterns[0].expires_at")])


EPISODE = {"episode_id": "p", "time_range": {"start": NOW}, "summary": "", "sources": ["e1", "lost"]}
PROCEDURE = {"procedure_id": "p", "task_type": "t", "content": {}, "sources": ["lost"]}
LOOSE = [
    ("short_term", "key_quotes", {"evidence_id": "lost", "quote": "q"}, "evidence_id"),
    ("short_term", "conversation_window", {"evidence_id": "lost", "role": "user", "content": "c"}, "evidence_id"),
    ("short_term", "open_loops", {"question": "?", "status": "open", "evidence_id": "lost"}, "evidence_id"),
    ("short_term", "last_tool_evidence", {"ref": "lost", "summary": "s"}, "ref"),
    ("long_term", "facts", {**FACT, "sources": ["lost"]}, "sources[0]"),
    ("long_term", "procedures", PROCEDURE, "sources[0]"),
    ("long_term", "episodes", EPISODE, "sources[1]"),
]


@pytest.mark.req("MP-13")
@for_each(("section", "name", "item", "key"), LOOSE)
def test_every_evidence_id_is_cited(section: str, name: str, item: dict[str, Any], key: str) -> None:
    document = packet(**{section: {name: [item]}})
    assert broken(document) == [("MP-13", f"$.{section}.{name}[0].{key}")]
    document["citations"].append({"id": "lost", "type": "tool_result"})
    assert broken(document) == []


@pytest.mark.req("MP-13")
def test_evidence_ids_of_working_state_insights_and_preferences_are_cited() -> None:
    state = {
        "state_version": 1,
        "decisions": [{"statement": "s"}, {"statement": "s", "evidence_id": "lost"}],
        "tool_evidence": [{"ref": "lost", "summary": "s"}],
    }
    assert broken(packet(short_term={"working_state": state})) == [
        ("MP-13", "$.short_term.working_state.decisions[1].evidence_id"),
        ("MP-13", "$.short_term.working_state.tool_evidence[0].ref"),
    ]
    for where in ("hypotheses", "strategy_sketches", "patterns"):
        document = with_insight("planner", {"sources": ["e1", "lost"]}, where=where)
        assert broken(document) == [("MP-13", f"$.insight.{where}[0].sources[1]")]
    sourced = {**FACT, "sources": ["lost"]}
    assert ("MP-13", "$.long_term.preferences[0].sources[0]") in broken(
        packet(long_term={"facts": [sourced], "preferences": [sourced]})
    )


@pytest.mark.req("MP-13")
def test_citations_stand_once() -> None:
    twice = [{"id": "e1", "type": "message"}, {"id": "e1", "type": "message", "ts": NOW}]
    assert broken(packet(citations=twice)) == [("MP-13", "$.citations[1].id")]


@pytest.mark.req("RC-24")
@pytest.mark.parametrize("weights", [0, 1, 2, 3])
def test_as_many_weights_as_probes(weights: int) -> None:
    plan = {
        "schema_version": "0.5.15",
        "patterning_id": "p",
        "generated_at": NOW,
        "base_dataset": "distill_v3",
        "probes": [{"probe_id": "a"}, {"probe_id": "b"}],
        "observables": [{"obs_id": "o"}],
        "chi_estimation": {"method": "finite_diff"},
        "solution": {"weights": [0.5] * weights, "clipped": True, "renormalized": True},
        "validation": {"rollback_on_regress": True},
        "applied": False,
    }
    assert broken(plan, "PatterningPlan") == ([] if weights == 2 else [("RC-24", "$.solution.weights")])


@for_each(
    ("earlier", "later"),
    [
        ("2026-05-01T12:00:00.25Z", "2026-05-01T12:00:00.5Z"),
        ("2026-05-01T12:00:00.099Z", "2026-05-01T12:00:00.1Z"),
        ("2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z"),
        ("2026-05-01T23:30:00+14:00", "2026-05-01T09:30:01Z"),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z"),
    ],
)
def test_instants_order(earlier: str, later: str) -> None:
    first, second = parse_rfc3339(earlier), parse_rfc3339(later)
    assert first is not None
    assert second is not None
    assert first < second


def test_instants_are_equal_however_written() -> None:
    written = ["2026-05-01T12:00:00Z", "2026-05-01T12:00:00.000-00:00", "2026-05-01T17:30:00+05:30"]
    assert len({parse_rfc3339(text) for text in written}) == 1


@for_each(
    "text",
    [
        "2026-05-01",
        "2026-05-01T12:00Z",
        "2026-05-01T24:00:00Z",
        "2026-05-01T12:00:00+24:00",
        "2026-05-01T12:00:00+0200",
        "2026-13-01T12:00:00Z",
        "2026-05-01T12:00:00.Z",
        " 2026-05-01T12:00:00Z",
        "2026-05-01T12:00:00Z\n",
        "２０２６-05-01T12:00:00Z",
        "0000-01-01T00:00:00Z",
    ],
)
def test_what_names_no_instant(text: str) -> None:
    assert parse_rfc3339(text) is None
