"""Whose words extraction reads, what it takes back, and when a fact was said (MP-06, MP-07, MP-17)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.memory._fact_records import Candidate
from muniment.memory.candidates import Proposed, propose
from muniment.memory.extracting import retract_old_facts
from muniment.memory.facts import request_fact
from products import for_each

Counts = Callable[[Memory], dict[str, int]]
Maker = Callable[..., Memory]

MARCH, JUNE, JULY = "2025-03-02T10:00:00Z", "2025-06-08T10:00:00Z", "2025-07-01T00:00:00Z"


def values(run: Run) -> list[object]:
    return [fact.value for fact in run.facts()]


# -- who speaks ---------------------------------------------------------------------------------------


@pytest.mark.req("MP-17")
@pytest.mark.parametrize(
    ("user_id", "speaker"),
    [
        ("u-123", "Ana"),
        ("ana@example.org", "Ana"),
        ("ana@example.org", "Ana Lopez"),
        ("me", "Bob"),
        ("user", "Bob"),
        ("ana", None),
        ("ana", "user"),
        ("ana", "User"),
        ("ana", "human"),
        ("ana", "Ana Lopez"),
        ("ana-lopez", "Ana"),
        ("jdoe", "John Doe"),
        ("李静", "李静"),
    ],
)
def test_the_only_voice_of_a_session_is_the_users(mem: Memory, user_id: str, speaker: str | None) -> None:
    run = mem.run(user_id=user_id)
    run.observe("user", "I live in Rome.", speaker=speaker)
    assert [found.value for found in run.extract()] == values(run) == ["Rome"]
    assert run.memory.unheard() == []


@pytest.mark.req("MP-17")
@pytest.mark.parametrize("user_id", ["u-123", "me", "user", "someone@example.org"])
def test_of_several_names_none_is_taken_for_the_users(any_mem: Memory, user_id: str) -> None:
    run = any_mem.run(user_id=user_id)
    run.observe("user", "I live in Rome.", speaker="Ana")
    run.observe("user", "I live in Oslo.", speaker="Bob")
    run.observe("user", "I like tea.", speaker="Bob")
    assert run.extract() == []
    told = [(each.speaker, each.messages) for each in run.memory.unheard()]
    assert told == [("Ana", 1), ("Bob", 2)]
    assert all("several" in each.why for each in run.memory.unheard())


def test_beside_words_without_a_name_a_name_is_another_persons(mem: Memory) -> None:
    run = mem.run(user_id="u-123")
    run.observe("user", "I live in Rome.")
    run.observe("user", "I live in Oslo.", speaker="Bob")
    run.extract()
    assert values(run) == ["Rome"]
    assert [each.speaker for each in run.memory.unheard()] == ["Bob"]


def test_a_user_who_goes_by_a_name_is_heard_by_that_name_alone(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    run.observe("user", "I live in Oslo.", speaker="Bob")
    run.observe("assistant", "I live in a server.", speaker="Bot")
    assert run.extract() == []
    (told,) = run.memory.unheard()
    assert (told.speaker, told.messages) == ("Bob", 1)
    assert "another name" in told.why


def test_a_known_name_chooses_among_several(mem: Memory) -> None:
    run = mem.run(user_id="u-123")
    said = run.observe("user", "I live in Rome.", speaker="Ana Lopez")
    run.observe("user", "I live in Oslo.", speaker="Bob")
    run.remember("user.name", "Ana", sources=[said.id])
    run.extract()
    assert [fact.value for fact in run.facts("user.location")] == ["Rome"]
    assert [each.speaker for each in run.memory.unheard()] == ["Bob"]
    other = mem.run(user_id="u-123")
    other.observe("user", "I live in Oslo.", speaker="Bob")
    assert other.extract() == []


def test_who_states_a_name_is_heard_by_the_one_they_go_by_too(mem: Memory) -> None:
    run = mem.run(user_id="u-123")
    run.observe("user", "My name is Christopher.", speaker="Kit")
    first = run.extract()
    run.observe("user", "I live in Rome.", speaker="Kit")
    assert run.extract()[:1] == first
    assert [fact.value for fact in run.facts("user.location")] == ["Rome"]


def test_sessions_are_judged_each_by_itself(mem: Memory) -> None:
    for session, speakers in (("alone", ["Ana"]), ("meeting", ["Ana", "Bob"])):
        run = mem.run(user_id="u-123", session_id=session)
        ids = [run.observe("user", "I live in Rome.", speaker=speaker).id for speaker in speakers]
        assert len(run.extract(ids)) == (1 if session == "alone" else 0)


# -- what is taken back -------------------------------------------------------------------------------

TAKEN_BACK = [
    ("I live in Rome.", "I don't live in Rome anymore.", []),
    ("I live in Rome.", "We moved to Portland last week!", []),
    ("I live in Rome.", "I no longer live in Rome. I live in Oslo now.", []),
    ("I live in Rome.", "I used to live in Rome, did I tell you?", []),
    ("I live in Rome.", "So we've just moved out of the flat.\n\nWhat do I do with the keys?", []),
    ("I live in Rome.", "I'm moving to Oslo. I live in Oslo now.", ["Oslo"]),
    ("I live in Portland, Oregon.", "I moved out of Portland.", []),
    ("My name is Ana Lopez.", "I changed my name when I married.", []),
    ("My name is Ana Lopez.", "By the way, my name isn't Ana Lopez.", []),
]


@pytest.mark.req("MP-06", "MP-07", "MP-17")
@for_each("said, later, left", TAKEN_BACK)
def test_what_is_taken_back_is_told_no_more(mem: Memory, said: str, later: str, left: list[str]) -> None:
    first = mem.run(user_id=(said + later).replace("\n", " "), session_id="a")
    first.observe("user", said, ts=MARCH)
    (old,) = first.extract()
    second = mem.run(user_id=(said + later).replace("\n", " "), session_id="b")
    second.observe("user", later, ts=JUNE)
    found = second.extract()
    assert found
    assert all(each.quote and each.quote in later for each in found)
    asking = mem.run(user_id=(said + later).replace("\n", " "), session_id="q")
    assert values(asking) == left
    assert [fact.value for fact in asking.facts(at="2025-04-01T00:00:00Z")] == [old.value]
    assert all(hit.id != old.fact_id for hit in asking.search(later, now=JULY))
    assert second.extract() == found


@pytest.mark.req("MP-17")
@for_each(
    "later",
    [
        "If I moved to Oslo, what would it cost?",
        "He doesn't live in Rome anymore.",
        "They moved the meeting to Oslo.",
        "I live in hope.",
        "My dog's name was Rex.",
    ],
)
def test_what_ends_nothing_leaves_facts_as_they_are(mem: Memory, later: str) -> None:
    run = mem.run(user_id=later)
    run.observe("user", "My name is Ana. I live in Rome.", ts=MARCH)
    run.extract()
    before = run.facts(include_all=True)
    assert len(before) == 2
    said = run.observe("user", later, ts=JUNE)
    assert run.extract([said.id]) == []
    assert run.facts(include_all=True) == before


@pytest.mark.req("MP-17")
def test_rules_end_only_what_rules_found(make: Maker) -> None:
    """What a caller remembered, and what a person decided on, is theirs to correct."""
    mem = make(policy={"memory": {"promotion": {"automatic": False}}})
    for user_id in ("caller", "person"):
        run = mem.run(user_id=user_id)
        said = run.observe("user", "I live in Rome.", ts=MARCH)
        if user_id == "caller":
            run.remember("user.location", "Rome", sources=[said.id])
        else:
            (candidate,) = run.extract()
            run.memory.decide(candidate.candidate_id, True)
        assert run.extract([run.observe("user", "I don't live in Rome anymore.", ts=JUNE).id]) == []
        assert values(run) == ["Rome"]


@pytest.mark.req("MP-07", "MP-16")
def test_the_end_is_evidence_like_any_other(any_mem: Memory) -> None:
    run = any_mem.run(user_id="bob")
    said = run.observe("user", "I live in Rome.", ts=MARCH)
    back = run.observe("user", "I don't live in Rome anymore.", ts=JUNE)
    told, end = run.extract()
    assert (told.fact_id, told.valid_to) == (end.fact_id, None)
    assert (end.quote, end.sources, end.valid_to) == (
        "I don't live in Rome anymore",
        (back.id,),
        "2025-06-08T09:59:59.999999Z",
    )
    assert "held until" in end.explanation
    (fact,) = run.facts(include_all=True)
    assert fact.sources == (said.id, back.id)
    assert "Facts" not in run.compose("responder", query="Where does he live?", now=JULY).text
    assert any_mem.store.rebuild().repaired == ()
    any_mem.forget(event=back.id)
    assert values(run) == ["Rome"]
    assert any_mem.store.rebuild().repaired == ()


def test_texts_are_read_in_the_order_of_their_times(mem: Memory) -> None:
    run = mem.run(user_id="bob")
    back = run.observe("user", "I don't live in Rome anymore.", ts=JUNE)
    again = run.observe("user", "I live in Rome.", ts=JULY)
    said = run.observe("user", "I live in Rome.", ts=MARCH)
    found = run.extract([back.id, again.id, said.id])
    assert [each.sources for each in found] == [(back.id,), (again.id,), (said.id,)]
    ended, standing = run.memory.fact_history("user.location")
    assert (ended.status, standing.status) == ("deprecated", "active")
    assert standing.sources == (again.id,)


def test_what_was_said_again_since_is_not_taken_back_by_older_words(mem: Memory) -> None:
    run = mem.run(user_id="bob")
    for ts in (MARCH, JULY):
        run.extract([run.observe("user", "I live in Rome.", ts=ts).id])
    assert run.extract([run.observe("user", "I don't live in Rome anymore.", ts=JUNE).id]) == []
    assert values(run) == ["Rome"]


def test_words_of_the_first_instant_take_back_too(mem: Memory) -> None:
    run = mem.run(user_id="bob")
    for text in ("I live in Rome.", "I don't live in Rome anymore."):
        run.observe("user", text, ts="0001-01-01T00:00:00Z")
    run.extract()
    assert values(run) == []


# -- what older rules found ---------------------------------------------------------------------------


@pytest.mark.req("MP-06", "MP-17")
def test_facts_that_only_older_rules_found_are_retracted(any_mem: Memory) -> None:
    run = any_mem.run(user_id="bob")
    said = run.observe("user", "My name is Bob. I'm on April, he has a dog and works hard.")

    def find(key: str, value: str, *, confidence: float = 0.9) -> Candidate:
        request = request_fact(key=key, value=value, sources=[said.id], confidence=confidence, quote="on April")
        return propose(run._writer(), Proposed(request, "patterns", None))

    find("user.name", "Bob")  # found by today's rules too
    find("user.medication", "April")
    find("user.job", "hard worker")
    run.remember("user.job", "hard worker", sources=[said.id])
    doubted = find("user.pet", "dog", confidence=0.2)
    run.memory.decide(doubted.candidate_id, True)
    run.remember("user.city", "Rome", sources=[said.id])
    assert retract_old_facts(run._writer()) == 1
    assert retract_old_facts(run._writer()) == 0
    found = {fact.fact_key: fact.status for fact in run.facts(include_all=True)}
    assert found.pop("user.medication") == "deprecated"
    assert set(found) == {"user.name", "user.job", "user.pet", "user.city"}
    assert set(found.values()) == {"active"}
    assert any_mem.verify().ok
    assert any_mem.store.rebuild().repaired == ()


# -- which messages are read --------------------------------------------------------------------------


def test_a_new_run_reads_its_session(mem: Memory) -> None:
    mem.run(user_id="bob", session_id="s1").observe("user", "I live in Rome.")
    mem.run(user_id="bob", session_id="s2").observe("user", "My name is Bob.")
    again = mem.run(user_id="bob", session_id="s1")
    assert [each.value for each in again.extract()] == ["Rome"]
    assert values(again) == ["Rome"]
    again.observe("assistant", "A nice city.")
    assert again.extract() == [], "what was said in it is what it reads"


# -- when it was said ---------------------------------------------------------------------------------


@pytest.mark.req("MP-06")
def test_a_fact_is_dated_by_when_it_was_said(any_mem: Memory) -> None:
    run = any_mem.run(user_id="bob")
    said = run.observe("user", "I live in Rome.", ts=MARCH)
    run.extract()
    (hit,) = [hit for hit in run.search("Where does he live? Rome") if hit.kind == "fact"]
    assert hit.ts == said.ts
    build = run.compose("responder", query="Where does he live?", now=JULY)
    (candidate,) = build.pool.facts
    assert candidate.since == said.ts
