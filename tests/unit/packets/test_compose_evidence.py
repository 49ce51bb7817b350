"""The budget is a ceiling: weak evidence is left out, and where memory holds nothing the packet says so (TM-07)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import make_fact, make_hit, make_line, make_pool, make_request, make_turn

import muniment
from muniment import Memory
from muniment.contracts.packet import OpenLoop
from muniment.core.policy import ComposePolicy
from muniment.packets.compose import Composed, compose
from muniment.packets.conversation import worth_of
from muniment.packets.render import render
from packet_audit import audit
from products import for_each
from strategies import CountBy

LEAST = ComposePolicy().evidence_min
FOUND = ComposePolicy().found_min
LONG = " ".join(f"Sentence number {n} is about nothing much at all." for n in range(200))


def composed(request: Any = None, policy: ComposePolicy | None = None, **pool: Any) -> Composed:
    held = make_pool(**pool)
    made = compose(request or make_request("responder"), held, policy or ComposePolicy(), CountBy(), "digest")
    assert audit(held, made.packet) == []
    assert render(made.packet).text == made.text
    return made


def quoted(made: Composed) -> set[str]:
    return {quote.evidence_id for quote in made.packet.short_term.key_quotes or ()}


def omitted(made: Composed) -> dict[str, str]:
    return {each.item: each.reason for each in made.packet.explain.omitted}


def told(made: Composed) -> Any:
    return made.packet.to_wire()["explain"]["filters"]["evidence"]


# -- the cut-off --------------------------------------------------------------------------------------


@pytest.mark.req("TM-07")
def test_weak_evidence_is_left_out_though_there_is_room() -> None:
    hits = [
        make_hit("e1", "Ana lives in Hamburg.", 0.15),
        make_hit("e2", "The weather is nice.", LEAST),
        make_hit("e3", "I like tea.", LEAST * 0.99),
    ]
    made = composed(hits=hits, policy=ComposePolicy(evidence_share=0.0))
    assert quoted(made) == {"e1", "e2"}
    assert omitted(made) == {"quote:e3": "weak_evidence"}
    assert quoted(composed(hits=hits, policy=ComposePolicy(evidence_min=0.0, evidence_share=0.0))) == {"e1", "e2", "e3"}
    assert quoted(composed(hits=hits, policy=ComposePolicy(evidence_min=0.1))) == {"e1"}
    assert quoted(composed(make_request("responder", query=""), hits=hits)) == {"e1", "e2", "e3"}, "nothing was asked"


@pytest.mark.req("TM-07")
def test_weak_is_measured_by_the_best() -> None:
    policy = ComposePolicy(evidence_share=0.1, evidence_min=0.0)
    for best in (0.9, 0.3):
        hits = [
            make_hit("e1", "Ana lives in Hamburg.", best),
            make_hit("e2", "She was in Oslo.", best * 0.1001),
            make_hit("e3", "I like tea.", best * 0.0999),
        ]
        assert quoted(composed(make_request("responder"), policy, hits=hits)) == {"e1", "e2"}, best


@pytest.mark.req("TM-07")
def test_one_long_turn_does_not_take_the_room_of_several_that_are_nearly_as_likely() -> None:
    hits = [make_hit("long", LONG, 0.3)]
    hits += [make_hit(f"e{n}", f"Kim{n} sold boat {n} to the harbour.", 0.25 - n / 100) for n in range(10)]
    few = make_request("responder", max_tokens=256)
    assert {f"e{n}" for n in range(10)} <= quoted(composed(few, hits=hits))
    assert "long" in quoted(composed(few, ComposePolicy(length_discount=0.0), hits=hits))


@given(st.floats(0, 1), st.integers(1, 5000), st.integers(1, 5000), st.floats(0, 1), st.integers(1, 500))
def test_worth_never_grows_with_length_nor_passes_the_chance(
    score: float, one: int, other: int, discount: float, short: int
) -> None:
    policy = ComposePolicy(length_discount=discount, short_tokens=short)
    less, more = (worth_of(make_hit("e", "x" * chars, score), policy) for chars in sorted((one, other)))
    assert 0 <= more <= less <= score
    assert max(one, other) > 4 * short or less == more == score


@pytest.mark.soak
@for_each("score", [1.0, 0.2, 0.05])
@for_each("max_tokens", [256, 2048, 100_000])
def test_the_best_is_quoted_however_long_it_is(score: float, max_tokens: int) -> None:
    hits = [make_hit("e1", LONG * 40, score), make_hit("e2", "Tea is nice.", score / 500)]
    assert "e1" in quoted(composed(make_request("responder", max_tokens=max_tokens), hits=hits))


@pytest.mark.req("TM-07")
def test_what_was_cut_stands_whole_where_room_is_left() -> None:
    """One quote has a share of the page while others wait; what they leave it gets back, and no step down is told."""
    text = " ".join(f"Sentence number {n} is about the boat." for n in range(40))
    words = len(text.split())
    request = make_request("responder", max_tokens=2 * words)
    alone = composed(request, hits=[make_hit("e1", text, 0.5)])
    assert [each.quote for each in alone.packet.short_term.key_quotes or ()] == [text]
    assert alone.packet.budget_report.degradations == ()
    others = [make_hit(f"o{n}", f"Kim{n} sold boat {n} to the harbour of Porto{n}.", 0.4) for n in range(60)]
    full = composed(request, hits=[make_hit("e1", text, 0.5), *others])
    assert text not in [each.quote for each in full.packet.short_term.key_quotes or ()]
    assert full.tokens <= 2 * words


# -- nothing found ------------------------------------------------------------------------------------


@pytest.mark.req("TM-07")
@for_each(
    ("pool", "found", "chance"),
    [
        ({}, False, 0.0),
        ({"hits": [make_hit("e1", "I like tea.", LEAST / 2)]}, False, LEAST / 2),
        ({"hits": [make_hit("e1", "I like tea.", FOUND * 0.9)]}, False, FOUND * 0.9),
        ({"hits": [make_hit("e1", "Ana lives in Hamburg.", FOUND)]}, True, FOUND),
        ({"facts": [make_fact("f1", "user.city", "Hamburg", score=0.1)]}, False, 0.0),
        ({"facts": [make_fact("f1", "user.city", "Hamburg", score=0.5)]}, True, 0.0),
        (
            {"facts": [make_fact("f1", "user.city", "Hamburg", score=0.9)], "hits": [make_hit("e1", "Tea.", LEAST)]},
            True,
            LEAST,
        ),
    ],
)
def test_that_nothing_was_found_is_a_field_and_no_words(pool: dict[str, Any], found: bool, chance: float) -> None:
    made = composed(**pool)
    assert (told(made)["found"], told(made)["chance"]) == (found, chance)
    assert "othing" not in made.text
    assert made.tokens == CountBy().count(made.text)


@pytest.mark.req("TM-07")
def test_where_nothing_is_asked_whatever_stands_in_the_packet_is_found() -> None:
    nothing = composed(make_request("responder", query=" "))
    assert (told(nothing)["found"], nothing.text) == (False, "")
    fact = make_fact("f1", "user.city", "Hamburg")
    assert told(composed(make_request("responder", query=""), facts=[fact]))["found"] is True


# -- what stands whatever is asked --------------------------------------------------------------------

STATE: dict[str, Any] = {
    "goal": "migrate the billing service to PostgreSQL",
    "constraints": {"api": "the API stays as it is"},
    "plan": [{"step": "port the invoice table", "status": "todo"}],
    "decisions": [{"statement": "pgbouncer does the pooling", "evidence_id": "e1"}],
    "next_actions": [{"action": "run the billing tests", "trust": "assistant"}],
    "failures": [{"category": "wrong_tool", "where": "dump", "why": "no rights", "trust": "assistant"}],
}
LOOPS = [OpenLoop(question="Who signs it off?", status="open")]
TURNS = [make_turn("t1", "My train leaves at 7:40.")]
SUMMARY = [make_line("t0", "We take the night train.", kind="decision")]


@pytest.mark.req("TM-07")
@for_each(
    "query",
    [
        "What colour is Zorblax's spaceship?",
        "When is Zorblax's next concert?",
        "What did Zorblax decide about the spaceship?",
        "Which errors did the spaceship log?",
        "What did I tell you about Zorblax?",
        "What does the billing service cost?",
        "What is the goal of Zorblax?",
        "飞船是什么颜色？",
        "우주선은 무슨 색이야?",
        "Who won the tournament last time?",
    ],
)
@for_each("purpose", ["planner", "tool", "responder"])
def test_what_memory_holds_nothing_on_is_told_so_beside_a_full_state(purpose: Any, query: str) -> None:
    pool = {"working_state": STATE, "loops": LOOPS, "summary": SUMMARY}
    assert told(composed(make_request(purpose, query=query), **pool, window=TURNS))["found"] is False
    made = composed(make_request(purpose, query=query), **pool)
    assert told(made)["found"] is False
    assert "othing" not in made.text


@pytest.mark.req("TM-07")
@for_each(
    ("query", "found"),
    [
        ("what does the pooling?", True),
        ("who decided that pgbouncer does the pooling?", True),
        ("does the API stay as it is?", True),
        ("what is planned for the invoice table?", True),
        ("who pays for the invoice table?", False),
        ("is PostgreSQL slower than Oracle?", False),
        ("who signs the API contracts of the harbour?", False),
    ],
)
def test_the_state_is_measured_as_facts_are_and_what_is_meant_to_be_by_all_that_is_asked_for(
    query: str, found: bool
) -> None:
    assert told(composed(make_request("planner", query=query), working_state=STATE, loops=LOOPS))["found"] is found


@pytest.mark.req("TM-07")
def test_a_summary_of_the_callers_own_answers_and_an_open_question_does_not() -> None:
    given = [make_line("g1", "The harbour closes at nine.", kind="given")]
    query = "When does the harbour close?"
    assert told(composed(make_request("responder", query=query), summary=given))["found"] is True
    asked = [OpenLoop(question=query, status="open")]
    assert told(composed(make_request("responder", query=query), loops=asked))["found"] is False


# -- through the face ---------------------------------------------------------------------------------


@pytest.fixture
def mem() -> Iterator[Memory]:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="one")
        for text in ("I live in Hamburg now.", "My sister Mia has a beagle.", "Dinner is at seven.", "I like tea."):
            run.observe("user", text)
        yield mem


@pytest.mark.req("TM-07")
def test_a_build_says_whether_anything_was_found_and_so_does_its_replay(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="two")
    known, unknown = (
        run.compose("responder", query=query)
        for query in ("Where does Ana live now, in Hamburg?", "What colour is Zorblax's spaceship?")
    )
    assert (known.found, unknown.found) == (True, False)
    nobody = mem.run(user_id="ben").compose("responder", query="What colour is Zorblax's spaceship?")
    assert (nobody.found, nobody.text) == (False, "")
    for build in (known, unknown):
        again = mem.replay(build.id)
        assert (again.found, again.text, again.packet_bytes) == (build.found, build.text, build.packet_bytes)


@pytest.mark.req("TM-07")
def test_what_was_never_said_is_not_found_among_many_turns(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="two")
    for place in range(40):
        run.observe("user", f"On day {place} I walked to the river and counted {place * 3} ducks.")
    asking = mem.run(user_id="ana", session_id="three")
    build = asking.compose("responder", query="How often did the Zorblax embassy renew its visa?", max_tokens=1024)
    assert not build.found
