"""Floors: what the sections keep for each other, and what becomes of it where it is not needed or does not fit."""

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
)

import muniment
from muniment.contracts.schemas import validate
from muniment.core.policy import ComposePolicy
from muniment.errors import InvalidRecord
from muniment.packets.compose import Composed, compose
from packet_audit import audit
from products import for_each
from strategies import CountBy

pytestmark = pytest.mark.req("TM-04", "MP-18")

NO_FLOORS = ComposePolicy.from_wire({"floor_tokens_min": 10_000_000})

WORDS = ("amber", "bridge", "candle", "daisy", "engine", "forest", "garden", "harbor", "island", "jungle", "kettle")


def sentence(at: int, length: int = 9) -> str:
    """Sentences that share no words with one another, so that none is a duplicate."""
    return " ".join(f"{WORDS[n % len(WORDS)]}{at}" for n in range(length)) + "."


def full(**changes: Any) -> Any:
    """A pool with more of everything than any budget has room for."""
    lists: dict[str, Any] = {
        "working_state": {
            "goal": "book dinner",
            "slots": {f"slot{at}": sentence(at) for at in range(400)},
        },
        "facts": [make_fact(f"f{at}", f"key{at}", sentence(1000 + at), score=1.0) for at in range(300)],
        "procedures": [
            make_procedure(f"p{at}", {"steps": [sentence(2000 + at * 50 + n) for n in range(50)]}) for at in range(5)
        ],
        "hits": [make_hit(f"e{at}", sentence(3000 + at), 1.0 - at / 1000) for at in range(400)],
        "episodes": [
            make_episode(
                f"x{at}",
                "2026-04-28T00:00:00Z",
                *(make_line(f"l{at}_{n}", sentence(4000 + at * 10 + n)) for n in range(3)),
                score=0.5,
            )
            for at in range(20)
        ],
        "insights": [make_insight(f"i{at}", sentence(5000 + at, 20)) for at in range(20)],
    }
    return make_pool(**lists | changes)


def composed(request: Any, pool: Any, policy: ComposePolicy | None = None) -> Composed:
    made = compose(request, pool, policy or ComposePolicy(), CountBy(), "digest")
    assert validate("MemoryPacket", made.packet.to_wire()) == []
    assert audit(pool, made.packet) == []
    return made


def used(made: Composed) -> dict[str, int]:
    return dict(made.packet.budget_report.section_usage)


@pytest.mark.soak
@for_each("max_tokens", [1024, 2048, 3000])
@for_each(
    ("purpose", "sections"),
    [
        ("planner", ("working_state", "facts", "procedures", "short_term_summary", "episodes", "insights")),
        ("tool", ("working_state", "facts", "procedures", "short_term_summary")),
        ("responder", ("working_state", "facts", "short_term_summary", "episodes")),
    ],
)
def test_every_section_of_a_purpose_gets_its_floor_where_all_want_more(
    purpose: Any, sections: tuple[str, ...], max_tokens: int
) -> None:
    made = composed(make_request(purpose, max_tokens=max_tokens), full())
    shares = getattr(ComposePolicy().floors, purpose)
    for section in sections:
        floor = int(getattr(shares, section) * max_tokens)
        assert used(made)[section] > 0, section
        # A line that does not fit leaves the end of a floor empty: one line of these is no longer than this.
        assert used(made)[section] >= floor - 50, section


def test_without_floors_the_first_take_everything() -> None:
    """What the floors are there for: the same pool without them."""
    made = composed(make_request("planner", max_tokens=1024), full(), NO_FLOORS)
    assert used(made)["episodes"] == used(made)["insights"] == 0


def test_what_a_section_does_not_need_goes_to_the_quotes() -> None:
    alone = composed(make_request("planner", max_tokens=1024), full(episodes=(), insights=(), facts=(), procedures=()))
    one = make_insight("i0", "a short guess")
    with_one = composed(
        make_request("planner", max_tokens=1024), full(episodes=(), insights=[one], facts=(), procedures=())
    )
    assert used(with_one)["insights"] > 0
    spent = used(alone)["short_term_summary"] - used(with_one)["short_term_summary"]
    assert spent <= used(with_one)["insights"] + 12, "no more is kept than the one line takes, but for a last quote"


@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_nothing_is_kept_for_what_may_not_be_shown(purpose: Any) -> None:
    """Expired hypotheses, rejected ones, procedures of another task, facts that no longer hold: no floor for them."""
    unfit = {
        "facts": [make_fact("f1", "a", "b", status="deprecated")],
        "procedures": [make_procedure("p1", {"steps": ["x"]}, task_type="other")],
        "insights": [make_insight("i1", "a guess", validation_state="rejected")],
        "episodes": [make_episode("x1", "2020-01-01T00:00:00Z", make_line("l1", "Long ago we met."))],
    }
    nothing: dict[str, Any] = dict.fromkeys(unfit, ())
    request = make_request(purpose, max_tokens=512)
    assert composed(request, full(**unfit)).text == composed(request, full(**nothing)).text


def test_a_cap_of_the_caller_binds_a_floor() -> None:
    made = composed(make_request("planner", max_tokens=1024, episodes=0, insights=20), full())
    assert used(made)["episodes"] == 0
    assert used(made)["insights"] <= 20
    floors: Any = made.packet.explain.filters["floors"]
    assert "episodes" not in floors["tokens"]
    assert set(floors["not_kept"]) == {"episodes", "insights"}


@pytest.mark.parametrize("max_tokens", [256, 300, 512])
def test_a_small_budget_says_which_floors_it_does_not_keep(max_tokens: int) -> None:
    made = composed(make_request("responder", max_tokens=max_tokens), full(working_state=None, facts=()))
    floors: Any = made.packet.explain.filters["floors"]
    assert {"episodes", "insights"} <= set(floors["not_kept"])
    assert made.tokens <= max_tokens
    none = composed(make_request("responder", max_tokens=max_tokens), full(working_state=None, facts=()), NO_FLOORS)
    assert made.packet.short_term == none.packet.short_term, "quotes are what they were without floors"


def test_floors_that_fill_the_whole_budget_are_made_smaller_and_say_so() -> None:
    given = {"planner": dict.fromkeys(("working_state", "procedures", "episodes", "insights"), 0.0)}
    given["planner"] |= {"facts": 0.5, "short_term_summary": 0.5}
    policy = ComposePolicy.from_wire({"floors": given})
    made = composed(make_request("planner", max_tokens=256), full(), policy)
    floors: Any = made.packet.explain.filters["floors"]
    assert 0 < floors["scaled"] < 1
    assert used(made)["facts"] > 0
    assert used(made)["short_term_summary"] > 0


@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
@pytest.mark.parametrize("given", [{"facts": 1.0}, {"facts": 0.6, "episodes": 0.5, "working_state": 0.0}])
def test_floors_of_more_than_one_are_refused(purpose: str, given: dict[str, float]) -> None:
    with pytest.raises(InvalidRecord, match="more than 1") as caught:
        muniment.Policy.from_wire({"compose": {"floors": {purpose: given}}})
    assert caught.value.path == f"$.compose.floors.{purpose}"
    ten = {"working_state": 0.1, "facts": 0.2, "procedures": 0.2, "short_term_summary": 0.3, "episodes": 0.1}
    muniment.Policy.from_wire({"compose": {"floors": {purpose: ten | {"insights": 0.1}}}})


@pytest.mark.parametrize("share", [-0.1, 1.1, "much", None])
def test_a_floor_is_a_share(share: Any) -> None:
    with pytest.raises(InvalidRecord):
        muniment.Policy.from_wire({"compose": {"floors": {"planner": {"facts": share}}}})
