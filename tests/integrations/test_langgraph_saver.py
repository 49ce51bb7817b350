"""`MunimentSaver`: LangGraph's own conformance kit on every engine, and what is ours beside it."""

from __future__ import annotations

import asyncio
import base64
import operator
import pickle
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="the langgraph extra is not installed: pip install 'muniment[langgraph]'")
pytest.importorskip("langgraph.checkpoint.conformance", reason="pip install langgraph-checkpoint-conformance")

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint import conformance
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

import muniment
from muniment.errors import Forbidden, InvalidInput, StoreDamaged
from muniment.integrations.langgraph import MunimentSaver
from served_store import connected


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def config(thread: str = "t", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def put(saver: MunimentSaver, values: dict[str, Any], thread: str = "t", after: Any = None, **more: Any) -> Any:
    given = after or config(thread, **more)
    checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": dict.fromkeys(values, "1")}
    return saver.put(given, checkpoint, {"source": "loop", "step": 1}, {})  # type: ignore[arg-type]


def values_of(saver: MunimentSaver, given: Any) -> Any:
    found = saver.get_tuple(given)
    return None if found is None else found.checkpoint["channel_values"]


# -- LangGraph's own kit ------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres", "http"])
def test_the_conformance_kit_passes_whole(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if engine == "postgres":
        dsn, schema = request.getfixturevalue("postgres_dsn"), request.getfixturevalue("postgres_schema")
    numbers = iter(range(100))

    @contextmanager
    def opened() -> Iterator[muniment.Memory]:
        if engine == "postgres":
            with muniment.open(f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}") as store:
                yield store
        elif engine == "http":
            with muniment.open(":memory:") as store, connected(store, tmp_path) as far:
                yield far
        else:
            with muniment.open(tmp_path / f"{next(numbers)}.db") as store:
                yield store

    @conformance.checkpointer_test(name=f"MunimentSaver on {engine}")
    async def ours() -> AsyncGenerator[MunimentSaver]:
        with opened() as store:
            yield MunimentSaver(store)
            assert store.verify().ok

    report = asyncio.run(conformance.validate(ours))
    failures = [failure for result in report.results.values() for failure in result.failures or ()]
    assert failures == []
    assert all(result.detected and result.passed for result in report.results.values()), report.results
    assert sum(result.tests_passed for result in report.results.values()) >= 81


# -- graphs -------------------------------------------------------------------------------------------


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[int, operator.add]


def chat_graph(saver: MunimentSaver, *, asks: bool = False) -> Any:
    def talk(state: Chat) -> dict[str, Any]:
        number = len(state["messages"])
        said = interrupt("go on?") if asks else "so"
        words = " ".join(f"w{(number * 7919 + at * 104729) % 99991}" for at in range(40))
        return {"messages": [AIMessage(f"{said} {words}", id=f"a{number}")], "steps": 1}

    builder = StateGraph(Chat)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    return builder.compile(checkpointer=saver)


def said(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {number}", id=f"h{number}")], "steps": 0}


def test_a_graph_goes_on_where_it_stopped_and_can_be_taken_back(mem: muniment.Memory) -> None:
    saver = MunimentSaver(mem)
    graph = chat_graph(saver, asks=True)
    assert "__interrupt__" in graph.invoke(said(0), config())
    graph = chat_graph(MunimentSaver(mem), asks=True)
    done = graph.invoke(Command(resume="yes"), config())
    assert done["messages"][-1].content.startswith("yes w")
    before = [each.checkpoint["id"] for each in saver.list(config())]
    assert before == sorted(before, reverse=True)
    past = list(graph.get_state_history(config()))[-1]
    assert past.values.get("messages", []) == []
    forked = graph.invoke(said(5), past.config)
    assert "__interrupt__" in forked
    assert len(list(saver.list(config()))) > len(before)
    assert mem.verify().ok


def test_a_graph_with_await(mem: muniment.Memory) -> None:
    async def work() -> None:
        graph = chat_graph(MunimentSaver(mem))
        for number in range(3):
            await graph.ainvoke(said(number), config())
        assert len((await graph.aget_state(config())).values["messages"]) == 6
        history = [each async for each in graph.aget_state_history(config(), limit=2)]
        assert len(history) == 2

    asyncio.run(work())


def test_a_growing_state_takes_what_is_new_in_it(tmp_path: Path) -> None:
    """Twice the steps, about twice the bytes: states are told by what changed, and come back exactly."""
    sizes = []
    for steps in (20, 40):
        path = tmp_path / f"{steps}.db"
        with muniment.open(path) as mem:
            saver, after, messages = MunimentSaver(mem), None, []
            for number in range(steps):
                messages.append(HumanMessage(" ".join(f"w{(number * 7919 + at * 104729) % 99991}" for at in range(80))))
                after = put(saver, {"messages": list(messages), "kept": "the same"}, after=after)
            counts = [len(each.checkpoint["channel_values"]["messages"]) for each in saver.list(config())]
            assert counts == list(range(steps, 0, -1))
        with muniment.open(path) as mem:  # nothing is in memory any more
            assert values_of(MunimentSaver(mem), config())["messages"] == messages
            assert mem.verify().ok
        with closing(sqlite3.connect(path)) as file:
            sizes.append(file.execute("SELECT sum(length(body)) FROM entries").fetchone()[0])
    assert sizes[1] < 2.6 * sizes[0]


# -- what is ours -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET body = replace(body, 'parent', 'perent') WHERE body LIKE '%checkpoint_kept%'",
        "UPDATE entries SET body = replace(body, '\"t\"', '\"u\"') WHERE body LIKE '%checkpoint_kept%'",
        "UPDATE entries SET ts = 1577836800000000 WHERE body LIKE '%checkpoint_kept%'",
        "UPDATE places SET number = 9, entry_id = (SELECT entry_id FROM places WHERE space LIKE '%.w')"
        " WHERE space NOT LIKE '%.w'",
        "UPDATE places SET path = 'other' || char(31) || char(31) WHERE space NOT LIKE '%.w'",
        "UPDATE places SET name = 'zzz' WHERE space NOT LIKE '%.w'",
        "DELETE FROM entries WHERE body LIKE '%checkpoint_kept%'",
    ],
)
def test_what_was_altered_is_refused_and_told(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        saver = MunimentSaver(mem)
        saver.put_writes(put(saver, {"a": "what was agreed"}), [("a", 1)], "task")
        assert mem.verify().ok
    with closing(sqlite3.connect(path)) as file:
        file.execute(damage)
        file.commit()
    with muniment.open(path) as mem:
        saver = MunimentSaver(mem)
        thread = "other" if "'other'" in damage else "t"
        with pytest.raises(StoreDamaged):
            saver.get_tuple(config(thread))
        assert not mem.verify().ok
        if "places" in damage:  # rows are made again from the ledger
            mem.store.rebuild()
            assert mem.verify().ok
            assert values_of(saver, config()) == {"a": "what was agreed"}


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_a_thread_is_forgotten_with_a_receipt_and_nothing_is_left(tmp_path: Path) -> None:
    plain = b"the-secret-of-the-thread-0123456789"
    serde = _PlainSerde()
    with muniment.open(tmp_path / "store.db") as mem:
        saver = MunimentSaver(mem, serde=serde)
        first = put(saver, {"a": plain.decode()}, "gone")
        saver.put_writes(first, [("a", "ZZ-written-ZZ")], "task")
        put(saver, {"a": "stays"}, "other")
        (receipt,) = saver.forget_thread("gone")
        assert receipt.scrubbed
        assert receipt.counts["entries"] >= 2
        assert saver.get_tuple(config("gone")) is None
        assert list(saver.list(config("gone"))) == []
        assert values_of(saver, config("other")) == {"a": "stays"}
        put(saver, {"a": "anew"}, "gone")
        assert values_of(saver, config("gone")) == {"a": "anew"}
        assert mem.verify().ok
        assert saver.forget_thread("never") == []
    left = bytes_of(tmp_path)
    for needle in (plain, b"ZZ-written-ZZ"):
        assert needle not in left
        assert base64.b64encode(needle)[:-4] not in left


class _PlainSerde:
    """Texts as their bytes, so that a test can look for them."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return ("text", value.encode()) if isinstance(value, str) else JsonPlusSerializer().dumps_typed(value)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return data[1].decode() if data[0] == "text" else JsonPlusSerializer().loads_typed(data)


def test_a_users_threads_are_their_own_and_go_with_them(mem: muniment.Memory) -> None:
    saver = MunimentSaver(mem)
    put(saver, {"a": 1}, "ana-1", user_id="ana")
    put(saver, {"a": 2}, "ben-1", user_id="ben")
    put(saver, {"a": 3}, "shared")
    assert saver.get_tuple(config("ana-1", user_id="ben")) is None
    assert list(saver.list(config("ana-1", user_id="ben"))) == []
    assert [each.config["configurable"]["thread_id"] for each in saver.list(config("ben-1", user_id="ben"))] == [
        "ben-1"
    ]
    with pytest.raises(Forbidden):
        put(saver, {"a": 9}, "ana-1", user_id="ben")
    with pytest.raises(Forbidden):
        saver.put_writes(config("ana-1", user_id="ben", checkpoint_id="x"), [("a", 1)], "task")
    with pytest.raises(InvalidInput):
        put(saver, {"a": 9}, "new", user_id="corpus:x")
    mem.forget(user_id="ana")
    assert saver.get_tuple(config("ana-1")) is None
    assert values_of(saver, config("ben-1")) == {"a": 2}
    own, other = MunimentSaver(mem, user_id="ana"), MunimentSaver(mem, user_id="ben")
    put(own, {"a": "of ana"})
    assert values_of(other, config()) is None
    put(other, {"a": "of ben"})
    assert [values_of(each, config()) for each in (own, other)] == [{"a": "of ana"}, {"a": "of ben"}]
    other.delete_thread("t")
    assert values_of(own, config()) == {"a": "of ana"}
    assert MunimentSaver(mem, tenant_id="acme").get_tuple(config("shared")) is None
    assert mem.verify().ok


def test_writes_are_kept_once_and_in_the_order_of_their_tasks(mem: muniment.Memory) -> None:
    saver = MunimentSaver(mem)
    at = put(saver, {"a": 1})
    saver.put_writes(at, [("x", 1), ("y", 2)], "task-b", "~2")
    saver.put_writes(at, [("x", 5)], "task-a", "~1")
    before = list(mem.export())[1:-1]
    saver.put_writes(at, [("x", 1), ("y", 2)], "task-b", "~2")
    saver.put_writes(at, [("x", "another")], "task-b", "~2")
    assert list(mem.export())[1:-1] == before, "the same again writes nothing"
    found = saver.get_tuple(at)
    assert found is not None
    assert found.pending_writes == [("task-a", "x", 5), ("task-b", "x", 1), ("task-b", "y", 2)]
    saver.put_writes(at, [("__error__", "one")], "task-c")
    saver.put_writes(at, [("__error__", "two")], "task-c")
    found = saver.get_tuple(at)
    assert found is not None
    assert [value for task, _, value in found.pending_writes or () if task == "task-c"] == ["two"]


def test_a_state_that_says_it_is_pickled_is_not_unpickled(mem: muniment.Memory) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("it was unpickled",))

    class Pickled(_PlainSerde):
        def dumps_typed(self, value: Any) -> tuple[str, bytes]:
            if isinstance(value, Hostile):
                return "pickle", pickle.dumps(value)
            return JsonPlusSerializer().dumps_typed(value)

    at = put(MunimentSaver(mem, serde=Pickled()), {"a": Hostile()})
    with pytest.raises(NotImplementedError):
        MunimentSaver(mem).get_tuple(at)


def test_threads_survive_an_export_and_a_rebuild(mem: muniment.Memory, tmp_path: Path) -> None:
    saver = MunimentSaver(mem)
    chat_graph(saver).invoke(said(0), config())
    saver.copy_thread("t", "copy")
    saver.prune(["t"])
    assert len(list(saver.list(config()))) == 1
    told = [(each.config, each.checkpoint, each.metadata, each.pending_writes) for each in saver.list(None)]
    assert mem.store.rebuild().repaired == ()
    with muniment.open(tmp_path / "other.db") as other:
        other.import_(list(mem.export()))
        moved = MunimentSaver(other)
        assert [(each.config, each.checkpoint, each.metadata, each.pending_writes) for each in moved.list(None)] == told
        chat_graph(moved).invoke(said(1), config("copy"))
        assert other.verify().ok
