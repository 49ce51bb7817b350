"""Random pools and requests: whatever the composer is handed, the packet validates, fits, cites and explains itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.packet import MemoryPacket, SectionBudgets
from muniment.contracts.schemas import validate
from muniment.contracts.semantics import check_packet
from muniment.core.canonical import parse_json
from muniment.core.outside.token_counters import EstimateCounter
from muniment.core.policy import ComposePolicy
from muniment.packets.compose import Composed, compose, write_packet
from muniment.packets.page import SECTIONS
from muniment.packets.pool import ComposeRequest, Pool
from muniment.packets.render import render
from packet_audit import audit
from strategies import NOW, CountBy, insights, policies, pools, requests, texts

COUNTERS = (
    CountBy(),
    CountBy(lambda text: -(-len(text.encode()) // 3), "bytes/3", is_exact=False),
    EstimateCounter(),
    # Worst cases: longer texts cost ever more; every text costs a lot; nothing adds up.
    CountBy(lambda text: len(text) // 4 + (len(text) // 200) ** 2, "superlinear", is_exact=False),
    CountBy(lambda text: 70, "flat", is_exact=False),
    CountBy(lambda text: len(text) * 7919 % 613, "noise", is_exact=False),
)
relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(40))


def composed(request: ComposeRequest, pool: Pool, policy: ComposePolicy, counter: Any) -> Composed:
    return compose(request, pool, policy, counter, "digest")


@pytest.mark.req("MP-01", "MP-07", "MP-09", "MP-13", "MP-14", "MP-15", "TM-04")
@relaxed
@given(request=requests(), pool=pools(), policy=policies(), counter=st.sampled_from(COUNTERS))
def test_every_packet_validates_fits_cites_and_explains(
    request: ComposeRequest, pool: Pool, policy: ComposePolicy, counter: Any
) -> None:
    made = composed(request, pool, policy, counter)
    wire = made.packet.to_wire()
    assert validate("MemoryPacket", wire) == []
    assert check_packet(wire) == []
    assert audit(pool, made.packet) == []
    held = counter.count(made.text) if made.text else 0
    assert held == made.tokens == made.packet.budget_report.used_tokens_est <= request.budget.max_tokens
    assert set(made.marks.values()) <= {citation.id for citation in made.packet.citations}


@pytest.mark.req("MP-14", "X-05")
@relaxed
@given(request=requests(), pool=pools(), policy=policies())
def test_the_same_again_gives_the_same_bytes(request: ComposeRequest, pool: Pool, policy: ComposePolicy) -> None:
    made = composed(request, pool, policy, CountBy())
    stored = (
        ComposeRequest.from_wire(parse_json(request.to_bytes())),
        Pool.from_wire(parse_json(pool.to_bytes())),
        ComposePolicy.from_wire(parse_json(policy.to_bytes())),
    )
    again = composed(*stored, CountBy())
    assert again.packet.to_bytes() == made.packet.to_bytes()
    # What was validated, what is written and what is read back are one document.
    assert write_packet(made.wire) == made.packet.to_bytes()
    assert (again.text, again.marks) == (made.text, made.marks)
    # What comes back from its bytes reads the same.
    read = render(parse_json(made.packet.to_bytes()))
    assert (read.text, read.marks) == (made.text, made.marks)


@pytest.mark.req("MP-03")
@relaxed
@given(request=requests(), pool=pools(), policy=policies())
def test_a_purpose_sees_what_the_matrix_lets_it_see(request: ComposeRequest, pool: Pool, policy: ComposePolicy) -> None:
    packet = composed(request, pool, policy, CountBy()).packet
    short, purpose = packet.short_term, request.purpose
    if purpose == "responder":
        state = short.working_state
        assert state.plan is None
        assert state.tool_evidence is None
        assert state.risks is None
        assert set(state.model_extra or ()) <= {"objective", "claims"}
        assert short.last_tool_evidence is None
        assert short.conversation_window is None
        assert packet.long_term.procedures == ()
    insights = (*packet.insight.hypotheses, *packet.insight.strategy_sketches, *packet.insight.patterns)
    assert all(item.validation_state != "rejected" for item in insights)
    if purpose == "tool":
        assert insights == ()
    if purpose == "responder":
        assert all(item.validation_state == "validated" for item in insights)
        assert not insights or policy.allow_validated_insights_in_responder


def _words(packet: MemoryPacket) -> str:
    """Everything that is not explanation."""
    wire = packet.to_wire()
    return str([wire["short_term"], wire["long_term"], wire["insight"]])


@pytest.mark.req("MP-12")
@relaxed
@given(
    request=requests().filter(lambda request: request.purpose == "responder"),
    pool=pools(),
    policy=policies(),
    smuggled=st.lists(insights(), min_size=1, max_size=3),
)
def test_the_wall_holds_wherever_an_insight_is_put(
    request: ComposeRequest, pool: Pool, policy: ComposePolicy, smuggled: list[Any]
) -> None:
    secret = "Zzyzx prefers quartz over basalt"
    marked = [
        each.model_copy(update={"insight": each.insight.model_copy(update={"statement": secret})})
        for each in smuggled
        if each.insight.validation_state != "validated"
    ]
    # The strategies put it nowhere by themselves: repeat it in every place that the user did not speak in.
    hits = tuple(
        hit.model_copy(update={"turn": hit.turn.model_copy(update={"text": f"I note: {secret}!", "role": "assistant"})})
        for hit in pool.hits
    )
    lines = tuple(line.model_copy(update={"text": secret, "evidence_id": "derived"}) for line in pool.summary)
    facts = tuple(
        each.model_copy(update={"fact": each.fact.model_copy(update={"value": [{"said": secret.upper()}]})})
        for each in pool.facts
    )
    episodes = tuple(each.model_copy(update={"lines": lines, "tags": (secret,)}) for each in pool.episodes)
    attacked = pool.model_copy(
        update={"insights": tuple(marked), "hits": hits, "summary": lines, "facts": facts, "episodes": episodes}
    )
    made = composed(request, attacked, policy, CountBy())
    if marked:
        assert secret.casefold() not in made.text.casefold()
        assert secret.casefold() not in _words(made.packet).casefold()
    assert audit(attacked, made.packet) == []


@pytest.mark.req("MP-04", "MP-14")
@relaxed
@given(
    goal=texts(),
    slots=st.dictionaries(st.text(min_size=1, max_size=8), texts(), max_size=30),
    purpose=st.sampled_from(["planner", "tool", "responder"]),
    cap=st.sampled_from([0, 30, 256]),
    counter=st.sampled_from(COUNTERS),
)
def test_a_state_larger_than_the_budget_still_makes_an_honest_packet(
    goal: str, slots: dict[str, str], purpose: Any, cap: int, counter: Any
) -> None:
    state = {"state_version": 1, "goal": goal * 40, "slots": slots, "constraints": dict(slots)}
    lists = [name for name, field in Pool.model_fields.items() if field.is_required()]
    pool = Pool.from_wire({**dict.fromkeys(lists, ()), "working_state": state})
    caps = {**dict.fromkeys(SECTIONS, 256), "working_state": cap}
    request = ComposeRequest.from_wire(
        {
            "scope": {"user_id": "ana", "agent_id": "support", "session_id": "s1", "run_id": "r1"},
            "purpose": purpose,
            "query": "",
            "task_type": "generic",
            "cues": {},
            "budget": {"max_tokens": 256, "per_section": caps},
            "policy_id": "default",
            "now": NOW,
        }
    )
    made = composed(request, pool, ComposePolicy(), counter)
    assert audit(pool, made.packet) == []
    assert check_packet(made.packet.to_wire()) == []
    assert made.tokens <= 256
    assert made.packet.budget_report.section_usage["working_state"] <= cap


def test_the_sections_of_the_budget_are_those_of_the_contract() -> None:
    assert tuple(SectionBudgets.model_fields) == SECTIONS
