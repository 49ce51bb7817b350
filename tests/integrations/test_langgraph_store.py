"""One suite for LangGraph's `BaseStore`: our store on two engines, and LangGraph's own `InMemoryStore`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the langgraph extra is not installed: pip install 'muniment[langgraph]'")

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import muniment
from muniment.integrations.langgraph import MunimentStore
from muniment.memory.outside.embed_hashed import HashEmbedder


def _own_embedding(texts: list[str]) -> list[list[float]]:
    return HashEmbedder().embed(texts).tolist()


@pytest.fixture(params=["muniment-memory", "muniment-sqlite", "langgraph-in-memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    if request.param == "langgraph-in-memory":
        yield InMemoryStore(index={"dims": HashEmbedder().dim, "embed": _own_embedding})
        return
    with muniment.open(":memory:" if request.param == "muniment-memory" else tmp_path / "store.db") as mem:
        yield MunimentStore(mem)


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


# -- items --------------------------------------------------------------------------------------------


def test_what_was_put_is_got(store: BaseStore) -> None:
    value = {"text": "loves pizza", "n": 3, "nested": {"tags": ["a", "b"], "none": None, "f": 1.5, "yes": True}}
    store.put(("users", "ana"), "food", value)
    item = store.get(("users", "ana"), "food")
    assert item is not None
    assert (item.value, item.key, item.namespace) == (value, "food", ("users", "ana"))
    assert item.created_at.tzinfo is not None
    assert item.created_at <= item.updated_at


def test_what_was_never_put_is_none(store: BaseStore) -> None:
    store.put(("users", "ana"), "food", {"a": 1})
    assert store.get(("users", "ana"), "drink") is None
    assert store.get(("users", "ben"), "food") is None
    assert store.get(("users",), "food") is None


def test_a_second_put_takes_the_place_of_the_first(store: BaseStore) -> None:
    store.put(("users",), "k", {"v": 1, "gone": True})
    first = store.get(("users",), "k")
    store.put(("users",), "k", {"v": 2})
    second = store.get(("users",), "k")
    assert first is not None
    assert second is not None
    assert second.value == {"v": 2}
    assert second.updated_at >= first.updated_at
    assert keys(store.search(("users",))) == ["k"]


def test_the_value_is_not_shared_with_the_caller(store: BaseStore) -> None:
    value = {"v": 1}
    store.put(("a",), "k", value)
    value["v"] = 2
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"v": 1}


def test_deleted_is_gone_and_can_come_back(store: BaseStore) -> None:
    store.put(("a",), "k", {"v": 1})
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None
    assert store.search(("a",)) == []
    store.delete(("a",), "k")
    store.delete(("never",), "k")
    store.put(("a",), "k", {"v": 1})
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"v": 1}


@pytest.mark.parametrize("key", ["uuid-1", "with space", "ключ/键/🔑", "a" * 600, "tab\tnew\nline", "long_x", "."])
def test_keys_of_all_kinds(store: BaseStore, key: str) -> None:
    store.put(("k",), key, {"v": key[:10]})
    store.put(("k",), key + "x", {"v": "other"})
    item = store.get(("k",), key)
    assert item is not None
    assert (item.key, item.value) == (key, {"v": key[:10]})


@pytest.mark.parametrize("value", [{}, {"text": " "}, {"deep": {"list": [[1], {"a": []}]}}, {"中": "文"}])
def test_values_of_all_kinds(store: BaseStore, value: dict[str, Any]) -> None:
    store.put(("v",), "k", value)
    item = store.get(("v",), "k")
    assert item is not None
    assert item.value == value
    assert keys(store.search(("v",))) == ["k"]


# -- namespaces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph", "x"), (1,), ("a\x00",)])
def test_bad_namespaces_are_refused(store: BaseStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"v": 1})


def test_namespaces_are_not_mixed_up(store: BaseStore) -> None:
    store.put(("a", "b"), "k", {"v": 1})
    store.put(("a/b",), "k", {"v": 2})
    store.put(("ab",), "k", {"v": 3})
    got = [store.get(namespace, "k") for namespace in (("a", "b"), ("a/b",), ("ab",))]
    assert [item and item.value["v"] for item in got] == [1, 2, 3]
    assert len(store.search(("a",))) == 1


@pytest.fixture
def spaces(store: BaseStore) -> BaseStore:
    for namespace in [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f")]:
        store.put(namespace, "k", {"v": "/".join(namespace)})
    return store


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"prefix": ("a", "b"), "max_depth": 3}, [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]),
        ({"suffix": ("f",)}, [("a", "b", "f"), ("a", "c", "f")]),
        ({"prefix": ("a", "*", "f")}, [("a", "b", "f"), ("a", "c", "f")]),
        ({"suffix": ("d", "*")}, [("a", "b", "d", "e"), ("a", "b", "d", "i")]),
        ({"prefix": ("a", "b"), "suffix": ("i",)}, [("a", "b", "d", "i")]),
        ({"prefix": ("z",)}, []),
        ({"max_depth": 1}, [("a",)]),
        ({"limit": 2, "offset": 1}, [("a", "b", "d", "e"), ("a", "b", "d", "i")]),
    ],
)
def test_namespaces_are_listed(spaces: BaseStore, asked: dict[str, Any], expected: list[Any]) -> None:
    assert spaces.list_namespaces(**asked) == expected


# -- searching ----------------------------------------------------------------------------------------


def test_a_prefix_reaches_below_itself(spaces: BaseStore) -> None:
    assert len(spaces.search(("a",))) == 5
    assert len(spaces.search(("a", "b", "d"))) == 2
    assert len(spaces.search((), limit=100)) == 5
    assert spaces.search(("z",)) == []


def test_pages_do_not_overlap(store: BaseStore) -> None:
    for number in range(25):
        store.put(("n",), f"k{number:02}", {"n": number})
    pages = [keys(store.search(("n",), limit=10, offset=at)) for at in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert {key for page in pages for key in page} == {f"k{number:02}" for number in range(25)}
    assert len(store.search(("n",))) == 10


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"color": "red"}, {"a", "c"}),
    ({"color": {"$eq": "red"}}, {"a", "c"}),
    ({"color": {"$ne": "red"}}, {"b"}),
    ({"score": {"$gt": 2}}, {"b", "c"}),
    ({"score": {"$gte": 2}}, {"a", "b", "c"}),
    ({"score": {"$lt": 3.5}}, {"a"}),
    ({"score": {"$lte": 3.5}}, {"a", "b"}),
    ({"score": {"$gt": 2, "$lt": 4}}, {"b"}),
    ({"color": "red", "score": {"$gte": 3}}, {"c"}),
    ({"meta": {"lang": "en"}}, {"a", "b"}),
    ({"meta": {"lang": {"$ne": "en"}}}, {"c"}),
    ({"tags": ["x", "y"]}, {"a"}),
    ({"tags": ["y", "x"]}, set()),
    ({"missing": "x"}, set()),
    ({"missing": None}, {"a", "b", "c"}),
    ({}, {"a", "b", "c"}),
]


@pytest.mark.parametrize(("wanted", "expected"), FILTERS)
def test_filters(store: BaseStore, wanted: dict[str, Any], expected: set[str]) -> None:
    store.put(("f",), "a", {"color": "red", "score": 2, "meta": {"lang": "en", "n": 1}, "tags": ["x", "y"]})
    store.put(("f",), "b", {"color": "blue", "score": 3.5, "meta": {"lang": "en"}, "tags": []})
    store.put(("f",), "c", {"color": "red", "score": 10, "meta": {"lang": "de"}, "tags": ["x"]})
    assert set(keys(store.search(("f",), filter=wanted))) == expected


def test_an_unknown_operator_is_refused(store: BaseStore) -> None:
    store.put(("f",), "a", {"n": 1})
    with pytest.raises(ValueError, match="Unsupported operator"):
        store.search(("f",), filter={"n": {"$near": 1}})


TEXTS = {
    "berlin": "Ana moved to Berlin in May and likes the parks",
    "pizza": "her favourite food is pizza with mushrooms",
    "guitar": "plays the guitar in a small band on Fridays",
    "cat": "the cat is called Toby and sleeps all day",
}


@pytest.fixture
def facts(store: BaseStore) -> BaseStore:
    for key, text in TEXTS.items():
        store.put(("memories", "ana"), key, {"text": text, "kind": "pet" if key == "cat" else "life"})
    store.put(("memories", "ben"), "pizza", {"text": "ben hates pizza", "kind": "life"})
    return store


@pytest.mark.parametrize(
    ("query", "best"),
    [("favourite food pizza mushrooms", "pizza"), ("moved to Berlin", "berlin"), ("the cat called Toby", "cat")],
)
def test_a_query_finds_the_best_first(facts: BaseStore, query: str, best: str) -> None:
    found = facts.search(("memories", "ana"), query=query, limit=2)
    assert found[0].key == best
    assert found[0].score is not None
    assert len(found) == 2
    assert all(item.namespace == ("memories", "ana") for item in found)


def test_scores_fall(facts: BaseStore) -> None:
    scores = [item.score for item in facts.search(("memories",), query="pizza guitar Berlin", limit=10)]
    known = [score for score in scores if score is not None]
    assert known == sorted(known, reverse=True)
    assert scores[: len(known)] == known


def test_a_query_with_a_filter(facts: BaseStore) -> None:
    found = facts.search(("memories", "ana"), query="pizza", filter={"kind": "pet"})
    assert keys(found) == ["cat"]


def test_a_query_follows_what_was_put_last(facts: BaseStore) -> None:
    facts.put(("memories", "ana"), "pizza", {"text": "she plays chess at the club", "kind": "life"})
    found = facts.search(("memories", "ana"), query="chess club", limit=1)
    assert keys(found) == ["pizza"]
    assert found[0].value["text"].startswith("she plays chess")


def test_what_is_not_indexed_has_no_score(store: BaseStore) -> None:
    store.put(("i",), "hidden", {"text": "secret treasure map"}, index=False)
    store.put(("i",), "shown", {"text": "an ordinary treasure"})
    found = {item.key: item.score for item in store.search(("i",), query="treasure map")}
    assert found["hidden"] is None
    assert found["shown"] is not None


def test_only_the_named_fields_are_read(store: BaseStore) -> None:
    store.put(("i",), "a", {"title": "green apples", "body": "yellow bananas"}, index=["title"])
    store.put(("i",), "b", {"title": "yellow bananas", "body": "green apples"}, index=["title"])
    assert store.search(("i",), query="yellow bananas", limit=1)[0].key == "b"
    store.put(("j",), "a", {"parts": [{"t": "green apples"}, {"t": "red cherries"}]}, index=["parts[*].t"])
    store.put(("j",), "b", {"parts": [{"t": "blue plums"}]}, index=["parts[*].t"])
    assert store.search(("j",), query="red cherries", limit=1)[0].key == "a"


# -- batches and await --------------------------------------------------------------------------------


def test_a_batch_answers_in_order_and_reads_what_stood_before(store: BaseStore) -> None:
    store.put(("b",), "old", {"v": 1})
    results = store.batch(
        [
            PutOp(("b",), "new", {"v": 2}),
            GetOp(("b",), "old"),
            GetOp(("b",), "new"),
            SearchOp(("b",)),
            ListNamespacesOp((MatchCondition("prefix", ("b",)),)),
            PutOp(("b",), "new", {"v": 3}),
            PutOp(("b",), "old", None),
        ]
    )
    assert results[0] is None
    assert results[1].value == {"v": 1}  # type: ignore[union-attr]
    assert results[2] is None
    assert keys(results[3]) == ["old"]  # type: ignore[arg-type]
    assert results[4] == [("b",)]
    item = store.get(("b",), "new")
    assert item is not None
    assert item.value == {"v": 3}
    assert store.get(("b",), "old") is None


def test_the_same_with_await(store: BaseStore) -> None:
    async def work() -> None:
        await store.aput(("a", "b"), "k", {"text": "guitar"})
        await asyncio.gather(*(store.aput(("a", "b"), f"k{n}", {"n": n}) for n in range(5)))
        item = await store.aget(("a", "b"), "k")
        assert item is not None
        assert item.value == {"text": "guitar"}
        assert len(await store.asearch(("a",))) == 6
        assert (await store.asearch(("a",), query="guitar", limit=1))[0].key == "k"
        assert await store.alist_namespaces() == [("a", "b")]
        await store.adelete(("a", "b"), "k")
        assert await store.aget(("a", "b"), "k") is None

    asyncio.run(work())


# -- what only ours does ------------------------------------------------------------------------------


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_minutes(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def test_an_item_lives_as_long_as_it_was_given(mem: muniment.Memory) -> None:
    clock = Hands()
    store = MunimentStore(mem, clock=clock)
    store.put(("t",), "short", {"v": 1}, ttl=10)
    store.put(("t",), "long", {"v": 2})
    clock.pass_minutes(9)
    assert store.get(("t",), "short", refresh_ttl=False) is not None
    assert len(store.search(("t",), refresh_ttl=False)) == 2
    clock.pass_minutes(2)
    assert store.get(("t",), "short") is None
    assert keys(store.search(("t",))) == ["long"]
    assert keys(store.search(("t",), query="v")) == ["long"]
    assert store.sweep_ttl() == 1
    assert store.sweep_ttl() == 0


def test_a_read_prolongs_an_items_life(mem: muniment.Memory) -> None:
    clock = Hands()
    store = MunimentStore(mem, clock=clock, ttl={"default_ttl": 10})
    store.put(("t",), "k", {"text": "guitar"}, index=["text"])
    put_at = store.get(("t",), "k")
    for _ in range(3):
        clock.pass_minutes(8)
        item = store.get(("t",), "k")
        assert item is not None
        assert put_at is not None
        assert item.updated_at == put_at.updated_at  # it was read, not changed
    clock.pass_minutes(8)
    assert keys(store.search(("t",), query="guitar")) == ["k"]
    clock.pass_minutes(11)
    assert store.get(("t",), "k") is None


def test_a_batch_cannot_reach_another_namespace(mem: muniment.Memory) -> None:
    with pytest.raises(InvalidNamespaceError):
        MunimentStore(mem).batch([GetOp(("a.b",), "k")])


def test_a_batch_that_is_refused_changes_nothing(mem: muniment.Memory) -> None:
    store = MunimentStore(mem)
    store.put(("kept",), "old", {"v": 1})
    before = list(mem.export())[1:-1]
    good = [PutOp(("b",), f"k{number}", {"v": number}) for number in range(3)]
    bad = PutOp(("b", "below"), "bad", {"v": {1, 2}})
    with pytest.raises(muniment.errors.MunimentError):
        store.batch([PutOp(("kept",), "old", None), *good, bad])
    assert list(mem.export())[1:-1] == before
    assert store.list_namespaces() == [("kept",)]
    assert store.get(("kept",), "old") is not None
    assert store.search(("b",), query="k0") == []


def test_what_a_batch_puts_is_one_transaction(mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[str] = []
    write = mem._ctx.engine.write

    def counted(tenant_id: str, work: Any) -> Any:
        writes.append(tenant_id)
        return write(tenant_id, work)

    monkeypatch.setattr(mem._ctx.engine, "write", counted)
    store = MunimentStore(mem)
    store.batch([PutOp((f"n{number % 3}",), f"k{number}", {"v": number}) for number in range(9)])
    assert len(writes) == 1
    assert sorted(keys(store.search((), limit=20))) == [f"k{number}" for number in range(9)]
    store.batch([PutOp((f"n{number % 3}",), f"k{number}", {"v": number + 1}) for number in range(9)])
    assert [value["v"] for value, _, _ in store.history(("n1",), "k4")] == [4, 5]
    assert mem.verify().ok


def test_created_at_survives_a_change(mem: muniment.Memory) -> None:
    clock = Hands()
    store = MunimentStore(mem, clock=clock)
    store.put(("c",), "k", {"v": 1})
    clock.pass_minutes(5)
    store.put(("c",), "k", {"v": 2})
    item = store.get(("c",), "k")
    assert item is not None
    assert item.updated_at - item.created_at == timedelta(minutes=5)


def test_history_stays_unless_it_is_erased(mem: muniment.Memory) -> None:
    store = MunimentStore(mem)
    store.put(("h",), "k", {"v": 1})
    store.put(("h",), "k", {"v": 2})
    store.delete(("h",), "k")
    assert [(value["v"], status) for value, _, status in store.history(("h",), "k")] == [
        (1, "superseded"),
        (2, "retracted"),
    ]
    eraser = MunimentStore(mem, name="other", erase=True)
    eraser.put(("h",), "k", {"v": 1})
    eraser.delete(("h",), "k")
    assert eraser.history(("h",), "k") == []
    assert eraser.get(("h",), "k") is None
    assert mem.verify().ok


def test_forgetting_a_user_takes_their_items(mem: muniment.Memory) -> None:
    store = MunimentStore(mem, user_at=1)
    store.put(("memories", "ana"), "k", {"text": "pizza"})
    store.put(("memories", "ben"), "k", {"text": "pasta"})
    store.put(("shared",), "k", {"text": "bread"})
    mem.forget(user_id="ana")
    assert store.get(("memories", "ana"), "k") is None
    assert store.list_namespaces() == [("memories", "ben"), ("shared",)]
    assert len(store.search((), query="pizza pasta bread")) == 2


def test_two_handles_on_one_file_agree(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as one, muniment.open(tmp_path / "a.db") as two:
        here, there = MunimentStore(one), MunimentStore(two)
        here.put(("n",), "k", {"v": 1})
        there.put(("n",), "k", {"v": 2})
        item = here.get(("n",), "k")
        assert item is not None
        assert item.value == {"v": 2}
        assert there.list_namespaces() == here.list_namespaces() == [("n",)]


def test_stores_of_different_names_do_not_meet(mem: muniment.Memory) -> None:
    MunimentStore(mem, name="a").put(("n",), "k", {"v": 1})
    assert MunimentStore(mem, name="b").search(()) == []
    assert MunimentStore(mem, tenant_id="acme", name="a").search(()) == []
