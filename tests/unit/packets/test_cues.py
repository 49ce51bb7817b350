"""Cues choose what stands in a packet: with a question and without one, on quotes, episodes and facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from makers import make_episode, make_fact, make_hit, make_insight, make_line, make_pool, make_request, make_tool

import muniment
from muniment import Memory
from muniment.core.policy import ComposePolicy
from muniment.errors import InvalidInput
from muniment.packets import gather
from muniment.packets.builds import Build
from muniment.packets.compose import compose
from packet_audit import audit
from products import for_each
from strategies import CountBy

pytestmark = pytest.mark.req("TM-05")

NOW = "2026-05-01T12:00:00Z"
LAST_DAYS = {"start": "2026-04-26T12:00:00Z", "end": NOW}
LONG_AGO = {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"}


@pytest.fixture
def mem() -> Iterator[Memory]:
    with muniment.open(":memory:", policy={"memory": {"profile": {"share": 0, "responder_share": 0}}}) as opened:
        yield opened


def tell(mem: Memory) -> dict[str, str]:
    """A hundred days of talk about one house: 120 turns long ago that match best, three of late, some with labels."""
    ids: dict[str, str] = {}
    for at in range(6):
        run = mem.run(user_id="ana", session_id=f"old{at}")
        said = run.observe_many(
            [
                {
                    "role": "user",
                    "content": f"The roof of the house leaks in room {at * 20 + n}, and the roofer came with tool{n}.",
                    "ts": f"2026-01-{10 + at:02}T10:{n:02}:00Z",
                }
                for n in range(20)
            ]
        )
        ids |= {f"old{at}.{n}": entry.id for n, entry in enumerate(said)}
    run = mem.run(user_id="ana", session_id="late")
    for name, text, labels in (
        ("late.roof", "The roof of our house was repaired by Kestrel and sons.", {"tags": ["Home"]}),
        ("late.cat", "My cat Mia likes the garden.", {"entities": ["Mia"]}),
        ("late.trip", "We booked a train to Lisbon.", {"tags": ["trip"]}),
    ):
        ids[name] = run.observe("user", text, ts="2026-04-28T10:00:00Z", **labels).id
    return ids


def built(mem: Memory, query: str, cues: dict[str, Any], *, purpose: str = "responder", tokens: int = 1024) -> Build:
    run = mem.run(user_id="ana", session_id="asking")
    build = run.compose(purpose, query=query, cues=cues or None, max_tokens=tokens, now=NOW)
    assert audit(build.pool, build.packet) == []
    assert mem.replay(build.id).packet_bytes == build.packet_bytes
    return build


def quoted(build: Build) -> set[str]:
    return {each.evidence_id for each in build.packet.short_term.key_quotes or ()}


def times(build: Build) -> set[str]:
    """When everything was said that the packet cites."""
    return {each.ts or "" for each in build.packet.citations}


# -- time -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["Who repaired the roof of the house?", ""])
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
@pytest.mark.parametrize("tokens", [256, 1024])
def test_a_time_range_is_a_wall(mem: Memory, query: str, purpose: str, tokens: int) -> None:
    ids = tell(mem)
    if query:
        found = mem.run(user_id="ana").search(query, k=20)
        assert min(hit.ts for hit in found) < LAST_DAYS["start"], "the old ones match as well, and are many"
    inside = built(mem, query, {"time_range": LAST_DAYS}, purpose=purpose, tokens=tokens)
    assert ids["late.roof"] in quoted(inside)
    assert min(times(inside)) >= LAST_DAYS["start"]
    before = built(mem, query, {"time_range": LONG_AGO}, purpose=purpose, tokens=tokens)
    assert quoted(before), "the search looks inside the range"
    assert max(times(before)) <= LONG_AGO["end"]


@pytest.mark.parametrize("given", [{"start": LAST_DAYS["start"]}, {"end": "2026-01-10T10:05:00Z"}])
def test_a_range_may_be_open_at_one_end_and_its_ends_belong_to_it(mem: Memory, given: dict[str, str]) -> None:
    ids = tell(mem)
    build = built(mem, "roof of the house", {"time_range": given})
    inside = {ids["late.roof"]} if "start" in given else {ids[f"old0.{n}"] for n in range(6)}
    assert inside <= quoted(build)
    assert len(quoted(build) - inside) == 0 or "start" in given


def test_a_soft_range_lifts_and_keeps_nothing_out(mem: Memory) -> None:
    ids = tell(mem)
    soft = built(mem, "roof of the house", {"time_range": LAST_DAYS, "soft": True}, tokens=512)
    assert ids["late.roof"] in quoted(soft)
    assert min(times(soft)) < LAST_DAYS["start"]
    first = next(line for line in soft.packet.explain.selected if line.startswith("quote:"))
    assert ids["late.roof"] in first or ids["late.cat"] in first or ids["late.trip"] in first
    old = built(mem, "roof of the house", {"time_range": LONG_AGO, "soft": True}, tokens=512)
    lifted = [each for each in times(old) if each and each < LAST_DAYS["start"]]
    assert len(lifted) >= len(list(times(old))) - 2, "what is lifted comes first, and only the last gap is left"


@pytest.mark.req("MP-11")
def test_a_match_does_not_open_the_wall_for_an_episode(mem: Memory) -> None:
    pool = make_pool(
        episodes=[
            make_episode("old", "2026-01-05T00:00:00Z", make_line("a", "We saw the roof."), score=0.9, tags=("trip",)),
            make_episode("new", "2026-04-29T00:00:00Z", make_line("b", "We saw the sea."), score=0.1),
        ]
    )
    request = make_request(cues={"time_range": LAST_DAYS, "tags": ["trip"]})
    made = compose(request, pool, ComposePolicy(), CountBy(), "d").packet
    assert [each.episode_id for each in made.long_term.episodes] == ["new"]
    assert {each.item: each.reason for each in made.explain.omitted} == {"episode:old": "out_of_window"}


def test_the_wall_stands_before_every_section_that_has_a_time() -> None:
    early, late = "2026-01-05T00:00:00Z", "2026-04-29T00:00:00Z"
    pool = make_pool(
        hits=[make_hit("q1", "a red house", ts=early), make_hit("q2", "a blue boat", ts=late)],
        window=[make_hit("w1", "old words", ts=early).turn, make_hit("w2", "new deeds", ts=late).turn],
        summary=[make_line("s1", "Early on it rained.", ts=early), make_line("s2", "Later it snowed.", ts=late)],
        tools=[make_tool("t1", "first result", ts=early), make_tool("t2", "second answer", ts=late)],
        facts=[
            make_fact("f1", "a", "ended", validity={"valid_from": early, "valid_to": "2026-04-01T00:00:00Z"}),
            make_fact("f2", "b", "still so").model_copy(update={"since": early}),
            make_fact("f3", "c", "since lately").model_copy(update={"since": late}),
        ],
        insights=[make_insight("i1", "a guess made in April")],
    )
    late_only = compose(make_request(cues={"time_range": LAST_DAYS}), pool, ComposePolicy(), CountBy(), "d").packet
    reasons = {each.item: each.reason for each in late_only.explain.omitted}
    out = {"quote:q1", "turn:w1", "summary:s1", "tool:t1"}
    assert {name for name, reason in reasons.items() if reason == "out_of_window"} == out
    assert {each.fact_id for each in late_only.long_term.facts} == {"f2", "f3"}
    assert reasons["fact:f1"] == "expired"
    assert audit(pool, late_only) == []
    early_only = compose(make_request(cues={"time_range": LONG_AGO}), pool, ComposePolicy(), CountBy(), "d").packet
    reasons = {each.item: each.reason for each in early_only.explain.omitted}
    assert {name for name, reason in reasons.items() if reason == "out_of_window"} == {
        "quote:q2", "turn:w2", "summary:s2", "tool:t2", "fact:f3", "insight:i1"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cues", "path"),
    [
        ({"time_range": {"start": "last week"}}, "$.cues.time_range.start"),
        ({"time_range": LAST_DAYS, "soft": "yes"}, "$.cues.soft"),
        ({"soft": 1}, "$.cues.soft"),
        ({"time_range": {"start": NOW, "end": "2026-01-01T00:00:00Z"}}, "$.cues.time_range.end"),
    ],
)
def test_cues_that_say_nothing_sound_are_refused(mem: Memory, cues: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        built(mem, "roof", cues)
    assert caught.value.path == path


# -- tags and entities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["Tell me about the roof of the house.", ""])
@pytest.mark.parametrize(
    ("cues", "wanted"),
    [
        ({"tags": ["home"]}, "late.roof"),
        ({"tags": ["TRIP"]}, "late.trip"),
        ({"entities": ["mia"]}, "late.cat"),
        ({"entities": ["Kestrel"]}, "late.roof"),
        ({"tags": ["nobody's", "trip"]}, "late.trip"),
    ],
)
def test_tags_and_entities_choose_among_the_turns(mem: Memory, query: str, cues: dict[str, Any], wanted: str) -> None:
    """A label in any case, or for an entity its name in the text; also where the search would find other turns."""
    ids = tell(mem)
    build = built(mem, query, cues)
    assert quoted(build) == {ids[wanted]}
    counted: Any = build.packet.explain.filters["not_gathered"]["turns"]  # type: ignore[index]
    assert counted["not_gathered"]["not_cued"] == 122


@pytest.mark.req("TM-04")
def test_turns_whose_labels_are_too_many_to_read_are_told_as_unread(
    mem: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only of those whose labels were read is it known that they carry no such tag."""
    ids = tell(mem)
    whole: Any = built(mem, "roof", {"tags": ["home"]}).packet.explain.filters["not_gathered"]
    monkeypatch.setattr(gather, "LABELLED_TURNS_MAX", 100)
    build = built(mem, "roof", {"tags": ["home"]})
    part: Any = build.packet.explain.filters["not_gathered"]
    assert quoted(build) == {ids["late.roof"]}
    held = whole["turns"]["held"]
    assert part["turns"]["not_gathered"] == {"not_cued": 99, "unread": held - 100}
    assert whole["turns"]["not_gathered"] == {"not_cued": held - 1}
    sessions = part["sessions"]["not_gathered"]
    assert sessions["unread"] > 0
    assert sessions["unread"] + sessions.get("not_cued", 0) == whole["sessions"]["not_gathered"]["not_cued"]
    assert audit(build.pool, build.packet) == []


@pytest.mark.parametrize("cues", [{"tags": ["unknown"]}, {"entities": ["Nobody Atall"]}, {"tags": [" "]}])
def test_a_label_that_nothing_carries_changes_nothing(mem: Memory, cues: dict[str, Any]) -> None:
    tell(mem)
    plain, cued = built(mem, "roof of the house", {}), built(mem, "roof of the house", cues)
    assert cued.packet.short_term == plain.packet.short_term
    assert cued.packet.long_term == plain.packet.long_term


def test_soft_labels_lift(mem: Memory) -> None:
    ids = tell(mem)
    build = built(mem, "roof of the house", {"tags": ["home"], "soft": True}, tokens=256)
    first = next(line for line in build.packet.explain.selected if line.startswith("quote:"))
    assert ids["late.roof"] in first
    assert len(quoted(build)) > 1


@pytest.mark.parametrize("cues", [{"tags": ["trip"]}, {"entities": ["Lisbon"]}])
def test_labels_choose_among_the_episodes(cues: dict[str, Any]) -> None:
    pool = make_pool(
        episodes=[
            make_episode("a", "2026-04-29T00:00:00Z", make_line("a", "We saw the roof."), score=0.9),
            make_episode("b", "2024-04-29T00:00:00Z", make_line("b", "We saw Lisbon."), tags=("Trip",)),
        ]
    )
    made = compose(make_request(cues=cues), pool, ComposePolicy(), CountBy(), "d").packet
    assert [each.episode_id for each in made.long_term.episodes] == ["b"]
    assert {each.item: each.reason for each in made.explain.omitted} == {"episode:a": "not_cued"}
    assert audit(pool, made) == []
    soft = compose(make_request(cues=cues | {"soft": True}), pool, ComposePolicy(), CountBy(), "d").packet
    assert len(soft.long_term.episodes) == 2
    assert [line.split()[0] for line in soft.explain.selected] == ["episode:b", "episode:a"]


@for_each("query", ["what is there to know", ""])
@for_each("cues", [{"tags": ["boat"]}, {"entities": ["boat"]}, {"keywords": ["Boats"]}])
def test_every_cue_lifts_the_facts_that_say_it(query: str, cues: dict[str, Any]) -> None:
    facts = [make_fact(f"f{at:02}", f"user.thing{at}", f"value number {at} of many") for at in range(60)]
    pool = make_pool(facts=[*facts, make_fact("zz", "user.boat", "called Nora", confidence=0.3)])
    plain = compose(make_request(query=query), pool, ComposePolicy(), CountBy(), "d").packet
    assert "zz" not in {each.fact_id for each in plain.long_term.facts}
    cued = compose(make_request(query=query, cues=cues), pool, ComposePolicy(), CountBy(), "d").packet
    assert "zz" in {each.fact_id for each in cued.long_term.facts}
    assert any(line.startswith("fact:zz") and "cue" in line for line in cued.explain.selected)


# -- keywords -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["roof of the house", ""])
def test_a_keyword_brings_what_says_it_to_the_top(mem: Memory, query: str) -> None:
    ids = tell(mem)
    plain = built(mem, query, {}, tokens=256)
    assert not query or ids["late.trip"] not in next(
        line for line in plain.packet.explain.selected if line.startswith("quote:")
    )
    build = built(mem, query, {"keywords": ["Lisbon"]}, tokens=256)
    first = next(line for line in build.packet.explain.selected if line.startswith("quote:"))
    assert ids["late.trip"] in first


def test_what_each_cue_did_is_told(mem: Memory) -> None:
    tell(mem)
    cues = {"time_range": LAST_DAYS, "tags": ["trip"], "keywords": ["train"]}
    told: Any = built(mem, "train", cues).packet.explain.filters["cues"]
    assert told["time_range"] == "wall"
    assert told["tags"].startswith("choose")
    assert told["keywords"] == "lift"
    assert "cues" not in built(mem, "train", {}).packet.explain.filters


def test_labels_are_forgotten_with_their_turns(mem: Memory) -> None:
    ids = tell(mem)
    assert quoted(built(mem, "", {"tags": ["trip"]})) == {ids["late.trip"]}
    mem.forget(event=ids["late.trip"])
    assert ids["late.trip"] not in built(mem, "", {"tags": ["trip"]}).pool.to_bytes().decode()
