"""The same items and the same ready-made vectors in muniment and in stores that people use for agent memory.

    python -m benchmarks.peers                           every peer, 1k, 10k and 100k items, and 10k of one user
    python -m benchmarks.peers --quick                   1k items only
    python -m benchmarks.peers --peers langgraph chroma  some of them

Each peer runs in a virtual environment of its own (`benchmarks.peer_environments`), in a scratch directory (`--scratch`
keeps it); one that cannot be installed is skipped, and it says so. Items are turns of about twenty words with a 256-d
vector, about 1,000 a user.
mem0 (infer off) and LangGraph take one item a call, as their interfaces do; chroma and muniment 1,000. "muniment,
words" has no vectors; "muniment" keeps them and ranks by both. A search is for the ten best of one user.

This file is also the program that runs inside a peer's environment, where there is no muniment: hence the late imports.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PEERS = ("mem0", "langgraph", "chroma")
OURS = ("muniment", "muniment, words")
DIM = 256
A_USER = 1000
BATCH = 1000
ASKED = 40
TOP = 10


@dataclass(frozen=True, slots=True)
class Load:
    """What every system is given."""

    users: list[str]
    texts: list[str]
    vectors: Any
    """A row for each text, of length one."""
    asked: list[tuple[str, str, Any]]
    """User, question, the question's vector."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A system under test: write users and texts from one place to another, search, close."""

    write: Callable[[int, int], object]
    search: Callable[[str, str, Any], Sequence[object]]
    close: Callable[[], object]
    step: int
    """Items that go into one call of `write`."""


# -- in the peer's environment ------------------------------------------------------------------------


def load_of(folder: Path) -> Load:
    import numpy as np

    plain = json.loads((folder / "load.json").read_text())
    vectors = np.random.default_rng(17).standard_normal((len(plain["texts"]) + len(plain["asked"]), DIM))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    count = len(plain["texts"])
    asked = [(user, text, vectors[count + at]) for at, (user, text) in enumerate(plain["asked"])]
    return Load(plain["users"], plain["texts"], vectors[:count], asked)


def _known(load: Load) -> dict[str, Any]:
    """Vectors by text, for systems that want to embed by themselves."""
    known = dict(zip(load.texts, load.vectors, strict=True))
    return known | {text: vector for _, text, vector in load.asked}


def open_chroma(load: Load, folder: Path) -> Handle:
    import chromadb  # type: ignore[import-not-found, unused-ignore]

    client = chromadb.PersistentClient(str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
    kept = client.create_collection("turns", embedding_function=None)

    def write(start: int, end: int) -> None:
        kept.add(
            ids=[str(number) for number in range(start, end)],
            embeddings=load.vectors[start:end],
            documents=load.texts[start:end],
            metadatas=[{"user": user} for user in load.users[start:end]],
        )

    def search(user: str, _: str, vector: Any) -> Sequence[object]:
        found: Sequence[object] = kept.query(query_embeddings=[vector], n_results=TOP, where={"user": user})["ids"][0]
        return found

    return Handle(write, search, lambda: None, BATCH)


def open_langgraph(load: Load, folder: Path) -> Handle:
    try:  # its vectors need a SQLite that loads extensions
        import pysqlite3  # type: ignore[import-not-found, unused-ignore]

        sys.modules["sqlite3"] = pysqlite3
    except ImportError:
        pass
    from langgraph.store.sqlite import SqliteStore  # type: ignore[import-not-found, unused-ignore]

    known = _known(load)

    def embed(texts: Sequence[str]) -> list[Any]:
        """Of an item, its whole JSON value is embedded."""
        plain = [json.loads(text)["text"] if text.startswith("{") else text for text in texts]
        return [known[text].tolist() for text in plain]

    index: Any = {"dims": DIM, "embed": embed, "fields": ["text"]}
    opened = SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
    store = opened.__enter__()
    store.setup()

    def write(start: int, end: int) -> None:
        for number in range(start, end):
            store.put(("users", load.users[number]), str(number), {"text": load.texts[number]})

    def search(user: str, text: str, _: Any) -> Sequence[object]:
        found: Sequence[object] = store.search(("users", user), query=text, limit=TOP)
        return found

    return Handle(write, search, lambda: opened.__exit__(None, None, None), 1)


class _Embeds:
    """mem0's embedder, which knows every text already."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known

    def embed(self, text: str, *_: Any, **__: Any) -> Any:
        return self.known[text].tolist()

    def embed_batch(self, texts: Sequence[str], *_: Any, **__: Any) -> list[Any]:
        return [self.embed(text) for text in texts]


def open_mem0(load: Load, folder: Path) -> Handle:
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder / "home"), OPENAI_API_KEY="none")
    from mem0 import Memory  # type: ignore[import-not-found, unused-ignore]

    place = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": DIM, "collection_name": "turns"}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = _Embeds(_known(load))

    def write(start: int, end: int) -> None:
        for number in range(start, end):
            memory.add(load.texts[number], user_id=load.users[number], infer=False)

    def search(user: str, text: str, _: Any) -> Sequence[object]:
        found: Sequence[object] = memory.search(text, filters={"user_id": user}, top_k=TOP)["results"]
        return found

    return Handle(write, search, lambda: None, 1)


class _Given:
    """muniment's embedder, which knows every text already."""

    identity = f"given-{DIM}"
    dim = DIM

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known

    def embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        # What is embedded of a turn is: who said: "the text"
        return np.stack([self.known[text.partition(' said: "')[2][:-1] or text] for text in texts])


def open_muniment(load: Load, folder: Path, *, vectors: bool) -> Handle:
    import muniment

    options: dict[str, Any] = {"embedder": _Given(_known(load))} if vectors else {}
    mem = muniment.open(folder / "store.db", **options)

    def write(start: int, end: int) -> None:
        events = [
            {"role": "assistant" if number % 2 else "user", "content": load.texts[number]}
            for number in range(start, end)
        ]
        mem.run(user_id=load.users[start], session_id=f"s{start}").observe_many(events)

    def search(user: str, text: str, _: Any) -> Sequence[object]:
        return mem.run(user_id=user).search(text, k=TOP)

    return Handle(write, search, mem.close, BATCH)


def open_system(name: str, load: Load, folder: Path) -> Handle:
    if name in OURS:
        return open_muniment(load, folder, vectors=name == OURS[0])
    return {"chroma": open_chroma, "langgraph": open_langgraph, "mem0": open_mem0}[name](load, folder)


def measure(name: str, source: Path, folder: Path) -> dict[str, Any]:
    """Write all, search some, count the bytes. The first item and the first questions come before the clock starts."""
    load = load_of(source)
    handle = open_system(name, load, folder)
    count = len(load.texts)
    handle.write(0, 1)
    start = time.perf_counter()
    for at in range(0, count, handle.step):
        handle.write(max(at, 1), min(at + handle.step, count))
    ingest = time.perf_counter() - start
    times, empty = [], 0
    for place, (user, text, vector) in enumerate(load.asked):
        begin = time.perf_counter()
        found = handle.search(user, text, vector)
        taken = time.perf_counter() - begin
        empty += not found
        if place >= 5:
            times.append(taken)
    handle.close()
    assert empty * 4 < len(load.asked), f"{name} found nothing for {empty} of {len(load.asked)} questions"
    held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    times.sort()
    return {
        "items_per_s": (count - 1) / ingest,
        "p50_ms": statistics.median(times) * 1e3,
        "p95_ms": times[int(len(times) * 0.95)] * 1e3,
        "bytes_per_item": held / count,
    }


# -- here ---------------------------------------------------------------------------------------------


def write_load(folder: Path, count: int, a_user: int) -> None:
    from benchmarks.compose import Talk

    talk = Talk(seed=23)
    turns = [turn for session in talk.sessions(count) for turn in session]
    users = [f"user-{number // a_user}" for number in range(count)]
    places = [(number * 7919) % count for number in range(ASKED)]
    asked = [(users[place], talk.question(turns[place])) for place in places]
    folder.mkdir(parents=True, exist_ok=True)
    texts = [f"{number}: {turn.text}" for number, turn in enumerate(turns)]
    (folder / "load.json").write_text(json.dumps({"users": users, "texts": texts, "asked": asked}))


def environment(name: str, scratch: Path) -> str | None:
    """The interpreter of a peer's environment, or None where it cannot be made."""
    from benchmarks.peer_environments import python_of

    return sys.executable if name in OURS else python_of(name, scratch)


def measure_apart(name: str, python: str, source: Path, limit_s: float) -> dict[str, Any] | None:
    """`measure` in a process of its own, in the peer's environment."""
    with tempfile.TemporaryDirectory(prefix="muniment-peer-") as folder:
        command = [python, __file__, "--inside", name, str(source), folder]
        path = str(Path(__file__).parent.parent) if name in OURS else ""
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=limit_s,
                env={**os.environ, "PYTHONPATH": path},
            )
        except subprocess.TimeoutExpired:
            print(f"SKIPPED: {name} took more than {limit_s:.0f} s", file=sys.stderr)
            return None
    if done.returncode:
        print(f"SKIPPED: {name} failed: {done.stderr.strip()[-600:]}", file=sys.stderr)
        return None
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def compare(rows: dict[str, dict[str, Any]], layout: str) -> None:
    """How muniment, with its vectors, stands against each peer in the same layout."""
    ours = rows.get(f"{OURS[0]}, {layout}")
    for name in PEERS:
        theirs = rows.get(f"{name}, {layout}")
        if ours and theirs:
            theirs["search_times_ours"] = theirs["p50_ms"] / ours["p50_ms"]
            theirs["ingest_ours_times"] = ours["items_per_s"] / theirs["items_per_s"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--inside", nargs=3, metavar=("SYSTEM", "LOAD", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--sizes", nargs="*", type=int, help="how many items are stored")
    parser.add_argument("--scratch", type=Path, help="a directory to keep the environments in")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which one measurement is given up")
    arguments = parser.parse_args()
    if arguments.inside:
        name, source, folder = arguments.inside
        print(json.dumps(measure(name, Path(source), Path(folder))))
        return
    from benchmarks.harness import report

    sizes = arguments.sizes or ([1_000] if arguments.quick else [1_000, 10_000, 100_000])
    layouts = {f"{size:,} stored": (size, A_USER) for size in sizes}
    if not arguments.quick:
        layouts["10,000 of one user"] = (10_000, 10_000)
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        pythons = {name: environment(name, scratch) for name in (*OURS, *arguments.peers)}
        for layout, (size, a_user) in layouts.items():
            source = Path(temporary) / layout.replace(" ", "-")
            write_load(source, size, a_user)
            for name, python in pythons.items():
                found = measure_apart(name, python, source, arguments.limit) if python else None
                if found is not None:
                    rows[f"{name}, {layout}"] = found
                    print(f"{name}, {layout}: {found}", file=sys.stderr)
            compare(rows, layout)
    report("peers", rows, {"quick": arguments.quick, "sizes": sizes, "a_user": A_USER, "dim": DIM})


if __name__ == "__main__":
    main()
