"""Working state, procedures, episodes, insights, and the packet as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from makers import (
    TODAY,
    make_episode,
    make_fact,
    make_hit,
    make_insight,
    make_line,
    make_pool,
    make_procedure,
    make_request,
    make_turn,
)

from muniment.contracts.schemas import validate
from muniment.contracts.semantics import check_packet
from muniment.core.policy import ComposePolicy
from muniment.errors import InvalidInput
from muniment.packets.compose import Composed, compose
from packet_audit import audit
from products import for_each
from strategies import CountBy

STATE = {
    "goal": "book dinner",
    "plan": [{"step": "call them", "status": "todo"}],
    "slots": {"city": "Berlin"},
    "constraints": {"must_avoid": ["nuts", "fish"]},
    "tool_evidence": [{"ref": "t1", "summary": "a table is free"}],
    "decisions": [{"statement": "eat out", "evidence_id": "e1"}],
    "risks": [{"risk": "it is late", "mitigation": "hurry"}],
    "memory_hints": [{"memory_id": "m1", "summary": "they close at ten"}],
    "draft": {"n": 1},
}


def composed(request: Any = None, *, policy: ComposePolicy | None = None, **pool: Any) -> Composed:
    held = make_pool(**pool)
    made = compose(request or make_request(), held, policy or ComposePolicy(), CountBy(), "digest")
    wire = made.packet.to_wire()
    assert validate("MemoryPacket", wire) == []
    assert check_packet(wire) == []
    assert audit(held, made.packet) == []
    return made


def selected(made: Composed) -> list[str]:
    """In the order in which they were given room."""
    return [line.partition(" ")[0] for line in made.packet.explain.selected]


def omitted(made: Composed) -> dict[str, str]:
    return {each.item: each.reason for each in made.packet.explain.omitted}


# -- the whole ----------------------------------------------------------------------------------------


@pytest.mark.req("MP-01", "MP-02")
def test_an_empty_pool_makes_an_empty_valid_packet() -> None:
    made = composed(make_request("responder", query="", cues={"tags": ["trip"]}))
    assert (made.text, made.tokens, made.marks) == ("", 0, {})
    meta = made.packet.to_wire()["meta"]
    assert meta["cues"] == {"tags": ["trip"]}
    assert meta["scope"]["tenant_id"] == "default"
    assert (meta["policy_id"], meta["task_type"], meta["generated_at"]) == (
        "default",
        "generic",
        "2026-05-01T12:00:00Z",
    )
    assert sum(made.packet.budget_report.section_usage.values()) == 0


@pytest.mark.req("MP-18", "TM-08")
def test_what_changes_least_stands_first_and_what_the_question_found_last() -> None:
    made = composed(
        working_state=STATE,
        facts=[make_fact("f1", "user.city", "Berlin")],
        procedures=[make_procedure("p1", {"steps": ["ask", "book"]})],
        hits=[make_hit("e1", "I am hungry")],
        episodes=[make_episode("x1", "2026-04-28T00:00:00Z", make_line("e7", "We ate ramen."))],
        insights=[make_insight("i1", "she may like ramen")],
    )
    heads = [line for line in made.text.splitlines() if line.startswith("## ")]
    first = ["## Task", "## Facts", "## Procedures", "## Hypotheses, not facts"]
    assert heads == [*first, "## State", "## Episodes", "## Said"]
    stable, volatile = made.text[: made.stable_chars], made.text[made.stable_chars :]
    assert all(head in stable for head in first)
    assert volatile.startswith(f"{TODAY}## State\n")


@pytest.mark.req("MP-15")
def test_determinism_and_filters_are_told() -> None:
    explain = composed().packet.explain
    assert explain.determinism is not None
    assert explain.determinism["policy_digest"] == "digest"
    assert explain.determinism["token_counter"] == {"name": "words", "is_exact": True}
    assert explain.filters["purpose"] == "planner"


@pytest.mark.parametrize("now", ["2026-05-01", "now", "2026-05-01T12:00:00"])
def test_a_now_that_names_no_instant_is_refused(now: str) -> None:
    with pytest.raises(InvalidInput):
        composed(make_request().model_copy(update={"now": now}))


def test_a_cue_that_names_no_instant_is_refused() -> None:
    with pytest.raises(InvalidInput) as error:
        composed(make_request(cues={"time_range": {"start": "last May"}}))
    assert error.value.path == "$.cues.time_range.start"


def test_a_query_of_a_megabyte_is_no_trouble() -> None:
    made = composed(make_request(query="where " * 200_000), hits=[make_hit("e1", "here")])
    assert "here" in made.text


# -- working state ------------------------------------------------------------------------------------


@pytest.mark.req("MP-03", "MP-04")
def test_what_each_purpose_sees_of_the_state() -> None:
    seen = {
        purpose: composed(make_request(purpose), working_state=STATE) for purpose in ("planner", "tool", "responder")
    }  # type: ignore[arg-type]
    for made in seen.values():
        assert "goal: book dinner\n" in made.text
        assert "slot city: Berlin\n" in made.text
        assert "constraint must_avoid: nuts, fish\n" in made.text
        assert "decided: eat out [1]\n" in made.text
    for purpose in ("planner", "tool"):
        for words in (
            "plan, todo: call them",
            "a table is free",
            "risk: it is late; mitigation: hurry",
            "hint: they close",
        ):
            assert words in seen[purpose].text
    assert seen["tool"].text.index("must_avoid") < seen["tool"].text.index("goal")
    hidden = {item for item, reason in omitted(seen["responder"]).items() if reason == "purpose"}
    assert hidden == {f"state:{name}" for name in ("plan.0", "tool_evidence.0", "risks.0", "hints.0", "extra.draft")}
    assert seen["responder"].packet.short_term.working_state.state_version == 1


@pytest.mark.req("MP-04")
def test_under_pressure_goal_constraints_and_slots_go_last() -> None:
    state = {**STATE, "plan": [{"step": f"step {n} of many more steps", "status": "todo"} for n in range(50)]}
    made = composed(make_request(max_tokens=256, working_state=40), working_state=state)
    held = made.packet.short_term.working_state
    assert held.goal == "book dinner"
    assert held.slots == STATE["slots"]
    assert held.constraints == STATE["constraints"]
    assert len(held.plan or ()) < 50
    assert omitted(made)["state:plan.49"] == "over_budget"


@pytest.mark.req("MP-04", "MP-14")
def test_a_huge_goal_leaves_room_for_constraints_and_is_cut_on_record() -> None:
    state = {"goal": "Find a good place. " * 500, "constraints": {"must_avoid": "nuts", "essay": "x y " * 4000}}
    made = composed(make_request("responder", max_tokens=256), working_state=state)
    held = made.packet.short_term.working_state
    assert (held.goal or "").startswith("Find a good place.")
    assert (held.constraints or {})["must_avoid"] == "nuts"
    assert (held.goal or "").endswith(" …")
    assert (held.constraints or {})["essay"] == "…"
    steps = {step.reason.split(",")[0]: step.action for step in made.packet.budget_report.degradations}
    assert steps == {"over_budget: state:goal": "raw→quote", "over_budget: state:constraints.essay": "raw→ref"}


@pytest.mark.req("MP-04")
@pytest.mark.parametrize("max_tokens", [256, 300, 400])
def test_a_constraint_is_told_whole_or_by_its_name(max_tokens: int) -> None:
    """Half of one is another one: "never refund more than 50 euros, unless the"."""
    said = {f"c{n}": f"never do {n}, unless the customer asks for it and Helen agrees" for n in range(30)}
    request = make_request("responder", max_tokens=max_tokens, working_state=max_tokens * 6 // 10)
    held = composed(request, working_state={"constraints": said}).packet.short_term.working_state.constraints or {}
    assert held
    assert all(value in (said[key], "…") for key, value in held.items())


# -- procedures ---------------------------------------------------------------------------------------


@pytest.mark.req("MP-10")
def test_procedures_by_task_type_priority_and_usage() -> None:
    procedures = [
        make_procedure("low", {"steps": ["a"]}),
        make_procedure("used", {"steps": ["b"]}, usage=9),
        make_procedure("top", {"steps": ["c"]}, priority=2),
        make_procedure("other", {"steps": ["d"]}, task_type="booking"),
        make_procedure("tagged", {"steps": ["e"]}, applicability={"tags": ["trip"]}),
        make_procedure("roled", {"steps": ["f"]}, applicability={"roles": ["tool"]}),
        make_procedure("conditioned", {"steps": ["g"]}, applicability={"conditions": {"city": "Rome"}}),
    ]
    made = composed(procedures=procedures, working_state=STATE, policy=ComposePolicy(procedures_max=2))
    assert [name for name in selected(made) if name.startswith("procedure")] == ["procedure:top", "procedure:used"]
    assert omitted(made) == {
        "procedure:other": "task_type",
        "procedure:tagged": "task_type",
        "procedure:roled": "task_type",
        "procedure:conditioned": "task_type",
        "procedure:low": "count_limit",
    }
    request = make_request("tool", cues={"tags": ["Trip"], "city": "Rome"})
    asked = composed(request, procedures=procedures, policy=ComposePolicy(procedures_max=9))
    names = [name.removeprefix("procedure:") for name in selected(asked)]
    assert names == ["top", "used", "conditioned", "low", "roled", "tagged"]
    shown = [each.procedure_id for each in asked.packet.long_term.procedures]
    assert shown == ["top", *sorted(set(names) - {"top"})]  # by priority, then age: use moves nothing on the page
    assert "## Procedures" not in composed(make_request("responder"), procedures=procedures).text


@pytest.mark.req("MP-14")
def test_a_long_procedure_keeps_what_fits() -> None:
    procedure = make_procedure("p", {"format": "short", "steps": [f"step {n} do this and that" for n in range(200)]})
    made = composed(make_request(max_tokens=256), procedures=[procedure])
    (kept,) = made.packet.long_term.procedures
    assert kept.content["format"] == "short"
    assert 0 < len(kept.content["steps"]) < 200  # type: ignore[arg-type]
    assert [step.action for step in made.packet.budget_report.degradations] == ["raw→summary"]


# -- episodes -----------------------------------------------------------------------------------------


def _episode(id: str, start: str, **changes: Any) -> Any:
    lines = [
        make_line(f"{id}_{n}", f"In {id} thing {word} happened to us.")
        for n, word in enumerate(("one", "two", "six", "ten"))
    ]
    return make_episode(id, start, *lines, **changes)


@pytest.mark.req("MP-11")
def test_windows_cues_decay_and_compression_by_age() -> None:
    made = composed(
        episodes=[
            _episode("new", "2026-04-30T12:00:00Z"),
            _episode("mid", "2026-04-17T12:00:00Z"),
            _episode("old", "2026-03-15T12:00:00Z"),
            _episode("cued", "2024-03-15T12:00:00Z", score=0.5),
            _episode("ahead", "2026-07-01T12:00:00Z"),
            _episode("broken", "some day"),
        ]
    )
    found = {each.episode_id: each for each in made.packet.long_term.episodes}
    assert list(found) == ["new", "mid", "cued"]
    assert [each.compression_level for each in found.values()] == ["raw", "phase_summary", "milestone"]
    assert [len(each.highlights or ()) for each in found.values()] == [3, 2, 0]
    assert found["mid"].recency_score == pytest.approx(0.5)
    assert omitted(made) == {f"episode:{name}": "out_of_window" for name in ("old", "ahead", "broken")}
    assert all(
        sentence in made.text for each in found.values() for sentence in (each.summary, *(each.highlights or ()))
    )


@pytest.mark.req("MP-11", "TM-05")
@pytest.mark.parametrize(
    "cues",
    [
        {"tags": ["Trip"]},
        {"entities": ["trip"]},
        {"keywords": ["trip"]},
        {"time_range": {"start": "2024-03-01T00:00:00Z", "end": "2024-04-01T00:00:00Z"}},
    ],
)
def test_a_cue_lifts_the_window(cues: dict[str, Any]) -> None:
    old = _episode("old", "2024-03-15T12:00:00Z", tags=("trip",))
    assert composed(make_request(cues=cues), episodes=[old]).packet.long_term.episodes
    assert not composed(episodes=[old]).packet.long_term.episodes


@pytest.mark.req("MP-11", "MP-14")
def test_an_episode_goes_down_the_ladder() -> None:
    steps = []
    for cap in (90, 28, 14):
        tagged = _episode("new", "2026-04-30T12:00:00Z", tags=("trip",))
        made = composed(make_request(episodes=cap), episodes=[tagged])
        steps += [(step.action, step.reason.partition(", ")[2]) for step in made.packet.budget_report.degradations]
    assert [step for step, _ in steps] == ["raw→summary", "raw→ref"]
    assert all(detail.endswith(" tokens kept") for _, detail in steps)
    assert "30 April 2026: trip [" in made.text


def test_a_day_of_which_nothing_can_be_told_is_left_out() -> None:
    """Without a tag the last rung would be a date and no word."""
    made = composed(make_request(episodes=14), episodes=[_episode("new", "2026-04-30T12:00:00Z")])
    assert omitted(made) == {"episode:new": "over_budget"}
    assert "2026-04-30" not in made.text


def test_an_episode_that_is_quoted_already_is_not_told_again() -> None:
    line = make_line("e1", "We went to Rome.")
    made = composed(
        hits=[make_hit("e1", "We went to Rome. It rained.")],
        episodes=[make_episode("x", "2026-04-30T00:00:00Z", line, score=1.0)],
    )
    assert omitted(made) == {"episode:x": "duplicate"}


# -- insights -----------------------------------------------------------------------------------------

SECRET = "she may be vegetarian"


@pytest.mark.req("MP-03", "MP-12")
def test_a_planner_hears_hypotheses_a_tool_does_not() -> None:
    insights = [make_insight("i1", SECRET, sources=["e1"]), make_insight("i2", "no", validation_state="rejected")]
    made = composed(insights=insights)
    assert f"- hypothesis, unvalidated: {SECRET} [1]\n" in made.text
    assert omitted(made) == {"insight:i2": "insight_wall"}
    assert omitted(composed(make_request("tool"), insights=insights))["insight:i1"] == "purpose"


@pytest.mark.req("MP-12")
@for_each("state", ["unvalidated", "testing", "validated", "rejected"])
@for_each("allowed", [True, False])
@for_each("expires_at", ["run_end", None, "2026-05-01T11:59:59Z", "2026-05-02T00:00:00Z", "whenever"])
def test_a_responder_hears_an_insight_only_if_every_door_is_open(
    state: str, allowed: bool, expires_at: str | None
) -> None:
    policy = ComposePolicy(allow_validated_insights_in_responder=allowed)
    for finished in (True, False):
        held = make_insight("i1", SECRET, validation_state=state, expires_at=expires_at, run_is_finished=finished)
        made = composed(make_request("responder"), insights=[held], policy=policy)
        lives = expires_at == "2026-05-02T00:00:00Z" or (expires_at in ("run_end", None) and not finished)
        assert (SECRET in made.text) is (state == "validated" and allowed and lives)
        assert (SECRET in made.packet.to_bytes().decode()) is (SECRET in made.text)


@pytest.mark.req("MP-12")
@for_each("smuggled", [
    {"facts": [make_fact("f1", "user.diet", "vegetarian", sources=["i1"])]},
    {"facts": [make_fact("f1", "user.diet", f"We think {SECRET}.")]},
    {"facts": [make_fact("f1", "user.diet", {"statement": "x", "validation_state": "testing"})]},
    {"facts": [make_fact("f1", "user.diet", "x", notes=SECRET.title())]},
    {"facts": [make_fact("f1", "user.diet", {SECRET: True})]},
    {"facts": [make_fact("f1", "user.diet", [{"told": {f"We think {SECRET}.": 0.4}}])]},
    {"hits": [make_hit("e1", f"Note: {SECRET.upper()}!", role="assistant")]},
    {"hits": [make_hit("e1", f"Note: {SECRET}", role="tool", kind="tool_result", trust="tool")]},
    {"hits": [make_hit("i1", "vegetarian, it seems")]},
    {"summary": [make_line("patch", SECRET)]},
    {"summary": [make_line("i1", "vegetarian, it seems")]},
    {"episodes": [make_episode("x", "2026-04-30T00:00:00Z", make_line("e1", SECRET))]},
    {"episodes": [make_episode("x", "2026-04-30T00:00:00Z", tags=(SECRET,), sources=("i1",))]},
    {"working_state": {"hypotheses": [SECRET]}},
    {"working_state": {"goal": f"cook, since {SECRET}"}},
    {"working_state": {"slots": {"diet": {"maybe": SECRET}}}},
    {"working_state": {"slots": {SECRET: True}}},
    {"working_state": {"slots": {"diet": {SECRET: True}}}},
    {"working_state": {"constraints": {"diet": [{SECRET: {}}]}}},
    {"working_state": {"constraints": {"x": {"statement": "vegetarian", "validation_state": "unvalidated"}}}},
    {"working_state": {"decisions": [{"statement": "buy tofu: vegetarian", "evidence_id": "i1"}]}},
    {"loops": [{"question": f"{SECRET}?", "status": "open"}]},
    {"insights": [make_insight("i9", "other", validation_state="validated"), make_insight("i1", SECRET)]},
])  # fmt: skip
def test_an_insight_comes_through_no_other_door(smuggled: dict[str, Any]) -> None:
    """Mutation: the wall does not look at the keys of a value."""
    from muniment.contracts.packet import OpenLoop

    pool = {"insights": [make_insight("i1", SECRET)], **smuggled}
    if "loops" in pool:
        pool["loops"] = [OpenLoop.from_wire(each) for each in pool["loops"]]
    policy = ComposePolicy(allow_validated_insights_in_responder=True)
    made = composed(make_request("responder"), policy=policy, **pool)
    shown = str([made.packet.to_wire()[name] for name in ("short_term", "long_term", "insight", "citations")])
    assert "vegetarian" not in made.text.casefold()
    assert "vegetarian" not in shown.casefold()
    assert "i1" not in {citation.id for citation in made.packet.citations}


@pytest.mark.req("MP-12")
def test_what_the_user_said_stays_evidence() -> None:
    said = make_turn("e1", f"Mum says {SECRET}")
    made = composed(
        make_request("responder"),
        insights=[make_insight("i1", SECRET)],
        hits=[make_hit("e1", said.text)],
        window=[said],
    )
    assert SECRET in made.text
