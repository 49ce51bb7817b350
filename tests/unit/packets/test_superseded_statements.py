"""What is told as outdated: the statement that a newer one of its key ends, and nothing else of its turn."""

# ruff: noqa: E501 - a table of cases reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

import muniment
from muniment.packets.builds import Build
from muniment.packets.compose.audit import audit
from muniment.packets.rendering import render
from products import for_each

NOW = "2026-06-01T12:00:00Z"


def told(
    turns: Sequence[str], facts: Mapping[str, str], query: str, *, purpose: str = "responder", sources: int = 0
) -> Build:
    """A session a turn, a month apart; the facts rest on one of the turns; asked in a session after them."""
    with muniment.open(":memory:") as mem:
        said = [
            mem.run(user_id="ana", session_id=f"s{place}").observe("user", text, ts=f"2026-0{place + 1}-01T10:00:00Z")
            for place, text in enumerate(turns)
        ]
        run = mem.run(user_id="ana", session_id="s0")
        for key, value in facts.items():
            run.remember(key, value, sources=[said[sources].id])
        build = mem.run(user_id="ana", session_id="asks").compose(purpose, query=query, now=NOW)  # type: ignore[arg-type]
        assert mem.replay(build.id).packet_bytes == build.packet_bytes
    assert audit(build.pool, build.packet) == []
    assert render(build.packet).text == build.text
    return build


def outdated_facts(build: Build) -> set[str]:
    return set(re.findall(r"(?m)^- ([\w.]+): .*\(superseded(?: by \[\d+\])?\)$", build.text))


def notes(build: Build) -> dict[str, str]:
    """Quotes by their words, each with what is noted beside it."""
    return {match[2]: match[1] or "" for match in re.finditer(r"(?m)^\[\d+\] user(?: \((.*?)\))?: (.*)$", build.text)}


PAIRS = [
    # what was said, what was said later, what is asked; the facts of the first that stand, and the one that does not
    ("I live in Lisbon and I am allergic to peanuts.", "I moved to Berlin.", "Where do I live?", {"user.allergy": "peanuts"}, ("user.location", "Lisbon"), "home"),
    ("I live in Lisbon and am allergic to peanuts.", "I live in Berlin now.", "Where do I live?", {"user.allergy": "peanuts"}, ("user.city", "Lisbon"), "home"),
    ("I work at Acme and my birthday is May 3.", "I started at Globex this week.", "Where do I work?", {"user.birthday": "05-03"}, ("user.employer", "Acme"), "employer"),
    ("My birthday is May 3 and I work for Acme.", "Actually, my birthday is on the 4th of May.", "When is my birthday?", {"user.employer": "Acme"}, ("user.birthday", "05-03"), "birthday"),
    ("I'm vegetarian, I live in Graz and I drive a Honda.", "I sold the Honda and bought a Tesla.", "What car do I drive?", {"user.diet": "vegetarian", "user.city": "Graz"}, ("user.car", "Honda"), "car"),
    ("I use a Galaxy S9 and my dog is called Rex.", "I switched to a Pixel.", "What phone do I use?", {"user.dog": "Rex"}, ("user.phone", "Galaxy S9"), "phone"),
    ("My name is Ana, I live in Turin and work for Fiat.", "I quit my job at Fiat.", "Where do I work?", {"user.name": "Ana", "user.location": "Turin"}, ("user.employer", "Fiat"), "employer"),
    ("I'm vegetarian and my sister lives in Porto.", "My sister moved to Rome.", "Where does my sister live?", {"user.diet": "vegetarian"}, ("user.sister.city", "Porto"), "sister.home"),
    ("I live in Lisbon and my sister lives in Porto.", "My sister moved to Rome.", "Where do we live?", {"user.city": "Lisbon"}, ("user.sister.city", "Porto"), "sister.home"),
    ("I live in Lisbon and my sister lives in Porto.", "I moved to Berlin.", "Where do we live?", {"user.sister.city": "Porto"}, ("user.city", "Lisbon"), "home"),
    ("My favourite colour is blue and I live in Oslo.", "My favourite colour is green now.", "What is my favourite colour?", {"user.city": "Oslo"}, ("user.favorite.colour", "blue"), "favorite.colour"),
    ("I am dating Tom and I work as a nurse.", "Tom and I broke up.", "Am I single?", {"user.job": "nurse"}, ("user.partner", "Tom"), "partner"),
    ("I am allergic to peanuts and I live in Bern.", "I'm no longer allergic to peanuts.", "What am I allergic to?", {"user.city": "Bern"}, ("user.allergy", "peanuts"), "allergy"),
    ("I'm an engineer at Acme and my manager is Helen Ortiz.", "My new manager is Tomas Bergqvist.", "Who is my manager?", {"user.employer": "Acme"}, ("user.manager", "Helen Ortiz"), "manager"),
    ("I'm 34, living in Lisbon and working for Acme.", "I no longer live in Lisbon.", "Where do I live?", {"user.employer": "Acme"}, ("user.location", "Lisbon"), "home"),
    ("I went vegan and I live in Cork.", "I eat meat again.", "What is my diet?", {"user.city": "Cork"}, ("user.diet", "vegan"), "diet"),
]  # fmt: skip


@pytest.mark.soak
@pytest.mark.req("TM-01")
@for_each(("old", "new", "query", "stands", "ended", "key"), PAIRS)
@for_each("purpose", ["responder", "planner"])
def test_one_statement_of_a_sentence_is_outdated_and_the_others_stand(
    old: str, new: str, query: str, stands: dict[str, str], ended: tuple[str, str], key: str, purpose: str
) -> None:
    build = told([old, new], {**stands, ended[0]: ended[1]}, query, purpose=purpose)
    assert outdated_facts(build) == {ended[0]}
    note = notes(build)[old]
    assert key in note
    assert not note.startswith("superseded"), "the rest of it stands"
    assert notes(build).get(new, "") == ""
    conflicts = [note for note in build.packet.explain.conflicts if note.type == "superseded_evidence"]
    for each in conflicts:
        extra = each.model_extra or {}
        assert old.encode()[extra["start"] : extra["end"]].decode() == extra["quote"]
        assert extra["quote"] != old
    assert key in [(each.model_extra or {}).get("key") for each in conflicts]


@pytest.mark.req("TM-01")
@for_each(
    ("old", "new", "query"),
    [
        ("I live in Lisbon.", "I moved to Berlin.", "Where do I live?"),
        ("Hi! I work at Acme.", "I started at Globex.", "Where do I work?"),
        ("The meeting is at 3pm.", "The meeting was moved to 4pm.", "When is the meeting?"),
        ("我住在上海。", "我搬到了杭州。", "我住在哪里？"),
        ("저는 부산에 살아요.", "저는 서울로 이사했어요.", "저는 어디에 살아요?"),
    ],
)
def test_a_turn_of_one_statement_is_outdated_as_a_whole(old: str, new: str, query: str) -> None:
    assert notes(told([old, new], {}, query))[old].startswith("superseded by [")


STANDS = [
    # nothing of the first is outdated by the second
    ("I live in Lisbon and I work at Acme.", "I still live in Lisbon and work at Acme.", "Where do I live?"),
    ("I live in Lisbon, Portugal.", "I live in Lisbon.", "Where do I live?"),
    ("I live in Lisbon.", "I moved to a bigger flat.", "Where do I live?"),
    ("I live in Lisbon.", "I moved the meeting to Friday.", "Where do I live?"),
    ("I live in Lisbon.", "My boss said the company moved to Berlin.", "Where do I live?"),
    ("I live in Lisbon.", "I heard the company moved to Berlin.", "Where do I live?"),
    ("I live in Lisbon.", "If I moved to Berlin I would miss the sea.", "Where do I live?"),
    ("I live in Lisbon.", "I want to move to Berlin.", "Where do I live?"),
    ("I live in Lisbon.", "I used to live in Berlin.", "Where do I live?"),
    ("I live in Lisbon.", "I lived in Berlin as a child.", "Where do I live?"),
    ("I live in Lisbon.", "My sister moved to Berlin.", "Where do I live?"),
    ("My sister lives in Porto.", "My brother moved to Rome.", "Where does my sister live?"),
    ("I work at Acme.", "I also work at Beta on weekends.", "Where do I work?"),
    ("I am allergic to peanuts.", "I am allergic to cats.", "What am I allergic to?"),
    ("I drive a Honda.", "My wife bought a Tesla.", "What do I drive?"),
    ("My birthday is May 3.", "My sister's birthday is June 5.", "When is my birthday?"),
    ("My birthday is May 3.", "I was born on 3 May.", "When is my birthday?"),
    ("I live in Lisbon and I have a dog.", "Do you think I should have moved to Berlin?", "Where do I live?"),
]


@pytest.mark.req("TM-01")
@for_each(("old", "new", "query"), STANDS)
def test_what_stands_is_not_told_as_outdated(old: str, new: str, query: str) -> None:
    facts = {"user.city": "Lisbon", "user.employer": "Acme", "user.birthday": "05-03", "user.allergy": "peanuts"}
    build = told([old, new], facts, query)
    assert outdated_facts(build) == set()
    assert notes(build).get(old, "") == ""
    assert not re.search(r"superseded(?! means outdated)", build.text)


@pytest.mark.req("TM-01")
def test_what_came_back_stands_and_what_was_between_does_not() -> None:
    build = told(
        ["I live in Lisbon.", "I moved to Berlin.", "I moved back to Lisbon."],
        {"user.city": "Lisbon"},
        "Where do I live?",
    )
    assert outdated_facts(build) == set()
    assert {text for text, note in notes(build).items() if note} == {"I moved to Berlin."}


@pytest.mark.req("TM-01")
def test_a_fact_that_was_said_again_since_stands() -> None:
    with muniment.open(":memory:") as mem:
        texts = ("I live in Rome and I have a cat.", "I moved to Oslo.", "I moved back to Rome.")
        run = mem.run(user_id="ana", session_id="s1")
        said = [run.observe("user", text, ts=f"2026-0{at}-01T00:00:00Z") for at, text in enumerate(texts, 1)]
        run.remember("user.city", "Rome", sources=[said[0].id, said[2].id])
        build = mem.run(user_id="ana", session_id="s2").compose("responder", query="Where do I live?", now=NOW)
        assert outdated_facts(build) == set()


@pytest.mark.req("TM-01")
def test_a_search_says_which_part() -> None:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        old = run.observe("user", "Olá! I live in Lisbon and I am allergic to peanuts.", ts="2026-01-01T00:00:00Z")
        new = run.observe("user", "I moved to Berlin.", ts="2026-02-01T00:00:00Z")
        hits = {hit.id: hit for hit in run.search("Where do I live?")}
    (part,) = hits[old.id].superseded
    assert (part.key, part.by, part.is_whole, part.quote) == ("home", new.id, False, "I live in Lisbon")
    assert hits[old.id].text.encode()[part.start : part.end].decode() == part.quote
    assert hits[new.id].text.encode()[part.by_start : part.by_end].decode() == "I moved to Berlin"
    assert hits[old.id].superseded_by is None
    assert "home: superseded by a later statement" in hits[old.id].why
    assert hits[new.id].superseded == ()


@pytest.mark.req("TM-01")
def test_what_a_question_does_not_find_outdates_what_it_finds() -> None:
    """Forgotten, it outdates nothing any more."""
    with muniment.open(":memory:") as mem:
        old = mem.run(user_id="ana", session_id="s1").observe("user", PAIRS[0][0], ts="2026-01-01T00:00:00Z")
        for number in range(4):
            mem.run(user_id="ana", session_id=f"f{number}").observe(
                "user", f"The allergic reaction number {number} was mild.", ts=f"2026-02-0{number + 1}T00:00:00Z"
            )
        new = mem.run(user_id="ana", session_id="s2").observe("user", "I moved to Berlin.", ts="2026-03-01T00:00:00Z")
        run = mem.run(user_id="ana", session_id="s3")
        (hit,) = run.search("What am I allergic to, peanuts?", k=1)
        assert [(each.key, each.by) for each in hit.superseded] == [("home", new.id)]
        mem.forget(event=new.id)
        (hit,) = run.search("What am I allergic to, peanuts?", k=1)
        assert (hit.id, hit.superseded) == (old.id, ())


@pytest.mark.req("TM-01")
def test_what_this_session_said_last_outdates_what_is_recalled() -> None:
    """The newest turns stand in no hit of a question about something else."""
    with muniment.open(":memory:") as mem:
        old = mem.run(user_id="ana", session_id="s1").observe(
            "user", "I live in Lisbon and I am allergic to peanuts.", ts="2026-01-01T00:00:00Z"
        )
        run = mem.run(user_id="ana", session_id="s2")
        run.remember("user.city", "Lisbon", sources=[old.id])
        run.observe("user", "I moved to Berlin.", ts="2026-02-01T00:00:00Z")
        build = run.compose("planner", query="What am I allergic to?", now=NOW)
        assert "(home: superseded by [" in build.text
        assert outdated_facts(build) == {"user.city"}
        assert render(build.packet).text == build.text
