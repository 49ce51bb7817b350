"""LangGraph's store and checkpointer over a muniment store, beside LangGraph's own, in turns in one run.

    python -m benchmarks.langgraph [--namespaces 50,500,1000,5000] [--rounds 15] [--steps 200]

Stores: two items in each namespace, one namespace a user. A search below the prefix that all share, with and without a
query, a search in one namespace, a listing, a get, a batch of 100 puts: median milliseconds of CPU time (which a busy
neighbour does not lengthen; what a disk takes to sync is not in it) of ours, of `SqliteStore` and of `InMemoryStore`.
With a query, ours goes by words, and by vectors of the same function as `InMemoryStore`;
`SqliteStore` is told of no index (its vectors need an extension that not every Python can load), and answers as it does
without a query. Savers: a graph with a list of messages that grows; what a step, a get and a page of the list take, and
how many bytes the file has, beside `SqliteSaver`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

import muniment
from benchmarks.harness import report, without_collections
from muniment.integrations.langgraph import MunimentSaver, MunimentStore
from muniment.testing.hash_embedder import HashEmbedder

_EMBEDDER = HashEmbedder()
_BATCH = 100


def timed(work: Callable[[], object]) -> float:
    """CPU seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _embed(texts: list[str]) -> list[list[float]]:
    return [list(map(float, row)) for row in _EMBEDDER.embed(texts)]


def _puts(count: int) -> list[PutOp]:
    return [
        PutOp(("memories", f"u{user}"), f"k{key}", {"text": f"user {user} likes thing {key} and food {user * 7 % 91}"})
        for user in range(count)
        for key in range(2)
    ]


_CALLS: dict[str, Callable[[BaseStore, int], object]] = {
    "prefix": lambda store, _: store.search(("memories",)),
    "prefix, query": lambda store, at: store.search(("memories",), query=f"likes food {at % 91}"),
    "one namespace": lambda store, at: store.search(("memories", f"u{at % 50}")),
    "one namespace, query": lambda store, at: store.search(("memories", f"u{at % 50}"), query="likes food"),
    "listing": lambda store, _: store.list_namespaces(prefix=("memories",)),
    "get": lambda store, at: store.get(("memories", f"u{at % 50}"), "k1"),
    "put": lambda store, at: store.put(("other", f"u{at % 50}"), f"k{at}", {"text": f"something new {at}"}),
    "put, then query": lambda store, at: _put_and_query(store, at),
}


def _put_and_query(store: BaseStore, at: int) -> object:
    store.put(("memories", "u1"), "changing", {"text": f"something newer {at}"})
    return store.search(("memories",), query="something newer")


def _stores(folder: Path, count: int, rounds: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    index: Any = {"dims": _EMBEDDER.dim, "embed": _embed}
    with (
        muniment.open(folder / f"words{count}.db") as words,
        muniment.open(folder / f"vectors{count}.db") as vectors,
        SqliteStore.from_conn_string(str(folder / f"sqlite{count}.db")) as sqlite,
    ):
        sqlite.setup()
        stores: dict[str, BaseStore] = {
            "ours": MunimentStore(words),
            "ours, vectors": MunimentStore(vectors, index=index),
            "sqlite": sqlite,
            "in memory": InMemoryStore(index=index),
        }
        for store in stores.values():  # what is loaded at the first call
            store.put(("other", "u0"), "k", {"text": "something"})
        puts = _puts(count)
        batches = [puts[at : at + _BATCH] for at in range(0, len(puts), _BATCH)]
        took: dict[str, list[float]] = {name: [] for name in stores}
        for ops in batches:
            for name, store in stores.items():
                took[name].append(timed(lambda store=store, ops=ops: store.batch(ops)))  # type: ignore[misc]
        rows[f"{count} namespaces, batch of {_BATCH} puts"] = _row(took)
        for call, work in _CALLS.items():
            took = {name: [] for name in stores}
            for store in stores.values():
                work(store, 0)
            for at in range(1, rounds + 1):
                for name, store in stores.items():
                    took[name].append(timed(lambda store=store, at=at, work=work: work(store, at)))  # type: ignore[misc]
            rows[f"{count} namespaces, {call}"] = _row(took)
    return rows


def _row(took: dict[str, list[float]]) -> dict[str, Any]:
    told = {f"{name}_ms": statistics.median(times) * 1000 for name, times in took.items()}
    ratios = [ours / theirs for ours, theirs in zip(took["ours"], took["sqlite"], strict=True)]
    return {**told, "ours_over_sqlite": statistics.median(ratios)}


class _Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def _graph(saver: Any) -> Any:
    def talk(state: _Chat) -> dict[str, Any]:
        number = len(state["messages"])
        words = " ".join(f"w{(number * 7919 + at * 104729) % 99991}" for at in range(60))
        return {"messages": [AIMessage(words, id=f"a{number}")]}

    builder = StateGraph(_Chat)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    return builder.compile(checkpointer=saver)


def _savers(folder: Path, steps: int) -> dict[str, dict[str, Any]]:
    config: Any = {"configurable": {"thread_id": "t"}}
    ours_path, their_path = folder / "saver.db", folder / "sqlite_saver.db"
    with muniment.open(ours_path) as mem, SqliteSaver.from_conn_string(str(their_path)) as theirs:
        savers: dict[str, Any] = {"ours": MunimentSaver(mem), "sqlite": theirs}
        graphs = {name: _graph(saver) for name, saver in savers.items()}
        took: dict[str, list[float]] = {name: [] for name in savers}
        for step in range(steps):
            said = {"messages": [HumanMessage(f"question {step} " + "x" * 100, id=f"h{step}")]}
            for name, graph in graphs.items():
                took[name].append(timed(lambda graph=graph, said=said: graph.invoke(said, config)))  # type: ignore[misc]
        rows = {f"saver, {steps} turns, one turn": _pair(took, 10), f"saver, {steps} turns, last ten": _pair(took, -10)}
        for call, work in (
            ("get", lambda saver: saver.get_tuple(config)),
            ("list of 10", lambda saver: list(saver.list(config, limit=10))),
        ):
            took = {name: [] for name in savers}
            for _ in range(5):
                for name, saver in savers.items():
                    took[name].append(timed(lambda saver=saver, work=work: work(saver)))  # type: ignore[misc]
            rows[f"saver, {steps} turns, {call}"] = _pair(took, 0)
    sizes = [sum(each.stat().st_size for each in folder.glob(f"{path.name}*")) for path in (ours_path, their_path)]
    rows[f"saver, {steps} turns, bytes"] = {
        "ours": sizes[0],
        "sqlite": sizes[1],
        "ours_over_sqlite": sizes[0] / sizes[1],
    }
    with muniment.open(ours_path) as mem:
        cold = timed(lambda: MunimentSaver(mem).get_tuple(config))
        gone = timed(lambda: MunimentSaver(mem).delete_thread("t"))
    rows[f"saver, {steps} turns, in a fresh process"] = {"get_ms": cold * 1000, "delete_thread_ms": gone * 1000}
    return rows


def _pair(took: dict[str, list[float]], at: int) -> dict[str, Any]:
    told = {name: times[:at] if at > 0 else times[at:] if at else times for name, times in took.items()}
    medians = {f"{name}_ms": statistics.median(times) * 1000 for name, times in told.items()}
    return {**medians, "ours_over_sqlite": medians["ours_ms"] / medians["sqlite_ms"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespaces", default="50,500,1000,5000")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, without_collections():
        for count in map(int, given.namespaces.split(",")):
            rows |= _stores(Path(folder), count, given.rounds)
        rows |= _savers(Path(folder), given.steps)
    report("langgraph", rows, vars(given))


if __name__ == "__main__":
    main()
