"""What a request gathers: sections that are there beside the quotes, the latest sessions, and a count of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from makers import make_pool

import muniment
from muniment import Memory
from muniment.packets.builds import Build
from muniment.packets.pool import NotGathered
from packet_audit import audit

pytestmark = pytest.mark.req("TM-04")

NOW = "2026-05-01T12:00:00Z"
PLACES = ("Berlin", "Lisbon", "Osaka", "Leeds", "Austin", "Turin", "Ghent", "Porto", "Bergen", "Lyon")
THINGS = ("boat", "kitchen", "violin", "garden", "bicycle", "novel", "telescope", "orchard")


@pytest.fixture
def mem() -> Iterator[Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def tell(mem: Memory, sessions: int, turns: int = 8, *, step: timedelta = timedelta(hours=20)) -> None:
    """Sessions whose names say nothing of their order: the first told has the last name."""
    begin = datetime(2026, 5, 1, 9, tzinfo=UTC) - step * sessions
    for at in range(sessions):
        run = mem.run(user_id="ana", session_id=f"s{sessions - at:04}")
        said = begin + step * at
        run.observe_many(
            [
                {
                    "role": "user" if n % 2 == 0 else "assistant",
                    "content": f"On day {at} in {PLACES[(at + n) % 10]} we talked about the {THINGS[(at * 3 + n) % 8]} "
                    f"and item{at}x{n}. It cost {at * 10 + n} euros, said Kim{n}.",
                    "ts": (said + timedelta(minutes=n)).isoformat(),
                }
                for n in range(turns)
            ]
        )


def built(mem: Memory, query: str = "", purpose: str = "responder", **asked: Any) -> Build:
    run = mem.run(user_id="ana", session_id="asking")
    build = run.compose(purpose, query=query, now=NOW, **asked)
    assert audit(build.pool, build.packet) == []
    assert mem.replay(build.id).packet_bytes == build.packet_bytes
    return build


def counted(build: Build, kind: str) -> dict[str, Any]:
    return build.packet.explain.filters["not_gathered"][kind]  # type: ignore[index,return-value,call-overload]


@pytest.mark.req("MP-11", "MP-18")
@pytest.mark.parametrize("max_tokens", [1024, 2048])
@pytest.mark.parametrize("purpose", ["planner", "responder"])
def test_every_packet_holds_an_episode_where_quotes_would_fill_it(mem: Memory, purpose: str, max_tokens: int) -> None:
    tell(mem, 25)
    for place in PLACES[:4]:
        for thing in THINGS[:3]:
            build = built(mem, f"What was said about the {thing} in {place}?", purpose, max_tokens=max_tokens)
            assert build.packet.long_term.episodes
            usage = build.packet.budget_report.section_usage
            assert usage["short_term_summary"] > usage["episodes"], "quotes stay the longest"


@pytest.mark.req("MP-18")
@pytest.mark.parametrize("max_tokens", [1024, 2048])
@pytest.mark.parametrize("statement", ["Kim may want to sell the boat", "They may move to Porto in the autumn, " * 3])
def test_every_planner_packet_holds_an_insight(mem: Memory, max_tokens: int, statement: str) -> None:
    tell(mem, 25)
    run = mem.run(user_id="ana", session_id="asking")
    said = run.observe("user", "Kim asked what the boat is worth.")
    run.insight("hypothesis", statement, sources=[said.id], expires_at="2027-01-01T00:00:00Z")
    for thing in THINGS[:4]:
        build = built(mem, f"What was said about the {thing}?", "planner", max_tokens=max_tokens)
        assert build.packet.insight.hypotheses
        assert statement.split(",")[0] not in built(mem, f"about the {thing}", max_tokens=max_tokens).text


@pytest.mark.parametrize("sessions", [3, 199, 300])
def test_the_latest_sessions_are_the_latest_however_many_there_are(mem: Memory, sessions: int) -> None:
    tell(mem, sessions, 2, step=timedelta(minutes=30))
    build = built(mem)
    newest = {"s0001", "s0002"}
    assert {each.session_id for each in build.pool.episodes} == newest
    assert counted(build, "sessions") == {
        "held": sessions,
        "gathered": 2,
        "not_gathered": {"count_limit": sessions - 2},
    }
    with_query = built(mem, "the boat", max_tokens=1024)
    if sessions > 10:  # of a few, none is left out
        told = counted(with_query, "sessions")
        assert told["held"] == sessions == told["gathered"] + sum(told["not_gathered"].values())


def test_asked_about_an_earlier_moment_the_latest_sessions_are_those_of_then(mem: Memory) -> None:
    tell(mem, 20)
    run = mem.run(user_id="ana", session_id="asking")
    build = run.compose("responder", now="2026-04-20T12:00:00Z")
    ends = {each.end for each in build.pool.episodes}
    assert ends
    assert max(ends) <= "2026-04-20T12:00:00Z"


def test_every_turn_is_gathered_or_counted_by_reason(mem: Memory) -> None:
    tell(mem, 40)
    total = 40 * 8
    for query, cues in (
        ("the boat in Berlin", None),
        ("zebra", None),
        ("", None),
        ("boat", {"time_range": {"start": "2026-04-20T00:00:00Z"}}),
        ("boat", {"entities": ["Lisbon"]}),
        ("", {"entities": ["Lisbon"], "time_range": {"start": "2026-04-20T00:00:00Z"}}),
        ("", {"entities": ["Lisbon"], "soft": True}),
    ):
        told = counted(built(mem, query, cues=cues, max_tokens=512), "turns")
        assert told["held"] == total == told["gathered"] + sum(told["not_gathered"].values())
        assert min(told["not_gathered"].values()) > 0
    for query, reason in (("zebra", "no_match"), ("", "no_query")):
        told = counted(built(mem, query), "turns")
        assert told["gathered"] == 128, "the newest of the user's own"
        assert told["not_gathered"] == {reason: total - 128}
    told = counted(built(mem, "the boat in Berlin", max_tokens=4096), "turns")
    assert told["gathered"] >= 100
    assert told["not_gathered"]["count_limit"] > 0


def test_what_this_session_and_the_stores_hold_besides_is_counted(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="asking", agent_id="one")
    for at in range(9):
        run.observe("user", f"Remark {at} about the harbor.")
    for at in range(5):
        run.observe_tool("look", args={"at": at}, content=f"result {at}")
    said = run.observe("user", "That is all.")
    run.insight("hypothesis", "the harbor may freeze", sources=[said.id], expires_at="2027-01-01T00:00:00Z")
    other = mem.run(user_id="ana", session_id="asking", agent_id="two")
    other.insight("hypothesis", "another agent's guess", sources=[said.id], expires_at="2027-01-01T00:00:00Z")
    build = run.compose("planner", now=NOW)
    assert audit(build.pool, build.packet) == []
    assert counted(build, "window") == {"held": 15, "gathered": 5, "not_gathered": {"count_limit": 10}}
    assert counted(build, "tools") == {"held": 5, "gathered": 3, "not_gathered": {"count_limit": 2}}
    assert counted(build, "insights") == {"held": 2, "gathered": 1, "not_gathered": {"scope": 1}}
    assert "another agent" not in build.packet_bytes.decode()


def test_a_store_with_nothing_names_nothing(mem: Memory) -> None:
    assert built(mem, "anything").packet.explain.filters["not_gathered"] == {}


def test_a_number_that_is_not_known_is_told_so() -> None:
    counts = NotGathered.of("tools", 2, 3, {"count_limit": -1})
    assert counts.to_report() == {
        "held": "unknown number",
        "gathered": 3,
        "not_gathered": {"count_limit": "unknown number"},
    }


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (NotGathered(kind="turns", held=5, gathered=0, reasons={"no_match": 4}), "5 held"),
        (NotGathered(kind="turns", held=4, gathered=1, reasons={"no_match": 3}), "counted as gathered"),
        (NotGathered(kind="turns", held=4, gathered=0, reasons={"whim": 4}), "whim"),
        (NotGathered(kind="turns", held=None, gathered=0, reasons={"no_match": 4}), "unknown number"),
    ],
)
def test_the_audit_sees_counts_that_do_not_add_up(mem: Memory, wrong: NotGathered, says: str) -> None:
    build = built(mem, "anything")
    pool = make_pool(not_gathered=[wrong])
    assert any(says in fault for fault in audit(pool, build.packet))
