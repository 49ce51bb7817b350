"""One suite for LangGraph's `BaseStore`: our store on two engines, and LangGraph's own `InMemoryStore`."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
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
from muniment.core.canonical import short_id
from muniment.core.instants import format_instant
from muniment.errors import InvalidInput, StoreDamaged
from muniment.integrations.keyed_documents import KeyedDocuments, Put, put_all
from muniment.integrations.langgraph import AsyncMunimentStore, MunimentStore
from muniment.testing.hash_embedder import HashEmbedder
from served_store import connected


def _own_embedding(texts: list[str]) -> list[list[float]]:
    return HashEmbedder().embed(texts).tolist()


@pytest.fixture(params=["muniment-memory", "muniment-sqlite", "muniment-http", "langgraph-in-memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    if request.param == "langgraph-in-memory":
        yield InMemoryStore(index={"dims": HashEmbedder().dim, "embed": _own_embedding})
        return
    if request.param == "muniment-http":
        with muniment.open(":memory:") as mem, connected(mem, tmp_path) as far:
            yield MunimentStore(far)
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


@pytest.mark.soak
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


@pytest.mark.soak
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


# -- one index, however many namespaces ---------------------------------------------------------------


class Counted:
    """How many rows a store's readers hand out."""

    def __init__(self, mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        engine: Any = mem._ctx.engine
        read = engine.read

        def counted(tenant_id: str, work: Any) -> Any:
            return read(tenant_id, lambda reader: work(_CountedReader(self, reader)))

        monkeypatch.setattr(engine, "read", counted)

    def of(self, call: Any) -> int:
        self.rows = 0
        call()
        return self.rows


class _CountedReader:
    def __init__(self, counted: Counted, reader: Any) -> None:
        self._counted, self._reader = counted, reader

    def do(self, op: Any) -> Any:
        answer = self._reader.do(op)
        self._counted.rows += len(answer) if isinstance(answer, list) else 1
        return answer

    def stream(self, select: Any) -> Any:
        for row in self._reader.stream(select):
            self._counted.rows += 1
            yield row


def test_a_search_and_a_listing_cost_what_they_show(mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    store, counted = MunimentStore(mem), Counted(mem, monkeypatch)
    calls = {
        "prefix": lambda: store.search(("m",), limit=5),
        "page": lambda: store.search(("m",), limit=5, offset=5),
        "one": lambda: store.search(("m", "u3"), limit=5),
        "query": lambda: store.search(("m",), query="pizza number 3", limit=5),
        "query in one": lambda: store.search(("m", "u3"), query="pizza", limit=5),
        "get": lambda: store.get(("m", "u3"), "k"),
        "listing": lambda: store.list_namespaces(prefix=("m",), limit=5),
    }
    costs: list[dict[str, int]] = []
    for count in (20, 200):
        store.batch([PutOp(("m", f"u{at}"), "k", {"text": f"pizza number {at}"}) for at in range(count)])
        store.search(("m",), query="pizza")  # what is compared is loaded once
        costs.append({name: counted.of(call) for name, call in calls.items()})
    few, many = costs
    assert all(many[name] <= few[name] for name in calls if name != "listing"), costs
    assert many["listing"] <= 256  # one page of the index


def test_what_changed_last_comes_first(mem: muniment.Memory) -> None:
    store = MunimentStore(mem)
    store.batch([PutOp((f"n{at % 3}",), f"k{at}", {"v": at}) for at in range(9)])
    store.put(("n0",), "k3", {"v": 30})
    assert keys(store.search((), limit=4)) == ["k3", "k8", "k7", "k6"]
    assert keys(store.search(("n0",))) == ["k3", "k6", "k0"]


def test_a_namespace_of_many_items_is_listed_once(mem: muniment.Memory) -> None:
    clock = Hands()
    store = MunimentStore(mem, clock=clock)
    store.batch([PutOp(("a",), f"k{at}", {"v": at}, ttl=5 if at < 290 else None) for at in range(300)])
    store.batch([PutOp((name,), "k", {"v": 1}) for name in ("a b", "b", "é", "z")])
    clock.pass_minutes(6)
    assert store.list_namespaces() == [("a",), ("a b",), ("b",), ("z",), ("é",)]


def test_labels_of_all_kinds(mem: muniment.Memory) -> None:
    store = MunimentStore(mem)
    spaces = [("a", "b"), ("a\x1fb",), ("a\x1e1b",), ("a",), ("a ", "b"), ("A", "b"), ("a%", "_"), ("日本", "語\n")]
    for number, namespace in enumerate(spaces):
        store.put(namespace, "k", {"v": number})
    assert sorted(store.list_namespaces()) == sorted(spaces)
    for number, namespace in enumerate(spaces):
        item = store.get(namespace, "k")
        assert item is not None
        assert item.value == {"v": number}
    assert len(store.search(("a",))) == 2
    with pytest.raises(InvalidInput):
        store.put(("x" * 2000,), "k", {"v": 1})


DOTTED: list[tuple[dict[str, Any], set[str]]] = [
    ({"meta.lang": "en"}, {"a"}),
    ({"meta.lang": {"$ne": "en"}}, {"b", "c"}),
    ({"meta.deep.n": {"$gt": 1}}, {"b"}),
    ({"tags.0": "x"}, {"a"}),
    ({"tags.7": "x"}, set()),
    ({"dotted.key": 1}, {"c"}),
    ({"meta.lang.more": "x"}, set()),
]


@pytest.mark.parametrize(("wanted", "expected"), DOTTED)
def test_dots_lead_into_a_value(mem: muniment.Memory, wanted: dict[str, Any], expected: set[str]) -> None:
    store = MunimentStore(mem)
    store.put(("f",), "a", {"meta": {"lang": "en", "deep": {"n": 1}}, "tags": ["x", "y"]})
    store.put(("f",), "b", {"meta": {"lang": "de", "deep": {"n": 2}}, "tags": []})
    store.put(("f",), "c", {"dotted.key": 1, "dotted": {"key": 2}})
    assert set(keys(store.search(("f",), filter=wanted))) == expected


def test_scores_are_the_cosines_of_langgraphs_own_store(mem: muniment.Memory) -> None:
    index: Any = {"dims": HashEmbedder().dim, "embed": _own_embedding, "fields": ["text", "notes[*]"]}
    theirs, ours = InMemoryStore(index=index), MunimentStore(mem, index=index)
    for store in (theirs, ours):
        for key, text in TEXTS.items():
            store.put(("m", key), key, {"text": text, "notes": [f"about {key}", "a note"]})
        store.put(("m",), "bare", {"other": 1})
    for query in ("favourite food", "cat called Toby", "about guitar"):
        scores = [{item.key: item.score for item in store.search(("m",), query=query)} for store in (theirs, ours)]
        assert scores[0].keys() == scores[1].keys()
        assert scores[0].pop("bare") is scores[1].pop("bare") is None
        assert scores[1] == pytest.approx(scores[0], abs=1e-5)
        assert max(scores[1].values()) <= 1.0 + 1e-6


def test_a_score_by_words_is_the_share_of_the_query(mem: muniment.Memory) -> None:
    store = MunimentStore(mem)
    store.put(("m",), "all", {"text": "Toby the cat sleeps"})
    store.put(("m",), "half", {"text": "the cat is awake"})
    store.put(("m",), "none", {"text": "guitar"})
    found = {item.key: item.score for item in store.search(("m",), query="Toby cat")}
    assert found["all"] == pytest.approx(1.0)
    assert found["none"] is None
    assert found["half"] is not None
    assert 0 < found["half"] < 0.5, "the rarer word counts for more"


# -- evidence stays evidence --------------------------------------------------------------------------


def test_the_rows_are_made_again_by_a_rebuild_and_travel_in_a_dump(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        store = MunimentStore(mem, user_at=1, ttl={"default_ttl": 60})
        for number in range(4):
            store.put(("m", f"u{number % 2}"), f"k{number}", {"text": f"pizza {number}"})
        store.put(("m", "u0"), "k0", {"text": "guitar"})
        store.delete(("m", "u1"), "k3")
        shown = store.search((), query="pizza guitar")
        assert mem.verify().ok
    with closing(sqlite3.connect(path)) as file:
        for table in ("places", "prefixes", "place_vectors"):
            file.execute(f"DELETE FROM {table}")
        file.commit()
    with muniment.open(path) as mem, muniment.open(tmp_path / "other.db") as other:
        store = MunimentStore(mem, user_at=1)
        assert not mem.verify().ok
        assert store.search(()) == []
        mem.store.rebuild()
        assert mem.verify().ok
        assert store.search((), query="pizza guitar") == shown
        other.import_(list(mem.export()))
        assert MunimentStore(other, user_at=1).search((), query="pizza guitar") == shown
        assert other.verify().ok


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET body = replace(body, 'pizza', 'pasta')",
        "UPDATE places SET path = 'm' || char(31) || 'ben' || char(31) WHERE path LIKE '%ana%'",
        "UPDATE places SET changed = changed + 1",
        "UPDATE prefixes SET prefix = 'm' || char(31) || 'ben' || char(31) WHERE prefix LIKE '%ana%'",
        "UPDATE place_vectors SET data = x'00000000000000ff'",
        "INSERT INTO prefixes SELECT shard, space, 'm' || char(31) || 'ben' || char(31), changed, entry_id"
        " FROM prefixes WHERE prefix LIKE '%ana%'",
    ],
)
def test_what_was_altered_reaches_nobody_else(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        store = MunimentStore(mem, user_at=1)
        store.put(("m", "ana"), "k", {"text": "ana likes pizza"})
        store.search(("m",), query="pizza")
    with closing(sqlite3.connect(path)) as file:
        file.execute(damage)
        file.commit()
    with muniment.open(path) as mem:
        store = MunimentStore(mem, user_at=1)
        assert not mem.verify().ok
        if damage.startswith(("UPDATE entries", "UPDATE places")):
            for asked in (lambda: store.search(()), lambda: store.search((), query="pizza")):
                with pytest.raises(StoreDamaged):
                    asked()
        elif "vectors" not in damage:
            with pytest.raises(StoreDamaged):
                store.search(("m", "ben"))
        else:
            assert [item.score for item in store.search((), query="pizza")] == [pytest.approx(1.0)]
        if not damage.startswith("UPDATE entries"):
            mem.store.rebuild()
            assert mem.verify().ok
            assert store.search(("m", "ben")) == []
            assert keys(store.search(("m", "ana"))) == ["k"]


def test_an_event_that_is_forgotten_takes_all_that_its_item_was(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        store = MunimentStore(mem)
        for text in ("first-words-here", "second-words-here"):
            store.put(("m",), "k", {"text": text})
        store.put(("m",), "other", {"text": "third-words-here"})
        (line,) = [line for line in mem.export() if b"value_kept" in line and b"second-words" in line]
        (event_id,) = {part for part in line.decode().split('"') if part.startswith("evt_")}
        receipt = mem.forget(event=event_id)
        assert receipt.counts["entries"] == 2
        assert store.history(("m",), "k") == []
        assert keys(store.search(("m",), query="words")) == ["other"]
        (again,) = store.forget(("m",), "other")
        assert again.scrubbed
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for word in (b"first-words", b"second-words", b"third-words"):
        assert word not in left


def test_secrets_are_redacted_and_the_value_stays_whole(mem: muniment.Memory) -> None:
    store = MunimentStore(mem)
    store.put(("s",), "k", {"note": 'say "hi"', "key": "sk-ant-REDACTED"})
    item = store.get(("s",), "k")
    assert item is not None
    assert item.value["note"] == 'say "hi"'
    assert "aB3dE5fG7hJ9kL" not in item.value["key"]


def test_items_of_an_earlier_version_are_taken_over_once(mem: muniment.Memory) -> None:
    at = format_instant(datetime(2026, 1, 2, tzinfo=UTC))
    registry = KeyedDocuments(mem, short_id("lgn", "langgraph"))
    puts = []
    for namespace, user in ((("memories", "ana"), "ana"), (("shared",), None)):
        documents = KeyedDocuments(mem, short_id("lg", ["langgraph", *namespace]), user_id=user)
        for value in ("older", "newer"):
            said = {"item": {"text": f"{value} of {namespace[-1]}"}, "index": None, "ttl_minutes": None}
            documents.put("k", {**said, "created_at": at, "updated_at": at, "read_at": at}, f"{value} text")
        labels = list(namespace)
        puts.append(Put(registry, short_id("ns", labels), {"namespace": labels}, "/".join(labels)))
    put_all(puts)
    for _ in range(2):
        store = MunimentStore(mem, user_at=1)
        assert store.list_namespaces() == [("memories", "ana"), ("shared",)]
        item = store.get(("memories", "ana"), "k")
        assert item is not None
        assert item.value == {"text": "newer of ana"}
        assert item.created_at == item.updated_at == datetime(2026, 1, 2, tzinfo=UTC)
        assert [value["text"] for value, _, _ in store.history(("shared",), "k")] == [
            "older of shared",
            "newer of shared",
        ]
    mem.forget(user_id="ana")
    assert MunimentStore(mem, user_at=1).list_namespaces() == [("shared",)]
    MunimentStore(mem, user_at=1).forget(("shared",), "k")
    assert b"of shared" not in b"".join(mem.export())
    assert mem.verify().ok


# -- time to live, and await --------------------------------------------------------------------------


@pytest.mark.parametrize("erase", [False, True])
def test_a_sweeper_takes_out_what_has_expired(mem: muniment.Memory, erase: bool) -> None:
    store = MunimentStore(mem, ttl={"default_ttl": 0.0001, "sweep_interval_minutes": 1}, erase=erase)
    store.put(("t",), "k", {"v": 1})
    store.put(("t",), "stays", {"v": 1}, ttl=None)
    future = store.start_ttl_sweeper(0.0002)
    deadline = time.monotonic() + 120
    while [state for _, _, state in store.history(("t",), "k")] == ["live"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert [state for _, _, state in store.history(("t",), "k")] == ([] if erase else ["retracted"])
    assert store.stop_ttl_sweeper(10)
    future.result(10)
    assert store.stop_ttl_sweeper(0)
    assert keys(store.search(("t",))) == ["stays"]
    assert MunimentStore(mem).start_ttl_sweeper().result(0) is None
    again = store.start_ttl_sweeper(0.0002)
    assert again.cancel()
    assert store.stop_ttl_sweeper(10)


def test_what_is_asked_for_in_one_tick_is_one_batch(mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[str] = []
    write = mem._ctx.engine.write

    def counted(tenant_id: str, work: Any) -> Any:
        writes.append(tenant_id)
        return write(tenant_id, work)

    async def work() -> None:
        async with AsyncMunimentStore(mem, ttl={"default_ttl": 5}) as store:
            await asyncio.gather(*(store.aput((f"n{at % 5}",), f"k{at}", {"n": at}) for at in range(50)))
            found = await asyncio.gather(*(store.aget((f"n{at % 5}",), f"k{at}") for at in range(50)))
            assert [item and item.value["n"] for item in found] == list(range(50))
            assert len(await store.asearch((), limit=100)) == 50
            assert await store.sweep_ttl() == 0
            with pytest.raises(asyncio.InvalidStateError):
                store.get(("n0",), "k0")
            assert (await asyncio.to_thread(store.get, ("n0",), "k0")) is not None

    monkeypatch.setattr(mem._ctx.engine, "write", counted)
    asyncio.run(work())
    assert len(writes) == 1


def test_a_store_on_postgresql(postgres_dsn: str, postgres_schema: str) -> None:
    with muniment.open(f"{postgres_dsn}{'&' if '?' in postgres_dsn else '?'}schema={postgres_schema}") as mem:
        store = MunimentStore(mem, user_at=1)
        store.batch([PutOp(("m", f"u{at}"), "k", {"text": f"pizza {at}", "n": at}) for at in range(12)])
        assert keys(store.search(("m",), query="pizza 7", limit=1)) == ["k"]
        assert store.search(("m",), query="pizza 7", limit=1)[0].value["n"] == 7
        assert len(store.list_namespaces()) == 12
        mem.forget(user_id="u7")
        assert len(store.search((), limit=20)) == 11
        mem.store.rebuild()
        assert mem.verify().ok


@pytest.mark.parametrize("named", [{"fields": ["text"]}, {"text_fields": ["text"]}, {"text_fields": "text"}])
def test_the_fields_of_an_index_are_named_as_either_of_langgraphs_stores_does(named: dict[str, Any]) -> None:
    index: Any = {"dims": HashEmbedder().dim, "embed": _own_embedding, **named}
    with muniment.open(":memory:") as mem:
        store = MunimentStore(mem, index=index)
        store.put(("a",), "k", {"text": "a red boat", "more": "zebra"})
        assert store.search(("a",), query="a red boat")[0].score == pytest.approx(1.0, abs=1e-3)
        unread = store.search(("a",), query="zebra")[0].score
        assert unread is None or unread < 0.5
