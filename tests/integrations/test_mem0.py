"""One suite for mem0's calls: our facade, and mem0 itself (offline: raw memories, hashed vectors, no model)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mem0_room import mem0_itself, needs_mem0, texts

import muniment
from muniment.integrations.mem0 import AsyncMemory, Memory
from planted_model import PlantedModel

ANA = {"filters": {"user_id": "ana"}}


@pytest.fixture(params=["muniment", pytest.param("mem0", marks=needs_mem0)])
def memory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "mem0":
        with mem0_itself(tmp_path, monkeypatch) as made:
            yield made
    else:
        with muniment.open(tmp_path / "agent.db") as mem:
            yield Memory(mem)


def test_adding(memory: Any) -> None:
    said = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "I moved to Berlin.", "name": "Ana"},
        {"role": "assistant", "content": "How nice."},
    ]
    answer = memory.add(said, user_id="ana", infer=False)
    assert [{key: value for key, value in each.items() if key != "id"} for each in answer["results"]] == [
        {"memory": "I moved to Berlin.", "event": "ADD", "actor_id": "Ana", "role": "user"},
        {"memory": "How nice.", "event": "ADD", "actor_id": None, "role": "assistant"},
    ]
    assert len({each["id"] for each in answer["results"]}) == 2


@pytest.mark.parametrize("given", ["I like tea.", {"role": "user", "content": "I like tea."}])
def test_adding_one_thing(memory: Any, given: Any) -> None:
    assert texts(memory.add(given, user_id="ana", infer=False)) == ["I like tea."]


def test_getting(memory: Any) -> None:
    id_ = memory.add("I like tea.", user_id="ana", infer=False, metadata={"topic": "food"})["results"][0]["id"]
    got = memory.get(id_)
    assert {"id", "memory", "hash", "metadata", "score", "created_at", "updated_at", "user_id", "role"} <= set(got)
    assert (got["id"], got["memory"], got["metadata"], got["user_id"]) == (id_, "I like tea.", {"topic": "food"}, "ana")
    assert memory.get("00000000-0000-0000-0000-000000000000") is None


def test_getting_all(memory: Any) -> None:
    for number in range(5):
        memory.add(f"thing number {number}", user_id="ana", infer=False)
    memory.add("not hers", user_id="ben", infer=False)
    assert sorted(texts(memory.get_all(**ANA))) == [f"thing number {number}" for number in range(5)]
    assert len(texts(memory.get_all(**ANA, top_k=2))) == 2
    assert texts(memory.get_all(filters={"user_id": "nobody"})) == []
    with pytest.raises(ValueError, match="user_id"):
        memory.get_all()


def test_searching(memory: Any) -> None:
    for text in ("I moved to Berlin in May", "my cat is called Toby", "I play the guitar"):
        memory.add(text, user_id="ana", infer=False)
    memory.add("my dog is called Toby", user_id="ben", infer=False)
    found = memory.search("the cat called Toby", **ANA)["results"]
    assert found[0]["memory"] == "my cat is called Toby"
    assert isinstance(found[0]["score"], float)
    assert all(each["user_id"] == "ana" for each in found)
    assert len(memory.search("cat Berlin guitar", **ANA, top_k=1)["results"]) == 1
    with pytest.raises(ValueError, match="user_id"):
        memory.search("cat")


def test_scopes_within_a_user(memory: Any) -> None:
    memory.add("tea in the first run", user_id="ana", run_id="r1", agent_id="cook", infer=False)
    memory.add("tea in the second run", user_id="ana", run_id="r2", infer=False)
    assert texts(memory.search("tea run", filters={"user_id": "ana", "run_id": "r1"})) == ["tea in the first run"]
    assert texts(memory.get_all(filters={"user_id": "ana", "agent_id": "cook"})) == ["tea in the first run"]
    found = memory.get_all(filters={"user_id": "ana", "run_id": "r1"})["results"][0]
    assert (found["run_id"], found["agent_id"]) == ("r1", "cook")
    assert "run_id" not in memory.get(memory.add("tea", user_id="ana", infer=False)["results"][0]["id"])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"kind": "a"}, {"one", "three"}),
        ({"n": {"gt": 1}}, {"two", "three"}),
        ({"n": {"gte": 1, "lt": 3}}, {"one", "two"}),
        ({"kind": {"in": ["b", "c"]}}, {"two"}),
        ({"kind": {"ne": "a"}}, {"two"}),
        ({"OR": [{"n": 1}, {"n": 3}]}, {"one", "three"}),
        ({"kind": "*"}, {"one", "two", "three"}),
    ],
)
def test_filters(memory: Any, wanted: dict[str, Any], expected: set[str]) -> None:
    for number, (name, kind) in enumerate([("one", "a"), ("two", "b"), ("three", "a")], 1):
        memory.add(f"word {name}", user_id="ana", infer=False, metadata={"kind": kind, "n": number})
    found = memory.search("word one two three", filters={"user_id": "ana", **wanted}, threshold=0.0)
    assert {text.removeprefix("word ") for text in texts(found)} == expected


def test_updating(memory: Any) -> None:
    id_ = memory.add("I live in Berlin", user_id="ana", infer=False, metadata={"a": 1})["results"][0]["id"]
    before = memory.get(id_)
    assert memory.update(id_, "I live in Hamburg")["message"] == "Memory updated successfully!"
    after = memory.get(id_)
    assert (after["id"], after["memory"]) == (id_, "I live in Hamburg")
    assert (after["created_at"], after["metadata"]) == (before["created_at"], {"a": 1})
    assert after["updated_at"] >= before["updated_at"]
    assert texts(memory.get_all(**ANA)) == ["I live in Hamburg"]
    assert texts(memory.search("live Berlin Hamburg", **ANA)) == ["I live in Hamburg"]
    with pytest.raises(ValueError, match="At least one"):
        memory.update(id_)
    with pytest.raises(ValueError, match="not found"):
        memory.update("00000000-0000-0000-0000-000000000000", "x")


def test_history_tells_what_it_was(memory: Any) -> None:
    id_ = memory.add("one", user_id="ana", infer=False)["results"][0]["id"]
    memory.update(id_, "two")
    memory.update(id_, "three")
    rows = memory.history(id_)
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in rows] == [
        ("ADD", None, "one"),
        ("UPDATE", "one", "two"),
        ("UPDATE", "two", "three"),
    ]
    assert all(row["memory_id"] == id_ and row["is_deleted"] is False for row in rows)
    assert {"id", "created_at", "updated_at", "actor_id", "role"} <= set(rows[0])
    assert memory.history("00000000-0000-0000-0000-000000000000") == []


def test_deleting(memory: Any) -> None:
    id_ = memory.add("I like tea", user_id="ana", infer=False)["results"][0]["id"]
    memory.add("I like milk", user_id="ana", infer=False)
    assert memory.delete(id_)["message"] == "Memory deleted successfully!"
    assert memory.get(id_) is None
    assert texts(memory.get_all(**ANA)) == ["I like milk"]
    assert "I like tea" not in texts(memory.search("tea", **ANA))
    assert memory.history(id_)[-1]["event"] == "DELETE"
    assert memory.history(id_)[-1]["is_deleted"] is True
    with pytest.raises(ValueError, match="not found"):
        memory.delete(id_)


def test_deleting_all(memory: Any) -> None:
    for user, run in (("ana", "r1"), ("ana", "r2"), ("ben", "r1")):
        memory.add(f"{user} in {run}", user_id=user, run_id=run, infer=False)
    memory.delete_all(user_id="ana", run_id="r1")
    assert texts(memory.get_all(**ANA)) == ["ana in r2"]
    memory.delete_all(user_id="ana")
    assert texts(memory.get_all(**ANA)) == []
    assert texts(memory.get_all(filters={"user_id": "ben"})) == ["ben in r1"]
    with pytest.raises(ValueError, match="At least one"):
        memory.delete_all()


def test_what_has_expired_is_hidden(memory: Any) -> None:
    today = datetime.now(UTC).date()
    memory.add("old news", user_id="ana", infer=False, expiration_date=(today - timedelta(days=2)).isoformat())
    memory.add("good news", user_id="ana", infer=False, expiration_date=(today + timedelta(days=2)).isoformat())
    assert texts(memory.get_all(**ANA)) == ["good news"]
    assert sorted(texts(memory.get_all(**ANA, show_expired=True))) == ["good news", "old news"]
    assert texts(memory.search("news", **ANA)) == ["good news"]


# -- what only ours does ------------------------------------------------------------------------------


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def test_what_older_versions_took_is_refused_as_mem0_does(mem: muniment.Memory) -> None:
    memory = Memory(mem)
    memory.add("I like tea", user_id="ana")
    with pytest.raises(ValueError, match="Use filters="):
        memory.search("tea", user_id="ana")
    with pytest.raises(ValueError, match="limit") as refused:
        memory.get_all(filters={"user_id": "ana"}, limit=1)
    assert "top_k" in refused.value.hint


def test_what_was_added_is_composed_with_its_evidence(mem: muniment.Memory) -> None:
    memory = Memory(mem)
    answer = memory.add("I live in Berlin.", user_id="ana")
    assert [(fact["key"], fact["value"]) for fact in answer["facts"]] == [("user.location", "Berlin")]
    build = mem.run(user_id="ana", session_id="later").compose("responder", query="Where do I live?")
    assert "Berlin" in build.text
    assert answer["results"][0]["id"] in build.packet_bytes.decode()


@pytest.mark.parametrize(("infer", "cities"), [(True, ["Hamburg"]), (False, [])])
def test_an_update_is_looked_at_as_the_memory_was(infer: bool, cities: list[str]) -> None:
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        id_ = memory.add("I live in Berlin.", user_id="ana", infer=infer)["results"][0]["id"]
        memory.update(id_, metadata={"topic": "home"})
        memory.update(id_, "I live in Hamburg now.")
        assert [fact.value for fact in mem.run(user_id="ana").facts()] == cities
        assert memory.get(id_)["metadata"] == {"topic": "home"}


def test_a_model_may_propose(mem: muniment.Memory) -> None:
    model = PlantedModel(lambda _text: [("user.pet", "Toby", "Toby sleeps")])
    answer = Memory(mem, model=model).add("Toby sleeps all day.", user_id="ana")
    assert [fact["key"] for fact in answer["facts"]] == ["user.pet"]


def test_a_delete_leaves_nothing_but_a_receipt(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with muniment.open(path) as mem:
        memory = Memory(mem)
        id_ = memory.add("my number is xyzzy-plugh", user_id="ana")["results"][0]["id"]
        memory.update(id_, "my number is frobozz-magic")
        receipt = memory.delete(id_)["receipt_id"]
        row = memory.history(id_)[-1]
        assert (row["old_memory"], row["new_memory"], row["receipt_id"]) == (None, None, receipt)
        assert mem.verify().ok
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"plugh" not in held
    assert b"frobozz" not in held


def test_an_agent_without_a_user_has_a_ledger_of_its_own(mem: muniment.Memory) -> None:
    memory = Memory(mem)
    memory.add("the agent's own", agent_id="cook", infer=False)
    memory.add("the run's own", run_id="r1", infer=False)
    memory.add("ana's", user_id="ana", agent_id="cook", infer=False)
    found = memory.get_all(filters={"agent_id": "cook"})["results"]
    assert [(each["memory"], each["agent_id"], "user_id" in each) for each in found] == [
        ("the agent's own", "cook", False)
    ]
    assert texts(memory.search("the run", filters={"run_id": "r1"})) == ["the run's own"]
    assert texts(memory.get_all(filters={"user_id": "cook"})) == []
    memory.delete_all(agent_id="cook")
    assert texts(memory.get_all(filters={"agent_id": "cook"})) == []
    assert texts(memory.get_all(**ANA)) == ["ana's"]


def test_the_same_with_await(mem: muniment.Memory) -> None:
    async def work() -> None:
        memory = AsyncMemory(mem)
        id_ = (await memory.add("I live in Leeds", user_id="ana"))["results"][0]["id"]
        assert (await memory.get(id_))["memory"] == "I live in Leeds"
        assert texts(await memory.search("Leeds", **ANA)) == ["I live in Leeds", "user.location: Leeds"]
        await memory.delete(id_)
        assert await memory.get(id_) is None

    asyncio.run(work())
