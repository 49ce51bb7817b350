"""Filters of mem0's calls: operators, wildcards, a memory's own fields and its metadata; answered by few rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mem0_room import count_rows, mem0_itself, needs_client, needs_mem0, served, texts

import muniment
from muniment.integrations.mem0 import Memory
from muniment.integrations.mem0.exceptions import UnsupportedError, ValidationError
from muniment.integrations.mem0.filters import matches, read_filters
from muniment.integrations.mem0.marks import fields_of, within_of

SAID: list[dict[str, Any]] = [
    {"topic": "food", "n": 1, "tags": ["a", "b"], "address": {"city": "Berlin"}, "draft": True},
    {"topic": "home", "n": 2, "tags": ["b"], "address": {"city": "Hamburg"}, "when": "2026-01-01"},
    {"topic": "Food trucks", "n": 3.5, "when": "2026-06-01T12:00:00Z"},
    {"n": 4},
]
BOTH = [
    ({"topic": "food"}, [0]),
    ({"topic": {"eq": "food"}}, [0]),
    ({"topic": {"ne": "food"}}, [1, 2]),
    ({"topic": {"in": ["food", "home"]}}, [0, 1]),
    ({"topic": ["food", "home"]}, [0, 1]),
    ({"topic": {"nin": ["food", "home"]}}, [2]),
    ({"n": {"gt": 2}}, [2, 3]),
    ({"n": {"gte": 2}}, [1, 2, 3]),
    ({"n": {"lt": 2}}, [0]),
    ({"n": {"lte": 2}}, [0, 1]),
    ({"n": {"gt": 1, "lt": 4}}, [1, 2]),
    ({"topic": {"contains": "trucks"}}, [2]),
    ({"tags": "b"}, [0, 1]),
    ({"tags": {"in": ["a", "z"]}}, [0]),
    ({"draft": True}, [0]),
    ({"address.city": "Berlin"}, [0]),
    ({"when": {"gte": "2026-05-01T00:00:00Z"}}, [2]),
    ({"AND": [{"n": {"gt": 1}}, {"topic": "home"}]}, [1]),
    ({"OR": [{"topic": "food"}, {"n": 4}]}, [0, 3]),
    ({"NOT": [{"topic": "food"}, {"n": 4}]}, [1, 2]),
    ({"topic": "home", "OR": [{"n": 2}, {"n": 3}]}, [1]),
    ({"topic": "none of them"}, []),
]  # fmt: skip
OURS = [
    ({"topic": "*"}, [0, 1, 2]),  # mem0 with Qdrant lets everything in
    ({"topic": {"contains": "Food"}}, [2]),  # whose case counts; not in Qdrant
    ({"topic": {"icontains": "FOOD"}}, [0, 2]),
    ({"tags": {"contains": "a"}}, [0]),
    ({"tags": {"nin": ["b"]}}, []),
    ({"metadata": {"topic": "home"}}, [1]),
    ({"metadata.address.city": "Hamburg"}, [1]),
    ({"metadata": {"contains": {"topic": "home"}}}, [1]),
    ({"topic": None}, [3]),
    ({"n": True}, []),
    ({"draft": 1}, []),
    ({"n": {"gt": "a"}}, []),
    ({"$or": [{"topic": "food"}, {"$and": [{"n": 4}]}]}, [0, 3]),
    ({"NOT": [{"OR": [{"n": 1}, {"n": 2}]}]}, [2, 3]),
    ({"topic": {"ne": "food", "icontains": "food"}}, [2]),
]


def fill(memory: Any) -> None:
    for number, metadata in enumerate(SAID):
        memory.add(f"word number {number}", user_id="ana", infer=False, metadata=metadata)
    memory.add("word number 9 of somebody else", user_id="ben", infer=False, metadata=SAID[0])


def numbers(answer: dict[str, Any]) -> list[int]:
    return sorted(int(text.split()[2]) for text in texts(answer))


@pytest.fixture
def ours() -> Iterator[Memory]:
    with muniment.open(":memory:") as mem:
        yield Memory(mem)


@needs_mem0
def test_mem0_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mem0_itself(tmp_path, monkeypatch) as memory:
        fill(memory)
        for wanted, expected in BOTH:
            found = memory.search("word number", filters={"user_id": "ana", **wanted}, threshold=0.0)
            assert numbers(found) == expected, wanted


def check_all(memory: Memory) -> None:
    fill(memory)
    for wanted, expected in BOTH + OURS:
        filters = {"user_id": "ana", **wanted}
        assert numbers(memory.search("word number", filters=filters)) == expected, wanted
        assert numbers(memory.get_all(filters=filters)) == expected, wanted


def test_ours(ours: Memory) -> None:
    check_all(ours)


@pytest.mark.soak
@needs_client
def test_ours_over_a_connection(tmp_path: Path) -> None:
    with served(tmp_path) as http:
        check_all(Memory(muniment.connect("http://localhost", http=http)))


def test_a_memory_s_own_fields(ours: Memory) -> None:
    said = [{"role": "user", "content": "word 0 0", "name": "Ana"}, {"role": "assistant", "content": "word 1 1"}]
    ours.add(said, user_id="ana", agent_id="cook", run_id="r1", infer=False, timestamp="2026-01-01T00:00:00Z")
    ours.add("word 2 2", user_id="ana", infer=False, timestamp="2026-02-01T00:00:00Z", expiration_date="2999-01-01")
    (third,) = [each for each in ours.get_all(filters={"user_id": "ana"})["results"] if each["memory"] == "word 2 2"]
    for wanted, expected in [
        ({"role": "assistant"}, [1]),
        ({"role": {"ne": "assistant"}}, [0, 2]),
        ({"actor_id": "Ana"}, [0]),
        ({"actor_id": "*"}, [0]),
        ({"agent_id": "cook"}, [0, 1]),
        ({"agent_id": "*"}, [0, 1]),
        ({"run_id": "r1", "role": "user"}, [0]),
        ({"created_at": {"gte": "2026-01-15"}}, [2]),
        ({"created_at": {"lt": "2026-01-15T00:00:00+02:00"}}, [0, 1]),
        ({"created_at": "2026-01-01T00:00:00Z"}, [0, 1]),
        ({"updated_at": {"gt": "2026-01-15T00:00:00Z"}}, [2]),
        ({"expiration_date": "*"}, [2]),
        ({"id": third["id"]}, [2]),
        ({"memory_id": {"in": [third["id"], "x"]}}, [2]),
        ({"memory": {"icontains": "WORD 1"}}, [1]),
        ({"hash": third["hash"]}, [2]),
        ({"NOT": [{"run_id": "r1"}]}, [2]),
    ]:
        assert numbers(ours.search("word", filters={"user_id": "ana", **wanted})) == expected, wanted
        assert numbers(ours.get_all(filters={"user_id": "ana", **wanted})) == expected, wanted


def test_an_updated_memory_is_found_by_what_it_is_now(ours: Memory) -> None:
    added = ours.add(
        "word 0 0", user_id="ana", agent_id="cook", run_id="r1", infer=False, metadata={"topic": "food"},
        timestamp="2026-01-01T00:00:00Z",
    )  # fmt: skip
    ours.update(added["results"][0]["id"], "word 0 1", metadata={"topic": "home"})
    for wanted, is_found in [
        ({"topic": "home"}, True),
        ({"topic": "food"}, False),
        ({"run_id": "r1"}, True),
        ({"agent_id": "cook"}, True),
        ({"created_at": {"lt": "2026-01-02"}}, True),
        ({"created_at": {"gt": "2026-01-02"}}, False),
        ({"updated_at": {"gt": "2026-01-02"}}, True),
    ]:
        filters = {"user_id": "ana", **wanted}
        assert bool(texts(ours.search("word", filters=filters))) is is_found, wanted
        assert bool(texts(ours.get_all(filters=filters))) is is_found, wanted


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"topic": {"regex": "x"}}, "operator: regex"),
        ({"address": {"city": "Berlin"}}, "operator: city"),
        ({"topic": {"any": 1}}, "operator: any"),
        ({"n": {"in": "abc"}}, "takes a list"),
        ({"n": {"nin": 3}}, "takes a list"),
        ({"created_at": {"gte": "soon"}}, "point in time"),
        ({"created_at": 3}, "point in time"),
        ({"AND": [3]}, "item at index 0 must be a dict"),
        ({"OR": [{"topic": {"like": 1}}]}, "operator: like"),
        ({3: 4}, "by strings"),
    ],
)
def test_what_is_no_filter_is_refused_by_name(ours: Memory, wanted: dict[Any, Any], says: str) -> None:
    for call in (lambda filters: ours.search("word", filters=filters), lambda filters: ours.get_all(filters=filters)):
        with pytest.raises(ValidationError, match=says) as refused:
            call({"user_id": "ana", **wanted})
        assert (refused.value.path or "").startswith("$.filters")


def test_a_filter_too_deep_is_refused(ours: Memory) -> None:
    deep: dict[str, Any] = {"n": 1}
    for _ in range(9):
        deep = {"AND": [deep]}
    with pytest.raises(ValidationError, match="deep"):
        ours.search("word", filters={"user_id": "ana", **deep})


def test_only_a_filter_that_says_so_crosses_users(ours: Memory) -> None:
    fill(ours)
    ours.add("word number 7", agent_id="cook", infer=False)
    assert numbers(ours.search("word number", filters={"user_id": "*"})) == [0, 1, 2, 3, 9]
    assert numbers(ours.get_all(filters={"user_id": "*", "topic": "food"})) == [0, 9]
    assert numbers(ours.get_all(filters={"agent_id": "cook"})) == [7]
    assert numbers(ours.get_all(filters={"user_id": "cook"})) == []


def test_a_wildcard_over_too_many_users_is_refused(ours: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.integrations.mem0.answers.OWNERS_MAX", 1)
    fill(ours)
    with pytest.raises(UnsupportedError, match="more than 1 users"):
        ours.get_all(filters={"user_id": "*"})


def test_what_others_wrote_is_held_against_the_filter_too(ours: Memory) -> None:
    """Events without our fields: written through a run, or by a version before there were any."""
    run = ours.memories.mem.run(user_id="ana", session_id="elsewhere")
    for number in range(8):
        run.observe("user", f"word number {number}", metadata={"topic": "food" if number % 4 else "home"})
    assert numbers(ours.search("word number", filters={"user_id": "ana", "topic": "home"})) == [0, 4]
    assert numbers(ours.get_all(filters={"user_id": "ana", "topic": "home"})) == [0, 4]


def _random_filter(draw: random.Random, depth: int = 0) -> dict[str, Any]:
    if depth < 2 and draw.random() < 0.4:
        kind = draw.choice(["AND", "OR", "NOT"])
        return {kind: [_random_filter(draw, depth + 1) for _ in range(draw.randint(1, 3))]}
    key = draw.choice(["kind", "n", "tags", "deep.a", "role", "run_id", "agent_id", "missing"])
    value = draw.choice(["a", "b", 1, 2, 2.0, True, "user", "assistant", "r1", "cook"])
    if draw.random() < 0.2:
        return {key: "*"}
    name = draw.choice(["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains"])
    if key in ("run_id", "agent_id") and name in ("eq", "in"):
        value = str(value)
    return {key: {name: [value, "b"] if name in ("in", "nin") else value}}


@pytest.mark.soak
def test_what_the_index_answers_loses_nothing() -> None:
    """Random filters over random memories: what the index lets in holds everything that fits."""
    draw = random.Random(7)
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        for number in range(120):
            metadata = {
                name: draw.choice(values)
                for name, values in (
                    ("kind", ["a", "b", "c"]), ("n", [1, 2, 3, 2.5, True]), ("tags", [["a"], ["a", "b"], []]),
                    ("deep", [{"a": "a"}, {"a": 2}, {}]),
                )
                if draw.random() < 0.7
            }  # fmt: skip
            scope = (
                {"user_id": "ana"}
                | ({"run_id": "r1"} if number % 3 else {})
                | ({"agent_id": "cook"} if number % 2 else {})
            )
            role = draw.choice(["user", "assistant"])
            memory.add({"role": role, "content": f"word number {number}"}, **scope, infer=False, metadata=metadata)
        everything = memory.get_all(filters={"user_id": "ana"}, top_k=500)["results"]
        assert len(everything) == 120
        narrowed = 0
        for _ in range(150):
            wanted = _random_filter(draw)
            tree = read_filters(wanted)
            expected = sorted(each["memory"] for each in everything if matches(tree, each))
            found = memory.search("word number", filters={"user_id": "ana", **wanted}, top_k=500)
            assert sorted(texts(found)) == expected, wanted
            narrowed += within_of(tree) is not None
        assert narrowed > 75


def test_too_many_fields_are_none_at_all() -> None:
    many = {f"key {number}": number for number in range(200)}
    assert fields_of({"metadata": many}) == []
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        memory.add("word 0 0", user_id="ana", infer=False, metadata=many)
        memory.add("word 1 1", user_id="ana", infer=False, metadata={"long": "x" * 500, "key 7": 8})
        assert numbers(memory.search("word", filters={"user_id": "ana", "key 7": 7})) == [0]
        assert numbers(memory.search("word", filters={"user_id": "ana", "long": "x" * 500})) == [1]


@pytest.mark.soak
def test_a_filtered_search_reads_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 6,000 memories of one user a filter that the index answers reads about as many as it shows, a rare one too."""
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        for batch in range(12):
            said = [{"role": "user", "content": f"tea number {batch * 500 + at}"} for at in range(500)]
            metadata = {"topic": "rare" if batch == 5 else "common", "n": batch, "deep": {"a": [batch]}}
            memory.add(said, user_id="ana", run_id=f"r{batch}", infer=False, metadata=metadata)
        memory.search("tea number", filters={"user_id": "ana"})  # the index is in memory now
        rows: list[Any] = []
        count_rows(mem, rows, monkeypatch)
        for wanted in (
            {}, {"topic": "rare"}, {"topic": {"in": ["rare", "x"]}}, {"run_id": "r7"}, {"deep.a": 3}, {"topic": "*"},
            {"created_at": {"gte": "2000-01-01"}}, {"AND": [{"topic": "common"}, {"OR": [{"n": 3}, {"n": 4}]}]},
            {"topic": "nowhere"}, {"role": "assistant"}, {"agent_id": "nobody"},
        ):  # fmt: skip
            for call in ("search", "get_all"):
                rows.clear()
                more = ("tea number",) if call == "search" else ()
                found = getattr(memory, call)(*more, filters={"user_id": "ana", **wanted}, top_k=10)
                assert len(texts(found)) in (0, 10)
                assert len(rows) < 400, (wanted, call, len(rows))


def test_what_fits_is_found_however_far_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the index cannot answer a filter and the best hits do not fit, the ledger is gone through."""
    monkeypatch.setattr("muniment.integrations.mem0.searching._HITS_MAX", 50)
    monkeypatch.setattr("muniment.integrations.mem0.searching._LOOKED_MAX", 100)
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="s")
        run.observe_many(
            {"role": "user", "content": "tea " * (1 + at % 5), "id": f"e{at}", "metadata": {"n": at}}
            for at in range(400)
        )
        memory = Memory(mem)
        wanted = {"user_id": "ana", "n": {"gte": 150, "lt": 153}}
        found = memory.search("tea", filters=wanted)["results"]
        assert {each["id"] for each in found} == {"e150", "e151", "e152"}
        assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
        assert len(memory.get_all(filters=wanted)["results"]) == 3
        assert len(memory.search("tea", filters={"user_id": "ana"}, top_k=300)["results"]) == 300
