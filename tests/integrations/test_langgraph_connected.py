"""LangGraph's store and checkpointer over `muniment.connect(…)`: what a key reaches, and that all is as near by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the langgraph extra is not installed: pip install 'muniment[langgraph]'")

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore, ListNamespacesOp, PutOp, SearchOp

import muniment
from muniment.errors import Forbidden, InvalidInput, MunimentError
from muniment.integrations.langgraph import AsyncMunimentStore, MunimentSaver, MunimentStore
from muniment.testing.hash_embedder import HashEmbedder
from served_store import connected, key_for

pytestmark = pytest.mark.req("LG-02")
Far = Callable[..., muniment.Memory]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mem(clock: Clock) -> Iterator[muniment.Memory]:
    with muniment.open(":memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def far(mem: muniment.Memory, tmp_path: Path) -> Iterator[Far]:
    """`far(user="ana", access="read")`: a connection with such a key; `far()` one with a key of the tenant."""
    with ExitStack() as stack:

        def connect(**given: Any) -> muniment.Memory:
            return stack.enter_context(connected(mem, tmp_path, key_for(tmp_path, **given)))

        yield connect


def keys(found: list[Any]) -> list[str]:
    return sorted(each.key for each in found)


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(each) for each in row] for row in HashEmbedder().embed(texts)]


# -- whose values -------------------------------------------------------------------------------------


def fill_two(mem: muniment.Memory) -> MunimentStore:
    """A store that Ana and Ben share, each under a label of their own, and one item of nobody's."""
    shared = MunimentStore(mem, user_at=1)
    shared.put(("memories", "ana"), "boat", {"text": "Ana's boat is red"})
    shared.put(("memories", "ana", "work"), "job", {"text": "Ana bakes bread"})
    shared.put(("memories", "ben"), "boat", {"text": "Ben's boat is blue"})
    shared.put(("notes",), "all", {"text": "a boat for all"})
    return shared


def test_a_key_of_a_tenant_has_the_store_that_is_near_by(mem: muniment.Memory, far: Far) -> None:
    shared = fill_two(mem)
    there = MunimentStore(far(), user_at=1)
    assert [each.dict() for each in there.search((), query="boat")] == [
        each.dict() for each in shared.search((), query="boat")
    ]
    assert there.list_namespaces() == shared.list_namespaces()
    there.put(("memories", "ben"), "cat", {"text": "Ben has a cat"})
    assert keys(shared.search(("memories", "ben"))) == ["boat", "cat"]


def test_a_key_of_one_user_sees_what_stands_under_the_users_label_alone(mem: muniment.Memory, far: Far) -> None:
    fill_two(mem)
    ana = MunimentStore(far(user="ana"), user_at=1)
    assert keys(ana.search(())) == ["boat", "job"]
    assert keys(ana.search((), query="blue boat of Ben")) == ["boat", "job"]
    assert [each.value["text"] for each in ana.search((), query="boat", limit=1)] == ["Ana's boat is red"]
    assert keys(ana.search(("memories",), filter={"text": "Ben's boat is blue"})) == []
    assert ana.search(("memories", "ben"), query="boat") == []
    assert ana.search(("notes",)) == []
    assert ana.get(("memories", "ben"), "boat") is None
    assert ana.get(("notes",), "all") is None
    assert ana.history(("memories", "ben"), "boat") == []
    assert ana.list_namespaces() == [("memories", "ana"), ("memories", "ana", "work")]
    assert ana.list_namespaces(suffix=("ben",)) == []
    assert ana.list_namespaces(max_depth=1) == [("memories",)]


def test_scores_do_not_tell_what_others_hold(mem: muniment.Memory, far: Far) -> None:
    ana = MunimentStore(far(user="ana"), user_at=1)
    ana.put(("memories", "ana"), "boat", {"text": "a red boat"})
    ana.put(("memories", "ana"), "car", {"text": "a red car"})
    alone = [(each.key, each.score) for each in ana.search((), query="red boat")]
    shared = MunimentStore(mem, user_at=1)
    for number in range(20):
        shared.put(("memories", "ben"), f"k{number}", {"text": "boat boat boat"})
    assert [(each.key, each.score) for each in ana.search((), query="red boat")] == alone


@pytest.mark.parametrize("namespace", [("memories", "ben"), ("notes",), ("memories",)])
def test_a_key_of_one_user_writes_nowhere_else(mem: muniment.Memory, far: Far, namespace: tuple[str, ...]) -> None:
    shared = fill_two(mem)
    before = [each.dict() for each in shared.search((), limit=100)]
    ana = MunimentStore(far(user="ana"), user_at=1)
    with pytest.raises(Forbidden):
        ana.batch([PutOp(("memories", "ana"), "new", {"a": 1}), PutOp(namespace, "boat", {"text": "taken"})])
    ana.delete(namespace, "boat")
    assert ana.forget(namespace, "boat") == []
    assert [each.dict() for each in shared.search((), limit=100)] == before


def test_without_a_label_a_key_of_one_user_has_a_store_of_its_own(mem: muniment.Memory, far: Far) -> None:
    near, ana, ben = MunimentStore(mem), MunimentStore(far(user="ana")), MunimentStore(far(user="ben"))
    for store, text in ((near, "all"), (ana, "ana"), (ben, "ben")):
        store.put(("memories",), "who", {"text": text})
    for store, text in ((near, "all"), (ana, "ana"), (ben, "ben")):
        item = store.get(("memories",), "who")
        assert item is not None
        assert item.value == {"text": text}
        assert [each.value["text"] for each in store.search((), query="ana ben all")] == [text]
    assert [each.value for each in MunimentStore(mem, user_id="ana").search(())] == [{"text": "ana"}]
    mem.forget(user_id="ana")
    assert ana.search(()) == []
    assert len(ben.search(())) == 1
    assert mem.verify().ok


def test_a_key_reaches_no_other_tenant(mem: muniment.Memory, far: Far) -> None:
    MunimentStore(mem, tenant_id="acme").put(("a",), "k", {"v": 1})
    there = far(tenant="globex")
    for tenant in ("acme", "default"):
        with pytest.raises(Forbidden):
            MunimentStore(there, tenant_id=tenant).search(())
        with pytest.raises(Forbidden):
            MunimentSaver(there, tenant_id=tenant).get_tuple({"configurable": {"thread_id": "t"}})
    assert MunimentStore(there, tenant_id="globex").search(()) == []


def test_a_key_of_one_user_reaches_no_other_user_by_naming_one(far: Far) -> None:
    with pytest.raises(Forbidden):
        MunimentStore(far(user="ana"), user_id="ben").search(())
    with pytest.raises(Forbidden):
        MunimentSaver(far(user="ana"), user_id="ben").get_tuple({"configurable": {"thread_id": "t"}})


def test_a_key_that_reads_writes_nothing(mem: muniment.Memory, far: Far) -> None:
    shared = fill_two(mem)
    reader = MunimentStore(far(access="read"), user_at=1)
    assert keys(reader.search((), query="boat")) == keys(shared.search((), query="boat"))
    calls: list[Callable[[], object]] = [
        lambda: reader.put(("a",), "k", {"v": 1}),
        lambda: reader.delete(("notes",), "all"),
        lambda: reader.forget(("notes",), "all"),
        lambda: reader.sweep_ttl(),
    ]
    for call in calls:
        with pytest.raises(Forbidden):
            call()
    assert len(shared.search((), limit=100)) == 4


# -- what is compared ---------------------------------------------------------------------------------


def test_an_index_of_langgraphs_embeds_here_and_scores_as_near_by(mem: muniment.Memory, far: Far) -> None:
    index: Any = {"dims": HashEmbedder().dim, "embed": embed, "fields": ["text"]}
    near, there = MunimentStore(mem, index=index), MunimentStore(far(), index=index)
    near.put(("a",), "near", {"text": "the red boat", "more": "words"})
    there.put(("a",), "far", {"text": "a blue car"})
    there.put(("a",), "mute", {"text": "a red boat"}, index=False)
    for query in ("red boat", "blue car"):
        ours, theirs = near.search(("a",), query=query), there.search(("a",), query=query)
        assert [(each.key, each.score) for each in ours] == [(each.key, each.score) for each in theirs]
        assert ours[-1].score is None


@pytest.mark.soak
@pytest.mark.parametrize("given", [{}, {"fields": ["text"]}, {"index": True}])
def test_what_a_rebuild_lost_is_made_again_by_whoever_searches(
    mem: muniment.Memory, far: Far, given: dict[str, Any]
) -> None:
    if "index" in given:
        given = {"index": {"dims": HashEmbedder().dim, "embed": embed}}
    there = MunimentStore(far(), **given)
    there.batch([PutOp(("a",), f"k{number}", {"text": f"boat number {number}"}) for number in range(600)])
    before = [(each.key, each.score) for each in there.search(("a",), query="boat 17", limit=5)]
    mem.store.rebuild()
    again = MunimentStore(far(), **given)
    assert [(each.key, each.score) for each in again.search(("a",), query="boat 17", limit=5)] == before


def test_the_servers_embedder_serves(tmp_path: Path) -> None:
    with muniment.open(":memory:", embedder=HashEmbedder()) as mem, connected(mem, tmp_path) as there:
        near, store = MunimentStore(mem), MunimentStore(there)
        store.put(("a",), "boat", {"text": "a red boat"})
        store.put(("a",), "car", {"text": "a blue car"})
        ours = [(each.key, each.score) for each in near.search((), query="red boat")]
        assert [(each.key, each.score) for each in store.search((), query="red boat")] == ours
        assert ours[0][0] == "boat"
        assert all(score is not None for _, score in ours)


# -- time, history, batches ---------------------------------------------------------------------------


def test_values_expire_by_the_servers_clock_and_are_swept(mem: muniment.Memory, far: Far, clock: Clock) -> None:
    there = MunimentStore(far(), ttl={"default_ttl": 10, "refresh_on_read": True}, clock=clock)
    there.put(("a",), "k", {"v": 1})
    there.put(("a",), "stays", {"v": 2}, ttl=None)
    clock.now += timedelta(minutes=8)
    assert there.get(("a",), "k") is not None  # and lives on from here
    clock.now += timedelta(minutes=8)
    assert keys(there.search(("a",), refresh_ttl=False)) == ["k", "stays"]
    clock.now += timedelta(minutes=3)
    assert keys(there.search(("a",))) == ["stays"]
    assert there.get(("a",), "k") is None
    assert there.sweep_ttl() == 1
    assert there.sweep_ttl() == 0
    assert mem.verify().ok


def test_a_sweep_of_one_user_takes_nothing_of_anothers(mem: muniment.Memory, far: Far, clock: Clock) -> None:
    shared = MunimentStore(mem, user_at=0, clock=clock)
    for user in ("ana", "ben"):
        shared.put((user,), "k", {"v": 1}, ttl=1)
    clock.now += timedelta(minutes=2)
    assert MunimentStore(far(user="ana"), user_at=0).sweep_ttl() == 1
    assert shared.sweep_ttl() == 1


def test_history_and_erasing(mem: muniment.Memory, far: Far) -> None:
    there = MunimentStore(far())
    for number in range(3):
        there.put(("a",), "k", {"v": number})
    there.delete(("a",), "k")
    assert [(value["v"], state) for value, _, state in there.history(("a",), "k")] == [
        (0, "superseded"), (1, "superseded"), (2, "retracted"),
    ]  # fmt: skip
    (receipt,) = there.forget(("a",), "k")
    assert receipt.counts
    assert there.history(("a",), "k") == []
    erasing = MunimentStore(far(), erase=True, name="erasing")
    erasing.put(("a",), "k", {"v": "unheard-of"})
    erasing.delete(("a",), "k")
    assert erasing.history(("a",), "k") == []
    assert not any(b"unheard-of" in line for line in mem.export())


def test_a_batch_is_a_request_for_each_kind_of_work(mem: muniment.Memory, tmp_path: Path) -> None:
    with connected(mem, tmp_path) as there:
        store = MunimentStore(there)
        store.get(("a",), "k")  # once, it looks for what an earlier version left
        asked: list[str] = []
        request = there._connection._http.request  # type: ignore[attr-defined]
        there._connection._http.request = lambda method, path, **more: (  # type: ignore[attr-defined]
            asked.append(path.rpartition("/")[2]),
            request(method, path, **more),
        )[1]
        store.batch([PutOp(("a",), f"k{number}", {"v": number}) for number in range(50)])
        store.batch([SearchOp(("a",)), ListNamespacesOp(), PutOp(("a",), "k1", None)])
        assert asked == ["put", "search", "namespaces", "put"]


async def _alone(there: muniment.Memory) -> list[str]:
    async with AsyncMunimentStore(there) as store:
        await store.aput(("a",), "k", {"text": "a boat"})
        return keys(await store.asearch(("a",), query="boat"))


def test_with_await(far: Far) -> None:
    import asyncio

    assert asyncio.run(_alone(far())) == ["k"]


# -- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "arguments", "path"),
    [
        ("put", {"values": [{"namespace": ["a"], "key": "k"}]}, "$.values[0].value"),
        ("put", {"values": [{"namespace": "a", "key": "k", "value": {}}]}, "$.values[0].namespace"),
        ("put", {"values": {"namespace": ["a"]}}, "$.values"),
        ("put", {"values": [{"namespace": ["a"], "key": "k", "value": {}}] * 2}, "$.values"),
        ("put", {"values": [], "embedder": "x" * 300}, "$.embedder"),
        ("search", {"limit": -1}, "$.limit"),
        ("search", {"offset": -1}, "$.offset"),
        ("search", {"limit": True}, "$.limit"),
        ("search", {"filter": {"a": {"$near": 1}}}, "$.filter.a"),
        ("search", {"filter": [1]}, "$.filter"),
        ("search", {"vector": [1.0]}, "$.embedder"),
        ("search", {"query": "q", "embedder": "e"}, "$.vector"),
        ("search", {"query": "q", "embedder": "e", "vector": ["x"]}, "$.vector[0]"),
        ("search", {"query": 3}, "$.query"),
        ("namespaces", {"max_depth": 0}, "$.max_depth"),
        ("namespaces", {"matches": [{"path": [1]}]}, "$.matches[0].path[0]"),
        ("get", {"names": [{"key": "k"}]}, "$.names[0].namespace"),
        ("history", {"namespace": ["a"], "key": 3}, "$.key"),
        ("fill", {"values": [{"event_id": ""}]}, "$.values[0].event_id"),
    ],
)
def test_bad_input_is_refused_alike_at_both_doors(
    mem: muniment.Memory, far: Far, call: str, arguments: dict[str, Any], path: str
) -> None:
    told = []
    for door in (mem, far()):
        with pytest.raises(MunimentError) as refused:
            getattr(door.store.values("s"), call)(**arguments)
        told.append((type(refused.value), refused.value.code))
        issues = getattr(refused.value, "issues", ())
        paths = {refused.value.path, *(issue.path for issue in issues)}
        assert path in paths, paths
    assert told[0] == told[1]
    assert mem.store.values("s").namespaces() == []


def test_vectors_of_two_lengths_are_told_not_stumbled_over(mem: muniment.Memory, far: Far) -> None:
    space = far().store.values("s")
    one = {"namespace": ["a"], "key": "k", "value": {"v": 1}, "vectors": [[1.0, 0.0]]}
    space.put([one], embedder="e")
    found = space.search(["a"], query="q", embedder="e", vector=[2.0, 0.0])
    assert [each.score for each in found.found] == [1.0]
    with pytest.raises(InvalidInput, match="3 numbers"):
        space.search(["a"], query="q", embedder="e", vector=[1.0, 0.0, 0.0])
    space.put([one | {"key": "other", "vectors": [[1.0, 0.0, 0.0]]}], embedder="e")
    with pytest.raises(InvalidInput, match="2 and 3"):
        space.search(["a"], query="q", embedder="e", vector=[1.0, 0.0])


def test_nobody_fills_in_for_another_user(mem: muniment.Memory, far: Far) -> None:
    shared = fill_two(mem)
    event_id = mem.store.values("langgraph", user_at=1).get([{"namespace": ["memories", "ben"], "key": "boat"}])[0]
    ana = far(user="ana").store.values("langgraph", user_at=1)
    before = [(each.key, each.score) for each in shared.search((), query="bread")]
    assert ana.fill([{"event_id": event_id.event_id, "texts": ["bread bread"]}]) == 0
    assert [(each.key, each.score) for each in shared.search((), query="bread")] == before


# -- threads ------------------------------------------------------------------------------------------


def config(thread: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def put(saver: MunimentSaver, thread: str, values: dict[str, Any], **more: Any) -> Any:
    checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": dict.fromkeys(values, "1")}
    return saver.put(config(thread, **more), checkpoint, {"source": "loop", "step": 1}, {})  # type: ignore[arg-type]


def test_a_graph_goes_on_over_a_connection_where_it_stopped_near_by(mem: muniment.Memory, far: Far) -> None:
    def graph(saver: MunimentSaver, store: BaseStore | None = None) -> Any:
        builder = StateGraph(dict)
        builder.add_node("count", lambda state: {"n": state.get("n", 0) + 1})
        builder.add_edge(START, "count")
        return builder.compile(checkpointer=saver, store=store)

    assert graph(MunimentSaver(mem)).invoke({"n": 1}, config("t")) == {"n": 2}
    saver = MunimentSaver(far())
    there = graph(saver, MunimentStore(far()))
    assert there.get_state(config("t")).values == {"n": 2}
    assert there.invoke({"n": 7}, config("t")) == {"n": 8}
    near = [each.checkpoint["id"] for each in MunimentSaver(mem).list(config("t"))]
    assert [each.checkpoint["id"] for each in saver.list(config("t"))] == near
    assert len(near) == len(set(near)) > 3
    assert [each.checkpoint["id"] for each in saver.list(config("t"), limit=2)] == near[:2]


def test_a_list_longer_than_a_page_is_whole_and_in_order(mem: muniment.Memory, far: Far) -> None:
    near, there = MunimentSaver(mem), MunimentSaver(far())
    for number in range(70):
        put(near, f"t{number % 3}", {"n": number})
    near.copy_thread("t0", "copy")  # the same ids and numbers in two threads
    names = [(each.config["configurable"]["thread_id"], each.checkpoint["id"]) for each in near.list(None)]
    assert [(each.config["configurable"]["thread_id"], each.checkpoint["id"]) for each in there.list(None)] == names
    assert len(set(names)) == len(names) == 94


def test_a_key_of_one_user_has_the_threads_of_that_user(mem: muniment.Memory, far: Far) -> None:
    ana, ben, near = MunimentSaver(far(user="ana")), MunimentSaver(far(user="ben")), MunimentSaver(mem)
    put(near, "t", {"who": "all"})
    put(ana, "t", {"who": "ana"})
    assert ben.get_tuple(config("t")) is None
    assert [*ben.list(None)] == []
    found = ana.get_tuple(config("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"who": "ana"}
    ben.delete_thread("t")
    ana.copy_thread("t", "u")
    ana.prune(["t"])
    assert ana.get_tuple(config("u")) is not None
    mem.forget(user_id="ana")
    assert ana.get_tuple(config("t")) is None
    assert near.get_tuple(config("t")) is not None
    assert mem.verify().ok


def test_a_thread_of_one_user_is_shown_to_no_other_that_configurable_names(far: Far) -> None:
    saver = MunimentSaver(far())
    put(saver, "t", {"n": 1}, user_id="ana")
    assert saver.get_tuple(config("t", user_id="ben")) is None
    with pytest.raises(Forbidden):
        put(saver, "t", {"n": 2}, user_id="ben")
    assert saver.get_tuple(config("t", user_id="ana")) is not None


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("put", {"checkpoint": {"thread_id": "t"}}),
        ("put", {"checkpoint": {"thread_id": "t", "checkpoint_id": "1", "values": {},
                                "head": {"type": "x", "data": "é"}, "metadata": {"type": "x", "data": ""}}}),
        ("put_writes", {"thread_id": "t", "checkpoint_id": "1", "writes": [{"task_id": "a"}]}),
        ("put_writes", {"thread_id": "t", "checkpoint_id": "1", "writes": "no"}),
        ("checkpoints", {"after": "[1]"}),
        ("checkpoints", {"after": "{"}),
        ("checkpoints", {"limit": 0}),
        ("forget", {"thread_id": "t", "keep": [{}]}),
        ("copy", {"thread_id": 3, "to": "t"}),
    ],
)  # fmt: skip
def test_bad_threads_are_refused_alike_at_both_doors(
    mem: muniment.Memory, far: Far, call: str, arguments: dict[str, Any]
) -> None:
    told = []
    for door in (mem, far()):
        with pytest.raises(MunimentError) as refused:
            getattr(door.store.threads("s"), call)(**arguments)
        told.append((type(refused.value), refused.value.code))
    assert told[0] == told[1]
    assert issubclass(told[0][0], InvalidInput)
    assert mem.store.threads("s").thread_ids() == []
