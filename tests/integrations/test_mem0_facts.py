"""What is known is found by mem0's search: facts beside what was said, and all of them where a question asks so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mem0_room import texts

import muniment
from muniment.integrations.mem0 import Memory
from muniment.integrations.mem0.exceptions import MemoryNotFoundError, UnsupportedError
from muniment.integrations.mem0.profile import read_question

ANA = {"filters": {"user_id": "ana"}}
SAID = {
    "I live in Berlin.": {},
    "I like ramen.": {"user.likes": "ramen"},
    "My name is Ana and I work as a nurse.": {"user.job": "nurse"},
    "I hate coriander.": {"user.dislikes": "coriander"},
    "My favourite colour is green.": {"user.favorite.color": "green"},
    "We talked about the weather today.": {},
}
"""What Ana says, with what the caller remembers of it besides what the rules find."""


def add(memory: Memory, said: Any, facts: dict[str, Any], **where: Any) -> None:
    (added,) = memory.add(said, **where)["results"]
    run = memory.memories.mem.run(user_id=where["user_id"])
    for key, value in facts.items():
        run.remember(key, value, sources=[added["id"]], confidence=0.9)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with muniment.open(":memory:") as mem:
        made = Memory(mem)
        for text, facts in SAID.items():
            add(made, text, facts, user_id="ana")
        made.add("I live in Oslo and I like skiing.", user_id="ben")
        yield made


def keys(answer: dict[str, Any]) -> list[str]:
    told = [(each["metadata"] or {}).get("muniment") for each in answer["results"]]
    return [each["key"] for each in told if each is not None]


@pytest.mark.soak
@pytest.mark.parametrize(
    "question",
    [
        "What do you know about me?", "what do you know about me", "Tell me about the user", "Tell me about myself",
        "Who am I?", "Describe the user", "What have you learned about me so far?", "Summarize the user's profile",
        "user profile", "Everything you remember about me, please", "What do you know about Ana?", "Who is Ana?",
        "What information do you have about her?", "give me the facts about this user", "Was weißt du über mich?",
        "Que sais-tu sur moi ?", "¿Qué sabes sobre mí?",
    ],
)  # fmt: skip
def test_a_question_for_everything_gives_the_facts(memory: Memory, question: str) -> None:
    found = memory.search(question, **ANA)
    assert {"user.location", "user.likes", "user.name", "user.job", "user.dislikes"} <= set(keys(found))
    assert "We talked about the weather today." in texts(found)  # what was said follows
    assert not any("Oslo" in text or "skiing" in text for text in texts(found))
    scores = [each["score"] for each in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@pytest.mark.parametrize(
    "question", ["list my preferences", "What are my preferences?", "the user's preferences", "Ana's tastes"]
)
def test_a_question_for_preferences_gives_those(memory: Memory, question: str) -> None:
    found = keys(memory.search(question, **ANA, threshold=0.5))
    assert {"user.likes", "user.dislikes", "user.favorite.color"} <= set(found)
    assert not {"user.location", "user.job"} & set(found)


def test_likes_and_dislikes_are_told_apart(memory: Memory) -> None:
    assert keys(memory.search("What do I like?", **ANA))[-1] == "user.dislikes"
    assert keys(memory.search("What do I hate?", **ANA))[0] == "user.dislikes"
    assert "user.likes: ramen" in texts(memory.search("What food do I like?", **ANA))


@pytest.mark.parametrize(
    "question",
    ["Tell me about the weather", "what do you know about Berlin?", "who is the president", "tea", "my cat", "about",
     "Where do I live?", "what " * 200],
)  # fmt: skip
def test_other_questions_ask_for_no_profile(question: str) -> None:
    assert read_question(question, {"ana"}) is None


def test_an_ordinary_question_ranks_facts_and_what_was_said_on_one_scale(memory: Memory) -> None:
    found = memory.search("Where do I live?", **ANA)["results"]
    assert {found[0]["memory"], found[1]["memory"]} == {"I live in Berlin.", "user.location: Berlin"}
    hits = {hit.id: hit.score for hit in memory.memories.mem.run(user_id="ana").search("Where do I live?", k=20)}
    for each in found:
        assert each["score"] == pytest.approx(hits[each["id"].partition("@")[0]])


def test_a_fact_has_the_shape_of_a_memory(memory: Memory) -> None:
    add(
        memory, {"role": "user", "content": "I drive a Volvo.", "name": "Ana"}, {"user.car": "Volvo"}, user_id="ana",
        agent_id="cook", run_id="r1", metadata={"topic": "car"}, timestamp="2026-01-01T00:00:00Z",
    )  # fmt: skip
    found = [each for each in memory.search("car Volvo", **ANA)["results"] if each["id"].startswith("fct_")]
    fact, *_ = found
    assert (fact["user_id"], fact["agent_id"], fact["run_id"], fact["actor_id"]) == ("ana", "cook", "r1", "Ana")
    assert (fact["metadata"]["topic"], fact["created_at"]) == ("car", "2026-01-01T00:00:00.000000Z")
    told = fact["metadata"]["muniment"]
    assert (told["kind"], told["value"]) == ("fact", "Volvo")
    assert told["sources"] == [fact["id"].partition("@")[2]]
    assert {"id", "memory", "hash", "metadata", "score", "created_at", "updated_at"} <= set(fact)


def test_a_filter_holds_for_facts_too(memory: Memory) -> None:
    memory.add("I own a boat.", user_id="ana", metadata={"topic": "sea"}, run_id="r9")
    sailing = {"user.likes": "sailing"}
    add(memory, "I like sailing.", sailing, user_id="ana", metadata={"topic": "sea"}, run_id="r9")
    for wanted in ({"topic": "sea"}, {"run_id": "r9"}, {"topic": {"ne": "x"}}):
        found = memory.search("What do you know about me?", filters={"user_id": "ana", **wanted})
        assert "user.likes: sailing" in texts(found)
        assert "user.location: Berlin" not in texts(found)
    assert keys(memory.search("sailing", filters={"user_id": "ana", "topic": "land"})) == []


def test_what_has_expired_takes_its_facts_along(memory: Memory) -> None:
    add(memory, "I like sailing.", {"user.likes": "sailing"}, user_id="ana", expiration_date="2000-01-01")
    assert "user.likes: sailing" not in texts(memory.search("What do you know about me?", **ANA))
    assert "user.likes: sailing" in texts(memory.search("What do you know about me?", **ANA, show_expired=True))


def test_a_fact_s_id_is_taken_by_every_call(memory: Memory) -> None:
    fact = next(each for each in memory.search("Where do I live?", **ANA)["results"] if each["id"].startswith("fct_"))
    assert memory.get(fact["id"]) == {**fact, "score": None}
    assert [(row["event"], row["new_memory"]) for row in memory.history(fact["id"])] == [
        ("ADD", "user.location: Berlin")
    ]
    with pytest.raises(UnsupportedError, match="is a fact") as refused:
        memory.update(fact["id"], "Hamburg")
    assert "sources" in refused.value.suggestion
    memory.add("I live in Hamburg now.", user_id="ana")
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in memory.history(fact["id"])][1:] == [
        ("UPDATE", "user.location: Berlin", "user.location: Hamburg")
    ]
    assert "user.location: Berlin" not in texts(memory.search("Where do I live?", **ANA))


def test_deleting_a_fact_leaves_what_was_said(memory: Memory) -> None:
    fact = next(each for each in memory.search("Where do I live?", **ANA)["results"] if each["id"].startswith("fct_"))
    source = fact["metadata"]["muniment"]["sources"][0]
    assert memory.delete(fact["id"])["receipt_id"].startswith("rcp_")
    assert memory.get(fact["id"]) is None
    assert memory.history(fact["id"])[-1]["event"] == "DELETE"
    found = memory.search("Where do I live?", **ANA)
    assert "user.location: Berlin" not in texts(found)
    assert memory.get(source)["memory"] == "I live in Berlin."
    with pytest.raises(MemoryNotFoundError):
        memory.delete(fact["id"])
    assert memory.memories.mem.verify().ok


def test_deleting_what_was_said_takes_the_facts_along(memory: Memory) -> None:
    fact = next(each for each in memory.search("Where do I live?", **ANA)["results"] if each["id"].startswith("fct_"))
    memory.delete(fact["metadata"]["muniment"]["sources"][0])
    assert memory.get(fact["id"]) is None
    assert "user.location" not in keys(memory.search("What do you know about me?", **ANA))


@pytest.mark.parametrize("memory_id", ["fct_none@evt_none", "fct_none", "@", "fct_@x", ""])
def test_an_id_of_nothing_is_of_nothing(memory: Memory, memory_id: str) -> None:
    assert memory.get(memory_id) is None
    assert memory.history(memory_id) == []
    with pytest.raises(ValueError, match="not found"):
        memory.delete(memory_id)


def test_memories_that_were_brought_along_are_memories(tmp_path: Path) -> None:
    rows = [
        {"id": "0f1e", "user_id": "ben", "memory": "Plays the cello", "created_at": "2025-03-01T09:00:00-08:00"},
        {"id": "2d3c", "user_id": "ben", "memory": "Allergic to nuts", "created_at": "2025-04-11T18:30:00-08:00",
         "metadata": {"topic": "food"}},
    ]  # fmt: skip
    (tmp_path / "memories.json").write_text(json.dumps({"results": rows}))
    ben = {"filters": {"user_id": "ben"}}
    with muniment.open(":memory:") as mem:
        mem.store.import_from("mem0", [str(tmp_path / "memories.json")])
        memory = Memory(mem)
        assert [each["id"] for each in memory.get_all(**ben)["results"]] == ["2d3c", "0f1e"]
        assert texts(memory.search("nuts", filters={"user_id": "ben", "topic": "food"})) == ["Allergic to nuts"]
        assert texts(memory.search("nuts", filters={"user_id": "ben", "topic": "home"})) == []
        memory.update("0f1e", "Plays the viola")
        assert memory.get("0f1e")["memory"] == "Plays the viola"
        memory.delete("2d3c")
        assert texts(memory.get_all(**ben)) == ["Plays the viola"]
        assert mem.verify().ok


def test_what_was_only_recorded_answers_too() -> None:
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        memory.add("I live in Berlin.", user_id="ana", infer=False)
        memory.add("I like tea.", user_id="ana", infer=False)
        assert texts(memory.search("What do you know about me?", **ANA)) == ["I like tea.", "I live in Berlin."]
        assert texts(memory.search("What do you know about me?", **ANA, top_k=1)) == ["I like tea."]
        assert texts(memory.search("What do you know about me?", filters={"user_id": "nobody"})) == []


def test_a_threshold_is_heeded_where_one_is_given(memory: Memory) -> None:
    every = memory.search("Where do I live?", **ANA)["results"]
    some = memory.search("Where do I live?", **ANA, threshold=0.1)["results"]
    assert {each["score"] >= 0.1 for each in some} == {True}
    assert len(some) == sum(each["score"] >= 0.1 for each in every) < len(every)
    told = memory.search("Where do I live?", **ANA, explain=True)["results"][0]
    assert told["why"]
    assert isinstance(told["score_details"], dict)
