"""What a packet leaves out, and what it says of that: the reason, and what a reader needs to look further."""

from __future__ import annotations

from typing import Any

import pytest
from makers import (
    make_episode,
    make_fact,
    make_hit,
    make_insight,
    make_line,
    make_pool,
    make_procedure,
    make_request,
    make_tool,
    make_turn,
)

from muniment.core.policy import ComposePolicy
from muniment.errors import InvalidInput
from muniment.packets.admission import Admission
from muniment.packets.compose import Composed, compose
from strategies import CountBy


def composed(request: Any = None, *, policy: ComposePolicy | None = None, **pool: Any) -> Composed:
    return compose(request or make_request(), make_pool(**pool), policy or ComposePolicy(), CountBy(), "digest")


def left_out(made: Composed) -> dict[str, dict[str, Any]]:
    """Item → all that the packet says of its being left out."""
    told = [each.to_wire() for each in made.packet.explain.omitted]
    return {each.pop("item"): each for each in told}


def untrusted(candidate: Any, trust: str = "external") -> Any:
    return candidate.model_copy(update={"trust": trust})


BARRED = ComposePolicy(barred_trust_planner=("external",))


@pytest.mark.req("MP-15")
def test_a_fact_that_is_left_out_is_told_with_what_stands_in_its_place() -> None:
    made = composed(
        policy=ComposePolicy(facts_max=2, barred_trust_planner=("external",)),
        facts=[
            make_fact("f1", "user.city", "Berlin", version=2),
            make_fact("f1", "user.city", "Rome", version=1),
            make_fact("f2", "user.city", "Paris", scope_level="tenant"),
            make_fact("f3", "user.tea", "green", status="disputed"),
            make_fact("f4", "user.tea", "black", confidence=0.9),
            make_fact("f5", "user.job", "nurse", trust="external"),
            make_fact("f6", "user.pet", "cat", validity={"valid_to": "2026-01-01T00:00:00Z"}),
            make_fact("f7", "user.car", "Volvo", validity={"valid_from": "2027-01-01T00:00:00Z"}),
            make_fact("f8", "user.hat", "red", confidence=0.01),
            make_fact("f9", "user.shoe", "blue", confidence=0.45),
        ],
    )
    assert left_out(made) == {
        "fact:f1#2": {"reason": "superseded", "version": 1, "by": 2},
        "fact:f2": {"reason": "overridden", "by": "fact:f1"},
        "fact:f3": {"reason": "disputed"},
        "fact:f5": {"reason": "trust"},
        "fact:f6": {"reason": "expired"},
        "fact:f7": {"reason": "not_yet_valid"},
        "fact:f8": {"reason": "low_confidence"},
        "fact:f9": {"reason": "count_limit", "limit": 2},
    }
    assert {(each.type, each.fact_ids) for each in made.packet.explain.conflicts} == {
        ("override", ("f1", "f2")),
        ("disputed", ("f4", "f3")),
    }


def test_a_fact_holds_from_the_moment_it_names_to_the_moment_it_names() -> None:
    now = "2026-05-01T14:00:00+02:00"
    facts = [
        make_fact("f1", "user.city", "Berlin", validity={"valid_from": now}),
        make_fact("f2", "user.tea", "green", validity={"valid_to": now}),
        make_fact("f3", "user.hat", "red", validity={"valid_from": "2026-05-01T12:00:00.000001Z"}),
        make_fact("f4", "user.cat", "grey", validity={"valid_to": "2026-05-01T11:59:59.999999Z"}),
        make_fact("f5", "user.dog", "brown", validity={"valid_to": "some day"}),
    ]
    assert {name: each["reason"] for name, each in left_out(composed(facts=facts)).items()} == {
        "fact:f3": "not_yet_valid",
        "fact:f4": "expired",
        "fact:f5": "expired",
    }


def test_a_fact_that_rests_on_one_that_fell_is_shown_and_told() -> None:
    (told,) = composed(facts=[make_fact("f1", "user.city", "Berlin", stale_dependency=True)]).packet.explain.conflicts
    assert (told.type, told.fact_ids) == ("stale_dependency", ("f1",))
    assert told.detail == "user.city rests on a fact that no longer holds"


@pytest.mark.req("MP-15")
def test_a_procedure_that_is_left_out_is_told_with_what_it_lacks() -> None:
    steps = {"steps": ["ask"]}
    made = composed(
        policy=ComposePolicy(procedures_max=1, barred_trust_planner=("external",)),
        procedures=[
            make_procedure("p1", steps, priority=3),
            make_procedure("p1", steps),
            make_procedure("p2", steps, task_type="booking"),
            make_procedure("p3", steps, applicability={"tags": "trip"}),
            make_procedure("p4", steps, applicability={"roles": ["tool"]}),
            make_procedure("p5", steps, applicability={"conditions": ["late"]}),
            untrusted(make_procedure("p6", steps)),
            make_procedure("p7", steps),
        ],
    )
    assert left_out(made) == {
        "procedure:p1#2": {"reason": "duplicate"},
        "procedure:p2": {"reason": "task_type", "task_type": "booking"},
        "procedure:p3": {"reason": "task_type", "unmet": "applicability.tags"},
        "procedure:p4": {"reason": "task_type", "unmet": "applicability.roles"},
        "procedure:p5": {"reason": "task_type", "unmet": "applicability.conditions"},
        "procedure:p6": {"reason": "trust"},
        "procedure:p7": {"reason": "count_limit", "limit": 1},
    }
    (kept,) = made.packet.explain.selected
    assert "priority=3" in kept
    responder = composed(make_request("responder"), procedures=[make_procedure("p1", steps)])
    assert left_out(responder) == {"procedure:p1": {"reason": "purpose"}}


@pytest.mark.req("MP-10")
def test_procedures_stand_in_the_order_of_their_worth_and_no_step_is_lost_that_fits() -> None:
    several = [make_procedure(f"p{at}", {"steps": [f"step {at}"]}, priority=at) for at in (1, 3, 2)]
    made = composed(procedures=several)
    assert [each.procedure_id for each in made.packet.long_term.procedures] == ["p3", "p2", "p1"]
    assert made.text.index("step 3") < made.text.index("step 2") < made.text.index("step 1")
    long = make_procedure("p", {"steps": [f"do thing {n}" for n in range(60)]})
    counts = []
    for cap in range(80, 100):
        cut = composed(make_request(max_tokens=2048, procedures=cap), procedures=[long])
        (step,) = cut.packet.budget_report.degradations
        assert (step.section, step.action) == ("procedures", "raw→summary")
        counts.append(len(cut.packet.long_term.procedures[0].content["steps"]))  # type: ignore[arg-type]
        used = cut.packet.budget_report.section_usage["procedures"]
        assert cap - 4 < used <= cap, "a further step costs little more than its three words"
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.req("MP-12", "MP-15")
def test_an_insight_that_is_left_out_is_told_with_how_far_it_was_validated() -> None:
    barred = make_hit("e9", "ignore it", trust="external")
    made = composed(
        policy=ComposePolicy(insights_max=1, barred_trust_planner=("external",)),
        hits=[barred],
        insights=[
            make_insight("i1", "she may like ramen", confidence=0.9),
            make_insight("i1", "she may like soup", confidence=0.9),
            make_insight("i2", "he may be late", validation_state="rejected"),
            make_insight("i3", "it may rain", expires_at="2026-01-01T00:00:00Z", validation_state="testing"),
            untrusted(make_insight("i4", "they may pay")),
            make_insight("i5", "we may win", sources=["e9"]),
            make_insight("i6", "you may go", confidence=0.1),
        ],
    )
    state = {"validation_state": "unvalidated"}
    told = {name: each for name, each in left_out(made).items() if name.startswith("insight")}
    assert told == {
        "insight:i1#2": {"reason": "duplicate"},
        "insight:i2": {"reason": "insight_wall", "validation_state": "rejected"},
        "insight:i3": {"reason": "expired", "validation_state": "testing"},
        "insight:i4": {"reason": "trust", **state},
        "insight:i5": {"reason": "trust", **state},
        "insight:i6": {"reason": "count_limit", "limit": 1},
    }
    tool = composed(make_request("tool"), insights=[make_insight("i1", "she may like ramen")])
    assert left_out(tool) == {"insight:i1": {"reason": "purpose", **state}}


@pytest.mark.req("MP-14", "MP-15")
def test_what_has_no_room_is_told_with_its_price() -> None:
    words = " ".join(f"word{n}" for n in range(100))
    made = composed(
        make_request(max_tokens=2048, facts=40, insights=40, procedures=4),
        facts=[make_fact("f1", "user.essay", words)],
        insights=[make_insight("i1", words)],
        procedures=[make_procedure("p1", {"steps": [words]})],
    )
    told = left_out(made)
    assert {name: each["reason"] for name, each in told.items()} == {
        "fact:f1": "over_budget",
        "insight:i1": "over_budget",
        "procedure:p1": "over_budget",
    }
    assert all(each["tokens"] > 100 for each in told.values())


# -- who is heard --------------------------------------------------------------------------------------


@pytest.mark.req("LG-08")
def test_a_sentence_rests_on_nobody_who_is_not_heard() -> None:
    """By its turn, by the line of a summary, by a tool's answer: each withholds what rests on it."""
    for source in (
        {"hits": [make_hit("src", "She is here", trust="external")]},
        {"summary": [make_line("src", "She is here", trust="external")]},
        {"episodes": [make_episode("x", "2026-04-30T00:00:00Z", make_line("src", "She came", trust="external"))]},
        {"tools": [make_tool("src", "found her", trust="external")]},
    ):
        insight = make_insight("i1", "she may be at home", sources=["src"])
        assert left_out(composed(policy=BARRED, insights=[insight], **source))["insight:i1"]["reason"] == "trust"
        heard = composed(policy=ComposePolicy(), insights=[insight], **source)
        assert "she may be at home" in heard.text
    several = {
        "hits": [make_hit("turn", "She is here", trust="external")],
        "summary": [make_line("line", "She is there", trust="external")],
    }
    for name in ("turn", "line"):
        insight = make_insight("i1", "she may be at home", sources=[name])
        assert left_out(composed(policy=BARRED, insights=[insight], **several))["insight:i1"]["reason"] == "trust"


@pytest.mark.req("LG-08")
def test_what_reads_like_an_order_is_withheld_where_the_policy_says_so() -> None:
    strict = ComposePolicy(quote_instruction_like=False)
    flagged = make_tool("t1", "send it all", flags=("instruction_like",))
    fact = make_fact("f1", "user.mail", "eve", sources=["t1"])
    assert left_out(composed(policy=strict, tools=[flagged], facts=[fact]))["fact:f1"]["reason"] == "instruction_like"
    plain = make_tool("t1", "send it all")
    assert "fact:f1" not in left_out(composed(policy=strict, tools=[plain], facts=[fact]))


def test_a_now_that_names_no_instant_is_told_how_to_write_it() -> None:
    with pytest.raises(InvalidInput) as caught:
        composed(make_request().model_copy(update={"now": "some day"}))
    error = caught.value
    assert (error.message, error.path) == ("'some day' names no instant", "$.now")
    assert error.hint == "write RFC 3339 with an offset, such as 2026-05-01T12:00:00Z"


# -- room ----------------------------------------------------------------------------------------------


@pytest.mark.req("MP-14")
def test_what_matches_nothing_takes_a_share_while_hits_wait_and_all_there_is_otherwise() -> None:
    facts = [make_fact(f"f{n}", f"user.thing{n}", f"value{n} of its own kind") for n in range(30)]
    policy = ComposePolicy(facts_max=100, unmatched_share=0.1)
    hits = [make_hit(f"e{n}", " ".join(f"Word{n}x{at} is here." for at in range(12))) for n in range(40)]

    def shown(query: str, **pool: Any) -> int:
        made = composed(make_request(query=query, max_tokens=400), policy=policy, facts=facts, **pool)
        assert {each["reason"] for each in left_out(made).values()} <= {"over_budget", "count_limit"}
        return len(made.packet.long_term.facts)

    few = shown("where does Ana live", hits=hits)
    assert 0 < few < 10
    assert shown("where does Ana live") > 20
    assert shown("where does Ana live", hits=[make_hit("e1", "I live in Berlin")]) > 20
    assert shown("   ", hits=hits) > 20


def test_who_said_something_is_told_by_name_or_else_by_role() -> None:
    pool = make_pool(
        window=[make_turn("e1", "Hi", speaker="Ann"), make_turn("e2", "Hello", role="assistant")],
        summary=[make_line("e3", "We met.", speaker="Bob"), make_line("e1", "Hi", speaker="Cid")],
    )
    draft = Admission(make_request(query="Where does Ana live?"), pool, ComposePolicy())
    assert [draft.who(name) for name in ("e1", "e2", "e3", "e4")] == ["Ann", "assistant", "Bob", None]
    assert draft.terms >= {"ana", "live"}
    assert not draft.terms & {"where", "?"}
